"""Maximization of the evidence over hyperparameters, by its gradient.

The evidence is EP's estimate of the log marginal likelihood of the outcomes, or the
lower bound on it that reverse-KL maximizes.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
.. [Seeger2005] M. Seeger, "Expectation propagation for exponential families", technical
   report, University of California at Berkeley, 2005.
.. [Byrd1995] R. H. Byrd, P. Lu, J. Nocedal, C. Zhu, "A limited memory algorithm for
   bound constrained optimization", SIAM Journal on Scientific Computing 16, 1995.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from preflearn.core.validation import (
    Floats,
    PerMatch,
    check_count,
    check_list,
    check_real,
    require,
    warn_user,
)
from preflearn.dynamics.covariances.prior import MOST_LENGTHS, MOST_SPANS
from preflearn.dynamics.model import (
    DynamicComparisons,
    check_problem,
    infer,
    prepare_sweep,
)
from preflearn.dynamics.model_selection.hyperparameters import (
    Parameter,
    changed,
    check_names,
    described,
    parameters_of,
    warn_about_ranges,
    with_parameters,
)
from preflearn.matches import Matches
from preflearn.solvers.search import Range

# Step in a logarithm: truncation and rounding errors are below 1e-7, relative to the
# size of the evidence.
_STEP = 1e-4
_MAX_FACTOR = 1e6  # largest change of a parameter


class EvidenceMaximum(NamedTuple):
    """Result of `maximise_evidence`.

    Attributes
    ----------
    model : DynamicComparisons
        Model fitted at the maximum.
    parameters : dict of str to float
        All parameters of the model by name, including fixed ones.
    evidence : float
        Evidence of `model`, in nats.
    gradient : Series
        Derivatives of the evidence with respect to the logarithms of the free
        parameters, in nats.
    converged : bool
        Whether no derivative is larger than `gtol`, except those that point beyond a
        bound.
    at_bound : tuple of str
        Parameters that ended at a bound: the evidence has no maximum between the
        bounds.
    trace : DataFrame
        One row per evaluation, each of a converged fit: the parameters, `evidence`,
        `gradient` (the largest derivative that does not point beyond a bound), and
        `n_iter`, the number of sweeps. `evidence` is NaN if no fit was possible; the
        search then returned to an earlier point.
    """

    model: DynamicComparisons
    parameters: dict[str, float]
    evidence: float
    gradient: pd.Series
    converged: bool
    at_bound: tuple[str, ...]
    trace: pd.DataFrame


def maximise_evidence(
    model: DynamicComparisons,
    matches: Matches,
    y: ArrayLike,
    sample_weight: PerMatch = None,
    offset: PerMatch = None,
    *,
    fixed: Iterable[str] = (),
    gtol: float = 1e-2,
    max_iter: int = 100,
) -> EvidenceMaximum:
    """Maximize the evidence (log marginal likelihood) over the hyperparameters.

    Use it to choose length scales, variances, and margins (section 6 of
    [Maystre2019]_). L-BFGS-B ([Byrd1995]_) searches over the logarithms of the
    parameters, from those of `model`. Each evaluation computes a fit to the model's
    `tol`, starting with the pseudo-observations of the best fit so far, and a gradient.
    The maximum is local: start from several models if this may matter. In a product of
    covariances only the product of the variances is identified, so fix all of them but
    one.

    Parameters
    ----------
    model : DynamicComparisons
        Start of the search; it is not changed.
    matches : Matches
        Matches of the training data.
    y : array-like of shape (N,)
        Outcomes.
    sample_weight, offset : array-like of shape (N,), optional
        Weights and offsets, as in `DynamicComparisons.fit`.
    fixed : iterable of str
        Names, as in `parameters_of`, of parameters that keep their value. The others
        may change by a factor of up to 10^6; lengths of time may be between a
        thousandth of the time span of the data and 100 time spans.
    gtol : float
        Largest derivative with respect to the logarithm of a parameter at which the
        search has converged, in nats. The accuracy of derivatives depends on that of
        the fits: with the default `tol` of a model it is a few 1e-3 for 50,000 matches.
    max_iter : int
        Largest number of L-BFGS-B steps.

    Returns
    -------
    EvidenceMaximum

    Raises
    ------
    ValueError
        In the cases of `DynamicComparisons.fit`; if a name is unknown or no parameter
        is free; if the fit at the start does not converge.

    Warns
    -----
    ConvergenceWarning
        If a derivative larger than `gtol` remains.
    UserWarning
        Once, if a fixed length of time does not suit the time span of the data.

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
       flexible time-dynamics", KDD 2019.
    .. [Byrd1995] R. H. Byrd, P. Lu, J. Nocedal, C. Zhu, "A limited memory algorithm for
       bound constrained optimization", SIAM Journal on Scientific Computing 16, 1995.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, DynamicComparisons, Probit
    >>> from preflearn.matches import Matches
    >>> matches = Matches([[1, -1]] * 10, range(10), ["Ann", "Bob"])
    >>> start = DynamicComparisons(Constant(1.0), Probit())
    >>> found = maximise_evidence(start, matches, [1] * 8 + [-1] * 2)
    >>> {name: round(value, 2) for name, value in found.parameters.items()}, found.converged
    ({'Constant.variance': 0.16}, True)
    """
    observations = check_problem(model, matches, y, sample_weight, offset)
    known = described(model)
    fixed = check_list(fixed, "fixed", "a list of parameter names")
    check_names(fixed, known, "a name in fixed")
    start = {name: found for name, found in known.items() if name not in fixed}
    require(
        len(start) > 0,
        fixed,
        "fixed",
        f"at least one free parameter of {', '.join(known)}",
    )
    limits = _limits(start, matches.time)
    warn_about_ranges(model, limits, matches.time)
    check_real(gtol, "gtol", "a positive number", np.finfo(float).tiny)
    objective = Objective(model, (matches, observations), limits, gtol)
    objective.climb(
        np.log([found.value for found in start.values()]),
        check_count(max_iter, "max_iter", least=1),
    )
    found = objective.result()
    if not found.converged:
        text = f"no maximum of the evidence after {len(found.trace)} evaluations: the largest derivative is "
        text += f"{objective.left:.1e}, more than gtol={gtol:g}; raise max_iter or gtol, or lower the "
        text += f"model's tol={model.tol:g}"
        warn_user(text, ConvergenceWarning)
    return found


class LogDensity(Protocol):
    """Type of a log density of the parameters' logarithms, with its gradient."""

    def __call__(self, at: Floats, /) -> float: ...

    def gradient(self, at: Floats, /) -> Floats: ...


class Objective:
    """Negative evidence and its gradient, for a minimizer; it keeps the best fit.

    Both are divided by the largest derivative at the start. The first step of L-BFGS-B
    is as long as the gradient, so it changes no parameter by more than a factor of e.
    If a log prior density of the logarithms is given, it is added to the evidence, and
    the maximum is the mode of the posterior of the hyperparameters.
    """

    def __init__(
        self,
        model: DynamicComparisons,
        data: tuple[Matches, Floats],
        limits: dict[str, Range],
        gtol: float,
        log_prior: LogDensity | None = None,
    ) -> None:
        self._model = model
        self._data = data
        self._gtol = gtol
        self._log_prior = log_prior
        self._names = list(limits)
        self.limits = np.log([found[:2] for found in limits.values()])
        self._best: Any = None
        self._value = -math.inf
        self._at = self._gradient = np.zeros(len(limits))
        # largest derivative of the best fit that does not point beyond a bound
        self.left = math.inf
        self._scale = 1.0
        self._rows = list[dict[str, float]]()

    def climb(self, start: Floats, max_iter: int) -> None:
        """Maximize by L-BFGS-B, from logarithms of the parameters."""
        minimize(
            self,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=self.limits,
            callback=self.stop,
            options={"maxiter": max_iter, "gtol": 0, "ftol": 0},
        )

    def __call__(self, at: Floats) -> tuple[float, Floats]:
        values = dict(zip(self._names, np.exp(at).tolist(), strict=True))
        row = {**values, "evidence": math.nan, "gradient": math.nan, "n_iter": 0}
        self._rows.append(row)
        fitted = self._fit_next(at)
        # a value worse than the best one, so that the line search goes back
        if fitted is None:
            away = at - self._at
            return (
                1.0 - self._value / self._scale + float(away @ away),
                2 * away,
            )
        value = self.value(fitted, at)
        gradient = self.gradient(fitted, at)
        low, high = self.limits.T
        stopped = ((at <= low) & (gradient < 0)) | ((at >= high) & (gradient > 0))
        left = float(np.abs(np.where(stopped, 0, gradient)).max())
        evidence = fitted.log_marginal_likelihood_
        row |= {"evidence": evidence, "gradient": left, "n_iter": fitted.n_iter_}
        if self._best is None:
            self._scale = max(1.0, float(np.abs(gradient).max()))
        if self._best is None or value >= self._value:
            self._best = fitted
            self._value = value
            self._at = at.copy()
            self._gradient = gradient
            self.left = left
        return -value / self._scale, -gradient / self._scale

    def value(self, fitted: DynamicComparisons, at: Floats) -> float:
        """The evidence of a model fitted at these logarithms, plus the log prior."""
        evidence = fitted.log_marginal_likelihood_
        if self._log_prior is None:
            return evidence
        return evidence + self._log_prior(at)

    def gradient(self, fitted: DynamicComparisons, at: Floats) -> Floats:
        """The gradient of `value`, shape (p,)."""
        gradient = gradient_of(fitted, self._names)
        if self._log_prior is None:
            return gradient
        return gradient + self._log_prior.gradient(at)

    def _fit_next(self, at: Floats) -> DynamicComparisons | None:
        """Fit from the best fit so far, or, for the first fit, from zero."""
        if self._best is not None:
            return self.fit(at, self._best)
        fitted = infer(changed(self._model), *self._data)
        if not fitted.converged_:
            raise ValueError(
                f"the fit of the model, where the search starts, did not converge after max_iter="
                f"{fitted.n_iter_} sweeps; raise the model's max_iter, or start from other parameters"
            )
        return fitted

    def fit(self, at: Floats, start: DynamicComparisons) -> DynamicComparisons | None:
        """Fit from the pseudo-observations of another fit, or else from zero.

        The result is None if neither fit converges.
        """
        values = dict(zip(self._names, np.exp(at).tolist(), strict=True))
        for sites in (start.pseudo_observations_, None):
            try:
                fitted = infer(with_parameters(self._model, values), *self._data, sites)
            except ValueError:  # a parameter is out of range, or a number overflows
                continue
            if fitted.converged_:
                return fitted
        return None

    def stop(self, _: Floats) -> None:
        """Stop the minimizer at convergence; called after each step."""
        if self.left <= self._gtol:
            raise StopIteration

    def best(self) -> tuple[DynamicComparisons, Floats]:
        """The best fit, and the logarithms of its parameters."""
        return self._best, self._at

    def result(self) -> EvidenceMaximum:
        bound = (self._at[:, None] == self.limits).any(axis=1)
        return EvidenceMaximum(
            self._best,
            parameters_of(self._best),
            self._best.log_marginal_likelihood_,
            pd.Series(self._gradient, index=self._names),
            self.left <= self._gtol,
            tuple(np.array(self._names)[bound].tolist()),
            pd.DataFrame(self._rows),
        )


def gradient_of(fitted: DynamicComparisons, names: list[str]) -> Floats:
    r"""Gradient of a fitted model's evidence in the logarithms of its parameters.

    Derivatives are central differences with two evaluations per parameter and no fit,
    because all pseudo-observations keep their values. At the fixed point this is the
    derivative of the evidence of refitted models, since the evidence is stationary in
    the pseudo-observations:

    *EP* ([Seeger2005]_). Let :math:`\lambda_n` be the natural parameters of the
    pseudo-observations of match n (alpha and -beta/2 of each of its features),
    :math:`\eta_n` those of the posterior marginals, so that
    :math:`\eta_n - \lambda_n` are those of the cavity. With :math:`\phi` the log partition function of the
    marginals, :math:`G_n` that of cavity times likelihood, and :math:`\theta` the
    hyperparameters, EP's evidence is

    .. math:: F = \log \tilde Z(\lambda, \theta) + \sum_n G_n(\eta_n - \lambda_n, \theta) - \phi(\eta_n).

    The derivative of :math:`\log\tilde Z` by :math:`\lambda_n` and the derivative of
    :math:`\phi` by :math:`\eta_n` are the moments :math:`m_n` of the posterior
    (means of s and s²). The derivative of :math:`G_n` is :math:`\hat m_n`, the
    moments of cavity times likelihood. For any changes of :math:`\lambda` and
    :math:`\eta`,

    .. math:: dF = \sum_n (\hat m_n - m_n) \cdot (d\eta_n - d\lambda_n)
              + \partial_\theta \log\tilde Z\, d\theta + \sum_n \partial_\theta G_n\, d\theta,

    and at the fixed point :math:`\hat m_n = m_n`. The remaining terms are the
    derivative at fixed pseudo-observations; :math:`d\eta_n \ne 0` has no effect for the
    same reason.

    *Reverse-KL.* The bound :math:`L(q, \theta)` is at its maximum over the Gaussian
    processes q, so :math:`\partial_q L = 0`, whether q is fixed or, as here, changes
    with the prior.
    """
    values = parameters_of(fitted)

    def shifted(name: str, step: float) -> float:
        model = with_parameters(fitted, {name: values[name] * math.exp(step)})
        data = fitted.matches_, fitted.observations_, fitted.pseudo_observations_
        with prepare_sweep(model, *data) as sweep:
            return sweep.update_matches(sweep.smooth_features()).evidence

    return np.array(
        [(shifted(name, _STEP) - shifted(name, -_STEP)) / (2 * _STEP) for name in names]
    )


def _limits(start: dict[str, Parameter], time: Floats) -> dict[str, Range]:
    """Bounds of the search, far from the start.

    They also keep the differences of the gradient within the range of each parameter.
    """
    span = float(np.ptp(time))
    limits = {}
    for name, (value, is_length, least, most) in start.items():
        low = value / _MAX_FACTOR
        high = value * _MAX_FACTOR
        if span > 0 and is_length:
            low = min(span / MOST_LENGTHS, value)
            high = max(span * MOST_SPANS, value)
        limits[name] = Range(
            max(low, least * (1 + 2 * _STEP)), min(high, most * (1 - 2 * _STEP))
        )
    return limits
