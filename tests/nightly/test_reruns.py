"""Each notebook reruns with other seeds and parameters, and without each of its data
sets.

To repeat the run of a night, set PREFLEARN_NIGHT to its number: the day, as given by
``date.toordinal``.
"""

import os

import numpy as np
import pytest
from reruns import (
    NOTEBOOKS,
    OTHER_VALUES,
    datasets_of,
    failures_of_second_run,
    rerun,
    use_mirror_without,
)

pytestmark = pytest.mark.nightly

SEEDS = (
    np.random.default_rng(int(os.environ["PREFLEARN_NIGHT"]))
    .integers(1, 10**6, size=3)
    .tolist()
)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_with_any_seed_and_all_verdicts_agree(name, seed, tmp_path):
    assert rerun(name, tmp_path, seed=seed) == []


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if OTHER_VALUES.get(name)])
def test_a_notebook_runs_with_other_values_of_its_parameters(name, which, tmp_path):
    parameters = {
        parameter: others[which] for parameter, others in OTHER_VALUES[name].items()
    }
    rerun(name, tmp_path, **parameters)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_without_any_one_of_its_data_sets(name, tmp_path, monkeypatch):
    for dataset in datasets_of(name):
        folder = tmp_path / dataset
        folder.mkdir()
        use_mirror_without(monkeypatch, folder, dataset)
        assert rerun(name, folder) == [], dataset


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_cells_of_a_notebook_can_run_again_in_any_order(name, tmp_path):
    assert failures_of_second_run(name, tmp_path, seed=SEEDS[0]) == []
