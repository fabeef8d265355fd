"""Which function comes next: greedy selection from a dictionary by the exact decrease of a quadratic loss.

With r = s - f, a function k lowers the loss r'L~r by (k'L~r)² / k'L~k, and after all coefficients are
refitted by (k'L~r)² / q'L~q, where q is what of k is L~-orthogonal to the chosen functions. A step changes
r by a multiple of one function, so that one product of the dictionary with L~q updates all decreases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, Self

import numpy as np
from scipy.linalg import solve_triangular

from preflearn.checks import Floats, Ids, require
from preflearn.pursuit.dictionary import Dictionary
from preflearn.pursuit.forms import QuadraticForm

Backfit = Literal[False, "after", "pre"]
BACKFITS = (False, "after", "pre")

TIE = 1e-9  # decreases that differ by less than this share are equal: the first function is chosen
NOTHING = 1e-20  # of the first loss: a smaller decrease is rounding
DEPENDENT = 1e-11  # of its square: what is left of a function that the chosen ones span
CONSTANT = 1e-28  # of the largest square: a function that is constant within each query
_AGREE = 1e-6  # an updated product that is off by more is computed anew
_FEW = 8
_SMALL = 1e-130  # beyond, squares of products leave the floats


def check_backfit(value: object) -> None:
    """Raise ValueError unless a parameter is one of `BACKFITS`."""
    good = value is False or (isinstance(value, str) and value in BACKFITS)
    require(good, value, "backfit", "False, 'after' or 'pre'")


class Step(NamedTuple):
    """A model of the pursuit: the chosen functions, their coefficients, the loss on the training items."""

    basis: Ids
    coef: Floats
    loss: float


class Search:
    """A pursuit on its way. With `backfit` q_1, ..., q_p are L~-orthonormal and span the chosen functions."""

    def __init__(self, dictionary: Dictionary, form: QuadraticForm, scores: Floats, backfit: Backfit):
        self._dictionary, self._form, self._backfit = dictionary, form, backfit
        self._r = scores.astype(np.float64)  # a copy
        self._product = dictionary.first.copy()  # K'L~r
        self._left = dictionary.squares.copy()  # q'L~q of each function, were it the next
        floor = CONSTANT * float(dictionary.squares.max(initial=0.0))
        self._closed = ~(dictionary.squares > floor)
        self._error = None if dictionary.spread is None else np.zeros(len(self._left))
        self._Q, self._LQ = np.empty((0, form.n)), np.empty((0, form.n))
        self._upper, self._along = np.empty((0, 0)), np.empty(0)  # chosen = Q'upper; f = Q'along
        self._order: list[int] = []
        self._amounts: list[float] = []
        self.loss = float(form.squares(self._r[:, None])[0])
        sizes = self.loss**0.5, float(dictionary.squares.max(initial=0.0)) ** 0.5
        product = sizes[0] * sizes[1]
        if not (product == 0 or _SMALL <= product <= 1 / _SMALL):
            raise ValueError(
                f"in the loss the scores have the norm {sizes[0]:.3g}, the functions up to {sizes[1]:.3g}; "
                f"expected a product from {_SMALL:g} to {1 / _SMALL:g}: rescale scores, features or weights"
            )
        self.least = NOTHING * self.loss

    def fork(self) -> Self:
        """A copy that can go another way."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in ("_r", "_product", "_left", "_closed", "_Q", "_LQ", "_upper", "_along", "_error"):
            value = getattr(self, name)
            setattr(other, name, None if value is None else value.copy())
        other._order, other._amounts = list(self._order), list(self._amounts)
        return other

    @property
    def chosen(self) -> frozenset[int]:
        return frozenset(self._order)

    def model(self) -> Step:
        """What has been chosen so far."""
        coef = np.array(self._amounts)
        p = len(self._order)
        if self._backfit:
            coef = solve_triangular(self._upper[:p, :p], self._along[:p]) if p else np.empty(0)
        return Step(np.array(self._order, dtype=np.int64), coef, self.loss)

    def decreases(self) -> Floats:
        """Of the loss by each function, shape (N,); 0 where it is spanned by the chosen ones already."""
        below = self._left if self._backfit == "pre" else self._dictionary.squares
        found = np.zeros(len(below))
        np.divide(np.square(self._product), below, out=found, where=~self._closed)
        return found

    def step(self) -> bool:
        """Add the best function; False where none lowers the loss."""
        while (best := self.best()) is not None:
            if self.add(best):
                return True
        return False

    def best(self) -> int | None:
        """The function of the largest decrease, the first one of equals; None where there is none."""
        found = self.decreases()
        if self._error is not None:
            found = self._verified(found, self._error)
        largest = float(found.max(initial=0.0))
        if not largest > self.least:
            return None
        return int(np.argmax(found >= largest * (1 - TIE)))

    def add(self, chosen: int) -> bool:
        """Append a function; False where rounding alone made it look useful, and nothing was appended."""
        k = self._dictionary.columns(np.array([chosen]))[:, 0]
        q, inner, size = self._orthogonal(k)
        if not size > 0:
            self._closed[chosen] = True
            return False
        Lq = self._form.times(q) / size
        q = q / size
        amount = float(Lq @ self._r)
        # Of a function that was not chosen before, k'L~r = size q'L~r, as r is L~-orthogonal to the others.
        if abs(amount * size - self._product[chosen]) > _AGREE * abs(amount * size):
            if self._refreshed():
                return False
            if not amount * amount > self.least:
                self._closed[chosen] = True
                return False
        r = self._r - amount * q
        loss = float(self._form.squares(r[:, None])[0])
        if loss > self.loss * (1 + TIE):
            self._closed[chosen] = True
            return False
        self._r, self.loss = r, loss
        self._append(chosen, q, Lq, inner, size, amount)
        return True

    def _orthogonal(self, k: Floats) -> tuple[Floats, Floats, float]:
        """What of k is L~-orthogonal to the chosen functions, its parts along them, and its norm."""
        p, q = len(self._along) if self._backfit else 0, k
        inner = np.zeros(p)
        for _ in range(2 if p else 0):  # twice is enough
            part = self._LQ[:p] @ q
            q = q - part @ self._Q[:p]
            inner += part
        square = float(self._form.squares(q[:, None])[0])
        whole = square + float(inner @ inner)
        return q, inner, float(np.sqrt(square)) if square > DEPENDENT * whole else 0.0

    def _refreshed(self) -> bool:
        """Compute K'L~r anew; whether that changed anything."""
        product = self._dictionary.times(self._form.times(self._r))
        changed = not np.array_equal(product, self._product)
        self._product = product
        if self._error is not None and self._dictionary.spread is not None:
            self._error = self._dictionary.spread * float(np.linalg.norm(self._form.times(self._r)))
        return changed

    def _append(self, chosen: int, q: Floats, Lq: Floats, inner: Floats, size: float, amount: float) -> None:
        product = self._dictionary.times(Lq)
        self._product -= amount * product
        if self._error is not None and self._dictionary.spread is not None:
            self._error += abs(amount) * self._dictionary.spread * float(np.linalg.norm(Lq))
        if self._backfit:
            self._left -= np.square(product)
            self._closed |= self._left <= DEPENDENT * self._dictionary.squares
            self._closed[chosen] = True
            self._grow(q, Lq, inner, size, amount)
        self._order.append(chosen)
        self._amounts.append(amount / size)

    def _grow(self, q: Floats, Lq: Floats, inner: Floats, size: float, amount: float) -> None:
        p = len(self._along)
        if p == len(self._Q):  # twice the room
            room = np.zeros((max(8, p), self._form.n))
            self._Q, self._LQ = np.vstack([self._Q, room]), np.vstack([self._LQ, room])
            upper = np.zeros((len(self._Q), len(self._Q)))
            upper[:p, :p] = self._upper[:p, :p]
            self._upper = upper
        self._Q[p], self._LQ[p] = q, Lq
        self._upper[:p, p], self._upper[p, p] = inner, size
        self._along = np.append(self._along, amount)

    def _verified(self, found: Floats, error: Floats) -> Floats:
        """Decreases in full precision wherever one might be the largest, and 0 elsewhere."""
        below = self._left if self._backfit == "pre" else self._dictionary.squares
        surely = np.maximum(below - self._left_error(), DEPENDENT * self._dictionary.squares)
        most = np.where(self._closed, 0.0, np.square(np.abs(self._product) + error) / surely)
        exact, done = np.zeros(len(found)), np.zeros(len(found), dtype=bool)
        ids = np.argsort(-found, kind="stable")[:_FEW]
        while len(ids):
            exact[ids], done[ids] = self._exact(ids), True
            ids = np.flatnonzero(~done & (most >= exact.max() * (1 - 2 * TIE)) & (most > self.least))
            ids = ids[np.argsort(-most[ids], kind="stable")][: 8 * _FEW]
        return exact

    def _left_error(self) -> Floats | float:
        """A bound on the error of what is left of each function, with "pre"."""
        if self._backfit != "pre" or self._dictionary.spread is None:
            return 0.0
        norms = np.linalg.norm(self._LQ[: len(self._along)], axis=1)
        # |K'L~q| is at most the root of k'L~k, as q has norm 1.
        roots = np.sqrt(self._dictionary.squares)
        return 2 * roots * self._dictionary.spread * float(norms.sum())

    def _exact(self, ids: Ids) -> Floats:
        """The decreases of a few functions from their columns."""
        columns = self._dictionary.columns(ids)
        below = self._form.squares(columns)
        floor = DEPENDENT * below
        if self._backfit == "pre":
            below = below - np.square(self._LQ[: len(self._along)] @ columns).sum(axis=0)
        product = columns.T @ self._form.times(self._r)
        usable = ~self._closed[ids] & (below > floor)
        return np.where(usable, np.square(product) / np.where(usable, below, 1.0), 0.0)


def steps(search: Search) -> Iterator[Step]:
    """The models of 0, 1, 2, ... functions, as long as the loss falls."""
    yield search.model()
    while search.step():
        yield search.model()


def followed(
    models: Iterator[Step], most: int, error: Callable[[Step], float] | None, patience: int | None
) -> tuple[list[Step], Floats]:
    """Models of up to `most` functions, and the errors of held-out items, if there are some.

    With an error the pursuit ends `patience` steps after the least one.
    """
    kept: list[Step] = []
    errors: list[float] = []
    for model in models:
        kept.append(model)
        if error is not None:
            errors.append(error(model))
            if patience is not None and len(errors) - 1 - int(np.argmin(errors)) >= patience:
                break
        if len(kept) > most:
            break
    return kept, np.array(errors)
