"""A commit reruns one notebook with another seed, in turn. The nightly run tests all of
them."""

from pathlib import Path

import pytest
from reruns import NOTEBOOKS, OTHER_VALUES, number_of_commits, rerun

from preflearn_book.runner.project import Project

PROJECT = Project(Path(__file__).parents[1])

COMMITS = number_of_commits()
SEED = 1 + COMMITS % 1000
# Notebooks that take more than half a minute are run nightly.
LONG = ("05", "06", "07", "08", "09", "10", "13", "14", "16", "17")


def test_a_notebook_runs_with_another_seed_and_all_verdicts_agree(tmp_path):
    in_turn = [name for name in NOTEBOOKS if not name.startswith(LONG)]
    assert rerun(in_turn[COMMITS % len(in_turn)], tmp_path, seed=SEED) == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_each_parameter_has_two_other_values(name):
    defaults = PROJECT.chapter(name).parameters
    # The tests of reports vary the strings, which describe a user's file.
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
