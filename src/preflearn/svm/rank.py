"""The ranking SVM, with a threshold, and with C chosen on its path.

It is a baseline in section 4 of [Venuto2017]_ (from pairs with ties), in
[Tsivtsivadze2013]_ (from scored items), and in [AhmadiFahandar2019]_ (from rankings).

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
.. [Zapien2009] K. Zapien, G. Gasso, T. Gärtner, S. Canu, "Model selection for ranking
   SVM using regularization path", in: Machine Learning, I-Tech, 2009.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from preflearn.core.expansion import Expansion, functions_of
from preflearn.core.kernels import Kernel, scale_gamma
from preflearn.core.validation import (
    Floats,
    Ids,
    as_array,
    check_choice,
    check_number,
    check_real,
    generator,
)
from preflearn.pairs import Pairs, as_pairs
from preflearn.path import ItemFolds, cross_validated_path
from preflearn.path.regularization import Selection, select_widest, warn_at_end
from preflearn.svm.base import (
    MARGIN_TOL,
    SupportVectorRanker,
    Training,
    check_gap,
    clear_threshold,
    preferences_first,
)
from preflearn.svm.counted_fit import CountedFit, CountedItems
from preflearn.svm.counted_threshold import threshold_pairs
from preflearn.svm.kernel_problem import KernelProblem
from preflearn.svm.near_margin import solve_ranking

# as in [AhmadiFahandar2019]_
_N_FOLDS = 2
_N_REPEATS = 3
_SPAN = 1e4  # ratio of the first breakpoint of a fold to the end of its path
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(eq=False, repr=False)
class SVMRank(SupportVectorRanker):
    """Ranking SVM: ranking function from preferences or from scored items.

    Choose it if there are few or no ties, or if you only need an order of items. If
    ties are informative, `SVMCompare` uses them for the ranking function too.

    It solves eq. 3 of [Venuto2017]_ (eq. 6 of [Zapien2009]_ with lambda = 1/C), with
    d = Phi(first) - Phi(second)::

        minimize 1/2 u·u + C sum over preferences of (1 - y_i u·d_i)_+ ,

    which gives r(x) = u·Phi(x). Then it solves eq. 6 of [Venuto2017]_ for the threshold
    tau with the lowest zero-one loss on all training pairs. With ties these are the
    baselines rank and rank2 of Table 2 of that paper.

    Parameters
    ----------
    C : float or "path"
        Cost of one unit of slack. "path": the C with the lowest pair error in
        cross-validation, among all C up to 1e4 times that of the first breakpoint of
        `ranksvm_path`. Folds split items; a pair is used for training if both of its
        items are outside the fold, and for validation if both are in it. If the best C
        is at the end of the range, there is a ConvergenceWarning.
    kernel, gamma, degree, coef0, tol
        Kernel, its parameters, and tolerance, as in `SVMCompare`.
    ties : {"ignore", "duplicate"}
        Use of ties. "ignore" (rank): ties are used for the choice of tau only.
        "duplicate" (rank2): each tie becomes two opposite preferences, and each
        preference counts twice.
    random_state : int or numpy Generator
        Source of randomness for the folds, used only with C="path".

    Attributes
    ----------
    support_ : ndarray of int
        Ids of the pairs with a dual weight.
    dual_coef_ : ndarray of shape (m,)
        Dual weights, u = sum_i dual_coef_[i] d_i. For scored items, the pairs are
        those of `Pairs.from_scores` with ties="keep".
    coef_ : ndarray of shape (p,)
        u, for the linear kernel only.
    tau_ : float
        Largest score difference that is predicted to be a tie.
    C_ : float
        Value of C, given or chosen.
    curve_ : Selection or None
        Only with C="path": the mean error of validation pairs (``losses``) as a
        function of lambda = 1/C. Each value holds from one of the decreasing
        ``lambdas`` to the next.
    objective_, dual_gap_ : float
        Minimum, and the relative duality gap that proves it, including a bound on the
        effect of rounding errors of the kernel.
    n_features_in_ : int

    Notes
    -----
    The two copies of a tie in rank2 lose ``(1 - z)_+ + (1 + z)_+ = 2 + (|z| - 1)_+`` at
    z = u·d. That is constant for ``|z| <= 1``. A tie has no effect unless its
    difference exceeds the margin that preferences should reach. Its loss then has the
    slope C, half the slope of a preference, which counts twice. Duplication thus
    equalizes the number of rows, but not their effect. rank and rank2 differ only
    through such ties, and by the factor two on C.

    [AhmadiFahandar2019]_ choose C on the whole path by 2-fold cross-validation,
    repeated three times, and so does "path" here. The paper does not say whether the
    folds split pairs or items. Here they split items, since pairs that share an item
    are not independent. Among the lambda of lowest error, the middle of the widest
    interval is chosen, on the logarithmic scale. For other folds or a validation set,
    see `cross_validated_path` and `ranksvm_path`.

    **Choice of the solver.** Problems are solved as in `SVMCompare`, with one
    exception: a linear kernel with more than 20,000 preferences, and more than 20 per
    unknown (features, or items if these are fewer). Newton's method on smoothed hinges
    is then used until few pairs are near the margin. The problem of these pairs, and of
    the mean pair inside the margin, is solved exactly. In this case the pairs of scored
    items are counted instead of listed, in O(n log n) time and memory for n items,
    unless C is "path", ties are duplicated, or pairs have weights. The attributes
    `dual_coef_` and `support_`, which have one entry per pair, are then computed at
    their first access. With listed pairs and sparse features of n < p items, the
    exception does not apply.

    **Alternative.** LinearSVC of scikit-learn can be fitted to the differences, half of
    them with changed sign (loss="hinge", fit_intercept=False). With ten features it
    takes a fifth of the time for 1,000 listed pairs, and two thirds for 10,000 pairs,
    with a larger objective. With more sparse features than items it takes a sixth with
    tol=1e-6, for an objective that is 1e-8 too large (measured with 10,000 pairs of
    3,000 items).

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
    >>> model = SVMRank(C=100, kernel="linear").fit(pairs, [0, 1])
    >>> model.coef_.round(6).tolist(), round(model.tau_, 6)
    ([0.333333], 0.666667)
    >>> model.predict(pairs).tolist()
    [0, 1]

    Fit to scored items; for ranks, where 1 is best, pass their negatives:

    >>> SVMRank(C=10, kernel="linear").fit([[0.0], [1.0], [3.0]], [1, 2, 3]).coef_.round(6).tolist()
    [1.0]
    """

    C: float | Literal["path"] = 1.0
    kernel: Kernel = "rbf"
    _: KW_ONLY
    ties: Literal["ignore", "duplicate"] = "ignore"
    tol: float = 1e-12
    random_state: int | np.random.Generator = 0

    def fit(
        self,
        pairs: Pairs | ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> SVMRank:
        """Fit the model to labeled pairs, or to scored items.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p); or items, array-like or sparse of shape (n, p)
            Pairs, or items. Sparse features remain sparse if the kernel is linear and
            there are fewer items than features. The pairs of items are those of
            `Pairs.from_scores` with ties="keep".
        y : array-like of shape (m,), or (n,)
            Labels of pairs (+1 first better, -1 second better, 0 no difference), with
            at least one preference; or scores of items, where larger is better and only
            the order matters.
        qid : array-like of shape (n,), optional
            Query ids of items: only items with equal ids are compared. None: one query.
        sample_weight : array-like of shape (m,), optional
            Nonnegative factor on C, and on the loss of eq. 6, for each pair. It cannot
            be combined with C="path".

        Raises
        ------
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the items.
        ValueError
            If parameters, pairs, items, or labels are not valid, or there are only
            ties. With C="path" also if no fold has both training and validation pairs,
            or all C give the same order.
        """
        check_choice(self.ties, "ties", ("ignore", "duplicate"))
        choose_C = isinstance(self.C, str) and self.C == "path"
        tol = check_number(self, "tol", positive=True)
        C = 1.0
        if not choose_C:
            C = check_real(self.C, "C", "a positive number or 'path'", _TINY)
        if _are_items(pairs):
            countable = self.kernel == "linear" and self.ties == "ignore"
            if countable and not choose_C and sample_weight is None:
                items = CountedItems.validate(pairs, y, qid)
                if items.are_many:
                    return self._fit_counted(items, C, tol)
            pairs, y = Pairs.from_scores(pairs, y, qid, ties="keep")
        elif qid is not None:
            raise ValueError(
                "qid was passed with pairs, but it applies to items only; drop qid, or pass "
                "items and scores"
            )
        training = Training.validate(self, pairs, y, sample_weight, ties=False)
        if choose_C and sample_weight is not None:
            raise ValueError(
                "sample_weight cannot be combined with C='path'; expected None, or a number "
                "for C"
            )
        problem = KernelProblem.of(self, training.pairs, merge=self.kernel != "linear")
        curve = None
        if choose_C:
            curve = self._cross_validate(problem, training)
            C = 1 / curve.lam
        cost = C * training.weights
        if self.ties == "duplicate":
            # Table 2 of [Venuto2017]_: a preference counts twice, a tie counts in both
            # orders.
            hinged = preferences_first(training.y)
            cost = np.where(training.y != 0, 2.0, 1.0) * cost
        else:
            hinged = np.flatnonzero(training.y)
        solution = solve_ranking(self, problem, training.y, cost, hinged, tol)
        check_gap(self, solution.certificate.gap, f"lower C (now {C:g})", tol)
        self.C_ = C
        self.curve_ = curve
        self._counted: CountedFit | None = None
        self._store(solution, training, 1.0)
        differences = self.decision_function(training.pairs)
        self.tau_ = clear_threshold(training.y, differences, training.weights)
        return self

    def _fit_counted(self, items: CountedItems, C: float, tol: float) -> SVMRank:
        """Fit to all item pairs of each query by counting them, without a list."""
        fit = items.solve(self, C, tol)
        proof = fit.solution.certificate
        check_gap(self, proof.gap, f"lower C (now {C:g})", tol)
        self.C_ = C
        self.curve_ = None
        self.n_features_in_ = items.X.shape[1]
        self.objective_, self.dual_gap_, _ = proof
        self.coef_ = fit.solution.u
        functions = functions_of(self, items.X)
        self._expansion = Expansion(functions.k, self.coef_[None], np.ones(1))
        self._counted = fit
        # remove the value of an earlier fit
        vars(self).pop("dual_coef_", None)
        vars(self).pop("support_", None)
        scores = self.rank_function(items.X)[items.order]
        self.tau_ = clear_threshold(
            *threshold_pairs(items.queries, scores, (1 - MARGIN_TOL, 1 + MARGIN_TOL))
        )
        return self

    @cached_property
    def dual_coef_(self) -> Floats:
        """Dual weights of the pairs; computed at first access if pairs were counted."""
        return self._fitted_by_counts("dual_coef_").dual_coef()

    @cached_property
    def support_(self) -> Ids:
        """Ids of the pairs with a dual weight."""
        self._fitted_by_counts("support_")
        return np.flatnonzero(self.dual_coef_)

    def _fitted_by_counts(self, name: str) -> CountedFit:
        fit = vars(self).get("_counted")
        if fit is None:
            raise AttributeError(f"{name} does not exist before fit; call fit first")
        return fit

    def _cross_validate(self, problem: KernelProblem, training: Training) -> Selection:
        """Return the mean pair error on held-out items as a function of lambda."""
        pairs, labels = training.pairs.flipped(training.y)
        preferences = np.flatnonzero(labels > 0)
        if self.ties == "duplicate":  # preferences count twice, as in `fit`
            preferences = np.append(preferences, np.arange(len(labels)))
        pairs = as_pairs(pairs[preferences])
        # remove an offset, whose rounding errors might change the order of equal scores
        if self.kernel == "linear":
            pairs = Pairs(pairs.items - pairs.items[0], pairs.index)
        gamma = 1.0  # not used by callables and kernels without gamma
        if isinstance(self.kernel, str) and self.kernel not in (
            "linear",
            "precomputed",
        ):
            gamma = scale_gamma(self.gamma, problem.items)
        # warnings of single repetitions do not matter, since their mean is used
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            curves = [
                cross_validated_path(
                    pairs,
                    np.ones(len(pairs), dtype=np.int8),
                    self.kernel,
                    gammas=[gamma],
                    degree=self.degree,
                    coef0=self.coef0,
                    folds=ItemFolds(_N_FOLDS, random_state=seed),
                    span=_SPAN,
                ).curves[0]
                for seed in _seeds(self.random_state)
            ]
        lambdas = np.unique(np.concatenate([curve.lambdas for curve in curves]))[::-1]
        losses = np.mean([_losses_at(curve, lambdas) for curve in curves], axis=0)
        end = lambdas[0] / _SPAN  # no path of a fold goes below this
        within = lambdas > end
        selection = select_widest(lambdas[within], losses[within], end)
        warn_at_end(selection, _SPAN)
        return selection


def _seeds(
    random_state: int | np.random.Generator,
) -> list[int | np.random.Generator]:
    """Return a source of randomness for each repetition."""
    generator(random_state)  # raises ValueError if it is not valid
    if isinstance(random_state, np.random.Generator):
        return [random_state] * _N_REPEATS
    return [(int(random_state) + k) % 2**53 for k in range(_N_REPEATS)]


def _are_items(data: Pairs | ArrayLike) -> bool:
    """Return whether data are items, (n, p), and not pairs."""
    if isinstance(data, Pairs):
        return False
    return sparse.issparse(data) or as_array(data, "pairs").ndim == 2


def _losses_at(curve: Selection, lambdas: Floats) -> Floats:
    """Return the losses of a curve at other lambdas.

    Above the first breakpoint the loss is constant.
    """
    place = np.searchsorted(-curve.lambdas, -lambdas, side="right") - 1
    return curve.losses[np.maximum(place, 0)]
