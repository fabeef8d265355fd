"""The theorem boxes on separability, the two margins and Lemma 3.1, in exact fractions.

Small problems of integers, and degenerate ones: equal items, one tie, null directions, mu = 1,
several optima.
"""

import functools
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import solve, times

from preflearn.margins import MarginLP, MarginQP, cone_distance, separability
from preflearn.pairs import Pairs

# ---- Exact answers by brute force


def dot(a, b):
    return sum((x * z for x, z in zip(a, b, strict=True)), Fraction(0))


def basic_points(columns, target):
    """All (weights, chosen columns) with independent columns, weights >= 0, and sum = target."""
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
    """The least factor by which conv(T) touches conv(P), infinite if none does: a point
    sum a p = sum b t with sum a = 1 and the least sum b."""
    columns = [[*p, 1] for p in P] + [[*times(-1, t), 0] for t in T]
    sums = [
        sum(w for w, k in zip(weights, chosen, strict=True) if k >= len(P))
        for weights, chosen in basic_points(columns, [0] * len(P[0]) + [1])
    ]
    return min(sums, default=None)


@functools.cache
def lp_optima(P, T):
    """mu* of eq. 7 and optimal w: all its vertices, where it has none those with some weights 0.

    mu is None without a feasible point; mu < 0 is not allowed.
    """
    p = len(P[0] if P else T[0])
    rows = [([*d, -1], 1) for d in P] + [([*times(-1, d), -1], -1) for d in T] + [([0] * p + [1], 0)]
    zeros = [([int(j == k) for j in range(p)] + [0], 0) for k in range(p)]
    best, optima = None, []
    for chosen in itertools.combinations(rows + zeros, p + 1):
        point = solve(*zip(*chosen, strict=True))
        if point is None or (best is not None and point[-1] < best):
            continue
        if all(dot(row, point) >= bound for row, bound in rows):
            if best is None or point[-1] > best:
                best, optima = point[-1], []
            if point[:-1] not in optima:
                optima.append(point[:-1])
    return best, optima


@functools.cache
def qp_optimum(P, T):
    """(u, beta) of eq. 9 by its optimality conditions on every set of independent rows."""
    rows = [(d, 1) for d in P] + [(d, -1) for d in T]
    for size in range(2, len(P[0]) + 2):
        for chosen in itertools.combinations(rows, size):
            labels = [label for _, label in chosen]
            A = [[a * b * dot(d, e) for e, b in chosen] + [a] for d, a in chosen]
            solution = solve([*A, [*labels, 0]], [1] * size + [0])
            if solution is None or min(solution[:-1]) < 0:
                continue
            *lam, beta = solution
            u = [dot(times(1, lam), [a * d[k] for d, a in chosen]) for k in range(len(P[0]))]
            if all(label * (dot(u, d) + beta) >= 1 for d, label in rows):
                return u, beta
    return None


def extremes(w, P, T):
    return min(dot(w, d) for d in P), max(dot(w, d) for d in T)


def cone(w, P, T):
    """Generators of C(w)."""
    s, t = extremes(w, P, T)
    best, worst = [d for d in P if dot(w, d) == s], [d for d in T if dot(w, d) == t]
    return [[x - z for x, z in zip(d, e, strict=True)] for d in best for e in worst]


# ---- Problems

NAMED = {  # preferences, ties (one order)
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
    """Preferences and ties of small integers; zeros, duplicates and coincidences are frequent."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(1, 4))
    n_preferences, n_ties = rng.integers(1, 6 - p, 2)
    T = rng.integers(-2, 3, (n_ties, p))
    P = rng.integers(-2, 3, (n_preferences, p)) + rng.integers(0, 4) * rng.integers(-1, 2, p)
    return frozen(P.tolist()), frozen(T.tolist())


def frozen(rows):
    return tuple(map(tuple, rows))


def both_ways(T):
    return (*T, *(times(-1, d) for d in T))


def package(P, T):
    """The same comparisons for the package: differences against the origin."""
    d = np.array([*P, *T], dtype=float)
    return np.stack([d, 0 * d], axis=1), np.repeat([1, 0], [len(P), len(T)])


SEEDS = range(0, 60, 1 if settings.get_current_profile_name() == "thorough" else 3)
EXAMPLES = [pytest.param(*map(frozen, problem), id=name) for name, problem in NAMED.items()]
EXAMPLES += [pytest.param(*random_problem(seed), id=f"random {seed}") for seed in SEEDS]
problems = pytest.mark.parametrize(("P", "ties"), EXAMPLES)


# ---- Chapter 02


@pytest.mark.theorem("prop-separable")
@problems
def test_proposition_separability(P, ties):
    T = both_ways(ties)
    # (d): the hulls meet if and only if 0 is a mean of differences p - t
    gaps = [[*(x - z for x, z in zip(d, e, strict=True)), 1] for d in P for e in T]
    meet = next(basic_points(gaps, [0] * len(P[0]) + [1]), None) is not None
    # (c): the optimum is attained, at a vertex, and is what the blow-up factor says
    mu, optima = lp_optima(P, T)
    positive = mu is not None and mu > 0
    assert positive == (not meet)
    assert separability(*package(P, ties)).separable == positive
    factor = blow_up(P, T)
    if positive:
        assert mu == (1 if factor is None else (factor - 1) / (factor + 1))
        assert (mu == 1) == (factor is None)
        for w in optima:  # (c) gives (a) and (b)
            s, t = extremes(w, P, T)
            assert t <= 1 - mu < 1 < 1 + mu <= s
    else:
        assert factor <= 1


@pytest.mark.theorem("thm-margins")
@problems
def test_theorem_on_what_the_margins_maximise(P, ties):
    T = both_ways(ties)
    mu, optima = lp_optima(P, T)
    qp = qp_optimum(P, T)
    assert (qp is not None) == (mu is not None and mu > 0)
    directions = [list(v) for v in itertools.product(range(-3, 4), repeat=len(P[0])) if any(v)]
    for v in [*directions, *optima]:
        s, t = extremes(v, P, T)
        if s <= t:
            continue
        best = Fraction(2) / (s + t)
        for c in (best * Fraction(k, 8) for k in range(-8, 33)):
            margin = min(1 - c * t if c > 0 else 1 + c * extremes(times(-1, v), P, T)[1], c * s - 1)
            if c > 0 and c != best:  # for t = 0 every longer multiple is as good, and no shorter one
                assert (margin == (s - t) / (s + t)) == (t == 0 and c > best)
            assert margin <= Fraction(s - t) / (s + t)
        assert mu >= Fraction(s - t) / (s + t)  # the largest ratio
        u, beta = qp
        assert (s - t) ** 2 * dot(u, u) <= 4 * dot(v, v)  # the largest difference, of unit vectors
        assert mu >= -1 / beta
    if qp is None:
        return
    u, beta = qp
    s, t = extremes(u, P, T)
    assert (s - t, beta) == (2, -(s + t) / (s - t))
    # the distance of the hulls: u is between their nearest points
    nearest = times(Fraction(2) / dot(u, u), u)
    gaps = [[*(x - z for x, z in zip(d, e, strict=True)), 1] for d in P for e in T]
    assert in_cone([*nearest, 1], gaps)
    # of the optima of the LP none is shorter than the QP's point, if that is optimal too
    if -1 / beta == mu:
        assert all(dot(w, w) * beta**2 >= dot(u, u) for w in optima)


@pytest.mark.theorem("thm-margins")
def test_without_ties_between_different_items_the_lp_has_many_best_multiples():
    P, T = ((1,),), ((0,),)
    for w in (2, 3, 100):
        s, t = extremes([w], P, T)
        assert min(1 - t, s - 1) == 1  # so "the best point" is one of many, 2 the shortest
    assert MarginLP().fit(*package(P, T)).coef_ == pytest.approx([2])
    assert blow_up(P, T) is None  # and no factor makes the hulls touch


def climbing_cycles(index, y):
    """(preferences, ties) of each cycle that passes its preferences, at least one, upwards."""
    steps = [(second, first, i, y[i]) for i, (first, second) in enumerate(index) if y[i] >= 0]
    steps += [(first, second, i, -y[i]) for i, (first, second) in enumerate(index) if y[i] <= 0]

    def onwards(path, edges, ups, ties):
        for start, end, i, up in steps:
            if start != path[-1] or i in edges or end < path[0]:  # a cycle begins at its least item
                continue
            if end == path[0]:
                yield ups + up, ties + 1 - up
            elif end not in path:
                yield from onwards([*path, end], {*edges, i}, ups + up, ties + 1 - up)

    return [(ups, ties) for item in set(np.ravel(index)) for ups, ties in onwards([item], set(), 0, 0) if ups]


@pytest.mark.theorem("prop-cycles")
@pytest.mark.parametrize(("n_items", "n_pairs"), [(2, 3), (3, 3), (3, 5), (4, 4), (4, 6), (5, 6), (5, 9)])
def test_proposition_on_cycles(n_items, n_pairs):
    rng, seen = np.random.default_rng(n_pairs), {True: set(), False: set()}
    for _ in range(60):
        index = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n_pairs)])
        y = np.append(rng.choice([-1, 0, 1], n_pairs - 2, p=[0.15, 0.7, 0.15]), [1, 0])
        ratios = [Fraction(ties, ups) for ups, ties in climbing_cycles(index.tolist(), y.tolist())]
        pairs, factor = Pairs(np.eye(n_items), index), min(ratios, default=None)
        answer = separability(pairs, y)
        assert answer.exact
        assert answer.separable == (factor is None or factor > 1)
        if answer.separable:
            mu = 1.0 if factor is None else float((factor - 1) / (factor + 1))
            assert MarginLP().fit(pairs, y).margin_ == pytest.approx(mu, abs=1e-9)
        seen[answer.separable].add(factor)
    assert seen[False]
    assert n_items == 2 or len(seen[True]) > 1  # margins below 1, too


# ---- Chapter 03


@pytest.mark.theorem("lem-feasible")
@settings(deadline=None, max_examples=300)
@given(st.integers(0, 2**31))
def test_lemma_feasible_points_correspond(seed):
    P, ties = random_problem(seed)
    P = P if seed % 5 else ()  # no preference is needed
    T = both_ways(ties)
    rng = np.random.default_rng(seed)
    u = [Fraction(int(a), int(b)) for a, b in rng.integers([-4, 1], [5, 9], (len(T[0]), 2))]
    s, t = extremes(u, P or [times(2, u)], T)  # without preferences any value serves as s
    for beta in (-1 - t, 1 - s, Fraction(-1), Fraction(-1, 2), -2 - t, Fraction(1), -(t + s) / 2):
        twelve = all(beta + dot(u, d) <= -1 for d in T) and all(beta + dot(u, d) >= 1 for d in P)
        if beta == 0:
            assert not twelve
            continue
        mu, w = -1 / beta, times(-1 / beta, u)
        seven = mu > 0 and all(mu <= 1 - dot(w, d) for d in T) and all(mu <= dot(w, d) - 1 for d in P)
        assert seven == twelve
        if twelve:
            assert beta <= -1
            assert 0 < mu <= 1
            assert (times(1 / mu, w), -1 / mu) == (tuple(u), beta)


@pytest.mark.theorem("prop-cases")
def test_proposition_on_the_other_cases():
    # (a) no ties: the QP's u is 0; the LP grows without end along (c mu + c - 1, c w), or is empty
    assert qp_optimum(((1,), (2,)), ())[0] == [0]
    for c in (1, 2, 50):
        assert all(c * 1 + c - 1 <= c * 2 * d - 1 for d in (1, 2))
    assert lp_optima(((1,), (-1,)), ())[0] is None
    # (b) only ties
    assert lp_optima((), ((1,), (-1,)))[0] == 1
    # (c) is about the QP's solution: another feasible point of preference 1 and tie 0 has mu-hat = 1/2
    u, beta = 3, -2
    assert u * 1 + beta >= 1
    assert u * 0 + beta <= -1
    assert Fraction(-1, beta) == Fraction(1, 2)


@pytest.mark.theorem("prop-cases")
@problems
def test_proposition_on_margin_one(P, ties):
    qp = qp_optimum(P, both_ways(ties))
    if qp is not None:
        u, beta = qp
        assert (beta == -1) == all(dot(u, d) == 0 for d in ties)


@pytest.mark.theorem("thm-coincide")
@problems
def test_theorem_exactly_when_the_programs_coincide(P, ties):
    T = both_ways(ties)
    mu, optima = lp_optima(P, T)
    if not mu:
        return
    u, beta = qp_optimum(P, T)
    # (a) of all directions only the QP's lies in its cone
    directions = [list(v) for v in itertools.product(range(-3, 4), repeat=len(u)) if any(v)]
    for v in [*directions, *optima, u]:
        s, t = extremes(v, P, T)
        if s > t:
            parallel = dot(u, v) > 0 and dot(u, v) ** 2 == dot(u, u) * dot(v, v)
            assert in_cone(v, cone(v, P, T)) == parallel
    # (b) equal margins: the QP's point is optimal for the LP and in its cone; else no optimum is
    middle = [sum(x) / len(optima) for x in zip(*optima, strict=True)]
    contained = any(
        in_cone(w, cone(w, P, T)) for w in [*optima, middle, times(-1 / beta, u)] if is_optimal(w, mu, P, T)
    )
    assert contained == (-1 / beta == mu)
    if len(u) == 1:  # (d)
        assert -1 / beta == mu
    lp = MarginLP().fit(*package(P, ties))
    assert lp.margin_ == pytest.approx(float(mu), abs=1e-12)
    qp = MarginQP().fit(*package(P, ties))
    np.testing.assert_allclose(qp.u_, np.array(u, dtype=float), atol=1e-10 * np.abs(qp.u_).max())
    assert qp.bias_ == pytest.approx(float(beta), rel=1e-10)
    assert (cone_distance(lp, *package(P, ties)) < 1e-7) == (-1 / beta == mu)


def is_optimal(w, mu, P, T):
    s, t = extremes(w, P, T)
    return min(1 - t, s - 1) == mu


@pytest.mark.theorem("thm-coincide")
@problems
@pytest.mark.parametrize("delta", [(1, 2, 3), (Fraction(1, 10), 1, 1), (1, 100, Fraction(1, 7))])
def test_theorem_on_scaled_features(P, ties, delta):
    T = both_ways(ties)
    mu, optima = lp_optima(P, T)
    if not mu:
        return
    delta = delta[: len(P[0])]
    scaled = [frozen([a * x for a, x in zip(delta, d, strict=True)] for d in rows) for rows in (P, T)]
    assert lp_optima(*scaled)[0] == mu
    u, beta = qp_optimum(*scaled)
    candidates = [*optima, [-a * x / beta for a, x in zip(delta, u, strict=True)]]
    contained = any(
        in_cone([x / a**2 for a, x in zip(map(Fraction, delta), w, strict=True)], cone(w, P, T))
        for w in candidates
        if is_optimal(w, mu, P, T)
    )
    assert contained == (-1 / beta == mu)


@pytest.mark.theorem("thm-coincide")
def test_scaling_asks_for_some_optimum_not_for_the_shortest():
    # one preference (2, 1), one tie of equal items: mu = 1 at all scales, at weights that turn with the scale
    P, ties, delta = [[2, 1]], [[0, 0]], np.array([1.0, 2.0])
    pairs, y = package(P, ties)
    assert MarginQP().fit(pairs * delta, y).margin_ == pytest.approx(1)
    shortest = MarginLP().fit(pairs, y).coef_ / delta**2
    assert abs(shortest[0] - 2 * shortest[1]) > 0.1  # outside of C(w), the ray of (2, 1)
    other = delta * MarginLP().fit(pairs * delta, y).coef_  # optimal on the unscaled data too
    np.testing.assert_allclose(other[0] / delta[0] ** 2, 2 * other[1] / delta[1] ** 2)


@pytest.mark.theorem("thm-coincide")
@problems
def test_theorem_some_linear_map_makes_the_margins_equal(P, ties):
    T = both_ways(ties)
    mu, optima = lp_optima(P, T)
    if not mu:
        return
    w = np.array(optima[0], dtype=float)
    g = np.array(cone(optima[0], P, T)[0], dtype=float)
    assert w @ g > 0
    # Sigma w = g: g g' / (w'g) plus what vanishes at w
    away = np.eye(len(w)) - np.outer(w, w) / (w @ w)
    sigma = np.outer(g, g) / (w @ g) + away
    A = np.linalg.cholesky(np.linalg.inv(sigma)).T  # A'A = sigma^-1
    pairs, y = package(P, ties)
    assert MarginQP().fit(pairs @ A.T, y).margin_ == pytest.approx(float(mu), rel=1e-6)


@pytest.mark.theorem("thm-coincide")
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4), st.lists(st.integers(-9, 9), min_size=1, max_size=4)
)
def test_theorem_one_feature_leaves_no_choice(beyond, drawn):
    """(d): both margins are (s - t)/(s + t)."""
    t = max(map(abs, drawn))
    s = t + min(beyond)
    pairs, y = package([(t + more,) for more in beyond], [(d,) for d in drawn])
    exact = float(Fraction(s - t, s + t))
    assert MarginLP().fit(pairs, y).margin_ == pytest.approx(exact, rel=1e-9)
    assert MarginQP().fit(pairs, y).margin_ == pytest.approx(exact, rel=1e-9)
