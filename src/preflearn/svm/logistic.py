"""Comparisons with a logistic loss, for very many pairs.

Section 6 of [Venuto2017]_ names this as future work.

The scores of the n items are linear in features that are computed once, n x D numbers.
A fit needs no more than these scores and their differences, so neither time nor memory
grows with pairs times features.

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

from preflearn.core.estimator import ComparisonEstimator, check_asked
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
from preflearn.solvers.smooth_losses import Minimum, TieLaw, minimise
from preflearn.svm.base import Training, check_bias, choose_tie_weight


@dataclass(eq=False, repr=False)
class LogisticCompare(ComparisonEstimator):
    """Ranking function from very many preferences and ties, by logistic regression.

    Minimises, over the flipped pairs of eq. 8 of [Venuto2017]_ (preferences turned so
    that the better item comes first, label +1; each tie in both orders, label -1), with
    d = phi(first) - phi(second)::

        F(w, beta) = mean_i log(1 + exp(-label_i (beta + w·d_i))) + alpha/2 w·w,

    by Newton's method, until a duality gap proves the minimum. As in `SVMCompare`, the
    ranking function is r(x) = -w·phi(x) / beta, and two items whose scores differ by at
    most 1 are predicted to be equal.

    Parameters
    ----------
    alpha : float
        Strength of the regularization, positive; alpha = 1 / (C · number of flipped
        pairs) is the C of `SVMCompare`.
    kernel : {"linear", "rbf"}
        "linear": phi(x) = x, to be standardised beforehand, since w·w depends on the
        scale of the features; "rbf": random Fourier features, whose inner products are
        nearly the kernel ([RahimiRecht2007]_).
    gamma : float or "scale"
        As in `SVMCompare`.
    n_components : int
        Number D of features that approximate the kernel rbf.
    tol : float
        Largest duality gap, relative to F; a ConvergenceWarning says so where rounding
        stops the fit before.
    random_state : int, numpy Generator, RandomState or None
        Source of the random features.
    tie_weight : float or "least"
        Factor on the weight of each tie. "least": the first of 1 and the factors with
        which ties weigh 0.6, 0.7, 0.8, 0.9 or 1 times as much as preferences for which
        beta is negative. With the last one it is for all data.

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
        F at w and beta; it exceeds its minimum by at most `dual_gap_` times F.
    n_iter_ : int
        Number of Newton steps on all pairs.
    n_features_in_ : int

    Notes
    -----
    **A cumulative logit model.** With k = -beta and a difference z of scores, write a =
    s(k(z - 1)) and b = s(k(-z - 1)) for s the logistic function: the probabilities of
    +1 and -1 in the ordinal model with thresholds -1 and 1, whose ties have probability
    1 - a - b.

    The loss of a preference is exactly -log a or -log b. The loss of a tie is
    -log((1 - a)(1 - b)), where (1 - a)(1 - b) = (1 - a - b) / (1 - exp(2 beta)) for
    every z. So F is the negative log-likelihood of the ordinal model, the model of Rao
    and Kupper ([RaoKupper1967]_), plus log(1 - exp(2 beta)) for each tie: for a given
    beta both have the same best w.

    **The bias.** At its optimum beta < 0 if and only if, at the w that is best for beta
    = 0, ties outweigh the sum over preferences of s(-w·d). So beta < 0 wherever ties
    weigh at least as much as preferences. Otherwise it may be positive; then -w / beta
    would rank backwards, and `fit` raises DegenerateBiasError.

    **Centring.** For the kernel rbf the items are centred, which changes neither F nor
    its optimum.

    Examples
    --------
    >>> X = np.arange(6.0)[:, None]
    >>> pairs, y = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]] * 50), [0, 1] * 50
    >>> machine = LogisticCompare(alpha=0.01).fit(pairs, y)
    >>> machine.predict(pairs[:2]).tolist()
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
        """Learn from labelled pairs.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and
            preferences.
        sample_weight : array-like of shape (m,), optional
            How often each pair counts, not negative.

        Raises
        ------
        DegenerateBiasError
            If beta is not negative at the end (see the notes of the class).
        ValueError
            On bad parameters, pairs or labels, only ties, or only preferences.
        """
        alpha = check_number(self, "alpha", positive=True)
        tol = check_number(self, "tol", positive=True)
        n_components = check_count(self.n_components, "n_components", 1)
        check_choice(self.kernel, "kernel", ("linear", "rbf"))
        rng = legacy_rng(self.random_state, fresh=True)
        pairs, y, weights, *_ = Training.validate(self, pairs, y, sample_weight)
        self._fit_features(pairs, n_components, rng)
        features = self._features(pairs.items)

        def solve(weights: Floats, alpha: float = alpha) -> tuple[Minimum, float]:
            # of flipped rows
            ties = 2 * weights[y == 0].sum()
            preferences = weights[y != 0].sum()
            start = math.log(preferences / ties)
            law = TieLaw(_flipped_loss, start=start, least=-math.inf)
            scaled = weights / (ties + preferences)
            minimum = minimise(law, features, pairs.B, y, scaled, alpha, tol)
            return minimum, minimum.t

        self.tie_weight_, weights, minimum = choose_tie_weight(
            self.tie_weight, y, weights, solve
        )
        remedy = "raise alpha, or standardise the features"
        warn_about_gap("LogisticCompare", minimum.gap, tol, remedy)

        def differences() -> Floats:
            return pairs.B.differences(features @ minimum.w)

        def weaken(factor: float) -> tuple[str, float]:
            lower = alpha / factor
            return f"Lower alpha to {lower:g}", solve(weights, lower)[1]

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
        """Scores r(x) of items, shape (n,); larger is better.

        Parameters
        ----------
        X : array-like of shape (n, p)

        Raises
        ------
        ValueError
            If X has another number of features than the pairs of the fit.
        """
        return self._features(check_asked(self, X)) @ self.weights_ / -self.bias_

    def _fit_features(
        self, pairs: Pairs, n_components: int, rng: np.random.RandomState
    ) -> None:
        """Set the centre of the items, and the map from centred items to features."""
        check_scale(pairs.items, "items")
        self._centre = np.zeros(pairs.shape[2])
        self._feature_map = None
        if self.kernel == "linear":
            return
        items = pairs.items[pairs.B.occurring()]
        self._centre = items.mean(axis=0)
        items = items - self._centre
        gamma = scale_gamma(self.gamma, items)
        # imported late, since it loads much else
        from sklearn.kernel_approximation import RBFSampler

        sampler = RBFSampler(gamma=gamma, n_components=n_components, random_state=rng)
        self._feature_map = sampler.fit(items).transform

    def _features(self, items: Floats) -> Floats:
        if self._feature_map is None:
            return items
        return self._feature_map(items - self._centre)


def _flipped_loss(d: Floats, beta: float, y: NDArray) -> Loss:
    """log(1 + exp(-label (beta + z))), summed over the flipped rows of each pair."""
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
    # The second row of each tie has the opposite difference.
    value, slope, curvature = _softplus(beta - d[ties])
    second = (value, -slope, slope, curvature, -curvature, curvature)
    for total, part in zip(loss, second, strict=True):
        total[ties] += part
    return loss


def _softplus(u: Floats) -> tuple[Floats, Floats, Floats]:
    """log(1 + e^u) with its first and second derivative."""
    small = np.exp(-np.abs(u))
    slope = np.where(u > 0, 1.0, small) / (1 + small)
    return np.maximum(u, 0.0) + np.log1p(small), slope, slope * (1 - slope)
