"""What rating systems share: the players, their ratings, and forecasts that allow for
ties.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
.. [Davidson1970] R. R. Davidson, "On extending the Bradley-Terry model to accommodate
   ties in paired comparison experiments", JASA 65, 1970.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from preflearn.core.outcome_losses import davidson_loss, davidson_probabilities
from preflearn.core.validation import (
    LARGEST,
    Floats,
    PerMatch,
    check_labels,
    check_number,
    check_real,
    check_weights,
    raise_if_any,
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
    normalize_names,
    prepare_for_prediction,
    warn_unknown_names,
)
from preflearn.metrics import comparison_loss
from preflearn.pairs import Incidence

_LOG_NU = -14.0, 14.0  # up to nu = 1.2e6, where all matches are ties
# of matches: advantage, y, weight, time
Told = tuple[Floats, NDArray[np.int8], Floats, Floats]
_MOST_TIMES = 1000.0  # that a match is rated


class RatingSystem(ClassifierMixin, BaseEstimator):
    """What rating systems share: players, their ratings, and forecasts with ties.

    A system with a likelihood forecasts by this likelihood: three columns, or two where
    it has no ties.

    Others forecast an expected score E = 1 / (1 + e^-d), not the probability of a tie.
    Their forecast, which always has three columns, is the model of [Davidson1970]_ that
    has this expected score::

        P(first) : P(tie) : P(second) = e^{D/2} : nu : e^{-D/2},   D = d + 2 asinh(nu/2 sinh(d/2)),

    and nu >= 0 maximises the likelihood of the outcomes of the fit, given the ratings
    before each. D solves P(first) + P(tie)/2 = E: put e^{D/2} = e^{d/2} z, and it reads
    z - 1/z = nu sinh(d/2). Without ties nu = 0 and D = d. At nu = 2 it is D = 2d, two
    games of half the weight: E², 2E(1-E), (1-E)².
    """

    advantage: float
    initial: float | Mapping[Hashable, float]

    players_: tuple[Hashable, ...]
    ratings_: Floats
    before_: Floats
    games_: NDArray[np.int64]  # of Elo, as the next one
    elite_: NDArray[np.bool_]
    deviations_: Floats  # of systems that know how sure they are, as the next two
    deviation_before_: Floats
    last_: Floats

    @property
    def classes_(self) -> Floats:
        """The outcomes that forecasts have columns for; of floats, as in
        ComparisonEstimator."""
        likelihood = self._likelihood()
        ties = likelihood is None or likelihood.has_ties
        return np.array([-1.0, 0.0, 1.0] if ties else [-1.0, 1.0])

    def _likelihood(self) -> Likelihood | None:
        """That of the outcomes; None for the model of ties by Davidson, with `nu_`."""
        return None

    def _newcomer(self) -> dict[str, float]:
        """The fitted attributes with one value a player, and what they are for one who
        has not played."""
        raise NotImplementedError

    def _usual(self) -> float:
        """The rating of newcomers whom `initial` does not name."""
        return float(
            type(self).initial if isinstance(self.initial, Mapping) else self.initial
        )  # pyright: ignore[reportArgumentType]

    def _starts(self, names: Iterable[Hashable]) -> Floats:
        """The ratings of newcomers."""
        own = normalize_names(self.initial) if isinstance(self.initial, Mapping) else {}
        usual = self._newcomer()["ratings_"]
        return np.array([float(own.get(name, usual)) for name in names])

    def _rate(self, ids: NDArray[np.int64], told: Told) -> Floats:
        """Move the players' values match by match; what both had before: ratings and
        variances, (N, 4)."""
        raise NotImplementedError

    def _variances(self, ids: NDArray[np.int64], time: Floats) -> Floats:
        """Of the present ratings of both players, at the time of each match, shape (N,
        2)."""
        return np.zeros(ids.shape)

    def _log_odds(self, differences: Floats, variances: Floats) -> Floats:
        """The log-odds d, where there is no likelihood."""
        raise NotImplementedError

    def fit(
        self, matches: Matches, y: ArrayLike, sample_weight: PerMatch = None
    ) -> Self:
        """Rate all players from the start: everyone begins at `initial`.

        Parameters
        ----------
        matches : Matches
            Of two players each. Matches at the same time count in the order of rows.
        y : array-like of shape (N,)
            +1 first won, 0 tie, -1 second won; no ties where the likelihood has none.
            Or 1, 1/2 and 0.
        sample_weight : array-like of shape (N,), optional
            How often a match counts, from 0 to 1000. `Elo` and `TrueSkill` rate it so
            often, one time after the other, the last time in part, which makes a part
            of the step; by `Glicko` all count at once, as in one rating period. The
            notes on each say where this is the same as rows that are repeated.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            On parameters out of range, other labels, line-ups instead of players, no
            match, or an advantage where the matches have no feature "advantage".

        Warns
        -----
        OutcomeWarning
            If outcomes are only 1 and 0, or 1, 1/2 and 0, and those of the frame were
            others.
        TimeWarning
            If a rate by the unit of time is absurd for the span of the matches.
        UnseenWarning
            If `initial` names who is no player of the matches.
        """
        added = self._checked(matches, y, sample_weight)
        self._rated_by = self._likelihood()
        self.players_ = ()
        self._places: dict[Hashable, int] = {}  # of the players, in players_
        for name, value in self._newcomer().items():
            setattr(self, name, np.empty(0, dtype=type(value)))
        # Of each call: log-odds before the matches, y, weights.
        self._told: list[tuple[Floats, NDArray[np.int8], Floats]] = []
        self._latest = -math.inf
        self._features = set[Hashable]()
        self._columns = None
        if isinstance(self.initial, Mapping):
            warn_unknown_names("initial", self.initial, matches.features)
        return self._add(matches, *added)

    def partial_fit(
        self, matches: Matches, y: ArrayLike, sample_weight: PerMatch = None
    ) -> Self:
        """Add matches that are not earlier than those before, without rating these
        again.

        Parameters, results and errors as in `fit`; players may be new. It raises
        ValueError also where the first of these matches is earlier than the last one so
        far, only one of both was read from dates, or the likelihood is another since
        then.
        """
        if not hasattr(self, "players_"):
            return self.fit(matches, y, sample_weight)
        added = self._checked(matches, y, sample_weight)
        self._check_unit()
        check_clock(matches.columns, self._columns)
        first = float(matches.time[0])
        expected = f"at least {self._latest:g}, that of the last one so far"
        require(first >= self._latest, first, "the time of the first match", expected)
        return self._add(matches, *added)

    def _checked(
        self, matches: Matches, y: ArrayLike, sample_weight: PerMatch
    ) -> tuple[Incidence, Told]:
        """Who plays, and what is told of it: all that can be wrong with matches."""
        boost = self._boost(matches)
        playing = _playing(matches)
        weights = check_weights(sample_weight, len(matches))
        raise_if_any(
            weights > _MOST_TIMES,
            weights,
            "sample_weight",
            f"weights from 0 to {_MOST_TIMES:g}",
        )
        y = given_outcomes(y, matches)
        if (likelihood := self._likelihood()) is not None:
            likelihood.check(y, len(matches))  # it says which outcomes it has
        labels = check_labels(
            y, len(matches), tuple(self.classes_.astype(int).tolist())
        )
        return playing, (boost, labels, weights, matches.time)

    def _add(self, matches: Matches, playing: Incidence, told: Told) -> Self:
        boost, y, weights, _ = told
        self._features |= set(matches.features)
        self._columns = matches.columns or self._columns
        names = (matches.features[column] for column in playing.occurring())
        newcomers = [name for name in names if name not in self._places]
        self._places |= {name: k for k, name in enumerate(newcomers, len(self._places))}
        self.players_ += tuple(newcomers)
        # always new arrays: the loops below work in place
        for name, value in self._newcomer().items():
            setattr(
                self,
                name,
                np.append(getattr(self, name), np.full(len(newcomers), value)),
            )
        self.ratings_[len(self.ratings_) - len(newcomers) :] = self._starts(newcomers)
        known = self._rate(self._ids(matches, playing), told)
        self.before_ = known[:, :2]
        self._variances_before = known[:, 2:]
        self._latest = matches.time[-1]
        self._nu = None
        if self._likelihood() is None:
            differences = self.before_[:, 0] - self.before_[:, 1] + boost
            self._told.append(
                (self._log_odds(differences, self._variances_before), y, weights)
            )
        return self

    @property
    def nu_(self) -> float:
        """The tie parameter, which is found when it is asked for, since each search
        goes over all matches."""
        check_is_fitted(self, "players_")
        if not self._told:
            raise AttributeError(
                "ties are a matter of the likelihood; nu_ is for forecasts without one"
            )
        if self._nu is None:
            self._nu = _fit_nu(*map(np.concatenate, zip(*self._told, strict=True)))
        return self._nu

    def decision_function(self, matches: Fixtures, unseen: str = "warn") -> Floats:
        """The present difference of ratings, first - second with the advantage, shape
        (N,).

        A player without a rating has `initial`. Arguments and warnings as of
        `predict_proba`.

        Raises
        ------
        ValueError
            On bad matches, as in `fit`, or where `set_params` changed the likelihood
            since then.
        """
        return self._present_differences(self._asked(matches, unseen))[0]

    def _asked(self, matches: Fixtures, unseen: str) -> Matches:
        check_is_fitted(self, "players_")
        return prepare_for_prediction(matches, self._columns, self._features, unseen)

    def _present_differences(
        self, matches: Matches
    ) -> tuple[Floats, NDArray[np.int64]]:
        """And the players, as `_ids`."""
        boost = self._boost(matches)
        playing = _playing(matches)
        self._check_unit()
        ids = self._ids(matches, playing)
        ratings = self._present("ratings_", ids)
        ratings[ids < 0] = self._starts(
            matches.features[k] for k in playing.index[ids < 0]
        )
        return ratings[:, 0] - ratings[:, 1] + boost, ids

    def predict_proba(self, matches: Fixtures, unseen: str = "warn") -> Floats:
        """Probabilities of the outcomes -1, 0, 1 by the present ratings, shape (N, 3).

        Of the outcomes -1, 1, shape (N, 2), where the likelihood has no ties. Nothing
        is learned from one match for the next: to forecast a season from all that is
        known each day, use `earlier_forecasts`.

        Parameters
        ----------
        matches : Matches or DataFrame
            A frame is read by the columns that `Matches.from_frame` was given for the
            matches before.
        unseen : "warn", "raise" or "ignore"
            What to do about names that were not among the features of the matches
            before.

        Raises
        ------
        ValueError
            As `decision_function`; with unseen="raise", where a name is new.

        Warns
        -----
        UnseenWarning
            With unseen="warn", where a name is new: it may be misspelt.
        """
        asked = self._asked(matches, unseen)
        differences, ids = self._present_differences(asked)
        nu = self.nu_ if self._likelihood() is None else 0.0
        return self._forecasts(differences, self._variances(ids, asked.time), nu)

    def _forecasts(self, differences: Floats, variances: Floats, nu: float) -> Floats:
        likelihood = self._likelihood()
        if likelihood is None:
            return davidson_probabilities(
                _davidson_difference(self._log_odds(differences, variances), nu), nu
            )
        return likelihood.probabilities(differences, variances.sum(axis=1))

    def predict(self, matches: Fixtures, unseen: str = "warn") -> NDArray[np.int8]:
        """The most probable outcome of each match, shape (N,); 0 where both players are
        equally likely."""
        forecasts = self.predict_proba(self._asked(matches, unseen), "ignore")
        best = forecasts == forecasts.max(axis=1, keepdims=True)
        return np.sign(best @ self.classes_).astype(np.int8)

    def score(
        self,
        matches: Fixtures,
        y: ArrayLike,
        sample_weight: PerMatch = None,
        unseen: str = "warn",
    ) -> float:
        """The weighted share of matches whose outcome is the one of `predict`;
        ValueError as there."""
        asked = self._asked(matches, unseen)
        return 1.0 - comparison_loss(
            given_outcomes(y, asked), self.predict(asked, "ignore"), sample_weight
        )

    def _boost(self, matches: Matches) -> Floats:
        """The advantage of the first, in rating points, after a check of parameters and
        matches."""
        self.check_parameters()
        check_matches(matches)
        if self.advantage == 0:
            return np.zeros(len(matches))
        expected = f"0 where the matches have no feature {ADVANTAGE!r}: name its column in Matches.from_frame"
        require(ADVANTAGE in matches.features, self.advantage, "advantage", expected)
        column = matches.design[:, [matches.features.index(ADVANTAGE)]]
        return float(self.advantage) * column.toarray().ravel()

    def _ids(self, matches: Matches, playing: Incidence) -> NDArray[np.int64]:
        """Positions in players_ of both players of each match; -1 for those without a
        rating."""
        columns, compact = playing.compacted()
        places = np.array(
            [self._places.get(matches.features[column], -1) for column in columns]
        )
        return places[compact.index]

    def _present(self, name: str, ids: NDArray[np.int64]) -> Floats:
        """An attribute of players, that of a newcomer at -1."""
        return np.append(getattr(self, name), self._newcomer()[name])[ids]

    def _check_unit(self) -> None:
        """The likelihood is the unit of the ratings: those of another one mean
        something else."""
        expected = f"{short_repr(self._rated_by)}, which the ratings were fitted with; or call `fit` again"
        require(
            self._likelihood() == self._rated_by,
            self._likelihood(),
            "the likelihood",
            expected,
        )

    def check_parameters(self) -> None:
        """Raise ValueError unless all are in their range."""
        check_number(self, "advantage", most=LARGEST)
        own = self.initial if isinstance(self.initial, Mapping) else {}
        for name, value in own.items():
            check_real(
                value, f"initial[{short_repr(name)}]", "a number", -LARGEST, LARGEST
            )
        if not isinstance(self.initial, Mapping):
            check_number(self, "initial", most=LARGEST)


def earlier_forecasts(
    system: RatingSystem,
    matches: Matches,
    y: ArrayLike,
    start: int,
    *,
    sample_weight: PerMatch = None,
) -> Floats:
    """Forecast each match from `start` on from all matches of earlier times (section 4
    of [Maystre2019]_).

    Where a player has several matches at one time, as on one day, all are forecast by
    the rating that he had before the first of them; the system itself still rates them
    one after the other. With rating periods, it is the rating at the start of the
    period.

    Parameters
    ----------
    system : RatingSystem
        `Elo`, `Glicko` or `TrueSkill`: its parameters say how it rates; it is not
        changed.
    matches : Matches
    y : array-like of shape (N,)
        Their outcomes, as in `fit`.
    start : int
        The first match that is forecast. Some match must be earlier.
    sample_weight : array-like of shape (N,), optional
        As in `fit`.

    Returns
    -------
    probabilities : ndarray of shape (N - start, 3) or (N - start, 2)
        Of loss, tie and win of the first, or of loss and win where the likelihood has
        no ties. Without a likelihood, the parameter of ties is that of the matches
        before the time of match `start`.

    Raises
    ------
    ValueError
        On a start out of range, and as `fit`.

    Examples
    --------
    >>> from preflearn.dynamics import Logit
    >>> from preflearn.ratings import Elo
    >>> matches = Matches([[1, -1], [1, -1], [1, -1]], [0, 1, 1], ["Ann", "Bob"])
    >>> earlier_forecasts(Elo(likelihood=Logit(), rate=0.5), matches, [1, 1, -1], start=1).round(3).tolist()
    [[0.378, 0.622], [0.378, 0.622]]
    """
    require(
        isinstance(system, RatingSystem),
        system,
        "system",
        "a rating system, such as Elo()",
    )
    fitted: RatingSystem = clone(system)  # pyright: ignore[reportAssignmentType]
    fitted.fit(matches, y, sample_weight)
    known = n_earlier(matches, start)
    ids = fitted._ids(matches, _playing(matches))
    # appearances of a player at a time
    firsts, which = distinct([ids.ravel(), np.repeat(matches.time, 2)])
    places = firsts[which].reshape(-1, 2)[start:]
    ratings = fitted.before_.ravel()[places]
    differences = ratings[:, 0] - ratings[:, 1] + fitted._boost(matches)[start:]
    nu = 0.0
    if fitted._likelihood() is None:
        log_odds, outcomes, weights = fitted._told[0]
        nu = _fit_nu(log_odds[:known], outcomes[:known], weights[:known])
    return fitted._forecasts(differences, fitted._variances_before.ravel()[places], nu)


def _playing(matches: Matches) -> Incidence:
    """B over the features of the matches, of which most may be no players."""
    return Incidence(matches.players(), len(matches.features))


def _davidson_difference(log_odds: Floats, nu: float) -> Floats:
    """D of the tie model of `RatingSystem`."""
    half = np.clip(log_odds / 2, -300, 300)  # sinh of more overflows
    return 2 * (half + np.arcsinh(nu / 2 * np.sinh(half)))


def _fit_nu(log_odds: Floats, y: NDArray[np.int8], weights: Floats) -> float:
    """The most likely nu, from e^-14 to e^14; 0 if there is no tie."""
    if not (weights[y == 0] > 0).any():
        return 0.0

    def loss(log_nu: float) -> float:
        losses = davidson_loss(
            _davidson_difference(log_odds, math.exp(log_nu)), log_nu, y
        ).value
        return float(np.average(losses, weights=weights))

    return math.exp(
        minimize_scalar(
            loss, bounds=_LOG_NU, method="bounded", options={"xatol": 1e-6}
        ).x
    )
