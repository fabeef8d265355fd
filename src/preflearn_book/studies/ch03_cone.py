"""The distance of the optimum of the LP of section 3.1 of [Venuto2017]_ from that of the
QP, computed from the LP only.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from preflearn.margins import MarginLP
from preflearn.pairs import Pairs

_EQUAL = 1e-9  # A tie with a smaller value is active in both orders.


def cone_distance(lp: MarginLP, pairs: Pairs, y: ArrayLike) -> float:
    """The distance of the LP optimum from the QP optimum; 0 if and only if they coincide.

    The weights w of the LP are those of the QP if and only if
    w = sum c_ij (y_i d_i - t_j) with c >= 0. The sum is over the preferences i and the
    ties t_j = d_j or -d_j that are active at w. This is the stationarity condition of
    eq. 12 of [Venuto2017]_ at w / mu, where all other dual weights must be 0.

    Parameters
    ----------
    lp : MarginLP
        The LP, fitted to these pairs.
    pairs : Pairs
    y : array-like of shape (m,)

    Returns
    -------
    float
        The sine of the angle between w and this cone, in [0, 1].

    Examples
    --------
    >>> pairs = Pairs([[0, 0], [4, 0], [0, 3], [1, 0]], [[1, 0], [2, 0], [3, 0]])
    >>> round(cone_distance(MarginLP().fit(pairs, [1, 1, 0]), pairs, [1, 1, 0]), 6)
    0.0
    """
    d = pairs.differences()[lp.active_]
    label = np.asarray(y)[lp.active_]
    preferences = np.unique(label[label != 0, None] * d[label != 0], axis=0)
    ties = d[label == 0]
    values = ties @ lp.coef_
    active = np.vstack([ties[values >= -_EQUAL], -ties[values <= _EQUAL]])
    generators = preferences[:, None] - np.unique(active, axis=0)
    generators = generators.reshape(-1, len(lp.coef_)) / np.abs(d).max()
    return float(nnls(generators.T, lp.coef_ / np.linalg.norm(lp.coef_))[1])
