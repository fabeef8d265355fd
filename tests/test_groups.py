"""Groups of competitors that never met."""

import numpy as np
import pandas as pd
import pytest

from preflearn.dynamics import (
    AveragedComparisons,
    Constant,
    DynamicComparisons,
    Matern12,
    Probit,
)
from preflearn.matches import Matches
from preflearn_book.groups import (
    connectivity,
    doubtful_judges_bullet,
    omitted_bullet,
    scores_over_time,
    standings_within_groups,
    unranked_sentence,
)

NAMES = ["Ann", "Bob", "Cy", "Dee", "Eve", "Fay", "Gus"]
CYCLE = [(0, 1), (1, 2), (2, 0)]
CONSTANT = Constant(1.0)


def sentences(pairs, n, y=None):
    index = np.array(pairs)
    y = np.ones(len(index)) if y is None else np.array(y)
    return connectivity(index, y, NAMES[:n], "players", "common opponents")


def test_groups_that_never_met_are_not_said_to_be_better():
    text = sentences([*CYCLE, (3, 4), (4, 5), (5, 3)], 6)
    assert "form 2 groups that never met" in text
    assert "lost" not in text
    assert "limit" not in text


def test_a_group_that_never_lost_is_named_with_its_members():
    pairs = [*CYCLE, (3, 4), (4, 5), (5, 6), (6, 3), (0, 3), (1, 4)]
    text = sentences(pairs, 7)
    assert "Ann, Bob, Cy never lost or tied against the rest" in text
    assert "any two can be compared" not in text
    text = sentences([pair[::-1] for pair in pairs], 7)
    assert "Ann, Bob, Cy never won or tied against the rest" in text


def test_single_players_without_a_loss_or_a_win_are_named():
    text = sentences([*CYCLE, (3, 0), (1, 4)], 5)
    assert "Without a loss or tie: Dee" in text
    assert "Without a win or tie: Eve" in text
    assert "never" not in text
    assert "Dee" not in sentences([*CYCLE, (3, 0), (1, 4)], 5, [1, 1, 1, 0, 0])


def fitted_to(pairs, covariance=CONSTANT):
    """A model of matches at the times 0, 1, and so on, all won by the first, and the
    average of this model alone."""
    frame = pd.DataFrame(
        [(NAMES[a], NAMES[b]) for a, b in pairs], columns=["first", "second"]
    )
    frame["time"] = np.arange(len(frame), dtype=float)
    matches = Matches.from_frame(frame, outcome=None)
    model = DynamicComparisons(covariance, Probit(), posterior="joint")
    model.fit(matches, np.ones(len(frame)))
    averaged = AveragedComparisons([model], [1.0])
    return model, averaged


@pytest.mark.filterwarnings("ignore::preflearn.core.NotIdentifiedWarning")
def test_ranks_and_mean_scores_are_those_of_each_group():
    pairs = [*CYCLE, (0, 1), (0, 2), (3, 4), (3, 4), (4, 3)] * 3
    model, averaged = fitted_to(pairs)
    groups = [["Ann", "Bob", "Cy"], ["Dee", "Eve"]]
    table = standings_within_groups(
        averaged, averaged.standings(), groups, len(pairs) - 1.0
    )
    assert table["name"].tolist()[0] == "Ann"
    assert table["rank"].tolist() == [1, 2, 3, 1, 2] or table["rank"].tolist()[:1] == [
        1
    ]
    assert table["group"].tolist() == [1, 1, 1, 2, 2]
    np.testing.assert_allclose(table.groupby("group")["score"].mean(), 0, atol=1e-9)
    # of two players, a score is half the difference
    half = model.difference("Dee", "Eve", len(pairs) - 1.0)[1] / 2
    np.testing.assert_allclose(table.loc[table["group"] == 2, "std"], half)
    assert table["rank_high"].max() == 3
    alone = standings_within_groups(
        averaged, averaged.standings(), [groups[0] + groups[1]], 1.0
    )
    whole = averaged.standings()
    np.testing.assert_allclose(alone["score"], whole["score"], atol=1e-6)


def standings_of(n, unranked):
    """Standings of players who met in a circle, the model, and its last time."""
    pairs = [(a, b) for a in range(n) for b in range(a + 1, n)] * 4
    _, averaged = fitted_to(pairs)
    end = len(pairs) - 1.0
    everyone = averaged.standings()
    names = [NAMES[:n]]
    return (
        standings_within_groups(averaged, everyone, names, end, unranked),
        averaged,
        end,
    )


@pytest.mark.filterwarnings("ignore::preflearn.core.NotIdentifiedWarning")
def test_unranked_names_are_at_the_end_and_do_not_count_for_the_mean():
    table, _, _ = standings_of(4, ["Bob"])
    assert table["name"].tolist() == ["Ann", "Cy", "Dee", "Bob"]
    assert table["rank"].tolist()[:3] == [1, 2, 3]
    assert table["rank"].isna().tolist() == [False, False, False, True]
    assert table["rank_high"].max() == 3
    assert table["score"][:3].sum() == pytest.approx(0)
    assert table["score"][3] > table["score"][1]


@pytest.mark.filterwarnings("ignore::preflearn.core.NotIdentifiedWarning")
def test_scores_over_time_end_with_those_of_the_standings():
    table, averaged, end = standings_of(4, [])
    names = table["name"].tolist()
    mean, std = scores_over_time(averaged, names[:2], names, np.array([0.0, end]))
    np.testing.assert_allclose(mean[-1], table["score"][:2])
    np.testing.assert_allclose(std[-1], table["std"][:2])


@pytest.mark.filterwarnings("ignore::preflearn.core.NotIdentifiedWarning")
def test_scores_over_time_are_relative_to_the_mean_at_each_time():
    pairs = [*CYCLE, (3, 0), (1, 3)] * 4
    models = [fitted_to(pairs, Matern12(variance, 5.0))[0] for variance in (0.5, 2.0)]
    averaged = AveragedComparisons(models, [0.3, 0.7])
    names = NAMES[:4]
    times = np.array([0.0, 7.5, 30.0])
    found = scores_over_time(averaged, names[1:3], names, times)
    x = (np.eye(4) - 1 / 4)[1:3]
    for k, time in enumerate(times):
        mean, covariance = averaged.joint_scores(names, time)
        expected = x @ mean, np.sqrt(np.diag(x @ covariance @ x.T))
        np.testing.assert_allclose([found[0][k], found[1][k]], expected)


def test_unranked_names_and_doubtful_judges_are_named():
    assert unranked_sentence([]) == ""
    assert "names may be misspelled**: Ane, Bbo" in unranked_sentence(["Ane", "Bbo"])
    text = doubtful_judges_bullet({"anna": "Anna"}, {"anna": 1, "Anna": 40})
    assert "anna (1 answer) may be a misspelling of Anna (40 answers)" in text


def test_rows_left_out_are_in_the_summary():
    assert omitted_bullet([]) == ""
    text = omitted_bullet(["2 rows without an answer", "1 row with an invalid value"])
    assert "2 rows without an answer; 1 row with" in text
