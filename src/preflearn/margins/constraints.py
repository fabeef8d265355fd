"""The rows of the programs of section 3.1 of [Venuto2017]_: of many, few matter.

A row is the difference of a pair; preferences are turned the right way. A working set
of turned rows, the flipped data of eq. 8, grows by those that its own optimum violates:
all rows are only read, some five times.
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
RANK = 1e-12  # smallest singular value, relative to the largest, that counts
# differences below this, and above its inverse, lose digits when squared
_SMALL = 1e-140
# a relative violation of the optimality conditions that is worth a warning
_INACCURATE = 1e-7
# rows that an answer does not violate by so much, in units of s - t, are added with
# others
_NEAR = 0.05
_BATCH = 4  # rows of each kind that a working set grows by, in units of p
# gaps, relative to the objective, while rows are gathered and in the end
_ROUGH = 1e-2
EXACT = 1e-13


class Rows(NamedTuple):
    """Labelled pairs and their differences, preferences turned the right way."""

    pairs: Pairs
    y: NDArray[np.int8]
    values: Floats  # (m, p): y_i d_i of a preference, d_j of a tie
    ties: NDArray[np.bool_]
    sign: NDArray[np.int8]  # -1 where a difference was turned, else 1

    @classmethod
    def of(cls, pairs: Pairs | ArrayLike, y: ArrayLike) -> Rows:
        """The rows of pairs and labels, which are checked.

        Raises
        ------
        ValueError
            On bad pairs or labels, if a difference overflows, or if all those of a
            feature are so small that their squares vanish.
        """
        pairs = as_pairs(pairs)
        y = check_labels(y, len(pairs))
        with np.errstate(over="ignore"):
            rows = cls(
                pairs,
                y,
                pairs.differences(),
                y == 0,
                np.where(y == -1, -1, 1).astype(np.int8),
            )
        largest = rows.largest()
        extreme = (largest != 0) & ~((largest >= _SMALL) & (largest <= 1 / _SMALL))
        expected = f"0, or between {_SMALL} and {1 / _SMALL:.0e}, so that no square overflows: scale them"
        raise_if_any(extreme, largest, "the largest difference of features", expected)
        np.negative(rows.values, out=rows.values, where=(y == -1)[:, None])
        return rows

    @staticmethod
    def warn_of_residual(name: str, residual: float) -> None:
        """A ConvergenceWarning, if the conditions of an optimum are violated by more
        than rounding."""
        warn_about_gap(name, residual, _INACCURATE, "standardise the features")

    def largest(self) -> Floats:
        """The largest absolute value of each column, shape (p,), without a copy of the
        rows."""
        return np.maximum(self.values.max(axis=0), -self.values.min(axis=0))

    def scales(self) -> Floats:
        """Powers of two, shape (p,), that bring the largest entry of each column into
        [1, 2)."""
        largest = self.largest()
        return np.ldexp(
            1.0,
            np.where(largest > 0, np.clip(np.frexp(largest)[1] - 1, -1000, 1000), 0),
        )

    def turned(self, work: NDArray) -> tuple[Floats, NDArray[np.bool_]]:
        """Rows with large values g·w wanted, and which are ties: d_i, -d_j, and d_j for
        the id m + j."""
        ids = work % len(self.ties)
        return self.values[ids] * self._turn(work)[:, None], self.ties[ids]

    def multipliers(self, work: NDArray, dual: NDArray) -> Floats:
        """Multipliers of turned rows as weights of the differences d, shape (m,)."""
        ids = work % len(self.ties)
        weights = dual * self._turn(work) * self.sign[ids]
        return np.bincount(ids, weights, len(self.ties))  # pyright: ignore[reportReturnType]  (weighted: floats)

    def _turn(self, work: NDArray) -> NDArray[np.float64]:
        m = len(self.ties)
        return np.where((work < m) & self.ties[work % m], -1.0, 1.0)


def extremes(values: Floats, ties: NDArray[np.bool_]) -> tuple[float, float]:
    """s = min of the preferences' values, and t = max of the ties' absolute values (0
    without ties)."""
    s = values[~ties].min(initial=np.inf)
    return float(s), float(np.abs(values[ties]).max(initial=0.0))


class Solution(NamedTuple):
    """What a solver says about some rows: weights, multipliers >= 0 of the rows, and
    what else it found."""

    coef: Floats
    dual: Floats
    state: Any = None


# from turned rows, which are ties, a relative accuracy, and a guess of the weights
Solver = Callable[[Floats, NDArray[np.bool_], float, Floats], Solution]


def grow_working_set(
    rows: Rows, scale: Floats | float, solve: Solver, work: NDArray | None = None
) -> tuple[Solution, NDArray[np.int64]]:
    """Solve a problem whose answer depends on few rows, by adding those that an answer
    violates.

    Parameters
    ----------
    rows : Rows
    scale : float or ndarray of shape (p,)
        What features are divided by first, and weights of the solution with them.
    solve : callable
        It is asked for rough answers until few rows are missing, then for exact ones.
    work : ndarray of int, optional
        The turned rows to start from; the most difficult ones of a rough guess, unless
        given.

    Returns
    -------
    solution : Solution
        Optimal for all rows: none lies beyond the extremes s and t of the working set.
        If s <= t, no weights separate the working set, and so the search ends early.
    work : ndarray of int
        The turned rows that the duals of the solution belong to.
    """
    ties = rows.ties
    (m, p) = rows.values.shape
    batch = _BATCH * p + 50
    rounding = _EPS * np.sqrt(p) * rows.largest() / scale
    inside = np.zeros(2 * m, dtype=bool)
    coef = _rough_guess(rows, scale)
    if work is None:
        values = rows.values @ (coef / scale)
        work = _turned(values, ties)[
            _worst(np.where(ties, np.abs(values), -values), ties, batch)
        ]
    for tolerance in (_ROUGH, EXACT):
        for _ in range(2 * m):  # each time but the last adds a turned row
            inside[work] = True
            G, tied = rows.turned(work)
            solution = solve(G / scale, tied, tolerance, coef)
            coef = solution.coef
            values = rows.values @ (coef / scale)
            s = values[work[~tied]].min()
            # of these rows: it may be < 0
            t = -(G[tied] @ (coef / scale)).min() if tied.any() else 0.0
            excess = np.where(ties, np.abs(values) - t, s - values)
            turned = _turned(values, ties)
            excess[inside[turned]] = -np.inf
            if s <= t or excess.max() <= rounding @ np.abs(coef) + (
                tolerance == _ROUGH
            ) * _ROUGH * (s - t):
                break
            new = _worst(excess, ties, batch)
            new = new[excess[new] > -_NEAR * (s - t)]
            work = np.concatenate([work, turned[new]])
    return solution, work


def _rough_guess(rows: Rows, scale: Floats | float) -> Floats:
    """A linear discriminant of preferences from ties, by least squares on enough rows."""
    m, p = rows.values.shape
    some = slice(None, None, max(1, m // (10 * p)))
    return least_squares(
        rows.values[some] / scale, (~rows.ties[some]).astype(np.float64), RANK
    )


def least_squares(A: NDArray, b: NDArray, rank: float = _EPS) -> Floats:
    """The least solution of A z = b, by a pivoted QR factorisation: columns may differ
    in size."""
    return lstsq(A, b, rank, lapack_driver="gelsy", check_finite=False)[0]  # pyright: ignore[reportOptionalSubscript]


def _turned(values: Floats, ties: NDArray) -> NDArray[np.int64]:
    """The id of the turned row of each pair whose value is the worse one."""
    return np.arange(len(ties)) + len(ties) * (ties & (values < 0))


def _worst(excess: NDArray, ties: NDArray, batch: int) -> NDArray[np.int64]:
    """Ids of at most `batch` preferences and as many ties, those with the largest
    excess."""
    chosen = []
    for kind in (~ties, ties):
        ids = np.flatnonzero(kind)
        if len(ids) > batch:
            ids = ids[np.argpartition(excess[ids], -batch)[-batch:]]
        chosen.append(ids)
    return np.concatenate(chosen)
