"""Which functions come next, one a view: the search of section 3.1 and Figure 2 of
[Tsivtsivadze2013]_.

With a factor R of L = R'R everything is an inner product of columns R k: so the
agreement of views is measured with the accuracy of each, and constants within a query
are gone before anything is squared.
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

# an eigenvalue of B + C, scaled to a diagonal of ones, that is rounding
_DEPENDENT = 1e-13
_ROUNDING = 16 * np.finfo(np.float64).eps  # of a value of a function


class MultiViewItems(NamedTuple):
    """Scored or unscored items, and the values of the functions of each view there."""

    form: QueryForm
    views: list[Dictionary]

    def columns(self, choice: Ids) -> Floats:
        """One function of each view, shape (n, M)."""
        return np.hstack(
            [view.columns(choice[v : v + 1]) for v, view in enumerate(self.views)]
        )

    def adjoint(self, V: Floats) -> Floats:
        """K'L v of all functions of each view and its column v of V, shape (N, M)."""
        LV = self.form.times(V)
        return np.column_stack(
            [view.times(v) for view, v in zip(self.views, LV.T, strict=True)]
        )

    def products(
        self, choices: Ids, shared: bool, across: bool
    ) -> tuple[Floats, Floats]:
        """k^(v)'L k^(u) of the functions of each choice, shape (choices, M, M).

        Without `across` entries of two views are 0. Also returns the rounding of the
        diagonal, shape (M,).
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
        """k^(v)'L k^(u) of functions of one index in two views, shape (N,)."""
        roots = self._roots(v), self._roots(u)
        return np.concatenate(
            [np.einsum("ij,ij->j", *pair) for pair in zip(*roots, strict=True)]
        )

    def _all_products(self, v: int, u: int) -> Floats:
        """k^(v)'L k^(u) of any two functions of two views, shape (N, N)."""
        return np.vstack(
            [
                np.hstack([root.T @ other for other in self._roots(u)])
                for root in self._roots(v)
            ]
        )

    def _roots(self, v: int) -> Iterator[Floats]:
        """R k of the functions of a view, some at a time."""
        return (self.form.root(columns) for _, columns in self.views[v].blocks())


class Systems:
    """(B + C) a = e of Figure 2 for every choice of one function a view, each factored
    once.

    Parameters
    ----------
    A : ndarray of shape (choices, M, M)
        Positive semi-definite.
    floor : ndarray of shape (M,)
        A diagonal entry up to this is rounding: the coefficient is 0.
    """

    def __init__(self, A: Floats, floor: Floats):
        diagonal = np.diagonal(A, axis1=1, axis2=2)
        # Views may differ in size by any power of ten: a diagonal of ones, but zeros
        # where there is rounding.
        self._scale = (diagonal > floor) / np.sqrt(
            np.where(diagonal > floor, diagonal, 1.0)
        )
        values, self._vectors = np.linalg.eigh(
            A * self._scale[:, :, None] * self._scale[:, None, :]
        )
        self._kept = values > _DEPENDENT
        self._inverse = self._kept / np.where(self._kept, values, 1.0)

    def decreases(self, e: Floats) -> Floats:
        """e'A^+ e, the decrease of a quadratic function at its minimum, for rows of e
        in the range of A."""
        along = np.einsum("cvk,cv->ck", self._vectors, self._scale * e)
        return (np.square(along) * self._inverse).sum(axis=1)

    def solution(self, number: int, e: Floats) -> Floats:
        """The solution of least norm of one system, shape (M,)."""
        scale = self._scale[number]
        vectors = self._vectors[number]
        kept = self._kept[number]
        a = scale * (vectors @ (self._inverse[number] * (vectors.T @ (scale * e))))
        null = scale[:, None] * vectors[:, ~kept]
        return a - null @ np.linalg.lstsq(null, a)[0]


class CoPursuit:
    """A pursuit in several views on its way, on trusted input.

    Parameters
    ----------
    scored, unscored : MultiViewItems
        Without `unscored` nothing is to agree.
    choices : ndarray of int, shape (choices, M)
        The functions that a step may append together, one a view.
    scores : ndarray of shape (n,)
    nu : float
    shared : bool
        Whether a choice is one index for all views.
    printed : bool
        Whether e is that of Figure 2: one residual for all views, and agreement of the
        increments alone.

    Attributes
    ----------
    basis, coefs : ndarray of shape (P, M)
        The functions of each step, and their coefficients.
    objectives : list of float
        (3) after 0, 1, ... steps.
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
        """B + C, where only the functions of one view meet in B."""
        A, floor = self._scored.products(self._choices, shared, False)
        if self._unscored:
            products, noise = self._unscored.products(self._choices, shared, True)
            weights = 2 * self._nu * (self._M * np.eye(self._M) - 1)
            A = A + weights * products
            floor = floor + weights.diagonal() * noise
        return Systems(A, floor)

    def step(self) -> bool:
        """Add the best functions, one a view; False where none lowers what is
        minimised."""
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
        )  # the first one of equals
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
        """r of each view, shape (n, M)."""
        if self._printed:  # line 8 of Figure 2
            return np.repeat(
                self._s - self._f.mean(axis=1, keepdims=True), self._M, axis=1
            )
        return self._s - self._f

    def _pull(self) -> Floats:
        """2 nu sum_u (fbar_v - fbar_u), shape (l, M)."""
        return (
            2
            * self._nu
            * self._M
            * (self._fbar - self._fbar.mean(axis=1, keepdims=True))
        )

    def _value(self, f: Floats, fbar: Floats) -> float:
        """(3); a sum over pairs of views is 2 M times that of squared distances from
        their mean."""
        value = self._scored.form.squares(self._s - f).sum()
        if self._unscored:
            apart = self._unscored.form.squares(
                fbar - fbar.mean(axis=1, keepdims=True)
            ).sum()
            value += 2 * self._nu * self._M * apart
        return float(value)


def rounding(form: QueryForm, size: Floats) -> Floats:
    """What v'Lv may be for values v of this size that differ by rounding alone."""
    return form.trace * np.square(_ROUNDING * size)
