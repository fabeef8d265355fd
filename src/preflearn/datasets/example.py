"""The example of four items that each chapter works by hand."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import require
from preflearn.pairs import Pairs

_ITEMS = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0], [4.0, 1.0]])
_INDEX = [[1, 0], [2, 1], [3, 2], [3, 0]]


class FourItems(NamedTuple):
    """What `four_items` returns.

    Attributes
    ----------
    pairs : Pairs
        Four comparisons of four items, whose graph is one cycle.
    y : ndarray of shape (4,)
        Three preferences for the first item, and a tie.
    """

    pairs: Pairs
    y: NDArray[np.int8]


def four_items(n_features: int = 1) -> FourItems:
    """Four items and four comparisons, small enough for a hand.

    Item 2 beats item 1, item 4 beats items 3 and 1, and items 3 and 2 tie (in code, items count from 0). By
    their first feature, 0, 1, 2 and 4, the tied items differ as much as the first preference does; with the
    second one, 0, 1, 0 and 1, a line tells the preferences from the tie.

    Parameters
    ----------
    n_features : {1, 2}

    Raises
    ------
    ValueError
        On another number of features.

    Examples
    --------
    >>> pairs, y = four_items()
    >>> pairs.incidence().toarray().astype(int).tolist()
    [[-1, 1, 0, 0], [0, -1, 1, 0], [0, 0, -1, 1], [-1, 0, 0, 1]]
    >>> pairs.differences().ravel().tolist(), y.tolist()
    ([1.0, 1.0, 2.0, 4.0], [1, 0, 1, 1])
    """
    require(n_features in (1, 2), n_features, "n_features", "1 or 2")
    return FourItems(Pairs(_ITEMS[:, :n_features], _INDEX), np.array([1, 0, 1, 1], dtype=np.int8))
