"""The recorded runs of chapter 17 are of its tasks, and all of their columns are explained."""

from pathlib import Path

import pandas as pd
import pytest

from studies import ch17_tasks

RECORDED = Path(__file__).parents[2] / "data" / "recorded"


@pytest.mark.parametrize("name", ["runs", "new_user"])
def test_each_column_is_explained(name):
    found = pd.read_csv(RECORDED / f"17_common_ground_{name}.csv", comment="#", low_memory=False)
    assert {*found.columns} <= {*ch17_tasks.WORDS}
