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
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from preflearn.checks import (
    LARGEST,
    Floats,
    check_choice,
    check_kinds,
    check_labels,
    check_number,
    check_scale,
    check_weights,
)
from preflearn.ground.estimator import LinearComparison
from preflearn.ground.newton import warn_of_gap
from preflearn.ground.outcomes import LINKS, davidson_loss, davidson_probabilities, log_interval, ordinal_loss
from preflearn.ground.tie_laws import TieLaw, minimise
from preflearn.pairs import Pairs, as_pairs

_TOL = 1e-12  # relative duality gap to stop at: Newton steps cost little more for it than for 1e-6
_INACCURATE = 1e-6  # one that is worth a warning
_USELESS = 1e-2  # a gap beyond which there is no answer
_LARGEST_LOG = 700.0  # of the parameter of ties, whose exponential a float can hold


class TieModel(LinearComparison):
    """What both models share: w of least penalised loss, and scores w·x."""

    alpha: float
    objective_: float
    dual_gap_: float
    n_iter_: int

    def _fit(self, law: TieLaw, pairs: Pairs | ArrayLike, y: ArrayLike, weights: ArrayLike | None) -> float:
        """Set the attributes that the models share, and return the parameter of ties."""
        name, alpha = type(self).__name__, check_number(self, "alpha", positive=True, most=LARGEST)
        pairs = as_pairs(pairs, keep=True)
        y, weights = check_labels(y, len(pairs)), check_weights(weights, len(pairs))
        check_scale(pairs.items, "items")
        check_kinds(y[weights > 0], name, ties=False)
        found = minimise(law, pairs.items, pairs.B, y, weights, alpha, _TOL)
        if not (found.gap <= _USELESS and found.t < _LARGEST_LOG):
            raise ValueError(
                f"{name} found no optimum (duality gap {found.gap:.1e} of the objective): weights go up to "
                f"{weights.max():.3g}; expected weights and features nearer to 1"
            )
        warn_of_gap(name, found.gap, _INACCURATE, f"raise alpha = {alpha:g}, or standardise the features", 2)
        self.coef_, self.objective_, self.dual_gap_ = found.w, found.objective, found.gap
        self.n_iter_ = found.n_iter
        self._remember(pairs)
        return found.t


class Davidson(TieModel):
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
    objective_, dual_gap_ : float
        The minimum, and the relative duality gap that proves it.
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

    nu_: float

    def __init__(self, alpha: float = 1e-3) -> None:
        self.alpha = alpha

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
        t = self._fit(TieLaw(davidson_loss, start=0.0, least=-math.inf), pairs, y, sample_weight)
        self.nu_ = math.exp(t)
        self.tau_ = max(0.0, 2 * t)
        return self

    def predict_proba(self, pairs: Pairs | ArrayLike) -> Floats:
        """Probabilities of the outcomes -1, 0, 1 for each pair, shape (m, 3)."""
        return davidson_probabilities(self.decision_function(pairs), self.nu_)


class OrdinalComparison(TieModel):
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
    objective_, dual_gap_ : float
        The minimum, and the relative duality gap that proves it.
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

    threshold_: float

    def __init__(self, link: Literal["logit", "probit"] = "logit", alpha: float = 1e-3) -> None:
        self.link = link
        self.alpha = alpha

    def fit(self, pairs: Pairs | ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Maximise the penalised likelihood; parameters, result and errors as in `Davidson.fit`."""
        check_choice(self.link, "link", tuple(LINKS))
        link = LINKS[self.link]
        law = TieLaw(lambda d, t, y: ordinal_loss(d, t, y, link), start=1.0, least=0.0)
        self.threshold_ = t = self._fit(law, pairs, y, sample_weight)

        def excess(d: float) -> float:  # of P(first) over P(tie)
            first, second = np.exp(link.log_cdf(np.array([d - t, -d - t])))
            return float(2 * first + second - 1)

        self.tau_ = float(brentq(excess, 0.0, t, xtol=1e-14)) if excess(0.0) < 0 else 0.0  # pyright: ignore[reportArgumentType]
        return self

    def predict_proba(self, pairs: Pairs | ArrayLike) -> Floats:
        """Probabilities of the outcomes -1, 0, 1 for each pair, shape (m, 3)."""
        d, t, log_cdf = self.decision_function(pairs), self.threshold_, LINKS[self.link].log_cdf
        second, first = np.exp(log_cdf(-d - t)), np.exp(log_cdf(d - t))
        tie = np.exp(log_interval(d, t, log_cdf)) if t > 0 else np.zeros_like(d)
        return np.column_stack([second, tie, first])
