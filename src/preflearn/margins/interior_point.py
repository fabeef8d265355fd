"""Interior-point method for the margin programs, section 3.1 of [Venuto2017]_.

Each step factors one matrix with p + 2 rows by Cholesky. A problem takes about fifteen
steps, however many constraints are binding. An active-set method would take one step
for each binding row, and as many for rows that it has to drop again.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs
from scipy.optimize import nnls

from preflearn.core.validation import Floats
from preflearn.margins.constraints import (
    OrientedPairs,
    Solution,
    Solver,
    grow_working_set,
    least_squares,
)
from preflearn.solvers.interior_point import Interior, Step, central_path

# LAPACK routines without SciPy's checks, which return an error code
_POTRF, _POTRS = get_lapack_funcs(("potrf", "potrs"))
_MIN_GAP = 1e-60  # a smaller gap counts as 0, for data of size 1
# added to the curvature, relative to its largest entry, if rounding errors make it
# indefinite
_RIDGE = 1e-16
_MIN_MARGIN = 1e-9  # a smaller margin gives no scale for the slacks
# a curvature that makes the optimum of the LP unique and changes mu by about 1e-10
_LP_CURVATURE = 1e-10


def interior_point(
    A: Floats,
    b: Floats,
    c: Floats,
    curvature: Floats,
    start: Interior,
    tolerance: float,
) -> Interior:
    """Minimize z'Hz/2 + c'z subject to A z >= b by Mehrotra's method.

    H = diag(curvature).

    Parameters
    ----------
    A : ndarray of shape (k, q)
    b, c, curvature : ndarray of shape (k,), (q,), (q,)
    start : Interior
        Initial point, with the slacks of its z, which must be positive, and positive
        multipliers.
    tolerance : float
        Duality gap, relative to the objective, at which to stop.
    """

    def newton(point: Interior) -> Step | None:
        z, slack, dual = point
        objective = (curvature * z / 2 + c) @ z
        if point.gap() <= tolerance * abs(objective) + _MIN_GAP:
            return None
        roots = np.sqrt(dual / slack)[:, None] * A
        factor, failed = _cholesky(roots.T @ roots, curvature)
        if failed:
            return None
        slope = curvature * z + c - dual @ A
        missed = A @ z - b - slack

        def step(target: Floats) -> Interior:
            right = ((target - dual * missed) / slack) @ A - slope
            dz, _ = _POTRS(factor, right, lower=1)
            ds = A @ dz + missed
            return Interior(dz, ds, (target - dual * ds) / slack)

        return step

    return deque(central_path(start, newton), maxlen=1).pop()


def tight_constraints(optimum: Interior, unit: float) -> NDArray[np.bool_]:
    """Return a mask of the constraints that hold with equality at an optimum.

    For each constraint either the slack or the multiplier tends to 0.

    `unit` is the scale of the slacks if the multipliers have the sum 1.
    """
    return optimum.dual * unit > optimum.slack


def _cholesky(matrix: Floats, curvature: Floats) -> tuple[Floats, int]:
    """Factor matrix + diag(curvature) by Cholesky; return an error code, too.

    If the matrix is not positive definite, a small multiple of I is added. The code is
    0 if the factorization succeeded.
    """
    diagonal = matrix.ravel()[:: len(matrix) + 1]
    diagonal += curvature
    ridge = _RIDGE * diagonal.max()
    factor, failed = _POTRF(matrix, lower=1, clean=0)
    while failed and 0 < ridge < np.inf:  # false for NaN
        diagonal += ridge
        ridge *= 100
        factor, failed = _POTRF(matrix, lower=1, clean=0)
    return factor, failed


def solve_margin_lp(
    data: OrientedPairs, scale: Floats
) -> tuple[Solution, NDArray[np.int64]]:
    """Solve the LP, eq. 7 of [Venuto2017]_, for a margin of any sign.

    Parameters
    ----------
    data : OrientedPairs
    scale : ndarray of shape (p,)
        Divisors of the columns.

    Returns
    -------
    solution : Solution
        `coef` is w * scale. `dual` are the multipliers of the working set, with sum 1
        and G' dual = 0 for its rows G. `state` is the optimum mu, at most 0 if the
        pairs are not separable.
    working_set : ndarray of int
        Ids of the constraint rows of the working set.
    """

    def solve(G: Floats, ties: NDArray, tolerance: float, guess: Floats) -> Solution:
        # The unknowns are z = (w, mu), and the constraints G w - mu >= b. A tie of
        # equal items bounds mu by 1.
        G = np.vstack([G, 0 * G[:1]])
        ties = np.append(ties, True)
        k, p = G.shape
        A = np.column_stack([G, -np.ones(k)])
        b = np.where(ties, -1.0, 1.0)
        c = np.append(np.zeros(p), -1.0)
        w = guess / max(np.abs(G @ guess).max(), _MIN_GAP)
        curvature = np.append(np.full(p, _LP_CURVATURE / max(1.0, w @ w)), 0.0)
        values = G @ w - b
        mu = values.min() - 0.1
        start = Interior(np.append(w, mu), values - mu, np.full(k, 1 / k))
        optimum = interior_point(A, b, c, curvature, start, tolerance)
        active = tight_constraints(optimum, abs(optimum.z[-1]) + _MIN_MARGIN)
        dual = np.zeros(k)
        dual[active] = nonnegative_least_squares(A[active].T, c)[0]
        missed = b[active] - A[active] @ optimum.z
        z = optimum.z + least_squares(A[active], missed)
        return Solution(z[:-1], dual[:-1], float(z[-1]))

    return grow_working_set(data, scale, solve_in_span(solve))


def solve_in_span(solve: Solver) -> Solver:
    """Make a solver work in the span of the rows if there are fewer than features.

    The solution has no component orthogonal to the rows.
    """

    def reduced(G: Floats, ties: NDArray, tolerance: float, guess: Floats) -> Solution:
        if len(G) >= G.shape[1]:
            return solve(G, ties, tolerance, guess)
        basis, upper = np.linalg.qr(G.T)
        solution = solve(upper.T, ties, tolerance, guess @ basis)
        return solution._replace(coef=basis @ solution.coef)

    return reduced


def nonnegative_least_squares(A: NDArray, b: NDArray) -> tuple[Floats, float]:
    """Return the x >= 0 that minimizes |A x - b|, and the minimum.

    The columns with positive x are linearly independent.
    """
    # SciPy's routine (1.17) writes out of bounds for a matrix without columns
    if A.shape[1] == 0:
        return np.zeros(0), float(np.sqrt(b @ b))
    x, missed = nnls(A, b)
    return x, float(missed)
