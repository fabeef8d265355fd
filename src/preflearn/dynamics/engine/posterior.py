"""The posterior of scores at any time, from the states at the features' own matches
(section 3.3 of P4).

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
from preflearn.dynamics.covariances.state_space import StateSpace, check_finite
from preflearn.dynamics.engine.schedule import schedule_of
from preflearn.dynamics.engine.threads import njit_nogil
from preflearn.matches import Matches

_TOGETHER = 400_000  # entries of matrices of forecasts that are made together


class Posterior:
    """Scores of features, given their pseudo-observations; the prior where there are
    none.

    What the matches up to each time say, and what those after it say, is found once, in
    time proportional to their number. Then a forecast at any time takes one look-up and
    two transitions.

    Parameters
    ----------
    prior : Prior
    matches : Matches
    sites : ndarray of shape (E, 2)
        alpha and beta of each entry of the design.

    Attributes
    ----------
    column : dict
        That of each feature of the matches, by name.
    """

    def __init__(self, prior: Prior, matches: Matches, sites: Floats) -> None:
        self._prior = prior
        n = len(matches.features)
        schedule = schedule_of(matches, prior)
        entry, _, start = schedule.visits
        source = schedule.entry_order[entry]
        self._start = np.append(start, start[-1])  # the last one was in no match
        self.column = {name: k for k, name in enumerate(matches.features)}
        self._rank = np.append(schedule.rank, n)
        known = np.repeat(matches.time, np.diff(matches.design.indptr))[source]
        self._time = np.append(known, 0.0)  # also where there is no visit
        width = max(space.size * (space.size + 3) // 2 for space in prior.spaces)
        self._after, self._before = np.empty((2, len(entry), width))
        entries = np.pad(sites[schedule.entry_order], [(0, 0), (0, 2)])
        for group in schedule.groups:
            for features in group.chunks:
                group.smooth(
                    entries, schedule.visits, features, False, self._after, self._before
                )

    def of(self, names: tuple[Hashable, ...]) -> Ids:
        """Rank and state-space model of each feature, (2, k), also of those that were
        in no match.

        Raises
        ------
        ValueError
            If one that was in no match has no covariance.
        """
        column = np.array([self.column.get(name, -1) for name in names], dtype=np.int64)
        return np.stack([self._rank[column], self._prior.of(names)])

    def moments(self, of: Ids, time: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of scores, each of a feature and at a time.

        Parameters
        ----------
        of : ndarray of int, shape (2, k)
            Each feature, as `of` tells it.
        time : ndarray of shape (k,)

        Returns
        -------
        mean, variance : ndarray of shape (k,)

        Raises
        ------
        ValueError
            If the prior is not defined at a time: before the origin of a Wiener
            process, or before the first match with origin="first".
        """
        (rank, space), (mean, variance) = of, np.empty((2, len(time)))
        order = np.argsort(space, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(space[order])) + 1):
            model = self._prior.spaces[space[rows[0]]]
            many = max(_TOGETHER // model.size**2, 1)
            for part in np.split(rows, range(many, len(rows), many)):
                mean[part], variance[part] = self._moments(
                    model, rank[part], time[part]
                )
        return check_finite(mean), check_finite(variance)

    def _moments(
        self, model: StateSpace, rank: Ids, time: Floats
    ) -> tuple[Floats, Floats]:
        first = self._start[rank]
        place = _places(self._start, self._time, rank, time)
        # before all visits; before one of them
        early = place == first
        seen = place < self._start[rank + 1]
        if (early & seen).any() and any(AGE in block.varies for block in model.blocks):
            row = np.argmax(early & seen)
            text = f"a time is {time[row]:g}, before the feature's first match, at {self._time[first[row]]:g}"
            raise ValueError(
                f"{text}; expected times from it on, since the covariance has origin='first'"
            )
        begin = np.where(seen | ~early, np.minimum(self._time[first], time), time)
        A, Q = model.transitions(
            np.where(early, time, self._time[place - 1]), time, begin
        )
        Q[early] = model.initial(time[early])
        on = model.moves(time, np.where(seen, self._time[place], time))
        return _told(
            model.measurement, place, early, seen, A, Q, on, self._after, self._before
        )


@njit_nogil
def _places(start, known, rank, time):
    """The first visit of each feature that is later than a time; by halving."""
    place = np.empty(len(time), dtype=np.int64)
    for i in range(len(time)):
        low = start[rank[i]]
        high = start[rank[i] + 1]
        while low < high:  # which halves
            middle = (low + high) // 2
            if known[middle] <= time[i]:
                low = middle + 1
            else:
                high = middle
        place[i] = low
    return place


@njit_nogil
def _told(h, place, early, seen, A, Q, on, after, before):
    """Mean and variance of scores; Q is the covariance of the state where it is
    `early`.

    Rows of `after` and `before` are as `smoother` wrote them: of each row of the
    matrix, its part from the diagonal on, and the entry of the vector.
    """
    size = len(h)
    found = np.empty((2, len(place)))
    v = np.empty(size)
    k = np.empty(size)
    t = np.empty(size)
    for i in range(len(place)):
        mean = 0.0
        variance = 0.0
        for a in range(size):
            k[a] = 0.0
            v[a] = 0.0
            for b in range(size):
                k[a] += Q[i, a, b] * h[b]
                v[a] += A[i, b, a] * h[b]
        if not early[i]:
            t[:], state, n = 0.0, after[place[i] - 1], 0
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
        if seen[i]:
            t[:], later, n = 0.0, before[place[i]], 0
            for a in range(size):
                for b in range(size):
                    t[a] += on[i, a, b] * k[b]
            for a in range(size):
                variance -= later[n] * t[a] * t[a]
                for b in range(a + 1, size):
                    n += 1
                    variance -= 2.0 * later[n] * t[a] * t[b]
                mean += t[a] * later[n + 1]
                n += 2
        found[0, i], found[1, i] = mean, max(variance, 0.0)
    return found
