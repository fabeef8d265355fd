"""The perturbation of chapters detects weak checks. Here one claim is tested; ``make
perturb`` tests all."""

import ast
import json
import os
import re
import textwrap
from fractions import Fraction
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from perturb.chapter import perturb
from perturb.mutations import KINDS, Mutation

from preflearn.pairs import Pairs
from preflearn_book.runner.decision_rules import compare

tool = import_module("perturb.__main__")

CELLS = [
    """
    import numpy as np

    from preflearn_book.runner import check
    from preflearn_book.runner.decision_rules import compare
    from preflearn import datasets

    calls, X = [], np.arange(12.0).reshape(6, 2) ** 2
    total = 1
    """,
    """
    def spread(rows):
        calls.append(len(rows))
        return np.ptp(X[rows], axis=0)


    def always(rows):
        return len(rows) == len(rows)
    """,
    """
    rows, twice = [0, 1, 2], [1.0, 2.0]
    check("P1-01", holds=spread(rows).max() > 30, evidence="By a helper, of data that it reads.")
    check("P1-02", holds=always(rows), evidence="By a helper that can't say no.")
    check("P1-03", holds=np.allclose(X, X.copy()), evidence="Both sides are one.")
    check("P1-04", holds=X.min() >= 0, value=X.min(), evidence="A perturbed value is {value}.")
    check("P1-05", holds={"as printed": False, "else": sum(twice) < 5}, evidence="Half is typed.")
    calls.append(total)
    """,
    """
    gap = abs(datasets.four_items()[0].items.sum() - 7)
    check("P1-06", holds=gap < 1e-9, evidence="By what a function of the package returns.")
    gain = compare([1, 2, 3.5, 4, 5.2], [0, 1, 2, 3, 4])
    check("P1-07", holds=gain.superior, evidence="By numbers typed in the cell.")
    assert calls == [3, 1] and X[1, 0] == 4
    check("P1-08", holds=1 < 2, evidence="After what fails where something is wrong.")
    """,
]


def notebook(folder, sources):
    cells = [
        {"cell_type": "code", "metadata": {}, "source": textwrap.dedent(text)}
        for text in sources
    ]
    path = folder / "99_toy.ipynb"
    path.write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    return path


def test_a_check_that_can_fail_turns_and_one_that_cannot_does_not(tmp_path):
    before = dict(os.environ)
    found = perturb(notebook(tmp_path, CELLS), thorough=True)
    assert os.environ == before
    claims = {claim.id: claim for claim in found["claims"]}
    assert found["unsteady"] == {}
    constant = {"P1-02", "P1-03", "P1-08"}
    assert {name for name in claims if not claims[name].turned} == constant
    assert claims["P1-05"].steady == {"as printed"}
    assert claims["P1-01"].deep
    assert not claims["P1-04"].deep
    excused = dict.fromkeys(constant, "it is a toy")
    assert tool.report("99_toy", found, excused)[1]
    for missing in constant:
        text, good = tool.report(
            "99_toy", found, {name: excused[name] for name in constant - {missing}}
        )
        assert not good
        assert missing in text
    text, good = tool.report(
        "99_toy", found, excused | {"P1-01": "it turns"}, thorough=True
    )
    assert not good
    assert {"P1-01", "P1-04", "P1-05"} <= set(re.findall(r"P1-\d+", text))


def test_a_cell_with_another_result_the_second_time_is_named(tmp_path):
    cells = [
        "from itertools import count\nfrom preflearn_book.runner import check\nonce = iter(count())"
    ]
    cells.append(
        "check('P1-01', holds=next(tally()) == 0, evidence='Only the first time.')"
    )
    cells[0] += "\ndef tally(seen=once):\n    return seen"
    found = perturb(notebook(tmp_path, cells))
    assert list(found["unsteady"]) == [1]
    assert "P1-01" in found["unsteady"][1]
    assert not tool.report("99_toy", found, {"P1-01": "it is a toy"})[1]
    assert not found["claims"][0].turned


def test_a_cell_that_fails_is_named_and_ends_the_chapter(tmp_path):
    found = perturb(notebook(tmp_path, [CELLS[0], "1 / 0", CELLS[3]]))
    assert found["claims"] == []
    assert list(found["unsteady"]) == [1]
    assert "ZeroDivisionError" in found["unsteady"][1]


def test_a_run_that_takes_too_long_is_no_turn(tmp_path):
    cells = ["from preflearn_book.runner import check\nn = 3"]
    cells.append(
        "while n != 3:\n    pass\ncheck('P1-01', holds=n == 3, evidence='At once.')"
    )
    found = perturb(notebook(tmp_path, cells), seconds=0.05)
    assert not found["claims"][0].turned


@pytest.mark.parametrize(
    "value",
    [
        np.arange(1.0, 7).reshape(3, 2),
        pd.DataFrame({"a": [1.0, 2], "b": [3.0, 5]}, index=["x", "y"]),
        pd.Series([1.0, 2, 4]),
        {"a": 1, "b": 2.5},
        [True, False],
        Pairs(np.arange(6.0).reshape(3, 2), [[0, 1], [1, 2]]),
        compare([1, 2, 3.5], [0, 1, 2]),
        np.array([Fraction(1, 2), Fraction(2)], dtype=object),
        -0.5,
    ],
    ids=lambda value: type(value).__name__,
)
def test_something_is_wrong_in_the_same_way_each_time(value):
    before = repr(value)
    changed = []
    for kind in KINDS:
        first = Mutation(kind, 0)
        second = Mutation(kind, 0)
        wrong = first(value)
        assert type(wrong) is type(value)
        assert repr(wrong) == repr(second(value))
        changed.append(first.changed)
    assert sum(changed) >= 5
    assert repr(value) == before


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_pairs_lead_to_items_that_exist(kind):
    pairs = Pairs(np.arange(6.0).reshape(3, 2), [[0, 2], [2, 1], [1, 0]])
    for wrong in (Mutation(kind, 0)(pairs), Mutation(kind, 0)(pairs.B)):
        rows = wrong.index  # compiled code writes to these rows without a bounds check
        assert rows.min() >= 0
        assert rows.max() < 3
    assert wrong.shape == (3, 3)


def test_a_chapter_whose_process_dies_is_reported_and_ends_no_other(tmp_path):
    path = notebook(tmp_path, ["import os", "os.kill(os.getpid(), 9)"])
    _, good = tool.report("02_margins", tool.perturb_alone(path), {})
    assert not good


NOTEBOOKS = sorted((tool.ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def calls_of_check():
    """Return the calls of `check` in all chapters."""
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            source = "".join(cell["source"]) if cell["cell_type"] == "code" else ""
            for node in ast.walk(ast.parse(source)):
                if (
                    isinstance(node, ast.Call)
                    and ast.unparse(node.func) == "check"
                    and node.args
                ):
                    yield ast.literal_eval(node.args[0]), node


def is_typed(call):
    """Return whether all answers of a call of `check` are constants, so that nothing
    computed matters."""
    answers = [part.value for part in call.keywords if part.arg in ("holds", "ours")]
    return answers != [] and not any(
        isinstance(part, ast.Name) for one in answers for part in ast.walk(one)
    )


def test_answers_of_checks_are_computed_and_exceptions_are_claims():
    calls = list(calls_of_check())
    claims = {name for name, _ in calls}
    assert len(claims) > len(NOTEBOOKS)
    assert set(tool.exceptions()) <= claims
    assert {name for name, call in calls if is_typed(call)} <= set(tool.exceptions())


@pytest.mark.nightly
def test_a_check_of_a_chapter_turns():
    (path,) = (path for path in NOTEBOOKS if path.stem == "03_lemma")
    found = tool.perturb_alone(path, only=["P1-15"])
    assert [(claim.id, bool(claim.turned)) for claim in found["claims"]] == [
        ("P1-15", True)
    ]
