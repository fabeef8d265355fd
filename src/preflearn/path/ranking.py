"""The entire regularization path of the ranking SVM, on all pairs, for every lambda at
once.

With g = lambda f, the dual weights and g are piecewise linear in lambda [Zapien2009]_.
`ranksvm_path` starts at the largest lambda where anything changes and follows them
down, in the space of the n items: the m pairs meet the n x n Gram matrix of the items
through the incidence matrix only (`preflearn.path.graph_events`).

References
----------
.. [Zapien2009] K. Zapien, G. Gasso, T. Gärtner, S. Canu, "Model selection for ranking
   SVM using regularization path", Machine Learning, InTech, 2009.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.compilation import njit, njit_inner
from preflearn.core.expansion import ItemKernel, origin
from preflearn.core.gram import fixed
from preflearn.core.kernels import Kernel
from preflearn.core.validation import (
    Floats,
    Ids,
    check_array,
    check_count,
    check_labels,
    check_real,
    raise_if_any,
    require,
)
from preflearn.pairs import Pairs, as_pairs
from preflearn.path.graph import Graph, check_entries, net, residual
from preflearn.path.regularization import RegularizationPath, Selection, steps, widest
from preflearn.path.walk import Course, Walk, still

_NOTHING = 1e-13  # of the sum of sizes: scores that are rounding
_ON = 1e-9  # from the margin, in units of 1 and the largest score
_TIED = 1e-11  # a difference of scores that is rounding, in units of the largest score


class Sets(NamedTuple):
    """Ids of the pairs by their margin y (f(first) - f(second)): the partition of
    section 5 of [Zapien2009]_.

    Attributes
    ----------
    inside, on, beyond : ndarray of int
        The margin is below 1, equal to it (but for rounding), above it.
    """

    inside: Ids
    on: Ids
    beyond: Ids


class RankingPath(RegularizationPath):
    """The solutions of the ranking SVM for all lambda, as made by `ranksvm_path`."""

    def __init__(
        self,
        graph: Graph,
        course: Course,
        status: str,
        ids: Ids,
        space: ItemKernel,
        place: Ids,
    ):
        super().__init__(graph, course, status, ids)
        # of each pair, which pair of the graph it is
        self._space = space
        self._place = place

    def alpha(self, lam: float) -> Floats:
        """The dual weights at lambda, shape (m,), each in [0, 1]; equal pairs have
        equal weights."""
        return (self._weights(self._check(lam)) / self._graph.bound)[self._place]

    def decision_function(self, lam: float, X: ArrayLike | Pairs) -> Floats:
        """Scores f(x) of items at lambda, shape (n,); of Pairs, their differences first
        - second, (m,)."""
        lam = self._check(lam)
        space = self._space
        coef = self._net(lam) / lam
        if isinstance(X, Pairs):
            return X.B.differences(self._kernel(X.items) @ coef)
        return space.expansion(coef)._replace(k=space.functions.minus_constant)(
            self._features(X)
        )

    def margins(self, lam: float) -> Floats:
        """y (f(first) - f(second)) of the pairs of the fit, shape (m,)."""
        lam = self._check(lam)
        graph = self._graph
        g = graph.K @ self._net(lam)
        return ((g[graph.first] - g[graph.second]) / lam)[self._place]

    def sets(self, lam: float) -> Sets:
        """Which pairs are inside, on, and beyond the margin at lambda."""
        margins = self.margins(lam)
        near = np.abs(margins - 1) <= _ON * max(1.0, float(np.abs(margins).max()))
        return Sets(
            *(
                np.flatnonzero(s)
                for s in (~near & (margins < 1), near, ~near & (margins > 1))
            )
        )

    def kkt_residual(self, lam: float) -> float:
        """max |alpha - clip(alpha + 1 - yBf, 0, 1)| at lambda, with f computed anew
        from alpha."""
        return float(residual(self._graph, self._weights(self._check(lam)), lam))

    def objective(self, lam: float) -> float:
        """The minimum of eq.

        6: the sum of hinges, and lambda/2 times the squared norm of f.
        """
        return self._values(self._check(lam))[0]

    def select(
        self,
        pairs_valid: Pairs | ArrayLike,
        y_valid: ArrayLike,
        loss: Callable[[NDArray, Floats], float] | None = None,
    ) -> Selection:
        """The lambda with the least validation loss.

        Without `loss` it is the pair error, the share of pairs in the wrong order, as a
        function of every lambda up to the first breakpoint: between breakpoints scores
        move on lines, and the places where two items change their order are computed.
        Then ``losses[i]`` holds from ``lambdas[i]`` down to ``lambdas[i + 1]``, and the
        best lambda is the geometric middle of the widest of the best intervals. Items
        with equal kernel values are never in order. With `loss`, it is its least value
        over the breakpoints, at the largest such lambda.

        Parameters
        ----------
        pairs_valid : Pairs or array-like of shape (m', 2, p)
        y_valid : array-like of shape (m',)
            Labels -1 or +1; with `loss`, whatever it takes.
        loss : callable, optional
            ``loss(y_valid, differences)``, smaller is better.

        Raises
        ------
        ValueError
            On bad pairs or labels, or if the path has no breakpoint.
        """
        self._check_choice()
        pairs = as_pairs(pairs_valid)
        if loss is not None:
            truth = np.asarray(y_valid)
            B = pairs.B
            return self._at_breakpoints(
                self._kernel(pairs.items), lambda f: loss(truth, B.differences(f))
            )
        y = check_labels(y_valid, len(pairs), allow=(-1, 1))
        items, merged = np.unique(pairs.items, axis=0, return_inverse=True)
        k, alike = np.unique(self._kernel(items), axis=0, return_inverse=True)
        index = alike.ravel()[merged.ravel()][
            np.where((y > 0)[:, None], pairs.index, pairs.index[:, ::-1])
        ]
        keys, repeats = np.unique(
            index[:, 0] * len(k) + index[:, 1], return_counts=True
        )
        count = 0
        size = 0.0
        found = []
        order = None
        for lams, g in self._blocks(k):
            if order is None:
                size = _TIED * float(np.abs(g[:, 0]).max())
                order = np.argsort(-np.round(g[:, 0] / (size or 1.0)), kind="stable")
                count = int(np.count_nonzero(np.diff(np.argsort(order)[index]) <= 0))
            # they are sums of larger numbers
            tied = np.maximum(_TIED * np.abs(g).max(axis=0), size / 1000)
            found.append(
                _exchanges(order, np.ascontiguousarray(g.T), tied, lams, keys, repeats)
            )
        lambdas, counts = steps(
            count, float(self.breakpoints[0]), *map(list, zip(*found, strict=True))
        )
        return widest(lambdas, counts / len(y), self._end(lambdas))

    def _kernel(self, X: Floats) -> Floats:
        """Between new items and those of the fit."""
        space = self._space
        X = self._features(X)
        # differences do not see an offset, which would cost digits
        if space.kernel == "linear":
            middle = origin(space.items)
            return space.functions.k(X - middle, space.items - middle)
        return space.functions.minus_constant(X, space.functions.centres)

    def _values(self, lam: float) -> tuple[float, float]:
        graph = self._graph
        alpha = self._weights(lam)
        q = net(graph, alpha)
        g = graph.K @ q
        half = float(q @ g) / (2 * lam)
        hinges = np.maximum(0.0, 1 - (g[graph.first] - g[graph.second]) / lam)
        return float(graph.bound @ hinges) + half, float(alpha.sum()) - half

    def _features(self, X: ArrayLike) -> Floats:
        return check_array(
            X, "X", ("n", self._space.items.shape[1]), "the features of the fit"
        )


@njit
def _exchanges(order, scores, tied, lams, keys, counts):
    """Sort the order at each knot; note each exchange that changes the number of wrong
    pairs.

    Between two knots scores are linear, so two items change places at most once, and an
    insertion sort meets exactly these. Items whose scores differ by at most `tied`
    there, which is rounding, keep their order. The keys are n times the better item of
    a pair, plus the other, and occur so often.
    """
    places = np.empty(64)
    changes = np.empty(64)
    used = 0
    n = len(order)
    for k in range(1, len(lams)):
        before = scores[k - 1]
        after = scores[k]
        for i in range(1, n):
            item = order[i]
            j = i - 1
            while j >= 0 and after[order[j]] < after[item] - tied[k]:
                passed = order[j]
                order[j + 1] = passed
                change = _number(keys, counts, passed * n + item) - _number(
                    keys, counts, item * n + passed
                )
                if change != 0:
                    if used == len(places):
                        places = np.append(places, np.empty(used))
                        changes = np.append(changes, np.empty(used))
                    ahead = before[passed] - before[item]
                    behind = after[item] - after[passed]
                    share = max(ahead, 0.0) / (max(ahead, 0.0) + behind)
                    places[used], changes[used] = (
                        lams[k - 1] - share * (lams[k - 1] - lams[k]),
                        change,
                    )
                    used += 1
                j -= 1
            order[j + 1] = item
    return places[:used].copy(), changes[:used].copy()


@njit_inner
def _number(keys, counts, key):
    """How often this pair occurs."""
    k = 0
    end = len(keys)
    # half of them each time; numpy.searchsorted takes longer to compile than all of
    # this
    while k < end:
        middle = (k + end) // 2
        k, end = (middle + 1, end) if keys[middle] < key else (k, middle)
    return counts[k] if k < len(keys) and keys[k] == key else 0


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
        Where to stop. At 0 the path ends at 1e-9 of the first breakpoint, or, where no
        event is left, as soon as rounding would show in f; if no pair is inside the
        margin any more, it has no end.
    max_events : int, optional
        Stop after at most so many breakpoints.

    Returns
    -------
    RegularizationPath
        Its `status` is "complete", "max_events", or "rounding" where a bound on the
        rounding of the margins, or what the margins were measured to be off, exceeded
        1e-9 before lambda_min, or rounding left open which pairs stay on the margin;
        its `lambda_end` says how far it came. "rounding" also gives a
        ConvergenceWarning.

    Raises
    ------
    NotPositiveSemidefiniteError
        If the kernel is not positive semi-definite on the items.
    ValueError
        On bad pairs, labels (ties among them), kernels or parameters, a Gram matrix
        that is not symmetric, or a lambda_min that is not below the first breakpoint.

    Notes
    -----
    An event costs products with a few rows of the Gram matrix of the items (n x n),
    which with vectors of length m is all that is stored; `benchmarks/path.md` has
    times.

    Examples
    --------
    >>> path = ranksvm_path(Pairs([[0.0], [1.0], [3.0]], [[1, 0], [2, 1]]), [1, 1], "linear")
    >>> path.breakpoints.tolist(), path.decision_function(1.0, [[2.0]]).tolist()
    ([6.0, 2.0, 1.0], [2.0])
    """
    pairs = as_pairs(pairs)
    y = _check_preferences(y, len(pairs))
    lambda_min = check_real(
        lambda_min, "lambda_min", "a finite number of at least 0", least=0.0
    )
    most = np.inf if max_events is None else check_count(max_events, "max_events", 1)
    choice: Any = SimpleNamespace(
        kernel=kernel, gamma=gamma, degree=degree, coef0=coef0
    )
    space = ItemKernel.of(choice, pairs)
    K = fixed(space.centred_gram()[0])
    # the better item first
    index = np.where((y > 0)[:, None], space.B.index, space.B.index[:, ::-1])
    key = index[:, 0] * len(K) + index[:, 1]
    key, ids, place, count = np.unique(
        key, return_index=True, return_inverse=True, return_counts=True
    )
    first = (key // len(K)).astype(np.uint32)
    second = (key % len(K)).astype(np.uint32)
    bound = count.astype(np.float64)
    largest = float(np.abs(K.diagonal()).max())
    check_entries(largest, "the largest k(x, x)")
    graph = Graph(K, len(K), largest, first, second, bound, 0.0)
    return RankingPath(
        graph, *_follow(graph, lambda_min, most), ids, space, place
    )._warned("ranksvm_path")


def _check_preferences(y: ArrayLike, m: int) -> Floats:
    y = check_labels(y, m)
    expected = "preferences, -1 or +1: leave out ties, of which there are "
    expected += f"{np.count_nonzero(y == 0)} and which have no loss here (pairs[y != 0], y[y != 0])"
    raise_if_any(y == 0, y, "y", expected)
    return y.astype(np.float64)


def _follow(graph: Graph, lambda_min: float, most: float) -> tuple[Course, str]:
    """The course of the weights down to lambda_min, and how it ended."""
    walk = Walk(graph, graph.bound.copy())
    largest = float((walk.g[graph.first] - walk.g[graph.second]).max())
    if largest <= _NOTHING * walk.size:
        return still(walk.alpha, lambda_min), "complete"
    expected = (
        f"one below {largest:g}, the first breakpoint, above which all weights are 1"
    )
    require(lambda_min < largest, lambda_min, "lambda_min", expected)
    return walk.down(largest, lambda_min, most)
