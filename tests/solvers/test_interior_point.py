"""The interior point for sums of hinges, compared with cvxpy. tests/margins tests the
same loop for margins."""

from typing import NamedTuple

import numpy as np
import pytest
from reference import hinge_machine

from preflearn.solvers.interior_point import Hinges, minimise


class Dense(NamedTuple):
    A: np.ndarray

    def times(self, u):
        return self.A @ u

    def adjoint(self, v):
        return self.A.T @ v

    def gram(self, weights):
        return (self.A.T * weights) @ self.A


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("cost", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize(("rows", "columns"), [(40, 3), (15, 20)])
def test_hinges_have_the_minimum_of_cvxpy_and_both_gaps_bound_it(
    biased, cost, rows, columns
):
    rng = np.random.default_rng(rows)
    A = rng.standard_normal((rows, columns))
    costs = cost * rng.uniform(0.5, 2, rows)
    label = rng.choice([-1.0, 1.0], rows) if biased else np.zeros(rows)
    found = minimise(Hinges(Dense(A), costs, label), 1e-10)
    value = hinge_machine(A, costs, label)[0]

    def objective(u):
        return u @ u / 2 + costs @ np.maximum(0, 1 - A @ u - label * found.bias)

    assert min(found.gap, found.primal_gap) <= 1e-10
    for point, gap in ((A.T @ found.dual, found.gap), (found.u, found.primal_gap)):
        assert objective(point) == pytest.approx(value, rel=1e-6 + gap)
    assert ((found.dual >= 0) & (found.dual <= costs * (1 + 1e-12))).all()
    # every row has a margin below 1, so every weight is at its bound
    if cost == 1e-3 and not biased:
        np.testing.assert_array_equal(found.dual, costs)
    assert found.dual @ label == pytest.approx(0, abs=1e-8 * costs.sum())


@pytest.mark.parametrize("tol", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("seed", range(5))
def test_a_gap_bounds_the_distance_to_the_minimum_wherever_the_search_ends(seed, tol):
    """Until the end, the dual weights violate the equation of beta."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((15, 3))
    costs = rng.uniform(0.5, 2, 15)
    label = rng.choice([-1.0, 1.0], 15)
    found = minimise(Hinges(Dense(A), costs, label), tol)
    least = hinge_machine(A, costs, label)[0]
    for u, gap in ((A.T @ found.dual, found.gap), (found.u, found.primal_gap)):
        loss = costs @ np.maximum(0, 1 - A @ u - label * found.bias)
        assert (u @ u / 2 + loss) * (1 - gap) <= least * (1 + 1e-6)


def test_a_slow_start_does_not_end_the_search():
    """The 10,000 rows are nearly separable and the cost is large. Many steps reduce the
    gap by less than a tenth."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((10_000, 10))
    w = rng.standard_normal(10)
    A *= np.sign(A @ w + 0.1 * rng.standard_normal(10_000))[:, None]
    assert (
        minimise(Hinges(Dense(A), np.full(10_000, 1000.0), np.zeros(10_000)), 1e-9).gap
        <= 1e-9
    )
