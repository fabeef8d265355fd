"""Greedy selection of functions by the exact decrease of a quadratic loss.

With r = s - f, a function k lowers the loss r'L~r by (k'L~r)² / k'L~k. If all
coefficients are refitted, it lowers the loss by (k'L~r)² / q'L~q, where q is the
component of k that is L~-orthogonal to the chosen functions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Literal, NamedTuple, Self

import numpy as np

from preflearn.core.validation import Floats, Ids, require
from preflearn.pursuit.dictionary import Dictionary
from preflearn.pursuit.quadratic_forms import QueryForm

Backfit = Literal[False, "after", "pre"]
BACKFITS = (False, "after", "pre")

# if decreases differ by less, relatively, the first function is chosen
TIE_TOLERANCE = 1e-9
# a smaller decrease, relative to the initial loss, is a rounding error
MIN_DECREASE = 1e-20
# remainder of a function in the span of the chosen ones, relative to its square
MAX_DEPENDENT = 1e-11
# square of a function that is constant within each query, relative to the largest one
MAX_CONSTANT = 1e-28
# number of functions whose decreases are computed in full precision first
_N_VERIFIED = 8
_MIN_PRODUCT = 1e-130  # squares of smaller products underflow


def check_backfit(value: object) -> None:
    """Raise ValueError unless the parameter is one of `BACKFITS`."""
    good = value is False or (isinstance(value, str) and value in BACKFITS)
    require(good, value, "backfit", "False, 'after' or 'pre'")


class Step(NamedTuple):
    """A model of a pursuit: functions, coefficients, and training loss."""

    basis: Ids
    coef: Floats
    loss: float


class Search:
    """State of a pursuit; the input is not checked.

    With back-fitting the rows of Q are an L~-orthonormal basis of the chosen functions.

    Parameters
    ----------
    dictionary : Dictionary
        Functions to choose from.
    form : QueryForm
        Quadratic form of the loss.
    scores : ndarray of shape (n,)
        Scores of the items.
    backfit : False, "after" or "pre"
        Treatment of earlier coefficients, as in `RankingPursuit`.

    Attributes
    ----------
    order : tuple of int
        Functions chosen so far.
    losses : tuple of float
        Losses after 0, 1, ... functions.
    least : float
        Smallest decrease that counts.
    """

    def __init__(
        self, dictionary: Dictionary, form: QueryForm, scores: Floats, backfit: Backfit
    ):
        self._dictionary = dictionary
        self._form = form
        self._backfit = backfit
        self._squares = dictionary.squares(form)  # k'L~k
        loss = float(form.squares(scores))
        top = float(self._squares.max(initial=0.0))
        size = loss**0.5 * top**0.5
        if not (size == 0 or _MIN_PRODUCT <= size <= 1 / _MIN_PRODUCT):
            raise ValueError(
                f"the norm of the scores ({loss**0.5:.3g}) times the norm of the kernel functions (up "
                f"to {top**0.5:.3g}) is outside the range from {_MIN_PRODUCT:g} to "
                f"{1 / _MIN_PRODUCT:g}; rescale the scores or the features"
            )
        self.order: tuple[int, ...] = ()
        self.losses = (loss,)
        self.least = MIN_DECREASE * loss
        self._r = scores
        self._Lr = form.times(scores)
        self._product = dictionary.times(self._Lr)  # k'L~r
        # k'L~k, or q'L~q with "pre"; infinite for functions that cannot be chosen
        self._below = np.where(
            self._squares > MAX_CONSTANT * top, self._squares, np.inf
        )
        # bound on the error of `_below`, if products have an error
        self._slack = np.zeros(dictionary.size)
        self._Q = self._LQ = np.empty((0, form.n))
        # coordinates of each chosen function in the basis Q, its own row last
        self._parts: tuple[Floats, ...] = ()
        # coefficient of the normalized function of each step
        self._amounts: tuple[float, ...] = ()

    def fork(self) -> Self:
        """Return a copy that can be continued independently."""
        other = copy.copy(
            self
        )  # a step replaces the other attributes and never modifies them
        other._below = self._below.copy()
        other._slack = self._slack.copy()
        return other

    def coefs(self) -> Floats:
        """Return the coefficients after each step, shape (P, P + 1)."""
        P = len(self.order)
        made = np.zeros((P, P))
        for p, part in enumerate(self._parts):
            made[p + 1 - len(part) : p + 1, p] = part
        amounts = np.triu(np.tile(np.array(self._amounts)[:, None], P + 1), k=1)
        return np.asarray(np.linalg.solve(made, amounts), dtype=np.float64)

    def model(self) -> Step:
        """Return the current model."""
        return Step(
            np.array(self.order, dtype=np.int64), self.coefs()[:, -1], self.losses[-1]
        )

    def decreases(self) -> Floats:
        """Return the decrease of the loss by each function, shape (N,).

        It is 0 for functions in the span of the chosen ones.
        """
        decreases = np.square(self._product) / self._below
        if self._dictionary.spread is None:
            return decreases
        return self._verified(decreases, self._dictionary.spread)

    def step(self) -> bool:
        """Add the best function; return False if none lowers the loss.

        If several functions have equal decreases, the first one is added.
        """
        for _ in range(
            self._dictionary.size
        ):  # each rejected function is excluded from then on
            decreases = self.decreases()
            largest = decreases.max(initial=0.0)
            if not largest > self.least:
                return False
            if self.add(int(np.argmax(decreases >= largest * (1 - TIE_TOLERANCE)))):
                return True
        return False

    def add(self, chosen: int) -> bool:
        """Append a function; return False if its decrease was only a rounding error."""
        self._below[chosen] = np.inf
        q, inner = self._orthogonal(self._dictionary.columns(np.array([chosen]))[:, 0])
        square = float(self._form.squares(q))
        if not square > MAX_DEPENDENT * self._squares[chosen]:
            return False
        size = square**0.5
        q = q / size
        Lq = self._form.times(q)
        amount = float(Lq @ self._r)
        r = self._r - amount * q
        loss = float(self._form.squares(r))
        if not amount * amount > self.least or loss > self.losses[-1] * (
            1 + TIE_TOLERANCE
        ):
            return False
        self._r = r
        self._Lr = self._Lr - amount * Lq
        self._product = self._dictionary.times(self._Lr)
        self.order = (*self.order, chosen)
        self.losses = (*self.losses, loss)
        self._parts = (*self._parts, np.append(inner, size))
        self._amounts = (*self._amounts, amount)
        if self._backfit:
            self._Q = np.concatenate([self._Q, q[None]])
            self._LQ = np.concatenate([self._LQ, Lq[None]])
        else:
            self._below[chosen] = self._squares[chosen]
        if self._backfit == "pre":
            self._lower(Lq)
        return True

    def _orthogonal(self, k: Floats) -> tuple[Floats, Floats]:
        """Return the L~-orthogonal component of k, and its other parts."""
        q = k
        inner = np.zeros(len(self._Q))
        if not len(inner):
            return q, inner
        for _ in range(2):  # a second projection removes rounding errors of the first
            part = self._LQ @ q
            q = q - part @ self._Q
            inner += part
        return q, inner

    def _lower(self, Lq: Floats) -> None:
        """Subtract the part along one more basis function from q'L~q of each function."""
        self._below -= np.square(self._dictionary.times(Lq))
        self._below[self._below <= MAX_DEPENDENT * self._squares] = np.inf
        if self._dictionary.spread is not None:  # |k'L~q| is at most the root of k'L~k
            self._slack += (
                2
                * np.sqrt(self._squares)
                * self._dictionary.spread
                * np.linalg.norm(Lq)
            )

    def _verified(self, found: Floats, spread: Floats) -> Floats:
        """Return exact decreases for candidates of the largest one, and 0 elsewhere."""
        surely = np.maximum(self._below - self._slack, MAX_DEPENDENT * self._squares)
        most = np.abs(self._product) + spread * np.linalg.norm(self._Lr)
        most = np.square(most) / surely
        exact = np.zeros(len(found))
        done = np.zeros(len(found), dtype=bool)
        ids = np.argsort(-found, kind="stable")[:_N_VERIFIED]
        while len(ids):  # each function is computed once
            exact[ids] = self._exact(ids)
            done[ids] = True
            ids = np.flatnonzero(
                ~done
                & (most >= exact.max() * (1 - 2 * TIE_TOLERANCE))
                & (most > self.least)
            )
            ids = ids[np.argsort(-most[ids], kind="stable")][: 8 * _N_VERIFIED]
        return exact

    def _exact(self, ids: Ids) -> Floats:
        """Return the decreases of a few functions, from their exact columns."""
        columns = self._dictionary.columns(ids)
        below = self._squares[ids]
        if self._backfit == "pre":
            below = below - np.square(self._LQ @ columns).sum(axis=0)
        usable = (self._below[ids] < np.inf) & (
            below > MAX_DEPENDENT * self._squares[ids]
        )
        return np.square(self._Lr @ columns) / np.where(usable, below, np.inf)


def follow(step: Callable[[], bool], most: int) -> None:
    """Take up to `most` steps, as long as the loss decreases."""
    for _ in range(most):
        if not step():
            break
