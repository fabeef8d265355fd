"""Change a constant in a solver, and see whether the quick run of a chapter contradicts
its records.

    python tests/slips.py            every chapter that has records
    python tests/slips.py 03 16      some of them

Run this tool by hand after solvers or records changed: a record that no slip moves
tests nothing. Each chapter runs in its quick profile, in a copy of the packages in
which one line is changed. The cells of its records that moved are printed. When a
solver is rewritten, its line in SLIPS has to be rewritten, too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from pathlib import Path
from unittest import mock

from preflearn_book.runner.execution import execute
from preflearn_book.runner.outputs import Executed
from preflearn_book.runner.project import find_project
from preflearn_book.runner.record_check import contradicted_records, records_of

ROOT = Path(__file__).parents[1]
RIDGE = (
    "preflearn/pursuit/ridge.py",
    "np.square(sizes) + alphas",
    "np.square(sizes) + 1.1 * alphas",
)
SLIPS = {  # file: its text, and the changed text
    "03": (
        "preflearn/margins/qp.py",
        "self.margin_ = -1 / self.bias_",
        "self.margin_ = -1.001 / self.bias_",
    ),
    "05": (
        "preflearn_book/studies/ch05_simulations.py",
        "coef[:, good] / -bias",
        "coef[:, good] / (-1.1 * bias)",
    ),
    "07": (
        "preflearn/ratings/elo_glicko.py",
        "_Q = math.log(10) / 400",
        "_Q = math.log(10) / 440",
    ),
    "09": (
        "preflearn/path/ranking.py",
        "np.abs(margins - 1) <= tolerance",
        "np.abs(margins - 1.01) <= tolerance",
    ),
    "10": RIDGE,
    # with three users, a change of a tenth does not move any pair
    "11": (*RIDGE[:2], "np.square(sizes) + 2 * alphas"),
    "13": ("preflearn/dynamics/engine/acceleration.py", "_DEPTH = 12", "_DEPTH = 4"),
    "14": (
        "preflearn/dynamics/engine/algorithm.py",
        "return total + 0.5 * math.log(product), math.sqrt(largest)",
        "return total + 0.501 * math.log(product), math.sqrt(largest)",
    ),
    "16": (
        "preflearn/analogy/anker_rank.py",
        "0.5 + (chance - other) / 2",
        "0.5 + (chance - 0.9 * other) / 2",
    ),
}


def slip(number: str) -> dict[str, list[str]]:
    """Return the records of a chapter that contradict the changed solver, with the
    cells that moved.

    Raises
    ------
    ValueError
        If the line is no longer there, or the chapter does not run to its end.
    """
    file, before, after = SLIPS[number]
    project = find_project(ROOT)
    chapter = project.chapter(number)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(
            ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__")
        )
        (Path(folder) / "data").symlink_to(ROOT / "data")
        path = source / file
        text = path.read_text("utf-8")
        if text.count(before) != 1:
            raise ValueError(
                f"{file} has {before!r} {text.count(before)} times; expected one to change"
            )
        path.write_text(text.replace(before, after), "utf-8")
        with mock.patch.dict(os.environ, PYTHONPATH=str(source)):
            result = execute(chapter.notebook, {}, chapter.parameters, str(ROOT))
    if result.summary or result.notebook is None:
        raise ValueError(
            f"chapter {chapter.name} with a slip: {result.summary}\n{result.report}"
        )
    result.notebook["metadata"]["preflearn"] = {"run": {"chapter": chapter.name}}
    return contradicted_records(
        records_of(project.recorded, chapter.name), Executed(result.notebook)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "chapters", nargs="*", metavar="CHAPTER", help=f"default: {' '.join(SLIPS)}"
    )
    numbers = parser.parse_args().chapters
    if unknown := set(numbers) - set(SLIPS):
        parser.error(
            f"no line to change for {', '.join(sorted(unknown))}; choose from {', '.join(SLIPS)}"
        )
    for number in numbers or SLIPS:
        try:
            found = slip(number)
        except ValueError as error:
            print(f"{number}: {error}", flush=True)
            continue
        cells = sum(map(len, found.values()))
        print(
            f"{number}: {cells} cells of {len(found)} records moved by {SLIPS[number][2]!r}",
            flush=True,
        )
        for name, moved in found.items():
            print(f"  {name}: {moved[0]}", flush=True)
