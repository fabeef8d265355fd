"""Comparisons to separate: separable floats, and integers with exact answers by brute
force.

The integer problems include degenerate cases: equal items, one tie, null directions, mu
= 1, and several optima.
"""

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest
from reference import solve, times

from preflearn.pairs import Pairs

LABELS = {"both": (-1, 1), "first": (1,), "second": (-1,)}


def separable(seed, m=None, p=None, tie_share=None, labels=None, n_ties=None):
    """Return random pairs that w separates: |w·d| < 1 for ties, and y w·d > 1.2 for
    preferences."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 21)) if p is None else p
    m = int(rng.integers(4, 50)) if m is None else m
    tie_share = rng.choice([0.1, 0.5, 0.9]) if tie_share is None else tie_share
    n_ties = int(np.clip(round(tie_share * m), 1, m - 1)) if n_ties is None else n_ties
    labels = LABELS[labels or rng.choice(list(LABELS))]
    y = rng.permutation(
        np.append(np.zeros(n_ties, int), rng.choice(labels, m - n_ties))
    )
    w = rng.standard_normal(p)
    d = rng.standard_normal((m, p))
    wanted = np.where(
        y == 0, rng.uniform(-1, 1, m), y * (1.2 + rng.exponential(size=m))
    )
    d += np.outer(wanted - d @ w, w) / (w @ w)
    second = rng.standard_normal((m, p))
    return Pairs.from_arrays(second + d, second), y


def split(pairs, y):
    d = pairs.first - pairs.second
    return d[y != 0] * y[y != 0][:, None], d[y == 0]


def dot(a, b):
    return sum((x * z for x, z in zip(a, b, strict=True)), Fraction(0))


def basic_points(columns, target):
    """Yield all (weights, chosen columns) with independent columns, weights >= 0, and a
    weighted sum equal to the target."""
    for size in range(1, len(target) + 1):
        for chosen in itertools.combinations(range(len(columns)), size):
            A = list(zip(*(columns[k] for k in chosen), strict=True))
            weights = solve(A, target)
            if weights is not None and min(weights) >= 0:
                yield weights, chosen


def in_cone(vector, generators):
    return not any(vector) or next(basic_points(generators, vector), None) is not None


@functools.cache
def blow_up(P, T):
    """Return the smallest factor by which conv(T) must be scaled to touch conv(P), or
    None if no factor exists.

    This is the minimum of sum b over all points sum a p = sum b t with sum a = 1.
    """
    columns = [[*p, 1] for p in P] + [[*times(-1, t), 0] for t in T]
    sums = [
        sum(w for w, k in zip(weights, chosen, strict=True) if k >= len(P))
        for weights, chosen in basic_points(columns, [0] * len(P[0]) + [1])
    ]
    return min(sums, default=None)


@functools.cache
def lp_optima(P, T):
    """Return mu* of eq. 7 and the optimal w. These are all vertices; if there is no
    vertex, these are optima with some weights 0.

    mu is None if no point is feasible. A feasible mu is at least 0.
    """
    p = len(P[0] if P else T[0])
    rows = (
        [([*d, -1], 1) for d in P]
        + [([*times(-1, d), -1], -1) for d in T]
        + [([0] * p + [1], 0)]
    )
    zeros = [([int(j == k) for j in range(p)] + [0], 0) for k in range(p)]
    best = None
    optima = []
    for chosen in itertools.combinations(rows + zeros, p + 1):
        point = solve(*zip(*chosen, strict=True))
        if point is None or (best is not None and point[-1] < best):
            continue
        if all(dot(row, point) >= bound for row, bound in rows):
            if best is None or point[-1] > best:
                best = point[-1]
                optima = []
            if point[:-1] not in optima:
                optima.append(point[:-1])
    return best, optima


@functools.cache
def qp_optimum(P, T):
    """Return (u, beta) of eq. 9, found from its optimality conditions on each set of
    independent rows."""
    rows = [(d, 1) for d in P] + [(d, -1) for d in T]
    for size in range(2, len(P[0]) + 2):
        for chosen in itertools.combinations(rows, size):
            labels = [label for _, label in chosen]
            A = [[a * b * dot(d, e) for e, b in chosen] + [a] for d, a in chosen]
            solution = solve([*A, [*labels, 0]], [1] * size + [0])
            if solution is None or min(solution[:-1]) < 0:
                continue
            *lam, beta = solution
            u = [
                dot(times(1, lam), [a * d[k] for d, a in chosen])
                for k in range(len(P[0]))
            ]
            if all(label * (dot(u, d) + beta) >= 1 for d, label in rows):
                return u, beta
    return None


def extremes(w, P, T):
    return min(dot(w, d) for d in P), max(dot(w, d) for d in T)


def gaps(P, T):
    """Return all differences of a preference and a tie, each with a 1 appended."""
    return [[*(x - z for x, z in zip(d, e, strict=True)), 1] for d in P for e in T]


def directions(p):
    return [list(v) for v in itertools.product(range(-3, 4), repeat=p) if any(v)]


def cone(w, P, T):
    """Return the generators of C(w)."""
    s, t = extremes(w, P, T)
    best = [d for d in P if dot(w, d) == s]
    worst = [d for d in T if dot(w, d) == t]
    return [gap[:-1] for gap in gaps(best, worst)]


def is_optimal(w, mu, P, T):
    s, t = extremes(w, P, T)
    return min(1 - t, s - 1) == mu


# ---- Problems

NAMED = {  # preferences and ties (in one order)
    "one of each": ([[2]], [[1]]),
    "equal items, one feature": ([[1]], [[0]]),
    "equal items": ([[2, 1]], [[0, 0]]),
    "equal items, several preferences": ([[1, 0], [0, 3]], [[0, 0]]),
    "orthogonal tie": ([[2, 2]], [[1, 0]]),
    "null direction": ([[2, 0], [3, 0]], [[1, 0]]),
    "constant feature": ([[2, 1, 0]], [[1, 0, 0], [0, 1, 0]]),
    "duplicates": ([[2, 1], [2, 1]], [[1, 0], [-1, 0], [1, 0]]),
    "touching": ([[1, 1]], [[1, 1]]),
    "touching in the middle": ([[2, 0], [0, 2]], [[1, 1]]),
    "touching the origin only": ([[1, 0], [-1, 0]], [[0, 0]]),
    "crossing": ([[1, 0]], [[2, 0]]),
    "no scaling helps": ([[-4, 6]], [[-1, 2], [-3, 4]]),
    "far apart": ([[10, 1]], [[9, 0]]),
    "nearly touching": ([[1000, 0], [999, 1]], [[998, 0]]),
}


def random_problem(seed):
    """Return preferences and ties of small integers, in which zeros, duplicates, and
    coincidences are frequent."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 4))
    n_preferences, n_ties = rng.integers(1, 6 - p, 2)
    T = rng.integers(-2, 3, (n_ties, p))
    P = rng.integers(-2, 3, (n_preferences, p)) + rng.integers(0, 4) * rng.integers(
        -1, 2, p
    )
    return frozen(P.tolist()), frozen(T.tolist())


def frozen(rows):
    return tuple(map(tuple, rows))


def both_ways(T):
    return (*T, *(times(-1, d) for d in T))


def package(P, T):
    """Return the same comparisons in the form of the package: each difference is a pair
    with the origin."""
    d = np.array([*P, *T], dtype=float)
    return np.stack([d, 0 * d], axis=1), np.repeat([1, 0], [len(P), len(T)])


EXAMPLES = [
    pytest.param(*map(frozen, problem), id=name) for name, problem in NAMED.items()
]
for seed in range(60):
    marks = [] if seed % 3 == 0 else [pytest.mark.nightly]
    EXAMPLES.append(
        pytest.param(*random_problem(seed), id=f"random {seed}", marks=marks)
    )
problems = pytest.mark.parametrize(("P", "ties"), EXAMPLES)
