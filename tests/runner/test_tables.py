import re

import pandas as pd

from preflearn_book.runner.tables import tidy_table


def test_cells_with_numbers_are_marked():
    cells = [
        "-0.5 ± 0.1",
        "P1-07",
        "",
        "12 %",
        "2e-09",
        "+1",
        "–",
        "−1 ± 0.5",
        "−x",
        "1, 2",
    ]
    page = tidy_table(
        '<table class="dataframe"><tr>' + "".join(f"<td>{cell}</td>" for cell in cells)
    )
    number = ' class="number column"'
    assert re.findall(r"<td(.*?)>", page) == [number, "", *[number] * 6, "", ""]


def test_columns_with_only_numbers_are_marked():
    index = pd.MultiIndex.from_tuples(
        [("a", 1), ("a", 2), ("b", 1)], names=["kind", "at"]
    )
    frame = pd.DataFrame(
        {"words": list("xyz"), "n": [1, -2, 3], "some": ["1", "none", "2"]}, index=index
    )
    page = tidy_table(frame._repr_html_())
    assert re.findall(r'<th class="column">(.*?)</th>', page) == ["n"]
    assert re.findall(r'<td class="number column">(.*?)</td>', page) == ["1", "−2", "3"]
    pairs = pd.DataFrame(
        {("first", "x"): [0.5, 1.5], ("first", "of"): ["u", "v"], ("last", "y"): [1, 2]}
    )
    assert re.findall(
        r'<th class="column">(.*?)</th>', tidy_table(pairs._repr_html_())
    ) == ["x", "y"]


def test_short_names_of_rows_and_intervals_are_marked():
    frame = pd.DataFrame(
        {"loss": ["0.01 (-0.04 to 0.07)", "5 % (1 to 9 %)"]},
        index=["reverse-KL", "a name that is rather long"],
    )
    page = tidy_table(frame._repr_html_())
    assert re.findall(r'<th class="short">(.*?)</th>', page) == ["reverse-KL"]
    assert re.findall(r'<span class="interval">(.*?)</span>', page) == [
        "(−0.04 to 0.07)",
        "(1 to 9 %)",
    ]


def test_powers_zeros_and_missing_numbers_are_formatted_typographically():
    page = tidy_table(
        pd.DataFrame({"at": ["5e-09", "1e6"]}, index=["2^-21", "2^0"])._repr_html_()
    )
    found = re.findall(r"<t[hd][^>]*>([^<]*<sup>.*?)</t", page)
    assert found == [
        "2<sup>−21</sup>",
        "5·10<sup>−9</sup>",
        "2<sup>0</sup>",
        "10<sup>6</sup>",
    ]
    page = tidy_table(
        pd.DataFrame({"a": [-0.0, -0.01], "b": [float("nan"), 1.0]})._repr_html_()
    )
    assert re.findall(r"<td.*?>(.*?)</td>", page) == ["0.00", "–", "−0.01", "1.0"]
