"""Leakage-free train-test splits of pairs by items, queries, or dates.

Pairs that share an item are not independent: if both items of a test pair occur in
training pairs, a learner may have memorized the answer. These splitters therefore hold
out whole items, queries, or dates with all their pairs. They can be passed as `cv` to
scikit-learn's searches.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import BaseCrossValidator, KFold, TimeSeriesSplit

from preflearn.core.diagnosis import as_compared
from preflearn.core.kernels import distinct_items
from preflearn.core.validation import (
    Ids,
    check_count,
    check_flag,
    check_query_ids,
    check_selection,
    legacy_rng,
    require,
)
from preflearn.matches import as_times
from preflearn.pairs import Pairs


@dataclass(eq=False, repr=False)
class _Splitter(BaseCrossValidator):
    """A splitter that holds out units: items, queries, or dates.

    A pair is a training pair if both of its items belong to training units, and a test
    pair if both belong to held-out units.
    """

    n_splits: int = 5
    _kind: ClassVar[str]

    def get_n_splits(
        self, X: object = None, y: object = None, groups: object = None
    ) -> int:
        """Return the number of splits."""
        return check_count(self.n_splits, "n_splits", 2)

    def split(  # pyright: ignore[reportIncompatibleMethodOverride]  (scikit-learn's X are pairs here)
        self,
        pairs: Pairs | ArrayLike,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Iterator[tuple[Ids, Ids]]:
        """Yield the ids of the training pairs and of the test pairs of each split.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p), or row numbers of items, shape (m, 2)
        y : ignored
        groups : array-like of shape (m,)
            Query ids or dates of the pairs, see the class. scikit-learn's searches pass
            their argument `groups` on to this method.

        Raises
        ------
        ValueError
            If pairs or groups are not valid, if there are fewer items, queries, or
            dates than splits, or if a split has no training pairs or no test pairs.
        """
        pairs = as_compared(pairs)
        folds = split_units(
            self._units(pairs, groups), self._scheme(), "n_splits", self._kind
        )

        for fold, parts in enumerate(folds, 1):
            for part, purpose in zip(parts, ("training", "test"), strict=True):
                if len(part) == 0:
                    raise ValueError(
                        f"split {fold} of {self.n_splits} has no {purpose} pairs, although "
                        f"there are {len(pairs)} pairs; use fewer splits, or add pairs"
                    )
        return iter(folds)

    @abstractmethod
    def _scheme(self) -> KFold | TimeSeriesSplit: ...

    @abstractmethod
    def _units(self, pairs: Pairs, groups: ArrayLike | None) -> Ids: ...


@dataclass(eq=False, repr=False)
class ItemKFold(_Splitter):
    """Split pairs by items, so that both items of a test pair are new.

    Use it to estimate how well a learner compares items that it has never seen.

    A pair is a training pair if neither of its items is in the fold, and a test pair if
    both are. A pair with only one item in the fold is left out. Each pair is therefore
    tested at most once, and fewer folds test more pairs. Items with equal features
    count as the same item.

    Parameters
    ----------
    n_splits : int
        Number of folds, from 2 to the number of items.
    shuffle : bool
        Whether items are assigned to folds at random; otherwise folds are consecutive.
    random_state : int, numpy Generator, RandomState or None
        Source of randomness of the shuffle.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [2.0], [3.0]], [[0, 1], [1, 2], [3, 2]])
    >>> [(train.tolist(), test.tolist()) for train, test in ItemKFold(2).split(pairs)]
    [([2], [0]), ([0], [2])]
    """

    _kind = "items"

    shuffle: bool = False
    random_state: int | np.random.Generator | np.random.RandomState | None = None

    def _scheme(self) -> KFold:
        rng = legacy_rng(self.random_state, allow_none=True)
        if check_flag(self.shuffle, "shuffle"):
            return KFold(self.get_n_splits(), shuffle=True, random_state=rng)
        return KFold(self.get_n_splits())

    def _units(self, pairs: Pairs, groups: ArrayLike | None) -> Ids:
        ids, index = distinct_items(pairs)
        return ids[index]


class QueryKFold(ItemKFold):
    """Split pairs by queries, so that test pairs belong to new queries.

    Use it if items come in queries (or users, or races), and the learner is to be
    applied to new ones. All pairs of a query are in the same part.

    Pass the query ids of the pairs, shape (m,), as `groups`. If you have ids of the
    items, pass ``qid[pairs.index[:, 0]]``. The parameters are those of `ItemKFold`.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [2.0], [3.0]], [[0, 1], [2, 3], [3, 2]])
    >>> folds = QueryKFold(2).split(pairs, groups=["a", "b", "b"])
    >>> [(train.tolist(), test.tolist()) for train, test in folds]
    [([1, 2], [0]), ([0], [1, 2])]
    """

    _kind = "queries"

    def _units(self, pairs: Pairs, groups: ArrayLike | None) -> Ids:
        return _units_of_groups(groups, pairs, "query id")


class DateSplit(_Splitter):
    """Split pairs by date, so that all training pairs precede the test pairs.

    Use it to estimate how well a learner forecasts later comparisons.

    Pass the dates of the pairs, shape (m,), as `groups`: values that can be sorted, or
    ISO strings such as 2024-01-31. Other strings raise ValueError, since 03/04/2024 has
    two meanings. Ordered categories keep their own order. The distinct dates are
    divided into n_splits + 1 consecutive blocks. Each block except the first is tested
    after training on all earlier blocks. Pairs of one date stay together. Items may
    occur in both parts, as players do.

    Parameters
    ----------
    n_splits : int
        Number of splits, from 2 to the number of distinct dates minus one.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0]], [[0, 1], [1, 0], [0, 1], [0, 1]])
    >>> splits = DateSplit(2).split(pairs, groups=[2001, 2003, 2002, 2002])
    >>> [(train.tolist(), test.tolist()) for train, test in splits]
    [([0], [2, 3]), ([0, 2, 3], [1])]
    """

    _kind = "dates"

    def _scheme(self) -> TimeSeriesSplit:
        return TimeSeriesSplit(self.get_n_splits())

    def _units(self, pairs: Pairs, groups: ArrayLike | None) -> Ids:
        if isinstance(getattr(groups, "dtype", None), pd.CategoricalDtype):
            groups = _categories_as_dates(pd.Series(groups))
        if pd.api.types.is_list_like(groups):
            kind = pd.api.types.infer_dtype(groups)
            if kind == "bytes":
                groups = pd.Series(groups).str.decode("utf-8", "replace")
            if kind in ("bytes", "string"):
                groups = as_times(groups, None)
        return _units_of_groups(groups, pairs, "date")


def _categories_as_dates(groups: pd.Series) -> pd.Series:
    """Return the values of categories or, if they are ordered, their order."""
    if not groups.cat.ordered:
        return groups.astype(groups.cat.categories.dtype)
    codes = groups.cat.codes.astype(np.float64)
    return codes.where(groups.notna())


def split_units(
    units: NDArray, scheme: KFold | TimeSeriesSplit, name: str, kind: str
) -> list[tuple[Ids, Ids]]:
    """Return the ids of the training pairs and of the test pairs, for each split.

    Parameters
    ----------
    units : ndarray of shape (m, 2)
        Unit (item, query, or date) of the first and the second item of each pair.
    scheme : KFold or TimeSeriesSplit
        Splitter that is applied to the sorted distinct units.
    name, kind : str
        How messages call the number of splits and the units, such as "n_splits" and
        "items".

    Raises
    ------
    ValueError
        If there are fewer units than splits.
    """
    names, places = np.unique(units, return_inverse=True)
    # the first dates are used for training only
    most = len(names) - isinstance(scheme, TimeSeriesSplit)
    count = int(scheme.n_splits)
    expected = f"at most {most}, since there are {len(names)} different {kind}"
    require(count <= most, count, name, expected)
    places = places.reshape(units.shape)
    folds = []
    for train, test in scheme.split(names):
        trained = np.isin(places, train).all(axis=1)
        tested = np.isin(places, test).all(axis=1)
        folds.append((np.flatnonzero(trained), np.flatnonzero(tested)))
    return folds


def check_leakage(pairs: Pairs | ArrayLike, train: ArrayLike, test: ArrayLike) -> int:
    """Count the test pairs whose items are both in training pairs.

    A learner may have memorized the answers to such pairs, so that its accuracy on them
    says little about pairs of new items. The count is 0 for the folds of `ItemKFold`.
    Training and test pairs of `QueryKFold` and `DateSplit` may share items.

    Parameters
    ----------
    pairs : Pairs or array-like of shape (m, 2, p), or row numbers of items, shape (m, 2)
        Comparisons; items with equal features count as the same item.
    train, test : array-like of int or bool
        Row numbers, or masks, of the training pairs and of the test pairs.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If pairs, row numbers, or masks are not valid, or row numbers are out of range.

    Examples
    --------
    >>> pairs = Pairs([[0.0], [1.0], [2.0], [3.0]], [[0, 1], [1, 2], [2, 0], [2, 3]])
    >>> check_leakage(pairs, train=[0, 1], test=[2, 3])
    1
    """
    pairs = as_compared(pairs)
    index = distinct_items(pairs)[1]
    parts = []
    for rows, name in ((train, "train"), (test, "test")):
        try:
            parts.append(index[check_selection(rows, len(pairs), name)])
        except IndexError as error:
            expected = f"row numbers or a mask for {len(pairs)} pairs ({error})"
            require(False, rows, name, expected)
    trained, tested = parts
    return int(np.isin(tested, trained).all(axis=1).sum())


def _units_of_groups(groups: ArrayLike | None, pairs: Pairs, kind: str) -> NDArray:
    """Return the units of both items of each pair, from the groups of the pairs."""
    expected = (
        f"a {kind} for each of the {len(pairs)} pairs: call split(pairs, y, groups), "
        "or pass groups to the search"
    )
    require(groups is not None, groups, "groups", expected)
    units: NDArray = np.asarray(
        check_query_ids(groups, len(pairs), "groups", kind, "pair")
    )
    number = np.unique(units, return_inverse=True)[1]
    return np.repeat(number[:, None], 2, axis=1)
