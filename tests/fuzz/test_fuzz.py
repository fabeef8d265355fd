"""The fuzz detects faults, and finds none in a few calls. tests/nightly makes many
calls."""

import re
import sys
import warnings
from importlib import import_module

import numpy as np
import pytest
from fuzz import calls

from preflearn import svm

tool = import_module("fuzz.__main__")


def test_sixty_calls_end_in_answers_or_promised_errors():
    made = tool.fuzz(60, seed=1, workers=1, step=8)
    assert [call for call in made if call["outcome"].startswith("BAD")] == []
    outcomes = [call["outcome"] for call in made]
    assert outcomes.count("answered") > 20
    assert outcomes.count("ValueError") > 5


def test_a_case_can_be_repeated():
    # The repr of an iterator contains its address.
    once, again = (
        re.sub("0x[0-9a-f]+", "", str(calls.run_case(0, 77))) for _ in range(2)
    )
    assert once == again


def test_new_names_are_found(monkeypatch):
    monkeypatch.setattr(svm, "added", lambda X: X, raising=False)
    monkeypatch.setattr(svm, "__all__", [*svm.__all__, "added"])
    names = calls.public_names.__wrapped__()
    expected = {
        "preflearn.svm.added",
        "preflearn.pairs.Pairs.from_scores",
    }
    assert expected <= set(names)


def nan(X):
    return {"a": [np.array([1.0, np.nan])]}


def infinite(X):
    return [1.0, -np.inf]


def says_so(X):
    """Return inf where nothing is known."""
    return np.array([np.inf])


def writes(X):
    X += 1


def breaks(X):
    raise KeyError("a")


def promises(X):
    """Raises KeyError."""
    raise KeyError("a")


def warns(X):
    warnings.warn("no", RuntimeWarning, stacklevel=1)


def foreign(X):
    np.zeros(3).reshape(2, -1)


SEEN = {
    nan: "BAD number",
    infinite: "BAD number",
    says_so: "answered",
    writes: "BAD changed its input",
    breaks: "BAD KeyError",
    promises: "KeyError",
    warns: "BAD warning",
    foreign: "foreign ValueError",
}


@pytest.mark.parametrize(
    ("call", "outcome"), SEEN.items(), ids=lambda one: getattr(one, "__name__", "")
)
def test_the_outcome_of_a_call_is_recognized(call, outcome, tmp_path):
    case = calls.Case(0, 0, {"x": call}, tmp_path)
    case.turn = 9
    case._call("x", call)
    assert [one["outcome"] for one in case.calls] == [outcome]


@pytest.mark.parametrize(
    ("outcome", "program", "limit"),
    [
        ("BAD hang", "import time; time.sleep(1000)", 2.0),
        (
            "BAD end of the process",
            "import os, sys; sys.stdin.readline(); os.kill(os.getpid(), 9)",
            120.0,
        ),
    ],
)
def test_a_case_that_hangs_or_ends_its_process_is_reported(
    outcome, program, limit, tmp_path
):
    worker = tool.Worker(0, limit, str(tmp_path))
    worker.command = [sys.executable, "-c", program]
    assert [call["outcome"] for call in worker(0)] == [outcome]
    assert worker.process is None
