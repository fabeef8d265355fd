"""EP and reverse-KL: Algorithm 1 of [Maystre2019]_.

Sweeps over features and matches converge to a fixed point. `run_algorithm_1` is the
algorithm. `update_matches` contains the steps for one match, and the module `smoother`
contains the steps for one feature.

A match has the outcome y, whose likelihood depends on z = x·s, a sum over its features
m. For each of them the match is a pseudo-observation exp(alpha s_m - beta s_m²/2). With
the mean c_m and variance v_m of the score,

    EP (3.1.1)           alpha = (x_m d1 - c_m x_m² d2) / D,  beta = -x_m² d2 / D,   D = 1 + v_m x_m² d2,
    reverse-KL (3.1.2)   alpha =  x_m d1 - c_m x_m² d2,       beta = -x_m² d2,

where for EP, c_m and v_m do not include the match's own pseudo-observation (the
cavity). d1 and d2 are the derivatives in the mean of z of log E p(y | z) for EP, and of
E log p(y | z) for reverse-KL. Chapter 13 derives these equations.

A match of weight w has the likelihood p^w. Reverse-KL multiplies d1 and d2 by w. If w >
1, EP leaves out the w-th part of the pseudo-observation and multiplies its result by w.
This is power EP [Minka2004]_ with the power 1/w: a match of weight 2 gives exactly the
same result as two matches, which are equal at the fixed point. If w < 1, this part
would exceed the pseudo-observation, and sweeps would diverge. Then EP leaves out the
whole pseudo-observation, and d1, d2 are derivatives of log E p(y | z)^w. With this
definition, weight w of Gaussian(v) is Gaussian(v / w).

If the likelihood is not log-concave, d2 may be positive, for example if y is an outlier
that makes z less certain, and then beta < 0. Such pseudo-observations are kept, as in
[Jylanki2011]_. Without them the moments would not match. The evidence would then not be
stationary in the pseudo-observations, and its gradient would be wrong. Sweeps are
damped. A step is undone and halved if it gives a posterior or a cavity that is not a
Gaussian: `smooth_features` and `update_matches` return NaN or infinity in this case.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
.. [Minka2004] T. Minka, "Power EP", Microsoft Research technical report
  MSR-TR-2004-149, 2004.
.. [Jylanki2011] P. Jylänki, J. Vanhatalo, A. Vehtari, "Robust Gaussian process regression
   with a Student-t likelihood", JMLR 12, 2011.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.validation import Floats, Ids
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.engine.schedule import Schedule
from preflearn.dynamics.engine.smoother import smooth
from preflearn.dynamics.engine.threads import (
    ParallelMap,
    balanced_slices,
    njit_nogil,
    njit_nogil_inner,
)
from preflearn.dynamics.likelihoods.likelihood import Likelihood

# a product is converted to a sum of logarithms before it overflows
_LARGE = 1e200
# In standard deviations of the noise: a variance of 1e14 has a rounding error of 0.01,
# if that of the noise is 1.
MAX_SCORE_STD = 1e7
_MAX_LOG_BETA_STEP = 20.0
_NO_WEIGHTS = np.zeros(0)
_NO_STEPS = np.zeros((0, 0), dtype=np.float32)


class Update(NamedTuple):
    """Evidence and residual of one sweep.

    Attributes
    ----------
    evidence : float
        EP's estimate of the log marginal likelihood of the outcomes, or the lower bound
        on it that reverse-KL maximizes, for the pseudo-observations before the sweep.
    residual : float
        Largest change of a pseudo-observation, in units of the posterior standard
        deviation sd of the score: sd \\|change of alpha\\|, or sd² \\|change of
        beta\\|.
    """

    evidence: float
    residual: float


class SweepRecord(NamedTuple):
    """Row of the trace: a sweep, the rate of the step after it, and its acceptance.

    If the sweep was not accepted, the step before it was undone.
    """

    residual: float
    evidence: float
    rate: float
    accepted: bool


def run_algorithm_1(
    sweep: UpdateMap, step: FixedRate, *, tol: float, max_iter: int
) -> tuple[list[SweepRecord], bool]:
    """Run Algorithm 1 from the pseudo-observations in `sweep.entries`.

    Lines 2 and 3 of the paper set the pseudo-observations to zero, which gives the
    prior. The loop therefore starts with lines 9 and 10.

    Parameters
    ----------
    sweep : UpdateMap
        Matches, their likelihood, and the pseudo-observations.
    step : FixedRate
        Rule for the change of pseudo-observations after a sweep, such as
        `AndersonMixing`.
    tol : float
        Largest residual at which the algorithm has converged.
    max_iter : int
        Largest number of sweeps.

    Returns
    -------
    trace : list of SweepRecord
    converged : bool
        Whether the residual of the last sweep is at most tol. `sweep.entries` are
        those of the last accepted sweep.
    """
    trace = list[SweepRecord]()
    accepted = False
    for iteration in range(max_iter):
        # Lines 9 and 10, for each feature m: smooth. q(s_m) is the prior times all
        # exp(alpha s_m - beta s_m²/2); for EP without each match's own (the cavity).
        log_z = sweep.smooth_features()
        if iteration == 0:
            sweep.check_score_scale()
        # Lines 5 to 8, for each match n: mean and variance of z = x·s, the derivatives
        # d1 and d2 of its log-likelihood, and the new alpha and beta of its features.
        update = sweep.update_matches(log_z)
        accepted = step.accepts(update)
        if iteration == 0 and not accepted:
            raise ValueError(
                f"log p(y) under the prior overflows (it is {update.evidence:g}), so the fit cannot "
                "start; choose a prior variance and a likelihood that suit the size of the outcomes"
            )
        trace.append(SweepRecord(update.residual, update.evidence, step.rate, accepted))
        # Line 11: until convergence.
        if accepted and update.residual <= tol:
            return trace, True
        # alpha <- (1 - rate) alpha + rate alpha_new, and the same for beta; or a faster step.
        if iteration == max_iter - 1:
            break
        if accepted:
            step.advance()
        else:
            step.retreat()
    if not accepted:
        step.restore()
    return trace, False


class MatchArrays(NamedTuple):
    """Arrays of compiled loops over matches, in the order of the schedule.

    Attributes
    ----------
    observations : ndarray of shape (N, 3)
        Outcome, weight, and offset of each match.
    rows, coefficients
        Arrays of `Schedule`.
    entries, updated
        Arrays of `Sweep`.
    """

    observations: Floats
    rows: Ids
    coefficients: Floats
    entries: Floats
    updated: Floats


class UpdateMap:
    """Update of all pseudo-observations in Algorithm 1, without damping.

    Subclasses define the pseudo-observations of a match and the smoothing: `Sweep` has
    one pseudo-observation for each feature of a match, `JointSweep` one for its score
    difference.

    Parameters
    ----------
    observations : ndarray of shape (N, 3)
        Outcome, weight, and known part of the score difference of each match.
    rows : ndarray of int, shape (N + 1,)
        First entry of each match.
    coefficients : ndarray of shape (E,)
        x of each entry.
    likelihood : Likelihood
    ep : bool
        Whether the method is EP, else reverse-KL.
    parallel_map : callable
        Function from `worker_pool`.

    Attributes
    ----------
    entries : ndarray of shape (E, 4)
        alpha and beta, zeros unless the caller sets others, changed by `move`; mean and
        variance from the last call of `smooth_features`: of the cavity for EP, of the
        posterior for reverse-KL.
    updated : ndarray of shape (E, 2)
        alpha and beta from the last call of `update_matches`, undefined before it.
    arrays : MatchArrays
    prior : Prior
        Prior of the scores, set by a subclass.
    likelihood : (function, function, (float, float))
        Compiled integral of the likelihood for this method, the one for weights below 1
        under EP, and the parameters.
    is_signed : bool
        Whether beta may be negative, as under EP if the likelihood is not log-concave.
    safe_rate : float
        Rate at which a Gaussian likelihood converges (chapter 13): 2 divided by the
        largest number of entries of a match.
    chunks, parts : list of slice
        Matches, and entries, in parts of about equal work.
    contracts : bool
        Whether plain sweeps approach the fixed point in a few steps.
    """

    contracts = False
    prior: Prior

    def __init__(
        self,
        observations: Floats,
        rows: Ids,
        coefficients: Floats,
        likelihood: Likelihood,
        *,
        ep: bool,
        parallel_map: ParallelMap,
    ) -> None:
        self.ep = ep
        self.parallel_map = parallel_map
        n_entries = len(coefficients)
        self.entries = np.zeros((n_entries, 4))
        self.updated = np.empty((n_entries, 2))
        self.arrays = MatchArrays(
            observations, rows, coefficients, self.entries, self.updated
        )
        self._noise = likelihood.noise
        # not in `arrays`, because calling a function in a tuple is slower in compiled code
        a, b = likelihood.parameters
        weights = observations[:, 1]
        has_powers = ep and bool(np.any((weights > 0) & (weights < 1)))
        self.likelihood = (
            likelihood.compiled_integral(ep),
            likelihood.compiled_power(has_powers),
            (float(a), float(b)),
        )
        self.is_signed = ep and not likelihood.log_concave
        self.safe_rate = min(1.0, 2 / int(np.diff(rows).max()))
        self.chunks = balanced_slices(len(observations))
        self.parts = balanced_slices(n_entries)

    def smooth_features(self) -> float:
        """Compute mean and variance of all entries; return log Z~."""
        raise NotImplementedError

    def check_score_scale(self) -> None:
        """Raise ValueError if scores are too uncertain for floating-point accuracy."""
        raise NotImplementedError

    @property
    def sites(self) -> Floats:
        """Pseudo-observations in the caller's order, as `pseudo_observations_`."""
        raise NotImplementedError

    @sites.setter
    def sites(self, sites: Floats) -> None:
        raise NotImplementedError

    def update_matches(self, log_z: float) -> Update:
        """Compute new pseudo-observations of each match from its features' moments."""

        def update(part: slice) -> tuple[float, float]:
            return update_matches(
                self.ep, *self.likelihood, self.arrays, part.start, part.stop
            )

        results = self.parallel_map(update, self.chunks)
        evidences, residuals = zip(*results, strict=True)
        return Update(log_z + _exact_sum(evidences), max(residuals))

    def move(
        self,
        rate: float,
        gamma: Floats = _NO_WEIGHTS,
        steps: NDArray[np.float32] = _NO_STEPS,
    ) -> None:
        """Make a damped step: a fraction `rate` of the last update, minus other steps.

        Parameters
        ----------
        rate : float
            Step size, as a fraction of the last update.
        gamma : ndarray of shape (J,)
            Weights of the steps that are subtracted.
        steps : ndarray of float32, shape (J or more, 2E)
            Steps of alpha and of log beta of each entry, or of beta if it is signed.
        """

        def move(part: slice) -> None:
            states = self.is_signed, self.entries, self.updated
            _move(rate, states, gamma, steps, part.start, part.stop)

        self.parallel_map(move, self.parts)


class Sweep(UpdateMap):
    """Update map of the factorized posterior: a pseudo-observation per design entry.

    Parameters
    ----------
    schedule : Schedule
    likelihood, ep, parallel_map
        Arguments of `UpdateMap`.
    observations : ndarray of shape (N, 3)
        Outcome, weight, and known part of the score difference of each match, in the
        caller's order.
    """

    def __init__(
        self,
        schedule: Schedule,
        likelihood: Likelihood,
        observations: Floats,
        *,
        ep: bool,
        parallel_map: ParallelMap,
    ) -> None:
        self.prior = schedule.prior
        self.schedule = schedule
        super().__init__(
            observations[schedule.order],
            schedule.rows,
            schedule.coefficients,
            likelihood,
            ep=ep,
            parallel_map=parallel_map,
        )

    def smooth_features(self, mask: NDArray[np.bool_] | None = None) -> float:
        """Run the Kalman filter and smoother of each feature, or of those in a mask.

        The result is the sum of their log Z~.
        """

        def smooth_chunk(chunk: Any) -> float:
            tables, features = chunk
            if mask is not None:
                features = features[mask[features]]
            return smooth(self.entries, self.schedule.visits, tables, features, self.ep)

        # Start with the most frequent features, which are the last, so that no thread
        # waits for the longest part at the end.
        chunks = self.schedule.feature_chunks[::-1]
        return _exact_sum(self.parallel_map(smooth_chunk, chunks))

    def check_score_scale(self) -> None:
        """Raise ValueError if scores are too uncertain for floating-point accuracy.

        The scores are those of the last call of `smooth_features`.
        """
        std = np.abs(self.schedule.coefficients) * np.sqrt(self.entries[:, 3])
        largest = float(np.max(std)) / self._noise
        if not largest <= MAX_SCORE_STD:
            raise ValueError(
                f"the largest prior standard deviation of a score, times its entry of the "
                f"design, is {largest:.3g} times the noise, which is too large for "
                f"floating-point accuracy (the limit is {MAX_SCORE_STD:g}); reduce the "
                "variance of the covariance, or rescale the design or the times"
            )

    @property
    def sites(self) -> Floats:
        sites = np.empty((len(self.entries), 2))
        sites[self.schedule.entry_order] = self.entries[:, :2]
        return sites

    @sites.setter
    def sites(self, sites: Floats) -> None:
        self.entries[:, :2] = sites[self.schedule.entry_order]


class FixedRate:
    """Steps of Algorithm 1 with a fixed learning rate lambda."""

    def __init__(self, sweep: UpdateMap, rate: float) -> None:
        self._sweep = sweep
        self.rate = rate

    def accepts(self, update: Update) -> bool:
        """Whether the step before this sweep succeeded."""
        return math.isfinite(update.residual) and math.isfinite(update.evidence)

    def advance(self) -> None:
        """Make a step from an accepted sweep."""
        self._sweep.move(self.rate)

    def restore(self) -> None:
        """Raise ValueError, because a fixed rate cannot return to an earlier sweep."""
        raise ValueError(
            f"the pseudo-observations diverge with rate={self.rate:g}; use a smaller rate, or rate='auto'"
        )

    def retreat(self) -> None:
        """Make a shorter step from the last accepted sweep."""
        self.restore()


def _exact_sum(parts: Any) -> float:
    """Sum without rounding, so that it is independent of the order.

    It is infinite if it overflows, which the caller checks.
    """
    try:
        return math.fsum(parts)
    # overflow, or infinities of both signs
    except (OverflowError, ValueError):
        return math.inf


# ---- Lines 5 to 8, compiled


@njit_nogil
def update_matches(ep, integral, power_integral, parameters, arrays, begin, end):
    """Update the entries of matches begin..end.

    The function returns their part of the evidence, and the largest change.
    """
    # unpacked before the loop, because each access would count references
    observations, rows, coefficients, entries, updated = arrays
    a, b = parameters
    total = 0.0
    product = 1.0
    largest = 0.0
    for n in range(begin, end):
        weight = observations[n, 1]
        power = 1.0
        if ep and 0.0 < weight < 1.0:
            power = weight
            weight = 1.0
        copies = weight if ep else 1.0
        # z = x·s under the cavity (EP) or the posterior (reverse-KL)
        mean = observations[n, 2]
        variance = 0.0
        for e in range(rows[n], rows[n + 1]):
            _, _, c, v = _cavity(copies, entries, e)
            x = coefficients[e]
            mean += x * c
            variance += x * x * v
            if not v >= 0.0:  # not a Gaussian
                variance = math.nan
        # log E p(y | z) or E log p(y | z), and its derivatives in the mean of z
        if power == 1.0:
            value, d1, d2 = integral(a, b, observations[n, 0], mean, variance)
        else:
            value, d1, d2 = power_integral(
                a, b, observations[n, 0], mean, variance, power
            )
        total += weight * value
        for e in range(rows[n], rows[n + 1]):
            alpha, beta, c, v = _cavity(copies, entries, e)
            x = coefficients[e]
            new_alpha, new_beta = _pseudo_observation(ep, x, c, v, d1, d2)
            new_alpha = weight * new_alpha
            new_beta = weight * new_beta
            updated[e, 0] = new_alpha
            updated[e, 1] = new_beta
            # the integral of the current pseudo-observation (over the cavity for EP) is
            # subtracted from the evidence
            if ep:
                spread = 1.0 + beta * v
                rest = 1.0 / spread
                total -= (
                    0.5 * weight * rest * (alpha * (alpha * v + 2.0 * c) - beta * c * c)
                )
                if weight == 1.0:
                    product *= spread
                else:
                    total += 0.5 * weight * math.log(spread)
                v = v * rest
            else:
                total -= alpha * c - 0.5 * beta * (v + c * c)
            moved = new_alpha - entries[e, 0]
            turned = v * (new_beta - entries[e, 1])
            # the second term is NaN if a value is not finite
            change = max(v * moved * moved, turned * turned) + 0.0 * (
                new_alpha + new_beta
            )
            if not change <= largest:
                largest = larger_or_inf(change, largest)
        if product > _LARGE:
            total += 0.5 * math.log(product)
            product = 1.0
    return total + 0.5 * math.log(product), math.sqrt(largest)


@njit_nogil_inner
def _cavity(weight, entries, e):
    """Pseudo-observation and cavity of one of `weight` equal matches.

    The function returns alpha, beta, and the mean and variance of the score without
    this match. The smoother left out all `weight` matches, so the other weight - 1 are
    added.
    """
    alpha = entries[e, 0]
    beta = entries[e, 1]
    c = entries[e, 2]
    v = entries[e, 3]
    if weight != 1.0:
        fraction = 0.0
        if weight > 0.0:
            fraction = 1.0 / weight
        shrink = 1.0 / (1.0 + (1.0 - fraction) * beta * v)
        # v is 0 if the score is known exactly
        c = shrink * (c + (1.0 - fraction) * alpha * v)
        alpha = fraction * alpha
        beta = fraction * beta
        v = shrink * v
    return alpha, beta, c, v


@njit_nogil_inner
def _pseudo_observation(ep, x, c, v, d1, d2):
    """alpha and beta from the equations of the module docstring."""
    bend = x * x * d2
    alpha = x * d1 - c * bend
    beta = -bend
    if ep:
        scale = 1.0 / (1.0 + v * bend)
        alpha = alpha * scale
        beta = beta * scale
    return alpha, beta


@njit_nogil_inner
def larger_or_inf(change, largest):
    """The larger of two numbers; infinity if the change is NaN."""
    if change <= largest:
        return largest
    if change > largest:
        return change
    return math.inf


@njit_nogil
def _move(rate, states, gamma, steps, begin, end):
    is_signed, entries, updated = states
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
        if is_signed:
            entries[e, 1] -= move_z
            continue
        move_z = min(max(move_z, -_MAX_LOG_BETA_STEP), _MAX_LOG_BETA_STEP)
        entries[e, 1] *= math.exp(-move_z)
