"""The entire regularization path of the ranking SVM, on all pairs, for every lambda at once.

With g = lambda f, the dual weights and g are piecewise linear in lambda [Zapien2009]_. `ranksvm_path` starts
at the largest lambda where anything changes and follows them down, in the space of the n items: the m pairs
meet the n x n Gram matrix of the items through the incidence matrix only (`preflearn.path.graph_events`).

References
----------
.. [Zapien2009] K. Zapien, G. Gasso, T. Gärtner, S. Canu, "Model selection for ranking SVM using
   regularization path", Machine Learning, InTech, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import Floats, check_count, check_labels, check_real, require
from preflearn.ground.expansion import ItemKernel
from preflearn.ground.gram import combine, fixed
from preflearn.ground.kernels import Kernel
from preflearn.pairs import Pairs, as_pairs
from preflearn.path.elbow import solve
from preflearn.path.graph import BOUND, Graph, gather, net, new_front
from preflearn.path.graph_events import (
    ENDED,
    FULL,
    LOST,
    QUIET,
    REACHED,
    SCALED,
    TOLERANCE,
    Trace,
    Watch,
    follow,
    gaps,
    new_trace,
    tally,
)
from preflearn.path.ranking_path import Course, Problem, RankingPath

_EVENTS = 400  # in one stretch
_ROOM = 50  # of the elbow at first
_REACH = 0.01  # of the first stretch
_FEW = 1000  # pairs who are all watched
_LAST = 1e-9  # breakpoints below this part of the first are rounding
_SETTLED = 1e-12  # relative to the largest g: smaller errors of the elbow are left alone
_EPS = 1.1e-16  # the rounding of one number
_SMALLEST = 1e-100  # entry of a Gram matrix whose square is above 0
_NOTHING = 1e-13  # of the sum of sizes: scores that are rounding
# What decides how many pairs are watched, in nanoseconds: to pass over a pair, to watch one for an event.
_PASS, _WATCH, _SQUARE = 1.6, 4.0, 0.4


@dataclass
class _Parameters:
    kernel: Kernel
    gamma: float | Literal["scale"]
    degree: float
    coef0: float


def ranksvm_path(
    pairs: Pairs | ArrayLike,
    y: ArrayLike,
    kernel: Kernel = "rbf",
    *,
    gamma: float | Literal["scale"] = "scale",
    degree: float = 3,
    coef0: float = 1.0,
    lambda_min: float = 0.0,
    max_events: int | None = None,
) -> RankingPath:
    """All solutions of the ranking SVM, for every lambda, on the full graph.

    Solves, for each lambda, eq. 6 of [Zapien2009]_, with P = diag(y) B::

        minimise sum_i max(0, 1 - y_i (f(first_i) - f(second_i))) + lambda/2 |f|^2,
        f(x) = 1/lambda sum_i alpha_i y_i (k(first_i, x) - k(second_i, x)),    0 <= alpha_i <= 1.

    Parameters
    ----------
    pairs : Pairs or array-like of shape (m, 2, p)
        Cycles of preferences are allowed. Equal pairs are kept as one with a weight.
    y : array-like of shape (m,)
        +1 first better, -1 second better. A tie has no hinge: drop it before.
    kernel, gamma, degree, coef0
        As in `SVMRank`; "precomputed": the items of the pairs are the Gram matrix.
    lambda_min : float
        Where to stop. At 0 the path ends at 1e-9 of the first breakpoint, or, where no event is left, as
        soon as rounding would show in f; if no pair is inside the margin any more, it has no end.
    max_events : int, optional
        Stop after at most so many breakpoints.

    Returns
    -------
    RegularizationPath
        Its `status` is "complete", "max_events", or "rounding" where a bound on the rounding of the margins
        exceeded 1e-9 before lambda_min; its `lambda_end` says how far it came.

    Raises
    ------
    NotPositiveSemidefiniteError
        If the kernel is not positive semi-definite on the items.
    ValueError
        On bad pairs, labels (ties among them), kernels or parameters, a Gram matrix that is not symmetric,
        or a lambda_min that is not below the first breakpoint.

    Notes
    -----
    An event costs products with a few rows of the Gram matrix of the items (n x n), which with vectors of
    length m is all that is stored; `benchmarks/README.md` has times.

    Examples
    --------
    >>> path = ranksvm_path(Pairs([[0.0], [1.0], [3.0]], [[1, 0], [2, 1]]), [1, 1], "linear")
    >>> path.breakpoints.tolist(), path.decision_function(1.0, [[2.0]]).tolist()
    ([6.0, 2.0, 1.0], [2.0])
    """
    pairs = as_pairs(pairs)
    y = _check_preferences(y, len(pairs))
    lambda_min = check_real(lambda_min, "lambda_min", "a finite number of at least 0", least=0.0)
    most = None if max_events is None else check_count(max_events, "max_events", 1)
    space = ItemKernel.of(_Parameters(kernel, gamma, degree, coef0), pairs)
    problem = Problem.of(space, fixed(space.centred_gram()[0]), y)
    largest, expected = (
        problem.graph.largest,
        f"0, or {_SMALLEST:g} to {1 / _SMALLEST:g}: rescale the features",
    )
    require(largest == 0 or _SMALLEST <= largest <= 1 / _SMALLEST, largest, "the largest k(x, x)", expected)
    return RankingPath(problem, *_follow(problem.graph, lambda_min, most))


def _check_preferences(y: ArrayLike, m: int) -> Floats:
    y = check_labels(y, m)
    if not np.all(y):
        place = int(np.argmin(y != 0))
        raise ValueError(
            f"y[{place}] is 0, a tie, one of {np.count_nonzero(y == 0)}; expected preferences, -1 or +1: "
            "the ranking SVM has no loss for ties, so leave them out (pairs[y != 0], y[y != 0])"
        )
    return y.astype(np.float64)


def _follow(graph: Graph, lambda_min: float, most: int | None) -> tuple[Course, str]:
    """The course of the weights down to lambda_min, and how it ended."""
    walk = _Walk(graph)
    if walk.lam <= _NOTHING * walk.size:
        return walk.course()._replace(end=lambda_min), "complete"
    if lambda_min >= walk.lam:
        raise ValueError(
            f"lambda_min is {lambda_min:g}, and above {walk.lam:g} all weights are 1; expected a lambda_min "
            f"below {walk.lam:g}, the first breakpoint"
        )
    end, quiet = max(lambda_min, _LAST * walk.lam), False
    while True:
        why = walk.advance(end, _EVENTS if most is None else min(_EVENTS, most - walk.count))
        if why == LOST:
            return walk.course(), "complete" if quiet and lambda_min == 0 else "rounding"
        if why == ENDED:
            return walk.course(), "complete"
        if why == SCALED:
            return walk.course()._replace(end=lambda_min), "complete"
        if walk.count == most:
            return walk.course(), "max_events"
        quiet = why == QUIET


class _Walk:
    """Where the path is, and everything that has happened so far."""

    def __init__(self, graph: Graph):
        m, n = len(graph.first), len(graph.K)
        self._graph, self._alpha, self._side = graph, graph.bound.copy(), np.full(m, -1.0)
        self._g, self._elbow = np.empty(n), np.zeros(0, dtype=np.int64)
        self._resting = net(graph, self._alpha)  # B'alpha of all who are not in the elbow
        self._front, self._reach = new_front(_ROOM, n), np.inf if m <= _FEW else _REACH
        self._rounding = self._spread()
        self.lam = float((self._g[graph.first] - self._g[graph.second]).max())
        self.size = self._rounding / _EPS
        self.count, self._noted = 0, 0
        self._knots, self._changes = [np.array([self.lam])], [np.zeros((0, 3), dtype=np.int64)]
        self._marks, self._elbows, self._alphas = [], [self._elbow], [np.zeros(0)]

    def advance(self, end: float, events: int) -> int:
        """Follow some events; returns what `follow` does."""
        graph, n = self._graph, len(self._graph.K)
        self._rounding = self._spread()
        self._settle()
        ids, on, inside, worst = gaps(graph, self._side, self._g, self.lam, self._reach, self._rounding)
        if worst > TOLERANCE:
            return LOST
        self._mark()
        trace = new_trace(events)
        count, why = self._follow(ids, trace, self._reach, end, inside)
        if why == REACHED and count == 0:  # the next event is far away: look at all pairs for it
            ids, trace = np.arange(len(self._side), dtype=np.int32), new_trace(1)
            count, why = self._follow(ids, trace, np.inf, end, 0)
        elif np.isfinite(self._reach):
            effort = (_PASS * len(self._side) + _SQUARE * n * n) / (
                _WATCH * (len(ids) - on + 1) * max(count, 1)
            )
            self._reach *= min(2.0, max(0.5, effort**0.5))
        if why == FULL:
            self._front = new_front(2 * len(self._front.rows), n)
        return why

    def _follow(
        self, ids: NDArray[np.int32], trace: Trace, reach: float, end: float, inside: int
    ) -> tuple[int, int]:
        """Follow these pairs, and note what happens."""
        graph, nothing = self._graph, np.zeros((2, len(ids)))
        watch = Watch(
            ids, graph.first[ids], graph.second[ids], graph.bound[ids], self._alpha[ids],
            self._side[ids], *nothing,
        )  # fmt: skip
        tally(self._resting, watch, -1.0)
        front = self._front
        gather(graph.K, watch, front, np.searchsorted(ids, self._elbow), np.full(len(self._elbow), -1.0))
        count, why = follow(graph, watch, front, self._g, trace, reach, self.lam, end, self._rounding, inside)
        tally(self._resting, watch, 1.0)
        self._alpha[ids], self._side[ids] = watch.alpha, watch.side
        self._elbow = ids[front.elbow.places[: front.elbow.size[0]]].astype(np.int64)
        self._note(trace, count)
        return count, why

    def course(self) -> Course:
        """Everything so far."""
        sizes = [len(elbow) for elbow in self._elbows]
        marks = np.array([*self._marks, (self.count, self._noted)])
        return Course(
            np.concatenate(self._knots), np.concatenate(self._changes), marks, np.cumsum(sizes),
            np.concatenate(self._elbows), np.concatenate(self._alphas), self.lam,
        )  # fmt: skip

    def _spread(self) -> float:
        """Compute g anew from the weights, and return a bound on its rounding."""
        graph, elbow, q = self._graph, self._elbow, self._resting.copy()
        alpha = self._alpha[elbow]
        np.add.at(q, graph.first[elbow], alpha)
        np.subtract.at(q, graph.second[elbow], alpha)
        self._g[:] = combine(graph.K, np.flatnonzero(q), q[q != 0])
        inner = float(alpha.sum())  # the other weights are whole numbers
        return _EPS * (float(np.abs(q).sum()) + inner) * self._graph.largest

    def _settle(self) -> None:
        """Put the elbow on the margin again, from which rounding has moved it."""
        graph, alpha = self._graph, self._alpha[self._elbow]
        free = self._elbow[(alpha > BOUND) & (alpha < graph.bound[self._elbow] - BOUND)]
        error = self.lam - (self._g[graph.first[free]] - self._g[graph.second[free]])
        if np.abs(error).max(initial=0.0) <= _SETTLED * max(self.lam, float(np.abs(self._g).max())):
            return
        front, delta = new_front(len(free), len(graph.K)), error.copy()
        gather(graph.K, graph, front, free, error)
        solve(front.elbow, delta, 0.0, 0.0)
        self._alpha[free] = np.clip(self._alpha[free] + delta, 0.0, graph.bound[free])
        self._spread()

    def _mark(self) -> None:
        self._marks.append((self.count, self._noted))
        self._elbows.append(self._elbow)
        self._alphas.append(self._alpha[self._elbow])

    def _note(self, trace: Trace, count: int) -> None:
        changes = trace.changes[: trace.used[0]].copy()
        changes[:, 0] += self.count
        self._knots.append(trace.knots[1 : count + 1].copy())
        self._changes.append(changes)
        self.lam = float(trace.knots[count])
        self.count, self._noted = self.count + count, self._noted + len(changes)
