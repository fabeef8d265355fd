"""Splits over items, queries and dates do not leak. The leakage of other splits is
counted."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from property_examples import examples
from scipy import sparse
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from preflearn.core import (
    DateSplit,
    ItemKFold,
    OnItems,
    QueryKFold,
    check_leakage,
)
from preflearn.core.kernels import distinct_items
from preflearn.margins import MarginLP, MarginQP
from preflearn.metrics import threshold
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison
from preflearn.svm import LogisticCompare, LPCompare, SVMCompare, SVMRank


@st.composite
def comparisons(draw):
    """Return pairs of items, some of which have the same features, and a group for each
    pair."""
    n = draw(st.integers(4, 12))
    m = draw(st.integers(8, 40))
    X = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    first = draw(st.lists(st.integers(0, n - 1), min_size=m, max_size=m))
    steps = draw(st.lists(st.integers(1, n - 1), min_size=m, max_size=m))
    index = [(i, (i + step) % n) for i, step in zip(first, steps, strict=True)]
    groups = draw(st.lists(st.integers(0, 5), min_size=m, max_size=m))
    return Pairs(np.array(X, dtype=float)[:, None], index), np.array(groups)


def folds_of(splitter, pairs, groups=None):
    """Return the sets of training and of test pairs, or None if the splitter raises
    ValueError."""
    try:
        return [
            (set(train), set(test))
            for train, test in splitter.split(pairs, groups=groups)
        ]
    except ValueError:
        return None


@examples(60)
@given(comparisons(), st.integers(2, 4), st.booleans(), st.randoms())
def test_no_item_of_a_test_pair_occurs_in_training(problem, n_splits, shuffle, random):
    pairs, _ = problem
    splitter = ItemKFold(n_splits, shuffle=shuffle, random_state=3)
    folds = folds_of(splitter, pairs)
    assume(folds is not None)
    assert len(folds) == splitter.get_n_splits() == n_splits
    first = pairs.first.ravel()
    second = pairs.second.ravel()
    home = {}
    for fold, (train, test) in enumerate(folds):
        seen = {x for k in train for x in (first[k], second[k])}
        assert not seen & {x for k in test for x in (first[k], second[k])}
        for k in test:
            home |= {first[k]: fold, second[k]: fold}
    # a pair whose items are both in the test items of a fold is a test pair of it
    for k, (a, b) in enumerate(zip(first, second, strict=True)):
        if a in home and home[a] == home.get(b):
            assert k in folds[home[a]][1]
    order = list(range(len(pairs)))
    random.shuffle(order)
    permuted = folds_of(splitter, pairs[np.array(order)])
    assert [[{order[k] for k in part} for part in fold] for fold in permuted] == [
        list(fold) for fold in folds
    ]


def test_shuffled_folds_depend_on_the_seed():
    pairs, _ = noise(n=20)
    folds = [
        folds_of(ItemKFold(2, shuffle=shuffle, random_state=seed), pairs)
        for shuffle, seed in ((False, None), (True, 0), (True, 0), (True, 1))
    ]
    assert folds[1] == folds[2]
    assert folds[0] != folds[1] != folds[3]


@given(comparisons(), st.integers(2, 4))
def test_queries_are_split_whole_and_dates_forward(problem, n_splits):
    pairs, groups = problem
    folds = folds_of(QueryKFold(n_splits), pairs, groups)
    assert (folds is None) == (len(set(groups)) < n_splits)
    if folds is not None:
        assert sorted(k for _, test in folds for k in test) == list(range(len(pairs)))
        assert all(train | test == set(range(len(pairs))) for train, test in folds)
        assert all(
            not set(groups[list(train)]) & set(groups[list(test)])
            for train, test in folds
        )
    splits = folds_of(DateSplit(n_splits), pairs, groups)
    assert (splits is None) == (len(set(groups)) <= n_splits)
    for train, test in splits or []:
        start = groups[list(test)].min()
        end = groups[list(test)].max()
        assert train == set(np.flatnonzero(groups < start))
        assert test == set(np.flatnonzero((groups >= start) & (groups <= end)))


def noise(seed=0, n=60):
    """Return all pairs of random items with random scores, from which nothing can be
    learned."""
    rng = np.random.default_rng(seed)
    return Pairs.from_scores(rng.standard_normal((n, 5)), rng.random(n))


def test_folds_of_pairs_overrate_noise_and_their_leakage_is_counted():
    """The true accuracy is 1/2."""
    pairs, y = noise()
    model = SVMRank(kernel="rbf", C=10)
    folds = KFold(5, shuffle=True, random_state=0)
    assert cross_val_score(model, pairs, y, cv=folds).mean() > 0.9
    train, test = next(folds.split(y))
    assert check_leakage(pairs, train, test) == len(test) == 354
    folds = ItemKFold(5, shuffle=True, random_state=0)
    by_items = cross_val_score(model, pairs, y, cv=folds, error_score="raise")
    assert abs(by_items.mean() - 0.5) < 0.1


@given(comparisons(), st.randoms())
def test_leakage_is_that_of_items_with_equal_features(problem, random):
    pairs, groups = problem
    held_out = groups == random.randint(0, 5)
    seen = set(pairs[~held_out].first.ravel()) | set(pairs[~held_out].second.ravel())
    asked = pairs[held_out]
    expected = sum(
        {a, b} <= seen
        for a, b in zip(asked.first.ravel(), asked.second.ravel(), strict=True)
    )
    assert check_leakage(pairs, ~held_out, held_out) == expected
    ids = np.flatnonzero(held_out)
    assert check_leakage(np.asarray(pairs), ~held_out, ids) == expected
    for train, test in folds_of(ItemKFold(2), pairs) or []:
        assert check_leakage(pairs, list(train), list(test)) == 0


def test_leakage_of_items_without_features_and_bad_rows():
    index = [[0, 1], [1, 2], [2, 0], [0, 3]]
    assert check_leakage(index, [0, 1], [2, 3]) == 1
    for wrong in (["a"], [4], [-5], [True, False]):
        with pytest.raises(ValueError, match="train"):
            check_leakage(index, wrong, [2])
        with pytest.raises(ValueError, match="test"):
            check_leakage(index, [2], wrong)


@pytest.mark.parametrize("splitter", [QueryKFold(3), DateSplit(3)])
def test_searches_take_queries_and_dates_as_groups(splitter):
    pairs, y = noise(n=20)
    days = np.datetime64("2020-01-01") + np.random.default_rng(0).integers(0, 9, len(y))
    for same in (pairs, np.asarray(pairs)):
        search = GridSearchCV(
            SVMRank(), {"C": [0.1, 1.0]}, cv=splitter, error_score="raise"
        )
        search.fit(same, y, groups=days)


def test_dates_may_be_iso_texts_and_pairs_row_numbers():
    index = [[0, 1], [1, 2], [2, 0], [0, 2]]
    texts = ["2024-03-01", "2024-02-15", "2024-01-20T12:00", "2024-01-21"]
    forms = (
        np.array(texts),
        pd.Series(texts, index=[9, 9, 8, 8]),
        pd.to_datetime(texts, format="ISO8601"),
    )
    for dates in (texts, *forms):
        found = [
            (train.tolist(), test.tolist())
            for train, test in DateSplit(3).split(index, groups=dates)
        ]
        assert found == [([2], [3]), ([2, 3], [1]), ([1, 2, 3], [0])]
    with pytest.raises(ValueError, match="01/03/2024"):
        DateSplit(2).split(
            index, groups=["01/03/2024", "15/02/2024", "20/01/2024", "21/01/2024"]
        )
    scores = cross_val_score(
        Davidson(), index * 9, [1, -1, 1, 0] * 9, cv=DateSplit(2), groups=np.arange(36)
    )
    assert np.isfinite(scores).all()
    assert [
        test.tolist() for _, test in ItemKFold(2).split([[0, 1], [2, 3], [3, 2]])
    ] == [[0], [1, 2]]


DAYS = ["2024-02-01", "2023-12-31", "2024-01-15", "2024-03-01"]


@pytest.mark.parametrize(
    "dates",
    [
        pd.Categorical(DAYS, categories=sorted(DAYS, reverse=True)),
        pd.Series(DAYS, dtype="category"),
        np.array(DAYS, dtype=bytes),
        [day.encode() for day in DAYS],
        pd.Categorical(
            ["c", "a", "b", "x"], categories=["a", "b", "c", "x"], ordered=True
        ),
        pd.Categorical([3, 1, 2, 7]),
    ],
)
def test_dates_of_any_type_train_on_the_past(dates):
    splits = DateSplit(3).split([[0, 1]] * 4, groups=dates)
    found = [(train.tolist(), test.tolist()) for train, test in splits]
    assert found == [([1], [2]), ([1, 2], [0]), ([0, 1, 2], [3])]


@pytest.mark.parametrize("kind", ["category", bytes])
def test_texts_that_are_not_dates_are_rejected_in_any_type(kind):
    texts = pd.Series(["01/03/2024", "15/02/2024", "20/01/2024", "21/01/2024"])
    dates = texts.astype("category")
    if kind is bytes:
        dates = texts.to_numpy(bytes)
    with pytest.raises(ValueError, match="01/03/2024"):
        list(DateSplit(2).split([[0, 1]] * 4, groups=dates))


MODELS = [
    *(
        SVMRank(kernel="linear"),
        SVMCompare(kernel="linear"),
        LPCompare(),
        LogisticCompare(),
    ),
    *(Davidson(), OrdinalComparison(), MarginLP(), MarginQP()),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_every_pair_estimator_works_in_a_pipeline(model):
    rng = np.random.default_rng(1)
    X = 100 + rng.standard_normal((24, 2)) * [1.0, 1000.0]
    d = (pairs := Pairs.from_scores(X, X[:, 0])[0]).differences() @ [1.0, 0.001]
    pairs = pairs[(np.abs(d) < 0.4) | (np.abs(d) > 0.6)]
    y = threshold(pairs.differences() @ [1.0, 0.001], 0.5)
    pipe = make_pipeline(OnItems(StandardScaler()), model)
    assert (
        cross_val_score(pipe, pairs, y, cv=ItemKFold(3), error_score="raise").mean()
        > 0.6
    )
    train, test = next(ItemKFold(3).split(pairs))
    pipe.fit(pairs[train], y[train]).score(pairs[train], y[train])
    pipe.score(pairs[test], y[test])


@pytest.mark.parametrize(
    "search",
    [
        GridSearchCV(
            SVMRank(), {"C": [1.0, 9.0]}, cv=ItemKFold(3), return_train_score=True
        ),
        HalvingGridSearchCV(
            SVMRank(), {"C": [1.0, 9.0]}, cv=ItemKFold(3), min_resources=90
        ),
    ],
    ids=lambda search: type(search).__name__,
)
def test_searches_of_scikit_learn_take_the_splits(search):
    assert 0 < search.fit(*noise(n=20)).best_score_ < 0.8


def test_sparse_items_are_split_like_dense_ones():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (12, 4)) * 1.0  # some items are equal
    pairs, y = Pairs.from_scores(X, rng.random(12))
    kept = pairs.with_items(sparse.csr_array(X))
    kept.items.data[:] = 1.0
    dense = distinct_items(pairs)[1]
    found = distinct_items(kept)[1]
    assert len(np.unique(found)) == len(np.unique(dense)) < 12
    assert len(
        np.unique(np.column_stack([found.ravel(), dense.ravel()]), axis=0)
    ) == len(np.unique(dense))
    pipe = make_pipeline(OnItems(MaxAbsScaler()), SVMRank(kernel="linear"))
    assert (
        len(cross_val_score(pipe, kept, y, cv=ItemKFold(2), error_score="raise")) == 2
    )


@pytest.mark.parametrize(
    ("splitter", "groups", "words"),
    [
        (ItemKFold(7), None, "n_splits is 7.* 6 "),
        (ItemKFold(6), None, "split 1 of 6.*fewer splits"),
        (ItemKFold(1), None, "n_splits is 1"),
        (QueryKFold(2), None, "groups is None"),
        (QueryKFold(2), [1, 2], "groups .*query"),
        (QueryKFold(2), [1, 2, np.nan, 1, 2], r"groups\[2\] is nan"),
        (DateSplit(2), [8, 9, "10", 11, 12], "one type"),
        (ItemKFold(2, shuffle="x"), None, "shuffle is 'x'"),
        (ItemKFold(2, shuffle=True, random_state="x"), None, "random_state is 'x'"),
        (QueryKFold(2, random_state=-1), [1, 2, 3, 1, 2], "random_state is -1"),
        (DateSplit(3), [1, 1, 2, 2, 3], "n_splits is 3.* 2"),
    ],
)
def test_bad_splits_and_groups_are_named(splitter, groups, words):
    pairs = Pairs(np.arange(6.0)[:, None], [(i, i + 1) for i in range(5)])
    with pytest.raises(ValueError, match=words):
        splitter.split(pairs, groups=groups)
