"""What stands below one fit, for those who make many: the update map of a model, and a fit without a word."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from preflearn.checks import Floats
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.engine.schedule import schedule_of
from preflearn.dynamics.engine.threads import Team
from preflearn.dynamics.engine.update import UpdateMap
from preflearn.dynamics.model import DynamicComparisons
from preflearn.matches import Matches


@contextmanager
def laid_out(model: DynamicComparisons, matches: Matches, outcomes: Floats) -> Iterator[UpdateMap]:
    """The update map of a model's parameters, without pseudo-observations yet, while its team is at work."""
    prior = Prior(model.covariance)
    with Team(int(model.n_threads or os.cpu_count() or 1)) as team:
        schedule = schedule_of(matches, prior.spaces, prior.of(matches.features))
        yield UpdateMap(schedule, model.likelihood, outcomes, ep=model.method == "ep", team=team)


def quietly_fitted(
    model: DynamicComparisons, matches: Matches, outcomes: Floats, sites: Floats | None = None
) -> DynamicComparisons:
    """Fitted, from given pseudo-observations or from nothing, without a word on convergence or lengths."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model._iterate(
            matches, outcomes, np.zeros((matches.design.nnz, 2)) if sites is None else sites
        )
