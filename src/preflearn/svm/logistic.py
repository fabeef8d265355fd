"""Comparisons with a logistic loss by stochastic gradients: the future work of [Venuto2017]_, section 6.

The scores of the n distinct items are linear in features that are computed once, n x D numbers. Differences
of features exist for one batch of pairs at a time, so memory does not grow with m · D.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
.. [RahimiRecht2007] A. Rahimi, B. Recht, "Random features for large-scale kernel machines", NIPS 2007.
.. [RaoKupper1967] P. V. Rao, L. L. Kupper, "Ties in paired-comparison experiments: a generalization of the
   Bradley-Terry model", Journal of the American Statistical Association 62, 1967.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.utils import check_random_state

from preflearn.checks import (
    LARGEST,
    Floats,
    as_real,
    check_choice,
    check_kinds,
    check_number,
    check_scale,
    shown,
)
from preflearn.ground.estimator import ComparisonEstimator
from preflearn.ground.kernels import Kernel, check_kernel, gram_features, scale_gamma
from preflearn.pairs import Incidence, Pairs
from preflearn.svm.machine import Expansion, KernelProblem, check_bias, check_input

_FIRST_STEP = 2.0  # learning rate of the first pass, where differences have mean square 1
_MOST = 10**9  # of anything that is counted
_BATCHES = 8  # in a pass at least, since the iterates at their ends are averaged; more gain nothing


class _Objective(NamedTuple):
    """F over the flipped pairs, for given features of the items."""

    B: Incidence  # of the flipped pairs
    features: Floats
    labels: NDArray[np.int8]
    share: Floats  # of each flipped pair in the weight of all
    alpha: float

    def differences(self, rows: NDArray) -> Floats:
        return self.B[rows].differences(self.features)

    def value(self, w: Floats, bias: float) -> float:
        z = self.labels * (bias + self.B.differences(self.features @ w))
        return float(self.share @ np.logaddexp(0.0, -z) + self.alpha / 2 * (w @ w))

    def root_mean_square(self, batch_size: int) -> float:
        """Of the differences; 1 if all are 0."""
        squares = (
            self.share[rows] @ (self.differences(rows) ** 2).sum(axis=1)
            for rows in _batches(np.arange(len(self.share)), batch_size)
        )
        return float(np.sqrt(sum(squares))) or 1.0

    def draw(self, rng: np.random.RandomState) -> NDArray[np.int64]:
        """The rows of one pass: each as often as its share says, up to rounding at random, shuffled."""
        m = len(self.share)
        counts = np.diff(np.floor(m * np.cumsum(self.share) + rng.random_sample()), prepend=0.0)
        return rng.permutation(np.repeat(np.arange(m), counts.astype(np.int64)))


def _batches(rows: NDArray[np.int64], size: int) -> Iterator[NDArray[np.int64]]:
    return (rows[start : start + size] for start in range(0, len(rows), size))


class LogisticCompare(ComparisonEstimator):
    """A ranking function learned from very many preferences and ties, by logistic regression.

    Minimises, over the flipped pairs of eq. 8 of [Venuto2017]_ (preferences turned so that the better item
    comes first, label +1; each tie in both orders, label -1), with d = phi(first) - phi(second)::

        F(w, beta) = mean_i log(1 + exp(-label_i (beta + w·d_i))) + alpha/2 w·w,

    by stochastic gradient descent, whose iterates are averaged. As in `SVMCompare`, the ranking function
    is r(x) = -w·phi(x) / beta, and two items whose scores differ by at most 1 are predicted to be equal.

    Parameters
    ----------
    alpha : float
        Strength of the regularisation, positive; alpha = 1 / (C · number of flipped pairs) is the C of
        `SVMCompare`.
    kernel : str or callable
        "linear": phi(x) = x, to be standardised beforehand, since w·w and the steps depend on the scale of
        the features; or another one as in `SVMCompare`, but not "precomputed".
    gamma, degree, coef0
        As in `SVMCompare`.
    n_components : int
        Number D of features that approximate the kernel; not used by the linear one.
    approximation : {"fourier", "nystroem"}
        "fourier": random Fourier features [RahimiRecht2007]_, for the kernel rbf only; "nystroem": the
        projection on D random items of the fit, for any positive semi-definite kernel.
    max_iter : int
        Largest number of passes over the pairs.
    tol : float
        The fit ends when doubling the number of passes has changed F by less than this share of it; if
        max_iter comes first, a ConvergenceWarning says so.
    batch_size : int
        Largest number of pairs whose differences of features are held at once.
    random_state : int, RandomState or None
        For the features and the order of the pairs.

    Attributes
    ----------
    weights_ : ndarray of shape (D,)
        w; D = p for the linear kernel.
    bias_ : float
        beta, negative.
    coef_ : ndarray of shape (p,)
        -w / beta, for the linear kernel only.
    tau_ : float
        1, the threshold of the comparison function.
    loss_ : float
        F at the end, computed over all pairs.
    loss_curve_ : list of float
        F after each pass.
    n_iter_ : int
        Number of passes.
    n_features_in_ : int

    Notes
    -----
    **A cumulative logit model.** With k = -beta and a difference z of scores, write a = s(k(z - 1)) and
    b = s(k(-z - 1)) for s the logistic function: the probabilities of +1 and -1 in the ordinal model with
    thresholds -1 and 1, whose ties have probability 1 - a - b. The loss of a preference is -log a or -log b
    exactly. That of a tie is -log((1 - a)(1 - b)), and (1 - a)(1 - b) = (1 - a - b) / (1 - exp(2 beta)) for
    every z. So F is the negative log-likelihood of the ordinal model, which is that of Rao and Kupper
    [RaoKupper1967]_, but for log(1 - exp(2 beta)) a tie: for a given beta both have the same best w.

    **The bias.** At its optimum beta < 0 if and only if, at the w that is best for beta = 0, ties outweigh
    the sum over preferences of s(-w·d). So beta < 0 wherever ties weigh at least as much as preferences.
    Otherwise it may be positive; then -w / beta would rank backwards, and `fit` raises DegenerateBiasError.

    **The steps.** Features are divided by one number, so that differences have mean square 1; alpha is
    scaled to match, which leaves F as it is. Pass 1 has learning rate 2; the rate is halved after passes
    1, 2, 4, 8, ..., and the average starts anew there: the bias of constant steps falls with the square of
    the rate. A pair of weight v is drawn v / (mean weight) times in a pass, up to rounding at random.

    Examples
    --------
    >>> X = np.arange(6.0)[:, None]
    >>> pairs, y = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]] * 50), [0, 1] * 50
    >>> machine = LogisticCompare(alpha=0.01, random_state=0).fit(pairs, y)
    >>> machine.predict(pairs[:2]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        alpha: float = 1e-4,
        kernel: Kernel = "linear",
        *,
        gamma: float | Literal["scale"] = "scale",
        degree: float = 3,
        coef0: float = 1.0,
        n_components: int = 300,
        approximation: Literal["fourier", "nystroem"] = "fourier",
        max_iter: int = 20,
        tol: float = 1e-3,
        batch_size: int = 4096,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.alpha = alpha
        self.kernel: Kernel = kernel
        self.gamma: float | Literal["scale"] = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.approximation: Literal["fourier", "nystroem"] = approximation
        self.max_iter = max_iter
        self.tol = tol
        self.batch_size = batch_size
        self.random_state = random_state

    def fit(
        self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> LogisticCompare:
        """Learn from labelled pairs.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 no difference; both ties and preferences.
        sample_weight : array-like of shape (m,), optional
            How often each pair counts, not negative.

        Raises
        ------
        DegenerateBiasError
            If beta is not negative at the end (see the notes of the class).
        NotPositiveSemidefiniteError
            If the kernel is not positive semi-definite on the random items of "nystroem".
        ValueError
            On bad parameters, pairs or labels, only ties, or only preferences.
        """
        alpha, rng = self._check_parameters()
        pairs, y, weights = check_input(pairs, y, sample_weight)
        kept = weights > 0
        y, weights = y[kept], weights[kept]
        check_kinds(y, "LogisticCompare")
        flipped, labels = pairs[kept].flipped(y)
        share = np.concatenate([weights[y == label] for label in (1, -1, 0, 0)])
        B, features, feature_map = self._features(flipped, rng)
        objective = _Objective(B, features, labels, share / share.sum(), alpha)
        w, bias, curve = self._descend(objective, rng)
        check_bias(
            bias,
            y,
            f"alpha = {alpha:g}",
            "Lower alpha, or give ties a larger sample_weight (where ties weigh as much as preferences, "
            "beta is negative)",
        )
        self.n_features_in_, self.tau_ = pairs.shape[2], 1.0
        self.weights_, self.bias_, self._feature_map = w, bias, feature_map
        self.loss_curve_, self.loss_, self.n_iter_ = curve, curve[-1], len(curve)
        if self.kernel == "linear":
            self.coef_ = -w / bias
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
        X = self._checked_features(X)
        return self._feature_map(X) @ self.weights_ / -self.bias_

    def _check_parameters(self) -> tuple[float, np.random.RandomState]:
        alpha, _ = (check_number(self, name, positive=True) for name in ("alpha", "tol"))
        for name in ("n_components", "max_iter", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or not 0 < as_real(value) <= _MOST:
                raise ValueError(
                    f"{name} is {shown(value)}; expected a positive integer of at most {_MOST:,}"
                )
        check_kernel(self.kernel)
        if self.kernel == "precomputed":
            raise ValueError(
                "kernel is 'precomputed'; expected 'linear', another name or a callable: features of new "
                "items are made from the items; SVMCompare takes Gram matrices"
            )
        check_choice(self.approximation, "approximation", ("fourier", "nystroem"))
        if self.approximation == "fourier" and self.kernel not in ("linear", "rbf"):
            raise ValueError(
                f"approximation='fourier' is for kernel='rbf', and kernel is {shown(self.kernel)}; expected "
                "approximation='nystroem'"
            )
        try:
            return alpha, check_random_state(self.random_state)
        except (TypeError, ValueError):
            raise ValueError(
                f"random_state is {shown(self.random_state)}; expected an integer from 0 to 2**32 - 1, a "
                "numpy.random.RandomState or None"
            ) from None

    def _features(
        self, pairs: Pairs, rng: np.random.RandomState
    ) -> tuple[Incidence, Floats, Callable[[Floats], Floats]]:
        """B over the distinct items, their features, and the map to features."""
        if self.kernel == "linear":
            check_scale(pairs.items, "items")
            return pairs.B, pairs.items, np.asarray
        problem = KernelProblem.of(self, pairs)
        items, k = problem.items, problem.k
        if self.approximation == "fourier":
            gamma = scale_gamma(self.gamma, items)
            sampler = RBFSampler(gamma=gamma, n_components=self.n_components, random_state=rng)
            feature_map = sampler.fit(items).transform
        else:  # phi(x) = k(x, landmarks) · projection, whose inner products are k exactly on the landmarks
            landmarks = items[rng.choice(len(items), min(self.n_components, len(items)), replace=False)]
            projection = np.asarray(linalg.pinv(gram_features(k(landmarks, landmarks)))).T
            feature_map = Expansion(k, landmarks, projection)
        return problem.B, feature_map(items), feature_map

    def _descend(
        self, objective: _Objective, rng: np.random.RandomState
    ) -> tuple[Floats, float, list[float]]:
        """w, beta and F after each pass.

        The iterates at the ends of batches are averaged here: with ``average=True`` and two classes,
        `partial_fit` of scikit-learn 1.9 begins each batch with the intercept of the very first one.
        """
        scale = objective.root_mean_square(self.batch_size)
        strength = objective.alpha / max(scale**2, np.finfo(np.float64).tiny)
        if strength > LARGEST:
            raise ValueError(
                f"alpha = {objective.alpha:g} is {strength:.1e} times the mean square of the differences of "
                f"features; expected at most {LARGEST:g}: lower alpha, or standardise the features"
            )
        size = max(1, min(self.batch_size, len(objective.labels) // _BATCHES))
        machine: Any = SGDClassifier(
            loss="log_loss",
            alpha=strength,
            learning_rate="constant",
            eta0=_FIRST_STEP,
            shuffle=False,
        )
        curve, before, count = [], np.inf, 0
        mean = total = np.zeros(objective.features.shape[1] + 1)
        for n_passes in range(1, self.max_iter + 1):
            for rows in _batches(objective.draw(rng), size):
                machine.partial_fit(
                    objective.differences(rows) / scale, objective.labels[rows], classes=[-1, 1]
                )
                total = total + np.append(machine.coef_[0] / scale, machine.intercept_)
                count += 1
            mean = total / count
            curve.append(objective.value(mean[:-1], mean[-1]))
            if n_passes & (n_passes - 1) == 0 or n_passes == self.max_iter:  # the end of a stage
                if abs(before - curve[-1]) < self.tol * curve[-1]:
                    break
                before, total, count = curve[-1], np.zeros_like(total), 0
                machine.set_params(eta0=machine.eta0 / 2)
        else:
            warnings.warn(
                f"LogisticCompare: {self.max_iter} passes were not enough to settle F to tol = {self.tol:g}; "
                f"F is {curve[-1]:.6g}: raise max_iter, standardise the features, or raise alpha",
                ConvergenceWarning,
                stacklevel=3,
            )
        return mean[:-1], float(mean[-1]), curve
