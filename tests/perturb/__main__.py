"""Test whether the checks of a chapter can fail: ``python -m tests.perturb 02 08``, or
all chapters.

A chapter runs once, in its quick profile. Then each cell that checks a claim runs
again, with one error at a time in the values that it reads, calls, or contains as
numbers. Errors are negated, scaled or shuffled numbers, exchanged labels, a column of
noise, or a wrong constant. If the verdict on a claim never changes, its check cannot
fail; such a claim must be listed in tests/perturb/exceptions.yml with the reason. If a
verdict changes, the check may still be weak: see --thorough.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

if TYPE_CHECKING:
    from perturb.chapter import Claim

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
EXCEPTIONS = ROOT / "tests" / "perturb" / "exceptions.yml"


def exceptions() -> dict[str, str]:
    """Return, for each listed claim, why no wrong input can change its verdict."""
    return yaml.safe_load(EXCEPTIONS.read_text("utf-8")) or {}


def report(
    name: str, found: dict, excused: dict[str, str], thorough: bool = False
) -> tuple[str, bool]:
    """Return the report on a chapter, and whether each verdict changed or is listed as
    an exception."""
    claims = found["claims"]
    turned = [claim for claim in claims if claim.turned]
    still = [claim for claim in claims if not claim.turned]
    wrong = [
        f"{claim.id} in cell {claim.cell} did not turn"
        for claim in still
        if claim.id not in excused
    ]
    wrong += [
        f"{claim.id} is excused, and {claim}" for claim in turned if claim.id in excused
    ]
    wrong += [
        f"cell {cell} could not be run, or not again: {why}"
        for cell, why in found["unsteady"].items()
    ]
    known = [f"{claim} ({excused[claim.id]})" for claim in still if claim.id in excused]
    title = f"{name}: {len(turned)} of {len(claims)} checks turned, in {found['runs']:,} runs"
    doubts = _doubts(turned) if thorough else []
    return "\n    ".join([title, *wrong, *known, *doubts]), not wrong


def _doubts(turned: list[Claim]) -> list[str]:
    """Return the claims whose verdict changed only in part, or only by values from
    earlier cells."""
    lines = [
        f"{one.id}: the answer {form!r} did not turn"
        for one in turned
        for form in sorted(one.steady)
    ]
    given = "turned by what its cell is given only"
    return lines + [f"{one.id} {given}: {one.turned}" for one in turned if not one.deep]


def perturb_alone(path: Path, **limits: object) -> dict:
    """Perturb a chapter in a separate process.

    Compiled code may end the process if it gets values that no constructor accepts. The
    other chapters then continue.
    """
    from perturb.chapter import alone, perturb

    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=alone
    ) as own:
        try:
            return own.submit(perturb, path, **limits).result()
        except BrokenProcessPool:
            return {
                "claims": [],
                "runs": 0,
                "unsteady": {"after those above": "its process died"},
            }


def main() -> int:
    """Return 0, or 1 if a verdict never changed and is not listed as an exception."""
    from preflearn_book.runner.claims import load_claims

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "chapters", nargs="*", help="numbers, such as 02; all by default"
    )
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="time limit of one run of a cell"
    )
    parser.add_argument(
        "--budget", type=float, default=60.0, help="time limit of all runs of one cell"
    )
    parser.add_argument(
        "--most", type=int, default=1000, help="largest number of runs of a cell"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--thorough",
        action="store_true",
        help="continue until each answer has changed, and not only by values from earlier cells",
    )
    parser.add_argument(
        "--claim",
        action="append",
        metavar="ID",
        help="perturb only this claim; repeat the option for more",
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--json",
        type=Path,
        help="write the results to this file, one line of JSON per claim",
    )
    options = parser.parse_args()
    paths = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    if unknown := set(options.chapters) - {path.stem[:2] for path in paths}:
        parser.error(f"unknown chapter {', '.join(sorted(unknown))}")
    if unknown := set(options.claim or ()) - set(load_claims()):
        parser.error(f"unknown claim {', '.join(sorted(unknown))}")
    paths = [
        path
        for path in paths
        if not options.chapters or path.stem[:2] in options.chapters
    ]
    limits = {
        "seconds": options.seconds,
        "budget": options.budget,
        "most": options.most,
    }
    limits |= {
        "seed": options.seed,
        "thorough": options.thorough,
        "only": options.claim or (),
    }
    good = True
    lines = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for path, found in zip(
            paths, pool.map(partial(perturb_alone, **limits), paths), strict=True
        ):
            text, turned = report(path.stem, found, exceptions(), options.thorough)
            print(text, flush=True)
            good &= turned
            lines += [vars(claim) | {"chapter": path.stem} for claim in found["claims"]]
    if options.json:
        options.json.write_text(
            "".join(json.dumps(line, default=sorted) + "\n" for line in lines)
        )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
