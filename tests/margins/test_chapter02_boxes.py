"""The theorem boxes on separability and the two margins, in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from margins import problems as exact
from reference import times

from preflearn.margins import MarginLP, separability
from preflearn.pairs import Pairs


@pytest.mark.theorem("prop-separable")
@exact.problems
def test_proposition_separability(P, ties):
    T = exact.both_ways(ties)
    # (d): the hulls meet if and only if 0 is a mean of differences p - t
    gaps = exact.gaps(P, T)
    meet = next(exact.basic_points(gaps, [0] * len(P[0]) + [1]), None) is not None
    # (c): the optimum is attained at a vertex, and the blow-up factor gives its value
    mu, optima = exact.lp_optima(P, T)
    positive = mu is not None and mu > 0
    assert positive == (not meet)
    assert separability(*exact.package(P, ties)).separable == positive
    factor = exact.blow_up(P, T)
    if positive:
        assert mu == (1 if factor is None else (factor - 1) / (factor + 1))
        assert (mu == 1) == (factor is None)
        for w in optima:  # (c) gives (a) and (b)
            s, t = exact.extremes(w, P, T)
            assert t <= 1 - mu < 1 < 1 + mu <= s
    else:
        assert factor <= 1


@pytest.mark.theorem("thm-margins")
@exact.problems
def test_theorem_on_what_the_margins_maximise(P, ties):
    T = exact.both_ways(ties)
    mu, optima = exact.lp_optima(P, T)
    qp = exact.qp_optimum(P, T)
    assert (qp is not None) == (mu is not None and mu > 0)
    directions = exact.directions(len(P[0]))
    for v in [*directions, *optima]:
        s, t = exact.extremes(v, P, T)
        if s <= t:
            continue
        best = Fraction(2) / (s + t)
        for c in (best * Fraction(k, 8) for k in range(-8, 33)):
            margin = min(
                1 - c * t if c > 0 else 1 + c * exact.extremes(times(-1, v), P, T)[1],
                c * s - 1,
            )
            # if t = 0, each longer multiple has the same margin, and no shorter one has
            if c > 0 and c != best:
                assert (margin == (s - t) / (s + t)) == (t == 0 and c > best)
            assert margin <= Fraction(s - t) / (s + t)
        assert mu >= Fraction(s - t) / (s + t)  # the LP maximizes the ratio
        u, beta = qp
        # the QP maximizes the difference for weights of length 1
        assert (s - t) ** 2 * exact.dot(u, u) <= 4 * exact.dot(v, v)
        assert mu >= -1 / beta
    if qp is None:
        return
    u, beta = qp
    s, t = exact.extremes(u, P, T)
    assert (s - t, beta) == (2, -(s + t) / (s - t))
    # the distance of the hulls: u is between their nearest points
    nearest = times(Fraction(2) / exact.dot(u, u), u)
    gaps = exact.gaps(P, T)
    assert exact.in_cone([*nearest, 1], gaps)
    # if the QP's point is also optimal for the LP, no optimum of the LP is shorter
    if -1 / beta == mu:
        assert all(exact.dot(w, w) * beta**2 >= exact.dot(u, u) for w in optima)


@pytest.mark.theorem("thm-margins")
def test_without_ties_between_different_items_the_lp_has_many_best_multiples():
    P = ((1,),)
    T = ((0,),)
    for w in (2, 3, 100):
        s, t = exact.extremes([w], P, T)
        # "the best point" is not unique, and 2 is the shortest one
        assert min(1 - t, s - 1) == 1
    assert MarginLP().fit(*exact.package(P, T)).coef_ == pytest.approx([2])
    assert exact.blow_up(P, T) is None  # no factor makes the hulls touch


def climbing_cycles(index, y):
    """Yield (preferences, ties) for each cycle that passes its preferences upwards and
    has at least one preference."""
    steps = [
        (second, first, i, y[i]) for i, (first, second) in enumerate(index) if y[i] >= 0
    ]
    steps += [
        (first, second, i, -y[i])
        for i, (first, second) in enumerate(index)
        if y[i] <= 0
    ]

    def onwards(path, edges, ups, ties):
        for start, end, i, up in steps:
            # a cycle begins at its smallest item
            if start != path[-1] or i in edges or end < path[0]:
                continue
            if end == path[0]:
                yield ups + up, ties + 1 - up
            elif end not in path:
                yield from onwards([*path, end], {*edges, i}, ups + up, ties + 1 - up)

    return [
        (ups, ties)
        for item in set(np.ravel(index))
        for ups, ties in onwards([item], set(), 0, 0)
        if ups
    ]


@pytest.mark.theorem("prop-cycles")
@pytest.mark.parametrize(("n_items", "n_pairs"), [(2, 3), (3, 5), (4, 6), (5, 9)])
def test_proposition_on_cycles(n_items, n_pairs):
    rng = np.random.default_rng(n_pairs)
    seen = {True: set(), False: set()}
    for _ in range(60):
        index = np.array(
            [rng.choice(n_items, 2, replace=False) for _ in range(n_pairs)]
        )
        y = np.append(rng.choice([-1, 0, 1], n_pairs - 2, p=[0.15, 0.7, 0.15]), [1, 0])
        ratios = [
            Fraction(ties, ups)
            for ups, ties in climbing_cycles(index.tolist(), y.tolist())
        ]
        pairs = Pairs(np.eye(n_items), index)
        factor = min(ratios, default=None)
        answer = separability(pairs, y)
        assert answer.exact
        assert answer.separable == (factor is None or factor > 1)
        if answer.separable:
            mu = 1.0 if factor is None else float((factor - 1) / (factor + 1))
            assert MarginLP().fit(pairs, y).margin_ == pytest.approx(mu, abs=1e-9)
        seen[answer.separable].add(factor)
    assert seen[False]
    assert n_items == 2 or len(seen[True]) > 1  # some margins are below 1
