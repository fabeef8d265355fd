"""Regularization path of the ranking SVM on all pairs.

With g = lambda f, the dual weights and g are piecewise linear in lambda [Zapien2009]_.
`ranksvm_path` starts at the largest lambda at which anything changes, and follows the
solutions to smaller lambda. It works with scores of the n items: the m pairs and the n
x n Gram matrix are connected by the incidence matrix only
(`preflearn.path.graph_events`).

References
----------
.. [Zapien2009] K. Zapien, G. Gasso, T. Gärtner, S. Canu, "Model selection for ranking
   SVM using regularization path", in: Machine Learning, I-Tech, 2009.
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

# a smaller largest margin, relative to the sum of absolute terms, is a rounding error
_MIN_MARGIN = 1e-13
# a smaller distance from the margin, relative to 1 and the largest margin, counts as 0
_ON_MARGIN = 1e-9
# a smaller score difference, relative to the largest score, counts as 0
_TIE_TOL = 1e-11


class MarginPartition(NamedTuple):
    """Partition of the pairs by their margin y (f(first) - f(second)).

    It is defined in section 5 of [Zapien2009]_.

    Attributes
    ----------
    inside, on, beyond : ndarray of int
        Ids of the pairs whose margin is below 1, equal to 1 (up to rounding errors), or
        above 1.
    """

    inside: Ids
    on: Ids
    beyond: Ids


class RankingPath(RegularizationPath):
    """Solutions of the ranking SVM for all lambda, as returned by `ranksvm_path`."""

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
        self._graph_pair = graph_pair  # the pair of the graph for each pair of the fit

    def alpha(self, lam: float) -> Floats:
        """Return the dual weights at lambda, shape (m,), each in [0, 1].

        Equal pairs have equal weights.
        """
        weights = self._weights(self._check_lambda(lam))
        return (weights / self._graph.bound)[self._graph_pair]

    def decision_function(self, lam: float, X: ArrayLike | Pairs) -> Floats:
        """Return scores f(x) of items at lambda, or f(first) - f(second) of pairs."""
        lam = self._check_lambda(lam)
        coef = self._coefficients(lam) / lam
        if isinstance(X, Pairs):
            return X.B.differences(self._kernel(X.items) @ coef)
        expansion = self._item_kernel.expansion(coef)
        return expansion._replace(k=self._item_kernel.functions.minus_constant)(
            self._check_features(X)
        )

    def margins(self, lam: float) -> Floats:
        """Return margins y (f(first) - f(second)) of the training pairs."""
        lam = self._check_lambda(lam)
        graph = self._graph
        g = graph.K @ self._coefficients(lam)
        return ((g[graph.first] - g[graph.second]) / lam)[self._graph_pair]

    def sets(self, lam: float) -> MarginPartition:
        """Return the training pairs inside, on, and beyond the margin at lambda."""
        margins = self.margins(lam)
        tolerance = _ON_MARGIN * max(1.0, float(np.abs(margins).max()))
        on = np.abs(margins - 1) <= tolerance
        return MarginPartition(
            np.flatnonzero(~on & (margins < 1)),
            np.flatnonzero(on),
            np.flatnonzero(~on & (margins > 1)),
        )

    def kkt_residual(self, lam: float) -> float:
        """Return the largest violation of the optimality conditions at lambda.

        It is max |alpha - clip(alpha + 1 - yBf, 0, 1)|, with f recomputed from alpha.
        """
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
        """Return the minimum of eq. 6: the sum of hinges plus lambda/2 |f|²."""
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
        """Choose the lambda with the lowest validation loss.

        The loss is the pair error, the fraction of pairs in the wrong order. It is
        computed for all lambda up to the first breakpoint: between breakpoints lambda f
        is linear, so the values of lambda at which two items exchange their order can
        be computed. ``losses[i]`` holds from ``lambdas[i]`` down to ``lambdas[i + 1]``.
        The chosen lambda is the geometric mean of the ends of the widest interval of
        lowest loss. A pair of items with equal kernel values always counts as wrong.

        Parameters
        ----------
        pairs_valid : Pairs or array-like of shape (m', 2, p)
            Validation pairs, or the features of both items of each pair.
        y_valid : array-like of shape (m',)
            Labels -1 or +1.

        Raises
        ------
        ValueError
            If pairs or labels are not valid, or the path has no breakpoint.
        """
        self._check_breakpoints()
        pairs = as_pairs(pairs_valid)
        y = check_labels(y_valid, len(pairs), allow=(-1, 1))
        # Items with equal features, or equal kernel values, have equal scores.
        items, item_of = np.unique(pairs.items, axis=0, return_inverse=True)
        k, row_of = np.unique(self._kernel(items), axis=0, return_inverse=True)
        oriented = np.where((y > 0)[:, None], pairs.index, pairs.index[:, ::-1])
        index = row_of.ravel()[item_of.ravel()][oriented]
        # number of pairs in which the first of two items is better, minus the reverse
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
            # scores are sums of larger terms, whose rounding errors count
            tied = np.maximum(_TIE_TOL * np.abs(g).max(axis=0), size / 1000)
            scores = np.ascontiguousarray(g.T)
            place, change = _exchanges(order, scores, tied, lams, net)
            places.append(place)
            changes.append(change)
        return self._select_by_count(n_wrong, places, changes, len(y))

    def _coefficients(self, lam: float) -> Floats:
        """Return B'alpha at lambda."""
        return item_coefficients(self._graph, self._weights(lam))

    def _kernel(self, X: Floats) -> Floats:
        """Return the kernel matrix between new items and training items."""
        kernel = self._item_kernel
        X = self._check_features(X)
        # remove an offset, which cancels in differences but costs digits
        if kernel.kernel == "linear":
            middle = origin(kernel.items)
            return kernel.functions.k(X - middle, kernel.items - middle)
        return kernel.functions.minus_constant(X, kernel.functions.centres)

    def _check_features(self, X: ArrayLike) -> Floats:
        shape = ("n", self._item_kernel.items.shape[1])
        return check_array(X, "X", shape, "as in the fit")


@njit
def _exchanges(order, scores, tied, lams, net):
    """Sort the items at each knot; return exchanges that change the pair error.

    Between two knots scores are linear, so two items change their order at most once,
    and an insertion sort finds all exchanges. Items whose scores differ by at most
    `tied`, a bound on rounding errors, keep their order.
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
    """Compute all solutions of the ranking SVM, for every lambda = 1/C.

    Use it to choose C among all values at once, or to see how the solution changes with
    C. For one known C, `SVMRank` is faster.

    For each lambda, it solves eq. 6 of [Zapien2009]_, with P = diag(y) B::

        minimize sum_i max(0, 1 - y_i (f(first_i) - f(second_i))) + lambda/2 |f|^2,
        f(x) = 1/lambda sum_i alpha_i y_i (k(first_i, x) - k(second_i, x)),    0 <= alpha_i <= 1.

    Parameters
    ----------
    pairs : Pairs or array-like of shape (m, 2, p)
        Compared pairs. Cycles of preferences are allowed. Equal pairs are merged into
        one weighted pair.
    y : array-like of shape (m,)
        Labels: +1 first better, -1 second better. Drop ties first, since they have no
        loss here.
    kernel, gamma, degree, coef0
        Kernel and its parameters, as in `SVMRank`; "precomputed": the items of the
        pairs are the Gram matrix.
    lambda_min : float
        Smallest lambda of the path. With 0, the path ends at 1e-9 of the first
        breakpoint or, if no events are left, when rounding errors become visible in f.
        If no pair is inside the margin any more, the path is valid for all lambda > 0.
    max_events : int, optional
        Maximum number of breakpoints.

    Returns
    -------
    RegularizationPath
        Path whose `status` is "complete", "max_events", or "rounding". "rounding" means
        that a bound on the rounding errors of the margins, or their measured errors,
        exceeded 1e-9 before lambda_min, or that rounding errors left open which pairs
        stay on the margin. It gives a ConvergenceWarning. `lambda_end` is the smallest
        lambda of the path.

    Raises
    ------
    NotPositiveSemidefiniteError
        If the kernel is not positive semi-definite on the items.
    ValueError
        If pairs, labels, kernel, or parameters are not valid, labels contain ties, a
        Gram matrix is not symmetric, or lambda_min is not below the first breakpoint.

    Notes
    -----
    An event takes products with a few rows of the Gram matrix of the items. Memory is
    that of this (n, n) matrix and of vectors of length m. `benchmarks/path.md` lists
    times.

    Examples
    --------
    >>> path = ranksvm_path(Pairs([[0.0], [1.0], [3.0]], [[1, 0], [2, 1]]), [1, 1], "linear")
    >>> path.breakpoints.tolist(), path.decision_function(1.0, [[2.0]]).tolist()
    ([6.0, 2.0, 1.0], [2.0])
    """
    pairs = as_pairs(pairs)
    y = check_labels(y, len(pairs))
    ties = f"ties ({np.count_nonzero(y == 0)} of {len(y)} pairs)"
    expected = (
        f"-1 or +1, since {ties} have no loss here: pass pairs[y != 0], y[y != 0]"
    )
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
    # At large lambda no pair has reached the margin, and all weights are at their
    # bounds.
    follower = PathFollower(graph, graph.bound.copy())
    largest = float((follower.g[graph.first] - follower.g[graph.second]).max())
    if largest <= _MIN_MARGIN * follower.size:
        weights = constant_path(follower.alpha, lambda_min)
        status = "complete"
    else:
        expected = (
            f"a number below {largest:g}, the first breakpoint, above which all weights "
            "are 1"
        )
        require(lambda_min < largest, lambda_min, "lambda_min", expected)
        weights, status = follower.follow(largest, lambda_min, limit)
    path = RankingPath(graph, weights, status, ids, item_kernel, graph_pair)
    return path._with_warning("ranksvm_path")


def _preference_graph(
    item_kernel: ItemKernel, y: NDArray
) -> tuple[PairGraph, Ids, Ids]:
    """Return the distinct pairs, an id of each in the fit, and the map from the fit."""
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
