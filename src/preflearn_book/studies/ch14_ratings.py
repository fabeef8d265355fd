"""Parameters of rating systems by the log loss of their forecasts (appendix B.1 of
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
    drawn,
    judged,
    near_boundary,
)

_LIKELIHOOD = "likelihood."  # how `parameters_of` begins the names of its parameters
_OF_ELO_WITHOUT = ("k", "initial", "scale")  # a likelihood: with one they do nothing


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
    """Draw parameters at random and keep those that forecast best (appendix B.1 of
    [Maystre2019]_).

    Each parameter is drawn log-uniformly from its range. What is minimised is the mean
    of -log p(y_n | all matches of earlier times), over the matches from `start` on, by
    `earlier_forecasts`.

    The paper minimises a "leave-one-out log loss" for Elo and TrueSkill. It could mean
    two things. These systems go through the matches once, and a forecast of a match
    before its outcome is used has left it out: that is the measure here. Or the system
    runs through all other matches, later ones too, and then judges the match that was
    left out; but no forecast knows later matches, and N runs would be needed.

    Parameters
    ----------
    system : RatingSystem
        Parameters that have no range keep its values; it is not changed.
    matches : Matches
        Those to learn from: keep the matches of the test out.
    y : array-like of shape (N,)
        Their outcomes.
    ranges : mapping of str to (low, high) or (low, high, "linear")
        Least and largest value of parameters whose value in `system` is a number, such
        as "rate" or "dynamics"; "likelihood.margin" is that of the likelihood of `Elo`.
    n_configurations : int
    random_state : numpy Generator or int
        Source of randomness, or its seed.
    n_jobs : int, optional
        Processes; -1: as many as there are processors. The result does not depend on
        it.
    start : int, optional
        The first match that counts. None: the first one that has an earlier one.

    Returns
    -------
    RandomSearch
        Its table has `loss`, the mean log loss in nats; `best` is the least, and
        `model` the system with this configuration, not fitted.

    Raises
    ------
    ValueError
        As `earlier_forecasts`; on unknown names, ranges that are none or go beyond what
        the system allows; if every configuration gives some outcome the probability 0.

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
    limits = check_ranges(ranges, _numbers(system))
    for ends in (0, 1):
        _with_values(
            system, {name: found[:2][ends] for name, found in limits.items()}
        ).check_parameters()
    if start is None:
        start = int(np.argmax(matches.time > matches.time[0]))
        require(
            start > 0,
            float(matches.time[0]),
            "the time of all matches",
            "a later one to forecast",
        )
    candidates = drawn(limits, n_configurations, random_state)
    table = judged(partial(_loss, system, matches, labels, start), candidates, n_jobs)
    best = int(table["loss"].argmin())
    if not np.isfinite(table["loss"][best]):
        raise ValueError(
            f"each of {len(table)} configurations gives some outcome the probability 0; expected a later "
            "start, before which all outcomes occur"
        )
    values: dict[str, Any] = candidates.iloc[best].to_dict()
    return RandomSearch(
        table, best, _with_values(system, values), near_boundary(values, limits)
    )


def _loss(
    system: RatingSystem,
    matches: Matches,
    y: NDArray[np.int8],
    start: int,
    values: dict[str, float],
) -> dict[str, float]:
    probabilities = earlier_forecasts(_with_values(system, values), matches, y, start)
    return {"loss": log_loss(y[start:], probabilities)}


def _numbers(system: RatingSystem) -> list[str]:
    """The names of its parameters that are numbers and are in use."""
    likelihood = getattr(system, "likelihood", None)
    idle = (
        ()
        if not isinstance(system, Elo)
        else ("rate",)
        if likelihood is None
        else _OF_ELO_WITHOUT
    )
    values = system.get_params().items()
    numbers = [
        name
        for name, value in values
        if name not in idle and not math.isnan(as_real(value))
    ]
    return (
        numbers + [_LIKELIHOOD + name for name in likelihood.positive()]
        if likelihood
        else numbers
    )


def _with_values(system: RatingSystem, values: Mapping[str, float]) -> RatingSystem:
    changed: Any = clone(system)
    of_likelihood = dict[str, float]()
    own = dict[str, Any]()
    for name, value in values.items():
        place = of_likelihood if name.startswith(_LIKELIHOOD) else own
        place[name.removeprefix(_LIKELIHOOD)] = value
    if of_likelihood:
        own["likelihood"] = changed.likelihood.changed(**of_likelihood)
    return changed.set_params(**own)
