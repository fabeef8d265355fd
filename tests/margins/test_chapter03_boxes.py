"""The theorem boxes on Lemma 3.1, in exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from margins import problems as exact
from property_examples import examples
from reference import times

from preflearn.margins import MarginLP, MarginQP
from preflearn.pairs import as_pairs
from preflearn_book.studies.ch03_cone import cone_distance


@pytest.mark.theorem("lem-feasible")
@examples(100)
@given(st.integers(0, 2**31))
def test_lemma_feasible_points_correspond(seed):
    P, ties = exact.random_problem(seed)
    P = P if seed % 5 else ()  # some problems have no preferences
    T = exact.both_ways(ties)
    rng = np.random.default_rng(seed)
    u = [
        Fraction(int(a), int(b))
        for a, b in rng.integers([-4, 1], [5, 9], (len(T[0]), 2))
    ]
    # without preferences, s can be any value
    s, t = exact.extremes(u, P or [times(2, u)], T)
    for beta in (
        -1 - t,
        1 - s,
        Fraction(-1),
        Fraction(-1, 2),
        -2 - t,
        Fraction(1),
        -(t + s) / 2,
    ):
        twelve = all(beta + exact.dot(u, d) <= -1 for d in T) and all(
            beta + exact.dot(u, d) >= 1 for d in P
        )
        if beta == 0:
            assert not twelve
            continue
        mu = -1 / beta
        w = times(-1 / beta, u)
        seven = (
            mu > 0
            and all(mu <= 1 - exact.dot(w, d) for d in T)
            and all(mu <= exact.dot(w, d) - 1 for d in P)
        )
        assert seven == twelve
        if twelve:
            assert beta <= -1
            assert 0 < mu <= 1
            assert (times(1 / mu, w), -1 / mu) == (tuple(u), beta)


@pytest.mark.theorem("prop-cases")
def test_proposition_on_the_other_cases():
    # (a) without ties the QP has u = 0, and the LP is unbounded along (c mu + c - 1, c
    # w), or infeasible
    assert exact.qp_optimum(((1,), (2,)), ())[0] == [0]
    for c in (1, 2, 50):
        assert all(c * 1 + c - 1 <= c * 2 * d - 1 for d in (1, 2))
    assert exact.lp_optima(((1,), (-1,)), ())[0] is None
    # (b) only ties
    assert exact.lp_optima((), ((1,), (-1,)))[0] == 1
    # (c) holds for the QP's solution only: another feasible point with a preference 1
    # and a tie 0 has mu-hat = 1/2
    u = 3
    beta = -2
    assert u * 1 + beta >= 1
    assert u * 0 + beta <= -1
    assert Fraction(-1, beta) == Fraction(1, 2)


@pytest.mark.theorem("prop-cases")
@exact.problems
def test_proposition_on_margin_one(P, ties):
    qp = exact.qp_optimum(P, exact.both_ways(ties))
    if qp is not None:
        u, beta = qp
        assert (beta == -1) == all(exact.dot(u, d) == 0 for d in ties)


@pytest.mark.theorem("thm-coincide")
@exact.problems
def test_theorem_exactly_when_the_programs_coincide(P, ties):
    T = exact.both_ways(ties)
    mu, optima = exact.lp_optima(P, T)
    if not mu:
        return
    u, beta = exact.qp_optimum(P, T)
    # (a) only the direction of the QP lies in its own cone
    directions = exact.directions(len(u))
    for v in [*directions, *optima, u]:
        s, t = exact.extremes(v, P, T)
        if s > t:
            parallel = exact.dot(u, v) > 0 and exact.dot(u, v) ** 2 == exact.dot(
                u, u
            ) * exact.dot(v, v)
            assert exact.in_cone(v, exact.cone(v, P, T)) == parallel
    # (b) if the margins are equal, the QP's point is optimal for the LP and lies in its
    # cone; otherwise no optimum does
    middle = [sum(x) / len(optima) for x in zip(*optima, strict=True)]
    contained = any(
        exact.in_cone(w, exact.cone(w, P, T))
        for w in [*optima, middle, times(-1 / beta, u)]
        if exact.is_optimal(w, mu, P, T)
    )
    assert contained == (-1 / beta == mu)
    if len(u) == 1:  # (d)
        assert -1 / beta == mu
    lp = MarginLP().fit(*exact.package(P, ties))
    assert lp.margin_ == pytest.approx(float(mu), abs=1e-12)
    qp = MarginQP().fit(*exact.package(P, ties))
    np.testing.assert_allclose(
        qp.u_, np.array(u, dtype=float), atol=1e-10 * np.abs(qp.u_).max()
    )
    assert qp.bias_ == pytest.approx(float(beta), rel=1e-10)
    pairs, y = exact.package(P, ties)
    assert (cone_distance(lp, as_pairs(pairs), y) < 1e-7) == (-1 / beta == mu)


@pytest.mark.theorem("thm-coincide")
@exact.problems
@pytest.mark.parametrize(
    "delta", [(1, 2, 3), (Fraction(1, 10), 1, 1), (1, 100, Fraction(1, 7))]
)
def test_theorem_on_scaled_features(P, ties, delta):
    T = exact.both_ways(ties)
    mu, optima = exact.lp_optima(P, T)
    if not mu:
        return
    delta = delta[: len(P[0])]
    scaled = [
        exact.frozen([a * x for a, x in zip(delta, d, strict=True)] for d in rows)
        for rows in (P, T)
    ]
    assert exact.lp_optima(*scaled)[0] == mu
    u, beta = exact.qp_optimum(*scaled)
    candidates = [*optima, [-a * x / beta for a, x in zip(delta, u, strict=True)]]
    contained = any(
        exact.in_cone(
            [x / a**2 for a, x in zip(map(Fraction, delta), w, strict=True)],
            exact.cone(w, P, T),
        )
        for w in candidates
        if exact.is_optimal(w, mu, P, T)
    )
    assert contained == (-1 / beta == mu)


@pytest.mark.theorem("thm-coincide")
def test_scaling_asks_for_some_optimum_not_for_the_shortest():
    # With one preference (2, 1) and one tie of equal items, mu = 1 at all scales, but
    # the shortest weights depend on the scale.
    P = [[2, 1]]
    ties = [[0, 0]]
    delta = np.array([1.0, 2.0])
    pairs, y = exact.package(P, ties)
    assert MarginQP().fit(pairs * delta, y).margin_ == pytest.approx(1)
    shortest = MarginLP().fit(pairs, y).coef_ / delta**2
    # the shortest solution is outside of C(w), the ray of (2, 1)
    assert abs(shortest[0] - 2 * shortest[1]) > 0.1
    # this solution is optimal on the unscaled data, too
    other = delta * MarginLP().fit(pairs * delta, y).coef_
    np.testing.assert_allclose(other[0] / delta[0] ** 2, 2 * other[1] / delta[1] ** 2)


@pytest.mark.theorem("thm-coincide")
@exact.problems
def test_theorem_some_linear_map_makes_the_margins_equal(P, ties):
    T = exact.both_ways(ties)
    mu, optima = exact.lp_optima(P, T)
    if not mu:
        return
    w = np.array(optima[0], dtype=float)
    g = np.array(exact.cone(optima[0], P, T)[0], dtype=float)
    assert w @ g > 0
    # Sigma w = g, where Sigma is g g' / (w'g) plus a matrix that maps w to 0
    away = np.eye(len(w)) - np.outer(w, w) / (w @ w)
    sigma = np.outer(g, g) / (w @ g) + away
    A = np.linalg.cholesky(np.linalg.inv(sigma)).T  # A'A = sigma^-1
    pairs, y = exact.package(P, ties)
    assert MarginQP().fit(pairs @ A.T, y).margin_ == pytest.approx(float(mu), rel=1e-6)


@pytest.mark.theorem("thm-coincide")
@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.integers(-9, 9), min_size=1, max_size=4),
)
def test_theorem_one_feature_leaves_no_choice(beyond, drawn):
    """(d): both margins are (s - t)/(s + t)."""
    t = max(map(abs, drawn))
    s = t + min(beyond)
    pairs, y = exact.package([(t + more,) for more in beyond], [(d,) for d in drawn])
    margin = pytest.approx(float(Fraction(s - t, s + t)), rel=1e-9)
    assert MarginLP().fit(pairs, y).margin_ == margin
    assert MarginQP().fit(pairs, y).margin_ == margin
