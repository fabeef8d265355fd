"""The support vector comparison machine: sections 3.2 and 4 of [Venuto2017]_.

It needs the Gram matrix of the n distinct items and the incidence matrix only, never a
matrix over all pairs. `SVMCompare.fit` poses the problem, `KernelProblem.solve` of
`preflearn.svm.kernel_problem` chooses a solver and certifies its result, and the
solvers are in `preflearn.solvers.hinge_dual` and `preflearn.solvers.interior_point`.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
.. [Cover1965] T. M. Cover, "Geometrical and statistical properties of systems of linear
   inequalities", IEEE Transactions on Electronic Computers 14, 1965.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from numpy.typing import ArrayLike

from preflearn.core.kernels import Kernel
from preflearn.core.validation import Floats, check_number
from preflearn.pairs import Pairs
from preflearn.svm.base import (
    SupportVectorRanker,
    Training,
    check_bias,
    check_gap,
    choose_tie_weight,
    preferences_first,
)
from preflearn.svm.kernel_problem import KernelProblem, Solution


@dataclass(eq=False, repr=False)
class SVMCompare(SupportVectorRanker):
    """Ranking function from preferences and ties at once, by a quadratic program.

    Solves eq. 15 of [Venuto2017]_, whose dual is eq. 18, with d = Phi(first) -
    Phi(second)::

        minimise 1/2 u·u + C ( sum over preferences of (1 - beta - y_i u·d_i)_+
                               + sum over ties of (1 + beta + u·d_j)_+ + (1 + beta - u·d_j)_+ ),

    a binary SVM that tells preferences from ties taken both ways. The ranking function
    of eq. 19 is r(x) = -u·Phi(x) / beta, and two items whose scores differ by at most 1
    are predicted to be equal.

    Parameters
    ----------
    C : float
        Cost of a unit of slack; the inverse of the strength of the regularization.
    kernel : str or callable
        A name of `sklearn.metrics.pairwise.pairwise_kernels`; a callable k(X, Y) that
        returns the (n_x, n_y) matrix; or "precomputed": then the items of the pairs are
        the (n, n) Gram matrix of all items, and `rank_function` takes (n_new, n) rows
        of the kernel.
    gamma : float or "scale"
        Width of the kernels rbf, laplacian, chi2, poly and sigmoid; "scale": 1 / (p ·
        variance of the distinct items).
    degree : float
        Degree of the kernel poly.
    coef0 : float
        Constant of the kernels poly and sigmoid.
    tol : float
        Duality gap, relative to the objective, at which to stop; rounding may stop the
        solver before, and a gap above 1e-6 gives a ConvergenceWarning. ``|u - u*|²`` is
        at most twice the gap times the objective, so 1e-6 tells nearly all pairs apart.
        The default is what rounding allows: the last steps are exact equations and cost
        little, and pairs on the margin, many in a model with a threshold, stay there.
    tie_weight : float or "least"
        Factor on the weight of each tie. "least": the first of 1 and the factors with
        which ties weigh 0.6, 0.7, 0.8, 0.9 or 1 times as much as preferences for which
        beta is negative. With the last one it is for all data. Where ties are few, the
        model may predict far more of them than there are.

    Attributes
    ----------
    support_ : ndarray of int
        Ids of the pairs with a dual weight.
    dual_coef_ : ndarray of shape (m,)
        u = sum_i dual_coef_[i] d_i, nearly so where rounding forbids it; at most C in
        absolute value. In eq. 18 it is v_i y_i for a preference, and the difference of
        its two v for a tie.
    bias_ : float
        beta, negative; of several optimal ones, the middle.
    tie_weight_ : float
        Factor on the weight of each tie, given or chosen.
    coef_ : ndarray of shape (p,)
        -u / beta, for the linear kernel only.
    tau_ : float
        1, the threshold of the comparison function.
    objective_, dual_gap_ : float
        Eq. 15 at the function that `rank_function` returns, and how far above the
        minimum it can be at most, relative: by a feasible point of eq. 18, and the
        rounding of the scores and of the kernel.
    n_features_in_ : int

    Notes
    -----
    The two copies of a tie have opposite differences; they share a row here. **Which
    method**: with h hinges (one for each preference, two for each tie), q = h · sum of ``C |d|²``
    over the hinges, and the rank r of the Gram matrix of the n distinct items (found
    where it is at most 300, else n; for the linear kernel p, or the number of items if
    it is less), the dual by blocks where h <= 8r, or q is at most the larger of r³ and
    160³; otherwise, or where the dual gives up, the interior point.

    - The dual needs K, n², and blocks of at most 4,000 pairs; it is libsvm's method
      with Newton steps for the weights between their bounds. Labels that agree well
      leave few of these; up to 2r hinges of random labels can mostly be met
      ([Cover1965]_), by many. It gives up when the systems of its Newton steps, each
      counted by its unknowns cubed, add up to h r² times (2.5 r / h)⁴, or what is
      nearest to it from 1/4 to 4: a part of what the interior point takes.
    - The interior point has r unknowns: a step costs n r² and grows linearly in the
      number of pairs.

    What is returned is judged by its own objective. No matrix over pairs is formed. A
    constant added to all items, or to rows and columns of a Gram matrix, changes
    nothing but rounding.

    **Another tool.** For few pairs (500 of 200 items), or 1,000 to 1,500 pairs whose
    items are in no other pair, libsvm takes 0.2 to 0.75 of the time, for an objective
    that is 1e-6 to 3e-6 too large: SVC of scikit-learn with kernel="precomputed" and
    tol=1e-5 on the Gram matrix of the pairs of `Pairs.flipped`. With a C of 10 or more
    it seldom comes nearer.

    At the optimum the dual weights of preferences and of ties have equal sums. Where
    beta > -1, each tie has a copy with slack, whose weight is C; so **if ties outweigh
    preferences, beta <= -1**. Otherwise beta can become positive: a constant u (C -> 0,
    or contradictory labels) leaves beta = -1 where preferences weigh less than twice
    the ties, but beta = +1 where they weigh more. Then -u / beta would rank backwards,
    and `fit` raises DegenerateBiasError instead.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> machine = SVMCompare(C=100, kernel="linear").fit(pairs, [0, 1])
    >>> machine.coef_.round(6).tolist(), round(machine.bias_, 6)
    ([0.5], -2.0)
    >>> machine.predict(pairs).tolist()
    [0, 1]
    """

    C: float = 1.0
    kernel: Kernel = "rbf"
    _: KW_ONLY
    tol: float = 1e-12
    tie_weight: float | Literal["least"] = 1.0

    def fit(
        self,
        pairs: Pairs | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> SVMCompare:
        """Learn from labelled pairs.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and
            preferences.
        sample_weight : array-like of shape (m,), optional
            Multiplies C for each pair, not negative.

        Raises
        ------
        DegenerateBiasError
            If beta is not negative at the optimum (see the notes of the class).
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the items.
        ValueError
            On bad parameters, pairs or labels, only ties, or only preferences.
        """
        C = check_number(self, "C", positive=True)
        tol = check_number(self, "tol", positive=True)
        training = Training.validate(self, pairs, y, sample_weight)
        problem = KernelProblem.of(self, training.pairs, merge=self.kernel != "linear")
        hinged = preferences_first(training.y)

        def solve(weights: Floats, C: float = C) -> tuple[Solution, float]:
            solution = problem.solve(training.y, C * weights, hinged, True, tol)
            return solution, solution.certificate.bias

        self.tie_weight_, weights, solution = choose_tie_weight(
            self.tie_weight, training.y, training.weights, solve
        )
        proof = solution.certificate
        check_gap(self, proof.gap, f"lower C = {C:g}", tol)

        def differences() -> Floats:
            return problem.B.differences(solution.expansion(problem.items))

        def weaken(factor: float) -> tuple[str, float]:
            return f"Raise C to {factor * C:g}", solve(weights, factor * C)[1]

        check_bias(proof.bias, training.y, differences, f"C = {C:g}", weaken)
        self._store(solution, training, -1 / proof.bias)
        self.bias_ = proof.bias
        self.tau_ = 1.0
        return self
