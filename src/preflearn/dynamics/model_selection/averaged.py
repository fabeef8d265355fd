"""A fitted mixture of models with different hyperparameters."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
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
    check_list,
    check_real,
    generator,
    raise_if_any,
    require,
)
from preflearn.dynamics.model import (
    DynamicComparisons,
    from_file,
    most_probable,
    ranks_by_mean,
    results_of,
    score_moments,
    to_file,
)
from preflearn.dynamics.saving import MIXTURE, read_npz, write_npz
from preflearn.dynamics.simulation import square_root
from preflearn.matches import Fixtures, Matches, as_times, prepare_for_prediction
from preflearn.metrics import comparison_loss

_N_RANK_DRAWS = 4000
_N_BISECTIONS = 50
_N_NODES = 4001  # number of differences at which win probabilities are tabulated
# In standard deviations of the noise. At larger distances, probabilities are 0 or 1.
_REACH = 40.0
_TAILS = 8.0  # in standard deviations of score differences
_MIN_STD = 1e-150


class AveragedComparisons:
    """Weighted mixture of fitted models with different hyperparameters.

    `average_over_hyperparameters` returns it. Use it if forecasts and intervals must
    include the uncertainty of the hyperparameters. It has the methods of a fitted
    `DynamicComparisons`, and methods for intervals. Forecasts are weighted means, and
    intervals are quantiles of the mixture. `save` and `AveragedComparisons.load` store
    it in a file.

    Parameters
    ----------
    models : sequence of DynamicComparisons
        Models fitted to the same matches. With a single model, intervals are those of
        its posterior.
    weights : array-like of shape (K,)
        Posterior probabilities of the models, with sum 1.
    log_marginal_likelihood : float, optional
        Logarithm of the probability of the outcomes under the mixture. The default is
        that of the model if there is only one, else None.
    hyperparameters : DataFrame, optional
        Points of the integration.

    Attributes
    ----------
    models_ : tuple of DynamicComparisons
        Components of the mixture, the most probable first.
    weights_ : ndarray of shape (K,)
        Posterior probabilities of the components.
    hyperparameters_ : DataFrame
        One row per point of the integration, the most probable first: the free
        parameters, `evidence`, `log_prior` (the density of their logarithms), and
        `weight`. It includes points whose models were left out of `models_` because
        their total posterior probability is below 0.001.
    log_marginal_likelihood_ : float or None
        Logarithm of the integral of evidence times prior.
    features_, matches_
        Features and matches of the models.

    Raises
    ------
    ValueError
        If `models` is empty, a model is not fitted or has other features, or the
        weights are negative or do not add up to 1.

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
        good = isinstance(models, Sequence) and len(models) > 0
        require(good, models, "models", "a list of at least one fitted model")
        for model in models:
            fitted = isinstance(model, DynamicComparisons) and hasattr(
                model, "matches_"
            )
            require(
                fitted, model, "an element of models", "a fitted DynamicComparisons"
            )
            require(
                model.features_ == models[0].features_,
                model.features_,
                "features_ of an element of models",
                "the features of the first model; fit all models to the same matches",
            )
        self.weights_ = check_array(
            weights, "weights", (len(models),), "one weight per model"
        )
        raise_if_any(
            self.weights_ < 0, self.weights_, "weights", "a number of at least 0"
        )
        total = float(self.weights_.sum())
        expected = "1; divide the weights by their sum"
        require(abs(total - 1) < 1e-6, total, "the sum of weights", expected)
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

        Arguments and errors are those of `DynamicComparisons.scores`.

        Returns
        -------
        mean, std : ndarray, of the shape of `time`
            Posterior means and standard deviations.
        """
        return self._mix_scores(*self._component_scores(feature, time))

    def score_interval(
        self, feature: Hashable, time: ArrayLike, level: float = 0.95
    ) -> NDArray:
        """Central interval of one feature's score.

        Parameters
        ----------
        feature : hashable
            Name of the feature.
        time : float or date, or array-like of shape (k,)
            Times, as in `scores`.
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
        return _stack(model.scores(feature, time) for model in self.models_)

    def joint_scores(
        self, features: Iterable[Hashable], time: Any
    ) -> tuple[Floats, Floats]:
        """Posterior mean and covariance of the scores of some features at one time.

        If the models have a factorized posterior, scores are only correlated through
        the hyperparameters.

        Parameters
        ----------
        features : iterable of F hashables
            Names of the features, each once.
        time : float or date
            Time, as in `scores`.

        Returns
        -------
        mean : ndarray of shape (F,)
            Posterior mean of each score.
        covariance : ndarray of shape (F, F)
            Posterior covariance matrix of the scores.

        Raises
        ------
        ValueError
            In the cases of `DynamicComparisons.joint_scores`.
        """
        names = tuple(check_list(features, "features", "a list of names"))
        parts = [model.joint_scores(names, time) for model in self.models_]
        means = np.array([mean for mean, _ in parts])
        mean = self.weights_ @ means
        apart = means - mean
        covariance = (self.weights_ * apart.T) @ apart
        for weight, (_, part) in zip(self.weights_, parts, strict=True):
            covariance += weight * part
        return mean, covariance

    def standings(
        self, time: Any = None, since: Any = None, level: float = 0.95
    ) -> pd.DataFrame:
        """Table of the players at one time, sorted by score, with intervals.

        Parameters
        ----------
        time, since : float or date, optional
            Time of the scores and start of the listing period, as in
            `DynamicComparisons.standings`.
        level : float
            Probability of the intervals of scores and ranks.

        Returns
        -------
        DataFrame
            `name`; `score`, minus the mean score of the players in the table; `std`,
            `low`, and `high`, its standard deviation and interval; `rank` by score, the
            same for players with equal scores; `rank_low` and `rank_high`, the
            interval of the rank, from 4,000 draws; `matches`, the number of matches.

        Raises
        ------
        ValueError
            If no player had a match up to `time`, or between `since` and `time`.
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
            mean, covariance = score_moments(model, names, now)
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
        """Posterior mean and standard deviation of a score difference.

        The difference is the score of `first` minus the score of `second`.

        Parameters
        ----------
        first, second : hashable
            Names of two features.
        time : float or date, or array-like of shape (k,)
            Times, as in `scores`.

        Returns
        -------
        mean, std : ndarray, of the shape of `time`
            Posterior means and standard deviations.

        Raises
        ------
        ValueError
            In the cases of `DynamicComparisons.difference`.
        """
        pairs = (model.difference(first, second, time) for model in self.models_)
        return self._mix_scores(*_stack(pairs))

    # ---- Matches

    def moments(
        self, matches: Fixtures, offset: PerMatch = None, unseen: str = "warn"
    ) -> tuple[Floats, Floats]:
        """Mean and variance of the score difference x·s(t) of each match, shape (N,) both.

        Arguments and warnings are those of `DynamicComparisons.moments`.
        """
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
            Matches, as in `predict_proba`.
        level : float
            Probability that the score difference is in the interval.
        offset, unseen
            Known part of the score difference, and treatment of new names, as in
            `predict_proba`.

        Returns
        -------
        ndarray of shape (N, 2)
            Lower and upper end, which are quantiles of the mixture.
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

        If all scores and hyperparameters were known, the first would win with a certain
        probability. The interval contains this probability with probability `level`.
        `predict_proba` is its mean.

        Parameters
        ----------
        matches : Matches or DataFrame
            Matches, as in `predict_proba`.
        level : float
            Probability of the interval.
        offset, unseen
            Known part of the score difference, and treatment of new names, as in
            `predict_proba`.

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
        """Quantiles of the win probability g_k(d), where d is the difference of model k.

        g_k increases in d, so its distribution function at p is that of d at the
        inverse of g_k.
        """
        std = np.maximum(std, _MIN_STD)
        reach = _REACH * max(model.likelihood_.noise for model in self.models_)
        low = np.clip(np.min(mean - _TAILS * std), -reach, reach - 1e-6)
        high = np.clip(np.max(mean + _TAILS * std), low + 1e-6, reach)
        d = np.linspace(low, high, _N_NODES)
        curves = [
            model.likelihood_.probabilities(d, np.zeros(len(d)))[:, -1]
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
        """Outcome probabilities of each match: the weighted means over the models.

        Arguments, errors, and warnings are those of `DynamicComparisons.predict_proba`.

        Returns
        -------
        ndarray of shape (N, 3) or (N, 2)
            Mean probabilities of loss, tie, and win of the first, or of loss and win.
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
        """The most probable outcome of each match, 1, 0, or -1, shape (N,)."""
        likelihood = self.models_[0].likelihood_
        return most_probable(likelihood, self.predict_proba(matches, offset, unseen))

    def score(
        self,
        matches: Fixtures,
        y: ArrayLike,
        sample_weight: PerMatch = None,
        offset: PerMatch = None,
        unseen: str = "warn",
    ) -> float:
        """Weighted accuracy of `predict`, as in `DynamicComparisons.score`."""
        matches = self._prepare(matches, unseen)
        result = results_of(self.models_[0].likelihood_, matches, y)
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
        """Draw the outcomes of future matches jointly.

        Each draw is from one model, so the draws include the uncertainty of the
        hyperparameters. Arguments, errors, and warnings are those of
        `DynamicComparisons.simulate`.

        Returns
        -------
        ndarray of shape (n_draws, N)
            Outcomes, one row per draw.
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

    # ---- Files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all models to one .npz file of numbers and JSON, for `load`.

        Arrays that a model has in common with the first model, such as the matches, are
        written once.

        Parameters
        ----------
        path : path-like
            Path of the file, in an existing folder. An existing file is replaced when
            the new one is complete.

        Raises
        ------
        ValueError
            If the name of a feature is not a str, a number, or a tuple of them; if
            `hyperparameters_` is not a table of numbers with str as names of columns.
        OSError
            If the file cannot be written.
        """
        write_npz(path, *_to_file(self), MIXTURE)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AveragedComparisons:
        """Load a mixture that `save` wrote.

        The loaded mixture has the same models, weights, and hyperparameters, and the
        same forecasts to the last bit.

        Parameters
        ----------
        path : path-like
            Path of the file.

        Raises
        ------
        OSError
            If the file does not exist or cannot be read.
        ValueError
            If the file has other content, is damaged, or has another version of the
            format; if it contains a single `DynamicComparisons`, which
            `preflearn.dynamics.load` reads.
        """
        return read_npz(path, _from_file, MIXTURE)

    # ---- The mixture

    def _prepare(self, matches: Fixtures, unseen: str) -> Matches:
        return prepare_for_prediction(
            matches, self.matches_.columns, self.features_, unseen
        )

    def _component_moments(
        self, matches: Matches, offset: PerMatch
    ) -> tuple[Floats, Floats]:
        """Means and variances of x·s for each model, both of shape (K, N)."""
        return _stack(
            model.moments(matches, offset, "ignore") for model in self.models_
        )

    def _mix(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of the mixture, from the moments of the models in rows."""
        mixed = np.tensordot(self.weights_, mean, axes=1)
        spread = variance + (mean - mixed) ** 2
        return mixed, np.tensordot(self.weights_, spread, axes=1)

    def _mix_scores(self, mean: Floats, std: Floats) -> tuple[NDArray, NDArray]:
        """Mean and standard deviation of the mixture, from the moments of the models."""
        mixed, variance = self._mix(mean, std**2)
        return mixed[()], np.sqrt(variance)[()]

    def _quantiles(self, mean: Floats, std: Floats, level: float) -> Floats:
        """Ends of central intervals, by bisection of the distribution function.

        The last axis of the result has length 2, for the lower and the upper end.
        """
        std = np.maximum(std, _MIN_STD)

        def below(x: Floats) -> Floats:
            chance: Floats = ndtr((x - mean) / std)
            return np.tensordot(self.weights_, chance, axes=1)

        ends = []
        for q in _tails(level):
            # a quantile of a mixture lies between the quantiles of its components
            own = mean + ndtri(q) * std
            ends.append(_bisect(below, q, own.min(axis=0), own.max(axis=0)))
        return np.stack(ends, axis=-1)


def _to_file(mixture: AveragedComparisons) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Header and arrays of a file, for `_from_file`.

    The header lists the arrays of each model that are in the file. The first model has
    all, and each other model those that differ from the arrays of the first.
    """
    headers = []
    arrays = {"weights": mixture.weights_}
    first: dict[str, NDArray] = {}
    for k, model in enumerate(mixture.models_):
        header, own = to_file(model)
        first = first or own
        if k > 0:
            own = {
                name: array
                for name, array in own.items()
                if not _same_bits(array, first[name])
            }
        headers.append({**header, "arrays": list(own)})
        arrays |= {_array_name(k, name): array for name, array in own.items()}
    evidence = mixture.log_marginal_likelihood_
    if evidence is not None:
        arrays["log_marginal_likelihood"] = np.array(evidence, dtype=np.float64)
    table = mixture.hyperparameters_
    columns = None
    if table is not None:
        _check_table(table)
        columns = list(table.columns)
        for k, name in enumerate(columns):
            arrays[_column_name(k)] = table[name].to_numpy()
    header = {
        "models": headers,
        "columns": columns,
        "has_evidence": evidence is not None,
    }
    return header, arrays


def _from_file(
    header: dict[str, Any], arrays: dict[str, NDArray]
) -> AveragedComparisons:
    """Create a mixture from header and arrays of a file."""
    weights = arrays.pop("weights")
    evidence = None
    if header["has_evidence"]:
        evidence = float(arrays.pop("log_marginal_likelihood"))
    table = None
    if header["columns"] is not None:
        table = pd.DataFrame(
            {
                name: arrays.pop(_column_name(k))
                for k, name in enumerate(header["columns"])
            }
        )
    models = []
    first: dict[str, NDArray] = {}
    for k, part in enumerate(header["models"]):
        own = {name: arrays.pop(_array_name(k, name)) for name in part["arrays"]}
        first = first or own
        models.append(from_file(part, {**first, **own}))
    require(not arrays, list(arrays), "the list of further arrays", "an empty list")
    return AveragedComparisons(models, weights, evidence, table)


def _array_name(k: int, name: str) -> str:
    """Name in a file of an array of model k."""
    return f"model_{k}_{name}"


def _column_name(k: int) -> str:
    """Name in a file of column k of the hyperparameters."""
    return f"hyperparameters_{k}"


def _same_bits(a: NDArray, b: NDArray) -> bool:
    """Whether two arrays have the same type, shape, and bytes."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _check_table(table: pd.DataFrame) -> None:
    """Raise ValueError unless a file can store the hyperparameters."""
    good = isinstance(table, pd.DataFrame) and table.columns.is_unique
    expected = "a DataFrame with different names of columns"
    require(good, table, "hyperparameters_", expected)
    for name in table.columns:
        expected = "a str, so that a file can store hyperparameters_"
        require(isinstance(name, str), name, "the name of a column", expected)
        dtype = table[name].dtype
        good = isinstance(dtype, np.dtype) and dtype.kind in "biuf"
        expected = "a type of real numbers, such as float64"
        require(good, str(dtype), f"the type of hyperparameters_[{name!r}]", expected)
    good = table.index.equals(pd.RangeIndex(len(table)))
    expected = "0, 1, 2, ...; use hyperparameters_.reset_index(drop=True)"
    require(good, list(table.index), "the index of hyperparameters_", expected)


def _stack(pairs: Iterable[tuple[NDArray, NDArray]]) -> tuple[Floats, Floats]:
    """The first and the second elements of pairs, each stacked along a new axis."""
    first, second = (np.array(values) for values in zip(*pairs, strict=True))
    return first, second


def _bisect(
    below: Callable[[Floats], Floats], q: float, low: Floats, high: Floats
) -> Floats:
    """Point between low and high at which a distribution function is q."""
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


def _centered_variances(covariance: Floats) -> Floats:
    """Variances of scores minus their mean.

    The argument is a covariance, or the variances of independent scores.
    """
    n = len(covariance)
    if covariance.ndim == 1:
        return covariance * (1 - 2 / n) + covariance.sum() / n**2
    common = covariance.mean(axis=0)
    return np.diag(covariance) - 2 * common + common.mean()


def _allocate(weights: Floats, size: int) -> NDArray[np.int64]:
    """Numbers of draws in proportion to the weights, with sum `size`."""
    ends = np.round(size * np.append(0.0, np.cumsum(weights)))
    return np.diff(ends).astype(np.int64)


def _draw(
    mean: Floats, covariance: Floats, size: int, rng: np.random.Generator
) -> Floats:
    """Draws of a Gaussian, shape (size, F); the covariance may be singular."""
    normal = rng.standard_normal((size, len(mean)))
    if covariance.ndim == 1:
        return mean + normal * np.sqrt(covariance)
    return mean + normal @ square_root(covariance).T


def _ranks(
    mean: Floats, std: Floats, draws: Floats, level: float
) -> tuple[NDArray, NDArray, NDArray]:
    """Ranks by the mean, and rank intervals from draws of all scores."""
    rank = ranks_by_mean(mean, std)
    low, high = np.quantile(
        rankdata(-draws, axis=1), _tails(level), axis=0, method="nearest"
    )
    low = np.minimum(low, rank).astype(np.int64)
    high = np.maximum(high, rank).astype(np.int64)
    return rank, low, high
