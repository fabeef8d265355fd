"""Hyperparameters by name, and random search over them [Maystre2019]_.

All hyperparameters are positive, and the evidence of a model depends on each of them.
Searches are over their logarithms.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from preflearn.core.validation import LARGEST, Floats, PerMatch, check_real, require
from preflearn.dynamics.covariances.prior import (
    MOST_LENGTHS,
    REST,
    by_name,
    warn_about_lengths,
)
from preflearn.dynamics.model import (
    DynamicComparisons,
    check_model,
    check_problem,
    infer,
)
from preflearn.dynamics.parametrized import Parametrized
from preflearn.matches import Matches
from preflearn.solvers.search import (
    RandomSearch,
    Range,
    check_ranges,
    evaluate_candidates,
    near_boundary,
    sample_candidates,
)


def parameters_of(model: DynamicComparisons) -> dict[str, float]:
    """The hyperparameters of a model by name: those that affect the evidence.

    A name consists of class and parameter: "Matern12.lengthscale", or
    "Matern12_2.lengthscale" for the second Matern12; "advantage: Constant.variance" in
    a mapping of covariances; "likelihood.margin". The order is that in the repr of the
    model. Hyperparameters are the parameters that a class annotates as Positive or
    Length. They do not include origins, boundaries, orders, and the margin of
    `Gaussian`, which only forecasts use.

    Parameters
    ----------
    model : DynamicComparisons

    Returns
    -------
    dict of str to float
        Values in the units of `Matches.time` and of the scores.

    Raises
    ------
    ValueError
        If the names of two features are the same str, such as 1 and "1".

    Examples
    --------
    >>> from preflearn.dynamics import DynamicComparisons, Matern12, OrdinalProbit
    >>> parameters_of(DynamicComparisons(Matern12(0.2, lengthscale=365.0), OrdinalProbit(margin=0.4)))
    {'Matern12.variance': 0.2, 'Matern12.lengthscale': 365.0, 'likelihood.margin': 0.4}
    """
    return {name: found.value for name, found in described(model).items()}


def with_parameters(
    model: DynamicComparisons, values: Mapping[str, float]
) -> DynamicComparisons:
    """Copy a model, without its fit, and change some hyperparameters.

    Parameters
    ----------
    model : DynamicComparisons
        Model to copy; it is not changed.
    values : mapping of str to float
        New values, by the names of `parameters_of`; other parameters keep their values.

    Raises
    ------
    ValueError
        If a name is unknown or a value is out of range.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, DynamicComparisons, Probit
    >>> with_parameters(DynamicComparisons(Constant(0.5), Probit()), {"Constant.variance": 2}).covariance
    Constant(variance=2.0)
    """
    known = described(model)
    require(
        isinstance(values, Mapping),
        values,
        "values",
        "a mapping of parameter names to numbers",
    )
    check_names(values, known, "a name in values")
    for name, value in values.items():
        check_real(value, name, "a positive number", 1 / LARGEST, LARGEST)
    new = iter([values.get(name, found.value) for name, found in known.items()])

    def rebuilt(part: Parametrized) -> Any:
        return part.changed(**{key: next(new) for key in part.positive()})

    built = {name: k.mapped(rebuilt) for name, k in by_name(model.covariance).items()}
    covariance: Any = built
    if not isinstance(model.covariance, Mapping):
        covariance = built[REST]
    return changed(model, covariance=covariance, likelihood=rebuilt(model.likelihood))


class Parameter(NamedTuple):
    """A hyperparameter: its value, kind, and range."""

    value: float
    is_length: bool  # whether it is a length of time
    least: float
    most: float


def described(model: DynamicComparisons) -> dict[str, Parameter]:
    """All hyperparameters of a model by name, in the order of `parameters_of`."""
    check_model(model)
    parts = list[tuple[str, Parametrized]]()
    for name, k in by_name(model.covariance).items():
        prefix = ""
        if isinstance(model.covariance, Mapping):
            prefix = f"{name}: "
        counts = Counter[str]()
        for leaf in k.leaves():
            counts[leaf.label] += 1
            label = prefix + leaf.label
            if counts[leaf.label] > 1:
                label += f"_{counts[leaf.label]}"
            parts.append((label, leaf))
    parts.append(("likelihood", model.likelihood))
    found = dict[str, Parameter]()
    for label, part in parts:
        for key, value in part.positive().items():
            name = f"{label}.{key}"
            if name in found:
                raise ValueError(
                    f"two parameters have the name {name!r}; rename the features in the mapping of "
                    "covariances so that their names differ as strings"
                )
            ends = part.ranges.get(key, (1 / LARGEST, LARGEST))
            found[name] = Parameter(value, key in part.lengths(), *ends)
    return found


def changed(model: DynamicComparisons, **options: Any) -> DynamicComparisons:
    """An unfitted copy of a model with other options."""
    copy: Any = clone(model)
    return copy.set_params(**options)


def check_names(names: Iterable[str], known: Mapping[str, Any], what: str) -> None:
    """Raise a ValueError that shows the first unknown name.

    `what` says in the message where the names come from.
    """
    expected = f"one of {', '.join(known)}"
    for name in names:
        require(name in known, name, what, expected)


def warn_about_ranges(
    model: DynamicComparisons, ranges: Mapping[str, Range], time: Floats
) -> None:
    """Warn, like a fit, if no value in a range is a suitable length for the time span."""
    least = float(np.ptp(time)) / MOST_LENGTHS
    known = described(model)
    nearest = {
        name: min(max(least, low), high)
        for name, (low, high, _) in ranges.items()
        if known[name].is_length
    }
    warn_about_lengths(with_parameters(model, nearest).covariance, time)


# ---- The random search


def random_search(
    model: DynamicComparisons,
    matches: Matches,
    y: ArrayLike,
    ranges: Mapping[str, tuple],
    n_configurations: int = 1000,
    *,
    random_state: np.random.Generator | int,
    n_jobs: int | None = None,
    **fit_params: PerMatch,
) -> RandomSearch:
    """Draw hyperparameters at random and keep those with the largest evidence.

    Use it for a global search (appendix B.1 of [Maystre2019]_); `maximise_evidence`
    finds a local maximum with fewer fits. Each parameter is drawn log-uniformly from
    its range, or uniformly if the range says "linear". All draws are made before the
    first fit and each fit starts from zero, so the table does not depend on `n_jobs`.

    Parameters
    ----------
    model : DynamicComparisons
        Model whose values are used for parameters without a range, and for `tol` and
        `max_iter`.
    matches : Matches
        Matches of the training data.
    y : array-like of shape (N,)
        Outcomes.
    ranges : mapping of str to (low, high) or (low, high, "linear")
        Smallest and largest value, by the names of `parameters_of`.
    n_configurations : int
        Number of draws.
    random_state : numpy Generator or int
        Source of randomness, or its seed.
    n_jobs : int, optional
        Number of processes, with one thread each; -1 for one per processor; one by
        default, or the number set with `joblib.parallel_config`.
    **fit_params : array-like of shape (N,)
        `sample_weight` and `offset` of `DynamicComparisons.fit`.

    Returns
    -------
    RandomSearch
        Its table has the columns `evidence`, NaN if the fit failed; `converged`;
        `n_iter`, the number of sweeps; and `error`, the message of a failed fit, else
        "". `best` is the row with the largest evidence among converged fits; `model` is
        fitted.

    Raises
    ------
    ValueError
        In the cases of `DynamicComparisons.fit`; if a name is unknown or a range is not
        valid; if no fit converged.

    Warns
    -----
    UserWarning
        Once, if all lengths of time in a range, or one without a range, do not suit the
        time span of the data.

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
       flexible time-dynamics", KDD 2019.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, DynamicComparisons, Probit
    >>> from preflearn.matches import Matches
    >>> matches = Matches([[1, -1]] * 10, range(10), ["Ann", "Bob"])
    >>> model = DynamicComparisons(Constant(1.0), Probit())
    >>> found = random_search(
    ...     model, matches, [1] * 8 + [-1] * 2, {"Constant.variance": (0.01, 10)}, 50, random_state=0
    ... )
    >>> round(found.model.covariance.variance, 3), found.near_boundary
    (0.15, {})
    """
    observations = check_problem(model, matches, y, **fit_params)
    limits = check_ranges(ranges, parameters_of(model))
    warn_about_ranges(model, limits, matches.time)
    candidates = sample_candidates(limits, n_configurations, random_state)
    judge = partial(evidence_of, changed(model, n_threads=1), matches, observations)
    table = evaluate_candidates(judge, candidates, n_jobs)
    good = np.where(table["converged"], table["evidence"], -np.inf)
    if not np.isfinite(good).any():
        reason = table["error"].max() or "too few sweeps"
        raise ValueError(
            f"none of {len(table)} configurations converged ({reason}); raise the model's max_iter, "
            "or choose other ranges"
        )
    best = int(good.argmax())
    values: dict[str, Any] = candidates.iloc[best].to_dict()
    fitted = infer(with_parameters(model, values), matches, observations)
    return RandomSearch(table, best, fitted, near_boundary(values, limits))


def evidence_of(
    model: DynamicComparisons,
    matches: Matches,
    observations: Floats,
    values: dict[str, float],
) -> dict[str, Any]:
    """Fit a model with some parameters; return a row of the table, even on failure."""
    try:
        fitted = infer(with_parameters(model, values), matches, observations)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        return {
            "evidence": math.nan,
            "converged": False,
            "n_iter": 0,
            "error": str(error),
        }
    found = {
        "evidence": fitted.log_marginal_likelihood_,
        "converged": fitted.converged_,
    }
    return {**found, "n_iter": fitted.n_iter_, "error": ""}
