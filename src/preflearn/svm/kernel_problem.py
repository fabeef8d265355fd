"""The kernel problem of a fit over distinct items, and its solution.

It is solved by blocks in the dual, by the interior-point method, or by both. The
solution is a ranking function, as an expansion in kernels, with a certificate for
exactly this function.
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

_KERNEL_ROUNDINGS = 5  # half the error of a kernel value, in units of rounding
# smaller score differences, relative to the sum of absolute terms, are rounding errors
_MIN_DIFFERENCE = 1e-12
INACCURATE = 1e-6  # a larger duality gap, relative to the objective, gives a warning
# bounds on the costs, so that neither losses nor 1/2 u·u are lost in rounding
_MAX_COST = 1e16
_MIN_COST = 1e-100
# kernels that are always positive semi-definite
_DEFINITE_KERNELS = (*SHIFTED, "cosine", "chi2", "additive_chi2")
_MAX_FEW_FEATURES = 300  # a feature map of at most this rank is searched for first
# with fewer unknowns a step of the interior-point method does not get faster
_MIN_UNKNOWNS = 160
# with a smaller gap no second method is tried, unless losses far exceed 1/2 u·u
_GOOD_GAP = 1e-9
# relative to u·u; at half of this gap, u has a relative error of 1/1000
_GOOD_GAP_OF_U = 1e-6
# hinges per unknown of the interior-point method; with more hinges, the dual comes
# first only if C times the squared differences is small
_MAX_HINGES_PER_UNKNOWN = 8
# The patience is the work that the dual may take, in units of one step of the
# interior-point method (h r²). It is 1 for this number of hinges per unknown.
_MIN_PATIENCE = 1 / 4
_MAX_PATIENCE = 4
_HINGES_AT_PATIENCE_1 = 2.5


class Solution(NamedTuple):
    """A ranking function with a certificate of its accuracy."""

    dual_coef: Floats  # (m,) weights of the pairs, with u = sum_i dual_coef[i] d_i
    expansion: Expansion
    certificate: Certificate


class HingeProblem(NamedTuple):
    """The hinges of some pairs, and the Gram matrix of their differences."""

    rows: HingeTerms
    gram: DifferenceGram | FeatureGram
    few: (
        FeatureGram | None
    )  # the same matrix by a feature map of low rank, if there is one
    largest: float  # largest k(x, x)
    rounding: float  # rounding error of an entry of K, or of a feature

    def features(self) -> FeatureGram:
        """Return the differences by a feature map whose dimension is the rank."""
        if self.few is not None:
            return self.few
        assert isinstance(
            self.gram, DifferenceGram
        )  # for a linear kernel, `few` is set
        return FeatureGram.triangular(
            self.gram.B, *pivoted_features(self.gram.K, self.rounding)
        )

    def dual_first(self, n: int) -> tuple[bool, float]:
        """Return whether the dual is tried first, and how much work it may take.

        The notes of `SVMCompare` give the reasons; n is the number of items.
        """
        rows = self.rows
        h = len(rows.sign)
        r = n
        if self.few is not None:
            r = min(n, self.few.rank)
        pull = h * float(rows.cost @ rows.expanded(self.gram.diagonal()))
        few_hinges = h <= _MAX_HINGES_PER_UNKNOWN * r
        small_pull = pull <= max(r, _MIN_UNKNOWNS) ** 3
        patience = (_HINGES_AT_PATIENCE_1 * r / h) ** 4
        patience = min(_MAX_PATIENCE, max(_MIN_PATIENCE, patience))
        return few_hinges or small_pull, patience * h * r**2

    def sufficient_gap(self, solution: Solution) -> float:
        """Return a relative gap at which the function is close enough to the optimum."""
        a = solution.dual_coef
        squared = float(a @ self.gram.times(a))
        return min(
            _GOOD_GAP, _GOOD_GAP_OF_U / 2 * squared / solution.certificate.objective
        )


class KernelProblem(ItemKernel):
    """An `ItemKernel` with methods that solve and certify hinge problems."""

    @property
    def items_are_features(self) -> bool:
        """Return whether the items themselves are used as the feature map.

        For sparse items a feature map of the Gram matrix has a lower dimension.
        """
        return self.kernel == "linear" and not sparse.issparse(self.items)

    def solve(
        self, y: NDArray, cost: Floats, pairs: Ids, biased: bool, tol: float
    ) -> Solution:
        """Minimize 1/2 u·u plus the hinges of some pairs, eq. 15 or eq. 3.

        Among the pairs, preferences precede ties.
        """
        rows = HingeTerms.from_labels(y[pairs], cost[pairs], biased)
        hinges = self.hinge_problem(pairs, rows)
        check_cost(rows.cost, hinges.largest)
        return self.solve_hinges(hinges, pairs, tol)

    def solve_hinges(self, hinges: HingeProblem, pairs: Ids, tol: float) -> Solution:
        """Solve a checked problem; see `solve`."""
        rows = hinges.rows
        solutions = []
        unfinished = True
        dual_first, patience = hinges.dual_first(len(self.ids))
        if dual_first:
            start = np.zeros(len(rows.sign))
            s, gap = maximise(hinges.gram, rows, start, tol, patience)
            solution = self._certify(hinges, s)
            solutions = [solution]
            unfinished = gap > tol and gap > hinges.sufficient_gap(solution)
        if unfinished:
            solutions += self._solve_by_interior_point(hinges, tol)
        best = min(solutions, key=lambda solution: solution.certificate.gap)
        dual_coef = np.zeros(self.B.shape[0])
        dual_coef[pairs] = best.dual_coef
        proof = best.certificate
        gap = proof.gap + self._kernel_rounding(hinges, best) / proof.objective
        return best._replace(dual_coef=dual_coef, certificate=proof._replace(gap=gap))

    def _kernel_rounding(self, hinges: HingeProblem, solution: Solution) -> float:
        """Return a bound on the effect of kernel rounding errors on the objective.

        The duality gap does not include this effect.

        With item coefficients a, an error dK changes the optimum by a'(dK)a / 2 to
        first order. The largest dK that was observed is seven roundings (polynomial of
        degree 10).
        """
        if self.kernel in ("linear", "precomputed"):
            return 0.0
        a = hinges.gram.B.adjoint(solution.dual_coef)
        return _KERNEL_ROUNDINGS * hinges.rounding * float(np.abs(a).sum()) ** 2

    def hinge_problem(self, pairs: Ids, rows: HingeTerms) -> HingeProblem:
        """Return the problem of some pairs with these hinges."""
        B = self.B[pairs]
        if self.items_are_features:
            L = self.items - origin(self.items)
            features = FeatureGram(B, L)
            largest = float((L**2).sum(axis=1).max())
            rounding = rounding_of(self.items)
            return HingeProblem(rows, features, features, largest, rounding)
        K = self.gram()
        check_scale(K, "the Gram matrix")
        rounding = rounding_of(K)
        if self.kernel not in SHIFTED:
            K = centred(K)
        check = self.kernel not in _DEFINITE_KERNELS
        try:
            few = few_features(K, _MAX_FEW_FEATURES, rounding, check=check)
        except NotPositiveSemidefiniteError:
            raise indefinite(self.gram()) from None
        features = None
        if few is not None:
            features = FeatureGram.triangular(B, *few)
        largest = float(K.diagonal().max())
        return HingeProblem(rows, DifferenceGram(B, K), features, largest, rounding)

    def _solve_by_interior_point(
        self, hinges: HingeProblem, tol: float
    ) -> list[Solution]:
        """Return one or two solutions by the interior-point method.

        The first solution is given by the dual weights. If it is not accurate enough, a
        second one is given by the primal u, which rounding errors affect later.
        """
        rows = hinges.rows
        features = hinges.features()
        beta_column = rows.label if rows.biased else 0 * rows.label
        matrix = HingeMatrix(features, rows)
        inner = minimise(Hinges(matrix, rows.cost, beta_column), tol)
        s = rows.feasible(rows.label * inner.dual)
        solution = self._certify(hinges, s)
        if solution.certificate.gap <= tol:
            return [solution]
        return [solution, self._certify_features(hinges, features, s, inner.u)]

    def _certify_features(
        self, hinges: HingeProblem, features: FeatureGram, s: Floats, u: Floats
    ) -> Solution:
        """Return the function u·L, certified by dual weights.

        Its coefficients are close to the coefficients that the dual weights imply.
        """
        if self.items_are_features:
            expansion = Expansion(self.functions.k, u[None], np.ones(1))
        else:
            near = hinges.gram.B.adjoint(hinges.rows.summed(hinges.rows.sign * s))
            coef = features.item_coefficients(u, near)
            if self.kernel not in SHIFTED:
                coef = coef - coef.mean()
            expansion = self.expansion(coef)
        return self._certify(hinges, s, expansion, float(u @ u))

    def _certify(
        self,
        hinges: HingeProblem,
        s: Floats,
        expansion: Expansion | None = None,
        squared: float | None = None,
    ) -> Solution:
        """Return the function of dual weights with its certificate.

        With `expansion`, this other function is certified by the dual weights; its u·u
        is `squared`.
        """
        rows = hinges.rows
        a = rows.summed(rows.sign * s)
        z = hinges.gram.times(a)
        own = float(a @ z)
        if expansion is None:
            expansion = self.expansion(hinges.gram.B.adjoint(a))
        # computed for the returned expansion, including its rounding errors
        if squared is not None or self.kernel not in SHIFTED:
            z = hinges.gram.B.differences(expansion(self.items))
        dual = float(rows.label @ s) - own / 2
        if squared is None:
            squared = own
        if np.abs(z).max() <= _MIN_DIFFERENCE * np.abs(a).sum() * hinges.largest:
            # u consists of the rounding errors of a sum that cancels, so its order of
            # the items would be meaningless.
            expansion = expansion._replace(coef=0 * expansion.coef)
            z = 0 * z
            squared = 0.0
        size = expansion.centres if self.kernel == "linear" else expansion.coef
        noise = hinges.rounding * float(np.linalg.norm(size))
        return Solution(a, expansion, certificate(rows, z, squared, dual, noise))


def check_cost(cost: Floats, size: float) -> None:
    """Raise ValueError for costs at which losses or 1/2 u·u are lost in rounding."""
    why = (
        "so that 1/2 u·u is not lost in rounding: lower C, or standardize the features"
    )
    expected = f"at most {_MAX_COST:g}, {why}"
    largest = float(cost.max())
    scaled = float(cost.max() * size)
    smallest = float(cost.min())
    require(largest <= _MAX_COST, largest, "the largest cost C · weight", expected)
    require(
        scaled <= _MAX_COST,
        scaled,
        "the largest cost C · weight · k(x, x)",
        expected,
    )
    expected = f"at least {_MIN_COST:g}: raise C"
    require(smallest >= _MIN_COST, smallest, "the smallest cost C · weight", expected)
