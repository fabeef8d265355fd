"""Sentences of the reports on users' files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

_MAX_NAMES = 5


def leading_sentence(
    names: Sequence[str],
    rank_low: ArrayLike,
    rank_high: ArrayLike,
    whom: str,
) -> str:
    """Name the leader, or the candidates if the data do not decide, as Markdown.

    Parameters
    ----------
    names : sequence of str
        Names as Markdown, the best first.
    rank_low, rank_high : array-like of shape (n,)
        Ends of the 95 % interval of each rank; 1 is the best.
    whom : str
        Plural noun for the ranked items, such as "players".

    Returns
    -------
    str
        A leader is named only if the interval of the first rank is 1 alone. Otherwise
        the candidates are all items whose interval contains 1.

    Examples
    --------
    >>> leading_sentence(["Ann", "Bob", "Cy"], [1, 2, 2], [1, 3, 3], "players")
    '**Ann leads** the 3 players, followed by Bob and Cy.'
    >>> leading_sentence(["Ann", "Bob", "Cy"], [1, 1, 3], [2, 2, 3], "players")
    '**It is uncertain who leads** the 3 players: Ann or Bob. Their ranks have 95 % intervals that include 1.'
    """
    n = len(names)
    best = names[0]
    worst_rank = np.asarray(rank_high)[0]
    candidates = [
        name for name, low in zip(names, np.asarray(rank_low), strict=True) if low == 1
    ]
    if worst_rank == 1:
        others = " and ".join(names[1:3])
        return f"**{best} leads** the {n:,} {whom}, followed by {others}."
    if len(candidates) == n:
        return f"**The data cannot tell the {n:,} {whom} apart**: each of them may be the best."
    if len(candidates) == 1:
        return (
            f"**{best} probably leads** the {n:,} {whom}. The 95 % interval of this rank is "
            f"1 to {worst_rank:.0f}."
        )
    uncertain = f"**It is uncertain who leads** the {n:,} {whom}: "
    if len(candidates) > _MAX_NAMES:
        return (
            f"{uncertain}{len(candidates):,} of them have ranks with 95 % intervals that include 1. "
            f"{best} has the highest score."
        )
    listed = ", ".join(candidates[:-1]) + f" or {candidates[-1]}"
    return f"{uncertain}{listed}. Their ranks have 95 % intervals that include 1."
