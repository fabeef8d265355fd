"""The dual by blocks: its weights meet the conditions of eq. 15, and the interior point finds the same."""

import numpy as np
import pytest
from sklearn.base import clone
from small_problems import noisy_comparisons as compared

from preflearn.svm import SVMCompare, SVMRank


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_larger_problem_satisfies_kkt(kernel):
    """Stationarity holds by dual_coef_; the rest of the conditions of eq. 15, pair by pair."""
    pairs, y = compared(1, m=3000, n=200, p=4, tie_share=0.6, noise=1.0)
    machine = SVMCompare(5.0, kernel).fit(pairs, y)
    assert machine.dual_gap_ < 1e-8
    assert len(machine.support_) < len(y)
    beta, dual, tied = machine.bias_, machine.dual_coef_, y == 0
    assert beta < -1  # then a copy of a tie has slack only where the other one has none
    z = -beta * machine.decision_function(pairs)
    room = np.where(tied, -1 - beta - np.abs(z), y * z + beta - 1)
    weight = dual * np.where(tied, -np.sign(z), y)
    assert (weight[~tied] >= 0).all()
    assert (np.abs(dual) <= 5.0 * (1 + 1e-12)).all()
    assert (weight[room > 1e-5] == 0).all()
    np.testing.assert_allclose(weight[room < -1e-5], 5.0, rtol=1e-9)
    assert weight[~tied].sum() == pytest.approx(np.abs(dual[tied]).sum(), rel=1e-7)


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
