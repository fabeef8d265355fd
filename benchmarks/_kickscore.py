"""kickscore 0.2.0 as a peer, in a process of its own: by our Python if it has
kickscore, or by another one.

python -m venv PEER; PEER/bin/pip install kickscore==0.2.0     then: --peer PEER/bin/python

That process runs this file, which imports nothing of ours: it reads a problem, and then
one command a line.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import operator
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Peer", "add_peer_option"]


def add_peer_option(parser: Any) -> None:
    own = sys.executable if importlib.util.find_spec("kickscore") else None
    parser.add_argument(
        "--peer", default=own, help="the Python of another environment, with kickscore"
    )


class Peer:
    """The peer's process, with the matches of one problem in its memory.

    Parameters
    ----------
    python : str
        Of the scratch environment.
    folder : Path
        For files that both processes read.
    players, outcomes, time : ndarray
        (N, 2), first and second; (N,), +1, 0, -1; (N,).
    model : dict
        "kernels": a list of [name in kickscore.kernel, parameters]; "margin", for ties,
        or None.
    """

    def __init__(
        self,
        python: str,
        folder: Path,
        players: np.ndarray,
        outcomes: np.ndarray,
        time: np.ndarray,
        model: dict,
    ) -> None:
        self._folder = folder
        problem = folder / "problem.npz"
        np.savez(
            problem,
            players=players,
            outcomes=outcomes,
            time=time,
            model=json.dumps(model),
        )
        self._process = subprocess.Popen(
            [python, __file__, str(problem)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # its matrices are of size 1 to 3
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
            text=True,
        )
        self.set_up_seconds: float = self._answer()["seconds"]

    def iterate(self, count: int, tol: float = 0.0) -> dict[str, float]:
        """Plain sweeps from where it is: "seconds", "processor" seconds, "iterations",
        "megabytes"."""
        return self._ask(command="iterate", count=count, tol=tol)

    def restart(self) -> float:
        """Forget what was learned; the seconds of setting up the model."""
        return self._ask(command="restart")["seconds"]

    def at(self, sites: np.ndarray) -> tuple[dict[str, float], np.ndarray]:
        """Its own view of pseudo-observations, (N, 2, 2): alpha and beta of first and
        second.

        Returns "residual", by which its own update would change them (as ours is
        defined), and its "log_likelihood"; and mean and standard deviation of both
        scores at each match, (N, 2, 2).
        """
        np.save(self._folder / "sites.npy", sites)
        found = self._ask(command="at", sites=str(self._folder / "sites.npy"))
        return found, np.load(self._folder / "moments.npy")

    def moments(self) -> tuple[dict[str, float], np.ndarray]:
        """`at` where its own sweeps have brought it."""
        return self._ask(command="moments"), np.load(self._folder / "moments.npy")

    def close(self) -> None:
        self._process.communicate()

    def _ask(self, **command: Any) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the peer's process failed; its traceback is above")
        return json.loads(line)


# ---- In the peer's process


class _Kickscore:
    def __init__(self, problem: Path) -> None:
        with np.load(problem) as data:
            self.players = data["players"]
            self.outcomes = data["outcomes"]
            self.time = data["time"]
            self.model_of = json.loads(data["model"].item())
        self.folder = problem.parent

    def restart(self) -> dict[str, float]:
        import kickscore

        self.before = _peak_megabytes()
        begin = time.perf_counter()
        ties = self.model_of["margin"] is not None
        model = (
            kickscore.TernaryModel(self.model_of["margin"])
            if ties
            else kickscore.BinaryModel()
        )
        for player in range(self.players.max() + 1):
            kernels = [
                getattr(kickscore.kernel, name)(*values)
                for name, values in self.model_of["kernels"]
            ]
            model.add_item(str(player), functools.reduce(operator.add, kernels))
        rows = zip(
            self.players.tolist(),
            self.outcomes.tolist(),
            self.time.tolist(),
            strict=True,
        )
        for (first, second), y, t in rows:
            winner, loser = (second, first) if y < 0 else (first, second)
            model.observe(
                [str(winner)], [str(loser)], t, **({"tie": y == 0} if ties else {})
            )
        self.model = model
        for item in model.item.values():
            item.fitter.allocate()
        return {"seconds": time.perf_counter() - begin}

    def iterate(self, count: int, tol: float) -> dict[str, float]:
        """`fit` in steps of one iteration, until the residual is below tol, if tol > 0.

        Set-up is done before; the time that it takes to find the residual is not
        counted.
        """
        seconds = 0.0
        processor = 0.0
        done = 0
        while done < count:
            before = self._sites() if tol > 0 else None
            begin = time.perf_counter()
            worked = time.process_time()
            self.model.fit(max_iter=1)
            seconds += time.perf_counter() - begin
            processor += time.process_time() - worked
            done += 1
            if before is not None and self._change(before) <= tol:
                break
        grown = _peak_megabytes() - self.before
        return {
            "seconds": seconds,
            "processor": processor,
            "iterations": done,
            "megabytes": grown,
        }

    def at(self, sites: str) -> dict[str, float]:
        for (fitters, places), values in zip(
            self._entries(), np.load(sites).transpose(1, 0, 2), strict=True
        ):
            for fitter, place, (alpha, beta) in zip(
                fitters, places, values.tolist(), strict=True
            ):
                fitter.ns[place], fitter.xs[place] = alpha, beta
        for item in self.model.item.values():
            item.fitter.fit()
        found = self.moments()
        before = self._sites()
        for observation in self.model.observations:
            observation.ep_update(lr=1.0)
        self.model._last_method = "ep"
        # small: the likelihood, of what these updates read and wrote
        residual = self._change(before)
        return {
            **found,
            "residual": residual,
            "log_likelihood": self.model.log_likelihood,
        }

    def moments(self) -> dict[str, float]:
        sides = []
        for fitters, places in self._entries():
            pairs = [
                (f.ms[k], f.vs[k] ** 0.5) for f, k in zip(fitters, places, strict=True)
            ]
            sides.append(np.array(pairs))
        np.save(self.folder / "moments.npy", np.stack(sides, axis=1))
        return {
            "log_likelihood": self.model.log_likelihood
            if self.model._last_method
            else float("nan")
        }

    def _entries(self) -> list[tuple[list, list[int]]]:
        """Fitter, and place in it, of the first and of the second of each match."""
        sides: list[tuple[list, list[int]]] = [([], []), ([], [])]
        for observation, y in zip(self.model.observations, self.outcomes, strict=True):
            for side in range(2):
                k = 1 - side if y < 0 else side  # the winner stands first there
                sides[side][0].append(observation._items[k].fitter)
                sides[side][1].append(observation._indices[k])
        return sides

    def _sites(self) -> list[tuple]:
        items = self.model.item.values()
        return [
            (item.fitter.ns.copy(), item.fitter.xs.copy(), item.fitter.vs.copy())
            for item in items
        ]

    def _change(self, before: list[tuple]) -> float:
        """sd |change of alpha| or sd² |change of beta|, the largest; sd before the
        change."""
        worst = 0.0
        for item, (ns, xs, vs) in zip(self.model.item.values(), before, strict=True):
            alpha = np.abs(item.fitter.ns - ns) * np.sqrt(vs)
            beta = np.abs(item.fitter.xs - xs) * vs
            worst = max(worst, alpha.max(initial=0.0), beta.max(initial=0.0))
        return float(worst)


def _peak_megabytes() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _serve(problem: str) -> None:
    peer = _Kickscore(Path(problem))
    print(json.dumps(peer.restart()), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        print(json.dumps(getattr(peer, command.pop("command"))(**command)), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
