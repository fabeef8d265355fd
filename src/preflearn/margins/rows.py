"""The rows of the programs of section 3.1 of [Venuto2017]_: of many, few matter.

A row is the difference of a pair; preferences are turned the right way. A working set of rows grows by
those that its own optimum violates, so that all rows are only read, some ten times, and never factorised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from preflearn.checks import Floats, check_labels
from preflearn.pairs import Pairs, as_pairs

_EPS = np.finfo(np.float64).eps
_SMALL = 1e-140  # differences below this, and above its inverse, lose digits when squared
_RIDGE = 1e-12  # of the rough guess, relative to the trace of its matrix
_HIGHS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


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
            On bad pairs or labels, if a difference overflows, or if all those of a feature are so small
            that their squares vanish.
        """
        pairs = as_pairs(pairs)
        y = check_labels(y, len(pairs))
        with np.errstate(over="ignore"):
            rows = cls(pairs, y, pairs.differences(), y == 0, np.where(y == -1, -1, 1).astype(np.int8))
        if not np.isfinite(rows.values).all():
            row, column = np.argwhere(~np.isfinite(rows.values))[0]
            raise ValueError(
                f"the difference of pair {row} overflows in feature {column}; scale the features"
            )
        largest = rows.largest()
        extreme = (largest > 0) & ((largest < _SMALL) | (largest > 1 / _SMALL))
        if extreme.any():
            column = int(np.flatnonzero(extreme)[0])
            raise ValueError(
                f"the largest difference in feature {column} is {largest[column]:.1e}; "
                f"scale the features: expected it to be 0 or between {_SMALL} and {1 / _SMALL:.0e}"
            )
        np.negative(rows.values, out=rows.values, where=(y == -1)[:, None])
        return rows

    def divided(self, scale: Floats | float) -> Rows:
        return self._replace(values=self.values / scale)

    def largest(self) -> Floats:
        """The largest absolute value of each column, shape (p,), without a copy of the rows."""
        return np.maximum(self.values.max(axis=0), -self.values.min(axis=0))

    def scales(self) -> Floats:
        """Powers of two, shape (p,), that bring the largest entry of each column into [1, 2)."""
        largest = self.largest()
        return np.ldexp(1.0, np.where(largest > 0, np.clip(np.frexp(largest)[1] - 1, -1000, 1000), 0))

    def split(self, ids: NDArray) -> tuple[Floats, Floats]:
        """The preferences and the ties among these rows."""
        values, ties = self.values[ids], self.ties[ids]
        return values[~ties], values[ties]


def extremes(values: Floats, ties: NDArray[np.bool_]) -> tuple[float, float]:
    """s = min of the preferences' values, and t = max of the ties' absolute values (0 without ties)."""
    s = values[~ties].min(initial=np.inf)
    return float(s), float(np.abs(values[ties]).max(initial=0.0))


class Solution(NamedTuple):
    """What a solver says about some rows: weights, dual weights of the rows, and its own state."""

    coef: Floats
    dual: Floats
    state: Any = None


def grow_working_set(
    rows: Rows, solve: Callable[[NDArray, Solution], Solution], work: NDArray | None = None
) -> tuple[Solution, NDArray[np.int64]]:
    """Solve a problem whose answer depends on few rows, by adding those that an answer violates.

    Parameters
    ----------
    rows : Rows
    solve : callable
        From the ids of a working set and the previous solution to the solution for these rows.
    work : ndarray of int, optional
        The ids to start from; the most difficult pairs of a rough guess, unless given.

    Returns
    -------
    solution : Solution
        Optimal for all rows: none lies beyond the extremes s and t of the working set. If s <= t,
        no weights separate the working set, and so the search ends early.
    work : ndarray of int
        The ids that the duals of the solution belong to.
    """
    (m, p), ties = rows.values.shape, rows.ties
    batch = 2 * p + 10
    rounding = _EPS * np.sqrt(p) * rows.largest()
    inside = np.zeros(m, dtype=bool)
    solution = Solution(_rough_guess(rows), np.empty(0))
    if work is None:
        guess = rows.values @ solution.coef
        work = _worst(np.where(ties, np.abs(guess), -guess), ~inside, ties, batch)
    while True:
        inside[work] = True
        solution = solve(work, solution)
        values = rows.values @ solution.coef
        s, t = extremes(values[work], ties[work])
        excess = np.where(ties, np.abs(values) - t, s - values)
        new = _worst(excess, ~inside & (excess > rounding @ np.abs(solution.coef)), ties, batch)
        if len(new) == 0 or s <= t:
            return solution, work
        work = np.concatenate([work, new])


def _rough_guess(rows: Rows) -> Floats:
    """The mean preference over the second moments, as in a linear discriminant, of enough rows."""
    m, p = rows.values.shape
    some = rows.values[:: max(1, m // (50 * p))]
    moments = some.T @ some
    ridge = _RIDGE * max(np.trace(moments), np.finfo(np.float64).tiny) * np.eye(p)
    return np.linalg.solve(moments + ridge, rows.values[~rows.ties].mean(axis=0))


def _worst(excess: NDArray, allowed: NDArray, ties: NDArray, batch: int) -> NDArray[np.int64]:
    """Ids of at most `batch` preferences and as many ties, those with the largest excess."""
    chosen = []
    for kind in (allowed & ~ties, allowed & ties):
        ids = np.flatnonzero(kind)
        if len(ids) > batch:
            ids = ids[np.argpartition(excess[ids], -batch)[-batch:]]
        chosen.append(ids)
    return np.concatenate(chosen)


def largest_ratio(rows: Rows) -> tuple[Solution, NDArray[np.int64]]:
    """Solve the LP, eq. 7 of [Venuto2017]_, for a margin of any sign, with HiGHS on a working set.

    Parameters
    ----------
    rows : Rows
        In columns of similar size.

    Returns
    -------
    solution : Solution
        `coef` w; `dual` of the working set, signed so that it sums its rows to 0: positive for
        preferences; `state` the optimum mu, at most 0 if the rows are not separable.
    work : ndarray of int
        The working set.
    """

    def solve(work: NDArray, _: Solution) -> Solution:
        (preferences, equal), ties = rows.split(work), rows.ties[work]
        k = len(preferences)
        A = np.vstack([-preferences, equal, -equal])
        result = linprog(
            np.append(np.zeros(A.shape[1]), -1.0),
            A_ub=np.column_stack([A, np.ones(len(A))]),
            b_ub=np.append(-np.ones(k), np.ones(2 * len(equal))),
            bounds=[(None, None)] * A.shape[1] + [(None, 1.0)],
            method="highs-ds",
            options=_HIGHS,
        )
        if result.status != 0:
            raise RuntimeError(f"HiGHS did not solve the linear program: {result.message}")
        lam = -result.ineqlin.marginals
        dual = np.empty(len(work))
        dual[~ties] = lam[:k]
        dual[ties] = np.diff(lam[k:].reshape(2, -1), axis=0)[0]
        return Solution(result.x[:-1], dual, float(result.x[-1]))

    return grow_working_set(rows, solve)
