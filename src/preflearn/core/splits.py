"""Leakage-free splits of pairs over items, queries or dates, for scikit-learn's searches.

Pairs that share an item are not independent: a learner that has seen both items of a
pair in other pairs may know its answer by heart. So these splitters hold out items (or
queries, or dates), with all their pairs.
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
    """Pairs with both items in training units train, those with both held out test."""

    n_splits: int = 5
    _kind: ClassVar[str]

    def get_n_splits(
        self, X: object = None, y: object = None, groups: object = None
    ) -> int:
        """The number of splits."""
        return check_count(self.n_splits, "n_splits", 2)

    def split(  # pyright: ignore[reportIncompatibleMethodOverride]  (scikit-learn's X are pairs here)
        self,
        pairs: Pairs | ArrayLike,
        y: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Iterator[tuple[Ids, Ids]]:
        """Ids of the training pairs (k,) and of the test pairs (l,), for each split.

        Parameters
        ----------
        pairs : Pairs or array-like of shape (m, 2, p), or row numbers of items, shape (m, 2)
        y : ignored
        groups : array-like of shape (m,)
            See the class. What scikit-learn's searches take as `groups` arrives here.

        Raises
        ------
        ValueError
            On bad pairs or groups, more splits than there is something to split, or a
            split without a pair to train or to test.
        """
        pairs = as_compared(pairs)
        folds = split_units(
            self._units(pairs, groups), self._scheme(), "n_splits", self._kind
        )
        expected = f"some of the {len(pairs)} pairs: fewer splits, or {self._kind} with more pairs"
        for fold, parts in enumerate(folds):
            for part, purpose in zip(parts, ("train", "test"), strict=True):
                have = f"the number of pairs to {purpose} in split {fold} of {self.n_splits}"
                require(len(part) > 0, 0, have, expected)
        return iter(folds)

    @abstractmethod
    def _scheme(self) -> KFold | TimeSeriesSplit: ...

    @abstractmethod
    def _units(self, pairs: Pairs, groups: ArrayLike | None) -> Ids: ...


@dataclass(eq=False, repr=False)
class ItemKFold(_Splitter):
    """Folds of items: both items of a test pair are unseen in training.

    A pair trains if neither of its items is in the fold, and tests if both are; a pair
    with one item on each side does neither. So each pair is tested at most once, and
    with few folds more pairs are. Items are the same if their features are.

    Parameters
    ----------
    n_splits : int
        Number of folds, from 2 to the number of items.
    shuffle : bool
        Whether items are assigned to folds at random; else they stay in order.
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
        rng = legacy_rng(self.random_state, fresh=True)
        if check_flag(self.shuffle, "shuffle"):
            return KFold(self.get_n_splits(), shuffle=True, random_state=rng)
        return KFold(self.get_n_splits())

    def _units(self, pairs: Pairs, groups: ArrayLike | None) -> Ids:
        ids, index = distinct_items(pairs)
        return ids[index]


class QueryKFold(ItemKFold):
    """Folds of queries: all pairs of a query train, or all test.

    The groups of `split` are the query ids of the pairs, shape (m,): for ids of the
    items, ``qid[pairs.index[:, 0]]``. Parameters are those of `ItemKFold`.

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
    """Splits forward in time: training pairs are earlier than all test pairs.

    The groups of `split` are the dates of the pairs, shape (m,), of any kind that can
    be sorted, or ISO texts such as 2024-01-31; other texts are refused, as 03/04/2024
    has two meanings. Ordered categories are in their own order. Different dates are cut
    into n_splits + 1 blocks in turn; each but the first is tested, after training on
    all earlier ones. Pairs of one date stay together. Items may come again, as players
    do.

    Parameters
    ----------
    n_splits : int
        Number of splits, from 2 to the number of different dates less one.

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
    """Dates that are categories: their values, or the order that the user gave them."""
    if not groups.cat.ordered:
        return groups.astype(groups.cat.categories.dtype)
    codes = groups.cat.codes.astype(np.float64)
    return codes.where(groups.notna())


def split_units(
    units: NDArray, scheme: KFold | TimeSeriesSplit, name: str, kind: str
) -> list[tuple[Ids, Ids]]:
    """Ids of the pairs whose units are both seen, and both held out, for each split.

    Parameters
    ----------
    units : ndarray of shape (m, 2)
        Item, query or date of both items of each pair, which are held out together.
    scheme : KFold or TimeSeriesSplit
        Splitter of the different units in order.
    name, kind : str
        Names of the number of splits, and of the units, in messages.

    Raises
    ------
    ValueError
        If there are fewer units than splits.
    """
    names, places = np.unique(units, return_inverse=True)
    # the first dates only train
    most = len(names) - isinstance(scheme, TimeSeriesSplit)
    count = int(scheme.n_splits)
    expected = f"at most {most}, for {len(names)} different {kind}"
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

    A learner may know the answers of such pairs by heart, so that its accuracy on them
    says little about pairs of new items. The count is 0 for the folds of `ItemKFold`.
    Folds of `QueryKFold` and `DateSplit` may share items, as players come again.

    Parameters
    ----------
    pairs : Pairs or array-like of shape (m, 2, p), or row numbers of items, shape (m, 2)
        Items are the same if their features are.
    train, test : array-like of int or bool
        Row numbers, or masks, of the training pairs and of the test pairs.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        On bad pairs, row numbers or masks, or row numbers out of range.

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
            expected = f"row numbers, or a mask, of {len(pairs)} pairs ({error})"
            require(False, rows, name, expected)
    trained, tested = parts
    return int(np.isin(tested, trained).all(axis=1).sum())


def _units_of_groups(groups: ArrayLike | None, pairs: Pairs, kind: str) -> NDArray:
    """Units of both items of each pair, from the groups of `split`."""
    expected = f"a {kind} for each of the {len(pairs)} pairs: split(pairs, y, groups)"
    require(groups is not None, groups, "groups", expected)
    units: NDArray = np.asarray(
        check_query_ids(groups, len(pairs), "groups", kind, "pair")
    )
    number = np.unique(units, return_inverse=True)[1]
    return np.repeat(number[:, None], 2, axis=1)
