"""A warning for those who mixed up units of time: days, where length scales are thought of in years."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from preflearn.checks import Floats
from preflearn.dynamics.covariances.composite import Covariance

_MOST_LENGTHS = 1000  # in the span of the data: one more and most scores forget between two matches
_MOST_SPANS = 100  # in a length: one more and a constant would do


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
    for k in covariance.values() if isinstance(covariance, Mapping) else [covariance]:
        for name, length in _lengths(k.describe()):
            if not span / _MOST_LENGTHS <= length <= span * _MOST_SPANS:
                how = "short" if length < span else "long"
                warnings.warn(
                    f"the {name} {length:g} is very {how} for data that span {span:g}, from {time[0]:g} to "
                    f"{time[-1]:g}; expected one between {span / _MOST_LENGTHS:.3g} and "
                    f"{span * _MOST_SPANS:.3g}. Both are in the unit of "
                    "Matches.time: days, where from_frame read dates",
                    UserWarning,
                    stacklevel=3,
                )
                return


def _lengths(described: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Those that are times, by name; the length scale of Periodic is a pure number."""
    for name in ("period",) if "period" in described else ("lengthscale",):
        if name in described:
            yield name, float(described[name])
    for part in described.get("parts", []):
        yield from _lengths(part)
