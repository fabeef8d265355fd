"""The protocol of chapter 17: how learners are tuned, fitted, timed, and judged.

The protocol was written before any result was known:

- A problem consists of training data, test data, and folds of the training data, which
  are split by items, users, or dates. All learners get the same data and features.
- A learner has `BUDGET` configurations, or one if there is nothing to choose. The
  configuration with the lowest mean loss on the folds is chosen (the first one of
  several) and fitted again to all training data.
- The loss for this choice is the first measure that the judge of the problem returns. It
  is the loss of the task family.
- A configuration that cannot be fitted on a fold is not chosen.
- A chosen number is marked if it is the smallest or the largest one that was tried.
- Times are processor times on one thread, after the choice has run the same code. Memory
  is the growth of the process at its peak.
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
"""Number of configurations of each learner that has something to choose."""

CONSTANT = "constant"
"""The learner whose forecast is constant. Each task family has one."""

RANDOM = "random"
"""The learner with random answers. Each task family has one."""

SIMULATED = "simulated "
"""Domain prefix of a simulated problem that replaces a problem without available data.
"""

QUIET_TREES = {
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}
"""Settings with which LightGBM is deterministic, uses one thread, and prints nothing."""

# A leaf has at least one pair or item; k and n_basis start at 1.
_COUNTED_FROM_ONE = ("min_child_samples", "k", "n_basis")

# Raised by a learner that cannot be fitted, such as an SVM without a ranking function.
_UNFIT = (ValueError, ArithmeticError, np.linalg.LinAlgError)


class Split(NamedTuple):
    """Training and test data. Their types depend on the task family.

    Attributes
    ----------
    train : object
        Training data.
    test : object
        Test data without the truth.
    truth : object
        True outcomes, to which the judge compares the forecast.
    """

    train: Any
    test: Any
    truth: Any


class Problem(NamedTuple):
    """One problem of a task family.

    Attributes
    ----------
    family, domain, unit : str
        Task family, source of the data, and an independent draw from this source, such
        as a season.
    whole : Split
    folds : sequence of Split
        Splits of `whole.train` only.
    judge : callable
        Function from truth and forecast to measures by name. The first measure is the
        loss of the family, by which configurations are chosen; smaller is better.
    facts : mapping of str to number
        Numbers that describe the problem, such as the number of comparisons. They become
        columns of the table.
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
        Function from training data and a configuration as keywords to the fitted model.
        It raises ValueError if the learner cannot be fitted. The model is a function from
        test data to a forecast, in the form that the judges of the family take.
    configurations : sequence of dict
        `BUDGET` configurations, or one. Numbers are spaced linearly or logarithmically.
    """

    name: str
    fit: Callable[..., Callable[[Any], Any]]
    configurations: Sequence[dict[str, Any]] = ({},)


def spaced(low: float, high: float) -> list[float]:
    """`BUDGET` logarithmically spaced numbers."""
    return np.geomspace(low, high, BUDGET).tolist()


def configurations(values: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """`BUDGET` configurations; the k-th has the k-th value of each parameter.

    Shorter sequences are repeated. For example, two widths alternate along eight costs,
    so each width has four costs, which cover a wider range than a grid of two by four.
    The middle configurations come first, because the first of several with equal loss is
    chosen.

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
    """Return the problem with a given name.

    If its data are not available, return a simulated problem of the same kind.

    Parameters
    ----------
    name : str
        Domain and unit, such as "NBA/2002".
    pose, simulate : callable
        Functions from a name to a problem. `simulate` gets a name that begins with
        `SIMULATED`, and the domain of its problem also begins with it.

    Returns
    -------
    Problem
    """
    try:
        return pose(name)
    except DatasetUnavailable:
        return simulate(SIMULATED + name)


def evaluate(problem: Problem, learner: Learner) -> dict[str, Any]:
    """Evaluate a learner on a problem by the protocol; return one row of the table.

    Returns
    -------
    dict
        family (the task family), domain, unit, learner; the measures; chosen (the
        configuration as text); at_end (such as "C high", or empty); fit_s and forecast_s
        (seconds); fit_mb and forecast_mb; and the facts of the problem.
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
    """The mean loss on the folds; infinite if the learner cannot be fitted to a fold."""
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

    Except on Linux, the peak cannot be reset, so the result may be too small after
    earlier use of memory.
    """
    before = _peak_memory(reset=True)
    start = time.process_time()
    result = call()
    seconds = time.process_time() - start
    return result, round(seconds, 6), round(max(_peak_memory() - before, 0.0), 3)


def _peak_memory(*, reset: bool = False) -> float:
    """The largest memory of this process since the last reset, in MB.

    `reset` resets the peak to the present memory first.
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
    """Names of chosen numbers that are the smallest or the largest one tried.

    Only configurations with the same other values are compared. Natural bounds do not
    count. At least three numbers must be tried, because of two numbers each is an end.
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
