"""Two notebooks with another seed on each commit, in turn; the nightly run tries all of them."""

import pytest
from reruns import NOTEBOOKS, number_of_commits, rerun

COMMITS = number_of_commits()
IN_TURN = [sorted(NOTEBOOKS)[(2 * COMMITS + k) % len(NOTEBOOKS)] for k in range(2)]
SEED = 1 + COMMITS % 1000


@pytest.mark.parametrize("name", IN_TURN)
def test_a_notebook_runs_with_another_seed_and_all_verdicts_agree(name, tmp_path):
    assert rerun(name, tmp_path, seed=SEED) == []
