"""A Gaussian over the states of several features at one time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from preflearn.core.validation import Floats, Ids


class ScoreState(NamedTuple):
    """Mean and covariance of the states of features, one after the other.

    Attributes
    ----------
    names : tuple of length F
        Features, each of them seen in a match.
    space : ndarray of int, shape (F,)
        Number of the state-space model of each.
    first : ndarray of shape (F,)
        First time of each.
    place : ndarray of int, shape (F + 1,)
        Where the state of each begins; the last is D.
    mean : ndarray of shape (D,)
    covariance : ndarray of shape (D, D)
    time : float
        Minus infinity where no score moves.
    """

    names: tuple[Hashable, ...]
    space: Ids
    first: Floats
    place: Ids
    mean: Floats
    covariance: Floats
    time: float


def restricted(state: ScoreState, names: tuple[Hashable, ...]) -> ScoreState:
    """The state of those features that are among some names, in the order of these."""
    slot_of = {name: k for k, name in enumerate(state.names)}
    slots = np.array(
        [slot_of[name] for name in names if name in slot_of], dtype=np.int64
    )
    sizes = np.diff(state.place)[slots]
    place = np.concatenate([[0], np.cumsum(sizes)])
    within = np.arange(place[-1]) - np.repeat(place[:-1], sizes)
    entries = np.repeat(state.place[slots], sizes) + within
    return ScoreState(
        tuple(state.names[k] for k in slots),
        state.space[slots],
        state.first[slots],
        place,
        state.mean[entries],
        state.covariance[np.ix_(entries, entries)],
        state.time,
    )
