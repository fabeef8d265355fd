"""The protocol of chapter 17 on learners that forecast a number, and the columns of its
recorded runs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from preflearn_book.studies import ch17_tasks
from preflearn_book.studies.ch17_protocol import (
    BUDGET,
    Learner,
    Problem,
    Split,
    evaluate,
)

RECORDED = Path(__file__).parents[2] / "data" / "recorded"


def predict_number(train, number):
    if number > 6:
        raise ValueError("cannot be fitted")
    return number


def learner(name, numbers):
    return Learner(
        name,
        predict_number,
        lambda model, _: model,
        [{"number": number} for number in numbers],
    )


def test_a_row_has_the_configuration_that_the_folds_choose_or_the_forecast_of_the_constant():
    folds = [Split(None, None, truth) for truth in (4, 6)]
    problem = Problem(
        "family",
        "domain",
        "1",
        Split(None, None, 5.5),
        folds,
        lambda y, p: {"loss": abs(y - p)},
        {"n": 2},
    )
    constant = learner("constant", [0])
    row = evaluate(
        problem, learner("eight", np.linspace(1, 8, BUDGET).tolist()), constant
    )
    found = {
        name: row[name]
        for name in ("learner", "loss", "fitted", "chosen", "at_end", "passed", "n")
    }
    expected = {
        "learner": "eight",
        "loss": 1.5,
        "fitted": 1,
        "chosen": "number=4",
        "at_end": "",
    }
    assert found == expected | {"passed": 2, "n": 2}
    assert (
        evaluate(problem, learner("low", range(-8, 0)), constant)["at_end"]
        == "number high"
    )
    row = evaluate(problem, learner("none", range(7, 15)), constant)
    assert (row["fitted"], row["loss"], row["passed"]) == (0, 5.5, BUDGET)
    with pytest.raises(ValueError, match="few"):
        evaluate(problem, learner("few", [1, 2]), constant)


@pytest.mark.parametrize("name", ["runs", "new_user"])
def test_each_recorded_column_is_explained(name):
    found = pd.read_csv(
        RECORDED / f"17_common_ground_{name}.csv", comment="#", low_memory=False
    )
    assert {*found.columns} <= {*ch17_tasks.WORDS}
