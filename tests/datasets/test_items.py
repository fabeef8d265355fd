"""Loaders of scored and rated items, on small files and on the real ones."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from toy_register import add_r_files

from preflearn import datasets
from preflearn.datasets import storage
from preflearn.pairs import Pairs


def test_r_tables_of_scored_items(toy, tmp_path):
    add_r_files(toy, tmp_path)
    auto = datasets.load_auto()
    assert auto.feature_names == ("cylinders",)
    assert auto.X.tolist() == [[8.0], [4.0]]
    assert auto.scores.tolist() == [18.0, 15.5]
    assert datasets.load_diabetes().scores.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", ["jester", "movielens"])
def test_ratings_are_those_of_the_file_and_a_stored_zero_is_a_rating(
    toy, monkeypatch, name
):
    """rdata cannot write S4 objects, so the test creates the parsed objects."""
    row = {
        "x": np.array([0.0, 2.5, -1.0]),
        "i": np.array([1, 0, 1]),
        "p": np.array([0, 1, 1, 3]),
    }
    row |= {"Dim": np.array([2, 3])}
    matrix = SimpleNamespace(data=SimpleNamespace(**row))
    seen = []
    objects = {"Jester5k": matrix, "MovieLense": matrix}
    monkeypatch.setattr(
        storage, "_r_objects", lambda content: seen.append(content) or objects
    )
    toy.add(
        name, {"jester": "Jester5k.rda", "movielens": "MovieLense.rda"}[name], b"bytes"
    )
    load = getattr(datasets, f"load_{name}")
    one = load()
    two = load()
    assert seen == [b"bytes"]
    assert one.provenance == two.provenance
    assert isinstance(two.ratings, sparse.csr_array)
    assert two.ratings.nnz == 3
    for data in (one, two):
        assert data.ratings.toarray().tolist() == [[0, 0, 2.5], [0, 0, -1]]


def add_queries(toy, sizes="2\n1\n"):
    toy.add("lightgbm_ranking", "rank.train", b"2 1:0.5 3:1\n0 2:0.25\n1 1:1\n")
    toy.add("lightgbm_ranking", "rank.train.query", sizes.encode())
    toy.add("lightgbm_ranking", "rank.test", b"4 5:0.75\n")
    toy.add("lightgbm_ranking", "rank.test.query", b"1\n")


def test_documents_of_both_files_have_the_same_columns_and_their_queries(toy):
    add_queries(toy)
    data = datasets.load_lightgbm_ranking()
    assert isinstance(data.X, sparse.csr_array)
    assert data.X.toarray().tolist() == [
        [0.5, 0, 1, 0, 0],
        [0, 0.25, 0, 0, 0],
        [1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0.75],
    ]
    assert data.scores.tolist() == [2, 0, 1, 4]
    assert data.qid.tolist() == [0, 0, 1, 2]
    assert data.is_test.tolist() == [False, False, False, True]
    assert len(data.provenance) == 4


def test_query_sizes_that_do_not_fit_the_documents_are_an_error(toy):
    add_queries(toy, sizes="2\n2\n")
    with pytest.raises(ValueError, match=r"rank\.train\.query is 4; expected 3"):
        datasets.load_lightgbm_ranking()


def test_cancer_needs_no_file(toy):
    X, scores, features, _ = datasets.load_cancer()
    np.testing.assert_array_equal(X, load_breast_cancer().data)
    assert len(features) == 30
    assert scores.sum() == 357  # benign is the better class
    assert len(Pairs.from_scores(X, scores)[0]) == 75_684  # as in Table 1


# The real files: [Zapien2009], Table 1, and [Tsivtsivadze2013], section 6


@pytest.mark.parametrize(
    ("name", "n_features", "n_pairs"),
    [("mixture", 2, 10_000), ("auto", 7, 75_245), ("diabetes", 8, 134_000)],
)
def test_scored_items(load, name, n_features, n_pairs):
    data = load(name, getattr(datasets, f"load_{name}"))
    pairs, _ = Pairs.from_scores(data.X, data.scores)
    assert len(pairs) == n_pairs
    assert data.X.shape[1] == len(data.feature_names) == n_features


@pytest.mark.parametrize(
    ("name", "shape", "n_ratings", "low", "high"),
    [
        ("jester", (5000, 100), 363_209, -10, 10),
        ("movielens", (943, 1664), 99_392, 1, 5),
    ],
)
def test_ratings(load, name, shape, n_ratings, low, high):
    data = load(name, getattr(datasets, f"load_{name}"))
    assert data.ratings.shape == shape
    assert data.ratings.nnz == n_ratings
    assert low <= data.ratings.data.min() < data.ratings.data.max() <= high


def test_search_results(load):
    data = load("lightgbm_ranking", datasets.load_lightgbm_ranking)
    assert data.X.shape == (len(data.scores), 300)
    assert data.X.data.min() > 0
    assert data.X.data.max() <= 1
    assert set(data.scores) == {0, 1, 2, 3, 4}
    n_queries = [
        len(np.unique(data.qid[data.is_test == part])) for part in (False, True)
    ]
    assert n_queries == [201, 50]
    assert np.bincount(data.qid).min() == 1
