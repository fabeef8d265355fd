"""Newton's method and conjugate gradients, on functions with a known minimum."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from preflearn.solvers.newton import conjugate_gradients, newton, warn_about_gap


class Point(NamedTuple):
    x: np.ndarray
    value: float
    gradient: np.ndarray


class Cosh(NamedTuple):
    """The function sum of cosh(a_i (x_i - c_i)) + 1, which is steep far from its
    minimum n + 1 at c."""

    a: np.ndarray
    c: np.ndarray

    def at(self, x):
        with np.errstate(over="ignore"):
            z = self.a * (x - self.c)
            return Point(x, float(np.cosh(z).sum() + 1), self.a * np.sinh(z))

    def step(self, point):
        return -point.gradient / (self.a**2 * np.cosh(self.a * (point.x - self.c)))

    def gap(self, point):
        return (point.value - len(self.a) - 1) / point.value


@given(st.integers(0, 10**6), st.sampled_from([1e-2, 1e-8, 1e-14]))
def test_it_stops_at_the_tolerance(seed, tol):
    rng = np.random.default_rng(seed)
    problem = Cosh(rng.uniform(0.5, 2, 4), 3 * rng.normal(size=4))
    point, gap, n_iter = newton(problem, np.zeros(4), tol, 100)
    assert gap == problem.gap(point) <= tol
    assert 1 <= n_iter < 40
    np.testing.assert_array_equal(point.gradient, problem.at(point.x).gradient)
    np.testing.assert_allclose(
        problem.a * (point.x - problem.c), 0, atol=np.sqrt(2.1 * tol * point.value)
    )


def test_it_takes_at_least_one_step_and_at_most_max_iter():
    problem = Cosh(np.ones(2), np.array([9.0, -9.0]))
    assert newton(problem, problem.c, 1.0, 5).n_iter == 1
    point, gap, n_iter = newton(problem, np.zeros(2), 1e-12, 3)
    assert n_iter == 3
    assert gap > 1e-12
    assert point.value < problem.at(np.zeros(2)).value


def test_rounding_ends_it():
    _, gap, n_iter = newton(Cosh(np.ones(3), np.full(3, 0.3)), np.zeros(3), -1.0, 1000)
    assert n_iter < 20
    assert gap == pytest.approx(0, abs=1e-15)


def test_a_step_that_goes_too_far_is_halved():
    class Overshooting(Cosh):
        def step(self, point):
            return 1000 * super().step(point)

    assert (
        newton(
            Overshooting(np.ones(2), np.array([1.0, -1.0])), np.zeros(2), 1e-3, 60
        ).gap
        <= 1e-3
    )


@given(st.integers(0, 10**6), st.integers(1, 12), st.booleans())
def test_conjugate_gradients_solve_equations_from_any_start(seed, n, exact):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    A = A @ A.T + np.eye(n)
    solve = np.linalg.inv(A) if exact else np.diag(1 / np.diag(A))
    right, x = rng.normal(size=(2, n))
    residual = right - A @ x
    seen = []

    def enough(x, residual, size, first):
        seen.append(size / first)
        np.testing.assert_allclose(residual, right - A @ x, atol=1e-9)
        return size <= 1e-20 * first

    assert conjugate_gradients(
        lambda v: A @ v, lambda v: solve @ v, x, residual, enough, 5 * n
    )
    np.testing.assert_allclose(A @ x, right, atol=1e-7)
    assert len(seen) <= (3 if exact else 3 * n + 2)


def test_too_few_conjugate_gradients_are_reported():
    A = np.diag([1.0, 10.0, 100.0])
    x = np.zeros(3)
    residual = np.ones(3)
    done = conjugate_gradients(
        lambda v: A @ v, lambda v: v, x, residual, lambda *at: at[2] < 1e-20, 2
    )
    assert not done
    np.testing.assert_allclose(residual, 1 - A @ x)


@pytest.mark.parametrize("gap", [2e-3, np.nan])
def test_a_gap_that_is_too_large_causes_a_warning_with_the_remedy(gap):
    with pytest.warns(ConvergenceWarning, match="^Name.*raise it"):
        warn_about_gap("Name", gap, 1e-6, "raise it")
    warn_about_gap("Name", 1e-6, 1e-6, "raise it")
