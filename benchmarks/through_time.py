"""Time DynamicComparisons against TrueSkill Through Time 1.1.0.

Both use the same model: a Wiener process from each player's first match, the probit
likelihood, and ties.

    python benchmarks/through_time.py season ATP    a season of the NBA, ten seconds; the ATP, ten minutes

Both programs stop at the same distance from the fixed point. TrueSkill Through Time stops
when a sweep changes no skill by more than 1e-6, and the tolerance of preflearn is chosen
accordingly.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import trueskillthroughtime as ttt
from _measure import alternate, markdown_table, peak_megabytes, script_parser
from _sports import sport
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning

from preflearn.dynamics import (
    Constant,
    DynamicComparisons,
    OrdinalProbit,
    Probit,
    Wiener,
)
from preflearn.matches import Matches

EPSILON = 1e-6
FIXED_POINT = 1e-10
YEAR = 365.25

# Variance at the first match, and its growth per year. They maximize the evidence of this
# model on these data.
VARIANCES = {
    "NBA": (0.103, 0.0787),
    "ATP": (0.201, 0.0461),
    "football": (1.003, 0.00835),
}
MARGIN = 0.371  # of football

warnings.simplefilter("ignore", ConvergenceWarning)


class Data(NamedTuple):
    """Matches, their times in days, and the model."""

    matches: Matches
    y: NDArray
    variance: float
    drift: float  # time of one day
    margin: float

    def model(self, **options: Any) -> DynamicComparisons:
        likelihood = OrdinalProbit(self.margin) if self.margin else Probit()
        covariance = Constant(self.variance) + Wiener(self.drift, origin="first")
        return DynamicComparisons(covariance, likelihood, **options)


def data_of(name: str) -> Data:
    of = "NBA" if name == "season" else name
    matches, y = sport(of)[:2]
    matches = Matches(matches.design, np.round(matches.time * YEAR), matches.features)
    if name == "season":
        last = matches.time >= (2017.75 - 1970) * YEAR
        matches = matches[last]
        y = np.asarray(y)[last]
    variance, a_year = VARIANCES[of]
    margin = MARGIN if of == "football" else 0.0
    return Data(matches, np.asarray(y), variance, a_year / YEAR, margin)


def moments(model: DynamicComparisons, matches: Matches) -> NDArray:
    """Mean and standard deviation of both scores at each match, (N, 2, 2)."""
    n = len(matches)
    rows = (np.ones(2 * n), matches.players().ravel(), np.arange(2 * n + 1))
    design = sparse.csr_array(rows, shape=(2 * n, len(matches.features)))
    sides = Matches(design, np.repeat(matches.time, 2), matches.features)
    mean, variance = model.moments(sides)
    return np.stack([mean, np.sqrt(variance)], axis=1).reshape(n, 2, 2)


def through_time(data: Data) -> Any:
    """The history of TrueSkill Through Time after its convergence loop.

    A performance has the variance beta² around the skill. The difference of two has
    the variance 2 beta² = 1, which is the noise of Probit. Matches at the same time are
    one batch.
    """
    results = {1: [1, 0], -1: [0, 1], 0: [0, 0]}
    history = ttt.History(
        [[[a], [b]] for a, b in data.matches.players().tolist()],
        [results[y] for y in data.y.tolist()],
        data.matches.time.tolist(),
        sigma=math.sqrt(data.variance),
        beta=math.sqrt(0.5),
        gamma=math.sqrt(data.drift),
        p_draw=2 * ndtr(data.margin) - 1,
    )
    while max(history.iteration()) > EPSILON:
        pass
    return history


def its_moments(history: Any) -> NDArray:
    """Mean and standard deviation of both skills at each match, (N, 2, 2)."""
    found = []
    for batch in history.batches:
        skills = {name: tuple(batch.posterior(name)) for name in batch.skills}
        for event in batch.events:
            found.append([skills[team.items[0].name] for team in event.teams])
    return np.array(found)


def as_near(data: Data, exact: NDArray, error: float) -> float:
    """A tolerance, at most the default, with which preflearn ends at least as close to
    the fixed point."""
    tol = EPSILON
    while tol > FIXED_POINT:
        model = data.model(tol=tol, max_iter=5000).fit(data.matches, data.y)
        if np.abs(moments(model, data.matches) - exact).max() <= error:
            break
        tol /= 10
    return tol


def our_fit(name: str, tol: float) -> Callable[[], object]:
    """A fit whose memory is measured. Compiled code is loaded before."""
    data = data_of(name)
    model = data.model(tol=tol)
    model.fit(data.matches[:100], data.y[:100])
    return partial(model.fit, data.matches, data.y)


def its_fit(name: str) -> Callable[[], object]:
    return partial(through_time, data_of(name))


def row(name: str) -> list[object]:
    data = data_of(name)
    exact_model = data.model(tol=FIXED_POINT, max_iter=5000)
    exact = moments(exact_model.fit(data.matches, data.y), data.matches)
    error = float(np.abs(its_moments(through_time(data)) - exact).max())
    tol = as_near(data, exact, error)
    calls = [
        partial(data.model(tol=tol, n_threads=n).fit, data.matches, data.y)
        for n in (1, 2)
    ]
    one, two, theirs = alternate([*calls, partial(through_time, data)], 1)
    memory = [peak_megabytes(our_fit, name, tol), peak_megabytes(its_fit, name)]
    ratios = [theirs / one, theirs / two]
    return [name, len(data.y), f"{tol:.0e}", one, two, theirs, *ratios, *memory, error]


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument(
        "names", nargs="*", default=["season"], help="season, NBA, ATP, football"
    )
    names = parser.parse_args().names
    header = (
        "data|matches|our tol|ours, 1 thread s|2 threads s|other s|ratio, 1 thread|"
        "ratio, 2 threads|ours MB|other MB|distance from the fixed point"
    )
    print(markdown_table(header.split("|"), [row(name) for name in names]))


if __name__ == "__main__":
    main()
