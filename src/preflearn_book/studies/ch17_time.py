"""Learners of chapter 17 for the task family "time".

The next match is forecast from all matches of earlier days. `train` is a window of
matches, as `Games`. `test` is the same window with the matches that follow it, whose
outcomes become known day by day. No learner uses an outcome before its day is over:

- The dynamic model and the rating systems forecast by `one_step_ahead` and
  `earlier_forecasts`.
- The other learners are fitted to a table. Every `REFIT` days, they are fitted again to
  the matches of earlier days. (With 30 days instead, the loss of Bradley-Terry models on
  the NBA was 0.01 to 0.03 nats higher.)
- Features of a match describe the matches of its players on earlier days (`rolling`).
  The number of earlier matches is left out, because other learners do not have it
  either.

All learners use the same data: the players, the day, the home advantage, and the
outcome of each match. They do not use points. The margin of ties and the advantage of the
rating systems come from an ordinal model without time on the training window. Forecasts
are not smoothed or clipped. No learner assigns the probability 0 to an outcome. For the
constant forecast, this holds because it counts each outcome once more than observed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from preflearn import dynamics
from preflearn.core.diagnosis import NotIdentifiedWarning
from preflearn.core.validation import Floats
from preflearn.matches import ADVANTAGE, Matches, TimeWarning, n_earlier
from preflearn.pairs import Pairs
from preflearn.ranking.tie_models import Davidson, OrdinalComparison
from preflearn.ratings import Elo, Glicko, TrueSkill, earlier_forecasts
from preflearn.ratings.system import RatingSystem
from preflearn_book.studies.ch14_sports import YEAR
from preflearn_book.studies.ch17_protocol import QUIET_TREES
from preflearn_book.studies.ch17_seasons import Games

REFIT = 7.0
"""Days after which learners from a table are fitted again."""

_POINTS = 400 / np.log(10)  # rating points per unit of log-odds

Forecast = Callable[[Games], Floats]
"""A function from matches to the probabilities of their outcomes."""


# ---- Learners that are updated day by day. The fit determines the margin and the
# advantage; the rest is learned during the forecast.


def margin_and_advantage(train: Games, link: Any) -> tuple[float, float]:
    """Margin of ties and home advantage from an ordinal model without time."""
    model = OrdinalComparison(link, alpha=1.0).fit(_pairs(train.matches), train.y)
    advantage = 0.0
    if ADVANTAGE in train.matches.features:
        advantage = float(model.coef_[-1])
    return model.threshold_, advantage


def _pairs(matches: Matches) -> Pairs:
    """Each row of the design, compared with a row of zeros."""
    n, p = matches.design.shape
    rows: Any = sparse.vstack([matches.design, sparse.csr_array((1, p))], format="csr")
    return Pairs(rows, np.column_stack([np.arange(n), np.full(n, n)]))


def fit_dynamic(train: Games, variance: float, years: float) -> Forecast:
    """Scores with a Matérn 1/2 covariance over time and probit outcomes."""
    margin, _ = margin_and_advantage(train, "probit")
    scores = dynamics.Matern12(variance, lengthscale=years * YEAR)
    covariance: Any = {ADVANTAGE: dynamics.Constant(1.0), "*": scores}
    likelihood = dynamics.Probit()
    if train.ties:
        likelihood = dynamics.OrdinalProbit(margin)
    model = dynamics.DynamicComparisons(covariance, likelihood, n_threads=1)

    def forecast(test: Games) -> Floats:
        # Length scales may be longer than the window.
        with warnings.catch_warnings(action="ignore", category=TimeWarning):
            ahead = dynamics.one_step_ahead(model, test.matches, test.y, test.start)
        return ahead.probabilities

    return forecast


def fit_elo(train: Games, rate: float) -> Forecast:
    """Elo with a logit likelihood, which is ordinal if there are ties."""
    margin, advantage = margin_and_advantage(train, "logit")
    likelihood = dynamics.Logit()
    if train.ties:
        likelihood = dynamics.OrdinalLogit(margin)
    elo = Elo(likelihood=likelihood, rate=rate, advantage=advantage)
    return partial(forecast_by_day, elo)


def fit_glicko(train: Games, deviation: float, c: float) -> Forecast:
    """Glicko, updated after each match."""
    _, advantage = margin_and_advantage(train, "logit")
    glicko = Glicko(deviation=deviation, c=c, advantage=_POINTS * advantage)
    return partial(forecast_by_day, glicko)


def fit_trueskill(train: Games, variance: float, dynamics: float) -> Forecast:
    """TrueSkill. The draw margin is 0 without ties."""
    margin, advantage = margin_and_advantage(train, "probit")
    trueskill = TrueSkill(
        variance, dynamics, margin=margin * train.ties, advantage=advantage
    )
    return partial(forecast_by_day, trueskill)


def forecast_by_day(system: RatingSystem, test: Games) -> Floats:
    """Forecast each match from all matches of earlier days."""
    probabilities = earlier_forecasts(system, test.matches, test.y, test.start)
    if probabilities.shape[1] == 3 and not test.ties:
        return probabilities[:, [0, 2]]
    return probabilities


# ---- Learners that are fitted to a table


def fit_table(fit: Callable[..., Forecast], train: Games, **options: Any) -> Forecast:
    """Forecast the next `REFIT` days from all matches of earlier days, repeatedly."""
    first_forecast = fit(train, **options)

    def forecast_and_refit(test: Games) -> Floats:
        time = test.matches.time
        days = np.arange(time[test.start], time[-1] + 1e-9, REFIT)
        begins = np.unique(np.maximum(np.searchsorted(time, days), test.start)).tolist()
        forecast = first_forecast
        blocks = []
        for begin, end in pairwise([*begins, len(time)]):
            if begin > test.start:
                known = test.block(0, n_earlier(test.matches, begin))
                forecast = fit(known, **options)
            blocks.append(forecast(test.block(begin, end)))
        return np.vstack(blocks)

    return forecast_and_refit


def fit_bradley_terry(
    train: Games, alpha: float, half_life: float = math.inf
) -> Forecast:
    """Bradley-Terry model with Davidson's ties and weights that decrease with time.

    The weight of a match is halved every `half_life` years.
    """
    age = (train.matches.time[-1] - train.matches.time) / YEAR
    weights = 0.5 ** (age / half_life)
    # Small values of alpha are tried on purpose.
    with warnings.catch_warnings(action="ignore", category=NotIdentifiedWarning):
        model = Davidson(alpha).fit(_pairs(train.matches), train.y, weights)
    outcomes = [0, 1, 2] if train.ties else [0, 2]
    return lambda test: model.probabilities(test.matches.design @ model.coef_)[
        :, outcomes
    ]


_RESULTS = [0, 1, 2]  # columns of features from results
_COUNTS = 3  # the column of the numbers of earlier matches
_ADVANTAGE = 4


def fit_logistic(train: Games, C: float, *, counts: bool = False) -> Forecast:
    """Logistic regression on the features.

    With `counts`, the number of earlier matches is also a feature. If there are ties, the
    absolute values of the features are added, because the probability of a tie is not
    monotonic in a difference.
    """
    columns = [*_RESULTS, _COUNTS] if counts else _RESULTS

    def inputs(games: Games) -> Floats:
        parts = [games.features[:, [*columns, _ADVANTAGE]]]
        if games.ties:
            parts.append(np.abs(games.features[:, columns]))
        return np.hstack(parts)

    classifier = make_pipeline(
        StandardScaler(), LogisticRegression(C=C, solver="newton-cholesky", tol=1e-6)
    )
    classifier.fit(inputs(train), train.y)
    return lambda test: classifier.predict_proba(inputs(test))


def fit_trees(train: Games, n_estimators: int, num_leaves: int) -> Forecast:
    """Gradient-boosted classification trees on the features.

    The number of earlier matches is left out.
    """
    columns = [*_RESULTS, _ADVANTAGE]
    trees = LGBMClassifier(
        n_estimators=n_estimators, num_leaves=num_leaves, **QUIET_TREES
    )
    trees.fit(train.features[:, columns], train.y)
    return lambda test: np.asarray(trees.predict_proba(test.features[:, columns]))


def fit_frequencies(train: Games) -> Forecast:
    """Frequencies of the outcomes with and without home advantage.

    Each outcome is counted once more than observed.
    """
    outcomes = [-1, 0, 1] if train.ties else [-1, 1]
    counts = np.ones((2, len(outcomes)))
    at_home = (train.features[:, _ADVANTAGE] > 0).astype(int)
    np.add.at(counts, (at_home, np.searchsorted(outcomes, train.y)), 1)
    frequencies = counts / counts.sum(axis=1, keepdims=True)
    return lambda test: frequencies[(test.features[:, _ADVANTAGE] > 0).astype(int)]


def fit_equal_probabilities(train: Games) -> Forecast:
    """Equal probabilities, as in the row "Random" of Table 3 of [Maystre2019]_."""
    k = 2 + train.ties
    return lambda test: np.full((len(test.y), k), 1 / k)
