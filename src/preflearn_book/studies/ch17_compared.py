"""Comparisons of learners in a table of runs: ranks, posterior probabilities, costs.

References
----------
.. [Demsar2006] J. Demšar, "Statistical comparisons of classifiers over multiple data
  sets", JMLR 7, 2006.
.. [Benavoli2017] A. Benavoli, G. Corani, J. Demšar, M. Zaffalon, "Time for a change: a
   tutorial for comparing multiple classifiers through Bayesian analysis", JMLR 18,
   2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import friedmanchisquare, gmean, studentized_range

from preflearn.core.validation import require

_LEVEL = 0.05  # of significance
_DRAWS = 20_000  # of the posterior
_PRIOR = 0.5  # weight of a difference of 0, in units of one domain


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


def by_domain(runs: pd.DataFrame, family: str) -> pd.DataFrame:
    """The mean loss over the units of each domain.

    Parameters
    ----------
    runs : DataFrame
        A table with one row for each task and learner, as `evaluate` makes them.
    family : str
        A task family, named in the column "arena".

    Returns
    -------
    DataFrame
        Rows are domains, columns learners.

    Raises
    ------
    ValueError
        If a learner lacks a domain: all need the same problems.
    """
    part = runs[runs["arena"] == family]
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
    quantile = float(studentized_range.ppf(1 - _LEVEL, k, np.inf)) / np.sqrt(2)
    difference = quantile * np.sqrt(k * (k + 1) / (6 * n))
    return Ranks(
        mean, float(difference), float(friedmanchisquare(*losses.to_numpy().T)[1]), n
    )


def chances(
    ours: ArrayLike,
    theirs: ArrayLike,
    margin: float,
    seed: int = 0,
) -> dict[str, float]:
    """Posterior probabilities that one learner is better, equivalent or worse.

    The Bayesian signed-rank test of section 4.2 of [Benavoli2017]_: the weights of the
    domains, and of a difference of 0 with prior weight 1/2, have a Dirichlet
    distribution. Each draw of weights votes for the region that has most of the means
    of two differences.

    Parameters
    ----------
    ours, theirs : array-like of shape (n,)
        Paired losses, one for each domain; smaller is better.
    margin : float
        Equivalence margin: the largest difference in loss of equivalent learners.
    seed : int
        Seed of the draws.

    Returns
    -------
    dict of str to float
        "better", "level" (equivalent) and "worse", which add up to 1.

    Examples
    --------
    >>> chances([0.1] * 8, [0.3] * 8, margin=0.02)["better"] > 0.99
    True
    """
    gains = np.append(0.0, np.subtract(theirs, ours))
    halves = np.add.outer(gains, gains) / 2
    regions = {
        "better": halves > margin,
        "level": np.abs(halves) <= margin,
        "worse": halves < -margin,
    }
    prior = np.append(_PRIOR, np.ones(len(gains) - 1))
    weights = np.random.default_rng(seed).dirichlet(prior, _DRAWS)
    masses = [
        np.einsum("di,ij,dj->d", weights, region, weights, optimize=True)
        for region in regions.values()
    ]
    votes = np.bincount(np.argmax(masses, axis=0), minlength=3) / _DRAWS
    return dict(zip(regions, votes.tolist(), strict=True))


def standing(runs: pd.DataFrame, family: str, margin: float) -> pd.DataFrame:
    """The best learners of each domain.

    Parameters
    ----------
    runs, family
        As in `by_domain`.
    margin : float
        Equivalence margin: learners whose mean loss exceeds the lowest one by at most
        this are equivalent to the best.

    Returns
    -------
    DataFrame
        Indexed by domain: level (a tuple of learners, the best one and its equivalents,
        sorted by mean loss).
    """
    levels = {}
    for domain, losses in by_domain(runs, family).iterrows():
        losses = losses.sort_values(kind="stable")
        levels[domain] = tuple(losses.index[losses <= losses.iloc[0] + margin])
    return pd.DataFrame({"level": pd.Series(levels)})


def summary(runs: pd.DataFrame, family: str, margin: float) -> pd.DataFrame:
    """Accuracy and cost of the learners of a task family, sorted by average rank.

    Parameters
    ----------
    runs, family, margin
        As in `standing`.

    Returns
    -------
    DataFrame
        Indexed by learner: rank (the average over domains), level (the number of
        domains in which it is equivalent to the best), domains (their number), excess
        (mean over domains of the loss minus the lowest one), error (standard error of
        this mean), seconds (geometric mean of fit and forecast), on_front (whether all
        quicker learners have a larger excess).
    """
    losses = by_domain(runs, family)
    part = runs[runs["arena"] == family]
    excess = losses.sub(losses.min(axis=1), axis=0)
    table = pd.DataFrame(
        {
            "rank": losses.rank(axis=1).mean(),
            "level": (excess <= margin).sum(),
            "domains": len(losses),
            "excess": excess.mean(),
            "error": excess.sem(),
            "seconds": part.assign(s=_seconds(part)).groupby("learner")["s"].agg(gmean),
        }
    ).loc[losses.columns]
    table = table.sort_values(["seconds", "excess"])
    lowest_before = table["excess"].cummin().shift(fill_value=np.inf)
    table["on_front"] = table["excess"] < lowest_before
    return table.sort_values("rank", kind="stable")


def counted(
    runs: pd.DataFrame, family: str, margin: float, names: Sequence[str]
) -> str:
    """A sentence: in how many domains of a family learners are equivalent to the best.

    Examples
    --------
    >>> rows = [("x", "a", 0.1), ("x", "b", 0.3), ("y", "a", 0.1), ("y", "b", 0.11)]
    >>> runs = pd.DataFrame(rows, columns=["domain", "learner", "loss"]).assign(arena="z")
    >>> counted(runs.assign(fit_s=1.0, forecast_s=0.0), "z", 0.02, ["a", "b"])
    'Of 2 domains, a is level with the best in 2 and b in 1.'
    """
    table = summary(runs, family, margin)
    first, *others = [(name, table.loc[name, "level"]) for name in names]
    counts = [f"{first[0]} is level with the best in {first[1]}"]
    counts += [f"{name} in {count}" for name, count in others]
    return f"Of {table['domains'].iloc[0]} domains, {join_names(counts)}."


def advice(runs: pd.DataFrame, margin: float, **facts: float) -> pd.DataFrame:
    """The learners that are equivalent to the best in the domains nearest to a case.

    Parameters
    ----------
    runs : DataFrame
        Runs of one task family, or a part of them.
    margin : float
        As in `standing`.
    **facts : float
        Positive numbers that describe the case, by the names of their columns. The
        distance is the sum of the absolute differences of logarithms from the means of
        a domain.

    Returns
    -------
    DataFrame
        Indexed by learner, the quickest first: loss and seconds, means over the nearest
        domains, which `attrs["domains"]` names.

    Examples
    --------
    >>> runs = pd.DataFrame({"domain": ["x", "x", "y", "y"], "learner": ["a", "b", "a", "b"],
    ...                      "loss": [0.3, 0.2, 0.20, 0.21], "n_pairs": [10, 10, 100, 100],
    ...                      "fit_s": [2.0, 1.0, 2.0, 1.0], "forecast_s": 0.0})
    >>> advised = advice(runs, 0.02, n_pairs=60)
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
    equivalent: Any = table[table["loss"] <= table["loss"].min() + margin]
    equivalent = equivalent.sort_values("seconds")
    equivalent.attrs["domains"] = nearest
    return equivalent


def _seconds(runs: Any) -> Any:
    """Seconds of fit and forecast, at least a microsecond."""
    return (runs["fit_s"] + runs["forecast_s"]).clip(1e-6)


def intervals(runs: pd.DataFrame, measure: str = "loss") -> pd.DataFrame:
    """Mean, standard error over units, and number of units, by family, domain and
    learner."""
    keys = ["arena", "domain", "learner"]
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
