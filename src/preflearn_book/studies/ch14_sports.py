"""Evaluation of models of sports: the protocol of section 4 and appendix B of
[Maystre2019]_.

The training set is "the first 70% of the observations": the first floor(0.7 N) games. It
may end in the middle of a day. A game is forecast from "all the data up to the day
preceding" it. Therefore test games on the last training day are forecast without the
training games of that day. Hyperparameters are chosen on the training set only.

Accuracy is the fraction of games whose result has the largest probability. If k results
have the same largest probability, as in the row "Random" of Table 3, a game with one of
these results counts 1/k.

The data are frames in the form that the loaders of `preflearn.datasets` return.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from preflearn.core.validation import Floats, Ids, require
from preflearn.dynamics import (
    Affine,
    Constant,
    DynamicComparisons,
    Gaussian,
    Logit,
    Matern12,
    Matern32,
    OrdinalLogit,
    OrdinalProbit,
    Poisson,
    Probit,
    Skellam,
    Wiener,
    one_step_ahead,
)
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.prior import REST
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.matches import ADVANTAGE, Matches
from preflearn.ratings import Elo, TrueSkill, earlier_forecasts
from preflearn.ratings.system import RatingSystem
from preflearn_book.studies.ch14_points import result_probabilities, scoring_matches

YEAR = 365.25  # days
_TIED = 1e-9  # Probabilities that differ by less count as equal.
_MATERN = {0.5: Matern12, 1.5: Matern32}
# Likelihoods with and without ties.
_RESULTS = {"Probit": (OrdinalProbit, Probit), "Logit": (OrdinalLogit, Logit)}


# ---- Table 8


def published_model(
    table: pd.DataFrame,
    dataset: str,
    model: str,
    likelihood: str | None = None,
    *,
    advantage_variance: float | None = None,
) -> DynamicComparisons | Elo | TrueSkill:
    """An unfitted model with the hyperparameters of Table 8 of [Maystre2019]_.

    Times are in days. The unit of the table is the year of 365.25 days. Wiener and linear
    parts start at the first match of each feature, as in the authors' scripts. The
    learning rates of the table are not used, because the fixed point of Algorithm 1 does
    not depend on the rate.

    Parameters
    ----------
    table : DataFrame
        The table data/published/P4_tables.csv, with one number per row and the columns
        place, dataset, model, likelihood, quantity, and value.
    dataset, model : str
        Names in the paper, such as "NBA basketball" and "Ours". "Figure 4", "Table 4",
        and "Table 5" are also names of models.
    likelihood : str, optional
        "Logit", "Gaussian", or "Poisson-exp", if the model has several likelihoods.
    advantage_variance : float, optional
        Prior variance of the feature "advantage", which is constant in time, in squared
        units of the scores. Table 8 does not have this variance. If it is not given, the
        feature has the same prior as the teams.

    Returns
    -------
    DynamicComparisons, Elo or TrueSkill
        The model. If the data have ties (Table 2), it has a margin, which is half a
        point for the Gaussian likelihood. TrueSkill has the variance and the dynamics of
        the table; the dynamics are per match.

    Raises
    ------
    ValueError
        If the table has no such model, or several.

    Examples
    --------
    >>> values = pd.DataFrame({"quantity": ["margin", "constant_variance", "wiener_variance"],
    ...                        "value": [0.5, 0.3, 730.5]})
    >>> table = values.assign(place="Table 8", dataset="Chess", model="Ours", likelihood="Probit")
    >>> model = published_model(table, "Chess", "Ours")
    >>> model.likelihood, model.covariance
    (OrdinalProbit(margin=0.5), Constant(variance=0.3) + Wiener(variance=2.0, origin='first'))
    """
    name, values = _of_table_8(table, dataset, model, likelihood)
    if model == "TrueSkill":
        return TrueSkill(
            values["constant_variance"],
            values["wiener_variance"],
            margin=values.get("margin", 0.0),
        )
    outcome_model = _likelihood(name, values, ties=_has_ties(table, dataset))
    if model == "Elo":
        return Elo(likelihood=outcome_model, rate=values["rate"])
    covariance: Any = _covariance(values)
    if advantage_variance is not None:
        covariance = {ADVANTAGE: Constant(advantage_variance), REST: covariance}
    return DynamicComparisons(covariance, outcome_model)


def _of_table_8(
    table: pd.DataFrame, dataset: str, model: str, likelihood: str | None
) -> tuple[str, dict[str, float]]:
    """The name of the likelihood, and its values by quantity."""
    rows: Any = table[
        (table["place"] == "Table 8")
        & (table["dataset"] == dataset)
        & (table["model"] == model)
    ]
    if likelihood is not None:
        rows = rows[rows["likelihood"] == likelihood]
    names = rows["likelihood"].unique().tolist()
    what = f"the likelihood of {model} of {dataset} in Table 8"
    require(len(names) == 1, names, what, "one; pass it if there are several")
    return names[0], rows.set_index("quantity")["value"].astype(float).to_dict()


def _has_ties(table: pd.DataFrame, dataset: str) -> bool:
    rows = table[
        (table["place"] == "Table 2")
        & (table["dataset"] == dataset)
        & (table["quantity"] == "ties")
    ]
    return bool((rows["value"].astype(float) == 1).any())


def _likelihood(name: str, values: Mapping[str, float], ties: bool) -> Likelihood:
    if name == "Gaussian":
        return Gaussian(values["noise_variance"], margin=0.5 if ties else 0.0)
    if name == "Poisson-exp":
        return Poisson()
    with_ties, without_ties = _RESULTS[name]
    if "margin" in values:
        return with_ties(values["margin"])
    return without_ties()


def _covariance(values: Mapping[str, float]) -> Covariance:
    constant: Covariance = Constant(values["constant_variance"])
    if "linear_variance" in values:
        slope = values["linear_variance"] / YEAR**2
        constant = Affine(values["constant_variance"], slope, origin="first")
    if "wiener_variance" in values:
        return constant + Wiener(values["wiener_variance"] / YEAR, origin="first")
    if "matern_variance" in values:
        matern = _MATERN[values["smoothness"]]
        return constant + matern(
            values["matern_variance"], lengthscale=YEAR * values["lengthscale"]
        )
    return constant


# ---- Forecasts and scores


class ResultForecasts(NamedTuple):
    """Forecasts of games, and their outcomes.

    Attributes
    ----------
    probabilities : ndarray of shape (n, 3) or (n, 2)
        Probabilities that the first side loses, ties, and wins; without ties, that it
        loses and wins.
    outcomes : ndarray of int8, shape (n,)
        -1, 0 or 1.

    """

    probabilities: Floats
    outcomes: NDArray[np.int8]

    def losses(self) -> Floats:
        """-log p(outcome) in nats, shape (n,); infinite for probability 0."""
        with np.errstate(divide="ignore"):
            return -np.log(self.probabilities[self._outcome_entries()])

    def hits(self) -> Floats:
        """1 if the outcome is the most probable result, 1/k if it is one of k, else 0."""
        largest = self.probabilities.max(axis=1, keepdims=True)
        best = self.probabilities >= largest - _TIED
        return (best / best.sum(axis=1, keepdims=True))[self._outcome_entries()]

    def _outcome_entries(self) -> tuple[Ids, Ids]:
        """Rows and columns of the outcomes in the probabilities."""
        n, k = self.probabilities.shape
        results = np.linspace(-1, 1, k)
        return np.arange(n), np.searchsorted(results, self.outcomes)


def training_size(n_games: int) -> int:
    """The number of training games, the first 70 percent.

    Examples
    --------
    >>> training_size(67_642)
    47349
    """
    return math.floor(0.7 * n_games)


def observations(
    frame: pd.DataFrame,
    likelihood: Likelihood | None = None,
    *,
    advantage: str | None = None,
) -> tuple[Matches, NDArray]:
    """Convert games to matches and outcomes for a likelihood.

    See section 4.2.1 of [Maystre2019]_.

    Parameters
    ----------
    frame : DataFrame
        One row per game, sorted by time, with the columns first, second, time, and
        outcome (1, 0, -1). For a likelihood of points, the columns first_score and
        second_score replace outcome.
    likelihood : Likelihood, optional
        For Poisson, there are two rows per game, as in `scoring_matches`, without an
        advantage. For Gaussian and Skellam, y is the point difference as a float, which
        never overflows. For other likelihoods and None, y is the outcome.
    advantage : str, optional
        Column that becomes the feature "advantage".

    Returns
    -------
    matches : Matches
    y : ndarray

    Examples
    --------
    >>> frame = pd.DataFrame({"first": ["Ajax"], "second": ["Bray"], "time": [3.0], "outcome": [1],
    ...                       "first_score": [2], "second_score": [0]})
    >>> [observations(frame, likelihood)[1].tolist() for likelihood in (Probit(), Gaussian(3.0), Poisson())]
    [[1], [2.0], [2.0, 0.0]]
    """
    if isinstance(likelihood, Poisson):
        return scoring_matches(frame)
    if isinstance(likelihood, Gaussian | Skellam):
        # Games that are only forecast have no outcome.
        matches = Matches.from_frame(frame, outcome=None, advantage=advantage)
        points = frame[["first_score", "second_score"]].to_numpy(dtype=np.float64)
        return matches, points[:, 0] - points[:, 1]
    return Matches.from_frame(frame, advantage=advantage)


def forecast_results(
    model: DynamicComparisons | RatingSystem, frame: pd.DataFrame, *, tol: float = 0.02
) -> ResultForecasts:
    """Forecast each test game from all earlier days (section 4 of [Maystre2019]_).

    Parameters
    ----------
    model : DynamicComparisons, or a rating system
        Model with its hyperparameters. The object itself is not changed.
    frame : DataFrame
        Games as in `observations`, always with the column outcome. Ties are forecast if
        the outcomes contain a tie.
    tol : float
        Tolerance of `one_step_ahead`. It has no effect on rating systems.

    Returns
    -------
    ResultForecasts
        One row per test game. With a Poisson likelihood, the points of both teams are
        forecast. Without ties, the probability of equal points is split in half between
        the teams.

    Examples
    --------
    >>> frame = pd.DataFrame({"first": list("aabab"), "second": list("bcccc"),
    ...                       "time": [0.0, 1, 1, 2, 2], "outcome": [1, 1, 1, 1, 1]})
    >>> forecasts = forecast_results(DynamicComparisons(Constant(1.0), Probit()), frame)
    >>> forecasts.probabilities.round(3).tolist(), forecasts.hits().tolist()
    ([[0.158, 0.842], [0.307, 0.693]], [1.0, 1.0])
    """
    likelihood = getattr(model, "likelihood", None)
    outcomes = frame["outcome"].to_numpy()
    start = training_size(len(frame))
    matches, y = observations(frame, likelihood)
    if isinstance(model, RatingSystem):
        probabilities = earlier_forecasts(model, matches, y, start)
    elif isinstance(likelihood, Poisson):
        ahead = one_step_ahead(model, matches, y, 2 * start, tol=tol)
        moments = ahead.mean.reshape(-1, 2), ahead.variance.reshape(-1, 2)
        probabilities = result_probabilities(*moments)
        if (outcomes != 0).all():
            probabilities = probabilities[:, ::2] + probabilities[:, 1:2] / 2
    else:
        probabilities = one_step_ahead(model, matches, y, start, tol=tol).probabilities
    return ResultForecasts(probabilities, outcomes[start:])


# ---- Figure 5


def random_split(n_games: int, rng: np.random.Generator) -> tuple[Ids, Ids, Ids]:
    """Split games into 50 percent training, 20 percent validation, and 30 percent test.

    This is the split of appendix B.2 of [Maystre2019]_. The numbers are rounded down:
    30,828, 12,331, and 18,498 of 61,657 games.

    Examples
    --------
    >>> [len(part) for part in random_split(61_657, np.random.default_rng(0))]
    [30828, 12331, 18498]
    """
    order = rng.permutation(n_games)
    train, validation, test = np.split(order, [n_games // 2, 7 * n_games // 10])
    return np.sort(train), np.sort(validation), np.sort(test)


def interaction_model(
    matches: Matches, player_variance: float, interaction_variance: float
) -> DynamicComparisons:
    """The constant model d = s_i - s_j + s_ij with a probit likelihood.

    See section 4.2.3 of [Maystre2019]_.

    Parameters
    ----------
    matches : Matches
        Matches from `Matches.from_frame` with interactions=True.
    player_variance, interaction_variance : float
        Variances of s_i and of s_ij, the constants of Table 9.

    Returns
    -------
    DynamicComparisons
        The model, not fitted.
    """
    covariance: dict[Hashable, Covariance] = {
        name: Constant(player_variance)
        for name in matches.features
        if isinstance(name, str)
    }
    covariance[REST] = Constant(interaction_variance)
    return DynamicComparisons(covariance, Probit())


def bradley_terry_probabilities(
    matches: Matches, y: ArrayLike, asked: Matches, regularization: float
) -> Floats:
    """Forecasts by regularized logistic regression, "logit" in Figure 5.

    The scores minimize -log-likelihood + regularization · |s|², as in the function
    opt_pairwise of the Python package choix. The model is P(first wins) = 1 / (1 + e^-d)
    with d = x·s.

    Parameters
    ----------
    matches : Matches
    y : array-like of shape (N,)
        1 if the first player won, -1 if the second player won. No ties.
    asked : Matches
        The matches to forecast, with the same features.
    regularization : float
        The positive alpha of Table 9. It corresponds to a normal prior of the scores
        with the variance 1 / (2 alpha).

    Returns
    -------
    ndarray of shape (n, 2)
        Probabilities that the first player loses and wins.

    Examples
    --------
    >>> matches = Matches([[1, -1], [1, -1]], [0, 0], ["Ann", "Bob"])
    >>> bradley_terry_probabilities(matches, [1, 1], matches[:1], regularization=0.5).round(4).tolist()
    [[0.2606, 0.7394]]
    """
    signed = matches.design.multiply(np.asarray(y)[:, None])
    # Each match appears in both orders, so that there are always two classes.
    both = sparse.vstack([signed, -signed])
    ones = np.ones(len(matches))
    classifier = LogisticRegression(
        C=0.25 / regularization, fit_intercept=False, tol=1e-12, max_iter=10_000
    )
    return classifier.fit(both, np.append(ones, -ones)).predict_proba(asked.design)
