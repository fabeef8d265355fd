"""Cross-validation along whole paths, to choose lambda and the kernel width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from joblib import delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold

from preflearn.core.kernels import Kernel, distinct_items, scale_gamma
from preflearn.core.splits import split_units
from preflearn.core.validation import (
    Ids,
    check_count,
    check_labels,
    check_query_ids,
    check_real,
    legacy_rng,
    require,
)
from preflearn.pairs import Pairs
from preflearn.path.ranking import RankingPath, ranksvm_path
from preflearn.path.regularization import (
    FoldCurve,
    Selection,
    merge_fold_curves,
    warn_at_end,
)
from preflearn.solvers.search import in_parallel


class CrossValidation(NamedTuple):
    """Result of `cross_validated_path`: the best gamma and lambda, and all curves.

    Attributes
    ----------
    gamma, lam, loss : float
        Best gamma and lambda, and their loss; lambda is scaled for a fit to all pairs.
    gammas : tuple of float
        Values of gamma that were tried.
    curves : tuple of Selection
        Pair error over the folds as a function of lambda, for each gamma.
    """

    gamma: float
    lam: float
    loss: float
    gammas: tuple[float, ...]
    curves: tuple[Selection, ...]


class ItemFolds(NamedTuple):
    """Folds of items, or of groups of items, for `cross_validated_path`.

    Attributes
    ----------
    n_folds : int
        Number of folds.
    groups : array-like of shape (n,), optional
        Group of each item of the pairs, such as its query; None: each item is a
        separate group.
    random_state : int or numpy Generator
        Source of randomness for the folds.
    """

    n_folds: int = 5
    groups: ArrayLike | None = None
    random_state: np.random.Generator | int = 0

    def split(self, pairs: Pairs) -> list[tuple[Ids, Ids]]:
        """Return the training pairs and validation pairs of each fold that has both."""
        n_folds = check_count(self.n_folds, "n_folds", 2)
        group = check_query_ids(self.groups, len(pairs.items), "groups", "group")
        if group is None:
            ids, index = distinct_items(pairs)
            units = ids[index]
        else:
            units = group[pairs.index]
        scheme = KFold(
            n_folds, shuffle=True, random_state=legacy_rng(self.random_state)
        )
        folds = split_units(units, scheme, "n_folds", "groups of items")
        folds = [(train, valid) for train, valid in folds if len(train) and len(valid)]
        if not folds:
            raise ValueError(
                f"none of the {n_folds} folds of the {len(pairs)} pairs has both training "
                "and validation pairs; use fewer folds (at least 2), or add pairs"
            )
        return folds


def cross_validated_path(
    pairs: Pairs,
    y: ArrayLike,
    kernel: Kernel = "rbf",
    *,
    gammas: Sequence[float | Literal["scale"]] = ("scale",),
    degree: float = 3,
    coef0: float = 1.0,
    folds: ItemFolds | None = None,
    span: float = 1e4,
) -> CrossValidation:
    """Compute the pair error on held-out items for every lambda and some gammas.

    Folds split items, or groups of items such as queries. They do not split pairs,
    since pairs that share an item are not independent. A pair is used for training if
    both items are outside the fold, and for validation if both are in it; other pairs
    are left out. A fold is left out too if it has no training pairs or no validation
    pairs. The curves of folds with different numbers m of training pairs are merged on
    the scale lambda / m, on which the objective is a mean loss plus ``(lambda / m)/2
    |f|^2``. The result is scaled to all pairs.

    Parameters
    ----------
    pairs : Pairs
        Pairs of items.
    y : array-like of shape (m,)
        Labels -1 and +1.
    kernel : str or callable
        Kernel, as in `ranksvm_path`.
    gammas : sequence of float or "scale"
        Values of gamma, each with separate paths.
    degree, coef0 : float
        Parameters of the kernel, as in `ranksvm_path`.
    folds : ItemFolds, optional
        Folds of items; None: five folds.
    span : float
        Ratio of the first breakpoint of each path to its end, unless rounding errors
        end the path earlier. If the best lambda is at the end, there is a
        ConvergenceWarning. With a ratio of 1e9 or more, paths are as long as possible.

    Raises
    ------
    ValueError
        If the input is not valid, as in `ranksvm_path`, or no fold has both training
        and validation pairs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> pairs, y = Pairs.from_scores(X, X @ [1.0, 2.0] + rng.normal(size=60))
    >>> cross_validated_path(pairs, y, kernel="linear").loss < 0.25
    True
    """
    require(
        isinstance(pairs, Pairs),
        pairs,
        "pairs",
        "a Pairs object, whose items can be split",
    )
    y = check_labels(y, len(pairs), allow=(-1, 1))
    check_real(span, "span", "a number above 1", least=1.0 + 1e-6)
    if isinstance(gammas, str) or not np.iterable(gammas) or len(gammas) == 0:
        raise ValueError(
            f"gammas is {gammas!r}; expected a sequence, such as [0.1, 'scale']"
        )
    folds = ItemFolds() if folds is None else folds
    require(isinstance(folds, ItemFolds), folds, "folds", "an ItemFolds object or None")
    splits = folds.split(pairs)
    occurring = pairs.items[pairs.B.occurring()]
    widths = tuple(scale_gamma(gamma, occurring) for gamma in gammas)
    follow = partial(ranksvm_path, kernel=kernel, degree=degree, coef0=coef0)
    calls = (
        delayed(_fold_curve)(partial(follow, gamma=gamma), pairs, y, *split, span)
        for gamma in widths
        for split in splits
    )
    parts = in_parallel(calls)
    curves = [
        merge_fold_curves(parts[k : k + len(splits)], len(pairs))
        for k in range(0, len(parts), len(splits))
    ]
    best = min(range(len(curves)), key=lambda k: curves[k].loss)
    selection = curves[best]
    warn_at_end(selection, span)
    return CrossValidation(
        widths[best], selection.lam, selection.loss, widths, tuple(curves)
    )


def _fold_curve(
    path: Callable[..., RankingPath],
    pairs: Pairs,
    y: NDArray,
    train: Ids,
    valid: Ids,
    span: float,
) -> FoldCurve:
    """Return the pair error of one fold along its path."""
    first = path(pairs[train], y[train], max_events=1).breakpoints
    if len(first) == 0:
        raise ValueError(
            "the path of a fold has no breakpoints; use fewer folds, or check that the "
            "items have different features"
        )
    fitted = path(pairs[train], y[train], lambda_min=first[0] / span)
    curve = fitted.select(pairs[valid], y[valid])
    return FoldCurve(curve, fitted.lambda_end, len(train), len(valid))
