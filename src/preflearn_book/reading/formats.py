"""The formats of a user's file; each is read as a table of texts.

The content decides, not the name of the file: CSV with any common separator and
encoding, JSON, JSON lines, Parquet, Excel, and each of these compressed by gzip.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable
from io import BytesIO, StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from preflearn_book.reading.columns import Column, Frame, UserTable

FORMATS = (
    "CSV, JSON, JSON lines, Parquet, or .xlsx, also compressed by gzip; "
    "save the table in one of these formats"
)
_SEPARATORS = ",;\t|"
_BYTE_ORDER_MARKS = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)
# The first bytes of files that are not tables we read.
_OTHER_FILES = (
    (b"%PDF", "a PDF file"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file (.xls)"),
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zXZ", "compressed by xz"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd"),
    (b"\x89PNG", "a picture"),
    (b"SQLite format 3", "a database"),
)


def read_file(path: Path | str) -> UserTable:
    """Read a file as a table of texts.

    Raises
    ------
    ValueError
        If the file is empty, has another format, or is not a table.
    OSError
        If the file cannot be read.
    """
    path = Path(path)
    return read_content(path.read_bytes(), path.name)


def table_of(data: str | Path | UserTable) -> UserTable:
    """A table as it is, or the table in a file."""
    if isinstance(data, UserTable):
        return data
    return read_file(data)


def read_content(content: bytes, source: str) -> UserTable:
    """Read the bytes of a file as a table of texts; see `read_file`."""
    if content.startswith(b"\x1f\x8b"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(
                f"{source} is not a complete gzip file: {error}; compress or download it again"
            ) from None
    for start, what in _OTHER_FILES:
        if content.startswith(start):
            raise ValueError(f"{source} is {what}; expected {FORMATS}")
    if content.startswith(b"PAR1"):
        frame = _with_package("pyarrow", source, lambda: _read_parquet(content))
        return UserTable(_texts_of(frame), source, "row")
    if content.startswith(b"PK\x03\x04"):
        frame = _with_package("openpyxl", source, lambda: _read_excel(content))
        return _without_empty_parts(UserTable(_texts_of(frame), source, "row"))
    text, notes = _decode(content)
    table = _read_text(text, source)
    for note in notes:
        table.note(note)
    return table


def _read_text(text: str, source: str) -> UserTable:
    start = text.lstrip()[:200].lower()
    if start.startswith(("<!doctype", "<html", "<?xml")):
        raise ValueError(f"{source} is a page of HTML or XML; expected {FORMATS}")
    is_json = start.startswith(("{", "["))
    if is_json:
        records = _json_records(text, source)
        if records is not None:
            return _table_of_records(records, source)
    return _read_csv(text, source)


# ---- Texts


def _decode(content: bytes) -> tuple[str, list[str]]:
    """The text, with line ends of one kind, and notes for the reader."""
    notes = []
    encoding = _encoding(content)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")
        notes.append(
            "The file is not in UTF-8, so it is read in the encoding Windows-1252. If names look wrong, "
            "save the file in UTF-8."
        )
    return text.replace("\r\n", "\n").replace("\r", "\n"), notes


def _encoding(content: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return encoding
    start = content[:400]
    # Every other byte of UTF-16 is 0 in a header of ASCII letters.
    if start[1::2].count(0) > 0.4 * len(start) // 2 > 0:
        return "utf-16-le"
    if start[::2].count(0) > 0.4 * len(start) // 2 > 0:
        return "utf-16-be"
    return "utf-8"


def _read_csv(text: str, source: str) -> UserTable:
    """Read separated values; the index is the first line of each row."""
    n_skipped = len(text) - len(text.lstrip("\n"))
    separator = ""
    if declared := re.match(r"\n*sep=(.)\n", text):  # as Excel writes it
        separator = declared[1]
        n_skipped = declared.end()
    body = text[n_skipped:]
    header, separator = _header(body, separator)
    if len(body.splitlines()) < 2:
        raise ValueError(
            f"{source} has no rows; expected a line with the names of the columns, then one line per "
            f"comparison"
        )
    frame = _parse_csv(body, separator, len(header), source)
    lines = _line_numbers(frame) + text[:n_skipped].count("\n")
    frame = frame.iloc[1:].set_axis(lines[1:], axis=0)
    _check_swallowed_lines(frame, separator, source)
    frame.columns = header + [""] * (frame.shape[1] - len(header))
    return _without_empty_parts(UserTable(frame, source))


def _header(body: str, separator: str) -> tuple[list[str], str]:
    """The column names, and the separator: the one that gives the most names."""
    headers = {
        mark: next(csv.reader(StringIO(body), delimiter=mark), [])
        for mark in separator or _SEPARATORS
    }
    best = max(headers, key=lambda mark: len(headers[mark]))
    return [name.strip() for name in headers[best]], best


def _parse_csv(body: str, separator: str, n_columns: int, source: str) -> Frame:
    """All rows with the header, and one more column for separators at line ends."""
    first_rows = islice(csv.reader(StringIO(body), delimiter=separator), 3)
    n_fields = max(n_columns + 1, *map(len, first_rows))
    try:
        return pd.read_csv(
            StringIO(body),
            sep=separator,
            header=None,
            names=range(n_fields),
            dtype="string",
            keep_default_na=False,
            na_values=[],
            skip_blank_lines=False,
            low_memory=False,
        ).fillna("")
    except (pd.errors.ParserError, csv.Error) as error:
        raise ValueError(_parser_message(str(error), source)) from None


def _parser_message(error: str, source: str) -> str:
    if ragged := re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", error):
        expected, line, n_found = ragged.groups()
        return (
            f"{source} has {n_found} values in line {line}, but {int(expected) - 1} columns; remove the "
            f"additional values, or put values with a separator in quotation marks"
        )
    if opened := re.search(r"EOF inside string starting at row (\d+)", error):
        return (
            f"{source} has a quotation mark without a partner in line {int(opened[1]) + 1} or soon after; "
            f"remove or close it"
        )
    return (
        f"{source} cannot be read: {error.strip()}; expected as many values in each line as there "
        f"are columns"
    )


def _line_numbers(frame: Frame) -> np.ndarray:
    """The first line of each row; values may contain line breaks."""
    extra = np.zeros(len(frame), dtype=np.int64)
    for column in frame:
        has_break = frame[column].str.contains("\n", regex=False)
        if has_break.any():
            extra += frame[column].str.count("\n").to_numpy(np.int64)
    return np.arange(1, len(frame) + 1) + np.cumsum(extra) - extra


def _check_swallowed_lines(frame: Frame, separator: str, source: str) -> None:
    """Raise ValueError if a value contains rows, as after a stray quotation mark."""
    n_separators = frame.shape[1] - 2  # the last column is a spare one
    for column in frame:
        values = frame[column]
        for line, value in values[values.str.contains("\n", regex=False)].items():
            inner = value.split("\n")[1:-1]
            n_rows = sum(part.count(separator) == n_separators for part in inner)
            if n_rows > 2 and n_rows > len(inner) / 2 and n_separators > 0:
                raise ValueError(
                    f"{source} has a quotation mark without a partner in line {line}, so the next "
                    f"{len(inner) + 1} lines would be one value; remove or close it"
                )


def _without_empty_parts(table: UserTable) -> UserTable:
    """Drop empty rows, and empty columns without a name.

    Raises
    ------
    ValueError
        If a row has a value in a column without a name.
    """
    frame = table.frame
    is_empty = (frame == "").to_numpy(bool)
    nameless = np.array([str(name).strip() == "" for name in frame.columns])
    filled = ~is_empty & nameless
    if filled.any():
        n_filled = filled.any(axis=1).sum()
        if n_filled <= 0.5 * len(frame):
            row = int(np.argmax(filled.any(axis=1)))
            value = frame.iloc[row, int(np.argmax(filled[row]))]
            raise ValueError(
                f"{table.source} has the value {value!r} in {table.unit} {frame.index[row]} after the last "
                f"column; delete it, or name this column in the header"
            )
    keep = ~(nameless & is_empty.all(axis=0))
    table.frame = frame.loc[~is_empty.all(axis=1), keep]
    if not len(table.frame):
        raise ValueError(
            f"{table.source} has no rows; expected the names of the columns, then one row per comparison"
        )
    return table


# ---- JSON


def _json_records(text: str, source: str) -> list[dict[str, Any]] | None:
    """Records of JSON or JSON lines; None if the text is neither."""
    decoder = json.JSONDecoder(
        parse_float=str, parse_int=str, parse_constant=lambda _: None
    )
    try:
        value = decoder.decode(text)
    except RecursionError:
        raise ValueError(f"{source} is nested too deeply; expected {_JSON}") from None
    except json.JSONDecodeError as whole:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            value = [decoder.decode(line) for line in lines]
        except json.JSONDecodeError:
            looks_like_json = re.match(r'\s*[\[{]\s*[\[{"]', text)
            if looks_like_json:
                raise ValueError(
                    f"{source} is not valid JSON: {whole.msg} in line {whole.lineno}; expected {_JSON}"
                ) from None
            return None
    if isinstance(value, dict):
        value = _records_of_mapping(value)
    good = isinstance(value, list) and all(isinstance(row, dict) for row in value)
    if not good:
        raise ValueError(f"{source} is JSON, but not a table; expected {_JSON}")
    return value


_JSON = 'a list of objects, such as [{"first": "Ann", "second": "Bob"}], or one object per line'


def _records_of_mapping(value: dict[str, Any]) -> Any:
    """Records of an object of columns, or of an object that holds one list of records."""
    lists = [part for part in value.values() if isinstance(part, list)]
    of_records = [part for part in lists if part and isinstance(part[0], dict)]
    if len(of_records) == 1:
        return of_records[0]
    is_columns = lists and len(lists) == len(value) and len(set(map(len, lists))) == 1
    if is_columns:
        return [dict(zip(value, row, strict=True)) for row in zip(*lists, strict=True)]
    if lists:
        return None
    return [value]


def _table_of_records(records: list[dict[str, Any]], source: str) -> UserTable:
    if not records:
        raise ValueError(f"{source} has no records; expected {_JSON}")
    columns = list(dict.fromkeys(key for record in records for key in record))
    data = {
        column: pd.array(
            [_text(record.get(column)) for record in records], dtype="string"
        )
        for column in columns
    }
    frame = pd.DataFrame(data, index=np.arange(1, len(records) + 1))
    frame.columns = [column.strip() for column in columns]
    return UserTable(frame, source, "record")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


# ---- Tables of other programs


def _with_package(package: str, source: str, read: Callable[[], pd.DataFrame]) -> Frame:
    """The result of `read`; an error of the package becomes a one-line ValueError."""
    try:
        return read()
    except ImportError:
        raise ValueError(
            f"{source} needs {package}, which is not installed; run pip install {package}, or save the table "
            f"as CSV"
        ) from None
    except Exception as error:  # of the parser of another package
        line = next(iter(str(error).splitlines()), type(error).__name__)
        raise ValueError(
            f"{source} cannot be read: {line}; expected {FORMATS}"
        ) from None


def _read_parquet(content: bytes) -> Frame:
    # Integers with missing values stay integers.
    frame = pd.read_parquet(BytesIO(content), dtype_backend="numpy_nullable")
    frame.index = np.arange(1, len(frame) + 1)
    return frame


def _read_excel(content: bytes) -> Frame:
    frame = pd.read_excel(
        BytesIO(content), engine="openpyxl", header=None, dtype=object
    )
    frame = frame.dropna(how="all")
    if not len(frame):
        raise ValueError("the first sheet is empty")
    header = ["" if pd.isna(name) else str(name) for name in frame.iloc[0]]
    return frame.iloc[1:].set_axis(header, axis=1).set_axis(frame.index[1:] + 1, axis=0)


def _texts_of(frame: Frame) -> Frame:
    """All columns as texts; dates in ISO form, missing values empty."""
    columns = [_column_texts(frame.iloc[:, k]) for k in range(frame.shape[1])]
    if not columns or not len(frame):
        raise ValueError(
            "the table has no rows; expected the names of the columns, then one row per comparison"
        )
    texts = pd.concat(columns, axis=1)
    texts.columns = [str(name).strip() for name in frame.columns]
    return texts


def _column_texts(values: Column) -> Column:
    if values.dtype.kind == "M":
        texts = values.dt.strftime("%Y-%m-%dT%H:%M:%S.%f%z")
        midnight = texts.str.fullmatch(r".*T00:00:00\.0+").fillna(False).all()
        texts = texts.str.partition("T")[0] if midnight else texts
        return texts.astype("string").fillna("")
    texts = [_value_text(value) for value in values]
    return pd.Series(texts, values.index, dtype="string")


def _value_text(value: Any) -> str:
    """One value of another program as a text."""
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, float | np.floating):
        if np.isnan(value):
            return ""
        return repr(float(value)).removesuffix(".0")
    return _text(value)
