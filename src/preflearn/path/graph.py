"""The graph of the pairs of a path, over the Gram matrix of its items.

See `preflearn.path.ranking` for the problem. The weights of the m pairs act on the
scores through the item coefficients B'alpha only, so products cost one row of the Gram
matrix for each item.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.validation import Floats, require

MIN_ENTRY = 1e-100  # of a Gram matrix: its square is above 0
BOUND_TOL = 1e-12  # a weight this near to 0 or to its bound counts as equal to it


class PairGraph(NamedTuple):
    """Distinct pairs (better item, other item), and the Gram matrix of the items."""

    # (n, n), or with bias (n - 1, n - 1): the last item's rows are 0 except for tau
    K: Floats
    items: int  # n
    largest: float  # entry of K
    # (m,), unsigned, since compiled code asks whether other ids are negative
    first: NDArray[np.uint32]
    second: NDArray[np.uint32]  # (m,)
    bound: Floats  # (m,)
    # If positive, all items are compared with the last one, whose score is minus the
    # bias and is not penalized.
    tau: float


def check_entries(largest: float, name: str) -> None:
    """Raise ValueError if products of entries of a Gram matrix would be 0 or inf."""
    sound = MIN_ENTRY <= largest <= 1 / MIN_ENTRY
    expected = f"0, or {MIN_ENTRY:g} to {1 / MIN_ENTRY:g}"
    require(
        largest == 0 or sound,
        largest,
        name,
        f"{expected}: rescale the features, or the kernel",
    )


def add_adjoint(q: Floats, pairs: Any, ids: Any, v: Floats) -> None:
    """Add B'v to q, where v has the weights of these pairs only."""
    np.add.at(q, pairs.first[ids], v)
    np.subtract.at(q, pairs.second[ids], v)


def item_coefficients(graph: PairGraph, alpha: Floats) -> Floats:
    """B'alpha; weights at a bound are integers, so their exact sum comes first."""
    q = np.zeros(graph.items)
    at_bound = (alpha == 0) | (alpha == graph.bound)
    for part in (at_bound, ~at_bound):
        add_adjoint(q, graph, part, alpha[part])
    return q
