"""Hyperparameters by readable names, and the random search for them of [Maystre2019]_, over processes.

All of them are positive, and the evidence of a model depends on each; searches are over their logarithms.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone

from preflearn.checks import LARGEST, Floats, as_real, check_real, require, shown
from preflearn.dynamics.covariances.composite import covariance_from
from preflearn.dynamics.covariances.prior import MOST_LENGTHS, Prior, warn_of_lengths
from preflearn.dynamics.likelihoods.likelihood import likelihood_from
from preflearn.dynamics.model import DynamicComparisons, check_model, check_problem, infer
from preflearn.ground.search import Range, check_ranges, drawn, judged, near_boundary
from preflearn.matches import Matches

LENGTHS = "lengthscale", "period"  # names of parameters that are lengths of time
KINDS = ("variance", "slope_variance", *LENGTHS, "margin", "base_rate")


def parameters_of(model: DynamicComparisons) -> dict[str, float]:
    """All parameters on which the evidence depends, by name, in the order in which they are written.

    A name is the class and the parameter: "Matern12.lengthscale", or "Matern12_2.lengthscale" of the second
    Matern12; of a mapping of covariances "advantage: Constant.variance"; "likelihood.margin". Origins,
    boundaries and orders are left out, and so is the margin of `Gaussian`, which only forecasts use.

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
        If two features have the same name in print, as 1 and "1" have.

    Examples
    --------
    >>> from preflearn.dynamics import DynamicComparisons, Matern12, OrdinalProbit
    >>> parameters_of(DynamicComparisons(Matern12(0.2, lengthscale=365.0), OrdinalProbit(margin=0.4)))
    {'Matern12.variance': 0.2, 'Matern12.lengthscale': 365.0, 'likelihood.margin': 0.4}
    """
    return {name: float(owner[key]) for name, (owner, key) in _described(model)[2].items()}


def with_parameters(model: DynamicComparisons, values: Mapping[str, float]) -> DynamicComparisons:
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
    covariances, likelihood, places = _described(model)
    require(isinstance(values, Mapping), values, "values", "a mapping of names to numbers")
    check_names(values, places, "a parameter")
    for name, value in values.items():
        owner, key = places[name]
        expected = "a positive number" + " from 1e-100" * (0 < as_real(value) < 1)
        owner[key] = check_real(value, name, expected, 1 / LARGEST, LARGEST)
    built: Any = {name: covariance_from(k) for name, k in covariances.items()}
    if not isinstance(model.covariance, Mapping):
        built = next(iter(built.values()))
    return changed(model, covariance=built, likelihood=likelihood_from(likelihood))


_Described = dict[str, Any]


def _described(
    model: DynamicComparisons,
) -> tuple[dict[Any, _Described], _Described, dict[str, tuple[_Described, str]]]:
    """Its covariances and its likelihood as nested dicts, and where in them each parameter is."""
    check_model(model)
    covariances = {name: k.describe() for name, k in Prior(model.covariance).covariances.items()}
    likelihood, found = model.likelihood.describe(), []
    for name, k in covariances.items():
        prefix, seen = f"{name}: " if isinstance(model.covariance, Mapping) else "", Counter[str]()
        for leaf in leaves(k):
            seen[kind := leaf["kind"]] += 1
            label = prefix + kind + f"_{seen[kind]}" * (seen[kind] > 1)
            found += [(f"{label}.{key}", leaf, key) for key in leaf if key in KINDS]
    only_forecasts = ("margin",) if likelihood["kind"] == "Gaussian" else ()
    keys = [key for key in likelihood if key in KINDS and key not in only_forecasts]
    found += [(f"likelihood.{key}", likelihood, key) for key in keys]
    places = {name: (owner, key) for name, owner, key in found}
    for name, owner, _ in found:
        if places[name][0] is not owner:
            raise ValueError(
                f"two parameters are called {shown(name)}; expected features whose names differ in print"
            )
    return covariances, likelihood, places


def changed(model: DynamicComparisons, **options: Any) -> DynamicComparisons:
    """A copy that is not fitted, with other options."""
    copy: Any = clone(model)
    return copy.set_params(**options)


def leaves(described: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The descriptions of all covariances that a description is put together from."""
    if "parts" not in described:
        yield described
    for part in described.get("parts", []):
        yield from leaves(part)


def check_names(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise ValueError that shows the first name that is not known; `what` says of what it is a name."""
    known = list(known)
    for name in names:
        require(name in known, name, what, f"one of {', '.join(known)}")


def warn_of_ranges(model: DynamicComparisons, ranges: Mapping[str, Range], time: Floats) -> None:
    """Warn, as a fit does, where not even the best of a range is a length for data of this span."""
    span, nearest = float(np.ptp(time)), {}
    for name, (low, high, _) in ranges.items():
        if span > 0 and name.endswith(LENGTHS):
            nearest[name] = min(max(span / MOST_LENGTHS, low), high)
    warn_of_lengths(with_parameters(model, nearest).covariance, time)


# ---- The random search


class RandomSearch(NamedTuple):
    """What `random_search` has found.

    Attributes
    ----------
    configurations : DataFrame
        One row a configuration, as drawn: the parameters, `evidence`, `converged`, `n_iter` (sweeps), and
        `error`, the message of a fit that failed ("" of all others); its evidence is NaN.
    best : int
        The row with the largest evidence of those that converged.
    model : DynamicComparisons
        Fitted with this configuration.
    near_boundary : dict of str to {"low", "high"}
        Parameters whose best value is within a twentieth of an end of its range, and which end: the paper
        always makes sure that there are none.
    """

    configurations: pd.DataFrame
    best: int
    model: DynamicComparisons
    near_boundary: dict[str, str]


def random_search(
    model: DynamicComparisons,
    matches: Matches,
    y: ArrayLike,
    ranges: Mapping[str, tuple],
    n_configurations: int = 1000,
    *,
    random_state: np.random.Generator | int,
    n_jobs: int = 1,
) -> RandomSearch:
    """Draw configurations at random and keep that of the largest evidence (appendix B.1 of [Maystre2019]_).

    Each parameter is drawn log-uniformly from its range, or uniformly where it says "linear". All draws are
    made before the first fit, and every fit begins with nothing, so the table does not depend on `n_jobs`.

    Parameters
    ----------
    model : DynamicComparisons
        Parameters that have no range keep its values; its `tol` and `max_iter` are those of all fits.
    matches : Matches
    y : array-like of shape (N,)
        Outcomes.
    ranges : mapping of str to (low, high) or (low, high, "linear")
        Least and largest value, by the names of `parameters_of`.
    n_configurations : int
    random_state : numpy Generator or int
        Source of randomness, or its seed.
    n_jobs : int
        Processes, of one thread each; -1: as many as there are processors.

    Returns
    -------
    RandomSearch

    Raises
    ------
    ValueError
        As `DynamicComparisons.fit`; on unknown names, or ranges that are none; if no fit converged.

    Warns
    -----
    UserWarning
        Once, if each length of time in a range, or one without a range, is absurd for the data's span.

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
       time-dynamics", KDD 2019.

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
    outcomes = check_problem(model, matches, y)
    limits = check_ranges(ranges, parameters_of(model))
    warn_of_ranges(model, limits, matches.time)
    candidates = drawn(limits, n_configurations, random_state)
    judge = partial(evidence_of, changed(model, n_threads=1), matches, outcomes)
    table = judged(judge, candidates, n_jobs)
    good = np.where(table["converged"], table["evidence"], -np.inf)
    if not np.isfinite(good).any():
        why = shown(table["error"].max() or "too few sweeps")
        raise ValueError(
            f"none of {len(table)} configurations converged ({why}); "
            "expected ranges in which fits do, or a larger max_iter"
        )
    best = int(good.argmax())
    values: dict[str, Any] = candidates.iloc[best].to_dict()
    fitted = infer(with_parameters(model, values), matches, outcomes)
    return RandomSearch(table, best, fitted, near_boundary(values, limits))


def evidence_of(
    model: DynamicComparisons, matches: Matches, outcomes: Floats, values: dict[str, float]
) -> dict[str, Any]:
    """That of a model with some parameters, whatever happens to the fit."""
    try:
        fitted = infer(with_parameters(model, values), matches, outcomes)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        return {"evidence": math.nan, "converged": False, "n_iter": 0, "error": str(error)}
    found = fitted.log_marginal_likelihood_, fitted.converged_, fitted.n_iter_, ""
    return dict(zip(("evidence", "converged", "n_iter", "error"), found, strict=True))
