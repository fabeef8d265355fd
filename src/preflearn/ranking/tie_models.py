"""Models of paired comparisons with ties: Davidson's, and the ordinal ones with a
threshold.

All give the probabilities of three outcomes as functions of d = r(first) - r(second),
with a linear ranking function r(x) = w·x, and one more parameter for ties. On items
that are rows of the identity matrix they are the classical models, with a strength for
each item. The log-likelihoods are jointly concave in w and the parameter of ties, so
the fit is unique.

References
----------
.. [Davidson1970] R. R. Davidson, "On extending the Bradley-Terry model to accommodate
   ties in paired comparison experiments", JASA 65, 1970.
.. [Firth1993] D. Firth, "Bias reduction of maximum likelihood estimates", Biometrika
  80, 1993.
.. [GlennDavid1960] W. A. Glenn, H. A. David, "Ties in paired-comparison experiments
   using a modified Thurstone-Mosteller model", Biometrics 16, 1960.
.. [RaoKupper1967] P. V. Rao, L. L. Kupper, "Ties in paired-comparison experiments: A
   generalization of the Bradley-Terry model", JASA 62, 1967.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator, cg
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
    check_kinds,
    check_labels,
    check_number,
    check_query_ids,
    check_scale,
    check_weights,
    require,
)
from preflearn.matches import as_outcomes
from preflearn.pairs import Incidence, Pairs
from preflearn.ranking.uncertainty import SOME_PAIRS, Uncertain
from preflearn.solvers.newton import warn_about_gap
from preflearn.solvers.smooth_losses import DENSE, Minimum, TieLaw, minimise, problem_at

# relative duality gaps; Newton steps cost little more for 1e-12 than for 1e-6
_TARGET_GAP = 1e-12
_WARNING_GAP = 1e-6
_FAILURE_GAP = 1e-2
_MAX_BIAS_ROUNDS = 500  # rounds of pseudo-counts
_BIAS_TOLERANCE = 1e-8  # change of the parameters in the last round
_CG_TOLERANCE = 1e-6  # the relative error of a variance is its square
_MAX_LOG_TIES = 700.0  # the exponential of more overflows


class TieModel(Uncertain, LinearComparison):
    """What both models share: w of lowest penalised loss, scores w·x, their errors."""

    alpha: float
    bias_reduced: bool = False  # a parameter of Davidson alone
    objective_: float
    dual_gap_: float
    n_iter_: int

    _law: Callable[[], TieLaw]
    _set_ties: Callable[[float], None]
    probabilities: Callable[[Floats], Floats]

    def decision_function(self, pairs: Pairs | ArrayLike) -> Floats:
        """r(first) - r(second) for each pair, shape (m,); pairs as in `fit`."""
        check_is_fitted(self, "n_features_in_")
        return super().decision_function(as_compared(pairs, self.n_features_in_))

    def fit(
        self,
        pairs: Pairs | ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
    ) -> Self:
        """Maximise the penalised likelihood by Newton's method.

        Parameters
        ----------
        pairs : Pairs or array-like
            Items of pairs, shape (m, 2, p); or integers of shape (m, 2), the row
            numbers of items without features. Each of these gets its own score, in time
            and memory proportional to the number of pairs.
        y : array-like of shape (m,)
            +1 first better, -1 second better, 0 tie.
        sample_weight : array-like of shape (m,), optional
            Weights of the pairs, not negative; a weight of two is the same pair twice.
        cluster : array-like of shape (m,), optional
            An id for each pair, of its judge for instance: standard errors are then
            those of the sandwich, which hold where the answers of one judge depend on
            each other. Scores do not change. Judges share items: see the notes.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter is out of range, all pairs are ties, or the data are not as
            described.

        Warns
        -----
        NotIdentifiedWarning
            If alpha is below 0.1 and, of items without features, groups never met, or
            somebody won or lost all (`diagnose`); of others, if the w that was found is
            right on all pairs.
        OutcomeWarning
            If y holds only 1 and 0, or half points: 1, 1/2 and 0.
        """
        name = type(self).__name__
        alpha = check_number(self, "alpha", positive=True, most=LARGEST)
        reduced = check_flag(self.bias_reduced, "bias_reduced")
        pairs = as_compared(pairs)
        y = check_labels(as_outcomes(y), len(pairs))
        weights = check_weights(sample_weight, len(pairs))
        cluster = check_query_ids(cluster, len(pairs), "cluster", "cluster id", "pair")
        check_scale(pairs.items, "items")
        check_kinds(y[weights > 0], name, ties=False)
        self._data = (pairs.items, pairs.B, y, weights, alpha)
        self._cluster = cluster
        self._inverse = None
        optimum = self._minimum()
        if not (optimum.gap <= _FAILURE_GAP and optimum.t < _MAX_LOG_TIES):
            raise ValueError(
                f"{name} found no optimum (duality gap {optimum.gap:.1e} of the objective): weights "
                f"go up to {weights.max():.3g}; expected weights and features nearer to 1"
            )
        remedy = f"raise alpha = {alpha:g}, or standardise the features"
        warn_about_gap(name, optimum.gap, _WARNING_GAP, remedy)
        if alpha < INFORMATIVE_PENALTY:
            model = f"{name}(alpha={alpha:g})"
            _warn_if_not_identified(model, pairs, y, weights > 0, optimum.w, reduced)
        self.coef_ = optimum.w
        self.objective_ = optimum.objective
        self.dual_gap_ = optimum.gap
        self.n_iter_ = optimum.n_iter
        self._x = np.append(optimum.w, optimum.t)
        self.n_features_in_ = pairs.shape[2]
        self._set_ties(optimum.t)
        return self

    def _minimum(self) -> Minimum:
        return minimise(self._law(), *self._data, _TARGET_GAP)

    def predict_proba(self, pairs: Pairs | ArrayLike) -> Floats:
        """Probabilities of the outcomes -1, 0, 1 for each pair, shape (m, 3)."""
        return self.probabilities(self.decision_function(pairs))

    def _rows_and_scores(self, pairs: Pairs | ArrayLike | None) -> tuple[Any, Floats]:
        check_is_fitted(self, "n_features_in_")
        if pairs is not None:
            pairs = as_compared(pairs, self.n_features_in_)
            return pairs.B.matrix() @ pairs.items, self.decision_function(pairs)
        X: Any = self._data[0]
        size = max(X.shape)
        require(size <= DENSE, size, "the number of items or features", SOME_PAIRS)
        if sparse.issparse(X):
            X = X.toarray()
        else:
            X = X - X[0]  # a large offset would leave rounding after the mean is taken
        X = X - X.mean(axis=0)
        return X, X @ self.coef_

    def _covariance_of(self, rows: Any) -> Floats:
        p = self.n_features_in_
        x = self._x
        if self._inverse is not None and self._cluster is None:
            return rows @ self._inverse[:p, :p] @ rows.T
        problem, point, order = problem_at(self._law(), *self._data, x)
        if p > DENSE:
            H = LinearOperator((p + 1, p + 1), lambda v: problem.times(point, v))  # pyright: ignore[reportCallIssue]
            M = sparse.diags_array(1 / problem.diagonal(point))
            rows = sparse.csr_array(rows).toarray()
            targets = [np.append(row, 0.0) for row in rows]
            solved = np.array([cg(H, v, rtol=_CG_TOLERANCE, M=M)[0] for v in targets])
        else:
            if self._inverse is None:
                self._inverse = problem.inverse(point)
            solved = rows @ self._inverse[:p]
        if self._cluster is None:
            return rows @ solved[:, :p].T
        cluster = np.unique(self._cluster[order], return_inverse=True)[1]
        n = int(cluster.max()) + 1
        require(n > 1, n, "the number of clusters", "at least 2")
        d = problem.B.differences(problem.X @ x[:p])
        loss = problem.law.loss(d, x[p], problem.y)
        m = len(cluster)
        sums = sparse.csr_array((np.ones(m), (cluster, np.arange(m))))
        weighted = sparse.diags_array(problem.weights * loss.d) @ problem.B.matrix()
        # gradients G of the clusters, times V
        GV = (sums @ weighted @ problem.X) @ solved[:, :p].T
        GV += np.outer(sums @ (problem.weights * loss.t * problem.free), solved[:, p])
        solved = solved[:, :p]  # the gradient of the prior does not vary with clusters
        return n / (n - 1) * GV.T @ GV + self._data[-1] * solved @ solved.T


class Davidson(TieModel):
    """The model of [Davidson1970]_: Bradley and Terry's, with ties between equals.

    For items of worth pi = e^r, a tie has a probability in proportion to the geometric
    mean of both::

        P(first) : P(tie) : P(second) = pi_1 : nu sqrt(pi_1 pi_2) : pi_2 = e^{d/2} : nu
        : e^{-d/2},

    d = w·(x_first - x_second). The fit minimises alpha/2 w·w minus the sum of the
    log-likelihoods: w has a Gaussian prior of variance 1/alpha, nu has none.

    Parameters
    ----------
    alpha : float
        Strength of the penalty, positive: without, w is not unique on items that are
        one-hot, and infinite where the preferences can be separated.
    bias_reduced : bool
        Whether half the logarithm of the determinant of the information is added to the
        likelihood, which removes the bias of order 1/m ([Firth1993]_): scores are
        finite even for unbeaten items, also where alpha is very small. For at most
        5,000 items and features.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        The coefficients w.
    nu_ : float
        Weight of ties; nu / (2 + nu) is the probability of a tie between equals. It is
        0, the limit, where the data hold no ties: then this is the model of Bradley and
        Terry.
    tau_ : float
        2 log(nu) if nu > 1, else 0: a tie is the most probable outcome where abs(d) <
        `tau_`.
    objective_, dual_gap_ : float
        The minimum, and the relative duality gap that proves it; where bias is reduced,
        the minimum is less half the logarithm of the determinant, and the gap that of
        pseudo-counts.
    n_iter_, n_features_in_ : int

    Notes
    -----
    Where nu < 1 a tie is never the most probable outcome; then `predict` says 0 only at
    d = 0, where both preferences are equally probable and no answer but this is the
    same for the swapped pair.

    Features alone leave something of each item unexplained, which all judges of it
    share. No errors of weights allow for that, with clusters or without: also give each
    item its own score, by columns `np.hstack([np.eye(n), 10 * features])`, and
    1/alpha the variance of what features leave over (the guide).

    With t = log(nu), -log P is the logarithm of a sum of exponentials of (d/2, t, -d/2)
    minus one of them: jointly convex in (w, t). At the optimum the expected number of
    ties is the observed one.

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

    def _law(self) -> TieLaw:
        return TieLaw(davidson_loss, start=0.0, least=-math.inf)

    def _minimum(self) -> Minimum:
        if self.bias_reduced:
            return _reduce_bias(self._law(), *self._data, _TARGET_GAP)
        return super()._minimum()

    def _set_ties(self, t: float) -> None:
        self.nu_ = math.exp(t)
        self.tau_ = max(0.0, 2 * t)

    def probabilities(self, d: Floats) -> Floats:
        """Probabilities of the outcomes -1, 0, 1 at score differences d, (m, 3)."""
        return davidson_probabilities(d, self.nu_)


class OrdinalComparison(TieModel):
    """A preference is a noisy difference beyond a threshold: P(first) = F(d - t),
    P(second) = F(-d - t).

    F is the logistic function (the model of [RaoKupper1967]_) or the normal
    distribution function (that of [GlennDavid1960]_: Thurstone's, with ties), and
    P(tie) = F(t - d) - F(-t - d), with d = w·(x_first - x_second). The fit minimises
    alpha/2 w·w minus the sum of the log-likelihoods: w has a Gaussian prior of variance
    1/alpha, t > 0 has none.

    Parameters
    ----------
    link : {"logit", "probit"}
        The distribution of the noise; its unit is that of d and t.
    alpha : float
        Strength of the penalty, positive: without, w is not unique on items that are
        one-hot, and infinite where the preferences can be separated.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        The coefficients w.
    threshold_ : float
        The threshold t. It is 0, the limit, where the data hold no ties.
    tau_ : float
        A tie is the most probable outcome where abs(d) < `tau_`. It solves 2F(d - t) +
        F(-d - t) = 1 and is smaller than t; it is 0 where 3F(-t) > 1 (for the logit, t
        < log 2): then a tie is never the most probable, and `predict` says 0 only at d
        = 0, where both preferences are equally probable.
    objective_, dual_gap_ : float
        The minimum, and the relative duality gap that proves it.
    n_iter_, n_features_in_ : int

    Notes
    -----
    Features alone leave something of each item unexplained, which no errors of weights
    allow for: see the notes of `Davidson` for what does.

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

    def _law(self) -> TieLaw:
        check_choice(self.link, "link", tuple(LINKS))
        loss = partial(ordinal_loss, link=LINKS[self.link])
        return TieLaw(loss, start=1.0, least=0.0)

    def _set_ties(self, t: float) -> None:
        self.threshold_ = t
        link = LINKS[self.link]

        def excess(d: float) -> float:  # of P(first) over P(tie)
            first, second = np.exp(link.log_cdf(np.array([d - t, -d - t])))
            return float(2 * first + second - 1)

        self.tau_ = 0.0
        if excess(0.0) < 0:
            root: Any = brentq(excess, 0.0, t, xtol=1e-14)
            self.tau_ = float(root)

    def probabilities(self, d: Floats) -> Floats:
        """Probabilities of the outcomes -1, 0, 1 at score differences d, (m, 3)."""
        t = self.threshold_
        log_cdf = LINKS[self.link].log_cdf
        second = np.exp(log_cdf(-d - t))
        first = np.exp(log_cdf(d - t))
        tie = np.zeros_like(d)
        if t > 0:
            tie = np.exp(log_interval(d, t, log_cdf))
        return np.column_stack([second, tie, first])


def _warn_if_not_identified(
    model: str,
    pairs: Pairs,
    y: NDArray[np.int8],
    used: NDArray[np.bool_],
    w: Floats,
    reduced: bool,
) -> None:
    """Warn where only a small alpha keeps the scores of used pairs finite."""
    ids = indicator_columns(pairs.items)
    index = None
    if ids is not None:
        index = ids[pairs.index[used]]
    elif not (y * pairs.B.differences(pairs.items @ w) > 0)[used].all():
        return
    warn_if_not_identified(model, range(pairs.shape[2]), index, y[used], reduced)


def _reduce_bias(
    law: TieLaw,
    X: Any,
    B: Incidence,
    y: NDArray[np.int8],
    weights: Floats,
    alpha: float,
    tol: float,
) -> Minimum:
    """The fit with half the logarithm of the determinant of the information added
    [Firth1993]_.

    Its slope is that of pseudo-counts p_c q_c / 2 of each outcome c of each pair, with
    q_c the squared length of c's statistic minus its mean, by the inverse of the
    information.
    """
    size = max(X.shape)
    expected = f"at most {DENSE}"
    require(size <= DENSE, size, "the number of items or features", expected)
    free = bool((y[weights > 0] == 0).any())
    p = X.shape[1]
    outcomes = (-1, 1)
    t = law.least
    if free:
        outcomes = (-1, 0, 1)
        t = law.start
    # the pairs once as they are, and once for the pseudo-counts of each outcome
    repeated = Incidence(np.tile(B.index, (1 + len(outcomes), 1)), B.shape[1])
    labels = np.concatenate([y, np.repeat(np.array(outcomes, dtype=np.int8), len(y))])
    w = np.zeros(p)
    for _ in range(_MAX_BIAS_ROUNDS):
        problem, point, _ = problem_at(law, X, B, y, weights, alpha, np.append(w, t))
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
        optimum = minimise(law, X, repeated, labels, np.concatenate(counts), alpha, tol)
        change = np.abs(optimum.w - w).max()
        if free:
            change = max(change, abs(optimum.t - t))
        w = optimum.w
        t = optimum.t
        if change <= _BIAS_TOLERANCE:
            x = np.append(w, t)
            problem, point, _ = problem_at(law, X, B, y, weights, alpha, x)
            information = problem.hessian(point)[: p + free, : p + free]
            logdet = float(np.linalg.slogdet(information)[1])
            return optimum._replace(objective=point.value - logdet / 2)
    return optimum._replace(gap=math.inf)  # pyright: ignore[reportPossiblyUnboundVariable]
