"""Names, outcomes, and times as users pass them to rating systems and to dynamic
models."""

import warnings

import numpy as np
import pandas as pd
import pytest
from ratings.seasons import played
from sklearn.base import clone

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    OrdinalLogit,
    OrdinalProbit,
    Wiener,
)
from preflearn.matches import Matches, OutcomeWarning, UnseenWarning
from preflearn.ratings import Elo, Glicko, TrueSkill, earlier_forecasts

SYSTEMS = {
    "Elo": Elo(k=40.0),
    "Elo, likelihood": Elo(likelihood=OrdinalLogit(0.3), rate=0.5),
    "Glicko": Glicko(),
    "TrueSkill": TrueSkill(margin=0.3, step="time"),
    "dynamic": DynamicComparisons(Constant(0.5) + Wiener(0.01), OrdinalProbit(0.3)),
}
every_system = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)
FRAME = pd.DataFrame(
    {
        "home": list("abcab"),
        "away": list("bcabc"),
        "day": range(5),
        "ground": [True, False, True, True, False],
        "y": [1, 0, -1, 1, 1],
    }
)
NAMES = {"first": "home", "second": "away", "time": "day", "advantage": "ground"}


def questions(system):
    """Return the methods that take matches."""
    other = getattr(system, "decision_function", None) or system.moments
    return (
        system.predict_proba,
        system.predict,
        other,
        lambda ask, **how: system.score(ask, [1, 1], **how),
    )


@every_system
def test_frames_and_permuted_features_are_forecast_by_names(system):
    matches, y = Matches.from_frame(FRAME, outcome="y", **NAMES)
    fitted = clone(system).fit(matches, y)
    fixtures = pd.DataFrame(
        {"home": ["c", "b"], "away": ["a", "a"], "day": [7, 8], "ground": [False, True]}
    )
    asked = Matches(
        [[-1, 0, 1, 0], [-1, 1, 0, 1]], [7.0, 8.0], ["a", "b", "c", "advantage"]
    )
    permuted = Matches(
        asked.design[:, [2, 0, 3, 1]], asked.time, ["c", "a", "advantage", "b"]
    )
    for same in (fixtures, permuted):
        for one, other in zip(questions(fitted), questions(fitted), strict=True):
            np.testing.assert_array_equal(one(same), other(asked))
    with pytest.raises(ValueError, match="ground"):
        fitted.predict_proba(fixtures.drop(columns="ground"))


@every_system
def test_later_matches_do_not_change_how_fixtures_are_read(system):
    matches, y = Matches.from_frame(FRAME, outcome="y", **NAMES)
    renamed = FRAME.add_prefix("new_")
    names = {argument: f"new_{column}" for argument, column in NAMES.items()}
    renamed["new_day"] += FRAME["day"].max()
    later, y_later = Matches.from_frame(renamed, outcome="new_y", **names)
    fitted = clone(system).fit(matches, y)
    add = getattr(fitted, "partial_fit", None) or fitted.update
    add(later, y_later)
    fixtures = FRAME.drop(columns="y")
    assert len(fitted.predict_proba(fixtures)) == len(fixtures)


@every_system
def test_unknown_names_are_warned_of_or_rejected(system):
    """Earlier, they were forecast as new players without a warning."""
    matches, y = Matches.from_frame(FRAME, outcome="y", **NAMES)
    fitted = clone(system).fit(matches, y)
    misspelt = Matches([[1, -1, 0], [0, -1, 1]], [7.0, 8.0], ["bb", "a", "c"])
    for call in questions(fitted):
        with pytest.warns(UnseenWarning, match=r"'bb'.*'b'") as found:
            call(misspelt)
        assert [one.filename for one in found] == [__file__]
        with pytest.raises(ValueError, match=r"'bb'.*'b'"):
            call(misspelt, unseen="raise")
        with warnings.catch_warnings(action="error"):
            call(misspelt, unseen="ignore")
            call(matches[:2], unseen="raise")
    with pytest.raises(ValueError, match="unseen"):
        fitted.predict_proba(misspelt, unseen="skip")


@every_system
def test_losses_given_as_0_are_warned_of_and_half_points_are_ties(system):
    """Without the conversion, the forecast of a tie had a probability of 0.65, for
    players who never tied."""
    matches, y = played(1)
    fitted = clone(system).fit(matches, y)
    with pytest.warns(OutcomeWarning, match="1/2"):
        half = clone(system).fit(matches, (y + 1) / 2)
    np.testing.assert_array_equal(
        half.predict_proba(matches), fitted.predict_proba(matches)
    )
    with pytest.warns(OutcomeWarning, match="1/2"):
        assert half.score(matches, (y + 1) / 2) == fitted.score(matches, y)
    calls = [clone(system).fit, fitted.score]
    if not isinstance(system, DynamicComparisons):
        calls.append(lambda *asked: earlier_forecasts(system, *asked, 10))
    for call in calls:
        with pytest.warns(OutcomeWarning, match=r"2 \* y - 1") as found:
            call(matches, np.maximum(y, 0))
        assert [one.filename for one in found] == [__file__]
    signs, _ = Matches.from_frame(
        FRAME.assign(y=[1, 1, -1, 1, 1]), outcome="y", **NAMES
    )
    for ask in (signs, Matches.from_frame(FRAME, outcome=None, **NAMES)):
        with pytest.warns(OutcomeWarning, match=r"2 \* y - 1"):
            clone(system).fit(ask, [1, 1, 0, 1, 1])
    labels = Matches.from_frame(
        FRAME.assign(y=[1, 1, 0, 1, 1]), outcome="y", outcomes="labels", **NAMES
    )
    # the frame states the meaning of the outcomes
    with warnings.catch_warnings(action="error"):
        clone(system).fit(*labels).score(*labels)


@every_system
def test_dates_and_numbers_are_not_mixed(system):
    """A model of numeric times forecast 1/2 for matches with dates."""
    days = pd.DataFrame(
        {"first": ["a"], "second": ["b"], "time": ["2020-02-01"], "outcome": [1]}
    )
    numbers = days.assign(time=[18293.0])
    for known, other, expected in (
        (days, numbers, "dates"),
        (numbers, days, "numbers"),
    ):
        fitted = clone(system).fit(*Matches.from_frame(known))
        add = getattr(fitted, "update", None) or fitted.partial_fit
        for call in (
            fitted.predict_proba,
            lambda frame, add=add: add(*Matches.from_frame(frame)),
        ):
            with pytest.raises(ValueError, match=f"expected {expected}"):
                call(other)
