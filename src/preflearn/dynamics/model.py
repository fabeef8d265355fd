"""Comparisons whose scores move in time: the model of [Maystre2019]_, fitted by EP or reverse-KL.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from preflearn.checks import (
    Floats,
    as_floats,
    as_real,
    check_array,
    check_choice,
    check_count,
    check_flag,
    require,
    shown,
)
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.prior import REST, Prior, by_name, warn_of_lengths
from preflearn.dynamics.covariances.state_space import OVERFLOW, check_finite
from preflearn.dynamics.engine.acceleration import Mixing
from preflearn.dynamics.engine.algorithm import TRACE, Plain, Sweep, fixed_point
from preflearn.dynamics.engine.posterior import Posterior
from preflearn.dynamics.engine.schedule import schedule_of
from preflearn.dynamics.engine.threads import slices, team
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.dynamics.saving import as_names, read_npz, write_npz
from preflearn.matches import Matches, check_matches, joined


@dataclass(eq=False, repr=False)
class DynamicComparisons(BaseEstimator):
    """Scores as Gaussian processes in time, from the outcomes of matches (eqs. 1 to 4, Algorithm 1).

    The score s_m(t) of feature m has a prior with mean 0 and covariance k_m(t, t'), and a match at time t has
    an outcome of likelihood p(y | x·s(t)). The posterior is approximated by a Gaussian in which features are
    independent [Maystre2019]_; an iteration takes time in proportion to the number of matches.

    Parameters
    ----------
    covariance : Covariance or mapping of feature name to Covariance
        One for all features, or one each; "*" stands for those that the mapping does not name. Lengths of
        time are in the unit of `Matches.time`: days, where `Matches.from_frame` read dates.
    likelihood : Likelihood
        Of an outcome, given the difference of scores.
    method : {"ep", "kl"}
        Expectation propagation, or minimal Kullback-Leibler divergence from the approximation to the
        posterior ("reverse KL").
    rate : "auto" or float
        "auto": accelerated sweeps, with as much damping as they need. A number from 0 to 1: the learning
        rate lambda of Algorithm 1, in plain sweeps.
    tol : float
        Converged if a sweep would change no pseudo-observation by more, in units of the posterior standard
        deviation of its feature's score.
    max_iter : int
        At most so many sweeps.
    n_threads : int, optional
        As many as there are processors, if None. The results are the same for any number.

    Attributes
    ----------
    features_ : tuple
        Names, in the order of columns of the matches.
    log_marginal_likelihood_ : float
        EP's estimate of log p(y), natural logarithm; with method "kl" the lower bound on it.
    converged_ : bool
    n_iter_ : int
        Sweeps of the last `fit` or `update`.
    trace_ : DataFrame
        One row a sweep: `residual` (of `tol`), `evidence` (as log_marginal_likelihood_), `rate` of the step
        after it, `accepted`: False where the step to it was taken back.
    matches_ : Matches
        What was learned from, and outcomes_ (N,).
    pseudo_observations_ : ndarray of shape (E, 2)
        alpha and beta of each entry of the design of `matches_`, in its order: the posterior of feature m is
        its prior times all exp(alpha s - beta s²/2).

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
       time-dynamics", KDD 2019.

    Examples
    --------
    >>> from preflearn.dynamics import DynamicComparisons, Probit, Wiener
    >>> from preflearn.matches import Matches
    >>> matches = Matches([[1, -1, 0], [0, 1, -1], [1, 0, -1]], [1.0, 2.0, 4.0], ["Ann", "Bob", "Cy"])
    >>> model = DynamicComparisons(Wiener(variance=0.5), Probit()).fit(matches, [1, 1, 1])
    >>> mean, std = model.scores("Ann", [1.0, 4.0, 9.0])
    >>> mean.round(3).tolist(), std.round(3).tolist()
    ([0.428, 0.821, 0.821], [0.63, 1.221, 1.998])
    >>> model.predict_proba(Matches([[1, -1, 0]], [5.0], ["Ann", "Bob", "Cy"])).round(3).tolist()
    [[0.387, 0.613]]
    """

    _estimator_type = "classifier"

    covariance: Covariance | Mapping[Hashable, Covariance]
    likelihood: Likelihood
    method: str = "ep"
    _: KW_ONLY
    rate: float | str = "auto"
    tol: float = 1e-6
    max_iter: int = 1000
    n_threads: int | None = None

    def fit(self, matches: Matches, y: ArrayLike) -> Self:
        """Learn the scores from matches and their outcomes.

        Parameters
        ----------
        matches : Matches
        y : array-like of shape (N,)
            Outcomes, of the kind that the likelihood has.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            On parameters out of range, features without a covariance, no match, or an outcome that the
            likelihood cannot have; if an entry of the design times its score has a prior standard deviation
            above 1e7 times that of noise, where arithmetic ends.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` sweeps were not enough.
        UserWarning
            If a length scale is absurd for the span of the data, as where units of time are mixed up, or
            `covariance` names what is no feature of the matches.
        """
        outcomes = check_problem(self, matches, y)
        warn_of_lengths(self.covariance, matches.time)
        known = {REST, *matches.features}
        strange = [name for name in by_name(self.covariance) if name not in known]
        if strange:  # no error: `update` may bring them
            warnings.warn(
                f"covariance names {shown(strange)}, but no match has such a feature; expected names among "
                f"{shown(list(matches.features))}, or features that `update` will bring",
                UserWarning,
                stacklevel=2,
            )
        return self._fit(matches, outcomes, None)

    def update(self, matches: Matches, y: ArrayLike) -> Self:
        """Add later matches: the sweeps go on from the last state, so a few are enough.

        They are sweeps of all matches, since at a `tol` of 1e-6 nearly all move: one more match takes as long
        as a thousand more, after 400,000 of them about a second. Where each match is to be forecast from all
        before it, `one_step_ahead` is quicker.

        Parameters, results and errors as in `fit`. The matches may have new features, in any order of
        columns. It raises ValueError also where the first of them is earlier than the last one so far.
        """
        check_is_fitted(self, "matches_")
        outcomes = check_problem(self, matches, y)
        self.likelihood.check(self.outcomes_, len(self.matches_))  # another likelihood, by set_params
        if matches.time[0] < self.matches_.time[-1]:
            raise ValueError(
                f"the first match is at time {matches.time[0]:g}, before the last one that was learned, at "
                f"{self.matches_.time[-1]:g}; expected later matches only: fit all together, sorted by time"
            )
        sites = np.vstack([self.pseudo_observations_, np.zeros((matches.design.nnz, 2))])
        return self._fit(joined(self.matches_, matches), np.append(self.outcomes_, outcomes), sites)

    def _fit(self, matches: Matches, outcomes: Floats, sites: Floats | None) -> Self:
        infer(self, matches, outcomes, sites)
        if not self.converged_:
            warnings.warn(
                f"no convergence in {self.n_iter_} sweeps: the last one would change a pseudo-observation by "
                f"{self.trace_['residual'].iloc[-1]:.1e} standard deviations, more than tol={self.tol:g}; "
                "raise max_iter, " + ("or leave rate='auto'" if self.rate != "auto" else "or look at trace_"),
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def scores(self, feature: Hashable, time: ArrayLike) -> tuple[NDArray, NDArray]:
        """Posterior mean and standard deviation of one feature's score.

        Parameters
        ----------
        feature : hashable
            A name.
        time : float or array-like of shape (k,)
            In the unit of `Matches.time`, at any time, in any order.

        Returns
        -------
        mean, std : ndarray, of the shape of `time`

        Raises
        ------
        ValueError
            If the feature was in no match, or its prior is not defined, or overflows, at a time.
        """
        check_is_fitted(self, "matches_")
        require(feature in self.features_, feature, "feature", f"one of {shown(list(self.features_))}")
        at = as_floats(time, "time")
        times = check_array(np.atleast_1d(at), "time", ("k",), "times")
        scores = self._scores()
        mean, variance = scores.moments(np.repeat(scores.of((feature,)), len(times), axis=1), times)
        return mean.reshape(at.shape)[()], np.sqrt(variance.reshape(at.shape))

    def moments(self, matches: Matches) -> tuple[Floats, Floats]:
        """Mean and variance of the difference of scores x·s(t) of each match, shape (N,) both.

        Features that were in no match have their prior. Features of one match count as independent, as they
        are in the approximation. It raises ValueError where times or entries of the design are so large that
        these numbers overflow.
        """
        return self._forecast(matches, lambda mean, variance: (mean, variance))

    def _forecast(self, matches: Matches, told: Callable[[Floats, Floats], Any]) -> Any:
        """What is told of mean and variance of each match, one match a column, by a team."""
        check_is_fitted(self, "matches_")
        check_matches(matches)
        design, scores = matches.design, self._scores()
        present = np.flatnonzero(np.bincount(design.indices, minlength=design.shape[1]))
        of = np.zeros((2, design.shape[1]), dtype=np.int64)
        of[:, present] = scores.of(tuple(matches.features[k] for k in present))

        def one(part: slice) -> Any:
            x, columns, starts = design.data, design.indices, design.indptr[part.start : part.stop + 1]
            here = slice(starts[0], starts[-1])
            time = np.repeat(matches.time[part], np.diff(starts))
            mean, variance = scores.moments(of[:, columns[here]], time)
            return told(*differences(x[here], starts, mean, variance))

        with team(self._n_threads) as share:
            parts = slices(len(matches)) if len(self._prior.spaces) <= _FEW else [slice(0, len(matches))]
            return np.concatenate(share(one, parts), axis=-1)

    def _filled(
        self, prior: Prior, matches: Matches, outcomes: Floats, sites: Floats, trace: Any, converged: bool
    ) -> Self:
        """With the attributes of a fit; the trace is a mapping of the names in TRACE to arrays."""
        self.matches_, self.outcomes_, self.features_ = matches, outcomes, matches.features
        self.pseudo_observations_, self.trace_ = sites, pd.DataFrame(trace)
        self.n_iter_ = len(self.trace_)
        self.log_marginal_likelihood_ = float(trace["evidence"][trace["accepted"]][-1])
        self.converged_ = converged
        # Those of the fit, whatever becomes of the parameters.
        self._prior, self._likelihood, self._n_threads = prior, self.likelihood, self.n_threads
        self._posterior: Posterior | None = None
        return self

    def _scores(self) -> Posterior:
        """Of the model that was fitted, whatever became of its parameters; made when first asked for."""
        if self._posterior is None:
            self._posterior = Posterior(self._prior, self.matches_, self.pseudo_observations_)
        return self._posterior

    def predict_proba(self, matches: Matches) -> Floats:
        """Probabilities of the outcomes: loss, tie and win of the first, or loss and win without ties.

        Parameters
        ----------
        matches : Matches
            At any times: before, between and after those learned from. Their features may be in another
            order, and those that were never seen have their prior.

        Returns
        -------
        ndarray of shape (N, 3) or (N, 2)
        """
        return self._forecast(matches, lambda *moments: self._likelihood.probabilities(*moments).T).T

    def predict(self, matches: Matches) -> NDArray[np.int8]:
        """The most probable outcome of each match: 1, 0 or -1, shape (N,)."""
        probabilities = self.predict_proba(matches)
        labels = np.array([-1, 0, 1] if probabilities.shape[1] == 3 else [-1, 1], dtype=np.int8)
        return labels[np.argmax(probabilities, axis=1)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model as one .npz file, of numbers and JSON only; `load` reads it.

        Raises
        ------
        ValueError
            If a feature's name is neither a str nor a number nor a tuple of them.
        OSError
            If the file can't be written.
        """
        check_is_fitted(self, "matches_")
        header = {
            "covariance": [[name, k.describe()] for name, k in self._prior.covariances.items()],
            "one_covariance": self._prior.one,
            "likelihood": self._likelihood.describe(),
            "options": {name: getattr(self, name) for name in _OPTIONS},
            "features": self.features_,
            "converged": self.converged_,
        }
        arrays = {
            **{name: getattr(self.matches_.design, name) for name in ("indptr", "indices", "data")},
            "time": self.matches_.time,
            "outcomes": self.outcomes_,
            "pseudo_observations": self.pseudo_observations_,
            **{f"trace_{name}": self.trace_[name].to_numpy() for name in self.trace_},
        }
        write_npz(path, header, arrays)


_FEW = 16  # covariances: with more, each part of the forecasts has few of one
_OPTIONS = ("method", "rate", "tol", "max_iter", "n_threads")


# ---- The engine on trusted arrays, for all who fit many models


def check_model(model: DynamicComparisons) -> None:
    """Raise ValueError unless it is a model whose parameters are in their range."""
    require(isinstance(model, DynamicComparisons), model, "model", "a DynamicComparisons")
    if not (covariances := by_name(model.covariance)):
        raise ValueError("covariance is an empty mapping; expected a covariance for each feature")
    for k in covariances.values():
        require(isinstance(k, Covariance), k, "covariance", "a Covariance, or a mapping of names to them")
    likelihood = model.likelihood
    require(isinstance(likelihood, Likelihood), likelihood, "likelihood", "a likelihood, such as Probit()")
    check_choice(model.method, "method", ("ep", "kl"))
    good = model.rate == "auto" if isinstance(model.rate, str) else 0 < as_real(model.rate) <= 1
    require(good, model.rate, "rate", "'auto', or a number above 0 and up to 1")
    require(0 < as_real(model.tol) < np.inf, model.tol, "tol", "a positive number")
    check_count(model.max_iter, "max_iter", least=1)
    if model.n_threads is not None:
        check_count(model.n_threads, "n_threads", least=1)


@np.errstate(**OVERFLOW)
def differences(x: Floats, starts: NDArray, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of x·s of each match, from those of the scores, one an entry of the design.

    `starts`, of one more than there are matches, says where the entries of each begin.
    """
    begin = starts[:-1] - starts[0]
    mean, variance = (np.add.reduceat(values, begin) for values in (x * mean, x * x * variance))
    return check_finite(mean), check_finite(variance)


def check_problem(model: DynamicComparisons, matches: Matches, y: ArrayLike) -> Floats:
    """The outcomes, after a check of all that a fit begins with."""
    check_model(model)
    check_matches(matches)
    return model.likelihood.check(y, len(matches))


@contextmanager
def laid_out(
    model: DynamicComparisons, matches: Matches, outcomes: Floats, sites: Floats | None = None
) -> Iterator[Sweep]:
    """The sweep by a model's parameters, from given pseudo-observations or none; its team works meanwhile."""
    with team(model.n_threads) as share:
        schedule = schedule_of(matches, Prior(model.covariance))
        sweep = Sweep(schedule, model.likelihood, outcomes, ep=model.method == "ep", share=share)
        if sites is not None:
            sweep.entries[:, :2] = sites[schedule.entry_order]
        yield sweep


def infer(
    model: DynamicComparisons, matches: Matches, outcomes: Floats, sites: Floats | None = None
) -> DynamicComparisons:
    """Fit, from given pseudo-observations or from nothing, without checks or warnings."""
    with laid_out(model, matches, outcomes, sites) as sweep:
        step = Mixing(sweep) if model.rate == "auto" else Plain(sweep, as_real(model.rate))
        trace, converged = fixed_point(sweep, step, tol=model.tol, max_iter=int(model.max_iter))
    found, schedule = np.empty((len(sweep.entries), 2)), sweep.schedule
    found[schedule.entry_order] = sweep.entries[:, :2]
    noted = dict(zip(TRACE, map(np.array, zip(*trace, strict=True)), strict=True))
    return model._filled(schedule.prior, matches, outcomes, found, noted, converged)


def load(path: str | os.PathLike[str]) -> DynamicComparisons:
    """The model that `DynamicComparisons.save` wrote; it forecasts, and learns on, as the one that was saved.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    OSError
        If there is no such file, or it can't be read.
    ValueError
        If the file is something else, damaged, or of another version of the format.
    """
    return read_npz(path, _read)


def _read(header: dict[str, Any], arrays: dict[str, NDArray]) -> DynamicComparisons:
    names = as_names(name for name, _ in header["covariance"])
    covariances = {
        n: Covariance.read(found) for n, (_, found) in zip(names, header["covariance"], strict=True)
    }
    model = DynamicComparisons(
        covariances[REST] if header["one_covariance"] else covariances,
        Likelihood.read(header["likelihood"]),
        **header["options"],
    )
    check_model(model)
    features = as_names(header["features"])
    shape = (len(arrays["time"]), len(features))
    for name, array in arrays.items():  # that integers point into the design, Matches checks
        kind = {"indices": "i", "indptr": "i", "trace_accepted": "b"}.get(name, "f")
        require(array.dtype.kind == kind, array.dtype, f"the type of {name}", f"one of kind {kind!r}")
    design = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape)
    matches = Matches(design, arrays["time"], features)
    outcomes = model.likelihood.check(arrays["outcomes"], shape[0])
    sites = check_array(arrays["pseudo_observations"], "pseudo_observations", (matches.design.nnz, 2))
    trace = {name: arrays[f"trace_{name}"] for name in TRACE}
    prior = Prior(model.covariance)
    prior.of(features)  # each has one
    one = header["one_covariance"]
    same = one == prior.one and len(header["covariance"]) == len(prior.covariances)
    require(same, one, "one_covariance", "True with one covariance, else False with one for each name")
    return model._filled(prior, matches, outcomes, sites, trace, check_flag(header["converged"], "converged"))
