"""Matches: comparisons with a time, as sparse rows over named features (section 2 of
[Maystre2019]_).

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

ADVANTAGE = "advantage"  # feature of the home ground, or of the first move
PERFORMANCE = "performance"  # first entry of features (PERFORMANCE, event, player)
# Performances are scaled by this, so that the noise of their comparison is small.
PERFORMANCE_SCALE = 100.0
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # of times since 1970
_MAX_LISTED = 5  # unseen names in a message
_MAX_BARE_WINS = 3  # outcomes 1 and 0 without a warning that 0 may mean a loss
_LABELS = -1, 0, 0.5, 1
# Codes instead of a rank, of those who started and of those who did not.
_STARTED_CODES = ("DNF", "DQ", "DSQ", "NC", "EX", "OTL", "RET", "R", "D", "E", "N")
_NOT_STARTED_CODES = ("DNS", "DNQ", "DNPQ", "WD", "W", "F")
# pandas' inferred types of columns with dates
_DATE_TYPES = "string", "date", "datetime", "datetime64"


class OutcomeWarning(UserWarning):
    """Outcomes may be misread: 1 and 0 as win and tie, half points as scores."""


class TimeWarning(UserWarning):
    """Times, or lengths and rates of a covariance, may be in an unintended unit."""


class UnseenWarning(UserWarning):
    """Names in a forecast were not in the training data: misspelt, or new."""


class Matches:
    """Matches in the order of time, as sparse rows: first opponent minus second.

    In [Maystre2019]_ an opponent's score is a linear combination of features (eq. 2),
    and the outcome of a match depends on x·s(t), with x = x_first - x_second, at its
    time t. In the simplest case a feature is a player, and the design is the incidence
    matrix of the comparison graph.

    Parameters
    ----------
    design : sparse array or array-like of shape (N, M)
        One row per match, one column per feature; each row has an entry.
    time : array-like of float, shape (N,)
        Ascending, equal times allowed. Its unit is the caller's, and all lengths of
        time in the package (`period` of `Glicko`, for instance) are in this unit;
        `from_frame` turns dates into days.
    features : sequence of length M
        Distinct names. A str names a player or a team, except "advantage"; a tuple
        names a combination of features, such as two players.

    Attributes
    ----------
    columns : dict or None
        Arguments with which `from_frame` read a frame, so that a model reads the next
        one alike; whether its times were `dates`, and which of the `outcomes` 1, 1/2, 0
        and -1 it had.

    Raises
    ------
    ValueError
        On wrong shapes, no match, values that are not finite, a sparse array whose
        parts do not fit together, a row without entries, names that are repeated, or a
        time before the one in the row above.

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
    design: Any  # a csr_array, of which stubs know too little
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
                f"there are {len(self.features)} features; expected {n_features}, one per column"
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
        """Matches, and their outcomes, from the columns of a frame.

        **Dates become days**: a column of dates and times, or of their ISO texts, is
        turned into the number of days (a float) since 1970-01-01, UTC where it has a
        time zone, so that frames that are read one after the other share one clock. A
        column of numbers is kept, in its own unit.

        Parameters
        ----------
        frame : DataFrame
            One row per match, sorted by time; the loaders of `preflearn.datasets` return
            such frames.
        first, second : str
            The columns with the names of the opponents: texts, or numbers, which are
            read as texts. A list or tuple of names is a line-up, whose scores add up;
            so is a dict of names to positive weights.
        time, outcome : str
            The columns with the time, and with the outcome: 1, 0, -1 (first won, tie,
            second won), or points of the first, or a difference of points; no bools,
            whose False would be a tie. With outcome=None the frame is a list of
            fixtures, to be forecast.
        advantage : str, optional
            A column, bool or number, that says how much of an advantage (home ground,
            first move) the first has over the second; it becomes the feature
            "advantage" (section 4.2.2).
        interactions : bool
            Whether to add a feature (a, b), a < b, for each two opponents that meet: +1
            where a is first, -1 where b is, the s_ij of section 4.2.3 in d = s_i - s_j
            + s_ij. Not for line-ups.
        outcomes : "labels" or "win-loss", optional
            "labels": outcomes are kept. "win-loss": they are scores of the first, 1
            won, 1/2 tie, 0 lost, and become 1, 0, -1. None: they are scores if there
            are only 1, 1/2 and 0, else labels, with a warning if they might mean
            something else.

        Returns
        -------
        matches : Matches
            Features: the names, sorted; then "advantage"; then the interactions,
            sorted.
        y : ndarray of shape (N,)
            The outcomes; only the matches are returned where outcome is None.

        Raises
        ------
        ValueError
            If a column or a value is missing or of another kind, some names are floats
            and others are not, a player meets themselves, no match is left, a name is
            "advantage", or the times are not ascending. Rows count from 0.

        Warns
        -----
        OutcomeWarning
            If outcomes are only 1 and 0, or 1, 1/2 and 0, and `outcomes` does not say
            what they are.
        TimeWarning
            If all times are numbers that read as dates from 1600 to 2200, such as
            20240131 or 202401, or as seconds (or a thousandth, ... of them) since 1970.

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
        columns = [
            first,
            second,
            time,
            *(name for name in (outcome, advantage) if name is not None),
        ]
        _check_columns(frame, columns, "match")
        names, players, block = _opponents(frame, first, second)
        features: list[Hashable] = list(names)
        blocks = [block]
        if advantage is not None:
            amount = _numbers(_complete(frame, advantage)).astype(np.float64)
            blocks.append(sparse.csr_array(amount[:, None]))
            features.append(ADVANTAGE)
        if check_flag(interactions, "interactions"):
            single = players is not None
            require(single, True, "interactions", "False where there are line-ups")
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
        y = _numbers(_complete(frame, outcome), "iuf")
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
        """Races, podiums and free-for-alls as comparisons of performances.

        As in TrueSkill ([Herbrich2006]_), a player's performance in an event is the
        player's score plus an error of variance 1/2, so that the error of a difference
        of two is that of `Probit`, and better ranks are better performances. Each error
        is a feature, ("performance", event, player), whose covariance is Constant(1/2)
        unless a mapping of covariances names "performance". So a chain of neighbours in
        rank says as much as all pairs. Players of one rank are not compared with each
        other, but all of them with all of the next rank: after a podium, give the rest
        one rank.

        Parameters
        ----------
        frame : DataFrame
            One row per player in an event, in any order.
        event, player : str
            The columns with the names of events and of players, texts or numbers.
        rank, time : str
            The columns with the rank, the smallest is the best, and with the time, as
            in `from_frame`, which is one time in an event. Ranks may be texts, such as
            "1" and "DNF".
        unranked : {"raise", "last", "drop"}
            Treatment of players who started but have no rank: DNF, DQ, DSQ, NC, EX,
            OTL, RET, R, D, E, or N. "last": all of them share the rank behind the
            others of their event; "drop": they are left out; "raise": an error. Players
            who did not start (DNS, DNQ, DNPQ, WD, W, or F) are left out by "last", too.

        Returns
        -------
        matches : Matches
            Features: the players, sorted; then the performances. Entries are 100 or
            -100, which makes the comparison of two performances nearly noise-free: fit
            them with `Probit` and method="ep".
        y : ndarray of shape (N,)
            All 1: the first is the one of better rank.

        Raises
        ------
        ValueError
            If a column or a value is missing or of another kind, a player has no rank
            and `unranked` is "raise", a player is twice in an event, an event has two
            times, or no event has two ranks.

        Notes
        -----
        Events have no weights: repeating an order adds no information about the same
        performances. `fit` refuses a `sample_weight` other than 0 and 1, and
        method="kl", which overrates such sharp comparisons. If an event counts twice,
        give it twice, with two names.

        Score and error of a player count as independent in the posterior. For three
        equal sides of variance 1 exact integration gives the means ±0.691 and the
        standard deviations 0.840, 0.795, 0.840; ours are ±0.699 and 0.852, 0.770,
        0.852. With two sides the first game is exact.

        The more players are ranked together, the more the deviations are too small: of
        intervals of 95 % for scores less their mean, 84 in 100 covered the truth in
        simulated seasons of races of eight, and 65 in races of forty. Where events
        differ in time, 94 to 97 do if a player's errors are a part of the player's
        covariance: leave out the performances, as in
        `Matches(design[:, :n], time, features[:n])` of n players, and add
        PiecewiseConstant(1/2, boundaries) with a boundary between each two events. Ask
        for scores after one more boundary, and take 1/2 off their variance.

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

        A retirement counts as the last place:

        >>> race["rank"] = ["DNF", "1", "2"]
        >>> matches, y = Matches.from_rankings(race, unranked="last")
        >>> matches.design.toarray()[:, :3].astype(int).tolist()
        [[100, -100, 0], [0, 100, -100]]
        """
        check_choice(unranked, "unranked", ("raise", "last", "drop"))
        _check_columns(frame, [event, player, rank, time], "player in an event")
        ranks = _read_ranks(frame, rank, unranked)
        ranked: Any = frame.assign(**{rank: ranks})[~np.isnan(ranks)]
        table, dates = _performances(ranked, event, player, rank, time)
        # all players of one rank with all of the next one
        next_rank = table.assign(place=table["place"] - 1)
        pairs = table.merge(next_rank, on=["event", "place"])
        index = pairs[["index_x", "index_y"]].to_numpy(np.int64)
        expected = "an event with two ranks"
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
        used = np.unique(design.indices)  # without those who were alone in an event
        times = table["time"].to_numpy()[index[:, 0]]
        matches = cls(design[:, used], times, [features[k] for k in used])
        matches.columns = {"dates": dates}
        return matches, np.ones(len(index), dtype=np.int8)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of matches and of features."""
        return len(self), len(self.features)

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        span = ""
        if len(self):
            span = f", time {self.time[0]:g} to {self.time[-1]:g}"
        return f"Matches({len(self)} matches, {len(self.features)} features{span})"

    def __getitem__(self, key: int | slice | ArrayLike) -> Matches:
        """The matches selected by a mask, by ids or by a slice, over the same features.

        The selection has to be in the order of time: a shuffled one raises ValueError.
        """
        rows = check_selection(key, len(self))
        return trusted(self.design[rows], self.time[rows], self.features, self.columns)

    def players(self) -> NDArray[np.int64]:
        """The first and the second player of each match.

        Returns
        -------
        ids : ndarray of shape (N, 2)
            Positions in `features` of the +1 and of the -1 among the players.

        Raises
        ------
        ValueError
            If some row is a match of line-ups: not exactly one +1 and one -1 among
            these features.
        """
        named = np.array([is_player(name) for name in self.features])
        x = self.design
        ids, wrong = two_players(x.indptr, x.indices, x.data, named)
        if wrong >= 0:
            row = slice(*x.indptr[wrong : wrong + 2])
            values = x.data[row][named[x.indices[row]]].tolist()
            name = f"the list of players' entries in match {wrong}"
            expected = "one +1 and one -1: two players, no line-ups"
            require(False, values, name, expected)
        return ids


Fixtures = Matches | pd.DataFrame  # to be forecast


def check_matches(matches: Any) -> Matches:
    """Return matches, at least one, or raise ValueError."""
    require(isinstance(matches, Matches), matches, "matches", "Matches")
    if len(matches) == 0:
        raise ValueError("there are no matches; expected at least one")
    return matches


def prepare_for_prediction(
    matches: Fixtures,
    like: dict[str, Any] | None,
    features: Collection[Hashable],
    unseen: str,
) -> Matches:
    """Return matches to forecast; a frame is read `like` the one of the fit.

    Raises or warns if a name was not in the training data.
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
    unknown = _list_unknown_names(names, features)
    if unknown:
        text = f"{unknown} not found in the training data; expected names of `fit`"
        if unseen == "raise":
            raise ValueError(text)
        text += ": forecasts come from the prior; unseen='raise' forbids this, unseen='ignore' hides it"
        warn_user(text, UnseenWarning)
    return matches


def _list_unknown_names(names: Iterable[Hashable], known: Collection[Hashable]) -> str:
    """List the names that are not known, each with the closest known name."""
    if not isinstance(known, Set | Mapping):  # those are not copied: they may be long
        known = set(known)
    unknown = [name for name in names if name not in known]
    if not unknown:
        return ""
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
    return text


def warn_unknown_names(
    name: str, values: Mapping[Hashable, Any], known: Collection[Hashable]
) -> None:
    """Warn if a mapping, the argument `name`, has names that no match has."""
    known = set(known)
    names = [
        str(key) if isinstance(key, Real) and key not in known else key
        for key in values
    ]
    unknown = _list_unknown_names(names, known)
    if unknown:  # not an error: later matches may bring these names
        text = f"{name} names {unknown}, but no match has such a feature; expected names of features, or of "
        warn_user(text + "those that later matches will bring", UnseenWarning)


def normalize_names(values: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """Add numbers as texts, which are the names of players in `Matches.from_frame`."""
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
    """Raise ValueError if dates follow numbers as times, or numbers follow dates."""
    dates = (columns or {}).get("dates")
    earlier = (like or {}).get("dates")
    kind = "numbers"
    expected = "dates, as before: pandas.to_datetime(..., unit='D') makes them of days since 1970"
    if dates:
        kind = "dates"
        expected = "numbers, as before"
    good = None in (dates, earlier) or dates == earlier
    require(good, kind, "the kind of times", expected)


def as_times(time: Any, like: dict[str, Any] | None) -> Floats:
    """Return times as numbers; dates, or their ISO texts, become days since 1970."""
    array = np.asarray(time)
    if pd.api.types.infer_dtype(array.ravel()) not in _DATE_TYPES:
        return as_floats(time, "time")
    check_clock({"dates": True}, like)
    return _numeric_times(pd.Series(array.ravel()))[0].reshape(array.shape)


def as_outcomes(
    y: ArrayLike, name: str = "y", kind: str | None = None, seen: Any = ()
) -> Any:
    """Return outcomes, with scores of the first, 1, 1/2 and 0, as 1, 0 and -1.

    Without a `kind`, a warning says how ambiguous outcomes were read, unless all were
    `seen` in earlier data.
    """
    if kind is not None:
        check_choice(kind, "outcomes", ("labels", "win-loss"))
    array = as_array(y, name)
    if array.ndim == 1 and array.dtype.kind == "O":  # as nullable integers are
        array = pd.Series(array).infer_objects().to_numpy()
    if kind == "labels" or array.dtype.kind not in "iuf" or array.ndim != 1:
        return y
    # pandas takes no bytes in the other order
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
    raise_if_any(wrong, array, name, "1 (won), 1/2 (tie) or 0 (lost)")
    return (2 * array.astype(np.float64) - 1).astype(np.int64)


def _warn_of_outcomes(array: NDArray, name: str, halves: bool) -> None:
    """Say how outcomes 1, 1/2 and 0, or 1 and 0, were read, and how to change it."""
    n_ties = np.count_nonzero(array == 0)
    if halves:
        text = "1, 1/2 and 0, read as wins, ties and losses of the first"
        labels = "points"
        remedy = ""
    else:
        text = f"1 and 0, read as {len(array) - n_ties} wins of the first and {n_ties} ties"
        labels = "this"
        remedy = "; where 0 is a loss, pass 2 * y - 1"
    if name != "y":  # a column of a frame
        remedy = f"; outcomes='labels' says that they are {labels}, outcomes='win-loss' that 0 is a loss"
    warn_user(f"{name} holds only {text}{remedy}", OutcomeWarning)


def given_outcomes(y: ArrayLike, matches: Matches) -> Any:
    """Return outcomes of matches, without a second warning for those of a frame."""
    return as_outcomes(y, seen=(matches.columns or {}).get("outcomes", ()))


def n_earlier(matches: Matches, start: int) -> int:
    """The number of matches that are earlier than match `start`.

    Raises
    ------
    ValueError
        If `matches` are not Matches, or `start` is not the number of a match with an
        earlier one.

    Examples
    --------
    >>> n_earlier(Matches([[1, -1], [1, -1], [1, -1]], [0, 1, 1], ["Ann", "Bob"]), start=2)
    1
    """
    check_matches(matches)
    n = len(matches)
    require(n > 1, n, "the number of matches", "one to forecast and an earlier one")
    good = isinstance(start, int | np.integer) and 0 < as_real(start) < n
    require(good, start, "start", f"the number of a match, from 1 to {n - 1}")
    known = int(np.searchsorted(matches.time, matches.time[start]))
    expected = f"a match that has an earlier one to learn from: {matches.time[start]:g} is the first time"
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
    """Matches of checked parts; only the order of times is checked here."""
    matches = Matches.__new__(Matches)
    matches.design = design
    matches.time = time
    matches.features = features
    matches.columns = columns
    _check_order(time)
    return matches


@njit
def two_players(starts, columns, values, named):
    """The named columns of +1 and of -1 in each row, and a row with other entries or -1."""
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
    design.data = as_floats(design.data, "design.data")
    wrong = ~(np.abs(design.data) <= LARGEST)  # true for NaN
    expected = "finite numbers up to 1e100 in size"
    raise_if_any(wrong, design.data, "design.data", expected)
    design.sum_duplicates()
    design.eliminate_zeros()
    n_entries = np.diff(design.indptr)
    expected = "two that differ, first and second"
    raise_if_any(n_entries == 0, n_entries, "the number of entries of design", expected)
    return design


def _checked_copy(design: Any) -> Any:
    """Copy a sparse design, or raise if SciPy would read outside its arrays."""
    try:
        design = design.copy()  # checks the coordinates of a COO array
        if hasattr(design, "indptr"):
            design.check_format(full_check=True)
            # SciPy does not check the order if the last value is 0 or less.
            back = np.diff(design.indptr) < 0
            raise_if_any(back, design.indptr[1:], "indptr[1:]", "an ascending sequence")
    except ValueError as error:
        raise ValueError(f"design is not a {design.format} array: {error}") from None
    return design


def _check_features(features: Iterable[Hashable]) -> tuple[Hashable, ...]:
    try:
        names = tuple(features)
        twice = [name for name, times in Counter(names).items() if times > 1]
    except TypeError:
        raise ValueError(
            f"features is {short_repr(features)}; expected hashable names, one per column"
        ) from None
    if twice:
        raise ValueError(
            f"features holds {short_repr(twice[0])} more than once; expected distinct names"
        )
    return names


def _check_order(time: Floats) -> None:
    raise_if_any(np.abs(time) > LARGEST, time, "time", "times up to 1e100 in size")
    back = np.diff(time, prepend=-np.inf) < 0
    if back.any():
        previous = time[np.argmax(back) - 1]
        expected = f"at least {previous:g}, the one before: sort the matches by time"
        raise_if_any(back, time, "time", expected)


def _complete(frame: pd.DataFrame, column: str) -> pd.Series:
    values = pd.Series(frame[column])
    missing = values.isna().to_numpy()
    values_shown = np.broadcast_to(np.nan, missing.shape)
    raise_if_any(missing, values_shown, f"column {column!r}", "a value in each row")
    return values


def _check_columns(frame: pd.DataFrame, columns: list[str], row: str) -> None:
    good = isinstance(frame, pd.DataFrame)
    require(good, frame, "frame", f"a DataFrame, one row per {row}")
    missing = [
        c for c in columns if not isinstance(c, str | int) or list(frame).count(c) != 1
    ]
    expected = f"also {short_repr(missing)}, once each"
    require(not missing, list(frame), "the list of columns", expected)
    require(len(frame) > 0, 0, "the number of rows of the frame", f"at least one {row}")


def _check_player_names(names: NDArray) -> None:
    expected = "another than the feature's"
    require(ADVANTAGE not in names, ADVANTAGE, "a player's name", expected)


def _performances(
    frame: pd.DataFrame, event: str, player: str, rank: str, time: str
) -> tuple[pd.DataFrame, bool]:
    """A row per player in an event, sorted by time, event and place, with its number in
    the column `index`; and whether the times were dates."""
    table = pd.DataFrame(
        {"event": _texts(frame, event), "player": _texts(frame, player)}
    )
    table["rank"] = frame[rank].to_numpy(np.float64)
    table["time"], dates = _numeric_times(_complete(frame, time))
    times = table["time"].to_numpy()
    first_times = table.groupby("event")["time"].transform("first").to_numpy()
    raise_if_any(
        times != first_times, times, f"column {time!r}", "one time in an event"
    )
    twice = table.duplicated(["event", "player"]).to_numpy()
    names = table["player"].to_numpy(object)
    raise_if_any(twice, names, f"column {player!r}", "each player once in an event")
    order = ["time", "event", "rank", "player"]
    table = table.sort_values(order, ignore_index=True).reset_index()
    table["place"] = table.groupby("event")["rank"].rank("dense")
    return table, dates


def _read_ranks(frame: pd.DataFrame, column: str, unranked: str) -> Floats:
    """Ranks as numbers: inf for a shared last place, NaN for a player left out.

    Raises
    ------
    ValueError
        If a text is neither a number nor a code of `unranked`, or is one of these codes
        and `unranked` is "raise".
    """
    name = f"column {column!r}"
    values = pd.Series(frame[column])
    if values.dtype.kind in "biuf":
        ranks = _numbers(_complete(frame, column), "iuf")
        return ranks.astype(np.float64)
    texts = values.astype("string").str.strip().str.upper().fillna("").to_numpy(object)
    numbers = np.array(pd.to_numeric(pd.Series(texts), errors="coerce"), float)
    is_number = np.isfinite(numbers)
    is_started = np.isin(texts, _STARTED_CODES)
    is_code = is_started | np.isin(texts, _NOT_STARTED_CODES)
    expected = f"a rank, or one of {', '.join(_STARTED_CODES + _NOT_STARTED_CODES)}"
    given = values.to_numpy(object)
    raise_if_any(~is_number & ~is_code, given, name, expected)
    if unranked == "raise":
        remedy = "a rank; pass unranked='last' to rank all who did not finish behind the others, or "
        raise_if_any(is_code, given, name, remedy + "unranked='drop' to leave them out")
    numbers[is_code] = np.nan
    if unranked == "last":
        numbers[is_started] = np.inf
    return numbers


def _numbers(
    values: pd.Series, kinds: str = "biuf", expected: str = "numbers"
) -> NDArray:
    values = values.infer_objects()
    # the NumPy type of a nullable one
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
        texts = times.astype(str)  # 03/04/2024 has two meanings, and 2024 is a number
        days = texts.where(texts.str.match(r"\d{4}-\d\d-\d\d"))
        times = pd.to_datetime(days, format="ISO8601", utc=True, errors="coerce")
        expected = "numbers, or dates: ISO texts such as 2024-01-31, or pandas.to_datetime(..., format=...)"
        raise_if_any(times.isna().to_numpy(), texts.to_numpy(object), name, expected)
    if times.dtype.kind != "M":
        expected = "numbers, or dates (pandas.to_datetime)"
        numbers = _numbers(times, "iuf", expected).astype(np.float64)
        arguments = _arguments_for_dates(numbers)
        if arguments is not None:
            text = f"the numbers of {name} look like dates ({numbers[0]:.0f}), but are taken as numbers"
            remedy = f"for dates use pandas.to_datetime({arguments})"
            warn_user(f"{text}; {remedy}", TimeWarning)
        return numbers, False
    if times.dt.tz is not None:
        times = times.dt.tz_convert(None)
    days = (times - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    return days.to_numpy(dtype=np.float64), True


def reads_as_date(numbers: Floats, form: str) -> NDArray[np.bool_]:
    """Which numbers read as dates from 1600 to 2200, or as times since 1970.

    Parameters
    ----------
    numbers : ndarray of shape (n,)
    form : {"%Y%m%d", "%Y%m", "s", "ms", "us", "ns"}
        Format of the digits, or unit of a time since 1970: from 1979 to 2103.

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
    """Names as texts."""
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
    """The distinct names as sorted texts, and the number of each value among them."""
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
        one_kind = f"names of one kind, as {first!r} in {where(0)}: 2.0 and 2 differ; astype(int)"
        for fine, expected in ((good, "a text or a number"), (alike, one_kind)):
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
    """Row, name and weight of each player in a column, with several in a line-up."""
    values = _complete(frame, column)
    if not any(issubclass(kind, list | tuple | Mapping) for kind in _types_of(values)):
        return np.arange(len(values)), values, np.ones(len(values))
    rows = []
    names = []
    weights = []
    for row, value in enumerate(values):
        if isinstance(value, Mapping):
            line_up = list(value.items())
        elif isinstance(value, list | tuple):
            line_up = [(name, 1.0) for name in value]
        else:
            line_up = [(value, 1.0)]
        where = f"row {row} of column {column!r}"
        require(len(line_up) > 0, value, f"the line-up in {where}", "a name at least")
        for name, weight in line_up:
            good = 0 < as_real(weight) <= LARGEST
            require(good, weight, f"a weight in {where}", "a positive number")
            rows.append(row)
            names.append(name)
            weights.append(weight)
    return np.array(rows), pd.Series(names, dtype=object), np.array(weights, float)


def _opponents(
    frame: pd.DataFrame, first: str, second: str
) -> tuple[list[str], Any, Any]:
    """The sorted names, the (N, 2) ids of first and second, or None for line-ups, and
    the design."""
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
            f"{names[ids[k]]!r} meets themselves in row {rows[k]}; expected two different opponents"
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
    """The distinct couples (a < b), and +1 or -1 in the column of each match's couple."""
    couples, column = np.unique(np.sort(players, axis=1), axis=0, return_inverse=True)
    n = len(players)
    sign = np.where(players[:, 0] < players[:, 1], 1.0, -1.0)
    block = sparse.csr_array(
        (sign, column.ravel(), np.arange(n + 1)), shape=(n, len(couples))
    )
    return couples.tolist(), block
