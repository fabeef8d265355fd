"""What the papers print, as `published` reads it: tables that agree with themselves, and a figure."""

import numpy as np
import pytest

from bookrunner.records import published
from preflearn import datasets
from preflearn.margins import MarginLP, MarginQP
from preflearn.pairs import Pairs
from preflearn.path import reduced_graph

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


# [Zapien2009], Tables 1 and 2


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
