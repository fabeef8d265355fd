"""Hyperparameters by readable names, and the random search for them of [Maystre2019]_,
over processes.

All of them are positive, and the evidence of a model depends on each; searches are over
their logarithms.

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
    """The positive parameters on which the evidence depends, by name, in the order in
    which they are written.

    A name is the class and the parameter: "Matern12.lengthscale", or
    "Matern12_2.lengthscale" of the second Matern12; of a mapping of covariances
    "advantage: Constant.variance"; "likelihood.margin". They are the parameters that a
    class annotates as Positive or Length. So origins, boundaries and orders are left
    out, and so is the margin of `Gaussian`, which only forecasts use.

    Parameters
    ----------
    model : DynamicComparisons

    Returns
    -------
    dict of str to float
        Each in its own unit: that of `Matches.time`, and of the scores.

    Raises
    ------
    ValueError
        If two features have the same name as text, as 1 and "1" have.

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
    """The same model, not fitted, with other values of some parameters.

    Parameters
    ----------
    model : DynamicComparisons
        It is not changed.
    values : mapping of str to float
        By the names of `parameters_of`; those that are not named stay.

    Raises
    ------
    ValueError
        If a name is unknown, or a value is out of range.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, DynamicComparisons, Probit
    >>> with_parameters(DynamicComparisons(Constant(0.5), Probit()), {"Constant.variance": 2}).covariance
    Constant(variance=2.0)
    """
    known = described(model)
    require(
        isinstance(values, Mapping), values, "values", "a mapping of names to numbers"
    )
    check_names(values, known, "a parameter")
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
    """A positive number on which the evidence depends, and what it may be."""

    value: float
    is_length: bool  # of time
    least: float
    most: float


def described(model: DynamicComparisons) -> dict[str, Parameter]:
    """All of them by name, in the order in which they are written."""
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
            require(
                name not in found,
                name,
                "the name of two parameters",
                "features with different names as text",
            )
            ends = part.ranges.get(key, (1 / LARGEST, LARGEST))
            found[name] = Parameter(value, key in part.lengths(), *ends)
    return found


def changed(model: DynamicComparisons, **options: Any) -> DynamicComparisons:
    """A copy that is not fitted, with other options."""
    copy: Any = clone(model)
    return copy.set_params(**options)


def check_names(names: Iterable[str], known: Mapping[str, Any], what: str) -> None:
    """Raise ValueError that shows the first name that is not known; `what` says of what
    it is a name."""
    expected = f"one of {', '.join(known)}"
    for name in names:
        require(name in known, name, what, expected)


def warn_about_ranges(
    model: DynamicComparisons, ranges: Mapping[str, Range], time: Floats
) -> None:
    """Warn, as a fit does, where not even the best of a range is a length for data of
    this span."""
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
    """Draw configurations at random and keep that of the largest evidence (appendix B.1
    of [Maystre2019]_).

    Each parameter is drawn log-uniformly from its range, or uniformly where it says
    "linear". All draws are made before the first fit, and every fit begins with
    nothing, so the table does not depend on `n_jobs`.

    Parameters
    ----------
    model : DynamicComparisons
        Parameters that have no range keep its values; its `tol` and `max_iter` are
        those of all fits.
    matches : Matches
    y : array-like of shape (N,)
        Outcomes.
    ranges : mapping of str to (low, high) or (low, high, "linear")
        Least and largest value, by the names of `parameters_of`.
    n_configurations : int
    random_state : numpy Generator or int
        Source of randomness, or its seed.
    n_jobs : int, optional
        Processes, of one thread each; -1: as many as there are processors; None: one,
        or as `joblib.parallel_config` says.
    **fit_params : array-like of shape (N,)
        `sample_weight` and `offset` of `DynamicComparisons.fit`.

    Returns
    -------
    RandomSearch
        Its table has `evidence`, NaN where a fit failed, `converged`, `n_iter` (sweeps)
        and `error`, the message of a fit that failed ("" of all others); `best` is the
        largest evidence of those that converged, and `model` is fitted.

    Raises
    ------
    ValueError
        As `DynamicComparisons.fit`; on unknown names, or ranges that are none; if no
        fit converged.

    Warns
    -----
    UserWarning
        Once, if each length of time in a range, or one without a range, is absurd for
        the data's span.

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
    name = f"why none of {len(table)} configurations converged"
    why = table["error"].max() or "too few sweeps"
    require(
        bool(np.isfinite(good).any()),
        why,
        name,
        "ranges in which fits do, or a larger max_iter",
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
    """Fit a model with some parameters; return a row of the table, also if it fails."""
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
