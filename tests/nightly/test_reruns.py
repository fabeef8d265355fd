"""Each notebook reruns with another seed, with other parameters, and without one of its
data sets.

The seed, the parameters and the missing data set change from night to night. To repeat
a run, set PREFLEARN_NIGHT to the number of its night: the day, as given by
``date.toordinal``.
"""

import os

import numpy as np
import pytest
from reruns import (
    NOTEBOOKS,
    OTHER_VALUES,
    datasets_of,
    rerun,
    run_twice,
    use_mirror_without,
)

pytestmark = pytest.mark.nightly

NIGHT = int(os.environ["PREFLEARN_NIGHT"])
SEED = int(np.random.default_rng(NIGHT).integers(1, 10**6))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_with_another_seed_verdicts_agree_and_cells_can_run_again(name, tmp_path):
    disagreeing, failures = run_twice(name, tmp_path, SEED)
    assert disagreeing == []
    assert failures == []


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if OTHER_VALUES[name]])
def test_a_notebook_runs_with_other_values_of_its_parameters(name, tmp_path):
    parameters = {
        parameter: others[NIGHT % 2] for parameter, others in OTHER_VALUES[name].items()
    }
    rerun(name, tmp_path, **parameters)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_without_one_of_its_data_sets(name, tmp_path, monkeypatch):
    datasets = datasets_of(name)
    if not datasets:
        pytest.skip("the notebook reads no data set")
    hidden = datasets[NIGHT % len(datasets)]
    use_mirror_without(monkeypatch, tmp_path, hidden)
    assert rerun(name, tmp_path) == [], hidden
