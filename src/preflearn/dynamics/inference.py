"""The engine on trusted arrays: for all matches, or for those only that later ones touch.

Scores of the players of a new match move, and with them the pseudo-observations of their other matches. Those
belong to opponents, too, whose scores move less, as a match is a small part of what is known of each. So
`nearby` has some features *active*: they are smoothed, and all of their matches are updated, to convergence.
The other features of these matches keep their moments, though their pseudo-observations change. A step of
alpha and beta moves a score by at most sd |da - c db| + v |db| standard deviations, with its mean c and
variance v there. It moves another pseudo-observation of the feature by the share of this that that one has
in what is known, beta v. Where the sum of what was not smoothed could be more than the tolerance leaves, the
feature becomes active, and sweeps begin anew. Sums are kept from update to update.

The evidence is a sum over features and matches, of which only what the active ones and their matches add is
found again. It counts the old pseudo-observations of features that are not active: it is stationary in them,
so the error is of the square of these sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

_MOST = 0.25  # of the matches: with more, sweeps of all of them are as fast
_WITHIN = 0.5  # of the tolerance, where all is not swept: the rest is for what is not smoothed
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


def solved(model: Any, sweep: Sweep, tol: float) -> Solved:
    """Sweeps to convergence, by a model's other parameters."""
    step = Mixing(sweep) if model.rate == "auto" else Plain(sweep, as_real(model.rate))
    trace, converged = fixed_point(sweep, step, tol=tol, max_iter=int(model.max_iter))
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
        Of the last sweep of all.

    Attributes
    ----------
    debt : ndarray of shape (M,)
        By how many standard deviations each feature's scores may have moved since they were smoothed.
    weight : ndarray of shape (M,)
        The largest share of a pseudo-observation in what is known of each feature, at most 1.
    """

    def __init__(self, matches: Matches, entries: Floats, residual: float) -> None:
        self.matches, self.entries, self.residual = matches, entries, residual
        self.debt, self.weight = np.zeros((2, len(matches.features)))
        np.maximum.at(self.weight, matches.design.indices, _weights(entries))
        self._look_up()

    def _look_up(self) -> None:
        by_column = self.matches.design.tocsc()
        self._begins, self._rows, self._known = by_column.indptr, by_column.indices, len(self.matches)

    def joined(self, matches: Matches) -> State:
        """With later matches, of which nothing is learned yet."""
        state = State.__new__(State)
        state.__dict__.update(self.__dict__, matches=matches)
        more, added = matches.design.nnz - len(self.entries), len(matches.features) - len(self.debt)
        state.entries = np.concatenate([self.entries, np.zeros((more, 4))])
        state.debt, state.weight = (np.pad(part, (0, added)) for part in (self.debt, self.weight))
        if len(matches) - self._known > _TAIL * len(matches):
            state._look_up()
        return state

    def rows_of(self, active: NDArray[np.bool_]) -> Ids:
        """The matches of active features, ascending."""
        design, n = self.matches.design, len(self.matches)
        mine = np.zeros(n, dtype=np.bool_)
        for feature in np.flatnonzero(active[: len(self._begins) - 1]):
            mine[self._rows[self._begins[feature] : self._begins[feature + 1]]] = True
        tail = np.repeat(np.arange(self._known, n), np.diff(design.indptr[self._known :]))
        mine[tail[active[design.indices[design.indptr[self._known] :]]]] = True
        return np.flatnonzero(mine)

    def part(self, rows: Ids) -> tuple[Matches, Ids, Ids]:
        """These matches, of their own features; columns of the features, and entries, here."""
        lengths = np.diff(self.matches.design.indptr)[rows]
        ends = np.append(0, np.cumsum(lengths))
        here = np.arange(ends[-1]) + np.repeat(self.matches.design.indptr[rows] - ends[:-1], lengths)
        some, columns = self._some(here, ends, self.matches.time[rows])
        return some, columns, here

    def visits(self, active: NDArray[np.bool_]) -> tuple[Matches, Floats]:
        """Those of active features, as matches of one each; alpha and beta."""
        matches, columns, here = self.part(self.rows_of(active))
        mine = active[columns[matches.design.indices]]
        time = np.repeat(matches.time, np.diff(matches.design.indptr))[mine]
        return self._some(here[mine], np.arange(len(time) + 1), time)[0], self.entries[here[mine], :2]

    def _some(self, here: Ids, ends: Ids, time: Floats) -> tuple[Matches, Ids]:
        """Matches of these entries, of their own features only, and which features they are."""
        columns, column = np.unique(self.matches.design.indices[here], return_inverse=True)
        design = sparse.csr_array((self.matches.design.data[here], column, ends), (len(time), len(columns)))
        return trusted(design, time, tuple(self.matches.features[k] for k in columns)), columns


def _weights(entries: Floats) -> Floats:
    return np.minimum(entries[:, 1] * entries[:, 3], 1.0)


def nearby(model: Any, before: State, matches: Matches, outcomes: Floats) -> tuple[State, Solved] | None:
    """Learn matches, of which the first ones are those so far, by sweeps of what the others touch.

    Returns the state, and what was solved, with the change of the evidence of all for the evidence. None, if
    all had better be swept, or sweeps do not converge.
    """
    state, known, design = before.joined(matches), len(before.matches), matches.design
    active = np.zeros(len(state.debt), dtype=np.bool_)
    active[design.indices[design.indptr[known] :]] = True
    for _ in range(len(active)):  # each time at least one more is active
        rows = state.rows_of(active)
        if len(rows) > _MOST * len(matches):
            return None
        part, columns, here = state.part(rows)
        old, column = state.entries[here], part.design.indices
        rest = ~active[columns[column]]
        with laid_out(model, part, outcomes[rows], old) as sweep:
            sweep.some = active[columns][np.argsort(sweep.schedule.rank)]
            evidence = sweep.matches(sweep.features()).evidence
            evidence -= _foretold(
                model.likelihood, sweep, part, outcomes[rows], int(np.searchsorted(rows, known))
            )
            found = solved(model, sweep, _WITHIN * model.tol)
            if not found.converged:
                return None
            sites = np.where(rest[:, None], old, found.entries)[sweep.schedule.entry_order]
            sweep.entries[:, :2] = sites[:, :2]
            gain = sweep.matches(sweep.features()).evidence - evidence
        owed = state.debt[columns] + np.bincount(column, rest * _moved(sweep.ep, old, found.entries))
        owed[active[columns]] = 0
        residual = max(state.residual, found.trace["residual"][-1])
        bound = owed * state.weight[columns] + residual
        if not (bound[~active[columns]] > model.tol).any():
            state.entries[here], state.debt[columns], state.residual = found.entries, owed, residual
            np.maximum.at(state.weight, columns[column], _weights(found.entries))
            found.trace["evidence"] -= evidence
            found.trace["evidence"][-1] = gain
            found.trace["residual"][-1] = bound.max()
            return state, found
        active[columns[bound > model.tol]] = True
    return None


def _moved(ep: bool, old: Floats, new: Floats) -> Floats:
    """By how many standard deviations a feature's scores move with its entry, at most."""
    variance = old[:, 3] / (1.0 + old[:, 1] * old[:, 3] if ep else 1.0)
    alpha, beta = (new - old)[:, :2].T
    return np.sqrt(variance) * np.abs(alpha - old[:, 2] * beta) + variance * np.abs(beta)


def _foretold(likelihood: Any, sweep: Sweep, matches: Matches, outcomes: Floats, begin: Any) -> float:
    """The evidence of matches of which nothing is learned, from `begin` on."""
    moments = np.empty((len(sweep.entries), 2))
    moments[sweep.schedule.entry_order] = sweep.entries[:, 2:]
    starts = matches.design.indptr[begin:]
    found = differences(matches.design.data[starts[0] :], starts, *moments[starts[0] :].T)
    return float(likelihood._each(sweep.ep, outcomes[begin:], *found)[0].sum())
