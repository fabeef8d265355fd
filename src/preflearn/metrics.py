"""Measures of predicted comparisons, rankings and probabilities, from the five papers.

All take the truth first and weights last. A row of weight 2 counts twice, and a row of
weight 0 does not count.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from preflearn.core.pair_counts import count_pairs, sweep_threshold
from preflearn.core.validation import (
    Floats,
    as_floats,
    as_real,
    check_array,
    check_choice,
    check_labels,
    check_left,
    check_weights,
    raise_if_any,
    require,
)

__all__ = [
    "best_threshold",
    "comparison_auc",
    "comparison_loss",
    "comparison_roc",
    "disagreement_error",
    "log_loss",
    "ranking_loss",
    "threshold",
]


def comparison_loss(
    y: ArrayLike, predicted: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """The fraction of pairs with a wrong predicted label: eq. 2 of [Venuto2017]_.

    Parameters
    ----------
    y : array-like of shape (m,)
        Labels: +1 first better, -1 second better, 0 no difference.
    predicted : array-like of shape (m,)
        Predicted labels, -1, 0 or 1.
    sample_weight : array-like of shape (m,), optional
        Weights of the pairs, not negative.

    Returns
    -------
    loss : float
        Between 0 and 1.

    Raises
    ------
    ValueError
        On other labels, unequal lengths, no pairs, or weights that are negative or all
        zero.

    Examples
    --------
    >>> comparison_loss([1, 0, -1, -1], [1, 1, -1, 0])
    0.5
    """
    predicted = check_array(predicted, "predicted", ("m",), "one label per pair")
    strange = ~np.isin(predicted, (-1, 0, 1))
    raise_if_any(strange, predicted, "predicted", "one of [-1, 0, 1]")
    wrong = predicted != check_labels(y, len(predicted))
    return float(np.average(wrong, weights=check_weights(sample_weight, len(wrong))))


def comparison_roc(
    y: ArrayLike, differences: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[Floats, Floats, Floats]:
    """The ROC curve of a ranking function as its threshold falls: Table 3 of
    [Venuto2017]_.

    The prediction at threshold tau is t_tau(differences) of eq. 4. A tie that is
    predicted to differ is a false positive; a preference that is predicted to differ in
    the right direction is a true positive. A preference in the wrong direction is
    missed at every threshold, so that the true positive rate ends below 1.

    Parameters
    ----------
    y : array-like of shape (m,)
        Labels: +1 first better, -1 second better, 0 no difference.
    differences : array-like of shape (m,)
        Predicted r(first) - r(second), as `decision_function` of an estimator returns
        them.
    sample_weight : array-like of shape (m,), optional
        Weights of the pairs, not negative.

    Returns
    -------
    fpr, tpr : ndarray of shape (k + 1,)
        False and true positive rate, from (0, 0) to (1, largest true positive rate),
        for k distinct values of ``abs(differences)``.
    thresholds : ndarray of shape (k + 1,)
        Those values in decreasing order, then 0: each is the smallest tau of its point.
        If some difference is 0, no tau reaches the last point: it closes the curve at
        (1, the rate at tau = 0).

    Raises
    ------
    ValueError
        On bad labels, differences or weights, and unless there is a tie and a
        preference.

    Examples
    --------
    >>> fpr, tpr, thresholds = comparison_roc([1, -1, 0, 0], [3.0, 2.0, 1.0, 0.0])
    >>> fpr.tolist(), tpr.tolist(), thresholds.tolist()
    ([0.0, 0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 0.5, 0.5, 0.5], [3.0, 2.0, 1.0, 0.0, 0.0])
    """
    sweep = sweep_threshold(y, differences, sample_weight)
    for total, labels in ((sweep.ties, "0"), (sweep.preferences, "-1 and 1")):
        expected = "a positive one, since a ROC curve needs both ties and preferences"
        require(
            total > 0, float(total), f"the weight of labels {labels} in y", expected
        )
    fpr = np.append(0.0, sweep.false_alarms / sweep.ties)
    tpr = np.append(0.0, sweep.hits / sweep.preferences)
    return fpr, tpr, np.append(sweep.magnitudes, 0.0)


def comparison_auc(
    y: ArrayLike, differences: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """The area under `comparison_roc`, by trapezoids (sections 4 and 5.2 of
    [Venuto2017]_).

    Parameters, results and errors as in `comparison_roc`.

    Returns
    -------
    auc : float
        Between 0 and 1; see the notes for the value that says "no skill", which is not
        1/2.

    Notes
    -----
    Write d for the differences. The area is the mean over all (preference i, tie j) of

    .. math:: 1[y_i d_i > 0] \\left(1[|d_i| > |d_j|] + \\tfrac12 1[|d_i| = |d_j|]\\right),

    because each tie adds a trapezoid (or, at d_j = 0, a part of the closing segment)
    whose mean height is that sum over i. So it is the fraction of preferences with the
    right direction, times the ordinary AUC of abs(d) as a detector of those preferences
    among all pairs that are ties or right. It follows:

    - 1 if and only if all directions are right and each preference has a larger abs(d)
      than each tie;
    - at most the fraction of right directions, and 0 for a constant score;
    - 1/4 on average for differences drawn independently of each other from one
      continuous symmetric distribution, for any labels;
    - half the fraction of the more frequent of the labels -1 and 1, for the trivial
      predictor of eq. 20.

    Examples
    --------
    >>> comparison_auc([1, -1, 0, 0], [3.0, -2.0, 1.0, 0.0])
    1.0
    >>> comparison_auc([1, -1, 0, 0], [1.0, 1.0, 1.0, 1.0])
    0.25
    """
    fpr, tpr, _ = comparison_roc(y, differences, sample_weight)
    return float(np.trapezoid(tpr, fpr))


def best_threshold(
    y: ArrayLike, differences: ArrayLike, sample_weight: ArrayLike | None = None
) -> tuple[float, float]:
    """The threshold tau >= 0 with the lowest zero-one loss: eq. 6 of [Venuto2017]_.

    The loss is constant between neighbouring values of abs(differences), so one sort
    and cumulative sums find its exact minimum, for which the paper searches a grid.

    Parameters
    ----------
    y : array-like of shape (m,)
        Labels: +1 first better, -1 second better, 0 no difference.
    differences : array-like of shape (m,)
        Predicted r(first) - r(second).
    sample_weight : array-like of shape (m,), optional
        Weights of the pairs, not negative.

    Returns
    -------
    tau : float
        The midpoint of the widest interval of minimisers within [0,
        max(abs(differences))]; of several equally wide, the one at the smaller tau. It
        scales with the differences.
    loss : float
        ``comparison_loss(y, threshold(differences, tau))``.

    Raises
    ------
    ValueError
        On bad labels, differences or weights.

    Examples
    --------
    >>> best_threshold([1, -1, 0, 0], [3.0, -2.0, 1.0, 0.0])
    (1.5, 0.0)
    """
    sweep = sweep_threshold(y, differences, sample_weight)
    total = sweep.preferences + sweep.ties
    # Row 0 predicts ties only; row i predicts a difference for the i largest magnitudes.
    # A last magnitude of 0 adds an empty interval, never better than the one before.
    losses = np.append(0.0, sweep.false_alarms - sweep.hits) + sweep.preferences
    lower = np.append(sweep.magnitudes, 0.0)
    upper = np.append(sweep.magnitudes[0], sweep.magnitudes)
    best = losses <= losses.min() + 1e-12 * total  # equal up to rounding
    edges = np.diff(np.concatenate([[0], best, [0]]).astype(np.int8))
    begin = np.flatnonzero(edges == 1)[::-1]
    end = np.flatnonzero(edges == -1)[::-1] - 1
    widest = np.argmax(upper[begin] - lower[end])
    low = lower[end[widest]]
    high = upper[begin[widest]]
    tau = low + (high - low) / 2
    if tau >= high:  # between adjacent floats the midpoint rounds up
        tau = low
    return float(tau), float(losses[begin[widest]] / total)


def disagreement_error(
    scores: ArrayLike,
    predicted: ArrayLike,
    qid: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    ties: Literal["keep", "drop"] = "keep",
) -> float:
    """Disagreement of predicted with true scores over pairs of one query: eq. 1 of
    [Tsivtsivadze2013]_.

    The error is half the sum of W_ij abs(sign(s_i - s_j) - sign(f_i - f_j)) over all
    ordered i, j, with W_ij = 1 for two items of one query: an inverted pair counts 2, a
    pair that is tied in one of s and f only counts 1. It is divided by the sum of W,
    its largest value for scores without ties: then 0 is perfect, 1 is reversed, and a
    random or a constant prediction has 1/2.

    Parameters
    ----------
    scores : array-like of shape (n,)
        True scores s; larger is better.
    predicted : array-like of shape (n,)
        Predicted scores f.
    qid : array-like of shape (n,), optional
        Query ids: only items with equal ids are compared. None: one query.
    sample_weight : array-like of shape (n,), optional
        Weights of the items, not negative; a pair has the product of its two (W_ij =
        w_i w_j).
    ties : {"keep", "drop"}
        Whether pairs with s_i = s_j count. "keep", as in eq. 1: each adds 1/2 if the
        prediction orders it. "drop" (W_ij = 0): the error is 1 minus the concordance
        index.

    Returns
    -------
    error : float

    Raises
    ------
    ValueError
        On values that are not finite, unequal lengths, bad weights, or where no pair is
        left.

    Examples
    --------
    >>> disagreement_error([1, 2, 3], [10.0, 30.0, 20.0]) == 1 / 3
    True
    >>> disagreement_error([5, 2, 2, 2, 2], [9, 1, 2, 3, 4])
    0.3
    >>> disagreement_error([5, 2, 2, 2, 2], [9, 1, 2, 3, 4], ties="drop")
    0.0
    """
    check_choice(ties, "ties", ("keep", "drop"))
    counts = count_pairs(scores, predicted, qid, sample_weight, "scores")
    wrong = counts.wrong.sum()
    n_pairs = counts.strict.sum()
    condition = " with different scores and positive weights"
    if ties == "keep":
        wrong = wrong + counts.separated.sum()
        n_pairs = n_pairs + counts.tied.sum()
        condition = " and positive weights"
    check_left(n_pairs, np.size(scores), condition)
    return float(wrong / (2 * n_pairs))


def ranking_loss(
    rank: ArrayLike,
    predicted: ArrayLike,
    qid: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """The normalised number of inversions between rankings, section 2 of
    [AhmadiFahandar2019]_.

    For one query it is the number of item pairs in the wrong order, over n(n-1)/2; for
    several, the mean over the queries, each with the same weight. For rankings without
    ties it is the disagreement error of each query.

    Parameters
    ----------
    rank : array-like of shape (n,)
        True positions; 1 is best.
    predicted : array-like of shape (n,)
        Predicted positions; only their order matters, so the negative of predicted
        scores will do.
    qid : array-like of shape (n,), optional
        Query ids: only items with equal ids are compared. None: one query.
    sample_weight : array-like of shape (n,), optional
        Weights of the items, not negative; a pair has the product of its two.

    Returns
    -------
    loss : float
        Between 0 (same order) and 1 (reversed).

    Raises
    ------
    ValueError
        On values that are not finite, unequal lengths, bad weights, or where no pair is
        left.

    Notes
    -----
    The paper's rankings are total orders. Beyond them, a pair that shares a true rank
    is left out (also of the denominator), as in `Pairs.from_rankings`, and so is a
    query without any pair; a pair that shares a predicted rank is half an inversion,
    the mean over its two orders. In the paper's formula it is no inversion, so that a
    constant prediction would be perfect.

    Examples
    --------
    >>> ranking_loss([1, 2, 3, 4], [1, 2, 4, 3]) == 1 / 6
    True
    >>> ranking_loss([1, 2, 1, 2], [1, 2, 2, 1], qid=[7, 7, 8, 8])
    0.5
    """
    counts = count_pairs(rank, predicted, qid, sample_weight, "rank")
    some = counts.strict > 0
    check_left(
        counts.strict.sum(), np.size(rank), " with different ranks and positive weights"
    )
    return float(np.mean(counts.wrong[some] / counts.strict[some]) / 2)


def log_loss(
    y: ArrayLike, probabilities: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """The mean of -log p(what happened), in nats: the logarithmic loss of section 4 of
    [Maystre2019]_.

    Parameters
    ----------
    y : array-like of shape (m,)
        Labels: +1 first won, -1 second won, 0 tie.
    probabilities : array-like of shape (m,), (m, 2) or (m, 3)
        Probability that the first wins; or of the outcomes -1, 1; or of the outcomes
        -1, 0, 1, in this order. Ties among the labels need the third form.
    sample_weight : array-like of shape (m,), optional
        Weights of the comparisons, not negative.

    Returns
    -------
    loss : float
        At least 0. It is infinite if an outcome with probability 0 happened; clipping
        would hide such a forecast.

    Raises
    ------
    ValueError
        On bad labels or weights, probabilities outside [0, 1], or rows whose sum is not
        1 within 1e-6.

    Examples
    --------
    >>> round(log_loss([1, -1], [0.5, 0.5]), 6)
    0.693147
    >>> round(log_loss([1, 0, -1], [[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [1.0, 0.0, 0.0]]), 6)
    0.30543
    """
    probabilities = _check_probabilities(probabilities)
    m, k = probabilities.shape
    labels = (-1, 1)
    if k == 3:
        labels = (-1, 0, 1)
    y = check_labels(y, m, allow=labels)
    happened = probabilities[np.arange(m), (y + 1) * (k - 1) // 2]
    weights = check_weights(sample_weight, m)
    counted = weights > 0
    with np.errstate(divide="ignore"):  # probability 0 gives an infinite loss
        loss = -np.average(np.log(happened[counted]), weights=weights[counted])
    return float(loss) + 0.0  # never -0.0


def _check_probabilities(probabilities: ArrayLike) -> Floats:
    """Return probabilities of shape (m, 2) or (m, 3), from 0 to 1, with row sums of 1."""
    array = as_floats(probabilities, "probabilities")
    good = array.size > 0 and array.shape[1:] in ((), (2,), (3,)) and array.ndim > 0
    expected = "(m,) for a win of the first, (m, 2) for the outcomes -1, 1, or (m, 3) for -1, 0, 1"
    require(good, array.shape, "the shape of probabilities", expected)
    wrong = ~((array >= 0) & (array <= 1))  # also where one is NaN
    raise_if_any(wrong, array, "probabilities", "values from 0 to 1")
    if array.ndim == 1:
        return np.column_stack([1 - array, array])
    sums = array.sum(axis=1)
    raise_if_any(np.abs(sums - 1) > 1e-6, sums, "probabilities.sum(axis=1)", "1")
    return array


def threshold(differences: ArrayLike, tau: float) -> NDArray[np.int8]:
    """The function t_tau, eq. 4 of [Venuto2017]_: -1 below -tau, +1 above tau, 0
    between.

    Parameters
    ----------
    differences : array-like of shape (m,)
        r(first) - r(second).
    tau : float
        The largest difference that does not count, not negative.

    Returns
    -------
    labels : ndarray of shape (m,)

    Raises
    ------
    ValueError
        If tau is negative, or tau or a difference is NaN.

    Examples
    --------
    >>> threshold([-2.0, -1.0, 0.5, 3.0], tau=1.0).tolist()
    [-1, 0, 0, 1]
    """
    limit = as_real(tau)
    require(limit >= 0, tau, "tau", "a threshold of at least 0")
    differences = as_floats(differences, "differences")
    raise_if_any(np.isnan(differences), differences, "differences", "numbers")
    return (differences > limit).view(np.int8) - (differences < -limit).view(np.int8)
