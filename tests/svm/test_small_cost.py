"""The box on the machine at small cost, chapter 04: random and degenerate problems."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from reference import hinges
from scipy.optimize import linprog

from preflearn.pairs import Pairs
from preflearn.svm import DegenerateBiasError, SVMCompare


def rescaled(D, y, sign, omega=1.0):
    """u_1 and beta_1 of the proposition, here v and b: sign -1 is case (a), +1 case (b)."""
    P, T = y[y != 0, None] * D[y != 0], D[y == 0]
    v, b = cp.Variable(D.shape[1]), cp.Variable()
    if sign < 0:
        loss = -len(P) * b - P.sum(axis=0) @ v + omega * cp.sum(cp.pos(b + T @ v) + cp.pos(b - T @ v))
    else:
        loss = 2 * omega * len(T) * b + cp.sum(cp.pos(-b - P @ v))
    cp.Problem(cp.Minimize(cp.sum_squares(v) / 2 + loss)).solve(solver=cp.CLARABEL)
    return v.value, float(b.value)


def largest_cost(D, y, sign, v, b):
    """Half of the cost up to which the proof's hinges stay as they are."""
    z = D @ v
    reach = (b + y * z)[y != 0] if sign < 0 else (np.abs(b) + np.abs(z))[y == 0]
    return min(1 / max(reach.max(), 1e-9), 0.1)


def original(D, y, C, omega):
    """u / C and beta of the machine, with all hinges as they are printed."""
    w, beta = cp.Variable(D.shape[1]), cp.Variable()
    z = D @ (C * w)
    P, T = y != 0, y == 0
    preferences, ties = hinges(cp.multiply(y[P], z[P]), z[T], beta)
    cp.Problem(cp.Minimize(C * cp.sum_squares(w) / 2 + preferences + omega * ties)).solve(solver=cp.CLARABEL)
    return w.value, float(beta.value)


def machines():
    rng = np.random.default_rng(0)
    for case in range(24):
        n0 = 1 + case % 4
        n_plus = max(1, 2 * n0 + (-1, 1, -2, 3)[case // 6])
        p = 1 + case % 3
        D = rng.normal(size=(n0 + n_plus, p))
        y = np.append(rng.choice([-1, 1], n_plus), np.zeros(n0, int))
        if case % 5 == 1:
            D[n_plus:] = 0  # draws of equal players
        if case % 5 == 2:
            D[:n_plus] = D[0]  # one decided match again and again, perhaps with contradictory results
        if case % 5 == 3:
            D = np.round(D)
        yield pytest.param(D, y, id=f"{case}: {n_plus} decided, {n0} drawn")
    for n0, n_plus in ((2, 3), (1, 3)):
        yield pytest.param(np.zeros((n0 + n_plus, 2)), np.append(np.ones(n_plus, int), np.zeros(n0, int)))


@pytest.mark.theorem("prop-small-cost")
@pytest.mark.parametrize("omega", [1.0, 0.7])
@pytest.mark.parametrize(("D", "y"), [*machines()])
def test_at_small_cost_the_machine_is_one_vector_times_the_cost(D, y, omega):
    n0, n_plus = int(np.sum(y == 0)), int(np.sum(y != 0))
    sign = -1 if n_plus < 2 * omega * n0 else 1
    v, b = rescaled(D, y, sign, omega)
    largest = largest_cost(D, y, sign, v, b)
    for C in (largest, largest / 10):
        w, beta = original(D, y, C, omega)
        np.testing.assert_allclose(w, v, atol=2e-3 * max(1, np.abs(v).max()))
        assert abs(beta - sign) < 1.1 * C * (1 + np.abs(b) + np.abs(D @ v).max() * 2) + 1e-4
    if sign > 0:
        z = (y * (D @ v))[y != 0]
        assert z.mean() >= v @ v / (2 * omega * n0) - 1e-5 * max(1, v @ v)  # the plain mean, by Chebyshev
    pairs = Pairs(np.vstack([D, np.zeros((1, D.shape[1]))]), [[k, len(D)] for k in range(len(D))])
    weight = np.where(y == 0, omega, 1.0)
    if sign > 0:
        with pytest.raises(DegenerateBiasError):
            SVMCompare(largest / 10, "linear").fit(pairs, y, weight)
    else:
        C = largest / 10
        model = SVMCompare(C, "linear").fit(pairs, y, weight)
        scale = -C / model.bias_
        np.testing.assert_allclose(model.decision_function(pairs), scale * (D @ v), atol=1e-3 * scale)


@pytest.mark.theorem("prop-small-cost")
def test_backwards_on_average_is_not_backwards_everywhere():
    """Case (b) with a match that the reversed function still ranks rightly."""
    D, y = np.array([[3.0], [-1.0], [1.0], [0.5]]), np.array([1, 1, 1, 0])
    v, _ = rescaled(D, y, 1)
    z = (y * (D @ v))[y != 0]
    assert z.mean() > 0
    assert z.min() < 0


# ---- The machine that is 0 at every cost


def steepest(D, y, omega):
    """How fast the hinges can fall from u = 0, beta = -1, over |u| <= 1 in each feature: a linear program."""
    P, T = (y[:, None] * D)[y != 0], D[y == 0]
    n0, p = T.shape
    each, ones = -np.eye(n0), np.ones((n0, 1))
    change = np.concatenate([-P.sum(axis=0), [-len(P)], np.full(n0, omega)])
    above = np.block([[T, ones, each], [-T, ones, each], [np.zeros((n0, p)), 2 * ones, each]])
    bounds = [(-1, 1)] * p + [(None, None)] + [(0, None)] * n0
    return -linprog(change, above, np.zeros(3 * n0), bounds=bounds).fun


def mean_against_mean(D, y):
    """The same for the weight n+/n0, from the two means alone."""
    P, T = (y[:, None] * D)[y != 0], D[y == 0]
    n0, p = T.shape
    change = np.concatenate([-P.mean(axis=0), np.full(n0, 1 / n0)])
    above = np.block([[T, -np.eye(n0)], [-T, -np.eye(n0)]])
    return -linprog(change, above, np.zeros(2 * n0), bounds=[(-1, 1)] * p + [(0, None)] * n0).fun


def is_zero(D, y, omega, C):
    pairs = Pairs(np.vstack([D, np.zeros((1, D.shape[1]))]), [[k, len(D)] for k in range(len(D))])
    try:
        model = SVMCompare(C, "linear").fit(pairs, y, np.where(y == 0, omega, 1.0))
    except DegenerateBiasError:  # only a function that is not constant can move beta to 0
        return False
    return bool(np.abs(model.bias_ * model.decision_function(pairs)).max() < 1e-7)


def noisy_machines():
    rng = np.random.default_rng(1)
    for case in range(20):
        n0, n_plus, p = 2 + case % 5, 3 + case % 7, 1 + case % 3
        D = rng.normal(size=(n_plus + n0, p))
        y = np.append(np.where(D[:n_plus, 0] + 1.5 * rng.normal(size=n_plus) > 0, 1, -1), np.zeros(n0, int))
        if case % 4 == 1:
            D[n_plus:] = 0  # draws of equal players
        if case % 4 == 2:
            D[:n_plus] = D[0]
        if case % 4 == 3:
            D = np.round(D)
        yield pytest.param(D, y, id=f"{case}: {n_plus} decided, {n0} drawn, {p} features")
    yield pytest.param(np.zeros((4, 2)), np.array([1, -1, 1, 0]), id="no differences")
    yield pytest.param(np.array([[2.0], [2.0], [0.0]]), np.array([1, -1, 0]), id="contradictions")
    yield pytest.param(np.array([[1.0], [1.0]]), np.array([1, 0]), id="equal means")
    yield pytest.param(np.array([[1.0], [1.0], [-1.0]]), np.array([1, 0, 0]), id="a draw both ways")


@pytest.mark.theorem("prop-small-cost")
@pytest.mark.parametrize(("D", "y"), [*noisy_machines()])
def test_a_machine_is_zero_at_every_cost_or_at_none(D, y):
    """(c), and that a larger weight of the draws can only add to the machines that are 0."""
    ratio = np.sum(y != 0) / np.sum(y == 0)
    zero = [steepest(D, y, c * ratio) < 1e-9 for c in (0.6, 1.0, 1.5)]
    assert zero == sorted(zero)
    assert zero[1] == (mean_against_mean(D, y) < 1e-9)
    for c, expected in zip((0.6, 1.0, 1.5), zero, strict=True):
        assert [is_zero(D, y, c * ratio, C) for C in (1e-3, 1.0, 100.0)] == [expected] * 3


def test_both_kinds_of_machines_are_among_the_cases():
    cases = [case.values for case in noisy_machines()]
    zeros = [mean_against_mean(D, y) < 1e-9 for D, y in cases]
    assert 5 < sum(zeros) < len(zeros) - 5


@pytest.mark.theorem("prop-small-cost")
@pytest.mark.parametrize("seed", range(30))
def test_equal_weights_give_a_constant_machine_where_no_direction_is_steep(seed):
    """(c) for equal weights, by a linear program over the unit box and by the machine's own program."""
    rng = np.random.default_rng(seed)
    n, n0, p = rng.integers(1, 8), rng.integers(1, 12), rng.integers(1, 4)
    P, T = rng.integers(-3, 4, (n, p)), rng.integers(-3, 4, (n0, p))
    u, h = cp.Variable(p), cp.Variable()
    steep = cp.Problem(cp.Maximize(cp.sum(P @ u) / n - cp.sum(cp.abs(T @ u)) / n0), [cp.abs(u) <= 1])
    constant = steep.solve(solver=cp.CLARABEL) < 1e-6
    for C in (0.01, 1.0, 100.0):
        preferences, ties = hinges(P @ u, T @ u, h)
        objective = cp.sum_squares(u) / 2 + C * (preferences + n / n0 * ties)
        least = cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL)
        assert (least > 2 * C * n * (1 - 1e-7)) == constant
