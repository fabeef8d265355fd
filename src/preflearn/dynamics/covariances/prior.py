"""The covariances of a fit: which one each feature has, its state-space model, whether lengths make sense."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping

import numpy as np

from preflearn.checks import Floats, Ids, shown
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.state_space import StateSpace

REST = "*"  # stands for all features that a mapping of covariances does not name
MOST_LENGTHS = 1000  # in the span of the data: one more and most scores forget between two matches
MOST_SPANS = 100  # in a length: one more and a constant would do


def by_name(covariance: Covariance | Mapping[Hashable, Covariance]) -> dict[Hashable, Covariance]:
    """Covariances by feature; one for all features is that of `REST`."""
    return dict(covariance) if isinstance(covariance, Mapping) else {REST: covariance}


class Prior:
    """The covariances of a fit, and their state-space models."""

    def __init__(self, covariance: Covariance | Mapping[Hashable, Covariance]) -> None:
        self.one = not isinstance(covariance, Mapping)
        self.covariances = by_name(covariance)
        places: dict[Covariance, int] = {}
        self._place = {name: places.setdefault(k, len(places)) for name, k in self.covariances.items()}
        self.spaces: list[StateSpace] = [k.state_space() for k in places]

    def of(self, names: tuple[Hashable, ...]) -> Ids:
        """Which of the models features have."""
        rest = self._place.get(REST, -1)
        found = np.array([self._place.get(name, rest) for name in names], dtype=np.int64)
        if -1 in found:
            raise ValueError(
                f"the feature {shown(names[found.argmin()])} has no covariance; expected one for each "
                f"feature, or one for {REST!r}, all others"
            )
        return found


def warn_of_lengths(covariance: Covariance | Mapping[Hashable, Covariance], time: Floats) -> None:
    """Warn of the first length scale or period that is absurd for the span of these times.

    Parameters
    ----------
    covariance : Covariance or mapping of them
    time : ndarray of shape (N,)
        Ascending.

    Warns
    -----
    UserWarning
        If the span is more than 1000 lengths, or less than a hundredth of one. Times that are all equal have
        no span, and nothing is said.
    """
    span = float(time[-1] - time[0])
    if span == 0:
        return
    leaves = (leaf for k in by_name(covariance).values() for leaf in k.leaves())
    for name, length in (found for leaf in leaves for found in leaf.lengths().items()):
        if not span / MOST_LENGTHS <= length <= span * MOST_SPANS:
            how = "short" if length < span else "long"
            warnings.warn(
                f"the {name} {length:g} is very {how} for data that span {span:g}, from {time[0]:g} to "
                f"{time[-1]:g}; expected one between {span / MOST_LENGTHS:.3g} and {span * MOST_SPANS:.3g}. "
                "Both are in the unit of Matches.time: days, where from_frame read dates",
                UserWarning,
                stacklevel=3,
            )
            return
