"""EP and reverse-KL: Algorithm 1 of [Maystre2019]_, which sweeps over features and
matches to a fixed point.

A match has the outcome y, whose likelihood depends on z = x·s, a sum over its features
m. To each of them the match is a pseudo-observation exp(alpha s_m - beta s_m²/2). With
the mean c_m and variance v_m of the score,

    EP (3.1.1)           alpha = (x_m d1 - c_m x_m² d2) / D,  beta = -x_m² d2 / D,   D = 1 + v_m x_m² d2,
    reverse-KL (3.1.2)   alpha =  x_m d1 - c_m x_m² d2,       beta = -x_m² d2,

where EP leaves the match's own pseudo-observation out of c_m and v_m (the cavity), and
d1, d2 are derivatives in the mean of z: of log E p(y | z) for EP, of E log p(y | z) for
reverse-KL. They are derived in chapter 13.

A match of weight w counts as w of them, whole or not: its likelihood is p^w. Reverse-KL
multiplies d1 and d2. EP leaves the w-th part of the pseudo-observation out, and takes w
times what it finds, power EP [Minka2004]_ with the power 1/w: so a match of weight 2 is
two matches to the last digit, as they are at the fixed point.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
.. [Minka2004] T. Minka, "Power EP", Microsoft Research technical report
  MSR-TR-2004-149, 2004.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.validation import Floats, require
from preflearn.dynamics.engine.schedule import Schedule
from preflearn.dynamics.engine.threads import (
    ParallelMap,
    balanced_slices,
    njit_nogil,
    njit_nogil_inner,
)
from preflearn.dynamics.likelihoods.likelihood import Likelihood

_LARGE = 1e200
# deviations of noise: a variance of 1e14 is rounded by hundredths, where that of noise
# is 1
_WIDEST = 1e7
_FARTHEST = 20.0  # of log beta, in one step
_NONE = np.zeros(0)
_NOWHERE = np.zeros((0, 0), dtype=np.float32)


class Update(NamedTuple):
    """What one sweep tells.

    Attributes
    ----------
    evidence : float
        Of the pseudo-observations that went in: EP's estimate of the log marginal
        likelihood of the outcomes, or the lower bound on it that reverse-KL maximises.
    residual : float
        The largest change of a pseudo-observation, in units of the posterior standard
        deviation sd of the score: sd \\|change of alpha\\|, or sd² \\|change of
        beta\\|.
    """

    evidence: float
    residual: float


TRACE = ("residual", "evidence", "rate", "accepted")  # what is noted of a sweep
Noted = tuple[float, float, float, bool]


def fixed_point(
    sweep: Sweep, step: Plain, *, tol: float, max_iter: int
) -> tuple[list[Noted], bool]:
    """Algorithm 1, from the pseudo-observations that `sweep.entries` holds.

    Lines 2 and 3: pseudo-observations of zero leave the prior, so the loop begins with
    lines 9 and 10.

    Parameters
    ----------
    sweep : Sweep
    step : Plain
        How pseudo-observations move after a sweep; or a `Mixing`.
    tol : float
        Of the residual of `Update`.
    max_iter : int
        Sweeps.

    Returns
    -------
    trace : list of tuple
        Of each sweep: residual and evidence, as of `Update`, the rate of the step that
        was made after it, and whether it was accepted; if not, the step before it was
        taken back.
    converged : bool
        Whether the residual of the last sweep is at most tol. `entries` are those of
        the last sweep that was accepted.
    """
    trace = list[Noted]()
    good = False
    for iteration in range(max_iter):
        log_z = sweep.features()  # lines 9 and 10 of Algorithm 1
        if iteration == 0:
            sweep.check_deviations()
        found = sweep.matches(log_z)  # lines 5 to 8
        good = step.accepts(found)
        expected = "one of moderate size: a prior variance at which outcomes of this size occur"
        require(
            good or iteration > 0,
            found.evidence,
            "log p before anything is learned",
            expected,
        )
        trace.append((found.residual, found.evidence, step.rate, good))
        if good and found.residual <= tol:
            return trace, True
        if iteration < max_iter - 1:
            step.advance() if good else step.retreat()
    if not good:
        step.restore()
    return trace, False


class Sweep:
    """The map of Algorithm 1, from all pseudo-observations to all, without damping.

    Parameters
    ----------
    schedule : Schedule
    likelihood : Likelihood
    played : ndarray of shape (N, 3)
        Of each match its outcome, its weight, and what is known of the difference of
        scores besides, in the caller's order.
    ep : bool
        EP, else reverse-KL.
    share : callable
        As of `team`, who share the work.

    Attributes
    ----------
    entries : ndarray of shape (E, 4)
        alpha and beta, zeros unless the caller sets others, changed by `move`; mean and
        variance by the last call of `features`: of the cavity for EP, of the posterior
        for reverse-KL.
    updated : ndarray of shape (E, 2)
        alpha and beta by the last call of `matches`, undefined before it.
    played : ndarray of shape (N, 3)
        In the schedule's order of matches.
    law : (function, float, float)
        The likelihood's compiled law for this method, and its parameters.
    calm : float
        A rate that is small enough for a Gaussian likelihood (chapter 13): 2 by the
        most features of a match.
    parts : list of slice
        The entries, in parts of about equal work.
    """

    def __init__(
        self,
        schedule: Schedule,
        likelihood: Likelihood,
        played: Floats,
        *,
        ep: bool,
        share: ParallelMap,
    ) -> None:
        self.schedule = schedule
        self.ep = ep
        self.share = share
        self.entries = np.zeros((len(schedule.coefficients), 4))
        self.updated = np.empty((len(schedule.coefficients), 2))
        self.played = played[schedule.order]
        self._noise = likelihood.noise
        self.law = (likelihood.law(ep), *map(float, likelihood.parameters))
        self.calm = min(1.0, 2 / int(np.diff(schedule.rows).max()))
        self.parts = balanced_slices(len(self.entries))
        # The most frequent features, which are the last, first: nobody waits for the
        # longest part at the end.
        self._work = [
            (group, part)
            for group in schedule.groups
            for part in reversed(group.chunks)
        ]

    def features(self, some: NDArray[np.bool_] | None = None) -> float:
        """The Kalman filter and smoother of each feature, or of some; returns the sum
        of their log Z~."""

        def one(task: Any) -> float:
            group, part = task
            part = part if some is None else part[some[part]]
            return group.smooth(self.entries, self.schedule.visits, part, self.ep)

        return _sum(self.share(one, self._work))

    def check_deviations(self) -> None:
        """Raise ValueError where scores, by the last call of `features`, deviate too
        much for arithmetic."""
        widest = (
            float(
                np.max(np.abs(self.schedule.coefficients) * np.sqrt(self.entries[:, 3]))
            )
            / self._noise
        )
        expected = f"at most {_WIDEST:g}, or rounding is all: less variance, or other units of x or of time"
        require(
            widest <= _WIDEST,
            widest,
            "the largest deviation of a score, times x by noise,",
            expected,
        )

    def matches(self, log_z: float) -> Update:
        """New pseudo-observations of each match, from the moments of its features."""
        schedule = self.schedule

        def one(part: slice) -> tuple[float, float]:
            return update_matches(
                self.ep,
                *self.law,
                self.played,
                schedule.rows,
                schedule.coefficients,
                self.entries,
                self.updated,
                part.start,
                part.stop,
            )

        found = self.share(one, schedule.chunks)
        return Update(
            log_z + _sum([part[0] for part in found]), max(part[1] for part in found)
        )

    def move(
        self, rate: float, gamma: Floats = _NONE, steps: NDArray[np.float32] = _NOWHERE
    ) -> None:
        """A damped step: the share `rate` of the way to what the last sweep found, less
        a sum of other steps.

        Parameters
        ----------
        rate : float
        gamma : ndarray of shape (J,)
            Weights in this sum.
        steps : ndarray of float32, shape (J or more, 2E)
            Of alpha and of log beta of each entry.
        """

        def one(part: slice) -> None:
            _move(rate, self.entries, self.updated, gamma, steps, part.start, part.stop)

        self.share(one, self.parts)


class Plain:
    """Steps of Algorithm 1 with a fixed learning rate lambda."""

    def __init__(self, sweep: Sweep, rate: float) -> None:
        self._sweep = sweep
        self.rate = rate

    def accepts(self, found: Update) -> bool:
        """Whether the step that led to this sweep was good."""
        return math.isfinite(found.residual) and math.isfinite(found.evidence)

    def advance(self) -> None:
        """Move on from an accepted sweep."""
        self._sweep.move(self.rate)

    def restore(self) -> None:
        """Back to the last accepted sweep."""
        text = f"the pseudo-observations overflow at rate {self.rate:g}; expected a rate at which sweeps "
        raise ValueError(f"{text}converge: take a smaller one, or 'auto'")

    def retreat(self) -> None:
        """A shorter step from the last accepted sweep."""
        self.restore()


def _sum(parts: list[float]) -> float:
    """Without rounding, in any order; infinite where it overflows, which the caller
    looks for."""
    try:
        return math.fsum(parts)
    except (
        OverflowError,
        ValueError,
    ):  # beyond the largest number, or infinities of both signs
        return math.inf


@njit_nogil_inner
def _one_of(weight, entries, e):
    """For EP: alpha and beta of one of so many equal matches, and the moments without
    this one."""
    alpha = entries[e, 0]
    beta = entries[e, 1]
    c = entries[e, 2]
    v = entries[e, 3]
    if weight != 1.0:  # the smoother left all of them out
        one = 1.0 / weight if weight > 0.0 else 0.0
        shrink = 1.0 / (1.0 + (1.0 - one) * beta * v)
        # v may be 0: a score that is certain
        c = shrink * (c + (1.0 - one) * alpha * v)
        alpha = one * alpha
        beta = one * beta
        v = shrink * v
    return alpha, beta, c, v


@njit_nogil
def update_matches(
    ep, law, a, b, played, rows, coefficients, entries, updated, begin, end
):
    """Update the entries of matches begin..end; their part of the evidence, and the
    largest change."""
    total = 0.0
    product = 1.0
    worst = 0.0
    for n in range(begin, end):
        weight = played[n, 1]
        mean = played[n, 2]
        variance = 0.0
        for e in range(rows[n], rows[n + 1]):
            _, _, c, v = _one_of(weight if ep else 1.0, entries, e)
            x = coefficients[e]
            mean += x * c
            variance += x * x * v
        value, d1, d2 = law(a, b, played[n, 0], mean, variance)
        total += weight * value
        for e in range(rows[n], rows[n + 1]):
            alpha, beta, c, v = _one_of(weight if ep else 1.0, entries, e)
            x = coefficients[e]
            slope = x * d1
            bend = x * x * d2
            new_alpha = slope - c * bend
            new_beta = -bend
            # the cavity's integral of the present pseudo-observation is taken out of
            # the evidence
            if ep:
                spread = 1.0 + beta * v
                scale = 1.0 / (1.0 + v * bend)
                rest = 1.0 / spread
                total -= (
                    0.5 * weight * rest * (alpha * (alpha * v + 2.0 * c) - beta * c * c)
                )
                if weight == 1.0:
                    product *= spread
                else:
                    total += 0.5 * weight * math.log(spread)
                new_alpha = new_alpha * scale
                new_beta = new_beta * scale
                v = v * rest
            else:
                total -= alpha * c - 0.5 * beta * (v + c * c)
            new_alpha = weight * new_alpha
            new_beta = weight * new_beta
            updated[e, 0], updated[e, 1] = new_alpha, new_beta
            moved = new_alpha - entries[e, 0]
            turned = v * (new_beta - entries[e, 1])
            change = max(v * moved * moved, turned * turned) + 0.0 * (
                new_alpha + new_beta
            )
            if not change <= worst:  # NaN where one of them is no number
                worst = change if change > worst else math.inf
        if product > _LARGE:
            total += 0.5 * math.log(product)
            product = 1.0
    return total + 0.5 * math.log(product), math.sqrt(worst)


@njit_nogil
def _move(rate, entries, updated, gamma, steps, begin, end):
    for e in range(begin, end):
        entries[e, 0] += rate * (updated[e, 0] - entries[e, 0])
        entries[e, 1] += rate * (updated[e, 1] - entries[e, 1])
        if len(gamma) == 0:
            continue
        move_alpha = 0.0
        move_z = 0.0
        for j in range(len(gamma)):
            move_alpha += gamma[j] * steps[j, 2 * e]
            move_z += gamma[j] * steps[j, 2 * e + 1]
        entries[e, 0] -= move_alpha
        entries[e, 1] *= math.exp(-min(max(move_z, -_FARTHEST), _FARTHEST))
