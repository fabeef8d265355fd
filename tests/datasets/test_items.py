from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from toy_register import add_r_files

from preflearn import datasets
from preflearn.datasets import storage


def test_r_tables_of_scored_items(toy, tmp_path):
    add_r_files(toy, tmp_path)
    auto = datasets.load_auto()
    assert auto.feature_names == ("cylinders",)
    assert auto.X.tolist() == [[8.0], [4.0]]
    assert auto.scores.tolist() == [18.0, 15.5]
    assert datasets.load_diabetes().scores.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", ["jester", "movielens"])
def test_ratings_are_those_of_the_file_and_a_stored_zero_is_one(toy, monkeypatch, name):
    """rdata writes no S4 objects, so that the parsed ones are made up here."""
    row = {"x": np.array([0.0, 2.5, -1.0]), "i": np.array([1, 0, 1]), "p": np.array([0, 1, 1, 3])}
    row |= {"Dim": np.array([2, 3]), "Dimnames": [np.array(["u", "v"]), np.array(["a", "é", "c"])]}
    matrix, seen = SimpleNamespace(data=SimpleNamespace(**row)), []
    objects = {"Jester5k": matrix, "MovieLense": matrix}
    monkeypatch.setattr(storage, "_r_objects", lambda content: seen.append(content) or objects)
    toy.add(name, {"jester": "Jester5k.rda", "movielens": "MovieLense.rda"}[name], b"bytes")
    load = getattr(datasets, f"load_{name}")
    one, two = load(), load()
    assert seen == [b"bytes"]
    assert one[1:] == two[1:] == (("u", "v"), ("a", "é", "c"), one.provenance)
    assert {type(text) for names in two[1:3] for text in names} == {str}
    assert (one.ratings != two.ratings).nnz == 0
    assert isinstance(two.ratings, sparse.csr_array)
    assert two.ratings.nnz == 3
    assert two.ratings.toarray().tolist() == [[0, 0, 2.5], [0, 0, -1]]
    assert two.ratings.indptr.tolist() == [0, 1, 3]


def test_cancer_needs_no_file(toy):
    X, scores, features, provenance = datasets.load_cancer()
    assert X.shape == (569, len(features)) == (569, 30)
    assert scores.sum() == 357
    assert provenance[0]["source"].startswith("scikit-learn")
