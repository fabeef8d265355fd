"""The tasks of chapter 17. Each task is one problem of a task family.

The key of a result is a task and a learner. A point of the sweep of chapter 17 selects
tasks by number and, optionally, learners. `merge_runs` inserts new rows into a table.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from types import ModuleType
from typing import Any

import pandas as pd

from preflearn.core.validation import require
from preflearn_book.studies import (
    ch17_features,
    ch17_objects,
    ch17_queries,
    ch17_ratings,
    ch17_seasons,
    ch17_worlds,
)
from preflearn_book.studies.ch17_learners import LEARNERS, select_learners
from preflearn_book.studies.ch17_protocol import CONSTANT, Problem, evaluate

FAMILIES: dict[str, ModuleType] = {
    "features": ch17_features,
    "objects": ch17_objects,
    "queries": ch17_queries,
    "ratings": ch17_ratings,
    "time": ch17_seasons,
    "regimes": ch17_worlds,
}
"""The module of each task family, with the functions `tasks` and `problem`."""

KEYS = ["family", "domain", "unit", "learner"]
"""The key columns: the task (family, domain, and unit) and the learner."""

WORDS = {
    "family": "the task family: what kind of comparisons",
    "domain": "where the data come from",
    "unit": "independent replicate within the domain, such as a season",
    "learner": "the learner",
    "loss": "fraction of wrong answers or wrong pairs; for scores over time, the log loss in nats",
    "log_loss": "log loss of the outcomes in nats, if the learner forecasts probabilities",
    "error": "fraction of results that were forecast wrongly, if the loss is another measure",
    "overconfidence": "mean of the largest probability less the fraction of right answers",
    "with_ties": "the disagreement error with pairs of equal ratings, as in the paper",
    "ndcg": "normalized discounted cumulative gain of the first ten documents; larger is better",
    "chosen": "the configuration that was chosen",
    "at_end": "chosen numbers that are the smallest or the largest of all tried values",
    "fit_s": "processor seconds of the last fit",
    "forecast_s": "processor seconds of the forecasts",
    "fit_mb": "megabytes that the fit needed at its peak",
    "forecast_mb": "megabytes that the forecasts needed at their peak",
    "n_pairs": "pairs to learn from",
    "n_features": "features; for ratings, the other users whose ratings are known",
    "n_train": "matches to learn from",
    "players": "players or teams",
    "least": "the error rate of the true scores with the best threshold",
}
"""Meanings of the columns of a table of runs."""


def tasks(profile: str) -> list[tuple[str, str]]:
    """Family and name of each task of a profile, in order.

    The tasks of "quick" are a subset of those of "full".
    """
    return [
        (family, name)
        for family, module in FAMILIES.items()
        for name in module.tasks(profile)
    ]


def points() -> list[list[tuple[str, str]]]:
    """The tasks of the profile "full" by points of a sweep.

    A point has one task, or all tasks of a simulated world, whose problems are small.
    """
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for family, name in tasks("full"):
        group = name
        if family == "regimes":
            group = name.rsplit("/", 1)[0]
        groups.setdefault((family, group), []).append((family, name))
    return list(groups.values())


def run_tasks(
    wanted: Sequence[tuple[str, str]], names: Collection[str] | None = None
) -> pd.DataFrame:
    """Evaluate learners on some tasks; return the rows in order.

    Parameters
    ----------
    wanted : sequence of (str, str)
        Family and name of each task.
    names : collection of str, optional
        Names of learners; all by default. Tasks without any of these learners have no
        rows.

    Raises
    ------
    ValueError
        If none of the tasks has one of the learners.
    """
    rows = []
    for family, name in wanted:
        if select_learners(family, names):
            rows += _evaluate(family, [FAMILIES[family].problem(name)], names)
    families = sorted({family for family, _ in wanted})
    require(
        bool(rows), names, "the list of learners", f"some of the families {families}"
    )
    return pd.DataFrame(rows)


def quick_runs(names: Collection[str] | None = None) -> pd.DataFrame:
    """Some rows of `run_tasks` for the quick tasks.

    Each learner of a family is evaluated on one task of the family.
    """
    rows = []
    for family, module in FAMILIES.items():
        if select_learners(family, names):
            problems = [module.problem(name) for name in module.tasks("quick")]
            rows += _evaluate(family, problems, names, in_turn=True)
    return pd.DataFrame(rows)


def new_user_runs(
    families: Sequence[str],
    names: Collection[str] | None = None,
    *,
    few: bool = False,
) -> pd.DataFrame:
    """Evaluate learners on the problems of new users, whose data are in no task.

    Parameters
    ----------
    families : sequence of str
        Task families whose learners are evaluated. Their names are in the column
        "family".
    names : collection of str, optional
        Names of learners; all by default. The table is empty if the families have
        none of them.
    few : bool
        Whether to evaluate only every third learner of a family, each on one problem, the
        first of a domain.
    """
    tables = [pd.DataFrame(columns=KEYS)]
    for family in families:
        if select_learners(family, names):
            problems = FAMILIES[family].new_user()
            evaluated = names
            if few:
                first = {problem.domain: problem for problem in reversed(problems)}
                problems = list(first.values())
                third = select_learners(family, names)[::3]
                evaluated = [learner.name for learner in third]
            rows = _evaluate(family, problems, evaluated, in_turn=few)
            tables.append(pd.DataFrame(rows).assign(family=family))
    return pd.concat(tables, ignore_index=True)


def merge_runs(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Insert new rows into a table of runs, replacing rows with the same task and learner.

    Rows remain in the order of tasks. A new learner comes last in its tasks.

    Examples
    --------
    >>> old = pd.DataFrame({"family": "a", "domain": ["x", "x", "y"], "unit": "0",
    ...                     "learner": ["p", "q", "p"], "loss": [0.1, 0.2, 0.3]})
    >>> new = old[:2].assign(learner=["q", "r"], loss=[0.5, 0.6])
    >>> merge_runs(old, new)[["domain", "learner", "loss"]].to_numpy().tolist()
    [['x', 'p', 0.1], ['x', 'q', 0.5], ['x', 'r', 0.6], ['y', 'p', 0.3]]
    """
    if new.empty:
        return old
    both = pd.concat([old, new], ignore_index=True)
    # A replaced row keeps its position, because groups are numbered by their first rows.
    place = both.groupby(KEYS, sort=False).ngroup()
    task = both.groupby(KEYS[:-1], sort=False).ngroup()
    kept = both.assign(task=task, place=place).drop_duplicates(KEYS, keep="last")
    kept = kept.sort_values(["task", "place"], ignore_index=True)
    return kept.drop(columns=["task", "place"])


def _evaluate(
    family: str,
    problems: Sequence[Problem],
    names: Collection[str] | None,
    *,
    in_turn: bool = False,
) -> list[dict[str, Any]]:
    """The rows of the learners of a family on problems.

    With `in_turn`, each learner is evaluated on one of the problems, and the constant
    forecast on all of them.
    """
    chosen = select_learners(family, names)
    rows = []
    for k, problem in enumerate(problems):
        for place, learner in enumerate(LEARNERS[family]):
            has_turn = learner.name == CONSTANT or place % len(problems) == k
            if learner in chosen and (has_turn or not in_turn):
                with warnings.catch_warnings(action="ignore"):
                    rows.append(evaluate(problem, learner))
    return rows
