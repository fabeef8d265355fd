"""The tasks of chapter 17: each is one problem of a task family.

The key of a result is a task and a learner. A point of the chapter's sweep names tasks
by its number and, if wanted, learners; `merge_runs` puts new rows into a table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import ModuleType

import pandas as pd

from preflearn.core.validation import check_choice, require
from preflearn_book.studies import (
    ch17_features,
    ch17_objects,
    ch17_ratings,
    ch17_seasons,
    ch17_worlds,
)
from preflearn_book.studies.ch17_learners import select_learners
from preflearn_book.studies.ch17_protocol import (
    CONSTANT,
    Learner,
    Problem,
    evaluate_all,
)

FAMILIES: dict[str, ModuleType] = {
    "features": ch17_features,
    "objects": ch17_objects,
    "ratings": ch17_ratings,
    "time": ch17_seasons,
    "regimes": ch17_worlds,
}
"""The module of each task family, with the functions `tasks` and `problem`."""

KEYS = ["arena", "domain", "unit", "learner"]
"""The columns that name a row: the task, of which "arena" is the family, and the learner.
"""

WORDS = {
    "arena": "the task family: what kind of comparisons",
    "domain": "where the data come from",
    "unit": "what was drawn independently in it",
    "learner": "the learner",
    "loss": "fraction of wrong answers or of wrong pairs; over time minus the log probability, in nats",
    "log_loss": "mean of minus the log probability of the outcomes, in nats, where there are probabilities",
    "error": "fraction of results that were forecast wrongly, where loss is another measure",
    "overconfidence": "mean of the largest probability less the fraction of right answers",
    "with_ties": "the disagreement error with pairs of equal ratings, as in the paper",
    "fitted": "1, or 0 where no configuration could be fitted, so that the constant forecasts instead",
    "chosen": "the configuration that was chosen",
    "at_end": "chosen numbers that are the smallest or the largest of those tried",
    "passed": "configurations that could not be fitted",
    "fit_s": "seconds of the processor of the last fit",
    "forecast_s": "seconds of the processor of the forecasts",
    "fit_mb": "megabytes that the fit needed at its peak",
    "forecast_mb": "megabytes that the forecasts needed at their peak",
    "n_pairs": "pairs to learn from",
    "n_features": "features, of ratings the other users whose ratings are known",
    "n_items": "items to learn from",
    "tie_share": "fraction of ties among the pairs to learn from",
    "n_comparisons": "pairs of items that the rankings to learn from decide",
    "n_asked": "items in a forecast order, of users their mean",
    "n_users": "users of the unit",
    "n_train": "matches to learn from",
    "n_test": "matches to forecast",
    "players": "players or teams",
    "per_player": "matches to learn from, by player",
    "ties": "fraction of draws among the matches",
    "noise": "standard deviation of the noise in units of that of the scores",
    "missing": "fraction of the features that learners do not see",
    "explained": "fraction of the variance of the scores that all features explain",
    "nonlinear": "1 in the non-linear world, else 0",
    "least": "the error rate of the true scores with the best threshold",
}
"""What the columns of a table of runs mean."""


def tasks(profile: str) -> list[tuple[str, str]]:
    """Family and name of each task of a profile, in order.

    The tasks of "quick" are among those of "full".
    """
    check_choice(profile, "profile", ("quick", "full"))
    return [
        (family, name)
        for family, module in FAMILIES.items()
        for name in module.tasks(profile)
    ]


def points() -> list[list[tuple[str, str]]]:
    """The tasks of "full" by points of a sweep.

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
    wanted: Sequence[tuple[str, str]],
    names: Collection[str] | None = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """The rows of learners on some tasks, in order.

    Parameters
    ----------
    wanted : sequence of (str, str)
        Family and name of each task.
    names : collection of str, optional
        Names of learners; all by default. Tasks whose family has none of them have no
        rows.
    n_jobs : int, optional
        Number of processes, as in joblib.

    Raises
    ------
    ValueError
        If none of the tasks has one of the learners.
    """
    tables = []
    for family, name in wanted:
        if learners := select_learners(family, names):
            problem = FAMILIES[family].problem(name)
            tables.append(evaluate_all(problem, learners, _constant(family), n_jobs))
    require(
        bool(tables),
        names,
        "the list of learners",
        f"some of the families {sorted({family for family, _ in wanted})}",
    )
    return pd.concat(tables, ignore_index=True)


def quick_runs(
    names: Collection[str] | None = None, n_jobs: int | None = None
) -> pd.DataFrame:
    """Some rows of `run_tasks` for the tasks of "quick": each learner of a family on
    one of its tasks."""
    problems: dict[str, list[Problem]] = {}
    for family, name in tasks("quick"):
        if select_learners(family, names):
            problems.setdefault(family, []).append(FAMILIES[family].problem(name))
    tables = [
        _evaluate_in_turn(family, some, names, n_jobs)
        for family, some in problems.items()
    ]
    return pd.concat(tables, ignore_index=True)


def new_user_runs(
    families: Sequence[str],
    names: Collection[str] | None = None,
    n_jobs: int | None = None,
    *,
    few: bool = False,
) -> pd.DataFrame:
    """The rows of learners on the problems of new users, whose data are in no task.

    Parameters
    ----------
    families : sequence of str
        Task families whose learners are tried; the column "arena" has their names.
    names : collection of str, optional
        Names of learners; all by default. Without any learner in the families, the
        table is empty.
    n_jobs : int, optional
        Number of processes, as in joblib.
    few : bool
        Whether each learner is tried on one problem only, the first of a domain.
    """
    tables = []
    for family in families:
        learners = select_learners(family, names)
        if not learners:
            continue
        problems = FAMILIES[family].new_user()
        if few:
            first = {problem.domain: problem for problem in reversed(problems)}
            table = _evaluate_in_turn(family, list(first.values()), names, n_jobs)
        else:
            constant = _constant(family)
            table = pd.concat(
                [evaluate_all(one, learners, constant, n_jobs) for one in problems]
            )
        tables.append(table.assign(arena=family))
    if not tables:
        return pd.DataFrame(columns=KEYS)
    return pd.concat(tables, ignore_index=True)


def merge_runs(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Put new rows into a table of runs; a row with the same task and learner is replaced.

    Rows stay in the order of tasks. A learner that is new comes last in its tasks.

    Examples
    --------
    >>> old = pd.DataFrame({"arena": "a", "domain": ["x", "x", "y"], "unit": "0",
    ...                     "learner": ["p", "q", "p"], "loss": [0.1, 0.2, 0.3]})
    >>> new = old[:2].assign(learner=["q", "r"], loss=[0.5, 0.6])
    >>> merge_runs(old, new)[["domain", "learner", "loss"]].to_numpy().tolist()
    [['x', 'p', 0.1], ['x', 'q', 0.5], ['x', 'r', 0.6], ['y', 'p', 0.3]]
    """
    if new.empty:
        return old
    both = pd.concat([old, new], ignore_index=True)
    # A replaced row keeps its place: groups are numbered by their first rows.
    place = both.groupby(KEYS, sort=False).ngroup()
    task = both.groupby(KEYS[:-1], sort=False).ngroup()
    kept = both.assign(task=task, place=place).drop_duplicates(KEYS, keep="last")
    kept = kept.sort_values(["task", "place"], ignore_index=True)
    return kept.drop(columns=["task", "place"])


def _constant(family: str) -> Learner:
    (constant,) = select_learners(family, [CONSTANT])
    return constant


def _evaluate_in_turn(
    family: str,
    problems: Sequence[Problem],
    names: Collection[str] | None,
    n_jobs: int | None,
) -> pd.DataFrame:
    """Evaluate each learner on one of the problems, in turn, and the constant on all."""
    tables = []
    for k, problem in enumerate(problems):
        learners = [
            learner
            for place, learner in enumerate(select_learners(family))
            if (names is None or learner.name in names)
            and (learner.name == CONSTANT or place % len(problems) == k)
        ]
        if learners:
            tables.append(evaluate_all(problem, learners, _constant(family), n_jobs))
    return pd.concat(tables, ignore_index=True)
