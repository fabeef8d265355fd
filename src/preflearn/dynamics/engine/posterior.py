"""Posterior of scores at any time, from the states at the features' matches.

See section 3.3 of [Maystre2019]_.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from preflearn.core.validation import Floats, Ids
from preflearn.dynamics.covariances.blocks import AGE
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.covariances.state_space import (
    StateSpace,
    check_finite,
    is_static,
)
from preflearn.dynamics.engine.schedule import make_schedule
from preflearn.dynamics.engine.score_state import ScoreState
from preflearn.dynamics.engine.smoother import smooth
from preflearn.dynamics.engine.threads import njit_nogil
from preflearn.matches import Matches

_BATCH_ENTRIES = 400_000  # number of matrix entries computed at once for forecasts


class Posterior:
    """Posterior of the scores of features, given their pseudo-observations.

    Features without pseudo-observations have their prior. The filter and the smoother
    run once, in time proportional to the number of matches. Then a forecast at any time
    takes one look-up and two transitions.

    Parameters
    ----------
    prior : Prior
    matches : Matches
    sites : ndarray of shape (E, 2)
        alpha and beta of each entry of the design.

    Attributes
    ----------
    column : dict
        Column of each feature of the matches, by name.
    """

    def __init__(self, prior: Prior, matches: Matches, sites: Floats) -> None:
        self._prior = prior
        n = len(matches.features)
        schedule = make_schedule(matches, prior)
        visits = schedule.visits
        source = schedule.entry_order[visits.entry]
        # an additional feature that was in no match
        self._start = np.append(visits.start, visits.start[-1])
        self.column = {name: k for k, name in enumerate(matches.features)}
        self._rank = np.append(schedule.rank, n)
        known = np.repeat(matches.time, np.diff(matches.design.indptr))[source]
        self._time = np.append(
            known, 0.0
        )  # the last entry is for times after all visits
        width = max(space.size * (space.size + 3) // 2 for space in prior.spaces)
        self._last_time = float(matches.time[-1])
        self._after, self._before = np.empty((2, len(source), width))
        entries = np.pad(sites[schedule.entry_order], [(0, 0), (0, 2)])
        for chunk in schedule.feature_chunks:
            smooth(entries, visits, *chunk, False, self._after, self._before)

    def feature_ids(self, names: tuple[Hashable, ...]) -> Ids:
        """Return rank and state-space model of each feature, shape (2, k).

        Features may have been in no match.

        Raises
        ------
        ValueError
            If a feature that was in no match has no covariance.
        """
        column = np.array([self.column.get(name, -1) for name in names], dtype=np.int64)
        return np.stack([self._rank[column], self._prior.space_index(names)])

    def state_of(self, names: tuple[Hashable, ...]) -> ScoreState:
        """Independent states, at the last match, of the features that were in a match."""
        seen = tuple(name for name in names if self._is_seen(name))
        rank, space = self.feature_ids(seen)
        sizes = np.array([self._prior.spaces[k].size for k in space], dtype=np.int64)
        place = np.concatenate([[0], np.cumsum(sizes)])
        mean = np.zeros(place[-1])
        covariance = np.zeros((place[-1], place[-1]))
        last = self._start[rank + 1] - 1
        first = self._time[self._start[rank]]
        now = self._last_time
        if all(is_static(self._prior.spaces[k]) for k in space):
            now = -np.inf
        for i, k in enumerate(space):
            model = self._prior.spaces[k]
            here = slice(place[i], place[i + 1])
            m, P = _unpacked(self._after[last[i]], model.size)
            start = self._time[last[i : i + 1]]
            end = np.maximum(start, now)
            A, Q = model.transitions(start, end, first[i : i + 1])
            mean[here] = A[0] @ m
            covariance[here, here] = A[0] @ P @ A[0].T + Q[0]
        return ScoreState(seen, space, first, place, mean, covariance, now)

    def _is_seen(self, name: Hashable) -> bool:
        rank = self._rank[self.column.get(name, -1)]
        return bool(self._start[rank + 1] > self._start[rank])

    def moments(self, feature_ids: Ids, time: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of scores, each for a feature and a time.

        Parameters
        ----------
        feature_ids : ndarray of int, shape (2, k)
            Features, as `feature_ids` returns them.
        time : ndarray of shape (k,)
            Time of each score.

        Returns
        -------
        mean, variance : ndarray of shape (k,)

        Raises
        ------
        ValueError
            If the prior is not defined at a time: before the origin of a Wiener
            process, or before the first match with origin="first".
        """
        rank, space = feature_ids
        mean, variance = np.empty((2, len(time)))
        order = np.argsort(space, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(space[order])) + 1):
            model = self._prior.spaces[space[rows[0]]]
            batch = max(_BATCH_ENTRIES // model.size**2, 1)
            for part in np.split(rows, range(batch, len(rows), batch)):
                mean[part], variance[part] = self._moments(
                    model, rank[part], time[part]
                )
        return check_finite(mean), check_finite(variance)

    def _moments(
        self, model: StateSpace, rank: Ids, time: Floats
    ) -> tuple[Floats, Floats]:
        first = self._start[rank]
        place = _next_visits(self._start, self._time, rank, time)
        early = place == first
        followed = place < self._start[rank + 1]
        depends_on_age = any(AGE in block.varies for block in model.blocks)
        if depends_on_age and (early & followed).any():
            row = np.argmax(early & followed)
            raise ValueError(
                f"time {time[row]:g} is before the feature's first match, at "
                f"{self._time[first[row]]:g}, where scores are not defined because the covariance "
                "has origin='first'; use later times, or a number as origin"
            )
        visited = followed | ~early
        begin = np.where(visited, np.minimum(self._time[first], time), time)
        before = np.where(early, time, self._time[place - 1])
        A, Q = model.transitions(before, time, begin)
        Q[early] = model.initial(time[early])
        A_next = model.moves(time, np.where(followed, self._time[place], time))
        between = place, early, followed, A, Q, A_next
        return _score_moments(model.measurement, between, self._after, self._before)


def _unpacked(row: Floats, size: int) -> tuple[Floats, Floats]:
    """m and P from a row that `smooth` wrote."""
    whole = np.zeros((size, size + 1))
    ends = [(a, b) for a in range(size) for b in range(a, size + 1)]
    for value, (a, b) in zip(row, ends, strict=False):
        whole[a, b] = value
    P = whole[:, :-1]
    return whole[:, -1], P + np.triu(P, 1).T


@njit_nogil
def _next_visits(start, known, rank, time):
    """First visit of each feature after a time, by bisection."""
    place = np.empty(len(time), dtype=np.int64)
    for i in range(len(time)):
        low = start[rank[i]]
        high = start[rank[i] + 1]
        while low < high:
            middle = (low + high) // 2
            if known[middle] <= time[i]:
                low = middle + 1
            else:
                high = middle
        place[i] = low
    return place


@njit_nogil
def _score_moments(h, between, after, before):
    """Mean and variance of scores at times between visits.

    `between` has, for each time: the next visit; whether the time is before the first;
    whether there is a later visit; A and Q from the previous visit; and A to the next
    visit. Before the first visit, Q is the covariance of the state itself. Rows
    of `after` and `before` are as `smooth` wrote them: for each row of the matrix, its
    part from the diagonal on, and the entry of the vector.
    """
    next_visit, early, followed, A, Q, A_next = between
    size = len(h)
    moments = np.empty((2, len(next_visit)))
    v = np.empty(size)
    k = np.empty(size)
    t = np.empty(size)
    for i in range(len(next_visit)):
        mean = 0.0
        variance = 0.0
        for a in range(size):
            k[a] = 0.0
            v[a] = 0.0
            for b in range(size):
                k[a] += Q[i, a, b] * h[b]
                v[a] += A[i, b, a] * h[b]
        if not early[i]:  # k = (A P A' + Q) h, from the state after the last visit
            t[:] = 0.0
            state = after[next_visit[i] - 1]
            n = 0
            for a in range(size):
                t[a] += state[n] * v[a]
                for b in range(a + 1, size):
                    n += 1
                    t[a] += state[n] * v[b]
                    t[b] += state[n] * v[a]
                mean += v[a] * state[n + 1]
                n += 2
            for a in range(size):
                for b in range(size):
                    k[a] += A[i, a, b] * t[b]
        for a in range(size):
            variance += k[a] * h[a]
        if followed[i]:  # mean + k·A'r and variance - k·A'N A k, by the next visit
            t[:] = 0.0
            later = before[next_visit[i]]
            n = 0
            for a in range(size):
                for b in range(size):
                    t[a] += A_next[i, a, b] * k[b]
            for a in range(size):
                variance -= later[n] * t[a] * t[a]
                for b in range(a + 1, size):
                    n += 1
                    variance -= 2.0 * later[n] * t[a] * t[b]
                mean += t[a] * later[n + 1]
                n += 2
        moments[0, i] = mean
        moments[1, i] = max(variance, 0.0)
    return moments
