"""The kernel problem of a fit: the distinct items and the incidence matrix over them,
and its solution.

The dual by blocks, the interior point, or both find it; a ranking function comes out as
an expansion in kernels, with the certificate of exactly this function.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from preflearn.core.expansion import Expansion, ItemKernel, origin
from preflearn.core.expansion import rounding as rounding_of
from preflearn.core.gram import centred
from preflearn.core.kernels import (
    SHIFTED,
    NotPositiveSemidefiniteError,
    few_features,
    indefinite,
    pivoted_features,
)
from preflearn.core.validation import Floats, Ids, check_scale, require
from preflearn.pairs import DifferenceGram
from preflearn.solvers.hinge_dual import Certificate, HingeTerms, certificate, maximise
from preflearn.solvers.interior_point import Hinges, minimise
from preflearn.svm.differences import FeatureGram, HingeMatrix

_KERNEL = 5  # half of the roundings that a value of a kernel may be off
_NOTHING = 1e-12  # of the sum of sizes: differences of scores that are rounding
INACCURATE = 1e-6  # a duality gap, in units of the objective, that is worth a warning
# costs that floats can tell from 0 and infinity beside 1/2 u·u
_LARGEST = 1e16
_SMALLEST = 1e-100
# positive semi-definite on differences
_DEFINITE = (*SHIFTED, "cosine", "chi2", "additive_chi2")
_FEW = 300  # features that are looked for before anything else
_FEWEST = 160  # unknowns: with fewer a step of the interior point is no cheaper
# a gap for which no second method is tried, unless losses outweigh 1/2 u·u by far
_ENOUGH = 1e-9
_NEAR = 1e-6  # share of u·u: with half of it as the gap, u is right to a thousandth
# hinges for each unknown of the interior point; beyond, the dual comes first where it
# pulls little
_MANY = 8
# Patience, times h r², the work of a step of the interior point: at least, at most,
# and the hinges for each unknown where it is 1.
_LEAST = 1 / 4
_MOST = 4
_EVEN = 2.5
# blocks of the dual after the interior point, in some 30 steps of which it pays for
# them
_POLISH = 20


class Solution(NamedTuple):
    """A machine that was found, and what proves how good it is."""

    dual_coef: Floats  # (m,) u = sum_i dual_coef[i] d_i over the pairs of the problem
    expansion: Expansion
    certificate: Certificate


class Space(NamedTuple):
    """The hinges of some pairs, and the differences of these as the kernel has them."""

    rows: HingeTerms
    gram: DifferenceGram | FeatureGram
    few: FeatureGram | None  # the same by few features, if such exist
    largest: float  # k(x, x)
    rounding: float  # of an entry of K, or of a feature

    def features(self) -> FeatureGram:
        """The same by as many features as the rank."""
        if self.few is not None:
            return self.few
        assert isinstance(self.gram, DifferenceGram)  # a linear kernel has few
        return FeatureGram.triangular(
            self.gram.B, *pivoted_features(self.gram.K, self.rounding)
        )

    def chances(self, n: int) -> tuple[bool, float]:
        """Whether the dual by blocks comes first, and the work that it may leave
        unsolved.

        The notes of `SVMCompare` say why; n is the number of items.
        """
        rows = self.rows
        h = len(self.rows.sign)
        r = n if self.few is None else min(n, self.few.rank)
        pull = h * float(rows.cost @ rows.expanded(self.gram.diagonal()))
        patience = min(_MOST, max(_LEAST, (_EVEN * r / h) ** 4))
        return h <= _MANY * r or pull <= max(r, _FEWEST) ** 3, patience * h * r**2


class KernelProblem(ItemKernel):
    """An `ItemKernel` with its solvers, and the certificate of what they return."""

    @property
    def by_features(self) -> bool:
        """Whether the items themselves are the features: sparse ones have fewer by
        their Gram matrix."""
        return self.kernel == "linear" and not sparse.issparse(self.items)

    def solve(
        self, y: NDArray, cost: Floats, pairs: Ids, biased: bool, tol: float
    ) -> Solution:
        """Minimise 1/2 u·u plus the hinges of some pairs, preferences first: eq.

        15, or eq. 3.
        """
        rows = HingeTerms.from_labels(y[pairs], cost[pairs], biased)
        space = self.space(pairs, rows)
        found = []
        gap = np.inf
        _check_cost(rows.cost, space.largest)
        tried, patience = space.chances(len(self.ids))
        if tried:
            s, gap = maximise(space.gram, rows, np.zeros(len(rows.sign)), tol, patience)
            found = [self._judged(space, s)]
        if gap > tol and not any(gap <= _enough(one, space) for one in found):
            found += self._by_the_interior_point(space, tol)
        best = min(found, key=lambda solution: solution.certificate.gap)
        dual_coef = np.zeros(self.B.shape[0])
        dual_coef[pairs] = best.dual_coef
        # What the kernel's own rounding can do, no gap between its values knows: with
        # the coefficients a of the items the optimum moves by a'(dK)a / 2, to first
        # order, and dK was up to seven roundings (of polynomials of degree 10).
        a = space.gram.B.adjoint(best.dual_coef) * (
            self.kernel not in ("linear", "precomputed")
        )
        proof = best.certificate
        gap = (
            proof.gap
            + _KERNEL * space.rounding * float(np.abs(a).sum()) ** 2 / proof.objective
        )
        return best._replace(dual_coef=dual_coef, certificate=proof._replace(gap=gap))

    def space(self, pairs: Ids, rows: HingeTerms) -> Space:
        """The differences of some pairs, whose hinges these are."""
        B = self.B[pairs]
        if self.by_features:
            L = self.items - origin(self.items)
            of_items = FeatureGram(B, L)
            return Space(
                rows,
                of_items,
                of_items,
                float((L**2).sum(axis=1).max()),
                rounding_of(self.items),
            )
        K = self.gram()
        check_scale(K, "the Gram matrix")
        rounding = rounding_of(K)
        if self.kernel not in SHIFTED:
            K = centred(K)
        try:
            few = few_features(K, _FEW, rounding, check=self.kernel not in _DEFINITE)
        except NotPositiveSemidefiniteError:
            raise indefinite(self.gram()) from None
        by_few = None if few is None else FeatureGram.triangular(B, *few)
        return Space(
            rows, DifferenceGram(B, K), by_few, float(K.diagonal().max()), rounding
        )

    def _by_the_interior_point(self, space: Space, tol: float) -> list[Solution]:
        """By its dual weights; if these are not good enough, also by its own u, and
        polished."""
        rows = space.rows
        features = space.features()
        hinges = Hinges(
            HingeMatrix(features, rows),
            rows.cost,
            rows.label if rows.biased else 0 * rows.label,
        )
        inner = minimise(hinges, tol)
        s = rows.feasible(rows.label * inner.dual)
        found = [self._judged(space, s)]
        if found[0].certificate.gap <= tol:
            return found
        if inner.primal_gap <= tol:
            found.append(self._with_features(space, features, s, inner.u))
        if found[-1].certificate.gap > tol:
            free = int(np.count_nonzero((s > rows.low) & (s < rows.high)))
            most = min(
                _POLISH,
                1 + (30 * len(s) * features.rank**2 + _FEWEST**3) // max(free, 1) ** 3,
            )
            polished, _ = maximise(space.gram, rows, s, tol, most=most)
            found.append(self._judged(space, polished))
            # then dual_coef is only nearly u
            if found[-1].certificate.gap > max(tol, INACCURATE):
                found += [
                    self._with_features(space, features, w, inner.u)
                    for w in (s, polished)
                ]
        return found

    def _with_features(
        self, space: Space, features: FeatureGram, s: Floats, u: Floats
    ) -> Solution:
        """The function u·L, proved by dual weights; its coefficients are near those of
        these weights."""
        if self.by_features:
            return self._judged(
                space, s, Expansion(self.functions.k, u[None], np.ones(1)), float(u @ u)
            )
        coef = features.coefficients(
            u, space.gram.B.adjoint(space.rows.summed(space.rows.sign * s))
        )
        expansion = self.expansion(
            coef if self.kernel in SHIFTED else coef - coef.mean()
        )
        return self._judged(space, s, expansion, float(u @ u))

    def _judged(
        self,
        space: Space,
        s: Floats,
        expansion: Expansion | None = None,
        squared: float | None = None,
    ) -> Solution:
        """The function of dual weights, or another one with its u·u, and what they
        prove about it."""
        rows = space.rows
        a = space.rows.summed(space.rows.sign * s)
        z = space.gram.times(a)
        own = float(a @ z)
        if expansion is None:
            expansion = self.expansion(space.gram.B.adjoint(a))
        # rounding of what is returned
        if squared is not None or self.kernel not in SHIFTED:
            z = space.gram.B.differences(expansion(self.items))
        dual = float(rows.label @ s) - own / 2
        squared = own if squared is None else squared
        if np.abs(z).max() <= _NOTHING * np.abs(a).sum() * space.largest:
            # u is what rounding leaves of a sum that cancels; its order of the items
            # would mean nothing.
            expansion = expansion._replace(coef=0 * expansion.coef)
            z = 0 * z
            squared = 0.0
        size = expansion.centres if self.kernel == "linear" else expansion.coef
        noise = space.rounding * float(np.linalg.norm(size))
        return Solution(a, expansion, certificate(rows, z, squared, dual, noise))


def _enough(solution: Solution, space: Space) -> float:
    """A gap, relative to the objective, for which the function is near enough to the
    optimal one."""
    a = solution.dual_coef
    return min(
        _ENOUGH,
        _NEAR / 2 * float(a @ space.gram.times(a)) / solution.certificate.objective,
    )


def _check_cost(cost: Floats, size: float) -> None:
    for name, value in (
        ("cost C · weight", cost.max()),
        ("cost · k(x, x)", cost.max() * size),
    ):
        why = "since beyond 1/2 u·u is lost in rounding: lower C, or standardise the features"
        require(
            value <= _LARGEST,
            float(value),
            f"the largest {name}",
            f"at most {_LARGEST:g}, {why}",
        )
    least = float(cost.min())
    require(
        least >= _SMALLEST,
        least,
        "the smallest cost C · weight",
        f"at least {_SMALLEST:g}",
    )
