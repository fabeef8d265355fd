"""Joint posterior of the scores of all features, at any time.

From the last match on, the posterior comes from the filtered state of all features and
their transitions; if no score changes, this holds at all times. For times before the
last match, the requested times are visits without pseudo-observation in a pass of the
filter and smoother.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from preflearn.core.validation import Floats, Ids
from preflearn.dynamics.covariances.blocks import AGE
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.covariances.state_space import check_finite, is_static
from preflearn.dynamics.engine.joint import (
    group_matches,
    make_static_scores,
    sums_of,
)
from preflearn.dynamics.engine.joint_filter import JointFilter, Rows
from preflearn.dynamics.engine.score_state import ScoreState, restricted
from preflearn.dynamics.engine.threads import njit_nogil
from preflearn.matches import Matches


class JointPosterior:
    """Joint posterior of all scores, given the pseudo-observations of matches.

    Parameters
    ----------
    prior : Prior
    matches : Matches
    observations : ndarray of shape (N, 3)
        Outcome, weight, and offset of each match.
    sites : ndarray of shape (N, 2)
        alpha and beta of each match.
    """

    def __init__(
        self, prior: Prior, matches: Matches, observations: Floats, sites: Floats
    ) -> None:
        self._prior = prior
        self._matches = matches
        self._space = prior.space_index(matches.features)
        self.moving = not all(is_static(prior.spaces[k]) for k in set(self._space))
        groups = group_matches(matches, observations, self.moving)
        self._rows = groups.rows
        self._sites = sums_of(sites, groups.row_of_match, len(groups.rows.time))
        self.column = {name: k for k, name in enumerate(matches.features)}
        time = np.repeat(matches.time, np.diff(matches.design.indptr))
        self._end = float(matches.time[-1]) if self.moving else -np.inf
        self._state: ScoreState | None = None
        self._kept = np.zeros(len(matches.features), dtype=bool)
        self._first = np.full(len(matches.features), np.inf)
        np.minimum.at(self._first, matches.design.indices, time)

    def _final(self, names: tuple[Hashable, ...]) -> ScoreState:
        """State of the given features, if they were in a match, after the last match.

        It may contain further features: it is stored, and extended when other features
        are requested.
        """
        asked = np.array([self.column.get(name, -1) for name in names])
        asked = asked[asked >= 0]
        asked = asked[np.isfinite(self._first[asked])]
        if self._state is None or not self._kept[asked].all():
            self._kept[asked] = True
            self._state = self._make_state(np.flatnonzero(self._kept))
        return self._state

    def _make_state(self, keep: Ids) -> ScoreState:
        spaces = self._prior.spaces
        if self.moving:
            joint = JointFilter(self._rows, spaces, self._space, keep)
            features, mean, covariance = joint.final_state(self._sites)
        else:
            scores, features = make_static_scores(
                self._rows, spaces, self._space, lambda f, parts: list(map(f, parts))
            )
            mean, covariance = scores.posterior(self._sites)
        self._kept[features] = True
        sizes = [spaces[k].size for k in self._space[features]]
        return ScoreState(
            tuple(self._matches.features[k] for k in features),
            self._space[features],
            self._first[features],
            np.concatenate([[0], np.cumsum(sizes)]),
            mean,
            covariance,
            self._end,
        )

    def state_of(self, names: tuple[Hashable, ...]) -> ScoreState:
        """State after the last match of the features that were in a match."""
        return restricted(self._final(names), names)

    def differences(
        self, names: tuple[Hashable, ...], design: Any, time: Floats
    ) -> tuple[Floats, Floats]:
        """Mean and variance of x·s(t) of rows at times in any order.

        Parameters
        ----------
        names : tuple of length k
            Features of the columns of the design, including features that were in no
            match.
        design : csr_array of shape (n, k)
            Rows x.
        time : ndarray of shape (n,)
            Time of each row.

        Returns
        -------
        mean, variance : ndarray of shape (n,)

        Raises
        ------
        ValueError
            In the cases of `Posterior.moments`.
        """
        late = time >= self._end
        mean = np.empty(len(time))
        variance = np.empty(len(time))
        if late.any():
            state, projected = self._project(design[late], names, time[late])
            mean[late], variance[late] = projected.moments(state)
        if not late.all():
            early = ~late
            mean[early], variance[early] = self._smoothed(
                design[early], names, time[early]
            )
        return check_finite(mean), check_finite(np.maximum(variance, 0.0))

    def joint(self, names: tuple[Hashable, ...], time: float) -> tuple[Floats, Floats]:
        """Mean (F,) and covariance (F, F) of the scores of features at one time."""
        design = sparse.csr_array(sparse.eye_array(len(names)))
        times = np.full(len(names), time)
        if time >= self._end:
            state, projected = self._project(design, names, times)
            mean, covariance = projected.joint(state)
        else:
            rows, sites, queries, alone = self._with_queries(design, names, times)
            joint = JointFilter(rows, self._prior.spaces, self._space)
            begin = int(queries.min())
            visits = slice(begin, begin + len(names))
            order = np.argsort(queries, kind="stable")
            mean = np.empty(len(names))
            covariance = np.empty((len(names), len(names)))
            mean[order], covariance[np.ix_(order, order)] = joint.covariances_at(
                visits, sites
            )
            covariance[np.diag_indices_from(covariance)] += alone
        return check_finite(mean), check_finite(covariance)

    def _smoothed(
        self, design: Any, names: tuple[Hashable, ...], time: Floats
    ) -> tuple[Floats, Floats]:
        """Moments at times before the last match, by a forward and a backward pass."""
        rows, sites, queries, alone = self._with_queries(design, names, time)
        joint = JointFilter(rows, self._prior.spaces, self._space)
        moments = np.empty_like(sites)
        joint.filter(sites)
        joint.smooth_back(sites, moments, int(queries.min()))
        return moments[queries, 0], moments[queries, 1] + alone

    def _with_queries(
        self, design: Any, names: tuple[Hashable, ...], time: Floats
    ) -> tuple[Rows, Floats, Ids, Floats]:
        """Merge the visits and the requested rows in time order.

        The method returns the rows, their pseudo-observations, the positions of the
        requested rows, and the prior variance of their features that were in no match.
        """
        column = np.array([self.column.get(name, -1) for name in names])
        entry_time = np.repeat(time, np.diff(design.indptr))
        feature = column[design.indices]
        seen = feature >= 0
        seen[seen] = np.isfinite(self._first[feature[seen]])
        self._check_ages(feature[seen], entry_time[seen])
        alone = self._prior_variance(design, names, entry_time, ~seen)
        row = np.repeat(np.arange(len(time)), np.diff(design.indptr))[seen]
        own = sparse.csr_array(
            (design.data[seen], (row, feature[seen])), (len(time), len(self._first))
        )
        times = np.append(self._rows.time, time)
        order = np.argsort(times, kind="stable")
        both: Any = sparse.vstack([self._rows.design, own], format="csr")
        both = both[order]
        sites: Floats = np.pad(self._sites, [(0, len(time)), (0, 0)])[order]
        place = np.argsort(order)[len(self._rows.time) :]
        return Rows(both, times[order]), sites, place, alone

    def _check_ages(self, feature: Ids, time: Floats) -> None:
        """Raise ValueError if a time is before a first match at which the prior starts."""
        varies = np.array(
            [any(AGE in b.varies for b in space.blocks) for space in self._prior.spaces]
        )
        early = varies[self._space[feature]] & (time < self._first[feature])
        if early.any():
            at = np.argmax(early)
            first = self._first[feature[at]]
            raise ValueError(
                f"time {time[at]:g} is before the feature's first match, at {first:g}, where "
                "scores are not defined because the covariance has origin='first'; use later "
                "times, or a number as origin"
            )

    def _prior_variance(
        self,
        design: Any,
        names: tuple[Hashable, ...],
        entry_time: Floats,
        wanted: NDArray[np.bool_],
    ) -> Floats:
        """Prior variance that some entries add to x·s, shape (n,)."""
        row = np.repeat(np.arange(design.shape[0]), np.diff(design.indptr))[wanted]
        features = design.indices[wanted]
        added = design.data[wanted] ** 2
        if len(features):
            used = np.unique(features)
            space = np.full(len(names), -1)
            space[used] = self._prior.space_index(tuple(names[k] for k in used))
            for k in np.unique(space[used]):
                model = self._prior.spaces[k]
                h = model.measurement
                some = space[features] == k
                P = model.initial(entry_time[wanted][some])
                added[some] *= P @ h @ h
        return np.bincount(row, added, design.shape[0]).astype(np.float64)

    def _project(
        self, design: Any, names: tuple[Hashable, ...], time: Floats
    ) -> tuple[ScoreState, _Projection]:
        """State at the last match, rows of h'A for it, and later noise."""
        used = np.unique(design.indices)
        state = self._final(tuple(names[k] for k in used))
        slot_of = {name: k for k, name in enumerate(state.names)}
        slots = np.array([slot_of.get(name, -1) for name in names], dtype=np.int64)
        slot = slots[design.indices]
        entry_time = np.repeat(time, np.diff(design.indptr))
        row = np.repeat(np.arange(len(time)), np.diff(design.indptr))
        noise = self._prior_variance(design, names, entry_time, slot < 0)
        parts = []
        for k in np.unique(state.space):
            some = np.flatnonzero(slot >= 0)
            some = some[state.space[slot[some]] == k]
            model = self._prior.spaces[k]
            own = slot[some]
            start = np.full(len(some), state.time)
            if not self.moving:
                start = entry_time[some]
            A, Q = model.transitions(start, entry_time[some], state.first[own])
            x = design.data[some]
            noise += np.bincount(
                row[some], x**2 * (Q @ model.measurement @ model.measurement), len(time)
            )
            values = x[:, None] * (model.measurement @ A)
            columns = state.place[own][:, None] + np.arange(model.size)
            rows = np.broadcast_to(row[some][:, None], columns.shape)
            parts.append((values.ravel(), rows.ravel(), columns.ravel()))
        values, rows, columns = (np.concatenate(p) for p in zip(*parts, strict=True))
        size = len(state.mean)
        gain = sparse.csr_array((values, (rows, columns)), (len(time), size))
        return state, _Projection(gain, noise)


class _Projection(NamedTuple):
    """z = gain · state + noise, with independent noise of given variances."""

    gain: Any
    noise: Floats

    def moments(self, state: ScoreState) -> tuple[Floats, Floats]:
        rows = self.gain.indptr, self.gain.indices, self.gain.data
        variance = _quadratic_forms(rows, state.covariance)
        return self.gain @ state.mean, variance + self.noise

    def joint(self, state: ScoreState) -> tuple[Floats, Floats]:
        covariance = self.gain @ (self.gain @ state.covariance).T
        covariance = (covariance + covariance.T) / 2
        return self.gain @ state.mean, covariance + np.diag(self.noise)


@njit_nogil
def _quadratic_forms(rows, P):
    """x'P x for sparse rows x."""
    starts, columns, values = rows
    result = np.zeros(len(starts) - 1)
    for row in range(len(result)):
        for i in range(starts[row], starts[row + 1]):
            for j in range(starts[row], starts[row + 1]):
                result[row] += values[i] * values[j] * P[columns[i], columns[j]]
    return result
