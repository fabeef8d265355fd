"""Which function comes next: greedy selection from a dictionary by the exact decrease
of a quadratic loss.

With r = s - f, a function k lowers the loss r'L~r by (k'L~r)² / k'L~k, and after all
coefficients are refitted by (k'L~r)² / q'L~q, where q is what of k is L~-orthogonal to
the chosen functions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Literal, NamedTuple, Self

import numpy as np

from preflearn.core.validation import Floats, Ids, require
from preflearn.pursuit.dictionary import Dictionary
from preflearn.pursuit.quadratic_forms import Form

Backfit = Literal[False, "after", "pre"]
BACKFITS = (False, "after", "pre")

# decreases that differ by less than this share are equal: the first function is chosen
TIE = 1e-9
NOTHING = 1e-20  # of the first loss: a smaller decrease is rounding
DEPENDENT = 1e-11  # of its square: what is left of a function that the chosen ones span
CONSTANT = 1e-28  # of the largest square: a function that is constant within each query
_FEW = 8
_SMALL = 1e-130  # beyond, squares of products leave the floats


def check_backfit(value: object) -> None:
    """Raise ValueError unless a parameter is one of `BACKFITS`."""
    good = value is False or (isinstance(value, str) and value in BACKFITS)
    require(good, value, "backfit", "False, 'after' or 'pre'")


class Step(NamedTuple):
    """A model of a pursuit: the chosen functions, their coefficients, the loss on the
    training items."""

    basis: Ids
    coef: Floats
    loss: float


class Search:
    """A pursuit on its way, on trusted input.

    With back-fitting the rows of Q are L~-orthonormal, and the chosen functions are
    sums of them.

    Parameters
    ----------
    dictionary : Dictionary
    form : Form
    scores : ndarray of shape (n,)
    backfit : False, "after" or "pre"
        As in `RankingPursuit`.

    Attributes
    ----------
    order : tuple of int
        The functions chosen so far.
    losses : tuple of float
        After 0, 1, ... of them.
    least : float
        A decrease of no more is none.
    """

    def __init__(
        self, dictionary: Dictionary, form: Form, scores: Floats, backfit: Backfit
    ):
        self._dictionary = dictionary
        self._form = form
        self._backfit = backfit
        self._squares = dictionary.squares(form)  # k'L~k
        loss = float(form.squares(scores))
        top = float(self._squares.max(initial=0.0))
        size = loss**0.5 * top**0.5
        if not (size == 0 or _SMALL <= size <= 1 / _SMALL):
            text = f"in the loss the scores have the norm {loss**0.5:.3g}, the functions up to {top**0.5:.3g}"
            expected = f"a product from {_SMALL:g} to {1 / _SMALL:g}: rescale scores, features or weights"
            raise ValueError(f"{text}; expected {expected}")
        self.order: tuple[int, ...] = ()
        self.losses = (loss,)
        self.least = NOTHING * loss
        self._r = scores
        self._Lr = form.times(scores)
        self._product = dictionary.times(self._Lr)  # k'L~r
        # k'L~k, or q'L~q were the function the next ("pre"); infinite where it is not
        # to be chosen.
        self._below = np.where(self._squares > CONSTANT * top, self._squares, np.inf)
        # of what is below, where products have an error
        self._slack = np.zeros(dictionary.size)
        self._Q = self._LQ = np.empty((0, form.n))
        # of each chosen function along the rows of Q, its own last
        self._parts: tuple[Floats, ...] = ()
        # of what each step added, in units of its own
        self._amounts: tuple[float, ...] = ()

    def fork(self) -> Self:
        """A copy that can go another way."""
        other = copy.copy(self)  # the rest is replaced at a step, never written to
        other._below = self._below.copy()
        other._slack = self._slack.copy()
        return other

    def coefs(self) -> Floats:
        """Coefficients of the P chosen functions after 0, 1, ...

        steps, shape (P, P + 1).
        """
        P = len(self.order)
        made = np.zeros((P, P))
        for p, part in enumerate(self._parts):
            made[p + 1 - len(part) : p + 1, p] = part
        amounts = np.triu(np.tile(np.array(self._amounts)[:, None], P + 1), k=1)
        return np.asarray(np.linalg.solve(made, amounts), dtype=np.float64)

    def model(self) -> Step:
        """What has been chosen so far."""
        return Step(
            np.array(self.order, dtype=np.int64), self.coefs()[:, -1], self.losses[-1]
        )

    def decreases(self) -> Floats:
        """Of the loss by each function, shape (N,); 0 where it is spanned by the chosen
        ones already."""
        found = np.square(self._product) / self._below
        return (
            found
            if self._dictionary.spread is None
            else self._verified(found, self._dictionary.spread)
        )

    def step(self) -> bool:
        """Add the best function, the first one of equals; False where none lowers the
        loss."""
        for _ in range(self._dictionary.size):  # each that is refused is closed
            found = self.decreases()
            largest = found.max(initial=0.0)
            if not largest > self.least:
                return False
            if self.add(int(np.argmax(found >= largest * (1 - TIE)))):
                return True
        return False

    def add(self, chosen: int) -> bool:
        """Append a function; False where rounding alone made it look useful, and
        nothing was appended."""
        self._below[chosen] = np.inf
        q, inner = self._orthogonal(self._dictionary.columns(np.array([chosen]))[:, 0])
        square = float(self._form.squares(q))
        if not square > DEPENDENT * self._squares[chosen]:
            return False
        size = square**0.5
        q = q / size
        Lq = self._form.times(q)
        amount = float(Lq @ self._r)
        r = self._r - amount * q
        loss = float(self._form.squares(r))
        if not amount * amount > self.least or loss > self.losses[-1] * (1 + TIE):
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
        """What of k is L~-orthogonal to the chosen functions, and its parts along them."""
        q = k
        inner = np.zeros(len(self._Q))
        for _ in range(2 if len(inner) else 0):  # twice is enough
            part = self._LQ @ q
            q = q - part @ self._Q
            inner += part
        return q, inner

    def _lower(self, Lq: Floats) -> None:
        """Take from q'L~q of each function its part along one more."""
        self._below -= np.square(self._dictionary.times(Lq))
        self._below[self._below <= DEPENDENT * self._squares] = np.inf
        if self._dictionary.spread is not None:  # |k'L~q| is at most the root of k'L~k
            self._slack += (
                2
                * np.sqrt(self._squares)
                * self._dictionary.spread
                * np.linalg.norm(Lq)
            )

    def _verified(self, found: Floats, spread: Floats) -> Floats:
        """Decreases in full precision wherever one might be the largest, and 0
        elsewhere."""
        surely = np.maximum(self._below - self._slack, DEPENDENT * self._squares)
        most = np.abs(self._product) + spread * np.linalg.norm(self._Lr)
        most = np.square(most) / surely
        exact = np.zeros(len(found))
        done = np.zeros(len(found), dtype=bool)
        ids = np.argsort(-found, kind="stable")[:_FEW]
        while len(ids):  # each is done once
            exact[ids] = self._exact(ids)
            done[ids] = True
            ids = np.flatnonzero(
                ~done & (most >= exact.max() * (1 - 2 * TIE)) & (most > self.least)
            )
            ids = ids[np.argsort(-most[ids], kind="stable")][: 8 * _FEW]
        return exact

    def _exact(self, ids: Ids) -> Floats:
        """The decreases of a few functions from their columns."""
        columns = self._dictionary.columns(ids)
        below = self._squares[ids]
        if self._backfit == "pre":
            below = below - np.square(self._LQ @ columns).sum(axis=0)
        usable = (self._below[ids] < np.inf) & (below > DEPENDENT * self._squares[ids])
        return np.square(self._Lr @ columns) / np.where(usable, below, np.inf)


def follow(step: Callable[[], bool], most: int) -> None:
    """Take up to `most` steps, while the loss falls."""
    for _ in range(most):
        if not step():
            break
