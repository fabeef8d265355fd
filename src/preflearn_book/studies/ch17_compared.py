"""What a table of runs of chapter 17 says: ranks, chances to be better, who is level.

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

from preflearn.core.validation import check_array, check_real, require

_DRAWS = 20_000  # of the posterior
_PRIOR = 0.5  # weight of a difference of 0, in units of one domain


class Ranks(NamedTuple):
    """Average ranks of learners over domains.

    Attributes
    ----------
    mean : Series
        Average rank by learner, the best first; learners that share a place share its
        rank.
    difference : float
        Average ranks that differ by less are not told apart: the critical difference of
        Nemenyi's test.
    p : float
        Of Friedman's test that all learners are equal.
    n : int
        Domains.
    """

    mean: pd.Series
    difference: float
    p: float
    n: int

    def groups(self) -> list[tuple[str, str]]:
        """The first and the last learner of each largest group that is not told apart,
        as bars of a diagram.

        Examples
        --------
        >>> Ranks(pd.Series({"a": 1.0, "b": 1.5, "c": 2.5}), 1.2, 0.5, 9).groups()
        [('a', 'b'), ('b', 'c')]
        """
        at = self.mean.to_numpy()
        names = list(self.mean.index)
        last = [
            int(np.flatnonzero(at <= at[k] + self.difference)[-1])
            for k in range(len(at))
        ]
        kept = [
            k
            for k in range(len(at))
            if last[k] > k and (k == 0 or last[k] > last[k - 1])
        ]
        return [(names[k], names[last[k]]) for k in kept]


def by_domain(runs: pd.DataFrame, arena: str, measure: str = "loss") -> pd.DataFrame:
    """The mean of a measure over the units of each domain: rows are domains, columns
    learners.

    Raises
    ------
    ValueError
        If a learner lacks a domain: all have to have met the same problems.
    """
    here = runs[(runs["arena"] == arena) & runs[measure].notna()]
    require(
        len(here) > 0,
        arena,
        "the arena",
        f"one of {sorted(runs['arena'].unique())} with {measure}",
    )
    table = here.pivot_table(
        index="domain", columns="learner", values=measure, sort=False
    )
    missing = list(table.columns[table.isna().any()])
    require(not missing, missing, f"learners without all domains of {arena}", "none")
    return table


def average_ranks(losses: pd.DataFrame, level: float = 0.05) -> Ranks:
    """Average ranks over domains, and what they have to differ by (section 3.2.2 of
    [Demsar2006]_).

    Parameters
    ----------
    losses : DataFrame
        Rows are domains, columns learners; smaller is better.
    level : float
        Of the tests.

    Raises
    ------
    ValueError
        On fewer than three learners or two domains, or losses that are not finite.

    Examples
    --------
    >>> losses = pd.DataFrame({"a": [0.1, 0.2, 0.1], "b": [0.2, 0.2, 0.3], "c": [0.3, 0.4, 0.4]})
    >>> ranks = average_ranks(losses)
    >>> ranks.mean.round(3).to_dict(), round(ranks.difference, 3)
    ({'a': 1.167, 'b': 1.833, 'c': 3.0}, 1.914)
    """
    values = check_array(losses, "losses", ("n", "k"), "finite losses")
    level = check_real(level, "level", "a share between 0 and 1", 1e-6, 1 - 1e-6)
    (n, k) = values.shape
    require(
        n > 1 and k > 2,
        values.shape,
        "the shape of losses",
        "at least 2 domains and 3 learners",
    )
    mean = losses.rank(axis=1).mean().sort_values(kind="stable")
    # Nemenyi's test: the range of k independent normal means, over sqrt(2).
    quantile = float(studentized_range.ppf(1 - level, k, np.inf)) / np.sqrt(2)
    difference = quantile * np.sqrt(k * (k + 1) / (6 * n))
    return Ranks(mean, float(difference), float(friedmanchisquare(*values.T)[1]), n)


def chances(
    ours: ArrayLike, theirs: ArrayLike, band: float, rng: np.random.Generator | int = 0
) -> dict[str, float]:
    """How probable it is that one learner is better than another by more than a band,
    over domains.

    The Bayesian signed-rank test of section 4.2 of [Benavoli2017]_: domains have
    weights of a Dirichlet distribution, beside them a difference of 0 with weight 1/2;
    which of three regions holds most of the means of two differences is drawn many
    times.

    Parameters
    ----------
    ours, theirs : array-like of shape (n,)
        A loss a domain, paired; smaller is better.
    band : float
        Up to this the two are level.
    rng : numpy Generator or int
        Source of randomness, or its seed.

    Returns
    -------
    dict of str to float
        "better", "level" and "worse", which add up to 1.

    Examples
    --------
    >>> chances([0.1] * 8, [0.3] * 8, band=0.02)["better"] > 0.99
    True
    """
    first = check_array(ours, "ours", ("n",), "a loss a domain")
    second = check_array(theirs, "theirs", (len(first),), "as many losses as ours")
    gains = np.concatenate([[0.0], second - first])
    halves = np.add.outer(gains, gains) / 2
    regions = {
        "better": halves > band,
        "level": np.abs(halves) <= band,
        "worse": halves < -band,
    }
    weights = np.random.default_rng(rng).dirichlet(
        [_PRIOR, *[1.0] * len(first)], _DRAWS
    )
    held = [
        np.einsum("di,ij,dj->d", weights, region, weights, optimize=True)
        for region in regions.values()
    ]
    won = np.bincount(np.argmax(held, axis=0), minlength=3) / _DRAWS
    return dict(zip(regions, won.tolist(), strict=True))


def standing(runs: pd.DataFrame, arena: str, band: float) -> pd.DataFrame:
    """For each domain of an arena: who is best, who is level with it, and who of these
    is cheapest.

    Parameters
    ----------
    runs : DataFrame
        As `entries` makes it.
    arena : str
    band : float
        Level is whose mean loss is behind the least one by no more than this.

    Returns
    -------
    DataFrame
        Indexed by domain: best (a learner), loss (its mean), level (a tuple of
        learners, the best first), cheapest (of these, by the mean of the seconds of fit
        and forecast), constant (the constant's loss).
    """
    losses = by_domain(runs, arena)
    here = runs[runs["arena"] == arena]
    spent = here.assign(s=_spent(here)).pivot_table("s", "domain", "learner")
    rows = []
    for domain, found in losses.iterrows():
        order = found.sort_values(kind="stable")
        level = tuple(order.index[order <= order.iloc[0] + band])
        cheapest = str(spent.loc[domain, list(level)].idxmin())
        rows.append(
            (domain, level[0], order.iloc[0], level, cheapest, found["constant"])
        )
    columns = ["domain", "best", "loss", "level", "cheapest", "constant"]
    return pd.DataFrame(rows, columns=columns).set_index("domain")


def summary(runs: pd.DataFrame, arena: str, band: float) -> pd.DataFrame:
    """The learners of an arena by accuracy and cost, in the order of their average
    ranks.

    Parameters
    ----------
    runs, arena, band
        As in `standing`.

    Returns
    -------
    DataFrame
        Indexed by learner: rank (the average over domains), level (in how many domains
        it is level with the best), domains (their number), excess (mean over domains of
        the loss less the least one), error (standard error of this mean), seconds
        (geometric mean of fit and forecast), on_front (nobody quicker has a smaller
        excess).
    """
    losses = by_domain(runs, arena)
    here = runs[runs["arena"] == arena]
    behind = losses.sub(losses.min(axis=1), axis=0)
    seconds = here.assign(s=_spent(here)).groupby("learner")["s"].agg(gmean)
    table = pd.DataFrame(
        {"rank": losses.rank(axis=1).mean(), "level": (behind <= band).sum()}
    )
    table["domains"], table["excess"], table["error"] = (
        len(losses),
        behind.mean(),
        behind.sem(),
    )
    table = table.assign(seconds=seconds).sort_values(["seconds", "excess"])
    before = table["excess"].cummin().shift(fill_value=np.inf)
    return table.assign(on_front=table["excess"] < before).sort_values(
        "rank", kind="stable"
    )


def counted(runs: pd.DataFrame, arena: str, band: float, names: Sequence[str]) -> str:
    """In a sentence, in how many domains of an arena some learners are level with the
    best.

    Examples
    --------
    >>> rows = [("x", "a", 0.1), ("x", "b", 0.3), ("y", "a", 0.1), ("y", "b", 0.11)]
    >>> runs = pd.DataFrame(rows, columns=["domain", "learner", "loss"]).assign(arena="z")
    >>> counted(runs.assign(fit_s=1.0, forecast_s=0.0), "z", 0.02, ["a", "b"])
    'Of 2 domains, a is level with the best in 2 and b in 1.'
    """
    table = summary(runs, arena, band)
    first, *others = [f"{name} {{}}in {table.loc[name, 'level']}" for name in names]
    said = told(
        [first.format("is level with the best "), *(one.format("") for one in others)]
    )
    return f"Of {table['domains'].iloc[0]} domains, {said}."


def advice(runs: pd.DataFrame, band: float, **facts: float) -> pd.DataFrame:
    """What the domains nearest to a case say: who is level with the best there, the
    quickest first.

    Parameters
    ----------
    runs : DataFrame
        Of one arena, or a part of it.
    band : float
        See `standing`.
    **facts : float
        Positive numbers that describe the case, by the names of their columns. Nearest
        is what has the least sum of absolute differences of logarithms, from the means
        of a domain.

    Returns
    -------
    DataFrame
        Indexed by learner: loss and seconds, means over the nearest domains, which
        `attrs["domains"]` names.

    Examples
    --------
    >>> runs = pd.DataFrame({"domain": ["x", "x", "y", "y"], "learner": ["a", "b", "a", "b"],
    ...                      "loss": [0.3, 0.2, 0.20, 0.21], "n_pairs": [10, 10, 100, 100],
    ...                      "fit_s": [2.0, 1.0, 2.0, 1.0], "forecast_s": 0.0})
    >>> found = advice(runs, 0.02, n_pairs=60)
    >>> list(found.index), found.attrs["domains"]
    (['b', 'a'], ['y'])
    """
    known: Any = (
        runs.dropna(subset=list(facts))
        .groupby("domain", sort=False)[list(facts)]
        .mean()
    )
    apart = np.abs(np.log(known / pd.Series(facts))).sum(axis=1)
    nearest = list(known.index[np.isclose(apart, apart.min())])
    here: Any = runs[runs["domain"].isin(nearest)]
    table: Any = (
        here.assign(seconds=_spent(here))
        .groupby("learner", sort=False)[["loss", "seconds"]]
        .mean()
    )
    found: Any = table[table["loss"] <= table["loss"].min() + band].sort_values(
        "seconds"
    )
    found.attrs["domains"] = nearest
    return found


def _spent(runs: Any) -> Any:
    """Seconds of fit and forecast, at least a microsecond."""
    return (runs["fit_s"] + runs["forecast_s"]).clip(1e-6)


def intervals(runs: pd.DataFrame, measure: str = "loss") -> pd.DataFrame:
    """Mean, standard error over the units, and their number, by arena, domain and
    learner."""
    groups = runs[runs[measure].notna()].groupby(
        ["arena", "domain", "learner"], sort=False
    )[measure]
    return groups.agg(mean="mean", error="sem", units="count").reset_index()


def told(names: Sequence[str]) -> str:
    """Names in a sentence.

    Examples
    --------
    >>> told(["a", "b", "c"]), told(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join(
        [", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names)
    )
