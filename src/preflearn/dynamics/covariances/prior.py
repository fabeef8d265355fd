"""The priors of a fit: the covariance, model and mean of each feature, and whether units make sense."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping

import numpy as np

from preflearn.checks import Floats, Ids, shown
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.elementary import Constant
from preflearn.dynamics.covariances.state_space import StateSpace
from preflearn.matches import PERFORMANCE, TimeWarning

_ERROR = Constant(0.5)  # of a performance, so that the noise of a difference of two is that of Probit
REST = "*"  # stands for all features that a mapping of covariances does not name
MOST_LENGTHS = 1000  # in the span of the data: one more and most scores forget between two matches
MOST_SPANS = 100  # in a length: one more and a constant would do
_UNIT = "the unit of Matches.time: days, where from_frame read dates"
_YEARS = 1800, 2200  # times that read as years, in which lengths and rates are rarely meant so
_SPANS_OF_YEARS = 10  # then
_FAR, _WILD, _IDLE = 2.0, 100.0, 0.15  # deviations: at the first match; over all matches, in those of noise


def by_name(covariance: Covariance | Mapping[Hashable, Covariance]) -> dict[Hashable, Covariance]:
    """Covariances by feature; one for all features is that of `REST`."""
    return dict(covariance) if isinstance(covariance, Mapping) else {REST: covariance}


class Prior:
    """The covariances of a fit, their state-space models, and the means that are not 0."""

    def __init__(
        self,
        covariance: Covariance | Mapping[Hashable, Covariance],
        mean: Mapping[Hashable, float] | None = None,
    ) -> None:
        self.mean = {name: float(value) for name, value in (mean or {}).items()}
        self.one = not isinstance(covariance, Mapping)
        self.covariances = by_name(covariance)
        places: dict[Covariance, int] = {}
        kinds = {PERFORMANCE: _ERROR, **self.covariances}
        self._place = {name: places.setdefault(k, len(places)) for name, k in kinds.items()}
        self.spaces: list[StateSpace] = [k.state_space() for k in places]

    def of(self, names: tuple[Hashable, ...]) -> Ids:
        """Which of the models features have; errors of performances have one without being named."""
        place, rest, error = self._place, self._place.get(REST, -1), self._place[PERFORMANCE]
        own = (isinstance(name, tuple) and len(name) == 3 and name[0] == PERFORMANCE for name in names)
        found = [place.get(name, error if one else rest) for name, one in zip(names, own, strict=True)]
        if -1 in found:
            raise ValueError(
                f"the feature {shown(names[found.index(-1)])} has no covariance; expected one for each "
                f"feature, or one for {REST!r}, all others"
            )
        return np.array(found, dtype=np.int64)

    def means(self, names: tuple[Hashable, ...]) -> Floats:
        """Of features, shape (M,)."""
        return np.array([self.mean.get(name, 0.0) for name in names])


def warn_of_lengths(covariance: Covariance | Mapping[Hashable, Covariance], time: Floats) -> None:
    """Warn of the first length scale or period that is absurd for the span of these times.

    Parameters
    ----------
    covariance : Covariance or mapping of them
    time : ndarray of shape (N,)
        Ascending.

    Warns
    -----
    TimeWarning
        If the span is more than 1000 lengths, or less than a hundredth of one, a tenth where the times read
        as years. Times that are all equal have no span, and nothing is said.
    """
    span = float(time[-1] - time[0])
    if span == 0:
        return
    most = span * (_SPANS_OF_YEARS if _are_years(time) else MOST_SPANS)
    leaves = (leaf for k in by_name(covariance).values() for leaf in k.leaves())
    for name, length in (found for leaf in leaves for found in leaf.lengths().items()):
        if not span / MOST_LENGTHS <= length <= most:
            how = "short" if length < span else "long"
            warnings.warn(
                f"the {name} {length:g} is very {how} for data that span {span:g}, from {time[0]:g} to "
                f"{time[-1]:g}; expected one between {span / MOST_LENGTHS:.3g} and {most:.3g}. "
                f"Both are in {_UNIT}",
                TimeWarning,
                stacklevel=3,
            )
            return


def warn_of_origins(
    covariance: Covariance | Mapping[Hashable, Covariance], time: Floats, noise: float
) -> None:
    """Warn of the first covariance whose origin or rates do not suit these times.

    Parameters
    ----------
    covariance : Covariance or mapping of them
    time : ndarray of shape (N,)
        Ascending.
    noise : float
        The size of differences of scores that outcomes can tell apart.

    Warns
    -----
    TimeWarning
        If at the first match most of the standard deviation comes from the distance to an origin farther
        away than the matches span, and it is above that of the noise; if from the first match to the last a
        score moves by more than 100 times the noise, as where times are milliseconds; or by less than 0.15
        of it, where times read as years and rates may be by the day.
    """
    first, span = float(time[0]), float(time[-1] - time[0])
    for k in by_name(covariance).values():
        origins = [leaf.describe().get("origin", "first") for leaf in k.leaves()]
        if not any("origin" in leaf.describe() for leaf in k.leaves()):
            continue
        apart = max([first - origin for origin in origins if origin != "first"], default=0.0)
        near = k.mapped(lambda leaf: leaf.changed(origin=first) if "origin" in leaf.describe() else leaf)
        try:
            (before, now), there = near.gram([first, time[-1]]), float(k.gram([first])[0, 0]) ** 0.5
        except ValueError:  # before an origin, or it overflows: the fit will say so
            continue
        moved = float(before[0] - 2 * before[1] + now[1]) ** 0.5
        if apart > span and there > max(noise, _FAR * float(before[0]) ** 0.5):
            said = f"the first match, at {first:g}, is {apart:g} after the origin of {k!r}, longer than all "
            said += f"matches span ({span:g}), and so scores begin with standard deviation {there:.3g}"
            expected = "origin='first', or a time just before the first match"
        elif moved > _WILD * noise or (span > 0 and _are_years(time) and moved < _IDLE * noise):
            said = f"by {k!r} a score moves by {moved:.2g} from the first match to the last, at {first:g} to "
            said += f"{time[-1]:g}, where noise is {noise:.2g}"
            expected = f"variances in {_UNIT} (pandas.to_datetime makes dates of milliseconds or years)"
        else:
            continue
        warnings.warn(f"{said}; expected {expected}", TimeWarning, stacklevel=3)
        return


def _are_years(time: Floats) -> bool:
    return bool(_YEARS[0] <= time[0] and time[-1] <= _YEARS[1])
