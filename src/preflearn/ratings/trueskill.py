"""TrueSkill: one pass of assumed-density filtering over the matches.

The model is that of [Herbrich2006]_. Skills change like Brownian motions. A player's
skill is normal, with a mean and a variance, and the skills of different players are
treated as independent. With u = s_first - s_second ~ N(c, v), v the sum of both
variances, and log Z = log E p(y | u), the moments of the skills given the outcome
follow from two derivatives of log Z in c::

    mean_first += v_first Z',   mean_second -= v_second Z',   v_i += v_i² Z''.

The normal distributions with these moments replace the exact ones. Expectation
propagation for the same model starts with this pass, and then makes further passes in
both directions.

References
----------
.. [Herbrich2006] R. Herbrich, T. Minka, T. Graepel, "TrueSkill: a Bayesian skill rating
  system", NIPS 2006.
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from preflearn.core.compilation import njit
from preflearn.core.validation import (
    LARGEST,
    Floats,
    check_choice,
    check_number,
    check_real,
)
from preflearn.dynamics.covariances.prior import warn_about_walks
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.dynamics.likelihoods.normal import OrdinalProbit, Probit
from preflearn.ratings.system import GaussianRatings, RatedMatches, RatingSystem


@dataclass(eq=False, repr=False)
class TrueSkill(RatingSystem):
    """The TrueSkill rating system for two players: skills with standard deviations.

    Choose it if you want a fast rating system with uncertainty and a model of ties. The
    system was proposed in [Herbrich2006]_ and is a baseline of [Maystre2019]_ (section
    4.1 and eq. 9).

    The skill of a player is N(0, variance) at the player's first match. Before each
    later match, an independent draw from N(0, dynamics · elapsed) is added to it, where
    elapsed is 1 or the time since the player's last match. With d the skill difference
    and h the advantage::

        P(first wins) = Phi(d + h - margin),   P(second wins) = Phi(-d - h - margin),   else a tie.

    The unit of the skills is the standard deviation of the noise in a match (of the
    difference, not of one player), as for the likelihoods `Probit` and `OrdinalProbit`.

    Parameters
    ----------
    variance : float
        Variance of the skill of a new player.
    dynamics : float
        Variance that is added per match, or per time unit of the matches.
    step : "match" or "time"
        Unit of `dynamics`. "time" filters the Wiener process that starts with
        `variance` at each player's first match, ``Constant(variance) + Wiener(dynamics,
        origin="first")``.
    margin : float
        Half the width of the interval of ties, in the unit of the skills; 0 for no
        ties.
    advantage : float
        Value of the feature "advantage" of the matches, in the unit of the skills. If
        the column has numbers in this unit, such as handicaps, the value 1 adds them
        unchanged, as offsets.
    initial : float
        Mean skill of a new player. Only differences matter.

    Attributes
    ----------
    players_ : tuple of str
        All players of the matches so far.
    ratings_, deviations_ : ndarray of shape (n,)
        Means and standard deviations of the skills after each player's last match.
    last_ : ndarray of shape (n,)
        Time of each player's last match.
    before_, deviation_before_ : ndarray of shape (N, 2)
        Means and standard deviations of first and second before each match of the last
        call of `fit` or `partial_fit`, including what `dynamics` added for the match.

    Notes
    -----
    In [Herbrich2006]_ a player's performance has the variance beta². The noise of the
    difference is then sqrt(2) beta, and a tie is a difference of performances within
    epsilon. The parameters sigma, tau, and epsilon of the paper correspond to the
    variance sigma² / (2 beta²), the dynamics tau² / (2 beta²), and the margin epsilon /
    (sqrt(2) beta). The usual values sigma = 25/3, beta = sigma / 2, and tau = sigma /
    100 are a variance of 2 and dynamics of 0.0002. The paper adds tau² before a
    player's first match, too.

    A forecast includes what `dynamics` adds until the match. Forecasts have two columns
    if the margin is 0, else three.

    Examples
    --------
    >>> from preflearn.matches import Matches
    >>> matches = Matches([[1, -1, 0], [0, 1, -1]], [0, 1], ["Ann", "Bob", "Cy"])
    >>> system = TrueSkill(variance=1.0, dynamics=0.01).fit(matches, [1, 1])
    >>> system.players_, system.ratings_.round(3).tolist(), system.deviations_.round(3).tolist()
    (('Ann', 'Bob', 'Cy'), [0.461, 0.007, -0.587], [0.888, 0.8, 0.867])
    >>> system.predict_proba(matches[:1]).round(3).tolist()
    [[0.386, 0.614]]
    """

    variance: float = 1.0
    dynamics: float = 0.001
    step: Literal["match", "time"] = "match"
    margin: float = 0.0
    advantage: float = 0.0
    initial: float = 0.0

    def check_parameters(self) -> None:
        super().check_parameters()
        check_number(self, "variance", positive=True, most=LARGEST)
        check_real(self.dynamics, "dynamics", "a number of at least 0", 0, LARGEST)
        check_choice(self.step, "step", ("match", "time"))
        check_real(self.margin, "margin", "a number of at least 0", 0, LARGEST)

    def _likelihood(self) -> Likelihood:
        if self.margin > 0:
            return OrdinalProbit(float(self.margin))
        return Probit()

    def _new_player(
        self,
    ) -> dict[
        str, float
    ]:  # inf before the first match, so that the variance does not grow
        return {
            "ratings_": float(self.initial),
            "deviations_": math.sqrt(self.variance),
            "last_": math.inf,
        }

    def _update_ratings(
        self,
        ids: NDArray[np.int64],
        matches: RatedMatches,
        values: dict[str, NDArray],
    ) -> Floats:
        likelihood = self._likelihood()
        log_partition = likelihood.compiled_integral(ep=True)
        margin = likelihood.parameters[0]
        dynamics = float(self.dynamics)
        by_match = self.step == "match"
        if not by_match:
            warn_about_walks(f"dynamics={dynamics:g}", dynamics, matches.time, 1.0)
        variances = values["deviations_"] ** 2
        players = GaussianRatings(values["ratings_"], variances, values["last_"])
        known = _trueskill(
            ids, matches, players, log_partition, margin, dynamics, by_match
        )
        values["deviations_"] = np.sqrt(players.variances)
        self.deviation_before_ = np.sqrt(known[:, 2:])
        return known

    def _variances(self, ids: NDArray[np.int64], time: Floats) -> Floats:
        last = self._current("last_", ids)
        if self.step == "match":
            elapsed = np.isfinite(last)
        else:
            elapsed = np.maximum(time[:, None] - last, 0)
        return self._current("deviations_", ids) ** 2 + float(self.dynamics) * elapsed


@njit
def _trueskill(ids, matches, players, log_partition, margin, dynamics, by_match):
    """Update the players in place; return means and variances before each match.

    The result has shape (N, 4).
    """
    y = matches.y
    time = matches.time
    means = players.means
    variances = players.variances
    last = players.last
    before = np.empty((len(y), 4))
    for row in range(len(y)):
        for side in range(2):
            player = ids[row, side]
            if last[player] < math.inf:
                elapsed = 1.0
                if not by_match:
                    elapsed = time[row] - last[player]
                variances[player] += dynamics * elapsed
            last[player] = time[row]
            before[row, side] = means[player]
            before[row, 2 + side] = variances[player]
        first = ids[row, 0]
        second = ids[row, 1]
        center = means[first] - means[second] + matches.advantage[row]
        variance = variances[first] + variances[second]
        _, slope, bend = log_partition(margin, 0.0, y[row], center, variance)
        for side in range(2):
            player = ids[row, side]
            variance = variances[player]
            means[player] += (1 - 2 * side) * variance * slope
            variances[player] = variance * (1 + variance * bend)
    return before
