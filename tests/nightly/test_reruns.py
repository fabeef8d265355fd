"""Each notebook reruns with other seeds and parameters, and without each of its data
sets.

To repeat the run of a night, set PREFLEARN_NIGHT to its number: the day, as given by
``date.toordinal``.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import yaml
from reruns import (
    NOTEBOOKS,
    datasets_of,
    failures_of_second_run,
    rerun,
    use_mirror_without,
)

from preflearn_book.runner.project import Project

pytestmark = pytest.mark.nightly

PROJECT = Project(Path(__file__).parents[2])
SEEDS = (
    np.random.default_rng(int(os.environ["PREFLEARN_NIGHT"]))
    .integers(1, 10**6, size=3)
    .tolist()
)
OTHER_VALUES = yaml.safe_load(
    Path(__file__).with_name("other_values.yml").read_text("utf-8")
)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_with_any_seed_and_all_verdicts_agree(name, seed, tmp_path):
    assert rerun(name, tmp_path, seed=seed) == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_each_parameter_has_two_other_values(name):
    defaults = PROJECT.chapter(name).parameters
    # the tests of reports vary the strings, which describe a user's file
    if "data" in defaults:
        defaults = {
            key: default
            for key, default in defaults.items()
            if not isinstance(default, str)
        }
    values = OTHER_VALUES[name]
    assert values.keys() == defaults.keys() - {"profile", "seed"}
    for parameter, others in values.items():
        assert len(others) == 2, parameter
        assert defaults[parameter] not in others, parameter


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
