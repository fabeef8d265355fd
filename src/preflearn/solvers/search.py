"""Search over named parameters, by a grid or at random.

A candidate is a row of a table with one column per parameter. All candidates are made
before the first one is evaluated, and none depends on another one. The result therefore
does not depend on the number of processes.
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

_BOUNDARY_FRACTION = 0.05  # fraction of a range that counts as near its end


class Range(NamedTuple):
    """Range of a parameter.

    Attributes
    ----------
    low, high : float
        Smallest and largest value.
    scale : {"log", "linear"}
        Scale on which values are uniformly distributed and distances are measured.
    """

    low: float
    high: float
    scale: str = "log"

    def position(self, value: float) -> float:
        """Return the position of a value in the range, from 0 to 1."""
        if self.scale == "log":
            low = math.log(self.low)
            return (math.log(value) - low) / (math.log(self.high) - low)
        return (value - self.low) / (self.high - self.low)


class RandomSearch(NamedTuple):
    """Result of a random search.

    Attributes
    ----------
    configurations : DataFrame
        Parameters and results of each configuration, one row each, in the order of
        drawing.
    best : int
        Number of the best row.
    model
        Model with the best configuration.
    near_boundary : dict of str to {"low", "high"}
        Parameters whose best value is within 5 % of an end of their range, and this
        end. The range should then be widened, as [Maystre2019]_ do.

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
    """Check the ranges of parameters, and return them by name.

    Parameters
    ----------
    ranges : mapping of str to (low, high) or (low, high, scale)
        Ranges of the parameters. Numbers must be positive on the scale "log", the
        default, and may be any on "linear".
    known : iterable of str
        Names of the parameters that may have a range.

    Examples
    --------
    >>> check_ranges({"rate": (0.1, 1), "angle": (-1, 1, "linear")}, ["rate", "angle"])["rate"]
    Range(low=0.1, high=1.0, scale='log')
    """
    known = list(known)
    names = ", ".join(known)
    good = isinstance(ranges, Mapping) and len(ranges) > 0
    require(good, ranges, "ranges", f"a range for at least one of {names}")
    for name in ranges:
        require(name in known, name, "a key of ranges", f"one of {names}")
    return {
        name: _check_range(values, f"ranges[{name!r}]")
        for name, values in ranges.items()
    }


def _check_range(values: Any, name: str) -> Range:
    try:
        low, high, *scale = values
    except (TypeError, ValueError):
        low = math.nan
        high = math.nan
        scale = []
    low = as_real(low)
    high = as_real(high)
    least = 1 / LARGEST
    if scale == ["linear"]:
        least = -LARGEST
    good = scale in ([], ["log"], ["linear"]) and least <= low < high <= LARGEST
    expected = (
        f"(low, high) or (low, high, scale), with numbers from {least:g} to {LARGEST:g}"
    )
    require(good, values, name, f"{expected}, and low < high")
    return Range(low, high, *scale)


def sample_candidates(
    ranges: Mapping[str, Range], n: int, random_state: Any
) -> pd.DataFrame:
    """Draw n candidates, uniformly distributed on the scale of each range.

    Parameters
    ----------
    ranges : mapping of str to Range
        Range of each parameter.
    n : int
        Number of candidates.
    random_state : numpy Generator or int
        Source of randomness or seed.

    Examples
    --------
    >>> sample_candidates({"rate": Range(0.1, 1.0)}, 3, random_state=0)["rate"].round(3).tolist()
    [0.433, 0.186, 0.11]
    """
    n = check_count(n, "n_configurations", least=1)
    logs = [limits.scale == "log" for limits in ranges.values()]
    ends = np.array([limits[:2] for limits in ranges.values()], dtype=np.float64)
    ends[logs] = np.log(ends[logs])
    values = generator(random_state).uniform(*ends.T, size=(n, len(ends)))
    values[:, logs] = np.exp(values[:, logs])
    return pd.DataFrame(values, columns=list(ranges))


def grid(values: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return all combinations of parameter values; the last one changes fastest.

    Examples
    --------
    >>> grid({"C": [1.0, 10.0], "kernel": ["rbf"]}).to_dict("records")
    [{'C': 1.0, 'kernel': 'rbf'}, {'C': 10.0, 'kernel': 'rbf'}]
    """
    return pd.DataFrame(list(product(*values.values())), columns=list(values))


def evaluate_candidates(
    evaluate: Callable[[dict[str, Any]], Mapping[str, Any]],
    candidates: pd.DataFrame,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Evaluate each candidate, and add its results as columns.

    Parameters
    ----------
    evaluate : callable
        Function of a dict of parameters that returns a mapping of results by name.
        Since it is sent to other processes, use a module-level function or a
        `functools.partial` of one.
    candidates : DataFrame
        Candidates from `sample_candidates` or `grid`.
    n_jobs : int, optional
        Number of processes, as in `in_parallel`.

    Raises
    ------
    ValueError
        If `n_jobs` is not a number of processes.

    Examples
    --------
    >>> candidates = grid({"x": [0, 1, 2, 3]})
    >>> table = evaluate_candidates(lambda row: {"loss": (row["x"] - 2) ** 2}, candidates)
    >>> table.loc[table["loss"].idxmin()].to_dict()
    {'x': 2, 'loss': 0}
    """
    rows: Any = candidates.to_dict("records")
    results = in_parallel((delayed(evaluate)(row) for row in rows), n_jobs)
    return candidates.join(pd.DataFrame(results, index=candidates.index))


def near_boundary(
    values: Mapping[str, Any], ranges: Mapping[str, Range | Sequence]
) -> dict[str, str]:
    """Find chosen values near an end of their range, which may be too narrow.

    Parameters
    ----------
    values : mapping of str to value
        Chosen value of each parameter.
    ranges : mapping of str to Range or sequence of values
        Range or grid that was searched. A value is near an end if it is within 5 % of a
        range, or the smallest or largest number of a grid. Strings, and parameters with
        only one value, have no ends.

    Returns
    -------
    dict of str to {"low", "high"}
        Parameters whose values are near an end, and this end.

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
            low = position < _BOUNDARY_FRACTION
            high = position > 1 - _BOUNDARY_FRACTION
        else:
            numbers = [as_real(value) for value in tried]  # NaN for strings
            low = values[name] == min(numbers)
            high = values[name] == max(numbers)
        if low != high:
            ends[name] = "low" if low else "high"
    return ends


def in_parallel(calls: Iterable[Any], n_jobs: int | None = None) -> list[Any]:
    """Run calls made by `joblib.delayed`, and return their results in order.

    Parameters
    ----------
    calls : iterable
        Calls that draw no random numbers, so that results do not depend on the process.
    n_jobs : int, optional
        Number of processes; -1: one per processor; None: one, or the setting of
        `joblib.parallel_config`, which can also select Dask or Ray.

    Raises
    ------
    ValueError
        If `n_jobs` is not a number of processes.

    Examples
    --------
    >>> from joblib import parallel_config
    >>> with parallel_config(backend="threading", n_jobs=2):
    ...     in_parallel(delayed(abs)(k) for k in (-1, 2))
    [1, 2]
    """
    # as_real(True) is NaN
    good = isinstance(n_jobs, Integral) and 0 != abs(as_real(n_jobs)) < 2**31
    expected = "a number of processes, -1 for all processors, or None"
    require(n_jobs is None or good, n_jobs, "n_jobs", expected)
    # Memory maps are read-only arrays, for which loops would be recompiled.
    return list(Parallel(n_jobs=n_jobs, max_nbytes=None)(calls))
