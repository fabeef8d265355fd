"""Regularization path of the ranking SVM, on all pairs, for every lambda.

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

from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.compilation import njit
from preflearn.core.expansion import ItemKernel, origin
from preflearn.core.gram import combine, fixed
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
from preflearn.path.follower import PathFollower, WeightPath, constant_path
from preflearn.path.graph import PairGraph, check_entries, item_coefficients
from preflearn.path.regularization import RegularizationPath, Selection

# a largest margin below this, relative to the sum of sizes, is rounding
_MIN_MARGIN = 1e-13
# distance from the margin that is rounding, relative to 1 and the largest margin
_ON_MARGIN = 1e-9
_TIE_TOL = 1e-11  # a score difference, relative to the largest score, that is rounding


class MarginPartition(NamedTuple):
    """Ids of the pairs by their margin y (f(first) - f(second)).

    This is the partition of section 5 of [Zapien2009]_.

    Attributes
    ----------
    inside, on, beyond : ndarray of int
        The margin is below 1, equal to it (up to rounding), above it.
    """

    inside: Ids
    on: Ids
    beyond: Ids


class RankingPath(RegularizationPath):
    """The solutions of the ranking SVM for all lambda, as returned by `ranksvm_path`."""

    def __init__(
        self,
        graph: PairGraph,
        path: WeightPath,
        status: str,
        ids: Ids,
        item_kernel: ItemKernel,
        graph_pair: Ids,
    ):
        super().__init__(graph, path, status, ids)
        self._item_kernel = item_kernel
        self._graph_pair = graph_pair  # of each pair of the fit

    def alpha(self, lam: float) -> Floats:
        """Dual weights at lambda, shape (m,), each in [0, 1].

        Equal pairs have equal weights.
        """
        weights = self._weights(self._check_lambda(lam))
        return (weights / self._graph.bound)[self._graph_pair]

    def decision_function(self, lam: float, X: ArrayLike | Pairs) -> Floats:
        """Scores f(x) of items at lambda, shape (n,); of Pairs, f(first) - f(second)."""
        lam = self._check_lambda(lam)
        coef = self._coefficients(lam) / lam
        if isinstance(X, Pairs):
            return X.B.differences(self._kernel(X.items) @ coef)
        expansion = self._item_kernel.expansion(coef)
        return expansion._replace(k=self._item_kernel.functions.minus_constant)(
            self._check_features(X)
        )

    def margins(self, lam: float) -> Floats:
        """y (f(first) - f(second)) of the pairs of the fit, shape (m,)."""
        lam = self._check_lambda(lam)
        graph = self._graph
        g = graph.K @ self._coefficients(lam)
        return ((g[graph.first] - g[graph.second]) / lam)[self._graph_pair]

    def sets(self, lam: float) -> MarginPartition:
        """Which pairs are inside, on, and beyond the margin at lambda."""
        margins = self.margins(lam)
        tolerance = _ON_MARGIN * max(1.0, float(np.abs(margins).max()))
        on = np.abs(margins - 1) <= tolerance
        return MarginPartition(
            np.flatnonzero(~on & (margins < 1)),
            np.flatnonzero(on),
            np.flatnonzero(~on & (margins > 1)),
        )

    def kkt_residual(self, lam: float) -> float:
        """max |alpha - clip(alpha + 1 - yBf, 0, 1)|, with f computed anew from alpha."""
        lam = self._check_lambda(lam)
        graph = self._graph
        alpha = self._weights(lam)
        q = item_coefficients(graph, alpha)
        g = combine(graph.K, np.flatnonzero(q), q[q != 0])
        fraction = alpha / graph.bound
        excess = 1 - (g[graph.first] - g[graph.second]) / lam
        wrong = np.abs(fraction - np.clip(fraction + excess, 0.0, 1.0))
        return float(np.max(wrong, initial=0.0))

    def objective(self, lam: float) -> float:
        """The minimum of eq. 6: the sum of hinges plus lambda/2 |f|²."""
        lam = self._check_lambda(lam)
        graph = self._graph
        q = self._coefficients(lam)
        g = graph.K @ q
        hinges = np.maximum(0.0, 1 - (g[graph.first] - g[graph.second]) / lam)
        return float(graph.bound @ hinges) + float(q @ g) / (2 * lam)

    def select(
        self,
        pairs_valid: Pairs | ArrayLike,
        y_valid: ArrayLike,
    ) -> Selection:
        """The lambda with the lowest validation loss.

        This is the pair error, the fraction of pairs in the wrong order, as a function
        of every lambda up to the first breakpoint: between breakpoints scores move on
        lines, and the places where two items change their order are computed.
        ``losses[i]`` holds from ``lambdas[i]`` down to ``lambdas[i + 1]``, and the best
        lambda is the geometric middle of the widest of the best intervals. Items with
        equal kernel values are never in order.

        Parameters
        ----------
        pairs_valid : Pairs or array-like of shape (m', 2, p)
        y_valid : array-like of shape (m',)
            Labels -1 or +1.

        Raises
        ------
        ValueError
            On bad pairs or labels, or if the path has no breakpoint.
        """
        self._check_breakpoints()
        pairs = as_pairs(pairs_valid)
        y = check_labels(y_valid, len(pairs), allow=(-1, 1))
        # Items with equal features, or equal kernel values, have equal scores.
        items, item_of = np.unique(pairs.items, axis=0, return_inverse=True)
        k, row_of = np.unique(self._kernel(items), axis=0, return_inverse=True)
        oriented = np.where((y > 0)[:, None], pairs.index, pairs.index[:, ::-1])
        index = row_of.ravel()[item_of.ravel()][oriented]
        # how often the first of two items is the better one, less how often the other is
        net = np.zeros((len(k), len(k)), dtype=np.int64)
        np.add.at(net, tuple(index.T), 1)
        net -= net.T.copy()
        n_wrong = 0
        size = 0.0
        places = []
        changes = []
        order = None
        for lams, g in self._score_blocks(k):
            if order is None:
                size = _TIE_TOL * float(np.abs(g[:, 0]).max())
                order = np.argsort(-np.round(g[:, 0] / (size or 1.0)), kind="stable")
                rank = np.argsort(order)
                n_wrong = int(np.count_nonzero(np.diff(rank[index]) <= 0))
            # scores are sums of larger numbers
            tied = np.maximum(_TIE_TOL * np.abs(g).max(axis=0), size / 1000)
            scores = np.ascontiguousarray(g.T)
            place, change = _exchanges(order, scores, tied, lams, net)
            places.append(place)
            changes.append(change)
        return self._select_by_count(n_wrong, places, changes, len(y))

    def _coefficients(self, lam: float) -> Floats:
        """B'alpha at lambda."""
        return item_coefficients(self._graph, self._weights(lam))

    def _kernel(self, X: Floats) -> Floats:
        """The kernel between new items and those of the fit."""
        kernel = self._item_kernel
        X = self._check_features(X)
        # differences do not see an offset, which would cost digits
        if kernel.kernel == "linear":
            middle = origin(kernel.items)
            return kernel.functions.k(X - middle, kernel.items - middle)
        return kernel.functions.minus_constant(X, kernel.functions.centres)

    def _check_features(self, X: ArrayLike) -> Floats:
        shape = ("n", self._item_kernel.items.shape[1])
        return check_array(X, "X", shape, "the features of the fit")


@njit
def _exchanges(order, scores, tied, lams, net):
    """Sort the order at each knot; record exchanges that change the wrong pairs.

    Between two knots scores are linear, so two items change places at most once, and an
    insertion sort meets exactly these. Items whose scores differ by at most `tied`
    there, which is rounding, keep their order.
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
                now_wrong = net[passed, item]
                if now_wrong != 0:
                    if used == len(places):
                        places = np.append(places, np.empty(used))
                        changes = np.append(changes, np.empty(used))
                    lead_before = max(before[passed] - before[item], 0.0)
                    lead_after = after[item] - after[passed]
                    fraction = lead_before / (lead_before + lead_after)
                    places[used] = lams[k - 1] - fraction * (lams[k - 1] - lams[k])
                    changes[used] = now_wrong
                    used += 1
                j -= 1
            order[j + 1] = item
    return places[:used].copy(), changes[:used].copy()


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
        Value of lambda at which to stop. At 0 the path ends at 1e-9 of the first
        breakpoint, or, where no event is left, as soon as rounding would show in f; if
        no pair is inside the margin any more, it has no end.
    max_events : int, optional
        Maximum number of breakpoints.

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
    y = check_labels(y, len(pairs))
    expected = "preferences, -1 or +1: leave out ties, of which there are "
    expected += f"{np.count_nonzero(y == 0)} and which have no loss here (pairs[y != 0], y[y != 0])"
    raise_if_any(y == 0, y, "y", expected)
    expected = "a finite number of at least 0"
    lambda_min = check_real(lambda_min, "lambda_min", expected, least=0.0)
    limit = np.inf
    if max_events is not None:
        limit = check_count(max_events, "max_events", 1)
    choice: Any = SimpleNamespace(
        kernel=kernel, gamma=gamma, degree=degree, coef0=coef0
    )
    item_kernel = ItemKernel.of(choice, pairs)
    graph, ids, graph_pair = _preference_graph(item_kernel, y)
    # At large lambda no pair has reached its margin, and all weights are at their bound.
    follower = PathFollower(graph, graph.bound.copy())
    largest = float((follower.g[graph.first] - follower.g[graph.second]).max())
    if largest <= _MIN_MARGIN * follower.size:
        weights = constant_path(follower.alpha, lambda_min)
        status = "complete"
    else:
        expected = f"one below {largest:g}, the first breakpoint, above which all weights are 1"
        require(lambda_min < largest, lambda_min, "lambda_min", expected)
        weights, status = follower.follow(largest, lambda_min, limit)
    path = RankingPath(graph, weights, status, ids, item_kernel, graph_pair)
    return path._with_warning("ranksvm_path")


def _preference_graph(
    item_kernel: ItemKernel, y: NDArray
) -> tuple[PairGraph, Ids, Ids]:
    """The distinct pairs, with their ids in the fit and the ids of the fit in them."""
    K = fixed(item_kernel.centred_gram()[0])
    n = len(K)
    index = item_kernel.B.index
    index = np.where((y > 0)[:, None], index, index[:, ::-1])
    key, ids, graph_pair, count = np.unique(
        index[:, 0] * n + index[:, 1],
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    first = (key // n).astype(np.uint32)
    second = (key % n).astype(np.uint32)
    largest = float(np.abs(K.diagonal()).max())
    check_entries(largest, "the largest k(x, x)")
    bound = count.astype(np.float64)
    return PairGraph(K, n, largest, first, second, bound, 0.0), ids, graph_pair
