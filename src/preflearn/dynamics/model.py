"""Comparisons whose scores move in time: the model of [Maystre2019]_, fitted by EP or
reverse-KL.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
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
    check_flag,
    check_real,
    check_weights,
    raise_if_any,
    require,
    short_repr,
    warn_user,
)
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.prior import REST, Prior, by_name, warn_about_units
from preflearn.dynamics.covariances.state_space import OVERFLOW, check_finite
from preflearn.dynamics.engine.acceleration import Mixing
from preflearn.dynamics.engine.algorithm import TRACE, Plain, Sweep, fixed_point
from preflearn.dynamics.engine.posterior import Posterior
from preflearn.dynamics.engine.schedule import schedule_of
from preflearn.dynamics.engine.threads import balanced_slices, worker_pool
from preflearn.dynamics.likelihoods.counts import Poisson
from preflearn.dynamics.likelihoods.likelihood import Likelihood, Results
from preflearn.dynamics.saving import as_names, read_npz, write_npz
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
    prepare_for_prediction,
    warn_unknown_names,
)
from preflearn.metrics import comparison_loss


@dataclass(eq=False, repr=False)
class DynamicComparisons(BaseEstimator):
    """Scores as Gaussian processes in time, from the outcomes of matches (eqs. 1 to 4,
    Algorithm 1).

    The score s_m(t) of feature m has a prior with mean 0 and covariance k_m(t, t'), and
    a match at time t has an outcome of likelihood p(y | x·s(t)). The posterior is
    approximated by a Gaussian in which features are independent ([Maystre2019]_); an
    iteration takes time in proportion to the number of matches.

    Parameters
    ----------
    covariance : Covariance or mapping of feature name to Covariance
        One for all features, or one each; "*" stands for those that the mapping does
        not name. Lengths of time are in the unit of `Matches.time`: days, where
        `Matches.from_frame` read dates.
    likelihood : Likelihood
        Of an outcome, given the difference of scores.
    method : {"ep", "kl"}
        Expectation propagation, or minimal Kullback-Leibler divergence from the
        approximation to the posterior ("reverse KL").
    rate : "auto" or float
        "auto": accelerated sweeps, with as much damping as they need. A number from 0
        to 1: the learning rate lambda of Algorithm 1, in plain sweeps.
    tol : float
        Converged if a sweep would change no pseudo-observation by more, in units of the
        posterior standard deviation of its feature's score.
    max_iter : int
        At most so many sweeps.
    n_threads : int, optional
        As many as there are processors, if None. The results are the same for any
        number.
    mean : mapping of feature name to float, optional
        Prior means of scores, as from an earlier season; 0 for features that are not
        named. A number names the player whom `Matches.from_frame` reads of it.

    Attributes
    ----------
    features_ : tuple
        Names, in the order of columns of the matches.
    log_marginal_likelihood_ : float
        EP's estimate of log p(y), natural logarithm; with method "kl" the lower bound
        on it.
    converged_ : bool
    n_iter_ : int
        Sweeps of the last `fit` or `update`.
    trace_ : DataFrame
        One row a sweep: `residual` (of `tol`), `evidence` (as
        `log_marginal_likelihood_`), `rate` of the step after it, `accepted`: False
        where the step to it was taken back. There `evidence` may be NaN.
    matches_ : Matches
        What was learned from, and `outcomes_` (N,).
    played_ : ndarray of shape (N, 3)
        Outcome, weight and offset of each match.
    pseudo_observations_ : ndarray of shape (E, 2)
        alpha and beta of each entry of the design of `matches_`, in its order: the
        posterior of feature m is its prior times all exp(alpha s - beta s²/2).

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
        y : array-like of shape (N,)
            Outcomes, of the kind that the likelihood has; where these are -1, 0 and 1,
            also 1, 1/2 and 0.
        sample_weight : array-like of shape (N,), optional
            Powers of the likelihoods of matches, from 0 to 1e100: a match of weight 2
            is two matches. With weights below 1, EP may not converge; a
            ConvergenceWarning says so. Then try ``method="kl"``.
        offset : array-like of shape (N,), optional
            What is known of the difference of scores, in their unit, and added to x·s:
            a handicap, komi.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            On parameters out of range, features without a covariance, no match, or an
            outcome that the likelihood cannot have; if an entry of the design times its
            score has a prior standard deviation above 1e7 times that of noise, where
            arithmetic ends; in races, on other weights than 0 and 1, or method="kl".

        Warns
        -----
        ConvergenceWarning
            If `max_iter` sweeps were not enough.
        TimeWarning
            If a length scale or a rate is absurd for the span of the data, as where
            units of time are mixed up; if an origin lies far before them, or nothing
            but an origin at the first match is known.
        OutcomeWarning
            If outcomes are only 1 and 0, or 1, 1/2 and 0, and those of the frame were
            others; or if the likelihood would have ten ties between equals, and there
            is none.
        NotIdentifiedWarning
            If two groups of players never meet, each at least an eighth of them;
            `diagnose` names all groups.
        UnseenWarning
            If `covariance` or `mean` names what is no feature of the matches.
        """
        played = check_problem(self, matches, y, sample_weight, offset)
        features = {REST, PERFORMANCE, *matches.features}
        warn_unknown_names("covariance", by_name(self.covariance), features)
        warn_unknown_names("mean", self.mean or {}, features)
        found = diagnose(matches[played[:, 1] > 0])
        # the largest first
        sizes = [len(group) for group in found.components if len(group) > 1]
        if len(sizes) > 1 and sizes[1] >= _SIZEABLE * sum(sizes):
            warn_user(found.message, NotIdentifiedWarning)
        if (
            isinstance(law := self.likelihood, Results)
            and law.has_ties
            and played[:, 0].all()
        ):
            tie = float(law.probabilities([0.0], [0.0])[0, 1])
            if tie * len(played) > _NO_TIE:
                text = f"{law} has a tie in {100 * tie:.0f} % of matches between equals, and y none in"
                other = type(law).__name__.removeprefix("Ordinal")
                warn_user(
                    f"{text} {len(played):,}: where there are no ties, take {other}()",
                    OutcomeWarning,
                )
        return self._fit(matches, played, None)

    def update(
        self,
        matches: Matches,
        y: ArrayLike,
        sample_weight: PerMatch = None,
        offset: PerMatch = None,
    ) -> Self:
        """Add later matches: the sweeps go on from the last state, so a few are enough.

        They are sweeps of all matches, since at a `tol` of 1e-6 nearly all move: one
        more match takes as long as a thousand more, after 400,000 of them about a
        second. Where each match is to be forecast from all before it, `one_step_ahead`
        is quicker.

        Parameters, results and errors as in `fit`. The matches may have new features,
        in any order of columns. It raises ValueError also where the first of them is
        earlier than the last one so far, an event of races has the name of an earlier
        one, or only one of both was read from dates.
        """
        check_is_fitted(self, "matches_")
        played = check_problem(self, matches, y, sample_weight, offset)
        # another likelihood, by set_params
        self.likelihood.check(self.outcomes_, len(self.matches_))
        last = self.matches_.time[-1]
        expected = (
            f"later matches only, from {last:g} on: fit all together, sorted by time"
        )
        require(
            matches.time[0] >= last,
            float(matches.time[0]),
            "the time of the first match",
            expected,
        )
        sites = np.vstack(
            [self.pseudo_observations_, np.zeros((matches.design.nnz, 2))]
        )
        together = concatenate(self.matches_, matches)
        _check_races(self, together, np.ones(len(together)))
        return self._fit(together, np.vstack([self.played_, played]), sites)

    def _fit(self, matches: Matches, played: Floats, sites: Floats | None) -> Self:
        warn_about_units(self.covariance, matches.time, self.likelihood.noise)
        infer(self, matches, played, sites)
        if not self.converged_:
            change = self.trace_["residual"].iloc[-1]
            text = f"no convergence in {self.n_iter_} sweeps: the last one would change a pseudo-observation "
            text += f"by {change:.1e} standard deviations, more than tol={self.tol:g}; raise max_iter, "
            if self.method == "ep" and np.any((played[:, 1] > 0) & (played[:, 1] < 1)):
                text += "or take method='kl': with weights below 1, EP may not converge"
            elif self.rate != "auto":
                text += "or leave rate='auto'"
            else:
                text += "or look at trace_"
            warn_user(text, ConvergenceWarning)
        return self

    def scores(self, feature: Hashable, time: ArrayLike) -> tuple[NDArray, NDArray]:
        """Posterior mean and standard deviation of one feature's score.

        Parameters
        ----------
        feature : hashable
            A name.
        time : float or date, or array-like of shape (k,)
            In the unit of `Matches.time`, at any time, in any order; dates or their ISO
            texts where that is days.

        Returns
        -------
        mean, std : ndarray, of the shape of `time`

        Raises
        ------
        ValueError
            If the feature was in no match, or its prior is not defined, or overflows,
            at a time.
        """
        check_is_fitted(self, "matches_")
        require(
            feature in self.features_,
            feature,
            "feature",
            f"one of {short_repr(list(self.features_))}",
        )
        at = as_times(time, self.matches_.columns)
        times = check_array(np.atleast_1d(at), "time", ("k",), "times")
        scores = self._scores()
        mean, variance = scores.moments(
            np.repeat(scores.of((feature,)), len(times), axis=1), times
        )
        mean += self._prior.means((feature,))
        return mean.reshape(at.shape)[()], np.sqrt(variance.reshape(at.shape))

    def standings(self, time: Any = None, since: Any = None) -> pd.DataFrame:
        """The players at a time, the best first: scores, and ranks with their
        uncertainty.

        Parameters
        ----------
        time : float or date, optional
            In the unit of `Matches.time`, or a date or its ISO text where that is days;
            the last match, if None. Players are those who had a match by then; what
            came later counts in their scores.
        since : float or date, optional
            Only those who had a match from then on: ranks are among these.

        Returns
        -------
        DataFrame
            `name`; `score` and `std`, as of `scores`; `rank` by score, one for all who
            tie; `rank_low` and `rank_high`, between which the rank is with probability
            0.95, by 1,000 draws from the posterior, in which features are independent;
            `matches`, how many by then, an event of a race being one.

        Raises
        ------
        ValueError
            If nobody had a match by this time, or from `since` to it.

        Notes
        -----
        `std` is that of a score against the others: how the level that all share moves,
        outcomes cannot tell, and it is not in there. Intervals of differences hold at
        their level (benchmarks/static_models.py).

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
        design = self.matches_.design
        times = self.matches_.time
        at = float(times[-1]) if time is None else self._moment(time, "time")
        n = int(np.searchsorted(times, at, side="right"))
        require(
            n > 0, time, "time", f"a time from that of the first match on, {times[0]:g}"
        )
        begin = (
            0
            if since is None
            else int(np.searchsorted(times, self._moment(since, "since")))
        )
        require(
            begin < n,
            since,
            "since",
            f"a time up to that of the last match by then, {times[n - 1]:g}",
        )
        count, lately = (
            np.bincount(
                design.indices[design.indptr[k] : design.indptr[n]],
                minlength=design.shape[1],
            )
            for k in (0, begin)
        )
        place = {name: k for k, name in enumerate(self.features_)}
        for k in np.flatnonzero(count):
            # one, however many it was compared with
            if is_performance(name := self.features_[k]):
                count[place[name[2]]] -= count[k] - 1
        players = [
            name != ADVANTAGE and not isinstance(name, tuple) for name in self.features_
        ]
        who = np.flatnonzero(players & (lately > 0))
        names = tuple(self.features_[k] for k in who)
        scores = self._scores()
        mean, variance = scores.moments(scores.of(names), np.full(len(who), at))
        mean = mean + self._prior.means(names)
        std = np.sqrt(variance)
        draws = (
            np.random.default_rng(0).standard_normal(
                (_DRAWS, len(who)), dtype=np.float32
            )
            * std
            + mean
        )
        low, high = np.quantile(
            rankdata(-draws, axis=1), [0.025, 0.975], axis=0, method="nearest"
        )
        rank = rankdata(
            -np.round(mean / (std.max() or 1.0), _EQUAL), method="min"
        ).astype(np.int64)
        low = np.minimum(low, rank).astype(np.int64)
        high = np.maximum(high, rank).astype(np.int64)
        table = {
            "name": names,
            "score": mean,
            "std": std,
            "rank": rank,
            "rank_low": low,
            "rank_high": high,
        }
        table = pd.DataFrame({**table, "matches": count[who]})
        return table.sort_values("rank", kind="stable", ignore_index=True)

    def moments(
        self, matches: Fixtures, offset: PerMatch = None, unseen: str = "warn"
    ) -> tuple[Floats, Floats]:
        """Mean and variance of the difference of scores x·s(t) of each match, shape
        (N,) both.

        Features that were in no match have their prior. Features of one match count as
        independent, as they are in the approximation: between groups that hardly meet
        the variance is too small. Arguments and warnings as of `predict_proba`. It
        raises ValueError where times or entries of the design are so large that these
        numbers overflow.
        """
        return self._forecast(
            self._asked(matches, unseen), lambda *found: found, offset
        )

    def _forecast(
        self, matches: Matches, told: Callable[[Floats, Floats], Any], offset: PerMatch
    ) -> Any:
        """What is told of mean and variance of each match, one match a column, by a
        team."""
        design = matches.design
        scores = self._scores()
        known = _offsets(offset, matches, self._prior)
        present = np.flatnonzero(np.bincount(design.indices, minlength=design.shape[1]))
        of = np.zeros((2, design.shape[1]), dtype=np.int64)
        of[:, present] = scores.of(tuple(matches.features[k] for k in present))

        def one(part: slice) -> Any:
            x = design.data
            columns = design.indices
            starts = design.indptr[part.start : part.stop + 1]
            here = slice(starts[0], starts[-1])
            time = np.repeat(matches.time[part], np.diff(starts))
            mean, variance = scores.moments(of[:, columns[here]], time)
            mean, variance = differences(x[here], starts, mean, variance)
            return told(mean + known[part], variance)

        with worker_pool(self._n_threads) as share:
            parts = (
                balanced_slices(len(matches))
                if len(self._prior.spaces) <= _FEW
                else [slice(0, len(matches))]
            )
            return np.concatenate(share(one, parts), axis=-1)

    def _moment(self, time: Any, name: str) -> float:
        """One time, in the clock of the matches."""
        at = as_times(time, self.matches_.columns)[()]
        return check_real(at, name, "a number, or a date", -LARGEST, LARGEST)

    def _filled(
        self,
        prior: Prior,
        matches: Matches,
        played: Floats,
        sites: Floats,
        trace: Any,
        converged: bool,
    ) -> Self:
        """With the attributes of a fit; the trace is a mapping of the names in TRACE to
        arrays."""
        self.matches_ = matches
        self.played_ = played
        self.features_ = matches.features
        self.outcomes_ = played[:, 0]
        self.pseudo_observations_ = sites
        self.trace_ = pd.DataFrame(trace)
        self.n_iter_ = len(self.trace_)
        self.log_marginal_likelihood_ = float(trace["evidence"][trace["accepted"]][-1])
        self.converged_ = converged
        # Those of the fit, whatever becomes of the parameters.
        self._prior = prior
        self._likelihood = self.likelihood
        self._n_threads = self.n_threads
        self._posterior: Posterior | None = None
        return self

    def _scores(self) -> Posterior:
        """Of the model that was fitted, whatever became of its parameters; made when
        first asked for."""
        if self._posterior is None:
            self._posterior = Posterior(
                self._prior, self.matches_, self.pseudo_observations_
            )
        return self._posterior

    def predict_proba(
        self, matches: Fixtures, offset: PerMatch = None, unseen: str = "warn"
    ) -> Floats:
        """Probabilities of the outcomes: loss, tie and win of the first, or loss and
        win without ties.

        Parameters
        ----------
        matches : Matches or DataFrame
            At any times: before, between and after those learned from. Their features
            may be in another order, and those that were never seen have their prior. A
            frame is read by the columns that `Matches.from_frame` was given for the
            matches of the fit.
        offset : array-like of shape (N,), optional
            As in `fit`.
        unseen : "warn", "raise" or "ignore"
            What to do about names of players that were not among the features of the
            fit.

        Returns
        -------
        ndarray of shape (N, 3) or (N, 2)

        Raises
        ------
        ValueError
            On bad matches; with unseen="raise", where a name is new.

        Warns
        -----
        UnseenWarning
            With unseen="warn", where a name is new: it may be misspelt.
        """
        asked = self._asked(matches, unseen)
        return self._forecast(
            asked, lambda *found: self._likelihood.probabilities(*found).T, offset
        ).T

    def _asked(self, matches: Fixtures, unseen: str) -> Matches:
        check_is_fitted(self, "matches_")
        return prepare_for_prediction(
            matches, self.matches_.columns, self.features_, unseen
        )

    def predict(
        self, matches: Fixtures, offset: PerMatch = None, unseen: str = "warn"
    ) -> NDArray[np.int8]:
        """The most probable outcome of each match: 1, 0 or -1, shape (N,); as
        `predict_proba`."""
        probabilities = self.predict_proba(
            self._asked(matches, unseen), offset, "ignore"
        )
        labels = np.array(
            [-1, 0, 1] if probabilities.shape[1] == 3 else [-1, 1], dtype=np.int8
        )
        return labels[np.argmax(probabilities, axis=1)]

    def score(
        self,
        matches: Fixtures,
        y: ArrayLike,
        sample_weight: PerMatch = None,
        offset: PerMatch = None,
        unseen: str = "warn",
    ) -> float:
        """The weighted share of matches whose result is that of `predict`; points have
        their sign.

        It raises ValueError as `fit`, and with `Poisson`, whose outcomes are points of
        one side.
        """
        asked = self._asked(matches, unseen)
        given = y
        points = isinstance(self._likelihood, Poisson)
        require(
            not points,
            self._likelihood,
            "the likelihood",
            "one of results, or of differences of points",
        )
        if isinstance(self._likelihood, Results):
            given = given_outcomes(y, asked)
        result = np.sign(self._likelihood.check(given, len(asked)))
        return 1.0 - comparison_loss(
            result, self.predict(asked, offset, "ignore"), sample_weight
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model as one .npz file, of numbers and JSON only; `load`
        reads it.

        Raises
        ------
        ValueError
            If a feature's name is neither a str nor a number nor a tuple of them.
        OSError
            If the file can't be written.
        """
        check_is_fitted(self, "matches_")
        header = {
            "covariance": [
                [name, k.to_dict()] for name, k in self._prior.covariances.items()
            ],
            "one_covariance": self._prior.one,
            "likelihood": self._likelihood.to_dict(),
            "options": {name: getattr(self, name) for name in _OPTIONS},
            "features": self.features_,
            "converged": self.converged_,
            "columns": self.matches_.columns,
            "mean": list(self._prior.mean.items()),
        }
        arrays = {
            **{
                name: getattr(self.matches_.design, name)
                for name in ("indptr", "indices", "data")
            },
            "time": self.matches_.time,
            **{name: self.played_[:, k] for k, name in enumerate(_PLAYED)},
            "pseudo_observations": self.pseudo_observations_,
            **{f"trace_{name}": self.trace_[name].to_numpy() for name in self.trace_},
        }
        write_npz(path, header, arrays)


_FEW = 16  # covariances: with more, each part of the forecasts has few of one
_DRAWS = 1000  # of ranks
_SIZEABLE = 1 / 8  # of the players: a group that is worth a warning
_NO_TIE = 10  # are expected between equals, and none is there
# digits, in standard deviations, to which scores that tie are equal: fits end with a
# tol
_EQUAL = 6
_PLAYED = "outcomes", "weights", "offset"  # the columns of played_
_OPTIONS = ("method", "rate", "tol", "max_iter", "n_threads")


# ---- The engine on trusted arrays, for all who fit many models


def check_model(model: DynamicComparisons) -> None:
    """Raise ValueError unless it is a model whose parameters are in their range."""
    require(
        isinstance(model, DynamicComparisons), model, "model", "a DynamicComparisons"
    )
    if not (covariances := by_name(model.covariance)):
        raise ValueError(
            "covariance is an empty mapping; expected a covariance for each feature"
        )
    for k in covariances.values():
        require(
            isinstance(k, Covariance),
            k,
            "covariance",
            "a Covariance, or a mapping of names to them",
        )
    likelihood = model.likelihood
    require(
        isinstance(likelihood, Likelihood),
        likelihood,
        "likelihood",
        "a likelihood, such as Probit()",
    )
    check_choice(model.method, "method", ("ep", "kl"))
    good = (
        model.rate == "auto"
        if isinstance(model.rate, str)
        else 0 < as_real(model.rate) <= 1
    )
    require(good, model.rate, "rate", "'auto', or a number above 0 and up to 1")
    require(0 < as_real(model.tol) < np.inf, model.tol, "tol", "a positive number")
    check_count(model.max_iter, "max_iter", least=1)
    if model.n_threads is not None:
        check_count(model.n_threads, "n_threads", least=1)
    if model.mean is not None:
        require(
            isinstance(model.mean, Mapping),
            model.mean,
            "mean",
            "a mapping of names to prior means",
        )
        for name, value in model.mean.items():
            check_real(
                value, f"mean[{short_repr(name)}]", "a number", -LARGEST, LARGEST
            )


@np.errstate(**OVERFLOW)
def differences(
    x: Floats, starts: NDArray, mean: Floats, variance: Floats
) -> tuple[Floats, Floats]:
    """Mean and variance of x·s of each match, from those of the scores, one an entry of
    the design.

    `starts`, of one more than there are matches, says where the entries of each begin.
    """
    begin = starts[:-1] - starts[0]
    mean, variance = (
        np.add.reduceat(values, begin) for values in (x * mean, x * x * variance)
    )
    return check_finite(mean), check_finite(variance)


def check_problem(
    model: DynamicComparisons,
    matches: Matches,
    y: ArrayLike,
    sample_weight: PerMatch = None,
    offset: PerMatch = None,
) -> Floats:
    """Outcome, weight and offset of each match, (N, 3), after a check of all that a fit
    begins with."""
    check_model(model)
    check_matches(matches)
    if isinstance(model.likelihood, Results):
        y = given_outcomes(y, matches)
    outcomes = model.likelihood.check(y, len(matches))
    weights = check_weights(sample_weight, len(matches))
    _check_races(model, matches, weights)
    return np.column_stack([outcomes, weights, _offsets(offset, matches)])


def _check_races(model: DynamicComparisons, matches: Matches, weights: Floats) -> None:
    """A performance is of one time, and comparisons of two have no noise: no weights,
    and no "kl"."""
    own = np.array([is_performance(name) for name in matches.features])[
        matches.design.indices
    ]
    if not own.any():
        return
    require(
        model.method == "ep",
        model.method,
        "method",
        "'ep' where performances are compared, as in races",
    )
    rows, columns = matches.design.tocoo().coords
    rows = rows[own]
    columns = columns[own]
    wrong = np.zeros(len(matches), dtype=bool)
    wrong[rows] = ~np.isin(weights[rows], (0, 1))
    expected = "0 or 1 in races, where an order told twice is one: give an event twice, with two names"
    raise_if_any(wrong, weights, "sample_weight", expected)
    _, first, place = np.unique(columns, return_index=True, return_inverse=True)
    late = matches.time[rows] != matches.time[rows[first[place]]]
    name: Any = matches.features[columns[late.argmax()]]
    require(
        not late.any(),
        name[1],
        "an event",
        "another name than one at another time has: add the year",
    )


def _offsets(offset: PerMatch, matches: Matches, prior: Prior | None = None) -> Floats:
    """What is known of the difference of scores of each match: the offsets, and prior
    means."""
    known = np.zeros(len(matches))
    if offset is not None:
        known = check_array(offset, "offset", (len(matches),), "one value a match")
        raise_if_any(
            np.abs(known) > LARGEST, known, "offset", "numbers up to 1e100 in size"
        )
    if prior is not None and prior.mean:
        known = known + matches.design @ prior.means(matches.features)
    return known


@contextmanager
def laid_out(
    model: DynamicComparisons,
    matches: Matches,
    played: Floats,
    sites: Floats | None = None,
) -> Iterator[Sweep]:
    """The sweep by a model's parameters, from given pseudo-observations or none; its
    team works meanwhile."""
    with worker_pool(model.n_threads) as share:
        schedule = schedule_of(matches, prior := Prior(model.covariance, model.mean))
        if prior.mean:
            played = np.column_stack(
                [played[:, :2], _offsets(played[:, 2], matches, prior)]
            )
        sweep = Sweep(
            schedule, model.likelihood, played, ep=model.method == "ep", share=share
        )
        if sites is not None:
            sweep.entries[:, :2] = sites[schedule.entry_order]
        yield sweep


def infer(
    model: DynamicComparisons,
    matches: Matches,
    played: Floats,
    sites: Floats | None = None,
) -> DynamicComparisons:
    """Fit, from given pseudo-observations or from nothing, without checks or warnings."""
    with laid_out(model, matches, played, sites) as sweep:
        step = (
            Mixing(sweep) if model.rate == "auto" else Plain(sweep, as_real(model.rate))
        )
        trace, converged = fixed_point(
            sweep, step, tol=model.tol, max_iter=int(model.max_iter)
        )
    found = np.empty((len(sweep.entries), 2))
    schedule = sweep.schedule
    found[schedule.entry_order] = sweep.entries[:, :2]
    noted = dict(zip(TRACE, map(np.array, zip(*trace, strict=True)), strict=True))
    return model._filled(schedule.prior, matches, played, found, noted, converged)


def load(path: str | os.PathLike[str]) -> DynamicComparisons:
    """The model that `DynamicComparisons.save` wrote; it forecasts, and learns on, as
    the one that was saved.

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
    covariances, means = (
        dict(
            zip(
                as_names(name for name, _ in listed),
                (value for _, value in listed),
                strict=True,
            )
        )
        for listed in (header["covariance"], header.get("mean", []))
    )
    covariances = {
        name: Covariance.from_dict(found) for name, found in covariances.items()
    }
    model = DynamicComparisons(
        covariances[REST] if header["one_covariance"] else covariances,
        Likelihood.from_dict(header["likelihood"]),
        **header["options"],
        mean=means or None,
    )
    check_model(model)
    features = as_names(header["features"])
    shape = (len(arrays["time"]), len(features))
    # that integers point into the design, Matches checks
    for name, array in arrays.items():
        kind = {"indices": "i", "indptr": "i", "trace_accepted": "b"}.get(name, "f")
        require(
            array.dtype.kind == kind,
            array.dtype,
            f"the type of {name}",
            f"one of kind {kind!r}",
        )
    design = sparse.csr_array(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape
    )
    matches = Matches(design, arrays["time"], features)
    columns = header.get("columns")
    require(
        columns is None or isinstance(columns, dict),
        columns,
        "columns",
        "names of columns, or none",
    )
    matches.columns = columns
    played = check_problem(
        model, matches, arrays["outcomes"], *map(arrays.get, _PLAYED[1:])
    )
    sites = check_array(
        arrays["pseudo_observations"], "pseudo_observations", (matches.design.nnz, 2)
    )
    trace = {name: arrays[f"trace_{name}"] for name in TRACE}
    prior = Prior(model.covariance, model.mean)
    prior.of(features)  # each has one
    one = header["one_covariance"]
    same = one == prior.one and len(header["covariance"]) == len(prior.covariances)
    require(
        same,
        one,
        "one_covariance",
        "True with one covariance, else False with one for each name",
    )
    return model._filled(
        prior,
        matches,
        played,
        sites,
        trace,
        check_flag(header["converged"], "converged"),
    )
