"""What the path of the ranking SVM answers, at every lambda, from the changes of its margin set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.checks import Floats, Ids, check_array, check_labels
from preflearn.ground.expansion import ItemKernel, origin
from preflearn.pairs import Pairs, as_pairs
from preflearn.path.graph import Front, Graph, gather, net, new_front, rerun, residual
from preflearn.path.inversions import Inversions
from preflearn.path.regularization import SHORT, RegularizationPath, Selection, named, steps, widest

_NONE, _NOTHING = np.zeros(0), np.zeros((0, 0))
_ON = 1e-9  # from the margin, in units of 1 and the largest score


class Course(NamedTuple):
    """A path in arrays. Piece k holds from knot k down to knot k + 1.

    Stretch s begins with piece and change ``marks[s]``, and with the margin set
    ``pairs[first[s] : first[s + 1]]``, at these weights; the last mark is the end.
    """

    knots: Floats  # (pieces + 1,)
    changes: Ids  # (c, 3): piece, pair, and its weight as a share of its bound, or -1 where it comes in
    marks: Ids  # (stretches + 1, 2)
    first: Ids  # (stretches + 1,)
    pairs: Ids
    weights: Floats
    end: float  # from the last knot down to it f stays, and the weights fall in proportion to lambda


class Sets(NamedTuple):
    """Ids of the pairs by their margin y (f(first) - f(second)): the partition of section 5 of [Zapien2009]_.

    Attributes
    ----------
    inside, on, beyond : ndarray of int
        The margin is below 1, equal to it (but for rounding), above it.
    """

    inside: Ids
    on: Ids
    beyond: Ids


class Problem(NamedTuple):
    """Preferences over distinct items, with equal ones merged."""

    space: ItemKernel
    graph: Graph
    place: Ids  # (m,): which distinct pair each pair is
    chosen: Ids  # of each distinct pair, the first pair that is it
    index: Ids  # (m, 2): better item and other item

    @classmethod
    def of(cls, space: ItemKernel, K: Floats, y: Floats) -> Self:
        """The problem of pairs with labels -1 and +1."""
        index = np.where((y > 0)[:, None], space.B.index, space.B.index[:, ::-1])
        key = index[:, 0] * len(K) + index[:, 1]
        key, chosen, place, count = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        first, second = (key // len(K)).astype(np.uint32), (key % len(K)).astype(np.uint32)
        graph = Graph(K, float(np.abs(K.diagonal()).max()), first, second, count.astype(np.float64))
        return cls(space, graph, place, chosen, index)


class RankingPath(RegularizationPath):
    """The solutions of the ranking SVM for all lambda, as made by `ranksvm_path`."""

    def __init__(self, problem: Problem, course: Course, status: str):
        self._problem, self._course = problem, course
        knots = np.append(course.knots, course.end) if course.end < course.knots[-1] else course.knots
        kept = knots[1:] < knots[:-1] * (1 - SHORT)
        turned = np.zeros(len(knots), dtype=bool)
        place = np.append(0, np.cumsum(kept))
        turned[place[course.changes[:, 0]]] = True
        turned[place[len(course.knots) - 1]] |= course.end < course.knots[-1]
        knots = knots[:-1][kept]
        super().__init__(knots[turned[: len(knots)]], course.end, status)

    @property
    def events(self) -> list[tuple[float, int, str]]:
        changes = self._course.changes.copy()
        changes[:, 1] = self._problem.chosen[changes[:, 1]]
        return named(self._course.knots, changes)

    def alpha(self, lam: float) -> Floats:
        """The dual weights at lambda, shape (m,), each in [0, 1]; equal pairs have equal weights."""
        problem = self._problem
        return (self._weights(self._check(lam)) / problem.graph.bound)[problem.place]

    def decision_function(self, lam: float, X: ArrayLike | Pairs) -> Floats:
        """Scores f(x) of items at lambda, shape (n,); of Pairs, their differences first - second, (m,)."""
        lam = self._check(lam)
        space, coef = self._problem.space, self._net(lam) / lam
        if isinstance(X, Pairs):
            return X.B.differences(self._kernel(X.items) @ coef)
        return space.expansion(coef)._replace(k=space.less_one)(self._features(X))

    def margins(self, lam: float) -> Floats:
        """y (f(first) - f(second)) of the pairs of the fit, shape (m,)."""
        lam, graph = self._check(lam), self._problem.graph
        g = graph.K @ self._net(lam)
        return ((g[graph.first] - g[graph.second]) / lam)[self._problem.place]

    def sets(self, lam: float) -> Sets:
        """Which pairs are inside, on, and beyond the margin at lambda."""
        margins = self.margins(lam)
        near = np.abs(margins - 1) <= _ON * max(1.0, float(np.abs(margins).max()))
        return Sets(*(np.flatnonzero(s) for s in (~near & (margins < 1), near, ~near & (margins > 1))))

    def kkt_residual(self, lam: float) -> float:
        """max |alpha - clip(alpha + 1 - yBf, 0, 1)| at lambda, with f computed anew from alpha."""
        lam = self._check(lam)
        return float(residual(self._problem.graph, self._weights(lam), lam))

    def worst_residual(self) -> float:
        """The largest `kkt_residual` of all breakpoints, and of some places between them.

        It takes a product with the Gram matrix and a pass over the pairs for each: many times the path.
        """
        worst = self.kkt_residual(self.breakpoints[-1]) if len(self.breakpoints) else 0.0
        for stretch in range(len(self._course.marks) - 1):
            knots, changes = self._stretch(stretch)
            residuals = np.zeros(len(knots) - 1)
            rerun(self._problem.graph, *self._start(stretch), knots, changes, 0.0, _NOTHING, residuals)
            worst = max(worst, float(residuals.max(initial=0.0)))
        return worst

    def objective(self, lam: float) -> float:
        """The minimum of eq. 6: the sum of hinges, and lambda/2 times the squared norm of f."""
        return self._values(self._check(lam))[0]

    def duality_gap(self, lam: float) -> float:
        """How far `objective` may be above the minimum, by eq. 8, relative to its value."""
        primal, dual = self._values(self._check(lam))
        return max(0.0, primal - dual) / primal if primal > 0 else 0.0

    def select(
        self,
        pairs_valid: Pairs | ArrayLike,
        y_valid: ArrayLike,
        loss: Callable[[NDArray, Floats], float] | None = None,
    ) -> Selection:
        """The lambda with the least validation loss.

        Without `loss` it is the pair error, the share of pairs in the wrong order, as a function of every
        lambda up to the first breakpoint: between breakpoints scores move on lines, and the places where two
        items change their order are computed. Then ``losses[i]`` holds from ``lambdas[i]`` down to
        ``lambdas[i + 1]``, and the best lambda is the geometric middle of the widest of the best intervals.
        Items with equal kernel values are never in order. With `loss`, it is its least value over the
        breakpoints, at the largest such lambda.

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
            return self._least(self._losses(pairs, np.asarray(y_valid), loss))
        y = check_labels(y_valid, len(pairs), allow=(-1, 1))
        items, merged = np.unique(pairs.items, axis=0, return_inverse=True)
        k, alike = np.unique(self._kernel(items), axis=0, return_inverse=True)
        index = alike.ravel()[merged.ravel()][np.where((y > 0)[:, None], pairs.index, pairs.index[:, ::-1])]
        count, places, changes, inversions = 0, [], [], None
        for lams, g in self._blocks(k):
            if inversions is None:
                inversions = Inversions(index, g[:, 0])
                count = inversions.wrong
            place, change = inversions.follow(lams, g)
            places.append(place)
            changes.append(change)
        lambdas, counts = steps(count, float(self.breakpoints[0]), places, changes)
        return widest(lambdas, counts / len(y), self._end(lambdas))

    def _losses(self, pairs: Pairs, y: NDArray, loss: Callable[[NDArray, Floats], float]) -> Floats:
        """The loss at each breakpoint."""
        found, wanted = [], set(self.breakpoints.tolist())
        for lams, g in self._blocks(self._kernel(pairs.items)):
            here = [k for k, lam in enumerate(lams.tolist()[:-1]) if lam in wanted]
            found += [float(loss(y, pairs.B.differences(g[:, k]) / lams[k])) for k in here]
        return np.array(found)

    def _kernel(self, X: Floats) -> Floats:
        """Between new items and those of the fit."""
        space, X = self._problem.space, self._features(X)
        if space.kernel == "linear":  # differences do not see an offset, which would cost digits
            middle = origin(space.items)
            return space.k(X - middle, space.items - middle)
        return space.less_one(X, space.centres)

    def _blocks(self, k: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Runs of knots, each ending where the next begins, and g = lambda f of items there, (n, knots)."""
        graph = self._problem.graph
        g = (k @ self._net(self._course.knots[0]))[:, None]
        for stretch in range(len(self._course.marks) - 1):
            knots, changes = self._stretch(stretch)
            if len(knots) < 2:
                continue
            front, alpha = self._start(stretch)
            nets = np.zeros((len(knots), len(graph.K)))
            nets[0] = net(graph, alpha)
            rerun(graph, front, alpha, knots, changes, 0.0, nets, _NONE)
            moved = np.flatnonzero((nets != nets[0]).any(axis=0))
            change = (nets - nets[0])[:, moved]
            g = (k @ nets[0])[:, None] + k[:, moved] @ change.T
            yield knots, g
        last, end = self._course.knots[-1], self._course.end
        if end < last:
            yield np.array([last, end]), g[:, -1:] * np.array([1.0, end / last])

    def _values(self, lam: float) -> tuple[float, float]:
        graph, alpha = self._problem.graph, self._weights(lam)
        q = net(graph, alpha)
        g = graph.K @ q
        half = float(q @ g) / (2 * lam)
        hinges = np.maximum(0.0, 1 - (g[graph.first] - g[graph.second]) / lam)
        return float(graph.bound @ hinges) + half, float(alpha.sum()) - half

    def _net(self, lam: float) -> Floats:
        return net(self._problem.graph, self._weights(lam))

    def _features(self, X: ArrayLike) -> Floats:
        space = self._problem.space
        return check_array(X, "X", ("n", space.items.shape[1]), "the features of the fit")

    def _weights(self, lam: float) -> Floats:
        """Of the distinct pairs, at most as large as their number."""
        knots = self._course.knots
        if lam >= knots[0]:
            return self._problem.graph.bound.copy()
        if lam < knots[-1]:
            return self._weights(knots[-1]) * (lam / knots[-1])
        piece = min(int(np.searchsorted(-knots, -lam, side="right")), len(knots) - 1) - 1
        stretch = int(np.searchsorted(self._course.marks[:-1, 0], piece, side="right")) - 1
        front, alpha = self._start(stretch)
        rerun(self._problem.graph, front, alpha, *self._stretch(stretch), lam, _NOTHING, _NONE)
        return alpha

    def _start(self, stretch: int) -> tuple[Front, Floats]:
        """The margin set where a stretch begins, ready to go on, and all weights."""
        course, graph = self._course, self._problem.graph
        before = course.changes[: course.marks[stretch, 1]]
        part = slice(course.first[stretch], course.first[stretch + 1])
        alpha, left = graph.bound.copy(), before[before[:, 2] >= 0]
        alpha[left[:, 1]] = left[:, 2] * graph.bound[left[:, 1]]  # of several, the last one counts
        alpha[course.pairs[part]] = course.weights[part]
        _, changes = self._stretch(stretch)
        room = part.stop - part.start + int(np.count_nonzero(changes[:, 2] < 0))
        front = new_front(room, len(graph.K))
        gather(graph.K, graph, front, course.pairs[part], np.full(part.stop - part.start, -1.0))
        return front, alpha

    def _stretch(self, stretch: int) -> tuple[Floats, Ids]:
        """Knots and changes of a stretch, counted from its beginning."""
        (piece, change), (end, last) = self._course.marks[stretch : stretch + 2]
        changes = self._course.changes[change:last].copy()
        changes[:, 0] -= piece
        return self._course.knots[piece : end + 1], changes
