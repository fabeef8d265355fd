"""Chances from decision values, by the logistic function of least loss [Platt1999]_.

References
----------
.. [Platt1999] J. C. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
   likelihood methods", Advances in Large Margin Classifiers, MIT Press, 1999.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from preflearn.checks import Floats

_STEPS = 100
_LAST = 1e-8  # twice the share of the loss that can still be gained


def platt(f: Floats, labels: NDArray) -> tuple[float, float]:
    """Slope a and offset b of P(label +1 | f) = 1 / (1 + exp(-a f - b)), [Platt1999]_.

    Minimises the cross-entropy to Platt's targets: (n+ + 1) / (n+ + 2) for the n+ labels +1, 1 / (n- + 2)
    for the n- others. They are inside (0, 1), so that a minimum exists also where f separates the labels, or
    where there is one label only. Where all f are equal, a is 0. (Platt's A and B are -a and -b.)

    Parameters
    ----------
    f : ndarray of shape (m,)
        Decision values of points that the machine has not seen.
    labels : ndarray of shape (m,)
        -1 and +1.

    Examples
    --------
    >>> a, b = platt(np.array([-1.0, 1.0]), np.array([-1, 1]))  # targets 1/3 and 2/3
    >>> round(a, 6), abs(b) < 1e-12  # log 2, 0
    (0.693147, True)
    """
    positive = labels > 0
    n_plus, n_minus = np.count_nonzero(positive), np.count_nonzero(~positive)
    target = np.where(positive, (n_plus + 1) / (n_plus + 2), 1 / (n_minus + 2))
    centre, size = float(f.mean()), float(f.std())
    if size <= 1e-12 * np.abs(f).max():
        mean = float(target.mean())
        return 0.0, float(np.log(mean / (1 - mean)))
    design = np.column_stack([(f - centre) / size, np.ones(len(f))])
    a, b = _newton(design, target)
    return a / size, b - a * centre / size


def _newton(design: Floats, target: Floats) -> tuple[float, float]:
    """The coefficients of least cross-entropy; steps are halved until it does not grow."""
    w = np.zeros(2)
    for _ in range(_STEPS):
        p, loss = expit(design @ w), _loss(design @ w, target)
        slope = design.T @ (p - target)
        step = np.linalg.solve(design.T @ (design * (p * (1 - p))[:, None]), slope)
        if slope @ step <= _LAST * loss:  # so near that the next step, of quadratic convergence, is exact
            w -= step
            break
        while _loss(design @ (w - step), target) > loss:
            step /= 2
        w -= step
    return float(w[0]), float(w[1])


def _loss(z: Floats, target: Floats) -> float:
    return float(np.logaddexp(0.0, z).sum() - target @ z)
