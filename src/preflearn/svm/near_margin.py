"""Linear ranking SVMs with many pairs, solved by the pairs near the margin.

At a point near the minimum, most pairs are clearly on one side of the margin. The dual
weight of a pair with z clearly below 1 is its full cost. All these pairs are replaced
by one pair, with their weighted mean difference and the sum of their costs. Since
hinges are convex, this does not raise the objective, and a feasible dual point of the
small problem gives a feasible dual point of the full problem. The small problem is
solved exactly. If a gap remains because a pair has crossed the margin, a new small
problem is set up at the new point.
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

_MIN_NEAR = 2000  # minimum number of pairs near the margin in the small problem
_MAX_ROUNDS = 8
_MIN_PAIRS = 20_000
_PAIRS_PER_UNKNOWN = 20
_WIDENING = 2.0  # factor on the width after a round that left a gap


class NearMargin(NamedTuple):
    """A solution, and the information that gives the dual weight of each pair.

    At the scores f, pairs with z <= 1 - width have the weight `fraction` · cost, pairs
    near the margin have the weights `dual`, and the other pairs have weight 0.
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
    """Minimize 1/2 u·u plus hinges of pairs of items with the features X.

    The relative duality gap is at most `tol` unless rounding errors prevent it.
    """
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
    """Solve the problem of the pairs near the margin and the mean pair inside it."""
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
    """Return the objective over all pairs at w, and its distance from the dual.

    The value of the dual is taken from the small problem.
    """
    objective = float(w @ w) / 2 + losses.loss(X @ w)
    small = solution.certificate
    dual = small.objective * (1 - small.gap)
    largest = float(split.cost.max(initial=0.0)) or split.total
    doubt = noise * float(np.linalg.norm(w)) * float(np.sqrt(largest * split.total))
    return Certificate(objective, (abs(objective - dual) + doubt) / objective, 0.0)


def are_many(n_pairs: int, shape: tuple[int, ...]) -> bool:
    """Return whether there are too many pairs for the methods that list them.

    These are more than 20,000 pairs, and more than 20 per unknown, for items with
    features of this shape.
    """
    return n_pairs > max(_MIN_PAIRS, _PAIRS_PER_UNKNOWN * min(shape))


def solve_ranking(
    choice: KernelChoice,
    problem: KernelProblem,
    y: NDArray,
    cost: Floats,
    pairs: Ids,
    tol: float,
) -> Solution:
    """Solve eq. 3 for some pairs, ties last; ties count in both orders."""
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
