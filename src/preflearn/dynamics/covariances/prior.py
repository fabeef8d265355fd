"""The covariances of a fit: which one each feature has, its state-space model, whether lengths make sense."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Floats, Ids, shown
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.state_space import StateSpace

REST = "*"  # stands for all features that a mapping of covariances does not name
MOST_LENGTHS = 1000  # in the span of the data: one more and most scores forget between two matches
MOST_SPANS = 100  # in a length: one more and a constant would do


class Prior:
    """The covariances of a fit, and their state-space models."""

    def __init__(self, covariance: Covariance | Mapping[Hashable, Covariance]) -> None:
        self.one = not isinstance(covariance, Mapping)
        self.covariances = dict(covariance) if isinstance(covariance, Mapping) else {REST: covariance}
        places: dict[Covariance, int] = {}
        self._place = {name: places.setdefault(k, len(places)) for name, k in self.covariances.items()}
        self.spaces: list[StateSpace] = [k.state_space() for k in places]

    def of(self, names: tuple[Hashable, ...], where: NDArray[np.bool_] | None = None) -> Ids:
        """Which of the models features have, those at `where` only; -1 elsewhere."""
        rest = self._place.get(REST)
        if self.one:
            return np.zeros(len(names), dtype=np.int64)
        wanted = range(len(names)) if where is None else np.flatnonzero(where)
        found = np.full(len(names), -1)
        for k in wanted:
            place = self._place.get(names[k], rest)
            if place is None:
                raise ValueError(
                    f"the feature {shown(names[k])} has no covariance; expected one for each feature, or one "
                    f"for {REST!r}, all others"
                )
            found[k] = place
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
    for k in Prior(covariance).covariances.values():
        for name, length in _lengths(k):
            if not span / MOST_LENGTHS <= length <= span * MOST_SPANS:
                how = "short" if length < span else "long"
                warnings.warn(
                    f"the {name} {length:g} is very {how} for data that span {span:g}, from {time[0]:g} to "
                    f"{time[-1]:g}; expected one between {span / MOST_LENGTHS:.3g} and "
                    f"{span * MOST_SPANS:.3g}. Both are in the unit of "
                    "Matches.time: days, where from_frame read dates",
                    UserWarning,
                    stacklevel=3,
                )
                return


def _lengths(covariance: Covariance) -> Iterator[tuple[str, float]]:
    """All that are times, by name; the length scale of a `Periodic` is a pure number."""
    for part in getattr(covariance, "parts", ()):
        yield from _lengths(part)
    for field in fields(covariance):  # pyright: ignore[reportArgumentType]
        if field.type == "Length":
            yield field.name, getattr(covariance, field.name)
