"""Model selection and comparison on matches: the protocol of section 5.2 of
[Venuto2017]_.

The features of the players are scaled. A model is chosen on matches that are later than
its training matches, and two models are compared season by season.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from preflearn.core.validation import Floats, Ids
from preflearn.metrics import comparison_auc
from preflearn.pairs import Pairs, as_pairs
from preflearn_book.studies.ch07_histories import forward_splits

# Instead of 0, a solver may return values of u·d below 1e-9, which would rank items.
_ROUNDING = 1e-8
_CONSTANT = -1.0  # score of a constant model, below any AUC


def scaled_pairs(X: Floats, rows: Ids, by: Ids) -> Pairs:
    """Pairs of players with features that are standardized by the training matches.

    Parameters
    ----------
    X : ndarray of shape (N, 2, p)
        Features of the first and of the second player of each match, as
        `match_features` returns them.
    rows : ndarray of int
        Numbers of the matches of the pairs.
    by : ndarray of int
        Numbers of the training matches. Their 2 len(by) players determine the mean and
        the standard deviation. A feature without variance there is only centered.

    Returns
    -------
    Pairs
        One pair per match; no two pairs share an item.

    Examples
    --------
    >>> X = np.array([[[1200.0, 1.0], [1300.0, 0.0]], [[1400.0, 1.0], [1300.0, 0.0]]])
    >>> scaled_pairs(X, [0, 1], by=[0]).differences().tolist()
    [[-2.0, 2.0], [2.0, 2.0]]
    """
    train = X[by].reshape(-1, X.shape[2])
    deviation = train.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1)
    return as_pairs((X[rows] - train.mean(axis=0)) / scale)


def score_differences(model: Any, pairs: Pairs) -> Floats:
    """Differences r(first) - r(second); all 0 if they are only rounding errors.

    An SVM with a bias ranks by -u/bias. It counts as constant (u = 0) if no \\|u·d\\| of
    the pairs exceeds 1e-8. The differences of other models are returned unchanged.
    """
    z = model.decision_function(pairs)
    bias = getattr(model, "bias_", None)
    if bias is not None and np.abs(bias * z).max() < _ROUNDING:
        return 0 * z
    return z


def auc_scorer(
    model: Any, pairs: Pairs, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Scorer of scikit-learn's searches: `comparison_auc`, or -1 for a constant model."""
    z = score_differences(model, pairs)
    if not z.any():
        return _CONSTANT
    return comparison_auc(y, z, sample_weight)


def forward_search(
    model: Any,
    grid: Mapping[str, Sequence],
    pairs: Pairs,
    y: ArrayLike,
    *,
    shares: tuple[float, ...],
    sample_weight: ArrayLike | None = None,
) -> tuple[Any, int]:
    """Choose the parameters with the best mean AUC on later matches.

    The splits are those of section 5.2 of [Venuto2017]_.

    Parameters
    ----------
    model : estimator
    grid : mapping of str to sequence
        Values to try for each parameter.
    pairs : Pairs
        Pairs in the order of time.
    y : array-like of shape (m,)
    shares : tuple of float
        Fractions of the matches on which the model is trained, starting with the first
        match. The model is evaluated on the rest.
    sample_weight : array-like of shape (m,), optional
        Weights of the training pairs.

    Returns
    -------
    model : estimator
        The model with the chosen parameters, not fitted. A model that fails or is
        constant on a split has the score -1 there. It is chosen only if this holds for
        all models.
    failed : int
        Number of fits in the search that were degenerate or constant.

    Examples
    --------
    >>> from preflearn.svm import SVMRank
    >>> pairs = Pairs([[0.0], [1.0], [3.0]], [[1, 0], [2, 0], [1, 2], [2, 1], [1, 0], [0, 2], [1, 0], [2, 1]])
    >>> y = [0, 1, -1, 1, 0, -1, 0, 1]
    >>> forward_search(SVMRank(kernel="linear"), {"C": [0.1, 1.0]}, pairs, y, shares=(0.5,))
    (SVMRank(C=0.1, kernel='linear'), 0)
    """
    cv = forward_splits(len(pairs), shares)
    search = GridSearchCV(
        model, grid, scoring=auc_scorer, cv=cv, refit=False, error_score=_CONSTANT
    )
    search.fit(pairs, y, sample_weight=sample_weight)
    scores = [search.cv_results_[f"split{i}_test_score"] for i in range(len(cv))]
    best: Any = clone(model)
    best.set_params(**search.best_params_)
    return best, int(np.sum(np.array(scores) == _CONSTANT))
