"""To the fixed point of the update map in few evaluations, and never downhill.

Where many players share few matches, what moves all their scores together takes
hundreds of plain sweeps. It lies in a few directions, so Anderson's mixing
[Anderson1965]_ finds it from the last evaluations: with residuals r = f(x) - x, and
differences dx, dr of the last iterates and residuals,

    x <- x + rate r - sum_j gamma_j (dx_j + rate dr_j),

and gamma such that |w (r - sum_j gamma_j dr_j)| is least. Here x holds alpha and log
beta, so that no beta becomes negative (beta itself, if the likelihood is not
log-concave, where it may be), and the weights w turn changes of both into
units of the posterior standard deviation. The plain part, x + rate r, is taken in alpha
and beta, where it is a natural gradient of the bound of reverse-KL: if it is short
enough, the bound rises.

Differences are kept in single precision: they say where to go, and the residual, in
double precision, whether it is there.

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

_DEPTH = 12  # how many differences are kept
_MAX_HISTORY = 700_000_000  # bytes of them
_MAX_KL_STEP = 10.0  # posterior standard deviations that a step of reverse-KL may take
_PATIENCE = 30  # sweeps of EP without a new least residual, which must be
_PROGRESS = 0.98  # of the last one
_FAST_FALL = 0.5  # of the residual, in one sweep
_MIN_STEADY_RATE = 1 / 8  # where EP goes on at a smaller rate
# nats, and fraction of itself, by which EP's evidence may fall
_EVIDENCE_SLACK = 5.0
_EVIDENCE_FALL = 0.5
_MIN_RATE = 1 / 64
_MAX_GROWTH = 10.0  # of the residual, over the least: above, a step counts as failed
_MEMORY = 6  # accepted sweeps to which evidence and residual are compared
_ROUNDING = 1e-12  # of a bound, relative
_RIDGE = 1e-14
_RECOVERY = 1.25  # of the rate, a step that succeeds
_BLOCK = 512  # entries of one difference that stay in the fastest cache
_TINY = 1e-300  # instead of a beta of 0, which has no logarithm
_SERIES_RADIUS = 1e-3


class History(NamedTuple):
    """The last accepted sweep and the differences before it; alpha and log beta of an
    entry are next to each other.

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
    """Anderson's mixing, with a rate that falls where a step fails."""

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
        self._gram = np.zeros((depth, depth))  # of the changes
        self._n_steps = -1  # since the last failure; the first sweep has none before it
        self._residuals: deque[float] = deque(maxlen=_MEMORY)
        self._evidences: deque[float] = deque(maxlen=_MEMORY)
        self._first_residual = math.inf
        self._least_residual = math.inf
        self._n_since_least = 0
        self._patience = _PATIENCE
        self._restart = False
        self._max_rate = 1.0
        # The rate is cut to it: a longer step would end where the bound is rounding.
        self._max_kl_rate = 1.0

    def accepts(self, update: Update) -> bool:
        """Whether the bound of reverse-KL rises, or, for EP, which has none, nothing
        grows suddenly."""
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
        # Where many pseudo-observations move in step, the residual or the evidence
        # leaps; at the least rates it may.
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
        """Where EP goes round in a circle, make smaller steps; from the start, if it is
        worse than there."""
        if self._first_residual == math.inf:
            self._first_residual = residual
        if residual < _PROGRESS * self._least_residual:
            self._n_since_least = 0
        else:
            self._n_since_least += 1
        self._least_residual = min(self._least_residual, residual)
        if self._n_since_least > self._patience:
            self._max_rate = max(self._max_rate / 2, _MIN_STEADY_RATE)
            self._patience *= 2
            self.rate = self._max_rate
            self._n_steps = -1
            self._n_since_least = 0
            self._least_residual = math.inf
            self._restart = residual > self._first_residual

    def advance(self) -> None:
        """Note the difference to the sweep before, and make the mixed step."""
        if self._restart:
            self._sweep.entries[:, :2] = 0.0
            self._restart = False
            self._residuals.clear()
            self._evidences.clear()
            return
        if self._sweep.contracts and self._falls_fast():
            self._n_steps = -1  # a plain step, whose history begins here
        rate = min(self.rate, self._max_kl_rate)
        gamma = self._update_history(rate)
        self._sweep.move(rate, gamma, self.history.steps)
        self.rate = min(self._max_rate, _RECOVERY * self.rate)

    def _falls_fast(self) -> bool:
        """Whether plain steps are good enough: mixing first steps leads them astray."""
        last = list(self._residuals)[-2:]
        return len(last) < 2 or last[1] <= _FAST_FALL * last[0]

    def _update_history(self, rate: float) -> Floats:
        """Put the present sweep in the history; return gamma of the module's formula."""
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
        # A step beyond single precision: begin anew.
        if not np.isfinite(products).all():
            self._n_steps = -1
            return np.zeros(0)
        self._n_steps += 1
        return _least_squares(self._gram[:count, :count], products[1, :count])

    def restore(self) -> None:
        """Return to the last accepted sweep."""
        self._sweep.entries[:, :2] = self.history.x.reshape(-1, 2)

    def retreat(self) -> None:
        """Make a plain step from the last accepted sweep; if one from there failed, at
        half its rate."""
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
    """Make the step for the `rate` of `DynamicComparisons`."""
    if rate == "auto":
        return AndersonMixing(sweep)
    return FixedRate(sweep, as_real(rate))


def _least_squares(gram: Floats, target: Floats) -> Floats:
    """gamma of the module's formula; directions that rounding cannot separate count as
    one."""
    scale = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
    ridge = _RIDGE * np.eye(len(gram))
    scaled = gram / np.outer(scale, scale) + ridge
    return np.linalg.lstsq(scaled, target / scale, rcond=None)[0] / scale


@njit_free_sums
def _update_history(current, history, slot, count, begin, end):
    """Move x and r to the present evaluation; products of the new change, and of w r,
    with all changes."""
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
                # a beta of 0 before has no logarithm to differ from
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
    """From b to a, in beta itself or in its logarithm."""
    if is_signed:
        return a - b
    return _log_ratio(a, b)


@njit_nogil_inner
def _log_ratio(a, b):
    """log(a/b), by a series where they are close, as most are: the next term is below
    1e-24."""
    a = max(a, _TINY)
    b = max(b, _TINY)
    t = (a - b) / (a + b)
    if abs(t) < _SERIES_RADIUS:
        s = t * t
        return 2.0 * t * (1.0 + s * (1.0 / 3.0 + s * (0.2 + s / 7.0)))
    return math.log(a) - math.log(b)
