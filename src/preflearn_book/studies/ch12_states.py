"""The smallest state-space model of a covariance function (section 3.2 of
[Maystre2019]_).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
.. [HoKalman1966] B. L. Ho, R. E. Kalman, "Effective construction of linear
   state-variable models from input/output functions", Regelungstechnik 14, 1966.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from preflearn.core.validation import Floats
from preflearn.dynamics.covariances.composite import Covariance

_N_TIMES = 24
_TOLERANCE = 1e-11  # singular values below this fraction of the largest count as 0


class StateSize(NamedTuple):
    """Result of `least_state_size`."""

    # smallest K if A, Q, and h may depend on the times
    by_times: int
    # smallest K if A depends on the gap only; None if there is no such K
    by_gap: int | None
    noise_by_gap: bool | None  # whether Q may also depend on the gap only, with this K


def least_state_size(
    covariance: Covariance,
    *,
    start: float = 0.0,
    step: float = 1.0,
) -> StateSize:
    """The smallest size of a state-space model that has a given covariance function.

    The function evaluates k on the grid start, start + step, ... only. The future of the
    score depends on its past only through the state at the present time t. This has
    three consequences:

    * The covariance matrix between the scores up to t and the scores from t on has at
      most rank K (section 3.2 of [Maystre2019]_). A model of this size exists if A, Q,
      and h may depend on the times.
    * If A depends on the gap only, k(t - a, t + b) = h' A(b) c(t, a). Then the rows of
      covariances between the past and a time b after t, for *all* t, are in one
      space of K dimensions [HoKalman1966]_.
    * If Q also depends on the gap only, k(t + a, t + b) - k(t' + a, t' + b) =
      h' A(a) (P(t) - P(t')) A(b)' h is in this space, too.

    Parameters
    ----------
    covariance : Covariance
        Covariance function. Its length scales should be of the order of the step and the
        span of the grid, and not almost equal, because very similar terms count as one.
    start, step : float
        Start and step of the grid of 24 times, in units of time. Ranks from 12 on count
        as infinite.

    Returns
    -------
    sizes : StateSize
        `by_times` (int), `by_gap` (int or None), `noise_by_gap` (bool, or None without
        a size by gap).

    Examples
    --------
    >>> from preflearn.dynamics import Linear, PiecewiseConstant
    >>> least_state_size(Linear(origin=0.0))
    StateSize(by_times=1, by_gap=2, noise_by_gap=True)
    >>> least_state_size(PiecewiseConstant(boundaries=(12.5,)))
    StateSize(by_times=1, by_gap=None, noise_by_gap=None)
    """
    K = covariance.gram(start + step * np.arange(_N_TIMES))
    by_times = max(_rank(K[: now + 1, now:]) for now in range(_N_TIMES))
    ahead = _N_TIMES // 2
    presents = range(_N_TIMES - ahead + 1)
    rows = [K[: now + 1, now : now + ahead] for now in presents]
    by_gap = _rank(np.vstack(rows))
    if by_gap == ahead:
        return StateSize(by_times, None, None)
    changes = [
        K[now : now + ahead, now : now + ahead] - K[:ahead, :ahead] for now in presents
    ]
    noise_by_gap = _rank(np.vstack(rows + changes)) == by_gap
    return StateSize(by_times, by_gap, noise_by_gap)


def _rank(rows: Floats) -> int:
    return int(np.linalg.matrix_rank(rows, rtol=_TOLERANCE))
