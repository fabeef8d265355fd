"""The quick run of chapter 17 tries each learner and each task, and goes on without
data."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from preflearn_book.runner.project import Project
from preflearn_book.runner.sweep import planned
from preflearn_book.studies import ch17_features, ch17_ratings, ch17_seasons, ch17_tasks
from preflearn_book.studies.ch17_protocol import CONSTANT, SIMULATED, entry


def test_a_quick_run_tries_each_learner_and_each_quick_task(monkeypatch):
    asked = []

    def fake_entries(problem, learners, n_jobs):
        asked.extend(
            (problem.arena, f"{problem.domain}/{problem.unit}", learner.name)
            for learner in learners
        )
        return pd.DataFrame({"loss": [0.0] * len(learners)})

    monkeypatch.setattr(ch17_tasks, "entries", fake_entries)
    for module in ch17_tasks.ARENAS.values():
        monkeypatch.setattr(module, "problem", lambda name, of=module: posed(of, name))
    arenas = {module: arena for arena, module in ch17_tasks.ARENAS.items()}

    def posed(module, name):
        return SimpleNamespace(
            arena=arenas[module], domain=name.split("/")[0], unit=name.split("/")[1]
        )

    runs = ch17_tasks.quick_runs()
    assert len(runs) == len(asked) == len(set(asked))
    assert {(arena, name) for arena, name, _ in asked} == set(ch17_tasks.tasks("quick"))
    learners = {
        (arena, learner.name)
        for arena, module in ch17_tasks.ARENAS.items()
        for learner in module.LEARNERS
    }
    assert {(arena, learner) for arena, _, learner in asked} == learners
    others = [(arena, learner) for arena, _, learner in asked if learner != CONSTANT]
    assert len(others) == len(set(others))


def test_the_notebook_names_all_points_of_the_sweep_that_its_full_run_reads():
    chapter = Project(Path(__file__).parents[2]).chapter("17")
    points, _ = planned(chapter, chapter.sweep)
    assert [point["task"] for point in points] == list(range(len(ch17_tasks.points())))


@pytest.fixture
def without_data(tmp_path, monkeypatch):
    """No data set is here or can be downloaded."""
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    monkeypatch.delenv("PREFLEARN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for cached in (
        ch17_features._known_before,
        ch17_ratings._users,
        ch17_seasons._frame,
    ):
        cached.cache_clear()
    yield
    ch17_ratings._users.cache_clear()


NAMES = {
    "features": ["football/2018", "sushi/0"],
    "objects": ["Bundesliga/B1-B2"],
    "ratings": ["jester 20-39/0", "movielens 60-79/5"],
    "time": [
        "ATP/2002",
        "NBA by history/2002 after 0.5",
        "football/1993",
        "StarCraft/WoL",
    ],
}


@pytest.mark.parametrize(
    ("arena", "name"), [(arena, name) for arena, some in NAMES.items() for name in some]
)
def test_a_problem_without_its_data_is_simulated_and_says_so(without_data, arena, name):
    module = ch17_tasks.ARENAS[arena]
    found = module.problem(name)
    assert f"{found.domain}/{found.unit}" == SIMULATED + name
    again = module.problem(name)
    assert found.facts == again.facts
    constant = next(one for one in module.LEARNERS if one.name == CONSTANT)
    quick = {"features": "logistic regression", "time": "Elo"}.get(
        arena, "correlation weights"
    )
    learner = next(one for one in module.LEARNERS if one.name == quick)
    ours, theirs = (entry(found, one, constant) for one in (learner, constant))
    assert ours["fitted"] == 1
    assert np.isfinite([ours["loss"], theirs["loss"]]).all()
    if arena != "features":  # whose norms have no linear answer
        assert ours["loss"] < theirs["loss"]


def test_new_users_without_data_are_simulated(without_data):
    assert {one.domain for one in ch17_seasons.new_user()} == {
        f"{SIMULATED}league of 18 teams"
    }
    assert {one.domain for one in ch17_ratings.new_user()} == {
        SIMULATED + ch17_ratings.NEW
    }
