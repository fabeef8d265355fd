"""A Gaussian over the states of several features at one time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from preflearn.core.validation import Floats, Ids


class ScoreState(NamedTuple):
    """Mean and covariance of the states of several features, one after the other.

    Attributes
    ----------
    names : tuple of length F
        Features, each of which was in a match.
    space : ndarray of int, shape (F,)
        Number of each feature's state-space model.
    first : ndarray of shape (F,)
        First time of each feature.
    place : ndarray of int, shape (F + 1,)
        Start of each feature's state; the last entry is D.
    mean : ndarray of shape (D,)
        Mean of the state.
    covariance : ndarray of shape (D, D)
        Covariance matrix of the state.
    time : float
        Time of the state; minus infinity if no score changes.
    """

    names: tuple[Hashable, ...]
    space: Ids
    first: Floats
    place: Ids
    mean: Floats
    covariance: Floats
    time: float


def restricted(state: ScoreState, names: tuple[Hashable, ...]) -> ScoreState:
    """State of the features that are among some names, in the order of the names."""
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
