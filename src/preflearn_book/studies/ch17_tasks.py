"""The tasks of chapter 17, each one problem with all learners of its arena, and the
points of its sweep."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import pandas as pd

from preflearn.core.validation import check_choice
from preflearn_book.studies import (
    ch17_features,
    ch17_objects,
    ch17_ratings,
    ch17_time,
    ch17_worlds,
)
from preflearn_book.studies.ch17_protocol import CONSTANT, Learner, Problem, entries

ARENAS: dict[str, ModuleType] = {
    "features": ch17_features,
    "objects": ch17_objects,
    "ratings": ch17_ratings,
    "time": ch17_time,
    "regimes": ch17_worlds,
}
"""Each has LEARNERS, `tasks` and `problem`."""

_SMALL = ("regimes",)

AFTERWARDS = ("SVMCompare, threshold refitted", "logistic, without counts")
"""Learners that were added when losses had been seen, to find a cause; they stand in no
rank."""

WORDS = {
    "arena": "what kind of comparisons",
    "domain": "where the data come from",
    "unit": "what was drawn independently in it",
    "learner": "who learned",
    "loss": "share of wrong answers or of wrong pairs; over time minus the log probability, in nats",
    "log_loss": "mean of minus the log probability of the outcomes, in nats, where there are probabilities",
    "error": "share of results that were foretold wrongly, where loss is another measure",
    "overconfidence": "mean of the largest probability less the share of right answers",
    "with_ties": "the disagreement error with pairs of equal ratings, as the paper prints it",
    "fitted": "1, or 0 where no configuration could be fitted and the constant stands in",
    "chosen": "the configuration that was chosen",
    "at_end": "chosen numbers that are the least or the largest of those tried",
    "passed": "configurations that could not be fitted",
    "fit_s": "seconds of the processor of the last fit",
    "forecast_s": "seconds of the processor of the forecasts",
    "fit_mb": "megabytes that the fit needed at its peak",
    "forecast_mb": "megabytes that the forecasts needed at their peak",
    "n_pairs": "pairs to learn from",
    "n_features": "features, of ratings the other users whose ratings are known",
    "n_items": "items to learn from",
    "tie_share": "share of ties among the pairs to learn from",
    "n_comparisons": "pairs of items that the rankings to learn from decide",
    "n_asked": "items in a forecast order, of users their mean",
    "n_users": "users of the unit",
    "n_train": "matches to learn from",
    "n_test": "matches to forecast",
    "players": "players or teams",
    "per_player": "matches to learn from, by player",
    "ties": "share of draws among the matches",
    "noise": "standard deviation of the noise in units of that of the scores",
    "missing": "share of the features that learners do not see",
    "explained": "share of the variance of the scores that all features explain",
    "nonlinear": "1 in the non-linear world, else 0",
    "least": "the error rate of the true scores with the best threshold",
}
"""What the columns of a table of runs mean."""


def tasks(profile: str) -> list[tuple[str, str]]:
    """Arena and name of each task of a profile, in order; those of "quick" are among
    those of "full"."""
    check_choice(profile, "profile", ("quick", "full"))
    return [
        (arena, name)
        for arena, module in ARENAS.items()
        for name in module.tasks(profile)
    ]


def points() -> list[list[tuple[str, str]]]:
    """The tasks of "full" by points of a sweep: one each, or all of a world where
    problems are small."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for arena, name in tasks("full"):
        key = name.rsplit("/", 1)[0] if arena in _SMALL else name
        found.setdefault((arena, key), []).append((arena, name))
    return list(found.values())


def runs_of(wanted: list[tuple[str, str]], n_jobs: int | None = None) -> pd.DataFrame:
    """The rows of all learners on some tasks, in order."""
    return pd.concat(
        [_rows(arena, name, n_jobs) for arena, name in wanted], ignore_index=True
    )


def quick_runs(n_jobs: int | None = None) -> pd.DataFrame:
    """Some rows of `runs_of` for the tasks of "quick": each learner of an arena on one
    of its tasks."""
    names: dict[str, list[str]] = {}
    for arena, name in tasks("quick"):
        names.setdefault(arena, []).append(name)
    found = []
    for arena, some in names.items():
        module = ARENAS[arena]
        found.append(
            _in_turn([module.problem(name) for name in some], module.LEARNERS, n_jobs)
        )
    return pd.concat(found, ignore_index=True)


def new_user(
    arena: str, n_jobs: int | None = None, *, few: bool = False
) -> pd.DataFrame:
    """The rows of an arena's learners on the problems of a new user, whose data are in
    no task.

    With few, each learner on one problem: the first of one of the domains.
    """
    module = ARENAS[arena]
    problems = ARENAS[arena].new_user()
    if few:
        first = {problem.domain: problem for problem in reversed(problems)}
        return _in_turn(list(first.values()), module.LEARNERS, n_jobs)
    return pd.concat(
        [entries(one, module.LEARNERS, n_jobs) for one in problems], ignore_index=True
    )


def _in_turn(
    problems: Sequence[Problem], learners: Sequence[Learner], n_jobs: int | None
) -> pd.DataFrame:
    """Each learner's row on one of the problems, in turn, and the constant's rows on
    all of them."""
    found = []
    for k, problem in enumerate(problems):
        asked = [
            learner
            for place, learner in enumerate(learners)
            if learner.name == CONSTANT or place % len(problems) == k
        ]
        found.append(entries(problem, asked, n_jobs))
    return pd.concat(found, ignore_index=True)


def _rows(arena: str, name: str, n_jobs: int | None) -> pd.DataFrame:
    module = ARENAS[arena]
    return entries(module.problem(name), module.LEARNERS, n_jobs)
