"""The rating systems Elo and Glicko, which update two ratings after each match.

Section 5 of [Venuto2017]_ uses both. Elo's update is a step of stochastic gradient
ascent. Let d = (ln 10 / scale) (r_first - r_second) and E = 1 / (1 + e^-d), and let s
be the score of the first (1 for a win, 1/2 for a tie, 0 for a loss). Then the
Bradley-Terry log-likelihood s log E + (1 - s) log(1 - E) has the derivative s - E in d.
The step r_first += K (s - E), r_second -= K (s - E) follows this derivative with the
step length K scale / ln 10. Counting a tie as half a win is justified, too. In
Davidson's model of ties with nu = 2, the three outcomes have the probabilities (1 -
E)², 2E(1 - E), and E². The log-likelihood of this model is twice the one above, up to a
constant. The Elo variant of [Maystre2019]_ follows the gradients of other
log-likelihoods in the same way.

References
----------
.. [Elo1978] A. E. Elo, "The Rating of Chessplayers, Past and Present", 1978.
.. [Glickman1999] M. E. Glickman, "Parameter estimation in large dynamic paired
   comparison experiments", Applied Statistics 48, 1999.
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from preflearn.core.compilation import njit
from preflearn.core.validation import LARGEST, Floats, check_number, check_real, require
from preflearn.dynamics.covariances.prior import warn_about_walks
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.dynamics.likelihoods.logit import Logit, OrdinalLogit
from preflearn.dynamics.likelihoods.normal import OrdinalProbit, Probit
from preflearn.ratings.system import GaussianRatings, RatedMatches, RatingSystem

# K in rating points for new, established, and elite players
_FIDE_FACTORS = np.array([30.0, 15.0, 10.0])
_FIDE_NEW_GAMES = 30
_FIDE_ELITE_RATING = 2400.0
# the likelihoods of a win, tie, or loss, but not those of points
_LIKELIHOODS = (Probit, Logit, OrdinalProbit, OrdinalLogit)
_Q = math.log(10) / 400
_NOISE = math.pi / math.sqrt(3) / _Q  # standard deviation of a match, in rating points


@dataclass(eq=False, repr=False)
class Elo(RatingSystem):
    """The Elo rating system [Elo1978]_, updated after each match.

    Choose it as a simple, fast, and widely known baseline. Its ratings have no
    uncertainty. `Glicko` and `TrueSkill` have one, and `DynamicComparisons` learns each
    score from all matches, which takes longer.

    After a match in which the first had the score s (1, 1/2, or 0), with h the
    advantage::

        r_first += K (s - E),   r_second -= K (s - E),   E = 1 / (1 + 10^{-(r_first - r_second + h)/scale}),

    where each player has their own K. With a likelihood, the update is that of section
    5 of [Maystre2019]_. All players have the same step length, and the scores s start
    at 0::

        s_first += rate g,   s_second -= rate g,   g = d/dd log p(y | d),   d = s_first - s_second + h.

    Parameters
    ----------
    k : "fide" or float
        K in rating points. "fide": 30 in a player's first 30 games, then 15; 10 forever
        after their rating reached 2400. These were FIDE's rules from July 2011 to June
        2014, and are the defaults of the function fide() of the R package
        PlayerRatings, which [Venuto2017]_ uses (its elo() has a single K, 27). Before
        July 2011, including the years 1999 to 2009 of the chess data, the first K was
        25; since July 2014 the three values are 40, 20, and 10.
    initial : float
        Rating of a new player. Only differences matter, except for the 2400 of "fide".
    scale : float
        Rating difference in rating points for which the odds are 10 : 1.
    advantage : float
        Value of the feature "advantage" of the matches, in rating points or in the
        unit of the scores. If the column has numbers in this unit, such as handicaps,
        the value 1 adds them unchanged, as offsets.
    likelihood : Probit, Logit, OrdinalProbit or OrdinalLogit, optional
        Likelihood of the outcomes, which is also used for the forecasts; its noise is
        the unit of the scores. If it is given, `k`, `initial`, and `scale` are not
        used, and scores start at 0.
    rate : float
        Step length with a likelihood, above 0 and at most 1. k points correspond to the
        rate k ln 10 / scale of Logit. All four likelihoods have -1 <= d²/dd² log p <=
        0. Therefore a step with a rate of at most 1 never increases the distance
        between two sets of scores, and scores grow at most linearly. With a larger
        rate, the scores of probit likelihoods could diverge.

    Attributes
    ----------
    players_ : tuple of str
        All players of the matches so far.
    ratings_ : ndarray of shape (n,)
        Ratings, or scores, after the last match.
    games_ : ndarray of int, shape (n,)
        Number of matches of each player.
    elite_ : ndarray of bool, shape (n,)
        Whether a player's rating was ever at least 2400.
    before_ : ndarray of shape (N, 2)
        Ratings of first and second before each match of the last call of `fit` or
        `partial_fit`.
    nu_ : float
        Tie parameter of the forecasts, see Notes; not available with a likelihood.

    Notes
    -----
    Without a likelihood `predict_proba` uses Davidson's model of ties, with expected
    score E. `nu_` maximizes the likelihood of all outcomes so far, given the ratings
    before each match. The forecasts have three columns; the column of ties is 0 if
    no match was a tie. With a likelihood the forecast is p(y | d), with two columns if
    the likelihood has no ties.

    Examples
    --------
    >>> from preflearn.matches import Matches
    >>> matches = Matches([[1, -1, 0], [0, 1, -1]], [0, 1], ["Ann", "Bob", "Cy"])
    >>> elo = Elo(k=32, initial=1500).fit(matches, [1, 0])
    >>> elo.players_, elo.ratings_.round(2).tolist()
    (('Ann', 'Bob', 'Cy'), [1516.0, 1484.74, 1499.26])
    >>> elo.before_.tolist()
    [[1500.0, 1500.0], [1484.0, 1500.0]]
    >>> elo = Elo(likelihood=OrdinalLogit(margin=0.5), rate=0.2).fit(matches, [1, 0])
    >>> elo.ratings_.round(4).tolist(), elo.predict_proba(matches[:1]).round(3).tolist()
    ([0.1245, -0.1128, -0.0117], [[0.324, 0.242, 0.435]])
    """

    k: Literal["fide"] | float = "fide"
    initial: float = 1200.0
    scale: float = 400.0
    advantage: float = 0.0
    likelihood: Likelihood | None = None
    rate: float = 0.2

    def check_parameters(self) -> None:
        super().check_parameters()
        self._factors()
        check_number(self, "scale", positive=True, most=LARGEST)
        expected = (
            "None, Probit(), Logit(), OrdinalProbit(margin), or OrdinalLogit(margin)"
        )
        good = self.likelihood is None or isinstance(self.likelihood, _LIKELIHOODS)
        require(good, self.likelihood, "likelihood", expected)
        check_real(self.rate, "rate", "a number above 0 and at most 1", 1 / LARGEST, 1)

    def _likelihood(self) -> Likelihood | None:
        return self.likelihood

    def _factors(self) -> Floats:
        """K of new, established, and elite players."""
        if isinstance(self.k, str) and self.k == "fide":
            return _FIDE_FACTORS
        return np.full(3, check_number(self, "k", positive=True, most=LARGEST))

    def _new_player(self) -> dict[str, float]:
        rating = 0.0
        if self.likelihood is None:
            rating = float(self.initial)
        return {"ratings_": rating, "games_": 0, "elite_": False}

    def _update_ratings(
        self,
        ids: NDArray[np.int64],
        matches: RatedMatches,
        values: dict[str, NDArray],
    ) -> Floats:
        values["elite_"] |= (
            values["ratings_"] >= _FIDE_ELITE_RATING
        )  # includes new players
        likelihood = self.likelihood or Logit()
        steps = self._factors()
        margin = -1.0
        if self.likelihood is not None:
            steps = np.full(3, float(self.rate))
            margin = likelihood.parameters[0]
        rate = math.log(10) / float(self.scale)
        log_partition = likelihood.compiled_integral(ep=True)
        players = values["ratings_"], values["games_"], values["elite_"]
        return _elo(ids, matches, players, steps, rate, log_partition, margin)

    def _log_odds(self, differences: Floats, variances: Floats) -> Floats:
        return math.log(10) / float(self.scale) * differences


@dataclass(eq=False, repr=False)
class Glicko(RatingSystem):
    """The Glicko rating system [Glickman1999]_: ratings with standard deviations.

    Choose it if you want ratings on the usual scale with an uncertainty that grows
    while a player is inactive.

    With q = ln 10 / 400 and g(v) = 1 / sqrt(1 + 3 q² v / pi²), consider a player of
    rating r and variance v who met opponents r_j, v_j with scores s_j in one rating
    period. After the period the player has::

        v' = 1 / (1/v + q² sum_j g_j² E_j (1 - E_j)),   r' = r + q v' sum_j g_j (s_j - E_j),
        E_j = 1 / (1 + 10^{-g_j (r - r_j + h) / 400}),   g_j = g(v_j),   h the advantage of this player.

    All matches of a period use the ratings at its start. Between the periods in which a
    player has matches, v grows by c² per unit of time, to at most deviation².

    Parameters
    ----------
    initial : float
        Rating of a new player. Only differences matter.
    deviation : float
        Standard deviation of a new player's rating, and its largest value, in rating
        points.
    c : float
        Growth of the uncertainty, in rating points per square root of a time unit of
        the matches; the unit does not depend on `period`. For days, the default is
        about the 15 per month of the R package PlayerRatings.
    period : float, optional
        Length of a rating period, in the time unit of the matches. Period i starts at i
        · period (for dates, counted from 1970-01-01) and ends before (i + 1) · period.
        Each call of `fit` or `partial_fit` ends its last period. None: ratings are
        updated after each match.
    advantage : float
        Value of the feature "advantage" of the matches, in rating points. If the column
        has numbers in rating points, such as handicaps, the value 1 adds them
        unchanged, as offsets.

    Attributes
    ----------
    players_ : tuple of str
        All players of the matches so far.
    ratings_, deviations_ : ndarray of shape (n,)
        Ratings and standard deviations after the period of each player's last match.
    last_ : ndarray of shape (n,)
        Time of each player's last match; with periods, the start of its period.
    before_, deviation_before_ : ndarray of shape (N, 2)
        Ratings and standard deviations of first and second, one row for each match of
        the last call of `fit` or `partial_fit`. The match was rated with these values,
        from before the match or, with rating periods, from the start of its period.
    nu_ : float
        Tie parameter of the forecasts, see Notes.

    Notes
    -----
    A forecast uses the variances of both players: E = 1 / (1 + 10^{-g(v_1 + v_2)(r_1 -
    r_2 + h)/400}). `predict_proba` uses Davidson's model of ties with this expected
    score. `nu_` maximizes the likelihood of all outcomes so far, given the ratings with
    which the matches were rated.

    Examples
    --------
    >>> from preflearn.matches import Matches
    >>> names = ["Ann", "Bob", "Cy"]
    >>> matches = Matches([[1, -1, 0], [1, 0, -1]], [0, 0], names)
    >>> glicko = Glicko(period=1).fit(matches, [1, 1])
    >>> glicko.ratings_.round(1).tolist(), glicko.deviations_.round(1).tolist()
    ([1747.2, 1337.8, 1337.8], [253.3, 290.2, 290.2])
    """

    initial: float = 1500.0
    deviation: float = 350.0
    c: float = 2.7
    period: float | None = None
    advantage: float = 0.0

    def check_parameters(self) -> None:
        super().check_parameters()
        check_number(self, "deviation", positive=True, most=LARGEST)
        check_real(self.c, "c", "a number of at least 0", 0, LARGEST)
        if self.period is not None:
            check_number(self, "period", positive=True, most=LARGEST)

    def _new_player(
        self,
    ) -> dict[
        str, float
    ]:  # inf before the first match, so that the variance does not grow
        return {
            "ratings_": float(self.initial),
            "deviations_": float(self.deviation),
            "last_": math.inf,
        }

    def _update_ratings(
        self,
        ids: NDArray[np.int64],
        matches: RatedMatches,
        values: dict[str, NDArray],
    ) -> Floats:
        starts = self._period_starts(matches.time)
        ends = np.append(starts[1:] > starts[:-1], True) | (self.period is None)
        growth = float(self.c) ** 2
        largest = float(self.deviation) ** 2
        warn_about_walks(f"c={float(self.c):g}", growth, matches.time, _NOISE)
        variances = values["deviations_"] ** 2
        players = GaussianRatings(values["ratings_"], variances, values["last_"])
        matches = matches._replace(time=starts)
        known = _glicko(ids, matches, ends, players, growth, largest)
        values["deviations_"] = np.sqrt(players.variances)
        self.deviation_before_ = np.sqrt(known[:, 2:])
        return known

    def _period_starts(self, time: Floats) -> Floats:
        """Start of the period of each time; without periods the time itself."""
        if self.period is None:
            return time
        return np.floor(time / float(self.period)) * float(self.period)

    def _variances(self, ids: NDArray[np.int64], time: Floats) -> Floats:
        variances = self._current("deviations_", ids) ** 2
        starts = self._period_starts(time)
        idle = np.maximum(starts[:, None] - self._current("last_", ids), 0)
        largest = float(self.deviation) ** 2
        return np.minimum(variances + float(self.c) ** 2 * idle, largest)

    def _log_odds(self, differences: Floats, variances: Floats) -> Floats:
        noise = np.sqrt(1 + 3 * (_Q / math.pi) ** 2 * variances.sum(axis=1))
        return _Q * differences / noise


@njit
def _elo(ids, matches, players, steps, rate, log_partition, margin):
    """Update the players in place; return both ratings before each match.

    `players` has three arrays: ratings, numbers of games, and whether a player is
    elite. The result has shape (N, 4), with variances of 0. The margin is -1 without a
    likelihood.
    """
    y = matches.y
    ratings, games, elite = players
    before = np.zeros((len(y), 4))
    for row in range(len(y)):
        first = ids[row, 0]
        second = ids[row, 1]
        before[row, 0] = ratings[first]
        before[row, 1] = ratings[second]
        difference = ratings[first] - ratings[second] + matches.advantage[row]
        if margin < 0:
            # s - E for the first
            slope = (y[row] - math.tanh(rate * difference / 2)) / 2
        else:
            _, slope, _ = log_partition(margin, 0.0, y[row], difference, 0.0)
        for side in range(2):
            player = ids[row, side]
            step = steps[1]
            if elite[player]:
                step = steps[2]
            elif games[player] < _FIDE_NEW_GAMES:
                step = steps[0]
            if side == 0:
                ratings[player] += step * slope
            else:
                ratings[player] += -step * slope
            games[player] += 1
            elite[player] |= ratings[player] >= _FIDE_ELITE_RATING
    return before


@njit
def _glicko(ids, matches, ends, players, growth, largest):
    """Update the players in place; return ratings and variances before each match.

    The result has shape (N, 4). The times of the matches are the starts of their
    periods; `ends` marks the last match of each period.
    """
    y = matches.y
    ratings = players.means
    variances = players.variances
    last = players.last
    before = np.empty((len(y), 4))
    begin = 0
    # sums over the period
    surprise = np.zeros(len(ratings))
    information = np.zeros(len(ratings))
    for row in range(len(y)):
        now = matches.time[row]
        for side in range(2):
            player = ids[row, side]
            if last[player] < now:
                grown = variances[player] + growth * (now - last[player])
                variances[player] = min(grown, largest)
            last[player] = now
            before[row, side] = ratings[player]
            before[row, 2 + side] = variances[player]
        half = _Q / 2 * (before[row, 0] - before[row, 1] + matches.advantage[row])
        for side in range(2):
            player = ids[row, side]
            sign = 1 - 2 * side
            g = 1 / math.sqrt(1 + 3 * (_Q / math.pi) ** 2 * before[row, 3 - side])
            excess = 0.5 * math.tanh(g * half)  # E - 1/2 of the first
            surprise[player] += sign * g * (0.5 * y[row] - excess)
            information[player] += g * g * (0.25 - excess * excess)
        if ends[row]:
            for match in range(begin, row + 1):
                # a second visit of a player changes nothing: the sums are 0 by then
                for player in ids[match]:
                    precision = 1 / variances[player] + _Q * _Q * information[player]
                    variances[player] = 1 / precision
                    ratings[player] += _Q * variances[player] * surprise[player]
                    surprise[player] = information[player] = 0.0
            begin = row + 1
    return before
