"""What every regularization path answers, and the choice of lambda on it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from preflearn.core.validation import Floats, Ids, check_real, raise_if_any, warn_user
from preflearn.path.graph import Front, Graph, gather, net, new_front, rerun
from preflearn.path.walk import LAST, Course

_SHORT = 1e-12  # a piece shorter than this share of lambda
# numbers of B'alpha at knots that are kept for the next query, at most
_KEPT = 5_000_000


class Selection(NamedTuple):
    """The best lambda, its loss, and the loss along the path (see
    `RegularizationPath.select`)."""

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
    """The solutions of a machine for all lambda = 1/C, as made by `svm_path` or
    `ranksvm_path`.

    Attributes
    ----------
    breakpoints : ndarray of shape (k,)
        Values of lambda, decreasing, between which alpha is linear. Above the first it
        is constant. Empty if it is constant for all lambda. Between two of them lambda
        f is linear too, but for one case: where no weight is inside (0, 1), the bias of
        `svm_path` is the middle of an interval, and may bend where another point begins
        to bound this. That is no breakpoint, and may be above the first one too.
    lambda_end : float
        The path is known for all lambda >= lambda_end > 0, or lambda > 0 if this is 0.
    status : str
        "complete" if it came to where it was to end or, where that was at 0, to where
        no event is left; "max_events" if it was stopped after so many, "rounding" if
        rounding stopped it.
    """

    def __init__(self, graph: Graph, course: Course, status: str, ids: Ids):
        self._graph = graph
        self._course = course
        self.status = status
        self.lambda_end = course.end
        self._ids = ids  # which pair or point of the fit each pair of the graph is
        self._last = np.inf, course.start  # lambda and weights of the last query
        self._replays: dict[int, tuple[Floats, Floats]] = {}
        knots = (
            np.append(course.knots, course.end)
            if course.end < course.knots[-1]
            else course.knots
        )
        kept = knots[1:] < knots[:-1] * (1 - _SHORT)
        turned = np.zeros(len(knots), dtype=bool)
        place = np.append(0, np.cumsum(kept))
        turned[place[course.changes[:, 0]]] = True
        turned[place[len(course.knots) - 1]] |= course.end < course.knots[-1]
        knots = knots[:-1][kept]
        self.breakpoints = knots[turned[: len(knots)]]
        self.breakpoints.setflags(write=False)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: {len(self.breakpoints)} breakpoints down to {self.lambda_end:g}, "
            f"{self.status}>"
        )

    def _warned(self, name: str) -> Self:
        """Itself, after a ConvergenceWarning, if rounding ended the path."""
        if self.status == "rounding":
            text = f"{name}: rounding ends the path at lambda = {self.lambda_end:.3g}"
            warn_user(text, ConvergenceWarning)
        return self

    @property
    def events(self) -> list[tuple[float, int, str]]:
        """Triples (lambda, index, kind) of pairs that "enter" the margin, "leave at 0"
        or "leave at 1"."""
        # a weight of -1 comes in
        kinds = ("leave at 0", "leave at 1", "enter")
        course = self._course
        return [
            (float(course.knots[piece]), int(self._ids[pair]), kinds[weight])
            for piece, pair, weight in course.changes.tolist()
        ]

    @abstractmethod
    def alpha(self, lam: float) -> Floats: ...

    @abstractmethod
    def kkt_residual(self, lam: float) -> float: ...

    @abstractmethod
    def _values(self, lam: float) -> tuple[float, float]:
        """A value of the objective, and a bound from below on its minimum."""

    def duality_gap(self, lam: float) -> float:
        """How far the objective may be above its minimum, relative to its value.

        At a small lambda it says more than `kkt_residual`: where the data are nearly
        separable, margins that are right to many digits can still leave much of a small
        objective.

        Raises
        ------
        ValueError
            If lambda is not positive and finite, or is below `lambda_end`.
        """
        primal, dual = self._values(self._check(lam))
        return max(0.0, primal - dual) / primal if primal > 0 else 0.0

    def _check(self, lam: float) -> float:
        lam = check_real(
            lam,
            "lambda",
            "a positive finite number (1/C)",
            least=np.finfo(np.float64).tiny,
        )
        if lam < self.lambda_end:
            raise ValueError(
                f"lambda is {lam}, below the end of the path at {self.lambda_end}"
            )
        return lam

    def _end(self, lambdas: Floats) -> float:
        """Where the last interval ends: one without an end is no wider than its half on
        this scale."""
        return self.lambda_end or float(min(lambdas[-1], self.breakpoints[-1])) / 2

    def _at_breakpoints(self, k: Floats, loss: Callable[[Floats], float]) -> Selection:
        """The largest breakpoint of least loss of f, whose kernel with the items of the
        graph is k."""
        wanted = set(self.breakpoints.tolist())
        losses = np.array(
            [
                float(loss(values / lam))
                for lams, g in self._blocks(k)
                for lam, values in zip(lams[:-1].tolist(), g.T, strict=False)
                if lam in wanted
            ]
        )
        raise_if_any(
            ~np.isfinite(losses),
            losses,
            "the loss at the breakpoints",
            "finite numbers",
        )
        best = int(np.argmin(losses))
        return Selection(
            float(self.breakpoints[best]), float(losses[best]), self.breakpoints, losses
        )

    def _blocks(self, k: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Runs of knots, each ending where the next begins, and g = lambda f there, (n,
        knots)."""
        for knots, nets in self._runs():
            moved = np.flatnonzero((nets != nets[0]).any(axis=0))
            g = (k @ nets[0])[:, None] + k[:, moved] @ (nets - nets[0])[:, moved].T
            yield knots, g + self._offsets(knots, nets)

    def _offsets(self, knots: Floats, nets: Floats) -> Floats | float:
        """lambda times the bias at some knots."""
        return 0.0

    def _runs(self) -> Iterator[tuple[Floats, Floats]]:
        """Runs of knots, each ending where the next begins, and B'alpha there, (knots,
        n)."""
        nets = net(self._graph, self._course.start)[None]
        for stretch in range(len(self._course.marks) - 1):
            if self._course.marks[stretch, 0] < self._course.marks[stretch + 1, 0]:
                knots, nets = self._replay(stretch)
                yield knots, nets
        last = self._course.knots[-1]
        end = self._course.end
        if end < last:
            yield np.array([last, end]), np.stack([nets[-1], nets[-1] * (end / last)])

    def _replay(self, stretch: int) -> tuple[Floats, Floats]:
        """The knots of a stretch and B'alpha there, kept for the next query."""
        if stretch in self._replays:
            return self._replays[stretch]
        alpha = self._weights_before(stretch)
        (knots, changes) = self._stretch(stretch)
        nets = np.zeros((len(knots), self._graph.items))
        nets[0] = net(self._graph, alpha)
        self._carry(stretch, alpha, knots, changes, nets)
        if sum(kept.size for _, kept in self._replays.values()) + nets.size > _KEPT:
            self._replays.clear()
        self._replays[stretch] = knots, nets
        return knots, nets

    def _carry(
        self, stretch: int, alpha: Floats, knots: Floats, changes: Ids, nets: Floats
    ) -> None:
        """Write B'alpha at the knots of a stretch, given that at the first, where the
        weights are alpha."""
        rerun(
            self._graph, self._front(stretch, changes), alpha, knots, changes, 0.0, nets
        )

    def _net(self, lam: float) -> Floats:
        return net(self._graph, self._weights(lam))

    def _weights(self, lam: float) -> Floats:
        """Of the pairs of the graph, at most as large as their bounds."""
        if lam != self._last[0]:
            self._last = lam, self._weights_at(lam)
        return self._last[1].copy()

    def _weights_at(self, lam: float) -> Floats:
        knots = self._course.knots
        if lam >= knots[0]:
            return self._course.start
        if lam < knots[-1]:
            return self._weights_at(knots[-1]) * (lam / knots[-1])
        piece = (
            min(int(np.searchsorted(-knots, -lam, side="right")), len(knots) - 1) - 1
        )
        stretch = (
            int(np.searchsorted(self._course.marks[:-1, 0], piece, side="right")) - 1
        )
        return self._weights_within(stretch, lam)

    def _weights_within(self, stretch: int, lam: float) -> Floats:
        alpha = self._weights_before(stretch)
        (knots, changes) = self._stretch(stretch)
        rerun(
            self._graph,
            self._front(stretch, changes),
            alpha,
            knots,
            changes,
            lam,
            np.zeros((0, 0)),
        )
        return alpha

    def _weights_before(self, stretch: int) -> Floats:
        """All weights where a stretch begins."""
        course = self._course
        graph = self._graph
        before = course.changes[: course.marks[stretch, 1]]
        part = slice(*course.first[stretch : stretch + 2])
        alpha = course.start.copy()
        left = before[before[:, 2] >= 0]
        # of several, the last one counts
        alpha[left[:, 1]] = left[:, 2] * graph.bound[left[:, 1]]
        alpha[course.pairs[part]] = course.weights[part]
        return alpha

    def _elbow(self, stretch: int, changes: Ids) -> tuple[Ids, int]:
        """The margin set where a stretch begins, its size, and room behind it for those
        who come."""
        pairs = self._course.pairs[slice(*self._course.first[stretch : stretch + 2])]
        coming = np.count_nonzero(changes[:, 2] < 0)
        return np.append(pairs, np.full(coming, -1)), len(pairs)

    def _front(self, stretch: int, changes: Ids) -> Front:
        """The margin set where a stretch begins, ready to go on."""
        graph = self._graph
        (elbow, size) = self._elbow(stretch, changes)
        front = new_front(len(elbow), graph.items)
        gather(
            graph, graph.first, graph.second, front, elbow[:size], np.full(size, -1.0)
        )
        return front

    def _stretch(self, stretch: int) -> tuple[Floats, Ids]:
        """Knots and changes of a stretch, counted from its beginning."""
        (piece, change, _), (end, last, _) = self._course.marks[stretch : stretch + 2]
        changes = self._course.changes[change:last].copy()
        changes[:, 0] -= piece
        return self._course.knots[piece : end + 1], changes

    def _check_choice(self) -> None:
        if len(self.breakpoints) == 0:
            reason = (
                "rounding hides them"
                if self.status == "rounding"
                else "every C gives the same weights"
            )
            raise ValueError(
                f"the path has no breakpoint ({reason}): there is nothing to select"
            )


def widest(lambdas: Floats, losses: Floats, end: float) -> Selection:
    """The geometric middle of the widest interval of least loss; the last one goes down
    to the end."""
    lower = np.append(lambdas[1:], end)
    width = np.where(losses <= losses.min(), np.log(lambdas / lower), -1.0)
    best = int(np.argmax(width))
    return Selection(
        float(np.sqrt(lambdas[best] * lower[best])),
        float(losses[best]),
        lambdas,
        losses,
    )


def bounded(found: Selection, span: float) -> Selection:
    """Itself, after a ConvergenceWarning where the end of the paths bounds the choice."""
    if found.loss > 0 and found.lam < found.lambdas[-1] and span * LAST < 1:
        text = f"the least pair error is at the end of the paths; a span above {span:g} may find less"
        warn_user(f"{text}, in cross_validated_path", ConvergenceWarning)
    return found


def steps(
    count: float, start: float, places: list[Floats], changes: list[Floats]
) -> tuple[Floats, Floats]:
    """Where a count changes as lambda falls, beginning at the start, and the counts
    from there on."""
    place = np.concatenate(places)
    change = np.concatenate(changes)
    # scores that are all 0 at lambda = 0 exchange their places there by rounding
    real = place > LAST * start
    place = place[real]
    change = change[real]
    edges, which = np.unique(-place, return_inverse=True)
    sums = np.bincount(which, weights=change, minlength=len(edges))
    counts = count + np.append(0.0, np.cumsum(sums))
    lambdas = np.append(start, -edges)
    last = np.append(lambdas[1:] < lambdas[:-1], True)  # of the steps at one lambda
    return lambdas[last], counts[last]


def merged(parts: list[FoldCurve], m: int, common: bool = False) -> Selection:
    """One curve of the share of wrong examples over all folds, on the scale of m
    examples.

    It begins at the first breakpoint of any fold, where the weights of the others are
    constant yet; or, where what is `common` counts, as with a bias, which may move
    before, at the last one of these.
    """
    start = (min if common else max)(
        curve.lambdas[0] / size * m for curve, _, size, _ in parts
    )
    end = max(last / size for _, last, size, _ in parts) * m
    places = [
        np.minimum(curve.lambdas[1:] / size * m, start) for curve, _, size, _ in parts
    ]
    changes: list[Floats] = [
        np.diff(curve.losses) * count for curve, _, _, count in parts
    ]
    first = sum(float(curve.losses[0]) * count for curve, _, _, count in parts)
    lambdas, wrong = steps(first, start, places, changes)
    losses = np.round(wrong) / sum(count for *_, count in parts)
    kept = (lambdas > end) | (lambdas == start)
    return widest(lambdas[kept], losses[kept], end)
