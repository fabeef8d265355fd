"""The priors of a fit: the covariance, model and mean of each feature, and whether
units make sense."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from preflearn.core.validation import Floats, Ids, require, warn_user
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.elementary import Constant
from preflearn.dynamics.covariances.state_space import StateSpace
from preflearn.matches import (
    PERFORMANCE,
    Matches,
    TimeWarning,
    is_performance,
    normalize_names,
)

# of a performance, so that the noise of a difference of two is that of Probit
_ERROR = Constant(0.5)
REST = "*"  # stands for all features that a mapping of covariances does not name
# in the span of the data: one more and most scores forget between two matches
MOST_LENGTHS = 1000
MOST_SPANS = 100  # in a length: one more and a constant would do
_MIN_GAPS = 30  # between the matches of players: fewer have no typical length
_UNIT = "the unit of Matches.time: days, where from_frame read dates"
# times that read as years, in which lengths and rates are rarely meant so
_YEARS = 1800, 2200
_SPANS_OF_YEARS = 10  # then
# deviations: at the first match; over all matches, in those of noise
_MAX_START_GROWTH = 2.0
_MAX_MOVE = 100.0
_MIN_MOVE = 0.15


def by_name(
    covariance: Covariance | Mapping[Hashable, Covariance],
) -> dict[Hashable, Covariance]:
    """Covariances by feature; one for all features is that of `REST`."""
    if isinstance(covariance, Mapping):
        return dict(covariance)
    return {REST: covariance}


class Prior:
    """The covariances of a fit, their state-space models, and the means that are not 0."""

    def __init__(
        self,
        covariance: Covariance | Mapping[Hashable, Covariance],
        mean: Mapping[Hashable, float] | None = None,
    ) -> None:
        self.mean = {name: float(value) for name, value in (mean or {}).items()}
        self._means = normalize_names(self.mean)
        self.is_single = not isinstance(covariance, Mapping)
        self.covariances = by_name(covariance)
        numbers: dict[Covariance, int] = {}
        kinds = {PERFORMANCE: _ERROR, **self.covariances}
        self._space = {
            name: numbers.setdefault(k, len(numbers)) for name, k in kinds.items()
        }
        self.spaces: list[StateSpace] = [k.state_space() for k in numbers]

    def space_index(self, names: tuple[Hashable, ...]) -> Ids:
        """Return the number of each feature's model in `spaces`; errors of performances
        have one without being named."""
        rest = self._space.get(REST, -1)
        found = [
            self._space.get(PERFORMANCE if is_performance(name) else name, rest)
            for name in names
        ]
        missing = [name for name, k in zip(names, found, strict=True) if k < 0]
        expected = f"none: one for each feature, or one for {REST!r}, all others"
        require(
            not missing,
            missing,
            "the list of features that have no covariance",
            expected,
        )
        return np.array(found, dtype=np.int64)

    def means(self, names: tuple[Hashable, ...]) -> Floats:
        """Prior means of features, shape (M,)."""
        return np.array([self._means.get(name, 0.0) for name in names])

    def differences(self, matches: Matches) -> Floats:
        """Prior means of the score differences x·s, shape (N,)."""
        return matches.design @ self.means(matches.features)


def warn_about_lengths(
    covariance: Covariance | Mapping[Hashable, Covariance], time: Floats
) -> None:
    """Warn of the first length scale or period that is absurd for the span of these
    times.

    Parameters
    ----------
    covariance : Covariance or mapping of them
    time : ndarray of shape (N,)
        Ascending.

    Warns
    -----
    TimeWarning
        If the span is more than 1000 lengths, or less than a hundredth of one, a tenth
        where the times read as years. Times that are all equal have no span, and
        nothing is said.
    """
    span = float(time[-1] - time[0])
    if span == 0:
        return
    most = span * (_SPANS_OF_YEARS if _are_years(time) else MOST_SPANS)
    leaves = (leaf for k in by_name(covariance).values() for leaf in k.leaves())
    for name, length in (found for leaf in leaves for found in leaf.lengths().items()):
        if not span / MOST_LENGTHS <= length <= most:
            how = "short" if length < span else "long"
            text = f"the {name} {length:g} is very {how} for data that span {span:g}, from {time[0]:g} to "
            text += f"{time[-1]:g}; expected one between {span / MOST_LENGTHS:.3g} and {most:.3g}. "
            warn_user(f"{text}Both are in {_UNIT}", TimeWarning)
            return


def warn_about_gaps(
    covariance: Covariance | Mapping[Hashable, Covariance], matches: Matches
) -> None:
    """Warn of the first length scale that is below the mean time between two matches of
    a player.

    Then the score of a match hardly counts in the next one, as where dates are days and
    the length scale was meant in years.

    Parameters
    ----------
    covariance : Covariance or mapping of them
        Each is compared with the matches of the features that have it.
    matches : Matches

    Warns
    -----
    TimeWarning
        If there are at least 30 pairs of consecutive matches of a player.
    """
    by_feature = matches.design.tocsc()
    counts = np.diff(by_feature.indptr)
    n_gaps = np.maximum(counts - 1, 0)
    rows = by_feature.indices
    spans = np.zeros(len(counts))
    seen = np.flatnonzero(counts)
    last = rows[by_feature.indptr[seen + 1] - 1]
    spans[seen] = matches.time[last] - matches.time[rows[by_feature.indptr[seen]]]
    covariances = by_name(covariance)
    owner = [name if name in covariances else REST for name in matches.features]
    for name, k in covariances.items():
        mine = np.array([found == name for found in owner])
        total = int(n_gaps[mine].sum())
        if total < _MIN_GAPS:
            continue
        gap = float(spans[mine].sum()) / total
        lengths = (leaf.lengths().get("lengthscale", np.inf) for leaf in k.leaves())
        shortest = min(lengths, default=np.inf)
        if shortest < gap:
            text = f"the lengthscale {shortest:g} is shorter than the time between two matches of a player, "
            text += f"{gap:.3g} on average, so that a match says little about the next; expected a longer "
            warn_user(f"{text}one. Both are in {_UNIT}", TimeWarning)
            return


def warn_about_units(
    covariance: Covariance | Mapping[Hashable, Covariance], time: Floats, noise: float
) -> None:
    """Warn of lengths, and of the first covariance whose origin or rates do not suit
    these times.

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
        As `warn_about_lengths`; if at the first match most of the standard deviation comes
        from the distance to an origin farther away than the matches span, and it is
        above that of the noise; if it is 0, since the only origin is each feature's
        first match; if from the first match to the last a score moves by more than 100
        times the noise, as where times are milliseconds; or by less than 0.15 of it,
        where times read as years and rates may be by the day.
    """
    warn_about_lengths(covariance, time)
    first = float(time[0])
    span = float(time[-1] - time[0])
    for k in by_name(covariance).values():
        origins = [leaf.to_dict().get("origin", "first") for leaf in k.leaves()]
        if not any("origin" in leaf.to_dict() for leaf in k.leaves()):
            continue
        pinned = all(origin == "first" for origin in origins)
        apart = max(
            [first - origin for origin in origins if origin != "first"], default=0.0
        )
        near = k.mapped(
            lambda leaf: (
                leaf.changed(origin=first) if "origin" in leaf.to_dict() else leaf
            )
        )
        try:
            (before, now), there = (
                near.gram([first, time[-1]]),
                float(k.gram([first])[0, 0]) ** 0.5,
            )
        except ValueError:  # before an origin, or it overflows: the fit will say so
            continue
        moved = float(before[0] - 2 * before[1] + now[1]) ** 0.5
        if pinned and before[0] == 0:
            text = f"by {k!r} each score is 0 at the player's first match, also a newcomer's, with standard "
            text += "deviation 0; expected a level besides: Constant(variance) + ..., or an earlier origin"
        elif apart > span and there > max(
            noise, _MAX_START_GROWTH * float(before[0]) ** 0.5
        ):
            text = f"the first match, at {first:g}, is {apart:g} after the origin of {k!r}, longer than all "
            text += f"matches span ({span:g}), and so scores begin with standard deviation {there:.3g}; "
            text += "expected origin='first', or a time just before the first match"
        elif not (text := moves(repr(k), moved, time, noise)):
            continue
        warn_user(text, TimeWarning)
        return


def warn_about_walks(what: str, variance: float, time: Floats, noise: float) -> None:
    """Warn of a `variance` a unit of time that does not suit these times."""
    if variance > 0 and (
        text := moves(what, (variance * (time[-1] - time[0])) ** 0.5, time, noise)
    ):
        warn_user(text, TimeWarning)


def moves(what: str, moved: float, time: Floats, noise: float) -> str:
    """A message where scores move much more than noise, or, by times that read as
    years, much less; or ""."""
    if moved <= _MAX_MOVE * noise and not (
        time[-1] > time[0] and _are_years(time) and moved < _MIN_MOVE * noise
    ):
        return ""
    text = f"by {what} a score moves by {moved:.2g} from the first match to the last, at {time[0]:g} to "
    text += f"{time[-1]:g}, where noise is {noise:.2g}; expected rates in {_UNIT}. pandas.to_datetime makes "
    return (
        text
        + "dates of milliseconds with unit='ms', and of years as texts with format='%Y'"
    )


def _are_years(time: Floats) -> bool:
    return bool(_YEARS[0] <= time[0] and time[-1] <= _YEARS[1])
