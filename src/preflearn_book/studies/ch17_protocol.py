"""The protocol of chapter 17: how any learner is tuned, fitted, timed and judged on any
problem.

Written down before a number was seen:

- A problem is data to learn from, data to forecast, and folds of the data to learn
  from, split by items, users or dates. All learners get the same ones, with the same
  features.
- A learner has `BUDGET` configurations, or one where it has nothing to choose. It keeps
  the one whose mean loss on the folds is least, the first of several, and is fitted
  anew to all data to learn from.
- The loss that chooses is the first that the problem's judge returns, and is the loss
  of the task family.
- A configuration that can't be fitted on a fold is passed over.
- A chosen number at an end of those tried is marked.
- Times are of the processor, on one thread, after the choice has run the same code;
  memory is what the process grew by at its peak.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from preflearn.datasets import DatasetUnavailable
from preflearn.solvers.search import near_boundary

BUDGET = 8
"""How many configurations each learner may try that has something to choose."""

CONSTANT = "constant"
"""The learner that forecasts the same for all. Each task family has one."""

RANDOM = "random"
"""The learner that answers at random. Each task family has one."""

SIMULATED = "simulated "
"""The prefix of the domain of a problem that replaces one whose data are not available.
"""

QUIET_TREES = {
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
"""Settings of LightGBM by which the same data give the same trees, on one thread,
without a word."""

# A leaf holds at least one pair or item; k and n_basis count from 1.
_COUNTED_FROM_ONE = ("min_child_samples", "k", "n_basis")

# Raised by a learner that can't be fitted, such as an SVM without a ranking function.
_UNFIT = (ValueError, ArithmeticError, np.linalg.LinAlgError)


class Split(NamedTuple):
    """Data to learn from and data to forecast; the task family says what they are.

    Attributes
    ----------
    train : object
        What a learner is fitted to.
    test : object
        What it forecasts, without the truth.
    truth : object
        What the judge compares with.
    """

    train: Any
    test: Any
    truth: Any


class Problem(NamedTuple):
    """One problem of a task family.

    Attributes
    ----------
    family, domain, unit : str
        A domain is where the data come from, a unit what was drawn independently in it,
        such as a season.
    whole : Split
    folds : sequence of Split
        Of `whole.train` only.
    judge : callable
        From truth and forecast to measures by name; the first of them is
        the family's loss, which chooses; smaller is better.
    facts : mapping of str to number
        What describes the problem, such as the number of comparisons; columns of the
        table.
    """

    family: str
    domain: str
    unit: str
    whole: Split
    folds: Sequence[Split]
    judge: Callable[[Any, Any], Mapping[str, float]]
    facts: Mapping[str, float] = {}


class Learner(NamedTuple):
    """A learner of a task family.

    Attributes
    ----------
    name : str
    fit : callable
        From data to learn from, and a configuration as keywords, to the fitted model;
        raises ValueError if it can't be fitted. The model is a function from data to
        forecast to what the family's judges take.
    configurations : sequence of dict
        `BUDGET` of them, or one. Numbers are spaced evenly or in proportion.
    """

    name: str
    fit: Callable[..., Callable[[Any], Any]]
    configurations: Sequence[dict[str, Any]] = ({},)


def spaced(low: float, high: float) -> list[float]:
    """`BUDGET` numbers in proportion."""
    return np.geomspace(low, high, BUDGET).tolist()


def configurations(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """`BUDGET` configurations; the k-th has the k-th value of each parameter.

    Shorter sequences begin again, such as two widths that alternate along eight costs:
    then each width has four of them, which reach further than those of a grid of two by
    four. The middle ones come first, as of equal losses the first is kept.

    Examples
    --------
    >>> configurations({"C": range(8), "kernel": ["linear", "rbf"]})[:2]
    [{'C': 3, 'kernel': 'rbf'}, {'C': 4, 'kernel': 'linear'}]
    """
    order = sorted(range(BUDGET), key=lambda k: abs(2 * k + 1 - BUDGET))
    return [
        {name: options[k % len(options)] for name, options in values.items()}
        for k in order
    ]


def problem_or_simulation(
    name: str, pose: Callable[[str], Problem], simulate: Callable[[str], Problem]
) -> Problem:
    """Return the problem of a name, or a simulated one of the same kind if the data are
    not available.

    Parameters
    ----------
    name : str
        Domain and unit, such as "NBA/2002".
    pose, simulate : callable
        From a name to a problem; the second gets a name that begins with `SIMULATED`,
        as does its domain.

    Returns
    -------
    Problem
    """
    try:
        return pose(name)
    except DatasetUnavailable:
        return simulate(SIMULATED + name)


def evaluate(problem: Problem, learner: Learner) -> dict[str, Any]:
    """One row of the table of runs: a learner on a problem, by the protocol.

    Returns
    -------
    dict
        family (the task family), domain, unit, learner; the measures; chosen (the
        configuration, in words); at_end (such as "C high", empty where none is); fit_s
        and forecast_s (seconds); fit_mb and forecast_mb; and the problem's facts.
    """
    tried = learner.configurations
    losses = [0.0]
    if len(tried) > 1:
        losses = [_mean_loss(problem, learner, one) for one in tried]
    best = int(np.argmin(losses))
    train, test, truth = problem.whole
    model, fit_s, fit_mb = measured(partial(learner.fit, train, **tried[best]))
    forecast, forecast_s, forecast_mb = measured(partial(model, test))
    return {
        "family": problem.family,
        "domain": problem.domain,
        "unit": problem.unit,
        "learner": learner.name,
        **problem.judge(truth, forecast),
        "chosen": _to_text(tried[best]),
        "at_end": _values_at_ends(tried, best),
        "fit_s": fit_s,
        "forecast_s": forecast_s,
        "fit_mb": fit_mb,
        "forecast_mb": forecast_mb,
        **problem.facts,
    }


def _mean_loss(
    problem: Problem, learner: Learner, configuration: dict[str, Any]
) -> float:
    """The mean loss on the folds; infinite if the learner can't be fitted to one."""
    losses = []
    for fold in problem.folds:
        try:
            forecast = learner.fit(fold.train, **configuration)(fold.test)
        except _UNFIT:
            return np.inf
        measures = problem.judge(fold.truth, forecast)
        losses.append(next(iter(measures.values())))
    return float(np.mean(losses))


def measured(call: Callable[[], Any]) -> tuple[Any, float, float]:
    """The result of a call, its processor seconds, and its peak memory in megabytes.

    Where the peak can't be reset (other than on Linux), earlier use of memory hides
    later needs.
    """
    before = _peak_memory(reset=True)
    start = time.process_time()
    result = call()
    seconds = time.process_time() - start
    return result, round(seconds, 6), round(max(_peak_memory() - before, 0.0), 3)


def _peak_memory(*, reset: bool = False) -> float:
    """The largest memory of this process since the last reset, in MB.

    With `reset`, it is the present one.
    """
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text()
        return float(status.split("VmHWM:")[1].split()[0]) / 1000
    except (OSError, IndexError):
        unit = 1e6 if sys.platform == "darwin" else 1e3
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _values_at_ends(tried: Sequence[dict[str, Any]], best: int) -> str:
    """Names of the chosen numbers at an end of those tried with the same other values.

    Natural ends do not count. Of two numbers each is an end, so at least three have to
    be tried.
    """
    chosen = tried[best]
    values: dict[str, list[Any]] = {}
    for name, value in chosen.items():
        others = chosen.items() - {(name, value)}
        same = {options[name] for options in tried if others <= options.items()}
        if len(same) > 2:
            values[name] = sorted(same)
    ends = near_boundary(chosen, values)
    return ", ".join(
        f"{name} {end}"
        for name, end in ends.items()
        if not (name in _COUNTED_FROM_ONE and end == "low")
    )


def _to_text(configuration: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in configuration.items()
    )
