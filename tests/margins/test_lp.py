"""MarginLP against the dual program, and how far it is from MarginQP."""

import cvxpy as cp
import numpy as np
import pytest
from margins.problems import PROGRAMS, separable, split
from scipy.optimize import linprog

from preflearn.margins import MarginLP
from preflearn.pairs import Pairs


def lp_by_simplex_dual(pairs, y):
    """The dual of eq. 7, as a primal: min sum of ties' minus preferences' weights, all at once."""
    preferences, ties = split(pairs, y)
    columns = np.vstack([preferences, -ties, ties]).T
    cost = np.repeat([-1.0, 1.0], [len(preferences), 2 * len(ties)])
    A = np.vstack([columns, np.ones(len(cost))])
    result = linprog(cost, A_eq=A, b_eq=np.append(np.zeros(len(columns)), 1.0), method="highs-ipm")
    assert result.status == 0
    return result.fun


@pytest.mark.parametrize(("m", "p", "share", "labels"), PROGRAMS)
def test_the_optimum_is_that_of_the_dual(m, p, share, labels):
    pairs, y = separable([m, p, int(100 * share)], m=m, p=p, tie_share=share, labels=labels)
    lp = MarginLP().fit(pairs, y)
    assert lp.margin_ == pytest.approx(lp_by_simplex_dual(pairs, y), abs=1e-7)
    assert lp.kkt_residual_ < 1e-10
    np.testing.assert_array_equal(lp.predict(pairs), y)
    preferences, ties = split(pairs, y)
    assert 0 < lp.margin_ <= 1 + 1e-12
    assert (preferences @ lp.coef_).min() - 1 >= lp.margin_ - 1e-9
    assert 1 - np.abs(ties @ lp.coef_).max() >= lp.margin_ - 1e-9
    assert lp.margin_ == pytest.approx(1 - 2 * np.abs(lp.dual_coef_[y != 0]).sum(), abs=1e-9)
    d = pairs.differences()
    np.testing.assert_allclose(lp.dual_coef_ @ d, 0, atol=1e-9 * np.abs(d).max())
    assert (lp.dual_coef_ * y >= 0).all()
    assert set(np.flatnonzero(lp.dual_coef_)) <= set(lp.active_)


def test_several_optima_of_the_lp_give_the_least_norm():
    for seed in range(30):
        pairs, y = separable(seed, m=14, p=int(3 + seed % 8), n_ties=1 + seed % 4)
        doubled = Pairs(np.hstack([pairs.items, pairs.items, 0 * pairs.items[:, :1]]), pairs.index)
        lp = MarginLP().fit(doubled, y)
        preferences, ties = split(doubled, y)
        w = cp.Variable(preferences.shape[1])
        limits = [preferences @ w >= 1 + lp.margin_ - 1e-9, cp.abs(ties @ w) <= 1 - lp.margin_ + 1e-9]
        least = cp.Problem(cp.Minimize(cp.sum_squares(w)), limits).solve(solver=cp.CLARABEL)
        assert lp.coef_ @ lp.coef_ == pytest.approx(least, rel=1e-5)
