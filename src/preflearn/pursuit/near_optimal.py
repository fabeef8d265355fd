"""Several sparse models of nearly the same loss, by a beam over the pursuit.

Sections 1 and 3.1 of [Tsivtsivadze2013]_ promise a search for multiple near-optimal
solutions; its algorithm returns one function a view. A beam keeps the best few sets of
p functions in place of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from preflearn.core.validation import Floats
from preflearn.pursuit.greedy import Search, Step

_EQUAL = 1e-9  # of a loss


@dataclass(eq=False, repr=False)
class NearOptimal:
    """Sparse models whose loss is at most (1 + epsilon) times the least one found, best
    first.

    Attributes
    ----------
    models : tuple of Step
        Each with `basis` (ids of the dictionary), `coef` and `loss`; no two have the
        same functions.
    """

    models: tuple[Step, ...]
    _values: Callable[[ArrayLike, Step], Floats]

    def __len__(self) -> int:
        return len(self.models)

    def predict_models(self, X: ArrayLike) -> Floats:
        """The scores of each model, shape (n, models), up to a constant a model."""
        return np.column_stack([self._values(X, model) for model in self.models])


def beam_search(
    search: Search, most: int, epsilon: float, beam: int
) -> tuple[Step, ...]:
    """The models of up to `most` functions in a beam, within epsilon of the best.

    From each of at most `beam` sets of functions the search goes on with its `beam`
    best next functions; the best sets are kept. A set that no function improves stays.
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
    """The searches after each of the best next functions."""
    decreases = state.decreases()
    for k in np.argsort(-decreases, kind="stable")[:beam].tolist():
        if decreases[k] > state.least:
            follower = state.fork()
            if follower.add(k):
                yield follower
