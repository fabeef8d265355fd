"""Weights of a machine without bias at some values of lambda, by the engine of the paths."""

from __future__ import annotations

import numpy as np

from preflearn.checks import Floats
from preflearn.ground.gram import Gram
from preflearn.path.events import BOUND
from preflearn.path.homotopy import Homotopy


def hinge_weights(gram: Gram, lams: Floats) -> Floats:
    """Dual weights of the machine of hinges without bias, for each of some lambda = 1/C.

    Solves, with Q the Gram matrix of the rows d_i::

        minimise sum_i max(0, 1 - u·d_i) + lambda/2 |u|^2,    u = 1/lambda sum_i alpha_i d_i,

    by following alpha from the lambda above which all weights are 1.

    Parameters
    ----------
    gram : Gram
        Of m rows.
    lams : ndarray of shape (k,)
        Decreasing, positive.

    Returns
    -------
    alphas : ndarray of shape (k, m)
        In [0, 1]; rows that rounding keeps the path from reaching are NaN.
    """
    one = np.ones(len(gram.diagonal()))
    top, last = float(gram.times(one).max()), float(lams[-1])
    alphas = np.full((len(lams), len(one)), np.nan)
    alphas[lams >= top] = 1.0
    if last >= top:
        return alphas
    state = Homotopy(
        gram, one, one.copy(), top, elbow=np.zeros(0, dtype=np.int64), left=top - last, spare=last
    )
    for _ in range(1000 + 100 * len(one)):
        stretch = state.advance()
        here = np.flatnonzero((lams <= stretch.margins[0]) & (lams >= stretch.margins[-1]) & (lams < top))
        for k in here:
            event = max(int(np.searchsorted(-stretch.margins, -lams[k])) - 1, 0)
            alphas[k] = stretch.start
            passed = stretch.margins[event] - lams[k]
            moved = (
                stretch.alphas[event] + passed * stretch.moves[event] if passed > 0 else stretch.alphas[event]
            )
            alphas[k, stretch.ids] = np.clip(moved, 0.0, 1.0)
        if state.done or state.lost:
            break
    return alphas


def box_residual(gram: Gram, alpha: Floats, lam: float) -> float:
    """The largest violation of the optimality conditions of `hinge_weights`, over the largest F (or NaN)."""
    F = gram.times(alpha)
    wrong = np.where(alpha <= BOUND, lam - F, np.where(alpha >= 1 - BOUND, F - lam, np.abs(F - lam)))
    return float(max(0.0, wrong.max()) / max(lam, np.abs(F).max()))
