"""MarginLP and MarginQP compared with other solvers and with their optimality
conditions."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from margins.problems import LABELS, separable, split
from scipy.optimize import linprog

from preflearn.margins import MarginLP, MarginQP
from preflearn.pairs import Pairs

PROBLEMS = pytest.mark.parametrize(
    ("m", "p", "tie_share", "labels"),
    [
        *itertools.product([20], [1, 2, 3, 5, 9, 20], [0.01, 0.5, 0.95], LABELS),
        (3000, 5, 0.4, "both"),
        (500, 30, 0.4, "both"),
        (150, 100, 0.5, "both"),
        (40, 200, 0.5, "both"),
    ],
)


def lp_by_simplex_dual(preferences, ties):
    """Return the optimum of the dual of eq. 7: minimize the sum of the ties' weights
    minus that of the preferences' weights, with total weight 1."""
    columns = np.vstack([preferences, -ties, ties]).T
    cost = np.repeat([-1.0, 1.0], [len(preferences), 2 * len(ties)])
    A = np.vstack([columns, np.ones(len(cost))])
    result = linprog(
        cost, A_eq=A, b_eq=np.append(np.zeros(len(columns)), 1.0), method="highs-ipm"
    )
    assert result.status == 0
    return result.fun


def qp_by_cvxpy(preferences, ties):
    u = cp.Variable(ties.shape[1])
    beta = cp.Variable()
    constraints = [beta + cp.abs(ties @ u) <= -1, beta + preferences @ u >= 1]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(u)), constraints)
    problem.solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    return problem.value, u.value


@PROBLEMS
def test_the_optimum_of_the_lp(m, p, tie_share, labels):
    pairs, y = separable([m, p, int(100 * tie_share)], m, p, tie_share, labels)
    lp = MarginLP().fit(pairs, y)
    (preferences, ties) = split(pairs, y)
    assert lp.margin_ == pytest.approx(lp_by_simplex_dual(preferences, ties), abs=1e-7)
    assert lp.kkt_residual_ < 1e-10
    np.testing.assert_array_equal(lp.predict(pairs), y)
    assert 0 < lp.margin_ <= 1 + 1e-12
    assert (preferences @ lp.coef_).min() - 1 >= lp.margin_ - 1e-9
    assert 1 - np.abs(ties @ lp.coef_).max() >= lp.margin_ - 1e-9
    assert lp.margin_ == pytest.approx(
        1 - 2 * np.abs(lp.dual_coef_[y != 0]).sum(), abs=1e-9
    )
    d = pairs.differences()
    np.testing.assert_allclose(lp.dual_coef_ @ d, 0, atol=1e-9 * np.abs(d).max())
    assert (lp.dual_coef_ * y >= 0).all()
    assert set(np.flatnonzero(lp.dual_coef_)) <= set(lp.active_)


@PROBLEMS
def test_the_optimum_of_the_qp(m, p, tie_share, labels):
    pairs, y = separable([m, p, int(100 * tie_share)], m, p, tie_share, labels)
    qp = MarginQP().fit(pairs, y)
    (preferences, ties) = split(pairs, y)
    value, u = qp_by_cvxpy(preferences, ties)
    assert qp.u_ @ qp.u_ == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(qp.u_, u, atol=1e-6 * np.abs(u).max())
    np.testing.assert_array_equal(qp.predict(pairs), y)
    # by Lemma 3.1, the QP's solution is feasible for the LP
    assert qp.margin_ <= MarginLP().fit(pairs, y).margin_ + 1e-10
    assert qp.kkt_residual_ < 1e-10
    assert (qp.bias_ + preferences @ qp.u_).min() == pytest.approx(1, abs=1e-9)
    assert (qp.bias_ + np.abs(ties @ qp.u_)).max() == pytest.approx(-1, abs=1e-9)
    np.testing.assert_allclose(
        qp.dual_coef_ @ pairs.differences(), qp.u_, atol=1e-9 * np.abs(qp.u_).max()
    )
    assert np.abs(qp.dual_coef_[y != 0]).sum() == pytest.approx(
        qp.u_ @ qp.u_ / 2, rel=1e-9
    )
    assert (qp.dual_coef_ * y >= 0).all()
    np.testing.assert_array_equal(qp.support_, np.flatnonzero(qp.dual_coef_))
    np.testing.assert_allclose(qp.coef_, -qp.u_ / qp.bias_)
    assert qp.margin_ == pytest.approx(-1 / qp.bias_)


@pytest.mark.parametrize("seed", range(12))
def test_of_several_optima_the_lp_has_the_least_norm(seed):
    pairs, y = separable(seed, m=14, p=int(3 + seed % 8), n_ties=1 + seed % 4)
    doubled = Pairs(
        np.hstack([pairs.items, pairs.items, 0 * pairs.items[:, :1]]), pairs.index
    )
    lp = MarginLP().fit(doubled, y)
    preferences, ties = split(doubled, y)
    w = cp.Variable(preferences.shape[1])
    limits = [
        preferences @ w >= 1 + lp.margin_ - 1e-9,
        cp.abs(ties @ w) <= 1 - lp.margin_ + 1e-9,
    ]
    least = cp.Problem(cp.Minimize(cp.sum_squares(w)), limits).solve(solver=cp.CLARABEL)
    assert lp.coef_ @ lp.coef_ == pytest.approx(least, rel=1e-5)
