"""Fuzz every public name: ``python -m tests.fuzz --calls 20000 --seed 0``.

Each case calls a public function, or constructs an object, fits it, and calls its
methods. Usually, one or two of the arguments are hostile. A call must return finite
numbers or raise an error that the documentation mentions. It must not change its
inputs, hang, or end its process. Cases run in separate processes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))


def serve(seed: int) -> None:
    """Run the case of each number that is read, and print its calls as one line of
    JSON."""
    import resource
    import warnings

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discard what the calls print
    from fuzz.calls import run_case

    for line in sys.stdin:
        print(json.dumps(run_case(seed, int(line))), file=answers, flush=True)


class Worker:
    """A process that runs cases. It is killed if a case hangs, and restarted if it has
    ended."""

    def __init__(self, seed: int, limit: float, folder: str) -> None:
        self.command = [sys.executable, __file__, "--serve", "--seed", str(seed)]
        source = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
        offline = {
            "PREFLEARN_OFFLINE": "1",
            "PREFLEARN_DATA": folder,
            "XDG_CACHE_HOME": folder,
        }
        threads = {
            "NUMBA_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.environment = os.environ | {"PYTHONPATH": source} | offline | threads
        self.limit = limit
        self.folder = folder
        self.process = None

    def __call__(self, number: int) -> list[dict[str, str]]:
        if self.process is None:
            pipes = {
                "stdin": subprocess.PIPE,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.DEVNULL,
            }
            self.process = subprocess.Popen(
                self.command, env=self.environment, cwd=self.folder, text=True, **pipes
            )
        process = self.process
        timer = threading.Timer(self.limit, process.kill)
        timer.start()
        try:
            process.stdin.write(f"{number}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        hung = not timer.is_alive()
        timer.cancel()
        if line:
            return json.loads(line)
        self.process = None
        status = process.wait()
        outcome = "BAD hang" if hung else "BAD end of the process"
        message = f"after {self.limit:g} s" if hung else f"status {status}"
        return [{"call": "its last call", "outcome": outcome, "message": message}]

    def close(self) -> None:
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def fuzz(
    calls: int,
    seed: int,
    workers: int = 2,
    limit: float = 240.0,
    first: int = 0,
    step: int = 1,
) -> list[dict]:
    """Return the outcomes of at least `calls` calls, in the order of the cases `first`,
    `first + step`, and so on.

    Each outcome states the call, its result, the message, and how to repeat the case.
    """
    numbers = count(first, step)
    made = list[dict]()
    lock = threading.Lock()

    def work(worker: Worker) -> None:
        while True:
            with lock:
                number = next(numbers)
                if len(made) >= calls:
                    break
            found = worker(number)
            again = f"python -m tests.fuzz --seed {seed} --case {number}"
            with lock:
                made.extend({**one, "case": number, "again": again} for one in found)
        worker.close()

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, [Worker(seed, limit, folder) for _ in range(workers)]))
    return sorted(made, key=lambda one: one["case"])


def main() -> int:
    """Return 0, or 1 if anything happened that is not allowed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--limit",
        type=float,
        default=240.0,
        help="time limit of a case in seconds, with its compilation",
    )
    parser.add_argument(
        "--case", type=int, help="repeat this case and print all of its calls"
    )
    parser.add_argument(
        "--json",
        type=Path,
        help="write all calls to this file, one line of JSON per call",
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.seed)
        return 0
    one = options.case is not None
    calls, workers = (1, 1) if one else (options.calls, options.workers)
    made = fuzz(calls, options.seed, workers, options.limit, options.case or 0)
    if options.json:
        options.json.write_text("".join(json.dumps(call) + "\n" for call in made))
    bad = [call for call in made if call["outcome"].startswith("BAD")]
    for call in made if one else bad:
        print(
            f"{call['outcome']}: {call['call']}\n    {call['message']}\n    {call['again']}"
        )
    for outcome, number in Counter(call["outcome"] for call in made).most_common():
        print(f"{number:8,d}  {outcome}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
