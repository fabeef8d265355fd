"""EP and reverse-KL: the update of all pseudo-observations (Algorithm 1 of [Maystre2019]_).

A match has the outcome y, whose likelihood depends on z = x·s, a sum over its features m. To each of them the
match is a pseudo-observation exp(alpha s_m - beta s_m²/2). With the mean c_m and variance v_m of the score,

    EP (3.1.1)           alpha = (x_m d1 - c_m x_m² d2) / D,  beta = -x_m² d2 / D,   D = 1 + v_m x_m² d2,
    reverse-KL (3.1.2)   alpha =  x_m d1 - c_m x_m² d2,       beta = -x_m² d2,

where EP leaves the match's own pseudo-observation out of c_m and v_m (the cavity), and d1, d2 are derivatives
in the mean of z: of log E p(y | z) for EP, of E log p(y | z) for reverse-KL. They are derived in chapter 13.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from preflearn.checks import Floats
from preflearn.dynamics.engine.schedule import Schedule, aligned
from preflearn.dynamics.engine.smoother import smooth
from preflearn.dynamics.engine.threads import Team, njit_free
from preflearn.dynamics.likelihoods.likelihood import Likelihood

_LARGE = 1e200


class Update(NamedTuple):
    """What one evaluation of the update map tells.

    Attributes
    ----------
    evidence : float
        Of the pseudo-observations that went in: EP's estimate of the log marginal likelihood of the
        outcomes, or the lower bound on it that reverse-KL maximises.
    residual : float
        The largest change of a pseudo-observation, in units of the posterior standard deviation sd of the
        score: sd \\|change of alpha\\|, or sd² \\|change of beta\\|.
    """

    evidence: float
    residual: float


class UpdateMap:
    """The map of Algorithm 1, from all pseudo-observations to all, without damping.

    Parameters
    ----------
    schedule : Schedule
    likelihood : Likelihood
    outcomes : ndarray of shape (N,)
        In the caller's order of matches.
    ep : bool
        EP, else reverse-KL.
    team : Team
        Who shares the work.

    Attributes
    ----------
    entries : ndarray of shape (E, 4)
        alpha and beta, which the caller sets; mean and variance by the last evaluation: of the cavity for
        EP, of the posterior for reverse-KL.
    updated : ndarray of shape (E, 2)
        alpha and beta by the last evaluation.
    outcomes : ndarray of shape (N,)
        In the schedule's order of matches.
    likelihood : (law, float, float)
        Its compiled law and its parameters.
    """

    def __init__(
        self, schedule: Schedule, likelihood: Likelihood, outcomes: Floats, *, ep: bool, team: Team
    ) -> None:
        self.schedule, self.ep, self.team = schedule, ep, team
        self.entries = aligned(len(schedule.coefficients), 4)
        self.updated = np.empty((len(schedule.coefficients), 2))
        self.outcomes = outcomes[schedule.order]
        self.likelihood = (likelihood.law(ep), *map(float, likelihood.parameters))

    def evaluate(self) -> Update:
        """One smoothing of all features, then one update of all matches."""
        return Update(self.smooth() + (found := self._match_all())[0], found[1])

    def smooth(self, cavity: bool | None = None) -> float:
        """Means and variances by the present pseudo-observations; returns the sum of the features' log Z~."""
        cavity = self.ep if cavity is None else cavity
        # The most frequent features, which are the last, first: nobody waits for the longest part at the end.
        work = [(group, part) for group in self.schedule.groups for part in reversed(group.chunks)]

        def one(task: Any) -> float:
            group, part = task
            return smooth(group.size, self.entries, self.schedule.visits, group.model, part, cavity=cavity)

        return _sum(self.team.share(one, work))

    def _match_all(self) -> tuple[float, float]:
        schedule = self.schedule

        def one(part: slice) -> tuple[float, float]:
            return update_part(
                self.ep, *self.likelihood, self.outcomes, schedule.rows, schedule.coefficients,
                self.entries, self.updated, part.start, part.stop,
            )  # fmt: skip

        found = self.team.share(one, schedule.chunks)
        return _sum([part[0] for part in found]), max(part[1] for part in found)


def _sum(parts: list[float]) -> float:
    """Without rounding, in any order; infinite where it overflows, which the caller looks for."""
    try:
        return math.fsum(parts)
    except (OverflowError, ValueError):  # beyond the largest number, or infinities of both signs
        return math.inf


@njit_free
def update_part(ep, law, a, b, outcomes, rows, coefficients, entries, updated, begin, end):
    """Update the entries of matches begin..end; their part of the evidence, and the largest change."""
    total, product, worst = 0.0, 1.0, 0.0
    for n in range(begin, end):
        mean, variance = 0.0, 0.0
        for e in range(rows[n], rows[n + 1]):
            x = coefficients[e]
            mean += x * entries[e, 2]
            variance += x * x * entries[e, 3]
        value, d1, d2 = law(a, b, outcomes[n], mean, variance)
        total += value
        for e in range(rows[n], rows[n + 1]):
            alpha, beta, c, v = entries[e, 0], entries[e, 1], entries[e, 2], entries[e, 3]
            x = coefficients[e]
            slope, bend = x * d1, x * x * d2
            new_alpha, new_beta = slope - c * bend, -bend
            if ep:  # the cavity's integral of the present pseudo-observation is taken out of the evidence
                spread, scale = 1.0 + beta * v, 1.0 / (1.0 + v * bend)
                rest = 1.0 / spread
                total -= 0.5 * rest * (alpha * (alpha * v + 2.0 * c) - beta * c * c)
                product *= spread
                new_alpha, new_beta, v = new_alpha * scale, new_beta * scale, v * rest
            else:
                total -= alpha * c - 0.5 * beta * (v + c * c)
            updated[e, 0], updated[e, 1] = new_alpha, new_beta
            moved, turned = new_alpha - alpha, v * (new_beta - beta)
            change = max(v * moved * moved, turned * turned) + 0.0 * (new_alpha + new_beta)
            if not change <= worst:  # NaN where one of them is no number
                worst = change if change > worst else math.inf
        if product > _LARGE:
            total += 0.5 * math.log(product)
            product = 1.0
    return total + 0.5 * math.log(product), math.sqrt(worst)
