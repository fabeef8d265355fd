"""The engine on trusted arrays: matches laid out, swept to a fixed point, and told of by differences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, as_real
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.engine.acceleration import Mixing
from preflearn.dynamics.engine.algorithm import TRACE, Plain, Sweep, fixed_point
from preflearn.dynamics.engine.schedule import schedule_of
from preflearn.dynamics.engine.threads import team
from preflearn.matches import Matches


@contextmanager
def laid_out(model: Any, matches: Matches, outcomes: Floats, sites: Floats | None = None) -> Iterator[Sweep]:
    """The sweep by a model's parameters, from given pseudo-observations or none; its team works meanwhile."""
    with team(model.n_threads) as share:
        schedule = schedule_of(matches, Prior(model.covariance))
        sweep = Sweep(schedule, model.likelihood, outcomes, ep=model.method == "ep", share=share)
        if sites is not None:
            sweep.entries[:, :2] = sites[schedule.entry_order]
        yield sweep


class Solved(NamedTuple):
    """A fixed point: alpha and beta, in the order of the design; what TRACE names, one row a sweep."""

    sites: Floats
    trace: dict[str, NDArray]
    converged: bool


def solved(model: Any, sweep: Sweep) -> Solved:
    """Sweeps to convergence, by a model's parameters."""
    step = Mixing(sweep) if model.rate == "auto" else Plain(sweep, as_real(model.rate))
    trace, converged = fixed_point(sweep, step, tol=model.tol, max_iter=int(model.max_iter))
    sites = np.empty((len(sweep.entries), 2))
    sites[sweep.schedule.entry_order] = sweep.entries[:, :2]
    noted: Any = dict(zip(TRACE, map(np.array, zip(*trace, strict=True)), strict=True))
    return Solved(sites, noted, converged)


def differences(x: Floats, starts: NDArray, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of x·s of each match, from those of the scores, one an entry of the design.

    `starts`, of one more than there are matches, says where the entries of each begin.
    """
    begin = starts[:-1] - starts[0]
    return np.add.reduceat(x * mean, begin), np.add.reduceat(x * x * variance, begin)
