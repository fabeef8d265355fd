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
from numpy.typing import ArrayLike

from preflearn.checks import Floats, check_count, check_labels, check_real
from preflearn.ground.expansion import ItemKernel
from preflearn.ground.gram import fixed
from preflearn.ground.kernels import Kernel
from preflearn.pairs import Pairs, as_pairs
from preflearn.path.graph import Graph, check_entries
from preflearn.path.ranking_path import Problem, RankingPath
from preflearn.path.walk import Course, Walk, still

_NOTHING = 1e-13  # of the sum of sizes: scores that are rounding


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
    check_entries(problem.graph.largest, "the largest k(x, x)")
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
    walk = Walk(graph, graph.bound.copy())
    largest = float((walk.g[graph.first] - walk.g[graph.second]).max())
    if largest <= _NOTHING * walk.size:
        return still(walk.alpha, lambda_min), "complete"
    if lambda_min >= largest:
        raise ValueError(
            f"lambda_min is {lambda_min:g}, and above {largest:g} all weights are 1; expected a lambda_min "
            f"below {largest:g}, the first breakpoint"
        )
    return walk.down(largest, lambda_min, most)
