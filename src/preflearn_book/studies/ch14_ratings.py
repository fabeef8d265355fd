"""Selection of the parameters of rating systems by the log loss of their forecasts.

See appendix B.1 of [Maystre2019]_.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from preflearn.matches import Matches
from preflearn.metrics import log_loss
from preflearn.ratings.system import RatingSystem, earlier_forecasts
from preflearn.solvers.search import (
    RandomSearch,
    Range,
    evaluate_candidates,
    near_boundary,
    sample_candidates,
)

_MARGIN = "likelihood.margin"


def select_rating(
    system: RatingSystem,
    matches: Matches,
    y: NDArray[np.int8],
    ranges: Mapping[str, tuple[float, float]],
    n_configurations: int,
    *,
    random_state: int,
    n_jobs: int | None = None,
) -> RandomSearch:
    """Select parameters by random search (appendix B.1 of [Maystre2019]_).

    Each parameter is drawn log-uniformly from its range. The loss is the mean of
    -log p(y_n | all matches at earlier times), over the matches after the first time.
    `earlier_forecasts` computes these probabilities.

    The paper minimizes a "leave-one-out log loss" for Elo and TrueSkill. This term has
    two interpretations. Here each match is forecast before its outcome is used, in one
    pass. In the other interpretation, the system is fitted to all other matches,
    including later ones. This takes N passes and is not a forecast.

    Parameters
    ----------
    system : RatingSystem
        Rating system. Parameters without a range keep its values. The object itself is
        not changed.
    matches : Matches
        Training matches.
    y : ndarray of shape (N,)
        Outcomes of the matches.
    ranges : mapping of str to (low, high)
        Smallest and largest value of each parameter, such as "rate" or "dynamics".
        "likelihood.margin" is the margin of the likelihood of `Elo`.
    n_configurations : int
    random_state : int
    n_jobs : int, optional
        Number of processes; -1 for all processors. The result does not depend on it.

    Returns
    -------
    RandomSearch
        Its table has the column `loss`, the mean log loss in nats. `best` is the row
        with the lowest loss, and `model` is the system with these parameters, not
        fitted.

    Examples
    --------
    >>> from preflearn.dynamics import OrdinalLogit
    >>> from preflearn.ratings import Elo
    >>> matches = Matches([[1, -1]] * 10, range(10), ["Ann", "Bob"])
    >>> y, elo = np.array([1, 1, 0, 1, 1, 1, 0, 1, -1, 1]), Elo(likelihood=OrdinalLogit(0.5))
    >>> ranges = {"rate": (0.01, 1.0), "likelihood.margin": (0.1, 2.0)}
    >>> found = select_rating(elo, matches, y, ranges, 100, random_state=0)
    >>> found.configurations.loc[found.best].round(3).to_dict(), found.near_boundary
    ({'rate': 0.328, 'likelihood.margin': 0.465, 'loss': 0.971}, {})
    """
    limits = {name: Range(*ends) for name, ends in ranges.items()}
    start = int(np.argmax(matches.time > matches.time[0]))
    candidates = sample_candidates(limits, n_configurations, random_state)
    table = evaluate_candidates(
        partial(_loss, system, matches, y, start), candidates, n_jobs
    )
    best = int(table["loss"].argmin())
    selected: dict[str, Any] = candidates.iloc[best].to_dict()
    model = _with_values(system, selected)
    return RandomSearch(table, best, model, near_boundary(selected, limits))


def _loss(
    system: RatingSystem,
    matches: Matches,
    y: NDArray[np.int8],
    start: int,
    values: dict[str, float],
) -> dict[str, float]:
    model = _with_values(system, values)
    return {"loss": log_loss(y[start:], earlier_forecasts(model, matches, y, start))}


def _with_values(system: RatingSystem, values: Mapping[str, float]) -> RatingSystem:
    own: dict[str, Any] = dict(values)
    if _MARGIN in own:
        likelihood: Any = system.get_params()["likelihood"]
        own["likelihood"] = likelihood.changed(margin=own.pop(_MARGIN))
    model: Any = clone(system)
    return model.set_params(**own)
