"""Time two shards on two workers against one process, and count the bytes they send.

    python benchmarks/shards.py         a few minutes

The script writes data/scaling_shards.csv. The data are matches within two divisions and
some matches between them. The workers are two processes of a Dask cluster on this
computer. Each worker counts the bytes that it sends to the other: each answer to a
request for data, including the overhead of Dask. The table also has the expected number,
16 bytes per side of a match between divisions, and the pickled size.
"""

from __future__ import annotations

import pickle
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _measure import script_parser, write_table
from distributed import Client, LocalCluster

from preflearn.dynamics import Constant, DynamicComparisons, Matern12, Probit
from preflearn.matches import Matches
from preflearn.pairs import Incidence
from preflearn_book.studies.ch14_shards import fit_shards

TABLE = Path(__file__).parents[1] / "data" / "scaling_shards.csv"
MATCHES = 20_000
DIVISION = 200
TOL = 1e-10
# fraction between divisions, sweeps per turn
CASES = [(0.01, 1), (0.1, 1), (0.5, 1), (0.1, 2), (0.1, 4), (0.1, 8), (0.1, 16)]
HEADER = [
    "crossing_share",
    "every",
    "matches",
    "players",
    "sides",
    "turns",
    "sweeps",
    "messages",
    "plan_bytes",
]
HEADER += [
    "pickled_bytes",
    "sent_bytes",
    "score_off",
    "std_off",
    "one_machine_sweeps",
    "seconds",
]


def season(share: float) -> tuple[Matches, np.ndarray]:
    """Matches within two divisions, and a fraction of matches between them."""
    rng = np.random.default_rng(0)
    n = 2 * DIVISION
    first = rng.integers(n, size=MATCHES)
    division = first // DIVISION
    second = (
        division * DIVISION + (first + rng.integers(1, DIVISION, MATCHES)) % DIVISION
    )
    other = (1 - division) * DIVISION + rng.integers(DIVISION, size=MATCHES)
    second = np.where(rng.random(MATCHES) < share, other, second)
    score = rng.normal(size=n)
    when = np.sort(rng.uniform(0, 1000, MATCHES))
    y = np.where(score[first] - score[second] + rng.normal(size=MATCHES) > 0, 1, -1)
    names = [f"p{k}" for k in range(n)]
    return Matches(
        Incidence(np.column_stack([first, second]), n).matrix(), when, names
    ), y


def count(dask_worker: Any) -> None:
    """Start counting the answers to other workers' requests for data, and their bytes."""
    from distributed.comm.tcp import TCP

    written = TCP.write
    dask_worker.counted = [0, 0]

    async def write(self: Any, message: Any, *arguments: Any, **options: Any) -> Any:
        size = await written(self, message, *arguments, **options)
        if isinstance(message, dict) and any(
            str(key).startswith("_outbox") for key in message.get("data", ())
        ):
            dask_worker.counted[0] += len(message["data"])
            dask_worker.counted[1] += size
        return size

    setattr(TCP, "write", write)  # noqa: B010, whose arguments have other names


def case(share: float, every: int) -> list[object]:
    matches, y = season(share)
    model = DynamicComparisons(
        Constant(0.5) + Matern12(0.5, 300.0), Probit(), n_threads=1
    )
    one = (
        DynamicComparisons(**model.get_params())
        .set_params(tol=1e-12, max_iter=5000)
        .fit(matches, y)
    )
    plain = DynamicComparisons(**model.get_params()).set_params(
        tol=TOL, max_iter=5000, rate=1.0
    )
    owner = np.repeat([0, 1], DIVISION)
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": ":0",
    }
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        # a small run that compiles the code
        short = DynamicComparisons(**plain.get_params()).set_params(max_iter=2)
        fit_shards(client, short, matches[:400], y[:400], owner)
        client.run(count)
        begin = time.perf_counter()
        found = fit_shards(client, plain, matches, y, owner, every=every)
        seconds = time.perf_counter() - begin
        counted: Any = client.run(lambda dask_worker: dask_worker.counted)
        messages, sent = np.sum(list(counted.values()), axis=0)
    turns = len(found.residuals)
    from_shards = np.array([found.scores[name] for name in matches.features])
    mean, std = np.transpose(
        [np.ravel(one.scores(name, matches.time[-1])) for name in matches.features]
    )
    off = [
        np.abs(from_shards[:, 0] - mean).max(),
        np.abs(from_shards[:, 1] - std).max(),
    ]
    pickled = (
        2 * len(pickle.dumps(np.zeros((found.crossing // 2, 2)), protocol=5)) * turns
    )
    row = [share, every, *matches.shape, found.crossing, turns, turns * every, messages]
    row += [16 * found.crossing * turns, pickled, sent, *(f"{x:.1e}" for x in off)]
    return [*row, plain.fit(matches, y).n_iter_, f"{seconds:.3g}"]


def main() -> None:
    script_parser(__doc__).parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for share, every in CASES:
        rows.append(case(share, every))
        print(*rows[-1], flush=True)
    table = pd.DataFrame(rows, columns=HEADER)
    write_table(TABLE, table, "shards.py", "two processes of one thread")


if __name__ == "__main__":
    main()
