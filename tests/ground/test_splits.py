"""Splits over items, queries and dates: nothing of what is tested was seen before."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from preflearn.ground import DateSplit, ItemKFold, LeakageWarning, OnItems, QueryKFold
from preflearn.ground.kernels import distinct_items
from preflearn.margins import MarginLP, MarginQP
from preflearn.metrics import threshold
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison
from preflearn.svm import LogisticCompare, LPCompare, SVMCompare, SVMRank


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


def noise(seed=0, n=60):
    rng = np.random.default_rng(seed)
    return Pairs.from_scores(rng.standard_normal((n, 5)), rng.random(n))


def test_folds_of_pairs_learn_noise_by_heart_and_say_so_once():
    """Nothing can be learned here: an honest score is near one half."""
    (pairs, y), model = noise(), SVMRank(kernel="rbf", C=10)
    with pytest.warns(LeakageWarning, match=r"SVMRank met both items of 354 of these 354 pairs") as caught:
        by_pairs = cross_val_score(model, pairs, y, cv=KFold(5, shuffle=True, random_state=0))
    assert by_pairs.mean() > 0.9
    assert sum(issubclass(warning.category, LeakageWarning) for warning in caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakageWarning)
        cross_val_score(model, pairs, y, cv=KFold(5))  # told once
        pairs, y = noise()
        by_items = cross_val_score(model, pairs, y, cv=ItemKFold(5, shuffle=True, random_state=0))
    assert abs(by_items.mean() - 0.5) < 0.1


def by_hand(model, pairs, y):
    train, _, answers, _ = train_test_split(pairs, y, random_state=0)
    return model.fit(train, answers)


def held_out(pairs):
    return train_test_split(pairs, random_state=0)[1]


DOORS = {
    "scoring": lambda model, *data: cross_val_score(model, *data, cv=KFold(5), scoring="accuracy"),
    "cross_val_predict": lambda model, *data: cross_val_predict(model, *data, cv=KFold(5)),
    "predict": lambda model, pairs, y: by_hand(model, pairs, y).predict(held_out(pairs)),
    "differences": lambda model, pairs, y: by_hand(model, pairs, y).decision_function(held_out(pairs)),
    "chances": lambda _, pairs, y: by_hand(Davidson(), pairs, y).predict_proba(held_out(pairs)),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_leak_is_told_once_by_whatever_door_and_where_it_was_asked(door):
    """Only `score` told: all these were 0.9 on noise without a word."""
    with pytest.warns(LeakageWarning) as caught:
        door(SVMRank(C=10), *noise(n=30))
    (said,) = [warning for warning in caught if issubclass(warning.category, LeakageWarning)]
    assert "preflearn" not in Path(said.filename).parts


def test_training_pairs_more_than_these_and_new_pairs_are_no_leak():
    pairs, y = noise(n=20)
    model = SVMRank().fit(pairs[:100], y[:100])
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakageWarning)
        for asked in (pairs, pairs[:100], pairs[50:], pairs[:100].swapped(), pairs[:9]):
            model.predict(asked)
        model.predict(Pairs(pairs.items, pairs.index[100:]))  # a forecast
        SVMRank().fit(pairs, y).predict(pairs[100:])
    with pytest.warns(LeakageWarning, match="both items of 90 of these 90"):
        model.predict(pairs[100:])


@pytest.mark.parametrize("splitter", [QueryKFold(3), DateSplit(3)])
def test_a_splitter_answers_for_its_own_folds_only(splitter):
    """After it, folds of pairs passed in silence for ever."""
    pairs, y = noise(n=20)
    moments = np.arange(len(y)) // (1 if isinstance(splitter, DateSplit) else 10)  # all dates are different
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakageWarning)
        cross_val_score(SVMRank(), pairs, y, cv=splitter, groups=moments, error_score="raise")
        cross_val_score(SVMRank(), pairs[:99], y[:99], cv=splitter, groups=moments[:99])
        train, test = next(splitter.split(pairs, y, moments))
        SVMRank().fit(pairs[train[::2]], y[train[::2]]).score(pairs[test[::3]], y[test[::3]])
    with pytest.warns(LeakageWarning):
        cross_val_score(SVMRank(), pairs, y, cv=KFold(3, shuffle=True, random_state=0))


def test_other_processes_know_the_slices_and_what_parted_them():
    pairs, y = noise(n=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakageWarning)  # also in the workers
        options = {"n_jobs": 2, "error_score": "raise"}
        cross_val_score(SVMRank(), pairs, y, cv=DateSplit(3), groups=np.arange(len(y)), **options)
        with pytest.raises(LeakageWarning):
            cross_val_score(SVMRank(), *noise(n=20), cv=KFold(3), **options)
    again = pickle.loads(pickle.dumps(pairs))
    with pytest.warns(LeakageWarning) as caught:
        SVMRank().fit(again[90:], y[90:]).score(again[:90], y[:90])
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakageWarning)
        SVMRank().fit(pairs[90:], y[90:]).predict(pairs[:90])  # a process is told once
        SVMRank().fit(again[:90], y[:90]).score(again[90:], y[90:])


def test_dates_may_be_iso_texts_and_row_numbers_are_split():
    index = [[0, 1], [1, 2], [2, 0], [0, 2]]
    texts = ["2024-03-01", "2024-02-15", "2024-01-20T12:00", "2024-01-21"]
    forms = np.array(texts), pd.Series(texts, index=[9, 9, 8, 8]), pd.to_datetime(texts, format="ISO8601")
    for dates in (texts, *forms):
        found = [(train.tolist(), test.tolist()) for train, test in DateSplit(3).split(index, groups=dates)]
        assert found == [([2], [3]), ([2, 3], [1]), ([1, 2, 3], [0])]
    with pytest.raises(
        ValueError, match=r"time\[0\] is '01/03/2024'; expected .* ISO texts such as 2024-01-31"
    ):
        DateSplit(2).split(index, groups=["01/03/2024", "15/02/2024", "20/01/2024", "21/01/2024"])
    scores = cross_val_score(Davidson(), index * 9, [1, -1, 1, 0] * 9, cv=DateSplit(2), groups=np.arange(36))
    assert np.isfinite(scores).all()
    assert [test.tolist() for _, test in ItemKFold(2).split([[0, 1], [2, 3], [3, 2]])] == [[0], [1, 2]]


@pytest.mark.parametrize("splitter", [QueryKFold(3), DateSplit(3)])
def test_who_splits_queries_or_dates_knows_that_items_come_again(splitter):
    pairs, y = noise(n=20)
    days = np.datetime64("2020-01-01") + np.random.default_rng(0).integers(0, 9, len(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakageWarning)
        for given in (pairs, np.asarray(pairs)):
            search = GridSearchCV(SVMRank(), {"C": [0.1, 1.0]}, cv=splitter).fit(given, y, groups=days)
            assert search.n_splits_ == 3


EVERY = [
    *(SVMRank(kernel="linear"), SVMCompare(kernel="linear"), LPCompare(), LogisticCompare()),
    *(Davidson(), OrdinalComparison(), MarginLP(), MarginQP()),
]


@pytest.mark.parametrize("model", EVERY, ids=lambda model: type(model).__name__)
def test_every_estimator_on_pairs_has_a_pipeline_honest_folds_and_the_warning(model):
    rng = np.random.default_rng(1)
    X = 100 + rng.standard_normal((24, 2)) * [1.0, 1000.0]
    d = (pairs := Pairs.from_scores(X, X[:, 0])[0]).differences() @ [1.0, 0.001]
    pairs = pairs[(np.abs(d) < 0.4) | (np.abs(d) > 0.6)]
    y = threshold(pairs.differences() @ [1.0, 0.001], 0.5)
    pipe = make_pipeline(OnItems(StandardScaler()), model)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakageWarning)
        scores = cross_val_score(pipe, pairs, y, cv=ItemKFold(3), error_score="raise")
        assert scores.mean() > 0.6
        train, test = next(ItemKFold(3).split(pairs))
        pipe.fit(pairs[train], y[train]).score(pairs[train], y[train])
        pipe.score(pairs[test], y[test])
    with pytest.warns(LeakageWarning, match=type(model).__name__):
        cross_val_score(pipe, pairs, y, cv=KFold(3), error_score="raise")


@pytest.mark.parametrize(
    "search",
    [
        GridSearchCV(SVMRank(), {"C": [1.0, 9.0]}, cv=ItemKFold(3), return_train_score=True),
        RandomizedSearchCV(SVMRank(), {"C": [1.0, 9.0]}, n_iter=2, cv=ItemKFold(3)),
        HalvingGridSearchCV(SVMRank(), {"C": [1.0, 9.0]}, cv=ItemKFold(3), min_resources=90),
    ],
    ids=lambda search: type(search).__name__,
)
def test_searches_of_scikit_learn_take_them(search):
    pairs, y = noise(n=20)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakageWarning)
        assert 0 < search.fit(pairs, y).best_score_ < 0.8
    assert repr(ItemKFold(3)) == "ItemKFold(n_splits=3, random_state=None, shuffle=False)"


def test_sparse_items_are_split_like_dense_ones():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, (12, 4)) * 1.0  # some are equal
    pairs, y = Pairs.from_scores(X, rng.random(12))
    kept = pairs.with_items(sparse.csr_array(X))
    kept.items.data[:] = 1.0
    dense = distinct_items(pairs)[1]
    found = distinct_items(kept)[1]
    assert len(np.unique(found)) == len(np.unique(dense)) < 12
    assert len(np.unique(np.column_stack([found.ravel(), dense.ravel()]), axis=0)) == len(np.unique(dense))
    pipe = make_pipeline(OnItems(MaxAbsScaler()), SVMRank(kernel="linear"))
    assert len(cross_val_score(pipe, kept, y, cv=ItemKFold(2), error_score="raise")) == 2


@pytest.mark.parametrize(
    ("splitter", "groups", "message"),
    [
        (ItemKFold(7), None, "n_splits is 7; expected at most 6, for 6 different items"),
        (
            ItemKFold(6),
            None,
            "to test in split 0 of 6 is 0; expected some of the 5 pairs: fewer splits",
        ),
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


def test_forecasts_of_few_pairs_and_of_items_without_features_are_no_leak():
    """One pair was warned of, and models of items alone, whose use it is to compare them again."""
    pairs, y = noise(n=20)
    learner = SVMRank().fit(pairs[:-20], y[:-20])
    named = Pairs(np.eye(20), pairs.index)
    by_name = Davidson(alpha=1.0).fit(named[:-20], y[:-20])
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeakageWarning)
        learner.predict(pairs[-9:])
        by_name.predict(named[-20:])
    with pytest.warns(LeakageWarning, match="of these 10 pairs"):
        learner.predict(pairs[-10:])
