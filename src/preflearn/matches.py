"""Matches: comparisons with a time, as sparse rows over named features (section 2 of [Maystre2019]_).

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from preflearn.checks import (
    LARGEST,
    Floats,
    as_floats,
    as_real,
    check_array,
    check_flag,
    check_selection,
    check_shape,
    refuse,
    require,
    shown,
)
from preflearn.compiled import njit
from preflearn.pairs import Incidence

__all__ = ["Matches"]

ADVANTAGE = "advantage"  # the name of the feature for the home ground, or for the first move


class Matches:
    """Matches in the order of time; each is a sparse row, the first opponent minus the second.

    In [Maystre2019]_ an opponent's score is a linear combination of features (eq. 2), and the outcome of
    a match depends on x·s(t), with x = x_first - x_second, at its time t. In the simplest case a feature
    is a player, and the design is the incidence matrix of the comparison graph.

    Parameters
    ----------
    design : sparse array or array-like of shape (N, M)
        One row a match, one column a feature; no row without entries.
    time : array-like of float, shape (N,)
        Ascending, equal times allowed. Its unit is the caller's, and all lengths of time in the package
        (`period` of `Glicko`, for instance) are in this unit; `from_frame` turns dates into days.
    features : sequence of length M
        Distinct names. A str stands for a player or a team, but for "advantage"; a tuple for a
        combination of features, as of two players.

    Raises
    ------
    ValueError
        On wrong shapes, no match, values that are not finite, a sparse array whose parts do not fit
        together, a row without entries, names that are repeated, or a time before the one in the row above.

    Examples
    --------
    >>> matches = Matches([[1, -1, 0], [0, 1, -1]], [0.0, 2.5], ["Ann", "Bob", "Cy"])
    >>> matches
    Matches(2 matches, 3 features, time 0 to 2.5)
    >>> matches.players().tolist()
    [[0, 1], [1, 2]]
    """

    __slots__ = ("design", "features", "time")

    design: Any  # a csr_array, of which stubs know too little
    time: Floats
    features: tuple[Hashable, ...]

    def __init__(
        self, design: ArrayLike | sparse.sparray, time: ArrayLike, features: Iterable[Hashable]
    ) -> None:
        self.design, self.features = _check_design(design), _check_features(features)
        n_matches, n_features = self.design.shape
        if len(self.features) != n_features:
            raise ValueError(f"there are {len(self.features)} features; expected {n_features}, one a column")
        self.time = check_array(time, "time", (n_matches,), "one time a match")
        _check_order(self.time)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        first: str = "first",
        second: str = "second",
        time: str = "time",
        outcome: str = "outcome",
        advantage: str | None = None,
        interactions: bool = False,
    ) -> tuple[Matches, NDArray]:
        """Matches, and their outcomes, from the columns of a frame.

        **Dates become days**: a column of dates and times is turned into the number of days (a float)
        since 1970-01-01, UTC where it has a time zone, so that frames that are read one after the other
        share one clock. A column of numbers is kept, in its own unit.

        Parameters
        ----------
        frame : DataFrame
            One row a match, sorted by time; the loaders of `preflearn.datasets` return such frames.
        first, second : str
            The columns with the names of the opponents, which are read as str.
        time, outcome : str
            The columns with the time, and with the outcome: 1, 0, -1 (first won, tie, second won), or
            points of the first, or a difference of points; no bools, whose False would be a tie.
        advantage : str, optional
            A column, bool or number, that says how much of an advantage (home ground, first move) the
            first has over the second; it becomes the feature "advantage" (section 4.2.2).
        interactions : bool
            Whether to add a feature (a, b), a < b, for each two opponents that meet: +1 where a is first,
            -1 where b is, the s_ij of section 4.2.3 in d = s_i - s_j + s_ij.

        Returns
        -------
        matches : Matches
            Features: the names, sorted; then "advantage"; then the interactions, sorted.
        y : ndarray of shape (N,)
            The outcomes.

        Raises
        ------
        ValueError
            If a column or a value is missing or of another kind, names are floats in one column and not in
            the other, a player meets himself, no match is left, a name is "advantage" while `advantage` is
            given, or the times are not ascending. Rows count from 0.

        Warns
        -----
        UserWarning
            If all times are numbers that read as dates from 1600 to 2200, such as 20240131.

        Examples
        --------
        >>> import pandas as pd
        >>> day = pd.to_datetime(["1970-01-02", "1970-01-04"])
        >>> frame = pd.DataFrame({"first": ["Bob", "Cy"], "second": ["Ann", "Bob"],
        ...                       "time": day, "outcome": [1, 0], "home": [True, False]})
        >>> matches, y = Matches.from_frame(frame, advantage="home")
        >>> matches.features
        ('Ann', 'Bob', 'Cy', 'advantage')
        >>> matches.design.toarray().astype(int).tolist(), matches.time.tolist(), y.tolist()
        ([[-1, 1, 0, 1], [0, -1, 1, 0]], [1.0, 3.0], [1, 0])
        """
        columns = [first, second, time, outcome] + ([] if advantage is None else [advantage])
        require(isinstance(frame, pd.DataFrame), frame, "frame", "a DataFrame, one row a match")
        missing = [c for c in columns if not isinstance(c, str | int) or list(frame).count(c) != 1]
        require(not missing, list(frame), "the list of columns", f"also {shown(missing)}, once each")
        require(len(frame) > 0, len(frame), "the number of rows of the frame", "at least one match")
        names, players = _opponents(frame, first, second)
        features: list[Hashable] = list(names)
        blocks = [Incidence(players, len(names)).matrix()]
        if advantage is not None:
            require(ADVANTAGE not in features, ADVANTAGE, "a player's name", "another than the feature's")
            blocks.append(sparse.csr_array(_numbers(frame, advantage).astype(np.float64)[:, None]))
            features.append(ADVANTAGE)
        if check_flag(interactions, "interactions"):
            couples, block = _interactions(players)
            blocks.append(block)
            features += [(names[a], names[b]) for a, b in couples]
        design: Any = sparse.hstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]
        return cls(design, _clock(frame, time), features), _numbers(frame, outcome, "iuf")

    @property
    def shape(self) -> tuple[int, int]:
        """(N, M): matches and features."""
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
        return trusted(self.design[rows], self.time[rows], self.features)

    def players(self) -> NDArray[np.int64]:
        """The first and the second player of each match.

        Returns
        -------
        ids : ndarray of shape (N, 2)
            Positions in `features`, of the +1 and of the -1 among the features of players.

        Raises
        ------
        ValueError
            If some row is a match of line-ups: not exactly one +1 and one -1 among these features.
        """
        named = np.array([isinstance(name, str) and name != ADVANTAGE for name in self.features])
        ids, wrong = _two_players(self.design.indptr, self.design.indices, self.design.data, named)
        if wrong < 0:
            return ids
        row = slice(*self.design.indptr[wrong : wrong + 2])
        values = self.design.data[row][named[self.design.indices[row]]]
        first, second = np.count_nonzero(values == 1), np.count_nonzero(values == -1)
        raise ValueError(
            f"match {wrong} has {first} players with +1, {second} with -1 and "
            f"{len(values) - first - second} with other entries; expected one +1 and one -1: two players, no "
            "line-ups"
        )


def check_matches(matches: Matches) -> None:
    """Raise ValueError unless these are matches, at least one."""
    require(isinstance(matches, Matches), matches, "matches", "Matches")
    if len(matches) == 0:
        raise ValueError("there are no matches; expected at least one")


def n_earlier(matches: Matches, start: int) -> int:
    """The number of matches that are earlier than match `start`, for those who forecast from there on.

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
    if len(matches) < 2:
        raise ValueError(f"there are {len(matches)} matches; expected one to forecast and an earlier one")
    good = isinstance(start, int | np.integer) and 0 < as_real(start) < len(matches)
    require(good, start, "start", f"the number of a match, from 1 to {len(matches) - 1}")
    known = int(np.searchsorted(matches.time, matches.time[start]))
    if known == 0:
        raise ValueError(
            f"match {start} is at time {matches.time[start]:g}, as the first one is; expected a start that "
            "has an earlier match to learn from"
        )
    return known


def joined(old: Matches, new: Matches) -> Matches:
    """All matches, over the old features and then those that are new; the new ones are the later.

    Examples
    --------
    >>> both = joined(Matches([[1, -1]], [0], ["Ann", "Bob"]), Matches([[1, -1]], [1], ["Cy", "Ann"]))
    >>> both.features, both.design.toarray().astype(int).tolist()
    (('Ann', 'Bob', 'Cy'), [[1, -1, 0], [-1, 0, 1]])
    """
    features, x, z = old.features, old.design, new.design
    if new.features != features:
        column = {name: k for k, name in enumerate(dict.fromkeys((*features, *new.features)))}
        features, place = tuple(column), np.array([column[name] for name in new.features])
        z = sparse.csr_array((z.data, place[z.indices], z.indptr), (len(new), len(column)), copy=True)
        z.sort_indices()
    parts = (x.data, z.data), (x.indices, z.indices), (x.indptr, x.indptr[-1] + z.indptr[1:])
    design = sparse.csr_array(tuple(map(np.concatenate, parts)), (len(old) + len(new), len(features)))
    return trusted(design, np.concatenate([old.time, new.time]), features)


def trusted(design: Any, time: Floats, features: tuple[Hashable, ...]) -> Matches:
    """Matches of a design and features that were checked before; only the order of time is, here."""
    matches = Matches.__new__(Matches)
    matches.design, matches.time, matches.features = design, time, features
    _check_order(time)
    return matches


@njit
def _two_players(starts, columns, values, named):
    """The columns of +1 and of -1 in each row, among those named, and a row that has others, or -1."""
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
    if design.dtype.kind not in "biuf":
        raise ValueError(f"design has dtype {design.dtype}; expected real numbers")
    check_shape(design, "design", ("N", "M"), "one row a match, one column a feature")
    if 0 in design.shape:
        raise ValueError(f"design has shape {design.shape}; expected at least one match and one feature")
    design = sparse.csr_array(_fitting(design))
    design.data = as_floats(design.data, "design.data")
    wrong = ~(np.abs(design.data) <= LARGEST)  # true for NaN
    if wrong.any():
        row, column = (ids[wrong][0] for ids in design.tocoo().coords)
        raise ValueError(
            f"design[{row}, {column}] is {design.data[wrong][0]}; expected finite numbers up to 1e100 in size"
        )
    design.sum_duplicates()
    design.eliminate_zeros()
    empty = np.diff(design.indptr) == 0
    if empty.any():
        raise ValueError(
            f"row {np.argmax(empty)} of design has no entries: first and second are the same; "
            "expected two that differ"
        )
    return design


def _fitting(design: Any) -> Any:
    """A copy of the design, if its parts fit together: scipy reads wherever `indptr` and `indices` point."""
    try:
        design = design.copy()  # which checks the coordinates of a COO array
        if hasattr(design, "indptr"):
            design.check_format(full_check=True)
            back = np.diff(design.indptr) < 0  # which scipy overlooks where the last one is 0 or less
            refuse(back, design.indptr[1:], "indptr[1:]", "an ascending sequence")
    except ValueError as error:
        raise ValueError(f"design is no {design.format} array: {error}") from None
    return design


def _check_features(features: Iterable[Hashable]) -> tuple[Hashable, ...]:
    try:
        names = tuple(features)
        twice = [name for name, times in Counter(names).items() if times > 1]
    except TypeError:
        raise ValueError(f"features is {shown(features)}; expected hashable names, one a column") from None
    if twice:
        raise ValueError(f"features holds {shown(twice[0])} more than once; expected distinct names")
    return names


def _check_order(time: Floats) -> None:
    refuse(np.abs(time) > LARGEST, time, "time", "times up to 1e100 in size")
    back = np.diff(time) < 0
    if back.any():
        row = np.argmax(back) + 1
        raise ValueError(
            f"time falls from {time[row - 1]:g} to {time[row]:g} in row {row}; "
            "expected ascending times: sort the matches by time"
        )


def _complete(frame: pd.DataFrame, column: str) -> pd.Series:
    values = pd.Series(frame[column])
    missing = values.isna().to_numpy()
    if missing.any():
        raise ValueError(f"column {column!r} has no value in row {np.argmax(missing)}; expected one in each")
    return values


def _numbers(frame: pd.DataFrame, column: str, kinds: str = "biuf", expected: str = "numbers") -> NDArray:
    array = _complete(frame, column).to_numpy()
    if array.dtype.kind not in kinds:
        raise ValueError(f"column {column!r} has dtype {frame[column].dtype}; expected {expected}")
    refuse(~np.isfinite(array), array, f"column {column!r}", "finite numbers")
    return array


def _clock(frame: pd.DataFrame, column: str) -> Floats:
    times = _complete(frame, column)
    if not pd.api.types.is_datetime64_any_dtype(times):
        dates = "numbers, or dates (pandas.to_datetime)"
        numbers = _numbers(frame, column, "iuf", dates).astype(np.float64)
        month, day = numbers // 100 % 100, numbers % 100
        usual = np.isin(month, range(1, 13)) & np.isin(day, range(1, 32))  # and whole
        if (usual & (numbers > 1600_00_00) & (numbers < 2201_00_00)).all():
            warnings.warn(
                f"the numbers of column {column!r} read as dates ({numbers[0]:.0f}), but are taken as times, "
                "in which a month is 100 long; expected dates: pandas.to_datetime(..., format='%Y%m%d')",
                UserWarning,
                stacklevel=3,
            )
        return numbers
    if times.dt.tz is not None:
        times = times.dt.tz_convert(None)
    return ((times - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)).to_numpy(dtype=np.float64)


def _opponents(frame: pd.DataFrame, first: str, second: str) -> tuple[list[str], NDArray[np.int64]]:
    """The sorted names, and the (N, 2) ids of first and second among them."""
    columns = [_complete(frame, side) for side in (first, second)]
    kinds = {"float" in pd.api.types.infer_dtype(column.to_numpy()) for column in columns}
    if len(kinds) > 1:  # as str, 2.0 and 2 are two players
        raise ValueError(
            f"column {first!r} has dtype {columns[0].dtype}, {second!r} {columns[1].dtype}; expected names "
            "of one kind: astype(int) both, for instance"
        )
    both = np.concatenate([column.astype(str).to_numpy(object) for column in columns])
    ids, names = pd.factorize(both, sort=True)
    players = ids.reshape(2, -1).T
    same = players[:, 0] == players[:, 1]
    if same.any():
        row = np.argmax(same)
        raise ValueError(f"{both[row]!r} meets himself in row {row}; expected two different opponents")
    return [str(name) for name in names], players


def _interactions(players: NDArray[np.int64]) -> tuple[list[list[int]], sparse.csr_array]:
    """The distinct couples (a < b), and +1 or -1 in the column of each match's couple."""
    couples, column = np.unique(np.sort(players, axis=1), axis=0, return_inverse=True)
    n = len(players)
    sign = np.where(players[:, 0] < players[:, 1], 1.0, -1.0)
    block = sparse.csr_array((sign, column.ravel(), np.arange(n + 1)), shape=(n, len(couples)))
    return couples.tolist(), block
