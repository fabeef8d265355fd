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
    evidence: str,
) -> str:
    """Say who leads, or that the file cannot tell, as Markdown.

    Parameters
    ----------
    names : sequence of str
        The best first, as Markdown.
    rank_low, rank_high : array-like of shape (n,)
        Intervals of the ranks; 1 is the best.
    whom : str
        Who is ranked, such as "items".
    evidence : str
        What ranks them, such as "judgements".

    Returns
    -------
    str
        Someone leads only if the interval of the first one's rank is 1 alone. Otherwise
        all whose interval contains 1 may be the best.

    Examples
    --------
    >>> leading_sentence(["Ann", "Bob", "Cy"], [1, 2, 2], [1, 3, 3], "players", "matches")
    '**Ann leads** the 3 players, before Bob and Cy.'
    >>> leading_sentence(["Ann", "Bob", "Cy"], [1, 1, 3], [2, 2, 3], "players", "matches")
    '**The file cannot tell who leads** the 3 players: by these matches Ann or Bob may be the best.'
    """
    n = len(names)
    best = names[0]
    candidates = [
        name for name, low in zip(names, np.asarray(rank_low), strict=True) if low == 1
    ]
    if np.asarray(rank_high)[0] == 1:
        others = " and ".join(names[1:3])
        return f"**{best} leads** the {n:,} {whom}, before {others}."
    if len(candidates) == n:
        return (
            f"**The file cannot tell who leads** the {n:,} {whom}: by these {evidence} any of them may be "
            f"the best. {best} has the highest score."
        )
    if len(candidates) > _MAX_NAMES:
        return (
            f"**The file cannot tell who leads** the {n:,} {whom}: by these {evidence} any of the first "
            f"{len(candidates):,} may be the best. {best} has the highest score."
        )
    if len(candidates) == 1:
        return (
            f"**{best} probably leads** the {n:,} {whom}: the rank is 1 to "
            f"{np.asarray(rank_high)[0]:.0f} with probability 95 %."
        )
    listed = ", ".join(candidates[:-1]) + f" or {candidates[-1]}"
    return (
        f"**The file cannot tell who leads** the {n:,} {whom}: by these {evidence} {listed} may be the "
        "best."
    )
