"""A notebook with another seed on each commit, in turn; the nightly run tries all of them."""

from csv import DictReader
from pathlib import Path

from reruns import NOTEBOOKS, number_of_commits, rerun

COMMITS = number_of_commits()
SEED = 1 + COMMITS % 1000
# A longer notebook is left to the nightly run.
LONGEST = 30


def test_a_notebook_runs_with_another_seed_and_all_verdicts_agree(tmp_path):
    table = (Path(__file__).parents[1] / "data" / "chapter_seconds.csv").read_text().splitlines()
    seconds = {
        row["chapter"]: int(row["seconds"]) for row in DictReader(line for line in table if line[0] != "#")
    }
    in_turn = [name for name in sorted(NOTEBOOKS) if seconds[name] <= LONGEST]
    assert rerun(in_turn[COMMITS % len(in_turn)], tmp_path, seed=SEED) == []
