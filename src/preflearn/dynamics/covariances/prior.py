"""Which covariance each feature has, and its state-space model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np
from numpy.typing import NDArray

from preflearn.checks import Ids, shown
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.state_space import StateSpace

REST = "*"  # stands for all features that a mapping of covariances does not name


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
