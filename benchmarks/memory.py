"""Measure the memory of a large fit and of reading its matches.

    python benchmarks/memory.py         ten million matches; three minutes, 6 GB and a file of 100 MB

The table data/scaling_memory.csv lists the arrays of a fit of the dynamic model, in
bytes per match, and the peak of the whole fit. It also has the peak when the same number
of matches of 100,000 players is read from Parquet, with names as text and as categories.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _measure import (
    count_peak_from_here,
    in_process,
    peak_kilobytes,
    script_parser,
    write_table,
)

from preflearn.dynamics import Constant, DynamicComparisons, Matern12, OrdinalProbit
from preflearn.dynamics.engine.acceleration import AndersonMixing
from preflearn.dynamics.model import check_problem, prepare_sweep
from preflearn.matches import Matches
from preflearn_book.studies.ch13_simulated import simulate_matches

TABLE = Path(__file__).parents[1] / "data" / "scaling_memory.csv"
MATCHES = 10_000_000
PLAYERS = 100_000
BATCH = 1_000_000
SWEEPS = 10  # sweeps that use all arrays of a whole fit


def problem(n: int) -> tuple[DynamicComparisons, Matches, np.ndarray]:
    matches, y, _, margin = simulate_matches(n, n // 21, rng=0)
    model = DynamicComparisons(
        Constant(0.5) + Matern12(0.25, 3652.5), OrdinalProbit(margin=margin)
    )
    return model.set_params(n_threads=1, max_iter=SWEEPS), matches, y


def layout(n: int) -> list[list[object]]:
    """The arrays in memory during a fit, in bytes per match."""
    model, matches, y = problem(n)
    played = check_problem(model, matches, y)
    with prepare_sweep(model, matches, played) as sweep:
        mixing = AndersonMixing(sweep).history
        plan = sweep.schedule
        design = matches.design
        parts = {
            "the design: sparse rows": [design.data, design.indices, design.indptr],
            "times": [matches.time],
            "outcomes, weights, offsets, twice": [
                played,
                sweep.arrays.observations,
            ],
            "who plays when, in the order of inference": [
                *(
                    plan.order,
                    plan.entry_order,
                    plan.rank,
                    plan.rows,
                    plan.coefficients,
                ),
                *plan.visits,
            ],
            "pseudo-observations and moments": [sweep.entries],
            "new pseudo-observations": [sweep.updated],
            "acceleration: the last sweep": [mixing.x, mixing.residual],
            "acceleration: differences": [mixing.steps, mixing.changes],
        }
        return [
            ["array", part, n, sum(a.nbytes for a in one) / n, 0.0]
            for part, one in parts.items()
        ]


def fitted(n: int) -> list[object]:
    warnings.simplefilter("ignore")
    small, few, y = problem(1_000)
    small.fit(few, y)
    begin = peak_kilobytes()
    model, matches, y = problem(n)
    count_peak_from_here()
    start = time.process_time()
    model.fit(matches, y)
    taken = time.process_time() - start
    return [
        "peak",
        "data and fit, ten sweeps",
        n,
        (peak_kilobytes() - begin) * 1024 / n,
        taken,
    ]


def write(path: str, n: int) -> None:
    """Matches on the days of thirty years, in batches that are never in memory together."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    names = np.array([f"player {k}" for k in range(PLAYERS)])
    writer = None
    per_day = n // 10_957
    for begin in range(0, n, BATCH):
        size = min(BATCH, n - begin)
        first = rng.integers(PLAYERS, size=size)
        second = (first + rng.integers(1, PLAYERS, size)) % PLAYERS
        day = (begin + np.arange(size)) // max(per_day, 1)
        when = np.datetime64("1995-01-01") + day.astype("timedelta64[D]")
        columns = {
            "first": names[first],
            "second": names[second],
            "time": when.astype("datetime64[ms]"),
        }
        table = pa.table(columns | {"outcome": rng.choice([-1, 0, 1], size)})
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def read(path: str, categories: list[str]) -> list[float]:
    """Bytes per match at the peak and in the result, and processor seconds.

    Some columns are read as categories.
    """
    count_peak_from_here()
    before = peak_kilobytes()
    start = time.process_time()
    frame = pd.read_parquet(path, engine="pyarrow", read_dictionary=categories)
    found = Matches.from_frame(frame)
    taken, matches, y = time.process_time() - start, *found
    design = matches.design
    held = sum(
        a.nbytes for a in (design.data, design.indices, design.indptr, matches.time, y)
    )
    return [(peak_kilobytes() - before) * 1024 / len(y), held / len(y), taken]


def main() -> None:
    script_parser(__doc__).parse_args()
    rows: list[Any] = [*in_process(layout, MATCHES), in_process(fitted, MATCHES)]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "matches.parquet")
        in_process(write, path, MATCHES)
        rows.append(
            [
                "file",
                "Parquet on the disk",
                MATCHES,
                Path(path).stat().st_size / MATCHES,
                0.0,
            ]
        )
        for categories, what in (
            ([], "names as texts"),
            (["first", "second"], "names as categories"),
        ):
            peak, held, taken = in_process(read, path, categories)
            rows.append(["read", what, MATCHES, peak, taken])
            print(rows[-1], flush=True)
        rows.append(
            ["result", "matches and outcomes that were read", MATCHES, held, 0.0]
        )
    header = ["kind", "what", "matches", "bytes_per_match", "seconds"]
    table = pd.DataFrame(rows, columns=header).round(
        {"bytes_per_match": 0, "seconds": 1}
    )
    write_table(TABLE, table, "memory.py")


if __name__ == "__main__":
    main()
