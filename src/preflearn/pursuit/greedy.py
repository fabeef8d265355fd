"""Which function comes next: greedy selection from a dictionary by the exact decrease of a quadratic loss.

With r = s - f, a function k lowers the loss r'L~r by (k'L~r)² / k'L~k, and after all coefficients are
refitted by (k'L~r)² / q'L~q, where q is what of k is L~-orthogonal to the chosen functions.
"""

from __future__ import annotations

import copy
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np

from preflearn.checks import Floats, Ids, require
from preflearn.pursuit.dictionary import Dictionary, check_size
from preflearn.pursuit.forms import Form

Backfit = Literal[False, "after", "pre"]
BACKFITS = (False, "after", "pre")

TIE = 1e-9  # decreases that differ by less than this share are equal: the first function is chosen
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
    """A model of a pursuit: the chosen functions, their coefficients, the loss on the training items."""

    basis: Ids
    coef: Floats
    loss: float


class Pursuit(Protocol):
    """A pursuit on its way: its model, and a step, which says whether the loss fell."""

    def model(self) -> Step: ...
    def step(self) -> bool: ...


class Search:
    """A pursuit on its way, on trusted input.

    With back-fitting q_1, ..., q_p, the rows of Q, are L~-orthonormal, and the columns of `made` are what
    they are made of: coefficients of the chosen functions.

    Parameters
    ----------
    dictionary : Dictionary
    form : Form
    scores : ndarray of shape (n,)
    backfit : False, "after" or "pre"
        As in `RankingPursuit`.
    """

    def __init__(self, dictionary: Dictionary, form: Form, scores: Floats, backfit: Backfit):
        self._dictionary, self._form, self._backfit = dictionary, form, backfit
        self._r, Lr, N, largest = scores, form.times(scores), dictionary.size, 0.0
        self._product, self._squares = np.empty(N), np.empty(N)  # k'L~r and k'L~k
        for part, columns in dictionary.blocks():
            largest = max(largest, float(columns.max()), -float(columns.min()))
            if largest > 1:  # before products of it
                check_size(largest, "the values of the functions")
            self._product[part], self._squares[part] = Lr @ columns, form.squares(columns)
        check_size(largest, "the values of the functions")
        self.loss, top = float(form.squares(scores)), float(self._squares.max(initial=0.0))
        size = self.loss**0.5 * top**0.5
        if not (size == 0 or _SMALL <= size <= 1 / _SMALL):
            raise ValueError(
                f"in the loss the scores have the norm {self.loss**0.5:.3g}, the functions up to "
                f"{top**0.5:.3g}; expected a product from {_SMALL:g} to {1 / _SMALL:g}: rescale scores, "
                "features or weights"
            )
        self.least = NOTHING * self.loss
        self._left = self._squares.copy()  # q'L~q of each function, were it the next
        self._closed = ~(self._squares > CONSTANT * top)
        self._slack = np.zeros(N)  # of what is left, where products have an error
        self._Q = self._LQ = np.empty((0, form.n))
        self._made, self._coef = np.empty((0, 0)), np.empty(0)
        self.order: tuple[int, ...] = ()

    def fork(self) -> Self:
        """A copy that can go another way."""
        other = copy.copy(self)
        for name in ("_left", "_closed", "_slack"):  # the others are replaced at a step, never written to
            setattr(other, name, getattr(self, name).copy())
        return other

    def model(self) -> Step:
        """What has been chosen so far."""
        return Step(np.array(self.order, dtype=np.int64), self._coef, self.loss)

    def decreases(self) -> Floats:
        """Of the loss by each function, shape (N,); 0 where it is spanned by the chosen ones already."""
        below = self._left if self._backfit == "pre" else self._squares
        found = np.zeros(len(below))
        np.divide(np.square(self._product), below, out=found, where=~self._closed)
        return found if self._dictionary.spread is None else self._verified(found, self._dictionary.spread)

    def step(self) -> bool:
        """Add the best function; False where none lowers the loss."""
        for _ in range(self._dictionary.size):  # each that is refused is closed
            best = self._best()
            if best is None:
                return False
            if self.add(best):
                return True
        return False

    def _best(self) -> int | None:
        """The function of the largest decrease, the first one of equals; None where there is none."""
        found = self.decreases()
        largest = found.max(initial=0.0)
        return int(np.argmax(found >= largest * (1 - TIE))) if largest > self.least else None

    def add(self, chosen: int) -> bool:
        """Append a function; False where rounding alone made it look useful, and nothing was appended."""
        q, inner, size = self._orthogonal(self._dictionary.columns(np.array([chosen]))[:, 0])
        self._closed[chosen] = True
        if not size > 0:
            return False
        q = q / size
        Lq = self._form.times(q)
        amount = float(Lq @ self._r)
        r = self._r - amount * q
        loss = float(self._form.squares(r))
        if not amount * amount > self.least or loss > self.loss * (1 + TIE):
            return False
        self._r, self.loss, self._product = r, loss, self._dictionary.times(self._form.times(r))
        self.order, self._coef = (*self.order, chosen), np.append(self._coef, amount / size)
        if not self._backfit:
            self._closed[chosen] = False
            return True
        p = len(inner)
        made = np.zeros((p + 1, p + 1))
        made[:p, :p], made[:p, p], made[p, p] = self._made, -(self._made @ inner) / size, 1 / size
        self._coef[:p] += amount * made[:p, p]
        self._made = made
        self._Q, self._LQ = np.concatenate([self._Q, q[None]]), np.concatenate([self._LQ, Lq[None]])
        if self._backfit == "pre":
            self._left -= np.square(self._dictionary.times(Lq))
            self._closed |= self._left <= DEPENDENT * self._squares
            if self._dictionary.spread is not None:  # |k'L~q| is at most the root of k'L~k
                spread = self._dictionary.spread * np.linalg.norm(Lq)
                self._slack += 2 * np.sqrt(self._squares) * spread
        return True

    def _orthogonal(self, k: Floats) -> tuple[Floats, Floats, float]:
        """What of k is L~-orthogonal to the chosen functions, its parts along them, and its norm."""
        q, inner = k, np.zeros(len(self._Q))
        for _ in range(2 if len(inner) else 0):  # twice is enough
            part = self._LQ @ q
            q = q - part @ self._Q
            inner += part
        square = float(self._form.squares(q))
        return q, inner, square**0.5 if square > DEPENDENT * (square + inner @ inner) else 0.0

    def _verified(self, found: Floats, spread: Floats) -> Floats:
        """Decreases in full precision wherever one might be the largest, and 0 elsewhere."""
        Lr, below = self._form.times(self._r), self._left if self._backfit == "pre" else self._squares
        surely = np.maximum(below - self._slack, DEPENDENT * self._squares)
        most = np.abs(self._product) + spread * np.linalg.norm(Lr)
        most = np.where(self._closed, 0.0, np.square(most) / surely)
        exact, done = np.zeros(len(found)), np.zeros(len(found), dtype=bool)
        ids = np.argsort(-found, kind="stable")[:_FEW]
        while len(ids):
            exact[ids], done[ids] = self._exact(ids, Lr), True
            ids = np.flatnonzero(~done & (most >= exact.max() * (1 - 2 * TIE)) & (most > self.least))
            ids = ids[np.argsort(-most[ids], kind="stable")][: 8 * _FEW]
        return exact

    def _exact(self, ids: Ids, Lr: Floats) -> Floats:
        """The decreases of a few functions from their columns."""
        columns = self._dictionary.columns(ids)
        below = self._form.squares(columns)
        floor = DEPENDENT * below
        if self._backfit == "pre":
            below = below - np.square(self._LQ @ columns).sum(axis=0)
        usable = ~self._closed[ids] & (below > floor)
        return np.where(usable, np.square(Lr @ columns) / np.where(usable, below, 1.0), 0.0)


def followed(search: Pursuit, most: int) -> list[Step]:
    """The models of 0, 1, 2, ... functions, up to `most` while the loss falls."""
    models = [search.model()]
    for _ in range(most):
        if not search.step():
            break
        models.append(search.model())
    return models
