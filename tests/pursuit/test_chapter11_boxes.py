"""The theorem boxes of chapter 11, on random and on degenerate small problems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_examples import examples
from scipy.linalg import block_diag

from preflearn.pursuit import SemiSupervisedRankingPursuit


class Problem:
    """Functions of M views on scored and unscored items in queries, k (M, n) and kbar
    (M, l), and a model F.

    The values are small integers, so functions are often constant in a query, equal, or
    parallel.
    """

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.M = int(rng.integers(1, 4))
        self.nu = float(rng.choice([0.0, 0.5, 3.0]))
        self.L, self.Lbar = (
            laplacian(rng.integers(1, 4, size=rng.integers(1, 4))) for _ in range(2)
        )
        high = 2 if seed % 2 else 5
        self.k, self.kbar = self.values(high)
        self.f, self.fbar = self.values(5)
        self.s = rng.integers(0, 4, size=len(self.L)).astype(float)

    def values(self, high):
        shapes = (self.M, len(self.L)), (self.M, len(self.Lbar))
        return [
            self.rng.integers(0, high, size=shape).astype(float) for shape in shapes
        ]

    def loss(self, f):
        return float((self.s - f) @ self.L @ (self.s - f))

    def objective(self, f, fbar, target=None):
        target = self.s if target is None else target
        apart = [(x - y) @ self.Lbar @ (x - y) for x in fbar for y in fbar]
        return sum((target - x) @ self.L @ (target - x) for x in f) + self.nu * sum(
            apart
        )

    def stepped(self, a):
        return self.f + a[:, None] * self.k, self.fbar + a[:, None] * self.kbar

    def printed(self, a, r):
        return self.objective(a[:, None] * self.k, a[:, None] * self.kbar, r)

    def system(self):
        """Return G of the page, whose off-diagonal part is -2 nu kbar'Lbar kbar."""
        across = 2 * self.nu * self.kbar @ self.Lbar @ self.kbar.T
        return np.diag(np.diag(self.k @ self.L @ self.k.T + self.M * across)) - across

    def side(self):
        """Return h of the page."""
        pull = self.kbar @ self.Lbar @ (self.M * self.fbar - self.fbar.sum(axis=0)).T
        return np.diag(self.k @ self.L @ (self.s - self.f).T - 2 * self.nu * pull)


def laplacian(sizes):
    return block_diag(*[size * np.eye(size) - 1 for size in sizes.tolist()])


PROBLEMS = st.builds(Problem, st.integers(0, 2**31))


@pytest.mark.theorem("prop-v-steps")
@examples(50)
@given(PROBLEMS)
def test_a_corrected_step_has_the_stated_decrease_and_no_step_a_larger_one(problem):
    G = problem.system()
    h = problem.side()
    a = np.linalg.pinv(G, rcond=1e-10) @ h
    start = problem.objective(problem.f, problem.fbar)
    least = problem.objective(*problem.stepped(a))
    assert start - least == pytest.approx(h @ a, rel=1e-9, abs=1e-8)
    assert h @ a >= -1e-9
    for _ in range(20):
        other = a + problem.rng.normal(size=problem.M) * 10.0 ** problem.rng.integers(
            -3, 2
        )
        assert problem.objective(*problem.stepped(other)) >= least - 1e-8


@pytest.mark.theorem("prop-v-steps")
@examples(50)
@given(PROBLEMS)
def test_a_printed_step_never_raises_the_loss_of_the_average(problem):
    average = problem.f.mean(axis=0)
    r = problem.s - average
    G = problem.system()
    e = problem.k @ problem.L @ r
    a = np.linalg.pinv(G, rcond=1e-10) @ e
    for _ in range(20):
        other = a + problem.rng.normal(size=problem.M)
        assert problem.printed(other, r) >= problem.printed(a, r) - 1e-8
    stepped = average + (a[:, None] * problem.k).mean(axis=0)
    singles = [problem.loss(average + x) for x in a[:, None] * problem.k]
    assert problem.loss(stepped) <= np.mean(singles) + 1e-9
    assert np.mean(singles) <= problem.printed(a, r) / problem.M + 1e-8
    assert problem.printed(a, r) / problem.M <= problem.loss(average) + 1e-8


@pytest.mark.theorem("prop-v-steps")
def test_the_printed_algorithm_raises_the_objective_on_the_four_items():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [4.0, 1.0]])
    s = [0.0, 1.0, 1.0, 2.0]
    model = SemiSupervisedRankingPursuit(
        [[0], [1]], 6, nu=0.0, algorithm="printed", kernel="precomputed"
    ).fit(X, s)
    assert (np.diff(model.objectives_)[1:] > 0).all()
    first = np.cumsum(model.coefs_[0])
    losses = [4 * 4 * np.var(s - a * X[:, 0]) for a in first]
    assert losses[-1] > losses[0]  # the loss of view 1
    corrected = SemiSupervisedRankingPursuit(
        [[0], [1]], 6, nu=0.0, kernel="precomputed"
    ).fit(X, s)
    assert (np.diff(corrected.objectives_) < 0).all()


@pytest.mark.theorem("thm-v-average")
@examples(50)
@given(PROBLEMS)
def test_the_mean_loss_of_views_is_that_of_the_average_and_their_disagreement(problem):
    M = problem.M
    f = problem.f
    W = problem.rng.integers(0, 3, size=(f.shape[1],) * 2)
    W = np.triu(W, 1) + np.triu(W, 1).T
    general = np.diag(W.sum(axis=1)) - W
    for L in (problem.L, general):
        problem.L = L
        losses = [problem.loss(one) for one in f]
        apart = sum((x - y) @ L @ (x - y) for x in f for y in f)
        average = problem.loss(f.mean(axis=0))
        assert np.mean(losses) == pytest.approx(
            average + apart / (2 * M**2), rel=1e-12, abs=1e-9
        )
        assert average <= np.mean(losses) + 1e-9
        equal = abs(np.mean(losses) - average) < 1e-9
        assert equal == all(abs((x - y) @ L @ (x - y)) < 1e-9 for x in f for y in f)
        assert M * average <= problem.objective(f, problem.fbar) + 1e-9


@pytest.mark.theorem("prop-v-definite")
@examples(150)
@given(PROBLEMS)
def test_the_system_is_singular_exactly_where_the_proposition_says(problem):
    G = problem.system()
    h = problem.side()
    values = np.linalg.eigvalsh(G)
    assert values[0] >= -1e-9 * max(values[-1], 1)
    varies = np.array([one @ problem.L @ one > 0 for one in problem.k])
    free = np.flatnonzero(~varies)
    # Rows: the differences of a_v Lbar kbar_v and a_u Lbar kbar_u, for those a that (a)
    # leaves free.
    values_of = problem.nu * problem.Lbar @ problem.kbar.T
    one = np.eye(problem.M)
    rows = np.vstack([values_of * (v - u) for v in one for u in one])[:, free]
    has_null = len(free) > 0 and np.linalg.matrix_rank(rows) < len(free)
    assert has_null == (values[0] < 1e-9)
    if varies.all():
        assert values[0] > 1e-9
    a = np.linalg.pinv(G, rcond=1e-10) @ h
    assert np.allclose(G @ a, h, rtol=0, atol=1e-8 * max(1.0, np.abs(h).max()))
