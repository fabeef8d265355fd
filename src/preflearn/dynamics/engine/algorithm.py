"""EP and reverse-KL: Algorithm 1 of [Maystre2019]_, which sweeps over features and
matches to a fixed point.

`run_algorithm_1` is the algorithm; `update_matches` has its lines for one match, and
`smoother` those for one feature.

A match has the outcome y, whose likelihood depends on z = x·s, a sum over its features
m. To each of them the match is a pseudo-observation exp(alpha s_m - beta s_m²/2). With
the mean c_m and variance v_m of the score,

    EP (3.1.1)           alpha = (x_m d1 - c_m x_m² d2) / D,  beta = -x_m² d2 / D,   D = 1 + v_m x_m² d2,
    reverse-KL (3.1.2)   alpha =  x_m d1 - c_m x_m² d2,       beta = -x_m² d2,

where EP leaves the match's own pseudo-observation out of c_m and v_m (the cavity), and
d1, d2 are derivatives in the mean of z: of log E p(y | z) for EP, of E log p(y | z) for
reverse-KL. They are derived in chapter 13.

A match of weight w has the likelihood p^w. Reverse-KL multiplies d1 and d2. If w > 1, EP
leaves the w-th part of the pseudo-observation out, and takes w times what it finds,
power EP [Minka2004]_ with the power 1/w: so a match of weight 2 is two matches to the
last digit, as they are at the fixed point. If w < 1, that part would be more than there
is, and sweeps diverge. Then EP leaves the whole pseudo-observation out, and d1, d2 are
derivatives of log E p(y | z)^w: so weight w of Gaussian(v) is Gaussian(v / w).

If the likelihood is not log-concave, d2 may be positive, as where y is an outlier that
makes z less certain, and then beta < 0. Such pseudo-observations are kept, as in
[Jylanki2011]_: without them the moments would not match, and the evidence would not be
stationary in the pseudo-observations, so that its gradient would be wrong. Sweeps are
damped, and a step is taken back and halved that leaves a posterior or a cavity which is
not a Gaussian: `smooth_features` and `update_matches` return NaN or infinity there.

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

from preflearn.core.validation import Floats, Ids, require
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

# a product of factors is turned into a sum of logarithms before it overflows
_LARGE = 1e200
# in deviations of noise: a variance of 1e14 is rounded by hundredths, where that of
# noise is 1
MAX_SCORE_STD = 1e7
_MAX_LOG_BETA_STEP = 20.0
_NO_WEIGHTS = np.zeros(0)
_NO_STEPS = np.zeros((0, 0), dtype=np.float32)


class Update(NamedTuple):
    """Evidence and size of one sweep.

    Attributes
    ----------
    evidence : float
        EP's estimate of the log marginal likelihood of the outcomes, or the lower bound
        on it that reverse-KL maximises, by the pseudo-observations before the sweep.
    residual : float
        The largest change of a pseudo-observation, in units of the posterior standard
        deviation sd of the score: sd \\|change of alpha\\|, or sd² \\|change of
        beta\\|.
    """

    evidence: float
    residual: float


class SweepRecord(NamedTuple):
    """A row of the trace: a sweep, the rate of the step after it, and whether it was
    accepted; if not, the step before it was taken back."""

    residual: float
    evidence: float
    rate: float
    accepted: bool


def run_algorithm_1(
    sweep: UpdateMap, step: FixedRate, *, tol: float, max_iter: int
) -> tuple[list[SweepRecord], bool]:
    """Algorithm 1, from the pseudo-observations that `sweep.entries` holds.

    Lines 2 and 3: pseudo-observations of zero leave the prior, so the loop begins with
    lines 9 and 10.

    Parameters
    ----------
    sweep : UpdateMap
        The matches, their likelihood, and the pseudo-observations.
    step : FixedRate
        How pseudo-observations move after a sweep; or `AndersonMixing`.
    tol : float
        Largest residual at which the algorithm has converged.
    max_iter : int
        Largest number of sweeps.

    Returns
    -------
    trace : list of SweepRecord
    converged : bool
        Whether the residual of the last sweep is at most tol. `sweep.entries` are those
        of the last sweep that was accepted.
    """
    trace = list[SweepRecord]()
    accepted = False
    for iteration in range(max_iter):
        # Lines 9 and 10, for each feature m: smooth. q(s_m) is the prior times all
        # exp(alpha s_m - beta s_m²/2); EP leaves each match's own out (the cavity).
        log_z = sweep.smooth_features()
        if iteration == 0:
            sweep.check_score_scale()
        # Lines 5 to 8, for each match n: mean and variance of z = x·s, the derivatives
        # d1 and d2 of its log-likelihood, and the new alpha and beta of its features.
        update = sweep.update_matches(log_z)
        accepted = step.accepts(update)
        require(
            accepted or iteration > 0,
            update.evidence,
            "log p before anything is learned",
            "one of moderate size: a prior variance at which outcomes of this size occur",
        )
        trace.append(SweepRecord(update.residual, update.evidence, step.rate, accepted))
        # Line 11: until convergence.
        if accepted and update.residual <= tol:
            return trace, True
        # alpha <- (1 - rate) alpha + rate alpha_new, and beta too; or a faster step.
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
    """What compiled loops over matches read and write, in the schedule's order.

    Attributes
    ----------
    observations : ndarray of shape (N, 3)
        Outcome, weight and offset of each match.
    rows, coefficients
        As of `Schedule`.
    entries, updated
        As of `Sweep`.
    """

    observations: Floats
    rows: Ids
    coefficients: Floats
    entries: Floats
    updated: Floats


class UpdateMap:
    """The map of Algorithm 1, from all pseudo-observations to all, without damping.

    A subclass says which pseudo-observations a match has, and smooths: `Sweep`, one for
    each of its features; `JointSweep`, one for its difference of scores.

    Parameters
    ----------
    observations : ndarray of shape (N, 3)
        Outcome, weight and known part of the score difference of each match.
    rows : ndarray of int, shape (N + 1,)
        Where the entries of each match begin.
    coefficients : ndarray of shape (E,)
        x of each entry.
    likelihood : Likelihood
    ep : bool
        EP, else reverse-KL.
    parallel_map : callable
        From `worker_pool`.

    Attributes
    ----------
    entries : ndarray of shape (E, 4)
        alpha and beta, zeros unless the caller sets others, changed by `move`; mean and
        variance by the last call of `smooth_features`: of the cavity for EP, of the
        posterior for reverse-KL.
    updated : ndarray of shape (E, 2)
        alpha and beta by the last call of `update_matches`, undefined before it.
    arrays : MatchArrays
    prior : Prior
        Of the scores, which a subclass sets.
    likelihood : (function, function, (float, float))
        The likelihood's compiled integral for this method, the one for weights below 1
        under EP, and the parameters.
    is_signed : bool
        Whether a beta may be negative, as under EP if the likelihood is not log-concave.
    safe_rate : float
        A rate that is small enough for a Gaussian likelihood (chapter 13): 2 by the
        most entries of a match.
    chunks, parts : list of slice
        The matches, and the entries, in parts of about equal work.
    contracts : bool
        Whether plain sweeps come close to the fixed point in a few steps.
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
        # outside `arrays`: compiled code calls a function in a tuple more slowly
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
        """Find mean and variance of all entries; return log Z~."""
        raise NotImplementedError

    def check_score_scale(self) -> None:
        """Raise ValueError where scores deviate too much for arithmetic."""
        raise NotImplementedError

    @property
    def sites(self) -> Floats:
        """The pseudo-observations in the caller's order, as `pseudo_observations_`."""
        raise NotImplementedError

    @sites.setter
    def sites(self, sites: Floats) -> None:
        raise NotImplementedError

    def update_matches(self, log_z: float) -> Update:
        """Find new pseudo-observations of each match, from the moments of its
        features."""

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
        """Make a damped step: a fraction `rate` of the way to the last update, less a
        sum of other steps.

        Parameters
        ----------
        rate : float
        gamma : ndarray of shape (J,)
            Weights in this sum.
        steps : ndarray of float32, shape (J or more, 2E)
            Steps of alpha and of log beta of each entry, or of beta if it is signed.
        """

        def move(part: slice) -> None:
            states = self.is_signed, self.entries, self.updated
            _move(rate, states, gamma, steps, part.start, part.stop)

        self.parallel_map(move, self.parts)


class Sweep(UpdateMap):
    """The map of the factorized posterior: a pseudo-observation for each entry of the
    design.

    Parameters
    ----------
    schedule : Schedule
    likelihood, ep, parallel_map
        As of `UpdateMap`.
    observations : ndarray of shape (N, 3)
        Outcome, weight and known part of the score difference of each match, in the
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
        """Run the Kalman filter and smoother of each feature, or of those in a mask;
        return the sum of their log Z~."""

        def smooth_chunk(chunk: Any) -> float:
            tables, features = chunk
            if mask is not None:
                features = features[mask[features]]
            return smooth(self.entries, self.schedule.visits, tables, features, self.ep)

        # The most frequent features, which are the last, first: no thread waits for the
        # longest part at the end.
        chunks = self.schedule.feature_chunks[::-1]
        return _exact_sum(self.parallel_map(smooth_chunk, chunks))

    def check_score_scale(self) -> None:
        """Raise ValueError where scores, by the last call of `smooth_features`, deviate
        too much for arithmetic."""
        std = np.abs(self.schedule.coefficients) * np.sqrt(self.entries[:, 3])
        largest = float(np.max(std)) / self._noise
        expected = f"at most {MAX_SCORE_STD:g}, or rounding is all: less variance, or "
        expected += "other units of x or of time"
        require(
            largest <= MAX_SCORE_STD,
            largest,
            "the largest deviation of a score, times x by noise,",
            expected,
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
        """Whether the step that led to this sweep was good."""
        return math.isfinite(update.residual) and math.isfinite(update.evidence)

    def advance(self) -> None:
        """Move on from an accepted sweep."""
        self._sweep.move(self.rate)

    def restore(self) -> None:
        """Return to the last accepted sweep, which a fixed rate cannot."""
        text = f"the pseudo-observations diverge at rate {self.rate:g}; expected a rate at which sweeps "
        raise ValueError(f"{text}converge: take a smaller one, or 'auto'")

    def retreat(self) -> None:
        """Make a shorter step from the last accepted sweep."""
        self.restore()


def _exact_sum(parts: Any) -> float:
    """Sum without rounding, so in any order; infinite where it overflows, which the
    caller looks for."""
    try:
        return math.fsum(parts)
    # beyond the largest number, or infinities of both signs
    except (OverflowError, ValueError):
        return math.inf


# ---- Lines 5 to 8, compiled


@njit_nogil
def update_matches(ep, integral, power_integral, parameters, arrays, begin, end):
    """Update the entries of matches begin..end; their part of the evidence, and the
    largest change."""
    # named before the loop: each access would count references
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
            # the integral of the present pseudo-observation, over the cavity for EP, is
            # taken out of the evidence
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
            # 0 times what is not finite is NaN
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
    """alpha and beta of one of `weight` equal matches, and mean and variance of the
    score without this one.

    The smoother left all of them out, so the other weight - 1 are put back.
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
        # v may be 0: a score that is certain
        c = shrink * (c + (1.0 - fraction) * alpha * v)
        alpha = fraction * alpha
        beta = fraction * beta
        v = shrink * v
    return alpha, beta, c, v


@njit_nogil_inner
def _pseudo_observation(ep, x, c, v, d1, d2):
    """alpha and beta by the equations of the module's docstring."""
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
    """The larger of both; infinite where the change is NaN."""
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
