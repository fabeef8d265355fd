"""What holds of every rating system."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ratings.seasons import played, swapped
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from preflearn.dynamics import Logit, OrdinalLogit, OrdinalProbit, Probit
from preflearn.matches import Matches
from preflearn.ratings import Elo, Glicko, TrueSkill

POINTS = {
    "fide": Elo(),
    "elo": Elo(k=24, advantage=35),
    "glicko": Glicko(c=20),
    "periods": Glicko(c=20, period=3, advantage=35),
}
SCORES = {
    "logit": Elo(likelihood=Logit(), rate=0.7, advantage=0.2),
    "probit": Elo(likelihood=Probit(), rate=0.7, advantage=0.2),
    "ordinal logit": Elo(likelihood=OrdinalLogit(0.6), rate=0.7, advantage=0.2),
    "ordinal probit": Elo(likelihood=OrdinalProbit(0.4), rate=0.7, advantage=0.2),
    "match": TrueSkill(dynamics=0.05),
    "match, ties": TrueSkill(variance=0.5, dynamics=0.02, margin=0.4, advantage=0.3),
    "time": TrueSkill(dynamics=0.03, step="time"),
    "time, ties": TrueSkill(variance=2.0, dynamics=0.1, step="time", margin=0.3, advantage=-0.2),
}
SYSTEMS = POINTS | SCORES
GRIDS = {"initial": [1000.0, 1500.0]}, {"rate": [0.01, 0.1]}, {"variance": [0.5, 1.0]}
every_system = pytest.mark.parametrize("system", SYSTEMS.values(), ids=SYSTEMS)


def in_points(system):
    return hasattr(system, "initial") and getattr(system, "likelihood", None) is None


def season(system, seed, **sizes):
    """With ties, if the system knows them."""
    likelihood = system._likelihood()
    return played(seed, ties=0.3 if likelihood is None or likelihood.has_ties else 0, **sizes)


def by_name(system, what="ratings_"):
    return dict(zip(system.players_, getattr(system, what), strict=True))


@every_system
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
def test_sides_names_order_and_the_origin_of_time_do_not_matter(system, seed):
    matches, y = season(system, seed, N=30)
    reference = clone(system).fit(matches, y)
    turned = clone(system).fit(swapped(matches), -y)
    np.testing.assert_allclose(turned.ratings_, reference.ratings_, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(turned.before_, reference.before_[:, ::-1], rtol=1e-12, atol=1e-12)
    rtol = 1e-5 if in_points(system) else 1e-7  # nu is found by a search
    found, expected = turned.predict_proba(swapped(matches)), reference.predict_proba(matches)[:, ::-1]
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-12)
    order = np.append(np.random.default_rng(seed).permutation(6), 6)
    names = [matches.features[k] for k in order]
    again = clone(system).fit(Matches(matches.design[:, order], matches.time + 999, names), y)
    assert by_name(again) == pytest.approx(by_name(reference), rel=1e-12, abs=1e-10)


@every_system
def test_before_knows_nothing_of_its_match(system):
    matches, y = season(system, 6)
    reference, period = clone(system).fit(matches, y).before_, getattr(system, "period", None)
    group = np.arange(len(y)) if period is None else matches.time // period
    for row in (10, 37):
        other = np.where(np.arange(len(y)) < row, y, np.where(y == 0, 1, -y))
        found = clone(system).fit(matches, other).before_
        known = np.searchsorted(group, group[row]) + (period is None)
        np.testing.assert_array_equal(found[:known], reference[:known])
        assert (found != reference).any()


@every_system
def test_matches_can_be_added(system):
    matches, y = season(system, 9)
    cut = np.searchsorted(matches.time, 6)  # between two periods
    whole, parts = clone(system).fit(matches, y), clone(system).partial_fit(matches[:cut], y[:cut])
    parts.partial_fit(matches[cut:], y[cut:])
    for what in ("ratings_", "deviations_") if hasattr(whole, "deviations_") else ("ratings_",):
        assert by_name(parts, what) == pytest.approx(by_name(whole, what), rel=1e-12)
    np.testing.assert_allclose(parts.before_, whole.before_[cut:], rtol=1e-12, atol=1e-12)
    assert hasattr(whole, "nu_") == in_points(system)
    if in_points(system):
        assert parts.nu_ == pytest.approx(whole.nu_, rel=1e-5)
    again = clone(system).fit(matches[cut:], y[cut:]).fit(matches, y)  # it forgets
    np.testing.assert_array_equal(again.predict_proba(matches), whole.predict_proba(matches))
    with pytest.raises(ValueError, match="before the last one that was rated"):
        parts.partial_fit(matches[:cut], y[:cut])


@every_system
def test_systems_follow_the_contract_of_scikit_learn(system):
    matches, y = season(system, 16)
    assert clone(system).get_params() == system.get_params()
    with pytest.raises(NotFittedError):
        clone(system).predict_proba(matches)
    grid = GRIDS[0] if in_points(system) else GRIDS[1 if isinstance(system, Elo) else 2]
    folds = TimeSeriesSplit(3)
    search = GridSearchCV(clone(system), grid, cv=folds, scoring="neg_log_loss").fit(matches, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    if in_points(system):
        assert scores[0] == pytest.approx(scores[1], rel=1e-9)  # only differences count
    fitted = clone(system).fit(matches, y)
    assert fitted.score(matches, y) == np.mean(fitted.predict(matches) == y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(matches), fitted.predict_proba(matches))


@every_system
def test_bad_matches_are_named_and_leave_the_old_fit(system):
    matches, y = season(system, 17)
    fitted = clone(system).fit(matches, y)
    before = fitted.predict_proba(matches)

    def refused(message, wrong, outcomes, **changes):
        with pytest.raises(ValueError, match=message):
            fitted.set_params(**changes).fit(wrong, outcomes)
        fitted.set_params(**system.get_params())
        np.testing.assert_array_equal(fitted.predict_proba(matches), before)

    refused("no matches", matches[:0], [])
    refused("matches is a ndarray; expected Matches", np.ones((3, 2)), [1, 1, 1])
    refused(r"y\[0\] is 2", matches, np.full(len(y), 2))
    refused("60", matches, y[1:])
    refused("match 0 has 2 players", Matches([[1, 1, -1, -1]], [0], list("abcd")), [1], advantage=0)
    refused("have no feature 'advantage'", Matches([[1, -1]], [0], ["a", "b"]), [1], advantage=10)
