# Row numbers have four bytes but have the type Ids, like those of eight bytes:
# pyright: reportReturnType=false
"""Flat arrays for inference: the entries of matches, and the visits of features.

An entry of the design is one feature in one match. The algorithm reads matches in turn,
and it reads each feature's matches (visits) in time order. One of the two must access
memory out of order. All data of an entry are therefore in one row, so that a match of
two features has 64 bytes. Matches and features are numbered such that most accesses are
close: features from the rarest to the most frequent, matches by their rarest feature.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from preflearn.core.validation import Floats, Ids
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.covariances.state_space import StateSpace
from preflearn.dynamics.engine.smoother import StateTables, Visits
from preflearn.dynamics.engine.threads import part_size
from preflearn.matches import Matches


class Schedule(NamedTuple):
    """Matches in the order in which inference reads them.

    Attributes
    ----------
    prior : Prior
        Covariances and means of the features.
    order : ndarray of int, shape (N,)
        For each match of the schedule, its row number in the caller's matches.
    entry_order : ndarray of int, shape (E,)
        For each entry of the schedule, its number in the caller's design.
    rank : ndarray of int, shape (M,)
        For each feature of the caller, its number in the schedule.
    rows : ndarray of int, shape (N + 1,)
        First entry of each match.
    coefficients : ndarray of shape (E,)
        x of each entry.
    visits : Visits
        Visits of the features.
    feature_chunks : list of (StateTables, ndarray of int)
        Features in parts of about equal work, with their state-space model.
    """

    prior: Prior
    order: NDArray
    entry_order: NDArray
    rank: NDArray
    rows: Ids
    coefficients: Floats
    visits: Visits
    feature_chunks: list[tuple[StateTables, Ids]]


def make_schedule(matches: Matches, prior: Prior) -> Schedule:
    """Arrange matches for inference; ValueError if a feature has no covariance."""
    design = matches.design
    n_features = design.shape[1]
    counts = np.bincount(design.indices, minlength=n_features)
    rank = np.empty(n_features, dtype=np.int32)
    rank[np.argsort(counts, kind="stable")] = np.arange(n_features, dtype=np.int32)
    columns = rank[design.indices]
    rarest = np.minimum.reduceat(columns, design.indptr[:-1])
    order = np.argsort(rarest, kind="stable").astype(np.int32)
    indptr: NDArray = design.indptr
    lengths = np.diff(indptr)
    rows: NDArray = np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.int32)
    here = np.arange(design.nnz, dtype=np.int32)
    entry_order = here + np.repeat(indptr[order] - rows[:-1], lengths[order])
    here[entry_order] = np.arange(design.nnz, dtype=np.int32)
    # Sort entries by feature, then by time: a transposition, in linear time.
    by_match = sparse.csr_array((here, columns, design.indptr), shape=design.shape)
    entry: NDArray = by_match.tocsc().data
    start = np.concatenate([[0], np.cumsum(counts[np.argsort(rank)])])
    when = np.repeat(matches.time, lengths)[entry_order[entry]]
    space_here = np.empty(n_features, dtype=np.int64)
    space_here[rank] = prior.space_index(matches.features)
    step = np.zeros(len(entry), dtype=np.int32)
    feature_chunks = []
    for k, space in enumerate(prior.spaces):
        feature_chunks += _feature_chunks(space, space_here == k, start, when, step)
    return Schedule(
        prior,
        order,
        entry_order,
        rank,
        rows,
        coefficients=design.data[entry_order],
        visits=Visits(entry, step, start),
        feature_chunks=feature_chunks,
    )


def _feature_chunks(
    space: StateSpace, mine: NDArray[np.bool_], start: Ids, when: Floats, step: NDArray
) -> list[tuple[StateTables, Ids]]:
    """Tabulate all transitions, and set `step` for the visits of these features."""
    lengths = np.diff(start)
    features = np.flatnonzero(mine & (lengths > 0))
    first = start[features]
    begins, step[first] = distinct([when[first]])
    initial = space.initial(when[first][begins])
    later = np.repeat(mine, lengths)
    later[first] = False
    later = np.flatnonzero(later)
    first_time = np.repeat(when[first], lengths[features] - 1)
    kinds, step[later] = distinct(space.keys(when[later - 1], when[later], first_time))
    some = later[kinds]
    table = space.steps(when[some - 1], when[some], first_time[kinds])
    tables = StateTables(space.layout, initial, table)
    # parts with about equal numbers of visits, independent of the number of threads
    visits = lengths[features]
    part = (np.cumsum(visits) - visits) // part_size(int(visits.sum()))
    return [(tables, features[part == k]) for k in np.unique(part)]


def distinct(keys: Iterable[NDArray]) -> tuple[Ids, Ids]:
    """First position of each distinct row of the keys, and number of each row."""
    # linear time; rows are numbered in order of appearance
    codes, *others = (pd.factorize(key)[0] for key in keys)
    for other in others:
        codes = pd.factorize(codes * (other.max(initial=0) + 1) + other)[0]
    first = np.empty(codes.max(initial=-1) + 1, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first, codes
