"""MarginQP against cvxpy, and its optimality conditions."""

import cvxpy as cp
import numpy as np
import pytest
from margins.problems import PROGRAMS, separable, split

from preflearn.margins import MarginLP, MarginQP


def qp_by_cvxpy(pairs, y):
    preferences, ties = split(pairs, y)
    u, beta = cp.Variable(ties.shape[1]), cp.Variable()
    constraints = [beta + cp.abs(ties @ u) <= -1, beta + preferences @ u >= 1]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(u)), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value, u.value


@pytest.mark.parametrize(("m", "p", "share", "labels"), PROGRAMS)
def test_the_optimum_is_that_of_cvxpy(m, p, share, labels):
    pairs, y = separable([m, p, int(100 * share)], m=m, p=p, tie_share=share, labels=labels)
    qp = MarginQP().fit(pairs, y)
    value, u = qp_by_cvxpy(pairs, y)
    assert qp.u_ @ qp.u_ == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(qp.u_, u, atol=1e-6 * np.abs(u).max())
    np.testing.assert_array_equal(qp.predict(pairs), y)
    assert qp.margin_ <= MarginLP().fit(pairs, y).margin_ + 1e-10  # Lemma 3.1: feasible for the LP
    preferences, ties = split(pairs, y)
    assert qp.kkt_residual_ < 1e-10
    assert (qp.bias_ + preferences @ qp.u_).min() == pytest.approx(1, abs=1e-9)
    assert (qp.bias_ + np.abs(ties @ qp.u_)).max() == pytest.approx(-1, abs=1e-9)
    np.testing.assert_allclose(qp.dual_coef_ @ pairs.differences(), qp.u_, atol=1e-9 * np.abs(qp.u_).max())
    assert np.abs(qp.dual_coef_[y != 0]).sum() == pytest.approx(qp.u_ @ qp.u_ / 2, rel=1e-9)
    assert (qp.dual_coef_ * y >= 0).all()
    np.testing.assert_array_equal(qp.support_, np.flatnonzero(qp.dual_coef_))
    np.testing.assert_allclose(qp.coef_, -qp.u_ / qp.bias_)
    assert qp.margin_ == pytest.approx(-1 / qp.bias_)
