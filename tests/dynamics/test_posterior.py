"""Scores at any times, moments of matches, and independence of the number of
threads."""

import numpy as np
import pytest
from dynamics.problems import (
    NAMES,
    PRIOR,
    both_methods,
    fit_small,
    fitted,
    matches_of,
    random_design,
    small,
)
from hypothesis import given
from hypothesis import strategies as st

from preflearn.dynamics import (
    Constant,
    Logit,
    Matern12,
    Matern32,
    OrdinalProbit,
    Wiener,
)
from preflearn.dynamics.engine import posterior, threads
from preflearn.matches import Matches


def test_scores_at_times_of_any_kind():
    model = fit_small()
    mean, deviation = model.scores("Ann", [3.0, 1.0])
    for scalar in (3, np.float32(3), np.array(3.0)):
        found = model.scores("Ann", scalar)
        assert [np.shape(part) for part in found] == [(), ()]
        assert found == (mean[0], deviation[0])
    # at far times, only the constant part of the covariance remains
    far = model.scores("Ann", [-1e6, 1e6])
    assert far[0][0] == pytest.approx(far[0][1], abs=1e-9)
    assert np.all(far[1] < 1.0)
    for time in ([], [[1.0]], None, "now", np.nan, [0.0, np.inf]):
        with pytest.raises(ValueError, match=r"time( |\[)"):
            model.scores("Ann", time)
    for name in ("Zoe", ["Ann"], {}, None):
        with pytest.raises(ValueError, match="feature"):
            model.scores(name, 3.0)


def test_forecasts_do_not_depend_on_what_is_asked_together(monkeypatch):
    """The forecasts have many features and covariances. They are made at once, in
    blocks of any size, and one at a time."""
    model = fit_small({"Ann": Matern12(1.0, 3.0), "Bob": Constant(0.5), "*": PRIOR})
    ask, _ = small(seed=3, n=50, begin=-2.0)
    whole = np.array(model.moments(ask))
    for size in (1, 7):
        monkeypatch.setattr(posterior, "_BATCH_ENTRIES", size)
        np.testing.assert_allclose(model.moments(ask), whole, rtol=1e-12)
    np.testing.assert_allclose(
        [model.moments(ask[[k]]) for k in range(50)], whole.T[:, :, None]
    )
    scores = np.array([model.scores(name, ask.time[0]) for name in NAMES])
    x = ask.design[[0]].toarray()[0]
    np.testing.assert_allclose(
        [x @ scores[:, 0], x**2 @ scores[:, 1] ** 2], whole[:, 0]
    )


def test_threads_and_parts_change_no_forecast():
    """20,000 matches are forecast in three parts. The forecast of a row alone is the
    same."""
    model = fit_small(likelihood=OrdinalProbit(0.3), n_threads=1)
    ask, _ = small(seed=5, n=20_000, begin=-50.0)
    whole = model.predict_proba(ask)
    two = fit_small(likelihood=OrdinalProbit(0.3), n_threads=2).predict_proba(ask)
    np.testing.assert_array_equal(two, whole)
    for rows in (slice(0, 1), slice(7_990, 8_010), slice(15_000, 20_000)):
        np.testing.assert_allclose(
            model.predict_proba(ask[rows]), whole[rows], rtol=1e-12
        )


@both_methods
@pytest.mark.parametrize("likelihood", [OrdinalProbit(0.4), Logit()], ids=repr)
def test_threads_change_no_bit(method, likelihood, monkeypatch):
    """The parts contain a few matches each, so that threads share the work."""
    rng = np.random.default_rng(0)
    matches = matches_of(
        random_design(rng, 120, 12, 3, [1.0, -1, 1]), np.sort(rng.uniform(0, 5, 120))
    )
    covariance = Constant(0.3) + Matern32(0.6, 1.5)
    y = rng.choice([1, -1], 120)

    def cut(n_threads, chunk):
        monkeypatch.setattr(threads, "_CHUNK", chunk)
        return fitted(
            covariance, likelihood, matches, y, method, n_threads=n_threads, tol=1e-8
        )

    one = cut(1, 7)
    for other in (cut(2, 7), cut(3, 7)):
        np.testing.assert_array_equal(
            other.pseudo_observations_, one.pseudo_observations_
        )
        assert other.trace_.equals(one.trace_)
        np.testing.assert_array_equal(
            other.predict_proba(matches), one.predict_proba(matches)
        )
    # the size of the parts is part of the program and does not depend on the computer
    whole = cut(1, 15_000)
    np.testing.assert_allclose(
        whole.pseudo_observations_, one.pseudo_observations_, atol=1e-6
    )


@given(
    st.lists(st.lists(st.integers(0, 9)), min_size=1, max_size=4), st.integers(-1, 10)
)
def test_places_are_those_of_a_search(times, ask):
    start = np.cumsum([0, *map(len, times)])
    known = np.array([float(t) for own in times for t in sorted(own)] + [0.0])
    rank = np.arange(len(times))
    found = posterior._next_visits(start, known, rank, np.full(len(times), float(ask)))
    np.testing.assert_array_equal(
        found,
        start[:-1] + [np.searchsorted(sorted(own), ask, side="right") for own in times],
    )


def test_features_that_were_never_seen_have_their_prior():
    matches, y = small(n=3)
    matches = Matches(
        np.pad(matches.design.toarray(), [(0, 0), (0, 1)]),
        matches.time,
        (*NAMES, "advantage"),
    )
    covariance = {
        "advantage": Constant(0.5),
        "Zoe": Matern12(2.0, 1.0),
        "*": Constant(0.3) + Wiener(0.5, "first"),
    }
    with pytest.warns(UserWarning, match="covariance names"):
        model = fitted(covariance, OrdinalProbit(0.4), matches, y)
    mean, deviation = model.scores("advantage", [0.0, 9.0])
    np.testing.assert_array_equal(mean, 0)
    np.testing.assert_allclose(deviation, np.sqrt(0.5))
    # a new player at each of the times
    ask = Matches([[1, -1], [1, 0]], [1.0, 2.0], ["Zoe", "Yves"])
    mean, variance = model.moments(ask)
    np.testing.assert_array_equal(mean, 0)
    np.testing.assert_allclose(variance, [2.3, 2.0])
    np.testing.assert_allclose(
        model.predict_proba(ask)[:, 0], model.predict_proba(ask)[:, 2]
    )
