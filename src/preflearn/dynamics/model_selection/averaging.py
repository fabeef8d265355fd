"""Averaging over hyperparameters, by fits on a grid of their logarithms.

References
----------
.. [Rue2009] H. Rue, S. Martino, N. Chopin, "Approximate Bayesian inference for latent
   Gaussian models by using integrated nested Laplace approximations", Journal of the
   Royal Statistical Society B 71, 2009.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import gammaln, logsumexp, ndtri
from scipy.stats import chi2, multivariate_t, qmc

from preflearn.core.validation import (
    Floats,
    PerMatch,
    check_count,
    check_list,
    require,
    warn_user,
)
from preflearn.dynamics.model import DynamicComparisons, check_problem
from preflearn.dynamics.model_selection.averaged import AveragedComparisons
from preflearn.dynamics.model_selection.evidence import Objective
from preflearn.dynamics.model_selection.hyperparameters import (
    check_names,
    described,
    with_parameters,
)
from preflearn.dynamics.model_selection.hyperprior import HyperPrior
from preflearn.matches import Matches
from preflearn.solvers.search import Range

_GTOL = 0.05  # largest derivative at the mode, in nats
_MAX_ITER = 100
_STEP = 0.05  # step of a logarithm for differences of gradients
# Largest standard deviation of a logarithm, which limits the axes of the grid.
_MAX_STD = 3.0
_MAX_GRID_DIMENSION = 3
_N_POINTS = {1: 15, 2: 40, 3: 50}  # number of grid points, by dimension
_N_DRAWS = 128
_MAX_DROP = 5.0  # largest decrease of the log density in the grid, in nats
_MAX_GROWTH = 20  # growth of the number of points for posteriors with long tails
_DEGREES = 5  # degrees of freedom of the proposal
_MIN_EFFECTIVE = 10  # effective number of draws
_MIN_MASS = 0.999  # posterior probability of the models that are kept


def average_over_hyperparameters(
    model: DynamicComparisons,
    matches: Matches,
    y: ArrayLike,
    prior: Mapping[str, Any] | None = None,
    n_points: int | None = None,
    *,
    sample_weight: PerMatch = None,
    offset: PerMatch = None,
    fixed: Iterable[str] = (),
) -> AveragedComparisons:
    r"""Average the posterior of the scores over the posterior of hyperparameters.

    Use it for reliable intervals if there are few matches or players are nearly equal.
    Maximizing the evidence would select a single value of each hyperparameter. In these
    cases the maximum may be at variance zero, where intervals have width zero. Here the
    posterior of the scores s is the mixture

    .. math:: p(s \mid y) = \int p(s \mid y, \theta)\, p(\theta \mid y)\, d\theta,
              \qquad p(\theta \mid y) \propto p(y \mid \theta)\, p(\theta),

    with the model's estimate of the evidence :math:`p(y \mid \theta)`. Up to three
    parameters are integrated over a grid around the mode of
    :math:`p(\log\theta \mid y)`, along the principal axes of its curvature. As in
    [Rue2009]_, the grid is extended until the density is far below its maximum, here
    below :math:`e^{-5}` times the maximum. More parameters are integrated by importance
    sampling with quasi-random draws from a t distribution with that mode and curvature.

    Parameters
    ----------
    model : DynamicComparisons
        Start of the search; parameters in `fixed` keep its values. It is not changed.
    matches : Matches
        Matches of the training data.
    y : array-like of shape (N,)
        Outcomes.
    prior : mapping of str to distribution, optional
        Distributions of parameters in their own units, by the names of `parameters_of`,
        such as ``{"Constant.variance": scipy.stats.lomax(2, scale=0.5)}``: objects with
        the methods `logpdf` and `median`. Parameters that are not named have the
        default prior; see Notes.
    n_points : int, optional
        Approximate number of fits; by default 15, 40, and 50 for a grid of one, two,
        and three parameters, and 128 draws for more.
    sample_weight, offset : array-like of shape (N,), optional
        Weights and offsets, as in `DynamicComparisons.fit`.
    fixed : iterable of str
        Names, as in `parameters_of`, of parameters that keep their value. In a
        product of covariances only the product of the variances is identified: fix all
        but one.

    Returns
    -------
    AveragedComparisons
        A fitted mixture of models.

    Raises
    ------
    ValueError
        In the cases of `DynamicComparisons.fit`; if `prior` or `fixed` has an unknown
        name, no parameter is free, or a prior is not a distribution; if the fit at the
        start does not converge.

    Warns
    -----
    UserWarning
        If the posterior is so wide that the grid does not cover it, or if the effective
        number of draws is below ten.

    Notes
    -----
    *The default prior.* Parameters are independent. In units of the noise variance
    :math:`\sigma^2` (1 for probit and logit likelihoods), a variance v has

    .. math:: P(v > x) = (1 + x / \sigma^2)^{-2}.

    The standard deviation of scores is between 0.11 and 2.3 times that of the noise
    with probability 95 %, and the mean of v is :math:`\sigma^2`. If a variance grows
    with time, as that of `Wiener`, v is the variance after the time span of the data. A
    length of time is log-normal with the time span as its median and a standard
    deviation of 1.5 of its logarithm. Other parameters, such as a margin of ties, are
    log-normal with their value in `model` as median and a standard deviation of 2 of
    their logarithm.

    *Its effect at variance zero.* The evidence L(v) tends to a constant, L(0), so a
    prior that is flat in log v would have infinite mass there, and the intervals would
    have width zero. The default density of v is finite at 0, at most
    :math:`2 / \sigma^2`, so that

    .. math:: P(v < \epsilon \mid y) \le
              \frac{2 \epsilon}{\sigma^2}\, \frac{\max L}{\int L(v)\, p(v)\, dv},

    which vanishes with :math:`\epsilon`. L(v) decreases if v exceeds e², where e is the
    standard error of a score given the data only. Therefore v is of the order of
    :math:`\min(e^2, \sigma^2)`, and an interval is about as wide as the standard error.
    For example, if a player won 86 of 160 matches against another one, the interval of
    the win probability is 46 to 61 %, like a binomial interval. For a score difference
    d of two players the implied prior is :math:`\int N(d; 0, 2v)\, p(v)\, dv`, finite
    at d = 0: it does not pull small differences to zero as a prior with a pole would.
    Its tail is :math:`|d|^{-5}`, so means and variances exist for unbeaten players,
    too.

    *Interpretation of intervals.* If hyperparameters are drawn from the prior, and
    scores and outcomes from the model, a 95 % interval contains its score in 95 % of
    data sets. For one fixed variance the coverage may differ;
    benchmarks/interval_coverage.py measures both.

    References
    ----------
    .. [Rue2009] H. Rue, S. Martino, N. Chopin, "Approximate Bayesian inference for
       latent Gaussian models by using integrated nested Laplace approximations",
       Journal of the Royal Statistical Society B 71, 2009.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, DynamicComparisons, Probit
    >>> from preflearn.matches import Matches
    >>> matches = Matches([[1, -1]] * 10, range(10), ["Ann", "Bob"])
    >>> model = DynamicComparisons(Constant(1.0), Probit(), posterior="joint")
    >>> found = average_over_hyperparameters(model, matches, [1] * 6 + [-1] * 4)
    >>> found.proba_interval(matches[:1]).round(2).tolist()
    [[0.32, 0.81]]
    """
    observations = check_problem(model, matches, y, sample_weight, offset)
    known = described(model)
    fixed = check_list(fixed, "fixed", "a list of parameter names")
    check_names(fixed, known, "a name in fixed")
    names = [name for name in known if name not in fixed]
    expected = f"at least one free parameter of {', '.join(known)}"
    require(len(names) > 0, fixed, "fixed", expected)
    if n_points is not None:
        check_count(n_points, "n_points", least=2)
    log_prior = HyperPrior(model, matches, names, prior)
    limits = _limits(log_prior.limits(), known, names)
    log_limits = np.log([found[:2] for found in limits.values()])
    start = np.clip(np.log([known[name].value for name in names]), *log_limits.T)
    begun = with_parameters(
        model, dict(zip(names, np.exp(start).tolist(), strict=True))
    )
    objective = Objective(begun, (matches, observations), limits, _GTOL, log_prior)
    objective.climb(start, _MAX_ITER)
    integral = _Integral(objective, log_limits)
    if len(names) <= _MAX_GRID_DIMENSION:
        points = integral.grid(n_points or _N_POINTS[len(names)])
    else:
        points = integral.importance_sample(n_points or _N_DRAWS)
    return _mixture(points, names, log_prior)


def _limits(
    log_limits: Floats, known: Mapping[str, Any], names: list[str]
) -> dict[str, Range]:
    """Bounds of the search, far from the prior median.

    They are in the range of each parameter.
    """
    limits = {}
    for name, (low, high) in zip(names, np.exp(log_limits).tolist(), strict=True):
        least = known[name].least * (1 + 2 * _STEP)
        most = known[name].most * (1 - 2 * _STEP)
        limits[name] = Range(max(low, least), min(high, most))
    return limits


class _Point(NamedTuple):
    """A fit at one point, given by the logarithms of the parameters."""

    at: Floats
    fitted: DynamicComparisons
    log_density: float  # joint log density of the outcomes and these logarithms
    log_weight: float  # log of the density times the volume of the point


class _Integral:
    """Integration over the posterior of the hyperparameters, around its mode."""

    def __init__(self, objective: Objective, log_limits: Floats) -> None:
        self._objective = objective
        self._low, self._high = log_limits.T
        self._best, self._mode = objective.best()
        # columns: axes of one standard deviation of the Laplace approximation
        self._axes = self._principal_axes()
        self._log_volume = float(np.linalg.slogdet(self._axes)[1])

    def _principal_axes(self) -> Floats:
        """Principal axes of the curvature at the mode, from differences of gradients."""
        steps = _STEP * np.eye(len(self._mode))
        rows = []
        for step in steps:
            ahead, behind = (self._gradient(self._mode + s) for s in (step, -step))
            rows.append((ahead - behind) / (2 * _STEP))
        hessian = np.array(rows)
        curvature, axes = np.linalg.eigh(-(hessian + hessian.T) / 2)
        return axes / np.sqrt(np.maximum(curvature, _MAX_STD**-2))

    def _gradient(self, at: Floats) -> Floats:
        fitted = self._objective.fit(at, self._best)
        if (
            fitted is None
        ):  # the curvature is unknown, so the axis has its largest length
            return np.zeros(len(at))
        return self._objective.gradient(fitted, at)

    def _point(
        self, z: Floats, start: DynamicComparisons, log_volume: float
    ) -> _Point | None:
        """Fit at the mode plus axes times z; None if no fit is possible."""
        at = self._mode + self._axes @ z
        if np.any((at < self._low) | (at > self._high)):
            return None
        fitted = self._objective.fit(at, start)
        if fitted is None:
            return None
        log_density = self._objective.value(fitted, at)
        return _Point(at, fitted, log_density, log_density + log_volume)

    def grid(self, n_points: int) -> list[_Point]:
        """Points of a lattice, from the mode outwards until the density is low.

        The sum over a lattice converges exponentially for smooth densities: with a
        step of 1.5 standard deviations the error is 1e-4 for a Gaussian density.
        """
        p = len(self._mode)
        step = _grid_step(p, n_points)
        log_volume = self._log_volume + p * math.log(step)
        origin: tuple[int, ...] = (0,) * p
        points: dict[tuple[int, ...], _Point | None] = {
            origin: self._point(np.zeros(p), self._best, log_volume)
        }
        pending: deque[tuple[int, ...]] = deque([origin])
        highest = -math.inf
        while pending and len(points) < _MAX_GROWTH * n_points:
            node = pending.popleft()
            point = points[node]
            if point is None:
                continue
            highest = max(highest, point.log_density)
            if point.log_density < highest - _MAX_DROP:
                continue
            for near in _neighbors(node):
                if near not in points:
                    z = step * np.array(near, dtype=float)
                    points[near] = self._point(z, point.fitted, log_volume)
                    pending.append(near)
        if pending:
            warn_user(
                f"the grid of hyperparameters reached its limit of {len(points):,} points before it "
                "covered their posterior, so the result is inaccurate; pass a narrower prior, "
                "or fix a parameter",
                UserWarning,
            )
        return [point for point in points.values() if point is not None]

    def importance_sample(self, n_draws: int) -> list[_Point]:
        """Weighted quasi-random draws from a t distribution around the mode."""
        p = len(self._mode)
        size = math.ceil(math.log2(n_draws))
        # the points are multiples of 2^-size; the shift avoids 0
        uniform = qmc.Sobol(p + 1, scramble=False).random_base2(size) + 0.5**size / 2
        scale = np.sqrt(_DEGREES / chi2.ppf(uniform[:, p], _DEGREES))
        draws = ndtri(uniform[:, :p]) * scale[:, None]
        proposal: Any = multivariate_t
        log_proposal = proposal(shape=np.eye(p), df=_DEGREES).logpdf(draws)
        log_volumes = self._log_volume - log_proposal - math.log(len(draws))
        points = [
            self._point(z, self._best, log_volume)
            for z, log_volume in zip(draws, log_volumes.tolist(), strict=True)
        ]
        found = [point for point in points if point is not None]
        log_weights = np.array([point.log_weight for point in found])
        weights = np.exp(log_weights - logsumexp(log_weights))
        effective = 1 / np.sum(weights**2)
        if effective < _MIN_EFFECTIVE:
            warn_user(
                f"{len(draws)} draws of hyperparameters have an effective number of only {effective:.0f}, "
                "so the result is inaccurate; raise n_points, or fix a parameter",
                UserWarning,
            )
        return found


def _grid_step(p: int, n_points: int) -> float:
    """Step for which a ball with the radius of `_MAX_DROP` has `n_points` points."""
    log_unit_ball = p / 2 * math.log(math.pi) - gammaln(p / 2 + 1)
    return math.sqrt(2 * _MAX_DROP) * math.exp((log_unit_ball - math.log(n_points)) / p)


def _neighbors(node: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for k in range(len(node)):
        for move in (-1, 1):
            yield (*node[:k], node[k] + move, *node[k + 1 :])


def _mixture(
    points: list[_Point], names: list[str], log_prior: HyperPrior
) -> AveragedComparisons:
    """The mixture of the points with the largest weights."""
    points = sorted(points, key=lambda point: -point.log_weight)
    log_weights = np.array([point.log_weight for point in points])
    total: Any = logsumexp(log_weights)
    evidence = float(total)
    weights = np.exp(log_weights - evidence)
    table = pd.DataFrame(np.exp([point.at for point in points]), columns=names)
    table["evidence"] = [point.fitted.log_marginal_likelihood_ for point in points]
    table["log_prior"] = [log_prior(point.at) for point in points]
    table["weight"] = weights
    kept = 1 + int(np.searchsorted(np.cumsum(weights), _MIN_MASS))
    return AveragedComparisons(
        [point.fitted for point in points[:kept]],
        weights[:kept] / weights[:kept].sum(),
        log_marginal_likelihood=evidence,
        hyperparameters=table,
    )
