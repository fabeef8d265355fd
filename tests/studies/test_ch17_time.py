import math
from functools import partial

import numpy as np
import pandas as pd
import pytest

from preflearn import datasets
from preflearn.matches import ADVANTAGE, Matches
from studies import ch17_seasons, ch17_time
from studies.ch17_protocol import BUDGET, CONSTANT, entries, entry
from studies.ch17_seasons import RECENT, Games, judge, posed, rolling, split_rows
from studies.ch17_time import LEARNERS, problem, tasks

NAMES = [one.name for one in LEARNERS]
START = 240


def season(*, ties, home=True, seed=0, scrambled_from=None):
    """400 matches of 8 teams, 4 a day, every second day; outcomes from a match on may be drawn anew."""
    rng = np.random.default_rng(seed)
    teams = np.array([rng.choice(8, 2, replace=False) for _ in range(400)])
    d = 0.5 * (teams[:, 0] - teams[:, 1]) + 0.4 + rng.logistic(size=400)
    y = np.where(np.abs(d) < 0.6 * ties, 0, np.sign(d)).astype(np.int8)
    if scrambled_from is not None:
        y[scrambled_from:] = np.random.default_rng(1).permutation(-y[scrambled_from:])
    frame = pd.DataFrame({"first": teams[:, 0], "second": teams[:, 1], "time": 2.0 * (np.arange(400) // 4)})
    frame = frame.assign(outcome=y, home=rng.random(400) < 0.8)
    matches, y = Matches.from_frame(frame, advantage="home" if home else None)
    return Games(matches, y, rolling(matches, y), ties, START)


def forecast(learner, games):
    model = learner.fit(
        games.block(0, games.start), **learner.configurations[len(learner.configurations) // 2]
    )
    return learner.forecast(model, games)


# ---- No forecast knows its day


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
@pytest.mark.parametrize("ties", [True, False])
def test_what_is_still_to_come_changes_no_forecast(learner, ties):
    """From match 322 on, in the middle of a day: forecasts up to the end of this day stay, bit by bit."""
    known, other = season(ties=ties), season(ties=ties, scrambled_from=322)
    assert (known.y[322:] != other.y[322:]).sum() > 10
    before, after = forecast(learner, known), forecast(learner, other)
    assert before.shape == (400 - START, 2 + ties)
    np.testing.assert_array_equal(before[: 324 - START], after[: 324 - START])
    assert learner.name == "random" or (before[-40:] != after[-40:]).any()


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
def test_forecasts_are_probabilities_of_which_none_is_0(learner):
    for ties in (True, False):
        found = forecast(learner, season(ties=ties, home=not ties))
        assert (found > 0).all()
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-9)


def test_a_table_is_fitted_anew_after_so_many_days_to_matches_of_earlier_days(monkeypatch):
    monkeypatch.setattr(ch17_time, "REFIT", 30.0)
    games, seen = season(ties=True), []

    def learn(known):
        seen.append((len(known.y), known.matches.time[-1]))
        return lambda asked: np.full((len(asked.y), 3), len(known.y) * 1.0)

    found = ch17_time._block_by_block(ch17_time._table(learn, games.block(0, START)), games)
    # Day 120 is the first to be forecast; days are even, and have four matches each.
    assert seen == [(240, 118.0), (300, 148.0), (360, 178.0)]
    np.testing.assert_array_equal(found[:, 0], np.repeat([240.0, 300.0, 360.0], [60, 60, 40]))


# ---- Features and measures, by other roads


def test_rolling_features_are_those_of_a_slow_count():
    games = season(ties=True)
    players, y, time = games.matches.players(), games.y, games.matches.time

    def history(who, until):
        """Outcome and opponent of each earlier match, and when it was."""
        for (first, second), result, at in zip(players, y, time, strict=True):
            if at < until and who in (first, second):
                yield (int(result), second, at) if who == first else (-int(result), first, at)

    def usual(who, until):
        results = [result for result, *_ in history(who, until)]
        return sum(results) / (len(results) + RECENT)

    def state(who, until):
        past = list(history(who, until))
        last = past[-RECENT:]
        against = sum(usual(other, at) for _, other, at in last) / RECENT
        return sum(r for r, *_ in last) / RECENT, usual(who, until), against, math.log1p(len(past))

    for k in (0, 7, 90, 399):
        first, second = (np.array(state(who, time[k])) for who in players[k])
        np.testing.assert_allclose(games.features[k, :4], first - second, atol=1e-12)
    column = games.matches.design[:, [games.matches.features.index(ADVANTAGE)]].toarray()
    np.testing.assert_array_equal(games.features[:, [4]], column)


def test_swapped_players_have_the_opposite_features():
    games = season(ties=True, home=False)
    swapped = Matches(-games.matches.design, games.matches.time, games.matches.features)
    np.testing.assert_allclose(rolling(swapped, -games.y), -games.features, atol=1e-12)


@pytest.mark.parametrize("name", ["dynamic model", "Elo", "Glicko", "TrueSkill", "Bradley-Terry"])
def test_swapped_players_have_swapped_forecasts(name):
    learner, games = LEARNERS[NAMES.index(name)], season(ties=True, home=False)
    swapped = games._replace(
        matches=Matches(-games.matches.design, games.matches.time, games.matches.features), y=-games.y
    )
    np.testing.assert_allclose(forecast(learner, swapped)[:, ::-1], forecast(learner, games), atol=1e-8)


def test_measures_by_hand():
    """The second match has two most probable results, of which one happened; the third is a surprise."""
    found = judge(
        np.array([1, 0, -1], np.int8), np.array([[0.2, 0.3, 0.5], [0.1, 0.45, 0.45], [0.1, 0.1, 0.8]])
    )
    assert list(found) == ["loss", "error", "overconfidence"]
    assert found["loss"] == pytest.approx(-math.log(0.5 * 0.45 * 0.1) / 3)
    assert found["error"] == pytest.approx(0.5)
    assert found["overconfidence"] == pytest.approx((0.5 + 0.45 + 0.8) / 3 - 0.5)


def test_the_constant_counts_each_outcome_once_more():
    games = season(ties=True)
    found = forecast(LEARNERS[NAMES.index(CONSTANT)], games)
    home = games.features[:, 4] > 0
    for at in (False, True):
        seen = games.y[:START][home[:START] == at]
        expected = [((seen == k).sum() + 1) / (len(seen) + 3) for k in (-1, 0, 1)]
        first = np.flatnonzero(home[START:] == at)[0]
        assert first < 60  # of the days before it is fitted anew
        np.testing.assert_allclose(found[first], expected)


# ---- Problems


def test_validation_is_the_last_third_of_the_days():
    whole, fold = (found := posed("a", "b", season(ties=True))).whole, found.folds[0]
    assert len(found.folds) == 1
    assert len(whole.train.y) == START
    np.testing.assert_array_equal(whole.truth, season(ties=True).y[START:])
    assert (fold.train.matches.time[-1], fold.test.matches.time[fold.test.start]) == (78.0, 80.0)
    np.testing.assert_array_equal(fold.truth, whole.train.y[160:])
    facts = {"n_train": 240, "n_test": 160, "players": 8, "per_player": 60.0}
    assert found.facts.items() >= facts.items()


def test_names_of_quick_are_some_of_full():
    assert set(tasks("quick")) < set(tasks("full"))
    assert len(set(tasks("full"))) == len(tasks("full"))


def test_each_learner_has_its_budget_and_its_name():
    assert {len(one.configurations) for one in LEARNERS} == {1, BUDGET}
    assert len(set(NAMES)) == len(NAMES)
    assert {CONSTANT, "random"} < set(NAMES)
    for one in LEARNERS:
        assert len({tuple(each.items()) for each in one.configurations}) == len(one.configurations)


@pytest.fixture
def small_nba(monkeypatch):
    """Ten seasons from the autumn of 1992 on, of ten days each, one match of two teams a day."""
    days = [pd.Timestamp(year, 11, 1 + day) for year in range(1992, 2002) for day in range(10)]
    frame = pd.DataFrame({"first": "Ajax", "second": "Bray", "time": days, "advantage": True})
    frame = frame.assign(outcome=np.resize(np.array([1, -1, 1], np.int8), 100))
    monkeypatch.setattr(ch17_seasons, "_frame", lambda sport: frame)


@pytest.mark.parametrize(("name", "n"), [("", 20), (" after 4", 40), (" after 1", 10), (" after 0.25", 3)])
def test_windows_of_seasons(small_nba, name, n):
    """Of a quarter of ten days, from 7.5 days on, the day of its first match counts whole."""
    found = problem(f"NBA{' by history' * bool(name)}/1999{name}")
    assert (len(found.whole.train.y), len(found.whole.truth)) == (n, 10)
    first = pd.Timestamp(1970, 1, 1) + pd.Timedelta(days=found.whole.test.matches.time[n])
    assert first == pd.Timestamp(1998, 11, 1)


def needs(name):
    try:
        return {"NBA": datasets.load_nba, "HotS": partial(datasets.load_starcraft, "HotS")}[name]()
    except datasets.DatasetUnavailable as error:
        pytest.skip(str(error))


def test_the_new_user_s_league_is_in_no_arena():
    needs("NBA")
    found = ch17_time.new_user()
    assert [one.unit for one in found][:2] == ["first half of 1974", "second half of 1974"]
    games = np.cumsum([734, 738, 738, 785, 788])  # of five seasons
    assert [one.facts["n_train"] for one in found[::2]] == games[1:4].tolist()
    assert [one.facts["n_train"] + one.facts["n_test"] for one in found[1::2]] == games[2:].tolist()
    last = found[-1].whole.test.matches.time[-1]
    first = min(problem(name).whole.train.matches.time[0] for name in tasks("full") if "NBA" in name)
    assert last < first


def test_the_authors_split_of_starcraft():
    """Cuts at 14,291 and 20,007 of 28,582 rows, in one of which a player meets himself."""
    frame, parts = needs("HotS").matches, split_rows("HotS")
    assert sum(map(len, parts)) == len(frame) == 28_581
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(28_581))
    sizes = np.array([14_291, 20_007 - 14_291, 28_582 - 20_007])
    assert sorted(sizes - [len(part) for part in parts]) == [0, 0, 1]


def test_rows_are_the_same_a_second_time_in_another_order():
    found = posed("a", "b", season(ties=True))
    timed = ["fit_s", "forecast_s", "fit_mb", "forecast_mb"]
    rows = entries(found, LEARNERS)
    again = [entry(found, one, LEARNERS[NAMES.index(CONSTANT)]) for one in LEARNERS[::-1]][::-1]
    pd.testing.assert_frame_equal(rows.drop(columns=timed), pd.DataFrame(again).drop(columns=timed))
    assert rows["fitted"].tolist() == [1] * len(LEARNERS)
    losses = dict(zip(rows["learner"], rows["loss"], strict=True))
    assert losses["random"] == pytest.approx(math.log(3))
    order = [losses[name] for name in ("dynamic model", CONSTANT, "random")]
    assert order == sorted(order)
