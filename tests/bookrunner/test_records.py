import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookrunner import records
from bookrunner.files import write_atomically
from bookrunner.records import published, record, recorded, write_recorded


@pytest.fixture
def emitted(monkeypatch):
    payloads = []
    monkeypatch.setattr(records, "_emit", lambda mime, payload: payloads.append(payload))
    return payloads


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("PREFLEARN_ROOT", str(tmp_path))
    return tmp_path


def test_a_table_survives_recording_bit_by_bit(emitted, root):
    values = np.random.default_rng(0).standard_normal(50) * 10.0 ** np.arange(-25, 25)
    table = pd.DataFrame({"x": values, "n": range(50), "who": ["a, b"] * 50})
    record("errors", table)
    write_recorded(
        root / "data/recorded", "03_lemma", emitted[0], {"date": "2026-01-02", "parameters": {"n": 3}}
    )
    back = recorded("03_lemma", "errors")
    pd.testing.assert_frame_equal(back, table, check_exact=True)
    assert back.attrs == {"date": "2026-01-02", "parameters": {"n": 3}}


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True),
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53),
        min_size=1,
    )
)
def test_scalars_are_kept_as_they_are(scalars):
    frame, plain = records._as_frame("fit", {key: np.array(value)[()] for key, value in scalars.items()})
    assert plain == scalars
    assert json.loads(json.dumps(plain)) == scalars
    assert frame.shape == (1, len(scalars))


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
    ],
)
def test_record_refuses(name, table, message):
    with pytest.raises(ValueError, match=message):
        record(name, table)


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


def test_a_failing_write_leaves_the_old_file_and_no_other(tmp_path):
    path = write_atomically(tmp_path / "a.csv", "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
