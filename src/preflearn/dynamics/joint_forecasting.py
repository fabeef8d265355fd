"""One-step-ahead forecasts by the joint posterior.

For each time t, the forecast of z = x·s(t) is its posterior given all matches before t.

*Gaussian outcomes.* If the noise has variance a, the pseudo-observation of a match is
alpha = y/a, beta = 1/a, for all outcomes of other matches (`engine.joint`). Therefore
the posterior is the prior times fixed factors, and the forecast of z is the prediction
of a Kalman filter over all features. At each time, the filter visits all rows twice:
first without pseudo-observations, which predicts their z, and then with
pseudo-observations. One pass gives all forecasts exactly.

*Other likelihoods.* The pseudo-observations of earlier matches change with each new
match. The model is fitted again at each time, from the pseudo-observations of the
previous time. The matches to forecast have weight 0 in this fit: the smoother visits
them, but they do not change the fit.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from preflearn.core.validation import Floats
from preflearn.dynamics.covariances.prior import Prior
from preflearn.dynamics.engine.acceleration import make_step
from preflearn.dynamics.engine.algorithm import run_algorithm_1
from preflearn.dynamics.engine.joint import JointSweep, group_matches, sums_of
from preflearn.dynamics.engine.joint_filter import JointFilter, Rows
from preflearn.dynamics.engine.threads import ParallelMap
from preflearn.dynamics.likelihoods.normal import Gaussian
from preflearn.dynamics.model import DynamicComparisons
from preflearn.matches import Matches


class JointForecasts(NamedTuple):
    """Forecasts of some matches by the joint posterior.

    Attributes
    ----------
    mean, variance : ndarray of shape (n,)
        Moments of x·s of each match, without offset and prior means.
    residual : ndarray of shape (T,)
        Residual of the fit for each time, as in `OneStepAhead`.
    """

    mean: Floats
    variance: Floats
    residual: Floats


def forecast_jointly(
    model: DynamicComparisons,
    sweep: JointSweep,
    matches: Matches,
    observations: Floats,
    cuts: list[int],
    tol: float,
) -> JointForecasts:
    """Forecast matches by the joint posterior of all matches of earlier times.

    Parameters
    ----------
    model : DynamicComparisons
        Model with posterior="joint".
    sweep : JointSweep
        Sweep of all matches, from which prior and threads are taken.
    matches : Matches
        All matches.
    observations : ndarray of shape (N, 3)
        Outcome, weight, and offset of each match.
    cuts : list of int
        First match of each time to forecast, and the number of matches.
    tol : float
        Largest residual of a fit.
    """
    known = observations[:, 2] + sweep.prior.differences(matches)
    shifted = np.column_stack([observations[:, :2], known])
    if type(model.likelihood) is Gaussian:
        noise_variance = model.likelihood.variance
        moments = filter_gaussian(sweep.prior, matches, shifted, noise_variance)
        mean, variance = moments[:, cuts[0] :]
        return JointForecasts(mean, variance, np.zeros(len(cuts) - 1))
    return _Refits(model, sweep, matches, shifted).run(cuts, tol)


def filter_gaussian(
    prior: Prior, matches: Matches, observations: Floats, noise_variance: float
) -> Floats:
    """Mean and variance of x·s of each match given earlier times, shape (2, N).

    The outcomes are Gaussian. The shift of x·s is the third column of `observations`.
    """
    y, weight, shift = observations.T
    beta = weight / noise_variance
    sites = np.column_stack([beta * (y - shift), beta])
    rows, row_of_match, _, _ = group_matches(matches, observations, moving=True)
    n = len(rows.time)
    # at each time, first the forecasts and then the pseudo-observations
    order = np.lexsort([np.repeat([0, 1], n), np.tile(rows.time, 2)])
    both: Any = sparse.vstack([rows.design, rows.design], format="csr")
    visits = Rows(both[order], np.tile(rows.time, 2)[order])
    totals = np.vstack([np.zeros((n, 2)), sums_of(sites, row_of_match, n)])
    joint = JointFilter(visits, prior.spaces, prior.space_index(matches.features))
    moments = np.empty((2 * n, 2))
    moments[order] = joint.predict(totals[order])
    return moments[row_of_match].T


class _Refits:
    """Fits of the matches before each time, each from the previous one."""

    def __init__(
        self,
        model: DynamicComparisons,
        sweep: JointSweep,
        matches: Matches,
        observations: Floats,
    ) -> None:
        self._model = model
        self._prior = sweep.prior
        self._parallel_map: ParallelMap = sweep.parallel_map
        self._matches = matches
        self._observations = observations

    def run(self, cuts: list[int], tol: float) -> JointForecasts:
        """Forecast the matches at each time."""
        sites = np.zeros((len(self._matches), 2))
        moments = []
        residual = []
        for begin, end in pairwise(cuts):
            sweep = self._sweep(begin, end)
            change = self._fit(sweep, sites[:end], tol)
            # If the fit that starts from the previous one does not converge (the change
            # may be NaN), a second fit starts from zeros.
            if not change <= tol and sites.any():
                change = self._fit(sweep, np.zeros((end, 2)), tol)
            sites[:end] = sweep.sites
            moments.append(sweep.posterior_moments()[:, begin:])
            residual.append(change)
        mean, variance = np.hstack(moments)
        return JointForecasts(mean, variance, np.array(residual))

    def _sweep(self, begin: int, end: int) -> JointSweep:
        """Return a sweep of the first `end` matches without outcomes from `begin` on."""
        observations = self._observations[:end].copy()
        observations[begin:, 1] = 0.0
        return JointSweep(
            self._matches[:end],
            self._prior,
            self._model.likelihood,
            observations,
            ep=self._model.method == "ep",
            parallel_map=self._parallel_map,
        )

    def _fit(self, sweep: JointSweep, sites: Floats, tol: float) -> float:
        """Fit from given pseudo-observations; return the residual of the last sweep.

        After it, the moments of the sweep belong to its pseudo-observations.
        """
        sweep.sites = sites
        step = make_step(sweep, self._model.rate)
        max_iter = int(self._model.max_iter)
        trace, converged = run_algorithm_1(sweep, step, tol=tol, max_iter=max_iter)
        if not converged:
            log_z = sweep.smooth_features()
            return sweep.update_matches(log_z).residual
        return trace[-1].residual
