"""Run a sweep on a cluster whose workers are killed every few seconds.

    python benchmarks/sweep_under_kills.py 05 -p seed 0:10 --every 5

starts a scheduler and two workers on this computer and runs `preflearn sweep 05 -p seed
0:10` on them. Every five seconds, it kills one worker with SIGKILL. Then it runs the same
sweep with --jobs 1, or reads the table of such a sweep (--alone TABLE). It prints the
number of cells in which the tables differ, without times. The exit status is 1 if a cell
differs or a kernel outlived its worker. --record PATH writes these numbers to a table,
for chapter 17.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import pandas as pd
import psutil
from dask import config
from distributed import LocalCluster

SETTLED = 10  # seconds after which no kernel of a killed worker may still run


def swept(chapter: str, options: list[str], *where: str) -> subprocess.Popen:
    """Start the command. The last line of its output names its table."""
    code = (
        "import sys; from preflearn_book.runner.command import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", code, "sweep", chapter, *options, *where]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def table_of(process: subprocess.Popen) -> Path:
    """The main table of a sweep that has ended."""
    said = process.communicate()[0]
    print(said, file=sys.stderr)
    if "results: " not in said:
        raise SystemExit("the sweep did not end with a table")
    return Path(said.split("results: ")[1].strip())


def killed_while(
    process: subprocess.Popen, cluster: LocalCluster, every: float
) -> tuple[int, int]:
    """Number of workers killed until a process ended, and number of surviving kernels.

    Workers that are still starting are not killed, because a nanny gives up if its
    worker dies during the start.
    """
    rng = random.Random(0)
    kills = 0
    kernels = list[psutil.Process]()
    while process.poll() is None:
        time.sleep(every)
        there = set(cluster.scheduler_info["workers"])
        alive = [
            worker.pid
            for worker in cluster.workers.values()
            if worker.worker_address in there
        ]
        if alive and process.poll() is None:
            pid = rng.choice(alive)
            kernels += psutil.Process(pid).children(recursive=True)
            os.kill(pid, signal.SIGKILL)
            kills += 1
    time.sleep(SETTLED)
    there = [
        one
        for one in psutil.process_iter(["status"])
        if one.info["status"] != psutil.STATUS_ZOMBIE
    ]
    return kills, sum(kernel in there for kernel in kernels)


def differing_cells(here: Path, there: Path) -> int:
    """Cells that differ in any table of two sweeps, byte by byte, without times."""
    columns = pd.read_csv(here.with_suffix(".columns.csv"), keep_default_na=False)
    found = 0
    for name in columns["table"].unique():
        timed = columns.loc[(columns["table"] == name) & columns["timing"], "column"]
        both = [
            path.with_suffix(f".{name}.csv" if name else ".csv")
            for path in (here, there)
        ]
        one, other = (
            pd.read_csv(path, dtype=str, keep_default_na=False).drop(columns=timed)
            for path in both
        )
        same = one.shape == other.shape and one.columns.equals(other.columns)
        found += (
            int((one != other).to_numpy().sum()) if same else max(one.size, other.size)
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("chapter")
    parser.add_argument("--every", type=float, default=5.0, metavar="SECONDS")
    parser.add_argument(
        "--output",
        type=Path,
        help="folder of the points; a temporary folder by default",
    )
    parser.add_argument(
        "--alone",
        type=Path,
        metavar="TABLE",
        help="table of the same sweep with --jobs 1",
    )
    parser.add_argument(
        "--record", type=Path, metavar="PATH", help="path of a table with the results"
    )
    given, options = parser.parse_known_args()
    folder = given.output or Path(tempfile.mkdtemp(prefix="sweep_under_kills_"))
    # Otherwise the cluster removes a worker 15 s after it is lost, even if it restarts.
    config.set({"distributed.deploy.lost-worker-timeout": "1 day"})
    # A point may lose its worker more often than Dask allows by default.
    config.set({"distributed.scheduler.allowed-failures": 1000})
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        scheduler_port=0,
    ) as cluster:
        address = cluster.scheduler_info["address"]  # pyright: ignore[reportAttributeAccessIssue]
        process = swept(
            given.chapter,
            options,
            "--output",
            str(folder / "killed"),
            "--scheduler",
            address,
        )
        kills, orphans = killed_while(process, cluster, given.every)
        there = table_of(process)
    command = given.chapter, options, "--output", str(folder / "alone"), "--jobs", "1"
    here = given.alone or table_of(swept(*command))
    found = differing_cells(here, there)
    rows = {
        "points": len(pd.read_csv(here)),
        "workers killed": kills,
        "kernels that outlived their worker": orphans,
        "cells that differ": found,
    }
    if given.record:
        head = f"# date: {date.today()}\n# every_s: {given.every:g}\n"
        table = (
            pd.Series(rows, name="number", dtype=object)
            .rename_axis("what")
            .to_csv(lineterminator="\n")
        )
        given.record.write_text(head + table)
    print(", ".join(f"{what}: {number}" for what, number in rows.items()))
    return int(found > 0 or orphans > 0)


if __name__ == "__main__":
    sys.exit(main())
