"""A fitted mixture of models that differ in their hyperparameters."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from preflearn.core.validation import (
    Floats,
    PerMatch,
    check_array,
    check_count,
    check_real,
    generator,
    raise_if_any,
    require,
)
from preflearn.dynamics.model import (
    DynamicComparisons,
    most_probable,
    ranks_by_mean,
    results_of,
)
from preflearn.dynamics.simulation import square_root
from preflearn.matches import Fixtures, Matches, as_times, prepare_for_prediction
from preflearn.metrics import comparison_loss

_N_RANK_DRAWS = 4000
_N_BISECTIONS = 50
_N_NODES = 4001  # differences at which win probabilities are inverted
_REACH = 40.0  # deviations of noise, beyond which win probabilities are 0 or 1
_TAILS = 8.0  # standard deviations of differences
_MIN_STD = 1e-150


class AveragedComparisons:
    """Fitted models that differ in their hyperparameters, with a weight each.

    `average_over_hyperparameters` returns it. Forecasts are weighted means, and
    intervals are quantiles of the mixture: they include the uncertainty of the
    hyperparameters. It has the methods of a fitted `DynamicComparisons`, and intervals.

    Parameters
    ----------
    models : sequence of DynamicComparisons
        Fitted to the same matches; with one of them, intervals are those of its
        posterior.
    weights : array-like of shape (K,)
        Posterior probabilities of the models; they add to 1.
    log_marginal_likelihood : float, optional
        Logarithm of the probability of the outcomes under the mixture. By default that
        of the model if there is one, else None.
    hyperparameters : DataFrame, optional
        The points of the integration.

    Attributes
    ----------
    models_ : tuple of DynamicComparisons
        The components, the most probable first.
    weights_ : ndarray of shape (K,)
    hyperparameters_ : DataFrame
        One row per point of the integration, the most probable first, also those whose
        models are left out of `models_` because together they have less than 0.001 of
        the posterior: the free parameters, `evidence`, `log_prior` (the density of
        their logarithms) and `weight`.
    log_marginal_likelihood_ : float or None
        Logarithm of the integral of evidence times prior.
    features_, matches_
        As of the models.

    Raises
    ------
    ValueError
        If `models` is empty, one is not fitted or has other features, or the weights are
        negative or do not add to 1.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, DynamicComparisons, Probit
    >>> from preflearn.matches import Matches
    >>> matches = Matches([[1, -1]] * 10, range(10), ["Ann", "Bob"])
    >>> outcomes = [1] * 6 + [-1] * 4
    >>> models = [DynamicComparisons(Constant(v), Probit(), posterior="joint") for v in (0.01, 1.0)]
    >>> fits = [model.fit(matches, outcomes) for model in models]
    >>> AveragedComparisons(fits, [0.5, 0.5]).interval(matches[:1]).round(2).tolist()
    [[-0.4, 0.88]]
    """

    def __init__(
        self,
        models: Sequence[DynamicComparisons],
        weights: ArrayLike,
        log_marginal_likelihood: float | None = None,
        hyperparameters: pd.DataFrame | None = None,
    ) -> None:
        require(len(models) > 0, models, "models", "at least one fitted model")
        for model in models:
            fitted = isinstance(model, DynamicComparisons) and hasattr(
                model, "matches_"
            )
            require(fitted, model, "a model", "a fitted DynamicComparisons")
            require(
                model.features_ == models[0].features_,
                model.features_,
                "the features of a model",
                "those of the first model",
            )
        self.weights_ = check_array(weights, "weights", (len(models),), "one per model")
        raise_if_any(
            self.weights_ < 0, self.weights_, "weights", "numbers of at least 0"
        )
        total = float(self.weights_.sum())
        require(abs(total - 1) < 1e-6, total, "the sum of the weights", "1")
        self.models_ = tuple(models)
        if log_marginal_likelihood is None and len(models) == 1:
            log_marginal_likelihood = models[0].log_marginal_likelihood_
        self.log_marginal_likelihood_ = log_marginal_likelihood
        self.hyperparameters_ = hyperparameters
        self.features_ = models[0].features_
        self.matches_ = models[0].matches_

    # ---- Scores

    def scores(self, feature: Hashable, time: ArrayLike) -> tuple[NDArray, NDArray]:
        """Posterior mean and standard deviation of one feature's score.

        Arguments and errors as of `DynamicComparisons.scores`.

        Returns
        -------
        mean, std : ndarray, of the shape of `time`
        """
        mean, std = self._component_scores(feature, time)
        mean, variance = self._mix(mean, std**2)
        return mean[()], np.sqrt(variance)[()]

    def score_interval(
        self, feature: Hashable, time: ArrayLike, level: float = 0.95
    ) -> NDArray:
        """Central interval of one feature's score.

        Parameters
        ----------
        feature : hashable
            A name.
        time : float or date, or array-like of shape (k,)
            As in `scores`.
        level : float
            Probability that the score is in the interval.

        Returns
        -------
        ndarray of shape (2,) or (k, 2)
            Lower and upper end.
        """
        mean, std = self._component_scores(feature, time)
        return self._quantiles(mean, std, _check_level(level))

    def _component_scores(
        self, feature: Hashable, time: ArrayLike
    ) -> tuple[Floats, Floats]:
        pairs = [model.scores(feature, time) for model in self.models_]
        mean, std = (np.array(values) for values in zip(*pairs, strict=True))
        return mean, std

    def joint_scores(
        self, features: Sequence[Hashable], time: Any
    ) -> tuple[Floats, Floats]:
        """Posterior mean and covariance of the scores of some features at one time.

        Where the models have a factorized posterior, only their hyperparameters
        correlate the scores.

        Parameters
        ----------
        features : sequence of hashable
            Names, F of them.
        time : float or date

        Returns
        -------
        mean : ndarray of shape (F,)
        covariance : ndarray of shape (F, F)
        """
        names = tuple(features)
        now = float(np.asarray(as_times(time, self.matches_.columns))[()])
        parts = [_joint_moments(model, names, now) for model in self.models_]
        means = np.array([mean for mean, _ in parts])
        mean = self.weights_ @ means
        apart = means - mean
        covariance = (self.weights_ * apart.T) @ apart
        for weight, (_, part) in zip(self.weights_, parts, strict=True):
            covariance += weight * (part if part.ndim == 2 else np.diag(part))
        return mean, covariance

    def standings(
        self, time: Any = None, since: Any = None, level: float = 0.95
    ) -> pd.DataFrame:
        """The players at a time, the best first: scores, intervals and ranks.

        Parameters
        ----------
        time, since : float or date, optional
            As in `DynamicComparisons.standings`.
        level : float
            Probability of the intervals of scores and ranks.

        Returns
        -------
        DataFrame
            `name`; `score`, less the mean score of the players in the table; `std`,
            `low` and `high`, its standard deviation and interval; `rank` by score, one
            for all who tie; `rank_low` and `rank_high`, the interval of the rank, by
            4,000 draws; `matches`.

        Raises
        ------
        ValueError
            If nobody had a match by this time, or from `since` to it.
        """
        level = _check_level(level)
        table = self.models_[0].standings(time, since)
        names = tuple(table["name"])
        now = float(self.matches_.time[-1])
        if time is not None:
            now = float(np.asarray(as_times(time, self.matches_.columns))[()])
        rng = np.random.default_rng(0)
        means = []
        variances = []
        draws = []
        sizes = _allocate(self.weights_, _N_RANK_DRAWS)
        for model, size in zip(self.models_, sizes, strict=True):
            mean, covariance = _joint_moments(model, names, now)
            draws.append(_draw(mean, covariance, int(size), rng))
            means.append(mean - mean.mean())
            variances.append(_centered_variances(covariance))
        all_means = np.array(means)
        all_variances = np.maximum(variances, 0.0)
        mean, variance = self._mix(all_means, all_variances)
        ends = self._quantiles(all_means, np.sqrt(all_variances), level)
        rank, rank_low, rank_high = _ranks(
            mean, np.sqrt(variance), np.vstack(draws), level
        )
        found = pd.DataFrame(
            {
                "name": names,
                "score": mean,
                "std": np.sqrt(variance),
                "low": ends[:, 0],
                "high": ends[:, 1],
                "rank": rank,
                "rank_low": rank_low,
                "rank_high": rank_high,
                "matches": table["matches"].to_numpy(),
            }
        )
        return found.sort_values("rank", kind="stable", ignore_index=True)

    def difference(
        self, first: Hashable, second: Hashable, time: ArrayLike
    ) -> tuple[NDArray, NDArray]:
        """Posterior mean and standard deviation of the score of `first` less that of
        `second`.

        Parameters
        ----------
        first, second : hashable
            Names of features.
        time : float or date, or array-like of shape (k,)

        Returns
        -------
        mean, std : ndarray, of the shape of `time`
        """
        for name in (first, second):
            known = ", ".join(map(str, self.features_))
            require(name in self.features_, name, "a feature", f"one of {known}")
        parsed = np.asarray(as_times(time, self.matches_.columns))
        times = np.atleast_1d(parsed)
        order = np.argsort(times, kind="stable")
        design = np.tile([1.0, -1.0], (len(times), 1))
        matches = Matches(design, times[order], (first, second))
        mean, variance = np.empty((2, len(times)))
        mean[order], variance[order] = self.moments(matches, unseen="ignore")
        return (
            mean.reshape(parsed.shape)[()],
            np.sqrt(variance.reshape(parsed.shape))[()],
        )

    # ---- Matches

    def moments(
        self, matches: Fixtures, offset: PerMatch = None, unseen: str = "warn"
    ) -> tuple[Floats, Floats]:
        """Mean and variance of the score difference x·s(t) of each match, shape (N,)
        both; as `DynamicComparisons.moments`."""
        matches = self._prepare(matches, unseen)
        return self._mix(*self._component_moments(matches, offset))

    def interval(
        self,
        matches: Fixtures,
        level: float = 0.95,
        offset: PerMatch = None,
        unseen: str = "warn",
    ) -> Floats:
        """Central interval of the score difference x·s(t) of each match.

        Parameters
        ----------
        matches : Matches or DataFrame
        level : float
            Probability that the difference is in the interval.
        offset, unseen
            As in `predict_proba`.

        Returns
        -------
        ndarray of shape (N, 2)
            Lower and upper end: quantiles of the mixture.
        """
        level = _check_level(level)
        matches = self._prepare(matches, unseen)
        mean, variance = self._component_moments(matches, offset)
        return self._quantiles(mean, np.sqrt(variance), level)

    def proba_interval(
        self,
        matches: Fixtures,
        level: float = 0.95,
        offset: PerMatch = None,
        unseen: str = "warn",
    ) -> Floats:
        """Interval of the probability that the first wins, given the scores.

        If all scores and hyperparameters were known, the first would win with some
        probability; the interval contains it with probability `level`. `predict_proba`
        is its mean.

        Parameters
        ----------
        matches : Matches or DataFrame
        level : float
        offset, unseen
            As in `predict_proba`.

        Returns
        -------
        ndarray of shape (N, 2)
            Lower and upper end, from 0 to 1.
        """
        level = _check_level(level)
        matches = self._prepare(matches, unseen)
        mean, variance = self._component_moments(matches, offset)
        return self._proba_quantiles(mean, np.sqrt(variance), level)

    def _proba_quantiles(self, mean: Floats, std: Floats, level: float) -> Floats:
        """Quantiles of the win probability g_k(d), which increases in the difference d
        of model k: its distribution function at p is that of d at the inverse of g_k."""
        std = np.maximum(std, _MIN_STD)
        reach = _REACH * max(model.likelihood.noise for model in self.models_)
        low = np.clip(np.min(mean - _TAILS * std), -reach, reach - 1e-6)
        high = np.clip(np.max(mean + _TAILS * std), low + 1e-6, reach)
        d = np.linspace(low, high, _N_NODES)
        curves = [
            model.likelihood.probabilities(d, np.zeros(len(d)))[:, -1]
            for model in self.models_
        ]

        def below(p: Floats) -> Floats:
            ends = [np.interp(p, curve, d, -np.inf, np.inf) for curve in curves]
            return self.weights_ @ ndtr((np.array(ends) - mean) / std)

        n = mean.shape[1]
        quantiles = [_bisect(below, q, np.zeros(n), np.ones(n)) for q in _tails(level)]
        return np.stack(quantiles, axis=-1)

    def predict_proba(
        self, matches: Fixtures, offset: PerMatch = None, unseen: str = "warn"
    ) -> Floats:
        """Probabilities of the outcomes: the weighted means of the models'.

        Arguments, errors and warnings as of `DynamicComparisons.predict_proba`.

        Returns
        -------
        ndarray of shape (N, 3) or (N, 2)
        """
        matches = self._prepare(matches, unseen)
        parts = (
            weight * model.predict_proba(matches, offset, "ignore")
            for weight, model in zip(self.weights_, self.models_, strict=True)
        )
        return sum(parts, np.zeros(()))

    def predict(
        self, matches: Fixtures, offset: PerMatch = None, unseen: str = "warn"
    ) -> NDArray[np.int8]:
        """The most probable outcome of each match: 1, 0 or -1, shape (N,)."""
        likelihood = self.models_[0].likelihood
        return most_probable(likelihood, self.predict_proba(matches, offset, unseen))

    def score(
        self,
        matches: Fixtures,
        y: ArrayLike,
        sample_weight: PerMatch = None,
        offset: PerMatch = None,
        unseen: str = "warn",
    ) -> float:
        """Weighted accuracy of `predict`; as `DynamicComparisons.score`."""
        matches = self._prepare(matches, unseen)
        result = results_of(self.models_[0].likelihood, matches, y)
        predicted = self.predict(matches, offset, "ignore")
        return 1.0 - comparison_loss(result, predicted, sample_weight)

    def simulate(
        self,
        fixtures: Matches,
        n_draws: int = 1000,
        random_state: int | np.random.Generator | None = None,
        *,
        offset: PerMatch = None,
        unseen: str = "warn",
    ) -> Floats:
        """Draw the outcomes of matches to come, together.

        Each draw is from one model, so hyperparameters are uncertain, too. Arguments,
        errors and warnings as of `DynamicComparisons.simulate`.

        Returns
        -------
        ndarray of shape (n_draws, N)
        """
        matches = self._prepare(fixtures, unseen)
        size = check_count(n_draws, "n_draws", least=1)
        rng = generator(random_state)
        sizes = rng.multinomial(size, self.weights_).tolist()
        parts = [
            model.simulate(matches, n, rng, offset=offset, unseen="ignore")
            for model, n in zip(self.models_, sizes, strict=True)
            if n > 0
        ]
        return rng.permutation(np.concatenate(parts))

    # ---- The mixture

    def _prepare(self, matches: Fixtures, unseen: str) -> Matches:
        return prepare_for_prediction(
            matches, self.matches_.columns, self.features_, unseen
        )

    def _component_moments(
        self, matches: Matches, offset: PerMatch
    ) -> tuple[Floats, Floats]:
        """Means and variances of x·s by model, shape (K, N) both."""
        pairs = [model.moments(matches, offset, "ignore") for model in self.models_]
        mean, variance = (np.array(values) for values in zip(*pairs, strict=True))
        return mean, variance

    def _mix(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the mixture, from those of the models in rows."""
        mixed = np.tensordot(self.weights_, mean, axes=1)
        spread = variance + (mean - mixed) ** 2
        return mixed, np.tensordot(self.weights_, spread, axes=1)

    def _quantiles(self, mean: Floats, std: Floats, level: float) -> Floats:
        """Ends of central intervals, the last axis, by bisection of the mixture's
        distribution function."""
        std = np.maximum(std, _MIN_STD)

        def below(x: Floats) -> Floats:
            chance: Floats = ndtr((x - mean) / std)
            return np.tensordot(self.weights_, chance, axes=1)

        ends = []
        for q in _tails(level):
            # a quantile of a mixture is between those of its components
            own = mean + ndtri(q) * std
            ends.append(_bisect(below, q, own.min(axis=0), own.max(axis=0)))
        return np.stack(ends, axis=-1)


def _bisect(
    below: Callable[[Floats], Floats], q: float, low: Floats, high: Floats
) -> Floats:
    """Where a distribution function is q, between low and high."""
    for _ in range(_N_BISECTIONS):
        middle = (low + high) / 2
        is_low = below(middle) < q
        low = np.where(is_low, middle, low)
        high = np.where(is_low, high, middle)
    return (low + high) / 2


def _check_level(level: float) -> float:
    check_real(level, "level", "a number between 0 and 1", 1e-6, 1 - 1e-6)
    return float(level)


def _tails(level: float) -> Floats:
    return np.array([0.5 - level / 2, 0.5 + level / 2])


def _joint_moments(
    model: DynamicComparisons, names: tuple[Hashable, ...], now: float
) -> tuple[Floats, Floats]:
    """Mean (F,) and covariance (F, F) of scores; variances (F,) if the posterior is
    factorized."""
    if model.posterior == "joint":
        return model.joint_scores(names, now)
    single = Matches(np.eye(len(names)), np.full(len(names), now), names)
    mean, variance = model.moments(single, unseen="ignore")
    return mean, variance


def _centered_variances(covariance: Floats) -> Floats:
    """Variances of scores less their mean, from a covariance or from variances of
    independent scores."""
    n = len(covariance)
    if covariance.ndim == 1:
        return covariance * (1 - 2 / n) + covariance.sum() / n**2
    common = covariance.mean(axis=0)
    return np.diag(covariance) - 2 * common + common.mean()


def _allocate(weights: Floats, size: int) -> NDArray[np.int64]:
    """Numbers of draws in proportion to the weights, which add to `size`."""
    ends = np.round(size * np.append(0.0, np.cumsum(weights)))
    return np.diff(ends).astype(np.int64)


def _draw(
    mean: Floats, covariance: Floats, size: int, rng: np.random.Generator
) -> Floats:
    """Draws of a Gaussian, shape (size, F), also if its covariance is singular."""
    normal = rng.standard_normal((size, len(mean)))
    if covariance.ndim == 1:
        return mean + normal * np.sqrt(covariance)
    return mean + normal @ square_root(covariance).T


def _ranks(
    mean: Floats, std: Floats, draws: Floats, level: float
) -> tuple[NDArray, NDArray, NDArray]:
    """Ranks by the mean, and their intervals by draws of all scores."""
    rank = ranks_by_mean(mean, std)
    low, high = np.quantile(
        rankdata(-draws, axis=1), _tails(level), axis=0, method="nearest"
    )
    low = np.minimum(low, rank).astype(np.int64)
    high = np.maximum(high, rank).astype(np.int64)
    return rank, low, high
