"""Forecasts of each match from all earlier ones, without one fit per day.

See section 4 of [Maystre2019]_. This module is for the factorized posterior, and
`joint_forecasting` is for the joint posterior.

The schedule contains all matches from the start. A future match has a
pseudo-observation without information (alpha = beta = 0), so the smoother computes its
forecast together with the posterior of the past. Then its outcome is added, and sweeps
update everything that it affects. A match whose moments did not change is not updated.
A feature is not smoothed while its debt is small: the debt is a bound on the change of
its scores due to the steps of its pseudo-observations since it was last smoothed. If
sweeps do not converge, the model is fitted again.

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
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from preflearn.core.validation import Floats, Ids, PerMatch, as_real, require, warn_user
from preflearn.dynamics.covariances.prior import warn_about_gaps, warn_about_units
from preflearn.dynamics.engine.algorithm import (
    Sweep,
    larger_or_inf,
    update_matches,
)
from preflearn.dynamics.engine.threads import njit_nogil
from preflearn.dynamics.joint_forecasting import forecast_jointly
from preflearn.dynamics.model import (
    DynamicComparisons,
    check_problem,
    differences,
    infer,
    prepare_sweep,
)
from preflearn.matches import Matches, n_earlier

# Fractions of the tolerance: a match whose moments changed by less is not updated; a
# feature whose scores changed by less is not smoothed, unless it is forecast.
_MIN_MOVE = 0.05
_MIN_DEBT = 1.0
_MAX_SWEEPS = 100  # sweeps for one time; after these, the model is fitted again
# the rate is halved if a sweep leaves more than this fraction of the change
_PROGRESS = 0.99
_MIN_RATE = 1 / 64
_RECOVERY = 1.1  # growth of the rate otherwise


class OneStepAhead(NamedTuple):
    """Result of `one_step_ahead`: forecasts of the matches from `start` on.

    Each match is forecast from all matches of earlier times.

    Attributes
    ----------
    probabilities : ndarray of shape (N - start, 3) or (N - start, 2)
        Probabilities of loss, tie, and win of the first, or of loss and win if the
        likelihood has no ties.
    mean, variance : ndarray of shape (N - start,)
        Moments of the score difference x·s.
    residual : ndarray of shape (T,)
        For each time, the largest change that an undamped sweep would make in a
        pseudo-observation of an earlier time, in units of the posterior standard
        deviation (as `DynamicComparisons.tol`). It exceeds `tol` only if a fit does not
        converge. The residual is the change of one sweep, not the distance to a new
        fit. In tests with few players who meet often, or with many matches on one date,
        the distance was up to twenty times the residual (0.39 standard deviations at
        tol=0.02), or 0.04 in probability. To check this, repeat the forecast with a
        tenth of the `tol`. With posterior="joint" and log-concave likelihoods, the
        distance was up to 0.13 standard deviations at tol=0.02, or 0.006 in
        probability.
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
    """Forecast each match from `start` on, from all matches of earlier times.

    Use it to evaluate a model as in section 4 of [Maystre2019]_. It is much faster than
    one fit per date. The model's posterior may be "factorized" or "joint".

    Parameters
    ----------
    model : DynamicComparisons
        Model whose parameters are used; it is not changed.
    matches : Matches
        All matches, including those before `start`.
    y : array-like of shape (N,)
        Outcomes of the matches.
    start : int
        Row number of the first match to forecast. At least one match must be earlier.
    sample_weight, offset : array-like of shape (N,), optional
        Weights and offsets, as in `DynamicComparisons.fit`.
    tol : float
        Largest residual before each forecast; sweeps over earlier matches continue
        until it is reached. For the NBA games, 0.02 requires one sweep per day, and a
        tenth of it changes the log loss by 1e-5. Choose a smaller value for short
        histories or few players; the time is proportional to 1/tol.

    Returns
    -------
    OneStepAhead

    Raises
    ------
    ValueError
        If `start` is out of range, and in the cases of `DynamicComparisons.fit`.

    Warns
    -----
    ConvergenceWarning
        If a residual is larger than tol.

    Notes
    -----
    *Factorized posterior.* For each time, the algorithm makes a pass over the
    histories of the features that its matches affect. The total time is proportional to
    the number of matches if histories have a fixed length, and to the number of times
    multiplied by the number of matches if few players have long histories.

    *Joint posterior, Gaussian outcomes.* The forecasts are exact, and all residuals are
    0. One pass of a Kalman filter over all features gives all forecasts. Its time is
    proportional to the number of matches times the squared size of the state of all
    features.

    *Joint posterior, other likelihoods.* The model is fitted again at each time, from
    the fit of the previous time, until the residual is at most `tol`. For a small
    `tol`, the forecasts are those of a new fit at each time. Each time takes two to
    three sweeps over the matches so far with tol=0.02, and about seven with 1e-6; the
    documentation of `DynamicComparisons` states the time of a sweep. The total time is
    therefore at most proportional to the number of times multiplied by the number of
    matches.

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
    observations = check_problem(model, matches, y, sample_weight, offset)
    require(0 < as_real(tol) < np.inf, tol, "tol", "a positive number")
    first = n_earlier(matches, start)
    fitted: Any = clone(model)
    warn_about_units(fitted.covariance, matches.time, fitted.likelihood.noise)
    warn_about_gaps(fitted.covariance, matches)
    new_times = first + np.flatnonzero(np.diff(matches.time[first:])) + 1
    cuts = [first, *new_times.tolist(), len(matches)]  # first match of each time
    forecast: Any = _forecast_factorized
    if fitted.posterior == "joint":
        forecast = forecast_jointly
    with prepare_sweep(fitted, matches, observations) as sweep:
        sweep.smooth_features()
        sweep.check_score_scale()
        found = forecast(fitted, sweep, matches, observations, cuts, float(tol))
        mean, variance, residual = found
        mean += (observations[:, 2] + sweep.prior.differences(matches))[first:]
    late = ~(residual <= tol)
    if late.any():
        remedy = "raise the model's max_iter"
        if fitted.posterior == "factorized":
            remedy += ", or lower its tol"
        warn_user(
            f"the forecasts of {late.sum()} of {len(late)} times are inaccurate, beginning with time number "
            f"{np.argmax(late)}: the fit of the earlier matches has a residual of up to "
            f"{residual.max():.1e}, more than tol={tol:g}; {remedy}",
            ConvergenceWarning,
        )
    mean = mean[start - first :]
    variance = variance[start - first :]
    probabilities = fitted.likelihood.probabilities(mean, variance)
    return OneStepAhead(probabilities, mean, variance, residual)


def _forecast_factorized(
    model: DynamicComparisons,
    sweep: Sweep,
    matches: Matches,
    observations: Floats,
    cuts: list[int],
    tol: float,
) -> tuple[Floats, Floats, Floats]:
    """Mean and variance of x·s of the matches from cuts[0] on, and all residuals."""
    online = _OnlineInference(sweep, matches, observations, model, tol)
    online.fit(cuts[0])
    for begin, end in pairwise(cuts):  # the matches at each time
        online.forecast(begin, end)
        online.reveal(begin, end)
    design = matches.design
    mean, variance = differences(design.data, design.indptr, *online.moments.T)
    return mean[cuts[0] :], variance[cuts[0] :], np.array(online.residual)


class _History(NamedTuple):
    """Data about matches and features between sweeps, in the order of the schedule.

    Attributes
    ----------
    match, feature : ndarray of int, shape (E,)
        Match and feature of each entry.
    date_order : ndarray of int, shape (N,)
        Position of each match in time order.
    entry, start
        Arrays of `Visits`.
    last_moments : ndarray of shape (E, 2)
        Mean and variance at the last update of the entry's match.
    is_listed : ndarray of bool, shape (N,)
        Whether the current update has the match on its list.
    debt : ndarray of shape (M,)
        Bound on the change of each feature's scores since it was smoothed.
    """

    match: Ids
    feature: Ids
    date_order: NDArray
    entry: NDArray
    start: NDArray
    last_moments: Floats
    is_listed: NDArray[np.bool_]
    debt: Floats


class _OnlineInference:
    """State of the forecasts: pseudo-observations of all matches with known outcomes."""

    def __init__(
        self,
        sweep: Sweep,
        matches: Matches,
        observations: Floats,
        model: DynamicComparisons,
        tol: float,
    ) -> None:
        self._sweep = sweep
        self._matches = matches
        self._observations = observations
        self._model = model
        self._tol = tol
        schedule = sweep.schedule
        entry, _, start = schedule.visits
        n_entries = len(entry)
        n_features = len(start) - 1
        feature = np.empty(n_entries, dtype=np.int64)
        feature[entry] = np.repeat(np.arange(n_features), np.diff(start))
        self._history = _History(
            match=np.repeat(np.arange(len(observations)), np.diff(schedule.rows)),
            feature=feature,
            date_order=schedule.order,
            entry=entry,
            start=start,
            last_moments=np.full((n_entries, 2), np.inf),
            is_listed=np.zeros(len(observations), dtype=np.bool_),
            debt=np.full(n_features, np.inf),
        )
        # position in the schedule of each entry and match of the caller
        self._entry_place = np.argsort(schedule.entry_order)
        self._match_place = np.argsort(schedule.order)
        # matches whose damped step is incomplete
        self._pending = np.empty(0, dtype=np.int64)
        # moments of each entry of the design, at the time of its forecast
        self.moments = np.zeros((n_entries, 2))
        self.residual: list[float] = []
        if model.rate == "auto":
            self._max_rate = sweep.safe_rate
        else:
            self._max_rate = as_real(model.rate)
        self._rate = self._max_rate

    def fit(self, known: int) -> None:
        """Fit the first matches from zero, and use their pseudo-observations."""
        past = self._matches[:known]
        infer(self._model, past, self._observations[:known])
        places = self._entry_place[: past.design.nnz]
        self._sweep.entries[places, :2] = self._model.pseudo_observations_
        self._history.last_moments[:] = np.inf
        self._history.debt[:] = np.inf
        self._pending = self._pending[:0]
        self._rate = self._max_rate

    def forecast(self, begin: int, end: int) -> None:
        """Store the forecasts of matches begin..end, from all earlier matches."""
        entries = slice(*self._matches.design.indptr[[begin, end]])
        places = self._entry_place[entries]
        self._history.debt[self._history.feature[places]] = np.inf
        change = self._sweep_until_converged(begin)
        if not change <= self._tol:
            self.fit(begin)
            change = self._sweep_until_converged(begin)
        self.residual.append(change)
        self.moments[entries] = self._sweep.entries[places, 2:]

    def _sweep_until_converged(self, known: int) -> float:
        """Sweep the first matches until no change exceeds tol; return the last change.

        The number of sweeps is limited.
        """
        before = math.inf
        for _ in range(_MAX_SWEEPS):
            moved = self._history.debt > _MIN_DEBT * self._tol
            self._sweep.smooth_features(moved)
            self._history.debt[moved] = 0.0
            change = self._update(known, np.flatnonzero(moved))
            if change <= self._tol or not math.isfinite(change):
                return change
            if change > _PROGRESS * before:
                self._scale_rate(0.5)
            else:
                self._scale_rate(_RECOVERY)
            self._move()
            before = change
        return before

    def _scale_rate(self, factor: float) -> None:
        self._rate = min(max(factor * self._rate, _MIN_RATE), self._max_rate)

    def reveal(self, begin: int, end: int) -> None:
        """Add the outcomes of matches begin..end, and make a step."""
        self._pending = np.append(self._pending, self._match_place[begin:end])
        if math.isfinite(self._update(end, self._pending[:0])):
            self._move()
            self._scale_rate(_RECOVERY)
        else:
            self.fit(end)

    def _update(self, known: int, features: Ids) -> float:
        """Update pending matches and affected matches of some features (Algorithm 1).

        A known match of these features is updated if its moments changed. The method
        returns the largest change that a full step would make.
        """
        sweep = self._sweep
        window = known, features, self._pending, _MIN_MOVE * self._tol
        change, self._pending = _update(
            sweep.ep, *sweep.likelihood, sweep.arrays, self._history, window
        )
        return change

    def _move(self) -> None:
        """Make a step of the pending matches with the current rate."""
        self._pending = _move(
            self._sweep.ep,
            self._rate,
            _MIN_MOVE * self._tol,
            self._pending,
            self._sweep.arrays,
            self._history,
        )


@njit_nogil
def _update(ep, integral, power_integral, parameters, arrays, history, window):
    """Update matches; return the largest change and the list of updated matches.

    `window` contains: the number of matches, in time order, whose outcomes are known;
    features whose matches are updated if their moments changed; matches that are
    updated in any case; and the largest negligible change of moments, in standard
    deviations.
    """
    _, rows, _, entries, _ = arrays
    match, _, date_order, entry, start, last_moments, is_listed, _ = history
    known, features, pending, min_move = window
    largest = 0.0
    count = len(pending)
    listed = np.empty(len(is_listed), dtype=np.int64)
    listed[:count] = pending
    is_listed[pending] = True
    for f in features:
        for i in range(start[f], start[f + 1]):
            e = entry[i]
            n = match[e]
            v = entries[e, 3]
            if date_order[n] >= known:
                break
            shift = entries[e, 2] - last_moments[e, 0]
            change = abs(entries[e, 3] - last_moments[e, 1])
            is_still = (
                shift * shift <= min_move * min_move * v and change <= min_move * v
            )
            if not (is_listed[n] or is_still):
                listed[count] = n
                is_listed[n] = True
                count += 1
    is_listed[listed[:count]] = False
    for n in listed[:count]:
        change = update_matches(
            ep, integral, power_integral, parameters, arrays, n, n + 1
        )[1]
        last_moments[rows[n] : rows[n + 1]] = entries[rows[n] : rows[n + 1], 2:]
        largest = larger_or_inf(change, largest)
    return largest, listed[:count].copy()


@njit_nogil
def _move(ep, rate, min_move, pending, arrays, history):
    """Make a damped step of some matches, and increase the debt of their features.

    The function returns the matches whose step is incomplete. To first order, a step
    (da, db) of alpha and beta changes the score, of mean m and variance v, by at most
    sqrt(v) |da - m db| + v |db| standard deviations.
    """
    _, rows, _, entries, updated = arrays
    feature = history.feature
    debt = history.debt
    count = 0
    rest = np.empty_like(pending)
    for n in pending:
        has_more = False
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
            has_more |= (1.0 - rate) * max(shift, turn) > min_move
        if has_more:
            rest[count] = n
            count += 1
    return rest[:count]
