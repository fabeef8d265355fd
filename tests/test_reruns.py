"""A notebook with another seed on each commit, in turn; the nightly run tries all of
them."""

from reruns import NOTEBOOKS, ROOT, number_of_commits, rerun

from preflearn_book.runner.tasks import quick_seconds

COMMITS = number_of_commits()
SEED = 1 + COMMITS % 1000
# A longer notebook is left to the nightly run.
LONGEST = 30


def test_a_notebook_runs_with_another_seed_and_all_verdicts_agree(tmp_path):
    seconds = quick_seconds(ROOT)
    in_turn = [name for name in sorted(NOTEBOOKS) if seconds[name] <= LONGEST]
    assert rerun(in_turn[COMMITS % len(in_turn)], tmp_path, seed=SEED) == []
