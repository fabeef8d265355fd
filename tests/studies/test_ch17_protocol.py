"""The protocol of chapter 17 on learners that forecast a number, and the columns of its
recorded runs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from preflearn_book.studies import ch17_tasks
from preflearn_book.studies.ch17_learners import LEARNERS
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
    return lambda test: number


def learner(name, numbers):
    options = [{"number": number} for number in numbers]
    return Learner(name, predict_number, options)


def test_a_row_has_the_configuration_that_the_folds_choose():
    folds = [Split(None, None, truth) for truth in (4, 6)]
    whole = Split(None, None, 5.5)
    problem = Problem(
        "family", "domain", "1", whole, folds, lambda y, p: {"loss": abs(y - p)}
    )
    row = evaluate(problem, learner("eight", np.linspace(1, 8, BUDGET).tolist()))
    expected = {"learner": "eight", "loss": 1.5, "chosen": "number=4", "at_end": ""}
    assert {name: row[name] for name in expected} == expected
    assert evaluate(problem, learner("low", range(-8, 0)))["at_end"] == "number high"
    with pytest.raises(ValueError, match="cannot be fitted"):
        evaluate(problem, learner("none", range(7, 15)))


def test_all_learners_have_the_same_budget():
    for family, learners in LEARNERS.items():
        widths = set()
        for one in learners:
            assert len(one.configurations) in (1, BUDGET), (family, one.name)
            found = {options.get("width") for options in one.configurations} - {None}
            widths.add(tuple(sorted(found)))
            kernels = {"width" in options for options in one.configurations}
            assert len(kernels) == 1, f"{one.name} has two kernels"
        assert len(widths - {()}) <= 1, f"kernels of {family} have different widths"


@pytest.mark.parametrize("name", ["runs", "new_user"])
def test_each_recorded_column_is_explained(name):
    found = pd.read_csv(
        RECORDED / f"17_common_ground_{name}.csv", comment="#", low_memory=False
    )
    assert {*found.columns} <= {*ch17_tasks.WORDS}
