"""The dual by blocks: its weights meet the conditions of eq. 15, and the interior point finds the same."""

import numpy as np
import pytest
from sklearn.base import clone
from small_problems import noisy_comparisons as compared

from preflearn.svm import SVMCompare, SVMRank


def check_kkt(machine, pairs, y, C):
    """Stationarity holds by dual_coef_; the rest of the conditions of eq. 15, pair by pair."""
    beta, dual = machine.bias_, machine.dual_coef_
    z = -beta * machine.decision_function(pairs)
    slack = y * z + beta - 1
    preferred = y != 0
    weight = (dual * y)[preferred]
    assert (weight >= 0).all()
    assert (np.abs(dual) <= C * (1 + 1e-12)).all()
    assert (weight[slack[preferred] > 1e-5] == 0).all()
    np.testing.assert_allclose(weight[slack[preferred] < -1e-5], C, rtol=1e-9)
    assert beta < -1  # then a copy of a tie has slack only where the other one has none
    excess = np.abs(z[~preferred]) + beta + 1
    signed = -dual[~preferred] * np.sign(z[~preferred])
    assert (signed[excess < -1e-5] == 0).all()
    np.testing.assert_allclose(signed[excess > 1e-5], C, rtol=1e-9)
    assert weight.sum() == pytest.approx(np.abs(dual[~preferred]).sum(), rel=1e-7)


def test_larger_problem_satisfies_kkt():
    pairs, y = compared(1, m=3000, n=200, p=4, tie_share=0.6, noise=1.0)
    for kernel in ("rbf", "linear"):
        machine = SVMCompare(5.0, kernel).fit(pairs, y)
        assert machine.dual_gap_ < 1e-8
        check_kkt(machine, pairs, y, 5.0)
        assert len(machine.support_) < len(y)


@pytest.mark.parametrize(("n", "m"), [(400, 600), (900, 500)])
def test_the_dual_and_the_interior_point_agree(n, m, monkeypatch):
    """A Gram matrix of full rank, by blocks and by all its features."""
    pairs, y = compared(12, m=m, n=n, p=6)
    for machine in (SVMCompare(5.0, gamma=0.2), SVMRank(5.0, gamma=0.2)):
        dual = clone(machine).fit(pairs, y)
        monkeypatch.setattr("preflearn.svm.problem.Space.chances", lambda *sizes: (False, False))
        interior = clone(machine).fit(pairs, y)
        monkeypatch.undo()
        assert interior.objective_ == pytest.approx(dual.objective_, rel=1e-8)
        np.testing.assert_allclose(
            interior.decision_function(pairs), dual.decision_function(pairs), atol=1e-3
        )
