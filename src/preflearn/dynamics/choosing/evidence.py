"""Hyperparameters at the maximum of the evidence, by its gradient.

The evidence is EP's estimate of the log marginal likelihood of the outcomes, or the lower bound on it that
reverse-KL maximises.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
.. [Seeger2005] M. Seeger, "Expectation propagation for exponential families", technical report, University
   of California at Berkeley, 2005.
.. [Byrd1995] R. H. Byrd, P. Lu, J. Nocedal, C. Zhu, "A limited memory algorithm for bound constrained
   optimization", SIAM Journal on Scientific Computing 16, 1995.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from preflearn.checks import LARGEST, Floats, check_count, check_real, require
from preflearn.dynamics.choosing.parameters import (
    Range,
    changed,
    check_names,
    check_range,
    parameters_of,
    with_parameters,
)
from preflearn.dynamics.covariances.prior import MOST_LENGTHS, MOST_SPANS, Prior, warn_of_lengths
from preflearn.dynamics.engine.fits import laid_out, quietly_fitted
from preflearn.dynamics.model import DynamicComparisons
from preflearn.matches import Matches

_SAME = 1e-9  # of the evidence: what rounding may change
_STEP = 1e-4  # of a logarithm: truncation and rounding are both below 1e-7 of the evidence's scale
_WIDE = 1e6  # a parameter may change by this factor, if no bounds are given
_LENGTHS = "lengthscale", "period"  # names of parameters that are lengths of time
_BASE_RATES = 1e-6, 1e6  # of Skellam; differences of the gradient stay within, too


def evidence_gradient(model: DynamicComparisons, names: Iterable[str] | None = None) -> pd.Series:
    r"""Derivatives of the evidence of a fitted model by the logarithms of its parameters.

    They are central differences, two evaluations a parameter and no fit, because all pseudo-observations
    stay as they are. At the fixed point that is the derivative of the evidence of refitted models, since
    the evidence is stationary in them:

    *EP* [Seeger2005]_. Let :math:`\lambda_n` be the natural parameters of the pseudo-observations of match n
    (alpha and -beta/2 of each of its features), :math:`\eta_n` those of the posterior marginals, so that
    :math:`\eta_n - \lambda_n` are those of the cavity. With :math:`\phi` the log partition function of the
    marginals, :math:`G_n` that of cavity times likelihood, and :math:`\theta` the hyperparameters, EP's
    evidence is

    .. math:: F = \log \tilde Z(\lambda, \theta) + \sum_n G_n(\eta_n - \lambda_n, \theta) - \phi(\eta_n).

    The derivative of :math:`\log\tilde Z` by :math:`\lambda_n` and that of :math:`\phi` by :math:`\eta_n`
    are the moments :math:`m_n` of the posterior (mean of s and of s²), that of :math:`G_n` the moments
    :math:`\hat m_n` of cavity times likelihood. So whatever moves :math:`\lambda` and :math:`\eta`,

    .. math:: dF = \sum_n (\hat m_n - m_n) \cdot (d\eta_n - d\lambda_n)
              + \partial_\theta \log\tilde Z\, d\theta + \sum_n \partial_\theta G_n\, d\theta,

    and at the fixed point :math:`\hat m_n = m_n`. What is left is the derivative at fixed
    pseudo-observations, in which :math:`d\eta_n \ne 0` does no harm for the same reason.

    *Reverse-KL.* The bound :math:`L(q, \theta)` is at its maximum over the Gaussian processes q, so
    :math:`\partial_q L = 0`, whether q is held or, as here, moves along with the prior.

    Parameters
    ----------
    model : DynamicComparisons
        Fitted; its parameters are those of the fit.
    names : iterable of str, optional
        Those of `parameters_of`; all, if None.

    Returns
    -------
    Series
        d evidence / d log parameter by name, in nats. Truncation of the differences is 1e-8/6 of the
        third derivative; what the fit has not converged comes in linearly.

    Raises
    ------
    ValueError
        If a name is unknown, or the parameters or the method were changed since the fit.

    References
    ----------
    .. [Seeger2005] M. Seeger, "Expectation propagation for exponential families", technical report,
       University of California at Berkeley, 2005.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, DynamicComparisons, Matches, Probit
    >>> matches = Matches([[1, -1]] * 3, [0, 1, 2], ["Ann", "Bob"])
    >>> model = DynamicComparisons(Constant(1.0), Probit()).fit(matches, [1, 1, -1])
    >>> evidence_gradient(model).round(3).to_dict()
    {'Constant.variance': -0.527}
    """
    require(isinstance(model, DynamicComparisons), model, "model", "a DynamicComparisons")
    check_is_fitted(model, "matches_")
    same = Prior(model.covariance).covariances == model._prior.covariances
    if not (same and model.likelihood == model._likelihood):
        raise ValueError("the model's parameters were changed since its fit; expected a fit with these")
    values = parameters_of(model)
    good = names is None or (isinstance(names, Iterable) and not isinstance(names, str))
    require(good, names, "names", "None, or a list of names")
    names = list(values) if names is None else list(names)
    check_names(names, values, "a parameter")
    now, then = _evidence_at(model, model), model.log_marginal_likelihood_
    if not abs(now - then) <= _SAME * max(1.0, abs(then)):
        raise ValueError(
            f"with method {model.method!r} the evidence is {now:.10g}, at the fit it was {then:.10g}; "
            "expected the method of the fit"
        )
    return _gradient(model, names)


def _gradient(fitted: DynamicComparisons, names: list[str]) -> pd.Series:
    values = parameters_of(fitted)

    def shifted(name: str, step: float) -> float:
        return _evidence_at(with_parameters(fitted, {name: values[name] * math.exp(step)}), fitted)

    found = [(shifted(name, _STEP) - shifted(name, -_STEP)) / (2 * _STEP) for name in names]
    return pd.Series(found, index=names, dtype=float)


def _evidence_at(model: DynamicComparisons, fitted: DynamicComparisons) -> float:
    """Of the pseudo-observations of a fitted model, under the parameters of another."""
    with laid_out(model, fitted.matches_, fitted.outcomes_) as update_map:
        update_map.entries[:, :2] = fitted.pseudo_observations_[update_map.schedule.entry_order]
        return update_map.evaluate().evidence


# ---- The maximum


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
        `evidence_gradient` of `model` by the parameters that were free.
    converged : bool
        Whether no derivative is larger than `gtol`, but for those that push against a bound.
    at_bound : tuple of str
        Parameters that ended at a bound: the evidence has no maximum between the bounds.
    trace : DataFrame
        One row an evaluation, each of a converged fit: the parameters, `evidence`, `gradient` (the largest
        derivative that a bound does not stop) and `n_iter`, the sweeps. `evidence` is NaN where no fit was
        possible, and the search went back.
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
    *,
    fixed: Iterable[str] = (),
    bounds: Mapping[str, Range] | None = None,
    gtol: float = 1e-2,
    max_iter: int = 100,
) -> EvidenceMaximum:
    """Hyperparameters that maximise the log marginal likelihood (section 6 of [Maystre2019]_), by gradients.

    L-BFGS-B [Byrd1995]_ over the logarithms of the parameters, from those of `model`. An evaluation is a
    fit to the model's `tol`, which begins with the pseudo-observations of the best one so far, and an
    `evidence_gradient`. The maximum is a local one: start from several models where that matters. In a
    product of covariances only the product of the variances counts, so fix all of them but one.

    Parameters
    ----------
    model : DynamicComparisons
        The start; it is not changed.
    matches : Matches
    y : array-like of shape (N,)
        Outcomes.
    fixed : iterable of str
        Parameters that stay, by the names of `parameters_of`.
    bounds : mapping of str to (float, float), optional
        Of some parameters. The others may go a factor of 10^6 up and down from the start; lengths of time
        from a thousandth of the span of the data to 100 spans.
    gtol : float
        In nats: it ends where no derivative by the logarithm of a parameter is larger. Derivatives are as
        exact as fits are: with the default `tol` of a model to a few 1e-3, for 50,000 matches.
    max_iter : int
        Steps of L-BFGS-B, at most.

    Returns
    -------
    EvidenceMaximum

    Raises
    ------
    ValueError
        As `DynamicComparisons.fit`; on unknown names, bounds that do not hold the start, no free parameter;
        if the fit at the start does not converge.

    Warns
    -----
    ConvergenceWarning
        If a larger derivative is left.
    UserWarning
        Once, if a length of time that is fixed, or each between its bounds, is absurd for the data's span.

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
       time-dynamics", KDD 2019.
    .. [Byrd1995] R. H. Byrd, P. Lu, J. Nocedal, C. Zhu, "A limited memory algorithm for bound constrained
       optimization", SIAM Journal on Scientific Computing 16, 1995.

    Examples
    --------
    >>> from preflearn.dynamics import Constant, DynamicComparisons, Matches, Probit
    >>> matches = Matches([[1, -1]] * 10, range(10), ["Ann", "Bob"])
    >>> start = DynamicComparisons(Constant(1.0), Probit())
    >>> found = maximise_evidence(start, matches, [1] * 8 + [-1] * 2)
    >>> {name: round(value, 2) for name, value in found.parameters.items()}, found.converged
    ({'Constant.variance': 0.16}, True)
    """
    outcomes = checked_outcomes(model, matches, y)
    require(isinstance(fixed, Iterable) and not isinstance(fixed, str), fixed, "fixed", "a list of names")
    require(isinstance(bounds, Mapping | None), bounds, "bounds", "a mapping of names to pairs of numbers")
    values, fixed = parameters_of(model), list(fixed)
    check_names(fixed, values, "a fixed parameter")
    free = [name for name in values if name not in fixed]
    require(len(free) > 0, fixed, "fixed", f"at least one of {', '.join(values)} to be free")
    ranges = _limits(values, free, dict(bounds or {}), float(np.ptp(matches.time)))
    limits = np.log(ranges)
    warn_of_ranges(model, dict(zip(free, ranges, strict=True)), matches.time)
    check_real(gtol, "gtol", "a positive number", np.finfo(float).tiny)
    search = _Search(model, matches, outcomes, free, limits, gtol)
    minimize(
        search,
        np.log([values[name] for name in free]),
        jac=True,
        method="L-BFGS-B",
        bounds=limits,
        callback=search.stop,
        options={"maxiter": check_count(max_iter, "max_iter", least=1), "gtol": 0, "ftol": 0},
    )
    return search.result()


class _Search:
    """Minus the evidence and its gradient, for a minimiser; it remembers the best fit.

    Both are divided by the largest derivative at the start: the first step of L-BFGS-B is as long as the
    gradient, so that it changes no parameter by more than a factor of e.
    """

    def __init__(
        self,
        model: DynamicComparisons,
        matches: Matches,
        outcomes: Floats,
        free: list[str],
        limits: Floats,
        gtol: float,
    ) -> None:
        self._model, self._matches, self._outcomes = model, matches, outcomes
        self._free, self._limits, self._gtol = free, limits, gtol
        self._best: DynamicComparisons | None = None
        self._at, self._gradient, self._scale = np.zeros(len(free)), np.zeros(len(free)), 1.0
        self._rows: list[dict[str, float]] = []

    def __call__(self, at: Floats) -> tuple[float, Floats]:
        values = dict(zip(self._free, np.exp(at).tolist(), strict=True))
        fitted = self._fit(values)
        if fitted is None:
            self._rows.append({**values, "evidence": math.nan, "gradient": math.nan, "n_iter": 0})
            return self._bowl(at)
        evidence = fitted.log_marginal_likelihood_
        gradient = _gradient(fitted, self._free).to_numpy()
        left = self._left(at, gradient)
        self._rows.append({**values, "evidence": evidence, "gradient": left, "n_iter": fitted.n_iter_})
        if self._best is None:
            self._scale = max(1.0, float(np.abs(gradient).max()))
        if self._best is None or evidence >= self._best.log_marginal_likelihood_:
            self._best, self._at, self._gradient = fitted, at.copy(), gradient
        return -evidence / self._scale, -gradient / self._scale

    def _fit(self, values: dict[str, float]) -> DynamicComparisons | None:
        """From the best fit's pseudo-observations; if that fails, from nothing; None if that fails, too."""
        if self._best is None:
            fitted = quietly_fitted(changed(self._model), self._matches, self._outcomes)
            require(fitted.converged_, fitted.n_iter_, "max_iter", "enough sweeps for a fit at the start")
            return fitted
        for sites in (self._best.pseudo_observations_, None):
            try:
                model = with_parameters(self._model, values)
                fitted = quietly_fitted(model, self._matches, self._outcomes, sites)
            except ValueError:  # out of the likelihood's range, or it overflows
                continue
            if fitted.converged_:
                return fitted
        return None

    def _bowl(self, at: Floats) -> tuple[float, Floats]:
        """Below the best evidence, and lower farther away from it: the line search goes back."""
        away = at - self._at
        best = self._best.log_marginal_likelihood_ if self._best is not None else 0.0
        return 1.0 - best / self._scale + float(away @ away), 2 * away

    def _left(self, at: Floats, gradient: Floats) -> float:
        """The largest derivative that does not push against a bound."""
        low, high = self._limits.T
        stopped = ((at <= low) & (gradient < 0)) | ((at >= high) & (gradient > 0))
        return float(np.abs(np.where(stopped, 0, gradient)).max())

    def stop(self, _: Floats) -> None:
        """After each step of the minimiser."""
        if self._left(self._at, self._gradient) <= self._gtol:
            raise StopIteration

    def result(self) -> EvidenceMaximum:
        assert self._best is not None
        left = self._left(self._at, self._gradient)
        if left > self._gtol:
            warnings.warn(
                f"no maximum of the evidence in {len(self._rows)} evaluations: a derivative of {left:.1e} is "
                f"left, more than gtol={self._gtol:g}; raise max_iter, or lower the model's tol, which is "
                f"{self._model.tol:g}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return EvidenceMaximum(
            self._best,
            parameters_of(self._best),
            self._best.log_marginal_likelihood_,
            pd.Series(self._gradient, index=self._free),
            left <= self._gtol,
            tuple(np.array(self._free)[((self._at[:, None] == self._limits).any(axis=1))].tolist()),
            pd.DataFrame(self._rows),
        )


def checked_outcomes(model: DynamicComparisons, matches: Matches, y: ArrayLike) -> Floats:
    """The outcomes, after a check of all that a search begins with."""
    require(isinstance(model, DynamicComparisons), model, "model", "a DynamicComparisons")
    require(isinstance(matches, Matches) and len(matches) > 0, matches, "matches", "Matches, at least one")
    model._check_parameters()
    return model.likelihood.check(y, len(matches))


def warn_of_ranges(model: DynamicComparisons, ranges: Mapping[str, Range], time: Floats) -> None:
    """Warn, as a fit does, where not even the best of a range is a length for data of this span."""
    span, nearest = float(np.ptp(time)), {}
    for name, (low, high) in ranges.items():
        if span > 0 and name.endswith(_LENGTHS):
            nearest[name] = min(max(span / MOST_LENGTHS, low), high)
    warn_of_lengths(with_parameters(model, nearest).covariance, time)


def _limits(values: dict[str, float], free: list[str], bounds: dict[str, Range], span: float) -> list[Range]:
    check_names(bounds, free, "a parameter with bounds")
    limits = []
    for name in free:
        low, high = values[name] / _WIDE, values[name] * _WIDE
        if name in bounds:
            low, high = check_range(bounds[name], f"bounds[{name!r}]")
            expected = f"a start within its bounds {low:g} and {high:g}"
            require(low <= values[name] <= high, values[name], name, expected)
        elif span > 0 and name.endswith(_LENGTHS):
            low = min(span / MOST_LENGTHS, values[name])
            high = max(span * MOST_SPANS, values[name])
        least, most = _BASE_RATES if name.endswith("base_rate") else (1 / LARGEST, LARGEST)
        limits.append((max(low, least * (1 + 2 * _STEP)), min(high, most * (1 - 2 * _STEP))))
    return limits
