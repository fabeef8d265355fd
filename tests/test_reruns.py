"""A commit reruns one notebook with another seed, in turn. The nightly run tests all of
them."""

from reruns import NOTEBOOKS, number_of_commits, rerun

COMMITS = number_of_commits()
SEED = 1 + COMMITS % 1000
# Notebooks that take more than half a minute are run nightly.
LONG = ("05", "06", "07", "08", "09", "10", "13", "14", "16", "17")


def test_a_notebook_runs_with_another_seed_and_all_verdicts_agree(tmp_path):
    in_turn = [name for name in NOTEBOOKS if not name.startswith(LONG)]
    assert rerun(in_turn[COMMITS % len(in_turn)], tmp_path, seed=SEED) == []
