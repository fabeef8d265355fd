"""Shared functions of the benchmark scripts: timing, memory of a fresh process, and
Markdown tables."""

from __future__ import annotations

import argparse
import datetime
import math
import multiprocessing
import platform
import resource
import signal
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd


def alternate(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Median seconds of each call, after one warm-up.

    The calls are timed in turn, so that other work on the computer slows all of them.
    """
    for call in calls:
        call()
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for call, taken in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in seconds]


def processor_seconds(
    call: Callable[[], Any], repeats: int = 1, enough: float = math.inf
) -> tuple[float, Any]:
    """The minimum processor time over the repeats of a call, and the last result.

    No further repeat starts when the repeats have taken `enough` seconds.
    """
    taken: list[float] = []
    result = None
    while len(taken) < repeats and sum(taken) < enough:
        start = time.process_time()
        result = call()
        taken.append(time.process_time() - start)
    return min(taken), result


def script_parser(description: str | None) -> argparse.ArgumentParser:
    """A command-line parser that shows the docstring of a script unchanged."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )


def count_peak_from_here() -> None:
    """Reset the peak resident size of this process (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_kilobytes() -> int:
    """The peak resident size of this process.

    On Linux, ru_maxrss of a child process includes the size of its parent. Therefore
    the function reads VmHWM instead.
    """
    status = Path("/proc/self/status")
    if status.exists():
        marks = [
            line for line in status.read_text().splitlines() if line.startswith("VmHWM")
        ]
        return int(marks[0].split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Run(NamedTuple):
    """Seconds, growth of the peak resident size in MB, and result of a call."""

    seconds: float
    megabytes: float
    result: Any


def _run(make: Callable[..., Callable[[], object]], *arguments: object) -> Run:
    call = make(*arguments)
    before = peak_kilobytes()
    begin = time.perf_counter()
    result = call()
    taken = time.perf_counter() - begin
    return Run(taken, (peak_kilobytes() - before) / 1024, result)


def _growth(make: Callable[..., Callable[[], object]], *arguments: object) -> float:
    return _run(make, *arguments).megabytes


def _send(call: Callable, arguments: tuple, connection: Any) -> None:
    connection.send(call(*arguments))


def in_process(call: Callable, *arguments: object, limit: float | None = None) -> Any:
    """The result of `call(*arguments)` in a fresh process.

    If a limit is given, the result is None if the call takes more seconds, or if the
    operating system kills the process because memory is exhausted.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(call, arguments, sender))
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(limit) else None
    except EOFError:
        process.join()
        # The operating system kills a process with SIGKILL if memory is exhausted.
        if limit is None or process.exitcode != -signal.SIGKILL:
            raise RuntimeError(
                f"{call.__name__}{arguments} failed; its traceback is above"
            ) from None
        return None
    finally:
        process.kill()
        process.join()


def peak_megabytes(
    make: Callable[..., Callable[[], object]], *arguments: object
) -> float:
    """The growth in MB of the peak resident size of a fresh process during
    `make(*arguments)()`.

    The growth includes native memory of solvers. It does not include imports and the
    data that `make` loads.
    """
    return in_process(_growth, make, *arguments)


def run_in_process(
    make: Callable[..., Callable[[], object]], *arguments: object
) -> Run:
    """Seconds, memory as in `peak_megabytes`, and result of `make(*arguments)()` in a
    fresh process. The result is sent to this process, so it should be small."""
    return in_process(_run, make, *arguments)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; floats are shown with three significant digits."""

    def cell(value: object) -> str:
        return f"{value:.3g}" if isinstance(value, float) else str(value)

    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def print_tables(
    headers: Mapping[str, str], tables: Mapping[str, Sequence[Sequence[object]]]
) -> None:
    """Print Markdown tables under their titles. "|" separates the columns of a header."""
    for title, rows in tables.items():
        print(f"\n{title}\n\n{markdown_table(headers[title].split('|'), rows)}")


def write_table(
    path: Path, table: pd.DataFrame, script: str, machine: str = "one thread"
) -> None:
    """Write a CSV file with the date, the computer, and the script of a measurement.

    Also print the table as Markdown.
    """
    where = f"{machine} of {platform.machine()}, Python {platform.python_version()}"
    lines = [
        f"# date: {datetime.date.today()}",
        f'# machine: "{where}"',
        f"# by benchmarks/{script}",
    ]
    path.write_text(
        "\n".join(lines) + "\n" + table.to_csv(index=False, lineterminator="\n"),
        "utf-8",
    )
    print(markdown_table(list(table), table.to_numpy().tolist()))
