"""The one yardstick for comparative sentences: what "better" and "similar" mean in the ledger.

It was fixed before any number was looked at; chapter 01 states it in words.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import NamedTuple

BAND = 0.02
"""Two values of an error rate or of an AUC that differ by no more than this count as similar."""


class Lead(NamedTuple):
    """How far one method is ahead of another: the mean of paired differences, and its standard error.

    `better` and `similar` can both be true, of a small difference that is known well; where none of
    `better`, `worse` and `similar` is, the data do not decide.
    """

    mean: float
    error: float
    n: int

    @property
    def better(self) -> bool:
        """Ahead by more than two standard errors."""
        return self.mean > 2 * self.error

    @property
    def worse(self) -> bool:
        """Behind by more than two standard errors."""
        return self.mean < -2 * self.error

    @property
    def similar(self) -> bool:
        """The interval of two standard errors about the mean lies within `BAND` of zero."""
        return abs(self.mean) + 2 * self.error <= BAND

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {self.error:.4f}"


def lead(ours: Iterable[float], theirs: Iterable[float]) -> Lead:
    """The lead of one method over another on the same data sets.

    Parameters
    ----------
    ours, theirs : iterable of float
        One value a data set, paired; larger is better, so take minus an error.

    Returns
    -------
    Lead

    Raises
    ------
    ValueError
        If the values are not finite, not paired, or fewer than two pairs.

    Examples
    --------
    >>> compared = lead([0.80, 0.82, 0.84], [0.80, 0.81, 0.82])
    >>> str(compared), compared.better, compared.similar
    ('0.0100 ± 0.0058', False, False)
    """
    from preflearn.checks import check_array, require  # late, since the command's help comes without

    for name, values in (("ours", ours), ("theirs", theirs)):
        require(getattr(values, "ndim", 1) > 0, values, name, "values, one a data set")
    first = check_array(list(ours), "ours", ("n",), "one value a data set")
    second = check_array(list(theirs), "theirs", (len(first),), "as many values as ours")
    require(len(first) > 1, len(first), "the number of data sets", "at least 2")
    differences = (first - second).tolist()
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return Lead(statistics.fmean(differences), error, len(differences))
