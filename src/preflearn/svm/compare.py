"""The support vector comparison machine, sections 3.2 and 4 of [Venuto2017]_.

It needs only the Gram matrix of the n distinct items and the incidence matrix, but no
matrix over all pairs. `SVMCompare.fit` sets up the problem. `KernelProblem.solve` of
`preflearn.svm.kernel_problem` chooses a solver and certifies its result. The solvers
are in `preflearn.solvers.hinge_dual` and `preflearn.solvers.interior_point`.

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
    """Support vector machine for comparisons with preferences and ties.

    Choose it if pairs that do not differ significantly are labeled as ties, and the
    scores may be a nonlinear function of the features. Without ties use `SVMRank`; for
    very many pairs use `LogisticCompare`; if the data are separable, `MarginLP` and
    `MarginQP` need no parameter.

    It solves eq. 15 of [Venuto2017]_, whose dual is eq. 18, with d = Phi(first) -
    Phi(second)::

        minimize 1/2 u·u + C ( sum over preferences of (1 - beta - y_i u·d_i)_+
                               + sum over ties of (1 + beta + u·d_j)_+ + (1 + beta - u·d_j)_+ ),

    a binary SVM that separates preferences from ties in both orders. The ranking
    function of eq. 19 is r(x) = -u·Phi(x) / beta. Two items whose scores differ by at
    most 1 are predicted to be a tie.

    Parameters
    ----------
    C : float
        Cost of one unit of slack: the inverse of the regularization strength.
    kernel : str or callable
        Name of a kernel of `sklearn.metrics.pairwise.pairwise_kernels`; a callable k(X,
        Y) that returns the (n_x, n_y) matrix; or "precomputed". With "precomputed" the
        items of the pairs are the (n, n) Gram matrix of all items, and `rank_function`
        takes an (n_new, n) kernel matrix.
    gamma : float or "scale"
        Parameter of the kernels rbf, laplacian, chi2, poly and sigmoid; "scale": 1 / (p
        · variance of the distinct items).
    degree : float
        Degree of the kernel poly.
    coef0 : float
        Constant of the kernels poly and sigmoid.
    tol : float
        Duality gap, relative to the objective, at which to stop. Rounding errors may
        stop the solver earlier; a gap above 1e-6 gives a ConvergenceWarning. ``|u -
        u*|²`` is at most twice the gap times the objective, so a gap of 1e-6 suffices
        to predict nearly all pairs correctly. The default is close to the rounding
        errors: the last steps cost little, and they keep pairs exactly on the margin,
        where a model with a threshold has many.
    tie_weight : float or "least"
        Factor on the weight of each tie. "least": the smallest factor, of several
        candidates, for which beta is negative. The candidates are 1 and the factors
        that give all ties together 0.6, 0.7, 0.8, 0.9, or 1 times the weight of all
        preferences; with the last one beta is always negative. If ties are rare, the
        model may predict far more ties than there are.

    Attributes
    ----------
    support_ : ndarray of int
        Ids of the pairs with a dual weight.
    dual_coef_ : ndarray of shape (m,)
        Dual weights with u = sum_i dual_coef_[i] d_i up to rounding errors, at most C
        in absolute value. In terms of eq. 18 the weight is v_i y_i for a preference,
        and the difference of its two v for a tie.
    bias_ : float
        beta, negative; if an interval of values is optimal, its midpoint.
    tie_weight_ : float
        Factor on the weight of each tie, given or chosen.
    coef_ : ndarray of shape (p,)
        -u / beta, for the linear kernel only.
    tau_ : float
        1, the threshold of the comparison function.
    objective_, dual_gap_ : float
        Value of eq. 15 for the returned ranking function, and a bound on its relative
        distance from the minimum. The bound comes from a feasible point of eq. 18 and
        includes rounding errors of the scores and of the kernel.
    n_features_in_ : int

    Notes
    -----
    **Choice of the solver.** There are h hinges, one for each preference and two for
    each tie, and q = h · sum of ``C |d|²`` over the hinges. Let r be the rank of the
    Gram matrix of the n distinct items: it is computed if it is at most 300, and taken
    as n otherwise. For the linear kernel it is min(n, p). The dual is solved by blocks
    if h <= 8r, or if q is at most the larger of r³ and 160³. Otherwise, or if the dual
    solver gives up, the interior-point method is used.

    - The dual solver needs the n² entries of K, and blocks of at most 4,000 pairs. It
      is libsvm's method with additional Newton steps for the weights between their
      bounds. If labels agree well, few weights are between their bounds. With random
      labels, up to 2r hinges can mostly be satisfied ([Cover1965]_), and many weights
      are between their bounds. The work of the solver is the sum of the cubed
      numbers of unknowns of its Newton systems. It gives up when its work exceeds h r²
      times (2.5 r / h)⁴, where the last factor is limited to [1/4, 4]. This is a
      fraction of the work of the interior-point method.
    - The interior-point method has r unknowns. A step takes O(n r²) operations, and a
      time that grows linearly with the number of pairs.

    The certificate refers to the returned function. No matrix over pairs is formed. A
    constant added to all items, or to rows and columns of a Gram matrix, changes
    rounding errors only.

    **Alternative.** libsvm takes 0.2 to 0.75 of the time for few pairs (500 pairs of
    200 items), and for 1,000 to 1,500 pairs whose items are in no other pair. Its
    objective is then 1e-6 to 3e-6 too large; with C >= 10 it is seldom more accurate.
    To use it, fit SVC of scikit-learn with kernel="precomputed" and tol=1e-5 to the
    Gram matrix of the pairs of `Pairs.flipped`.

    **The bias.** At the optimum the dual weights of preferences and of ties have equal
    sums. If beta > -1, one of the two hinges of each tie has slack, so its dual weight
    is C. Therefore **beta <= -1 if ties outweigh preferences**. Otherwise beta can
    become positive. For u = 0 (C -> 0, or contradictory labels), beta = -1 if
    preferences weigh less than twice the ties, and beta = +1 if they weigh more. With a
    positive beta, -u / beta would rank backwards, so `fit` raises DegenerateBiasError.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> model = SVMCompare(C=100, kernel="linear").fit(pairs, [0, 1])
    >>> model.coef_.round(6).tolist(), round(model.bias_, 6)
    ([0.5], -2.0)
    >>> model.predict(pairs).tolist()
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
        """Fit the model to labeled pairs.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
            Pairs, or the features of both items of each pair.
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and
            preferences.
        sample_weight : array-like of shape (m,), optional
            Nonnegative factor on C for each pair.

        Raises
        ------
        DegenerateBiasError
            If beta is not negative at the optimum (see the notes of the class).
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the items.
        ValueError
            If parameters, pairs, or labels are not valid, or there are only ties or
            only preferences.
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
        check_gap(self, proof.gap, f"lower C (now {C:g})", tol)

        def differences() -> Floats:
            return problem.B.differences(solution.expansion(problem.items))

        def weaken(factor: float) -> tuple[str, float]:
            return f"raise C to {factor * C:g}", solve(weights, factor * C)[1]

        check_bias(proof.bias, training.y, differences, f"C = {C:g}", weaken)
        self._store(solution, training, -1 / proof.bias)
        self.bias_ = proof.bias
        self.tau_ = 1.0
        return self
