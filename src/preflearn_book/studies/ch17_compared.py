"""Comparisons of learners in a table of runs: average ranks, the decision rules, costs.

Losses are judged by the rules of `preflearn_book.runner.decision_rules`: the margin is
a tenth of the distance from the constant forecast to the best learner, on the same
problems.

References
----------
.. [Demsar2006] J. Demšar, "Statistical comparisons of classifiers over multiple data
  sets", JMLR 7, 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, gmean, studentized_range

from preflearn.core.validation import require
from preflearn_book.runner.decision_rules import (
    MARGIN_FACTORS,
    MARGIN_FRACTION,
    PairedDifference,
    compare,
)
from preflearn_book.studies.ch17_protocol import CONSTANT, RANDOM

_SIGNIFICANCE = 0.05

REPLICATES = {
    "features": "draw",
    "objects": "domain",
    "queries": "sample of queries",
    "ratings": "block of users",
    "time": "window",
    "regimes": "draw",
}
"""What was drawn independently in each task family.

The units of a domain are independent replicates in all families but "objects", where
they share data sets, so that only domains are.
"""


class Ranks(NamedTuple):
    """Average ranks of learners over domains.

    Attributes
    ----------
    mean : Series
        Average rank by learner, the best first; tied learners get their mean rank.
    difference : float
        Critical difference of Nemenyi's test: average ranks that differ by less are not
        significantly different.
    p : float
        p-value of Friedman's test that all learners are equal.
    n : int
        Number of domains.
    """

    mean: pd.Series
    difference: float
    p: float
    n: int

    def groups(self) -> list[tuple[str, str]]:
        """The first and the last learner of each largest group without a significant
        difference, as bars of a diagram.

        Examples
        --------
        >>> Ranks(pd.Series({"a": 1.0, "b": 1.5, "c": 2.5}), 1.2, 0.5, 9).groups()
        [('a', 'b'), ('b', 'c')]
        """
        ranks = self.mean.to_numpy()
        names = list(self.mean.index)
        groups = []
        last_drawn = 0
        for first in range(len(ranks)):
            within = np.flatnonzero(ranks <= ranks[first] + self.difference)
            last = int(within[-1])
            if last > max(first, last_drawn):
                groups.append((names[first], names[last]))
                last_drawn = last
        return groups


def without_controls(losses: pd.DataFrame) -> pd.DataFrame:
    """A table with a column for each learner, without the trivial baselines."""
    return losses.drop(columns=[CONSTANT, RANDOM], errors="ignore")


def by_domain(runs: pd.DataFrame, family: str) -> pd.DataFrame:
    """The mean loss over the units of each domain.

    Parameters
    ----------
    runs : DataFrame
        A table with one row for each task and learner, as `evaluate` makes them.
    family : str
        The name of a task family.

    Returns
    -------
    DataFrame
        Rows are domains, columns learners.

    Raises
    ------
    ValueError
        If a learner lacks a domain: all need the same problems.
    """
    part = runs[runs["family"] == family]
    table = part.pivot_table(
        index="domain", columns="learner", values="loss", sort=False
    )
    missing = list(table.columns[table.isna().any()])
    require(not missing, missing, f"learners without all domains of {family}", "none")
    return table


def average_ranks(losses: pd.DataFrame) -> Ranks:
    """Average ranks over domains, and their critical difference at 5 percent.

    See section 3.2.2 of [Demsar2006]_.

    Parameters
    ----------
    losses : DataFrame
        Rows are domains, columns at least three learners; smaller is better.

    Examples
    --------
    >>> losses = pd.DataFrame({"a": [0.1, 0.2, 0.1], "b": [0.2, 0.2, 0.3], "c": [0.3, 0.4, 0.4]})
    >>> ranks = average_ranks(losses)
    >>> ranks.mean.round(3).to_dict(), round(ranks.difference, 3)
    ({'a': 1.167, 'b': 1.833, 'c': 3.0}, 1.914)
    """
    n, k = losses.shape
    mean = losses.rank(axis=1).mean().sort_values(kind="stable")
    # Nemenyi's test: the range of k independent normal means, over sqrt(2).
    quantile = float(studentized_range.ppf(1 - _SIGNIFICANCE, k, np.inf)) / np.sqrt(2)
    difference = quantile * np.sqrt(k * (k + 1) / (6 * n))
    return Ranks(
        mean, float(difference), float(friedmanchisquare(*losses.to_numpy().T)[1]), n
    )


def close_to_lowest(losses: pd.Series) -> pd.Series:
    """Whether each learner's mean loss exceeds the lowest one by at most the margin.

    This describes the means, and is no test.

    Examples
    --------
    >>> close_to_lowest(pd.Series({"a": 0.10, "b": 0.13, "constant": 0.5})).to_dict()
    {'a': True, 'b': True, 'constant': False}
    """
    margin = MARGIN_FRACTION * (losses[CONSTANT] - losses.min())
    return losses <= losses.min() + margin


def by_unit_of(
    runs: pd.DataFrame, family: str, domain: str, measure: str = "loss"
) -> pd.DataFrame:
    """The values of a measure in a domain: rows are units, columns learners."""
    part = runs[(runs["family"] == family) & (runs["domain"] == domain)]
    return part.pivot(index="unit", columns="learner", values=measure)


def in_domain(
    runs: pd.DataFrame, family: str, domain: str, first: str, second: str
) -> PairedDifference | None:
    """Compare two learners over the units of a domain; None if the runs lack one of
    them, or have one unit only."""
    by_unit = by_unit_of(runs, family, domain)
    if len(by_unit) < 2 or not {first, second} <= set(by_unit.columns):
        return None
    return compare_losses(by_unit, first, second, REPLICATES[family])


def compare_losses(
    losses: pd.DataFrame, first: str, second: str, replicate: str
) -> PairedDifference:
    """Compare two learners; the constant forecast is the trivial baseline.

    Parameters
    ----------
    losses : DataFrame
        Rows are independent replicates, columns learners.
    first, second : str
    replicate : str

    Returns
    -------
    PairedDifference
        Of minus the losses. The margin refers to the learner with the lowest mean loss.
    """
    gains = -losses
    return compare(
        gains[first],
        gains[second],
        replicate,
        trivial=gains[CONSTANT],
        best=gains[gains.mean().idxmax()],
    )


def _at_margins(factor: float) -> str:
    return f"at {factor:g} margin{'' if factor == 1 else 's'}"


_ANSWERS = ["non_inferior", "inferior", *map(_at_margins, MARGIN_FACTORS)]


def standing(runs: pd.DataFrame, family: str) -> pd.DataFrame:
    """Compare each learner with the learner of lowest mean loss, domain by domain.

    Parameters
    ----------
    runs, family
        As in `by_domain`.

    Returns
    -------
    DataFrame
        Indexed by domain and learner: loss (mean over units), fraction (of the distance
        from the lowest loss, 0, to the constant forecast, 1), close (see
        `close_to_lowest`), units (their number), non_inferior and inferior (True, False
        or None, by the decision rules over units; None where units are not
        independent; None is missing), and non-inferiority at each multiple of the
        margin, such as "at 0.5 margins".
    """
    rows = []
    for domain, losses in by_domain(runs, family).iterrows():
        by_unit = by_unit_of(runs, family, str(domain))
        lowest = losses.idxmin()
        excess: Any = losses - losses[lowest]
        # Without a learner that is better than the constant there is no scale.
        fractions = excess / excess.where(excess > 0)[CONSTANT]
        close = close_to_lowest(losses)
        for name, loss in losses.items():
            row = {"domain": domain, "learner": name, "loss": loss}
            row["fraction"] = fractions[name]
            row["close"] = close[name]
            row["units"] = len(by_unit)
            rows.append(row | _verdicts(by_unit, name, lowest, family))
    table = pd.DataFrame(rows).set_index(["domain", "learner"])
    # None is missing; True and False can be counted.
    return table.astype(dict.fromkeys(_ANSWERS, "boolean"))


def _verdicts(
    by_unit: pd.DataFrame, name: Any, lowest: Any, family: str
) -> dict[str, bool | None]:
    """The answers of the decision rules on a learner and the one of lowest loss."""
    answers: dict[str, bool | None] = dict.fromkeys(_ANSWERS)
    if REPLICATES[family] == "domain" or len(by_unit) < 2:
        return answers
    difference = compare_losses(by_unit, name, lowest, REPLICATES[family])
    answers["non_inferior"] = difference.non_inferior
    answers["inferior"] = difference.inferior
    for factor, answer in difference.non_inferior_by_margin().items():
        answers[_at_margins(factor)] = answer
    return answers


def over_domains(
    runs: pd.DataFrame, family: str, first: str, second: str
) -> PairedDifference:
    """Compare two learners over the domains of a family, each with the same weight."""
    return compare_losses(by_domain(runs, family), first, second, "domain")


def lowest_over_domains(runs: pd.DataFrame, family: str) -> str:
    """The learner of lowest mean loss over the domains of a family."""
    return str(by_domain(runs, family).mean().idxmin())


def summary(runs: pd.DataFrame, family: str) -> pd.DataFrame:
    """Accuracy and cost of the learners of a task family, sorted by average rank.

    Parameters
    ----------
    runs, family
        As in `by_domain`.

    Returns
    -------
    DataFrame
        Indexed by learner: rank (the average over domains), close (the number of
        domains in which the mean loss exceeds the lowest one by at most the margin),
        non_inferior and inferior (the numbers of domains with these answers), domains
        (their number), fraction (the mean over domains of the fraction of the distance
        from the lowest loss to the constant forecast), error (the standard error of
        this mean), seconds (geometric mean of fit and forecast), on_front (whether all
        quicker learners have a larger fraction).
    """
    losses = by_domain(runs, family)
    part = runs[runs["family"] == family]
    by_learner: Any = standing(runs, family).groupby("learner", sort=False)
    table = pd.DataFrame(
        {
            "rank": losses.rank(axis=1).mean(),
            "close": by_learner["close"].sum().astype(int),
            "non_inferior": by_learner["non_inferior"].sum().astype(int),
            "inferior": by_learner["inferior"].sum().astype(int),
            "domains": len(losses),
            "fraction": by_learner["fraction"].mean(),
            "error": by_learner["fraction"].sem(),
            "seconds": part.assign(s=_seconds(part)).groupby("learner")["s"].agg(gmean),
        }
    ).loc[losses.columns]
    table = table.sort_values(["seconds", "fraction"])
    lowest_before = table["fraction"].cummin().shift(fill_value=np.inf)
    table["on_front"] = table["fraction"] < lowest_before
    return table.sort_values("rank", kind="stable")


def counted(runs: pd.DataFrame, family: str, names: Sequence[str]) -> str:
    r"""Sentences about learners of a family: in how many domains they are close to the
    lowest loss, and in how many this is shown.

    Learners that the runs lack are left out.

    Examples
    --------
    >>> rows = [("x", "a", 0.1), ("x", "b", 0.3), ("y", "a", 0.1), ("y", "b", 0.11)]
    >>> rows += [("x", "constant", 0.5), ("y", "constant", 0.5)]
    >>> runs = pd.DataFrame(rows, columns=["domain", "learner", "loss"]).assign(family="time")
    >>> runs = runs.assign(unit="0", fit_s=1.0, forecast_s=0.0)
    >>> print(counted(runs, "time", ["a", "b"]).replace(". ", ".\n"))
    Of 2 domains, the mean loss is within the margin of the lowest in 2 (*a*) and 1 (*b*).
    The learner is shown to be non-inferior in 0 (*a*) and 0 (*b*).
    """
    table = summary(runs, family)
    some = [name for name in names if name in table.index]
    n_domains = table["domains"].iloc[0]

    def count(column: str) -> str:
        return join_names([f"{table.loc[name, column]} (*{name}*)" for name in some])

    text = (
        f"Of {n_domains} domains, the mean loss is within the margin of the lowest in "
        f"{count('close')}."
    )
    if REPLICATES[family] != "domain":
        return f"{text} The learner is shown to be non-inferior in {count('non_inferior')}."
    lowest = lowest_over_domains(runs, family)
    others = [name for name in some if name != lowest]
    answers = [
        f"*{name}* {in_words(over_domains(runs, family, name, lowest))}"
        for name in others
    ]
    return f"{text} Losses over domains, next to *{lowest}*: {'; '.join(answers)}."


def in_words(difference: PairedDifference, better: str = "lower") -> str:
    """The difference of a learner to another in a measure, and the answer.

    Parameters
    ----------
    difference : PairedDifference
    better : {"lower", "higher"}
        Which values of the measure are better.

    Examples
    --------
    >>> losses = pd.DataFrame({"a": [0.1] * 6, "b": [0.3, 0.2] * 3, "constant": 0.5})
    >>> in_words(compare_losses(losses, "b", "a", "domain"))
    'higher by 0.150 (0.093 to 0.207), inferior'
    """
    text = difference.describe(better)
    words = [
        word
        for word, answer in (
            ("superior", difference.superior),
            ("inferior", difference.inferior),
            ("non-inferior", difference.non_inferior and not difference.superior),
        )
        if answer
    ]
    return f"{text}, {' and '.join(words) or 'undecided'}"


def advice(runs: pd.DataFrame, **facts: float) -> pd.DataFrame:
    """The learners that are close to the lowest loss in the domains nearest to a case.

    Parameters
    ----------
    runs : DataFrame
        Runs of one task family, or a part of them.
    **facts : float
        Positive numbers that describe the case, by the names of their columns. The
        distance is the sum of the absolute differences of logarithms from the means of
        a domain.

    Returns
    -------
    DataFrame
        Indexed by learner, the quickest first: loss and seconds, means over the nearest
        domains, which `attrs["domains"]` names. See `close_to_lowest`.

    Examples
    --------
    >>> runs = pd.DataFrame({"domain": ["x", "x", "y", "y", "y"], "n_pairs": [9, 9, 99, 99, 99],
    ...                      "learner": ["a", "b", "a", "b", "constant"],
    ...                      "loss": [0.3, 0.2, 0.20, 0.21, 0.6],
    ...                      "fit_s": [2.0, 1.0, 2.0, 1.0, 0.1], "forecast_s": 0.0})
    >>> advised = advice(runs, n_pairs=60)
    >>> list(advised.index), advised.attrs["domains"]
    (['b', 'a'], ['y'])
    """
    names = list(facts)
    known: Any = runs.dropna(subset=names).groupby("domain", sort=False)[names].mean()
    distance = np.abs(np.log(known / pd.Series(facts))).sum(axis=1)
    nearest = list(known.index[np.isclose(distance, distance.min())])
    part: Any = runs[runs["domain"].isin(nearest)]
    part = part.assign(seconds=_seconds(part))
    table: Any = part.groupby("learner", sort=False)[["loss", "seconds"]].mean()
    close: Any = table[close_to_lowest(table["loss"])].sort_values("seconds")
    close.attrs["domains"] = nearest
    return close


def _seconds(runs: Any) -> Any:
    """Seconds of fit and forecast, at least a microsecond."""
    return (runs["fit_s"] + runs["forecast_s"]).clip(1e-6)


def intervals(runs: pd.DataFrame, measure: str = "loss") -> pd.DataFrame:
    """Mean, standard error over units, and number of units, by family, domain and
    learner."""
    keys = ["family", "domain", "learner"]
    groups = runs[runs[measure].notna()].groupby(keys, sort=False)[measure]
    return groups.agg(mean="mean", error="sem", units="count").reset_index()


def join_names(names: Sequence[str]) -> str:
    """Names in a sentence.

    Examples
    --------
    >>> join_names(["a", "b", "c"]), join_names(["a"])
    ('a, b and c', 'a')
    """
    *others, last = names
    if not others:
        return last
    return f"{', '.join(others)} and {last}"
