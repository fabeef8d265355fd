"""Checks of Gram matrices that callers hand over."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["check_finite", "check_gram", "check_semidefinite"]

Floats = NDArray[np.float64]


def check_gram(K: ArrayLike) -> Floats:
    """Return K as a square, finite, symmetric matrix, or say which entry is wrong."""
    K = np.asarray(K, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) == 0:
        raise ValueError(f"K has shape {K.shape}; expected a square matrix (m, m)")
    check_finite(K)
    gap = np.abs(K - K.T)
    if gap.max() > 1e-10 * np.abs(K).max():
        i, j = np.unravel_index(np.argmax(gap), K.shape)
        raise ValueError(f"K[{i}, {j}] is {K[i, j]} but K[{j}, {i}] is {K[j, i]}; expected a symmetric K")
    return (K + K.T) / 2 if gap.any() else K


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


def _spectrum(K: Floats) -> tuple[float, float]:
    """Bounds from inside on the least and largest eigenvalue: exact if small, else by Lanczos steps."""
    if len(K) <= 300:
        values = np.linalg.eigvalsh(K)
        return float(values[0]), float(values[-1])
    basis = [np.random.default_rng(0).standard_normal(len(K))]
    basis[0] /= np.linalg.norm(basis[0])
    images = []
    for _ in range(15):
        images.append(K @ basis[-1])
        known = np.array(basis)
        rest = images[-1] - known.T @ (known @ images[-1])
        rest -= known.T @ (known @ rest)
        size = np.linalg.norm(rest)
        if size <= 1e-10 * np.linalg.norm(images[-1]) or len(basis) == 15:
            break
        basis.append(rest / size)
    values = np.linalg.eigvalsh(np.array(basis)[: len(images)] @ np.array(images).T)
    return float(values[0]), float(values[-1])
