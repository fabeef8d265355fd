"""Every notebook runs offline with an empty cache, and states what it uses instead of
its data."""

from pathlib import Path

import pytest

from preflearn_book.runner.execution import execute
from preflearn_book.runner.outputs import Executed
from preflearn_book.runner.project import Project

PROJECT = Project(Path(__file__).parents[2])
pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("chapter", PROJECT.chapters, ids=lambda chapter: chapter.name)
def test_a_notebook_without_data_runs_and_says_what_it_uses_instead(
    chapter, tmp_path, monkeypatch
):
    monkeypatch.delenv("PREFLEARN_DATA", raising=False)
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = execute(chapter.notebook, {}, chapter.parameters, str(PROJECT.root))
    assert result.summary == "", result.report
    executed = Executed(result.notebook)
    assert executed.provenance["data"] == []
    assert [check["id"] for check in executed.checks if not check["agrees"]] == []
    outputs = (output for cell in executed.cells for output in cell.get("outputs", []))
    texts = [
        "".join(output.get("data", {}).get("text/markdown", "")) for output in outputs
    ]
    notes = [
        text
        for text in texts
        if text.startswith("> ") and "preflearn data fetch" in text
    ]
    assert bool(executed.replaced) == bool(notes)
