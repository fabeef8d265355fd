"""Search for the next functions, one per view, of a pursuit in several views.

It implements section 3.1 and Figure 2 of [Tsivtsivadze2013]_.

With a factor R of L = R'R, all quantities are inner products of columns R k. The
agreement of views is therefore computed as accurately as the values of each view, and
constants within a query are removed before anything is squared.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from preflearn.core.validation import Floats, Ids
from preflearn.pursuit.dictionary import Dictionary, check_size
from preflearn.pursuit.greedy import MIN_DECREASE, TIE_TOLERANCE
from preflearn.pursuit.quadratic_forms import QueryForm

# smaller eigenvalues of B + C, scaled to a unit diagonal, are rounding errors
_DEPENDENT = 1e-13
_ROUNDING = 16 * np.finfo(np.float64).eps  # relative rounding error of a function value


class MultiViewItems(NamedTuple):
    """Scored or unscored items, with the function values of each view."""

    form: QueryForm
    views: list[Dictionary]

    def columns(self, choice: Ids) -> Floats:
        """Return the values of one function of each view, shape (n, M)."""
        return np.hstack(
            [view.columns(choice[v : v + 1]) for v, view in enumerate(self.views)]
        )

    def adjoint(self, V: Floats) -> Floats:
        """Return K'L v for each view and its column v of V, shape (N, M)."""
        LV = self.form.times(V)
        return np.column_stack(
            [view.times(v) for view, v in zip(self.views, LV.T, strict=True)]
        )

    def products(
        self, choices: Ids, shared: bool, across: bool
    ) -> tuple[Floats, Floats]:
        """Return k^(v)'L k^(u) for the functions of each choice, shape (choices, M, M).

        Without `across`, entries between two views are 0. The rounding errors of the
        diagonal, shape (M,), are also returned.
        """
        M = len(self.views)
        products = np.zeros((len(choices), M, M))
        for v, view in enumerate(self.views):
            name = f"the values of the functions of view {v}"
            products[:, v, v] = view.squares(self.form, name)[choices[:, v]]
        noise = rounding(self.form, np.array([view.largest for view in self.views]))
        if not across:
            return products, noise
        for v, u in combinations(range(M), 2):
            if shared:
                between = self._paired(v, u)[choices[:, v]]
            else:
                between = self._all_products(v, u)[choices[:, v], choices[:, u]]
            products[:, v, u] = products[:, u, v] = between
        return products, noise

    def _paired(self, v: int, u: int) -> Floats:
        """Return k^(v)'L k^(u) for functions of equal index in two views, shape (N,)."""
        roots = self._roots(v), self._roots(u)
        return np.concatenate(
            [np.einsum("ij,ij->j", *pair) for pair in zip(*roots, strict=True)]
        )

    def _all_products(self, v: int, u: int) -> Floats:
        """Return k^(v)'L k^(u) for all pairs of functions of two views, shape (N, N)."""
        return np.vstack(
            [
                np.hstack([root.T @ other for other in self._roots(u)])
                for root in self._roots(v)
            ]
        )

    def _roots(self, v: int) -> Iterator[Floats]:
        """Yield R k for the functions of a view, in blocks."""
        return (self.form.root(columns) for _, columns in self.views[v].blocks())


class Systems:
    """The linear systems (B + C) a = e of Figure 2, one per choice of functions.

    Each system is factored once.

    Parameters
    ----------
    A : ndarray of shape (choices, M, M)
        Positive semi-definite matrices.
    floor : ndarray of shape (M,)
        Diagonal entries up to this are rounding errors; their coefficients are 0.
    """

    def __init__(self, A: Floats, floor: Floats):
        diagonal = np.diagonal(A, axis1=1, axis2=2)
        # The scales of views may differ by any power of ten. Scale to a diagonal of
        # ones, with zeros for rounding errors.
        self._scale = (diagonal > floor) / np.sqrt(
            np.where(diagonal > floor, diagonal, 1.0)
        )
        values, self._vectors = np.linalg.eigh(
            A * self._scale[:, :, None] * self._scale[:, None, :]
        )
        self._kept = values > _DEPENDENT
        self._inverse = self._kept / np.where(self._kept, values, 1.0)

    def decreases(self, e: Floats) -> Floats:
        """Return e'A^+ e, the decreases of quadratic functions at their minima.

        The rows of e are in the range of A.
        """
        along = np.einsum("cvk,cv->ck", self._vectors, self._scale * e)
        return (np.square(along) * self._inverse).sum(axis=1)

    def solution(self, number: int, e: Floats) -> Floats:
        """Return the minimum-norm solution of one system, shape (M,)."""
        scale = self._scale[number]
        vectors = self._vectors[number]
        kept = self._kept[number]
        a = scale * (vectors @ (self._inverse[number] * (vectors.T @ (scale * e))))
        null = scale[:, None] * vectors[:, ~kept]
        return a - null @ np.linalg.lstsq(null, a)[0]


class CoPursuit:
    """State of a pursuit in several views; the input is not checked.

    Parameters
    ----------
    scored, unscored : MultiViewItems
        Items. Without `unscored`, the views need not agree.
    choices : ndarray of int, shape (choices, M)
        Combinations of functions, one per view, that a step may append.
    scores : ndarray of shape (n,)
        Scores of the scored items.
    nu : float
        Weight of the agreement of the views.
    shared : bool
        Whether a choice has the same index in all views.
    printed : bool
        Whether e is computed as in Figure 2: one residual for all views, and
        agreement of the increments only.

    Attributes
    ----------
    basis, coefs : ndarray of shape (P, M)
        Functions of each step, and their coefficients.
    objectives : list of float
        Values of eq. (3) after 0, 1, ... steps.
    """

    def __init__(
        self,
        scored: MultiViewItems,
        unscored: MultiViewItems | None,
        choices: Ids,
        scores: Floats,
        nu: float,
        *,
        shared: bool,
        printed: bool,
    ):
        self._scored = scored
        self._unscored = unscored
        self._choices = choices
        self._s = scores[:, None]
        self._nu = nu
        self._printed = printed
        self._M = len(scored.views)
        check_size(float(np.abs(scores).max()), "the differences of the scores y")
        self._systems = self._factored(shared)
        self._f = np.zeros((scored.form.n, self._M))
        n_unscored = 0
        if unscored:
            n_unscored = unscored.form.n
        self._fbar = np.zeros((n_unscored, self._M))
        self.basis = np.empty((0, self._M), dtype=np.int64)
        self.coefs = np.empty((0, self._M))
        self.objectives = [self._value(self._f, self._fbar)]
        noise = self._M * float(rounding(scored.form, np.abs(scores).max()))
        self._least = max(MIN_DECREASE * self.objectives[0], noise)

    def _factored(self, shared: bool) -> Systems:
        """Return the systems B + C; entries of B between different views are 0."""
        A, floor = self._scored.products(self._choices, shared, False)
        if self._unscored:
            products, noise = self._unscored.products(self._choices, shared, True)
            weights = 2 * self._nu * (self._M * np.eye(self._M) - 1)
            A = A + weights * products
            floor = floor + weights.diagonal() * noise
        return Systems(A, floor)

    def step(self) -> bool:
        """Add the best functions, one per view; return False if none improves."""
        e = self._scored.adjoint(self._residuals())
        if self._unscored and not self._printed:
            e -= self._unscored.adjoint(self._pull())
        e = e[self._choices, np.arange(self._M)]
        decreases = self._systems.decreases(e)
        largest = float(decreases.max())
        if not largest > self._least:
            return False
        best = int(
            np.argmax(decreases >= largest * (1 - TIE_TOLERANCE))
        )  # the first one of equal choices
        a = self._systems.solution(best, e[best])
        choice = self._choices[best]
        f = self._f + a * self._scored.columns(choice)
        fbar = self._fbar
        if self._unscored:
            fbar = fbar + a * self._unscored.columns(choice)
        value = self._value(f, fbar)
        if not self._printed and not value < self.objectives[-1]:
            return False
        self._f = f
        self._fbar = fbar
        self.objectives.append(value)
        self.basis = np.vstack([self.basis, choice])
        self.coefs = np.vstack([self.coefs, a])
        return True

    def _residuals(self) -> Floats:
        """Return the residual r of each view, shape (n, M)."""
        if self._printed:  # line 8 of Figure 2
            return np.repeat(
                self._s - self._f.mean(axis=1, keepdims=True), self._M, axis=1
            )
        return self._s - self._f

    def _pull(self) -> Floats:
        """Return 2 nu sum_u (fbar_v - fbar_u), shape (l, M)."""
        return (
            2
            * self._nu
            * self._M
            * (self._fbar - self._fbar.mean(axis=1, keepdims=True))
        )

    def _value(self, f: Floats, fbar: Floats) -> float:
        """Return the value of eq. (3).

        The sum over pairs of views is 2 M times the sum of squared distances from the
        mean.
        """
        value = self._scored.form.squares(self._s - f).sum()
        if self._unscored:
            apart = self._unscored.form.squares(
                fbar - fbar.mean(axis=1, keepdims=True)
            ).sum()
            value += 2 * self._nu * self._M * apart
        return float(value)


def rounding(form: QueryForm, size: Floats) -> Floats:
    """Return the size of v'Lv if values v of this size differ by rounding errors only."""
    return form.trace * np.square(_ROUNDING * size)
