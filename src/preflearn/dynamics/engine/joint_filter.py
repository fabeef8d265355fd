"""Kalman filter and smoother over all features, for the joint posterior.

It is used if scores change. The states of the features are stacked to one state of size
D. A *visit* is a distinct row of the design at a time. It has a pseudo-observation
exp(alpha z - beta z²/2) of the difference z = h·s, where h has the entries of the row
at the positions of its features' scores. A visit is an update of rank one, as in
`smoother`, whose equations apply with this h:

    k = P h,   P <- P - k k' beta u,   and backward   t = N k,   N <- N - w (h t' + t h') + ...

The update of P and the product N k take D² operations; everything else takes D
operations, because h has few entries.

The stacked state contains a feature from its first visit to its last. Before the first
visit, its state is independent of all others. After the last visit, no match contains
information about the feature, so r and N are 0 there. An *epoch* is a sequence of times
with the same features in the stack. Only the lower triangles of P and N are stored.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.core.validation import Floats, Ids
from preflearn.dynamics.covariances.blocks import AGE
from preflearn.dynamics.covariances.state_space import StateSpace
from preflearn.dynamics.engine.schedule import distinct
from preflearn.dynamics.engine.smoother import _add_log_z, _count_negative, _moments
from preflearn.dynamics.engine.threads import (
    njit_free_sums,
    njit_nogil,
    njit_nogil_inner,
)

_NO_ADJOINTS = np.empty((0, 0))
_NO_FEATURES = np.empty(0, dtype=np.int64)


class Rows(NamedTuple):
    """Rows of a design with times, in time order.

    Attributes
    ----------
    design : csr_array of shape (V, F)
    time : ndarray of shape (V,)
    """

    design: Any
    time: Floats


class Measurements(NamedTuple):
    """The vectors h of all visits.

    From `start[v]` on, they have the value `x` at the position `within` of the state of
    a feature.
    """

    start: NDArray
    feature: NDArray
    within: NDArray
    x: Floats


class Steps(NamedTuple):
    """Distinct transitions: A and Q of a feature's state, one per row.

    Smaller states use a part of the last two axes. `diagonal` is whether all A are
    diagonal.
    """

    A: Floats
    A_transposed: Floats
    Q: Floats
    diagonal: bool


class Epoch(NamedTuple):
    """Times at which the same features are in the stack.

    Attributes
    ----------
    features : ndarray of int, shape (n,)
        Features in the stack.
    place : ndarray of int, shape (n + 1,)
        Start of each feature's state; the last entry is D.
    place_of : ndarray of int, shape (F,)
        Start of the state by feature number.
    group : ndarray of int, shape (n,)
        Group of each feature; features of a group have the same transitions.
    steps : ndarray of int, shape (T, groups)
        Row of `Steps` for the transition to each time from the previous time.
    begin, end : int
        First visit, and the one after the last.
    when : ndarray of int, shape (end - begin,)
        Number of each visit's time in the epoch.
    """

    features: Ids
    place: Ids
    place_of: Ids
    group: Ids
    steps: NDArray
    begin: int
    end: int
    when: Ids


class JointFilter:
    """Filter and smoother over the stacked state.

    Parameters
    ----------
    rows : Rows
        Visits.
    spaces : list of StateSpace
        State-space models.
    space_of : ndarray of int, shape (F,)
        Number of each feature's state-space model.
    keep : ndarray of int
        Features that stay in the stack until the last time.
    """

    def __init__(
        self,
        rows: Rows,
        spaces: list[StateSpace],
        space_of: Ids,
        keep: Ids = _NO_FEATURES,
    ) -> None:
        self._spaces = spaces
        self._space_of = space_of
        self._rows = rows
        self.sizes = np.array([spaces[k].size for k in space_of])
        self._times, self._when = np.unique(rows.time, return_inverse=True)
        self.first, self.last = self._windows()
        # features without visits have no window to extend
        visited = keep[self.last[keep] >= 0]
        self.last[visited] = len(self._times) - 1
        self._measurements = self._make_measurements()
        self._epochs, self._survivors, self._steps = self._make_epochs()
        self._gains: list[Floats] = []
        self._kept = np.empty((len(rows.time), 3))
        self.max_std = 0.0

    def _windows(self) -> tuple[Ids, Ids]:
        """Numbers of the first and the last time of each feature."""
        design = self._rows.design
        when = np.repeat(self._when, np.diff(design.indptr))
        first = np.full(design.shape[1], len(self._times))
        last = np.full(design.shape[1], -1)
        np.minimum.at(first, design.indices, when)
        np.maximum.at(last, design.indices, when)
        return first, last

    def _make_measurements(self) -> Measurements:
        design = self._rows.design
        places = [np.flatnonzero(space.measurement) for space in self._spaces]
        space = self._space_of[design.indices]
        counts = np.array([len(place) for place in places])[space]
        start = np.concatenate([[0], np.cumsum(counts)])[design.indptr]
        within = np.concatenate([np.empty(0, np.int64), *(places[k] for k in space)])
        return Measurements(
            start.astype(np.int64),
            np.repeat(design.indices, counts).astype(np.int64),
            within,
            np.repeat(design.data, counts),
        )

    def _make_epochs(self) -> tuple[list[Epoch], list[NDArray[np.bool_]], Steps]:
        """The epochs, the entries of the stack that stay in each, and transitions."""
        visited = np.flatnonzero(self.last >= 0)
        changes = np.concatenate([self.first[visited], self.last[visited] + 1])
        cuts = np.unique(np.append(changes, [0, len(self._times)]))
        cuts = cuts[cuts <= len(self._times)].tolist()
        by_first = visited[np.argsort(self.first[visited], kind="stable")]
        visit_cuts = np.searchsorted(self._when, cuts).tolist()
        entered = np.searchsorted(self.first[by_first], cuts).tolist()
        table = _StepTable(self._spaces, self._times)
        epochs = []
        survivors = []
        features = by_first[:0]
        for e, (begin, end) in enumerate(pairwise(cuts)):
            stays = self.last[features] >= begin
            survivors.append(np.repeat(stays, self.sizes[features]))
            new = by_first[entered[e] : entered[e + 1]]
            features = np.concatenate([features[stays], new])
            place = np.concatenate([[0], np.cumsum(self.sizes[features])])
            place_of = np.zeros(len(self.sizes), dtype=np.int64)
            place_of[features] = place[:-1]
            first_time = self._times[self.first[features]]
            group, steps = table.add(self._space_of[features], first_time, (begin, end))
            visits = slice(visit_cuts[e], visit_cuts[e + 1])
            when = self._when[visits] - begin
            epochs.append(
                Epoch(
                    features,
                    place,
                    place_of,
                    group,
                    steps,
                    visits.start,
                    visits.stop,
                    when,
                )
            )
        return epochs, survivors, table.finish()

    def smooth(self, sites: Floats, moments: Floats) -> float:
        """Write the cavity moments of each visit's z; return log Z~.

        The cavity is the posterior without the visit's own pseudo-observation.

        Parameters
        ----------
        sites, moments : ndarray of shape (V, 2)
            alpha and beta, and the cavity's mean and variance.
        """
        log_z, _, _ = self.filter(sites)
        self.smooth_back(sites, moments)
        if math.isnan(log_z):
            moments[:] = math.nan
        return log_z

    def filter(
        self, sites: Floats, keep_gains: bool = True
    ) -> tuple[float, Floats, Floats]:
        """Forward pass: log Z~, and mean and covariance of the stack after the last visit.

        Only the lower triangle of the covariance is filled. The gains, of D numbers per
        visit, are only needed for a backward pass.
        """
        if keep_gains and not self._gains:
            self._gains = [
                np.empty((epoch.end - epoch.begin, epoch.place[-1]))
                for epoch in self._epochs
            ]
        P = np.zeros((0, 0))
        m = np.zeros(0)
        total = 0.0
        n_negative = 0
        # a negative beta can raise a filtered variance far above that of the prior
        has_prior_bound = bool(np.all(sites[:, 1] >= 0.0))
        for e, epoch in enumerate(self._epochs):
            P, m = self._enter(e, P, m)
            gains = self._gains[e] if keep_gains else np.empty((1, epoch.place[-1]))
            visits = self._measurements, sites, gains, self._kept
            log_z, negative, square = _filter_epoch(P, m, epoch, self._steps, visits)
            total += log_z
            n_negative += negative
            if has_prior_bound:
                self.max_std = max(self.max_std, math.sqrt(square))
        if n_negative != 0:
            total = math.nan
        return total, m, P

    def predict(self, sites: Floats) -> Floats:
        """Mean and variance of each visit's z given the visits before it, shape (V, 2)."""
        self.filter(sites, keep_gains=False)
        return np.maximum(self._kept[:, :2], [-np.inf, 0.0])

    def _enter(self, e: int, P: Floats, m: Floats) -> tuple[Floats, Floats]:
        """Prediction for an epoch's first time; new features have their prior."""
        epoch = self._epochs[e]
        survivors = self._survivors[e]
        P = np.ascontiguousarray(P[survivors][:, survivors])
        m = m[survivors]
        _move(P, m, epoch, self._steps)
        size = len(m)
        wide = np.zeros((epoch.place[-1], epoch.place[-1]))
        wide[:size, :size] = P
        n_staying = int(np.searchsorted(epoch.place, size))
        for i in range(n_staying, len(epoch.features)):
            feature = epoch.features[i]
            here = slice(epoch.place[i], epoch.place[i + 1])
            time = self._times[self.first[feature]]
            space = self._spaces[self._space_of[feature]]
            wide[here, here] = space.initial(np.array([time]))[0]
        return wide, np.append(m, np.zeros(len(wide) - size))

    def smooth_back(
        self, sites: Floats, moments: Floats, until: int = 0, adjoints: int = -1
    ) -> Floats:
        """Backward pass, after `filter`: write cavities of visits from `until` on.

        The method returns t = N k of the visits in the epoch of the visit `adjoints`,
        if it is at least 0.
        """
        kept = _NO_ADJOINTS
        N = np.zeros((self._epochs[-1].place[-1],) * 2)
        r = np.zeros(len(N))
        for e in range(len(self._epochs) - 1, -1, -1):
            epoch = self._epochs[e]
            visits = self._measurements, sites, self._gains[e], self._kept
            wanted = _NO_ADJOINTS
            if epoch.begin <= adjoints < epoch.end:
                wanted = kept = np.empty_like(self._gains[e])
            _smooth_epoch(N, r, epoch, self._steps, visits, moments, wanted)
            if e == 0 or epoch.begin <= until:
                break
            N, r = self._leave(e, N, r)
        return kept

    def _leave(self, e: int, N: Floats, r: Floats) -> tuple[Floats, Floats]:
        """Step from an epoch's first time back to the last time of the previous epoch."""
        survivors = self._survivors[e]
        size = int(survivors.sum())
        N = np.ascontiguousarray(N[:size, :size])
        r = r[:size].copy()
        _move_back(N, r, self._epochs[e], self._steps)
        wide = np.zeros((len(survivors), len(survivors)))
        wide[np.ix_(survivors, survivors)] = N
        r_wide = np.zeros(len(survivors))
        r_wide[survivors] = r
        return wide, r_wide

    def covariances_at(self, visits: slice, sites: Floats) -> tuple[Floats, Floats]:
        """Means and covariances of z of visits at one time: h_i'P h_j - k_i'N k_j.

        The visits have no pseudo-observations.
        """
        self.filter(sites)
        moments = np.empty_like(sites)
        adjoints = self.smooth_back(sites, moments, visits.start, visits.start)
        e = next(k for k, epoch in enumerate(self._epochs) if visits.start < epoch.end)
        epoch = self._epochs[e]
        own = slice(visits.start - epoch.begin, visits.stop - epoch.begin)
        gains = self._gains[e][own]
        H = np.zeros_like(gains)
        start, feature, within, x = self._measurements
        for i, visit in enumerate(range(visits.start, visits.stop)):
            entries = slice(start[visit], start[visit + 1])
            place = epoch.place_of[feature[entries]] + within[entries]
            np.add.at(H[i], place, x[entries])
        covariance = gains @ H.T - gains @ adjoints[own].T
        return moments[visits, 0], (covariance + covariance.T) / 2

    def final_state(self, sites: Floats) -> tuple[Ids, Floats, Floats]:
        """Features in the stack at the last time, and mean and covariance of their states.

        The shapes of mean and covariance are (D,) and (D, D).
        """
        _, m, P = self.filter(sites, keep_gains=False)
        lower = np.tril(P)
        return self._epochs[-1].features, m, lower + np.tril(lower, -1).T


class _StepTable:
    """Collects the transitions of all epochs and computes the distinct ones."""

    def __init__(self, spaces: list[StateSpace], times: Floats) -> None:
        self._spaces = spaces
        self._times = times
        self._asked: list[list[tuple[Floats, ...]]] = [[] for _ in spaces]
        self._targets: list[list[NDArray]] = [[] for _ in spaces]

    def add(
        self, space: Ids, first: Floats, window: tuple[int, int]
    ) -> tuple[Ids, NDArray]:
        """Group features by state-space model and first time.

        The method returns the groups and the rows of their steps to the times of a
        window, which `finish` sets.
        """
        begin, end = window
        ages = np.array([AGE in model.depends for model in self._spaces])
        key = np.where(ages[space], first, 0.0)
        kinds, group = distinct([space, key])
        steps = np.zeros((end - begin, len(kinds)), dtype=np.int32)
        stop = self._times[begin:end]
        start = self._times[np.maximum(np.arange(begin, end) - 1, 0)]
        for column, i in enumerate(kinds):
            k = space[i]
            origin = np.full(len(stop), first[i])
            # The first step of a new feature is not used. It must not start before the
            # feature, where the covariance may be undefined; first[i] is the earliest
            # first time of the group.
            since = np.maximum(start, first[i])
            self._asked[k].append((since, stop, origin))
            self._targets[k].append(steps[:, column])
        return group, steps

    def finish(self) -> Steps:
        size = max(space.size for space in self._spaces)
        parts_A = [np.zeros((0, size, size))]
        parts_Q = [np.zeros((0, size, size))]
        count = 0
        for space, asked, targets in zip(
            self._spaces, self._asked, self._targets, strict=True
        ):
            if not asked:
                continue
            start, end, first = (
                np.concatenate(part) for part in zip(*asked, strict=True)
            )
            some, row = distinct(space.keys(start, end, first))
            A, Q = space.transitions(start[some], end[some], first[some])
            pad = [(0, 0), (0, size - space.size), (0, size - space.size)]
            parts_A.append(np.pad(A, pad))
            parts_Q.append(np.pad(Q, pad))
            cuts = np.cumsum([len(target) for target in targets])[:-1]
            for target, rows in zip(targets, np.split(row, cuts), strict=True):
                target[:] = rows + count
            count += len(some)
        A = np.concatenate(parts_A)
        off_diagonal = A * (1.0 - np.eye(size))
        return Steps(
            A,
            np.ascontiguousarray(np.swapaxes(A, 1, 2)),
            np.concatenate(parts_Q),
            not off_diagonal.any(),
        )


def costs(rows: Rows, sizes: Ids) -> tuple[float, float]:
    """Sums of D and of D² over all visits, with D the size of the stack.

    The first sum counts the numbers that a sweep stores, the second its operations.
    """
    design = rows.design
    n = len(rows.time)
    visit = np.repeat(np.arange(n), np.diff(design.indptr))
    first = np.full(design.shape[1], n)
    last = np.full(design.shape[1], -1)
    np.minimum.at(first, design.indices, visit)
    np.maximum.at(last, design.indices, visit)
    seen = last >= 0
    change = np.zeros(n + 1)
    np.add.at(change, first[seen], sizes[seen])
    np.subtract.at(change, last[seen] + 1, sizes[seen])
    size = np.cumsum(change[:-1])
    return float(size.sum()), float(size @ size)


# ---- Compiled


@njit_nogil
def _filter_epoch(P, m, epoch, steps, visits):
    """Filter all visits of an epoch; P and m are predictions for its first time.

    The function returns the epoch's part of log Z~, its part of the number of negative
    eigenvalues of the posterior precision (see `smoother`), and the largest sum of x²
    times a variance.
    """
    h, sites, gains, kept = visits
    total = 0.0
    product = 1.0
    n_negative = 0
    largest = 0.0
    size = len(m)
    now = 0
    for i in range(epoch.end - epoch.begin):
        visit = epoch.begin + i
        while now < epoch.when[i]:
            now += 1
            _carry(P, m, epoch, epoch.steps[now], steps.A, steps.diagonal)
            _add_noise(P, epoch, epoch.steps[now], steps.Q)
        k = gains[min(i, len(gains) - 1)]  # one row is reused if gains are not kept
        square = _gain(P, h, epoch.place_of, visit, k)
        largest = max(largest, square)
        p = 0.0
        c = 0.0
        for j in range(h.start[visit], h.start[visit + 1]):
            place = epoch.place_of[h.feature[j]] + h.within[j]
            p += h.x[j] * m[place]
            c += h.x[j] * k[place]
        alpha = sites[visit, 0]
        beta = sites[visit, 1]
        u = 1.0 / (1.0 + beta * c)
        kept[visit, 0] = p
        kept[visit, 1] = c
        kept[visit, 2] = u
        n_negative = _count_negative(n_negative, beta, u)
        total, product = _add_log_z(total, product, alpha, beta, p, c, u)
        e = (alpha - beta * p) * u
        if beta == 0.0 and e == 0.0:
            continue
        for a in range(size):
            m[a] += k[a] * e
            f = k[a] * beta * u
            for b in range(a + 1):
                P[a, b] -= f * k[b]
    return total + 0.5 * math.log(product), n_negative, largest


@njit_nogil_inner
def _gain(P, h, place_of, visit, k):
    """Write k = P h from the lower triangle; return the sum of x² times variances."""
    size = len(k)
    k[:] = 0.0
    square = 0.0
    for j in range(h.start[visit], h.start[visit + 1]):
        x = h.x[j]
        place = place_of[h.feature[j]] + h.within[j]
        square += x * x * P[place, place]
        for b in range(place + 1):
            k[b] += x * P[place, b]
        for b in range(place + 1, size):
            k[b] += x * P[b, place]
    return square


@njit_free_sums
def _smooth_epoch(N, r, epoch, steps, visits, moments, adjoints):
    """Go back through the visits of an epoch to its first time; write the cavities."""
    h, sites, gains, kept = visits
    size = len(r)
    t = np.empty(size)
    now = len(epoch.steps) - 1
    for i in range(epoch.end - epoch.begin - 1, -1, -1):
        visit = epoch.begin + i
        while now > epoch.when[i]:
            _carry(N, r, epoch, epoch.steps[now], steps.A_transposed, steps.diagonal)
            now -= 1
        k = gains[i]
        kr = 0.0
        q = 0.0
        t[:] = 0.0
        for a in range(size):
            own = k[a]
            inner = N[a, a] * own
            for b in range(a):
                inner += N[a, b] * k[b]
                t[b] += N[a, b] * own
            t[a] += inner
            kr += own * r[a]
        for a in range(size):
            q += k[a] * t[a]
        if len(adjoints):
            adjoints[i] = t
        alpha = sites[visit, 0]
        beta = sites[visit, 1]
        p = kept[visit, 0]
        c = kept[visit, 1]
        u = kept[visit, 2]
        mean, variance = _moments(True, alpha, beta, p, c, u, kr, q)
        moments[visit, 0] = mean
        moments[visit, 1] = variance
        w = beta * u
        e = (alpha - beta * p) * u - w * kr
        _add_visit(N, r, h, epoch.place_of, visit, (t, e, w, w + w * w * q))
    while now > 0:
        _carry(N, r, epoch, epoch.steps[now], steps.A_transposed, steps.diagonal)
        now -= 1


@njit_nogil_inner
def _add_visit(N, r, h, place_of, visit, update):
    """r + h e and N - w (h t' + t h') + f h h', in the lower triangle.

    `update` is (t, e, w, f).
    """
    t, e, w, f = update
    first = h.start[visit]
    last = h.start[visit + 1]
    for j in range(first, last):
        x = h.x[j]
        place = place_of[h.feature[j]] + h.within[j]
        r[place] += x * e
        for b in range(place + 1):
            N[place, b] -= w * x * t[b]
        for b in range(place, len(r)):
            N[b, place] -= w * x * t[b]
        for i in range(first, last):
            other = place_of[h.feature[i]] + h.within[i]
            if other <= place:
                N[place, other] += f * x * h.x[i]


@njit_nogil
def _move(P, m, epoch, steps):
    """Advance to the first time of an epoch, for features that stay."""
    _carry(P, m, epoch, epoch.steps[0], steps.A, steps.diagonal)
    _add_noise(P, epoch, epoch.steps[0], steps.Q)


@njit_nogil
def _move_back(N, r, epoch, steps):
    """Go back from the first time of an epoch, for features that stay."""
    _carry(N, r, epoch, epoch.steps[0], steps.A_transposed, steps.diagonal)


@njit_nogil_inner
def _add_noise(P, epoch, rows, Q):
    """Add Q to the lower triangles of the diagonal blocks."""
    place = epoch.place
    for i in range(len(epoch.features)):
        first = place[i]
        if first >= len(P):
            break
        row = rows[epoch.group[i]]
        for a in range(place[i + 1] - first):
            for b in range(a + 1):
                P[first + a, first + b] += Q[row, a, b]


@njit_nogil_inner
def _carry(M, v, epoch, rows, A, diagonal):
    """A M A' in the lower triangle, and A v, with a block of A for each feature.

    Features beyond the size of M are skipped.
    """
    place = epoch.place
    n = 0
    while n < len(epoch.features) and place[n] < len(v):
        n += 1
    if diagonal:
        factor = np.empty(len(v))
        for i in range(n):
            row = rows[epoch.group[i]]
            for a in range(place[i + 1] - place[i]):
                factor[place[i] + a] = A[row, a, a]
        for a in range(len(v)):
            v[a] *= factor[a]
            f = factor[a]
            for b in range(a + 1):
                M[a, b] *= f * factor[b]
        return
    size = A.shape[1]
    buffer = np.empty((size, len(v)))
    u = np.empty(size)
    for i in range(n):  # A M
        first = place[i]
        last = place[i + 1]
        row = rows[epoch.group[i]]
        for a in range(first, last):
            for b in range(a + 1, last):
                M[a, b] = M[b, a]
        for a in range(last - first):
            u[a] = 0.0
            for b in range(last):
                buffer[a, b] = 0.0
            for d in range(last - first):
                f = A[row, a, d]
                if f != 0.0:
                    u[a] += f * v[first + d]
                    for b in range(last):
                        buffer[a, b] += f * M[first + d, b]
        for a in range(last - first):
            v[first + a] = u[a]
            for b in range(last):
                M[first + a, b] = buffer[a, b]
    for i in range(n):  # and from the right
        first = place[i]
        last = place[i + 1]
        row = rows[epoch.group[i]]
        for b in range(first, len(v)):
            for a in range(last - first):
                u[a] = 0.0
                for d in range(last - first):
                    u[a] += A[row, a, d] * M[b, first + d]
            for a in range(last - first):
                M[b, first + a] = u[a]
