"""Comparisons whose scores move in time: the model of [Maystre2019]_, fitted by EP or reverse-KL.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from preflearn.checks import Floats, Ids, as_real, check_array, check_count, require, shown
from preflearn.dynamics.acceleration import iterate
from preflearn.dynamics.composite import Covariance, covariance_from
from preflearn.dynamics.forecast import ScoreProcess
from preflearn.dynamics.inference import UpdateMap
from preflearn.dynamics.likelihood import Likelihood, likelihood_from
from preflearn.dynamics.matches import Matches
from preflearn.dynamics.schedule import schedule_of
from preflearn.dynamics.state_space import StateSpace
from preflearn.dynamics.storage import decoded_names, encoded_names, read_npz, write_npz
from preflearn.dynamics.team import Team

REST = "*"  # stands for all features that a mapping of covariances does not name


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
    >>> from preflearn.dynamics import DynamicComparisons, Matches, Probit, Wiener
    >>> matches = Matches([[1, -1, 0], [0, 1, -1], [1, 0, -1]], [1.0, 2.0, 4.0], ["Ann", "Bob", "Cy"])
    >>> model = DynamicComparisons(Wiener(variance=0.5), Probit()).fit(matches, [1, 1, 1])
    >>> mean, std = model.scores("Ann", [1.0, 4.0, 9.0])
    >>> mean.round(3).tolist(), std.round(3).tolist()
    ([0.23, 0.643, 0.643], [0.669, 1.233, 2.003])
    >>> model.predict_proba(Matches([[1, -1, 0]], [5.0], ["Ann", "Bob", "Cy"])).round(3).tolist()
    [[0.395, 0.605]]
    """

    _estimator_type = "classifier"

    features_: tuple[Hashable, ...]
    log_marginal_likelihood_: float
    converged_: bool
    n_iter_: int
    trace_: pd.DataFrame
    matches_: Matches
    outcomes_: Floats
    pseudo_observations_: Floats

    def __init__(
        self,
        covariance: Covariance | Mapping[Hashable, Covariance],
        likelihood: Likelihood,
        method: str = "ep",
        *,
        rate: float | str = "auto",
        tol: float = 1e-6,
        max_iter: int = 1000,
        n_threads: int | None = None,
    ) -> None:
        self.covariance = covariance
        self.likelihood = likelihood
        self.method = method
        self.rate = rate
        self.tol = tol
        self.max_iter = max_iter
        self.n_threads = n_threads

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
            likelihood cannot have.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` sweeps were not enough.
        """
        _check_matches(matches)
        self._check_parameters()
        outcomes = self.likelihood.check(y, len(matches))
        return self._iterate(matches, outcomes, np.zeros((matches.design.nnz, 2)))

    def update(self, matches: Matches, y: ArrayLike) -> Self:
        """Add later matches: the sweeps go on from the last state, so a few are enough.

        Parameters, results and errors as in `fit`. The matches may have new features, in any order of
        columns. It raises ValueError also where the first of them is earlier than the last one so far.
        """
        check_is_fitted(self, "matches_")
        _check_matches(matches)
        self._check_parameters()
        outcomes = self.likelihood.check(y, len(matches))
        if matches.time[0] < self.matches_.time[-1]:
            raise ValueError(
                f"the first match is at time {matches.time[0]:g}, before the last one that was learned, at "
                f"{self.matches_.time[-1]:g}; expected later matches only: fit all together, sorted by time"
            )
        sites = np.zeros((len(self.pseudo_observations_) + matches.design.nnz, 2))
        sites[: len(self.pseudo_observations_)] = self.pseudo_observations_
        return self._iterate(
            _joined(self.matches_, matches), np.concatenate([self.outcomes_, outcomes]), sites
        )

    def _iterate(self, matches: Matches, outcomes: Floats, sites: Floats) -> Self:
        spaces, space_of = self._spaces(matches.features)
        with Team(self.n_threads or os.cpu_count() or 1) as team:
            schedule = schedule_of(matches, spaces, space_of)
            update_map = UpdateMap(schedule, self.likelihood, outcomes, ep=self.method == "ep", team=team)
            update_map.entries[:, :2] = sites[schedule.entry_order]
            trace, converged = iterate(update_map, rate=self.rate, tol=self.tol, max_iter=self.max_iter)
        self.matches_, self.outcomes_, self.features_ = matches, outcomes, matches.features
        self.pseudo_observations_ = np.empty_like(sites)
        self.pseudo_observations_[schedule.entry_order] = update_map.entries[:, :2]
        self.log_marginal_likelihood_ = trace.evidence[-1]
        self.trace_ = pd.DataFrame(trace._asdict())
        self.n_iter_, self.converged_ = len(trace.residual), converged
        self._forget()
        if not converged:
            warnings.warn(
                f"no convergence in {self.n_iter_} sweeps: the last one would change a pseudo-observation by "
                f"{trace.residual[-1]:.1e} standard deviations, more than tol={self.tol:g}; raise max_iter, "
                + ("or leave rate='auto'" if self.rate != "auto" else "or look at trace_"),
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _forget(self) -> None:
        """Drop what was derived from the state before."""
        self._column = {name: k for k, name in enumerate(self.features_)}
        self._spaces_, self._space_of = self._spaces(self.features_)
        self._processes: dict[int, ScoreProcess] = {}
        self._by_feature: Any = None

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
            If the feature was in no match, or its prior is not defined at a time.
        """
        check_is_fitted(self, "matches_")
        column = self._column.get(feature)
        if column is None:
            raise ValueError(
                f"{shown(feature)} is no feature of the matches; expected one of "
                f"{shown(list(self.features_))}"
            )
        at = np.asarray(time, dtype=np.float64) if np.isscalar(time) else None
        times = check_array(np.atleast_1d(time), "time", ("k",), "times")
        mean, variance = self._process(column).moments(times)
        std = np.sqrt(variance)
        return (mean[0], std[0]) if at is not None else (mean, std)

    def moments(self, matches: Matches) -> tuple[Floats, Floats]:
        """Mean and variance of the difference of scores x·s(t) of each match, shape (N,) both.

        Features that were in no match have their prior. Features of one match count as independent, as they
        are in the approximation.
        """
        check_is_fitted(self, "matches_")
        _check_matches(matches)
        design = matches.design
        mean, variance = np.zeros(design.nnz), np.zeros(design.nnz)
        time = np.repeat(matches.time, np.diff(design.indptr))
        order = np.argsort(design.indices, kind="stable")
        present, begin = np.unique(design.indices[order], return_index=True)
        for column, entries in zip(present, np.split(order, begin[1:]), strict=True):
            process = self._process_of(matches.features[column])
            mean[entries], variance[entries] = process.moments(time[entries])
        x = design.data
        starts = design.indptr[:-1]
        return np.add.reduceat(x * mean, starts), np.add.reduceat(x * x * variance, starts)

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
        return self.likelihood.probabilities(*self.moments(matches))

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
        mapping = self.covariance if isinstance(self.covariance, Mapping) else {REST: self.covariance}
        header = {
            "covariance": [
                [name, k.describe()] for name, k in zip(encoded_names(mapping), mapping.values(), strict=True)
            ],
            "one_covariance": not isinstance(self.covariance, Mapping),
            "likelihood": self.likelihood.describe(),
            "options": {name: getattr(self, name) for name in _OPTIONS},
            "features": encoded_names(self.features_),
            "evidence": self.log_marginal_likelihood_,
            "converged": self.converged_,
        }
        design = self.matches_.design
        arrays = {
            "indptr": design.indptr,
            "indices": design.indices,
            "data": design.data,
            "time": self.matches_.time,
            "outcomes": self.outcomes_,
            "pseudo_observations": self.pseudo_observations_,
            **{f"trace_{name}": self.trace_[name].to_numpy() for name in self.trace_},
        }
        write_npz(path, header, arrays)

    def _process(self, column: int) -> ScoreProcess:
        """Of one of the features that were learned."""
        if column not in self._processes:
            if self._by_feature is None:
                design = self.matches_.design
                entries = sparse.csr_array(
                    (np.arange(design.nnz), design.indices, design.indptr), design.shape
                )
                rows = np.repeat(np.arange(len(self.matches_)), np.diff(design.indptr))
                by_feature = entries.tocsc()
                self._by_feature = by_feature.indptr, by_feature.data, rows
            starts, entries, rows = self._by_feature
            mine = entries[starts[column] : starts[column + 1]]
            space = self._spaces_[self._space_of[column]]
            time = self.matches_.time[rows[mine]]
            self._processes[column] = ScoreProcess(space, time, *self.pseudo_observations_[mine].T)
        return self._processes[column]

    def _process_of(self, name: Hashable) -> ScoreProcess:
        """Also of a feature that was never seen: its prior."""
        if name in self._column:
            return self._process(self._column[name])
        spaces, _ = self._spaces((name,))
        return ScoreProcess(spaces[0], *np.zeros((3, 0)))

    def _spaces(self, features: tuple[Hashable, ...]) -> tuple[list[StateSpace], Ids]:
        """The state-space models of all covariances, and which of them each feature has."""
        if not isinstance(self.covariance, Mapping):
            return [self.covariance.state_space()], np.zeros(len(features), dtype=np.int64)
        missing = [name for name in features if name not in self.covariance]
        if missing and REST not in self.covariance:
            raise ValueError(
                f"the feature {shown(missing[0])} has no covariance; expected one for each feature, or one "
                f"for {REST!r}, all others"
            )
        distinct = {k: place for place, k in enumerate(dict.fromkeys(self.covariance.values()))}
        rest = distinct[self.covariance[REST]] if REST in self.covariance else -1
        space_of = [distinct[self.covariance[m]] if m in self.covariance else rest for m in features]
        return [k.state_space() for k in distinct], np.array(space_of, dtype=np.int64)

    def _check_parameters(self) -> None:
        for k in self.covariance.values() if isinstance(self.covariance, Mapping) else [self.covariance]:
            require(isinstance(k, Covariance), k, "covariance", "a Covariance, or a mapping of names to them")
        if isinstance(self.covariance, Mapping) and not self.covariance:
            raise ValueError("covariance is an empty mapping; expected a covariance for each feature")
        good = isinstance(self.likelihood, Likelihood)
        require(good, self.likelihood, "likelihood", "a likelihood, such as Probit()")
        require(self.method in ("ep", "kl"), self.method, "method", "'ep' or 'kl'")
        good = self.rate == "auto" or 0 < as_real(self.rate) <= 1
        require(good, self.rate, "rate", "'auto', or a number above 0 and up to 1")
        require(0 < as_real(self.tol) < np.inf, self.tol, "tol", "a positive number")
        for name in ("max_iter", "n_threads"):
            value = getattr(self, name)
            if value is not None or name == "max_iter":
                check_count(value, name, least=1)


_OPTIONS = ("method", "rate", "tol", "max_iter", "n_threads")


def load(path: str | os.PathLike[str]) -> DynamicComparisons:
    """The model that `DynamicComparisons.save` wrote; it forecasts, and learns on, as the one that was saved.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is something else, damaged, or of another version of the format.
    """
    header, arrays = read_npz(path)
    names = decoded_names(name for name, _ in header["covariance"])
    covariances = {
        name: covariance_from(found) for name, (_, found) in zip(names, header["covariance"], strict=True)
    }
    model = DynamicComparisons(
        covariances[REST] if header["one_covariance"] else covariances,
        likelihood_from(header["likelihood"]),
        **header["options"],
    )
    features = decoded_names(header["features"])
    shape = (len(arrays["time"]), len(features))
    design = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape)
    model.matches_, model.features_ = Matches(design, arrays["time"], features), features
    model.outcomes_, model.pseudo_observations_ = arrays["outcomes"], arrays["pseudo_observations"]
    model.log_marginal_likelihood_, model.converged_ = header["evidence"], header["converged"]
    columns = {name.removeprefix("trace_"): array for name, array in arrays.items() if "trace_" in name}
    model.trace_ = pd.DataFrame(columns)
    model.n_iter_ = len(model.trace_)
    model._forget()
    return model


def _check_matches(matches: Matches) -> None:
    if not isinstance(matches, Matches):
        raise ValueError(f"matches is a {type(matches).__name__}; expected Matches")
    if len(matches) == 0:
        raise ValueError("there are no matches; expected at least one")


def _joined(old: Matches, new: Matches) -> Matches:
    """All matches, over the old features and then those that are new."""
    column = {name: k for k, name in enumerate(old.features)}
    for name in new.features:
        column.setdefault(name, len(column))
    columns = np.array([column[name] for name in new.features], dtype=new.design.indices.dtype)
    design = sparse.csr_array(
        (
            np.concatenate([old.design.data, new.design.data]),
            np.concatenate([old.design.indices, columns[new.design.indices]]),
            np.concatenate([old.design.indptr, old.design.indptr[-1] + new.design.indptr[1:]]),
        ),
        shape=(len(old) + len(new), len(column)),
    )
    return Matches(design, np.concatenate([old.time, new.time]), column)
