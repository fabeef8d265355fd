"""Standard errors, intervals, ranks, and quasi-variances of scores.

All functions assume that the errors of the estimates are jointly normal. The covariance
of score differences is the inverse of the observed information plus penalty, V = (I +
alpha)^-1. If comparisons by the same judge depend on each other, it is the sandwich V
(G'G + alpha) V, where the information I is replaced by G'G with the gradients G of the
judges [LiangZeger1986]_. In both cases a difference that the data do not identify has
the variance of its prior.

References
----------
.. [LiangZeger1986] K.-Y. Liang, S. L. Zeger, "Longitudinal data analysis using
   generalized linear models", Biometrika 73, 1986.
.. [Bramley2015] T. Bramley, "Investigating the reliability of adaptive comparative
   judgment", Cambridge Assessment Research Report, 2015.
.. [FirthMenezes2004] D. Firth, R. X. de Menezes, "Quasi-variances", Biometrika 91,
  2004.
.. [WrightMasters1982] B. D. Wright, G. N. Masters, "Rating scale analysis", MESA Press,
   1982.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import get_blas_funcs
from scipy.special import ndtri
from sklearn.base import clone

from preflearn.core.diagnosis import (
    INFORMATIVE_PENALTY,
    NotIdentifiedWarning,
    as_compared,
)
from preflearn.core.validation import (
    Floats,
    check_count,
    check_labels,
    check_query_ids,
    check_real,
    generator,
    raise_if_any,
    require,
)
from preflearn.matches import OutcomeWarning, as_outcomes
from preflearn.ranking.base import positions
from preflearn.solvers.newton import conjugate_gradients
from preflearn.solvers.search import in_parallel
from preflearn.solvers.smooth_losses import DENSE

_BLOCK = 64  # number of rows whose covariance is formed at a time
_DRAWS = 256  # number of draws that are ranked at a time
_MAX_QUASI_STEPS = 200
_QUASI_TOLERANCE = 1e-11  # largest change of quasi-variances in the last step
_SQUARED_CG_TOLERANCE = 1e-16
_SHORTEST = 1e-9  # smallest fraction of a step
_TINY = np.finfo(np.float64).tiny
SOME_PAIRS = f"at most {DENSE}: pass pairs= to get results for some pairs only"


class Ranks(NamedTuple):
    """Ranks of items, where 1 is best, with an interval for each."""

    rank: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


class Reliability(NamedTuple):
    """Reliability of scores, and number of judgments needed to reach a target."""

    value: float
    # standard deviation of the true scores, in units of the standard error
    separation: float
    n_needed: float  # number of additional judgments


class Uncertain(ABC):
    """Mixin for models whose scores have a covariance.

    Items are the training items; scores are centered to mean 0.
    """

    _n_judgments: float  # sum of the weights in `fit`

    @abstractmethod
    def _rows_and_scores(self, pairs: Any) -> tuple[Any, Floats]:
        """Return features of items, or feature differences of pairs, (k, p), and w·x.

        Rows of items may contain a constant offset, which `_covariance` removes.
        """

    @abstractmethod
    def _covariance_function(self) -> Callable[[Any], Floats]:
        """Return a function that maps feature rows x (k, p) to the covariance of w·x."""

    def _covariance(self, pairs: Any = None) -> tuple[Floats, Floats]:
        rows, scores = self._rows_and_scores(pairs)
        n = len(scores)
        require(n <= DENSE, n, "the number of items", SOME_PAIRS)
        covariance = self._covariance_function()(rows)
        if pairs is None:
            means = covariance.mean(axis=0)
            covariance = covariance - means - means[:, None] + means.mean()
            scores = scores - scores.mean()
        return scores, covariance

    def moments(self, pairs: Any) -> tuple[Floats, Floats]:
        """Return mean and variance of the score difference of each pair, shape (m,)."""
        if pairs is None:
            mean, covariance = self._covariance()
            return mean, np.diag(covariance)
        rows, mean = self._rows_and_scores(pairs)
        covariance_of = self._covariance_function()
        parts = [rows[k : k + _BLOCK] for k in range(0, rows.shape[0], _BLOCK)]
        return mean, np.concatenate([np.diag(covariance_of(part)) for part in parts])

    def covariance(self, pairs: Any = None) -> Floats:
        """Compute the covariance of the centered scores, or of differences of pairs.

        Use it to draw all scores jointly, for example to estimate the chance to win a
        race. With `pairs`, as in `standard_errors`, differences of pairs replace the
        scores.

        Returns
        -------
        covariance : ndarray of shape (n, n), or (m, m)
            Covariance matrix of the scores, or of the differences of the pairs.
        """
        return self._covariance(pairs)[1]

    def standard_errors(self, pairs: Any = None) -> Floats:
        """Compute standard errors of centered scores, or of differences of pairs.

        Parameters
        ----------
        pairs : Pairs or array-like, optional
            Pairs, in the form that `fit` accepts. Without pairs, the errors are
            those of the scores minus their mean.

        Returns
        -------
        errors : ndarray of shape (n,), or (m,)

        Raises
        ------
        ValueError
            If there are more than 5,000 items or features, and `pairs` is not given.
        """
        return np.sqrt(self.moments(pairs)[1])

    def interval(self, level: float = 0.95, pairs: Any = None) -> Floats:
        """Compute confidence intervals of scores, or of differences of pairs.

        Parameters
        ----------
        level : float
            Confidence level of each interval, between 0 and 1.
        pairs : Pairs or array-like, optional
            Pairs, as in `standard_errors`.

        Returns
        -------
        interval : ndarray of shape (n, 2), or (m, 2)
            Lower and upper ends of the intervals.
        """
        mean, variance = self.moments(pairs)
        ends = _quantile(level) * np.array([-1.0, 1.0])
        return mean[:, None] + np.sqrt(variance)[:, None] * ends

    def ranks(
        self,
        level: float = 0.95,
        n_draws: int = 10_000,
        random_state: Any = 0,
        pairs: Any = None,
    ) -> Ranks:
        """Compute ranks by score, with intervals.

        The intervals are quantiles of ranks in joint random draws of all scores.

        Parameters
        ----------
        level : float
            Confidence level of each interval.
        n_draws : int
            Number of random draws.
        random_state : int or numpy Generator
            Seed, or source of randomness.
        pairs : Pairs or array-like, optional
            Pairs, in the form that `fit` accepts, whose differences are ranked
            instead of the scores of items. For example, pass pairs of several items
            with the same second item.

        Returns
        -------
        ranks : Ranks
            Arrays `rank`, `low`, and `high`, each of shape (n,), or (m,).
        """
        _quantile(level)
        scores, covariance = self._covariance(pairs)
        n = len(scores)
        n_draws = check_count(n_draws, "n_draws", 1)
        rng = generator(random_state)
        root = _square_root(covariance)
        triangular_product: Any = get_blas_funcs("trmm", (root,))
        drawn = np.empty(
            (n, n_draws), dtype=np.int16
        )  # sufficient, since n is at most 5,000
        for start in range(0, n_draws, _DRAWS):
            noise = rng.standard_normal((min(_DRAWS, n_draws - start), n))
            draws = scores + triangular_product(1.0, root, noise.T, lower=1).T
            rank = np.empty(draws.shape, dtype=np.int16)
            order = np.argsort(-draws, axis=1)
            np.put_along_axis(rank, order, np.arange(1, n + 1, dtype=np.int16), axis=1)
            drawn[:, start : start + _DRAWS] = rank.T
        drawn.sort(axis=1)
        low = _quantile_of_sorted(drawn, (1 - level) / 2)
        high = _quantile_of_sorted(drawn, (1 + level) / 2)
        return Ranks(positions(scores), low, high)

    def quasi_variances(self, pairs: Any = None) -> Floats:
        """Compute q such that q_i + q_j approximates the variance of s_i - s_j.

        With intervals of half width z sqrt(q_i) in a figure, any two items can be
        compared by eye. The quasi-variances q minimize the sum over pairs of (log(q_i +
        q_j) - log Var(s_i - s_j))² ([FirthMenezes2004]_). For three items they are
        exact. A quasi-variance may be negative, for example with few clusters; there is
        no interval then. With `pairs`, as in `ranks`, differences of pairs replace the
        scores.

        Returns
        -------
        q : ndarray of shape (n,)

        Raises
        ------
        ValueError
            If there are fewer than three items, or the difference of two items has
            variance 0.
        """
        return quasi_variances(self._covariance(pairs)[1])

    def reliability(self, target: float = 0.8) -> Reliability:
        """Compute the scale separation reliability, and how many judgments are missing.

        The expected sum of squares of the centered scores s_i is the sum of squares of
        the centered true scores plus that of the standard errors e_i. Therefore::

            R = 1 - sum of e_i² / sum of (s_i - mean(s))²,    G = sqrt(R / (1 - R))

        are the reliability and the separation, which is the true standard deviation in
        units of the standard error [WrightMasters1982]_. Squared errors are
        proportional to 1/N for N judgments. The reliability `target` therefore needs N
        (target / (1 - target)) / G² judgments, as in the Spearman-Brown formula.

        Parameters
        ----------
        target : float
            Target reliability, between 0 and 1.

        Returns
        -------
        reliability : Reliability
            Named tuple of `value`, from 0 to 1, `separation`, and `n_needed`, the
            number of additional judgments (for `PlackettLuce`, rankings; a weight of 2
            counts twice). It is 0 if the target is reached, and infinite if the errors
            explain all differences.

        Raises
        ------
        ValueError
            If alpha is 0.1 or more, since a strong penalty shrinks scores and errors.

        Notes
        -----
        R is too large if pairs were chosen because their scores were close
        [Bramley2015]_, or if the answers of a judge depend on each other and `cluster`
        was not passed. Other programs compute the error of each score as if the other
        scores were known. Its square is larger by a factor of about n / (n - 1), so
        their R is smaller for few items. Some programs print R = G²/(1 + G²) with the
        standard deviation of the observed scores in G, which is too large.

        Examples
        --------
        >>> from preflearn.ranking import Davidson
        >>> index = [[0, 1], [1, 2], [0, 2]] * 10
        >>> Davidson().fit(index, [1, 1, 1, 1, 1, -1] * 5).reliability().n_needed
        23
        """
        check_real(target, "target", "a number between 0 and 1", 1e-9, 1 - 1e-9)
        scores, covariance = self._covariance()
        alpha = self.alpha  # pyright: ignore[reportAttributeAccessIssue]
        expected = "less than 0.1, since a stronger penalty shrinks scores and errors"
        require(alpha < INFORMATIVE_PENALTY, alpha, "alpha", expected)
        observed = float(scores @ scores)
        error = float(np.trace(covariance))
        if observed <= error:
            return Reliability(0.0, 0.0, math.inf)
        separation = math.sqrt(observed / error - 1)
        wanted = target / (1 - target) / separation**2
        n_needed = max(0, math.ceil(self._n_judgments * (wanted - 1)))
        return Reliability(1 - error / observed, separation, n_needed)


def _square_root(covariance: Floats) -> Floats:
    """Return a lower triangular L with LL' = covariance, which may be singular.

    The matrix is scaled to a unit diagonal, and the diagonal is increased by the
    size of rounding errors, which makes it positive definite.
    """
    n = len(covariance)
    scale = np.sqrt(np.maximum(np.diag(covariance), _TINY))
    scaled = covariance / scale / scale[:, None]
    scaled[np.diag_indices(n)] += 1e-14 * (10 + n)
    root: Any = np.linalg.cholesky(scaled)
    return np.asfortranarray(scale[:, None] * root)


def _quantile_of_sorted(values: NDArray, probability: float) -> NDArray[np.int64]:
    """Return the interpolated quantile of each row of sorted values, as an integer."""
    place = probability * (values.shape[1] - 1)
    lower = math.floor(place)
    upper = math.ceil(place)
    part = place - lower
    mixed = (1 - part) * values[:, lower] + part * values[:, upper]
    return np.rint(mixed).astype(np.int64)


def quasi_variances(covariance: Floats) -> Floats:
    """Compute quasi-variances from the covariance matrix of scores, shape (n, n).

    It raises the same errors as the method of the same name.
    """
    n = len(covariance)
    own = np.diag(covariance)
    expected = "at least 3, since two quasi-variances are not determined by their sum"
    require(n > 2, n, "the number of items", expected)
    variance = own[:, None] + own - 2 * covariance
    np.fill_diagonal(variance, 1.0)
    raise_if_any(
        variance <= 0,
        variance,
        "the variance of score differences",
        "positive variances: leave out duplicates of items",
    )
    return _fit_quasi_variances(np.log(variance), own)


def _fit_quasi_variances(logs: Floats, start: Floats) -> Floats:
    """Minimize the sum over pairs of r_ij² with r_ij = log(q_i + q_j) - logs_ij.

    Gauss-Newton steps d solve A d = -g with u_ij = 1/(q_i + q_j), g_i = sum of u_ij
    r_ij, A_ij = u_ij² and A_ii = sum of u_ij², over j other than i. They are halved
    until all q_i + q_j are positive and the sum decreases. The diagonal of `logs` is 0.
    """

    def residuals(q: Floats) -> tuple[Floats, Floats]:
        total = q[:, None] + q
        np.fill_diagonal(total, 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return total, np.log(
                total
            ) - logs  # NaN for a negative total, which counts as no decrease

    q = start.astype(np.float64)
    total, r = residuals(q)
    value = float((r * r).sum())
    for _ in range(_MAX_QUASI_STEPS):
        u = 1 / total
        np.fill_diagonal(u, 0.0)
        gradient = (u * r).sum(axis=1)
        u *= u
        step = _solve_signless(u, -gradient)
        size = 1.0
        while size > _SHORTEST:
            total, r = residuals(q + size * step)
            smaller = float((r * r).sum())
            if smaller < value:
                break
            size /= 2
        else:
            return q  # only rounding errors are left
        q = q + size * step
        value = smaller
        if np.abs(size * step).max() <= _QUASI_TOLERANCE * np.abs(q).max():
            return q
    return q


def _solve_signless(weights: Floats, target: Floats) -> Floats:
    """Solve (D + W) x = target, with the row sums D of W, by conjugate gradients."""
    degree = weights.sum(axis=1)
    x = np.zeros_like(target)
    conjugate_gradients(
        lambda v: degree * v + weights @ v,
        lambda v: v / degree,
        x,
        target.copy(),
        lambda x, residual, size, first: size <= _SQUARED_CG_TOLERANCE * first,
        len(target),
    )
    return x


def bootstrap(
    model: Any,
    pairs: Any,
    y: ArrayLike,
    unit: ArrayLike | None = None,
    n_draws: int = 200,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Floats:
    """Refit a model to bootstrap samples of units, and return the coefficients.

    Quantiles of the coefficients give confidence intervals. Use it if the normal
    approximation of `interval` is doubtful.

    Parameters
    ----------
    model : Davidson or OrdinalComparison
        Model to refit; it is not changed.
    pairs, y :
        Pairs and labels, as in `fit` of the model.
    unit : array-like of shape (m,), optional
        Unit of each pair, such as its judge, day, or set. Units are drawn with
        replacement; None: single pairs are drawn.
    n_draws : int
        Number of bootstrap samples.
    random_state : int or numpy Generator
        Seed, or source of randomness.
    n_jobs : int, optional
        Number of processes; None: one, or the setting of `joblib.parallel_config`.

    Returns
    -------
    coef : ndarray of shape (n_draws, p)
        Coefficients of each refitted model, one row per sample.

    Examples
    --------
    >>> from preflearn.ranking import Davidson
    >>> pairs, y, judge = [[0, 1]] * 6, [1, 1, -1, 1, -1, 1], [1, 1, 2, 2, 3, 3]
    >>> bootstrap(Davidson(), pairs, y, judge, n_draws=50).shape
    (50, 2)
    """
    good = isinstance(model, Uncertain) and hasattr(model, "decision_function")
    require(good, model, "model", "Davidson or OrdinalComparison")
    rng = generator(random_state)
    m = len(as_compared(pairs))
    ids: Any = np.arange(m)
    if unit is not None:
        ids = check_query_ids(unit, m, "unit", "unit id", "pair")
    fitted: Any = clone(model).fit(pairs, y)  # pyright: ignore[reportAttributeAccessIssue]
    number = np.unique(ids, return_inverse=True)[1]
    n = int(number.max()) + 1
    counts = (
        np.bincount(rng.integers(n, size=n), minlength=n)[number]
        for _ in range(check_count(n_draws, "n_draws", 1))
    )
    labels = check_labels(as_outcomes(y), m)
    calls = (delayed(_refitted_weights)(fitted, pairs, labels, c) for c in counts)
    return np.array(in_parallel(calls, n_jobs))


def _refitted_weights(fitted: Any, pairs: Any, y: NDArray, counts: Any) -> Floats:
    if not y[counts > 0].any():  # with ties only, all scores are equal
        return 0 * fitted.coef_
    with warnings.catch_warnings():
        for category in (
            NotIdentifiedWarning,
            OutcomeWarning,
        ):  # the first fit has already warned
            warnings.simplefilter("ignore", category)
        model: Any = clone(fitted)
        return model.fit(pairs, y, sample_weight=counts).coef_


def _quantile(level: float) -> float:
    """Return the standard normal quantile of the upper end of a central interval."""
    check_real(level, "level", "a number between 0 and 1", 1e-9, 1 - 1e-9)
    return float(ndtri((1 + level) / 2))
