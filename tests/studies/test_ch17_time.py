"""Matches over time in chapter 17: no forecast uses results of its day. Features and
measures are compared with slow counts."""

import math

import numpy as np
import pandas as pd
import pytest

from preflearn import datasets
from preflearn.matches import ADVANTAGE, Matches
from preflearn_book.studies import ch17_seasons, ch17_time
from preflearn_book.studies.ch17_learners import LEARNERS
from preflearn_book.studies.ch17_seasons import (
    RECENT,
    Games,
    make_problem,
    problem,
    rolling,
    split_rows,
)

BY_NAME = {learner.name: learner for learner in LEARNERS["time"]}
START = 240


def season(*, ties, home=True, seed=0, scrambled_from=None):
    """Return 400 matches of 8 teams, with 4 matches every second day. Outcomes from a
    given match on may be replaced."""
    rng = np.random.default_rng(seed)
    teams = np.array([rng.choice(8, 2, replace=False) for _ in range(400)])
    d = 0.5 * (teams[:, 0] - teams[:, 1]) + 0.4 + rng.logistic(size=400)
    y = np.where(np.abs(d) < 0.6 * ties, 0, np.sign(d)).astype(np.int8)
    if scrambled_from is not None:
        y[scrambled_from:] = np.random.default_rng(1).permutation(-y[scrambled_from:])
    frame = pd.DataFrame(
        {
            "first": teams[:, 0],
            "second": teams[:, 1],
            "time": 2.0 * (np.arange(400) // 4),
        }
    )
    frame = frame.assign(outcome=y, home=rng.random(400) < 0.8)
    matches, y = Matches.from_frame(frame, advantage="home" if home else None)
    return Games(matches, y, rolling(matches, y), ties, START)


def forecast(name, games):
    learner = BY_NAME[name]
    options = learner.configurations[len(learner.configurations) // 2]
    return learner.fit(games.block(0, games.start), **options)(games)


def swapped(games):
    """Return the same matches with the first and the second player exchanged."""
    matches = Matches(-games.matches.design, games.matches.time, games.matches.features)
    return games._replace(matches=matches, y=-games.y)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("ties", [True, False])
def test_forecasts_are_probabilities_that_depend_on_earlier_days_only(name, ties):
    """Outcomes are replaced from match 322 on, in the middle of a day. The forecasts
    for this day must not change."""
    games = season(ties=ties)
    other = season(ties=ties, scrambled_from=322)
    assert (games.y[322:] != other.y[322:]).sum() > 10
    before = forecast(name, games)
    after = forecast(name, other)
    assert before.shape == (400 - START, 2 + ties)
    assert (before > 0).all()
    np.testing.assert_allclose(before.sum(axis=1), 1.0, atol=1e-9)
    np.testing.assert_array_equal(before[: 324 - START], after[: 324 - START])
    assert name == "random" or (before[-40:] != after[-40:]).any()


def test_a_table_is_refitted_after_some_days_to_matches_of_earlier_days(monkeypatch):
    monkeypatch.setattr(ch17_time, "REFIT", 30.0)
    games = season(ties=True)
    seen = []

    def learn(known):
        seen.append((len(known.y), known.matches.time[-1]))
        return lambda asked: np.full((len(asked.y), 3), len(known.y) * 1.0)

    found = ch17_time.fit_table(learn, games.block(0, START))(games)
    # Day 120 is the first to be forecast. Matches are on even days, four per day.
    assert seen == [(240, 118.0), (300, 148.0), (360, 178.0)]
    np.testing.assert_array_equal(
        found[:, 0], np.repeat([240.0, 300.0, 360.0], [60, 60, 40])
    )


def test_rolling_features_are_those_of_a_slow_count():
    games = season(ties=True)
    players = games.matches.players()
    y = games.y
    time = games.matches.time

    def history(who, until):
        """Yield the outcome, the opponent, and the time of each earlier match."""
        for (first, second), result, at in zip(players, y, time, strict=True):
            if at < until and who in (first, second):
                yield (
                    (int(result), second, at)
                    if who == first
                    else (-int(result), first, at)
                )

    def usual(who, until):
        results = [result for result, *_ in history(who, until)]
        return sum(results) / (len(results) + RECENT)

    def state(who, until):
        past = list(history(who, until))
        last = past[-RECENT:]
        against = sum(usual(other, at) for _, other, at in last) / RECENT
        return (
            sum(r for r, *_ in last) / RECENT,
            usual(who, until),
            against,
            math.log1p(len(past)),
        )

    for k in (0, 7, 90, 399):
        first, second = (np.array(state(who, time[k])) for who in players[k])
        np.testing.assert_allclose(games.features[k, :4], first - second, atol=1e-12)
    column = games.matches.design[
        :, [games.matches.features.index(ADVANTAGE)]
    ].toarray()
    np.testing.assert_array_equal(games.features[:, [4]], column)


@pytest.mark.parametrize(
    "name", ["dynamic model", "Elo", "Glicko", "TrueSkill", "Bradley-Terry"]
)
def test_swapped_players_have_opposite_features_and_swapped_forecasts(name):
    games = season(ties=True, home=False)
    other = swapped(games)
    np.testing.assert_allclose(
        rolling(other.matches, other.y), -games.features, atol=1e-12
    )
    np.testing.assert_allclose(
        forecast(name, other)[:, ::-1], forecast(name, games), atol=1e-8
    )


def test_validation_is_the_last_third_of_the_days():
    found = make_problem("a", "b", season(ties=True))
    (fold,) = found.folds
    assert len(found.whole.train.y) == START
    np.testing.assert_array_equal(found.whole.truth, season(ties=True).y[START:])
    assert (fold.train.matches.time[-1], fold.test.matches.time[fold.test.start]) == (
        78.0,
        80.0,
    )
    np.testing.assert_array_equal(fold.truth, found.whole.train.y[160:])


@pytest.fixture
def small_nba(monkeypatch):
    """Use ten seasons from the autumn of 1992 on, of ten days each, with one match of
    two teams per day."""
    days = [
        pd.Timestamp(year, 11, 1 + day)
        for year in range(1992, 2002)
        for day in range(10)
    ]
    frame = pd.DataFrame(
        {"first": "Ajax", "second": "Bray", "time": days, "advantage": True}
    )
    frame = frame.assign(outcome=np.resize(np.array([1, -1, 1], np.int8), 100))
    monkeypatch.setattr(ch17_seasons, "_frame", lambda sport: frame)


@pytest.mark.parametrize(
    ("name", "n"), [("", 20), (" after 4", 40), (" after 1", 10), (" after 0.25", 3)]
)
def test_windows_of_seasons(small_nba, name, n):
    """A quarter of a season of ten days starts after 7.5 days. All matches of the
    day of its first match count."""
    found = problem(f"NBA{' by history' * bool(name)}/1999{name}")
    assert (len(found.whole.train.y), len(found.whole.truth)) == (n, 10)
    first = pd.Timestamp(1970, 1, 1) + pd.Timedelta(
        days=found.whole.test.matches.time[n]
    )
    assert first == pd.Timestamp(1998, 11, 1)


def test_learners_from_features_do_not_see_the_number_of_earlier_matches():
    games = season(ties=True)
    other = games._replace(features=games.features.copy())
    other.features[:, 3] += np.arange(400)
    for name in ("logistic regression", "boosted trees"):
        np.testing.assert_array_equal(forecast(name, games), forecast(name, other))
    counts = [forecast("logistic, with counts", one) for one in (games, other)]
    assert not np.allclose(*counts)


def test_the_authors_split_of_starcraft():
    """The cuts are at 14,291 and 20,007 of 28,582 rows. In one row, a player meets
    themselves."""
    if not datasets.available("starcraft"):
        pytest.skip("no data")
    parts = split_rows("HotS")
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(28_581))
    sizes = np.array([14_291, 20_007 - 14_291, 28_582 - 20_007])
    assert sorted(sizes - [len(part) for part in parts]) == [0, 0, 1]


def test_the_constant_forecasts_smoothed_frequencies_by_home_advantage():
    games = season(ties=True)
    found = forecast("constant", games)
    home = games.features[:, 4] > 0
    for at_home in (False, True):
        seen = games.y[:START][home[:START] == at_home]
        expected = [
            ((seen == outcome).sum() + 1) / (len(seen) + 3) for outcome in (-1, 0, 1)
        ]
        first = np.flatnonzero(home[START:] == at_home)[0]
        assert first < 60  # this match is before the first refit of the learner
        np.testing.assert_allclose(found[first], expected)
