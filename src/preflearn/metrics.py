"""Error measures for predicted comparisons, rankings, and probabilities.

All functions take the true values first and weights last. A row of weight 2 counts
twice, and a row of weight 0 does not count.
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
    check_weights,
    raise_if_any,
    require,
    require_pairs,
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
    """Compute the fraction of pairs with a wrong label, eq. 2 of [Venuto2017]_.

    Parameters
    ----------
    y : array-like of shape (m,)
        Labels: +1 first better, -1 second better, 0 no difference.
    predicted : array-like of shape (m,)
        Predicted labels -1, 0, or 1.
    sample_weight : array-like of shape (m,), optional
        Nonnegative weights of the pairs.

    Returns
    -------
    loss : float
        Fraction between 0 and 1.

    Raises
    ------
    ValueError
        If labels are not -1, 0, or 1, lengths differ, the pairs are empty, or weights
        are negative or all zero.

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
    """Compute the ROC curve of a ranking function, Table 3 of [Venuto2017]_.

    The threshold decreases along the curve.

    The prediction at threshold tau is t_tau(differences) of eq. 4. A tie that is
    predicted to differ is a false positive. A preference that is predicted in the right
    direction is a true positive. A preference whose predicted direction is wrong is
    missed at every threshold, so the true positive rate may end below 1.

    Parameters
    ----------
    y : array-like of shape (m,)
        Labels: +1 first better, -1 second better, 0 no difference.
    differences : array-like of shape (m,)
        Predicted r(first) - r(second), as `decision_function` of an estimator returns
        them.
    sample_weight : array-like of shape (m,), optional
        Nonnegative weights of the pairs.

    Returns
    -------
    fpr, tpr : ndarray of shape (k + 1,)
        False and true positive rates, from (0, 0) to (1, largest true positive rate),
        for k distinct values of ``abs(differences)``.
    thresholds : ndarray of shape (k + 1,)
        Distinct values of ``abs(differences)`` in decreasing order, then 0. Each is the
        smallest tau of its point. If some difference is 0, no tau attains the last
        point, which closes the curve at (1, rate at tau = 0).

    Raises
    ------
    ValueError
        If labels, differences, or weights are not valid, or ties or preferences are
        missing.

    Examples
    --------
    >>> fpr, tpr, thresholds = comparison_roc([1, -1, 0, 0], [3.0, 2.0, 1.0, 0.0])
    >>> fpr.tolist(), tpr.tolist(), thresholds.tolist()
    ([0.0, 0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 0.5, 0.5, 0.5], [3.0, 2.0, 1.0, 0.0, 0.0])
    """
    sweep = sweep_threshold(y, differences, sample_weight)
    for total, labels in ((sweep.ties, "0"), (sweep.preferences, "-1 and +1")):
        expected = "a positive number: a ROC curve needs both ties and preferences"
        name = f"the total weight of the labels {labels} in y"
        require(total > 0, float(total), name, expected)
    fpr = np.append(0.0, sweep.false_alarms / sweep.ties)
    tpr = np.append(0.0, sweep.hits / sweep.preferences)
    return fpr, tpr, np.append(sweep.magnitudes, 0.0)


def comparison_auc(
    y: ArrayLike, differences: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the area under `comparison_roc` (sections 4, 5.2 of [Venuto2017]_).

    The area is a sum of trapezoids. Parameters and errors are as in `comparison_roc`.

    Returns
    -------
    auc : float
        Area between 0 and 1. The area of a random prediction is not 1/2, see Notes.

    Notes
    -----
    Write d for the differences. The area is the mean over all (preference i, tie j) of

    .. math:: 1[y_i d_i > 0] \\left(1[|d_i| > |d_j|] + \\tfrac12 1[|d_i| = |d_j|]\\right),

    because each tie adds a trapezoid (or, at d_j = 0, a part of the closing segment)
    whose mean height is the mean of the term over i. The area is therefore the
    fraction of preferences with the right predicted direction, times the ordinary
    AUC of abs(d) for distinguishing these preferences from the ties. It follows that
    the area is

    - 1 if and only if all directions are right and abs(d) is larger for each preference
      than for each tie;
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
    """Find the threshold tau >= 0 of lowest zero-one loss, eq. 6 of [Venuto2017]_.

    The loss is constant between consecutive values of abs(differences), so a sort and
    cumulative sums give its exact minimum. The paper searches a grid.

    Parameters
    ----------
    y : array-like of shape (m,)
        Labels: +1 first better, -1 second better, 0 no difference.
    differences : array-like of shape (m,)
        Predicted r(first) - r(second).
    sample_weight : array-like of shape (m,), optional
        Nonnegative weights of the pairs.

    Returns
    -------
    tau : float
        Midpoint of the widest interval of minimizers within [0, max(abs(differences))].
        If several intervals are equally wide, the one with the smallest tau is chosen.
        If all differences are multiplied by a factor, tau is too.
    loss : float
        ``comparison_loss(y, threshold(differences, tau))``.

    Raises
    ------
    ValueError
        If labels, differences, or weights are not valid.

    Examples
    --------
    >>> best_threshold([1, -1, 0, 0], [3.0, -2.0, 1.0, 0.0])
    (1.5, 0.0)
    """
    sweep = sweep_threshold(y, differences, sample_weight)
    total = sweep.preferences + sweep.ties
    # Row 0 predicts ties only; row i predicts a difference for the i largest
    # magnitudes. A last magnitude of 0 adds an empty interval, which is never better
    # than the one before.
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
    """Compute the disagreement error of scores, eq. 1 of [Tsivtsivadze2013]_.

    The error is half the sum of W_ij abs(sign(s_i - s_j) - sign(f_i - f_j)) over all
    ordered pairs (i, j), divided by the sum of W_ij. The weight W_ij is 1 for two
    items of the same query, else 0. In the sum, the absolute value is 2 for an inverted
    pair and 1 for a pair that is tied in only one of s and f. Without ties in s, the
    error is 0 for a perfect prediction, 1 for a reversed one, and 1/2 for a random or
    constant one.

    Parameters
    ----------
    scores : array-like of shape (n,)
        True scores s; larger is better.
    predicted : array-like of shape (n,)
        Predicted scores f.
    qid : array-like of shape (n,), optional
        Query ids: only items with equal ids are compared. None: one query.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights of the items; a pair has the product of the weights of its
        items (W_ij = w_i w_j).
    ties : {"keep", "drop"}
        Treatment of pairs with s_i = s_j. "keep", as in eq. 1: such a pair adds 1/2 of
        a pair if the prediction orders it. "drop" (W_ij = 0): the error is 1 minus the
        concordance index.

    Returns
    -------
    error : float

    Raises
    ------
    ValueError
        If values are not finite, lengths differ, weights are not valid, or no pair is
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
    require_pairs(n_pairs, np.size(scores), condition)
    return float(wrong / (2 * n_pairs))


def ranking_loss(
    rank: ArrayLike,
    predicted: ArrayLike,
    qid: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the normalized number of inversions, sec. 2 of [AhmadiFahandar2019]_.

    For one query the loss is the number of item pairs in the wrong order, divided by
    n(n-1)/2. For several queries it is the mean over the queries, each with the same
    weight. For rankings without ties it equals the disagreement error of each query.

    Parameters
    ----------
    rank : array-like of shape (n,)
        True positions; 1 is best.
    predicted : array-like of shape (n,)
        Predicted positions. Only their order matters, so you can pass the negative of
        predicted scores.
    qid : array-like of shape (n,), optional
        Query ids: only items with equal ids are compared. None: one query.
    sample_weight : array-like of shape (n,), optional
        Nonnegative weights of the items; a pair has the product of the weights of its
        items.

    Returns
    -------
    loss : float
        Loss between 0 (same order) and 1 (reversed).

    Raises
    ------
    ValueError
        If values are not finite, lengths differ, weights are not valid, or no pair is
        left.

    Notes
    -----
    The paper's rankings have no ties. Here a pair with equal true ranks is left out of
    the numerator and the denominator, as in `Pairs.from_rankings`. A query without any
    pair is left out too. A pair with equal predicted ranks counts as half an inversion,
    the mean over its two orders. In the paper's formula it does not count as an
    inversion, so that a constant prediction would be perfect.

    Examples
    --------
    >>> ranking_loss([1, 2, 3, 4], [1, 2, 4, 3]) == 1 / 6
    True
    >>> ranking_loss([1, 2, 1, 2], [1, 2, 2, 1], qid=[7, 7, 8, 8])
    0.5
    """
    counts = count_pairs(rank, predicted, qid, sample_weight, "rank")
    some = counts.strict > 0
    require_pairs(
        counts.strict.sum(), np.size(rank), " with different ranks and positive weights"
    )
    return float(np.mean(counts.wrong[some] / counts.strict[some]) / 2)


def log_loss(
    y: ArrayLike, probabilities: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Compute the mean logarithmic loss in nats, section 4 of [Maystre2019]_.

    The loss of a comparison is -log of the probability that was forecast for its
    outcome.

    Parameters
    ----------
    y : array-like of shape (m,)
        Labels: +1 first won, -1 second won, 0 tie.
    probabilities : array-like of shape (m,), (m, 2) or (m, 3)
        Probabilities that the first wins, shape (m,); or of the outcomes -1, 1, shape
        (m, 2); or of the outcomes -1, 0, 1, shape (m, 3), in this order. If labels
        contain ties, the shape must be (m, 3).
    sample_weight : array-like of shape (m,), optional
        Nonnegative weights of the comparisons.

    Returns
    -------
    loss : float
        Mean loss, at least 0. It is infinite if an outcome with probability 0 occurred;
        probabilities are not clipped, since that would hide such forecasts.

    Raises
    ------
    ValueError
        If labels or weights are not valid, probabilities are outside [0, 1], or the
        sum of a row differs from 1 by more than 1e-6.

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
    expected = (
        "(m,) for the probabilities of +1, (m, 2) for the outcomes -1, +1, "
        "or (m, 3) for -1, 0, +1"
    )
    require(good, array.shape, "the shape of probabilities", expected)
    wrong = ~((array >= 0) & (array <= 1))  # also where one is NaN
    raise_if_any(wrong, array, "probabilities", "values from 0 to 1")
    if array.ndim == 1:
        return np.column_stack([1 - array, array])
    sums = array.sum(axis=1)
    raise_if_any(np.abs(sums - 1) > 1e-6, sums, "probabilities.sum(axis=1)", "1")
    return array


def threshold(differences: ArrayLike, tau: float) -> NDArray[np.int8]:
    """Apply the threshold function t_tau, eq. 4 of [Venuto2017]_.

    The label is -1 below -tau, +1 above tau, and 0 between.

    Parameters
    ----------
    differences : array-like of shape (m,)
        r(first) - r(second).
    tau : float
        Largest difference that counts as a tie, not negative.

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
    require(limit >= 0, tau, "tau", "a number of at least 0")
    differences = as_floats(differences, "differences")
    raise_if_any(np.isnan(differences), differences, "differences", "numbers")
    return (differences > limit).view(np.int8) - (differences < -limit).view(np.int8)
