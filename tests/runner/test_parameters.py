import re
from types import SimpleNamespace

import nbformat
import papermill
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papermill.exceptions import PapermillExecutionError
from toy_project import PARAMETERS, write_notebook

from preflearn_book.runner import parameters
from preflearn_book.runner.parameters import (
    check_profile,
    check_range,
    grid_values,
    typed,
)


@pytest.mark.parametrize(
    ("text", "default", "value"),
    [
        ("1e-3", 0.5, 1e-3),
        ("1_000", 0, 1000),
        ("1", 0.5, 1.0),
        ("true", False, True),
        ("two\nlines", "one", "two\nlines"),
        ("010", "B1", "010"),
        ("[1, 2.5]", [0.5], [1.0, 2.5]),
        ("(1, 2)", (0, 0), (1, 2)),
        ("{'a': 1}", {}, {"a": 1}),
    ],
)
def test_texts_are_converted_to_the_type_of_the_default(text, default, value):
    found = typed("n", text, default)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("010", 0),
        ("True", 0),
        ("ten", 0.5),
        ("1e999", 0.5),
        ("9" * 5000, 0),
        ("yes", True),
        ("['a']", [1]),
        ("[" * 100_000 + "]" * 100_000, [1]),
        ("-" * 9_000 + "1", 0),
        ("__import__('os').getcwd()", [1]),
        ("[b'x']", []),
    ],
)
def test_texts_of_a_wrong_type_raise_an_error_that_shows_the_default(text, default):
    with pytest.raises(
        ValueError, match=r"(?s)^n is .{0,120}" + re.escape(repr(default))
    ):
        typed("n", text, default)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-5, 5).filter(bool))
def test_ranges_are_those_of_python(a, b, step):
    expected = list(range(a, b, step))
    if expected:
        assert grid_values("n", f"{a}:{b}:{step}", 0) == expected
        assert [type(value) for value in grid_values("n", f"{a}:{b}:{step}", 0.5)] == [
            float
        ] * len(expected)
    else:
        with pytest.raises(ValueError, match="1 to 100,000 values"):
            grid_values("n", f"{a}:{b}:{step}", 0)


@given(
    st.lists(st.integers(), min_size=1, unique=True)
    | st.lists(st.sampled_from(["l1", "rbf"]), min_size=1, unique=True)
    | st.lists(st.booleans(), min_size=1, unique=True)
    | st.lists(st.lists(st.integers(), min_size=1), min_size=1, unique_by=repr)
)
def test_lists_keep_values_and_types(values):
    text = ",".join(
        str(value).lower() if isinstance(value, bool) else str(value)
        for value in values
    )
    assert [(v, type(v)) for v in grid_values("n", text, values[0])] == [
        (v, type(v)) for v in values
    ]


@pytest.mark.parametrize(
    ("text", "default", "named"),
    [
        ("", 0, "1 to 100,000 values"),
        ("1:4:0", 0, "step"),
        ("1,2,1", 0, "distinct"),
        ("0:100000000000", 0, "1 to 100,000 values"),
        ("1,010", 0, "'010'"),
        ("1:4", True, "'1:4'.*True"),
    ],
)
def test_the_error_names_bad_values_of_a_grid(text, default, named):
    with pytest.raises(ValueError, match=named):
        grid_values("n", text, default)


def test_a_range_for_a_text_parameter_is_a_text():
    assert grid_values("n", "1:20,b", "a") == ["1:20", "b"]


@pytest.mark.parametrize(
    "wrong", ["ful", 10**5000, ["quick"], None], ids=["name", "number", "list", "none"]
)
def test_an_unknown_profile_raises_an_error(wrong):
    with pytest.raises(ValueError, match=r"^profile is .*'quick', 'full'"):
        check_profile(wrong)


def test_plain_papermill_cannot_set_a_parameter_that_the_chapter_lacks(
    tmp_path, monkeypatch
):
    source = "from preflearn_book.runner import check_profile\ncheck_profile(profile)"
    notebook = nbformat.read(write_notebook(tmp_path / "01_x.ipynb", source), 4)
    with pytest.raises(PapermillExecutionError, match="'sed'"):
        papermill.execute_notebook(
            notebook, None, {"seed": 3, "sed": 3}, progress_bar=False
        )
    cells = {"In": ["", PARAMETERS, "# Parameters\nseed = 3\n", source]}
    monkeypatch.setattr(
        parameters, "running_shell", lambda: SimpleNamespace(user_ns=cells)
    )
    check_profile("quick")
    # with seed = None, each run would draw other numbers
    cells["In"][2] = "# Parameters\nseed = None\n"
    with pytest.raises(ValueError, match="seed is None"):
        check_profile("quick")
    cells["In"][1] += "\nseed = None"
    check_profile("quick")


@pytest.mark.parametrize(
    ("value", "least", "most"), [(4, 4, 4), (1, 0.5, 2.0), ([0.5, 1], 0.5, 1.0)]
)
def test_a_parameter_in_its_range_is_accepted(value, least, most):
    check_range("n", value, least, most)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (3, "n is 3"),
        (True, "n is True"),
        (4.0, "n is 4.0"),
        ("5", "n is '5'"),
        ([5, 9], r"n\[1\] is 9"),
        ([], "n"),
    ],
)
def test_the_error_names_a_parameter_outside_its_range(value, named):
    with pytest.raises(ValueError, match=named) as caught:
        check_range("n", value, 4, 8)
    assert value == [] or "from 4 to 8" in str(caught.value)
