"""The quick run of chapter 17 tries each learner and each task."""

from types import SimpleNamespace

import pandas as pd

from studies import ch17_tasks
from studies.ch17_protocol import CONSTANT


def test_a_quick_run_tries_each_learner_and_each_quick_task(monkeypatch):
    asked = []

    def fake_entries(problem, learners, n_jobs):
        asked.extend(
            (problem.arena, f"{problem.domain}/{problem.unit}", learner.name) for learner in learners
        )
        return pd.DataFrame({"loss": [0.0] * len(learners)})

    monkeypatch.setattr(ch17_tasks, "entries", fake_entries)
    for module in ch17_tasks.ARENAS.values():
        monkeypatch.setattr(module, "problem", lambda name, of=module: posed(of, name))
    arenas = {module: arena for arena, module in ch17_tasks.ARENAS.items()}

    def posed(module, name):
        return SimpleNamespace(arena=arenas[module], domain=name.split("/")[0], unit=name.split("/")[1])

    runs = ch17_tasks.quick_runs()
    assert len(runs) == len(asked) == len(set(asked))
    assert {(arena, name) for arena, name, _ in asked} == set(ch17_tasks.tasks("quick"))
    learners = {
        (arena, learner.name) for arena, module in ch17_tasks.ARENAS.items() for learner in module.LEARNERS
    }
    assert {(arena, learner) for arena, _, learner in asked} == learners
    others = [(arena, learner) for arena, _, learner in asked if learner != CONSTANT]
    assert len(others) == len(set(others))
