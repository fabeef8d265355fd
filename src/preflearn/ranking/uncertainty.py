"""Uncertainty of the scores of a static model: standard errors, intervals, ranks,
quasi-variances.

All assume estimates whose errors are jointly normal, with the covariance V of score
differences: the inverse of the observed information and the penalty, V = (I +
alpha)^-1, or, where comparisons of one judge depend on each other, the sandwich V (G'G
+ alpha) V, with the gradients G of the judges in the place of the information I
[LiangZeger1986]_. A difference that no data identify has the variance of its prior,
with judges and without.

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

_BLOCK = 64  # rows whose covariance is formed at once
_DRAWS = 256  # draws that are ranked at once
_MAX_QUASI_STEPS = 200
_QUASI_TOLERANCE = 1e-11  # change of quasi-variances in the last step
_SQUARED_CG_TOLERANCE = 1e-16
_SHORTEST = 1e-9  # part of a step
_TINY = np.finfo(np.float64).tiny
SOME_PAIRS = f"at most {DENSE}: ask for the errors of some pairs"


class Ranks(NamedTuple):
    """Ranks of items, 1 is the best, and an interval of each."""

    rank: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


class Reliability(NamedTuple):
    """Reliability of scores, and what it would take to reach a target."""

    value: float
    separation: float  # true standard deviation, in units of the error
    n_needed: float  # judgments still to be made


class Uncertain(ABC):
    """A model with scores that have a covariance.

    Items are those of the fit; scores are less their mean.
    """

    _n_judgments: float  # the sum of the weights of the fit

    @abstractmethod
    def _rows_and_scores(self, pairs: Any) -> tuple[Any, Floats]:
        """Features x (k, p) of items, or feature differences of pairs, and w·x (k,).

        Rows of items may differ by a constant, which `_covariance` removes.
        """

    @abstractmethod
    def _covariance_function(self) -> Callable[[Any], Floats]:
        """From rows x (k, p) of features to the covariance (k, k) of w·x."""

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
        """Mean and variance of the difference of scores of each pair, shape (m,) both."""
        if pairs is None:
            mean, covariance = self._covariance()
            return mean, np.diag(covariance)
        rows, mean = self._rows_and_scores(pairs)
        covariance_of = self._covariance_function()
        parts = [rows[k : k + _BLOCK] for k in range(0, rows.shape[0], _BLOCK)]
        return mean, np.concatenate([np.diag(covariance_of(part)) for part in parts])

    def standard_errors(self, pairs: Any = None) -> Floats:
        """Standard errors of the scores of the items, less their mean, or of the
        differences of pairs.

        Parameters
        ----------
        pairs : Pairs or array-like, optional
            In the form that the model is fitted to. Without them the scores of the
            items are meant.

        Returns
        -------
        errors : ndarray of shape (n,), or (m,)

        Raises
        ------
        ValueError
            If there are more than 5,000 items or features, and no pairs are named.
        """
        return np.sqrt(self.moments(pairs)[1])

    def interval(self, level: float = 0.95, pairs: Any = None) -> Floats:
        """Intervals that hold the scores, or the differences of pairs, with this
        probability each.

        Parameters
        ----------
        level : float
            Between 0 and 1.
        pairs : Pairs or array-like, optional
            As in `standard_errors`.

        Returns
        -------
        interval : ndarray of shape (n, 2), or (m, 2)
            Lower and upper ends.
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
        """Ranks by score, and intervals of them: quantiles of the ranks of draws of all
        scores together.

        Parameters
        ----------
        level : float
            Probability of each interval.
        n_draws : int
        random_state : int or numpy Generator
        pairs : Pairs or array-like, optional
            As in `standard_errors`: then their differences are ranked, such as those of
            items from one item.

        Returns
        -------
        ranks : Ranks
            `rank`, `low` and `high`, each of shape (n,), or (m,).
        """
        _quantile(level)
        scores, covariance = self._covariance(pairs)
        n = len(scores)
        n_draws = check_count(n_draws, "n_draws", 1)
        rng = generator(random_state)
        root = _square_root(covariance)
        triangular_product: Any = get_blas_funcs("trmm", (root,))
        drawn = np.empty((n, n_draws), dtype=np.int16)  # n is at most 5,000
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
        """Numbers q of which q_i + q_j is nearly the variance of s_i - s_j, for each
        pair of items.

        So intervals of half width z sqrt(q_i) compare any two items by eye. They
        minimise the sum over pairs of (log(q_i + q_j) - log Var(s_i - s_j))²
        ([FirthMenezes2004]_); of three items they are exact. One may be negative, and
        has no such interval then, as it happens with few clusters. With pairs, as in
        `ranks`, their differences take the place of scores.

        Returns
        -------
        q : ndarray of shape (n,)

        Raises
        ------
        ValueError
            If there are fewer than three items, or two that are alike.
        """
        covariance = self._covariance(pairs)[1]
        n = len(covariance)
        own = np.diag(covariance)
        expected = "at least 3: of two items only the sum is determined"
        require(n > 2, n, "the number of items", expected)
        variance = own[:, None] + own - 2 * covariance
        np.fill_diagonal(variance, 1.0)
        raise_if_any(
            variance <= 0, variance, "the variance of pairs", "items that are not alike"
        )
        return _fit_quasi_variances(np.log(variance), own)

    def reliability(self, target: float = 0.8) -> Reliability:
        """Scale separation reliability of the scores, and how many judgments it lacks.

        The sum of squares of the scores s_i less their mean is expected to be that of
        the true ones plus that of the standard errors e_i of these differences, so that::

            R = 1 - sum of e_i² / sum of (s_i - mean(s))²,    G = sqrt(R / (1 - R))

        are the reliability and the separation, the true standard deviation in units of
        the error [WrightMasters1982]_. Errors fall with the number N of judgments as
        1/N; so the reliability `target` takes N (target / (1 - target)) / G² of them,
        as the formula of Spearman and Brown has it.

        Parameters
        ----------
        target : float
            Reliability that is wanted, between 0 and 1.

        Returns
        -------
        reliability : Reliability
            `value`, from 0 to 1, `separation`, and `n_needed`, the number of judgments
            (of rankings, for `PlackettLuce`; a weight of two counts twice) still to be
            made. It is 0 if the target is reached, and infinite if the errors explain
            all differences.

        Raises
        ------
        ValueError
            If alpha is 0.1 or more: a strong penalty makes scores and errors smaller.

        Notes
        -----
        Pairs that were chosen because their scores were close make R too large
        [Bramley2015]_; so do judges who share an opinion, unless `cluster` names them.
        Other programs take the error of each score as if the other scores were known,
        which is larger by about n / (n - 1), squared in `e_i`; with few items their R
        is smaller. Some print R = G²/(1 + G²) with the standard deviation of the
        observed scores in G, which is too large.

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
        expected = "less than 0.1: a penalty makes scores and errors smaller"
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
    """A lower triangular L with LL' = covariance, which may be singular.

    With its diagonal scaled to 1 and raised by the size of rounding errors, as in
    Newton's equations, it is not.
    """
    n = len(covariance)
    scale = np.sqrt(np.maximum(np.diag(covariance), _TINY))
    scaled = covariance / scale / scale[:, None]
    scaled[np.diag_indices(n)] += 1e-14 * (10 + n)
    root: Any = np.linalg.cholesky(scaled)
    return np.asfortranarray(scale[:, None] * root)


def _quantile_of_sorted(values: NDArray, probability: float) -> NDArray[np.int64]:
    """The quantile of each row of sorted values, interpolated, as an integer."""
    place = probability * (values.shape[1] - 1)
    lower = math.floor(place)
    upper = math.ceil(place)
    part = place - lower
    mixed = (1 - part) * values[:, lower] + part * values[:, upper]
    return np.rint(mixed).astype(np.int64)


def _fit_quasi_variances(logs: Floats, start: Floats) -> Floats:
    """The q of least sum over pairs of r_ij² with r_ij = log(q_i + q_j) - logs_ij.

    Gauss-Newton steps d solve A d = -g with u_ij = 1/(q_i + q_j), g_i = sum of u_ij
    r_ij, A_ij = u_ij² and A_ii = sum of u_ij², over j other than i. They are halved
    until all q_i + q_j are positive and the sum is smaller. The diagonal of `logs` is 0.
    """

    def residuals(q: Floats) -> tuple[Floats, Floats]:
        total = q[:, None] + q
        np.fill_diagonal(total, 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return total, np.log(total) - logs  # NaN if negative, so not smaller

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
            return q  # only rounding is left
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
    """Weights of refits to data of which units are drawn with replacement: quantiles of
    them are intervals.

    Parameters
    ----------
    model : Davidson or OrdinalComparison
    pairs, y :
        As in its `fit`.
    unit : array-like of shape (m,), optional
        What is drawn, by an id for each pair: judges, days, sets; pairs, if None.
    n_draws : int
    random_state : int or numpy Generator
    n_jobs : int, optional
        Processes; None: one, or as `joblib.parallel_config` says.

    Returns
    -------
    coef : ndarray of shape (n_draws, p)

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
    if not y[counts > 0].any():  # ties alone: all scores are equal
        return 0 * fitted.coef_
    with warnings.catch_warnings():
        for category in (NotIdentifiedWarning, OutcomeWarning):  # the first fit warned
            warnings.simplefilter("ignore", category)
        model: Any = clone(fitted)
        return model.fit(pairs, y, sample_weight=counts).coef_


def _quantile(level: float) -> float:
    """The standard normal quantile at the upper end of a central interval."""
    check_real(level, "level", "a number between 0 and 1", 1e-9, 1 - 1e-9)
    return float(ndtri((1 + level) / 2))
