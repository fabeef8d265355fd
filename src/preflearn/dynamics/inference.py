"""The engine on trusted arrays: for all matches, or for those only that later ones touch.

Scores of the players of a new match move, and with them the pseudo-observations of their other matches. Those
belong to opponents, too, whose scores move less, as a match is a small part of what is known of each. So
`nearby` has some features *active*: they are smoothed, and the pseudo-observations of their matches updated,
to convergence; those of all others are held. Where a held one would change by more than the tolerance, its
feature becomes active, and sweeps begin anew. In the end no sweep of all would change more than that, and the
evidence, a sum over features and matches, changed by what the active ones and their matches add to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from preflearn.checks import Floats, Ids, as_real
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.engine.acceleration import Mixing
from preflearn.dynamics.engine.algorithm import TRACE, Plain, Sweep, fixed_point
from preflearn.dynamics.engine.schedule import schedule_of
from preflearn.dynamics.engine.threads import team
from preflearn.matches import Matches, trusted

_MOST = 0.5  # of the matches: with more, sweeps of all of them are as fast
_TAIL = 0.1  # of the matches, after those whose features were looked up


@contextmanager
def laid_out(
    model: Any, matches: Matches, outcomes: Floats, entries: Floats | None = None
) -> Iterator[Sweep]:
    """The sweep by a model's parameters, from given pseudo-observations or none; its team works meanwhile.

    `entries` has their alpha and beta, and may have mean and variance.
    """
    with team(model.n_threads) as share:
        schedule = schedule_of(matches, Prior(model.covariance))
        sweep = Sweep(schedule, model.likelihood, outcomes, ep=model.method == "ep", share=share)
        if entries is not None:
            sweep.entries[:, : entries.shape[1]] = entries[schedule.entry_order]
        yield sweep


class Solved(NamedTuple):
    """A fixed point: entries as of `Sweep`, in the order of the design; what TRACE names, one row a sweep."""

    entries: Floats
    trace: dict[str, NDArray]
    converged: bool


def solved(model: Any, sweep: Sweep) -> Solved:
    """Sweeps to convergence, by a model's parameters."""
    step = Mixing(sweep) if model.rate == "auto" else Plain(sweep, as_real(model.rate))
    trace, converged = fixed_point(sweep, step, tol=model.tol, max_iter=int(model.max_iter))
    entries = np.empty_like(sweep.entries)
    entries[sweep.schedule.entry_order] = sweep.entries
    noted: Any = dict(zip(TRACE, map(np.array, zip(*trace, strict=True)), strict=True))
    return Solved(entries, noted, converged)


def differences(x: Floats, starts: NDArray, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of x·s of each match, from those of the scores, one an entry of the design.

    `starts`, of one more than there are matches, says where the entries of each begin.
    """
    begin = starts[:-1] - starts[0]
    return np.add.reduceat(x * mean, begin), np.add.reduceat(x * x * variance, begin)


class State:
    """What an update needs to know of the one before.

    Parameters
    ----------
    matches : Matches
    entries : ndarray of shape (E, 4)
        As of `Solved`.
    residual : float
        Of a sweep of all.
    """

    def __init__(self, matches: Matches, entries: Floats, residual: float) -> None:
        self.matches, self.entries, self.residual = matches, entries, residual
        by_column = matches.design.tocsc()
        self._begins, self._rows, self._known = by_column.indptr, by_column.indices, len(matches)

    def joined(self, matches: Matches) -> State:
        """With later matches, of which nothing is learned yet."""
        entries = np.zeros((matches.design.nnz, 4))
        entries[: len(self.entries)] = self.entries
        if len(matches) - self._known > _TAIL * len(matches):
            return State(matches, entries, self.residual)
        state = copy(self)
        state.matches, state.entries = matches, entries
        return state

    def part(self, active: NDArray[np.bool_]) -> tuple[Matches, Ids, Ids, Ids]:
        """The matches of active features, of their own features only; which matches, features and entries."""
        design, n = self.matches.design, len(self.matches)
        mine = np.zeros(n, dtype=np.bool_)
        for feature in np.flatnonzero(active[: len(self._begins) - 1]):
            mine[self._rows[self._begins[feature] : self._begins[feature + 1]]] = True
        tail = np.repeat(np.arange(self._known, n), np.diff(design.indptr[self._known :]))
        mine[tail[active[design.indices[design.indptr[self._known] :]]]] = True
        rows = np.flatnonzero(mine)
        lengths = np.diff(design.indptr)[rows]
        ends = np.append(0, np.cumsum(lengths))
        here = np.arange(ends[-1]) + np.repeat(design.indptr[rows] - ends[:-1], lengths)
        columns, column = np.unique(design.indices[here], return_inverse=True)
        some = sparse.csr_array((design.data[here], column, ends), (len(rows), len(columns)))
        names = tuple(self.matches.features[k] for k in columns)
        return trusted(some, self.matches.time[rows], names), rows, columns, here


def nearby(model: Any, before: State, matches: Matches, outcomes: Floats) -> tuple[State, Solved] | None:
    """Learn matches, of which the first ones are those so far, by sweeps of what the others touch.

    Returns the state, and what was solved, with the change of the evidence of all for the evidence. None, if
    all had better be swept, or sweeps do not converge.
    """
    state, known, design = before.joined(matches), len(before.matches), matches.design
    active = np.zeros(len(matches.features), dtype=np.bool_)
    active[design.indices[design.indptr[known] :]] = True
    for _ in range(len(active)):  # each time at least one more is active
        part, rows, columns, here = state.part(active)
        if len(rows) > _MOST * len(matches):
            return None
        with laid_out(model, part, outcomes[rows], state.entries[here]) as sweep:
            schedule = sweep.schedule
            held = ~active[columns[part.design.indices]][schedule.entry_order]
            sweep.some, sweep.held = active[columns][np.argsort(schedule.rank)], np.flatnonzero(held)
            sweep.features()
            new = np.flatnonzero(schedule.order >= np.searchsorted(rows, known))
            foretold = math.fsum(sweep.update(slice(n, n + 1))[0] for n in new)
            found = solved(model, sweep)
        residual = max(state.residual, found.trace["residual"][-1], sweep.late.max(initial=0.0))
        if not found.converged or residual <= model.tol:
            break
        late = schedule.entry_order[sweep.held[sweep.late > model.tol]]
        active[columns[part.design.indices[late]]] = True
    if not (found.converged and residual <= model.tol):
        return None
    state.entries[here], state.residual = found.entries, residual
    found.trace["evidence"] -= found.trace["evidence"][0] - foretold
    found.trace["residual"][-1] = residual
    return state, found
