"""The random search for hyperparameters of [Maystre2019]_, over processes.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from preflearn.checks import Floats, require, shown
from preflearn.dynamics.choosing.draws import Draws, check_jobs, in_blocks
from preflearn.dynamics.choosing.evidence import checked_outcomes, warn_of_ranges
from preflearn.dynamics.choosing.parameters import (
    Range,
    changed,
    check_names,
    check_range,
    parameters_of,
    with_parameters,
)
from preflearn.dynamics.engine.fits import quietly_fitted
from preflearn.dynamics.model import DynamicComparisons
from preflearn.matches import Matches


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
    near_boundary : tuple of str
        Parameters whose best value is within a twentieth of an end of its range, on the scale of logarithms:
        the paper always makes sure that there are none.
    """

    configurations: pd.DataFrame
    best: int
    model: DynamicComparisons
    near_boundary: tuple[str, ...]


def random_search(
    model: DynamicComparisons,
    matches: Matches,
    y: ArrayLike,
    ranges: Mapping[str, Range],
    n_configurations: int = 1000,
    *,
    random_state: np.random.Generator | int,
    n_jobs: int = 1,
) -> RandomSearch:
    """Draw configurations at random and keep that of the largest evidence (appendix B.1 of [Maystre2019]_).

    Each parameter is drawn log-uniformly from its range. All draws are made before the first fit, and every
    fit begins with nothing, so the table does not depend on `n_jobs`.

    Parameters
    ----------
    model : DynamicComparisons
        Parameters that have no range keep its values; its `tol` and `max_iter` are those of all fits.
    matches : Matches
    y : array-like of shape (N,)
        Outcomes.
    ranges : mapping of str to (float, float)
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
    >>> from preflearn.dynamics import Constant, DynamicComparisons, Matches, Probit
    >>> matches = Matches([[1, -1]] * 10, range(10), ["Ann", "Bob"])
    >>> model = DynamicComparisons(Constant(1.0), Probit())
    >>> found = random_search(
    ...     model, matches, [1] * 8 + [-1] * 2, {"Constant.variance": (0.01, 10)}, 50, random_state=0
    ... )
    >>> round(found.model.covariance.variance, 3), found.near_boundary
    (0.15, ())
    """
    outcomes = checked_outcomes(model, matches, y)
    known = parameters_of(model)
    some = isinstance(ranges, Mapping) and len(ranges) > 0
    require(some, ranges, "ranges", f"a range of at least one of {', '.join(known)}")
    check_names(ranges, known, "a parameter with a range")
    limits = {name: check_range(found, f"ranges[{name!r}]") for name, found in ranges.items()}
    warn_of_ranges(model, limits, matches.time)
    processes, drawn = check_jobs(n_jobs), Draws(limits, n_configurations, random_state)
    configurations, one = drawn.table.to_dict("records"), changed(model, n_threads=1)
    rows = in_blocks(_evaluated, configurations, processes, one, matches, outcomes)
    table = drawn.table.join(pd.DataFrame(rows))
    good = np.where(table["converged"], table["evidence"], -np.inf)
    if not np.isfinite(good).any():
        why = shown(table["error"].max() or "too few sweeps")
        raise ValueError(
            f"none of {len(table)} configurations converged ({why}); "
            "expected ranges in which fits do, or a larger max_iter"
        )
    best = int(good.argmax())
    fitted = quietly_fitted(with_parameters(model, configurations[best]), matches, outcomes)
    return RandomSearch(table, best, fitted, drawn.near_boundary(best))


def _evaluated(
    configurations: list[dict[str, float]], model: DynamicComparisons, matches: Matches, outcomes: Floats
) -> list[dict[str, Any]]:
    """The evidence of each configuration, whatever happens to the others."""
    rows = []
    for values in configurations:
        try:
            fitted = quietly_fitted(with_parameters(model, values), matches, outcomes)
            row = (fitted.log_marginal_likelihood_, fitted.converged_, fitted.n_iter_, "")
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            row = (math.nan, False, 0, str(error))
        rows.append(dict(zip(("evidence", "converged", "n_iter", "error"), row, strict=True)))
    return rows
