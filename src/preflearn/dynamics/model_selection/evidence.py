"""Hyperparameters at the maximum of the evidence, by its gradient.

The evidence is EP's estimate of the log marginal likelihood of the outcomes, or the
lower bound on it that reverse-KL maximises.

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

# of a logarithm: truncation and rounding are both below 1e-7 of the evidence's scale
_STEP = 1e-4
_WIDE = 1e6  # a parameter may change by this factor


class EvidenceMaximum(NamedTuple):
    """What `maximise_evidence` has found.

    Attributes
    ----------
    model : DynamicComparisons
        Fitted at the maximum.
    parameters : dict of str to float
        All of the model's, by name, those that were fixed, too.
    evidence : float
        That of `model`, in nats.
    gradient : Series
        d evidence / d log parameter of `model`, in nats, by the parameters that were
        free.
    converged : bool
        Whether no derivative is larger than `gtol`, except those that push against a
        bound.
    at_bound : tuple of str
        Parameters that ended at a bound: the evidence has no maximum between the
        bounds.
    trace : DataFrame
        One row an evaluation, each of a converged fit: the parameters, `evidence`,
        `gradient` (the largest derivative that a bound does not stop) and `n_iter`, the
        sweeps. `evidence` is NaN where no fit was possible, and the search went back.
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
    """Hyperparameters that maximise the log marginal likelihood (section 6 of
    [Maystre2019]_), by gradients.

    L-BFGS-B ([Byrd1995]_) over the logarithms of the parameters, from those of `model`.
    An evaluation is a fit to the model's `tol`, which begins with the
    pseudo-observations of the best one so far, and a gradient. The maximum is a local
    one: start from several models where that matters. In a product of covariances only
    the product of the variances counts, so fix all of them but one.

    Parameters
    ----------
    model : DynamicComparisons
        The start; it is not changed.
    matches : Matches
    y : array-like of shape (N,)
        Outcomes.
    sample_weight, offset : array-like of shape (N,), optional
        As in `DynamicComparisons.fit`.
    fixed : iterable of str
        Parameters that stay, by the names of `parameters_of`. The others may go a
        factor of 10^6 up and down from the start; lengths of time from a thousandth of
        the span of the data to 100 spans.
    gtol : float
        In nats: it ends where no derivative by the logarithm of a parameter is larger.
        Derivatives are as exact as fits are: with the default `tol` of a model to a few
        1e-3, for 50,000 matches.
    max_iter : int
        Steps of L-BFGS-B, at most.

    Returns
    -------
    EvidenceMaximum

    Raises
    ------
    ValueError
        As `DynamicComparisons.fit`; on unknown names, or no free parameter; if the fit
        at the start does not converge.

    Warns
    -----
    ConvergenceWarning
        If a larger derivative is left.
    UserWarning
        Once, if a length of time that is fixed, is absurd for the data's span.

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
    fixed = check_list(fixed, "fixed", "a list of names")
    check_names(fixed, known, "a fixed parameter")
    start = {name: found for name, found in known.items() if name not in fixed}
    require(
        len(start) > 0, fixed, "fixed", f"at least one of {', '.join(known)} to be free"
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
        text = f"no maximum of the evidence in {len(found.trace)} evaluations: a derivative of "
        text += f"{objective.left:.1e} is left, more than gtol={gtol:g}; raise max_iter, or lower "
        text += f"the model's tol, which is {model.tol:g}"
        warn_user(text, ConvergenceWarning)
    return found


class LogDensity(Protocol):
    """A function of logarithms of parameters, shape (p,), and its gradient."""

    def __call__(self, at: Floats, /) -> float: ...

    def gradient(self, at: Floats, /) -> Floats: ...


class Objective:
    """Minus the evidence and its gradient, for a minimiser; it remembers the best fit.

    Both are divided by the largest derivative at the start: the first step of L-BFGS-B
    is as long as the gradient, so that it changes no parameter by more than a factor of
    e. With a log prior density of the logarithms, which is added to the evidence, the
    maximum is the mode of the posterior of the hyperparameters.
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
        # the largest derivative that does not push against a bound, of the best fit
        self.left = math.inf
        self._scale = 1.0
        self._rows = list[dict[str, float]]()

    def climb(self, start: Floats, max_iter: int) -> None:
        """Maximise from logarithms of the parameters, by L-BFGS-B."""
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
        # below the best evidence, and lower farther away: the line search goes back
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
        """The evidence of a model that was fitted at these logarithms, and the log
        prior."""
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
        """From the best fit so far, or, as the first, from nothing."""
        if self._best is not None:
            return self.fit(at, self._best)
        fitted = infer(changed(self._model), *self._data)
        require(
            fitted.converged_,
            fitted.n_iter_,
            "max_iter",
            "enough sweeps for a fit at the start",
        )
        return fitted

    def fit(self, at: Floats, start: DynamicComparisons) -> DynamicComparisons | None:
        """From the pseudo-observations of another fit; if that fails, from nothing;
        None if that fails, too."""
        values = dict(zip(self._names, np.exp(at).tolist(), strict=True))
        for sites in (start.pseudo_observations_, None):
            try:
                fitted = infer(with_parameters(self._model, values), *self._data, sites)
            except ValueError:  # out of the likelihood's range, or it overflows
                continue
            if fitted.converged_:
                return fitted
        return None

    def stop(self, _: Floats) -> None:
        """After each step of the minimiser."""
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
    r"""Derivatives of the evidence of a fitted model by the logarithms of its
    parameters.

    They are central differences, two evaluations a parameter and no fit, because all
    pseudo-observations stay as they are. At the fixed point that is the derivative of
    the evidence of refitted models, since the evidence is stationary in them:

    *EP* ([Seeger2005]_). Let :math:`\lambda_n` be the natural parameters of the
    pseudo-observations of match n (alpha and -beta/2 of each of its features),
    :math:`\eta_n` those of the posterior marginals, so that
    :math:`\eta_n - \lambda_n` are those of the cavity. With :math:`\phi` the log partition function of the
    marginals, :math:`G_n` that of cavity times likelihood, and :math:`\theta` the
    hyperparameters, EP's evidence is

    .. math:: F = \log \tilde Z(\lambda, \theta) + \sum_n G_n(\eta_n - \lambda_n, \theta) - \phi(\eta_n).

    The derivative of :math:`\log\tilde Z` by :math:`\lambda_n` and that of :math:`\phi`
    by :math:`\eta_n` are the moments :math:`m_n` of the posterior (mean of s and of
    s²), that of :math:`G_n` the moments
    :math:`\hat m_n` of cavity times likelihood. So whatever moves :math:`\lambda` and :math:`\eta`,

    .. math:: dF = \sum_n (\hat m_n - m_n) \cdot (d\eta_n - d\lambda_n)
              + \partial_\theta \log\tilde Z\, d\theta + \sum_n \partial_\theta G_n\, d\theta,

    and at the fixed point :math:`\hat m_n = m_n`. What is left is the derivative at
    fixed pseudo-observations, in which :math:`d\eta_n \ne 0` does no harm for the same
    reason.

    *Reverse-KL.* The bound :math:`L(q, \theta)` is at its maximum over the Gaussian
    processes q, so
    :math:`\partial_q L = 0`, whether q is held or, as here, moves along with the prior.
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
    """Far from the start; differences of the gradient stay within the range of a
    parameter, too."""
    span = float(np.ptp(time))
    limits = {}
    for name, (value, is_length, least, most) in start.items():
        low = value / _WIDE
        high = value * _WIDE
        if span > 0 and is_length:
            low = min(span / MOST_LENGTHS, value)
            high = max(span * MOST_SPANS, value)
        limits[name] = Range(
            max(low, least * (1 + 2 * _STEP)), min(high, most * (1 - 2 * _STEP))
        )
    return limits
