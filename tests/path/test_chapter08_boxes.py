"""The theorem boxes of chapter 08, on random and on degenerate small problems."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from reference import hinge_machine
from scipy.optimize import linprog, nnls
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path
from sklearn.metrics.pairwise import pairwise_kernels
from small_problems import KINDS, small_problem

from preflearn.pairs import Pairs
from preflearn.path import ranksvm_path

SEEDS = range(4 * len(KINDS))  # each kind occurs with both kernels
TIGHT = {
    "solver": cp.CLARABEL,
    "tol_gap_abs": 1e-12,
    "tol_gap_rel": 1e-12,
    "tol_feas": 1e-12,
}
FAR = 1e-3  # fraction of the first breakpoint down to which paths are tested


class Problem:
    """A small problem with the rows d_i of D, P K P' = D D', and its path."""

    def __init__(self, seed):
        self.pairs, y, kernel = small_problem(seed)
        options = {key: value for key, value in kernel.items() if key != "kernel"}
        values, U = np.linalg.eigh(
            pairwise_kernels(self.pairs.items, metric=kernel["kernel"], **options)
        )
        kept = values > 1e-11 * max(values.max(), 1e-300)
        P = y[:, None] * self.pairs.incidence().toarray()
        self.D = (
            P @ (U[:, kept] * np.sqrt(values[kept]))
            if kept.any()
            else np.zeros((len(P), 1))
        )
        self.path = ranksvm_path(self.pairs, y, **kernel)
        knots = self.path.breakpoints
        self.knots = (
            knots[knots >= max(self.path.lambda_end, FAR * knots[0])]
            if len(knots)
            else knots
        )
        self.first = (self.D @ self.D.sum(axis=0)).max()

    def residual(self, alpha, lam):
        return np.abs(
            alpha - np.clip(alpha + 1 - self.D @ (self.D.T @ alpha) / lam, 0, 1)
        ).max()

    def g(self, lam):
        return self.D.T @ self.path.alpha(lam)

    def pieces(self):
        return [
            (a, b)
            for a, b in zip(self.knots[:-1], self.knots[1:], strict=True)
            if b < (1 - 1e-6) * a
        ]


@pytest.fixture(scope="module", params=SEEDS)
def problem(request):
    return Problem(request.param)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def vertex(D, target, low, high, rng):
    """Return an extreme point of the weights between `low` and `high` with D'weights =
    target."""
    U, size, _ = np.linalg.svd(D.T, full_matrices=False)
    A = U[:, size > 1e-9 * max(size[0], 1e-12)].T
    bounds = np.column_stack([low, high])
    program = linprog(
        rng.normal(size=len(D)), A_eq=A @ D.T, b_eq=A @ target, bounds=bounds
    )
    return program.x if program.status == 0 else None


def another(problem, lam, rng):
    """Return an optimal vertex at lam. Weights of pairs off the margin are unique;
    those of pairs on it may differ if g is the same."""
    alpha = problem.path.alpha(lam)
    z = problem.D @ (problem.D.T @ alpha) / lam
    on = np.abs(z - 1) < 1e-8
    if on.any():
        D = problem.D[on]
        found = vertex(D, D.T @ alpha[on], np.zeros(len(D)), np.ones(len(D)), rng)
        alpha[on] = alpha[on] if found is None else found
    return alpha


@pytest.mark.theorem("thm-ranking-path")
def test_one_function_and_the_conditions_of_its_weights(problem, rng):
    D = problem.D
    lam = 0.3 * max(problem.first, 1e-3)
    _, f, *_ = hinge_machine(D, 1.0, ridge=lam, tol=1e-12)
    alpha = problem.path.alpha(lam)
    assert problem.residual(alpha, lam) < 1e-8
    assert np.allclose(D.T @ alpha / lam, f, atol=1e-5 * max(1, np.abs(f).max()))

    def dual(a):
        return a.sum() - np.sum((D.T @ a) ** 2) / (2 * lam)

    other = another(problem, lam, rng)
    assert dual(other) == pytest.approx(dual(alpha), rel=1e-7)
    for a in (
        rng.uniform(size=len(D)),
        np.clip(alpha + rng.normal(size=len(D)), 0, 1),
        np.ones(len(D)),
    ):
        same = np.allclose(D.T @ a, D.T @ alpha, atol=1e-6)
        assert (problem.residual(a, lam) < 1e-7) == (dual(a) > dual(alpha) - 1e-9)
        assert same or dual(a) < dual(alpha)


@pytest.mark.theorem("thm-ranking-path")
def test_each_division_belongs_to_one_interval_with_a_line(problem):
    seen = set()
    last = None
    for lam, lower in problem.pieces():
        places = [lam + s * (lower - lam) for s in (0.2, 0.5, 0.8)]
        sets = [tuple(map(tuple, problem.path.sets(place))) for place in places]
        assert sets[0] == sets[1] == sets[2]
        # a set that the path has left does not occur again
        assert sets[0] == last or sets[0] not in seen
        last = sets[0]
        seen.add(last)
        values = [problem.g(place) for place in (lam, *places, lower)]
        scale = 1e-8 * max(1, *map(np.linalg.norm, values))
        line = [values[0] + s * (values[-1] - values[0]) for s in (0.2, 0.5, 0.8)]
        assert all(
            np.linalg.norm(a - b) < scale
            for a, b in zip(line, values[1:-1], strict=True)
        )
        above = problem.g(lam * (1 + 1e-10))  # g is continuous at breakpoints
        assert np.linalg.norm(above - values[0]) < 1e-6 * max(1, np.linalg.norm(above))
    assert len(seen) <= 3 ** min(len(problem.D), 30)


@pytest.mark.theorem("thm-ranking-path")
def test_the_beginning(problem):
    total = problem.D.sum(axis=0)
    ones = np.ones(len(problem.D))
    assert problem.first >= -1e-12
    if problem.first < 1e-12:
        assert np.linalg.norm(total) < 1e-6
        assert len(problem.path.breakpoints) == 0
        assert np.abs(problem.path.margins(0.01)).max() < 1e-6
        return
    assert np.linalg.norm(total) > 0
    assert problem.path.breakpoints[0] == pytest.approx(problem.first)
    for lam in problem.first * np.array([1, 1.001, 3]):
        assert problem.residual(ones, lam) < 1e-9
        assert np.allclose(
            problem.path.margins(lam), problem.D @ total / lam, atol=1e-8
        )
    for lam in problem.first * np.array([1.001, 3]):
        assert problem.path.alpha(lam).tolist() == ones.tolist()
    assert problem.residual(ones, 0.999 * problem.first) > 1e-4


@pytest.mark.theorem("thm-ranking-path")
def test_the_end_is_the_shortest_function_with_the_least_sum_of_hinges(problem):
    path = problem.path
    D = problem.D
    if len(path.breakpoints) == 0:
        assert problem.first < 1e-12
        least = cp.Problem(
            cp.Minimize(cp.sum(cp.pos(1 - D @ (f := cp.Variable(D.shape[1])))))
        ).solve(**TIGHT)
        assert least == pytest.approx(len(D), rel=1e-6)  # f = 0 is optimal
        return
    if (
        path.breakpoints[-1] < 1e-3 * path.breakpoints[0]
        or path.lambda_end > 0.4 * path.breakpoints[-1]
    ):
        return  # the path ends too early, or the other solver is too inaccurate below
    ends = [path.margins(s * path.breakpoints[-1]) for s in (1, 0.9, 0.5)]
    assert np.allclose(ends[0], ends[1], atol=1e-7)
    assert np.allclose(ends[1], ends[2], atol=1e-7)
    f = cp.Variable(D.shape[1])
    hinges = cp.sum(cp.pos(1 - D @ f))
    least = cp.Problem(cp.Minimize(hinges)).solve(**TIGHT)
    assert np.maximum(0, 1 - ends[2]).sum() == pytest.approx(least, abs=1e-6)
    shortest = cp.Problem(
        cp.Minimize(cp.sum_squares(f)), [hinges <= least + 1e-9]
    ).solve(cp.CLARABEL)
    lam = 0.5 * path.breakpoints[-1]
    assert np.sum((problem.g(lam) / lam) ** 2) == pytest.approx(
        shortest, rel=1e-3, abs=1e-6
    )


@pytest.mark.theorem("thm-ranking-path")
def test_any_optimal_weights_at_the_ends_interpolate(problem, rng):
    for lam, lower in problem.pieces():
        first = another(problem, lam, rng)
        second = another(problem, lower, rng)
        for s in (0.1, 0.5, 0.9):
            mean = (1 - s) * first + s * second
            assert problem.residual(mean, (1 - s) * lam + s * lower) < 1e-6


@pytest.mark.theorem("thm-direction")
def test_the_direction_is_a_projection(problem, rng):
    D = problem.D
    for lam, lower in problem.pieces():
        alpha = another(problem, lam, rng)  # the theorem holds for any optimal weights
        alpha[alpha < 1e-9] = 0
        alpha[alpha > 1 - 1e-9] = 1
        f = D.T @ alpha / lam
        on = np.abs(D @ f - 1) < 1e-8
        rays = np.vstack([D[on & (alpha > 0)], -D[on & (alpha < 1)]])
        h = rays.T @ nnls(rays.T, f, maxiter=10_000)[0] if len(rays) else 0 * f
        middle = (lam + lower) / 2
        ahead = lam * f - (lam - middle) * h
        assert np.linalg.norm(ahead - problem.g(middle)) < 1e-6 * max(
            1, np.linalg.norm(ahead)
        )
        if not on.any():
            assert not h.any()
            continue
        Bh = D[on] @ h  # the inequalities of the proof
        assert np.all(Bh[alpha[on] == 1] > 1 - 1e-6)
        assert np.all(Bh[alpha[on] == 0] < 1 + 1e-6)
        inner = (alpha[on] > 0) & (alpha[on] < 1)
        assert np.allclose(Bh[inner], 1, atol=1e-6)
        low, high = (np.where(alpha[on] == bound, 0, 50) for bound in (1, 0))
        eta = vertex(D[on], h, -low, high, rng)
        if eta is not None:
            assert np.all((np.abs(Bh - 1) < 1e-6) | (np.abs(eta) < 1e-6))
            # if the step is small, the weights stay in [0, 1] and the other pairs keep
            # their sets
            step = 1e-3 * min(lam - lower, 0.02)
            after = alpha.copy()
            after[on] -= step * eta
            if after.min() >= 0 and after.max() <= 1:
                assert problem.residual(after, lam - step) < 1e-7
            if inner.all():
                assert np.allclose(D[on] @ D[on].T @ eta, 1, atol=1e-6)


def solutions(objective, parameter, variable, values):
    problem = cp.Problem(objective)
    found = []
    for value in values:
        parameter.value = value
        problem.solve(**TIGHT)
        found.append(np.atleast_1d(variable.value).copy())
    return np.array(found)


def bends(points):
    """Return the fraction of points at which a sequence is not locally a line."""
    size = max(1e-2, np.abs(points).max())
    return np.mean(np.abs(np.diff(points, 2, axis=0)).max(axis=1) > 2e-6 * size)


def steps(points):
    return np.abs(np.diff(points, axis=0)).max(axis=1)


@pytest.mark.theorem("thm-linear-paths")
@pytest.mark.parametrize(  # each loss, each penalty, and degenerate data
    "seed", [0, 5, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (1, 2))]
)
def test_paths_are_linear_in_the_weight_of_the_piecewise_linear_part(seed):
    draw = np.random.default_rng(seed)
    p = 1 + seed % 3
    A = draw.normal(size=(8, p))
    b = draw.normal(size=8)
    if seed % 2:  # degenerate data: repeated and equal rows
        A = A.round()
        b = b.round()
    f = cp.Variable(p)
    t = cp.Parameter(nonneg=True)
    residual = A @ f - b
    quadratic = [
        cp.sum_squares(residual) / 2,
        cp.sum(cp.huber(residual, 0.4)),
        cp.sum_squares(cp.pos(-residual)),
    ]
    linear = [cp.norm1(f), cp.max(A[:4] @ f + b[:4]), cp.norm_inf(f - 1)]
    small = 0.1 * cp.sum_squares(f)  # makes the solution unique
    objective = cp.Minimize(
        quadratic[seed % 3] + small + t * linear[(seed + seed // 3) % 3]
    )
    places = np.linspace(0.02, 5, 120)
    points = solutions(objective, t, f, places)
    assert bends(points) < 0.2
    k = int(np.argmax(steps(points)))  # the longest step has no jump
    within = solutions(objective, t, f, np.linspace(*places[k : k + 2], 9))
    assert steps(within).max() < 0.75 * steps(points).max() + 1e-6


@pytest.mark.theorem("thm-linear-paths")
@pytest.mark.parametrize("seed", range(2))
def test_with_hinges_they_are_linear_in_the_inverse(seed):
    draw = np.random.default_rng(seed)
    D = draw.normal(size=(6, 2))
    D = D.round() if seed % 2 else D
    f = cp.Variable(2)
    lam = cp.Parameter(nonneg=True)
    C = cp.Parameter(nonneg=True)
    hinges = cp.sum(cp.pos(1 - D @ f))
    places = np.linspace(0.1, 8, 120)
    by_lam = solutions(
        cp.Minimize(hinges + lam * cp.sum_squares(f) / 2), lam, f, places
    )
    by_C = solutions(cp.Minimize(C * hinges + cp.sum_squares(f) / 2), C, f, places)
    assert bends(by_C) < 0.2
    assert bends(places[:, None] * by_lam) < 0.2
    assert bends(by_lam) > 0.2  # but f itself is not piecewise linear


def hard_lasso(p):
    X = np.ones((1, 1))
    target = np.ones(1)
    for _ in range(p - 1):
        lams = len(target) * lars_path(X, target, method="lasso")[0]
        size = 0.9 * lams[lams > 1e-9 * lams[0]].min() / (2 * target @ target + 1)
        column = np.append(2 * size * target, size)
        X = np.column_stack([np.vstack([X, np.zeros(X.shape[1])]), column])
        target = np.append(target, 1.0)
    return X, target


def embedded(X, target):
    """Return the pair differences of the proposition, and the breakpoints, times c, and
    the weights of the lasso."""
    lams, _, b = lars_path(X, target, method="lasso")
    whole = np.abs(np.linalg.solve(X, target)).sum()
    # the first sentence of the proof
    assert np.abs(b).sum(axis=0).max() <= whole * (1 + 1e-9)
    c = 1.01 * whole
    D = np.vstack([c * X.T, -c * X.T, target])
    weights = np.vstack(
        [1 - np.maximum(0, b) / c, 1 - np.maximum(0, -b) / c, np.ones(len(lams))]
    )
    assert 0 <= weights.min() <= weights.max() <= 1
    return D, c * len(target) * lams, weights.T


@pytest.mark.theorem("prop-long")
@pytest.mark.parametrize("p", [1, 2, 3, 4, 5])
def test_hard_lassos_are_paths_of_preferences(p):
    D, lams, weights = embedded(*hard_lasso(p))
    assert np.sum(lams > 1e-12 * lams[0]) == (3**p - 1) // 2
    assert len(D) == 2 * p + 1
    means = ((lams[:-1] + lams[1:]) / 2, (weights[:-1] + weights[1:]) / 2)
    for places, rows in ((lams[:-1], weights[:-1]), means):
        for lam, alpha in zip(places, rows, strict=True):
            z = D @ (D.T @ alpha) / lam
            assert np.abs(alpha - np.clip(alpha + 1 - z, 0, 1)).max() < 1e-5


@pytest.mark.theorem("prop-long")
@pytest.mark.parametrize("seed", range(8))
def test_any_lasso_is_a_path_of_preferences(seed):
    draw = np.random.default_rng(seed)
    p = 1 + seed % 4
    D, lams, _ = embedded(draw.normal(size=(p, p)), draw.normal(size=p))
    path = ranksvm_path(
        Pairs.from_arrays(D, np.zeros_like(D)), np.ones(len(D)), "linear"
    )
    lams = lams[lams > 1e-9 * lams[0]]
    found = np.array([np.abs(path.breakpoints / lam - 1).min() for lam in lams])
    # each breakpoint of the lasso is a breakpoint of the path
    assert found.max() < 1e-6
    assert len(path.breakpoints[path.breakpoints > 1e-6 * lams[0]]) == len(lams)


@pytest.mark.theorem("prop-long")
def test_a_lasso_without_a_target_is_a_path_without_breakpoints():
    X = np.array([[1.0, 2, 0], [0, 1, 3], [1, 0, 1]])
    D = np.vstack([X.T, -X.T, np.zeros(3)])  # the same for any c > 0
    assert (
        len(
            ranksvm_path(
                Pairs.from_arrays(D, np.zeros_like(D)), np.ones(7), "linear"
            ).breakpoints
        )
        == 0
    )


@pytest.mark.parametrize(("p", "status"), [(3, "complete"), (4, "rounding")])
def test_rounding_ends_the_path_of_a_long_hard_lasso(p, status):
    D, lams, _ = embedded(*hard_lasso(p))
    least = lams[lams > 1e-9 * lams[0]].min() / 2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pairs = Pairs.from_arrays(D, np.zeros_like(D))
        path = ranksvm_path(pairs, np.ones(len(D)), "linear", lambda_min=least)
    assert path.status == status
    assert [warning.category for warning in caught] == [ConvergenceWarning] * (p == 4)
    if p == 3:
        assert len(path.breakpoints) == 13  # this is (3^p - 1) / 2
    else:
        assert path.lambda_end > least
        # The path has 40 breakpoints. A bound on rounding that is too strict would end
        # it earlier.
        assert len(path.breakpoints) >= 12
    for lam in path.breakpoints:  # the path is right up to its end
        assert path.kkt_residual(lam) < 1e-8
