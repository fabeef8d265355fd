"""DynamicComparisons against TrueSkill Through Time 1.1.0 (the same model) and
whole-history rating 3.7.1.

python benchmarks/sports_peers.py --peer PEER/bin/python        twenty minutes; ours alone without --peer
python benchmarks/sports_peers.py season NBA ATP football all   which data; "all" is all 625,844 of the ATP
python benchmarks/sports_peers.py all --whole --peer ...        hours: whole fits of the peer are run

How many sweeps of TrueSkill Through Time a whole fit takes is counted by a compiled
copy of its schedule, whose first steps are compared with its own; --whole runs the
program itself. "season" is always run whole.
"""

from __future__ import annotations

import argparse
import math
import statistics
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _gauss_seidel import sweep_through_time
from _measure import peak_megabytes, print_tables
from _posterior_mode import posterior_mode
from _rivals import run_rival
from _sports import sport
from dynamics import by_side, compile_seconds, seconds_of
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import brentq
from scipy.special import ndtr, polygamma
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning

from preflearn.datasets import load_atp
from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    Logit,
    OrdinalProbit,
    Probit,
    Wiener,
)
from preflearn.matches import Matches

# the default of both: of TrueSkill Through Time the move of a skill in a sweep
TOL = 1e-6
FIXED_POINT = 1e-10
SWEEPS = 2  # of the peer, timed
PRECISION = 1e-3  # of a gradient: the default of whole-history rating
TURNS = 3
MOST_MODE = 200_000  # matches up to which the exact mode is computed
YEAR = 365.25
ELO = 400 / math.log(10)  # points in a unit of the logit's scores
LOGIT = 8 / math.pi  # its variances to those of a probit that has the same slope at 0
NAMES = ("season", "NBA", "ATP", "football", "all")

# Variance at the first match, and gain a year, which maximise the evidence of this
# model on these data.
VARIANCES = {
    "NBA": (0.103, 0.0787),
    "ATP": (0.201, 0.0461),
    "football": (1.003, 0.00835),
}
MARGIN = 0.371

warnings.simplefilter("ignore", ConvergenceWarning)


class Data(NamedTuple):
    """Matches, their times in days, and what the peers need to know of the model."""

    matches: Matches
    y: NDArray
    variance: float
    drift: float  # a day
    margin: float

    def model(self, **options: Any) -> DynamicComparisons:
        likelihood = OrdinalProbit(self.margin) if self.margin else Probit()
        covariance = Constant(self.variance) + Wiener(self.drift, origin="first")
        return DynamicComparisons(covariance, likelihood, **options)

    def logit_model(self, **options: Any) -> DynamicComparisons:
        covariance = Constant(LOGIT * self.variance) + Wiener(
            LOGIT * self.drift, origin="first"
        )
        return DynamicComparisons(covariance, Logit(), **options)


def data_of(name: str) -> Data:
    of = {"season": "NBA", "all": "ATP"}.get(name, name)
    if name == "all":
        matches, y = Matches.from_frame(load_atp().matches)
    else:
        matches, y = sport(of)[:2]
        matches = Matches(
            matches.design, np.round(matches.time * YEAR), matches.features
        )
    if name == "season":
        last = matches.time >= (2017.75 - 1970) * YEAR
        matches = matches[last]
        y = np.asarray(y)[last]
    variance, a_year = VARIANCES[of]
    return Data(
        _only_players(matches),
        np.asarray(y),
        variance,
        a_year / YEAR,
        MARGIN if of == "football" else 0.0,
    )


def _only_players(matches: Matches) -> Matches:
    """Without the columns of those who do not play."""
    present, players = np.unique(matches.players(), return_inverse=True)
    n = len(matches)
    sides = np.tile([1.0, -1.0], n), players.ravel(), 2 * np.arange(n + 1)
    design = sparse.csr_array(sides, shape=(n, len(present)))
    return Matches(design, matches.time, [matches.features[k] for k in present])


def moments(model: DynamicComparisons, matches: Matches) -> NDArray:
    """Mean and standard deviation of both scores at each match, (N, 2, 2)."""
    n = len(matches)
    players = matches.players().ravel()
    design = sparse.csr_array(
        (np.ones(2 * n), players, np.arange(2 * n + 1)),
        shape=(2 * n, len(matches.features)),
    )
    mean, variance = model.moments(
        Matches(design, np.repeat(matches.time, 2), matches.features)
    )
    return np.stack([mean, np.sqrt(variance)], axis=1).reshape(n, 2, 2)


def final_scores(model: DynamicComparisons, matches: Matches) -> NDArray:
    """Each player's mean at his last match."""
    found = np.zeros(len(matches.features))
    found[matches.players()] = moments(model, matches)[:, :, 0]  # the last one stays
    return found


def fit_seconds(model: DynamicComparisons, data: Data) -> float:
    fit = partial(model.fit, data.matches, data.y)
    return statistics.median(seconds_of(fit)[0] for _ in range(TURNS))


def whole_fit(name: str, logit: bool, tol: float) -> Callable[[], object]:
    """For the memory of a fit; compiled code is loaded before."""
    data = data_of(name)
    model = (data.logit_model if logit else data.model)(tol=tol, n_threads=2)
    model.fit(data.matches[:100], data.y[:100])
    return partial(model.fit, data.matches, data.y)


def ours(name: str, data: Data, logit: bool, tol: float = TOL) -> list[object]:
    """Seconds of a whole fit on one thread and on two, evaluations, megabytes."""
    models = [
        (data.logit_model if logit else data.model)(tol=tol, n_threads=n)
        for n in (1, 2)
    ]
    seconds = [fit_seconds(model, data) for model in models]
    return [*seconds, models[0].n_iter_, peak_megabytes(whole_fit, name, logit, tol)]


def as_near(data: Data, exact: NDArray, error: float) -> tuple[float, float]:
    """A tolerance, at most TOL, with which our fit ends no farther from the fixed
    point; how far that is."""
    tol = 10 * TOL
    while True:
        tol /= 10
        model = data.model(tol=tol, max_iter=5000).fit(data.matches, data.y)
        own = distance(moments(model, data.matches), exact)
        if own <= error or tol < 10 * FIXED_POINT:
            return tol, own


def distance(one: NDArray, other: NDArray) -> float:
    return float(np.abs(one - other).max())


def against_through_time(
    name: str, data: Data, python: str, whole: bool
) -> dict[str, list]:
    """Rows of the tables, by table."""
    model = data.model(tol=FIXED_POINT, max_iter=5000).fit(data.matches, data.y)
    exact = moments(model, data.matches)
    steps, copied = sweep_through_time(
        data.matches, data.y, data.variance, data.drift, data.margin, epsilon=TOL
    )
    problem = {
        "players": data.matches.players(),
        "outcomes": data.y,
        "time": data.matches.time,
        "sites": by_side(data, model.pseudo_observations_),  # pyright: ignore[reportArgumentType]
    }
    options = {
        "variance": data.variance,
        "drift": data.drift,
        "p_draw": 2 * ndtr(data.margin) - 1,
    }
    most = 100_000 if whole else SWEEPS
    found = run_rival(
        python, "through_time", problem, sweeps=most, epsilon=TOL, **options
    )
    error = distance(found["moments"] if whole else copied, exact)
    tol, own_error = as_near(data, exact, error)
    own = ours(name, data, logit=False, tol=tol)
    a_sweep = float(np.median(found["seconds"]))
    fit = found["set_up"] + (found["seconds"].sum() if whole else len(steps) * a_sweep)
    sweeps = len(found["steps"]) if whole else len(steps)
    both = min(len(steps), len(found["steps"]))
    unlike = np.abs(steps[:both] / found["steps"][:both] - 1)[
        : 2 if whole else both
    ].max()
    apart = [
        distance(found["moments_at_ours"][..., k], exact[..., k]) for k in range(2)
    ]
    return {
        "A whole fit: TrueSkill Through Time": [
            [
                name,
                len(data.y),
                f"{tol:.0e}",
                *own[:3],
                a_sweep,
                sweeps,
                float(fit),
                "measured" if whole else "computed",
                *(float(fit / seconds) for seconds in own[:2]),
                own[3],
                found["megabytes"],
                f"{own_error:.0e}",
                f"{error:.0e}",
            ]
        ],
        "The same skills": [
            [
                name,
                *(f"{gap:.0e}" for gap in apart),
                f"{found['step_from_ours']:.0e}",
                f"{found['step_from_ours_exact']:.0e}",
                f"{unlike:.0e}",
            ]
        ],
    }


def against_whole_history(name: str, data: Data, python: str) -> dict[str, list]:
    def spread(wins: float) -> float:
        """The prior variance of a first rating: a logit with `wins` wins and as many
        losses behind it."""
        return 2 * float(polygamma(1, wins)) - LOGIT * data.variance

    wins = float(brentq(spread, 1e-3, 1e4))  # pyright: ignore[reportArgumentType]
    own = ours(name, data, logit=True)
    problem = {
        "players": data.matches.players(),
        "outcomes": data.y,
        "time": data.matches.time,
    }
    found = run_rival(
        python,
        "whole_history",
        problem,
        wins=wins,
        w2=LOGIT * data.drift * ELO**2,
        precision=PRECISION,
        batch=10,
        damping=0.001,  # its default of 1 takes several times as many iterations
    )
    scores = final_scores(
        data.logit_model(tol=TOL).fit(data.matches, data.y), data.matches
    )
    row = [
        name,
        len(data.y),
        *own[:2],
        found["iterations"],
        found["seconds"],
        found["set_up"],
    ]
    row += [found["seconds"] / seconds for seconds in own[:2]]  # pyright: ignore[reportOperatorIssue]
    row += [own[3], found["megabytes"]]
    return {
        "A whole fit: whole-history rating": [row],
        "Final scores": [ranks(name, data, scores, found["final"], wins)],
    }


def ranks(
    name: str, data: Data, scores: NDArray, theirs: NDArray, wins: float
) -> list[object]:
    """Rank correlations of final scores; those of all who ever played are of different
    times."""
    players = data.matches.players()
    often = np.bincount(players.ravel()) >= 10
    recent = data.matches.time > data.matches.time[-1] - YEAR
    active = often & np.isin(np.arange(len(often)), players[recent])

    def correlations(one: NDArray, other: NDArray) -> list[str]:
        return [f"{spearmanr(one[who], other[who])[0]:.4f}" for who in (often, active)]  # pyright: ignore

    row = [name, int(often.sum()), int(active.sum()), *correlations(scores, theirs)]
    if len(data.y) > MOST_MODE:
        return row + 5 * ["-"]
    mode = posterior_mode(data.matches, data.y, wins, LOGIT * data.drift)
    return [
        *row,
        *correlations(scores, mode),
        *correlations(theirs, mode),
        distance(theirs, mode),
    ]


HEADERS = {
    "A whole fit: TrueSkill Through Time": (
        "data|matches|our tol|ours, 1 thread s|2 threads|evaluations|its sweep s|sweeps|its fit s|how|ratio|"
        "2 threads|ours MB|its MB|ours from the fixed point|it"
    ),
    "The same skills": (
        "data|means differ by|standard deviations by|its own sweep from ours moves them by|with math.erfc|"
        "the copy's steps differ by"
    ),
    "A whole fit: whole-history rating": (
        "data|matches|ours, 1 thread s|2 threads|its iterations|its fit s|its set-up s|ratio|2 threads|"
        "ours MB|its MB"
    ),
    "Final scores": (
        "data|players with 10 matches|active in the last year|ours and its: rank correlation|of the active|"
        "ours and the exact mode|of the active|its and the exact mode|of the active|it from the mode by"
    ),
    "Without a peer": "data|matches|a whole fit s, 1 thread|2 threads|evaluations|MB",
}


def rows_of(name: str, peer: str | None, whole: bool) -> Iterator[dict[str, list]]:
    data = data_of(name)
    data.model(max_iter=2).fit(data.matches, data.y)  # loads compiled code
    if peer is None:
        yield {"Without a peer": [[name, len(data.y), *ours(name, data, logit=False)]]}
        return
    yield against_through_time(name, data, peer, whole or name == "season")
    if not data.margin:  # ties: its model of them is another
        yield against_whole_history(name, data, peer)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", default=NAMES[:4], help=f"of {', '.join(NAMES)}"
    )
    parser.add_argument(
        "--whole", action="store_true", help="run whole fits of TrueSkill Through Time"
    )
    parser.add_argument(
        "--peer", help="the Python of another environment, with both programs"
    )
    chosen = parser.parse_args()
    tables: dict[str, list] = {}
    for name in chosen.names:
        for found in rows_of(name, chosen.peer, chosen.whole):
            for title, rows in found.items():
                tables.setdefault(title, []).extend(rows)
                print(title, *rows[0], sep="; ", flush=True)
    print_tables(HEADERS, tables)
    cold, warm = compile_seconds()
    print(
        f"\nThe first fit of a process takes {cold:.1f} s longer without compiled code on the disk,"
    )
    print(f"{warm:.2f} s longer with it. The peers compile nothing.")


if __name__ == "__main__":
    main()
