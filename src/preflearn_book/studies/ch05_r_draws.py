"""The test sets of Figure 4 in [Venuto2017]_, drawn again with R's random numbers.

The authors' script of 2018 draws all pairs with the seed 1, for one norm after another,
and then half of each test set among the ties and half among the preferences. R (before
version 3.6) has the Mersenne Twister for uniform numbers, inverts the normal
distribution function, and samples by rounding.

References
----------
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector
   comparison machines", 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from preflearn.core.validation import Floats
from preflearn.datasets import squared_norm
from preflearn.metrics import comparison_loss, threshold

_WORD = 2**32
_STATE_SIZE = 624
_PATTERNS = ("l2", "l1", "linf")  # in the order in which the script draws them
_NORMAL_STEP = 2.0**27  # two uniform numbers make one of higher resolution


class RDraws:
    """R's random numbers after ``set.seed(seed)``.

    Parameters
    ----------
    seed : int
        Seed.
    """

    def __init__(self, seed: int) -> None:
        for _ in range(50):
            seed = self._next_seed(seed)
        words = []
        # The first word is R's position in the state, which is always set to its end.
        for _ in range(1 + _STATE_SIZE):
            seed = self._next_seed(seed)
            words.append(seed)
        self._generator = np.random.MT19937()
        self._generator.state = {
            "bit_generator": "MT19937",
            "state": {"key": np.array(words[1:], dtype=np.uint32), "pos": _STATE_SIZE},
        }

    @staticmethod
    def _next_seed(seed: int) -> int:
        return (69069 * seed + 1) % _WORD

    def uniform(self, size: int, low: float = 0.0, high: float = 1.0) -> Floats:
        """``runif(size, low, high)``."""
        words = self._generator.random_raw(size).astype(float)
        return low + (high - low) * words * 2.3283064365386963e-10

    def normal(self, size: int, scale: float = 1.0) -> Floats:
        """``rnorm(size, sd=scale)``."""
        first, second = self.uniform(2 * size).reshape(size, 2).T
        return scale * ndtri((np.floor(_NORMAL_STEP * first) + second) / _NORMAL_STEP)

    def sample(self, values: Sequence[int] | NDArray, size: int) -> NDArray:
        """``sample(values, size)``, without replacement."""
        left = list(values)
        chosen = []
        for u in self.uniform(size):
            k = int(len(left) * u)
            chosen.append(left[k])
            left[k] = left[-1]
            left.pop()
        return np.array(chosen)


class FigureSet(NamedTuple):
    """Error of the true function on a test set, in percent, and the largest
    coordinate of all items that were drawn for its norm."""

    error: float
    largest: float


def draw_figure_4(n_pairs: int = 25_000, n_test: int = 10_000) -> dict[str, FigureSet]:
    """Draw the test sets of Figure 4.

    Parameters
    ----------
    n_pairs : int
        Number of pairs that are drawn for each norm.
    n_test : int
        Number of test pairs, half of them ties.

    Returns
    -------
    dict of str to FigureSet
    """
    draws = RDraws(1)
    found = {}
    for pattern in _PATTERNS:
        start = draws.uniform(2 * n_pairs, -2, 2).reshape(2, n_pairs).T
        end = start + draws.normal(2 * n_pairs, 0.5).reshape(2, n_pairs).T
        noise = draws.normal(n_pairs, 0.25)
        gain = squared_norm(end, pattern) - squared_norm(start, pattern)
        y = threshold(gain + noise, 1)
        chosen = RDraws(1)  # the script sets the seed again for each norm
        parts = [
            chosen.sample(np.flatnonzero(part), n_test // 2) for part in (y == 0, y)
        ]
        test = np.concatenate(parts)
        error = comparison_loss(y[test], threshold(gain[test], 1))
        found[pattern] = FigureSet(100 * float(error), float(np.abs(end).max()))
    return found
