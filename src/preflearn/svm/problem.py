"""The kernel problem of a fit: the distinct items and the incidence matrix over them, and its solution.

The interior point, the dual, or both find it; a ranking function comes out as an expansion in kernels, with
the certificate of exactly this function.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, Ids, check_scale
from preflearn.ground.expansion import Expansion, ItemKernel, origin
from preflearn.ground.expansion import rounding as rounding_of
from preflearn.ground.gram import centred
from preflearn.ground.interior import Hinges, minimise
from preflearn.ground.kernels import SHIFTED, NotPositiveSemidefiniteError, few_features, indefinite
from preflearn.svm.differences import HingeMatrix, ItemDifferences, KernelDifferences
from preflearn.svm.dual import Certificate, Rows, certificate, maximise

_NOTHING = 1e-12  # of the sum of sizes: differences of scores that are rounding
INACCURATE = 1e-6  # a duality gap, in units of the objective, that is worth a warning
_LARGEST, _SMALLEST = 1e16, 1e-100  # costs that floats can tell from 0 and infinity beside 1/2 u·u
_DEFINITE = (*SHIFTED, "cosine", "chi2", "additive_chi2")  # positive semi-definite on differences
_FEW = 300  # features that are looked for before anything else
_DENSE = 1.2  # pairs per rank, beyond which most margins cannot be reached
_ENOUGH = 1e-9  # a gap for which no second method is tried
_NEAR = 1e-2  # a gap after which the dual goes on
# Shares of the effort of the interior point, and gaps that the dual must have reached by then.
_DENSE_PATIENCE = [(0.05, 0.9), (0.08, 0.85), (0.2, 0.3), (0.5, 0.05), (1.0, 0.0)]
_STEPS = 16  # of the interior point


class Solution(NamedTuple):
    """A machine that was found, and what proves how good it is."""

    dual_coef: Floats  # (m,) u = sum_i dual_coef[i] d_i over the pairs of the problem
    expansion: Expansion
    certificate: Certificate


class KernelProblem(ItemKernel):
    """The distinct items that occur in some pairs, their kernel, and the incidence matrix over them."""

    def solve(self, y: NDArray, cost: Floats, pairs: Ids, biased: bool, tol: float) -> Solution:
        """Minimise 1/2 u·u plus the hinges of some pairs, preferences first: eq. 15, or eq. 3."""
        cost = cost[pairs]
        exact, few = self._differences(pairs)
        size = exact.largest_square()
        for name, value in (("cost C · weight", cost.max()), ("cost · k(x, x)", cost.max() * size)):
            if value > _LARGEST:
                raise ValueError(
                    f"the largest {name} is {value:.3g}; expected at most {_LARGEST:g}, since beyond 1/2 u·u "
                    "is lost in rounding: lower C, or standardise the features"
                )
        if cost.min() < _SMALLEST:
            raise ValueError(
                f"the smallest cost C · weight is {cost.min():.3g}; expected at least {_SMALLEST:g}"
            )
        rows = Rows.of(y[pairs], cost, biased)

        rank = min(exact.rank if few is None else few.rank, len(self.ids))
        whole = _effort(rank, len(self.ids), len(rows.sign))
        patience = _patience(whole, len(pairs) > _DENSE * rank)
        s, gap = maximise(exact, rows, np.zeros(len(rows.sign)), tol, patience)
        found = [self._judged(rows, exact, s)]
        if gap > max(tol, _ENOUGH):
            found += self._by_the_interior_point(
                rows, exact, exact.reduced() if few is None else few, tol, whole
            )
        best = min(found, key=lambda solution: solution.certificate.gap)
        dual_coef = np.zeros(self.B.shape[0])
        dual_coef[pairs] = best.dual_coef
        return best._replace(dual_coef=dual_coef)

    def _by_the_interior_point(
        self,
        rows: Rows,
        exact: ItemDifferences | KernelDifferences,
        reduced: ItemDifferences,
        tol: float,
        whole: float,
    ) -> list[Solution]:
        """By its dual weights; if these are not good enough, also by its own u, and polished."""
        hinges = Hinges(HingeMatrix(reduced, rows), rows.cost, rows.label if rows.biased else 0 * rows.label)
        inner = minimise(hinges, tol)
        s = rows.feasible(rows.label * inner.dual)
        found = [self._judged(rows, exact, s)]
        if found[0].certificate.gap <= tol:
            return found
        if inner.own_gap <= tol:
            found.append(self._with_features(rows, exact, reduced, s, inner.u))
        if found[-1].certificate.gap > tol:
            polished, _ = maximise(exact, rows, s, tol, [(whole, 0.0)])
            found.append(self._judged(rows, exact, polished))
            if found[-1].certificate.gap > max(tol, INACCURATE):  # then dual_coef is only nearly u
                found += [self._with_features(rows, exact, reduced, w, inner.u) for w in (s, polished)]
        return found

    def _with_features(
        self,
        rows: Rows,
        exact: ItemDifferences | KernelDifferences,
        reduced: ItemDifferences,
        s: Floats,
        u: Floats,
    ) -> Solution:
        """The function u, proved by dual weights."""
        start = exact.B.adjoint(rows.summed(rows.sign * s))
        return self._judged(rows, exact, s, self._of_features(reduced, u, start), float(u @ u))

    def _judged(
        self,
        rows: Rows,
        exact: ItemDifferences | KernelDifferences,
        s: Floats,
        expansion: Expansion | None = None,
        squared: float | None = None,
    ) -> Solution:
        """The function of dual weights, or another one with its u·u, and what they prove about it."""
        a = rows.summed(rows.sign * s)
        z = exact.gram_times(a)
        own = float(a @ z)
        if expansion is None:
            expansion = self.expansion(exact.B.adjoint(a))
        if squared is not None or self.kernel not in SHIFTED:  # rounding of what is returned
            z = exact.B.differences(expansion(self.items))
        dual, squared = float(rows.label @ s) - own / 2, own if squared is None else squared
        if np.abs(z).max() <= _NOTHING * np.abs(a).sum() * exact.largest_square():
            # u is what rounding leaves of a sum that cancels; its order of the items would mean nothing.
            expansion, z, squared = expansion._replace(coef=0 * expansion.coef), 0 * z, 0.0
        size = expansion.centres if self.kernel == "linear" else expansion.coef
        noise = exact.rounding * float(np.linalg.norm(size))
        return Solution(a, expansion, certificate(rows, z, squared, dual, noise))

    def _of_features(self, reduced: ItemDifferences, u: Floats, start: Floats) -> Expansion:
        """r = u·L, as a function of the kernel; its coefficients are near those to start from."""
        if self.kernel == "linear":
            return Expansion(self.k, u[None], np.ones(1))
        coef = reduced.coefficients(u, start)
        return self.expansion(coef if self.kernel in SHIFTED else coef - coef.mean())

    def _differences(self, pairs: Ids) -> tuple[ItemDifferences | KernelDifferences, ItemDifferences | None]:
        """The differences of some pairs, and by few features with the same inner products, if such exist."""
        B = self.B[pairs]
        if self.kernel == "linear":
            exact = ItemDifferences(B, self.items - origin(self.items), rounding_of(self.items))
            return exact, exact
        K = self.gram()
        check_scale(K, "the Gram matrix")
        rounding = rounding_of(K)
        if self.kernel not in SHIFTED:
            K = centred(K)
        try:
            few = few_features(K, _FEW, rounding, check=self.kernel not in _DEFINITE)
        except NotPositiveSemidefiniteError:
            raise indefinite(self.gram()) from None
        return KernelDifferences(B, K, rounding), None if few is None else ItemDifferences.triangular(B, *few)


def _effort(rank: int, n_items: int, n_rows: int) -> float:
    """Of the interior point, in nanoseconds: its steps, each a system of `rank` equations."""
    return _STEPS * (1e6 + 0.045 * n_items * rank**2 + 0.02 * rank**3 + 400.0 * n_rows)


def _patience(whole: float, dense: bool) -> list[tuple[float, float]]:
    """When the dual is given up for the interior point, whose effort this is."""
    if dense:
        return [(share * whole, gap) for share, gap in _DENSE_PATIENCE]
    return [(whole, _NEAR), (2 * whole, 0.0)]
