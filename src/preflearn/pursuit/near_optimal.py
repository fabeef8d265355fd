"""Several sparse models of nearly the same loss, by a beam over the pursuit, and what they agree on.

Sections 1 and 3.1 of [Tsivtsivadze2013]_ promise a search for multiple near-optimal solutions; its algorithm
returns one function a view. A beam keeps the best few sets of p functions in place of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from scipy.stats import rankdata

from preflearn.checks import (
    LARGEST,
    Floats,
    check_array,
    check_choice,
    refuse,
    require,
)
from preflearn.metrics import disagreement_error
from preflearn.pursuit.base import given
from preflearn.pursuit.forms import QueryForm, query_numbers
from preflearn.pursuit.greedy import Search, Step

Aggregate = Literal["mean", "median", "borda"]

_EQUAL = 1e-9  # of a loss


class NearOptimal:
    """Sparse models whose loss is at most (1 + epsilon) times the least one found, best first.

    Attributes
    ----------
    models : tuple of Step
        Each with `basis` (ids of the dictionary), `coef` and `loss`; no two have the same functions.
    """

    def __init__(self, models: tuple[Step, ...], values: Callable[[ArrayLike, Step], Floats]):
        self.models, self._values = models, values

    def __len__(self) -> int:
        return len(self.models)

    def predict_models(self, X: ArrayLike) -> Floats:
        """The scores of each model, shape (n, models), up to a constant a model."""
        return np.column_stack([self._values(X, model) for model in self.models])

    def rank_function(
        self,
        X: ArrayLike,
        aggregate: Aggregate = "mean",
        qid: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> Floats:
        """One score an item, shape (n,).

        Parameters
        ----------
        aggregate : {"mean", "median", "borda"}
            Of the models' scores less their mean in each query, or of their ranks in the query.
        weights : array-like of shape (models,), optional
            At least 0. Of the mean and of the ranks, such as those of `validated_weights`; None: equal ones.
        """
        check_choice(aggregate, "aggregate", ("mean", "median", "borda"))
        scores = self.predict_models(X)
        query = query_numbers(len(scores), qid)
        scores = QueryForm(query).centred(scores)
        if aggregate == "median":
            return np.median(scores, axis=1)
        if aggregate == "borda":
            for code in range(int(query.max()) + 1):
                scores[query == code] = rankdata(scores[query == code], axis=0)
        if weights is not None:
            weights = check_array(weights, "weights", (len(self.models),), "one a model")
            refuse((weights < 0) | (weights > LARGEST), weights, "weights", f"numbers from 0 to {LARGEST:g}")
            require(bool(weights.any()), weights, "weights", "at least one positive number")
        return np.average(scores, axis=1, weights=weights)

    def agreement(self, X: ArrayLike, qid: ArrayLike | None = None) -> Floats:
        """The share of pairs of items which two models put in the same order, shape (models, models).

        A pair that one model ties is half an agreement.
        """
        scores = self.predict_models(X)
        size = range(len(self.models))
        wrong = [[disagreement_error(scores[:, a], scores[:, b], qid) for b in size] for a in size]
        return 1.0 - np.array(wrong)

    def validated_weights(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Floats:
        """Weights of at least 0 that add up to 1, by least squares of eq. 2 on held-out items, (models,).

        Where no positive combination is better than a constant the weights are equal.
        """
        data = given(X, y, qid, graph=None, mix=0.0)
        weights, _ = nnls(data.form.root(self.predict_models(data.X)), data.form.root(data.y))
        size = len(self.models)
        return weights / weights.sum() if weights.any() else np.full(size, 1 / size)


def beam_search(search: Search, most: int, epsilon: float, beam: int) -> tuple[Step, ...]:
    """The models of up to `most` functions in a beam, within epsilon of the best.

    From each of at most `beam` sets of functions the search goes on with its `beam` best next functions; the
    best sets are kept. A set that no function improves stays.
    """
    front, finished = [search], {}
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


def _followers(state: Search, beam: int):
    """The searches after each of the best next functions."""
    decreases = state.decreases()
    for k in np.argsort(-decreases, kind="stable")[:beam].tolist():
        if decreases[k] > state.least:
            follower = state.fork()
            if follower.add(k):
                yield follower
