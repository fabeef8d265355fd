import re

import pandas as pd

from bookrunner.tables import tidy_table


def test_numbers_of_a_table_are_told_from_words():
    cells = ["-0.5 ± 0.1", "P1-07", "", "12 %", "2e-09"]
    page = tidy_table('<table class="dataframe"><tr>' + "".join(f"<td>{cell}</td>" for cell in cells))
    assert re.findall(r"<td(.*?)>", page) == [' class="number"', "", *[' class="number"'] * 3]


def test_zero_has_no_sign_and_what_is_missing_is_a_dash():
    frame = pd.DataFrame({"a": [-0.0, -0.01], "b": [float("nan"), 1.0]})
    page = tidy_table(frame._repr_html_())
    assert re.findall(r"<td.*?>(.*?)</td>", page) == ["0.00", "–", "−0.01", "1.0"]
