"""Newton's method until a duality gap proves the minimum, and conjugate gradients for
its equations.

What is minimised is convex, and says itself what it is at a point, which step it takes
there, and what its minimum may be at least. The certificate is that of the point that
is returned, computed from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from preflearn.core.validation import Floats, warn_user

# a decrement below this share of the value; some such steps, and no more can be had
_ROUNDING = 1e-15
_SOME = 3
_HALVES = 34  # of a step


class Objective(Protocol):
    """A convex function of x; a point, where it was computed, has its x, value and
    gradient, and more."""

    def at(self, x: Floats) -> Any: ...
    # about to the minimum of the quadratic model
    def step(self, point: Any) -> Floats: ...
    # the value exceeds the minimum by at most this share of it
    def gap(self, point: Any) -> float: ...


class Reached(NamedTuple):
    """The last point, its gap, and the number of steps that led to it."""

    point: Any
    gap: float
    n_iter: int


def newton(problem: Objective, x: Floats, tol: float, max_iter: int) -> Reached:
    """Damped Newton steps from x on, one at least, until the gap is at most `tol`, or
    rounding ends them."""
    here = problem.at(x)
    gap = np.inf
    n_iter = 0
    small = 0
    while gap > tol and n_iter < max_iter and small < _SOME:
        step = problem.step(here)
        slope = float(here.gradient @ step)
        here = _moved(problem, here, step, slope)
        n_iter = n_iter + 1
        gap = problem.gap(here)
        small = small + (-slope <= _ROUNDING * here.value)
    return Reached(here, gap, n_iter)


def _moved(problem: Objective, here: Any, step: Floats, slope: float) -> Any:
    """The point after as much of a step as decreases the value."""
    there = here
    for size in 0.5 ** np.arange(_HALVES):
        there = problem.at(here.x + size * step)
        if there.value <= here.value * (1 + 1e-13) + 1e-4 * size * slope:
            break
    return there


def conjugate_gradients(
    times: Callable[[Floats], Floats],
    solve: Callable[[Floats], Floats],
    x: Floats,
    residual: Floats,
    enough: Callable[[Floats, Floats, float, float], bool],
    most: int,
) -> bool:
    """Solve equations with a positive definite matrix; x and its residual are improved
    in place.

    Parameters
    ----------
    times, solve : callable
        The product with the matrix, and about that with its inverse.
    x, residual : ndarray
        Where to start, and the right-hand side less the product with x.
    enough : callable
        Of x, the residual, its squared size by `solve`, and that at the start: whether
        x will do.
    most : int
        Steps.

    Returns
    -------
    done : bool
        Whether x will do, or nothing but rounding is left.
    """
    direction = solve(residual)
    first = size = float(residual @ direction)
    for _ in range(most):
        if enough(x, residual, size, first):
            return True
        image = times(direction)
        curve = float(direction @ image)
        if not (size > 0 and curve > 0):
            return True
        length = size / curve
        x += length * direction
        residual -= length * image
        z = solve(residual)
        before = size
        size = float(residual @ z)
        direction = z + size / before * direction
    return False


def warn_about_gap(name: str, gap: float, most: float, remedy: str) -> None:
    """A ConvergenceWarning, if the gap is larger."""
    if not gap <= most:
        text = f"{name}: the duality gap is {gap:.1e} of the objective; expected at most {most:g}: {remedy}"
        warn_user(text, ConvergenceWarning)
