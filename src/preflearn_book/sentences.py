"""Sentences for reports and chapters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

_MAX_NAMES = 5
_MAX_DIGITS = 3
# Below this kappa, Landis and Koch (1977) call an agreement slight.
_SLIGHT = 0.2


def signed(x: float, digits: int = 3) -> str:
    """A number with a typographic minus, and without the minus of a rounded 0.

    Examples
    --------
    >>> signed(-1.26, 1), signed(-0.001, 2)
    ('−1.3', '0.00')
    """
    return f"{round(x, digits) + 0.0:.{digits}f}".replace("-", "−")


def counted(n: int, one: str, several: str) -> str:
    """A number with the words for one thing or for several.

    Examples
    --------
    >>> counted(1, "row has", "rows have"), counted(1200, "row has", "rows have")
    ('1 row has', '1,200 rows have')
    """
    words = several
    if n == 1:
        words = one
    return f"{n:,} {words}"


def join_names(names: Sequence[str]) -> str:
    """Join names for use in a sentence.

    Examples
    --------
    >>> join_names(["a", "b", "c"]), join_names(["a"])
    ('a, b and c', 'a')
    """
    *others, last = names
    if not others:
        return last
    return f"{', '.join(others)} and {last}"


def between(
    low: float, high: float, digits: int = 0, excluded: float | None = None
) -> str:
    """An interval as text with non-breaking spaces: "3 to 5", or "3" if both ends agree.

    Without an interval (NaN), the text is a dash. An end that is rounded to the value
    `excluded` gets more digits, because the text says on which side of this value the
    end lies.

    Examples
    --------
    >>> between(50.2, 81.7, excluded=50.0)
    '50.2\xa0to\xa082'
    """

    if np.isnan(low):
        return "–"

    def end(x: float) -> str:
        n = digits
        while (
            excluded is not None
            and x != excluded
            and round(x, n) == excluded
            and n < digits + _MAX_DIGITS
        ):
            n += 1
        return signed(x, n)

    ends = end(low), end(high)
    return ends[0] if ends[0] == ends[1] else "\u00a0to\u00a0".join(ends)


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
    >>> leading_sentence(["Ann", "Bob", "Cy"], [1, 1, 3], [2, 2, 3], "players")[:63]
    '**It is uncertain which is best** of the 3 players: Ann or Bob.'
    """
    n = len(names)
    best = names[0]
    worst_rank = np.asarray(rank_high)[0]
    candidates = [
        name for name, low in zip(names, np.asarray(rank_low), strict=True) if low == 1
    ]
    if n == 1:
        return f"{best} is the only one of the {whom}."
    if worst_rank == 1:
        others = join_names(names[1:3])
        return f"**{best} leads** the {n:,} {whom}, followed by {others}."
    if len(candidates) == n:
        return f"**The data cannot tell the {n:,} {whom} apart**: each of them may be the best."
    if len(candidates) == 1:
        return (
            f"**{best} probably leads** the {n:,} {whom}. The 95 % interval of the leader's rank is "
            f"1 to {worst_rank:.0f}."
        )
    uncertain = f"**It is uncertain which is best** of the {n:,} {whom}: "
    if len(candidates) > _MAX_NAMES:
        return (
            f"{uncertain}{len(candidates):,} of them have ranks with 95 % intervals that include 1. "
            f"{best} has the highest score."
        )
    listed = ", ".join(candidates[:-1]) + f" or {candidates[-1]}"
    return f"{uncertain}{listed}. Their ranks have 95 % intervals that include 1."


def rate_with_interval(
    hits: ArrayLike, totals: ArrayLike
) -> tuple[float, float, float]:
    """A percentage and its 95 % interval, for hits that depend on each other in clusters.

    Parameters
    ----------
    hits, totals : array-like of shape (n_clusters,)
        Number of hits and of trials in each cluster, such as a race or a judge.

    Examples
    --------
    >>> [round(x) for x in rate_with_interval([3, 2, 4, 3], [4, 4, 4, 4])]
    [75, 55, 95]
    """
    won = np.asarray(hits, dtype=float)
    n = np.asarray(totals, dtype=float)
    rate = won.sum() / n.sum()
    k = max(len(n), 2)
    error = np.sqrt(k / (k - 1) * ((won - rate * n) ** 2).sum()) / n.sum()
    low, high = max(rate - 1.96 * error, 0.0), min(rate + 1.96 * error, 1.0)
    return 100 * float(rate), 100 * float(low), 100 * float(high)


def agreement_sentence(
    same: float,
    together: float,
    chance: float,
    same_of_judges: ArrayLike,
    together_of_judges: ArrayLike,
) -> str:
    """Say whether judges agree more often than random answers would, as Markdown.

    Parameters
    ----------
    same, together : float
        Number of equal answers among the pairs of answers that two judges gave on the
        same pair of items, and number of all such pairs of answers.
    chance : float
        Fraction of equal random answers.
    same_of_judges, together_of_judges : array-like of shape (n_judges,)
        The same numbers for the pairs of answers in which each judge takes part. The
        interval is that of a jackknife that leaves out one judge at a time.

    Examples
    --------
    >>> agreement_sentence(30, 40, 0.5, [20, 20, 20], [27, 27, 26])[:55]
    '**Judges agree more often than random answers would**: '
    """
    agree = same / together
    left = together - np.asarray(together_of_judges, dtype=float)
    kept = left > 0
    n = int(kept.sum())
    low, high = 0.0, 1.0
    if n > 1:
        without = (same - np.asarray(same_of_judges, dtype=float))[kept] / left[kept]
        half = 1.96 * np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
        low, high = max(agree - half, 0.0), min(agree + half, 1.0)
    if low > chance:
        text = "**Judges agree more often than random answers would**"
        if (agree - chance) / (1 - chance) < _SLIGHT:
            text = "**Judges agree slightly more often than random answers would**"
    elif high < chance:
        text = "**Judges agree less often than random answers would**"
    else:
        text = "**It is uncertain whether judges agree more often than by chance**"
    return (
        f"{text}: two judges of the same pair agree in {100 * agree:.0f} % of cases (95 % interval: "
        f"{between(100 * low, 100 * high, 0, 100 * chance)} %); random answers would agree in "
        f"{100 * chance:.0f} %"
    )
