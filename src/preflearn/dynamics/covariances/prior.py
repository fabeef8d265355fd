"""Prior of a fit: covariances, state-space models, means, and checks of units."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from preflearn.core.validation import Floats, Ids, short_repr, warn_user
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

# error of a performance; the difference of two errors has the noise of Probit
_ERROR = Constant(0.5)
REST = "*"  # key of all features that a mapping of covariances does not name
# Largest number of length scales in the span of the data: with more, most scores are
# independent from match to match.

MOST_LENGTHS = 1000
# Longest length scale in time spans. A longer one gives a nearly constant score.
MOST_SPANS = 100
_MIN_GAPS = 30  # times between matches of one player: fewer have no typical length
_UNIT = "the unit of Matches.time, which is days if from_frame read dates"
# Times in this range look like years, while lengths and rates are often in days.
_YEARS = 1800, 2200
_SPANS_OF_YEARS = 10  # replaces MOST_SPANS for times that look like years
# largest growth of the standard deviation between an origin and the first match
_MAX_START_GROWTH = 2.0
# standard deviation of a score's change over all matches, in units of that of the noise
_MAX_MOVE = 100.0
_MIN_MOVE = 0.15


def by_name(
    covariance: Covariance | Mapping[Hashable, Covariance],
) -> dict[Hashable, Covariance]:
    """Covariances by feature name; a single covariance has the key `REST`."""
    if isinstance(covariance, Mapping):
        return dict(covariance)
    return {REST: covariance}


class Prior:
    """Covariances of a fit, their state-space models, and the nonzero prior means."""

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
        """Return the number in `spaces` of each feature's state-space model.

        Errors of performances have a model without being named.
        """
        rest = self._space.get(REST, -1)
        found = [
            self._space.get(PERFORMANCE if is_performance(name) else name, rest)
            for name in names
        ]
        missing = [name for name, k in zip(names, found, strict=True) if k < 0]
        if missing:
            raise ValueError(
                f"covariance has no entry for {len(missing)} of the features, among them "
                f"{short_repr(missing[0])}; add one, or an entry {REST!r} for all other features"
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
    """Warn of the first length scale or period that does not suit the time span.

    Parameters
    ----------
    covariance : Covariance or mapping of them
    time : ndarray of shape (N,)
        Times of the matches, ascending.

    Warns
    -----
    TimeWarning
        If the time span is more than 1000 times a length scale or period, or less than
        a hundredth of it (a tenth if the times look like years). If all times are
        equal, no warning is given.
    """
    span = float(time[-1] - time[0])
    if span == 0:
        return
    most = span * (_SPANS_OF_YEARS if _are_years(time) else MOST_SPANS)
    leaves = (leaf for k in by_name(covariance).values() for leaf in k.leaves())
    for name, length in (found for leaf in leaves for found in leaf.lengths().items()):
        if not span / MOST_LENGTHS <= length <= most:
            how = "short" if length < span else "long"
            text = (
                f"{name}={length:g} is very {how} for matches from time {time[0]:g} to "
                f"{time[-1]:g}, a span of {span:g}; choose a value between "
                f"{span / MOST_LENGTHS:.3g} and {most:.3g}. Lengths are in {_UNIT}"
            )
            warn_user(text, TimeWarning)
            return


def warn_about_gaps(
    covariance: Covariance | Mapping[Hashable, Covariance], matches: Matches
) -> None:
    """Warn of the first length scale below the mean time between matches of a player.

    With such a length scale a match has little effect on the forecast of the next one.
    A possible cause is a length scale in years while the times are days.

    Parameters
    ----------
    covariance : Covariance or mapping of them
        Covariances; each is compared with the matches of its features.
    matches : Matches

    Warns
    -----
    TimeWarning
        If a length scale is too short, and there are at least 30 pairs of consecutive
        matches of a player.
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
            text = (
                f"lengthscale={shortest:g} is shorter than the mean time between two "
                f"matches of a player, {gap:.3g}, so a match has little effect on the "
                f"forecast of the next one; choose a longer lengthscale. It is in {_UNIT}"
            )
            warn_user(text, TimeWarning)
            return


def warn_about_units(
    covariance: Covariance | Mapping[Hashable, Covariance], time: Floats, noise: float
) -> None:
    """Warn of length scales, origins, and rates that do not suit the times.

    Parameters
    ----------
    covariance : Covariance or mapping of them
    time : ndarray of shape (N,)
        Times of the matches, ascending.
    noise : float
        Standard deviation of the noise of outcomes, in units of scores.

    Warns
    -----
    TimeWarning
        In the cases of `warn_about_lengths`, and if a covariance has one of these
        problems: (1) At the first match, scores have a larger standard deviation than
        the noise, mostly due to the time since an origin that is further away than the
        time span of the matches. (2) Every score is 0 at the player's first match,
        since all origins are "first". (3) From the first match to the last, a score
        changes by more than 100 times the noise, for example if times are milliseconds.
        (4) A score changes by less than 0.15 times the noise while times look like
        years, so that rates may be per day.
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
        except (
            ValueError
        ):  # times before an origin, or overflow: the fit raises an error
            continue
        moved = float(before[0] - 2 * before[1] + now[1]) ** 0.5
        if pinned and before[0] == 0:
            text = (
                f"{k!r} fixes each score at exactly 0 at the player's first match, so new "
                "players have no uncertainty; add Constant(variance) to it, or choose an "
                "earlier origin"
            )
        elif apart > span and there > max(
            noise, _MAX_START_GROWTH * float(before[0]) ** 0.5
        ):
            text = (
                f"the origin of {k!r} is {apart:g} before the first match, at {first:g}, "
                f"which is more than the time span of the matches ({span:g}). Scores "
                f"therefore start with standard deviation {there:.3g}; choose "
                "origin='first', or a time just before the first match"
            )
        elif not (text := describe_unlikely_change(repr(k), moved, time, noise)):
            continue
        warn_user(text, TimeWarning)
        return


def warn_about_walks(
    argument: str, variance: float, time: Floats, noise: float
) -> None:
    """Warn of a `variance` per unit of time that does not suit the times."""
    if variance > 0 and (
        text := describe_unlikely_change(
            argument, (variance * (time[-1] - time[0])) ** 0.5, time, noise
        )
    ):
        warn_user(text, TimeWarning)


def describe_unlikely_change(
    source: str, moved: float, time: Floats, noise: float
) -> str:
    """Describe a score change much larger or smaller than the noise; else return "".

    `moved` is the standard deviation of the change of a score over all matches. Changes
    that are too small are only reported if the times look like years.
    """
    if moved <= _MAX_MOVE * noise and not (
        time[-1] > time[0] and _are_years(time) and moved < _MIN_MOVE * noise
    ):
        return ""
    return (
        f"with {source}, a score changes by about {moved:.2g} between the first match, at "
        f"{time[0]:g}, and the last, at {time[-1]:g}, while the noise of an outcome is "
        f"{noise:.2g}; rates must be in {_UNIT}. To convert times to dates, use "
        "pandas.to_datetime, with unit='ms' for milliseconds or format='%Y' for years as "
        "strings"
    )


def _are_years(time: Floats) -> bool:
    return bool(_YEARS[0] <= time[0] and time[-1] <= _YEARS[1])
