"""The choice of lambda, and of the width of a kernel, by cross-validation along whole
paths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

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
from preflearn.path.regularization import FoldCurve, Selection, bounded, merged
from preflearn.solvers.search import in_parallel


class CrossValidation(NamedTuple):
    """The best width and lambda, and all curves.

    Attributes
    ----------
    gamma, lam, loss : float
        The best ones; lambda is that of a fit on all pairs.
    gammas : tuple of float
        The widths that were tried.
    curves : tuple of Selection
        One a width: the pair error over the folds, as a function of every lambda.
    """

    gamma: float
    lam: float
    loss: float
    gammas: tuple[float, ...]
    curves: tuple[Selection, ...]


def cross_validated_path(
    pairs: Pairs,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    kernel: Kernel = "rbf",
    *,
    gammas: Sequence[float | Literal["scale"]] = ("scale",),
    degree: float = 3,
    coef0: float = 1.0,
    n_folds: int = 5,
    span: float = 1e4,
    random_state: np.random.Generator | int = 0,
    n_jobs: int | None = None,
) -> CrossValidation:
    """The pair error of held-out items, exact over the continuum of lambda, for some
    widths of the kernel.

    Folds split items, or groups of them such as queries, and never pairs: pairs that
    share an item are not independent. A pair trains if both items are outside the fold,
    and validates if both are in it; others do neither, and a fold without one or the
    other is left out. Curves of folds with different numbers m of training pairs are
    merged on the scale lambda / m, on which the objective is a mean loss plus ``(lambda
    / m)/2 |f|^2``, and given for all pairs.

    Parameters
    ----------
    pairs : Pairs
    y : array-like of shape (m,)
        Labels -1 and +1.
    groups : array-like of shape (n,), optional
        A group for each item of the pairs, such as its query; None: each item is one of
        its own.
    kernel, degree, coef0
        As in `ranksvm_path`.
    gammas : sequence of float or "scale"
        Widths, of which each has its paths.
    n_folds : int
    span : float
        Each path runs from its first breakpoint down to that divided by `span`, if
        rounding does not end it. A ConvergenceWarning says so where this bounds the
        choice; from 1e9 on paths run to their own end.
    random_state : int or numpy Generator
        Of the folds.
    n_jobs : int, optional
        Processes for paths, one a width and fold; None: one, or as
        `joblib.parallel_config` says.

    Raises
    ------
    ValueError
        On bad input as in `ranksvm_path`, or if no fold has pairs to train and pairs to
        validate.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> pairs, y = Pairs.from_scores(X, X @ [1.0, 2.0] + rng.normal(size=60))
    >>> cross_validated_path(pairs, y, kernel="linear").loss < 0.25
    True
    """
    require(
        isinstance(pairs, Pairs), pairs, "pairs", "Pairs, whose items folds can split"
    )
    y = check_labels(y, len(pairs), allow=(-1, 1))
    check_real(span, "span", "a number above 1", least=1.0 + 1e-6)
    if isinstance(gammas, str) or not np.iterable(gammas) or len(gammas) == 0:
        raise ValueError(
            f"gammas is {gammas!r}; expected a sequence of widths, such as [0.1, 'scale']"
        )
    folds = _folds(pairs, groups, n_folds, random_state)
    widths = tuple(
        scale_gamma(gamma, pairs.items[pairs.B.occurring()]) for gamma in gammas
    )
    trace = partial(ranksvm_path, kernel=kernel, degree=degree, coef0=coef0)
    traces = [partial(trace, gamma=gamma) for gamma in widths]
    calls = (
        delayed(_curve)(one, pairs, y, *fold, span) for one in traces for fold in folds
    )
    found = in_parallel(calls, n_jobs)
    parts = (found[k : k + len(folds)] for k in range(0, len(found), len(folds)))
    curves = [merged(part, len(pairs)) for part in parts]
    best, gamma = min(zip(curves, widths, strict=True), key=lambda one: one[0].loss)
    return CrossValidation(gamma, *bounded(best, span)[:2], widths, tuple(curves))


def _folds(
    pairs: Pairs, groups: ArrayLike | None, n_folds: int, source: Any
) -> list[tuple[Ids, Ids]]:
    """Pairs that train and pairs that validate, for each fold of groups of items that
    has both."""
    n_folds = check_count(n_folds, "n_folds", 2)
    group = check_query_ids(groups, len(pairs.items), "groups", "group")
    ids, index = distinct_items(pairs)
    units = ids[index] if group is None else group[pairs.index]
    scheme = KFold(n_folds, shuffle=True, random_state=legacy_rng(source))
    folds = split_units(units, scheme, "n_folds", "groups of items")
    found = [(train, valid) for train, valid in folds if len(train) and len(valid)]
    if not found:
        text = f"none of the {n_folds} folds has pairs to train and pairs to validate among {len(pairs)}"
        expected = (
            "fewer folds, or " * (n_folds > 2) + "more pairs within the items of a fold"
        )
        raise ValueError(f"{text} pairs; expected {expected}")
    return found


def _curve(
    trace: Callable[..., RankingPath],
    pairs: Pairs,
    y: NDArray,
    train: Ids,
    valid: Ids,
    span: float,
) -> FoldCurve:
    """The pair error of one fold along its path."""
    fold = pairs[train]
    labels = y[train]
    first = trace(fold, labels, max_events=1).breakpoints
    if len(first) == 0:
        raise ValueError(
            "a fold has a path without breakpoints; expected fewer folds, or other pairs"
        )
    path = trace(fold, labels, lambda_min=first[0] / span)
    return FoldCurve(
        path.select(pairs[valid], y[valid]), path.lambda_end, len(train), len(valid)
    )
