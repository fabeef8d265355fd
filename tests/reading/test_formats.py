"""Formats of a user's file."""

import gzip
import json

import pandas as pd
import pytest
from optional import optional_import

from preflearn_book.reading.formats import read_content, read_file

TABLE = {"a": ["Café", "Oak"], "b": ["1", "2"]}


def columns_of(content):
    frame = read_content(content, "own.csv").frame
    return {name: frame[name].tolist() for name in frame}


@pytest.mark.parametrize(
    "content",
    [
        "a,b\nCafé,1\nOak,2\n".encode(),
        "a;b\nCafé;1\nOak;2\n".encode("cp1252"),
        "a\tb\r\nCafé\t1\r\n\r\nOak\t2\r\n".encode("utf-16"),
        # without a byte order mark
        "a\tb\r\nCafé\t1\r\nOak\t2\r\n".encode("utf-16-le"),
        "\ufeffa,b\nCafé,1\nOak,2\n,\n".encode(),
        "a,b\rCafé,1\rOak,2\r".encode(),
        '"a";"b"\n"Café";"1"\nOak;2\n'.encode(),
        "sep=|\na|b\nCafé|1\nOak|2\n".encode(),
        "\n\na,b\nCafé,1\nOak,2".encode(),
        "a,b\nCafé,1,\nOak,2,\n".encode(),
        "a,b,,\nCafé,1,,\nOak,2,,\n".encode(),
        gzip.compress("a,b\nCafé,1\nOak,2\n".encode(), mtime=0),
        '[{"a": "Café", "b": 1}, {"b": 2, "a": "Oak"}]'.encode(),
        '{"a": "Café", "b": 1}\n{"a": "Oak", "b": 2}\n'.encode(),
        '{"rows": [{"a": "Café", "b": 1}, {"a": "Oak", "b": 2}]}'.encode(),
        '{"a": ["Café", "Oak"], "b": [1, 2]}'.encode(),
    ],
)
def test_a_table_is_read_whatever_its_format(content):
    assert columns_of(content) == TABLE


def test_parquet_keeps_integers_dates_and_missing_values(tmp_path):
    optional_import("pyarrow")
    frame = pd.DataFrame(
        {
            "id": [1, None],
            "day": pd.to_datetime(["2024-01-31", "2024-02-01"]),
            "won": [True, None],
            "name": ["Ann", None],
        }
    )
    frame["id"] = frame["id"].astype("Int64")
    frame.to_parquet(tmp_path / "own.parquet")
    read = read_file(tmp_path / "own.parquet").frame
    assert read.to_numpy().tolist() == [
        ["1", "2024-01-31", "true", "Ann"],
        ["", "2024-02-01", "", ""],
    ]


def test_excel_is_read_by_openpyxl_or_its_absence_is_named(tmp_path):
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        with pytest.raises(ValueError, match="pip install openpyxl"):
            read_content(b"PK\x03\x04", "own.xlsx")
        return
    frame = pd.DataFrame({"a": ["Café", "Oak"], "b": [1, 2]})
    frame.to_excel(tmp_path / "own.xlsx", index=False)
    read = read_file(tmp_path / "own.xlsx").frame
    assert read.to_dict("list") == TABLE


def test_rows_are_numbered_as_lines_of_the_file():
    frame = read_content(b'a,b\nx,"one\ntwo"\n\ny,z\n', "own.csv").frame
    assert frame.index.tolist() == [2, 5]


def test_numbers_of_json_keep_their_digits():
    text = '[{"id": 9007199254740993, "t": 1682351591.1322, "x": null, "f": false}]'
    frame = read_content(text.encode(), "own.json").frame
    assert frame.iloc[0].tolist() == [
        "9007199254740993",
        "1682351591.1322",
        "",
        "false",
    ]


def test_columns_of_one_name_stay_apart():
    frame = read_content(b"a,a\n1,2\n", "own.csv").frame
    assert list(frame.columns) == ["a", "a"]


ROWS = "".join(f"Ann,Bob,{k}\n" for k in range(20))


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "no rows"),
        (b"first,second\n", "no rows"),
        (b"first,second\n,\n", "no rows"),
        (f'a,b,c\nAnn,"Bob,1\n{ROWS}Ann,"Bob,2\n'.encode(), "line 2"),
        (f'a,b,c\n{ROWS}Ann,"Bob,1\nAnn,Bob,2\n'.encode(), "quotation mark.*line 22"),
        (b"a,b\n" + b"1,2\n" * 5 + b"1,2,3,4\n", "4 values in line 7"),
        (b"a,b\n1,2\n1,2\n1,2,3\n", "'3' in line 4"),
        (b'[{"a": 1}, {"a"', "not valid JSON"),
        (b"[1, 2]", "not a table"),
        (b"<!doctype html><html>", "HTML"),
        (b"%PDF-1.7", "PDF"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-4], "gzip"),
        (b"PAR1 and nothing else", "own.csv cannot be read|needs pyarrow"),
        (json.dumps([]).encode(), "no records"),
    ],
)
def test_what_is_not_a_table_is_rejected_in_one_line(content, named):
    with pytest.raises(ValueError, match=named) as error:
        read_content(content, "own.csv")
    assert "\n" not in str(error.value)
    assert "own.csv" in str(error.value)
