"""Splits over items, queries and dates do not leak, and splits over pairs cause a
LeakageWarning."""

import pickle
from pathlib import Path

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
    cross_val_predict,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import preflearn
from preflearn.core import DateSplit, ItemKFold, LeakageWarning, OnItems, QueryKFold
from preflearn.core.kernels import distinct_items
from preflearn.margins import MarginLP, MarginQP
from preflearn.metrics import threshold
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison
from preflearn.svm import LogisticCompare, LPCompare, SVMCompare, SVMRank

# A leakage warning that no test expects is an error, also in other processes.
pytestmark = pytest.mark.filterwarnings("error::preflearn.core.LeakageWarning")
PACKAGE = Path(preflearn.__file__).parent


@st.composite
def comparisons(draw):
    """Pairs of items, some of which have the same features, and a group for each pair."""
    n = draw(st.integers(4, 12))
    m = draw(st.integers(8, 40))
    X = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    first = draw(st.lists(st.integers(0, n - 1), min_size=m, max_size=m))
    steps = draw(st.lists(st.integers(1, n - 1), min_size=m, max_size=m))
    index = [(i, (i + step) % n) for i, step in zip(first, steps, strict=True)]
    groups = draw(st.lists(st.integers(0, 5), min_size=m, max_size=m))
    return Pairs(np.array(X, dtype=float)[:, None], index), np.array(groups)


def folds_of(splitter, pairs, groups=None):
    """Sets of training pairs and of test pairs, or None if the splitter raises
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
    # both items are in the test fold
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
    """All pairs of random items, with random scores: there is nothing to learn."""
    rng = np.random.default_rng(seed)
    return Pairs.from_scores(rng.standard_normal((n, 5)), rng.random(n))


def test_folds_of_pairs_overrate_noise_and_warn_once():
    """The true accuracy is one half."""
    pairs, y = noise()
    model = SVMRank(kernel="rbf", C=10)
    with pytest.warns(LeakageWarning, match=r"SVMRank.*354.*ItemKFold") as caught:
        by_pairs = cross_val_score(
            model, pairs, y, cv=KFold(5, shuffle=True, random_state=0)
        )
    assert by_pairs.mean() > 0.9
    assert len(caught) == 1
    # these pairs had their warning
    cross_val_score(model, pairs, y, cv=KFold(5), error_score="raise")
    pairs, y = noise()
    folds = ItemKFold(5, shuffle=True, random_state=0)
    by_items = cross_val_score(model, pairs, y, cv=folds, error_score="raise")
    assert abs(by_items.mean() - 0.5) < 0.1


def fit_on_a_part(model, pairs, y):
    train, test, labels, _ = train_test_split(pairs, y, random_state=0)
    return model.fit(train, labels), test


def predict(pairs, y):
    model, test = fit_on_a_part(SVMRank(), pairs, y)
    model.predict(test)


def decide(pairs, y):
    model, test = fit_on_a_part(SVMRank(), pairs, y)
    model.decision_function(test)


def predict_probabilities(pairs, y):
    model, test = fit_on_a_part(Davidson(), pairs, y)
    model.predict_proba(test)


def predict_folds(pairs, y):
    cross_val_predict(SVMRank(), pairs, y, cv=KFold(5))


@pytest.mark.parametrize(
    "call", [predict, decide, predict_probabilities, predict_folds]
)
def test_the_warning_comes_once_and_names_a_file_outside_the_package(call):
    with pytest.warns(LeakageWarning) as caught:
        call(*noise(n=30))
    (warning,) = [one for one in caught if issubclass(one.category, LeakageWarning)]
    assert not Path(warning.filename).is_relative_to(PACKAGE)
    if call is not predict_folds:
        assert warning.filename == __file__


def test_training_pairs_new_pairs_few_pairs_and_items_without_features_do_not_leak():
    pairs, y = noise(n=20)
    model = SVMRank().fit(pairs[:100], y[:100])
    for asked in (
        pairs,
        pairs[:100],
        pairs[50:],
        pairs[:100].swapped(),
        pairs[:9],
        pairs[-9:],
    ):
        model.predict(asked)
    # new comparisons of known items: a forecast
    model.predict(Pairs(pairs.items, pairs.index[100:]))
    SVMRank().fit(pairs, y).predict(pairs[100:])
    by_name = Pairs(np.eye(20), pairs.index)
    Davidson(alpha=1.0).fit(by_name[:100], y[:100]).predict(by_name[100:])
    with pytest.warns(LeakageWarning, match="10"):
        model.predict(pairs[-10:])


@pytest.mark.parametrize("splitter", [QueryKFold(3), DateSplit(3)])
def test_items_may_return_in_folds_of_queries_and_dates_but_not_in_folds_of_pairs(
    splitter,
):
    pairs, y = noise(n=20)
    moments = np.arange(len(y)) // (1 if isinstance(splitter, DateSplit) else 10)
    cross_val_score(
        SVMRank(), pairs, y, cv=splitter, groups=moments, error_score="raise"
    )
    cross_val_score(
        SVMRank(),
        pairs[:99],
        y[:99],
        cv=splitter,
        groups=moments[:99],
        error_score="raise",
    )
    train, test = next(splitter.split(pairs, y, moments))
    SVMRank().fit(pairs[train[::2]], y[train[::2]]).score(
        pairs[test[::3]], y[test[::3]]
    )
    days = np.datetime64("2020-01-01") + np.random.default_rng(0).integers(0, 9, len(y))
    for same in (noise(n=20)[0], np.asarray(pairs)):
        search = GridSearchCV(
            SVMRank(), {"C": [0.1, 1.0]}, cv=splitter, error_score="raise"
        )
        search.fit(same, y, groups=days)
    with pytest.warns(LeakageWarning):
        cross_val_score(SVMRank(), pairs, y, cv=KFold(3, shuffle=True, random_state=0))


def test_copies_know_the_groups_and_the_warnings_of_their_pairs():
    pairs, y = noise(n=20)
    splitter = DateSplit(3)
    train, test = next(splitter.split(pairs, y, np.arange(len(y))))
    again = pickle.loads(pickle.dumps(pairs))
    SVMRank().fit(again[train], y[train]).score(again[test], y[test])
    with pytest.warns(LeakageWarning) as caught:
        SVMRank().fit(again[::2], y[::2]).score(again[1::2], y[1::2])
    assert len(caught) == 1
    SVMRank().fit(pairs[::2], y[::2]).predict(pairs[1::2])


@pytest.mark.nightly
def test_other_processes_know_the_pairs_and_their_groups():
    pairs, y = noise(n=20)
    options = {"n_jobs": 2, "error_score": "raise"}
    cross_val_score(
        SVMRank(), pairs, y, cv=DateSplit(3), groups=np.arange(len(y)), **options
    )
    with pytest.raises(LeakageWarning):
        cross_val_score(SVMRank(), *noise(n=20), cv=KFold(3), **options)


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
def test_every_pair_estimator_works_in_a_pipeline_and_warns_of_leakage(model):
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
    with pytest.warns(LeakageWarning, match=type(model).__name__):
        cross_val_score(pipe, pairs, y, cv=KFold(3), error_score="raise")


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
    X = rng.integers(0, 2, (12, 4)) * 1.0  # some are equal
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
        (ItemKFold(6), None, "split 0 of 6.*fewer splits"),
        (ItemKFold(1), None, "n_splits is 1"),
        (QueryKFold(2), None, "groups is None"),
        (QueryKFold(2), [1, 2], "groups .*query"),
        (QueryKFold(2), [1, 2, np.nan, 1, 2], r"groups\[2\] is nan"),
        (DateSplit(2), [8, 9, "10", 11, 12], "kind"),
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
