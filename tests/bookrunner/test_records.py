import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookrunner import records
from bookrunner.files import write_atomically
from bookrunner.records import published, record, recorded


@pytest.fixture
def emitted(monkeypatch):
    payloads = []
    monkeypatch.setattr(records, "show", lambda bundle: payloads.extend(bundle.values()))
    return payloads


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFLEARN_ROOT", str(tmp_path))
    return tmp_path


def test_a_table_survives_recording_bit_by_bit(emitted, root):
    values = np.random.default_rng(0).standard_normal(50) * 10.0 ** np.arange(-25, 25)
    table = pd.DataFrame({"x": values, "n": range(50), "who": ["a, b"] * 50})
    record("errors", table)
    header = '# date: "2026-01-02"\n# parameters: {"n": 3}\n'
    write_atomically(root / "data/recorded/03_lemma_errors.csv", header + emitted[0]["csv"])
    back = recorded("03_lemma", "errors")
    pd.testing.assert_frame_equal(back, table, check_exact=True)
    about = {"date": "2026-01-02", "parameters": {"n": 3}, "record": "03_lemma_errors"}
    assert back.attrs == about


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True),
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53),
        min_size=1,
    )
)
def test_scalars_are_kept_as_they_are(scalars):
    frame = records._as_frame("fit", {key: np.array(value)[()] for key, value in scalars.items()})
    assert frame.to_dict("records") == [scalars]


def test_index_is_kept_if_named(emitted):
    frame = pd.DataFrame({"n": ["a", "b", "a"], "x": [1.0, 2.0, 4.0]})
    record("means", frame.groupby("n").mean())
    record("some", frame[frame.x > 1])
    assert [payload["csv"] for payload in emitted] == ["n,x\na,2.5\nb,2.0\n", "n,x\nb,2.0\na,4.0\n"]


@pytest.mark.parametrize(
    ("name", "table", "message"),
    [
        ("Errors", {"x": 1}, "name is 'Errors'"),
        ("fit", {"x": float("nan")}, "'x' of the record 'fit' is nan"),
        ("fit", {"x": [1, 2]}, r"'x' of the record 'fit' is \[1, 2\]; expected a finite number or a text"),
        ("fit", 3, "is a int; expected a DataFrame"),
        ("fit", {}, "is empty"),
        ("fit", pd.DataFrame({"x": [1]}, index=["a"]), "index of the table 'fit' has no name"),
        ("fit", pd.DataFrame([[1, 2]], columns=["a", "a"]), "expected distinct names"),
        ("fit", pd.DataFrame([[1, 2]]), "expected distinct names"),
        ("fit", pd.DataFrame({"x": []}), "is empty"),
    ],
)
def test_record_refuses(name, table, message):
    with pytest.raises(ValueError, match=message):
        record(name, table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keys": ["n", "m"]}, r"columns \['n', 'x'\]; expected \['m'\] among them"),
        ({"timings": ["s"]}, r"expected \['s'\] among them"),
        ({"keys": ["n"]}, r"two rows {'n': 1}; expected keys that tell them apart"),
    ],
)
def test_keys_and_timings_are_columns_and_keys_tell_rows_apart(options, message):
    with pytest.raises(ValueError, match=message):
        record("fit", pd.DataFrame({"n": [1, 1], "x": [0.5, 0.6]}), **options)


def test_what_goes_with_a_table_says_how_to_compare_it(emitted):
    record("none", pd.DataFrame({"n": []}), keys=["n"])  # no row of the quick run is one of the full run
    record("fit", {"loss": 0.5, "s": 0.1}, rtol=1e-3, timings=["s"])
    plain = {"rtol": 1e-6, "atol": 1e-9, "flips": 0.0}
    assert emitted[0] == plain | {"name": "none", "csv": "n\n", "keys": ["n"], "timings": []}
    compared = {"keys": None, "rtol": 1e-3, "timings": ["s"]}
    assert emitted[1] == plain | {"name": "fit", "csv": "loss,s\n0.5,0.1\n"} | compared


def test_recorded_is_none_before_a_full_run(root):
    assert recorded("03_lemma", "errors") is None
    with pytest.raises(ValueError, match=r"chapter is '\.\./x'"):
        recorded("../x", "errors")


def test_published_reads_comments_and_lists_what_there_is(root):
    write_atomically(root / "data/published/P1_table_3.csv", '# source: "Table 3"\n# plain words\nauc\n0.5\n')
    table = published("P1_table_3")
    assert table.auc.tolist() == [0.5]
    assert table.attrs == {"source": "Table 3"}
    with pytest.raises(ValueError, match=r"no published table 'P9'; expected one of \['P1_table_3'\]"):
        published("P9")
    with pytest.raises(ValueError, match="name is"):
        published("../pyproject")
