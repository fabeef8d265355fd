"""Comparisons of learners in a table of runs: average ranks, decision rules, and costs.

Losses are judged by the rules of `preflearn_book.runner.decision_rules`. The margin is a
tenth of the distance from the constant forecast to the best learner on the same
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
    n_decimals,
)
from preflearn_book.sentences import join_names
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
"""The independent replicates of each task family.

The units of a domain are independent replicates in all families except "objects". There
the units share data sets, so only the domains are independent.
"""


class Ranks(NamedTuple):
    """Average ranks of learners over domains.

    Attributes
    ----------
    mean : Series
        Average rank by learner, with the best learner first. Tied learners get their
        mean rank.
    difference : float
        Critical difference of Nemenyi's test. Average ranks that differ by less are not
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
        """The bars of a critical-difference diagram.

        Each bar is the first and the last learner of a maximal group without significant
        differences.

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
    """A table with one column per learner, without the trivial baselines."""
    return losses.drop(columns=[CONSTANT, RANDOM], errors="ignore")


def by_domain(runs: pd.DataFrame, family: str) -> pd.DataFrame:
    """The mean loss over the units of each domain.

    Parameters
    ----------
    runs : DataFrame
        A table with one row per task and learner, as returned by `evaluate`.
    family : str
        The name of a task family.

    Returns
    -------
    DataFrame
        Rows are domains, columns learners.

    Raises
    ------
    ValueError
        If a learner has no results for a domain. All learners need the same problems.
    """
    part = runs[runs["family"] == family]
    table = part.pivot_table(
        index="domain", columns="learner", values="loss", sort=False
    )
    missing = list(table.columns[table.isna().any()])
    what = f"the list of learners that lack a domain of {family}"
    require(not missing, missing, what, "none")
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

    This compares means and is not a statistical test.

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
    """Compare two learners over the units of a domain.

    The result is None if the runs have only one unit or do not contain both learners.
    """
    by_unit = by_unit_of(runs, family, domain)
    if len(by_unit) < 2 or not {first, second} <= set(by_unit.columns):
        return None
    return compare_losses(by_unit, first, second, REPLICATES[family])


def compare_losses(
    losses: pd.DataFrame, first: str, second: str, replicate: str
) -> PairedDifference:
    """Compare two learners, with the constant forecast as the trivial baseline.

    Parameters
    ----------
    losses : DataFrame
        Rows are independent replicates, columns learners.
    first, second : str
    replicate : str

    Returns
    -------
    PairedDifference
        Difference of minus the losses. The margin refers to the learner with the lowest
        mean loss.
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
        A table indexed by domain and learner with these columns:

        - loss: mean over units.
        - fraction: loss on the scale from the lowest loss (0) to the loss of the
          constant forecast (1).
        - close: see `close_to_lowest`.
        - units: number of units.
        - non_inferior, inferior: answers of the decision rules over units. They are
          missing if the rules give no answer or if units are not independent.
        - non-inferiority at each multiple of the margin, such as "at 0.5 margins".
    """
    rows = []
    for domain, losses in by_domain(runs, family).iterrows():
        by_unit = by_unit_of(runs, family, str(domain))
        lowest = losses.idxmin()
        excess: Any = losses - losses[lowest]
        # If no learner is better than the constant forecast, the scale is undefined.
        fractions = excess / excess.where(excess > 0)[CONSTANT]
        close = close_to_lowest(losses)
        for name, loss in losses.items():
            row = {"domain": domain, "learner": name, "loss": loss}
            row["fraction"] = fractions[name]
            row["close"] = close[name]
            row["units"] = len(by_unit)
            rows.append(row | _verdicts(by_unit, name, lowest, family))
    table = pd.DataFrame(rows).set_index(["domain", "learner"])
    # With this type, None is missing, and True and False can be counted.
    return table.astype(dict.fromkeys(_ANSWERS, "boolean"))


def _verdicts(
    by_unit: pd.DataFrame, name: Any, lowest: Any, family: str
) -> dict[str, bool | None]:
    """Answers of the decision rules for a learner and the one with the lowest loss."""
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
    """The learner with the lowest mean loss over the domains of a family."""
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
        A table indexed by learner with these columns:

        - rank: average rank over domains.
        - close: number of domains in which the mean loss exceeds the lowest mean loss by
          at most the margin.
        - non_inferior, inferior: numbers of domains with these answers.
        - domains: number of domains.
        - fraction: mean over domains of the loss on the scale from the lowest loss (0)
          to the loss of the constant forecast (1).
        - error: standard error of this mean.
        - seconds: geometric mean of the time of fit and forecast.
        - on_front: whether all faster learners have a larger fraction.
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
    r"""Describe the results of some learners of a task family in sentences.

    The sentences count the domains in which a learner is close to the lowest loss, and
    the domains in which it is shown to be non-inferior. Learners without runs are left
    out.

    Examples
    --------
    >>> rows = [("x", "a", 0.1), ("x", "b", 0.3), ("y", "a", 0.1), ("y", "b", 0.11)]
    >>> rows += [("x", "constant", 0.5), ("y", "constant", 0.5)]
    >>> runs = pd.DataFrame(rows, columns=["domain", "learner", "loss"]).assign(family="time")
    >>> runs = runs.assign(unit="0", fit_s=1.0, forecast_s=0.0)
    >>> print(counted(runs, "time", ["a", "b"]).replace(". ", ".\n"))
    Each learner was run in 2 domains.
    Its mean loss is within the margin of the lowest in 2 (*a*) and 1 (*b*) of them.
    It is shown to be non-inferior in 0 (*a*) and 0 (*b*).
    """
    table = summary(runs, family)
    some = [name for name in names if name in table.index]
    n_domains = table["domains"].iloc[0]

    def count(column: str) -> str:
        return join_names([f"{table.loc[name, column]} (*{name}*)" for name in some])

    text = (
        f"Each learner was run in {n_domains} domain{'' if n_domains == 1 else 's'}. Its "
        f"mean loss is within the margin of the lowest in {count('close')} of them."
    )
    if REPLICATES[family] != "domain":
        return f"{text} It is shown to be non-inferior in {count('non_inferior')}."
    lowest = lowest_over_domains(runs, family)
    others = [name for name in some if name != lowest]
    answers = [
        f"the loss of *{name}* is {in_words(over_domains(runs, family, name, lowest))}"
        for name in others
    ]
    if not answers:
        return text
    return (
        f"{text} On average over all domains and compared with *{lowest}*, "
        f"{'; '.join(answers)}."
    )


def in_words(difference: PairedDifference, better: str = "lower") -> str:
    """Describe the difference between two learners and the answer of the decision rules.

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
    return f"{difference.describe(better)}, {verdict(difference)}"


def in_columns(difference: PairedDifference, better: str = "lower") -> dict[str, str]:
    """The difference between two learners, its 95 % interval, and the verdict, as
    columns of a table.

    Parameters
    ----------
    difference, better
        As in `in_words`.

    Returns
    -------
    dict
        The difference is the measure of the first learner minus that of the second.

    Examples
    --------
    >>> losses = pd.DataFrame({"a": [0.1] * 6, "b": [0.3, 0.2] * 3, "constant": 0.5})
    >>> in_columns(compare_losses(losses, "b", "a", "domain"))
    {'difference': '+0.150', '95 % interval': '0.093 to 0.207', 'verdict': 'inferior'}
    """
    low, high = difference.interval()
    values = [difference.mean, low, high]
    if better == "lower":
        values = [-difference.mean, -high, -low]
    digits = n_decimals(values)
    mean, low, high = (round(value, digits) + 0.0 for value in values)
    interval = f"{low:.{digits}f} to {high:.{digits}f}"
    return {
        "difference": f"{mean:+.{digits}f}".replace("-", "−"),
        "95 % interval": interval.replace("-", "−"),
        "verdict": verdict(difference),
    }


def verdict(difference: PairedDifference) -> str:
    """The answer of the decision rules, such as "inferior", or "undecided"."""
    words = [
        word
        for word, answer in (
            ("superior", difference.superior),
            ("inferior", difference.inferior),
            ("non-inferior", difference.non_inferior and not difference.superior),
        )
        if answer
    ]
    return " and ".join(words) or "undecided"


def advice(runs: pd.DataFrame, **facts: float) -> pd.DataFrame:
    """The learners that are close to the lowest loss in the most similar domains.

    Parameters
    ----------
    runs : DataFrame
        All or some runs of one task family.
    **facts : float
        Positive numbers that describe the new problem, by column name. The distance of
        a domain is the sum of the absolute differences between the logarithms of these
        numbers and of the means of the domain.

    Returns
    -------
    DataFrame
        A table indexed by learner, with the fastest first. Its columns are the mean loss
        and the mean seconds over the nearest domains, which are listed in
        `attrs["domains"]`. See `close_to_lowest`.

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
