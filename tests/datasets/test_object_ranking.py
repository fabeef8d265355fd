"""The object rankings of [AhmadiFahandar2019]_, on small files and on the real ones."""

import csv

import numpy as np
import pytest

from preflearn import datasets
from preflearn_book.runner.records import project_file


def test_object_rankings_in_both_encodings_of_the_files(toy):
    text = '"RANK","Bundesliga","GP","Pts","W","Home"\n1,"München",34,88,28,"15-1"\n3,"Köln",34,50,11,"1-1"\n'
    toy.add("object_ranking", "ds_B1.csv", text.encode("cp1252"))
    toy.add("object_ranking", "ds_B2.csv", text.encode("utf-8"))
    one = datasets.load_object_ranking("B1")
    two = datasets.load_object_ranking("B2")
    assert one.item_names == two.item_names == ("München", "Köln")
    assert one.feature_names == ("Pts", "W")
    np.testing.assert_array_equal(one.X, [[88, 28], [50, 11]])
    assert one.y.tolist() == [-1, -3]
    assert one.provenance[0]["file"] == "ds_B1.csv"
    with pytest.raises(ValueError, match=r"name is 'B3'.*'D1'"):
        datasets.load_object_ranking("B3")


# The real files: [AhmadiFahandar2019], Table 1


TABLE_1 = list(
    csv.DictReader(project_file("data/published/P5_table_1.csv").open(encoding="utf-8"))
)


def test_the_public_data_of_table_1_have_loaders():
    assert {row["name"] for row in TABLE_1} - {"B3"} == set(datasets.OBJECT_RANKINGS)


@pytest.mark.parametrize(
    "row", [row for row in TABLE_1 if row["name"] != "B3"], ids=lambda row: row["name"]
)
def test_object_ranking(load, row):
    data = load("object_ranking", datasets.load_object_ranking, row["name"])
    assert data.X.shape == (int(row["instances"]), int(row["features"]))
    assert len(data.item_names) == len(data.y) == len(data.X)
    assert len(data.feature_names) == data.X.shape[1]
    assert data.y[0] == -1
    assert (np.diff(data.y) <= 0).all()
    assert not any(name.upper() == "RANK" for name in data.feature_names)


@pytest.mark.parametrize(
    ("train", "test", "printed"),
    [
        ("D1", "D2", 0.053),
        ("D2", "D1", 0.056),
        ("B1", "B2", 0.065),
        ("B2", "B1", 0.118),
        ("G1", "G2", 0.102),
        ("G1", "G3", 0.056),
        ("G2", "G1", 0.100),
        ("G3", "G1", 0.029),
        ("G3", "G2", 0.088),
    ],
)
def test_least_squares_on_ranks_has_the_losses_of_table_2(load, train, test, printed):
    """Expected rank regression on one ranking is least squares on its ranks."""
    known, query = (
        load("object_ranking", datasets.load_object_ranking, name)
        for name in (train, test)
    )
    # A column that depends on earlier columns is left out, as in R.
    kept = []
    for number in range(known.X.shape[1]):
        wider = known.X[:, [*kept, number]]
        wider = (wider - wider.mean(axis=0)) / np.maximum(wider.std(axis=0), 1e-9)
        if np.linalg.matrix_rank(wider, tol=1e-7) == len(kept) + 1:
            kept.append(number)
    design = np.column_stack([np.ones(len(known.X)), known.X[:, kept]])
    weights = np.linalg.lstsq(design, -known.y, rcond=None)[0]
    predicted = query.X[:, kept] @ weights[1:]
    better, worse = np.triu_indices(len(predicted), 1)
    loss = (predicted[better] > predicted[worse]).mean()
    # the tolerance is one pair of 496
    assert loss == pytest.approx(printed, abs=0.0021)
