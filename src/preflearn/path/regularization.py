"""Base class of regularization paths, and the choice of lambda on a path."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from preflearn.core.validation import Floats, Ids, check_real, warn_user
from preflearn.path.follower import MIN_LAMBDA_RATIO, WeightPath
from preflearn.path.graph import PairGraph, item_coefficients
from preflearn.path.margin_set import empty_margin_set, fill
from preflearn.path.replay import replay_pairs

_MIN_PIECE = 1e-12  # a shorter piece, relative to lambda, is a rounding error
_MAX_CACHED = 5_000_000  # largest number of values of B'alpha at knots that are cached
# how to get solutions at smaller lambda, by the status of a path
_LONGER_PATH = {
    "complete": ", or compute the path with a smaller lambda_min",
    "max_events": ", or compute the path with more max_events",
    "rounding": ": rounding errors prevent a longer path",
}


class Selection(NamedTuple):
    """The chosen lambda, its loss, and the loss along the path."""

    lam: float
    loss: float
    lambdas: Floats
    losses: Floats


class FoldCurve(NamedTuple):
    """Loss of the validation examples of one fold along its path."""

    curve: Selection
    end: float  # end of the path
    n_train: int
    n_valid: int


class RegularizationPath(ABC):
    """Solutions of an SVM for all lambda = 1/C.

    `svm_path` and `ranksvm_path` return this object. Use it to evaluate solutions at
    any lambda, and to choose lambda with a validation set.

    Attributes
    ----------
    breakpoints : ndarray of shape (k,)
        Decreasing values of lambda between which alpha is linear. Above the first one
        alpha is constant; the array is empty if alpha is constant for all lambda.
        Between breakpoints lambda f is linear too, with one exception. If no weight is
        inside (0, 1), the bias of `svm_path` is the midpoint of an interval, and its
        slope changes where another point begins to bound the interval. These values of
        lambda are not breakpoints, and may be above the first breakpoint.
    lambda_end : float
        Smallest lambda for which the path is known; 0 if it is known for all lambda >
        0.
    status : str
        "complete" if the path reached lambda_min or, for lambda_min = 0, has no further
        events; "max_events" if it ended after `max_events` events; "rounding" if
        rounding errors stopped it.
    """

    def __init__(self, graph: PairGraph, path: WeightPath, status: str, ids: Ids):
        self._graph = graph
        self._path = path
        # numbers of the segments with pieces
        self._pieced = [
            k for k, segment in enumerate(path.segments) if len(segment.knots) > 1
        ]
        self.status = status
        self.lambda_end = path.end
        self._ids = ids  # pair or point of the fit for each pair of the graph
        self._cache: dict[int, Floats] = {}  # B'alpha at the knots of segments
        self.breakpoints = _breakpoints(path)
        self.breakpoints.setflags(write=False)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {len(self.breakpoints)} breakpoints down to {self.lambda_end:g}, "
            f"{self.status}>"
        )

    def _with_warning(self, name: str) -> Self:
        """Return the path; give a ConvergenceWarning if rounding errors ended it."""
        if self.status == "rounding":
            end = f"lambda = {self.lambda_end:.3g}"
            text = (
                f"{name}: rounding ends the path at {end}, so it has no solutions below; "
                "a larger lambda_min avoids this warning"
            )
            warn_user(text, ConvergenceWarning)
        return self

    @property
    def events(self) -> list[tuple[float, int, str]]:
        """Events as triples (lambda, index, kind).

        The kinds are "enter" (the margin), "leave at 0", and "leave at 1".
        """
        kinds = {0: "leave at 0", 1: "leave at 1", -1: "enter"}
        return [
            (float(segment.knots[piece]), int(self._ids[pair]), kinds[weight])
            for segment in self._path.segments
            for piece, pair, weight in segment.changes.tolist()
        ]

    @abstractmethod
    def alpha(self, lam: float) -> Floats: ...

    @abstractmethod
    def kkt_residual(self, lam: float) -> float: ...

    def _check_lambda(self, lam: float) -> float:
        expected = "a positive finite number (1/C)"
        lam = check_real(lam, "lambda", expected, least=np.finfo(np.float64).tiny)
        if lam < self.lambda_end:
            raise ValueError(
                f"lambda={lam} is below the end of the path ({self.lambda_end}); pass a "
                f"larger lambda{_LONGER_PATH[self.status]}"
            )
        return lam

    def _check_breakpoints(self) -> None:
        if len(self.breakpoints) > 0:
            return
        reason = "every C gives the same weights"
        if self.status == "rounding":
            reason = "rounding errors hide them"
        raise ValueError(
            f"the path has no breakpoint ({reason}), so there is no lambda to select"
        )

    def _select_by_count(
        self, count: int, places: list[Floats], changes: list[Floats], n: int
    ) -> Selection:
        """Select lambda by the number of wrong predictions out of n.

        `count` is the number at the first breakpoint; it changes at the given places.
        """
        lambdas, counts = step_function(
            count, float(self.breakpoints[0]), places, changes
        )
        # A path without an end is cut at half of the last change or breakpoint.
        end = self.lambda_end or float(min(lambdas[-1], self.breakpoints[-1])) / 2
        return select_widest(lambdas, counts / n, end)

    def _score_blocks(self, k: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Yield blocks of knots, and g = lambda f there, shape (n, knots).

        The last knot of each block is the first knot of the next.
        """
        for knots, coefs in self._coefficient_blocks():
            change = coefs - coefs[0]
            moved = np.flatnonzero(change.any(axis=0))
            g = (k @ coefs[0])[:, None] + k[:, moved] @ change[:, moved].T
            yield knots, g + self._offsets(knots, coefs)

    def _offsets(self, knots: Floats, coefs: Floats) -> Floats | float:
        """Return lambda times the bias at some knots."""
        return 0.0

    def _coefficient_blocks(self) -> Iterator[tuple[Floats, Floats]]:
        """Yield blocks of knots, and B'alpha there, shape (knots, n).

        The last knot of each block is the first knot of the next.
        """
        path = self._path
        coefs = item_coefficients(self._graph, path.start)[None]
        for k in self._pieced:
            coefs = self._segment_coefficients(k)
            yield path.segments[k].knots, coefs
        last = path.last_knot
        end = path.end
        if end < last:
            yield np.array([last, end]), np.stack([coefs[-1], coefs[-1] * (end / last)])

    def _segment_coefficients(self, k: int) -> Floats:
        """Return B'alpha at the knots of a segment, from the cache if possible."""
        if k in self._cache:
            return self._cache[k]
        _, coefs = self._replay(k, 0.0)
        if sum(kept.size for kept in self._cache.values()) + coefs.size > _MAX_CACHED:
            self._cache.clear()
        self._cache[k] = coefs
        return coefs

    def _weights(self, lam: float) -> Floats:
        """Return the weights of the pairs of the graph, limited by their bounds."""
        segments = self._path.segments
        last = self._path.last_knot
        if lam >= segments[0].knots[0]:
            return self._path.start.copy()
        if lam < last:
            return self._weights(last) * (lam / last)
        # the last segment that begins at or above lambda
        begins = [-segments[k].knots[0] for k in self._pieced]
        return self._weights_within(self._pieced[bisect_right(begins, -lam) - 1], lam)

    def _weights_within(self, k: int, lam: float) -> Floats:
        return self._replay(k, lam)[0]

    def _weights_before(self, k: int) -> Floats:
        """Return all weights at the start of a segment."""
        *earlier, segment = self._path.segments[: k + 1]
        alpha = self._path.start.copy()
        for part in earlier:
            left = part.changes[part.changes[:, 2] >= 0]
            # if a pair left several times, the last value counts
            alpha[left[:, 1]] = left[:, 2] * self._graph.bound[left[:, 1]]
        alpha[segment.pairs] = segment.weights
        return alpha

    def _replay(self, k: int, lam: float) -> tuple[Floats, Floats]:
        """Return the weights at a lambda of a segment, and B'alpha at the knots above."""
        graph = self._graph
        segment = self._path.segments[k]
        pairs = segment.pairs
        alpha = self._weights_before(k)
        coefs = np.zeros((len(segment.knots), graph.items))
        coefs[0] = item_coefficients(graph, alpha)
        entering = int(np.count_nonzero(segment.changes[:, 2] < 0))
        margin_set = empty_margin_set(len(pairs) + entering, graph.items)
        values = np.full(len(pairs), -1.0)
        fill(graph, graph.first, graph.second, margin_set, pairs, values)
        replay_pairs(
            graph, margin_set, alpha, segment.knots, segment.changes, lam, coefs
        )
        return alpha, coefs


def _breakpoints(path: WeightPath) -> Floats:
    """Return the knots where the margin set changes, without rounding errors."""
    knots = [
        segment.knots[np.unique(segment.changes[:, 0])] for segment in path.segments
    ]
    if path.end < path.last_knot:
        knots.append(np.array([path.last_knot]))
    knots = np.concatenate(knots)
    lower = np.append(knots[1:], path.end)
    return knots[lower < knots * (1 - _MIN_PIECE)]


def select_widest(lambdas: Floats, losses: Floats, end: float) -> Selection:
    """Select the geometric mean of the ends of the widest interval of minimum loss.

    The last interval ends at `end`.
    """
    lower = np.append(lambdas[1:], end)
    width = np.where(losses <= losses.min(), np.log(lambdas / lower), -1.0)
    best = int(np.argmax(width))
    return Selection(
        float(np.sqrt(lambdas[best] * lower[best])),
        float(losses[best]),
        lambdas,
        losses,
    )


def warn_at_end(selection: Selection, span: float) -> None:
    """Give a ConvergenceWarning if the chosen lambda is at the end of the paths."""
    at_end = selection.lam < selection.lambdas[-1]
    if selection.loss > 0 and at_end and span * MIN_LAMBDA_RATIO < 1:
        text = (
            "the lowest pair error is at the end of the paths; cross_validated_path with a "
            f"span above {span:g} may find a lower one"
        )
        warn_user(text, ConvergenceWarning)


def step_function(
    count: float, start: float, places: list[Floats], changes: list[Floats]
) -> tuple[Floats, Floats]:
    """Return where a count changes as lambda decreases, and the count from there on.

    The first entry is the start.
    """
    place = np.concatenate(places)
    change = np.concatenate(changes)
    # rounding errors exchange scores that all tend to 0 as lambda tends to 0
    real = place > MIN_LAMBDA_RATIO * start
    place = place[real]
    change = change[real]
    edges, which = np.unique(-place, return_inverse=True)
    sums = np.bincount(which, weights=change, minlength=len(edges))
    counts = count + np.append(0.0, np.cumsum(sums))
    lambdas = np.append(start, -edges)
    # the last of several steps at the same lambda
    last = np.append(lambdas[1:] < lambdas[:-1], True)
    return lambdas[last], counts[last]


def merge_fold_curves(
    folds: list[FoldCurve], m: int, common: bool = False
) -> Selection:
    """Return the fraction of wrong examples over all folds, scaled to m examples.

    The curve begins at the largest first breakpoint of all folds, above which the
    weights are constant. With `common` it begins at the smallest first breakpoint. This
    is needed with a bias, which may change above the first breakpoint.
    """
    starts = [fold.curve.lambdas[0] / fold.n_train * m for fold in folds]
    start = min(starts) if common else max(starts)
    end = max(fold.end / fold.n_train for fold in folds) * m
    places = [
        np.minimum(fold.curve.lambdas[1:] / fold.n_train * m, start) for fold in folds
    ]
    changes = [np.diff(fold.curve.losses) * fold.n_valid for fold in folds]
    first = sum(float(fold.curve.losses[0]) * fold.n_valid for fold in folds)
    lambdas, wrong = step_function(first, start, places, changes)
    losses = np.round(wrong) / sum(fold.n_valid for fold in folds)
    kept = (lambdas > end) | (lambdas == start)
    return select_widest(lambdas[kept], losses[kept], end)
