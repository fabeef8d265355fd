"""Scores of participants of races, their forecasts, and a test of these forecasts.

The model is that of Plackett and Luce, with ties as in `preflearn.ranking.PlackettLuce`.
Scores have a normal prior, whose variance is fitted to the races.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from preflearn.core import NotIdentifiedWarning
from preflearn.ranking import PlackettLuce
from preflearn_book.penalty import penalty_by_evidence

Floats = NDArray[np.float64]
Rankings = Sequence[Sequence[tuple[str, ...]]]
Unranked = Sequence[Sequence[str]]

N_DRAWS = 4_000
_N_TEST_DRAWS = 500
_MAX_FOLDS = 5
# Scores with variance 1 that count as known. Without them, 78 % of the 95 % intervals
# held for 12 participants with a standard deviation of 0.3 in 10 races of 10.
_N_PRIOR = 2.0
_MIN_PAIRS = 30  # in a group of forecasts
N_BINS = 5
"""Number of groups of forecasts from 50 to 100 % in the test."""


class RaceModel:
    """Scores of participants with their joint uncertainty.

    Parameters
    ----------
    rankings : sequence
        For each race, the participants at each place, best first.
    unranked : sequence
        For each race, the participants after all others, in unknown order.
    alpha : float, optional
        Penalty on the scores, the inverse of their prior variance; None chooses it by
        the evidence.

    Attributes
    ----------
    fitted : PlackettLuce
    alpha : float
    """

    def __init__(
        self, rankings: Rankings, unranked: Unranked, alpha: float | None = None
    ) -> None:
        def fit(penalty: float) -> PlackettLuce:
            with warnings.catch_warnings():
                # The weight of ties does not matter for who is ahead, and the report
                # has its own words for groups and for unbeaten participants.
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.simplefilter("ignore", NotIdentifiedWarning)
                return PlackettLuce(penalty).fit(rankings, unranked=unranked)

        if alpha is None:
            n = len({*participants(rankings, unranked)})
            alpha = penalty_by_evidence(lambda a: fit(a).moments(None), n - 1, _N_PRIOR)
        self.alpha = alpha
        self.fitted = fit(alpha)
        self._covariance = self.fitted.covariance()
        self._number = {name: k for k, name in enumerate(self.fitted.items_)}

    def scores_of(self, players: Sequence[str]) -> tuple[Floats, Floats]:
        """Mean and covariance of the scores of some players, also of unseen ones.

        An unseen player has the mean score, and the variance of the prior.
        """
        mean = np.zeros(len(players))
        covariance = np.eye(len(players)) / self.alpha
        known = [k for k, name in enumerate(players) if name in self._number]
        rows = [self._number[players[k]] for k in known]
        mean[known] = self.fitted.coef_[rows]
        covariance[np.ix_(known, known)] = self._covariance[np.ix_(rows, rows)]
        return mean, covariance

    def draws(self, players: Sequence[str], n_draws: int, seed: int) -> Floats:
        """Draw scores of some players, shape (n_draws, n)."""
        rng = np.random.default_rng(seed)
        mean, covariance = self.scores_of(players)
        return rng.multivariate_normal(mean, covariance, n_draws, method="eigh")


def participants(rankings: Rankings, unranked: Unranked) -> list[str]:
    """Names of all participants, as often as they took part."""
    ranked = chain.from_iterable(chain.from_iterable(rankings))
    return [*ranked, *chain.from_iterable(unranked)]


def comparisons(
    rankings: Rankings, unranked: Unranked, names: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of neighbors in the rankings as positions in `names`, and their outcomes.

    These pairs connect the same participants as all pairs do. An unranked participant
    is compared with the last one that is ranked.

    Examples
    --------
    >>> index, y = comparisons([[("a",), ("b", "c")]], [["d"]], ["a", "b", "c", "d"])
    >>> index.tolist(), y.tolist()
    ([[0, 1], [1, 2], [2, 3]], [1, 0, 1])
    """
    number = {name: k for k, name in enumerate(names)}
    index, y = [], []
    for ranking, rest in zip(rankings, unranked, strict=True):
        before = ""
        for group in ranking:
            for k, name in enumerate(group):
                if before:
                    index.append((number[before], number[name]))
                    y.append(int(k == 0))
                before = name
        index += [(number[before], number[name]) for name in rest]
        y += [1] * len(rest)
    return np.array(index), np.array(y)


def forecast(model: RaceModel, players: Sequence[str], seed: int = 0) -> pd.DataFrame:
    """Chances of each player to win a race, and to be among the first three.

    The chances are averages over the uncertainty of the scores, for a race without
    ties.

    Returns
    -------
    DataFrame
        Columns name; win; low and high, the 95 % interval of the chance to win given
        the uncertainty of the scores; and podium; sorted by win.
    """
    scores = model.draws(players, N_DRAWS, seed)
    chances = softmax(scores, axis=1)
    noise = np.random.default_rng(seed + 1).gumbel(size=scores.shape)
    order = np.argsort(-(scores + noise), axis=1)
    first_three = np.bincount(order[:, :3].ravel(), minlength=len(players))
    low, high = np.quantile(chances, [0.025, 0.975], axis=0)
    columns: dict[str, Any] = {
        "name": players,
        "win": chances.mean(axis=0),
        "low": low,
        "high": high,
        "podium": first_three / N_DRAWS,
    }
    table = pd.DataFrame(columns)
    return table.sort_values("win", ascending=False, kind="stable", ignore_index=True)


class ForecastTest(NamedTuple):
    """Forecasts of races that were not used for the fit, one row per race.

    Forecasts of who of two is ahead are grouped by the chance of the favorite: 50 to
    60 %, ..., 90 to 100 %.
    """

    ahead: Floats  # (m,) mean log loss for who of two is ahead
    winner: Floats  # (m,) log loss for who wins
    n_players: NDArray[np.int64]  # (m,)
    n_pairs: Floats  # (m, bins) pairs of participants
    chance: Floats  # (m, bins) sum of the chances of the favorites
    n_hits: Floats  # (m, bins) favorites that were ahead


def held_out(rankings: Rankings, unranked: Unranked, seed: int = 0) -> ForecastTest:
    """Forecast each race from the races of the other folds, and compute the losses."""
    m = len(rankings)
    folds = KFold(min(_MAX_FOLDS, m), shuffle=True, random_state=seed)
    rows: list[Any] = [None] * m
    for train, test in folds.split(np.arange(m)):
        inside = [int(k) for k in train]
        model = RaceModel([rankings[k] for k in inside], [unranked[k] for k in inside])
        for k in map(int, test):
            rows[k] = _losses(model, rankings[k], unranked[k], seed)
    return ForecastTest(*map(np.array, zip(*rows, strict=True)))


def _losses(
    model: RaceModel,
    ranking: Sequence[tuple[str, ...]],
    rest: Sequence[str],
    seed: int,
) -> tuple[Any, ...]:
    """The entries of `ForecastTest` for one race."""
    groups = [*ranking, tuple(rest)] if rest else ranking
    players = list(chain.from_iterable(groups))
    place = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    better, worse = np.nonzero(place[:, None] < place)
    chance = _chances_to_be_ahead(model, players)[better, worse]
    of_winners = softmax(model.draws(players, _N_TEST_DRAWS, seed), axis=1)
    winner_loss = -np.log(of_winners.mean(axis=0)[place == 0]).mean()
    favorite = np.maximum(chance, 1 - chance)
    hits = (chance > 0.5) + 0.5 * (chance == 0.5)
    group = np.minimum((favorite - 0.5) * 2 * N_BINS, N_BINS - 1).astype(int)
    sums = [
        np.bincount(group, w, N_BINS) for w in (np.ones(len(group)), favorite, hits)
    ]
    return (-np.log(chance).mean(), winner_loss, len(players), *sums)


def _chances_to_be_ahead(model: RaceModel, players: Sequence[str]) -> Floats:
    """The chance that each player is ahead of each other one, shape (n, n).

    The mean of the logistic function of a normal variable is approximated as in section
    4.5.2 of C. M. Bishop, "Pattern Recognition and Machine Learning", 2006.
    """
    mean, covariance = model.scores_of(players)
    own = np.diag(covariance)
    variance = np.maximum(own[:, None] + own - 2 * covariance, 0.0)
    return expit((mean[:, None] - mean) / np.sqrt(1 + np.pi / 8 * variance))


def calibration(test: ForecastTest) -> pd.DataFrame:
    """Forecasts and results by group: the mean chance, and the fraction of hits.

    The interval of the fraction allows for pairs of one race that depend on each other.
    Groups of fewer than 30 pairs are left out, unless all groups are that small.
    """
    n_pairs, chance, n_hits = (
        part.sum(axis=0) for part in (test.n_pairs, test.chance, test.n_hits)
    )
    used = n_pairs >= min(_MIN_PAIRS, n_pairs.max())
    fraction = n_hits[used] / n_pairs[used]
    residuals = test.n_hits[:, used] - fraction * test.n_pairs[:, used]
    error = np.sqrt((residuals**2).sum(axis=0)) / n_pairs[used]
    return pd.DataFrame(
        {
            "forecast": chance[used] / n_pairs[used],
            "ahead": fraction,
            "low": np.maximum(fraction - 1.96 * error, 0.0),
            "high": np.minimum(fraction + 1.96 * error, 1.0),
            "pairs": n_pairs[used].astype(int),
        }
    )
