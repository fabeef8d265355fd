"""trueskillthroughtime 1.1.0 and whole-history-rating 3.7.1, in a process of their own.

python -m venv PEER; PEER/bin/pip install trueskillthroughtime==1.1.0
whole-history-rating==3.7.1 then: --peer PEER/bin/python

That process runs this file, which imports nothing of ours: it reads a problem, and
writes what was found.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["run_rival"]


def run_rival(
    python: str, program: str, arrays: dict[str, np.ndarray], **options: Any
) -> dict[str, Any]:
    """Run one program once.

    Parameters
    ----------
    python : str
        Of the scratch environment.
    program : {"through_time", "whole_history"}
        A function below.
    arrays : dict
        "players" (N, 2), first and second; "outcomes" (N,), +1, 0, -1; "time" (N,);
        others by program.
    **options
        By program.

    Returns
    -------
    dict
        What the function below returns: numbers and arrays.
    """
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "problem.npz", **arrays)  # pyright: ignore[reportArgumentType]
        command = [python, __file__, program, folder, json.dumps(options)]
        subprocess.run(
            command, check=True, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        )
        with np.load(Path(folder) / "answer.npz") as found:
            return {
                name: found[name] if found[name].ndim else found[name].item()
                for name in found
            }


# ---- In the rival's process


def through_time(
    problem: dict[str, np.ndarray],
    variance: float,
    drift: float,
    p_draw: float,
    sweeps: int,
    epsilon: float,
) -> dict[str, Any]:
    """Its convergence loop, at most so many sweeps; then one sweep from our
    pseudo-observations.

    A skill is N(0, sigma²) at a player's first match and gains a variance of gamma² per
    unit of time: our Constant(sigma²) + Wiener(gamma², origin="first"). A performance
    has variance beta² around the skill, so the difference of two has 2 beta² = 1, the
    noise of our Probit. Matches of one time are one batch.
    """
    import trueskillthroughtime as ttt  # pyright: ignore[reportMissingImports]

    before = _peak_megabytes()
    results = [
        [1, 0] if y > 0 else [0, 1] if y < 0 else [0, 0]
        for y in problem["outcomes"].tolist()
    ]
    begin = time.perf_counter()
    history = ttt.History(
        [[[a], [b]] for a, b in problem["players"].tolist()],
        results,
        problem["time"].tolist(),
        sigma=math.sqrt(variance),
        beta=math.sqrt(0.5),
        gamma=math.sqrt(drift),
        p_draw=p_draw,
    )
    # its first pass, forward only
    found: dict[str, Any] = {"set_up": time.perf_counter() - begin}
    steps = [math.inf]
    seconds = []
    while steps[-1] > epsilon and len(seconds) < sweeps:
        begin = time.perf_counter()
        steps.append(max(history.iteration()))
        seconds.append(time.perf_counter() - begin)
    found |= {"steps": np.array(steps[1:]), "seconds": np.array(seconds)}
    found |= {"megabytes": _peak_megabytes() - before, "moments": _moments(history)}
    for name, function in (
        ("step_from_ours", ttt.erfc),
        ("step_from_ours_exact", math.erfc),
    ):
        ttt.erfc = function  # its own has a relative error of 1e-7
        _place(ttt, history, problem["sites"])
        found["moments_at_ours"] = _moments(history)
        found[name] = max(history.iteration())
    return found


def _place(ttt: Any, history: Any, sites: np.ndarray) -> None:
    """Pseudo-observations (N, 2, 2) in place of those that it found, and the messages
    that follow."""
    rows = iter(sites.tolist())
    for batch in history.batches:
        for skill in batch.skills.values():
            skill.likelihood = ttt.Ninf
        for event in batch.events:
            for team, (alpha, beta) in zip(event.teams, next(rows), strict=True):
                item = team.items[0]
                item.likelihood = ttt.Gaussian(*ttt.mu_sigma(alpha, beta))
                batch.skills[item.name].likelihood *= item.likelihood
    ttt.clean(history.agents)
    for batch in history.batches:
        for name, skill in batch.skills.items():
            skill.forward = history.agents[name].receive(skill.elapsed)
            history.agents[name].message = batch.forward_prior_out(name)
    ttt.clean(history.agents)
    for batch in reversed(history.batches):
        for name, skill in batch.skills.items():
            skill.backward = history.agents[name].message
            history.agents[name].message = batch.backward_prior_out(name)


def _moments(history: Any) -> np.ndarray:
    """Mean and standard deviation of both skills at each match, (N, 2, 2)."""
    found = []
    for batch in history.batches:
        at = {name: tuple(batch.posterior(name)) for name in batch.skills}
        found += [
            [at[team.items[0].name] for team in event.teams] for event in batch.events
        ]
    return np.array(found)


def whole_history(
    problem: dict[str, np.ndarray],
    wins: float,
    w2: float,
    precision: float,
    batch: int,
    damping: float,
) -> dict[str, Any]:
    """Whole-history rating: the maximum of the posterior of a Wiener model with logit
    outcomes.

    `wins` is its prior of a first rating, so many wins and losses against a player of
    0; w2 is the variance per unit of time, in Elo points squared; `damping` is taken
    off the second derivative in its Newton steps, and changes no answer.
    """
    from whr import WHR  # pyright: ignore[reportMissingImports]

    before = _peak_megabytes()
    begin = time.perf_counter()
    rating = WHR({"w2": w2, "initial_prior_wins": wins, "hessian_damping": damping})
    columns = (problem[name].tolist() for name in ("players", "outcomes", "time"))
    for (a, b), y, at in zip(*columns, strict=True):
        rating.create_game(str(a), str(b), "B" if y > 0 else "W", at, 0)
    set_up = time.perf_counter() - begin
    begin = time.perf_counter()
    iterations, _ = rating.auto_iterate(precision=precision, batch_size=batch)
    seconds = time.perf_counter() - begin
    megabytes = _peak_megabytes() - before
    final = [
        rating.players[str(k)].days[-1].r for k in range(problem["players"].max() + 1)
    ]
    return {
        "set_up": set_up,
        "seconds": seconds,
        "iterations": iterations,
        "megabytes": megabytes,
        "final": np.array(final),
    }


def _peak_megabytes() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def _serve(program: str, folder: str, options: str) -> None:
    functions = {"through_time": through_time, "whole_history": whole_history}
    with np.load(Path(folder) / "problem.npz") as data:
        problem = {name: data[name] for name in data}
    np.savez(
        Path(folder) / "answer.npz",
        **functions[program](problem, **json.loads(options)),
    )


if __name__ == "__main__":
    _serve(*sys.argv[1:])
