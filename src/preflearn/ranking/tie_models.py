"""Models of paired comparisons with ties: Davidson's and ordinal models.

The models give the probabilities of three outcomes as functions of d = r(first) -
r(second), with a linear ranking function r(x) = w·x, and of a parameter for ties. If
the items are rows of the identity matrix, they are the classical models with one score
per item. The log-likelihoods are jointly concave in w and the parameter for ties, so
the penalized fit is unique.

References
----------
.. [Davidson1970] R. R. Davidson, "On extending the Bradley-Terry model to accommodate
   ties in paired comparison experiments", JASA 65, 1970.
.. [Firth1993] D. Firth, "Bias reduction of maximum likelihood estimates", Biometrika
  80, 1993.
.. [GlennDavid1960] W. A. Glenn, H. A. David, "Ties in paired-comparison experiments
   using a modified Thurstone-Mosteller model", Biometrics 16, 1960.
.. [Pollitt2012] A. Pollitt, "The method of adaptive comparative judgement", Assessment
   in Education 19, 2012.
.. [RaoKupper1967] P. V. Rao, L. L. Kupper, "Ties in paired-comparison experiments: A
   generalization of the Bradley-Terry model", JASA 62, 1967.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import brentq
from sklearn.utils.validation import check_is_fitted

from preflearn.core.diagnosis import (
    INFORMATIVE_PENALTY,
    as_compared,
    indicator_columns,
    warn_if_not_identified,
)
from preflearn.core.estimator import LinearComparison
from preflearn.core.outcome_losses import (
    LINKS,
    davidson_loss,
    davidson_probabilities,
    log_interval,
    ordinal_loss,
)
from preflearn.core.validation import (
    LARGEST,
    Floats,
    check_choice,
    check_flag,
    check_label_kinds,
    check_labels,
    check_number,
    check_scale,
    check_weights,
    require,
)
from preflearn.matches import as_outcomes
from preflearn.pairs import Incidence, Pairs
from preflearn.ranking.judgments import (
    Judgments,
    check_judges,
    merge_equal,
    outer_sum,
)
from preflearn.ranking.uncertainty import SOME_PAIRS, Uncertain
from preflearn.solvers.newton import warn_about_gap
from preflearn.solvers.smooth_losses import (
    DENSE,
    Minimum,
    TieLoss,
    minimise,
    problem_at,
)

# relative duality gap; reaching 1e-12 takes little longer than 1e-6
_TARGET_GAP = 1e-12
_WARNING_GAP = 1e-6
_FAILURE_GAP = 1e-2
_MAX_BIAS_ROUNDS = 500  # rounds of pseudo-counts
_BIAS_TOLERANCE = 1e-8  # largest change of the parameters in the last round
_TINY = np.finfo(np.float64).tiny
_MAX_LOG_TIES = 700.0  # the exponential of larger numbers overflows


class TieModel(Uncertain, LinearComparison):
    """Base class of the models with ties: penalized fit, scores, and errors."""

    alpha: float
    bias_reduced: bool = False  # only `Davidson` has this parameter
    objective_: float
    dual_gap_: float
    n_iter_: int

    _tie_loss: Callable[[], TieLoss]
    _set_ties: Callable[[float], None]
    probabilities: Callable[[Floats], Floats]

    def decision_function(self, pairs: Pairs | ArrayLike) -> Floats:
        """Return r(first) - r(second) for each pair, shape (m,); pairs as in `fit`."""
        check_is_fitted(self, "n_features_in_")
        return super().decision_function(as_compared(pairs, self.n_features_in_))

    def fit(
        self,
        pairs: Pairs | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
    ) -> Self:
        """Maximize the penalized likelihood by Newton's method.

        Parameters
        ----------
        pairs : Pairs or array-like
            Pairs of items with features, or integers of shape (m, 2), the row
            numbers of items without features. Each item without features gets a
            separate score; time and memory are then proportional to the number of
            pairs.
        y : array-like of shape (m,)
            Labels: +1 first better, -1 second better, 0 tie.
        sample_weight : array-like of shape (m,), optional
            Nonnegative weights of the pairs; weight 2 counts the pair twice.
        cluster : array-like of shape (m,), optional
            Cluster id of each pair, for example of its judge. Standard errors are then
            sandwich estimates, which remain valid if the answers of a judge depend on
            each other. Scores do not change. See the notes about unexplained effects of
            items, which all judges share.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If parameters or data are not valid, or all pairs are ties.

        Warns
        -----
        NotIdentifiedWarning
            If alpha is below 0.1, and scores depend on the penalty. For items without
            features, this is the case if groups never met, some items never lost to the
            others, or the outcomes do not bound the parameter for ties (see
            `diagnose`). For items with features, it is the case if w orders all
            preferences correctly, and no tied pair has a larger difference than a
            preference.
        OutcomeWarning
            If y contains only 1 and 0, or half points: 1, 1/2, and 0.
        """
        name = type(self).__name__
        alpha = check_number(self, "alpha", positive=True, most=LARGEST)
        reduced = check_flag(self.bias_reduced, "bias_reduced")
        pairs = as_compared(pairs)
        y = check_labels(as_outcomes(y), len(pairs))
        weights = check_weights(sample_weight, len(pairs))
        check_scale(pairs.items, "items")
        check_label_kinds(y[weights > 0], name, ties=False)
        given = Judgments(pairs.B, y, weights)
        merged, self._judges = merge_equal(given, cluster)
        self._data = (pairs.items, merged.B, merged.y, merged.weights, alpha)
        self._n_judgments = float(weights.sum())
        self._covariance_of_w = None
        optimum = self._minimum()
        if not (optimum.gap <= _FAILURE_GAP and optimum.t < _MAX_LOG_TIES):
            raise ValueError(
                f"{name} found no optimum (relative duality gap {optimum.gap:.1e}), with weights "
                f"up to {weights.max():.3g}; rescale sample_weight and the features to "
                "about 1"
            )
        remedy = f"raise alpha (now {alpha:g}), or standardize the features"
        warn_about_gap(name, optimum.gap, _WARNING_GAP, remedy)
        if alpha < INFORMATIVE_PENALTY:
            model = f"{name}(alpha={alpha:g})"
            _warn_if_not_identified(model, pairs.items, merged, optimum.w, reduced)
        self.coef_ = optimum.w
        self.objective_ = optimum.objective
        self.dual_gap_ = optimum.gap
        self.n_iter_ = optimum.n_iter
        self._x = np.append(optimum.w, optimum.t)
        self.n_features_in_ = pairs.shape[2]
        self._set_ties(optimum.t)
        return self

    def _minimum(self) -> Minimum:
        return minimise(self._tie_loss(), *self._data, _TARGET_GAP)

    def predict_proba(self, pairs: Pairs | ArrayLike) -> Floats:
        """Return probabilities of -1, 0, 1 for each pair, shape (m, 3)."""
        return self.probabilities(self.decision_function(pairs))

    def misfit(self, of: Literal["items", "judges"] = "items") -> pd.DataFrame:
        """Compute infit and outfit of items or judges, to see where the model fails.

        The observed result x of the first item is 1, 1/2 for a tie, or 0. Let E and V
        be its expectation and variance in the model, and z² = (x - E)²/V. The outfit is
        the mean of z² over the judgments of an item or a judge. The infit is the mean
        weighted by V, which is the sum of (x - E)² divided by the sum of V
        ([WrightMasters1982]_, chapter 5). Both are near 1 if the model holds. Larger
        values mean that answers contradict the scores; outfit is sensitive to a few
        unexpected answers. In comparative judgment, judges are reviewed if their infit
        exceeds the mean of the judges by two standard deviations [Pollitt2012]_.

        Parameters
        ----------
        of : {"items", "judges"}
            Units over which residuals are averaged; judges are given by `cluster` in
            `fit`.

        Returns
        -------
        table : DataFrame
            Table with the columns `judgments` (sum of weights), `infit`, and `outfit`.
            Its index contains the row numbers of the items, or the ids of the judges.

        Raises
        ------
        ValueError
            If `of` is "judges", and `fit` was called without `cluster`.

        Examples
        --------
        >>> index, judge = [[0, 1], [1, 2], [0, 2]] * 4, [1, 1, 1, 2, 2, 2] * 2
        >>> model = Davidson().fit(index, [1, 1, 1, 1, 1, -1] * 2, cluster=judge)
        >>> model.misfit("judges").round(2).to_dict("index")[2]
        {'judgments': 6.0, 'infit': 1.5, 'outfit': 1.82}
        """
        check_choice(of, "of", ("items", "judges"))
        check_is_fitted(self, "n_features_in_")
        X, B, y, weights, _ = self._data
        P = self.probabilities(B.differences(X @ self.coef_))
        expected = P[:, 2] + P[:, 1] / 2
        variance = P[:, 2] + P[:, 1] / 4 - expected**2
        variance = np.maximum(variance, _TINY)  # the variance of a certain outcome is 0
        squares = ((y + 1) / 2 - expected) ** 2
        if of == "items":
            index = np.arange(B.shape[1])
            table = abs(B.matrix()).T @ sparse.diags_array(weights)
        else:
            index, table = check_judges(self._judges)
        index = pd.Index(index, name=of[:-1])
        n = table @ np.ones(len(y))
        infit = (table @ squares) / np.maximum(table @ variance, _TINY)
        outfit = (table @ (squares / variance)) / np.maximum(n, _TINY)
        columns = {"judgments": n, "infit": infit, "outfit": outfit}
        return pd.DataFrame(columns, index=index).loc[n > 0]

    def _rows_and_scores(self, pairs: Pairs | ArrayLike | None) -> tuple[Any, Floats]:
        check_is_fitted(self, "n_features_in_")
        if pairs is not None:
            pairs = as_compared(pairs, self.n_features_in_)
            return pairs.B.matrix() @ pairs.items, self.decision_function(pairs)
        X: Any = self._data[0]
        size = max(X.shape)
        require(size <= DENSE, size, "the number of items or features", SOME_PAIRS)
        if not sparse.issparse(X):
            # A large offset would leave rounding errors after subtraction of the mean.
            X = X - X[0]
            X -= X.mean(axis=0)
        return X, X @ self.coef_

    def _covariance_function(self) -> Callable[[Any], Floats]:
        p = self.n_features_in_
        tie_loss = self._tie_loss()
        if p <= DENSE:
            if self._covariance_of_w is None:
                problem, point, _ = problem_at(tie_loss, *self._data, self._x)
                V = problem.inverse(point)
                self._covariance_of_w = V[:p, :p]
                if self._judges is not None:
                    M = outer_sum(self._judge_gradients(problem))
                    self._covariance_of_w = self._sandwich(V[:p], V[:p] @ M @ V[:p].T)
            C = self._covariance_of_w
            return lambda rows: rows @ (rows @ C).T
        problem, point, _ = problem_at(tie_loss, *self._data, self._x)
        solve = problem.solver(point)
        if self._judges is None:
            return lambda rows: rows @ solve(rows)[:, :p].T
        G = self._judge_gradients(problem)

        def covariance_of(rows: Any) -> Floats:
            solved = solve(rows)
            GV = G @ solved.T
            return self._sandwich(solved, GV.T @ GV)

        return covariance_of

    def _sandwich(self, V: Floats, middle: Floats) -> Floats:
        """Return V (G'G n/(n - 1) + alpha) V' for n judges, from V and V G'G V'.

        The gradient of the prior, alpha w, does not depend on the judges.
        """
        n = len(check_judges(self._judges, 2).ids)
        V = V[:, : self.n_features_in_]
        return n / (n - 1) * middle + self._data[-1] * V @ V.T

    def _judge_gradients(self, problem: Any) -> Any:
        """Return the gradients in (w, t) of the loss of each judge, (n_judges, p + 1)."""
        judges = check_judges(self._judges)
        X = problem.X
        _, B, y, _, _ = self._data
        d = B.differences(X @ self._x[:-1])
        loss = problem.tie_loss.loss(d, self._x[-1], y)
        of_scores = judges.weights @ (sparse.diags_array(loss.d) @ B.matrix())
        of_t = problem.free * (judges.weights @ loss.t)
        blocks = [of_scores @ X, of_t[:, None]]
        if sparse.issparse(X):
            return sparse.hstack(blocks, format="csr")
        return np.hstack(blocks)


class Davidson(TieModel):
    """Davidson's model: the Bradley-Terry model with ties, [Davidson1970]_.

    Choose it for comparisons of items (with or without features) if you want scores
    with standard errors and probabilities of a win, a tie, and a loss. Scores do not
    change in time; see `preflearn.dynamics` for models in which they do.

    For items with worths pi = e^r, the probability of a tie is proportional to the
    geometric mean of both worths::

        P(first) : P(tie) : P(second) = pi_1 : nu sqrt(pi_1 pi_2) : pi_2 = e^{d/2} : nu
        : e^{-d/2},

    d = w·(x_first - x_second). The fit minimizes alpha/2 w·w minus the log-likelihood:
    w has a Gaussian prior with variance 1/alpha, and nu has no prior.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, positive. Without a penalty, w would not be unique for
        one-hot items, and it would be infinite if the preferences can be separated.
    bias_reduced : bool
        Whether half the logarithm of the determinant of the information is added to the
        log-likelihood. This removes the bias of order 1/m ([Firth1993]_), and scores
        are finite for unbeaten items even if alpha is very small. It is available for
        at most 5,000 items or features.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        Coefficients w.
    nu_ : float
        Weight of ties; nu / (2 + nu) is the probability of a tie between items of equal
        score. It is 0 if the data contain no ties; the model is then the Bradley-Terry
        model.
    tau_ : float
        2 log(nu) if nu > 1, else 0: a tie is the most probable outcome if abs(d) <
        `tau_`.
    objective_, dual_gap_ : float
        Minimum, and the relative duality gap that proves it. With `bias_reduced`, the
        minimum includes minus half the logarithm of the determinant, and the gap is
        that of the problem with pseudo-counts.
    n_iter_, n_features_in_ : int

    Notes
    -----
    If nu < 1, a tie is never the most probable outcome. `predict` then returns 0 only
    at d = 0, where both preferences are equally probable. Only the label 0 is
    consistent with the swapped pair there.

    **Unexplained effects of items.** Features do not explain the score of an item
    completely, and the unexplained part affects all its comparisons, by all judges. The
    standard errors of w ignore this, with and without clusters. To include it, give
    each item an additional score, and set 1/alpha to the variance of the unexplained
    part (see the guide). The columns `np.hstack([np.eye(n), 10 * features])` do this.

    With t = log(nu), -log P is the log-sum-exp of (d/2, t, -d/2) minus one of them,
    which is jointly convex in (w, t). At the optimum the expected number of ties equals
    the observed one.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = Pairs(np.eye(3), [[0, 1], [1, 2], [2, 0], [0, 1]])
    >>> model = Davidson(alpha=0.1).fit(pairs, [1, 1, -1, 0])
    >>> model.predict_proba(pairs).round(2).tolist()
    [[0.14, 0.33, 0.53], [0.04, 0.22, 0.74], [0.86, 0.13, 0.01], [0.14, 0.33, 0.53]]
    """

    nu_: float

    def __init__(self, alpha: float = 1e-3, bias_reduced: bool = False) -> None:
        self.alpha = alpha
        self.bias_reduced = bias_reduced

    def _tie_loss(self) -> TieLoss:
        return TieLoss(davidson_loss, start=0.0, least=-math.inf)

    def _minimum(self) -> Minimum:
        if self.bias_reduced:
            return _reduce_bias(self._tie_loss(), *self._data, _TARGET_GAP)
        return super()._minimum()

    def _set_ties(self, t: float) -> None:
        self.nu_ = math.exp(t)
        self.tau_ = max(0.0, 2 * t)

    def probabilities(self, d: Floats) -> Floats:
        """Return the probabilities of -1, 0, 1 at score differences d, shape (m, 3)."""
        return davidson_probabilities(d, self.nu_)


class OrdinalComparison(TieModel):
    """Ordinal model of comparisons with ties, with logistic or normal noise.

    Choose it instead of `Davidson` if you think of a tie as a difference that is too
    small to notice, or if you want normal noise. A preference is a noisy difference
    beyond a threshold t: P(first) = F(d - t), P(second) = F(-d - t).

    F is the logistic function (the model of [RaoKupper1967]_) or the normal
    distribution function (the model of [GlennDavid1960]_, Thurstone's model with ties).
    P(tie) = F(t - d) - F(-t - d), with d = w·(x_first - x_second). The fit minimizes
    alpha/2 w·w minus the log-likelihood: w has a Gaussian prior with variance 1/alpha,
    and t > 0 has no prior.

    Parameters
    ----------
    link : {"logit", "probit"}
        Distribution of the noise; its scale is the unit of d and t.
    alpha : float
        Strength of the penalty, positive. Without a penalty, w would not be unique for
        one-hot items, and it would be infinite if the preferences can be separated.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        Coefficients w.
    threshold_ : float
        Threshold t. It is 0 if the data contain no ties.
    tau_ : float
        A tie is the most probable outcome if abs(d) < `tau_`. It solves 2F(d - t) +
        F(-d - t) = 1 and is smaller than t. It is 0 if 3F(-t) > 1 (for the logit, t <
        log 2). A tie is then never the most probable outcome, and `predict` returns 0
        only at d = 0, where both preferences are equally probable.
    objective_, dual_gap_ : float
        Minimum, and the relative duality gap that proves it.
    n_iter_, n_features_in_ : int

    Notes
    -----
    Standard errors of w ignore unexplained effects of items; see the notes of
    `Davidson`.

    F has a log-concave density, so log F(b), and log(F(b) - F(a)) for a < b, are
    jointly concave in (a, b) (Prékopa); a and b are linear in (w, t). For the logit,
    P(tie) = (e^{2t} - 1) P(first) P(second).

    Examples
    --------
    >>> import numpy as np
    >>> pairs = Pairs(np.eye(3), [[0, 1], [1, 2], [2, 0], [0, 1]])
    >>> model = OrdinalComparison("probit", alpha=0.1).fit(pairs, [1, 1, -1, 0])
    >>> model.predict_proba(pairs).round(2).tolist()
    [[0.03, 0.47, 0.5], [0.0, 0.08, 0.92], [0.99, 0.01, 0.0], [0.03, 0.47, 0.5]]
    """

    threshold_: float

    def __init__(
        self, link: Literal["logit", "probit"] = "logit", alpha: float = 1e-3
    ) -> None:
        self.link = link
        self.alpha = alpha

    def _tie_loss(self) -> TieLoss:
        check_choice(self.link, "link", tuple(LINKS))
        loss = partial(ordinal_loss, link=LINKS[self.link])
        return TieLoss(loss, start=1.0, least=0.0)

    def _set_ties(self, t: float) -> None:
        self.threshold_ = t
        link = LINKS[self.link]

        def excess(d: float) -> float:  # P(first) - P(tie)
            first, second = np.exp(link.log_cdf(np.array([d - t, -d - t])))
            return float(2 * first + second - 1)

        self.tau_ = 0.0
        if excess(0.0) < 0:
            root: Any = brentq(excess, 0.0, t, xtol=1e-14)
            self.tau_ = float(root)

    def probabilities(self, d: Floats) -> Floats:
        """Return the probabilities of -1, 0, 1 at score differences d, shape (m, 3)."""
        t = self.threshold_
        log_cdf = LINKS[self.link].log_cdf
        second = np.exp(log_cdf(-d - t))
        first = np.exp(log_cdf(d - t))
        tie = np.zeros_like(d)
        if t > 0:
            tie = np.exp(log_interval(d, t, log_cdf))
        return np.column_stack([second, tie, first])


def _warn_if_not_identified(
    model: str, items: Any, merged: Judgments, w: Floats, reduced: bool
) -> None:
    """Warn if only the small alpha keeps the scores of weighted pairs finite."""
    used = merged.weights > 0
    B = merged.B[used]
    y = merged.y[used]
    d = B.differences(items @ w)
    wins = (y * d)[y != 0]
    ties = np.abs(d[y == 0])
    # if ties have smaller differences than all preferences, scores may grow with t
    ties_unbounded = len(ties) > 0 and bool(0 < wins.min() >= ties.max())
    names = range(items.shape[1])
    ids = indicator_columns(items)
    if ids is not None:
        index = ids[B.index]
        warn_if_not_identified(
            model, names, index, y, reduced, ties_unbounded=ties_unbounded
        )
    elif ties_unbounded or (y * d > 0).all():
        warn_if_not_identified(
            model, names, None, y, reduced, ties_unbounded=ties_unbounded
        )


def _reduce_bias(
    tie_loss: TieLoss,
    X: Any,
    B: Incidence,
    y: NDArray[np.int8],
    weights: Floats,
    alpha: float,
    tol: float,
) -> Minimum:
    """Fit with half the log-determinant of the information added, [Firth1993]_.

    The gradient of this term equals that of pseudo-counts p_c q_c / 2 for each outcome
    c of each pair. q_c is the squared length of the statistic of c minus its mean, in
    the metric of the inverse information.
    """
    size = max(X.shape)
    expected = f"at most {DENSE} with bias_reduced=True"
    require(size <= DENSE, size, "the number of items or features", expected)
    free = bool((y[weights > 0] == 0).any())
    p = X.shape[1]
    outcomes = (-1, 1)
    t = tie_loss.least
    if free:
        outcomes = (-1, 0, 1)
        t = tie_loss.start
    # the pairs themselves, and a copy for the pseudo-counts of each outcome
    repeated = Incidence(np.tile(B.index, (1 + len(outcomes), 1)), B.shape[1])
    labels = np.concatenate([y, np.repeat(np.array(outcomes, dtype=np.int8), len(y))])
    w = np.zeros(p)
    for _ in range(_MAX_BIAS_ROUNDS):
        problem, point, _ = problem_at(
            tie_loss, X, B, y, weights, alpha, np.append(w, t)
        )
        V = problem.inverse(point)
        a = B.gram(X @ (X @ V[:p, :p]).T).diagonal()
        b = B.differences(X @ V[:p, p])
        P = davidson_probabilities(B.differences(X @ w), math.exp(t))
        mean = P[:, 2] - P[:, 0]
        counts = [weights]
        for c in outcomes:
            s = (c - mean) / 2
            u = free * ((c == 0) - P[:, 1])
            q = s * s * a + 2 * s * u * b + u * u * V[p, p]
            counts.append(weights * P[:, c + 1] * q / 2)
        optimum = minimise(
            tie_loss, X, repeated, labels, np.concatenate(counts), alpha, tol
        )
        change = np.abs(optimum.w - w).max()
        if free:
            change = max(change, abs(optimum.t - t))
        w = optimum.w
        t = optimum.t
        if change <= _BIAS_TOLERANCE:
            x = np.append(w, t)
            problem, point, _ = problem_at(tie_loss, X, B, y, weights, alpha, x)
            information = problem.hessian(point)[: p + free, : p + free]
            logdet = float(np.linalg.slogdet(information)[1])
            return optimum._replace(objective=point.value - logdet / 2)
    return optimum._replace(gap=math.inf)  # pyright: ignore[reportPossiblyUnboundVariable]
