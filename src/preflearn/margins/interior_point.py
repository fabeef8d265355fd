"""An interior point for the programs of section 3.1 of [Venuto2017]_.

It takes few, costly steps.

Each step is one Cholesky factorisation of a matrix with p + 2 rows, and each problem
takes about fifteen steps, however many rows are tight in the end; an active-set method
takes one step for each row, and as many again for wrong ones.
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

# without SciPy's checks, and failing in numbers
_POTRF, _POTRS = get_lapack_funcs(("potrf", "potrs"))
_MIN_GAP = 1e-60  # a smaller gap is 0, for data of size 1
# relative to the largest curvature: added where rounding hides that it is positive
_RIDGE = 1e-16
_MIN_MARGIN = 1e-9  # a smaller margin does not say which slacks count
# the curvature that makes the optimum of the LP unique: it moves mu by some 1e-10
_LP_CURVATURE = 1e-10


def interior_point(
    A: Floats,
    b: Floats,
    c: Floats,
    curvature: Floats,
    start: Interior,
    tolerance: float,
) -> Interior:
    """Minimise z'Hz/2 + c'z subject to A z >= b, by Mehrotra's method.

    H = diag(curvature).

    Parameters
    ----------
    A : ndarray of shape (k, q)
    b, c, curvature : ndarray of shape (k,), (q,), (q,)
    start : Interior
        With positive slacks that are those of its z, and positive multipliers.
    tolerance : float
        Duality gap at which to stop, relative to the objective.
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
    """The constraints that hold with equality at an optimum.

    Either the slack or the multiplier of each constraint goes to 0.

    `unit` is the size of slacks that count, where multipliers have the sum 1.
    """
    return optimum.dual * unit > optimum.slack


def _cholesky(matrix: Floats, curvature: Floats) -> tuple[Floats, int]:
    """The factor of matrix + diag(curvature), and not 0 where there is none.

    If necessary, of a slightly larger matrix.
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
        `coef` w * scale; `dual` of the working set, with sum 1 and G' dual = 0 for its
        rows G; `state` the optimum mu, at most 0 if the pairs are not separable.
    working_set : ndarray of int
        Ids of its constraint rows.
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
    """Solve in the span of the rows, where they are fewer than the features.

    Other weights are 0.
    """

    def reduced(G: Floats, ties: NDArray, tolerance: float, guess: Floats) -> Solution:
        if len(G) >= G.shape[1]:
            return solve(G, ties, tolerance, guess)
        basis, upper = np.linalg.qr(G.T)
        solution = solve(upper.T, ties, tolerance, guess @ basis)
        return solution._replace(coef=basis @ solution.coef)

    return reduced


def nonnegative_least_squares(A: NDArray, b: NDArray) -> tuple[Floats, float]:
    """The x >= 0 that minimises |A x - b|, and that minimum.

    x is positive for linearly independent columns only.
    """
    # for which SciPy's routine (1.17) writes past the end of its memory
    if A.shape[1] == 0:
        return np.zeros(0), float(np.sqrt(b @ b))
    x, missed = nnls(A, b)
    return x, float(missed)
