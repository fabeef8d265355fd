"""Forecasts of each match from all earlier ones, as in section 4 of [Maystre2019]_,
without a fit a day.

All matches are laid out once. One that is still to come is a pseudo-observation that
says nothing (alpha = beta = 0), so a pass of the smoother finds its forecast along with
the posterior of the past. Then its outcome is revealed, and sweeps follow over what it
moves: a match whose moments stayed as they were is not updated, and a feature is not
smoothed while its debt, a bound on how far the steps of its pseudo-observations since
the last time move its scores, is small. Where sweeps do not converge, the model is
fitted anew.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from preflearn.core.validation import Floats, Ids, PerMatch, as_real, require, warn_user
from preflearn.dynamics.covariances.prior import warn_about_units
from preflearn.dynamics.engine.algorithm import Sweep, update_matches
from preflearn.dynamics.engine.threads import njit_nogil
from preflearn.dynamics.model import (
    DynamicComparisons,
    check_problem,
    differences,
    infer,
    laid_out,
)
from preflearn.matches import Matches, n_earlier

_STILL = 0.05  # of the tolerance: a match whose moments moved by less is not updated
# of the tolerance: a feature whose scores moved by less is not smoothed, unless it is
# forecast
_DEBT = 1.0
_MOST_SWEEPS = 100  # at one time; then a fit
# of the change before, in a sweep at the same time: with less, the rate is halved
_PROGRESS = 0.99
_LEAST_RATE = 1 / 64
_RECOVERY = 1.1


class OneStepAhead(NamedTuple):
    """Forecasts of the matches from `start` on, each from all matches of earlier times.

    Attributes
    ----------
    probabilities : ndarray of shape (N - start, 3) or (N - start, 2)
        Of loss, tie and win of the first, or of loss and win where the likelihood has
        no ties.
    mean, variance : ndarray of shape (N - start,)
        Of the difference of scores x·s.
    residual : ndarray of shape (T,)
        One a time: the largest change that an undamped sweep would make in a
        pseudo-observation of an earlier time, in units of the posterior standard
        deviation (that of `DynamicComparisons.tol`). It is above `tol` only where a fit
        does not converge. It is the change of one sweep, not the distance to a refit:
        where few players meet often, or many matches share a date, forecasts were up to
        twenty times as far, in standard deviations (0.39 at tol=0.02), and 0.04 in
        probability. Compare with a tenth of the tol.
    """

    probabilities: Floats
    mean: Floats
    variance: Floats
    residual: Floats


def one_step_ahead(
    model: DynamicComparisons,
    matches: Matches,
    y: ArrayLike,
    start: int,
    *,
    sample_weight: PerMatch = None,
    offset: PerMatch = None,
    tol: float = 0.02,
) -> OneStepAhead:
    """Forecast each match from `start` on, from all matches of earlier times (section 4
    of [Maystre2019]_).

    Parameters
    ----------
    model : DynamicComparisons
        Its parameters say what is fitted; it is not changed.
    matches : Matches
    y : array-like of shape (N,)
        Their outcomes.
    start : int
        The first match that is forecast. Some match must be earlier.
    sample_weight, offset : array-like of shape (N,), optional
        As in `DynamicComparisons.fit`.
    tol : float
        Before each forecast, what is known is swept until `residual` is at most tol. On
        the NBA's games 0.02 takes a sweep a day, and a tenth of it changes the log loss
        by 1e-5; on short or concentrated histories lower it: the time grows with 1/tol.

    Returns
    -------
    OneStepAhead

    Raises
    ------
    ValueError
        On a start out of range, and as `DynamicComparisons.fit`.

    Warns
    -----
    ConvergenceWarning
        If a residual is above tol.

    Notes
    -----
    A time takes a pass over the histories of the features that its matches move. So the
    time is in proportion to the matches where histories have one length, and to times x
    matches for few players with long ones.

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
       flexible time-dynamics", KDD 2019.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, DynamicComparisons, Probit, one_step_ahead
    >>> from preflearn.matches import Matches
    >>> matches = Matches([[1, -1], [1, -1], [1, -1]], [0, 1, 2], ["Ann", "Bob"])
    >>> ahead = one_step_ahead(DynamicComparisons(Constant(1.0), Probit()), matches, [1, 1, -1], start=1)
    >>> ahead.probabilities.round(3).tolist()
    [[0.283, 0.717], [0.204, 0.796]]
    """
    played = check_problem(model, matches, y, sample_weight, offset)
    require(0 < as_real(tol) < np.inf, tol, "tol", "a positive number")
    first = n_earlier(matches, start)
    fitted: Any = clone(model)
    warn_about_units(fitted.covariance, matches.time, fitted.likelihood.noise)
    with laid_out(fitted, matches, played) as sweep:
        sweep.features()
        sweep.check_deviations()
        ahead = _Ahead(sweep, matches, played, fitted, float(tol))
        ahead.fit(first)
        cuts = [
            *(first + np.flatnonzero(np.diff(matches.time[first:])) + 1).tolist(),
            len(matches),
        ]
        for begin, end in pairwise([first, *cuts]):  # the matches at each time
            ahead.forecast(begin, end)
            ahead.reveal(begin, end)
    residual = np.array(ahead.residual)
    if (late := ~(residual <= tol)).any():
        text = f"no convergence before {late.sum()} of {len(late)} times, the first of them number "
        text += f"{np.argmax(late)}: sweeps and a fit leave changes of up to {residual.max():.1e}, more than "
        warn_user(
            f"{text}tol={tol:g}; raise the model's max_iter, or lower its tol",
            ConvergenceWarning,
        )
    x = matches.design.data
    starts = matches.design.indptr
    mean, variance = (part[start:] for part in differences(x, starts, *ahead.moments.T))
    mean += sweep.played[np.argsort(sweep.schedule.order)[start:], 2]
    probabilities = fitted.likelihood.probabilities(mean, variance)
    return OneStepAhead(probabilities, mean, variance, residual)


class _Ahead:
    """The state that moves on in time: pseudo-observations of all that is revealed."""

    def __init__(
        self,
        sweep: Sweep,
        matches: Matches,
        played: Floats,
        model: DynamicComparisons,
        tol: float,
    ) -> None:
        self._sweep = sweep
        self._matches = matches
        self._played = played
        self._model = model
        self._tol = tol
        schedule = sweep.schedule
        (entry, _, start) = sweep.schedule.visits
        self._here = np.argsort(schedule.entry_order)
        self._place = np.argsort(schedule.order)
        # of each entry
        self._match = np.repeat(np.arange(len(played)), np.diff(schedule.rows))
        self._feature = np.empty_like(self._match)
        self._feature[entry] = np.repeat(np.arange(len(start) - 1), np.diff(start))
        self._debt = np.full(len(start) - 1, np.inf)  # of each feature
        # matches that have not made their whole step
        self._pending = np.empty(0, dtype=np.int64)
        self._listed = np.zeros(len(played), dtype=np.bool_)  # for the update under way
        # the moments of the last update
        self._seen = np.full((len(self._here), 2), np.inf)
        # of each entry of the design, when it was forecast
        self.moments = np.zeros((len(self._here), 2))
        self.residual: list[float] = []
        self._most_rate = sweep.calm if model.rate == "auto" else as_real(model.rate)
        self._rate = self._most_rate

    def fit(self, known: int) -> None:
        """Take the pseudo-observations of the first matches from a fit of them, from
        nothing."""
        some = self._matches[:known]
        y = self._played[:known]
        infer(self._model, some, y)  # `check` looks at the residuals
        self._sweep.entries[self._here[: some.design.nnz], :2] = (
            self._model.pseudo_observations_
        )
        self._seen[:], self._debt[:], self._pending = np.inf, np.inf, self._pending[:0]
        self._rate = self._most_rate

    def forecast(self, begin: int, end: int) -> None:
        """Note the forecasts of matches begin..end, from what is known before them."""
        here = slice(*self._matches.design.indptr[[begin, end]])
        self._debt[self._feature[self._here[here]]] = np.inf
        change = self._swept(begin)
        if not change <= self._tol:
            self.fit(begin)
            change = self._swept(begin)
        self.residual.append(change)
        self.moments[here] = self._sweep.entries[self._here[here], 2:]

    def _swept(self, known: int) -> float:
        """Sweep the first matches until nothing changes by more than tol, or there is
        no hope of it."""
        before = math.inf
        for _ in range(_MOST_SWEEPS):
            moved = self._debt > _DEBT * self._tol
            self._sweep.features(moved)
            self._debt[moved] = 0.0
            change = self._update(known, np.flatnonzero(moved))
            if change <= self._tol or not math.isfinite(change):
                return change
            self._turn(0.5 if change > _PROGRESS * before else _RECOVERY)
            self._move()
            before = change
        return before

    def _turn(self, factor: float) -> None:
        """To a rate that is smaller or larger by a factor."""
        self._rate = min(max(factor * self._rate, _LEAST_RATE), self._most_rate)

    def reveal(self, begin: int, end: int) -> None:
        """Make a step with the outcomes of matches begin..end, too."""
        self._pending = np.append(self._pending, self._place[begin:end])
        if math.isfinite(self._update(end, self._pending[:0])):
            self._move()
            self._turn(_RECOVERY)
        else:
            self.fit(end)

    def _update(self, known: int, features: Ids) -> float:
        """By Algorithm 1, of pending matches and of the known ones of some features
        whose moments moved.

        Returns the largest change that it would make.
        """
        sweep = self._sweep
        schedule = self._sweep.schedule
        change, self._pending = _update(
            _STILL * self._tol,
            known,
            features,
            self._pending,
            self._listed,
            self._match,
            self._seen,
            schedule.order,
            *schedule.visits[::2],
            sweep.ep,
            *sweep.law,
            sweep.played,
            schedule.rows,
            schedule.coefficients,
            sweep.entries,
            sweep.updated,
        )
        return change

    def _move(self) -> None:
        """A step of the pending matches, by the present rate."""
        sweep = self._sweep
        still = _STILL * self._tol
        now = (
            sweep.ep,
            self._rate,
            still,
            self._pending,
            sweep.schedule.rows,
            self._feature,
        )
        self._pending = _move(*now, sweep.entries, sweep.updated, self._debt)


@njit_nogil
def _update(
    still,
    until,
    features,
    pending,
    listed,
    match,
    seen,
    order,
    entry,
    start,
    ep,
    law,
    a,
    b,
    played,
    rows,
    coefficients,
    entries,
    updated,
):
    """Update matches; the largest change, and which they are."""
    worst = 0.0
    count = len(pending)
    found = np.empty(len(listed), dtype=np.int64)
    found[:count] = pending
    listed[pending] = True
    for f in features:
        for i in range(start[f], start[f + 1]):
            e = entry[i]
            n = match[e]
            v = entries[e, 3]
            if order[n] >= until:
                break
            far = entries[e, 2] - seen[e, 0]
            wide = entries[e, 3] - seen[e, 1]
            if not (
                listed[n] or (far * far <= still * still * v and abs(wide) <= still * v)
            ):
                found[count] = n
                listed[n] = True
                count += 1
    listed[found[:count]] = False
    for n in found[:count]:
        change = update_matches(
            ep, law, a, b, played, rows, coefficients, entries, updated, n, n + 1
        )[1]
        seen[rows[n] : rows[n + 1]] = entries[rows[n] : rows[n + 1], 2:]
        if not change <= worst:  # NaN where one of them is no number
            worst = change if change > worst else math.inf
    return worst, found[:count].copy()


@njit_nogil
def _move(ep, rate, still, some, rows, feature, entries, updated, debt):
    """A damped step of some matches, noted as a debt of their features; those with more
    to do.

    A step (da, db) of alpha and beta moves the score, of mean m and variance v, by at
    most sqrt(v) |da - m db| + v |db| standard deviations, to first order.
    """
    count = 0
    rest = np.empty_like(some)
    for n in some:
        more = False
        for e in range(rows[n], rows[n + 1]):
            alpha = updated[e, 0] - entries[e, 0]
            beta = updated[e, 1] - entries[e, 1]
            m = entries[e, 2]
            v = entries[e, 3]
            if ep:  # from the cavity to the posterior
                v /= 1.0 + entries[e, 1] * v
                m = v * (m / entries[e, 3] + entries[e, 0])
            shift = math.sqrt(v) * abs(alpha - m * beta)
            turn = v * abs(beta)
            debt[feature[e]] += rate * (shift + turn)
            entries[e, 0] += rate * alpha
            entries[e, 1] += rate * beta
            more |= (1.0 - rate) * max(shift, turn) > still
        if more:
            rest[count] = n
            count += 1
    return rest[:count]
