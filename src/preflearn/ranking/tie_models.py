"""Models of paired comparisons with ties: Davidson's, and the ordinal ones with a threshold.

All give the probabilities of three outcomes as functions of d = r(first) - r(second), with a linear
ranking function r(x) = w·x, and one more parameter for ties. On items that are rows of the identity
matrix they are the classical models, with a strength for each item. The log-likelihoods are jointly
concave in w and the parameter of ties, so the fit is unique.

References
----------
.. [Davidson1970] R. R. Davidson, "On extending the Bradley-Terry model to accommodate ties in paired
   comparison experiments", JASA 65, 1970.
.. [GlennDavid1960] W. A. Glenn, H. A. David, "Ties in paired-comparison experiments using a modified
   Thurstone-Mosteller model", Biometrics 16, 1960.
.. [RaoKupper1967] P. V. Rao, L. L. Kupper, "Ties in paired-comparison experiments: A generalization of
   the Bradley-Terry model", JASA 62, 1967.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, sparse
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from preflearn.checks import check_labels, check_number, check_scale, check_weights
from preflearn.ground.estimator import ComparisonEstimator
from preflearn.ground.outcomes import (
    LINKS,
    Loss,
    davidson_loss,
    davidson_probabilities,
    log_interval,
    ordinal_loss,
)
from preflearn.pairs import Pairs, as_pairs

__all__ = ["Davidson", "OrdinalComparison"]

Floats = NDArray[np.float64]

_MAX_ITERATIONS = 300
_CLOSE = 1e-12  # a Newton decrement, relative to the objective, after which one more step is enough


class _TieModel(ComparisonEstimator):
    """Maximum likelihood, with a Gaussian prior on w, of a model with one parameter of ties."""

    alpha: float

    coef_: Floats
    tau_: float
    objective_: float
    n_iter_: int
    n_features_in_: int

    _start: float  # of t
    _no_ties: float  # the limit of t where there are no ties
    _least: float  # t stays above

    def fit(self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Maximise the penalised likelihood by Newton's method.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p)
        y : array-like of shape (m,)
            +1 first better, -1 second better, 0 tie.
        sample_weight : array-like of shape (m,), optional
            Weights of the pairs, not negative; a weight of two is the same pair twice.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range, all pairs are ties, or the data are not as described.
        """
        self._check_parameters()
        pairs = as_pairs(pairs)
        y = check_labels(y, len(pairs))
        weights = check_weights(sample_weight, len(y))
        check_scale(pairs.items, "items")
        used = weights > 0
        if not y[used].any():
            raise ValueError(
                f"all {np.count_nonzero(used)} pairs are ties; expected at least one label -1 or 1: "
                "without, the parameter of ties grows without limit"
            )
        incidence = pairs[used].incidence()
        problem = _Problem(pairs.items, incidence, y[used], weights[used], float(self.alpha))
        self.coef_, t = self._maximise(problem)
        self.n_features_in_ = len(self.coef_)
        self._set_tie_parameter(t)
        return self

    def rank_function(self, X: ArrayLike) -> Floats:
        """Scores r(x) = w·x of items, shape (n,); larger is better."""
        return self._checked_features(X) @ self.coef_

    def predict_proba(self, pairs: Pairs | ArrayLike) -> Floats:
        """Probabilities of the outcomes -1, 0, 1 for each pair, shape (m, 3)."""
        check_is_fitted(self, "n_features_in_")
        return self._probabilities(self.decision_function(pairs))

    def _check_parameters(self) -> None:
        check_number(self, "alpha", positive=True)

    def _maximise(self, problem: _Problem) -> tuple[Floats, float]:
        """The best w and t; where there are no ties, w is the only unknown and t stays at its limit."""
        free = bool((problem.y == 0).any())
        start = np.zeros(problem.items.shape[1] + free)
        if free:
            start[-1] = self._start

        def split(point: Floats) -> tuple[Floats, float]:
            return (point[:-1], float(point[-1])) if free else (point, self._no_ties)

        def losses(point: Floats) -> tuple[Floats, Loss]:
            w, t = split(point)
            return w, self._loss(problem.differences(w), t, problem.y)

        least = np.full(len(start), -math.inf)
        least[len(least) - free :] = self._least
        found = _newton(
            lambda point: problem.objective(*losses(point)),
            lambda point: problem.derivatives(*losses(point), free),
            start,
            least,
        )
        self.objective_, self.n_iter_ = found.value, found.n_iter
        if not found.converged:
            warnings.warn(
                f"{type(self).__name__}: no maximum was found in {_MAX_ITERATIONS} steps: raise "
                f"alpha = {self.alpha:g}, or standardise the features",
                ConvergenceWarning,
                stacklevel=3,
            )
        return split(found.point)


class Davidson(_TieModel):
    """The model of [Davidson1970]_: Bradley and Terry's, with ties between equals.

    For items of worth pi = e^r, a tie has a probability in proportion to the geometric mean of both::

        P(first) : P(tie) : P(second) = pi_1 : nu sqrt(pi_1 pi_2) : pi_2 = e^{d/2} : nu : e^{-d/2},

    d = w·(x_first - x_second). The fit minimises alpha/2 w·w minus the sum of the log-likelihoods: w has
    a Gaussian prior of variance 1/alpha, nu has none.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, positive: without, w is not unique on items that are one-hot, and
        infinite where the preferences can be separated.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        w.
    nu_ : float
        Weight of ties; nu / (2 + nu) is the probability of a tie between equals. It is 0, the limit, where
        the data hold no ties: then this is the model of Bradley and Terry.
    tau_ : float
        2 log(nu) if nu > 1, else 0: a tie is the most probable outcome where abs(d) < tau_.
    objective_ : float
        The minimum.
    n_iter_, n_features_in_ : int

    Notes
    -----
    Where nu < 1 a tie is never the most probable outcome; then `predict` says 0 only at d = 0, where both
    preferences are equally probable and no answer but this is the same for the swapped pair.

    With t = log(nu), -log P is the logarithm of a sum of exponentials of (d/2, t, -d/2) minus one of
    them: jointly convex in (w, t). At the optimum the expected number of ties is the observed one.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = Pairs(np.eye(3), [[0, 1], [1, 2], [0, 2], [0, 1]])
    >>> model = Davidson(alpha=0.1).fit(pairs, [1, 1, 1, 0])
    >>> model.predict_proba(pairs).round(2).tolist()
    [[0.14, 0.33, 0.53], [0.04, 0.22, 0.74], [0.01, 0.13, 0.86], [0.14, 0.33, 0.53]]
    """

    _start, _no_ties, _least = 0.0, -math.inf, -math.inf
    nu_: float

    def __init__(self, alpha: float = 1e-3) -> None:
        self.alpha = alpha

    def _set_tie_parameter(self, t: float) -> None:
        self.nu_ = math.exp(t)
        self.tau_ = max(0.0, 2 * t)

    def _probabilities(self, d: Floats) -> Floats:
        return davidson_probabilities(d, self.nu_)

    def _loss(self, d: Floats, t: float, y: NDArray) -> Loss:
        return davidson_loss(d, t, y)


class OrdinalComparison(_TieModel):
    """A preference is a noisy difference beyond a threshold: P(first) = F(d - t), P(second) = F(-d - t).

    F is the logistic function (the model of [RaoKupper1967]_) or the normal distribution function (that
    of [GlennDavid1960]_: Thurstone's, with ties), and P(tie) = F(t - d) - F(-t - d), with
    d = w·(x_first - x_second). The fit minimises alpha/2 w·w minus the sum of the log-likelihoods: w has a
    Gaussian prior of variance 1/alpha, t > 0 has none.

    Parameters
    ----------
    link : {"logit", "probit"}
        The distribution of the noise; its unit is that of d and t.
    alpha : float
        Strength of the penalty, positive: without, w is not unique on items that are one-hot, and
        infinite where the preferences can be separated.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        w.
    threshold_ : float
        t. It is 0, the limit, where the data hold no ties.
    tau_ : float
        A tie is the most probable outcome where abs(d) < tau_. It solves 2F(d - t) + F(-d - t) = 1 and is
        smaller than t; it is 0 where 3F(-t) > 1 (for the logit, t < log 2): then a tie is never the most
        probable, and `predict` says 0 only at d = 0, where both preferences are equally probable.
    objective_ : float
        The minimum.
    n_iter_, n_features_in_ : int

    Notes
    -----
    F has a log-concave density, so log F(b), and log(F(b) - F(a)) for a < b, are jointly concave in (a, b)
    (Prékopa); a and b are linear in (w, t). For the logit, P(tie) = (e^{2t} - 1) P(first) P(second).

    Examples
    --------
    >>> import numpy as np
    >>> pairs = Pairs(np.eye(3), [[0, 1], [1, 2], [0, 2], [0, 1]])
    >>> model = OrdinalComparison("probit", alpha=0.1).fit(pairs, [1, 1, 1, 0])
    >>> model.predict_proba(pairs).round(2).tolist()
    [[0.03, 0.47, 0.5], [0.0, 0.08, 0.92], [0.0, 0.01, 0.99], [0.03, 0.47, 0.5]]
    """

    _start, _no_ties, _least = 1.0, 0.0, 0.0
    threshold_: float

    def __init__(self, link: Literal["logit", "probit"] = "logit", alpha: float = 1e-3) -> None:
        self.link = link
        self.alpha = alpha

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.link not in LINKS:
            raise ValueError(f"link is {self.link!r}; expected one of {list(LINKS)}")

    def _set_tie_parameter(self, t: float) -> None:
        self.threshold_ = float(t)
        log_cdf = LINKS[self.link].log_cdf

        def excess(d: float) -> float:  # of P(first) over P(tie)
            return 2 * math.exp(log_cdf(d - t)) + math.exp(log_cdf(-d - t)) - 1

        self.tau_ = brentq(excess, 0.0, t, xtol=1e-14) if excess(0.0) < 0 else 0.0

    def _probabilities(self, d: Floats) -> Floats:
        log_cdf, t = LINKS[self.link].log_cdf, self.threshold_
        second, first = np.exp(log_cdf(-d - t)), np.exp(log_cdf(d - t))
        tie = np.exp(log_interval(d, t, log_cdf)) if t > 0 else np.zeros_like(d)
        return np.column_stack([second, tie, first])

    def _loss(self, d: Floats, t: float, y: NDArray) -> Loss:
        return ordinal_loss(d, t, y, LINKS[self.link])


class _Problem(NamedTuple):
    """The data of a fit: only pairs with a positive weight."""

    items: Floats
    incidence: sparse.csr_array
    y: NDArray[np.int8]
    weights: Floats
    alpha: float

    def differences(self, w: Floats) -> Floats:
        return self.incidence @ (self.items @ w)

    def objective(self, w: Floats, loss: Loss) -> float:
        return float(self.weights @ loss.value + self.alpha / 2 * (w @ w))

    def derivatives(self, w: Floats, loss: Loss, free: bool) -> tuple[Floats, Floats]:
        """Gradient and Hessian in (w, t), or in w only; with B the incidence matrix, d = B X w."""
        incidence, items = self.incidence, self.items
        gradient = items.T @ (incidence.T @ (self.weights * loss.d)) + self.alpha * w
        laplacian = incidence.T @ (incidence * (self.weights * loss.dd)[:, None])
        hessian = items.T @ (laplacian @ items) + self.alpha * np.eye(len(w))
        if not free:
            return gradient, hessian
        mixed = items.T @ (incidence.T @ (self.weights * loss.dt))
        corner = self.weights @ loss.tt
        return np.append(gradient, self.weights @ loss.t), np.block(
            [[hessian, mixed[:, None]], [mixed[None], corner]]
        )


class _Minimum(NamedTuple):
    point: Floats
    value: float
    n_iter: int
    converged: bool


def _newton(
    objective: Callable[[Floats], float],
    derivatives: Callable[[Floats], tuple[Floats, Floats]],
    point: Floats,
    least: Floats,
) -> _Minimum:
    """Damped Newton steps for a convex objective on the points above `least`."""
    value = objective(point)
    for n_iter in range(1, _MAX_ITERATIONS + 1):
        gradient, hessian = derivatives(point)
        step = -_solve(hessian, gradient)
        decrement = -float(gradient @ step)
        down = step < 0
        size = min(1.0, 0.9 * np.min((least - point)[down] / step[down], initial=math.inf))
        if decrement <= _CLOSE * value:  # where Newton steps square the error; values are rounded too much
            return _Minimum(point + size * step, objective(point + size * step), n_iter, True)
        while (new := objective(point + size * step)) > value - 1e-4 * size * decrement and size > 1e-10:
            size /= 2
        point, value = point + size * step, new
    return _Minimum(point, value, _MAX_ITERATIONS, False)


def _solve(hessian: Floats, gradient: Floats) -> Floats:
    """Solve a positive definite system after scaling its diagonal to 1."""
    scale = 1 / np.sqrt(np.diag(hessian))
    scaled = hessian * scale * scale[:, None]
    scaled[np.diag_indices_from(scaled)] += 1e-14  # against rounding; a step need not be exact
    return scale * linalg.cho_solve(linalg.cho_factor(scaled), scale * gradient)
