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
import os
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from numbers import Real
from typing import Any, Literal, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.types import union_categoricals
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
    check_count,
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

# the name of the feature for the home ground, or for the first move
ADVANTAGE = "advantage"
# of features (PERFORMANCE, event, player), and of their covariance
PERFORMANCE = "performance"
SHARPNESS = 100.0  # of performances: the noise of a comparison is a hundredth of theirs
_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # of times since 1970
_LISTED = 5  # unseen names in a message
_FEW = 3  # wins, of which it is no wonder that none is the second's
_LABELS = -1, 0, 0.5, 1
# of inferred_type, of categories that need no look at each row
_NAMES = "string", "integer"
_DATES = "string", "date", "datetime", "datetime64"  # of infer_dtype


class OutcomeWarning(UserWarning):
    """Outcomes may mean something else: 1 and 0 are win and tie, half points are scores
    of the first."""


class TimeWarning(UserWarning):
    """Times, or lengths and rates of a covariance, may be in another unit than is
    meant."""


class UnseenWarning(UserWarning):
    """Names in a forecast that nothing was learned of: misspelt, or newcomers."""


class Matches:
    """Matches in the order of time; each is a sparse row, the first opponent minus the
    second.

    In [Maystre2019]_ an opponent's score is a linear combination of features (eq. 2),
    and the outcome of a match depends on x·s(t), with x = x_first - x_second, at its
    time t. In the simplest case a feature is a player, and the design is the incidence
    matrix of the comparison graph.

    Parameters
    ----------
    design : sparse array or array-like of shape (N, M)
        One row a match, one column a feature; no row without entries.
    time : array-like of float, shape (N,)
        Ascending, equal times allowed. Its unit is the caller's, and all lengths of
        time in the package (`period` of `Glicko`, for instance) are in this unit;
        `from_frame` turns dates into days.
    features : sequence of length M
        Distinct names. A str stands for a player or a team, but for "advantage"; a
        tuple for a combination of features, as of two players.

    Attributes
    ----------
    columns : dict or None
        The arguments that `from_frame` read a frame with, by which a model reads the
        next one; whether its times were `dates`, and which of the `outcomes` 1, 1/2, 0
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

    @classmethod
    def from_frame(
        cls,
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
            One row a match, sorted by time; the loaders of `preflearn.datasets` return
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
            "labels": outcomes are as they stand. "win-loss": they are scores of the
            first, 1 won, 1/2 tie, 0 lost, and become 1, 0, -1. None: scores where there
            are only 1, 1/2 and 0, else as they stand; a warning says so where they
            might mean something else.

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
            and others are not, a player meets himself, no match is left, a name is
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
            blocks.append(
                sparse.csr_array(
                    _numbers(_complete(frame, advantage)).astype(np.float64)[:, None]
                )
            )
            features.append(ADVANTAGE)
        if check_flag(interactions, "interactions"):
            require(
                players is not None,
                True,
                "interactions",
                "False where there are line-ups",
            )
            couples, block = _interactions(players)
            blocks.append(block)
            features += [(names[a], names[b]) for a, b in couples]
        design: Any = (
            sparse.hstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]
        )
        at, dates = _clock(_complete(frame, time))
        matches = cls(design, at, features)
        read = {"first": first, "second": second, "time": time, "advantage": advantage}
        matches.columns = {
            **read,
            "interactions": bool(interactions),
            "dates": dates,
            "outcomes": [],
        }
        if outcome is None:
            return matches
        y = as_outcomes(
            _numbers(_complete(frame, outcome), "iuf"), f"column {outcome!r}", outcomes
        )
        kinds = pd.unique(y)
        matches.columns["outcomes"] = [
            v for v in _LABELS if v in kinds or v in np.sign(kinds)
        ]
        return matches, y

    @classmethod
    def from_parquet(
        cls,
        path: str | os.PathLike[str],
        *,
        first: str = "first",
        second: str = "second",
        time: str = "time",
        outcome: str | None = "outcome",
        advantage: str | None = None,
        interactions: bool = False,
        outcomes: Literal["labels", "win-loss"] | None = None,
        chunk: int = 1_000_000,
    ) -> Any:
        """Matches, and their outcomes, from a Parquet file that is read in parts.

        What `from_frame` gives of the whole file, in less memory: names become numbers
        part by part, so that each name is held once and not once a match. It needs
        pyarrow, of the extra ``preflearn[book]``.

        Parameters
        ----------
        path : path-like
            Rows sorted by time. Line-ups are not read from files: give `from_frame` a
            frame of lists.
        first, second, time, outcome, advantage, interactions, outcomes
            As in `from_frame`. Times that are timestamps or numbers take less memory
            than texts.
        chunk : int
            The most rows that are read at a time.

        Returns
        -------
        As `from_frame`.

        Raises
        ------
        ValueError
            As `from_frame`, whose rows are those of the file; if it is no Parquet file.
        OSError
            If there is no such file, or it can't be read.
        ImportError
            Without pyarrow.

        Examples
        --------
        >>> import pytest; _ = pytest.importorskip("pyarrow")
        >>> import pandas as pd, tempfile
        >>> games = {"first": ["Bob", "Cy"], "second": ["Ann", "Bob"], "time": [1.0, 3.0], "outcome": [1, -1]}
        >>> with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        ...     pd.DataFrame(games).to_parquet(file.name)
        ...     matches, y = Matches.from_parquet(file.name, chunk=1)
        >>> matches.features, y.tolist()
        (('Ann', 'Bob', 'Cy'), [1, -1])
        """
        read = {
            "first": first,
            "second": second,
            "time": time,
            "outcome": outcome,
            "advantage": advantage,
        }
        frame = _read(
            list(filter(None, read.values())), path, check_count(chunk, "chunk", 1)
        )
        return cls.from_frame(
            frame, **read, interactions=interactions, outcomes=outcomes
        )

    @classmethod
    def from_rankings(
        cls,
        frame: pd.DataFrame,
        *,
        event: str = "event",
        player: str = "player",
        rank: str = "rank",
        time: str = "time",
    ) -> tuple[Matches, NDArray[np.int8]]:
        """Races, podiums and free-for-alls as comparisons of performances: TrueSkill's
        game of many sides.

        In each event a player's performance is his score and an error of variance 1/2,
        so that the error of a difference of two is that of `Probit`, and better ranks
        are better performances ([Herbrich2006]_). So each error is a feature,
        ("performance", event, player), whose covariance is Constant(1/2) unless a
        mapping of covariances names "performance"; and who is compared with whom knows
        it: a chain of neighbours in rank says as much as all pairs. Players of one rank
        are not compared with each other, but all of them with all of the next rank:
        after a podium, give the rest one rank.

        Parameters
        ----------
        frame : DataFrame
            One row a player in an event, in any order.
        event, player : str
            The columns with the names of events and of players, texts or numbers.
        rank, time : str
            The columns with the rank, the smallest is the best, and with the time, as
            in `from_frame`, which is one time in an event.

        Returns
        -------
        matches : Matches
            Features: the players, sorted; then the performances. Entries are 100 or
            -100, which makes the comparison of two performances all but free of noise:
            fit them with `Probit` and method="ep".
        y : ndarray of shape (N,)
            All 1: the first is the one of better rank.

        Raises
        ------
        ValueError
            If a column or a value is missing or of another kind, a player is twice in
            an event, an event has two times, or no event has two ranks.

        Notes
        -----
        There are no weights of events: that an order is told twice says nothing new of
        the same performances. `fit` refuses a `sample_weight` other than 0 and 1, and
        method="kl", which takes the sharp comparisons for far more than they say. Where
        an event counts twice, give it twice, with two names.

        Score and error of a player count as independent in the posterior. For three
        equal sides of variance 1 exact integration gives the means ±0.691 and the
        standard deviations 0.840, 0.795, 0.840; ours are ±0.699 and 0.852, 0.770,
        0.852. With two sides the first game is exact.

        The more are ranked together, the more deviations fall short: of intervals of 95
        % for scores less their mean, 84 in 100 held in simulated seasons of races of
        eight, and 65 in races of forty. Where events differ in time, 94 to 97 do if a
        player's errors are a part of his own covariance: leave out the performances, as
        in `Matches(design[:, :n], time, features[:n])` of n players, and add
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
        """
        _check_columns(frame, [event, player, rank, time], "player in an event")
        table = pd.DataFrame(
            {"event": _texts(frame, event), "player": _texts(frame, player)}
        )
        table["rank"] = _numbers(_complete(frame, rank), "iuf")
        table["time"], dates = _clock(_complete(frame, time))
        late = table["time"] != table.groupby("event")["time"].transform("first")
        raise_if_any(
            late.to_numpy(),
            table["time"].to_numpy(),
            f"column {time!r}",
            "one time in an event",
        )
        twice = table.duplicated(["event", "player"])
        names = table["player"].to_numpy(object)
        raise_if_any(
            twice.to_numpy(),
            names,
            f"column {player!r}",
            "each player once in an event",
        )
        table = table.sort_values(
            ["time", "event", "rank", "player"], ignore_index=True
        ).reset_index()
        table["place"] = table.groupby("event")["rank"].rank("dense")
        next_ones = table.assign(place=table["place"] - 1)
        index = table.merge(next_ones, on=["event", "place"])[
            ["index_x", "index_y"]
        ].to_numpy(np.int64)
        require(
            len(index) > 0,
            len(index),
            "the number of comparisons",
            "an event with two ranks",
        )
        people, side = np.unique(table["player"].to_numpy(object), return_inverse=True)
        require(
            ADVANTAGE not in people,
            ADVANTAGE,
            "a player's name",
            "another than the feature's",
        )
        blocks = [
            Incidence(side[index], len(people)).matrix(),
            Incidence(index, len(table)).matrix(),
        ]
        design: Any = SHARPNESS * sparse.hstack(blocks, format="csr")
        own = zip(
            [PERFORMANCE] * len(table), table["event"], table["player"], strict=True
        )
        # some were alone in an event
        features = [*people.tolist(), *own]
        used = np.unique(design.indices)
        found = cls(
            design[:, used],
            table["time"].to_numpy()[index[:, 0]],
            [features[k] for k in used],
        )
        found.columns = {"dates": dates}
        return found, np.ones(len(index), dtype=np.int8)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of matches and of features."""
        return len(self), len(self.features)

    def __len__(self) -> int:
        return len(self.time)

    def __repr__(self) -> str:
        span = f", time {self.time[0]:g} to {self.time[-1]:g}" if len(self) else ""
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
            Positions in `features`, of the +1 and of the -1 among the features of
            players.

        Raises
        ------
        ValueError
            If some row is a match of line-ups: not exactly one +1 and one -1 among
            these features.
        """
        named = np.array(
            [isinstance(name, str) and name != ADVANTAGE for name in self.features]
        )
        ids, wrong = _two_players(
            self.design.indptr, self.design.indices, self.design.data, named
        )
        if wrong >= 0:
            row = slice(*self.design.indptr[wrong : wrong + 2])
            values = self.design.data[row][named[self.design.indices[row]]].tolist()
            expected = "one +1 and one -1: two players, no line-ups"
            require(
                False,
                values,
                f"the list of players' entries in match {wrong}",
                expected,
            )
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
    """Matches to forecast; a frame is read `like` another one.

    With a word on names that are no features.
    """
    check_choice(unseen, "unseen", ("warn", "raise", "ignore"))
    if isinstance(matches, pd.DataFrame):
        read = {
            name: value
            for name, value in (like or {}).items()
            if name not in ("dates", "outcomes")
        }
        matches = Matches.from_frame(matches, outcome=None, **read)
    asked = check_matches(matches)
    check_clock(asked.columns, like)
    if unseen == "ignore" or asked.features is features:
        return asked
    present = np.flatnonzero(
        np.bincount(asked.design.indices, minlength=len(asked.features))
    )
    names = [
        name
        for name in map(asked.features.__getitem__, present)
        if not isinstance(name, tuple)
    ]
    if listed := _unknown_names(names, features):
        text = f"nothing was learned of {listed}; expected names of `fit`"
        if unseen == "raise":
            raise ValueError(text)
        text += ": they are forecast as newcomers, unseen='raise' refuses them, unseen='ignore' says nothing"
        warn_user(text, UnseenWarning)
    return asked


def _unknown_names(names: Iterable[Hashable], known: Collection[Hashable]) -> str:
    """Those that are not known, with the nearest names that are, as messages list them."""
    known = set(known)
    strange = [name for name in names if name not in known]
    texts = (
        [name for name in known if isinstance(name, str) and name != ADVANTAGE]
        if strange
        else []
    )
    near = {
        a: difflib.get_close_matches(str(a), texts, 1, 0.0) for a in strange[:_LISTED]
    }
    listed = (
        short_repr(a)
        + "".join(f" (the nearest known name is {short_repr(b)})" for b in near[a])
        for a in near
    )
    return ", ".join(listed) + f" and {len(strange) - _LISTED} more" * (
        len(strange) > _LISTED
    )


def warn_unknown_names(
    name: str, given: Mapping[Hashable, Any], known: Collection[Hashable]
) -> None:
    """Warn where the argument `name`, a mapping, names what is no feature of the
    matches."""
    found = set(known)
    read = [
        str(key) if isinstance(key, Real) and key not in found else key for key in given
    ]
    if listed := _unknown_names(read, found):  # no error: later matches may bring them
        text = f"{name} names {listed}, but no match has such a feature; expected names of features, or of "
        warn_user(text + "those that later matches will bring", UnseenWarning)


def normalize_names(given: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
    """With the names of players as `Matches.from_frame` reads them: a number is a text
    there."""
    return {
        str(name): value for name, value in given.items() if isinstance(name, Real)
    } | dict(given)


def is_performance(name: Any) -> TypeGuard[tuple[str, str, str]]:
    """Whether a feature is the error of a performance in an event."""
    return isinstance(name, tuple) and len(name) == 3 and name[0] == PERFORMANCE


def check_clock(columns: dict[str, Any] | None, like: dict[str, Any] | None) -> None:
    """Raise ValueError where some times were dates, and those before plain numbers, or
    the reverse."""
    dates, before = ((read or {}).get("dates") for read in (columns, like))
    days = "dates, as those before: pandas.to_datetime(..., unit='D') makes them of days since 1970"
    good = None in (dates, before) or dates == before
    kind = "dates" if dates else "numbers"
    require(
        good, kind, "the kind of times", days if before else "numbers, as those before"
    )


def as_times(time: Any, like: dict[str, Any] | None) -> Floats:
    """Times as numbers: dates, or their ISO texts, become days since 1970, as in
    `Matches.from_frame`."""
    array = np.asarray(time)
    if pd.api.types.infer_dtype(array.ravel()) not in _DATES:
        return as_floats(time, "time")
    check_clock({"dates": True}, like)
    return _clock(pd.Series(array.ravel()))[0].reshape(array.shape)


def as_outcomes(
    y: ArrayLike, name: str = "y", meant: str | None = None, read: Any = ()
) -> Any:
    """Outcomes in which scores of the first, 1, 1/2 and 0, became 1, 0 and -1.

    Without a word on what is `meant`, and unless they were `read` before, a warning
    says what was understood where it may be something else.
    """
    if meant is not None:
        check_choice(meant, "outcomes", ("labels", "win-loss"))
    array = as_array(y, name)
    if array.ndim == 1 and array.dtype.kind == "O":  # as nullable integers are
        array = pd.Series(array).infer_objects().to_numpy()
    if meant == "labels" or array.dtype.kind not in "iuf" or array.ndim != 1:
        return y
    found = set(pd.unique(array).tolist())
    if meant is None and found <= set(read):
        return y
    half = 0.5 in found and found <= {0, 0.5, 1}
    bare = found == {0, 1} and np.count_nonzero(array) > _FEW
    if meant is None and (half or bare):
        ties = np.count_nonzero(array == 0)
        text = "1, 1/2 and 0, read as wins, ties and losses of the first"
        if bare:
            text = f"1 and 0, read as {len(array) - ties} wins of the first and {ties} ties"
        how = "; where 0 is a loss, pass 2 * y - 1" if bare else ""
        if name != "y":  # a frame is asked
            how = "; outcomes='labels' says that they are " + (
                "points" if half else "this"
            )
            how += ", outcomes='win-loss' that 0 is a loss"
        warn_user(f"{name} holds only {text}{how}", OutcomeWarning)
    if meant is None and not half:
        return y
    raise_if_any(
        ~np.isin(array, [0, 0.5, 1]), array, name, "1 (won), 1/2 (tie) or 0 (lost)"
    )
    return (2 * array.astype(np.float64) - 1).astype(np.int64)


def given_outcomes(y: ArrayLike, matches: Matches) -> Any:
    """Outcomes that came with matches: what a frame had was told of when it was read."""
    return as_outcomes(y, read=(matches.columns or {}).get("outcomes", ()))


def n_earlier(matches: Matches, start: int) -> int:
    """The number of matches that are earlier than match `start`, for those who forecast
    from there on.

    Raises
    ------
    ValueError
        If these are no matches, `start` is not the number of one, or none is earlier.

    Examples
    --------
    >>> n_earlier(Matches([[1, -1], [1, -1], [1, -1]], [0, 1, 1], ["Ann", "Bob"]), start=2)
    1
    """
    check_matches(matches)
    require(
        len(matches) > 1,
        len(matches),
        "the number of matches",
        "one to forecast and an earlier one",
    )
    good = isinstance(start, int | np.integer) and 0 < as_real(start) < len(matches)
    require(
        good, start, "start", f"the number of a match, from 1 to {len(matches) - 1}"
    )
    known = int(np.searchsorted(matches.time, matches.time[start]))
    expected = f"a match that has an earlier one to learn from: {matches.time[start]:g} is the first time"
    require(known > 0, start, "start", expected)
    return known


def concatenate(old: Matches, new: Matches) -> Matches:
    """All matches, over the old features and then those that are new; the new ones are
    the later.

    Examples
    --------
    >>> both = joined(Matches([[1, -1]], [0], ["Ann", "Bob"]), Matches([[1, -1]], [1], ["Cy", "Ann"]))
    >>> both.features, both.design.toarray().astype(int).tolist()
    (('Ann', 'Bob', 'Cy'), [[1, -1, 0], [-1, 0, 1]])
    """
    check_clock(new.columns, old.columns)
    features = tuple(dict.fromkeys((*old.features, *new.features)))
    column = {name: k for k, name in enumerate(features)}
    x = old.design
    z = new.design
    place = np.array([column[name] for name in new.features])
    z = sparse.csr_array(
        (z.data, place[z.indices], z.indptr), (len(new), len(features)), copy=True
    )
    z.sort_indices()
    parts = (
        (x.data, z.data),
        (x.indices, z.indices),
        (x.indptr, x.indptr[-1] + z.indptr[1:]),
    )
    design = sparse.csr_array(
        tuple(map(np.concatenate, parts)), (len(old) + len(new), len(features))
    )
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
    """Matches of a design and features that were checked before; only the order of time
    is, here."""
    matches = Matches.__new__(Matches)
    matches.design = design
    matches.time = time
    matches.features = features
    matches.columns = columns
    _check_order(time)
    return matches


@njit
def _two_players(starts, columns, values, named):
    """The columns of +1 and of -1 in each row, among those named, and a row that has
    others, or -1."""
    ids = np.full((len(starts) - 1, 2), -1, dtype=np.int64)
    for row in range(len(ids)):
        for k in range(starts[row], starts[row + 1]):
            if named[columns[k]]:
                side = 0 if values[k] == 1 else 1
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
    require(
        0 not in design.shape,
        design.shape,
        "the shape of design",
        "at least one match and one feature",
    )
    design = sparse.csr_array(_fitting(design))
    design.data = as_floats(design.data, "design.data")
    wrong = ~(np.abs(design.data) <= LARGEST)  # true for NaN
    raise_if_any(wrong, design, "design", "finite numbers up to 1e100 in size")
    design.sum_duplicates()
    design.eliminate_zeros()
    entries = np.diff(design.indptr)
    raise_if_any(
        entries == 0,
        entries,
        "the number of entries of design",
        "two that differ, first and second",
    )
    return design


def _fitting(design: Any) -> Any:
    """A copy of the design, if its parts fit together: scipy reads wherever `indptr`
    and `indices` point."""
    try:
        design = design.copy()  # which checks the coordinates of a COO array
        if hasattr(design, "indptr"):
            design.check_format(full_check=True)
            # which scipy overlooks where the last one is 0 or less
            back = np.diff(design.indptr) < 0
            raise_if_any(back, design.indptr[1:], "indptr[1:]", "an ascending sequence")
    except ValueError as error:
        raise ValueError(f"design is no {design.format} array: {error}") from None
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
    before = time[np.argmax(back) - 1] if back.any() else 0.0
    raise_if_any(
        back,
        time,
        "time",
        f"at least {before:g}, the one before: sort the matches by time",
    )


def _complete(frame: pd.DataFrame, column: str) -> pd.Series:
    values = pd.Series(frame[column])
    missing = values.isna().to_numpy()
    raise_if_any(
        missing,
        np.broadcast_to(np.nan, missing.shape),
        f"column {column!r}",
        "a value in each row",
    )
    return values


def _check_columns(frame: pd.DataFrame, columns: list[str], row: str) -> None:
    require(
        isinstance(frame, pd.DataFrame),
        frame,
        "frame",
        f"a DataFrame, one row per {row}",
    )
    missing = [
        c for c in columns if not isinstance(c, str | int) or list(frame).count(c) != 1
    ]
    require(
        not missing,
        list(frame),
        "the list of columns",
        f"also {short_repr(missing)}, once each",
    )
    require(
        len(frame) > 0,
        len(frame),
        "the number of rows of the frame",
        f"at least one {row}",
    )


def _read(columns: list[str], path: str | os.PathLike[str], chunk: int) -> pd.DataFrame:
    """The columns of a Parquet file; in the first two, names are categories."""
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError:
        raise ImportError(
            "no pyarrow, which reads Parquet files: pip install '.[book]' has it"
        ) from None
    try:
        opened = parquet.ParquetFile(path)
    except ArrowInvalid as error:
        raise ValueError(f"{os.fspath(path)!r} is no Parquet file: {error}") from None
    with opened as file:
        rows = range(min(file.metadata.num_rows, 1))
        _check_columns(
            pd.DataFrame(columns=file.schema_arrow.names, index=rows), columns, "match"
        )
        parts: dict[str, list[pd.Series]] = {name: [] for name in columns}
        for batch in file.iter_batches(chunk, columns=list(parts)):
            for name, found in parts.items():
                values = batch.column(name).to_pandas()
                named = (
                    name in columns[:2] and pd.api.types.infer_dtype(values) in _NAMES
                )
                found.append(values.astype("category") if named else values)
    return pd.DataFrame(
        {name: _stacked(parts.pop(name)) for name in list(parts)}, copy=False
    )


def _stacked(parts: list[pd.Series]) -> pd.Series:
    """One after the other; categories stay, where all have some of one type."""
    kinds = {
        part.cat.categories.dtype if hasattr(part, "cat") else None for part in parts
    }
    if len(kinds) == 1 and None not in kinds:
        return pd.Series(union_categoricals(parts, ignore_order=True))
    # As objects: one type of unlike numbers would be that of floats, which are other
    # names.
    plain = [part.astype(object) if hasattr(part, "cat") else part for part in parts]
    return pd.concat(plain, ignore_index=True)


def _numbers(
    values: pd.Series, kinds: str = "biuf", expected: str = "numbers"
) -> NDArray:
    values = values.infer_objects()
    # of a nullable one
    array = values.to_numpy(getattr(values.dtype, "numpy_dtype", None))
    if array.dtype.kind not in kinds:
        raise ValueError(
            f"{_place(values)} has dtype {values.dtype}; expected {expected}"
        )
    raise_if_any(~np.isfinite(array), array, _place(values), "finite numbers")
    return array


def _place(values: pd.Series) -> str:
    return "time" if values.name is None else f"column {values.name!r}"


def _clock(times: pd.Series) -> tuple[Floats, bool]:
    """Times as numbers, and whether they were dates."""
    if times.dtype.kind == "O" and pd.api.types.infer_dtype(times) in _DATES:
        texts = times.astype(str)  # 03/04/2024 has two meanings, and 2024 is a number
        days = texts.where(texts.str.match(r"\d{4}-\d\d-\d\d"))
        times = pd.to_datetime(days, format="ISO8601", utc=True, errors="coerce")
        expected = "numbers, or dates: ISO texts such as 2024-01-31, or pandas.to_datetime(..., format=...)"
        if (wrong := times.isna().to_numpy()).any():
            raise_if_any(wrong, texts.to_numpy(object), _place(times), expected)
    if times.dtype.kind != "M":
        expected = "numbers, or dates (pandas.to_datetime)"
        numbers = _numbers(times, "iuf", expected).astype(np.float64)
        if (how := _dates(numbers)) is not None:
            text = f"the numbers of {_place(times)} read as dates ({numbers[0]:.0f}), but are taken as they"
            warn_user(
                f"{text} stand; expected dates: pandas.to_datetime({how})", TimeWarning
            )
        return numbers, False
    if times.dt.tz is not None:
        times = times.dt.tz_convert(None)
    return ((times - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)).to_numpy(
        dtype=np.float64
    ), True


def _dates(numbers: Floats) -> str | None:
    """How pandas.to_datetime would read numbers that look like dates, or None."""
    low = numbers.min()
    high = numbers.max()
    for form, size in (("%Y%m%d", 1_00_00), ("%Y%m", 1_00)):
        if 1600 * size < low <= high < 2201 * size:
            # and whole
            month = numbers * 100 // size % 100
            day = numbers % 100
            if (np.isin(month, range(1, 13)) & np.isin(day, range(1, 32))).all():
                return f"time.astype(int).astype(str), format={form!r}"
    # 1979 to 2103
    found = [
        unit for unit, size in _UNITS.items() if 3e8 * size < low <= high < 4.2e9 * size
    ]
    return f"time, unit={found[0]!r}" if found else None


def _texts(frame: pd.DataFrame, column: str) -> NDArray:
    """Names as texts."""
    names, ids = _named(
        _complete(frame, column).to_numpy(object),
        lambda k: f"row {k} of column {column!r}",
    )
    return names[ids]


def _named(
    given: NDArray | pd.Categorical, where: Callable[[int], str]
) -> tuple[NDArray, NDArray[np.int64]]:
    """The names as sorted texts, and the number of each that was given among them."""
    listed = (
        np.asarray(given.categories, object)
        if isinstance(given, pd.Categorical)
        else given
    )
    kinds = (
        {str}
        if pd.api.types.infer_dtype(listed, skipna=False) == "string"
        else set(map(type, listed))
    )
    strange = {
        kind for kind in kinds if kind is bool or not issubclass(kind, str | Real)
    }
    floats = {kind for kind in kinds if issubclass(kind, float | np.floating)}
    if strange or floats:
        good = [
            type(name) not in strange
            and (isinstance(name, str) or abs(name) < math.inf)
            for name in given
        ]
        alike = [(type(name) in floats) == (type(given[0]) in floats) for name in given]
        one_kind = f"names of one kind, as {given[0]!r} in {where(0)}: as texts, 2.0 and 2 differ; astype(int)"
        for fine, expected in ((good, "a text or a number"), (alike, one_kind)):
            k = int(np.argmin(fine))
            require(fine[k], given[k], f"the name in {where(k)}", expected)
    ids, found = pd.factorize(given)
    order, names = pd.factorize(
        np.array([str(name) for name in found], dtype=object), sort=True
    )
    return np.asarray(names), order[ids]


def _side(frame: pd.DataFrame, column: str) -> tuple[NDArray, pd.Series, Floats]:
    """Row, name and weight of each player in a column: one a row, or more where there
    are line-ups."""
    values = _complete(frame, column)
    if not hasattr(values, "cat") or values.cat.categories.inferred_type not in _NAMES:
        values = values.astype(object)
    mixed = pd.api.types.infer_dtype(values, skipna=False).startswith("mixed")
    if not mixed or not any(
        issubclass(kind, list | tuple | Mapping) for kind in set(map(type, values))
    ):
        return np.arange(len(values)), values, np.ones(len(values))
    found = []
    for row, value in enumerate(values):
        line_up = value if isinstance(value, list | tuple | Mapping) else [value]
        require(
            len(line_up) > 0,
            value,
            f"the line-up in row {row} of column {column!r}",
            "a name at least",
        )
        found += [
            (row, name, line_up[name] if isinstance(value, Mapping) else 1.0)
            for name in line_up
        ]
    rows, names, weights = zip(*found, strict=True)
    for row, weight in zip(rows, weights, strict=True):
        good = 0 < as_real(weight) <= LARGEST
        require(
            good,
            weight,
            f"a weight in row {row} of column {column!r}",
            "a positive number",
        )
    return np.array(rows), pd.Series(names, dtype=object), np.array(weights, float)


def _opponents(
    frame: pd.DataFrame, first: str, second: str
) -> tuple[list[str], Any, Any]:
    """The sorted names, the (N, 2) ids of first and second among them, None for
    line-ups, and the design."""
    sides = [_side(frame, column) for column in (first, second)]
    rows, weights = (np.concatenate([side[k] for side in sides]) for k in (0, 2))
    both: Any = _stacked([side[1] for side in sides]).values
    n = len(sides[0][0])
    names, ids = _named(
        both, lambda k: f"row {rows[k]} of column {first if k < n else second!r}"
    )
    require(
        ADVANTAGE not in names,
        ADVANTAGE,
        "a player's name",
        "another than the feature's",
    )
    single = len(ids) == 2 * n == 2 * len(frame)
    twice = (
        ids == np.roll(ids, n)
        if single
        else pd.Series(rows * len(names) + ids).duplicated().to_numpy()
    )
    if twice.any():
        k = np.argmax(twice)
        name = np.asarray(both[k]).tolist()  # as Python writes it
        raise ValueError(
            f"{name!r} meets himself in row {rows[k]}; expected two different opponents"
        )
    listed = names.tolist()
    if single and (weights == 1).all():
        players = ids.reshape(2, -1).T
        return listed, players, Incidence(players, len(names)).matrix()
    weights[n:] *= -1
    return (
        listed,
        None,
        sparse.csr_array((weights, (rows, ids)), shape=(len(frame), len(names))),
    )


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
