"""Configurations drawn at random from ranges, and what is evaluated of them, over processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed, effective_n_jobs

from preflearn.checks import check_count, require
from preflearn.dynamics.choosing.parameters import Range

_EDGE = 0.05  # of a range's logarithm: nearer to an end counts as near the boundary
_BLOCKS = 8  # of configurations, a process: small enough that no process waits long for another


class Draws:
    """Configurations, each parameter drawn log-uniformly from its range, all before the first is evaluated.

    Attributes
    ----------
    table : DataFrame
        One row a configuration, one column a parameter.
    """

    def __init__(self, ranges: Mapping[str, Range], n_configurations: int, random_state: Any) -> None:
        n = check_count(n_configurations, "n_configurations", least=1)
        limits = np.log(list(ranges.values()))
        at = generator(random_state).uniform(*limits.T, size=(n, len(limits)))
        self.table = pd.DataFrame(np.exp(at), columns=list(ranges))
        self._place = (at - limits[:, 0]) / np.diff(limits)[:, 0]

    def near_boundary(self, row: int) -> tuple[str, ...]:
        """Parameters that a configuration has near an end of their ranges."""
        place = self._place[row]
        return tuple(self.table.columns[(place < _EDGE) | (place > 1 - _EDGE)])


def generator(random_state: Any, name: str = "random_state") -> np.random.Generator:
    """The source of randomness that was asked for; a seed gives the same draws each time."""
    whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    good = isinstance(random_state, np.random.Generator) or bool(whole and random_state >= 0)
    require(good, random_state, name, "a seed, a whole number of at least 0, or a numpy Generator")
    return np.random.default_rng(random_state)


def check_jobs(n_jobs: Any) -> int:
    """Return a number of processes, as joblib understands it, or say what it is."""
    good = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool) and n_jobs != 0
    require(good, n_jobs, "n_jobs", "a whole number of processes, or -1 for all processors")
    return int(n_jobs)


def in_blocks(evaluate: Callable[..., list[Any]], items: list[Any], n_jobs: int, *rest: Any) -> list[Any]:
    """`evaluate(part, *rest)` of all items, in their order: part after part in processes."""
    blocks = np.array_split(np.arange(len(items)), min(len(items), _BLOCKS * effective_n_jobs(n_jobs)))
    done: Any = Parallel(n_jobs=n_jobs, max_nbytes=None)(
        delayed(evaluate)([items[k] for k in block], *rest) for block in blocks
    )
    return [row for rows in done for row in rows]
