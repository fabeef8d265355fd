"""What every regularization path answers, and the choice of lambda on it."""

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

_MIN_PIECE = 1e-12  # a shorter piece, relative to lambda, is rounding
_MAX_CACHED = 5_000_000  # numbers of B'alpha at knots that are kept for later queries


class Selection(NamedTuple):
    """The best lambda, its loss, and the loss along the path."""

    lam: float
    loss: float
    lambdas: Floats
    losses: Floats


class FoldCurve(NamedTuple):
    """The loss of the validation examples of one fold along its path."""

    curve: Selection
    end: float  # of the path
    n_train: int
    n_valid: int


class RegularizationPath(ABC):
    """The solutions of an SVM for all lambda = 1/C.

    Returned by `svm_path` and `ranksvm_path`.

    Attributes
    ----------
    breakpoints : ndarray of shape (k,)
        Values of lambda, decreasing, between which alpha is linear. Above the first it
        is constant. Empty if it is constant for all lambda. Between two of them lambda
        f is linear too, except in one case: where no weight is inside (0, 1), the bias
        of `svm_path` is the middle of an interval, and may bend where another point
        begins to bound this. That is not a breakpoint, and may be above the first one.
    lambda_end : float
        The path is known for all lambda >= lambda_end > 0, or lambda > 0 if this is 0.
    status : str
        "complete" if it came to where it was to end or, where that was at 0, to where
        no event is left; "max_events" if it was stopped after so many, "rounding" if
        rounding stopped it.
    """

    def __init__(self, graph: PairGraph, path: WeightPath, status: str, ids: Ids):
        self._graph = graph
        self._path = path
        # the segments with pieces
        self._pieced = [
            k for k, segment in enumerate(path.segments) if len(segment.knots) > 1
        ]
        self.status = status
        self.lambda_end = path.end
        self._ids = ids  # which pair or point of the fit each pair of the graph is
        self._cache: dict[int, Floats] = {}  # B'alpha at the knots of segments
        self.breakpoints = _breakpoints(path)
        self.breakpoints.setflags(write=False)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {len(self.breakpoints)} breakpoints down to {self.lambda_end:g}, "
            f"{self.status}>"
        )

    def _with_warning(self, name: str) -> Self:
        """Return the path, after a ConvergenceWarning if rounding ended it."""
        if self.status == "rounding":
            text = f"{name}: rounding ends the path at lambda = {self.lambda_end:.3g}"
            warn_user(text, ConvergenceWarning)
        return self

    @property
    def events(self) -> list[tuple[float, int, str]]:
        """Triples (lambda, index, kind) of events.

        Pairs "enter" the margin, "leave at 0" or "leave at 1".
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
                f"lambda={lam} is below the end of the path at {self.lambda_end}; "
                "expected a larger lambda, or a path that goes further down"
            )
        return lam

    def _check_breakpoints(self) -> None:
        if len(self.breakpoints) > 0:
            return
        reason = "every C gives the same weights"
        if self.status == "rounding":
            reason = "rounding hides them"
        raise ValueError(
            f"the path has no breakpoint ({reason}): there is nothing to select"
        )

    def _select_by_count(
        self, count: int, places: list[Floats], changes: list[Floats], n: int
    ) -> Selection:
        """The selection by a number of wrong predictions out of n.

        It begins at the first breakpoint and changes at these places.
        """
        lambdas, counts = step_function(
            count, float(self.breakpoints[0]), places, changes
        )
        # An interval without an end is taken as wide as its half on this scale.
        end = self.lambda_end or float(min(lambdas[-1], self.breakpoints[-1])) / 2
        return select_widest(lambdas, counts / n, end)

    def _score_blocks(self, k: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Blocks of knots, and g = lambda f there, shape (n, knots).

        Each block ends where the next begins.
        """
        for knots, coefs in self._coefficient_blocks():
            change = coefs - coefs[0]
            moved = np.flatnonzero(change.any(axis=0))
            g = (k @ coefs[0])[:, None] + k[:, moved] @ change[:, moved].T
            yield knots, g + self._offsets(knots, coefs)

    def _offsets(self, knots: Floats, coefs: Floats) -> Floats | float:
        """lambda times the bias at some knots."""
        return 0.0

    def _coefficient_blocks(self) -> Iterator[tuple[Floats, Floats]]:
        """Blocks of knots, and B'alpha there, shape (knots, n).

        Each block ends where the next begins.
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
        """B'alpha at the knots of a segment, kept for later queries."""
        if k in self._cache:
            return self._cache[k]
        _, coefs = self._replay(k, 0.0)
        if sum(kept.size for kept in self._cache.values()) + coefs.size > _MAX_CACHED:
            self._cache.clear()
        self._cache[k] = coefs
        return coefs

    def _weights(self, lam: float) -> Floats:
        """The weights of the pairs of the graph, at most as large as their bounds."""
        segments = self._path.segments
        last = self._path.last_knot
        if lam >= segments[0].knots[0]:
            return self._path.start.copy()
        if lam < last:
            return self._weights(last) * (lam / last)
        # the last segment that begins at lambda or above
        begins = [-segments[k].knots[0] for k in self._pieced]
        return self._weights_within(self._pieced[bisect_right(begins, -lam) - 1], lam)

    def _weights_within(self, k: int, lam: float) -> Floats:
        return self._replay(k, lam)[0]

    def _weights_before(self, k: int) -> Floats:
        """All weights where a segment begins."""
        *earlier, segment = self._path.segments[: k + 1]
        alpha = self._path.start.copy()
        for part in earlier:
            left = part.changes[part.changes[:, 2] >= 0]
            # where a pair left several times, the last one counts
            alpha[left[:, 1]] = left[:, 2] * self._graph.bound[left[:, 1]]
        alpha[segment.pairs] = segment.weights
        return alpha

    def _replay(self, k: int, lam: float) -> tuple[Floats, Floats]:
        """The weights at a lambda of a segment, and B'alpha at the knots above it."""
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
    """The knots where the margin set changes, without pieces that are rounding."""
    knots = [
        segment.knots[np.unique(segment.changes[:, 0])] for segment in path.segments
    ]
    if path.end < path.last_knot:
        knots.append(np.array([path.last_knot]))
    knots = np.concatenate(knots)
    lower = np.append(knots[1:], path.end)
    return knots[lower < knots * (1 - _MIN_PIECE)]


def select_widest(lambdas: Floats, losses: Floats, end: float) -> Selection:
    """The geometric middle of the widest interval of minimum loss.

    The last interval goes down to the end.
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
    """Give a ConvergenceWarning where the end of the paths bounds the choice."""
    at_end = selection.lam < selection.lambdas[-1]
    if selection.loss > 0 and at_end and span * MIN_LAMBDA_RATIO < 1:
        text = f"the least pair error is at the end of the paths; a span above {span:g} may find less"
        warn_user(f"{text}, in cross_validated_path", ConvergenceWarning)


def step_function(
    count: float, start: float, places: list[Floats], changes: list[Floats]
) -> tuple[Floats, Floats]:
    """Where a count changes as lambda falls, and the counts from there on.

    The first place is the start.
    """
    place = np.concatenate(places)
    change = np.concatenate(changes)
    # scores that are all 0 at lambda = 0 exchange their places there by rounding
    real = place > MIN_LAMBDA_RATIO * start
    place = place[real]
    change = change[real]
    edges, which = np.unique(-place, return_inverse=True)
    sums = np.bincount(which, weights=change, minlength=len(edges))
    counts = count + np.append(0.0, np.cumsum(sums))
    lambdas = np.append(start, -edges)
    last = np.append(lambdas[1:] < lambdas[:-1], True)  # of the steps at one lambda
    return lambdas[last], counts[last]


def merge_fold_curves(
    folds: list[FoldCurve], m: int, common: bool = False
) -> Selection:
    """The fraction of wrong examples over all folds, on the scale of m examples.

    It begins at the first breakpoint of any fold, where the weights of the others are
    constant yet; or, where only the `common` range counts, as with a bias, which may
    move before, at the last one of these.
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
