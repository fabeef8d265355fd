"""The two programs of section 3.1 of [Venuto2017]_ on arrays: of many rows, few matter.

The rows are differences, preferences turned the right way. A working set of rows grows by those that
its own optimum violates, so that all rows are only read, some ten times, and never factorised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgelsy
from scipy.optimize import linprog, nnls

from preflearn.pairs import Pairs

__all__ = [
    "Solution",
    "column_scales",
    "extremes",
    "grow_working_set",
    "largest_ratio",
    "nearest_points",
    "optimum_of_least_norm",
    "oriented_differences",
]

_EPS = np.finfo(np.float64).eps
_SMALL = 1e-140  # differences below this, and above its inverse, lose digits when squared
_DUAL = 1e-13  # a dual weight above this counts; they sum to 1
_ROUNDING = 1e-14  # by which constraints may be missed where nothing else is feasible
_RANK = 1e-12  # smallest singular value, relative to the largest, that counts
_HIGHS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def oriented_differences(pairs: Pairs, y: NDArray) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The rows y_i d_i of preferences and d_j of ties, shape (m, p), and which of them are ties.

    Raises
    ------
    ValueError
        If a difference overflows, or all those of a feature are so small that their squares vanish.
    """
    with np.errstate(over="ignore"):
        rows = pairs.items[pairs.index[:, 0]]
        rows -= pairs.items[pairs.index[:, 1]]
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise ValueError(f"the difference of pair {row} overflows in feature {column}; scale the features")
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    extreme = (largest > 0) & ((largest < _SMALL) | (largest > 1 / _SMALL))
    if extreme.any():
        column = int(np.flatnonzero(extreme)[0])
        raise ValueError(
            f"the largest difference in feature {column} is {largest[column]:.1e}; "
            f"scale the features: expected it to be 0 or between {_SMALL} and {1 / _SMALL:.0e}"
        )
    np.negative(rows, out=rows, where=(y == -1)[:, None])
    return rows, y == 0


def column_scales(rows: NDArray) -> NDArray[np.float64]:
    """Powers of two, shape (p,), that bring the largest entry of each column into [1, 2)."""
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    return np.ldexp(1.0, np.where(largest > 0, np.clip(np.frexp(largest)[1] - 1, -1000, 1000), 0))


def extremes(values: NDArray, ties: NDArray[np.bool_]) -> tuple[float, float]:
    """s = min of the preferences' values, and t = max of the ties' absolute values (0 without ties)."""
    s = values[~ties].min(initial=np.inf)
    return float(s), float(np.abs(values[ties]).max(initial=0.0))


class Solution(NamedTuple):
    """What a solver says about some rows: weights, dual weights of the rows, and its own state."""

    coef: NDArray[np.float64]
    dual: NDArray[np.float64]
    state: Any = None


def grow_working_set(
    rows: NDArray,
    ties: NDArray[np.bool_],
    solve: Callable[[NDArray, Solution], Solution],
    work: NDArray | None = None,
) -> tuple[Solution, NDArray[np.int64]]:
    """Solve a problem whose answer depends on few rows, by adding those that an answer violates.

    Parameters
    ----------
    rows : ndarray of shape (m, p)
        Oriented differences.
    ties : ndarray of bool, shape (m,)
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
    batch = 2 * rows.shape[1] + 10
    rounding = _EPS * np.sqrt(rows.shape[1]) * np.maximum(rows.max(axis=0), -rows.min(axis=0))
    inside = np.zeros(len(rows), dtype=bool)
    solution = Solution(_rough_guess(rows, ties), np.empty(0))
    if work is None:
        guess = rows @ solution.coef
        work = _worst(np.where(ties, np.abs(guess), -guess), ~inside, ties, batch)
    while True:
        inside[work] = True
        solution = solve(work, solution)
        values = rows @ solution.coef
        s, t = extremes(values[work], ties[work])
        excess = np.where(ties, np.abs(values) - t, s - values)
        new = _worst(excess, ~inside & (excess > rounding @ np.abs(solution.coef)), ties, batch)
        if len(new) == 0 or s <= t:
            return solution, work
        work = np.concatenate([work, new])


def _rough_guess(rows: NDArray, ties: NDArray) -> NDArray[np.float64]:
    """The mean preference over the second moments, as in a linear discriminant, of enough rows."""
    some = slice(None, None, max(1, len(rows) // (50 * rows.shape[1])))
    moments = rows[some].T @ rows[some]
    ridge = _RANK * max(np.trace(moments), np.finfo(np.float64).tiny) * np.eye(len(moments))
    return np.linalg.solve(moments + ridge, rows[~ties].mean(axis=0))


def _worst(excess: NDArray, allowed: NDArray, ties: NDArray, batch: int) -> NDArray[np.int64]:
    """Ids of at most `batch` preferences and as many ties, those with the largest excess."""
    chosen = []
    for kind in (allowed & ~ties, allowed & ties):
        ids = np.flatnonzero(kind)
        if len(ids) > batch:
            ids = ids[np.argpartition(excess[ids], -batch)[-batch:]]
        chosen.append(ids)
    return np.concatenate(chosen)


def largest_ratio(rows: NDArray, ties: NDArray[np.bool_]) -> tuple[Solution, NDArray[np.int64]]:
    """Solve the LP, eq. 7 of [Venuto2017]_, for a margin of any sign, with HiGHS on a working set.

    Parameters
    ----------
    rows : ndarray of shape (m, p)
        Oriented differences, in columns of similar size.
    ties : ndarray of bool, shape (m,)

    Returns
    -------
    solution : Solution
        `coef` w; `dual` of the working set, signed so that it sums its rows to 0: positive for
        preferences; `state` the optimum mu, at most 0 if the rows are not separable.
    work : ndarray of int
        The working set.
    """

    def solve(work: NDArray, _: Solution) -> Solution:
        preferences, equal = rows[work][~ties[work]], rows[work][ties[work]]
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
        dual[~ties[work]] = lam[:k]
        dual[ties[work]] = np.diff(lam[k:].reshape(2, -1), axis=0)[0]
        return Solution(result.x[:-1], dual, float(result.x[-1]))

    return grow_working_set(rows, ties, solve)


def optimum_of_least_norm(
    rows: NDArray, scales: NDArray, ties: NDArray, solution: Solution, work: NDArray
) -> NDArray[np.float64]:
    """The least of all optimal w of the LP, to rounding, from one optimum and its dual weights.

    By complementary slackness the optimal w are the feasible ones at which each constraint with a
    dual weight is tight. These linear equations give mu and, more often than not, all of w.

    Parameters
    ----------
    rows : ndarray of shape (m, p)
        Oriented differences.
    scales : ndarray of shape (p,)
        Column scales: `solution` and `work` are those of `largest_ratio(rows / scales, ties)`.
    ties : ndarray of bool, shape (m,)
    """
    carries = np.abs(solution.dual) > _DUAL
    if solution.state > 1 - _RANK:  # then mu = 1, and w·d = 0 for each tie
        carries |= ties[work]
    label = np.where(ties[work[carries]], -1.0, 1.0)
    tight = rows[work[carries]] * np.where(solution.dual[carries] < 0, -1.0, 1.0)[:, None]
    if solution.state > 1 - _RANK:
        tight, label = np.vstack([tight, np.zeros_like(rows[:1])]), np.append(label, -1.0)
    equations = np.column_stack([tight / scales, -np.ones(len(tight))])
    vertex, _, rank, _ = np.linalg.lstsq(equations, label, rcond=_RANK)
    if rank == rows.shape[1] + 1:
        return vertex[:-1] / scales
    unit = scales.max()
    equations[:, :-1] = tight / unit
    *least, mu = np.linalg.lstsq(equations, label, rcond=_RANK)[0]
    _, singular, directions = np.linalg.svd(equations[:, :-1])
    free = directions[np.count_nonzero(singular > _RANK * singular[0]) :]
    size = max(1.0, float(np.linalg.norm(solution.coef / scales * unit)))

    def solve(work: NDArray, _: Solution) -> Solution:
        preferences, equal = data[work][~ties[work]], data[work][ties[work]]
        G = np.vstack([preferences, equal, -equal])
        h = np.append(np.full(len(preferences), 1 + mu), np.full(2 * len(equal), mu - 1))
        return Solution(least + free.T @ _least_distance(G @ free.T, h - G @ least, size), np.empty(0))

    data, least = rows / unit, np.array(least)
    return grow_working_set(data, ties, solve, work)[0].coef / unit


def _least_distance(G: NDArray, h: NDArray, size: float) -> NDArray[np.float64]:
    """The least z with G z >= h, which exists and is of about `size`, through its dual by NNLS."""
    reach = np.abs(G).max(axis=1)
    binding = reach > _RANK * reach.max(initial=0.0)
    G, h = G[binding], h[binding] / size
    x, _ = nnls(np.vstack([G.T, h - _ROUNDING]), np.append(np.zeros(G.shape[1]), 1.0))
    return size * np.linalg.lstsq(G[x > 0], h[x > 0], rcond=_RANK)[0]


def nearest_points(rows: NDArray, ties: NDArray[np.bool_]) -> tuple[Solution, NDArray[np.int64]]:
    """The vector from the hull of the ties, both ways, to the hull of the preferences.

    Wolfe's active-set method for the point of least norm in the hull of all y_i d_i - t_j, on a
    working set of pairs: its state is the corral of the differences that carry a dual weight.

    Returns
    -------
    solution : Solution
        `coef` the vector x; `dual` of the working set, signed so that its rows sum to x: positive
        for preferences, with sum 1. If the hulls meet, x is of the size of rounding errors.
    work : ndarray of int
        The working set.
    """

    def solve(work: NDArray, previous: Solution) -> Solution:
        corral = _least_norm_point(rows, work[~ties[work]], work[ties[work]], previous)
        dual = np.zeros(len(ties))
        lam = _least_squares(corral.points.T, corral.x)  # less rounding than in the steps
        lam = lam / lam.sum() if lam.min() > 0 else corral.lam
        np.add.at(dual, corral.ids[:, 0], lam)
        np.add.at(dual, corral.ids[:, 1], -corral.signs * lam)
        return Solution(corral.x, dual[work], corral)

    return grow_working_set(rows, ties, solve)


class _Corral(NamedTuple):
    """Independent differences y_i d_i - t_j, t_j = signs_j d_j, their convex weights, and the point x."""

    points: NDArray[np.float64]
    ids: NDArray[np.int64]
    signs: NDArray[np.float64]
    lam: NDArray[np.float64]
    x: NDArray[np.float64]

    def with_point(self, point: NDArray, ids: list[int], sign: float) -> _Corral:
        points, lam = np.vstack([self.points, point]), np.append(self.lam, 0.0)
        return _Corral(points, np.vstack([self.ids, ids]), np.append(self.signs, sign), lam, self.x)

    def kept(self, stays: NDArray, lam: NDArray) -> _Corral:
        return _Corral(self.points[stays], self.ids[stays], self.signs[stays], lam[stays], self.x)


def _least_norm_point(rows: NDArray, preferred: NDArray, tied: NDArray, previous: Solution) -> _Corral:
    """Wolfe's method: add the difference that lies lowest, go to the least point of the affine hull
    or as far towards it as the weights stay positive, drop what lost its weight, repeat."""
    preferences, equal = rows[preferred], rows[tied]
    reach = np.abs(preferences).max(axis=0) + np.abs(equal).max(axis=0)
    x, corral = previous.coef, previous.state
    while True:
        i, values = (preferences @ x).argmin(), equal @ x
        j = np.abs(values).argmax()
        sign = 1.0 if values[j] >= 0 else -1.0
        point, ids = preferences[i] - sign * equal[j], [preferred[i], tied[j]]
        if corral is None:
            corral = _Corral(point[None], np.array([ids]), np.array([sign]), np.ones(1), point)
        elif (x - point) @ x <= 4 * _EPS * (reach @ np.abs(x)):
            return corral
        else:
            grown = _affine_step(corral.with_point(point, ids, sign))
            if grown.x @ grown.x >= x @ x:  # rounding alone is left
                return corral
            corral = grown
        x = corral.x


def _affine_step(corral: _Corral) -> _Corral:
    """Move to the least point x of the affine hull, dropping points on the way.

    With the weights settled, x is computed anew from z·x = x·x for all points z: their weighted sum
    would cancel where the hulls are close to each other.
    """
    while True:
        base, lam = corral.points[0], corral.lam
        rest = _least_squares((corral.points[1:] - base).T, -base)
        goal = np.append(1 - rest.sum(), rest)
        if goal.min() > 0:
            u = _least_squares(corral.points, np.ones(len(goal)))
            if np.abs(corral.points @ u - 1).max() < 0.5:
                return corral._replace(lam=goal, x=u / (u @ u))
            return corral._replace(lam=goal, x=goal @ corral.points)  # the affine hull holds the origin
        falling = np.flatnonzero(goal <= 0)
        held = lam[falling]
        steps = np.divide(held, held - goal[falling], out=np.zeros(len(held)), where=held > 0)
        lam = np.maximum(lam + steps.min() * (goal - lam), 0.0)
        stays = np.ones(len(lam), dtype=bool)
        stays[falling[steps == steps.min()]] = False
        corral = corral.kept(stays, lam)


def _least_squares(A: NDArray, b: NDArray) -> NDArray[np.float64]:
    """The least solution of A z = b, by a pivoted QR factorisation: columns may differ in size.

    LAPACK is called directly: scipy.linalg.lstsq takes longer to check its input than to solve.
    """
    m, n = A.shape
    if n == 0:
        return np.empty(0)
    padded = np.zeros((max(m, n), 1))
    padded[:m, 0] = b
    work = m * n + 64 * (m + n + 2)
    return dgelsy(A, padded, np.zeros(n, dtype=np.int32), _EPS, work)[1][:n, 0]
