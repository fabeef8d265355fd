"""The quick run of chapter 17 tests each learner and each task, also without data."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from preflearn_book.runner.project import Project
from preflearn_book.runner.sweep import planned
from preflearn_book.studies import (
    ch17_features,
    ch17_queries,
    ch17_ratings,
    ch17_seasons,
    ch17_tasks,
)
from preflearn_book.studies.ch17_learners import LEARNERS, parse_names, select_learners
from preflearn_book.studies.ch17_protocol import CONSTANT, SIMULATED, Learner, evaluate


@pytest.fixture
def evaluated(monkeypatch):
    """Replace the evaluation by a list of the tasks and learners, which is returned."""
    keys = []

    def record_keys(problem, learner):
        keys.append((problem.family, problem.name, learner.name))
        return dict(zip(("family", "name", "learner"), keys[-1], strict=True))

    monkeypatch.setattr(ch17_tasks, "evaluate", record_keys)
    for family, module in ch17_tasks.FAMILIES.items():
        monkeypatch.setattr(
            module,
            "problem",
            lambda name, family=family: SimpleNamespace(family=family, name=name),
        )
    return keys


def test_a_quick_run_tries_each_learner_and_each_quick_task(evaluated):
    runs = ch17_tasks.quick_runs()
    assert len(runs) == len(evaluated) == len(set(evaluated))
    tasks = {(family, name) for family, name, _ in evaluated}
    assert tasks == set(ch17_tasks.tasks("quick"))
    expected = {
        (family, learner.name)
        for family, learners in LEARNERS.items()
        for learner in learners
    }
    assert {(family, learner) for family, _, learner in evaluated} == expected
    others = [(family, name) for family, _, name in evaluated if name != CONSTANT]
    assert len(others) == len(set(others))


def test_a_run_of_some_learners_has_their_rows_only(evaluated):
    everything = ch17_tasks.quick_runs()
    names = parse_names("Elo; ranking SVM rbf")
    assert names == ["Elo", "ranking SVM, rbf"]
    some = ch17_tasks.quick_runs(names)
    expected = everything[everything["learner"].isin(names)]
    pd.testing.assert_frame_equal(some, expected.reset_index(drop=True))
    runs = ch17_tasks.run_tasks(ch17_tasks.tasks("full"), ["Elo"])
    assert set(runs["learner"]) == {"Elo"}
    assert set(runs["family"]) == {"time"}
    with pytest.raises(ValueError, match="learners"):
        ch17_tasks.run_tasks([("objects", "volleyball/V1-V2")], ["Elo"])
    with pytest.raises(ValueError, match="'Elos'"):
        parse_names("Elos")


def fit_mean(train, above):
    label = 1 if np.mean(train[1]) > above else -1
    return lambda pairs: np.full(len(pairs), label)


def test_a_new_learner_is_one_entry_of_the_registry(monkeypatch):
    """Only the rows of the new learner are computed, and they are merged into a
    table of runs."""
    task = ("regimes", "linear comparisons=50/0")
    names = [CONSTANT, "logistic regression"]
    before = ch17_tasks.run_tasks([task], names)
    configurations = [{"above": (k - 3.5) / 10} for k in range(8)]
    toy = Learner("toy", fit_mean, configurations)
    monkeypatch.setitem(LEARNERS, "regimes", (*LEARNERS["regimes"], toy))
    new = ch17_tasks.run_tasks([task], ["toy"])
    assert new["learner"].tolist() == ["toy"]
    assert 0 < new["loss"][0] < 1
    merged = ch17_tasks.merge_runs(before, new)
    assert merged["learner"].tolist() == ["logistic regression", CONSTANT, "toy"]
    pd.testing.assert_frame_equal(merged[:2], before, check_dtype=False)
    again = ch17_tasks.merge_runs(merged, new.assign(loss=0.25))
    assert again["loss"].tolist() == [*before["loss"], 0.25]


def test_the_notebook_names_all_points_of_the_sweep_that_its_full_run_reads():
    chapter = Project(Path(__file__).parents[2]).chapter("17")
    points, _ = planned(chapter, chapter.sweep)
    assert [point["task"] for point in points] == list(range(len(ch17_tasks.points())))


@pytest.fixture
def without_data(tmp_path, monkeypatch):
    """Make all data sets and downloads unavailable."""
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    monkeypatch.delenv("PREFLEARN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for cached in (
        ch17_features._known_before,
        ch17_queries.search_results,
        ch17_ratings._users,
        ch17_seasons._frame,
    ):
        cached.cache_clear()
    yield
    ch17_ratings._users.cache_clear()


NAMES = {
    "features": ["football/2018", "sushi/0"],
    "objects": ["Bundesliga/B1-B2"],
    "queries": ["12 queries/9"],
    "ratings": ["jester 20-39/0", "movielens 60-79/5"],
    "time": [
        "ATP/2002",
        "NBA by history/2002 after 0.5",
        "football/1993",
        "StarCraft/WoL",
    ],
}


@pytest.mark.parametrize(
    ("family", "name"),
    [(family, name) for family, names in NAMES.items() for name in names],
)
def test_a_problem_without_its_data_is_simulated_and_says_so(
    without_data, family, name
):
    module = ch17_tasks.FAMILIES[family]
    found = module.problem(name)
    assert f"{found.domain}/{found.unit}" == SIMULATED + name
    again = module.problem(name)
    assert found.facts == again.facts
    fast = {"features": "logistic regression", "time": "Elo"}
    (constant,) = select_learners(family, [CONSTANT])
    (learner,) = select_learners(family, [fast.get(family, "correlation weights")])
    loss, loss_of_constant = (
        evaluate(found, one)["loss"] for one in (learner, constant)
    )
    assert np.isfinite([loss, loss_of_constant]).all()
    if family != "features":  # no linear function orders the norms of this family
        assert loss < loss_of_constant


def test_new_users_without_data_are_simulated(without_data):
    assert {one.domain for one in ch17_seasons.new_user()} == {
        f"{SIMULATED}league of 18 teams"
    }
    assert {one.domain for one in ch17_ratings.new_user()} == {
        SIMULATED + ch17_ratings.NEW
    }
