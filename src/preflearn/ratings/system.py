"""Base class of rating systems: players, ratings, and forecasts with ties.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
.. [Davidson1970] R. R. Davidson, "On extending the Bradley-Terry model to accommodate
   ties in paired comparison experiments", JASA 65, 1970.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from preflearn.core.outcome_losses import davidson_loss, davidson_probabilities
from preflearn.core.validation import (
    LARGEST,
    Floats,
    check_labels,
    check_number,
    require,
    short_repr,
)
from preflearn.dynamics.engine.schedule import distinct
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.matches import (
    ADVANTAGE,
    Fixtures,
    Matches,
    check_clock,
    check_matches,
    given_outcomes,
    n_earlier,
    prepare_for_prediction,
)
from preflearn.metrics import comparison_loss
from preflearn.pairs import Incidence

_LOG_NU_BOUNDS = (-14.0, 14.0)  # nu = 1.2e6 is the case that all matches are ties


class RatedMatches(NamedTuple):
    """Data about N matches that the update of ratings needs, except the players."""

    advantage: Floats  # advantage of the first player, in the unit of the ratings
    y: NDArray[np.int8]
    time: Floats


class GaussianRatings(NamedTuple):
    """Ratings with variances, which the compiled loops update in place."""

    means: Floats
    variances: Floats
    last: Floats  # time of the last match; infinity before the first match


class PlayerValues:
    """Fitted attribute with one value per player, a copy of the system's values.

    The system stores the values in an array that it updates in place and whose size is
    doubled if it is full. The time of a call therefore depends only on the players of
    its matches.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, system: Any, owner: type | None = None) -> Any:
        if system is None:
            return self
        values = vars(system).get("_values", {})
        if self.name not in values:
            raise AttributeError(
                f"{type(system).__name__} has no {self.name} before fit; call fit first"
            )
        return values[self.name][: len(system._places)].copy()

    def __set__(self, system: Any, values: Floats) -> None:
        system._values[self.name] = np.array(values)


class RatingSystem(ClassifierMixin, BaseEstimator):
    """Base class of rating systems.

    A system with a likelihood forecasts with this likelihood: three columns, or two if
    it has no ties. Other systems forecast an expected score E = 1 / (1 + e^-d), which
    does not determine the probability of a tie. Their forecasts always have three
    columns. They come from the model of [Davidson1970]_ with this expected score::

        P(first) : P(tie) : P(second) = e^{D/2} : nu : e^{-D/2},   D = d + 2 asinh(nu/2 sinh(d/2)),

    where nu >= 0 maximizes the likelihood of the outcomes of the fit, given the ratings
    before each match. D solves P(first) + P(tie)/2 = E: with e^{D/2} = e^{d/2} z this
    is z - 1/z = nu sinh(d/2). Without ties, nu = 0 and D = d. For nu = 2, D = 2d, and
    the probabilities are those of two games of half the weight: E², 2E(1-E), (1-E)².
    """

    advantage: float
    initial: float

    before_: Floats
    deviation_before_: Floats  # only of systems with uncertainty
    ratings_ = PlayerValues()
    games_ = PlayerValues()  # only of Elo
    elite_ = PlayerValues()  # only of Elo
    deviations_ = PlayerValues()  # only of systems with uncertainty
    last_ = PlayerValues()  # only of systems with uncertainty

    @property
    def players_(self) -> tuple[Hashable, ...]:
        """All players so far, in the order of their first matches."""
        if "_places" not in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has no players_ before fit; call fit first"
            )
        return tuple(self._places)

    @property
    def classes_(self) -> Floats:
        """Outcomes of the columns of forecasts, as floats, as in ComparisonEstimator."""
        likelihood = self._likelihood()
        ties = likelihood is None or likelihood.has_ties
        return np.array([-1.0, 0.0, 1.0] if ties else [-1.0, 1.0])

    def _likelihood(self) -> Likelihood | None:
        """Likelihood of the outcomes; None for Davidson's model of ties with `nu_`."""
        return None

    def _new_player(self) -> dict[str, float]:
        """Values of a new player for the fitted attributes with one value per player."""
        raise NotImplementedError

    def _update_ratings(
        self,
        ids: NDArray[np.int64],
        matches: RatedMatches,
        values: dict[str, NDArray],
    ) -> Floats:
        """Update the players' values match by match, in place.

        `values` has the attributes of `_new_player`, for the players of these matches
        only; `ids` are row numbers in these arrays. The method returns ratings and
        variances of both players before each match, shape (N, 4).
        """
        raise NotImplementedError

    def _variances(self, ids: NDArray[np.int64], time: Floats) -> Floats:
        """Variances of the current ratings of both players at each match, (N, 2)."""
        return np.zeros(ids.shape)

    def _log_odds(self, differences: Floats, variances: Floats) -> Floats:
        """Log-odds d, for systems without a likelihood."""
        raise NotImplementedError

    def fit(self, matches: Matches, y: ArrayLike) -> Self:
        """Rate all players from the start; each new player has the rating `initial`.

        Parameters
        ----------
        matches : Matches
            Matches of two players each. Matches at the same time are rated in row
            order.
        y : array-like of shape (N,)
            Outcomes: +1 first won, 0 tie, -1 second won; no ties if the likelihood has
            none. 1, 1/2, and 0 are accepted, too.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range, a label is invalid, a match has line-ups
            instead of players, the matches are empty, or `advantage` is not 0 and the
            matches have no feature "advantage".

        Warns
        -----
        OutcomeWarning
            If outcomes are only 1 and 0, or only 1, 1/2, and 0, and the DataFrame of
            the matches had other outcomes.
        TimeWarning
            If a rate per time unit does not suit the time span of the matches.
        """
        incidence, rated = self._check_matches(matches, y)
        self._rated_by = self._likelihood()
        self._places: dict[Hashable, int] = {}  # position of each player in players_
        # arrays with room for further players
        self._values: dict[str, NDArray] = {
            name: np.empty(0, dtype=type(value))
            for name, value in self._new_player().items()
        }
        # log-odds before each match and outcomes, one entry per call
        self._history: list[tuple[Floats, NDArray[np.int8]]] = []
        self._latest = -math.inf
        self._features = set[Hashable]()
        self._columns = None
        return self._add(matches, incidence, rated)

    def partial_fit(self, matches: Matches, y: ArrayLike) -> Self:
        """Add later matches without rating earlier ones again.

        Parameters, return value, and errors are those of `fit`; players may be new. The
        method also raises ValueError if the first new match is earlier than the last
        known match, or the likelihood has changed. Either both sets of times must have
        been read from dates, or neither.
        """
        if "_places" not in vars(self):
            return self.fit(matches, y)
        incidence, rated = self._check_matches(matches, y)
        self._check_likelihood()
        check_clock(matches.columns, self._columns)
        first = float(matches.time[0])
        expected = (
            f"at least {self._latest:g}, the time of the last match so far; to add earlier "
            "matches, call `fit` on all matches"
        )
        require(first >= self._latest, first, "the time of the first match", expected)
        return self._add(matches, incidence, rated)

    def _check_matches(
        self, matches: Matches, y: ArrayLike
    ) -> tuple[Incidence, RatedMatches]:
        """Players, advantages, outcomes, and times, after checks."""
        advantage = self._advantages(matches)
        incidence = _player_incidence(matches)
        y = given_outcomes(y, matches)
        likelihood = self._likelihood()
        if likelihood is not None:
            likelihood.check(y, len(matches))  # its error message lists its outcomes
        outcomes = tuple(self.classes_.astype(int).tolist())
        labels = check_labels(y, len(matches), outcomes)
        return incidence, RatedMatches(advantage, labels, matches.time)

    def _add(self, matches: Matches, incidence: Incidence, rated: RatedMatches) -> Self:
        self._features |= set(matches.features)
        self._columns = self._columns or matches.columns
        columns, compact = incidence.compacted()
        names = [matches.features[column] for column in columns]
        self._add_players(names)
        places = np.array([self._places[name] for name in names])
        values = {name: every[places] for name, every in self._values.items()}
        ids = np.ascontiguousarray(compact.index)
        known = self._update_ratings(ids, rated, values)
        for name, updated in values.items():
            self._values[name][places] = updated
        self.before_ = known[:, :2]
        self._variances_before = known[:, 2:]
        self._latest = matches.time[-1]
        self._nu = None
        if self._likelihood() is None:
            differences = self.before_[:, 0] - self.before_[:, 1] + rated.advantage
            log_odds = self._log_odds(differences, self._variances_before)
            self._history.append((log_odds, rated.y))
        return self

    def _add_players(self, names: Iterable[Hashable]) -> None:
        """Append new players."""
        n_before = len(self._places)
        for name in names:
            self._places.setdefault(name, len(self._places))
        n_players = len(self._places)
        for name, value in self._new_player().items():
            values = self._values[name]
            if n_players > len(values):
                room = np.empty(max(n_players, 2 * len(values)), values.dtype)
                room[:n_before] = values[:n_before]
                self._values[name] = values = room
            values[n_before:n_players] = value

    @property
    def nu_(self) -> float:
        """Tie parameter of Davidson's model, for a system without a likelihood.

        It is estimated at the first access, because this needs a search over all
        matches.
        """
        check_is_fitted(self, "_places")
        if not self._history:
            raise AttributeError(
                "nu_ is not available, because the system has a likelihood, which models the ties"
            )
        if self._nu is None:
            log_odds, y = zip(*self._history, strict=True)
            self._nu = _fit_nu(np.concatenate(log_odds), np.concatenate(y))
        return self._nu

    def decision_function(self, matches: Fixtures, unseen: str = "warn") -> Floats:
        """Current rating difference of each match, first minus second, with the advantage.

        The result has shape (N,). A player without a rating has `initial`. Arguments
        and warnings are those of `predict_proba`.

        Raises
        ------
        ValueError
            If the matches are invalid, as in `fit`, or `set_params` has changed the
            likelihood since then.
        """
        return self._rating_differences(self._prepare(matches, unseen))[0]

    def _prepare(self, matches: Fixtures, unseen: str) -> Matches:
        check_is_fitted(self, "_places")
        return prepare_for_prediction(matches, self._columns, self._features, unseen)

    def _rating_differences(self, matches: Matches) -> tuple[Floats, NDArray[np.int64]]:
        """Current differences with the advantage, and the players as in `_ids`."""
        advantage = self._advantages(matches)
        incidence = _player_incidence(matches)
        self._check_likelihood()
        ids = self._ids(matches, incidence)
        ratings = self._current("ratings_", ids)
        return ratings[:, 0] - ratings[:, 1] + advantage, ids

    def predict_proba(self, matches: Fixtures, unseen: str = "warn") -> Floats:
        """Outcome probabilities of each match from the current ratings.

        The ratings are not updated from match to match. To forecast each match of a
        season from the ratings before it, use `earlier_forecasts`.

        Parameters
        ----------
        matches : Matches or DataFrame
            Matches to forecast. A DataFrame is read with the column names that
            `Matches.from_frame` got for the matches of the fit.
        unseen : "warn", "raise" or "ignore"
            Treatment of names that are not among the features of the matches of the
            fit.

        Returns
        -------
        ndarray of shape (N, 3) or (N, 2)
            Probabilities of the outcomes -1, 0, and 1; or of -1 and 1 if the likelihood
            has no ties.

        Raises
        ------
        ValueError
            In the cases of `decision_function`; if a name is new and unseen="raise".

        Warns
        -----
        UnseenWarning
            If a name is new and unseen="warn", since it may be misspelled.
        """
        prepared = self._prepare(matches, unseen)
        differences, ids = self._rating_differences(prepared)
        nu = 0.0
        if self._likelihood() is None:
            nu = self.nu_
        return self._forecasts(differences, self._variances(ids, prepared.time), nu)

    def _forecasts(self, differences: Floats, variances: Floats, nu: float) -> Floats:
        likelihood = self._likelihood()
        if likelihood is None:
            log_odds = self._log_odds(differences, variances)
            return davidson_probabilities(_davidson_difference(log_odds, nu), nu)
        return likelihood.probabilities(differences, variances.sum(axis=1))

    def predict(self, matches: Fixtures, unseen: str = "warn") -> NDArray[np.int8]:
        """The most probable outcome of each match, shape (N,).

        It is 0 if both players are equally likely to win.
        """
        forecasts = self.predict_proba(self._prepare(matches, unseen), "ignore")
        best = forecasts == forecasts.max(axis=1, keepdims=True)
        return np.sign(best @ self.classes_).astype(np.int8)

    def score(self, matches: Fixtures, y: ArrayLike, unseen: str = "warn") -> float:
        """Fraction of matches whose outcome `predict` gives."""
        prepared = self._prepare(matches, unseen)
        outcomes = given_outcomes(y, prepared)
        predicted = self.predict(prepared, "ignore")
        return 1.0 - comparison_loss(outcomes, predicted)

    def _advantages(self, matches: Matches) -> Floats:
        """Check parameters and matches; return the advantage of each first player."""
        self.check_parameters()
        check_matches(matches)
        if self.advantage == 0:
            return np.zeros(len(matches))
        expected = (
            f"0, since the matches have no feature {ADVANTAGE!r}; to add it, pass advantage='column' "
            "to Matches.from_frame"
        )
        require(ADVANTAGE in matches.features, self.advantage, "advantage", expected)
        column = matches.design[:, [matches.features.index(ADVANTAGE)]]
        return float(self.advantage) * column.toarray().ravel()

    def _ids(self, matches: Matches, incidence: Incidence) -> NDArray[np.int64]:
        """Positions in players_ of both players of each match; -1 without a rating."""
        columns, compact = incidence.compacted()
        places = np.array(
            [self._places.get(matches.features[column], -1) for column in columns]
        )
        return places[compact.index]

    def _current(self, name: str, ids: NDArray[np.int64]) -> Floats:
        """Values of an attribute for some players; the id -1 gives a new player's value."""
        values = self._values[name]
        current = np.full(ids.shape, self._new_player()[name], values.dtype)
        rated = ids >= 0
        current[rated] = values[ids[rated]]
        return current

    def _check_likelihood(self) -> None:
        """Raise ValueError if the likelihood has changed since the fit.

        Its noise is the unit of the ratings.
        """
        likelihood = self._likelihood()
        expected = (
            f"{short_repr(self._rated_by)}, as in fit; to change it, call `fit` again"
        )
        same = likelihood == self._rated_by
        require(same, likelihood, "likelihood", expected)

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is out of range."""
        check_number(self, "advantage", most=LARGEST)
        check_number(self, "initial", most=LARGEST)


def earlier_forecasts(
    system: RatingSystem, matches: Matches, y: ArrayLike, start: int
) -> Floats:
    """Forecast each match from `start` on, from all matches of earlier times.

    Use it to evaluate a rating system as in section 4 of [Maystre2019]_. If a player
    has several matches at one time, such as one day, all are forecast with the player's
    rating before the first of them. The system itself still rates them one after the
    other. With rating periods, the rating at the start of the period is used.

    Parameters
    ----------
    system : RatingSystem
        `Elo`, `Glicko`, or `TrueSkill`, whose parameters are used; it is not changed.
    matches : Matches
        All matches, including those before `start`.
    y : array-like of shape (N,)
        Outcomes, as in `fit`.
    start : int
        Row number of the first match to forecast. At least one match must be earlier.

    Returns
    -------
    probabilities : ndarray of shape (N - start, 3) or (N - start, 2)
        Probabilities of loss, tie, and win of the first player, or of loss and win if
        the likelihood has no ties. Without a likelihood, the tie parameter is estimated
        from the matches before the time of match `start`.

    Raises
    ------
    ValueError
        If `start` is out of range, and in the cases of `fit`.

    Examples
    --------
    >>> from preflearn.dynamics import Logit
    >>> from preflearn.ratings import Elo
    >>> matches = Matches([[1, -1], [1, -1], [1, -1]], [0, 1, 1], ["Ann", "Bob"])
    >>> earlier_forecasts(Elo(likelihood=Logit(), rate=0.5), matches, [1, 1, -1], start=1).round(3).tolist()
    [[0.378, 0.622], [0.378, 0.622]]
    """
    good = isinstance(system, RatingSystem)
    require(good, system, "system", "an instance of a rating system, such as Elo()")
    fitted: RatingSystem = clone(system)  # pyright: ignore[reportAssignmentType]
    fitted.fit(matches, y)
    known = n_earlier(matches, start)
    ids = fitted._ids(matches, _player_incidence(matches))
    # the first appearance of each player at each time
    firsts, which = distinct([ids.ravel(), np.repeat(matches.time, 2)])
    places = firsts[which].reshape(-1, 2)[start:]
    ratings = fitted.before_.ravel()[places]
    variances = fitted._variances_before.ravel()[places]
    differences = ratings[:, 0] - ratings[:, 1] + fitted._advantages(matches)[start:]
    nu = 0.0
    if fitted._likelihood() is None:
        log_odds, outcomes = fitted._history[0]
        nu = _fit_nu(log_odds[:known], outcomes[:known])
    return fitted._forecasts(differences, variances, nu)


def _player_incidence(matches: Matches) -> Incidence:
    """Incidence matrix over all features of the matches, including non-players."""
    return Incidence(matches.players(), len(matches.features))


def _davidson_difference(log_odds: Floats, nu: float) -> Floats:
    """D in the tie model of `RatingSystem`."""
    half = np.clip(log_odds / 2, -300, 300)  # sinh of more overflows
    return 2 * (half + np.arcsinh(nu / 2 * np.sinh(half)))


def _fit_nu(log_odds: Floats, y: NDArray[np.int8]) -> float:
    """Maximum-likelihood nu, between e^-14 and e^14; 0 without ties."""
    if y.all():
        return 0.0

    def loss(log_nu: float) -> float:
        D = _davidson_difference(log_odds, math.exp(log_nu))
        return float(davidson_loss(D, log_nu, y).value.mean())

    options = {"xatol": 1e-6}
    minimum = minimize_scalar(
        loss, bounds=_LOG_NU_BOUNDS, method="bounded", options=options
    )
    return math.exp(minimum.x)
