"""Updates that sweep what the new matches touch: their results are those of sweeps of all."""

import numpy as np
import pytest
from dynamics.problems import both_methods, matches_of, random_design
from hypothesis import given
from hypothesis import strategies as st

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Gaussian,
    Matern12,
    Matern32,
    OrdinalProbit,
    Poisson,
    Probit,
    inference,
    load,
)
from preflearn.matches import Matches

MOVING = Constant(0.3) + Matern12(0.5, 10.0)
LIKELIHOODS = {
    "probit": (Probit(), [-1, 1]),
    "ties": (OrdinalProbit(0.3), [-1, 0, 1]),
    "points": (Gaussian(2.0), [-1.5, 0.2, 3.0]),
    "counts": (Poisson(), [0, 1, 3]),
}


def league(seed, outcomes, n=400, n_pools=30, pool=5):
    """Players meet within their pool: what a match touches is a small part, at any tolerance."""
    rng = np.random.default_rng(seed)
    design = np.zeros((n, n_pools, pool))
    design[np.arange(n), rng.integers(0, n_pools, n)] = random_design(rng, n, pool)
    design = design.reshape(n, -1)
    return matches_of(design, np.sort(rng.integers(0, 40, n)).astype(float)), rng.choice(outcomes, n)


def judged(model):
    """Residual and evidence of a sweep of all, from the pseudo-observations that the model has."""
    with inference.laid_out(
        model, model.matches_, model.outcomes_, np.array(model.pseudo_observations_)
    ) as sweep:
        return sweep.matches(sweep.features())


def updated(monkeypatch, model, matches, y, first, step=1):
    """Update by update; how many of them did not sweep all."""
    local = []
    ask = inference.nearby

    def noted(*arguments):
        found = ask(*arguments)
        local.append(found is not None)
        return found

    monkeypatch.setattr("preflearn.dynamics.model.nearby", noted)
    for begin in range(first, len(matches), step):
        model.update(matches[begin : begin + step], y[begin : begin + step])
    return sum(local), len(local)


@both_methods
@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_no_sweep_of_all_would_change_more(kind, method, monkeypatch):
    likelihood, outcomes = LIKELIHOODS[kind]
    matches, y = league(0, outcomes)
    covariance = {"f3": Matern32(1.0, 15.0), "*": MOVING}
    model = DynamicComparisons(covariance, likelihood, method).fit(matches[:380], y[:380])
    before = np.array(model.pseudo_observations_)
    local, count = updated(monkeypatch, model, matches, y, 380, step=4)
    assert (local, count) == (5, 5)
    assert np.mean(np.all(model.pseudo_observations_[: len(before)] == before, axis=1)) > 0.3
    found = judged(model)
    assert found.residual <= 1.001e-6
    assert found.residual <= 1.001 * model.trace_["residual"].iloc[-1]
    assert model.log_marginal_likelihood_ == pytest.approx(found.evidence, abs=1e-8)
    tight = DynamicComparisons(covariance, likelihood, method, tol=1e-9).fit(matches, y)
    np.testing.assert_allclose(model.predict_proba(matches), tight.predict_proba(matches), atol=1e-5)
    assert model.log_marginal_likelihood_ == pytest.approx(tight.log_marginal_likelihood_, abs=1e-6)


@given(st.integers(0, 2**32), st.integers(1, 30), st.sampled_from([1e-1, 1e-2, 1e-4, 1e-7]))
def test_any_number_of_matches_at_any_tolerance(seed, count, tol):
    """Also with newcomers, whose columns come in between."""
    matches, y = league(seed, [-1, 1], n=60, n_pools=1, pool=40)
    first = 60 - count
    seen = np.unique(matches.design[:first].indices)
    early = Matches(matches.design[:first][:, seen], matches.time[:first], [f"f{k}" for k in seen])
    model = DynamicComparisons(MOVING, Probit(), tol=tol).fit(early, y[:first])
    model.update(matches[first:], y[first:])
    found = judged(model)
    assert found.residual <= tol * 1.001
    assert model.log_marginal_likelihood_ == pytest.approx(found.evidence, abs=1e-8)
    whole = DynamicComparisons(MOVING, Probit(), tol=1e-9).fit(matches, y)
    np.testing.assert_allclose(model.predict_proba(matches), whole.predict_proba(matches), atol=10 * tol)


def test_what_is_looked_up_is_refreshed(monkeypatch):
    """A hundred updates, one match each: more than a tenth of what was learned at first."""
    matches, y = league(1, [-1, 1])
    models = [DynamicComparisons(MOVING, Probit(), tol=1e-5, n_threads=n) for n in (1, 2)]
    for model in models:
        model.fit(matches[:300], y[:300])
        local, count = updated(monkeypatch, model, matches, y, 300)
        assert count == 100
        assert local > 90
    found = judged(models[0])
    assert found.residual <= 1.001e-5
    assert models[0].log_marginal_likelihood_ == pytest.approx(found.evidence, abs=1e-8)
    np.testing.assert_array_equal(*(model.pseudo_observations_ for model in models))


def test_forecasts_of_some_features_are_those_of_all(tmp_path):
    """First of two, then of others; of all at once by a model that was loaded."""
    matches, y = league(2, [-1, 1])
    model = DynamicComparisons(MOVING, Probit(), tol=1e-4).fit(matches, y)
    model.save(tmp_path / "model.npz")
    whole = load(tmp_path / "model.npz").predict_proba(matches)
    for rows in ([0], [399], [5, 6, 7], slice(0, 400)):
        np.testing.assert_allclose(model.predict_proba(matches[rows]), whole[rows], rtol=1e-12)
    one = DynamicComparisons(MOVING, Probit(), tol=1e-4).fit(matches, y)
    stranger = Matches([[1.0, -1.0]], [50.0], ["nobody", "f3"])
    np.testing.assert_allclose(one.predict_proba(stranger), model.predict_proba(stranger), rtol=1e-12)
    assert one.scores("f9", 3.0) == pytest.approx(model.scores("f9", 3.0), rel=1e-12)


@pytest.mark.parametrize("changes", [{"covariance": Constant(0.7)}, {"likelihood": OrdinalProbit(0.3)}])
def test_other_parameters_sweep_all(changes, monkeypatch):
    matches, y = league(3, [-1, 1])
    model = DynamicComparisons(MOVING, Probit(), tol=1e-3).fit(matches[:399], y[:399])
    local, count = updated(monkeypatch, model.set_params(**changes), matches, y, 399)
    assert (local, count) == (0, 0)
    assert judged(model).residual <= 1e-3
