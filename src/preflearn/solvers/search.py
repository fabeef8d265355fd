"""A search over named parameters: candidates from a grid or drawn at random, judged in
processes, best first.

A candidate is a row of a table, one column a parameter. All candidates are there before
the first is judged, and none depends on another, so the result does not depend on the
number of processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from preflearn.core.validation import LARGEST, as_real, check_count, generator, require

_EDGE = 0.05  # of a range: nearer to an end counts as near the boundary


class Range(NamedTuple):
    """The values that a parameter may have.

    Attributes
    ----------
    low, high : float
        The least and the largest.
    scale : {"log", "linear"}
        On which values are drawn evenly, and distances from the ends are measured.
    """

    low: float
    high: float
    scale: str = "log"

    def position(self, value: float) -> float:
        """Where a value is, 0 at the least and 1 at the largest."""
        low, at, high = (
            math.log(x) if self.scale == "log" else x
            for x in (self.low, value, self.high)
        )
        return (at - low) / (high - low)


class RandomSearch(NamedTuple):
    """What a random search has found.

    Attributes
    ----------
    configurations : DataFrame
        One row a configuration, as drawn: the parameters, and what was found of it.
    best : int
        The row that was chosen.
    model
        With this configuration.
    near_boundary : dict of str to {"low", "high"}
        Parameters whose best value is within a twentieth of an end of its range, and
        which end: [Maystre2019]_ always makes sure that there are none.

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
       flexible time-dynamics", KDD 2019.
    """

    configurations: pd.DataFrame
    best: int
    model: Any
    near_boundary: dict[str, str]


def check_ranges(ranges: Any, known: Iterable[str]) -> dict[str, Range]:
    """Ranges by name, or ValueError that shows the first that is none.

    Parameters
    ----------
    ranges : mapping of str to (low, high) or (low, high, scale)
        Positive numbers on the scale "log", which is meant where none is given; any on
        "linear".
    known : iterable of str
        Names of parameters that may have a range.

    Examples
    --------
    >>> check_ranges({"rate": (0.1, 1), "angle": (-1, 1, "linear")}, ["rate", "angle"])["rate"]
    Range(low=0.1, high=1.0, scale='log')
    """
    names = ", ".join(known := list(known))
    some = isinstance(ranges, Mapping) and len(ranges) > 0
    require(some, ranges, "ranges", f"a range of at least one of {names}")
    for parameter in ranges:
        require(
            parameter in known, parameter, "a parameter with a range", f"one of {names}"
        )
    return {
        parameter: _range(found, f"ranges[{parameter!r}]")
        for parameter, found in ranges.items()
    }


def _range(found: Any, name: str) -> Range:
    try:
        low, high, *scale = found
    except (TypeError, ValueError):
        low = math.nan
        high = math.nan
        scale = []
    low = as_real(low)
    high = as_real(high)
    if scale == ["linear"]:
        good = -LARGEST <= low < high <= LARGEST
        expected = "two numbers up to 1e100 in size"
    else:
        good = 1 / LARGEST <= low < high <= LARGEST
        expected = "two positive numbers from 1e-100 to 1e100"
    require(
        good and scale in ([], ["log"], ["linear"]),
        found,
        name,
        f"{expected}, the smaller one first",
    )
    return Range(low, high, *scale)


def drawn(ranges: Mapping[str, Range], n: int, random_state: Any) -> pd.DataFrame:
    """n candidates, each parameter drawn evenly from its range, on the range's scale.

    Parameters
    ----------
    ranges : mapping of str to Range
    n : int
    random_state : numpy Generator or int
        Source of randomness, or its seed.

    Examples
    --------
    >>> drawn({"rate": Range(0.1, 1.0)}, 3, random_state=0)["rate"].round(3).tolist()
    [0.433, 0.186, 0.11]
    """
    n = check_count(n, "n_configurations", least=1)
    logs = [found.scale == "log" for found in ranges.values()]
    ends = np.array([found[:2] for found in ranges.values()], dtype=np.float64)
    ends[logs] = np.log(ends[logs])
    at = generator(random_state).uniform(*ends.T, size=(n, len(ends)))
    at[:, logs] = np.exp(at[:, logs])
    return pd.DataFrame(at, columns=list(ranges))


def grid(values: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """All combinations of some values of each parameter, the last parameter moving
    fastest.

    Examples
    --------
    >>> grid({"C": [1.0, 10.0], "kernel": ["rbf"]}).to_dict("records")
    [{'C': 1.0, 'kernel': 'rbf'}, {'C': 10.0, 'kernel': 'rbf'}]
    """
    return pd.DataFrame(list(product(*values.values())), columns=list(values))


def judged(
    judge: Callable[[dict[str, Any]], Mapping[str, Any]],
    candidates: pd.DataFrame,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """The candidates, with columns of what is found of each; who asks picks the best
    row.

    Parameters
    ----------
    judge : callable
        From parameters by name to what is noted of them, by name. It goes to other
        processes: a function, or a `functools.partial` of one.
    candidates : DataFrame
        Of `drawn` or `grid`.
    n_jobs : int, optional
        As `in_parallel` takes it.

    Raises
    ------
    ValueError
        If `n_jobs` is no number of processes.

    Examples
    --------
    >>> table = judged(lambda at: {"loss": (at["x"] - 2) ** 2}, grid({"x": [0, 1, 2, 3]}))
    >>> table.loc[table["loss"].idxmin()].to_dict()
    {'x': 2, 'loss': 0}
    """
    rows: Any = candidates.to_dict("records")
    found = in_parallel((delayed(judge)(row) for row in rows), n_jobs)
    return candidates.join(pd.DataFrame(found, index=candidates.index))


def near_boundary(
    values: Mapping[str, Any], ranges: Mapping[str, Range | Sequence]
) -> dict[str, str]:
    """Which chosen values are near an end of what was tried: there the search should
    have gone on.

    Parameters
    ----------
    values : mapping of str to value
    ranges : mapping of str to Range or sequence of values
        What was searched: of a range, the twentieth at each end is near it; of a grid,
        its least and its largest number are. Words, and parameters with one value only,
        have no ends.

    Returns
    -------
    dict of str to {"low", "high"}
        The parameters that are near an end, and which.

    Examples
    --------
    >>> near_boundary({"C": 0.1, "rate": 0.5}, {"C": [0.1, 1, 10], "rate": Range(0.1, 1.0)})
    {'C': 'low'}
    >>> near_boundary({"rate": 0.98}, {"rate": Range(0.1, 1.0)})
    {'rate': 'high'}
    """
    ends = {}
    for name, tried in ranges.items():
        if isinstance(tried, Range):
            position = tried.position(values[name])
            low = position < _EDGE
            high = position > 1 - _EDGE
        else:
            numbers = [as_real(value) for value in tried]  # NaN for words
            low = values[name] == min(numbers)
            high = values[name] == max(numbers)
        if low != high:
            ends[name] = "low" if low else "high"
    return ends


def in_parallel(calls: Iterable[Any], n_jobs: int | None = None) -> list[Any]:
    """What calls made by `joblib.delayed` return, in order; every search of the package
    runs through it.

    Parameters
    ----------
    calls : iterable
        They draw nothing: their answers do not depend on where they run.
    n_jobs : int, optional
        Processes; -1: as many as there are processors; None: one, or what
        `joblib.parallel_config` says, by which Dask or Ray runs them.

    Raises
    ------
    ValueError
        If `n_jobs` is no number of processes.

    Examples
    --------
    >>> from joblib import parallel_config
    >>> with parallel_config(backend="threading", n_jobs=2):
    ...     in_parallel(delayed(abs)(k) for k in (-1, 2))
    [1, 2]
    """
    # NaN of a bool
    whole = isinstance(n_jobs, Integral) and 0 != abs(as_real(n_jobs)) < 2**31
    expected = "a whole number of processes, -1 for all processors, or None"
    require(n_jobs is None or whole, n_jobs, "n_jobs", expected)
    # Memory maps would be read-only arrays, for which compiled loops are compiled anew.
    return list(Parallel(n_jobs=n_jobs, max_nbytes=None)(calls))
