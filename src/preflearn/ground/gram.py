"""Checks of Gram matrices that callers hand over."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["check_finite", "check_gram", "check_semidefinite"]

Floats = NDArray[np.float64]

_ROUNDING = 1e-15  # asymmetry below this share of the diagonal is left as it is
_TILE = 256
_EXACT = 300  # points whose eigenvalues are all computed
_STEPS = 6  # of Lanczos


def check_gram(K: ArrayLike) -> Floats:
    """Return K as a square, finite, symmetric matrix, or say which entry is wrong."""
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) == 0:
        raise ValueError(f"K has shape {K.shape}; expected a square matrix (m, m)")
    check_finite(K)
    gap, i, j = _asymmetry(K)
    largest = float(np.abs(np.diag(K)).max())
    if gap > 1e-10 * max(largest, abs(K[i, j])):
        raise ValueError(f"K[{i}, {j}] is {K[i, j]} but K[{j}, {i}] is {K[j, i]}; expected a symmetric K")
    return (K + K.T) / 2 if gap > _ROUNDING * largest else np.ascontiguousarray(K)


def check_semidefinite(K: Floats) -> None:
    """Refuse a symmetric K with a clearly negative eigenvalue, as far as `_spectrum` sees."""
    low, high = _spectrum(K)
    if low < -1e-8 * max(high, -low):
        raise ValueError(f"K has an eigenvalue of {low:.3g} or less; expected a positive semi-definite K")


def check_finite(K: Floats) -> None:
    """Say which entry of K is not finite."""
    if not np.isfinite(K.sum()) and not (finite := np.isfinite(K)).all():
        i, j = np.argwhere(~finite)[0]
        raise ValueError(f"K[{i}, {j}] is {K[i, j]}; expected finite numbers")


def _asymmetry(K: Floats) -> tuple[float, int, int]:
    """The largest difference across the diagonal, and its place; tile by tile, without a second matrix."""
    worst = (0.0, 0, 0)
    for top in range(0, len(K), _TILE):
        for left in range(0, top + 1, _TILE):
            rows, columns = slice(top, top + _TILE), slice(left, left + _TILE)
            gaps = np.abs(K[rows, columns] - K[columns, rows].T)
            i, j = np.unravel_index(np.argmax(gaps), gaps.shape)
            if gaps[i, j] > worst[0]:
                worst = (float(gaps[i, j]), left + int(j), top + int(i))
    return worst


def _spectrum(K: Floats) -> tuple[float, float]:
    """Bounds from inside on the least and largest eigenvalue: exact if small.

    Otherwise those of a part of K, whose eigenvalues lie within those of K, and of some Lanczos steps.
    """
    if len(K) <= _EXACT:
        values = np.linalg.eigvalsh(K)
        return float(values[0]), float(values[-1])
    rng = np.random.default_rng(0)
    part = np.sort(rng.choice(len(K), _EXACT, replace=False))
    values = np.linalg.eigvalsh(K[np.ix_(part, part)])
    basis, images = [rng.standard_normal(len(K))], []
    basis[0] /= np.linalg.norm(basis[0])
    while True:
        images.append(K @ basis[-1])
        known = np.array(basis)
        rest = images[-1] - known.T @ (known @ images[-1])
        rest -= known.T @ (known @ rest)
        size = np.linalg.norm(rest)
        if size <= 1e-10 * np.linalg.norm(images[-1]) or len(basis) == _STEPS:
            break
        basis.append(rest / size)
    ritz = np.linalg.eigvalsh(np.array(basis) @ np.array(images).T)
    return float(min(values[0], ritz[0])), float(max(values[-1], ritz[-1]))
