"""Several sparse models of nearly the same loss, by beam search.

Sections 1 and 3.1 of [Tsivtsivadze2013]_ announce a search for multiple near-optimal
solutions, but its algorithm returns a single solution. A beam search keeps the best few
sets of p functions instead of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from preflearn.core.validation import Floats
from preflearn.pursuit.greedy import Search, Step

_EQUAL = 1e-9  # relative difference below which losses count as equal


@dataclass(eq=False, repr=False)
class NearOptimal:
    """Sparse models of nearly the lowest loss, best first.

    Their loss is at most (1 + epsilon) times the lowest loss that was found.

    Attributes
    ----------
    models : tuple of Step
        Models with `basis` (ids in the dictionary), `coef` and `loss`; no two have the
        same functions.
    """

    models: tuple[Step, ...]
    _values: Callable[[ArrayLike, Step], Floats]

    def __len__(self) -> int:
        return len(self.models)

    def predict_models(self, X: ArrayLike) -> Floats:
        """Return the scores of each model up to a constant per model, (n, models)."""
        return np.column_stack([self._values(X, model) for model in self.models])


def beam_search(
    search: Search, most: int, epsilon: float, beam: int
) -> tuple[Step, ...]:
    """Search for models of up to `most` functions within epsilon of the best one.

    Each of at most `beam` sets of functions is extended by its `beam` best next
    functions, and the best resulting sets are kept. A set that no function improves is
    kept as it is.
    """
    front = [search]
    finished = {}
    for _ in range(most):
        found: dict[frozenset[int], Search] = {}
        for state in front:
            followers = list(_followers(state, beam))
            if not followers:
                finished[frozenset(state.order)] = state
            for follower in followers:
                found.setdefault(frozenset(follower.order), follower)
        front = sorted(found.values(), key=lambda state: state.losses[-1])[:beam]
        if not front:
            break
    states = sorted([*front, *finished.values()], key=lambda state: state.losses[-1])
    limit = (1 + epsilon) * states[0].losses[-1] + _EQUAL * states[0].least
    return tuple(state.model() for state in states[:beam] if state.losses[-1] <= limit)


def _followers(state: Search, beam: int) -> Iterator[Search]:
    """Yield a copy of the search for each of the best next functions."""
    decreases = state.decreases()
    for k in np.argsort(-decreases, kind="stable")[:beam].tolist():
        if decreases[k] > state.least:
            follower = state.fork()
            if follower.add(k):
                yield follower
