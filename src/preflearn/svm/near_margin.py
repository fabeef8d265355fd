"""Linear ranking SVMs of many pairs, by the pairs near the margin.

At a point near the minimum most pairs are clearly on one side of the margin. Those with
z < 1 pull with their full cost, so one pair stands for all of them: their mean
difference, with the sum of their costs. As hinges are convex, this lowers the
objective, and a feasible dual point of the small problem is one of the whole. The small
problem is solved exactly; if a pair crossed the margin, so that a gap remains, it is
posed again at the new point.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from preflearn.core.expansion import Expansion, KernelChoice, origin, rounding
from preflearn.core.validation import Floats, Ids
from preflearn.pairs import Incidence, Pairs
from preflearn.solvers.hinge_dual import Certificate, HingeTerms
from preflearn.solvers.smoothed_hinge import (
    HingeLosses,
    ListedPairs,
    SplitPairs,
    approach_minimum,
)
from preflearn.svm.kernel_problem import KernelProblem, Solution, check_cost

_MIN_NEAR = 2000  # pairs near the margin, in the small problem
_MAX_ROUNDS = 8
_MIN_PAIRS = 20_000
_PAIRS_PER_UNKNOWN = 20
_WIDENING = 2.0  # of the width, after a round that left a gap


class NearMargin(NamedTuple):
    """A solution, and the dual weights of pairs by their place at some scores.

    Pairs with z below the margin by the width or more, at the scores f, have the weight
    `fraction` · cost, those near it the weights `dual`, and the others 0.
    """

    u: Floats  # (p,)
    certificate: Certificate
    f: Floats  # (n,)
    width: float
    index: Ids  # (k, 2) pairs near the margin
    dual: Floats  # (k,)
    fraction: float


def solve_near_margin(
    choice: KernelChoice, losses: HingeLosses, X: Any, tol: float
) -> NearMargin:
    """Minimise 1/2 u·u plus hinges of pairs of items with the features X, to a relative
    gap of `tol` if rounding allows it."""
    if not sparse.issparse(X):
        X = X - origin(X)
    noise = rounding(X.data if sparse.issparse(X) else X)
    largest = float((X * X).sum(axis=1).max())
    check_cost(losses.costs, largest)
    w, width = approach_minimum(losses, X, max(_MIN_NEAR, min(X.shape)))
    best = None
    for _ in range(_MAX_ROUNDS):
        f = X @ w
        split = losses.split(f, width)
        solution = _solve_small(choice, X, split, tol)
        w = _weights(solution.expansion)
        proof = _certify(losses, X, w, split, solution, noise)
        if best is None or proof.gap < best.certificate.gap:
            n_near = len(split.index)
            dual = solution.dual_coef[:n_near]
            fraction = 0.0
            if split.total > 0:
                fraction = float(solution.dual_coef[n_near]) / split.total
            best = NearMargin(w, proof, f, width, split.index, dual, fraction)
        if proof.gap <= tol:
            break
        width *= _WIDENING
    assert best is not None
    return best


def _solve_small(
    choice: KernelChoice, X: Any, split: SplitPairs, tol: float
) -> Solution:
    """The solution of the pairs near the margin and of the mean pair beyond it."""
    index = split.index
    cost = split.cost
    n = X.shape[0]
    if split.total > 0:
        mean = (X.T @ (split.pull / split.total))[None]
        stack: Any = np.vstack
        if sparse.issparse(X):
            stack = sparse.vstack
        X = stack([X, mean, 0 * mean])
        index = np.vstack([index, [n, n + 1]])
        cost = np.append(cost, split.total)
    if sparse.issparse(X):
        X = sparse.csr_array(X)
    problem = KernelProblem.of(choice, Pairs._trusted(X, index), merge=False)
    pairs = np.arange(len(index))
    rows = HingeTerms.from_labels(np.ones(len(index), dtype=np.int8), cost, False)
    return problem.solve_hinges(problem.hinge_problem(pairs, rows), pairs, tol)


def _weights(expansion: Expansion) -> Floats:
    return expansion.coef @ expansion.centres


def _certify(
    losses: HingeLosses,
    X: Any,
    w: Floats,
    split: SplitPairs,
    solution: Solution,
    noise: float,
) -> Certificate:
    """The objective of all pairs at w, and its distance from the dual of the small
    problem."""
    objective = float(w @ w) / 2 + losses.loss(X @ w)
    small = solution.certificate
    dual = small.objective * (1 - small.gap)
    largest = float(split.cost.max(initial=0.0)) or split.total
    doubt = noise * float(np.linalg.norm(w)) * float(np.sqrt(largest * split.total))
    return Certificate(objective, (abs(objective - dual) + doubt) / objective, 0.0)


def are_many(n_pairs: int, shape: tuple[int, ...]) -> bool:
    """Whether pairs with the features of items of this shape are too many for the
    methods that list them all: more than 20,000, and 20 for each unknown."""
    return n_pairs > max(_MIN_PAIRS, _PAIRS_PER_UNKNOWN * min(shape))


def solve_ranking(
    choice: KernelChoice,
    problem: KernelProblem,
    y: NDArray,
    cost: Floats,
    pairs: Ids,
    tol: float,
) -> Solution:
    """Eq. 3 for some pairs, ties last, which count in both orders."""
    many = problem.items_are_features and are_many(len(pairs), problem.items.shape)
    if not many:
        return problem.solve(y, cost, pairs, False, tol)
    rows = HingeTerms.from_labels(y[pairs], cost[pairs], False)
    index = problem.B.index[pairs]
    index = np.concatenate([index, index[2 * rows.n_pairs - len(rows.sign) :]])
    index = np.where((rows.sign > 0)[:, None], index, index[:, ::-1])
    B = Incidence(np.asfortranarray(index), len(problem.ids))
    found = solve_near_margin(choice, ListedPairs(B, rows.cost), problem.items, tol)
    near, beyond = ListedPairs(B, rows.cost).parts(found.f, found.width)
    s = np.where(beyond, found.fraction * rows.cost, 0.0)
    s[near] = found.dual
    dual_coef = np.zeros(len(y))
    dual_coef[pairs] = rows.summed(rows.sign * s)
    expansion = Expansion(problem.functions.k, found.u[None], np.ones(1))
    return Solution(dual_coef, expansion, found.certificate)
