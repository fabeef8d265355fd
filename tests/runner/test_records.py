import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflearn import datasets
from preflearn.core import validation
from preflearn.margins import MarginLP, MarginQP
from preflearn.pairs import Pairs
from preflearn.path import reduced_graph
from preflearn_book.runner import records
from preflearn_book.runner.files import write_atomically
from preflearn_book.runner.records import Flips, published, record, recorded


@pytest.fixture
def emitted(monkeypatch):
    payloads = []
    monkeypatch.setattr(
        records, "show", lambda bundle: payloads.extend(bundle.values())
    )
    return payloads


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFLEARN_ROOT", str(tmp_path))
    return tmp_path


def test_a_recorded_table_is_read_back_exactly(emitted, root):
    values = np.random.default_rng(0).standard_normal(50) * 10.0 ** np.arange(-25, 25)
    table = pd.DataFrame({"x": values, "n": range(50), "who": ["a, b"] * 50})
    record("errors", table)
    header = '# date: "2026-01-02"\n# parameters: {"n": 3}\n'
    write_atomically(
        root / "data/recorded/03_lemma_errors.csv", header + emitted[0]["csv"]
    )
    back = recorded("03_lemma", "errors")
    pd.testing.assert_frame_equal(back, table, check_exact=True)
    about = {"date": "2026-01-02", "parameters": {"n": 3}, "record": "03_lemma_errors"}
    assert back.attrs == about


@pytest.mark.parametrize("text", ["a\rb", "a\nb", '"', "#", "None", "NA"])
def test_texts_are_read_back(text):
    table = pd.DataFrame({"n": [1, 2], "x": [0.5, np.nan], "who": ["plain", text]})
    pd.testing.assert_frame_equal(
        records.parsed_table(records.csv_text(table)), table, check_exact=True
    )


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True),
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53),
        min_size=1,
    )
)
def test_scalars_keep_their_values(scalars):
    frame = records._as_frame(
        "fit", {key: np.array(value)[()] for key, value in scalars.items()}
    )
    assert frame.to_dict("records") == [scalars]


def test_an_index_is_kept_if_it_is_named(emitted):
    frame = pd.DataFrame({"n": ["a", "b", "a"], "x": [1.0, 2.0, 4.0]})
    record("means", frame.groupby("n").mean())
    record("some", frame[frame.x > 1])
    assert [payload["csv"] for payload in emitted] == [
        "n,x\na,2.5\nb,2.0\n",
        "n,x\nb,2.0\na,4.0\n",
    ]


@pytest.mark.parametrize(
    ("name", "table", "options", "named"),
    [
        ("Errors", {"x": 1}, {}, "'Errors'"),
        ("columns", {"x": 1}, {}, "'columns'"),
        ("fit", {"x": float("nan")}, {}, "'x'.*'fit'"),
        ("fit", {"x": 10**400}, {}, "'x'.*'fit'"),
        ("fit", 3, {}, "'fit'"),
        ("fit", pd.DataFrame({"x": [1]}, index=["a"]), {}, "index.*'fit'"),
        ("fit", pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "names"),
        ("fit", pd.DataFrame({"x": []}), {}, "'fit'"),
        ("fit", pd.DataFrame({"n": [1], "x": [1]}), {"keys": ["n", "m"]}, "'m'"),
        (
            "fit",
            pd.DataFrame({"n": [1, 1], "x": [1, 2]}),
            {"keys": ["n"]},
            "'n': 1.*keys",
        ),
    ],
    ids=validation.short_repr,
)
def test_the_error_names_a_bad_record(name, table, options, named):
    with pytest.raises(ValueError, match=named):
        record(name, table, **options)


def test_a_payload_contains_the_settings_for_comparing_its_table(emitted):
    # no row of the quick run is a row of the full run
    record("none", pd.DataFrame({"n": []}), keys=["n"])
    flips = Flips(0.1, ["loss"])
    record(
        "fit", {"loss": 0.5, "s": 0.1}, rtol={"loss": 1e-3}, flips=flips, timings=["s"]
    )
    assert emitted[0] == {
        "name": "none",
        "csv": "n\n",
        "keys": ["n"],
        "rtol": {"n": 1e-6},
        "atol": {"n": 1e-9},
        "flips": {"fraction": 0.0, "columns": [], "method": None},
        "timings": [],
        "columns": {},
    }
    assert emitted[1] == {
        "name": "fit",
        "csv": "loss,s\n0.5,0.1\n",
        "keys": None,
        "rtol": {"loss": 1e-3, "s": 1e-6},
        "atol": {"loss": 1e-9, "s": 1e-9},
        "flips": {"fraction": 0.1, "columns": ["loss"], "method": None},
        "timings": ["s"],
        "columns": {},
    }


def test_a_table_is_none_before_a_full_run(root):
    assert recorded("03_lemma", "errors") is None
    with pytest.raises(ValueError, match=r"'\.\./x'"):
        recorded("../x", "errors")


def test_published_tables_have_comments(root):
    write_atomically(
        root / "data/published/P1_table_3.csv",
        '# source: "Table 3"\n# plain words\nauc\n0.5\n',
    )
    table = published("P1_table_3")
    assert table.auc.tolist() == [0.5]
    assert table.attrs == {"source": "Table 3"}
    for name in ("P9", "../pyproject"):
        with pytest.raises(ValueError, match=f"'{name}'.*'P1_table_3'"):
            published(name)


# [Venuto2017], Figure 2 and section 4.2


@pytest.mark.parametrize(
    ("divisor", "ratio"), [(1, 0.2699), (50, 0.9069), (58, 0.9966), (59, 1), (100, 1)]
)
def test_margins_of_the_points_of_figure_2(divisor, ratio):
    """The margins of QP and LP on the first 50 pairs differ without scaling; they are
    equal if the points are divided by 100, as in the paper."""
    table = published("P1_figure_2")
    assert table["y"].value_counts().to_dict() == {0: 89, 1: 50, -1: 50}
    figure = table[:50]
    assert len(np.unique(figure.to_numpy()[:, :4].reshape(-1, 2), axis=0)) == 20
    differences = [
        (figure[f"{name}_prime"] - figure[name]).to_numpy()
        for name in ("distance", "angle")
    ]
    D = np.column_stack(differences) * [1 / divisor, 2]
    pairs = Pairs.from_arrays(D, np.zeros_like(D))
    y = figure["y"].to_numpy()
    lp = MarginLP().fit(pairs, y)
    qp = MarginQP().fit(pairs, y)
    assert lp.margin_ == pytest.approx(0.4469792487, rel=1e-9)
    assert qp.margin_ / lp.margin_ == pytest.approx(
        ratio, rel=1e-9 if ratio == 1 else 1e-3
    )
    np.testing.assert_array_equal(lp.predict(pairs), y)


# [Zapien2009], Tables 1 and 2


def test_the_tables_of_p2():
    """Two misprints of Table 2 contradict that a tree has one edge less than vertices, and
    that parts add up to the whole."""
    tables = published("P2_tables").set_index("dataset")
    for name, size in {
        "Mixtures": 200,
        "Auto": 392,
        "Diabetes": 768,
        "Cancer": 569,
    }.items():
        row = tables.loc[name]
        assert row["train_constraints"] + 2 * row["test_instances"] == size
        assert name == "Auto" or row["train_instances"] == row["train_constraints"] - 1
        assert row["test_constraints"] == row["test_instances"]
    cancer = datasets.load_cancer()
    printed = tables.loc[
        "Cancer", ["all_constraints", "reduced_constraints", "features"]
    ].tolist()
    assert printed == [75_684, len(reduced_graph(cancer.scores)), cancer.X.shape[1]]


def test_the_tables_of_p3():
    """Table 5 repeats Table 1, and with half the scores all numbers except one are
    worse."""
    tables = published("P3_tables")
    assert tables.groupby(["table", "task"]).size().to_list() == [
        18,
        21,
        18,
        21,
        21,
        18,
    ]
    wide = tables.pivot(
        index=["table", "task", "method"], columns="group", values="value"
    )
    assert wide.columns.to_list() == ["20-40", "40-60", "60-80"]
    assert not wide.isna().any().any()
    jester, half_jester, movielens, half_movielens = (
        wide.loc[number, "ranking"] for number in range(1, 5)
    )
    assert (
        set(half_jester.index)
        == set(half_movielens.index)
        == {*jester.index, "SS Ranking Pursuit"}
    )
    crrp = wide.loc[5, "ranking"]
    regression = wide.loc[5, "regression"]
    np.testing.assert_array_equal(crrp.loc[jester.index], jester)
    assert (
        set(crrp.index) - set(jester.index)
        == {"CRRP"}
        == set(crrp.index) - set(regression.index)
    )
    assert (half_jester.loc[jester.index] > jester).all().all()
    better = half_movielens.loc[movielens.index] <= movielens
    assert better.stack().loc[lambda found: found].index.to_list() == [
        ("Matching Pursuit", "40-60")
    ]


# [Maystre2019], section 4 and appendix B


def test_the_tables_of_p4():
    """Numbers that occur in several tables agree. Data with ties need a margin, unless
    points are modeled."""
    tables = published("P4_tables")
    assert tables.groupby("place").size().to_list() == [5, 31, 40, 8, 8, 100, 6]
    keys = ["dataset", "model", "likelihood", "quantity"]
    table = {
        place: rows.set_index(keys)["value"].sort_index()
        for place, rows in tables.groupby("place")
    }
    assert all(rows.index.is_unique and rows.notna().all() for rows in table.values())
    ties = (
        table["Table 2"].xs("ties", level="quantity").droplevel(["model", "likelihood"])
    )
    assert set(ties[ties == 1].index) == {
        "World football",
        "ChessBase small",
        "ChessBase full",
    }
    loss = (
        table["Table 3"]
        .xs("loss", level="quantity")
        .droplevel("likelihood")
        .unstack("model")
    )
    np.testing.assert_allclose(loss["Random"], np.log(2 + ties[loss.index]), atol=5e-4)
    assert (loss.idxmin(axis=1) == "Ours").all()
    repeated = {
        "Table 4": tables["likelihood"] == "Probit",
        "Table 5": tables["model"] == "Basic",
    }
    for place, same in repeated.items():
        rows = tables[
            (tables["place"] == place) & (tables["quantity"] == "loss") & same
        ].set_index("dataset")
        assert len(rows) == 2
        assert (rows["value"] == loss["Ours"][rows.index]).all()
