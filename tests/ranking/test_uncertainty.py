"""Standard errors of scores, compared with numerical second derivatives, exact cases,
and simulated leagues."""

import numpy as np
import pytest
from ranking.comparisons import (
    compared,
    every_model,
    objective,
    probabilities,
    tie_parameter,
)
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import norm, rankdata
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison, bootstrap, tie_models


def league(seed, n=8, m=120, tie=0.0, spread=1.0):
    """Return pairs of players and outcomes of Davidson's model."""
    rng = np.random.default_rng(seed)
    s = spread * rng.normal(size=n)
    index = np.vstack(
        [np.column_stack([np.arange(n), np.roll(np.arange(n), 1)])] * 2
        + [[rng.choice(n, 2, replace=False) for _ in range(m - 2 * n)]]
    )
    d = s[index[:, 0]] - s[index[:, 1]]
    chances = np.column_stack([np.exp(-d / 2), np.full(m, tie), np.exp(d / 2)])
    u = rng.random(m) * chances.sum(axis=1)
    return index, (u[:, None] > np.cumsum(chances, axis=1)).sum(axis=1) - 1


def second_derivatives(f, x, h=1e-4):
    steps = h * np.eye(len(x))  # steps in two coordinates
    return np.array(
        [
            [f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b) for a in steps]
            for b in steps
        ]
    ) / (4 * h * h)


@every_model
def test_errors_are_those_of_the_observed_information(model):
    pairs, y = compared(3, m=80)
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    fitted = clone(model).fit(pairs, y, weights)
    x = np.append(fitted.coef_, tie_parameter(fitted))
    H = second_derivatives(
        lambda x: objective(model, pairs, y, x[:-1], x[-1], weights), x
    )
    V = np.linalg.inv(H)[:-1, :-1]
    D = pairs.differences()
    X = pairs.items - pairs.items.mean(axis=0)
    np.testing.assert_allclose(
        fitted.standard_errors(pairs), np.sqrt(np.diag(D @ V @ D.T)), rtol=1e-4
    )
    np.testing.assert_allclose(
        fitted.standard_errors(), np.sqrt(np.diag(X @ V @ X.T)), rtol=1e-4
    )
    mean = fitted.decision_function(pairs)
    ends = fitted.interval(0.9, pairs)
    np.testing.assert_allclose(ends.mean(axis=1), mean)
    np.testing.assert_allclose(
        np.diff(ends)[:, 0], 2 * norm.ppf(0.95) * fitted.standard_errors(pairs)
    )


@every_model
def test_items_without_features_need_no_identity_matrix(model, monkeypatch):
    index, y = league(0, tie=0.5)
    dense = clone(model).fit(Pairs(np.eye(8), index), y)
    found = clone(model).fit(index, y)
    np.testing.assert_allclose(found.coef_, dense.coef_, atol=1e-8)
    np.testing.assert_allclose(
        found.predict_proba(index), dense.predict_proba(Pairs(np.eye(8), index))
    )
    np.testing.assert_allclose(
        found.standard_errors(), dense.standard_errors(), rtol=1e-8
    )
    expected = dense.standard_errors(Pairs(np.eye(8), index))
    monkeypatch.setattr(tie_models, "DENSE", 5)  # use conjugate gradients
    large = clone(model).fit(index, y)
    np.testing.assert_allclose(large.standard_errors(index), expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"items.*pairs"):
        large.standard_errors()
    with pytest.raises(ValueError, match=r"8.* 7"):
        found.predict([[0, 8]])


def test_many_players_have_the_scores_of_a_sparse_logistic_regression():
    # for more than 5000 players no Hessian is computed
    rng = np.random.default_rng(0)
    n = 6000
    m = 18_000
    first = rng.integers(n, size=m)
    index = np.column_stack([first, (first + rng.integers(1, n, m)) % n])
    y = np.where(rng.random(m) < 0.5, 1, -1)
    model = Davidson(1.0).fit(index, y)
    B = sparse.csr_array(Pairs(np.zeros((n, 1)), index).incidence())
    reference = LogisticRegression(
        C=1.0, fit_intercept=False, tol=1e-8, max_iter=500
    ).fit(B, y)
    np.testing.assert_allclose(model.coef_, reference.coef_[0], atol=2e-3)
    assert model.dual_gap_ < 1e-9
    assert (model.standard_errors(index[:2]) > 0).all()


def test_rank_intervals_are_quantiles_of_the_ranks_of_joint_draws():
    """The covariance of the centered scores follows from the errors of all
    differences."""
    n = 5
    level = 0.8
    accuracy = 0.015
    # the comparisons are in a chain, so the errors are correlated
    index = np.repeat([[0, 1], [1, 2], [2, 3], [3, 4]], [60, 6, 30, 6], axis=0)
    model = Davidson().fit(index, np.where(np.arange(len(index)) % 5 < 3, 1, -1))
    first, second = np.indices((n, n)).reshape(2, -1)
    different = first != second
    variances = np.zeros(n * n)
    variances[different] = (
        model.standard_errors(np.column_stack([first, second])[different]) ** 2
    )
    centering = np.eye(n) - 1 / n
    covariance = -centering @ variances.reshape(n, n) @ centering / 2
    draws = np.random.default_rng(1).multivariate_normal(
        model.coef_, covariance, 20_000
    )
    ranks = rankdata(-draws, axis=1)
    found = model.ranks(level)
    np.testing.assert_array_equal(found.rank, rankdata(-model.coef_))
    tail = (1 - level) / 2
    for beyond, within in (
        (ranks < found.low, ranks <= found.low),
        (ranks > found.high, ranks >= found.high),
    ):
        assert (beyond.mean(axis=0) <= tail + accuracy).all()
        assert (within.mean(axis=0) >= tail - accuracy).all()


def test_quasi_variances_of_three_items_are_exact_and_of_more_items_close():
    index, y = league(4, n=3, m=30)
    model = Davidson().fit(index, y)
    q = model.quasi_variances()
    for i, j in ((0, 1), (1, 2), (0, 2)):
        assert q[i] + q[j] == pytest.approx(
            model.standard_errors([[i, j]])[0] ** 2, rel=1e-6
        )
    index, y = league(5, n=9, m=300)
    model = Davidson().fit(index, y)
    q = model.quasi_variances()
    pairs = np.column_stack(np.triu_indices(9, 1))
    ratio = np.sqrt(q[pairs].sum(axis=1)) / model.standard_errors(pairs)
    assert 0.9 < ratio.min() <= ratio.max() < 1.1
    from_one = Pairs(
        np.vstack([np.eye(9), np.full(9, 1 / 9)]), [[k, 9] for k in range(9)]
    )
    np.testing.assert_allclose(model.quasi_variances(from_one), q, rtol=1e-3)
    every = model.ranks()
    ranks = model.ranks(pairs=from_one)
    np.testing.assert_array_equal(ranks.rank, every.rank)
    np.testing.assert_allclose([ranks.low, ranks.high], [every.low, every.high], atol=1)


@pytest.mark.parametrize("tie", [0.0, 0.7])
def test_bias_reduction_maximises_the_penalised_likelihood(tie):
    index, y = league(7, n=4, m=16, tie=tie, spread=2.0)
    model = Davidson(1e-3, bias_reduced=True)
    n = 4
    free = tie > 0
    pairs = Pairs(np.eye(n), index)
    ones = np.ones(16)

    def value(x):
        """Return the objective with the covariance of the statistics of three outcomes,
        without derivatives."""
        t = x[n] if free else -40.0
        D = pairs.differences()
        H = np.diag(np.append(np.full(n, model.alpha), 0.0))
        for row, p in zip(D, probabilities(model, D @ x[:n], t), strict=True):
            s = np.array([np.append(c * row / 2, c == 0) for c in (-1, 0, 1)])
            H += (s.T * p) @ s - np.outer(p @ s, p @ s)
        H = H if free else H[:n, :n]
        return objective(model, pairs, y, x[:n], t, ones) - np.linalg.slogdet(H)[1] / 2

    best = minimize(value, np.zeros(n + free), tol=1e-10).x
    model.fit(index, y)
    np.testing.assert_allclose(model.coef_, best[:n] - best[:n].mean(), atol=2e-3)
    assert not free or tie_parameter(model) == pytest.approx(best[n], abs=2e-3)
    assert model.objective_ == pytest.approx(value(best), rel=1e-6)


def test_bias_reduction_by_hand():
    """Bias reduction adds half a win to each side. After one win in one match, the odds
    are 3 to 1."""
    for wins, odds in ((1, 3.0), (9, 19.0)):
        model = Davidson(1e-9, bias_reduced=True).fit([[0, 1]] * wins, [1] * wins)
        assert np.exp(model.decision_function([[0, 1]])[0]) == pytest.approx(
            odds, rel=1e-6
        )


@every_model
def test_errors_by_clusters_are_the_sandwich_as_written(model):
    """V (G'G n/(n-1) + alpha) V, where V and the gradients of the n judges are
    differences of the objective."""
    pairs, y = compared(3, m=80)
    rng = np.random.default_rng(2)
    judge = rng.integers(7, size=80)
    weights = rng.uniform(0.5, 2, 80)
    fitted = clone(model).fit(pairs, y, weights, judge)
    x = np.append(fitted.coef_, tie_parameter(fitted))
    H = second_derivatives(
        lambda x: objective(model, pairs, y, x[:-1], x[-1], weights), x
    )
    free = clone(model).set_params(alpha=0.0)
    steps = 1e-5 * np.eye(len(x))

    def value(x, kind):
        return objective(free, pairs, y, x[:-1], x[-1], weights * (judge == kind))

    G = (
        np.array([[value(x + e, k) - value(x - e, k) for e in steps] for k in range(7)])
        / 2e-5
    )
    V = np.linalg.inv(H)
    D = np.column_stack([pairs.differences(), np.zeros(80)])
    prior = np.diag(np.append(np.full(len(x) - 1, model.alpha), 0.0))
    expected = np.sqrt(np.diag(D @ V @ (7 / 6 * G.T @ G + prior) @ V @ D.T))
    np.testing.assert_allclose(fitted.standard_errors(pairs), expected, rtol=1e-4)
    with pytest.raises(ValueError, match=r"clusters is 1.* 2"):
        clone(model).fit(pairs, y, cluster=np.zeros(80)).standard_errors()


@every_model
def test_differences_without_data_have_the_variance_of_their_prior(model):
    """With clusters, the variance was 0, as if two items that never met were known to
    be equal."""
    index = [[0, 1], [1, 0], [2, 3], [3, 2]] * 3
    y = [1, 1, -1, 0] * 3
    judge = np.repeat([0, 1, 2], 4)
    apart = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    for cluster in (None, judge):
        fitted = clone(model).set_params(alpha=0.5).fit(index, y, cluster=cluster)
        groups = fitted.standard_errors(Pairs(apart, [[0, 1]]))
        assert groups[0] == pytest.approx(np.sqrt(4 / 0.5), rel=1e-4)


def test_the_bootstrap_and_the_information_agree():
    index, y = league(9, n=4, m=200)
    model = Davidson().fit(index, y)
    ratio = bootstrap(model, index, y, n_draws=60).std(axis=0) / model.standard_errors()
    assert 0.6 < ratio.min() <= ratio.max() < 1.6
    judge = np.arange(200) // 50  # four judges can be drawn from four in 35 ways
    assert (
        len(
            np.unique(
                bootstrap(OrdinalComparison(), index, y, judge, n_draws=40)[:, 0].round(
                    9
                )
            )
        )
        <= 35
    )


def test_a_draw_of_ties_alone_has_equal_scores():
    found = bootstrap(Davidson(), [[0, 1], [1, 0], [0, 1]], [1, 0, 0], n_draws=50)
    assert found.shape == (50, 2)
    assert 0 < np.count_nonzero((found == 0).all(axis=1)) < 50
    with pytest.raises(ValueError, match="y has only ties"):
        bootstrap(Davidson(), [[0, 1]] * 3, [0, 0, 0])
    with pytest.raises(ValueError, match=r"unit\[1\]"):
        bootstrap(Davidson(), [[0, 1]] * 2, [1, 1], unit=["a", None])
