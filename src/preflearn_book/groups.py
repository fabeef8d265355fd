"""Groups that the comparisons of a file do not connect, for the reports."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import rankdata

from preflearn.matches import Matches
from preflearn_book.reading.columns import first_few
from preflearn_book.reading.labels import escape_markdown
from preflearn_book.sentences import counted

_N_DRAWS = 4_000
_MAX_NAMES = 3


def group_numbers(components: Sequence[Sequence[Any]]) -> dict[Any, int]:
    """Number of the group of each name, from 1 on.

    Examples
    --------
    >>> group_numbers([["Ann", "Bob"], ["Cy"]])
    {'Ann': 1, 'Bob': 1, 'Cy': 2}
    """
    return {name: number for number, part in enumerate(components, 1) for name in part}


def connectivity(
    index: NDArray[Any], y: NDArray[Any], names: Sequence[Any], what: str, through: str
) -> str:
    """Say which competitors or items can be ranked against each other, as Markdown.

    Parameters
    ----------
    index : ndarray of int, shape (m, 2)
        Position in `names` of the first and the second in each comparison.
    y : ndarray of shape (m,)
        Outcomes 1, 0, -1.
    names : sequence
        Names of what was compared.
    what : str
        Plural noun for what was compared, such as "competitors".
    through : str
        Plural noun for what connects them, such as "common opponents".

    Examples
    --------
    >>> index, y = np.array([[0, 1], [1, 2], [2, 0]]), np.array([1, 1, 1])
    >>> connectivity(index, y, ["Ann", "Bob", "Cy"], "players", "common opponents")
    'All players are connected, directly or through common opponents, so any two can be compared.'
    """
    n = len(names)
    groups = _parts(n, index[:, 0], index[:, 1], "weak")
    one_sided = list(_one_sided(index, y, groups))
    if len(groups) > 1:
        listed = "; ".join(
            f"group {k} has {len(part):,} ({first_few([names[i] for i in part], _MAX_NAMES)})"
            for k, part in enumerate(groups[:_MAX_NAMES], 1)
        )
        listed += "; and so on" * (len(groups) > _MAX_NAMES)
        text = (
            f"**The {what} form {len(groups):,} groups that never met**, directly or through "
            f"{through}: {listed}. Each group has separate ranks and scores, because the data say "
            f"nothing about differences between groups."
        )
    else:
        text = f"All {what} are connected, directly or through {through}"
        if not one_sided:
            text += ", so any two can be compared"
        text += "."
    return " ".join([text, *_sentences(one_sided, names)])


def _parts(n: int, start: NDArray, end: NDArray, connection: str) -> list[NDArray]:
    """Connected components of a directed graph, the largest first."""
    graph = sparse.csr_array((np.ones(len(start)), (start, end)), shape=(n, n))
    _, label = connected_components(graph, connection=connection)
    order = np.argsort(label, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    return sorted(parts, key=len, reverse=True)


def _one_sided(
    index: NDArray, y: NDArray, groups: list[NDArray]
) -> Iterator[tuple[NDArray[np.int64], bool]]:
    """Items that never lost to their other opponents or tied with them, and True; and
    items that never won or tied, and False. At most half of a group is named."""
    n = sum(map(len, groups))
    group_size = np.empty(n, dtype=np.int64)
    for part in groups:
        group_size[part] = len(part)
    not_lost, not_won = y >= 0, y <= 0
    start = np.concatenate([index[not_lost, 0], index[not_won, 1]])
    end = np.concatenate([index[not_lost, 1], index[not_won, 0]])
    strong = _parts(n, start, end, "strong")
    label = np.empty(n, dtype=np.int64)
    for k, part in enumerate(strong):
        label[part] = k
    leaves = label[start] != label[end]
    has_loss = set(label[end[leaves]].tolist())
    has_win = set(label[start[leaves]].tolist())
    for k, part in enumerate(strong):
        better = k in has_win
        if better != (k in has_loss) and 2 * len(part) < group_size[part[0]] + better:
            yield part, better


def _sentences(
    one_sided: list[tuple[NDArray[np.int64], bool]], names: Sequence[Any]
) -> Iterator[str]:
    kinds = (
        (True, "better", "lost", "loss", "upper"),
        (False, "worse", "won", "win", "lower"),
    )
    for better, word, verb, result, limit in kinds:
        parts = [part for part, is_better in one_sided if is_better == better]
        single = [names[part[0]] for part in parts if len(part) == 1]
        if single:
            scores = "this score" if len(single) == 1 else "these scores"
            yield (
                f"Without a {result} or tie: {first_few(single)}. The data contain no {limit} limit for "
                f"{scores}; the limit shown comes from the model's assumptions."
            )
        for part in [part for part in parts if len(part) > 1][:_MAX_NAMES]:
            yield (
                f"**{first_few([names[i] for i in part])} never {verb} or tied against the rest**, "
                f"so the data do not limit how much {word} they are."
            )


def standings_within_groups(
    model: Any,
    standings: pd.DataFrame,
    groups: Sequence[Sequence[Any]],
    time: Any,
    unranked: Collection[Any] = (),
) -> pd.DataFrame:
    """Scores, intervals, and ranks of competitors relative to the others of their group.

    Parameters
    ----------
    model : AveragedComparisons
    standings : DataFrame
        Rows of `model.standings()`; only these competitors are ranked.
    groups : sequence of lists of names
        Groups that never met.
    time : float
        Time of the scores.
    unranked : collection of names
        Names that have a score, relative to the mean of the others, but no rank.

    Returns
    -------
    DataFrame
        The rows of `standings` by group and rank, with the number of the group in the
        column "group", and the unranked names at the end of each group. The intervals
        are those of a normal distribution with the mean and covariance of the averaged
        posterior.
    """
    rng = np.random.default_rng(0)
    parts = []
    of_name = group_numbers(groups)
    number = np.array([of_name[name] for name in standings["name"]])
    for k in np.unique(number):
        part: Any = standings[number == k].copy()
        mean, covariance = model.joint_scores(list(part["name"]), time)
        ranked = ~part["name"].isin(unranked).to_numpy()
        if not ranked.any():
            ranked[:] = True
        center = np.eye(len(part)) - ranked / ranked.sum()
        mean, covariance = center @ mean, center @ covariance @ center
        std = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        draws = rng.multivariate_normal(mean, covariance, _N_DRAWS, method="eigh")
        draws[:, ~ranked] = -np.inf
        low, high = np.quantile(
            rankdata(-draws, axis=1), [0.025, 0.975], axis=0, method="nearest"
        )
        rank = rankdata(np.where(ranked, -mean, np.inf), method="min").astype(int)
        part["group"], part["score"], part["std"], part["rank"] = k, mean, std, rank
        part["low"], part["high"] = mean - 1.96 * std, mean + 1.96 * std
        part["rank_low"] = np.minimum(low, rank).astype(int)
        part["rank_high"] = np.maximum(high, rank).astype(int)
        part = part.sort_values("rank", kind="stable")
        parts.append(without_ranks(part, unranked if ranked.sum() < len(part) else ()))
    return pd.concat(parts, ignore_index=True)


def scores_over_time(
    model: Any, players: Sequence[Any], reference: Sequence[Any], times: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scores relative to the mean of a reference at each time, as in the standings.

    Parameters
    ----------
    model : AveragedComparisons
    players : sequence of names
        Names that are part of the reference.
    reference : sequence of names
    times : ndarray of shape (k,)

    Returns
    -------
    mean, std : ndarray of shape (k, n_players)
    """
    rows = [list(reference).index(player) for player in players]
    center = (np.eye(len(reference)) - 1 / len(reference))[rows]
    # One pass over the matches answers all times.
    lineups = np.tile(center, (len(times), 1))
    repeated = np.repeat(np.asarray(times, dtype=float), len(rows))
    moments = model.moments(Matches(lineups, repeated, list(reference)))
    mean, variance = (values.reshape(len(times), len(rows)) for values in moments)
    return mean, np.sqrt(variance)


def without_ranks(
    table: pd.DataFrame, unranked: Collection[Any], names: str = "name"
) -> pd.DataFrame:
    """Remove the ranks of some names from the columns rank, rank_low, and rank_high."""
    is_unranked = np.isin(table[names].to_numpy(), list(unranked))
    if not is_unranked.any():
        return table
    table = table.astype({"rank": "Int64", "rank_low": float, "rank_high": float})
    table.loc[is_unranked, "rank"] = pd.NA
    table.loc[is_unranked, ["rank_low", "rank_high"]] = np.nan
    return table


def unranked_sentence(names: Sequence[Any]) -> str:
    """Say why some names have no rank, as Markdown; "" without any.

    Examples
    --------
    >>> unranked_sentence(["Ane"])
    '**Not ranked, because the name may be misspelled**: Ane. '
    """
    if not len(names):
        return ""
    name = "name" if len(names) == 1 else "names"
    return f"**Not ranked, because the {name} may be misspelled**: {first_few(names)}. "


def group_bullet(n_groups: int, what: str) -> str:
    """Bullet of a summary for a file with several groups, as Markdown."""
    return (
        f"- **The {what} form {n_groups:,} groups that never met.** Each group has separate ranks "
        f"and scores; the data do not show which group is better.\n"
    )


def omitted_bullet(omitted: Sequence[str]) -> str:
    """Bullet of a summary on rows that are left out, as Markdown; "" without any."""
    if not omitted:
        return ""
    return f"- **Left out**: {'; '.join(omitted)}. The details of the data list them.\n"


def _plural(unit: str) -> str:
    if unit.endswith("ch"):
        return f"{unit}es"
    return f"{unit}s"


def doubtful_names_bullet(doubtful: dict[str, str], counts: Any, unit: str) -> str:
    """Bullet of a summary on names that may be spelled differently by mistake.

    Parameters
    ----------
    doubtful : dict of str to str
        Each doubtful name, and the more frequent name that may be meant.
    counts : mapping of str to int
        Number of rows of each name.
    unit : str
        Noun for a row, such as "match".

    Examples
    --------
    >>> text = doubtful_names_bullet({"Ane": "Anne"}, {"Ane": 1, "Anne": 20}, "row")
    >>> text.partition(". ")[0]
    '- **Check first**: Ane (1 row) may be a misspelling of Anne (20 rows)'
    """
    if not doubtful:
        return ""
    pairs = list(doubtful.items())
    listed = _misspellings(doubtful, counts, unit)
    left_out = escape_markdown(pairs[0][0])
    them = "it"
    if len(pairs) > 1:
        left_out = f"the {len(pairs):,} rarer names"
        them = "them"
    return (
        f"- **Check first**: {listed}. The report treats these as different names, does not rank "
        f"{left_out}, and leaves {them} out of this summary.\n"
    )


def doubtful_judges_bullet(doubtful: dict[str, str], counts: Any) -> str:
    """Bullet of a summary on judges whose names may be misspelled.

    Parameters
    ----------
    doubtful : dict of str to str
        Each doubtful name, and the more frequent name that may be meant.
    counts : mapping of str to int
        Number of answers of each judge.
    """
    if not doubtful:
        return ""
    return (
        f"- **Check the names of judges**: {_misspellings(doubtful, counts, 'answer')}. The report treats "
        f"them as different judges.\n"
    )


def _misspellings(doubtful: dict[str, str], counts: Any, unit: str) -> str:
    """The first doubtful names, each with the name that may be meant."""

    def described(name: str) -> str:
        return f"{escape_markdown(name)} ({counted(int(counts[name]), unit, _plural(unit))})"

    pairs = list(doubtful.items())
    listed = "; ".join(
        f"{described(one)} may be a misspelling of {described(other)}"
        for one, other in pairs[:_MAX_NAMES]
    )
    if len(pairs) > _MAX_NAMES:
        listed += f"; {len(pairs) - _MAX_NAMES:,} more are listed below"
    return listed
