"""Gaussian process models of scores that change over time (paper P4).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.stats import rankdata
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from preflearn.core.diagnosis import NotIdentifiedWarning, diagnose
from preflearn.core.validation import (
    LARGEST,
    Floats,
    PerMatch,
    as_real,
    check_array,
    check_choice,
    check_count,
    check_list,
    check_real,
    check_weights,
    generator,
    raise_if_any,
    require,
    short_repr,
    warn_user,
)
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.prior import (
    REST,
    Prior,
    by_name,
    warn_about_gaps,
    warn_about_units,
)
from preflearn.dynamics.covariances.state_space import OVERFLOW, check_finite
from preflearn.dynamics.engine.acceleration import make_step
from preflearn.dynamics.engine.algorithm import (
    Sweep,
    SweepRecord,
    run_algorithm_1,
)
from preflearn.dynamics.engine.joint import JointSweep
from preflearn.dynamics.engine.joint_filter import Rows
from preflearn.dynamics.engine.joint_posterior import JointPosterior
from preflearn.dynamics.engine.posterior import Posterior
from preflearn.dynamics.engine.schedule import make_schedule
from preflearn.dynamics.engine.threads import balanced_slices, worker_pool
from preflearn.dynamics.likelihoods.counts import Poisson
from preflearn.dynamics.likelihoods.likelihood import Likelihood, Results
from preflearn.dynamics.saving import (
    ContradictionError,
    as_names,
    read_npz,
    write_npz,
)
from preflearn.dynamics.simulation import draw_differences, square_root
from preflearn.matches import (
    ADVANTAGE,
    PERFORMANCE,
    Fixtures,
    Matches,
    OutcomeWarning,
    as_times,
    check_matches,
    concatenate,
    given_outcomes,
    is_performance,
    list_unknown_names,
    prepare_for_prediction,
    warn_unknown_names,
)
from preflearn.metrics import comparison_loss


@dataclass(eq=False, repr=False)
class DynamicComparisons(BaseEstimator):
    """Scores that change over time, as Gaussian processes learned from match outcomes.

    Choose this class if the strength of players, teams, or items changes over time and
    you need probabilities of future outcomes, or scores with their uncertainty. It
    handles ties, points, home advantage, line-ups, and players who are new. `Constant`
    is the covariance for scores that do not change. The rating systems of
    `preflearn.ratings` are simpler and faster baselines.

    The score s_m(t) of feature m has a Gaussian process prior with mean 0 and
    covariance k_m(t, t'). A match at time t has an outcome y with likelihood p(y |
    x·s(t)) (eqs. 1 to 4 of [Maystre2019]_). The posterior is approximated by a Gaussian
    in which features are independent (Algorithm 1). The time per sweep is proportional
    to the number of matches. With posterior="joint" the Gaussian keeps all covariances
    between features, which takes longer. Use the joint posterior if you need the
    evidence or the uncertainty of score differences.

    Parameters
    ----------
    covariance : Covariance or mapping of feature name to Covariance
        Prior covariance function of all features, or of each feature. In a mapping, "*"
        is the key for all features that the mapping does not name. Lengths of time are
        in the unit of `Matches.time`, which is days if `Matches.from_frame` read dates.
    likelihood : Likelihood
        Likelihood of an outcome, given the score difference. `Lapse` allows for
        careless judgments, `StudentT` for outliers among point differences.
    method : {"ep", "kl"}
        Inference algorithm: expectation propagation, or minimization of the
        Kullback-Leibler divergence from the approximation to the posterior ("reverse
        KL").
    rate : "auto" or float
        Step length of the sweeps. "auto" accelerates the sweeps and damps them as much
        as necessary. A number in (0, 1] is the learning rate lambda of Algorithm 1,
        without acceleration.
    tol : float
        Largest change of a pseudo-observation at which the sweeps have converged, in
        units of the posterior standard deviation of the feature's score.
    max_iter : int
        Largest number of sweeps.
    n_threads : int, optional
        Number of threads; one per processor by default. It does not affect the results.
    mean : mapping of feature name to float, optional
        Prior means of scores, for example from an earlier season; 0 for features that
        are not named. A number as key names the player whose name `Matches.from_frame`
        made from this number.
    posterior : {"factorized", "joint"}
        Form of the approximate posterior. "factorized": features are independent, as in
        [Maystre2019]_. Its evidence prefers small variances, and its variances of score
        differences are inaccurate if few matches link groups of players. "joint": each
        match has one pseudo-observation exp(alpha z - beta z²/2) of its score
        difference z = x·s, and the posterior keeps all covariances. It is exact for
        Gaussian outcomes. If no score changes, the time per sweep is proportional to
        the cube of the number of features. Otherwise it is proportional to the
        number of matches times the squared size of the state of all features between
        their first and last match.

    Attributes
    ----------
    features_ : tuple
        Feature names, in the order of the columns of the matches.
    log_marginal_likelihood_ : float
        EP's estimate of log p(y), natural logarithm; with method "kl" a lower bound on
        log p(y).
    converged_ : bool
        Whether the last `fit` or `update` converged.
    n_iter_ : int
        Number of sweeps of the last `fit` or `update`.
    trace_ : DataFrame
        One row per sweep: `residual`, which `tol` limits; `evidence`, as in
        `log_marginal_likelihood_`; `rate` of the step after the sweep; `accepted`,
        which is False if the step before the sweep was undone. In such a row `evidence`
        may be NaN.
    matches_ : Matches
        Matches of the fit.
    outcomes_ : ndarray of shape (N,)
        Outcomes of the fit.
    observations_ : ndarray of shape (N, 3)
        Outcome, weight, and offset of each match.
    likelihood_ : Likelihood
        Likelihood of the fit. Forecasts use it, even if `set_params` has changed
        `likelihood` since the fit.
    pseudo_observations_ : ndarray of shape (E, 2) or (N, 2)
        alpha and beta of each entry of the design of `matches_`, in its order: the
        posterior of feature m is its prior times all exp(alpha s - beta s²/2). With
        posterior="joint" there is one row per match: the posterior of all features is
        their prior times all exp(alpha z - beta z²/2), z = x·s.

    References
    ----------
    .. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
       flexible time-dynamics", KDD 2019.

    Examples
    --------
    >>> from preflearn.dynamics import DynamicComparisons, Probit, Wiener
    >>> from preflearn.matches import Matches
    >>> matches = Matches([[1, -1, 0], [0, 1, -1], [1, 0, -1]], [1.0, 2.0, 4.0], ["Ann", "Bob", "Cy"])
    >>> model = DynamicComparisons(Wiener(variance=0.5, origin=0.0), Probit()).fit(matches, [1] * 3)
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
    mean: Mapping[Hashable, float] | None = None
    posterior: str = "factorized"

    def fit(
        self,
        matches: Matches,
        y: ArrayLike,
        sample_weight: PerMatch = None,
        offset: PerMatch = None,
    ) -> Self:
        """Learn the scores from matches and their outcomes.

        Parameters
        ----------
        matches : Matches
            Matches of the training data.
        y : array-like of shape (N,)
            Outcomes that the likelihood allows. Likelihoods of -1, 0, and 1 also accept
            1, 1/2, and 0 for a win, tie, and loss of the first.
        sample_weight : array-like of shape (N,), optional
            Powers of the matches' likelihoods, from 0 to 1e100. A match of weight 2
            counts as two matches; a match of weight 1/2 has the square root of its
            likelihood.
        offset : array-like of shape (N,), optional
            Known part of the score difference, which is added to x·s, such as a
            handicap or komi.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range, a feature has no covariance, there are no
            matches, or the likelihood does not allow an outcome. If EP has a weight
            between 0 and 1 and the likelihood has no integral for it. If scores are too
            uncertain for floating-point accuracy: the prior standard deviation of a
            score, times its entry of the design, exceeds 1e7 times that of the noise
            (1e4 with posterior="joint"). If races have weights other than 0 and 1, or
            method="kl". With posterior="joint", also if the state of all features has
            more than 5,000 numbers or, when scores change, if a sweep would keep more
            than 2.5e8 numbers or take more than 2e11 operations.

        Warns
        -----
        ConvergenceWarning
            If the sweeps have not converged after `max_iter` sweeps.
        TimeWarning
            If a length scale or a rate does not suit the time span of the data, perhaps
            because the time unit of one of them is wrong. If a length scale is shorter
            than the mean time between two matches of a player. If an origin is long
            before the first match, or every score is 0 at the first match of its
            player.
        OutcomeWarning
            If outcomes are only 1 and 0, or only 1, 1/2, and 0, and the DataFrame of
            the matches had other outcomes. If the likelihood expects more than ten ties
            between equal players and there are none.
        NotIdentifiedWarning
            If two groups of players never meet and each has at least an eighth of the
            players; `diagnose` lists all groups.
        UnseenWarning
            If `covariance` or `mean` names a feature that the matches do not have.
        """
        observations = check_problem(self, matches, y, sample_weight, offset)
        features = {REST, PERFORMANCE, *matches.features}
        warn_unknown_names("covariance", by_name(self.covariance), features)
        warn_unknown_names("mean", self.mean or {}, features)
        _warn_about_groups(matches[observations[:, 1] > 0])
        _warn_about_missing_ties(self.likelihood, observations[:, 0])
        return self._fit(matches, observations, None)

    def update(
        self,
        matches: Matches,
        y: ArrayLike,
        sample_weight: PerMatch = None,
        offset: PerMatch = None,
    ) -> Self:
        """Add later matches and continue the sweeps from the last state.

        Few sweeps are necessary, because they start from the previous fit. Each sweep
        covers all matches, because nearly all pseudo-observations change at a `tol` of
        1e-6: adding one match takes as long as adding a thousand, about a second after
        400,000 matches. To forecast each match from all earlier ones, `one_step_ahead`
        is faster.

        Parameters, return value, and errors are those of `fit`. The matches may have
        new features and a different column order. The method also raises ValueError if
        the first new match is earlier than the last known one, or an event of races has
        the name of an earlier event. Either both sets of times must have been read from
        dates, or neither. Parameters that `set_params` has changed since the fit apply
        to all matches, as in a new fit. Only `posterior` must be the same as in the
        fit.
        """
        check_is_fitted(self, "matches_")
        observations = check_problem(self, matches, y, sample_weight, offset)
        # the likelihood may have been changed by set_params
        self.likelihood.check(self.outcomes_, len(self.matches_))
        last = self.matches_.time[-1]
        expected = (
            f"at least {last:g}, the time of the last match so far; to add earlier "
            "matches, fit all matches together, sorted by time"
        )
        require(
            matches.time[0] >= last,
            float(matches.time[0]),
            "the time of the first match",
            expected,
        )
        self._require_as_in_fit("posterior")
        n_new = _n_sites(self._is_joint, matches)
        sites = np.vstack([self.pseudo_observations_, np.zeros((n_new, 2))])
        together = concatenate(self.matches_, matches)
        _check_races(self, together, np.ones(len(together)))
        observations = np.vstack([self.observations_, observations])
        return self._fit(together, observations, sites)

    def _fit(
        self, matches: Matches, observations: Floats, sites: Floats | None
    ) -> Self:
        warn_about_units(self.covariance, matches.time, self.likelihood.noise)
        warn_about_gaps(self.covariance, matches)
        infer(self, matches, observations, sites)
        if not self.converged_:
            change = self.trace_["residual"].iloc[-1]
            text = f"no convergence after {self.n_iter_} sweeps: the next would change a pseudo-observation "
            text += f"by {change:.1e} standard deviations, more than tol={self.tol:g}; raise max_iter, "
            if self.method == "ep" and not self.likelihood.log_concave:
                text += "or use method='kl', which also converges for likelihoods that are not log-concave"
            elif self.rate != "auto":
                text += "or use rate='auto'"
            else:
                text += "or see trace_ for the course of the fit"
            warn_user(text, ConvergenceWarning)
        return self

    def scores(self, feature: Hashable, time: ArrayLike) -> tuple[NDArray, NDArray]:
        """Posterior mean and standard deviation of one feature's score.

        Parameters
        ----------
        feature : hashable
            Name of the feature.
        time : float or date, or array-like of shape (k,)
            Times in any order, in the unit of `Matches.time`. If that unit is days,
            also dates or their ISO strings.

        Returns
        -------
        mean, std : ndarray, of the shape of `time`

        Raises
        ------
        ValueError
            If the feature was in no match, or its prior is not defined or overflows at
            a time.
        """
        self._check_feature(feature, "feature")
        return self._moments_at((feature,), [1.0], time)

    def difference(
        self, first: Hashable, second: Hashable, time: ArrayLike
    ) -> tuple[NDArray, NDArray]:
        """Posterior mean and standard deviation of a score difference.

        The difference is the score of `first` minus the score of `second`. With
        posterior="joint" it includes their covariance. The factorized posterior treats
        the two scores as independent, so its standard deviation is too small for
        players of groups that rarely meet.

        Parameters
        ----------
        first, second : hashable
            Names of two features.
        time : float or date, or array-like of shape (k,)
            Times, as in `scores`.

        Returns
        -------
        mean, std : ndarray, of the shape of `time`

        Raises
        ------
        ValueError
            In the cases of `scores`, and if both names are the same.

        Examples
        --------
        >>> from preflearn.dynamics import Constant, DynamicComparisons, Probit
        >>> matches = Matches([[1, -1, 0], [0, 1, -1]], [0.0, 1.0], ["Ann", "Bob", "Cy"])
        >>> for posterior in ("factorized", "joint"):
        ...     model = DynamicComparisons(Constant(4.0), Probit(), posterior=posterior)
        ...     mean, std = model.fit(matches, [1, 1]).difference("Ann", "Bob", 1.0)
        ...     print(posterior, mean.round(2), std.round(2))
        factorized 1.51 2.13
        joint 1.51 1.6
        """
        for name, value in (("first", first), ("second", second)):
            self._check_feature(value, name)
        require(first != second, second, "second", "a feature other than first")
        return self._moments_at((first, second), [1.0, -1.0], time)

    def joint_scores(
        self, features: Iterable[Hashable], time: Any
    ) -> tuple[Floats, Floats]:
        """Posterior mean and covariance of the scores of several features at one time.

        Parameters
        ----------
        features : iterable of F hashables
            Names of the features, each once.
        time : float or date
            Time, as in `scores`.

        Returns
        -------
        mean : ndarray of shape (F,)
            Posterior mean of each score.
        covariance : ndarray of shape (F, F)
            Covariance matrix; diagonal for the factorized posterior, in which features
            are independent.

        Raises
        ------
        ValueError
            In the cases of `scores`, and if a name is given twice.

        Examples
        --------
        >>> from preflearn.dynamics import Constant, DynamicComparisons, Gaussian
        >>> matches = Matches([[1, -1]] * 3, [0.0, 1.0, 2.0], ["Ann", "Bob"])
        >>> model = DynamicComparisons(Constant(1.0), Gaussian(1.0), posterior="joint")
        >>> mean, covariance = model.fit(matches, [1.0, 2.0, 0.0]).joint_scores(["Ann", "Bob"], 2.0)
        >>> mean.round(3).tolist(), covariance.round(3).tolist()
        ([0.429, -0.429], [[0.571, 0.429], [0.429, 0.571]])
        """
        names = tuple(check_list(features, "features", "a list of names"))
        require(len(names) > 0, names, "features", "at least one name")
        for name in names:
            self._check_feature(name, "a name in features")
        require(len(set(names)) == len(names), names, "features", "each name once")
        return self._joint_scores(names, self._parse_time(time, "time"))

    def _joint_scores(
        self, names: tuple[Hashable, ...], time: float
    ) -> tuple[Floats, Floats]:
        posterior = self._fitted_posterior()
        if isinstance(posterior, JointPosterior):
            mean, covariance = posterior.joint(names, time)
        else:
            ids = posterior.feature_ids(names)
            mean, variance = posterior.moments(ids, np.full(len(names), time))
            covariance = np.diag(variance)
        return mean + self._prior.means(names), covariance

    def _check_feature(self, name: Hashable, argument: str) -> None:
        check_is_fitted(self, "matches_")
        if not _is_key(name, self._fitted_posterior().column):
            expected = "a name in features_"
            if isinstance(name, str):
                closest, _ = list_unknown_names([name], self.features_)
                raise ValueError(f"{argument} is {closest}; expected {expected}")
            require(False, name, argument, f"{expected}, such as {self.features_[0]!r}")

    def _moments_at(
        self, names: tuple[Hashable, ...], row: list[float], time: ArrayLike
    ) -> tuple[NDArray, NDArray]:
        """Mean and standard deviation of x·s for one row x, in the shape of `time`."""
        parsed = as_times(time, self.matches_.columns)
        times = check_array(np.atleast_1d(parsed), "time", ("k",), "times")
        design = sparse.csr_array(np.tile(row, (len(times), 1)))
        mean, variance = self._row_moments(design, names, times)
        return mean.reshape(parsed.shape)[()], np.sqrt(variance.reshape(parsed.shape))

    def _row_moments(
        self, design: Any, names: tuple[Hashable, ...], time: Floats
    ) -> tuple[Floats, Floats]:
        """Mean and variance of x·s for rows x of a design, each at its own time."""
        mean, variance = self._moments_of(design, names)(design, time)
        return mean + design @ self._prior.means(names), variance

    def _moments_of(self, design: Any, names: tuple[Hashable, ...]) -> RowMoments:
        """A function that returns mean and variance of x·s, without the prior means.

        Its arguments are rows of this design and their times.
        """
        posterior = self._fitted_posterior()
        if isinstance(posterior, JointPosterior):
            return partial(posterior.differences, names)
        present = np.flatnonzero(np.bincount(design.indices, minlength=len(names)))
        ids = np.zeros((2, len(names)), dtype=np.int64)
        ids[:, present] = posterior.feature_ids(tuple(names[k] for k in present))

        def moments(rows: Any, time: Floats) -> tuple[Floats, Floats]:
            times = np.repeat(time, np.diff(rows.indptr))
            found = posterior.moments(ids[:, rows.indices], times)
            return differences(rows.data, rows.indptr, *found)

        return moments

    def standings(self, time: Any = None, since: Any = None) -> pd.DataFrame:
        """Table of the players at one time, sorted by score, with rank intervals.

        Parameters
        ----------
        time : float or date, optional
            Time of the scores, in the unit of `Matches.time`; a date or its ISO string
            if that unit is days; the time of the last match by default. The table
            contains the players with a match up to this time. Their scores are also
            informed by later matches.
        since : float or date, optional
            Start of the period in which a player must have had a match to be listed.
            Ranks count only the listed players.

        Returns
        -------
        DataFrame
            `name`; `score` and `std`, as in `scores`; `rank` by score, the same for
            players with equal scores; `rank_low` and `rank_high`, ends of an interval
            that contains the rank with probability 0.95, from 1,000 draws of the
            posterior; `matches`, the number of matches up to this time (an event of a
            race counts once).

        Raises
        ------
        ValueError
            If no player had a match up to `time`, or between `since` and `time`.

        Notes
        -----
        In the factorized posterior `std` is the standard deviation of a score relative
        to the other scores. Changes of the common offset of all scores do not affect
        outcomes and are not included. Intervals of differences have their nominal
        coverage (benchmarks/static_models.py). With posterior="joint" `std` includes
        the common offset; ranks and `difference` do not depend on it.

        Examples
        --------
        >>> from preflearn.dynamics import Constant, DynamicComparisons, Probit
        >>> matches = Matches([[1, -1, 0], [0, 1, -1]], [0.0, 1.0], ["Ann", "Bob", "Cy"])
        >>> model = DynamicComparisons(Constant(1.0), Probit()).fit(matches, [1, 1])
        >>> print(model.standings().round(2).to_string(index=False))
        name  score  std  rank  rank_low  rank_high  matches
         Ann   0.59 0.87     1         1          3        1
         Bob   0.00 0.79     2         1          3        2
          Cy  -0.59 0.87     3         1          3        1
        """
        check_is_fitted(self, "matches_")
        times = self.matches_.time
        now = float(times[-1])
        if time is not None:
            now = self._parse_time(time, "time")
        end = int(np.searchsorted(times, now, side="right"))
        require(
            end > 0,
            time,
            "time",
            f"a time not before the first match, which is at {times[0]:g}",
        )
        begin = 0
        if since is not None:
            begin = int(np.searchsorted(times, self._parse_time(since, "since")))
        require(
            begin < end,
            since,
            "since",
            f"a time of at most {times[end - 1]:g}, that of the last match up to `time`",
        )
        is_player = [
            name != ADVANTAGE and not isinstance(name, tuple) for name in self.features_
        ]
        is_active = self._count_entries(begin, end) > 0
        players = np.flatnonzero(is_player & is_active)
        names = tuple(self.features_[k] for k in players)
        mean, spread = score_moments(self, names, now)
        if spread.ndim == 2:
            std = np.sqrt(np.diag(spread))
            factor = square_root(spread).T
        else:
            std = np.sqrt(spread)
            factor = std
        rank, low, high = _ranks(mean, std, factor)
        table = pd.DataFrame(
            {
                "name": names,
                "score": mean,
                "std": std,
                "rank": rank,
                "rank_low": low,
                "rank_high": high,
                "matches": self._count_matches(end)[players],
            }
        )
        return table.sort_values("rank", kind="stable", ignore_index=True)

    def _count_entries(self, begin: int, end: int) -> NDArray:
        """Number of matches of each feature among matches begin..end."""
        design = self.matches_.design
        entries = slice(design.indptr[begin], design.indptr[end])
        return np.bincount(design.indices[entries], minlength=design.shape[1])

    def _count_matches(self, end: int) -> NDArray:
        """Number of matches of each feature before match `end`.

        An event of a race counts as one match, regardless of the number of players.
        """
        count = self._count_entries(0, end)
        column = {name: k for k, name in enumerate(self.features_)}
        for k in np.flatnonzero(count):
            if is_performance(name := self.features_[k]):
                count[column[name[2]]] -= count[k] - 1
        return count

    def moments(
        self, matches: Fixtures, offset: PerMatch = None, unseen: str = "warn"
    ) -> tuple[Floats, Floats]:
        """Mean and variance of the score difference x·s(t) of each match.

        Both have shape (N,). Features that were in no match have their prior. With the
        factorized posterior the features of one match are treated as independent;
        between groups that rarely meet, this variance is too small. Arguments and
        warnings are those of `predict_proba`. The method raises ValueError if times or
        entries of the design are so large that mean or variance overflows.
        """
        matches = self._prepare(matches, unseen)
        return self._forecast(matches, lambda *moments: moments, offset)

    def _forecast(
        self,
        matches: Matches,
        statistic: Callable[[Floats, Floats], Any],
        offset: PerMatch,
    ) -> Any:
        """A statistic of the mean and variance of each match, computed in parallel.

        The result has one column per match.
        """
        known = _check_offset(offset, len(matches))
        if self._prior.mean:
            known = known + self._prior.differences(matches)
        moments = self._moments_of(matches.design, matches.features)
        spaces = self._prior.spaces

        def forecast(part: slice) -> Any:
            mean, variance = moments(matches.design[part], matches.time[part])
            return statistic(mean + known[part], variance)

        parts = [slice(0, len(matches))]
        if len(spaces) <= _MAX_PARALLEL_SPACES and not self._is_joint:
            parts = balanced_slices(len(matches))
        with worker_pool(self._n_threads) as parallel_map:
            return np.concatenate(parallel_map(forecast, parts), axis=-1)

    def _parse_time(self, time: Any, name: str) -> float:
        """Convert one time to the unit of the matches."""
        parsed = as_times(time, self.matches_.columns)[()]
        return check_real(parsed, name, "a number or a date", -LARGEST, LARGEST)

    def _set_results(
        self,
        prior: Prior,
        matches: Matches,
        observations: Floats,
        sites: Floats,
        trace: pd.DataFrame,
        converged: bool,
    ) -> Self:
        """Set the attributes of a fit; the trace has the columns of `SweepRecord`."""
        self.matches_ = matches
        self.observations_ = observations
        self.features_ = matches.features
        self.outcomes_ = observations[:, 0]
        self.pseudo_observations_ = sites
        self.trace_ = trace
        self.n_iter_ = len(trace)
        evidence = trace["evidence"].to_numpy()
        self.log_marginal_likelihood_ = float(evidence[trace["accepted"]][-1])
        self.converged_ = converged
        # Parameters may change later, so the values of the fit are kept.
        self._prior = prior
        self.likelihood_ = self.likelihood
        self._n_threads = self.n_threads
        self._form = {name: getattr(self, name) for name in _FORM}
        self._posterior: Posterior | JointPosterior | None = None
        return self

    @property
    def _is_joint(self) -> bool:
        """Whether the pseudo-observations are those of the joint posterior."""
        return self._form["posterior"] == "joint"

    def _require_as_in_fit(self, *names: str) -> None:
        """Raise ValueError if `set_params` has changed one of these parameters."""
        for name in names:
            value = getattr(self, name)
            fitted = self._form[name]
            expected = (
                f"{fitted!r}, the value of the fit; to change it, fit all matches again"
            )
            require(isinstance(value, str) and value == fitted, value, name, expected)

    def _fitted_posterior(self) -> Posterior | JointPosterior:
        """Posterior with the parameters of the fit, computed at the first call."""
        if self._posterior is None:
            if self._is_joint:
                self._posterior = JointPosterior(
                    self._prior,
                    self.matches_,
                    self.observations_,
                    self.pseudo_observations_,
                )
            else:
                self._posterior = Posterior(
                    self._prior, self.matches_, self.pseudo_observations_
                )
        return self._posterior

    def predict_proba(
        self, matches: Fixtures, offset: PerMatch = None, unseen: str = "warn"
    ) -> Floats:
        """Outcome probabilities of each match.

        Parameters
        ----------
        matches : Matches or DataFrame
            Matches at any times, also earlier than those of the fit. Their features may
            be in another order; features that were not in the fit have their prior. A
            DataFrame is read with the column names that `Matches.from_frame` got for
            the matches of the fit.
        offset : array-like of shape (N,), optional
            Known part of the score difference, as in `fit`.
        unseen : "warn", "raise" or "ignore"
            Treatment of players whose names are not among the features of the fit.

        Returns
        -------
        ndarray of shape (N, 3) or (N, 2)
            Probabilities of loss, tie, and win of the first; without ties, of loss and
            win.

        Raises
        ------
        ValueError
            If the matches are invalid, or, with unseen="raise", if a name is new.

        Warns
        -----
        UnseenWarning
            If a name is new and unseen="warn", since it may be misspelled.
        """

        def probabilities(mean: Floats, variance: Floats) -> Floats:
            return self.likelihood_.probabilities(mean, variance).T

        return self._forecast(self._prepare(matches, unseen), probabilities, offset).T

    def simulate(
        self,
        fixtures: Matches,
        n_draws: int = 1000,
        random_state: int | np.random.Generator | None = None,
        *,
        offset: PerMatch = None,
        unseen: str = "warn",
    ) -> Floats:
        """Draw the outcomes of future matches jointly.

        Each draw has its own scores. They start from the posterior, change from match
        to match according to the prior, and determine the probabilities of the
        outcomes. The outcomes of one draw are therefore correlated: a team that is
        better than its mean score is better in all its matches.

        Parameters
        ----------
        fixtures : Matches
            Future matches. If scores change over time, none may be earlier than the
            last match of the fit.
        n_draws : int
            Number of draws.
        random_state : int or Generator, optional
            Seed or random number generator.
        offset : array-like of shape (N,), optional
            Known part of the score difference, as in `fit`.
        unseen : "warn", "raise" or "ignore"
            Treatment of new names, as in `predict_proba`.

        Returns
        -------
        ndarray of shape (n_draws, N)
            Outcomes of the kind used in `fit`: 1, 0, or -1, or points.

        Raises
        ------
        ValueError
            If the matches are invalid; if scores change and a match is earlier than the
            last match of the fit; if a name is new and unseen="raise".

        Examples
        --------
        >>> from preflearn.dynamics import Constant, DynamicComparisons, Probit
        >>> matches = Matches([[1, -1, 0], [0, 1, -1]], [0.0, 1.0], ["Ann", "Bob", "Cy"])
        >>> model = DynamicComparisons(Constant(1.0), Probit(), posterior="joint").fit(matches, [1, 1])
        >>> fixtures = Matches([[1, -1, 0], [1, 0, -1]], [2.0, 2.0], ["Ann", "Bob", "Cy"])
        >>> outcomes = model.simulate(fixtures, n_draws=10_000, random_state=0)
        >>> float((outcomes == 1).all(axis=1).mean().round(1))
        0.6
        """
        matches = self._prepare(fixtures, unseen)
        known = _check_offset(offset, len(matches))
        n_draws = check_count(n_draws, "n_draws", least=1)
        rng = generator(random_state, allow_none=True)
        present = np.flatnonzero(np.bincount(matches.design.indices))
        names = tuple(matches.features[k] for k in present)
        state = self._fitted_posterior().state_of(names)
        first = float(matches.time[0])
        expected = (
            f"fixtures after the fit, at {state.time:g} (the time of its last match) or later; "
            "for earlier matches use predict_proba"
        )
        require(first >= state.time, first, "the time of the first fixture", expected)
        rows = Rows(matches.design[:, present], matches.time)
        draws = draw_differences(state, self._prior, names, rows, (n_draws, rng))
        draws += known + self._prior.differences(matches)
        return self.likelihood_.draw(draws, rng)

    def _prepare(self, matches: Fixtures, unseen: str) -> Matches:
        check_is_fitted(self, "matches_")
        known: Any = self.features_
        if getattr(matches, "features", None) is not known:
            known = self._fitted_posterior().column  # a dict, to avoid a copy
        return prepare_for_prediction(matches, self.matches_.columns, known, unseen)

    def predict(
        self, matches: Fixtures, offset: PerMatch = None, unseen: str = "warn"
    ) -> NDArray[np.int8]:
        """The most probable outcome of each match: 1, 0, or -1.

        The result has shape (N,). Arguments, errors, and warnings are those of
        `predict_proba`.
        """
        return most_probable(
            self.likelihood_, self.predict_proba(matches, offset, unseen)
        )

    def score(
        self,
        matches: Fixtures,
        y: ArrayLike,
        sample_weight: PerMatch = None,
        offset: PerMatch = None,
        unseen: str = "warn",
    ) -> float:
        """Weighted accuracy of `predict`; of point differences only the sign counts.

        The method raises ValueError in the cases of `fit`, and with `Poisson`, whose
        outcomes are the points of only one side.
        """
        matches = self._prepare(matches, unseen)
        result = results_of(self.likelihood_, matches, y)
        predicted = self.predict(matches, offset, "ignore")
        return 1.0 - comparison_loss(result, predicted, sample_weight)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one .npz file of numbers and JSON, for `load`.

        The file contains the covariance, the likelihood, and the means of the fit, even
        if `set_params` has changed them since.

        Raises
        ------
        ValueError
            If the name of a feature is not a str, a number, or a tuple of them; if
            `method` or `posterior` has been changed since the fit.
        OSError
            If the file cannot be written.
        """
        check_is_fitted(self, "matches_")
        write_npz(path, *to_file(self))


RowMoments = Callable[[Any, Floats], tuple[Floats, Floats]]
# With more covariances, each part would have few features of one covariance.
_MAX_PARALLEL_SPACES = 16
_N_RANK_DRAWS = 1000
_RANK_PROBABILITY = 0.95
_RANK_BLOCK = 1 << 16  # number of scores drawn at once
_MIN_GROUP_FRACTION = 1 / 8  # fraction of the players; smaller groups cause no warning
# If more ties than this are expected between equal players and none occurs, `fit` warns.
_MIN_EXPECTED_TIES = 10
# Digits, in standard deviations, to which tied scores agree: fits have a tolerance.
_TIE_DIGITS = 6
_OBSERVATIONS = "outcomes", "weights", "offset"  # the columns of observations_
# Parameters that say what the pseudo-observations mean. Others are settings of sweeps.
_FORM = "method", "posterior"
_OPTIONS = ("method", "rate", "tol", "max_iter", "n_threads", "posterior")


def _is_key(name: Any, table: Mapping[Hashable, Any]) -> bool:
    """Whether a name is in a table; False for names that cannot be hashed."""
    try:
        return name in table
    except TypeError:
        return False


def most_probable(likelihood: Likelihood, probabilities: Floats) -> NDArray[np.int8]:
    """The most probable outcome for each row of probabilities."""
    labels = np.array(likelihood.labels, dtype=np.int8)
    return labels[np.argmax(probabilities, axis=1)]


def ranks_by_mean(mean: Floats, std: Floats) -> NDArray[np.int64]:
    """Ranks of scores, 1 for the largest mean; equal scores share a rank."""
    rounded = np.round(mean / (std.max() or 1.0), _TIE_DIGITS)
    return rankdata(-rounded, method="min").astype(np.int64)


def _ranks(
    mean: Floats, std: Floats, factor: Floats
) -> tuple[NDArray, NDArray, NDArray]:
    """Ranks by the mean, and 95 percent rank intervals from draws of the scores.

    `factor` holds the standard deviations if the scores are independent. Otherwise it
    is a matrix such that the product of a row of independent standard normal numbers
    with it has the covariance of the scores. To save memory, scores are drawn in
    blocks, and only the smallest and largest ranks that the quantiles need are kept.
    """
    rng = np.random.default_rng(0)
    # number of draws kept on either side
    kept = 1 + round((1 - _RANK_PROBABILITY) / 2 * (_N_RANK_DRAWS - 1))
    size = max(2 * kept, _RANK_BLOCK // len(mean))
    extremes = np.empty((len(mean), 0), np.int32)
    for start in range(0, _N_RANK_DRAWS, size):
        n_draws = min(size, _N_RANK_DRAWS - start)
        normal = rng.standard_normal((n_draws, len(mean)), dtype=np.float32)
        draws = normal * factor if factor.ndim == 1 else normal @ factor
        drawn = _ranks_of_rows(draws + mean)
        extremes = np.hstack([extremes, drawn.T])
        extremes.sort(axis=1)
        if extremes.shape[1] > 2 * kept:
            extremes = np.hstack([extremes[:, :kept], extremes[:, -kept:]])
    rank = ranks_by_mean(mean, std)
    low = np.minimum(extremes[:, kept - 1], rank)
    high = np.maximum(extremes[:, -kept], rank)
    return rank, low, high


def _ranks_of_rows(scores: Floats) -> NDArray[np.int32]:
    """Ranks in each row, 1 for the largest.

    Equal scores share their mean rank, rounded down.
    """
    order = np.argsort(-scores, axis=1)
    if (np.diff(np.take_along_axis(scores, order, axis=1), axis=1) == 0).any():
        return rankdata(-scores, axis=1).astype(np.int32)
    ranks = np.empty(scores.shape, np.int32)
    places = np.arange(1, scores.shape[1] + 1, dtype=np.int32)
    np.put_along_axis(ranks, order, places[None], axis=1)
    return ranks


def _warn_about_groups(matches: Matches) -> None:
    """Warn if two large groups of players never meet."""
    diagnosis = diagnose(matches)
    # sorted, the largest first

    sizes = [len(group) for group in diagnosis.components if len(group) > 1]
    if len(sizes) > 1 and sizes[1] >= _MIN_GROUP_FRACTION * sum(sizes):
        warn_user(diagnosis.message, NotIdentifiedWarning)


def _warn_about_missing_ties(likelihood: Likelihood, outcomes: Floats) -> None:
    """Warn if the likelihood expects several ties but there are none."""
    has_ties = isinstance(likelihood, Results) and likelihood.has_ties
    if not has_ties or not outcomes.all():
        return
    tie = float(likelihood.probabilities([0.0], [0.0])[0, 1])
    if tie * len(outcomes) <= _MIN_EXPECTED_TIES:
        return
    text = f"{likelihood} expects a tie in {100 * tie:.0f} % of matches between equal players, but none"
    # A Lapse wraps a likelihood.
    ordinal = getattr(likelihood, "likelihood", likelihood)
    other = type(ordinal).__name__.removeprefix("Ordinal")
    warn_user(
        f"{text} of the {len(outcomes):,} outcomes in y is a tie; if ties are impossible, use {other}()",
        OutcomeWarning,
    )


# ---- Functions for code that fits many models on arrays that are checked once


def check_model(model: DynamicComparisons) -> None:
    """Raise ValueError unless this is a model with valid parameters."""
    require(
        isinstance(model, DynamicComparisons), model, "model", "a DynamicComparisons"
    )
    covariances = by_name(model.covariance).values()
    require(
        len(covariances) > 0 and all(isinstance(k, Covariance) for k in covariances),
        model.covariance,
        "covariance",
        "a Covariance, or a mapping of feature names to Covariances",
    )
    likelihood = model.likelihood
    require(
        isinstance(likelihood, Likelihood),
        likelihood,
        "likelihood",
        "an instance of a likelihood, such as Probit()",
    )
    check_choice(model.method, "method", ("ep", "kl"))
    check_choice(model.posterior, "posterior", ("factorized", "joint"))
    is_auto = isinstance(model.rate, str) and model.rate == "auto"
    valid_rate = is_auto or 0 < as_real(model.rate) <= 1
    require(valid_rate, model.rate, "rate", "'auto', or a number above 0 and at most 1")
    require(0 < as_real(model.tol) < np.inf, model.tol, "tol", "a positive number")
    check_count(model.max_iter, "max_iter", least=1)
    if model.n_threads is not None:
        check_count(model.n_threads, "n_threads", least=1)
    if model.mean is not None:
        require(
            isinstance(model.mean, Mapping),
            model.mean,
            "mean",
            "a mapping of feature names to prior means",
        )
        for name, value in model.mean.items():
            check_real(
                value, f"mean[{short_repr(name)}]", "a number", -LARGEST, LARGEST
            )


@np.errstate(**OVERFLOW)
def differences(
    x: Floats, starts: NDArray, mean: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    """Mean and variance of x·s of each match from those of the scores.

    `mean` and `variance` have one value per entry of the design. `starts` holds the
    number of the first entry of each match and, at the end, of the entry after the last
    match.
    """
    begin = starts[:-1] - starts[0]
    mean, variance = (
        np.add.reduceat(values, begin) for values in (x * mean, x * x * variance)
    )
    return check_finite(mean), check_finite(variance)


def score_moments(
    model: DynamicComparisons, names: tuple[Hashable, ...], time: float
) -> tuple[Floats, Floats]:
    """Mean (F,) and covariance (F, F) of the scores of a fitted model at one time.

    If the posterior is factorized, the second result is the variances, shape (F,).
    """
    if model._is_joint:
        return model._joint_scores(names, time)
    each = sparse.csr_array(sparse.eye_array(len(names)))
    return model._row_moments(each, names, np.full(len(names), time))


def results_of(likelihood: Likelihood, matches: Matches, y: ArrayLike) -> Floats:
    """Results of matches, 1, 0, or -1, from outcomes of a likelihood, shape (N,).

    The function raises ValueError with `Poisson`, whose outcomes are the points of only
    one side.
    """
    require(
        not isinstance(likelihood, Poisson),
        likelihood,
        "likelihood",
        "a likelihood of wins and losses or of point differences; Poisson has the points of one side",
    )
    outcomes: Any = y
    if isinstance(likelihood, Results):
        outcomes = given_outcomes(y, matches)
    return np.sign(likelihood.check(outcomes, len(matches)))


def check_problem(
    model: DynamicComparisons,
    matches: Matches,
    y: ArrayLike,
    sample_weight: PerMatch = None,
    offset: PerMatch = None,
) -> Floats:
    """Check all arguments of a fit.

    Returns outcome, weight, and offset of each match, shape (N, 3).
    """
    check_model(model)
    check_matches(matches)
    if isinstance(model.likelihood, Results):
        y = given_outcomes(y, matches)
    outcomes = model.likelihood.check(y, len(matches))
    weights = check_weights(sample_weight, len(matches))
    _check_races(model, matches, weights)
    offsets = _check_offset(offset, len(matches))
    return np.column_stack([outcomes, weights, offsets])


def _check_races(model: DynamicComparisons, matches: Matches, weights: Floats) -> None:
    """Check the settings that races require.

    A performance belongs to one time, and comparisons of two performances have almost
    no noise. Therefore weights other than 0 and 1 and method "kl" are not possible.
    """
    own = np.array([is_performance(name) for name in matches.features])[
        matches.design.indices
    ]
    if not own.any():
        return
    require(
        model.method == "ep",
        model.method,
        "method",
        "'ep', since the matches come from Matches.from_rankings",
    )
    rows, columns = matches.design.tocoo().coords
    rows = rows[own]
    columns = columns[own]
    wrong = np.zeros(len(matches), dtype=bool)
    wrong[rows] = ~np.isin(weights[rows], (0, 1))
    expected = (
        "0 or 1 for matches from Matches.from_rankings; to count an event twice, list it "
        "twice, with two names"
    )
    raise_if_any(wrong, weights, "sample_weight", expected)
    _, first, place = np.unique(columns, return_index=True, return_inverse=True)
    late = matches.time[rows] != matches.time[rows[first[place]]]
    name: Any = matches.features[columns[late.argmax()]]
    require(
        not late.any(),
        name[1],
        "the name of an event",
        "a name that no event at another time has; add the year, for example",
    )


def _n_sites(joint: bool, matches: Matches) -> int:
    """The number of pseudo-observations of matches."""
    return len(matches) if joint else matches.design.nnz


def _check_offset(offset: ArrayLike | None, n: int) -> Floats:
    """Return the offset of each match, 0 if `offset` is None."""
    if offset is None:
        return np.zeros(n)
    known = check_array(offset, "offset", (n,), "one value per match")
    expected = "a number from -1e100 to 1e100"
    raise_if_any(np.abs(known) > LARGEST, known, "offset", expected)
    return known


@contextmanager
def prepare_sweep(
    model: DynamicComparisons,
    matches: Matches,
    observations: Floats,
    sites: Floats | None = None,
) -> Iterator[Any]:
    """Create the sweep of a model and its threads, which end with the context.

    The sweep starts from the given pseudo-observations, or from zeros.
    """
    with worker_pool(model.n_threads) as parallel_map:
        prior = Prior(model.covariance, model.mean)
        if prior.mean:
            observations = observations.copy()
            observations[:, 2] += prior.differences(matches)
        options: Any = {"ep": model.method == "ep", "parallel_map": parallel_map}
        sweep: Any
        if model.posterior == "joint":
            sweep = JointSweep(
                matches, prior, model.likelihood, observations, **options
            )
        else:
            schedule = make_schedule(matches, prior)
            sweep = Sweep(schedule, model.likelihood, observations, **options)
        if sites is not None:
            sweep.sites = sites
        yield sweep


def infer(
    model: DynamicComparisons,
    matches: Matches,
    observations: Floats,
    sites: Floats | None = None,
) -> DynamicComparisons:
    """Fit without checks and warnings.

    The fit starts from the given pseudo-observations, or from zeros.
    """
    with prepare_sweep(model, matches, observations, sites) as sweep:
        step = make_step(sweep, model.rate)
        trace, converged = run_algorithm_1(
            sweep, step, tol=model.tol, max_iter=int(model.max_iter)
        )
        found = sweep.sites
    return model._set_results(
        sweep.prior, matches, observations, found, pd.DataFrame(trace), converged
    )


def load(path: str | os.PathLike[str]) -> DynamicComparisons:
    """Load a model that `DynamicComparisons.save` wrote.

    The loaded model forecasts and updates like the saved one.

    Parameters
    ----------
    path : path-like
        Path of the file.

    Raises
    ------
    OSError
        If the file does not exist or cannot be read.
    ValueError
        If the file has other content, is damaged, or has another version of the format;
        if it contains an `AveragedComparisons`, which `AveragedComparisons.load` reads.
    """
    return read_npz(path, from_file)


def to_file(model: DynamicComparisons) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Header and arrays of a file, for `from_file`."""
    model._require_as_in_fit(*_FORM)
    header = {
        "covariance": [
            [name, k.to_dict()] for name, k in model._prior.covariances.items()
        ],
        "one_covariance": model._prior.is_single,
        "likelihood": model.likelihood_.to_dict(),
        "options": {name: getattr(model, name) for name in _OPTIONS},
        "features": model.features_,
        "converged": model.converged_,
        "columns": model.matches_.columns,
        "mean": list(model._prior.mean.items()),
    }
    design = model.matches_.design
    arrays = {
        "indptr": design.indptr,
        "indices": design.indices,
        "data": design.data,
        "time": model.matches_.time,
        **dict(zip(_OBSERVATIONS, model.observations_.T, strict=True)),
        "pseudo_observations": model.pseudo_observations_,
        **{f"trace_{name}": model.trace_[name].to_numpy() for name in model.trace_},
    }
    return header, arrays


def from_file(header: dict[str, Any], arrays: dict[str, NDArray]) -> DynamicComparisons:
    """Create a fitted model from header and arrays of a file."""
    covariance: Any = {
        name: Covariance.from_dict(description)
        for name, description in _as_mapping(header["covariance"]).items()
    }
    if header["one_covariance"]:
        covariance = covariance[REST]
    model = DynamicComparisons(
        covariance,
        Likelihood.from_dict(header["likelihood"]),
        **header["options"],
        mean=_as_mapping(header.get("mean", [])) or None,
    )
    features = as_names(header["features"])
    design = sparse.csr_array(
        (arrays["data"], arrays["indices"], arrays["indptr"]),
        (len(arrays["time"]), len(features)),
    )
    # Matches checks that the indices are valid
    matches = Matches(design, arrays["time"], features)
    matches.columns = header.get("columns")
    observations = check_problem(
        model, matches, arrays["outcomes"], arrays.get("weights"), arrays.get("offset")
    )
    sites = _check_sites(model.posterior, matches, arrays["pseudo_observations"])
    trace = {name: arrays[f"trace_{name}"] for name in SweepRecord._fields}
    return model._set_results(
        Prior(model.covariance, model.mean),
        matches,
        observations,
        sites,
        pd.DataFrame(trace),
        header["converged"],
    )


def _check_sites(posterior: str, matches: Matches, sites: NDArray) -> Floats:
    """Check that pseudo-observations are those of a posterior of these matches."""
    is_joint = posterior == "joint"
    n_sites = _n_sites(is_joint, matches)
    if len(sites) != n_sites and len(sites) == _n_sites(not is_joint, matches):
        raise ContradictionError(
            f"the file has posterior={posterior!r}, but the pseudo-observations of the other posterior, "
            "because set_params changed posterior after the fit; fit the model again and save it"
        )
    return check_array(sites, "sites", (n_sites, 2))


def _as_mapping(pairs: list[Any]) -> dict[Hashable, Any]:
    """Convert the [name, value] pairs of JSON to a mapping."""
    names = as_names(name for name, _ in pairs)
    return dict(zip(names, (value for _, value in pairs), strict=True))
