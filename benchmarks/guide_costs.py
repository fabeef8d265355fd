"""Measure the costs of the code in the guide; write data/guide_costs.csv.

    python benchmarks/guide_costs.py                  # a few minutes, up to 6 GB
    python benchmarks/guide_costs.py --only races     # some situations; the other rows are kept

The script measures time and memory for 1,000 to 10,000,000 comparisons. It runs the
cells of notebooks/guide.ipynb unchanged, on one thread, with one process per size. It
first runs the cell that simulates the data, with another size. After a small run that
compiles the code, it times the cell of at most five lines.

Before each run, the script predicts the time as ten times the time for a tenth of the
size. If the prediction exceeds the limit of time or memory, the run is left out and the
numbers are extrapolated from the last two sizes, with at least tenfold growth. The table
marks such numbers.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _measure import (
    count_peak_from_here,
    in_process,
    peak_kilobytes,
    processor_seconds,
    script_parser,
    write_table,
)
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "data" / "guide_costs.csv"
SIZES = (10**3, 10**4, 10**5, 10**6, 10**7)
# limits of one run
SECONDS = 25.0
MEGABYTES = 6_000.0
QUICK = 2.0  # seconds; a faster run is repeated, and the minimum of three counts
REACH = 86_400.0, 64_000.0  # one day, and the memory of a large computer


class Situation(NamedTuple):
    """A section of the guide: its name, its simulator, the names of the simulated data,
    the last argument of the simulator, and a description of the data."""

    name: str
    simulator: str
    gives: tuple[str, ...]
    argument: Callable[[int], int]
    data: str


SITUATIONS = {  # by the prefix of the cell ids of a section
    "matches": Situation(
        "matches with dates",
        "played",
        ("games",),
        lambda m: min(m // 50, 20_000),
        "one team per 50 games, at most 20,000",
    ),
    "features": Situation(
        "pairs with ties and features",
        "tasted",
        ("dishes", "asked", "answer"),
        lambda m: min(m // 10, 2_000),
        "one item per 10 pairs, at most 2,000; 2 features",
    ),
    "items": Situation(
        "pairs of items only",
        "preferred",
        ("choices",),
        lambda m: min(m // 50, 2_000),
        "one item per 50 pairs, at most 2,000",
    ),
    "ratings": Situation(
        "ratings by users or queries",
        "rated",
        ("X", "stars", "user"),
        lambda m: 10,
        "12 ratings per user, 10 features",
    ),
    "rankings": Situation(
        "rankings of sets",
        "ranked",
        ("rankings",),
        lambda m: min(m // 50, 100),
        "4 items per ranking, at most 100 in total",
    ),
    "races": Situation(
        "races",
        "raced",
        ("results",),
        lambda m: min(m // 50, 20_000),
        "8 drivers per race, at most 20,000 in total",
    ),
    "judges": Situation(
        "judgments by several judges",
        "judged",
        ("index", "verdict", "judge"),
        lambda m: 20,
        "20 items, 40 answers per judge",
    ),
    "models": Situation(
        "votes on answers of language models",
        "voted",
        ("votes",),
        lambda m: 20,
        "20 models, 30 votes per judge",
    ),
    "few": Situation(
        "too few labels",
        "described",
        ("X_all", "truth", "n_scored"),
        lambda m: 4,
        "one set; four times as many items without scores",
    ),
}


def cells() -> dict[str, str]:
    """Sources of the guide by cell id."""
    notebook = json.loads((ROOT / "notebooks" / "guide.ipynb").read_text("utf-8"))
    return {cell["id"]: "".join(cell["source"]) for cell in notebook["cells"]}


@threadpool_limits.wrap(limits=1)
def timed(key: str, m: int) -> tuple[float, float]:
    """Processor seconds of the code on data of this size, and growth of memory in MB."""
    warnings.simplefilter("ignore")
    source = cells()
    space = dict[str, Any]()
    _, simulator, names, argument, _ = SITUATIONS[key]
    # a small run that compiles the code
    for cell in ("parameters", "setup", f"{key}-data", f"{key}-lines"):
        exec(source[cell], space)
    values = space[simulator](m, np.random.default_rng(0), argument(m))
    space |= dict(zip(names, values if len(names) > 1 else [values], strict=True))
    if key == "few":
        space |= {
            "few": np.arange(values[2]),
            "rest": np.arange(values[2], len(values[0])),
        }
    count_peak_from_here()
    before = peak_kilobytes()
    lines = source[f"{key}-lines"]
    taken, _ = processor_seconds(lambda: exec(lines, space), 3, QUICK)
    # Linux counts memory in batches of pages, so a small growth can look negative.
    return taken, max(0, peak_kilobytes() - before) / 1024


def beyond(found: list[tuple[float, float]]) -> tuple[float, float]:
    """Seconds and MB at ten times the size, extrapolated from the last two sizes.

    The growth of seconds is at least tenfold, that of MB at most tenfold.
    """
    (s, mb), (t, mc) = found[-2:]
    return t * max(t / s, 10.0), mc * min(max(mc / max(mb, 1.0), 1.0), 10.0)


def rows(key: str) -> list[list[object]]:
    """The rows of one situation."""
    found = list[tuple[float, float]]()
    table = list[list[object]]()
    measured = True
    for m in SIZES:
        if found and (10 * found[-1][0] > SECONDS or 10 * found[-1][1] > MEGABYTES):
            measured = False
        result = in_process(timed, key, m, limit=60 * SECONDS) if measured else None
        measured = result is not None
        found.append(result or beyond(found))
        seconds, megabytes = found[-1]
        reached = measured or (seconds < REACH[0] and megabytes < REACH[1])
        kind = "measured" if measured else "extrapolated" if reached else "out of reach"
        row = [
            SITUATIONS[key].name,
            m,
            f"{seconds:.3g}",
            f"{megabytes:.0f}",
            kind,
            SITUATIONS[key].data,
        ]
        print(*row, flush=True)
        table.append(row)
    return table


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=SITUATIONS, help="the other rows are kept"
    )
    only = parser.parse_args().only
    header = ["situation", "comparisons", "seconds", "megabytes", "kind", "data"]
    table = pd.DataFrame(
        [row for key in only or SITUATIONS for row in rows(key)], columns=header
    )
    if only:
        kept = pd.read_csv(TABLE, comment="#", dtype=str).set_index("situation")
        # The file has no rows for a new situation.
        kept = kept[~kept.index.isin(table["situation"])]
        table = pd.concat([kept, table.set_index("situation")])
        table = table.loc[[one.name for one in SITUATIONS.values()]].reset_index()
    write_table(TABLE, table, "guide_costs.py")


if __name__ == "__main__":
    main()
