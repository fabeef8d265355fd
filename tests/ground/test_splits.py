"""Splits over items, queries and dates: nothing of what is tested was seen before."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from preflearn.ground import DateSplit, ItemKFold, QueryKFold
from preflearn.pairs import Pairs
from preflearn.svm import SVMRank


@st.composite
def comparisons(draw):
    """Pairs of items, some of which have the same features, and a group for each pair."""
    n, m = draw(st.integers(4, 12)), draw(st.integers(8, 40))
    X = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    first = draw(st.lists(st.integers(0, n - 1), min_size=m, max_size=m))
    steps = draw(st.lists(st.integers(1, n - 1), min_size=m, max_size=m))
    index = [(i, (i + step) % n) for i, step in zip(first, steps, strict=True)]
    groups = draw(st.lists(st.integers(0, 5), min_size=m, max_size=m))
    return Pairs(np.array(X, dtype=float)[:, None], index), np.array(groups)


def folds_of(splitter, pairs, groups=None):
    """Sets of pairs that train and that test, or None where the splitter refuses."""
    try:
        return [(set(train), set(test)) for train, test in splitter.split(pairs, groups=groups)]
    except ValueError:
        return None


@settings(max_examples=60)
@given(comparisons(), st.integers(2, 4), st.booleans(), st.randoms())
def test_no_item_of_a_test_pair_occurs_in_training(problem, n_splits, shuffle, random):
    pairs, _ = problem
    splitter = ItemKFold(n_splits, shuffle=shuffle, random_state=3)
    folds = folds_of(splitter, pairs)
    if folds is None:
        return
    assert len(folds) == splitter.get_n_splits() == n_splits
    first, second = pairs.first.ravel(), pairs.second.ravel()
    home = {}
    for fold, (train, test) in enumerate(folds):
        seen = {x for k in train for x in (first[k], second[k])}
        assert not seen & {x for k in test for x in (first[k], second[k])}
        for k in test:
            home |= {first[k]: fold, second[k]: fold}
    for k, (a, b) in enumerate(zip(first, second, strict=True)):  # every pair that can be tested is
        if a in home and home[a] == home.get(b):
            assert k in folds[home[a]][1]
    order = list(range(len(pairs)))
    random.shuffle(order)
    permuted = folds_of(splitter, pairs[np.array(order)]) or []
    assert [[{order[k] for k in part} for part in fold] for fold in permuted] == [
        list(fold) for fold in folds
    ]


@given(comparisons(), st.integers(2, 4))
def test_queries_are_split_whole_and_dates_forward(problem, n_splits):
    pairs, groups = problem
    folds = folds_of(QueryKFold(n_splits), pairs, groups)
    assert (folds is None) == (len(set(groups)) < n_splits)
    if folds is not None:
        assert sorted(k for _, test in folds for k in test) == list(range(len(pairs)))
        assert all(train | test == set(range(len(pairs))) for train, test in folds)
        assert all(not set(groups[list(train)]) & set(groups[list(test)]) for train, test in folds)
    splits = folds_of(DateSplit(n_splits), pairs, groups)
    assert (splits is None) == (len(set(groups)) <= n_splits)
    for train, test in splits or []:
        start, end = groups[list(test)].min(), groups[list(test)].max()
        assert train == set(np.flatnonzero(groups < start))
        assert test == set(np.flatnonzero((groups >= start) & (groups <= end)))


def test_searches_of_scikit_learn_take_them_and_noise_is_seen_as_noise():
    rng = np.random.default_rng(0)
    pairs, y = Pairs.from_scores(rng.standard_normal((40, 5)), rng.random(40))
    model, cv = SVMRank(kernel="rbf", C=10), ItemKFold(4, shuffle=True, random_state=0)
    assert cross_val_score(model, pairs, y, cv=KFold(4, shuffle=True, random_state=0)).mean() > 0.85
    assert cross_val_score(model, pairs, y, cv=cv).mean() < 0.6
    days = np.datetime64("2020-01-01") + rng.integers(0, 9, len(y))
    for splitter in (QueryKFold(3), DateSplit(3)):
        search = GridSearchCV(SVMRank(), {"C": [0.1, 1.0]}, cv=splitter).fit(
            np.asarray(pairs), y, groups=days
        )
        assert search.n_splits_ == 3
    assert repr(ItemKFold(3)) == "ItemKFold(n_splits=3, random_state=None, shuffle=False)"


@pytest.mark.parametrize(
    ("splitter", "groups", "message"),
    [
        (ItemKFold(7), None, "n_splits is 7; expected at most 6, for 6 different items"),
        (ItemKFold(6), None, "split 0 of 6 has no pair to test among 5 pairs; expected fewer splits"),
        (ItemKFold(1), None, "n_splits is 1; expected a whole number of at least 2"),
        (QueryKFold(2), None, "groups is None; expected a query id for each of the 5 pairs"),
        (QueryKFold(2), [1, 2], r"groups has shape \(2,\); expected \(5,\): one query id a pair"),
        (QueryKFold(2), [1, 2, np.nan, 1, 2], r"groups\[2\] is nan"),
        (QueryKFold(2), ["a", "a", np.nan, "b", "b"], r"groups\[2\] is nan"),
        (QueryKFold(2), [1, "1", 2, "2", 3], "expected ids of one kind"),
        (DateSplit(2), [8, 9, "10", 11, 12], "expected ids of one kind"),
        (ItemKFold(2, shuffle="x"), None, "shuffle is 'x'; expected True or False"),
        (
            ItemKFold(2, shuffle=True, random_state="x"),
            None,
            "random_state is 'x'; expected a seed, a whole number from 0",
        ),
        (QueryKFold(2, random_state=-1), [1, 2, 3, 1, 2], "random_state is -1; expected a seed, a whole"),
        (DateSplit(3), [1, 1, 2, 2, 3], "n_splits is 3; expected at most 2, for 3 different dates"),
    ],
)
def test_bad_input_says_what_is_wrong(splitter, groups, message):
    pairs = Pairs(np.arange(6.0)[:, None], [(i, i + 1) for i in range(5)])
    with pytest.raises(ValueError, match=message):
        splitter.split(pairs, groups=groups)
