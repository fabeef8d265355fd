import re
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import flipped_rows
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import pairwise_kernels
from small_problems import league, noisy_comparisons

from preflearn.pairs import Pairs
from preflearn.svm import DegenerateBiasError, LogisticCompare

pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")


compared = partial(noisy_comparisons, m=300, n=100, p=4)


def loss_and_gradient(theta, d, y, weights, alpha):
    """Return F of w and beta by its definition on the flipped rows, and its
    gradient."""
    rows = np.column_stack(flipped_rows(d, y))
    mass = np.concatenate([weights[y != 0], weights[y == 0], weights[y == 0]])
    mass = mass / mass.sum()
    ridge = np.append(np.full(d.shape[1], alpha), 0.0)
    z = rows @ theta
    gradient = -(mass * expit(-z)) @ rows + ridge * theta
    return mass @ np.logaddexp(0, -z) + ridge @ theta**2 / 2, gradient


def exact(d, y, alpha, weights=None):
    """Return the minimum of F, with w and beta, by L-BFGS."""
    weights = np.ones(len(y)) if weights is None else weights
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-8}
    problem = (d, y, weights, alpha)
    start = np.zeros(d.shape[1] + 1)
    found = minimize(
        loss_and_gradient, start, problem, "L-BFGS-B", jac=True, options=options
    )
    return found.fun, found.x[:-1], found.x[-1]


CASES = {
    "linear": {"kernel": "linear"},
    "fourier": {"kernel": "rbf", "gamma": 0.2, "n_components": 100},
}


@pytest.mark.parametrize("case", sorted(CASES))
@pytest.mark.parametrize(("seed", "alpha"), [(0, 1e-2), (1, 1e-3)])
def test_reaches_the_exact_optimum(case, seed, alpha):
    pairs, y = compared(seed, m=2000)
    model = LogisticCompare(alpha, **CASES[case], tol=1e-12, random_state=seed).fit(
        pairs, y
    )
    d = pairs.B.differences(model._features(pairs.items))
    value, w, bias = exact(d, y, alpha)
    assert model.loss_ <= value * (1 + 1e-12)
    assert model.loss_ == pytest.approx(value, rel=1e-8)
    assert model.bias_ == pytest.approx(bias, rel=1e-3)
    np.testing.assert_allclose(model.weights_, w, atol=1e-3 * np.linalg.norm(w))
    z = model.decision_function(pairs)
    expected = d @ w / -bias
    np.testing.assert_allclose(z, expected, atol=1e-3 * np.abs(expected).max())
    np.testing.assert_array_equal(
        model.predict(pairs), np.where(np.abs(z) > 1, np.sign(z), 0)
    )


@given(
    st.integers(0, 2**31),
    st.sampled_from([1e-8, 1e-5, 1e-2, 1.0]),
    st.sampled_from([1e-1, 1e-4, 1e-10]),
    st.sampled_from(["as they are", "few features", "scaled", "more items than pairs"]),
    st.booleans(),
)
def test_the_gap_bounds_the_excess_of_the_loss(seed, alpha, tol, kind, weighted):
    size = {"more items than pairs": {"m": 60, "n": 300}, "few features": {"p": 1}}.get(
        kind, {}
    )
    pairs, y = compared(seed, **{"m": 150, "tie_share": 0.6, **size})
    if kind == "scaled":
        pairs = Pairs(pairs.items * np.geomspace(1, 1e4, pairs.shape[2]), pairs.index)
    weights = np.where(
        y == 0, 1.0, np.random.default_rng(seed).uniform(0, 1, len(y)) ** weighted
    )
    model = LogisticCompare(alpha, tol=tol).fit(pairs, y, weights if weighted else None)
    theta = np.append(model.weights_, model.bias_)
    loss, _ = loss_and_gradient(theta, pairs.differences(), y, weights, alpha)
    least = LogisticCompare(alpha, tol=1e-12).fit(pairs, y, weights).loss_
    assert model.loss_ == pytest.approx(loss, rel=1e-12)
    assert loss * (1 - 1e-12) <= least + model.dual_gap_ * loss
    assert model.dual_gap_ <= tol
    np.testing.assert_allclose(model.coef_, -model.weights_ / model.bias_)
    scores = pairs.items @ model.coef_
    np.testing.assert_allclose(
        model.rank_function(pairs.items), scores, atol=1e-9 * np.abs(scores).max()
    )


@pytest.mark.theorem("prop-ordinal")
def test_the_loss_is_the_ordinal_likelihood_up_to_a_function_of_beta():
    pairs, y = compared(3, m=400)
    model = LogisticCompare(1e-3).fit(pairs, y)
    z = model.decision_function(pairs)
    k = -model.bias_
    won = expit(k * (y * z - 1))
    tied = expit(k * (1 - z)) - expit(k * (-1 - z))
    n_ties = np.count_nonzero(y == 0)
    ordinal = -np.log(np.where(y == 0, tied, won)).sum() + n_ties * np.log1p(
        -np.exp(-2 * k)
    )
    ridge = 1e-3 / 2 * model.weights_ @ model.weights_
    assert model.loss_ - ridge == pytest.approx(ordinal / (len(y) + n_ties), rel=1e-10)


@pytest.mark.parametrize("tie_share", [0.1, 0.25, 0.3, 0.35, 0.45])
def test_the_sign_of_the_bias_is_decided_at_beta_zero(tie_share):
    """beta < 0 if and only if the number of ties exceeds sum s(-w·d), at the w that is
    optimal for beta = 0."""
    pairs, y = compared(4, m=500, tie_share=tie_share, noise=3.0)
    alpha = 0.01
    rows, labels = flipped_rows(pairs.differences(), y)
    w = minimize(
        lambda w: np.logaddexp(0, -rows @ w).mean() + alpha / 2 * w @ w, np.zeros(4)
    ).x
    preferences = expit(-(rows @ w)[labels > 0]).sum()
    model = LogisticCompare(alpha)
    if np.count_nonzero(y == 0) > preferences:
        assert model.fit(pairs, y).bias_ < 0
    else:
        with pytest.raises(DegenerateBiasError, match="tie_weight"):
            model.fit(pairs, y)
        with pytest.raises(NotFittedError):
            model.predict(pairs)


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0])
def test_weightier_ties_help_a_league(alpha):
    pairs, y, strength = league()
    model = LogisticCompare(alpha, tie_weight="least").fit(pairs, y)
    assert model.bias_ < 0
    assert model.tie_weight_ > 1
    assert np.corrcoef(model.rank_function(np.eye(20)), strength)[0, 1] > 0.9


def test_a_smaller_alpha_is_advised_where_it_helps():
    pairs, y = compared(4, m=500, tie_share=0.2, noise=0.0)
    with pytest.raises(DegenerateBiasError) as caught:
        LogisticCompare(1e3).fit(pairs, y)
    advised = re.search(r"(?i)lower alpha to ([\d.e+-]*\d)", str(caught.value))
    assert LogisticCompare(float(advised[1])).fit(pairs, y).bias_ < 0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_constant_features_give_the_log_odds(kernel):
    pairs = Pairs(np.ones((4, 2)), [[0, 1], [1, 2], [2, 3]] * 40)
    y = [1, 0, 0] * 40
    model = LogisticCompare(kernel=kernel, n_components=20).fit(pairs, y)
    assert model.bias_ == pytest.approx(np.log(1 / 4), abs=1e-6)
    assert not model.weights_.any()
    assert np.isfinite(model.rank_function([[2.0, 3.0]])).all()


def test_fourier_features_approximate_the_kernel():
    pairs, y = compared(5)
    model = LogisticCompare(
        kernel="rbf", gamma=0.2, n_components=3000, random_state=0
    ).fit(pairs, y)
    F = model._features(pairs.items)
    assert F.shape == (len(pairs.items), 3000)
    K = pairwise_kernels(pairs.items, metric="rbf", gamma=0.2)
    assert np.sqrt(np.mean((F @ F.T - K) ** 2)) < 2 / np.sqrt(3000)


def test_the_seed_draws_the_features():
    pairs, y = compared(9)
    model = LogisticCompare(1e-3, **CASES["fourier"])
    one, same, other = (
        clone(model).set_params(random_state=s).fit(pairs, y).weights_
        for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


@pytest.mark.parametrize("case", sorted(CASES))
@pytest.mark.parametrize("gamma", ["scale", 0.2])
def test_an_offset_of_all_items_changes_nothing(case, gamma):
    pairs, y = compared(21)
    items = np.round(pairs.items * 2**20) / 2**20  # makes the sum with the offset exact
    here, there = (
        Pairs(items + offset, pairs.index)
        for offset in (0, np.array([1e5, 0, -1e5, 3e3]))
    )
    model = LogisticCompare(1e-3, **CASES[case], random_state=0).set_params(gamma=gamma)
    z = clone(model).fit(here, y).decision_function(here)
    moved = model.fit(there, y).decision_function(there)
    np.testing.assert_allclose(moved, z, atol=1e-6 * np.abs(z).max())


def test_one_pair_may_have_nearly_half_of_all_weight():
    pairs, y = compared(12, m=600)
    weights = np.ones(len(y))
    weights[np.flatnonzero(y)[0]] = 500.0
    value = exact(pairs.differences(), y, 1e-3, weights)[0]
    assert LogisticCompare(1e-3).fit(pairs, y, weights).loss_ <= value * (1 + 1e-6)


@pytest.mark.parametrize("p", [3, 40])
def test_many_pairs_start_from_fewer(monkeypatch, p):
    """This includes a subset that does not resemble all pairs, and a switch to the
    Hessian."""
    monkeypatch.setattr("preflearn.solvers.smooth_losses._MIN_COARSE_PAIRS", 20)
    monkeypatch.setattr("preflearn.solvers.smooth_losses._CG_STEPS", 2)
    monkeypatch.setattr("preflearn.solvers.smooth_losses._BLOCK", 100)
    pairs, y = compared(14, m=1500, p=p)
    order = np.argsort(pairs.differences()[:, 0])
    model = LogisticCompare(1e-4, tol=1e-12).fit(pairs[order], y[order])
    assert model.loss_ == pytest.approx(
        exact(pairs.differences(), y, 1e-4)[0], rel=1e-8
    )


@pytest.mark.parametrize("condition", [1.0, 2e3, 1e6])
def test_features_of_any_condition(condition):
    """Compare with scikit-learn's Newton method on the matrix of flipped
    differences."""
    pairs, y = compared(22, m=2000, p=8)
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0]
    pairs = Pairs(
        pairs.items @ (Q * np.geomspace(1, 1 / condition, 8)) @ Q.T, pairs.index
    )
    model = LogisticCompare(1e-6, tol=1e-9).fit(pairs, y)
    flipped, labels = pairs.flipped(y)
    reference = LogisticRegression(
        C=1e6 / len(labels), solver="newton-cholesky", tol=1e-10, max_iter=1000
    )
    reference.fit(flipped.differences(), labels)
    theta = np.append(reference.coef_[0], reference.intercept_[0])
    loss, _ = loss_and_gradient(theta, pairs.differences(), y, np.ones(len(y)), 1e-6)
    assert model.loss_ == pytest.approx(loss, rel=1e-8)


def test_a_gap_left_by_rounding_is_reported():
    """At least one of eight problems warns. In the others, rounding may make the gap
    0."""
    problems = [compared(seed) for seed in range(8)]
    with pytest.warns(ConvergenceWarning, match=r"1e-30.*raise alpha"):
        models = [
            LogisticCompare(1e-12, tol=1e-30).fit(pairs, y) for pairs, y in problems
        ]
    assert max(model.dual_gap_ for model in models) < 1e-6
    pairs, y = problems[0]
    assert models[0].loss_ == pytest.approx(
        exact(pairs.differences(), y, 1e-12)[0], rel=1e-6
    )
