"""Matches: comparisons with a time, as sparse rows over named features.

See section 2 of [Maystre2019]_.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Set
from itertools import chain
from numbers import Real
from typing import Any, Literal, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from preflearn.core.compilation import njit
from preflearn.core.validation import (
    LARGEST,
    Floats,
    as_array,
    as_floats,
    as_real,
    check_array,
    check_choice,
    check_flag,
    check_selection,
    check_shape,
    raise_if_any,
    require,
    short_repr,
    warn_user,
)
from preflearn.pairs import Incidence

__all__ = ["Matches", "OutcomeWarning", "TimeWarning", "UnseenWarning"]

ADVANTAGE = "advantage"  # name of the feature for the home ground or the first move
PERFORMANCE = "performance"  # performances are features (PERFORMANCE, event, player)
# Factor of performances, which makes the noise of their comparison negligible.
PERFORMANCE_SCALE = 100.0
_UNITS = {
    "s": 1.0,
    "ms": 1e3,
    "us": 1e6,
    "ns": 1e9,
}  # units per second of times since 1970
_MAX_LISTED = 5  # number of unseen names in a message
_MAX_COLUMNS_SHOWN = 20  # number of columns named in a message
_MAX_BARE_WINS = 3  # up to this number of 1s, no warning that 0 may mean a loss
_LABELS = -1, 0, 0.5, 1
# Codes that replace a rank, for players who started and who did not start.
_STARTED_CODES = ("DNF", "DQ", "DSQ", "NC", "EX", "OTL", "RET", "R", "D", "E", "N")
NOT_STARTED_CODES = ("DNS", "DNQ", "DNPQ", "WD", "W", "F")
# pandas' inferred types of columns with dates
_DATE_TYPES = "string", "date", "datetime", "datetime64"


class OutcomeWarning(UserWarning):
    """Warns that outcomes may be misread: 1 and 0 as win and tie, or half points."""


class TimeWarning(UserWarning):
    """Warns that times, or length scales and rates, may have an unintended unit."""


class UnseenWarning(UserWarning):
    """Warns that names in a forecast were not in the training data: new or misspelled."""


class Matches:
    """Matches in time order, with sparse rows for the first opponent minus the second.

    Use this class for comparisons with a time: it is the input of `DynamicComparisons`
    and of the rating systems. `Matches.from_frame` reads a table of matches and
    `Matches.from_rankings` a table of races; call the constructor if you have a design
    matrix. For comparisons of items with features and without a time, use `Pairs`.

    In [Maystre2019]_ the score of an opponent is a linear combination of features (eq.
    2), and the outcome of a match at time t depends on x·s(t) with x = x_first -
    x_second. In the simplest case each feature is a player, and the design is the
    incidence matrix of the comparison graph.

    Parameters
    ----------
    design : sparse array or array-like of shape (N, M)
        Matrix x with one row per match and one column per feature. Each row must have a
        nonzero entry.
    time : array-like of float, shape (N,)
        Times of the matches, ascending; equal times are allowed. You choose the unit,
        and all lengths of time in the package (such as `period` of `Glicko`) are in
        this unit. `from_frame` converts dates to days.
    features : sequence of length M
        Distinct names of the features. A str is the name of a player or a team, except
        "advantage"; a tuple is the name of another feature, such as the interaction of
        two players.

    Attributes
    ----------
    columns : dict or None
        Arguments with which `from_frame` read a DataFrame, so that a model can read the
        next DataFrame in the same way. The entry "dates" says whether its times were
        dates, and "outcomes" lists which of the outcomes 1, 1/2, 0, and -1 it had.

    Raises
    ------
    ValueError
        If a shape is wrong, the matches are empty, or a value is not finite. If the
        arrays of a sparse matrix are inconsistent, or a row has no entries. If a name
        is repeated, or a time is earlier than the time in the previous row.

    Examples
    --------
    >>> matches = Matches([[1, -1, 0], [0, 1, -1]], [0.0, 2.5], ["Ann", "Bob", "Cy"])
    >>> matches
    Matches(2 matches, 3 features, time 0 to 2.5)
    >>> matches.players().tolist()
    [[0, 1], [1, 2]]
    """

    __slots__ = ("columns", "design", "features", "time")

    columns: dict[str, Any] | None
    design: Any  # a csr_array, whose type stubs are incomplete
    time: Floats
    features: tuple[Hashable, ...]

    def __init__(
        self,
        design: ArrayLike | sparse.sparray,
        time: ArrayLike,
        features: Iterable[Hashable],
    ) -> None:
        self.design = _check_design(design)
        self.features = _check_features(features)
        self.columns = None
        n_matches, n_features = self.design.shape
        if len(self.features) != n_features:
            raise ValueError(
                f"features has {len(self.features)} names; expected {n_features}, one per column of design"
            )
        self.time = check_array(time, "time", (n_matches,), "one time per match")
        _check_order(self.time)

    @staticmethod
    def from_frame(
        frame: pd.DataFrame,
        *,
        first: str = "first",
        second: str = "second",
        time: str = "time",
        outcome: str | None = "outcome",
        advantage: str | None = None,
        interactions: bool = False,
        outcomes: Literal["labels", "win-loss"] | None = None,
    ) -> Any:
        """Create matches and their outcomes from the columns of a DataFrame.

        Dates become days: a column of dates and times, or of their ISO strings, is
        converted to the number of days (a float) since 1970-01-01, in UTC if it has a
        time zone. DataFrames that are read one after the other therefore have the same
        time axis. A column of numbers keeps its values and its unit.

        Parameters
        ----------
        frame : DataFrame
            One row per match, sorted by time, as returned by the loaders of
            `preflearn.datasets`.
        first, second : str
            Names of the columns with the opponents: strings, or numbers, which are
            converted to strings. A list or tuple of names is a line-up, whose scores
            add up. A dict of names to positive weights is a weighted line-up.
        time, outcome : str
            Names of the columns with the time and the outcome. Outcomes are 1, 0, and
            -1 (first won, tie, second won), points of the first, or point differences.
            Bools are not accepted, because False would be a tie. If outcome is None,
            the DataFrame is a list of fixtures to forecast.
        advantage : str, optional
            Name of a bool or number column with the advantage (home ground, first
            move) of the first over the second. It becomes the feature "advantage"
            (section 4.2.2).
        interactions : bool
            Whether to add a feature (a, b), a < b, for each two opponents that meet: +1
            if a is first, -1 if b is first. Its score is the s_ij of section 4.2.3 in d
            = s_i - s_j + s_ij. Not available for line-ups.
        outcomes : "labels" or "win-loss", optional
            Meaning of the outcomes. "labels": the outcomes are kept. "win-loss": 1,
            1/2, and 0 mean win, tie, and loss of the first, and become 1, 0, and -1.
            None: the outcomes are read as "win-loss" if they are only 1, 1/2, and 0,
            and as "labels" otherwise, with a warning if another meaning is possible.

        Returns
        -------
        matches : Matches
            Matches whose features are the names, sorted; then "advantage"; then the
            interactions, sorted.
        y : ndarray of shape (N,)
            Outcomes. If outcome is None, only the matches are returned.

        Raises
        ------
        ValueError
            If a column or a value is missing or has the wrong type, the table is empty,
            or the times are not ascending. If some names are floats and others are not,
            a name is "advantage", or a player meets themselves. Row numbers in messages
            start at 0.

        Warns
        -----
        OutcomeWarning
            If the outcomes are only 1 and 0, or only 1, 1/2, and 0, and `outcomes` is
            None.
        TimeWarning
            If all times are numbers that look like dates from 1600 to 2200, such as
            20240131 or 202401, or like seconds, milliseconds, microseconds, or
            nanoseconds since 1970.

        Examples
        --------
        >>> import pandas as pd
        >>> day = ["1970-01-02", "1970-01-04"]
        >>> frame = pd.DataFrame({"first": ["Bob", "Cy"], "second": ["Ann", "Bob"],
        ...                       "time": day, "outcome": [1, -1], "home": [True, False]})
        >>> matches, y = Matches.from_frame(frame, advantage="home")
        >>> matches.features
        ('Ann', 'Bob', 'Cy', 'advantage')
        >>> matches.design.toarray().astype(int).tolist(), matches.time.tolist(), y.tolist()
        ([[-1, 1, 0, 1], [0, -1, 1, 0]], [1.0, 3.0], [1, -1])
        """
        columns = {"first": first, "second": second, "time": time}
        optional = {"outcome": outcome, "advantage": advantage}
        columns |= {key: name for key, name in optional.items() if name is not None}
        _check_columns(frame, columns, "match")
        names, players, block = _opponents(frame, first, second)
        features: list[Hashable] = list(names)
        blocks = [block]
        if advantage is not None:
            amount = _check_numeric(_complete(frame, advantage)).astype(np.float64)
            blocks.append(sparse.csr_array(amount[:, None]))
            features.append(ADVANTAGE)
        if check_flag(interactions, "interactions"):
            single = players is not None
            require(
                single, True, "interactions", "False, since some opponents are line-ups"
            )
            couples, block = _interactions(players)
            blocks.append(block)
            features += [(names[a], names[b]) for a, b in couples]
        design: Any = blocks[0]
        if len(blocks) > 1:
            design = sparse.hstack(blocks, format="csr")
        times, dates = _numeric_times(_complete(frame, time))
        matches = Matches(design, times, features)
        matches.columns = {
            "first": first,
            "second": second,
            "time": time,
            "advantage": advantage,
            "interactions": bool(interactions),
            "dates": dates,
            "outcomes": [],
        }
        if outcome is None:
            return matches
        y = _check_numeric(_complete(frame, outcome), "iuf")
        y = as_outcomes(y, f"column {outcome!r}", outcomes)
        kinds = pd.unique(y)
        matches.columns["outcomes"] = [
            v for v in _LABELS if v in kinds or v in np.sign(kinds)
        ]
        return matches, y

    @classmethod
    def from_rankings(
        cls,
        frame: pd.DataFrame,
        *,
        event: str = "event",
        player: str = "player",
        rank: str = "rank",
        time: str = "time",
        unranked: Literal["raise", "last", "drop"] = "raise",
    ) -> tuple[Matches, NDArray[np.int8]]:
        """Create comparisons of performances from races, podiums, and free-for-alls.

        As in TrueSkill ([Herbrich2006]_), a player's performance in an event is the
        player's score plus an error of variance 1/2. The error of the difference of two
        performances is then that of `Probit`. A better rank means a better performance.
        Each error is a feature, ("performance", event, player), with covariance
        Constant(1/2) unless a mapping of covariances names "performance". Comparing
        players with neighboring ranks therefore has the same information as comparing
        all pairs. Players with the same rank are not compared with each other, but each
        is compared with all players of the next rank. If only a podium is known, give
        all other players one common rank.

        Parameters
        ----------
        frame : DataFrame
            One row per player in an event, in any order.
        event, player : str
            Names of the columns with the events and the players, strings or numbers.
        rank, time : str
            Names of the columns with the rank (1 is best) and with the time, as in
            `from_frame`. All rows of an event must have the same time. Ranks may be
            strings, such as "1" and "DNF".
        unranked : {"raise", "last", "drop"}
            Treatment of players who started but have no rank: DNF, DQ, DSQ, NC, EX,
            OTL, RET, R, D, E, or N. "last": they share the rank after all others of
            their event; "drop": they are left out; "raise": an error. Players who did
            not start (DNS, DNQ, DNPQ, WD, W, or F) are left out by "last" too.

        Returns
        -------
        matches : Matches
            Matches whose features are the players, sorted, and then the performances.
            The entries are 100 and -100, so that the comparison of two performances has
            almost no noise. Fit them with `Probit` and method="ep".
        y : ndarray of shape (N,)
            Outcomes, all 1: the first is the player with the better rank.

        Raises
        ------
        ValueError
            If a column or a value is missing or has the wrong type. If a player has no
            rank and `unranked` is "raise", or occurs twice in an event. If an event has
            two times, or no event has two different ranks.

        Notes
        -----
        Events have no weights, because repeating an order adds no information about the
        same performances. `fit` raises an error for a `sample_weight` other than 0 and
        1, and for method="kl", which is overconfident for comparisons with so little
        noise. To count an event twice, list it twice, with two names.

        The approximate posterior treats the score and the error of a player as
        independent. For three players with prior variance 1, exact integration gives
        the first and third the means ±0.691, and the three standard deviations are
        0.840, 0.795, and 0.840. This approximation gives ±0.699 and 0.852, 0.770, and
        0.852. With two players the result of the first event is exact.

        The more players are ranked together, the more the approximation underestimates
        the standard deviations. In simulated seasons, 95 percent intervals for scores
        minus their mean covered the truth in 84 percent of cases for races of eight,
        and in 65 percent for races of forty. If events have different times, 94 to 97
        percent are covered if a player's errors are part of the player's covariance. To
        do this, leave out the performances, as in
        ``Matches(design[:, :n], time, features[:n])`` for n players, and add
        PiecewiseConstant(1/2, boundaries) with a boundary between each two events.
        Evaluate the scores at a time after one more boundary, and subtract 1/2 from their
        variance.

        References
        ----------
        .. [Herbrich2006] R. Herbrich, T. Minka, T. Graepel, "TrueSkill: a Bayesian
           skill rating system", NIPS 2006.

        Examples
        --------
        >>> import pandas as pd
        >>> race = {"event": "final", "player": ["Cy", "Ann", "Bob"], "rank": [3, 1, 2], "time": 0.0}
        >>> race = pd.DataFrame(race)
        >>> matches, y = Matches.from_rankings(race)
        >>> matches.design.toarray()[:, :3].astype(int).tolist(), y.tolist()
        ([[100, -100, 0], [0, 100, -100]], [1, 1])
        >>> matches.features[3:5]
        (('performance', 'final', 'Ann'), ('performance', 'final', 'Bob'))

        A player who did not finish shares the last place:

        >>> race["rank"] = ["DNF", "1", "2"]
        >>> matches, y = Matches.from_rankings(race, unranked="last")
        >>> matches.design.toarray()[:, :3].astype(int).tolist()
        [[100, -100, 0], [0, 100, -100]]
        """
        check_choice(unranked, "unranked", ("raise", "last", "drop"))
        columns = {"event": event, "player": player, "rank": rank, "time": time}
        _check_columns(frame, columns, "player in an event")
        ranks = _read_ranks(frame, rank, unranked)
        ranked: Any = frame.assign(**{rank: ranks})[~np.isnan(ranks)]
        table, dates = _performances(ranked, event, player, rank, time)
        # compare all players of one rank with all players of the next rank
        next_rank = table.assign(place=table["place"] - 1)
        pairs = table.merge(next_rank, on=["event", "place"])
        index = pairs[["index_x", "index_y"]].to_numpy(np.int64)
        expected = "at least one; no event has players with different ranks"
        require(len(index) > 0, 0, "the number of comparisons", expected)
        players, ids = np.unique(table["player"].to_numpy(object), return_inverse=True)
        _check_player_names(players)
        blocks = [
            Incidence(ids[index], len(players)).matrix(),
            Incidence(index, len(table)).matrix(),
        ]
        design: Any = PERFORMANCE_SCALE * sparse.hstack(blocks, format="csr")
        errors = [
            (PERFORMANCE, *names)
            for names in zip(table["event"], table["player"], strict=True)
        ]
        features = [*players.tolist(), *errors]
        used = np.unique(design.indices)  # excludes players who were alone in an event
        times = table["time"].to_numpy()[index[:, 0]]
        matches = cls(design[:, used], times, [features[k] for k in used])
        matches.columns = {"dates": dates}
        return matches, np.ones(len(index), dtype=np.int8)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of matches and the number of features, (N, M)."""
        return len(self), len(self.features)

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        span = ""
        if len(self):
            span = f", time {self.time[0]:g} to {self.time[-1]:g}"
        return f"Matches({len(self)} matches, {len(self.features)} features{span})"

    def __getitem__(self, key: int | slice | ArrayLike) -> Matches:
        """Select matches by a mask, row numbers, or a slice; all features are kept.

        The selected matches must be in time order, otherwise the method raises
        ValueError.
        """
        rows = check_selection(key, len(self))
        return trusted(self.design[rows], self.time[rows], self.features, self.columns)

    def players(self) -> NDArray[np.int64]:
        """Positions in `features` of the first and second player of each match.

        Returns
        -------
        ids : ndarray of shape (N, 2)
            Column numbers of the player entries +1 and -1.

        Raises
        ------
        ValueError
            If the player entries of a row are not one +1 and one -1, as in a match of
            line-ups.
        """
        named = np.array([is_player(name) for name in self.features])
        x = self.design
        ids, wrong = two_players(x.indptr, x.indices, x.data, named)
        if wrong >= 0:
            row = slice(*x.indptr[wrong : wrong + 2])
            values = x.data[row][named[x.indices[row]]].tolist()
            name = (
                f"the list of player entries in row {wrong} (match {wrong}) of design"
            )
            expected = "one +1 and one -1, for a match between two players; line-ups are not supported here"
            require(False, values, name, expected)
        return ids


Fixtures = Matches | pd.DataFrame  # matches to forecast


def check_matches(matches: Any) -> Matches:
    """Return `matches`, or raise ValueError if they are not Matches or empty."""
    expected = "a Matches object; Matches.from_frame makes one from a DataFrame"
    require(isinstance(matches, Matches), matches, "matches", expected)
    if len(matches) == 0:
        raise ValueError("matches is empty; expected at least one match")
    return matches


def prepare_for_prediction(
    matches: Fixtures,
    like: dict[str, Any] | None,
    features: Collection[Hashable],
    unseen: str,
) -> Matches:
    """Return the matches to forecast; read a DataFrame in the same way as `fit`.

    `like` holds the arguments with which the DataFrame of the fit was read. The
    function raises or warns if a name was not in the training data.
    """
    check_choice(unseen, "unseen", ("warn", "raise", "ignore"))
    if isinstance(matches, pd.DataFrame):
        options = {
            name: value
            for name, value in (like or {}).items()
            if name not in ("dates", "outcomes")
        }
        matches = Matches.from_frame(matches, outcome=None, **options)
    matches = check_matches(matches)
    check_clock(matches.columns, like)
    if unseen == "ignore" or matches.features is features:
        return matches
    present = np.flatnonzero(np.bincount(matches.design.indices))
    names = [matches.features[k] for k in present]
    names = [name for name in names if not isinstance(name, tuple)]
    unknown, n_unknown = list_unknown_names(names, features)
    if unknown:
        verb = "was" if n_unknown == 1 else "were"
        text = f"{unknown} {verb} not in the training data"
        if unseen == "raise":
            raise ValueError(
                f"{text}; correct the spelling, or pass unseen='ignore' to forecast from the prior"
            )
        text += "; the forecast uses the prior. Pass unseen='raise' to make this an error, or "
        warn_user(text + "unseen='ignore' to silence this warning", UnseenWarning)
    return matches


def list_unknown_names(
    names: Iterable[Hashable], known: Collection[Hashable]
) -> tuple[str, int]:
    """List the unknown names, each with the closest known name; and their number."""
    if not isinstance(
        known, Set | Mapping
    ):  # sets and mappings may be large, so they are not copied
        known = set(known)
    unknown = [name for name in names if name not in known]
    if not unknown:
        return "", 0
    players = [name for name in known if is_player(name)]
    parts = []
    for name in unknown[:_MAX_LISTED]:
        part = short_repr(name)
        for close in difflib.get_close_matches(str(name), players, 1, 0.0):
            part += f" (closest: {short_repr(close)})"
        parts.append(part)
    text = ", ".join(parts)
    if len(unknown) > _MAX_LISTED:
        text += f" and {len(unknown) - _MAX_LISTED} more"
    return text, len(unknown)


def warn_unknown_names(
    name: str, values: Mapping[Hashable, Any], known: Collection[Hashable]
) -> None:
    """Warn if the argument `name` is a mapping with names that no match has."""
    known = set(known)
    names = [
        str(key) if isinstance(key, Real) and key not in known else key
        for key in values
    ]
    unknown, _ = list_unknown_names(names, known)
    if unknown:  # not an error: later matches may have these names
        text = f"{name} names {unknown}, but the matches have no such feature; correct the spelling, unless "
        warn_user(text + "later matches will have this feature", UnseenWarning)


def normalize_names(values: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """Add the str of each number, which is the player name in `Matches.from_frame`."""
    texts = {
        str(name): value for name, value in values.items() if isinstance(name, Real)
    }
    return texts | dict(values)


def is_player(name: Hashable) -> TypeGuard[str]:
    """Whether a feature is a player or a team."""
    return isinstance(name, str) and name != ADVANTAGE


def is_performance(name: Any) -> TypeGuard[tuple[str, str, str]]:
    """Whether a feature is the error of a performance in an event."""
    return isinstance(name, tuple) and len(name) == 3 and name[0] == PERFORMANCE


def check_clock(columns: dict[str, Any] | None, like: dict[str, Any] | None) -> None:
    """Raise ValueError if one of two sets of times has dates and the other numbers."""
    dates = (columns or {}).get("dates")
    earlier = (like or {}).get("dates")
    kind = "numbers"
    expected = (
        "dates, as in fit; pandas.to_datetime(..., unit='D') converts days since 1970"
    )
    if dates:
        kind = "dates"
        expected = "numbers, as in fit"
    good = None in (dates, earlier) or dates == earlier
    require(good, kind, "the type of the times", expected)


def as_times(time: Any, like: dict[str, Any] | None) -> Floats:
    """Return times as numbers; dates and their ISO strings become days since 1970."""
    array = np.asarray(time)
    if pd.api.types.infer_dtype(array.ravel()) not in _DATE_TYPES:
        return as_floats(time, "time")
    check_clock({"dates": True}, like)
    return _numeric_times(pd.Series(array.ravel()))[0].reshape(array.shape)


def as_outcomes(
    y: ArrayLike, name: str = "y", kind: str | None = None, seen: Any = ()
) -> Any:
    """Return outcomes as labels; 1, 1/2, and 0 become 1, 0, and -1.

    Without a `kind`, a warning says how ambiguous outcomes were read, unless all of
    them were `seen` in earlier data.
    """
    if kind is not None:
        check_choice(kind, "outcomes", ("labels", "win-loss"))
    array = as_array(y, name)
    if array.ndim == 1 and array.dtype.kind == "O":  # as for nullable integers
        array = pd.Series(array).infer_objects().to_numpy()
    if kind == "labels" or array.dtype.kind not in "iuf" or array.ndim != 1:
        return y
    # pandas needs the native byte order
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    values = set(pd.unique(array).tolist())
    if kind is None:
        if values <= set(seen):
            return y
        halves = 0.5 in values and values <= {0, 0.5, 1}
        bare = values == {0, 1} and np.count_nonzero(array) > _MAX_BARE_WINS
        if halves or bare:
            _warn_of_outcomes(array, name, halves)
        if not halves:
            return y
    wrong = ~np.isin(array, [0, 0.5, 1])
    raise_if_any(wrong, array, name, "1 (first won), 1/2 (tie), or 0 (first lost)")
    return (2 * array.astype(np.float64) - 1).astype(np.int64)


def _warn_of_outcomes(array: NDArray, name: str, halves: bool) -> None:
    """Warn how outcomes 1, 1/2, and 0, or 1 and 0, were read, and how to change it."""
    n_ties = np.count_nonzero(array == 0)
    if halves:
        text = "1, 1/2, and 0, which were read as win, tie, and loss of the first"
        labels = "if they are points"
        remedy = ""
    else:
        text = f"1 and 0, which were read as {len(array) - n_ties} wins of the first and {n_ties} ties"
        labels = "if this is right"
        remedy = "; if 0 means a loss, pass 2 * y - 1"
    if name != "y":  # a column of a frame
        remedy = f"; pass outcomes='labels' {labels}, or outcomes='win-loss' if 0 means a loss"
    warn_user(f"{name} contains only {text}{remedy}", OutcomeWarning)


def given_outcomes(y: ArrayLike, matches: Matches) -> Any:
    """Return outcomes as labels, without repeating the warning of `from_frame`."""
    return as_outcomes(y, seen=(matches.columns or {}).get("outcomes", ()))


def n_earlier(matches: Matches, start: int) -> int:
    """Number of matches that are earlier than match `start`.

    Raises
    ------
    ValueError
        If `matches` are not Matches, `start` is not the number of a match, or no match
        is earlier.

    Examples
    --------
    >>> n_earlier(Matches([[1, -1], [1, -1], [1, -1]], [0, 1, 1], ["Ann", "Bob"]), start=2)
    1
    """
    check_matches(matches)
    n = len(matches)
    require(
        n > 1,
        n,
        "the number of matches",
        "at least 2: one to learn from and one to forecast",
    )
    good = isinstance(start, int | np.integer) and 0 < as_real(start) < n
    require(good, start, "start", f"the row number of a match, from 1 to {n - 1}")
    known = int(np.searchsorted(matches.time, matches.time[start]))
    expected = (
        f"the row number of a match that is later than {matches.time[start]:g}, the time "
        "of the first match, so that there is an earlier match to learn from"
    )
    require(known > 0, start, "start", expected)
    return known


def concatenate(old: Matches, new: Matches) -> Matches:
    """Append later matches to earlier ones; new features follow the old ones.

    Examples
    --------
    >>> old = Matches([[1, -1]], [0], ["Ann", "Bob"])
    >>> both = concatenate(old, Matches([[1, -1]], [1], ["Cy", "Ann"]))
    >>> both.features, both.design.toarray().astype(int).tolist()
    (('Ann', 'Bob', 'Cy'), [[1, -1, 0], [-1, 0, 1]])
    """
    check_clock(new.columns, old.columns)
    features = tuple(dict.fromkeys((*old.features, *new.features)))
    column = {name: k for k, name in enumerate(features)}
    x = old.design
    z = new.design
    x = sparse.csr_array((x.data, x.indices, x.indptr), (len(old), len(features)))
    place = np.array([column[name] for name in new.features])
    z = sparse.csr_array(
        (z.data, place[z.indices], z.indptr), (len(new), len(features)), copy=True
    )
    z.sort_indices()
    design = sparse.vstack([x, z], format="csr")
    return trusted(
        design,
        np.concatenate([old.time, new.time]),
        features,
        old.columns or new.columns,
    )


def trusted(
    design: Any,
    time: Floats,
    features: tuple[Hashable, ...],
    columns: dict[str, Any] | None,
) -> Matches:
    """Create Matches from checked arrays; only the order of times is checked here."""
    matches = Matches.__new__(Matches)
    matches.design = design
    matches.time = time
    matches.features = features
    matches.columns = columns
    _check_order(time)
    return matches


@njit
def two_players(starts, columns, values, named):
    """Column numbers of the +1 and -1 of each row, among the player columns.

    The second result is the first row with other entries, or -1.
    """
    ids = np.full((len(starts) - 1, 2), -1, dtype=np.int64)
    for row in range(len(ids)):
        for k in range(starts[row], starts[row + 1]):
            if named[columns[k]]:
                side = 1
                if values[k] == 1:
                    side = 0
                if abs(values[k]) != 1 or ids[row, side] >= 0:
                    return ids, row
                ids[row, side] = columns[k]
        if ids[row, 0] < 0 or ids[row, 1] < 0:
            return ids, row
    return ids, -1


def _check_design(design: Any) -> Any:
    if not sparse.issparse(design):
        design = as_floats(design, "design")
    check_shape(
        design, "design", ("N", "M"), "one row per match, one column per feature"
    )
    expected = "at least one match and one feature"
    require(0 not in design.shape, design.shape, "the shape of design", expected)
    design = sparse.csr_array(_checked_copy(design))
    design.data = as_floats(design.data, "design")
    wrong = ~(np.abs(design.data) <= LARGEST)  # True for NaN
    expected = "a finite number from -1e100 to 1e100"
    raise_if_any(wrong, design, "design", expected)
    design.sum_duplicates()
    design.eliminate_zeros()
    n_entries = np.diff(design.indptr)
    expected = "a nonzero entry in each row; an opponent cannot play against itself"
    name = "the number of nonzero entries of design"
    raise_if_any(n_entries == 0, n_entries, name, expected)
    return design


def _checked_copy(design: Any) -> Any:
    """Copy a sparse design, or raise if its index arrays are inconsistent."""
    try:
        design = design.copy()  # checks the coordinates of a COO array
        if hasattr(design, "indptr"):
            design.check_format(full_check=True)
            # SciPy does not check the order if the last value is 0 or less.
            back = np.diff(design.indptr) < 0
            raise_if_any(back, design.indptr[1:], "indptr[1:]", "an ascending sequence")
    except ValueError as error:
        raise ValueError(
            f"design is not a valid sparse {design.format} array: {error}"
        ) from None
    return design


def _check_features(features: Iterable[Hashable]) -> tuple[Hashable, ...]:
    try:
        names = tuple(features)
        twice = [name for name, times in Counter(names).items() if times > 1]
    except TypeError:
        raise ValueError(
            f"features is {short_repr(features)}; expected a list of hashable names, one per column of design"
        ) from None
    if twice:
        raise ValueError(
            f"features contains {short_repr(twice[0])} more than once; each name may appear only once"
        )
    return names


def _check_order(time: Floats) -> None:
    raise_if_any(np.abs(time) > LARGEST, time, "time", "a time from -1e100 to 1e100")
    back = np.diff(time, prepend=-np.inf) < 0
    if back.any():
        previous = time[np.argmax(back) - 1]
        expected = f"at least {previous:g}, the time of the previous match; sort the matches by time"
        raise_if_any(back, time, "time", expected)


def _complete(frame: pd.DataFrame, column: str) -> pd.Series:
    values = pd.Series(frame[column])
    missing = values.isna().to_numpy()
    values_shown = np.broadcast_to(np.nan, missing.shape)
    expected = "a value in each row; drop the rows without one, for example"
    raise_if_any(missing, values_shown, f"column {column!r}", expected)
    return values


def _check_columns(frame: pd.DataFrame, columns: Mapping[str, Any], row: str) -> None:
    """Raise unless the frame has the column that each argument names, once."""
    good = isinstance(frame, pd.DataFrame)
    require(good, frame, "frame", f"a DataFrame with one row per {row}")
    available = list(frame)
    listed = ", ".join(map(str, available[:_MAX_COLUMNS_SHOWN]))
    if len(available) > _MAX_COLUMNS_SHOWN:
        listed += f" and {len(available) - _MAX_COLUMNS_SHOWN} more"
    for argument, column in columns.items():
        # True equals the column name 1
        good = isinstance(column, str | int) and not isinstance(column, bool)
        expected = f"the name of a column; the frame has: {listed}"
        require(good, column, argument, expected)
    absent = {key: name for key, name in columns.items() if name not in available}
    if absent:
        noun = "column" if len(absent) == 1 else "columns"
        names = ", ".join(map(short_repr, absent.values()))
        text = f"{noun} {names} not found; the frame has: {listed}."
        suggested = _suggest_columns(absent, set(available) - {*columns.values()})
        if suggested:
            text += f" Did you mean {suggested}?"
        raise ValueError(text)
    for column in columns.values():
        n_times = available.count(column)
        if n_times > 1:
            raise ValueError(
                f"column {column!r} occurs {n_times} times in the frame; column names must differ"
            )
    require(len(frame) > 0, 0, "the number of rows of the frame", f"at least one {row}")


def _suggest_columns(absent: Mapping[str, Any], available: Collection[Any]) -> str:
    """Suggest a similar column for each absent one, as in "first='Home'".

    Letter case is ignored, and a column is also suggested if it has the argument's name.
    """
    lower = {str(name).lower(): name for name in available}
    parts = []
    for argument, name in absent.items():
        close = difflib.get_close_matches(str(name).lower(), lower, 1)
        close = close or [argument] * (argument in lower)
        parts += [f"{argument}={short_repr(lower[match])}" for match in close]
    return ", ".join(parts)


def _check_player_names(names: NDArray) -> None:
    expected = "a different name, since this one is reserved for the home advantage"
    require(ADVANTAGE not in names, ADVANTAGE, "the name of a player", expected)


def _performances(
    frame: pd.DataFrame, event: str, player: str, rank: str, time: str
) -> tuple[pd.DataFrame, bool]:
    """A table with one row per player in an event, sorted by time, event, and place.

    The column `index` numbers the rows. The second result says whether the times were
    dates.
    """
    table = pd.DataFrame(
        {"event": _texts(frame, event), "player": _texts(frame, player)}
    )
    table["rank"] = frame[rank].to_numpy(np.float64)
    table["time"], dates = _numeric_times(_complete(frame, time))
    times = table["time"].to_numpy()
    first_times = table.groupby("event")["time"].transform("first").to_numpy()
    raise_if_any(
        times != first_times,
        times,
        f"column {time!r}",
        "the same time in all rows of an event",
    )
    twice = table.duplicated(["event", "player"]).to_numpy()
    names = table["player"].to_numpy(object)
    raise_if_any(
        twice, names, f"column {player!r}", "each player only once in an event"
    )
    order = ["time", "event", "rank", "player"]
    table = table.sort_values(order, ignore_index=True).reset_index()
    table["place"] = table.groupby("event")["rank"].rank("dense")
    return table, dates


def _read_ranks(frame: pd.DataFrame, column: str, unranked: str) -> Floats:
    """Ranks as numbers: inf for a shared last place, NaN for a player left out.

    Raises
    ------
    ValueError
        If a string is neither a number nor a code, or if it is a code and `unranked` is
        "raise".
    """
    name = f"column {column!r}"
    values = pd.Series(frame[column])
    if values.dtype.kind in "biuf":
        ranks = _check_numeric(_complete(frame, column), "iuf")
        return ranks.astype(np.float64)
    texts = values.astype("string").str.strip().str.upper().fillna("").to_numpy(object)
    numbers = np.array(pd.to_numeric(pd.Series(texts), errors="coerce"), float)
    is_number = np.isfinite(numbers)
    is_started = np.isin(texts, _STARTED_CODES)
    is_code = is_started | np.isin(texts, NOT_STARTED_CODES)
    expected = f"a rank, or one of {', '.join(_STARTED_CODES + NOT_STARTED_CODES)}"
    given = values.to_numpy(object)
    raise_if_any(~is_number & ~is_code, given, name, expected)
    if unranked == "raise":
        remedy = "a rank; pass unranked='last' to give all who did not finish a shared last place, or "
        raise_if_any(is_code, given, name, remedy + "unranked='drop' to leave them out")
    numbers[is_code] = np.nan
    if unranked == "last":
        numbers[is_started] = np.inf
    return numbers


def _check_numeric(
    values: pd.Series, kinds: str = "biuf", expected: str = "numbers"
) -> NDArray:
    """Return the finite numbers of a column, whose dtype is of one of the kinds."""
    values = values.infer_objects()
    # nullable types have a NumPy type
    array = values.to_numpy(getattr(values.dtype, "numpy_dtype", None))
    name = _describe_column(values)
    if array.dtype.kind not in kinds:
        raise ValueError(f"{name} has dtype {values.dtype}; expected {expected}")
    raise_if_any(~np.isfinite(array), array, name, "finite numbers")
    return array


def _describe_column(values: pd.Series) -> str:
    if values.name is None:
        return "time"
    return f"column {values.name!r}"


def _numeric_times(times: pd.Series) -> tuple[Floats, bool]:
    """Times as numbers, and whether they were dates."""
    name = _describe_column(times)
    if isinstance(times.dtype, pd.CategoricalDtype):
        times = times.astype(times.cat.categories.dtype)
    if isinstance(times.dtype, pd.ArrowDtype) and times.dtype.kind not in "iuf":
        times = times.astype(object)
    if times.dtype.kind == "O" and pd.api.types.infer_dtype(times) in _DATE_TYPES:
        texts = times.astype(str)  # 03/04/2024 is ambiguous, and 2024 is a number
        days = texts.where(texts.str.match(r"\d{4}-\d\d-\d\d"))
        times = pd.to_datetime(days, format="ISO8601", utc=True, errors="coerce")
        expected = (
            "numbers or dates; write dates as ISO strings such as 2024-01-31, or convert them with "
            "pandas.to_datetime(..., format=...)"
        )
        raise_if_any(times.isna().to_numpy(), texts.to_numpy(object), name, expected)
    if times.dtype.kind != "M":
        expected = "numbers or dates; pandas.to_datetime converts strings to dates"
        numbers = _check_numeric(times, "iuf", expected).astype(np.float64)
        arguments = _arguments_for_dates(numbers)
        if arguments is not None:
            text = f"the values of {name} look like dates ({numbers[0]:.0f}) but were read as numbers"
            remedy = (
                f"if they are dates, convert them with pandas.to_datetime({arguments})"
            )
            warn_user(f"{text}; {remedy}", TimeWarning)
        return numbers, False
    if times.dt.tz is not None:
        times = times.dt.tz_convert(None)
    days = (times - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=np.float64), True


def reads_as_date(numbers: Floats, form: str) -> NDArray[np.bool_]:
    """Which numbers look like dates from 1600 to 2200, or like times since 1970.

    Parameters
    ----------
    numbers : ndarray of shape (n,)
    form : {"%Y%m%d", "%Y%m", "s", "ms", "us", "ns"}
        Format of the digits, or unit of a time since 1970; such times are from 1979 to
        2103.

    Examples
    --------
    >>> reads_as_date(np.array([20240131.0, 20241301.0]), "%Y%m%d").tolist()
    [True, False]
    """
    if form in _UNITS:
        size = _UNITS[form]
        return (3e8 * size < numbers) & (numbers < 4.2e9 * size)
    size = 10.0 ** (2 * form.count("%") - 2)
    # only integers match
    month = numbers * 100 // size % 100
    day = numbers % 100
    in_range = (1600 * size < numbers) & (numbers < 2201 * size)
    return in_range & np.isin(month, range(1, 13)) & np.isin(day, range(1, 32))


def _arguments_for_dates(numbers: Floats) -> str | None:
    """Arguments of pandas.to_datetime for numbers that look like dates, or None."""
    for form in ("%Y%m%d", "%Y%m"):
        if reads_as_date(numbers, form).all():
            return f"time.astype(int).astype(str), format={form!r}"
    for unit in _UNITS:
        if reads_as_date(numbers, unit).all():
            return f"time, unit={unit!r}"
    return None


def _texts(frame: pd.DataFrame, column: str) -> NDArray:
    """The names in a column as strings."""
    names, ids = _number_names(
        [_complete(frame, column)], lambda k: f"row {k} of column {column!r}"
    )
    return names[ids]


def _types_of(values: pd.Series) -> set[type]:
    """The types of the names in a column."""
    distinct: Iterable[Any] = values
    if isinstance(values.dtype, pd.CategoricalDtype):
        distinct = values.cat.categories
    elif values.dtype != object:
        distinct = values[:1]
    return set(map(type, distinct))


def _number_names(
    columns: list[pd.Series], where: Callable[[int], str]
) -> tuple[NDArray, NDArray[np.int64]]:
    """The distinct names as sorted strings, and the number of each value."""
    types = set[type]().union(*map(_types_of, columns))
    bad = {kind for kind in types if kind is bool or not issubclass(kind, str | Real)}
    floats = {kind for kind in types if issubclass(kind, float | np.floating)}
    if bad or floats:
        values = list(chain(*columns))
        good = [
            type(name) not in bad and (isinstance(name, str) or abs(name) < math.inf)
            for name in values
        ]
        first = values[0]
        alike = [(type(name) in floats) == (type(first) in floats) for name in values]
        one_kind = (
            f"names of one type, as {first!r} in {where(0)}, because 2.0 and 2 would be "
            "different players; convert the column with astype(int)"
        )
        for fine, expected in ((good, "a string or a number"), (alike, one_kind)):
            k = int(np.argmin(fine))
            require(fine[k], values[k], f"the name in {where(k)}", expected)
    ids = []
    texts: list[str] = []
    for column in columns:
        numbers, names = pd.factorize(column)
        ids.append(numbers + len(texts))
        texts += map(str, names)
    order, names = pd.factorize(np.array(texts, dtype=object), sort=True)
    return np.asarray(names), order[np.concatenate(ids)]


def _players_of_column(
    frame: pd.DataFrame, column: str
) -> tuple[NDArray, pd.Series, Floats]:
    """Row, name, and weight of each player in a column, including line-ups."""
    values = _complete(frame, column)
    if not any(issubclass(kind, list | tuple | Mapping) for kind in _types_of(values)):
        return np.arange(len(values)), values, np.ones(len(values))
    rows = []
    names = []
    weights = []
    for row, value in enumerate(values):
        line_up = _line_up_of(value)
        where = f"row {row} of column {column!r}"
        require(len(line_up) > 0, value, f"the line-up in {where}", "at least one name")
        for name, weight in line_up:
            good = 0 < as_real(weight) <= LARGEST
            require(good, weight, f"a weight in {where}", "a positive number")
            rows.append(row)
            names.append(name)
            weights.append(weight)
    return np.array(rows), pd.Series(names, dtype=object), np.array(weights, float)


def _line_up_of(value: Any) -> list[tuple[Any, Any]]:
    """Names and weights of the players in a cell: a name, a list, or a mapping."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list | tuple):
        return [(name, 1.0) for name in value]
    return [(value, 1.0)]


def _opponents(
    frame: pd.DataFrame, first: str, second: str
) -> tuple[list[str], Any, Any]:
    """Sorted names, ids of the two players of each match, and the design.

    The ids have shape (N, 2); they are None if there are line-ups.
    """
    rows, players, weights = _players_of_column(frame, first)
    n = len(rows)
    other_rows, other_players, other_weights = _players_of_column(frame, second)
    rows = np.concatenate([rows, other_rows])
    weights = np.concatenate([weights, other_weights])

    def where(k: int) -> str:
        column = first if k < n else second
        return f"row {rows[k]} of column {column!r}"

    names, ids = _number_names([players, other_players], where)
    _check_player_names(names)
    single = len(ids) == 2 * n == 2 * len(frame)
    if single:
        twice = ids == np.roll(ids, n)
    else:
        twice = pd.Series(rows * len(names) + ids).duplicated().to_numpy()
    if twice.any():
        k = np.argmax(twice)
        raise ValueError(
            f"{names[ids[k]]!r} plays against themselves in row {rows[k]}; the two opponents must differ"
        )
    if single and (weights == 1).all():
        index = ids.reshape(2, -1).T
        return names.tolist(), index, Incidence(index, len(names)).matrix()
    weights[n:] *= -1
    shape = (len(frame), len(names))
    return names.tolist(), None, sparse.csr_array((weights, (rows, ids)), shape=shape)


def _interactions(
    players: NDArray[np.int64],
) -> tuple[list[list[int]], sparse.csr_array]:
    """The distinct pairs (a < b), and a column with +1 or -1 for each of them."""
    couples, column = np.unique(np.sort(players, axis=1), axis=0, return_inverse=True)
    n = len(players)
    sign = np.where(players[:, 0] < players[:, 1], 1.0, -1.0)
    block = sparse.csr_array(
        (sign, column.ravel(), np.arange(n + 1)), shape=(n, len(couples))
    )
    return couples.tolist(), block
