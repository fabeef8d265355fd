"""Constraints of the programs of [Venuto2017]_, section 3.1; few of them matter.

A constraint row is the difference of a pair, oriented by its label. A working set of
rows, of the flipped data of eq. 8, grows by the rows that its own optimum violates: all
rows are only read, some five times.
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
RANK_TOL = 1e-12  # smallest singular value, relative to the largest, that counts
# differences below this, and above its inverse, lose digits when squared
_MIN_DIFFERENCE = 1e-140
# a relative violation of the optimality conditions that is worth a warning
_INACCURATE = 1e-7
# rows that an answer does not violate by so much, in units of s - t, are added with
# others
_NEARLY_VIOLATED = 0.05
_ROWS_PER_FEATURE = 4  # of each kind, by which a working set grows
# gaps, relative to the objective, while rows are gathered and in the end
_ROUGH = 1e-2
EXACT = 1e-13


class OrientedPairs(NamedTuple):
    """Labelled pairs and their differences, turned to the better item."""

    pairs: Pairs
    y: NDArray[np.int8]
    values: Floats  # (m, p): y_i d_i of a preference, d_j of a tie
    ties: NDArray[np.bool_]
    sign: NDArray[np.int8]  # -1 where a difference was turned, else 1

    @classmethod
    def validate(cls, pairs: Pairs | ArrayLike, y: ArrayLike) -> OrientedPairs:
        """Check pairs and labels, and orient their differences.

        Raises
        ------
        ValueError
            On bad pairs or labels, if a difference overflows, or if all those of a
            feature are so small that their squares vanish.
        """
        pairs = as_pairs(pairs)
        y = check_labels(y, len(pairs))
        sign = np.where(y == -1, -1, 1).astype(np.int8)
        with np.errstate(over="ignore"):
            oriented = cls(pairs, y, pairs.differences(), y == 0, sign)
        largest = oriented.largest()
        sound = (largest >= _MIN_DIFFERENCE) & (largest <= 1 / _MIN_DIFFERENCE)
        extreme = (largest != 0) & ~sound
        expected = f"0, or between {_MIN_DIFFERENCE} and {1 / _MIN_DIFFERENCE:.0e}"
        expected += ", so that no square overflows: scale them"
        raise_if_any(extreme, largest, "the largest difference of features", expected)
        values = oriented.values
        np.negative(values, out=values, where=(y == -1)[:, None])
        return oriented

    def largest(self) -> Floats:
        """The largest absolute value of each column, shape (p,).

        Without a copy of the rows.
        """
        return np.maximum(self.values.max(axis=0), -self.values.min(axis=0))

    def scales(self) -> Floats:
        """Powers of two, shape (p,), that bring the largest entries into [1, 2)."""
        largest = self.largest()
        exponents = np.clip(np.frexp(largest)[1] - 1, -1000, 1000)
        return np.ldexp(1.0, np.where(largest > 0, exponents, 0))

    def constraint_rows(self, ids: NDArray) -> tuple[Floats, NDArray[np.bool_]]:
        """Rows g whose values g·w are bounded from below, and which are ties.

        They are d_i of preferences, -d_j of ties, and d_j for the id m + j.
        """
        pair = ids % len(self.ties)
        return self.values[pair] * self._orientation(ids)[:, None], self.ties[pair]

    def pair_multipliers(self, ids: NDArray, dual: NDArray) -> Floats:
        """Multipliers of constraint rows as weights of the differences d, shape (m,)."""
        pair = ids % len(self.ties)
        weights = dual * self._orientation(ids) * self.sign[pair]
        return np.bincount(pair, weights, len(self.ties))  # pyright: ignore[reportReturnType]  (weighted: floats)

    def _orientation(self, ids: NDArray) -> NDArray[np.float64]:
        m = len(self.ties)
        return np.where((ids < m) & self.ties[ids % m], -1.0, 1.0)


def warn_about_residual(name: str, residual: float) -> None:
    """Give a ConvergenceWarning if optimality is violated by more than rounding."""
    warn_about_gap(name, residual, _INACCURATE, "standardise the features")


def extremes(values: Floats, ties: NDArray[np.bool_]) -> tuple[float, float]:
    """s = min of the preferences' values, and t = max of the ties' absolute values.

    Without ties t is 0.
    """
    s = values[~ties].min(initial=np.inf)
    return float(s), float(np.abs(values[ties]).max(initial=0.0))


class Solution(NamedTuple):
    """Weights for some constraint rows, and multipliers >= 0 of the rows.

    `state` is what else the solver returns.
    """

    coef: Floats
    dual: Floats
    state: Any = None


# from constraint rows, which are ties, a relative accuracy, and a guess of the weights
Solver = Callable[[Floats, NDArray[np.bool_], float, Floats], Solution]


def grow_working_set(
    data: OrientedPairs,
    scale: Floats | float,
    solve: Solver,
    working_set: NDArray | None = None,
) -> tuple[Solution, NDArray[np.int64]]:
    """Solve a problem with few binding rows, by adding rows that an answer violates.

    Parameters
    ----------
    data : OrientedPairs
    scale : float or ndarray of shape (p,)
        Divisor of the features, and factor of the weights of the solution.
    solve : callable
        Solver for some rows: for rough answers until few rows are missing, then for
        exact ones.
    working_set : ndarray of int, optional
        Ids of the constraint rows to start from; None: the most violated ones of a
        rough guess.

    Returns
    -------
    solution : Solution
        Optimal for all rows: none lies beyond the extremes s and t of the working set.
        If s <= t, no weights separate the working set, and so the search ends early.
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
        for _ in range(2 * m):  # each time but the last adds a row
            inside[working_set] = True
            G, tied = data.constraint_rows(working_set)
            solution = solve(G / scale, tied, tolerance, coef)
            coef = solution.coef
            values = data.values @ (coef / scale)
            s = values[working_set[~tied]].min()
            t = 0.0
            if tied.any():
                t = -(G[tied] @ (coef / scale)).min()  # of these rows: it may be < 0
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
    """A linear discriminant of preferences from ties, by least squares on enough rows."""
    m, p = data.values.shape
    part = slice(None, None, max(1, m // (10 * p)))
    is_preference = (~data.ties[part]).astype(np.float64)
    return least_squares(data.values[part] / scale, is_preference, RANK_TOL)


def least_squares(A: NDArray, b: NDArray, rank_tol: float = _EPS) -> Floats:
    """The shortest least-squares solution of A z = b, by a pivoted QR factorization.

    Columns may differ in size.
    """
    return lstsq(A, b, rank_tol, lapack_driver="gelsy", check_finite=False)[0]  # pyright: ignore[reportOptionalSubscript]


def _worse_side(values: Floats, ties: NDArray) -> NDArray[np.int64]:
    """The id of the constraint row of each pair whose value is the worse one."""
    return np.arange(len(ties)) + len(ties) * (ties & (values < 0))


def _largest_excess(excess: NDArray, ties: NDArray, batch: int) -> NDArray[np.int64]:
    """Ids of the `batch` preferences and `batch` ties with the largest excess."""
    chosen = []
    for kind in (~ties, ties):
        ids = np.flatnonzero(kind)
        if len(ids) > batch:
            ids = ids[np.argpartition(excess[ids], -batch)[-batch:]]
        chosen.append(ids)
    return np.concatenate(chosen)
