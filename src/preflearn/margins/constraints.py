"""Constraints of the margin programs, section 3.1 of [Venuto2017]_.

A constraint row is the feature difference of a pair, oriented by its label (the flipped
data of eq. 8). Only a few constraints are binding at the optimum. A working set of rows
therefore starts small and grows by the rows that its own optimum violates. The full
data are only searched for violated rows, about five times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lstsq

from preflearn.core.validation import Floats, check_labels, raise_if_any
from preflearn.pairs import Pairs, as_pairs
from preflearn.solvers.newton import warn_about_gap

_EPS = np.finfo(np.float64).eps
RANK_TOL = 1e-12  # singular values below this, relative to the largest, count as 0
# squares of smaller differences underflow, and of differences above its inverse
# overflow
_MIN_DIFFERENCE = 1e-140
# a larger relative violation of the optimality conditions gives a warning
_INACCURATE = 1e-7
# Rows that a solution satisfies by less than this, in units of s - t, are added
# together with violated rows.
_NEARLY_VIOLATED = 0.05
_ROWS_PER_FEATURE = 4  # number of rows of each kind that are added at a time
# duality gaps, relative to the objective: while rows are added, and at the end
_ROUGH = 1e-2
EXACT = 1e-13


class OrientedPairs(NamedTuple):
    """Labeled pairs, and their differences oriented toward the better item."""

    pairs: Pairs
    y: NDArray[np.int8]
    values: Floats  # (m, p): y_i d_i for a preference, d_j for a tie
    ties: NDArray[np.bool_]
    sign: NDArray[np.int8]  # -1 where the sign of a difference was changed, else 1

    @classmethod
    def validate(cls, pairs: Pairs | ArrayLike, y: ArrayLike) -> OrientedPairs:
        """Check pairs and labels, and orient their differences.

        Raises
        ------
        ValueError
            If pairs or labels are not valid, a difference overflows, or all differences
            in a feature are so small that their squares underflow.
        """
        pairs = as_pairs(pairs)
        y = check_labels(y, len(pairs))
        sign = np.where(y == -1, -1, 1).astype(np.int8)
        with np.errstate(over="ignore"):
            oriented = cls(pairs, y, pairs.differences(), y == 0, sign)
        largest = oriented.largest()
        sound = (largest >= _MIN_DIFFERENCE) & (largest <= 1 / _MIN_DIFFERENCE)
        extreme = (largest != 0) & ~sound
        expected = f"0, or a number from {_MIN_DIFFERENCE} to {1 / _MIN_DIFFERENCE:.0e}"
        expected += (
            ", so that squares neither underflow nor overflow: rescale the features"
        )
        raise_if_any(extreme, largest, "the largest difference in feature", expected)
        values = oriented.values
        np.negative(values, out=values, where=(y == -1)[:, None])
        return oriented

    def largest(self) -> Floats:
        """Return the largest absolute value of each column, shape (p,).

        The rows are not copied.
        """
        return np.maximum(self.values.max(axis=0), -self.values.min(axis=0))

    def scales(self) -> Floats:
        """Return powers of two, shape (p,), that scale the largest entries to [1, 2)."""
        largest = self.largest()
        exponents = np.clip(np.frexp(largest)[1] - 1, -1000, 1000)
        return np.ldexp(1.0, np.where(largest > 0, exponents, 0))

    def constraint_rows(self, ids: NDArray) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the constraint rows g with these ids, and a mask of the ties.

        The program bounds g·w from below. The row is y_i d_i for a preference, and -d_j
        for a tie; the id m + j stands for d_j.
        """
        pair = ids % len(self.ties)
        return self.values[pair] * self._orientation(ids)[:, None], self.ties[pair]

    def pair_multipliers(self, ids: NDArray, dual: NDArray) -> Floats:
        """Convert multipliers of constraint rows to weights of the differences d, (m,)."""
        pair = ids % len(self.ties)
        weights = dual * self._orientation(ids) * self.sign[pair]
        return np.bincount(pair, weights, len(self.ties))  # pyright: ignore[reportReturnType]  (weighted: floats)

    def _orientation(self, ids: NDArray) -> NDArray[np.float64]:
        m = len(self.ties)
        return np.where((ids < m) & self.ties[ids % m], -1.0, 1.0)


def warn_about_residual(name: str, residual: float) -> None:
    """Warn if the optimality conditions are violated by more than rounding errors."""
    warn_about_gap(name, residual, _INACCURATE, "standardize the features")


def extremes(values: Floats, ties: NDArray[np.bool_]) -> tuple[float, float]:
    """Return s, the minimum over preferences, and t, the largest magnitude over ties.

    Without ties t is 0.
    """
    s = values[~ties].min(initial=np.inf)
    return float(s), float(np.abs(values[ties]).max(initial=0.0))


class Solution(NamedTuple):
    """Optimal weights for some constraint rows, and nonnegative row multipliers.

    `state` is an additional result of the solver.
    """

    coef: Floats
    dual: Floats
    state: Any = None


# arguments: constraint rows, a mask of the ties, relative accuracy, initial weights
Solver = Callable[[Floats, NDArray[np.bool_], float, Floats], Solution]


def grow_working_set(
    data: OrientedPairs,
    scale: Floats | float,
    solve: Solver,
    working_set: NDArray | None = None,
) -> tuple[Solution, NDArray[np.int64]]:
    """Solve a problem with few binding rows by adding violated rows.

    Parameters
    ----------
    data : OrientedPairs
    scale : float or ndarray of shape (p,)
        Scale of the features: they are divided by it, so that the solution is w *
        scale.
    solve : callable
        Solver for some rows. It is called with a low accuracy until few rows are
        missing, then with the final accuracy.
    working_set : ndarray of int, optional
        Ids of the initial constraint rows; None: the rows that a first guess violates
        most.

    Returns
    -------
    solution : Solution
        Solution that is optimal for all rows: no row lies beyond the extremes s and
        t of the working set. If s <= t, no weights separate the working set, and the
        search ends early.
    working_set : ndarray of int
        Ids of the constraint rows that the multipliers of the solution belong to.
    """
    ties = data.ties
    m, p = data.values.shape
    batch = _ROWS_PER_FEATURE * p + 50
    rounding = _EPS * np.sqrt(p) * data.largest() / scale
    inside = np.zeros(2 * m, dtype=bool)
    coef = _rough_guess(data, scale)
    if working_set is None:
        values = data.values @ (coef / scale)
        excess = np.where(ties, np.abs(values), -values)
        working_set = _worse_side(values, ties)[_largest_excess(excess, ties, batch)]
    for tolerance in (_ROUGH, EXACT):
        for _ in range(2 * m):  # each iteration except the last adds a row
            inside[working_set] = True
            G, tied = data.constraint_rows(working_set)
            solution = solve(G / scale, tied, tolerance, coef)
            coef = solution.coef
            values = data.values @ (coef / scale)
            s = values[working_set[~tied]].min()
            t = 0.0
            if tied.any():
                t = -(
                    G[tied] @ (coef / scale)
                ).min()  # over these rows only, so it may be negative
            excess = np.where(ties, np.abs(values) - t, s - values)
            rows = _worse_side(values, ties)
            excess[inside[rows]] = -np.inf
            allowed = rounding @ np.abs(coef)
            if tolerance == _ROUGH:
                allowed = allowed + _ROUGH * (s - t)
            if s <= t or excess.max() <= allowed:
                break
            new = _largest_excess(excess, ties, batch)
            new = new[excess[new] > -_NEARLY_VIOLATED * (s - t)]
            working_set = np.concatenate([working_set, rows[new]])
    return solution, working_set


def _rough_guess(data: OrientedPairs, scale: Floats | float) -> Floats:
    """Return a linear discriminant between preferences and ties, by least squares."""
    m, p = data.values.shape
    part = slice(None, None, max(1, m // (10 * p)))
    is_preference = (~data.ties[part]).astype(np.float64)
    return least_squares(data.values[part] / scale, is_preference, RANK_TOL)


def least_squares(A: NDArray, b: NDArray, rank_tol: float = _EPS) -> Floats:
    """Return the minimum-norm least-squares solution of A z = b.

    A pivoted QR factorization allows columns of very different size.
    """
    return lstsq(A, b, rank_tol, lapack_driver="gelsy", check_finite=False)[0]  # pyright: ignore[reportOptionalSubscript]


def _worse_side(values: Floats, ties: NDArray) -> NDArray[np.int64]:
    """Return the id of the constraint row with the lower value, for each pair."""
    return np.arange(len(ties)) + len(ties) * (ties & (values < 0))


def _largest_excess(excess: NDArray, ties: NDArray, batch: int) -> NDArray[np.int64]:
    """Return the ids of `batch` preferences and `batch` ties of largest excess."""
    chosen = []
    for kind in (~ties, ties):
        ids = np.flatnonzero(kind)
        if len(ids) > batch:
            ids = ids[np.argpartition(excess[ids], -batch)[-batch:]]
        chosen.append(ids)
    return np.concatenate(chosen)
