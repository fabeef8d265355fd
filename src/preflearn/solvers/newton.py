"""Newton's method with a duality gap, and conjugate gradients.

The convex objective computes its value, its Newton step, and its duality gap at a
point. The returned gap belongs to the returned point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from preflearn.core.validation import Floats, warn_user

# A decrement below this fraction of the value is a rounding error. The fit ends after
# this number of such steps.
_ROUNDING = 1e-15
_MAX_ROUNDING_STEPS = 3
_MAX_HALVINGS = 34  # halvings of a step
_COLUMN_TOLERANCE = 1e-6  # the relative error of a variance is the square of this
_MAX_COLUMN_STEPS = 100_000


class Objective(Protocol):
    """Interface of a convex function, evaluated at points with x, value, gradient."""

    def at(self, x: Floats) -> Any: ...
    # step to the approximate minimum of the quadratic model
    def step(self, point: Any) -> Floats: ...
    # bound on value - minimum, relative to the value
    def gap(self, point: Any) -> float: ...


class NewtonResult(NamedTuple):
    """The last point, its duality gap, and the number of steps."""

    point: Any
    gap: float
    n_iter: int


def newton(problem: Objective, x: Floats, tol: float, max_iter: int) -> NewtonResult:
    """Take damped Newton steps from x until the duality gap is at most `tol`.

    Rounding errors or `max_iter` may end the iteration earlier.
    """
    here = problem.at(x)
    gap = np.inf
    n_iter = 0
    small = 0
    while gap > tol and n_iter < max_iter and small < _MAX_ROUNDING_STEPS:
        step = problem.step(here)
        slope = float(here.gradient @ step)
        here = _search_line(problem, here, step, slope)
        n_iter += 1
        gap = problem.gap(here)
        small += -slope <= _ROUNDING * here.value
    return NewtonResult(here, gap, n_iter)


def _search_line(problem: Objective, here: Any, step: Floats, slope: float) -> Any:
    """Return the point after the longest halved step with a sufficient decrease."""
    there = here
    for size in 0.5 ** np.arange(_MAX_HALVINGS):
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
    """Solve equations with a positive definite matrix, in place.

    Parameters
    ----------
    times, solve : callable
        Product with the matrix, and an approximate product with its inverse.
    x, residual : ndarray
        Initial point, and right-hand side minus the product with x. Both are changed.
    enough : callable
        Function that decides whether x is accurate enough. Its arguments are x, the
        residual, the squared size of the residual in the metric of `solve`, and this
        size at the start.
    most : int
        Maximum number of steps.

    Returns
    -------
    done : bool
        Whether x is accurate enough, or only rounding errors are left.
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


def conjugate_gradient_columns(
    times: Callable[[Floats], Floats], diagonal: Floats, targets: Floats
) -> Floats:
    """Solve equations with a positive definite matrix for many right-hand sides.

    Each column has separate steps, and all share the products with the matrix.

    Parameters
    ----------
    times : callable
        Function that multiplies the matrix with an (n, k) array.
    diagonal : ndarray of shape (n, 1)
        Preconditioner.
    targets : ndarray of shape (n, k)

    Returns
    -------
    x : ndarray of shape (n, k)
        Solutions with residuals of at most 1e-6 relative to the targets, so that the
        relative error of a variance v'x is about 1e-12.

    Warns
    -----
    ConvergenceWarning
        If a residual is larger.
    """
    x = np.zeros_like(targets)
    residual = targets.copy()
    z = residual / diagonal
    direction = z.copy()
    size = np.einsum("ij,ij->j", residual, z)
    enough = _COLUMN_TOLERANCE * np.linalg.norm(targets, axis=0)
    for _ in range(_MAX_COLUMN_STEPS):
        active = np.linalg.norm(residual, axis=0) > enough
        if not active.any():
            return x
        image = times(direction)
        curve = np.einsum("ij,ij->j", direction, image)
        length = np.divide(size, curve, where=active, out=np.zeros_like(size))
        x += length * direction
        residual -= length * image
        np.divide(residual, diagonal, out=z)
        before = size
        size = np.einsum("ij,ij->j", residual, z)
        ratio = np.divide(size, before, where=active, out=np.zeros_like(size))
        direction *= ratio
        direction += z
    warn_user(
        f"conjugate gradients did not converge in {_MAX_COLUMN_STEPS} steps, so the "
        "standard errors are too small; raise alpha",
        ConvergenceWarning,
    )
    return x


def warn_about_gap(name: str, gap: float, most: float, remedy: str) -> None:
    """Give a ConvergenceWarning if the duality gap is larger than `most`."""
    if not gap <= most:
        text = f"{name}: the relative duality gap is {gap:.1e}; expected at most {most:g}: {remedy}"
        warn_user(text, ConvergenceWarning)
