"""The rest of a season: chances of ranks against all outcomes, and which matches count."""

from fractions import Fraction
from itertools import pairwise, permutations, product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from preflearn.dynamics import (
    AveragedComparisons,
    Constant,
    DynamicComparisons,
    OrdinalProbit,
)
from preflearn.matches import Matches
from preflearn_book import season as module
from preflearn_book.season import (
    Points,
    Season,
    SeasonForecast,
    current_season,
    draw_rank_chances,
    final_points,
    forecast_season,
    obstacle,
    present_points,
    rank_chances,
    read_points,
    season_table,
    title_sentence,
    unseen_sentence,
)

FOOTBALL = Points(3, 1, 0)
NAMES = ["Ann", "Bob", "Cy", "Dee"]
FIXTURES = [("Ann", "Bob"), ("Cy", "Ann"), ("Bob", "Cy")]
SIDES = ["first", "second"]


def results(rows):
    return pd.DataFrame(rows, columns=[*SIDES, "outcome"])


PLAYED = results([("Bob", "Ann", 1), ("Ann", "Cy", 0), ("Cy", "Dee", -1)])


def season_of(played, fixtures, names=NAMES):
    to_come = pd.DataFrame(fixtures, columns=SIDES)
    return Season("2025/26", list(names), played, to_come, 0)


SEASON = season_of(PLAYED, FIXTURES)


def final_ranks(outcomes, points):
    """Chances of the ranks after known outcomes, with all orders of equal players."""
    points = [Fraction(str(value)) for value in points]
    total = dict.fromkeys(NAMES, Fraction(0))
    rows = [*PLAYED.itertuples(index=False)]
    rows += [(*pair, y) for pair, y in zip(FIXTURES, outcomes, strict=True)]
    for first, second, y in rows:
        total[first] += points[1 - y]
        total[second] += points[1 + y]
    orders = [
        order
        for order in permutations(NAMES)
        if all(total[a] >= total[b] for a, b in pairwise(order))
    ]
    return {
        (name, rank): np.mean([order[rank] == name for order in orders])
        for name in NAMES
        for rank in range(4)
    }


def brute_force(probability, points=FOOTBALL):
    """Chances of the ranks over all 27 outcomes of the fixtures, as a matrix."""
    total = np.zeros((4, 4))
    for outcomes in product((-1, 0, 1), repeat=3):
        chances = final_ranks(outcomes, points)
        for (name, rank), chance in chances.items():
            total[NAMES.index(name), rank] += probability[outcomes] * chance
    return total


@pytest.mark.parametrize("points", [FOOTBALL, Points(2, 1, 0), Points(1, 0.1, 0)])
def test_chances_of_ranks_are_those_over_all_outcomes(points):
    # each draw is one of 64 equally likely ones: a win counts twice
    values = [1, 1, 0, -1]
    draws = np.array([*product(values, repeat=3)])
    final = final_points(SEASON, points, lambda _: draws, len(draws))
    weight = {1: 0.5, 0: 0.25, -1: 0.25}
    probability = {
        outcomes: np.prod([weight[y] for y in outcomes])
        for outcomes in product((-1, 0, 1), repeat=3)
    }
    np.testing.assert_allclose(
        rank_chances(final), brute_force(probability, points), atol=1e-12
    )


def test_simulated_chances_follow_from_the_joint_posterior():
    """The 27 probabilities are computed from draws of the joint scores."""
    rng = np.random.default_rng(3)
    sides = np.array([rng.choice(4, 2, replace=False) for _ in range(24)])
    y = rng.choice([-1, 0, 1], 24)
    frame = pd.DataFrame(np.array(NAMES)[sides], columns=SIDES)
    frame = frame.assign(time=np.arange(24.0), outcome=y)
    matches, y = Matches.from_frame(frame, outcome="outcome", outcomes="labels")
    margin = 0.4
    models = [
        DynamicComparisons(Constant(v), OrdinalProbit(margin), posterior="joint")
        for v in (0.5, 2.0)
    ]
    averaged = AveragedComparisons([m.fit(matches, y) for m in models], [0.7, 0.3])
    to_come = pd.DataFrame(FIXTURES, columns=SIDES).assign(time=30.0)
    season = Season("", NAMES, PLAYED, to_come, 0)
    found = forecast_season(
        season, FOOTBALL, lambda n: averaged.simulate(to_come, n, rng)
    )

    probability = dict.fromkeys(product((-1, 0, 1), repeat=3), 0.0)
    index = np.array([[NAMES.index(name) for name in pair] for pair in FIXTURES])
    for model, weight in zip(averaged.models_, averaged.weights_, strict=True):
        mean, covariance = model.joint_scores(NAMES, 30.0)
        scores = rng.multivariate_normal(mean, covariance, 40_000)
        gap = scores[:, index[:, 0]] - scores[:, index[:, 1]]
        win, loss = norm.cdf(gap - margin), norm.cdf(-gap - margin)
        of_outcome = {1: win, 0: 1 - win - loss, -1: loss}
        for outcomes in probability:
            parts = [of_outcome[value][:, k] for k, value in enumerate(outcomes)]
            probability[outcomes] += weight * np.prod(parts, axis=0).mean()
    assert sum(probability.values()) == pytest.approx(1)
    expected = pd.DataFrame(brute_force(probability), NAMES)
    # 10,000 seasons: five standard errors are at most 0.025
    np.testing.assert_allclose(
        found.chances, expected.loc[found.table["name"]], atol=0.025
    )


def random_final(seed=0, n_seasons=500, n=6):
    return np.random.default_rng(seed).integers(0, 8, (n_seasons, n)) * 1.0


def test_chances_add_up_to_1_over_ranks_and_over_players():
    chances = rank_chances(random_final())
    np.testing.assert_allclose(chances.sum(axis=0), 1)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert chances.min() >= 0


def test_other_names_and_orders_permute_the_forecast():
    draws = np.random.default_rng(1).choice([-1, 0, 1], (200, 3))
    found = forecast_season(SEASON, FOOTBALL, lambda n: draws[:n])
    new = dict(zip(NAMES, ["Zoe", "Xi", "Yu", "Wu"], strict=True))
    renamed = season_of(
        PLAYED.replace(new),
        [(new[a], new[b]) for a, b in FIXTURES],
        [new[name] for name in NAMES[::-1]],
    )
    other = forecast_season(renamed, FOOTBALL, lambda n: draws[:n])
    expected = found.table.replace({"name": new}).set_index("name")
    table = other.table.set_index("name")
    pd.testing.assert_frame_equal(table, expected.loc[table.index])
    order = pd.Index(found.table["name"].map(new)).get_indexer(table.index)
    np.testing.assert_allclose(other.chances, found.chances[order], atol=1e-12)


def test_without_a_match_to_come_the_ranks_are_those_of_the_table():
    points = present_points(SEASON, FOOTBALL)
    assert points.tolist() == [1, 3, 1, 3]
    half = np.full((2, 2), 0.5)
    expected = np.zeros((4, 4))
    expected[np.ix_([1, 3], [0, 1])] = half
    expected[np.ix_([0, 2], [2, 3])] = half
    np.testing.assert_array_equal(rank_chances(points[None]), expected)


def test_before_the_first_match_all_points_are_still_to_come():
    season = season_of(PLAYED[:0], FIXTURES, NAMES[:3])
    final = final_points(season, FOOTBALL, lambda n: np.ones((n, 3)), 2)
    assert final.tolist() == [[3, 3, 3]] * 2


def test_draws_come_in_blocks_of_bounded_size(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 12)
    asked = []

    def draw(n):
        asked.append(n)
        return np.zeros((n, 3))

    assert final_points(SEASON, FOOTBALL, draw, 10).shape == (10, 4)
    assert asked == [4, 4, 2]


# ---- The current season


def double_round(start, days, names=NAMES):
    pairs = [*permutations(names, 2)]
    time = pd.Timestamp(start) + pd.to_timedelta(days * np.arange(len(pairs)), "D")
    return pd.DataFrame(pairs, columns=SIDES).assign(time=time, outcome=1)


def test_a_season_starts_after_the_last_long_break():
    frame = pd.concat([double_round("2024-09-01", 7), double_round("2025-09-01", 7)])
    found = current_season(frame[:20], frame[20:])
    assert (len(found.played), len(found.to_come)) == (8, 4)
    assert "60 days" in found.label
    found = current_season(frame[:12], frame[12:])
    assert (len(found.played), len(found.to_come)) == (0, 12)
    later = pd.concat([frame[20:], double_round("2026-09-01", 7)])
    assert len(current_season(frame[:20], later).to_come) == 4
    assert current_season(frame[:23], frame[23:]) is None, "a single match to come"
    assert current_season(frame, frame[:0]) is None


def test_a_column_names_the_season_and_numbers_have_one():
    frame = pd.concat([double_round("2025-01-01", 1), double_round("2025-01-13", 1)])
    labels = np.repeat(["A", "B"], 12)
    labels[-1] = ""  # a match to come of the current season
    named = frame.assign(season=labels)
    found = current_season(named[:20], named[20:])
    assert (found.label, len(found.played), len(found.to_come)) == ("B", 8, 4)
    frame["time"] = np.arange(24.0)
    found = current_season(frame[:20], frame[20:])
    assert (len(found.played), len(found.to_come)) == (20, 4)


def test_of_two_divisions_the_one_with_more_matches_to_come_is_taken():
    other = double_round("2025-01-01", 1, ["Eve", "Fay", "Gus"])
    frame = pd.concat([double_round("2025-01-01", 1), other]).sort_values("time")
    found = current_season(frame[:12], frame[12:])
    assert sorted(found.names) == NAMES
    assert found.n_apart == 3
    assert set(found.played["first"]) <= set(NAMES)


def test_ranks_are_not_forecast_for_groups_that_never_met_or_for_few_matches():
    season = season_of(PLAYED, [*FIXTURES, ("Dee", "Bob")])
    group_of = dict.fromkeys(NAMES, 1)
    assert obstacle(season, group_of | {"Eve": 2}) == ""
    assert obstacle(season, {"Ann": 1, "Bob": 1, "Cy": 1}) == "", "Dee is unseen"
    text = obstacle(season, group_of | {"Dee": 2})
    assert "never met" in text
    assert "Ann and Dee" in text
    new = {"Dee": "D*"}
    uneven = season_of(PLAYED.replace(new), FIXTURES, ["Ann", "Bob", "Cy", "D*"])
    text = obstacle(uneven, {})
    assert r"Ann has 4 matches in the season, and D\* has 1" in text
    assert "-p season" in text
    many = season._replace(names=[f"p{k}" for k in range(41)])
    assert "41" in obstacle(many, {})


def test_points_are_read_as_three_numbers_or_chosen_by_ties():
    assert read_points("", True) == (3, 1, 0)
    assert read_points("", False) == (1, 0, 0)
    for text in ("1 0.5 0", "1, 0.5, 0", " 1-0.5-0 "):
        assert read_points(text, True) == (1, 0.5, 0)
    for text in ("3 1", "0 1 3", "1 1 1", "3 0 1", "a b c", "nan 0 0"):
        with pytest.raises(ValueError, match=f"points='{text}'.*'3 1 0'"):
            read_points(text, True)


# ---- What the report shows


def test_the_table_and_the_sentence_show_percentages():
    draws = np.ones((10_000, 3))
    draws[:4000, 0] = -1
    found = forecast_season(SEASON, FOOTBALL, lambda n: draws[:n])
    table = season_table(found).set_index("name")
    assert list(table.columns[3:5]) == ["1st (%)", "last (%)"]
    assert table.loc["Bob", "points"] == 3
    assert table.loc["Bob", "left"] == 2
    assert table["1st (%)"].sum() == 100
    # Bob wins at home; with the first match, too, he has 9 points
    assert table.loc["Bob", "1st (%)"] == 100
    text = title_sentence(found)
    assert text == "In 10,000 simulated seasons, Bob finishes first in over 99 %."
    named = found._replace(table=found.table.replace({"name": {"Bob": "<b>_Bob"}}))
    assert r"\<b\>\_Bob" in title_sentence(named)
    assert unseen_sentence(SEASON, {"Ann": 1, "Bob": 1, "Cy": 1}).startswith("Dee has")
    assert unseen_sentence(SEASON, dict.fromkeys(NAMES, 1)) == ""


@pytest.mark.parametrize(("n", "n_numbers"), [(3, 7), (25, 25)])
def test_the_heat_map_has_numbers_that_do_not_overlap(n, n_numbers):
    chances = np.eye(n)
    chances[:2, :2] = 0.5
    chances[1:3, 1:3] = [[0.3, 0.2], [0.2, 0.8]]
    chances[0] = [0.5, 0.5 - 0.004, 0.004, *[0.0] * (n - 3)]
    names = [f"p{k}" for k in range(n)]
    _, axis = plt.subplots()
    draw_rank_chances(axis, SeasonForecast(pd.DataFrame({"name": names}), chances))
    texts = [text.get_text() for text in axis.texts]
    assert len(texts) == n_numbers
    assert texts[0] == "50"
    assert [text.get_text() for text in axis.get_yticklabels()] == names
    plt.close()
