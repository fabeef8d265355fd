"""The graph of the pairs of a path, with the Gram matrix of the items.

See `preflearn.path.ranking` for the problem. The weights of the m pairs affect the
scores only through the item coefficients B'alpha, so a product takes one row of the
Gram matrix per item.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.validation import Floats, require

# smallest allowed entry of a Gram matrix, whose square does not underflow
MIN_ENTRY = 1e-100
# a weight that differs from 0 or its bound by less counts as equal to it
BOUND_TOL = 1e-12


class PairGraph(NamedTuple):
    """Distinct pairs (better item, other item), and the Gram matrix of the items."""

    # (n, n), or with bias (n - 1, n - 1), since rows of the last item are 0 except for
    # tau
    K: Floats
    items: int  # n
    largest: float  # largest entry of K
    # (m,), unsigned, since compiled code would check signed ids for negative values
    first: NDArray[np.uint32]
    second: NDArray[np.uint32]  # (m,)
    bound: Floats  # (m,)
    # If positive, all items are compared with the last item, whose score is minus the
    # bias and is not penalized.
    tau: float


def check_entries(largest: float, name: str) -> None:
    """Raise ValueError if products of Gram matrix entries would be 0 or infinite."""
    sound = MIN_ENTRY <= largest <= 1 / MIN_ENTRY
    expected = f"0, or a number from {MIN_ENTRY:g} to {1 / MIN_ENTRY:g}"
    require(
        largest == 0 or sound,
        largest,
        name,
        f"{expected}: rescale the features or the kernel",
    )


def add_adjoint(q: Floats, pairs: Any, ids: Any, v: Floats) -> None:
    """Add B'v to q, where v has the weights of some pairs."""
    np.add.at(q, pairs.first[ids], v)
    np.subtract.at(q, pairs.second[ids], v)


def item_coefficients(graph: PairGraph, alpha: Floats) -> Floats:
    """Return B'alpha, adding weights at a bound first.

    These weights are integers, so their sum is exact.
    """
    q = np.zeros(graph.items)
    at_bound = (alpha == 0) | (alpha == graph.bound)
    for part in (at_bound, ~at_bound):
        add_adjoint(q, graph, part, alpha[part])
    return q
