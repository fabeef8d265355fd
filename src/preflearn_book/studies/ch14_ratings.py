"""Selection of the parameters of rating systems by the log loss of their forecasts (appendix B.1 of
[Maystre2019]_).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from preflearn.core.validation import as_real, check_labels, require
from preflearn.matches import Matches, check_matches
from preflearn.metrics import log_loss
from preflearn.ratings.elo_glicko import Elo
from preflearn.ratings.system import RatingSystem, earlier_forecasts
from preflearn.solvers.search import (
    RandomSearch,
    check_ranges,
    evaluate_candidates,
    near_boundary,
    sample_candidates,
)

_LIKELIHOOD = "likelihood."  # prefix of the names of a likelihood's parameters
_UNUSED_WITH_LIKELIHOOD = ("k", "initial", "scale")  # parameters of Elo


def select_rating(
    system: RatingSystem,
    matches: Matches,
    y: ArrayLike,
    ranges: Mapping[str, tuple],
    n_configurations: int = 1000,
    *,
    random_state: np.random.Generator | int,
    n_jobs: int | None = None,
    start: int | None = None,
) -> RandomSearch:
    """Select parameters by random search (appendix B.1 of [Maystre2019]_).

    Each parameter is drawn log-uniformly from its range. The loss is the mean of
    -log p(y_n | all matches of earlier times), over the matches from `start` on, by
    `earlier_forecasts`.

    The paper minimizes a "leave-one-out log loss" for Elo and TrueSkill, which has two
    readings. Here each match is forecast before its outcome is used, in one pass. In
    the other reading, the system would be fitted to all other matches, including later
    ones, which takes N passes and is not a forecast.

    Parameters
    ----------
    system : RatingSystem
        Parameters without a range keep its values; it is not changed.
    matches : Matches
        Training matches.
    y : array-like of shape (N,)
        Their outcomes.
    ranges : mapping of str to (low, high) or (low, high, "linear")
        Smallest and largest value of parameters whose value in `system` is a number, such
        as "rate" or "dynamics"; "likelihood.margin" is that of the likelihood of `Elo`.
    n_configurations : int
    random_state : numpy Generator or int
        Source of randomness, or its seed.
    n_jobs : int, optional
        Number of processes; -1 for all processors. The result does not depend on it.
    start : int, optional
        The first match in the loss; by default, the first one after the first time.

    Returns
    -------
    RandomSearch
        Its table has `loss`, the mean log loss in nats; `best` is the row
        with the lowest one, and `model` the system with this configuration, not fitted.

    Raises
    ------
    ValueError
        As `earlier_forecasts`; on unknown names, invalid ranges, or values that the
        system does not allow; if every configuration gives some outcome the probability 0.

    Examples
    --------
    >>> from preflearn.dynamics import OrdinalLogit
    >>> from preflearn.ratings import Elo
    >>> matches = Matches([[1, -1]] * 10, range(10), ["Ann", "Bob"])
    >>> y, elo = [1, 1, 0, 1, 1, 1, 0, 1, -1, 1], Elo(likelihood=OrdinalLogit(0.5))
    >>> ranges = {"rate": (0.01, 1.0), "likelihood.margin": (0.1, 2.0)}
    >>> found = select_rating(elo, matches, y, ranges, 100, random_state=0)
    >>> found.configurations.loc[found.best].round(3).to_dict(), found.near_boundary
    ({'rate': 0.328, 'likelihood.margin': 0.465, 'loss': 0.971}, {})
    """
    check_matches(matches)
    labels = check_labels(y, len(matches))
    limits = check_ranges(ranges, _numeric_parameters(system))
    lows = {name: interval.low for name, interval in limits.items()}
    highs = {name: interval.high for name, interval in limits.items()}
    for values in (lows, highs):
        _set_values(system, values).check_parameters()
    if start is None:
        start = int(np.argmax(matches.time > matches.time[0]))
        require(
            start > 0,
            float(matches.time[0]),
            "the time of all matches",
            "a later one to forecast",
        )
    candidates = sample_candidates(limits, n_configurations, random_state)
    table = evaluate_candidates(
        partial(_loss, system, matches, labels, start), candidates, n_jobs
    )
    best = int(table["loss"].argmin())
    if not np.isfinite(table["loss"][best]):
        raise ValueError(
            f"each of {len(table)} configurations gives some outcome the probability 0; expected a later "
            "start, before which all outcomes occur"
        )
    selected: dict[str, Any] = candidates.iloc[best].to_dict()
    model = _set_values(system, selected)
    return RandomSearch(table, best, model, near_boundary(selected, limits))


def _loss(
    system: RatingSystem,
    matches: Matches,
    y: NDArray[np.int8],
    start: int,
    values: dict[str, float],
) -> dict[str, float]:
    probabilities = earlier_forecasts(_set_values(system, values), matches, y, start)
    return {"loss": log_loss(y[start:], probabilities)}


def _numeric_parameters(system: RatingSystem) -> list[str]:
    """The names of the parameters that are numbers and are used."""
    likelihood = getattr(system, "likelihood", None)
    unused = ()
    if isinstance(system, Elo):
        unused = ("rate",)
        if likelihood is not None:
            unused = _UNUSED_WITH_LIKELIHOOD
    names = [
        name
        for name, value in system.get_params().items()
        if name not in unused and not math.isnan(as_real(value))
    ]
    if likelihood:
        names += [_LIKELIHOOD + name for name in likelihood.positive()]
    return names


def _set_values(system: RatingSystem, values: Mapping[str, float]) -> RatingSystem:
    changed: Any = clone(system)
    of_likelihood: dict[str, float] = {}
    own: dict[str, Any] = {}
    for name, value in values.items():
        if name.startswith(_LIKELIHOOD):
            of_likelihood[name.removeprefix(_LIKELIHOOD)] = value
        else:
            own[name] = value
    if of_likelihood:
        own["likelihood"] = changed.likelihood.changed(**of_likelihood)
    return changed.set_params(**own)
