"""Logistic regression for comparisons with ties, for very many pairs.

Section 6 of [Venuto2017]_ mentions this as future work.

The scores of the n items are linear in n x D features, which are computed once. A fit
then works with scores and their differences only, so that neither time nor memory grows
with the product of pairs and features.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
.. [RahimiRecht2007] A. Rahimi, B. Recht, "Random features for large-scale kernel
  machines", NIPS 2007.
.. [RaoKupper1967] P. V. Rao, L. L. Kupper, "Ties in paired-comparison experiments: a
   generalization of the Bradley-Terry model", Journal of the American Statistical
   Association 62, 1967.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.estimator import ComparisonEstimator, check_new_items
from preflearn.core.kernels import scale_gamma
from preflearn.core.outcome_losses import Loss
from preflearn.core.validation import (
    Floats,
    check_choice,
    check_count,
    check_number,
    check_scale,
    legacy_rng,
)
from preflearn.pairs import Pairs
from preflearn.solvers.newton import warn_about_gap
from preflearn.solvers.smooth_losses import Minimum, TieLoss, minimise
from preflearn.svm.base import Training, check_bias, choose_tie_weight


@dataclass(eq=False, repr=False)
class LogisticCompare(ComparisonEstimator):
    """Logistic regression for very many preferences and ties.

    Choose it instead of `SVMCompare` if there are so many pairs that a support vector
    machine takes too long.

    It uses the flipped pairs of eq. 8 of [Venuto2017]_: preferences with the better
    item first and label +1, and each tie in both orders with label -1. With d =
    phi(first) - phi(second), it minimizes ::

        F(w, beta) = mean_i log(1 + exp(-label_i (beta + w·d_i))) + alpha/2 w·w,

    by Newton's method, until a duality gap proves the minimum. As in `SVMCompare`, the
    ranking function is r(x) = -w·phi(x) / beta, and two items whose scores differ by at
    most 1 are predicted to be a tie.

    Parameters
    ----------
    alpha : float
        Regularization strength, positive. It corresponds to C = 1 / (alpha · number of
        flipped pairs) in `SVMCompare`.
    kernel : {"linear", "rbf"}
        "linear": phi(x) = x; standardize the features first, since w·w depends on their
        scale. "rbf": random Fourier features, whose inner products approximate the
        kernel ([RahimiRecht2007]_).
    gamma : float or "scale"
        Parameter of the kernel rbf, as in `SVMCompare`.
    n_components : int
        Number D of random features for the kernel rbf.
    tol : float
        Largest allowed duality gap, relative to F. If rounding errors stop the fit
        earlier, there is a ConvergenceWarning.
    random_state : int, numpy Generator, RandomState or None
        Source of randomness for the random features.
    tie_weight : float or "least"
        Factor on the weight of each tie. "least": the smallest factor, of several
        candidates, for which beta is negative. The candidates are 1 and the factors
        that give all ties together 0.6, 0.7, 0.8, 0.9, or 1 times the weight of all
        preferences; with the last one beta is always negative.

    Attributes
    ----------
    weights_ : ndarray of shape (D,)
        w; D = p for the linear kernel.
    bias_ : float
        beta, negative.
    tie_weight_ : float
        Factor on the weight of each tie, given or chosen.
    coef_ : ndarray of shape (p,)
        -w / beta, for the linear kernel only.
    tau_ : float
        1, the threshold of the comparison function.
    loss_, dual_gap_ : float
        F at w and beta, and a bound on its distance from the minimum, relative to F.
    n_iter_ : int
        Number of Newton steps on all pairs.
    n_features_in_ : int

    Notes
    -----
    **Relation to a cumulative logit model.** Let k = -beta, let z be a score
    difference, and let s be the logistic function. In the ordinal model with thresholds
    -1 and 1, the labels +1 and -1 have the probabilities a = s(k(z - 1)) and b = s(k(-z
    - 1)), and a tie has the probability 1 - a - b.

    The loss of a preference is exactly -log a or -log b. The loss of a tie is -log((1 -
    a)(1 - b)), where (1 - a)(1 - b) = (1 - a - b) / (1 - exp(2 beta)) for every z. F is
    therefore the negative log-likelihood of the ordinal model, which is the model of
    Rao and Kupper ([RaoKupper1967]_), plus log(1 - exp(2 beta)) for each tie. For a
    given beta both have the same optimal w.

    **The bias.** The optimal beta is negative if and only if the weight of the ties
    exceeds the weighted sum of s(-w·d) over the preferences, at the w that is optimal
    for beta = 0. Therefore beta < 0 if ties weigh at least as much as preferences.
    Otherwise beta may be positive. Then -w / beta would rank backwards, and `fit`
    raises DegenerateBiasError.

    **Centering.** For the kernel rbf the items are centered, which changes neither F
    nor its optimum.

    Examples
    --------
    >>> X = np.arange(6.0)[:, None]
    >>> pairs, y = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]] * 50), [0, 1] * 50
    >>> model = LogisticCompare(alpha=0.01).fit(pairs, y)
    >>> model.predict(pairs[:2]).tolist()
    [0, 1]
    """

    alpha: float = 1e-4
    kernel: Literal["linear", "rbf"] = "linear"
    _: KW_ONLY
    gamma: float | Literal["scale"] = "scale"
    n_components: int = 300
    tol: float = 1e-6
    random_state: int | np.random.Generator | np.random.RandomState | None = None
    tie_weight: float | Literal["least"] = 1.0

    def fit(
        self,
        pairs: Pairs | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> LogisticCompare:
        """Fit the model to labeled pairs.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
            Pairs, or the features of both items of each pair.
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and
            preferences.
        sample_weight : array-like of shape (m,), optional
            Nonnegative weight of each pair; weight 2 counts the pair twice.

        Raises
        ------
        DegenerateBiasError
            If beta is not negative at the end (see the notes of the class).
        ValueError
            If parameters, pairs, or labels are not valid, or there are only ties or
            only preferences.
        """
        alpha = check_number(self, "alpha", positive=True)
        tol = check_number(self, "tol", positive=True)
        n_components = check_count(self.n_components, "n_components", 1)
        check_choice(self.kernel, "kernel", ("linear", "rbf"))
        rng = legacy_rng(self.random_state, allow_none=True)
        pairs, y, weights, *_ = Training.validate(self, pairs, y, sample_weight)
        self._fit_features(pairs, n_components, rng)
        features = self._features(pairs.items)

        def solve(weights: Floats, alpha: float = alpha) -> tuple[Minimum, float]:
            # number of flipped pairs, with weights
            ties = 2 * weights[y == 0].sum()
            preferences = weights[y != 0].sum()
            start = math.log(preferences / ties)
            tie_loss = TieLoss(_flipped_loss, start=start, least=-math.inf)
            scaled = weights / (ties + preferences)
            minimum = minimise(tie_loss, features, pairs.B, y, scaled, alpha, tol)
            return minimum, minimum.t

        self.tie_weight_, weights, minimum = choose_tie_weight(
            self.tie_weight, y, weights, solve
        )
        remedy = "raise alpha, or standardize the features"
        warn_about_gap("LogisticCompare", minimum.gap, tol, remedy)

        def differences() -> Floats:
            return pairs.B.differences(features @ minimum.w)

        def weaken(factor: float) -> tuple[str, float]:
            lower = alpha / factor
            return f"lower alpha to {lower:g}", solve(weights, lower)[1]

        check_bias(minimum.t, y, differences, f"alpha = {alpha:g}", weaken)
        self.n_features_in_ = pairs.shape[2]
        self.weights_ = minimum.w
        self.bias_ = minimum.t
        self.tau_ = 1.0
        self.loss_ = minimum.objective
        self.dual_gap_ = minimum.gap
        self.n_iter_ = minimum.n_iter
        if self.kernel == "linear":
            self.coef_ = -minimum.w / minimum.t
        return self

    def rank_function(self, X: ArrayLike) -> Floats:
        """Return the scores r(x) of items, shape (n,); larger is better.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Raises
        ------
        ValueError
            If the number of features differs from that in `fit`.
        """
        return self._features(check_new_items(self, X)) @ self.weights_ / -self.bias_

    def _fit_features(
        self, pairs: Pairs, n_components: int, rng: np.random.RandomState
    ) -> None:
        """Set the center of the items, and the feature map of centered items."""
        check_scale(pairs.items, "items")
        self._centre = np.zeros(pairs.shape[2])
        self._feature_map = None
        if self.kernel == "linear":
            return
        items = pairs.items[pairs.B.occurring()]
        self._centre = items.mean(axis=0)
        items = items - self._centre
        gamma = scale_gamma(self.gamma, items)
        # imported here, since its import is slow
        from sklearn.kernel_approximation import RBFSampler

        sampler = RBFSampler(gamma=gamma, n_components=n_components, random_state=rng)
        self._feature_map = sampler.fit(items).transform

    def _features(self, items: Floats) -> Floats:
        if self._feature_map is None:
            return items
        return self._feature_map(items - self._centre)


def _flipped_loss(d: Floats, beta: float, y: NDArray) -> Loss:
    """Return log(1 + exp(-label (beta + z))), summed over flipped copies of a pair."""
    ties = np.flatnonzero(y == 0)
    by_d = np.where(y == 0, 1.0, -y)
    by_beta = np.where(y == 0, 1.0, -1.0)
    value, slope, curvature = _softplus(by_beta * beta + by_d * d)
    loss = Loss(
        value,
        by_d * slope,
        by_beta * slope,
        curvature,
        by_d * by_beta * curvature,
        curvature.copy(),
    )
    # The second copy of each tie has the opposite difference.
    value, slope, curvature = _softplus(beta - d[ties])
    second = (value, -slope, slope, curvature, -curvature, curvature)
    for total, part in zip(loss, second, strict=True):
        total[ties] += part
    return loss


def _softplus(u: Floats) -> tuple[Floats, Floats, Floats]:
    """Return log(1 + e^u), and its first and second derivatives."""
    small = np.exp(-np.abs(u))
    slope = np.where(u > 0, 1.0, small) / (1 + small)
    return np.maximum(u, 0.0) + np.log1p(small), slope, slope * (1 - slope)
