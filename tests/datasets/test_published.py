"""The real data against what the papers print, where they are; else the loader says how to get them."""

import csv
from collections import Counter

import numpy as np
import pytest

from bookrunner.records import project_file, published
from preflearn import datasets
from preflearn.datasets import DatasetUnavailable
from preflearn.datasets.storage import read
from preflearn.margins import MarginLP, MarginQP
from preflearn.pairs import Pairs
from preflearn.path import reduced_graph


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")


def load(dataset, loader, *arguments):
    """What the loader gives; if the data are not here it says so, and the test ends."""
    if datasets.available(dataset):
        result = loader(*arguments)
        assert {row["source"] for row in result.provenance} <= {"mirror", "cache"}
        return result
    with pytest.raises(DatasetUnavailable, match=rf"{dataset}/.*PREFLEARN_OFFLINE.*Licence: "):
        loader(*arguments)
    return pytest.skip(f"{dataset} is not here")


def check_matches(data):
    matches = data.matches
    assert matches["time"].is_monotonic_increasing
    assert (matches["first"] != matches["second"]).all()
    assert set(matches["outcome"]) <= {-1, 0, 1}
    assert not matches.isna().any().any()
    assert set(data.names) == set(matches["first"]) | set(matches["second"])


def n_names(matches):
    return len(set(matches["first"]) | set(matches["second"]))


# [Venuto2017], Figure 2 and section 4.2


@pytest.mark.parametrize(("divisor", "share"), [(1, 0.2699), (50, 0.9069), (58, 0.9966), (59, 1), (100, 1)])
def test_the_margins_of_figure_2(divisor, share):
    """QP over LP on the first 50 pairs, as drawn: apart unscaled, equal where the paper divides by 100."""
    table = published("P1_figure_2")
    assert table["y"].value_counts().to_dict() == {0: 89, 1: 50, -1: 50}
    figure = table[:50]
    assert len(np.unique(figure.to_numpy()[:, :4].reshape(-1, 2), axis=0)) == 20
    differences = [(figure[f"{name}_prime"] - figure[name]).to_numpy() for name in ("distance", "angle")]
    D = np.column_stack(differences) * [1 / divisor, 2]
    pairs, y = Pairs.from_arrays(D, np.zeros_like(D)), figure["y"].to_numpy()
    lp, qp = MarginLP().fit(pairs, y), MarginQP().fit(pairs, y)
    assert lp.margin_ == pytest.approx(0.4469792487, rel=1e-9)
    assert qp.margin_ / lp.margin_ == pytest.approx(share, rel=1e-9 if share == 1 else 1e-3)
    np.testing.assert_array_equal(lp.predict(pairs), y)


def test_sushi():
    sushi = load("sushi", datasets.load_sushi)
    pairs, y = sushi.pairs, sushi.y
    assert Counter(np.abs(y).tolist()) == {0: 17_832, 1: 7_168}
    assert pairs.shape == (25_000, 2, 14)
    assert len(pairs.items) == 50_000
    assert np.bincount(pairs.index.ravel()).tolist() == [1] * 50_000
    np.testing.assert_array_equal(*(sushi.user[pairs.index[:, side]] for side in (0, 1)))
    gain = pairs.B.differences(sushi.scores)
    np.testing.assert_array_equal(np.sign(gain), y)
    assert sushi.item_names[8] == "toro (fatty tuna)"
    assert len(set(sushi.item_names)) == 100


def test_sushi_scores_agree_with_the_orders_of_the_same_users():
    """Which end of the scale is the better one: the description of the file has it the wrong way round."""
    sushi = load("sushi", datasets.load_sushi)
    lines = read("sushi", "sushi3b.5000.10.order").decode("ascii").splitlines()[1:]
    orders = np.array([line.split()[2:] for line in lines], dtype=int)  # from the best
    scores = np.full((5000, 100), -1)
    scores[sushi.user, sushi.sushi] = sushi.scores
    ordered = np.take_along_axis(scores, orders, axis=1)
    assert (ordered >= 0).all()  # both are about the same ten
    better, worse = np.triu_indices(10, 1)
    agreement = np.sign(ordered[:, better] - ordered[:, worse]).mean(axis=1)
    assert (agreement > 0).mean() > 0.97
    assert (agreement < 0).mean() < 0.01
    means = [sushi.scores[sushi.sushi == number].mean() for number in (8, 97)]
    assert means[0] > sushi.scores.mean() > means[1]  # fatty tuna, sea cucumber


# [Zapien2009], Tables 1 and 2


@pytest.mark.parametrize(
    ("name", "n_features", "n_pairs"),
    [("mixture", 2, 10_000), ("auto", 7, 75_245), ("diabetes", 8, 134_000)],
)
def test_scored_items(name, n_features, n_pairs):
    data = load(name, getattr(datasets, f"load_{name}"))
    pairs, _ = Pairs.from_scores(data.X, data.scores)
    assert len(pairs) == n_pairs
    assert data.X.shape[1] == len(data.feature_names) == n_features
    assert all(type(feature) is str for feature in data.feature_names)


def test_cancer_has_the_pairs_of_table_1():
    data = datasets.load_cancer()
    assert len(Pairs.from_scores(data.X, data.scores)[0]) == 75_684


def test_the_tables_of_p2():
    """Two misprints of Table 2: a tree has one edge less than vertices, and parts add up to the whole."""
    tables = published("P2_tables").set_index("dataset")
    for name, size in {"Mixtures": 200, "Auto": 392, "Diabetes": 768, "Cancer": 569}.items():
        row = tables.loc[name]
        assert row["train_constraints"] + 2 * row["test_instances"] == size
        assert name == "Auto" or row["train_instances"] == row["train_constraints"] - 1
        assert row["test_constraints"] == row["test_instances"]
    cancer = datasets.load_cancer()
    printed = tables.loc["Cancer", ["all_constraints", "reduced_constraints", "features"]].tolist()
    assert printed == [75_684, len(reduced_graph(cancer.scores)), cancer.X.shape[1]]


# [Tsivtsivadze2013], section 6


@pytest.mark.parametrize(
    ("name", "shape", "n_ratings", "low", "high"),
    [("jester", (5000, 100), 363_209, -10, 10), ("movielens", (943, 1664), 99_392, 1, 5)],
)
def test_ratings(name, shape, n_ratings, low, high):
    data = load(name, getattr(datasets, f"load_{name}"))
    assert data.ratings.shape == (len(data.user_names), len(data.item_names)) == shape
    assert data.ratings.nnz == n_ratings
    assert low <= data.ratings.data.min() < data.ratings.data.max() <= high


def test_the_tables_of_p3():
    """Table 5 repeats Table 1, half the scores make all numbers but one worse, one row is not printed."""
    tables = published("P3_tables")
    assert tables.groupby(["table", "task"]).size().to_list() == [18, 21, 18, 21, 21, 18]
    wide = tables.pivot(index=["table", "task", "method"], columns="group", values="value")
    assert wide.columns.to_list() == ["20-40", "40-60", "60-80"]
    assert not wide.isna().any().any()
    jester, half_jester, movielens, half_movielens = (wide.loc[number, "ranking"] for number in range(1, 5))
    assert set(half_jester.index) == set(half_movielens.index) == {*jester.index, "SS Ranking Pursuit"}
    crrp, regression = wide.loc[5, "ranking"], wide.loc[5, "regression"]
    np.testing.assert_array_equal(crrp.loc[jester.index], jester)
    assert set(crrp.index) - set(jester.index) == {"CRRP"} == set(crrp.index) - set(regression.index)
    for half in (half_jester, half_movielens):  # the methods of Table 2 stand in the order of Table 4
        assert (half.idxmin() == "SS Ranking Pursuit").all()
    assert (half_jester.loc[jester.index] > jester).all().all()
    better = half_movielens.loc[movielens.index] <= movielens
    assert better.stack().loc[lambda found: found].index.to_list() == [("Matching Pursuit", "40-60")]
    regressors = ["RLS", "Matching Pursuit"]
    assert (regression.loc[regressors].max() < regression.drop(regressors).min()).all()


# [Maystre2019], section 4 and appendix B


def test_the_tables_of_p4():
    """The tables agree where they repeat each other; ties need a margin, unless points are modelled."""
    tables = published("P4_tables")
    assert tables.groupby("place").size().to_list() == [5, 31, 40, 8, 8, 100, 6]
    keys = ["dataset", "model", "likelihood", "quantity"]
    table = {place: rows.set_index(keys)["value"].sort_index() for place, rows in tables.groupby("place")}
    assert all(rows.index.is_unique and rows.notna().all() for rows in table.values())
    ties = table["Table 2"].xs("ties", level="quantity").droplevel(["model", "likelihood"])
    assert set(ties[ties == 1].index) == {"World football", "ChessBase small", "ChessBase full"}
    loss = table["Table 3"].xs("loss", level="quantity").droplevel("likelihood").unstack("model")
    np.testing.assert_allclose(loss["Random"], np.log(2 + ties[loss.index]), atol=5e-4)
    assert (loss.idxmin(axis=1) == "Ours").all()
    repeated = {"Table 4": tables["likelihood"] == "Probit", "Table 5": tables["model"] == "Basic"}
    for place, same in repeated.items():
        rows = tables[(tables["place"] == place) & (tables["quantity"] == "loss") & same].set_index("dataset")
        assert len(rows) == 2
        assert (rows["value"] == loss["Ours"][rows.index]).all()
    parameters = table["Table 8"].unstack("quantity")
    assert len(parameters) == 26
    ordinal = parameters.index.get_level_values("likelihood").isin(["Probit", "Logit"])
    tied = ties[parameters.index.get_level_values("dataset")].to_numpy() == 1
    np.testing.assert_array_equal(parameters["margin"].notna(), ordinal & tied)
    stationary = parameters[["smoothness", "matern_variance", "lengthscale"]].notna()
    assert (stationary.all(axis=1) == stationary.any(axis=1)).all()
    seconds = table["Figure 6"].droplevel(["dataset", "model", "likelihood"])
    assert seconds["seconds_1_threads"] / seconds["seconds_16_threads"] == pytest.approx(5.74, abs=0.005)


def test_tennis():
    data = load("atp_tennis", datasets.load_atp)
    check_matches(data)
    assert data.matches["level"].value_counts().to_dict() == {
        "main": 89_498,
        "qual_chall": 140_149,
        "futures": 396_197,
    }
    # The paper's 618,934 matches of 20,046 players are the files as they were in September 2017.
    early = data.matches[data.matches["time"] <= "2017-09-22"]
    assert (len(early), n_names(early)) == (619_154, 20_047)
    assert abs(len(early) / 618_934 - 1) < 0.0005
    share = (data.matches["outcome"] == 1).mean()
    assert 0.49 < share < 0.51


def test_basketball():
    data = load("nba", datasets.load_nba)
    check_matches(data)
    paper = data.matches[data.matches["time"] <= "2018-12-31"]
    assert (len(paper), n_names(paper)) == (67_642, 102)
    assert (paper["outcome"] != 0).all()
    assert 0.6 < (paper["outcome"][paper["advantage"]] == 1).mean() < 0.65


@pytest.mark.parametrize(
    ("name", "n_matches", "n_players", "lonely_rows", "lonely_players"),
    [("WoL", 61_657, 4381, 5, 1), ("HotS", 28_582, 2287, 1, 0)],
)
def test_starcraft(name, n_matches, n_players, lonely_rows, lonely_players):
    """The printed numbers count rows in which a player meets himself, and one who meets nobody else."""
    data = load("starcraft", datasets.load_starcraft, name)
    check_matches(data)
    assert len(data.matches) == n_matches - lonely_rows
    assert n_names(data.matches) == n_players - lonely_players


def test_football():
    data = load("football", datasets.load_football)
    check_matches(data)
    assert not {"Soviet Union", "West Germany"} & set(
        data.names
    )  # the names of the present stand at all times
    matches = data.matches
    row = matches[(matches["time"] == "2014-07-08") & (matches["first"] == "Brazil")].iloc[0]
    assert (row["second"], row["first_score"], row["second_score"], row["outcome"]) == ("Germany", 1, 7, -1)
    assert row["advantage"]
    final = matches[(matches["time"] == "2006-07-09") & (matches["first"] == "Italy")].iloc[0]
    assert (final["second"], final["outcome"], bool(final["advantage"])) == ("France", 0, False)


# [AhmadiFahandar2019], Table 1

TABLE_1 = list(csv.DictReader(project_file("data/published/P5_table_1.csv").open(encoding="utf-8")))


def test_the_public_data_of_table_1_have_loaders():
    assert {row["name"] for row in TABLE_1} - {"B3"} == set(datasets.OBJECT_RANKINGS)


@pytest.mark.parametrize("row", [row for row in TABLE_1 if row["name"] != "B3"], ids=lambda row: row["name"])
def test_object_ranking(row):
    data = load("object_ranking", datasets.load_object_ranking, row["name"])
    assert data.X.shape == (int(row["instances"]), int(row["features"]))
    assert np.isfinite(data.X).all()
    assert len(data.item_names) == len(data.rank) == len(data.X)
    assert len(data.feature_names) == data.X.shape[1]
    assert data.rank[0] == 1
    assert (np.diff(data.rank) >= 0).all()
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
def test_least_squares_on_ranks_errs_as_table_2_says(train, test, printed):
    """ERR on one ranking is least squares on ranks: the features chosen must give the paper's losses."""
    known, query = (load("object_ranking", datasets.load_object_ranking, name) for name in (train, test))
    # Of columns that depend on earlier ones the later are left out, as in R.
    kept = []
    for number in range(known.X.shape[1]):
        wider = known.X[:, [*kept, number]]
        wider = (wider - wider.mean(axis=0)) / np.maximum(wider.std(axis=0), 1e-9)
        if np.linalg.matrix_rank(wider, tol=1e-7) == len(kept) + 1:
            kept.append(number)
    design = np.column_stack([np.ones(len(known.X)), known.X[:, kept]])
    weights = np.linalg.lstsq(design, known.rank, rcond=None)[0]
    predicted = query.X[:, kept] @ weights[1:]
    better, worse = np.triu_indices(len(predicted), 1)
    loss = (predicted[better] > predicted[worse]).mean()
    assert loss == pytest.approx(printed, abs=0.0021)  # one pair of 496
