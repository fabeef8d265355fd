"""The figure of scores and the tables in the reports."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from preflearn_book.report_figures import comparison_bars, draw_scores, how_to_compare
from preflearn_book.report_tables import table_html


def test_bars_of_two_scores_touch_if_they_differ_at_the_5_percent_level():
    covariance = np.array([[1.0, 0.3, 0.1], [0.3, 0.8, 0.2], [0.1, 0.2, 0.5]])
    bars = comparison_bars(covariance)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        error = np.sqrt(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j])
        # the sum of two bars approximates 1.96 standard errors of the difference
        assert abs((bars[i] + bars[j]) / (1.96 * error) - 1) < 0.06


def test_there_are_no_bars_for_two_scores_or_for_equal_ones():
    assert comparison_bars(np.eye(2)) is None
    assert comparison_bars(np.ones((3, 3))) is None
    assert comparison_bars(np.eye(101)) is None


def test_the_rule_on_bars_is_given_only_if_there_are_bars():
    table = pd.DataFrame({"name": ["a", "b"], "score": [1.0, 0.0], "group": [1, 1]})
    table = table.assign(low=table["score"] - 1, high=table["score"] + 1)
    assert how_to_compare(table, "items") == ""
    assert "two items differ" in how_to_compare(table.assign(bar=0.5), "items")
    assert "lines separate" in how_to_compare(table.assign(group=[1, 2]), "items")
    figure, axis = plt.subplots()
    draw_scores(axis, table.assign(bar=0.5), "name", "mean")
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b"]
    plt.close(figure)


def test_dates_do_not_break_and_missing_integers_are_dashes():
    frame = pd.DataFrame({"rank": pd.array([1, None], dtype="Int64")})
    html = table_html(frame.assign(day=["2026-01-05", "2026-01-08"], name=["a", "b-c"]))
    assert html.count('class="date"') == 2
    assert "<td>–</td>" in html
    assert "NA" not in html
