"""The path over the kernel width in chapter 09. The code on the page is compared with
brute force over all divisions of the pairs, cvxpy, finite differences, and bounds."""

import json
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from property_examples import examples

START = -12.0
END = 2.0
CLEAR = 1e-8  # closer to the bounds, rounding decides which pairs are on the margin


def page():
    """Return the functions of the method, from the code cells of the chapter."""
    notebook = Path(__file__).parents[2] / "notebooks" / "09_selection.ipynb"
    names = {"np": np}
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if "def kernel_at(" in source or "def width_path(" in source:
            exec(compile(source, cell["id"], "exec"), names)
    return SimpleNamespace(**names)


method = page()


class Problem:
    """Pairs of random items in the plane, with the better item first, and lambda."""

    def __init__(self, X, index, lam):
        self.B = np.zeros((len(index), len(X)))
        self.B[np.arange(len(index)), index[:, 0]] += 1
        self.B[np.arange(len(index)), index[:, 1]] -= 1
        self.squares = ((X[:, None] - X) ** 2).sum(axis=2)
        self.lam = lam

    def gram(self, t):
        return self.B @ np.exp(-np.exp(t) * self.squares) @ self.B.T

    def residual(self, t, alpha):
        z = self.gram(t) @ alpha / self.lam
        return np.abs(alpha - np.clip(alpha + 1 - z, 0, 1)).max()

    def follow(self, end):
        """Follow the path from where all weights are 1."""
        start = START
        ones = np.ones(len(self.B))
        while self.residual(start, ones) > 0:
            start -= 1
        return method.width_path(self.B, self.squares, self.lam, ones, start, end)

    def path(self, end=END):
        """The path, if it reaches its end.

        Rounding can hide an event, for example if a margin only touches its bound. Then
        the path stops early.
        """
        places, events = self.follow(end)
        assume(places[-1][0] == pytest.approx(end))
        return places, events

    def at(self, places, t):
        """Return the weights of the path at t, computed from the last margin set up to
        t."""
        _, alpha, on = [place for place in places if place[0] <= t][-1]
        K = method.kernel_at(t, self.squares)[0]
        return method.corrected(self.B, K, self.lam, alpha, on)

    def brute_force(self, t):
        """Return the margin set and the weights of each division that is clearly
        optimal."""
        Q = self.gram(t)
        m = len(Q)
        found = []
        for division in product((0, 1, 2), repeat=m):
            on = np.array(division) == 2
            alpha = np.where(np.array(division) == 1, 1.0, 0.0)
            block = Q[np.ix_(on, on)]
            if on.any() and np.linalg.cond(block) > 1e12:
                continue
            alpha[on] = np.linalg.solve(block, self.lam - (Q @ alpha)[on])
            z = Q @ alpha / self.lam
            slack = np.where(
                on,
                np.minimum(alpha, 1 - alpha),
                np.where(alpha == 1, 1 - z, z - 1),
            )
            if slack.min() > CLEAR:
                found.append((tuple(on), alpha))
        return found


def random_problem(seed, kind="forest", n=5, m=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    if kind == "forest":
        index = np.array([(k, rng.integers(k)) for k in range(1, n)])[:m]
    elif kind == "two classes":
        index = np.array(list(product(range(n // 2), range(n // 2, n))))
    else:
        X = X.round()
        X[-1] = -X[0]
        index = np.array([rng.permutation(n)[:2] for _ in range(m)])
        index = np.vstack([index, index[::2]])
    flip = rng.random(len(index)) < 0.3
    index = np.where(flip[:, None] & (kind != "two classes"), index[:, ::-1], index)
    return Problem(X, index, 10 ** rng.uniform(-2, 0.5))


@pytest.mark.theorem("prop-width")
@given(st.integers(0, 2**31), st.floats(-6, END))
@examples(30)
def test_the_pairs_on_the_margin_are_those_of_brute_force(seed, t):
    """On a graph without cycles, one division is optimal, and (b) gives its weights."""
    problem = random_problem(seed)
    places, _ = problem.path()
    found = problem.brute_force(t)
    assert len(found) <= 1
    for on, alpha in found:  # no division is clearly optimal at an event
        ours = problem.at(places, t)
        np.testing.assert_allclose(ours, alpha, atol=1e-7)
        assert tuple((ours > 0) & (ours < 1)) == on


@given(st.integers(0, 2**31))
@examples(15)
def test_each_event_changes_the_set_of_its_pair(seed):
    problem = random_problem(seed)
    _, events = problem.path()
    widths = np.array([t for t, _, _ in events])
    assume(len(widths) > 0)
    apart = np.diff(widths).min(initial=np.inf)
    step = min(1e-3, apart / 3)
    assume(step > 1e-6)
    for t, k, enters in events:
        before = problem.brute_force(t - step)
        after = problem.brute_force(t + step)
        if not before or not after:
            continue
        assert len(before) == len(after) == 1
        change = np.flatnonzero(np.not_equal(before[0][0], after[0][0]))
        assert change.tolist() == [k]
        assert after[0][0][k] == enters


@given(st.integers(0, 2**31))
@examples(5)
def test_no_event_of_brute_force_is_missing(seed):
    """If the divisions at two adjacent grid points differ, there is an event between
    the points."""
    problem = random_problem(seed, n=4, m=3)
    _, events = problem.path()
    grid = np.linspace(-6, END, 100)
    found = [problem.brute_force(t) for t in grid]
    for k in range(len(grid) - 1):
        if len(found[k]) == len(found[k + 1]) == 1:
            number = sum(grid[k] <= t <= grid[k + 1] for t, _, _ in events)
            if found[k][0][0] != found[k + 1][0][0]:
                assert number > 0
            elif number:
                assert number > 1


@pytest.mark.parametrize("kind", ["forest", "two classes"])
def test_the_path_reaches_its_end(kind):
    for seed in range(40):
        places, _ = random_problem(seed, kind, n=6).follow(END)
        assert places[-1][0] == pytest.approx(END)


@given(
    st.integers(0, 2**31), st.sampled_from(["forest", "two classes", "ties and cycles"])
)
@examples(30)
def test_kkt_residuals_at_all_places_and_between(seed, kind):
    problem = random_problem(seed, kind, n=7, m=8)
    places, _ = problem.path()
    rng = np.random.default_rng(seed)
    for t, alpha, _ in places:
        assert alpha.min() >= 0
        assert alpha.max() <= 1
        assert problem.residual(t, alpha) < 1e-7
    for t in rng.uniform(-8, END, 10):
        assert problem.residual(t, problem.at(places, t)) < 1e-6


@given(st.integers(0, 2**31), st.floats(-4, END))
@examples(15)
def test_margins_are_those_of_cvxpy(seed, t):
    problem = random_problem(seed, "two classes", n=7)
    places, _ = problem.path()
    size, U = np.linalg.eigh(problem.gram(t))
    D = U * np.sqrt(np.maximum(size, 0))
    w = cp.Variable(len(D))
    loss = cp.sum(cp.pos(1 - D @ w)) + problem.lam / 2 * cp.sum_squares(w)
    cp.Problem(cp.Minimize(loss)).solve(cp.CLARABEL, tol_gap_rel=1e-10)
    z = problem.gram(t) @ problem.at(places, t) / problem.lam
    np.testing.assert_allclose(z, D @ w.value, atol=1e-3)
    assert primal(problem, t, z) <= loss.value * (1 + 1e-7)


def primal(problem, t, z):
    """Return the objective of the function with the margins z."""
    beta = np.linalg.lstsq(problem.gram(t), z, rcond=1e-12)[0]
    return np.maximum(0, 1 - z).sum() + problem.lam / 2 * beta @ z


@pytest.mark.theorem("prop-width")
@given(st.integers(0, 2**31), st.floats(-3, 1))
@examples(30)
def test_the_tangent_is_the_derivative(seed, t):
    """(b), compared with central differences away from events."""
    problem = random_problem(seed)
    h = 1e-5
    places, events = problem.path()
    assume(all(abs(t - event[0]) > 3 * h for event in events))
    _, alpha, on = [place for place in places if place[0] <= t][-1]
    K, slope = method.kernel_at(t, problem.squares)
    alpha = problem.at(places, t)
    moves, dz = method.tangent(problem.B, K, slope, problem.lam, alpha, on)
    ends = [problem.at(places, t + s) for s in (-h, h)]
    margins = [
        problem.gram(t + s) @ a / problem.lam
        for s, a in zip((-h, h), ends, strict=True)
    ]
    scale = 1 + np.abs(moves).max()
    np.testing.assert_allclose(moves, (ends[1] - ends[0]) / (2 * h), atol=1e-4 * scale)
    np.testing.assert_allclose(
        dz, (margins[1] - margins[0]) / (2 * h), atol=1e-4 * scale
    )


@pytest.mark.theorem("prop-width")
@given(st.integers(0, 2**31))
@examples(20)
def test_margins_are_continuous_and_weights_begin_at_one(seed):
    """(a) at the events, also on a graph with cycles; and (c)."""
    problem = random_problem(seed, "two classes", n=6)
    places, events = problem.path()
    for t, _, _ in events:
        left, right = (problem.at(places, s) for s in (t - 1e-7, t + 1e-7))
        z = [problem.gram(s) @ a for s, a in ((t - 1e-7, left), (t + 1e-7, right))]
        np.testing.assert_allclose(z[0], z[1], atol=1e-4 * problem.lam)
    ones = np.ones(len(problem.B))
    small = np.log(problem.lam / (2 * len(ones) * problem.squares.max())) - 1
    for t in (small, small - 3, -40.0):
        assert problem.residual(t, ones) < 1e-12


@pytest.mark.theorem("prop-width")
@given(st.integers(0, 2**31), st.floats(-3, 1), st.floats(0, 1))
@examples(40)
def test_the_residuals_bound_the_distance(seed, t, distance):
    """(d), for weights between the optimal ones and random ones."""
    problem = random_problem(seed)
    places, _ = problem.path()
    best = problem.at(places, t)
    other = np.random.default_rng(seed).random(len(best))
    alpha = np.clip((1 - distance) * best + distance * other, 0, 1)
    Q = problem.gram(t)
    z = Q @ alpha / problem.lam
    rho = np.abs(alpha - np.clip(alpha + 1 - z, 0, 1))
    bound = rho @ np.maximum(1, np.abs(1 - z))
    moved = (alpha - best) / problem.lam
    assert problem.lam / 2 * moved @ Q @ moved <= bound + 1e-7


def test_a_pair_of_equal_items_stays_inside():
    X = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    problem = Problem(X, np.array([[0, 1], [2, 0]]), 0.1)
    places, _ = problem.path()
    assert all(alpha[0] == 1 for _, alpha, _ in places)
    assert places[-1][1][1] < 1
