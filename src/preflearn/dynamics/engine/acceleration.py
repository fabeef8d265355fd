"""Accelerated iteration to the fixed point of the update map, with safeguards.

If many players share few matches, changes that affect all their scores together take
hundreds of plain sweeps. These changes are in a few directions, so Anderson mixing
[Anderson1965]_ finds them from the last evaluations. With residuals r = f(x) - x, and
differences dx, dr of the last iterates and residuals, it is

    x <- x + rate r - sum_j gamma_j (dx_j + rate dr_j),

with gamma such that |w (r - sum_j gamma_j dr_j)| is smallest. Here x contains alpha and
log beta, so that no beta becomes negative. If the likelihood is not log-concave, x
contains beta itself, which may be negative. The weights w convert changes of both to
units of the posterior standard deviation. The plain part, x + rate r, is a step in
alpha and beta, where it is a natural gradient of the bound of reverse-KL: if it is
short enough, the bound increases.

Differences are stored in single precision, because they only determine the direction.
The residual, in double precision, determines convergence.

References
----------
.. [Anderson1965] D. G. Anderson, "Iterative procedures for nonlinear integral
  equations", JACM 12, 1965.
.. [Walker2011] H. F. Walker, P. Ni, "Anderson acceleration for fixed-point iterations",
   SIAM Journal on Numerical Analysis 49, 2011.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.validation import Floats, as_real
from preflearn.dynamics.engine.algorithm import FixedRate, Update, UpdateMap
from preflearn.dynamics.engine.threads import njit_free_sums, njit_nogil_inner

_DEPTH = 12  # number of stored differences
_MAX_HISTORY = 700_000_000  # bytes of stored differences
_MAX_KL_STEP = 10.0  # posterior standard deviations that a step of reverse-KL may take
# EP is slowed down after _PATIENCE sweeps in which no residual was smaller than
# _PROGRESS times the smallest one.
_PATIENCE = 30
_PROGRESS = 0.98
_FAST_FALL = 0.5  # factor of the residual in one sweep, for fast convergence
_MIN_STEADY_RATE = 1 / 8  # smallest rate limit when EP is slowed down
# largest decrease of EP's evidence: in nats, plus a fraction of the evidence
_EVIDENCE_SLACK = 5.0
_EVIDENCE_FALL = 0.5
_MIN_RATE = 1 / 64
_MAX_GROWTH = 10.0  # a step fails if the residual grows by a larger factor
_MEMORY = 6  # number of accepted sweeps for these comparisons
_ROUNDING = 1e-12  # relative rounding error of a bound
_RIDGE = 1e-14
_RECOVERY = 1.25  # growth of the rate after a successful step
_BLOCK = 512  # entries of one difference; they fit into the fastest cache
_TINY = 1e-300  # replaces a beta of 0, which has no logarithm
_SERIES_RADIUS = 1e-3


class History(NamedTuple):
    """The last accepted sweep, and differences of earlier ones.

    alpha and log beta of an entry are next to each other.

    Attributes
    ----------
    x, residual : ndarray of shape (2E,)
        alpha and beta of the last accepted sweep, and r.
    steps : ndarray of float32, shape (depth, 2E)
        dx + rate dr.
    changes : ndarray of float32, shape (depth, 2E)
        w dr.
    """

    x: Floats
    residual: Floats
    steps: NDArray[np.float32]
    changes: NDArray[np.float32]


class AndersonMixing(FixedRate):
    """Anderson mixing, with a rate that is reduced if a step fails."""

    def __init__(self, sweep: UpdateMap) -> None:
        super().__init__(sweep, sweep.safe_rate)
        size = 2 * len(sweep.entries)
        depth = int(np.clip(_MAX_HISTORY // (8 * size), 2, _DEPTH))
        self.history = History(
            np.zeros(size),
            np.zeros(size),
            np.zeros((depth, size), dtype=np.float32),
            np.zeros((depth, size), dtype=np.float32),
        )
        self._gram = np.zeros((depth, depth))  # Gram matrix of the changes
        self._n_steps = -1  # since the last failure; -1 before the first sweep
        self._residuals: deque[float] = deque(maxlen=_MEMORY)
        self._evidences: deque[float] = deque(maxlen=_MEMORY)
        self._first_residual = math.inf
        self._smallest_residual = math.inf
        self._n_since_smallest = 0
        self._patience = _PATIENCE
        self._restart = False
        self._max_rate = 1.0
        # Limit of the rate: after a longer step the bound would be dominated by rounding.
        self._max_kl_rate = 1.0

    def accepts(self, update: Update) -> bool:
        """Whether the bound of reverse-KL increases.

        EP has no bound; for EP, whether residual and evidence do not deteriorate
        suddenly.
        """
        if not super().accepts(update):
            return False
        if self._residuals and not self._improves(update):
            return False
        self._residuals.append(update.residual)
        self._evidences.append(update.evidence)
        if self._sweep.ep:
            self._slow_down_cycles(update.residual)
        else:
            self._max_kl_rate = _MAX_KL_STEP / max(update.residual, _MAX_KL_STEP)
        return True

    def _improves(self, update: Update) -> bool:
        if not self._sweep.ep:
            before = self._evidences[-1]
            return update.evidence >= before - _ROUNDING * abs(before)
        # If many pseudo-observations change together, the residual or the evidence
        # jumps; at the smallest rates this is accepted.
        if (
            update.residual > _MAX_GROWTH * min(self._residuals)
            and self.rate > _MIN_RATE
        ):
            return False
        best = max(self._evidences)
        return (
            self.rate <= _MIN_STEADY_RATE
            or update.evidence >= best - _EVIDENCE_SLACK - _EVIDENCE_FALL * abs(best)
        )

    def _slow_down_cycles(self, residual: float) -> None:
        """Reduce the rate if EP cycles; restart if the residual exceeds the first one."""
        if self._first_residual == math.inf:
            self._first_residual = residual
        if residual < _PROGRESS * self._smallest_residual:
            self._n_since_smallest = 0
        else:
            self._n_since_smallest += 1
        self._smallest_residual = min(self._smallest_residual, residual)
        if self._n_since_smallest > self._patience:
            self._max_rate = max(self._max_rate / 2, _MIN_STEADY_RATE)
            self._patience *= 2
            self.rate = self._max_rate
            self._n_steps = -1
            self._n_since_smallest = 0
            self._smallest_residual = math.inf
            self._restart = residual > self._first_residual

    def advance(self) -> None:
        """Store the difference to the previous sweep, and make the mixed step."""
        if self._restart:
            self._sweep.entries[:, :2] = 0.0
            self._restart = False
            self._residuals.clear()
            self._evidences.clear()
            return
        if self._sweep.contracts and self._falls_fast():
            self._n_steps = -1  # make a plain step, and start a new history
        rate = min(self.rate, self._max_kl_rate)
        gamma = self._update_history(rate)
        self._sweep.move(rate, gamma, self.history.steps)
        self.rate = min(self._max_rate, _RECOVERY * self.rate)

    def _falls_fast(self) -> bool:
        """Whether plain steps converge fast; mixing such steps would make them diverge."""
        last = list(self._residuals)[-2:]
        return len(last) < 2 or last[1] <= _FAST_FALL * last[0]

    def _update_history(self, rate: float) -> Floats:
        """Add the current sweep to the history; return gamma of the module docstring."""
        sweep = self._sweep
        depth = len(self._gram)
        slot = max(self._n_steps, 0) % depth
        count = min(self._n_steps + 1, depth)

        def update(part: slice) -> Floats:
            current = sweep.ep, sweep.is_signed, rate, sweep.entries, sweep.updated
            return _update_history(
                current, self.history, slot, count, part.start, part.stop
            )

        products = np.sum(sweep.parallel_map(update, sweep.parts), axis=0)
        self._gram[slot, :count] = products[0, :count]
        self._gram[:count, slot] = products[0, :count]
        # The step overflows single precision: start a new history.
        if not np.isfinite(products).all():
            self._n_steps = -1
            return np.zeros(0)
        self._n_steps += 1
        return _least_squares(self._gram[:count, :count], products[1, :count])

    def restore(self) -> None:
        """Return to the last accepted sweep."""
        self._sweep.entries[:, :2] = self.history.x.reshape(-1, 2)

    def retreat(self) -> None:
        """Make a plain step from the last accepted sweep.

        If a plain step from there failed, the rate is halved.
        """
        if self._n_steps <= 0:
            self.rate /= 2
        self._n_steps = -1
        self.restore()
        alpha, beta = self._sweep.entries[:, :2].T
        residual = self.history.residual
        self._sweep.updated[:, 0] = alpha + residual[::2]
        if self._sweep.is_signed:
            self._sweep.updated[:, 1] = beta + residual[1::2]
        else:
            log_beta = np.log(np.maximum(beta, _TINY)) + residual[1::2]
            self._sweep.updated[:, 1] = np.exp(log_beta)
        self._sweep.move(min(self.rate, self._max_kl_rate))


def make_step(sweep: UpdateMap, rate: float | str) -> FixedRate:
    """Create the step for the `rate` of `DynamicComparisons`."""
    if rate == "auto":
        return AndersonMixing(sweep)
    return FixedRate(sweep, as_real(rate))


def _least_squares(gram: Floats, target: Floats) -> Floats:
    """gamma of the module docstring.

    Directions that rounding cannot separate count as one.
    """
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    ridge = _RIDGE * np.eye(len(gram))
    scaled = gram / np.outer(scale, scale) + ridge
    return np.linalg.lstsq(scaled, target / scale, rcond=None)[0] / scale


@njit_free_sums
def _update_history(current, history, slot, count, begin, end):
    """Set x and r to the current evaluation.

    The function returns the inner products with all changes of the new change and of w
    r.
    """
    ep, is_signed, rate, entries, updated = current
    x, r, steps, changes = history
    products = np.zeros((2, len(changes)))
    weighted = np.empty(2 * _BLOCK)
    for low in range(begin, end, _BLOCK):
        high = min(low + _BLOCK, end)
        for e in range(low, high):
            alpha = entries[e, 0]
            beta = entries[e, 1]
            v = entries[e, 3]
            if ep:  # from the cavity to the posterior
                v /= 1.0 + beta * v
            to_alpha = updated[e, 0] - alpha
            to_z = _step_between(is_signed, updated[e, 1], beta)
            w_alpha = math.sqrt(v)
            w_z = v if is_signed else v * beta
            i = 2 * e
            if count > 0:
                d_alpha = to_alpha - r[i]
                d_z = to_z - r[i + 1]
                s_alpha = alpha - x[i] + rate * d_alpha
                s_z = _step_between(is_signed, beta, x[i + 1]) + rate * d_z
                # no difference if the previous beta was 0, which has no logarithm
                if x[i + 1] < 2 * _TINY and not is_signed:
                    d_z = 0.0
                    s_z = 0.0
                steps[slot, i] = s_alpha
                steps[slot, i + 1] = s_z
                changes[slot, i] = w_alpha * d_alpha
                changes[slot, i + 1] = w_z * d_z
            x[i] = alpha
            x[i + 1] = beta
            r[i] = to_alpha
            r[i + 1] = to_z
            weighted[i - 2 * low] = w_alpha * to_alpha
            weighted[i - 2 * low + 1] = w_z * to_z
        for j in range(count):
            with_change = 0.0
            with_residual = 0.0
            for i in range(2 * (high - low)):
                change = np.float64(changes[j, 2 * low + i])
                with_change += change * changes[slot, 2 * low + i]
                with_residual += change * weighted[i]
            products[0, j] += with_change
            products[1, j] += with_residual
    return products


@njit_nogil_inner
def _step_between(is_signed, a, b):
    """Step from b to a, in beta itself or in its logarithm."""
    if is_signed:
        return a - b
    return _log_ratio(a, b)


@njit_nogil_inner
def _log_ratio(a, b):
    """log(a/b), by a series if they are close, as in most cases.

    The first omitted term is below 1e-24.
    """
    a = max(a, _TINY)
    b = max(b, _TINY)
    t = (a - b) / (a + b)
    if abs(t) < _SERIES_RADIUS:
        s = t * t
        return 2.0 * t * (1.0 + s * (1.0 / 3.0 + s * (0.2 + s / 7.0)))
    return math.log(a) - math.log(b)
