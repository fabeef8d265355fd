"""Draws of future score differences from a Gaussian over the present states."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from preflearn.core.validation import Floats
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.engine.joint_filter import Rows
from preflearn.dynamics.engine.score_state import ScoreState


def square_root(covariance: Floats) -> Floats:
    """A matrix R with R R' = covariance, which may be singular; shape (..., K, K)."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]


def draw_differences(
    state: ScoreState,
    prior: Prior,
    names: tuple[Hashable, ...],
    rows: Rows,
    sampling: tuple[int, np.random.Generator],
) -> Floats:
    """Draw x·s(t) of rows, without the prior means.

    Parameters
    ----------
    state : ScoreState
        State of the features in the last match; other features have their prior.
    prior : Prior
    names : tuple of length F
        Features of the columns.
    rows : Rows
        Rows of a design and their times, none earlier than the time of the state.
    sampling : (int, Generator)
        Number of draws and random number generator.

    Returns
    -------
    ndarray of shape (n_draws, n)
    """
    all_draws = [
        _StateDraws(k, state, prior, names, sampling)
        for k in np.unique(prior.space_index(names))
    ]
    n_draws, rng = sampling
    normal = rng.standard_normal((n_draws, len(state.mean)))
    start = state.mean + normal @ square_root(state.covariance).T
    for draws in all_draws:
        draws.begin(state, start)
    result = np.empty((n_draws, len(rows.time)))
    scores = np.empty((n_draws, len(names)))
    times, begin = np.unique(rows.time, return_index=True)
    for time, low, high in zip(times, begin, [*begin[1:], len(rows.time)], strict=True):
        for draws in all_draws:
            scores[:, draws.columns] = draws.scores_at(time)
        result[:, low:high] = scores @ rows.design[low:high].T
    return result


class _StateDraws:
    """Draws of the states of all features that share a state-space model."""

    def __init__(
        self,
        k: int,
        state: ScoreState,
        prior: Prior,
        names: tuple[Hashable, ...],
        sampling: tuple[int, np.random.Generator],
    ) -> None:
        self._space = prior.spaces[k]
        self._n_draws, self._rng = sampling
        slot_of = {name: i for i, name in enumerate(state.names)}
        self.columns = np.flatnonzero(prior.space_index(names) == k)
        self._slots = np.array([slot_of.get(names[c], -1) for c in self.columns])
        self._first = np.where(self._slots >= 0, state.first[self._slots], np.nan)
        self._states = np.zeros((len(self.columns), self._n_draws, self._space.size))
        self._time = state.time

    def begin(self, state: ScoreState, start: Floats) -> None:
        """Set the states of the features that were in a match."""
        for i in np.flatnonzero(self._slots >= 0):
            place = slice(*state.place[[self._slots[i], self._slots[i] + 1]])
            self._states[i] = start[:, place]

    def scores_at(self, time: float) -> Floats:
        """Advance to a time and return the scores there, shape (n_draws, features)."""
        new = np.isnan(self._first)
        now = np.full(len(self._first), time)
        since = np.full(len(self._first), max(self._time, -np.finfo(float).max))
        if not np.isfinite(self._time):
            since = now
        since[new] = time
        self._first[new] = time
        A, Q = self._space.transitions(since, now, self._first)
        if new.any():
            Q[new] = self._space.initial(now[new])
        self._states = self._states @ np.swapaxes(A, 1, 2)
        if Q.any():
            normal = self._rng.standard_normal(self._states.shape)
            self._states += normal @ np.swapaxes(square_root(Q), 1, 2)
        self._time = time
        return (self._states @ self._space.measurement).T
