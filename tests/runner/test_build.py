import io
import json
import os
import re
from pathlib import Path
from zipfile import ZipFile

import pytest
from toy_project import (
    CLAIMS,
    FIRST,
    ONE_CLAIM,
    edit_notebook,
    run_here,
    write_notebook,
    write_project,
)

from preflearn_book.runner import tasks
from preflearn_book.runner.build import build_book, latest_chapters
from preflearn_book.runner.command import main
from preflearn_book.runner.outputs import without_solutions
from preflearn_book.runner.project import Project

CHAPTERS = Project(Path(__file__).parents[2]).chapters


def test_a_build_fails_on_a_contradiction(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    source = 'from preflearn_book.runner.claims import check\ncheck("P1-01", False, "One case differs.")'
    project = write_project(tmp_path, ONE_CLAIM, first=source)
    assert build_book(project, rendered=False) == 1
    contradiction = "contradiction: computed 'fails'"
    assert f"P1-01: {contradiction}" in capsys.readouterr().out
    assert contradiction in (project.pages / "claims.md").read_text().lower()


def test_the_book_shows_the_last_requested_run_regardless_of_time_stamps(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(tmp_path, CLAIMS, first=FIRST)
    page = project.pages / "01_first.ipynb"
    for seed in (4, 5):
        assert build_book(project, parameters={"seed": seed}, rendered=False) == 0
        assert f"`seed = {seed}`" in page.read_text()
    four, five = (
        next(
            path
            for path in project.build.rglob("quick-*.ipynb")
            if f'"seed": {seed}' in path.read_text()
        )
        for seed in (4, 5)
    )
    os.utime(four, (0, 0))  # the clock was changed
    os.utime(five, (4e9, 4e9))
    assert build_book(project, parameters={"seed": 4}, rendered=False) == 0
    assert "`seed = 4`" in page.read_text()
    write_notebook(project.notebooks / "02_second.ipynb", "1")
    project = Project(project.root)
    assert build_book(project, ["2"], rendered=False) == 0
    assert "`seed = 4`" in page.read_text()

    four.write_bytes(b"")
    monkeypatch.chdir(project.root)
    capsys.readouterr()
    assert main(["claims"]) == 0
    assert capsys.readouterr().err == ""  # no message about the damaged file
    assert main(["build", "1", "-p", "seed", "4", "--no-render"]) == 0
    captured = capsys.readouterr()
    assert "1 executed, 0 unchanged" in captured.out
    assert captured.err.count(str(four)) == 1
    (project.latest / "01_first.ipynb").write_bytes(b"")
    assert latest_chapters(project).keys() == {"02_second"}


def test_a_failed_chapter_does_not_stop_others_and_keeps_its_last_good_page(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(
        tmp_path, "", first="print('good')", second="1 / 0", third="print(3)"
    )
    assert build_book(project, rendered=False) == 1
    out = capsys.readouterr().out
    assert "2 executed, 0 unchanged, 1 failed" in out
    assert "chapter 02_second: ZeroDivisionError: division by zero" in out
    page = (project.pages / "02_second.md").read_text()
    assert "could not be run" in page
    assert "ZeroDivisionError: division by zero" in page
    assert (project.pages / "03_third.ipynb").exists()

    write_notebook(project.notebooks / "01_first.ipynb", "print(missing)")
    write_notebook(project.notebooks / "02_second.ipynb", "print(2)")
    assert build_book(Project(project.root), rendered=False) == 1
    assert "chapter 01_first: NameError" in capsys.readouterr().out
    assert "good" in (project.pages / "01_first.ipynb").read_text()
    assert (project.pages / "02_second.ipynb").exists()
    assert not (project.pages / "02_second.md").exists()


def test_a_build_lists_missing_data_sets_and_only_working_commands(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(tasks, "execute", run_here)
    monkeypatch.delenv("PREFLEARN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asks = 'from preflearn_book.runner.records import note_read\nnote_read("dataset {}", None)'
    both = "\n".join(asks.format(name) for name in ("chess", "sushi"))
    project = write_project(
        tmp_path / "book", "", first=both, second=asks.format("sushi")
    )
    assert build_book(project, rendered=False) == 0
    out = capsys.readouterr().out
    assert "sushi is not available" in out
    assert "in 01_first, 02_second. To get it: preflearn data fetch sushi\n" in out
    assert (
        "chess is not available, so other data were used in 01_first. To get it: download its files from http"
        in out
    )
    assert "fetch chess" not in out
    page = (project.pages / "reproduce.md").read_text()
    assert "`preflearn data fetch sushi`" in page
    assert "reported as gone on" in page
    assert "fetch chess" not in page


def test_a_claim_with_missing_data_is_shown_as_not_checked_with_the_reason(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(tasks, "execute", run_here)
    answer = (
        "from preflearn_book.runner.claims import check\n"
        'check("P1-01", False, "One case differs.", missing={})'
    )
    project = write_project(
        tmp_path / "without", ONE_CLAIM, first=answer.format('["sushi"]')
    )
    assert build_book(project, rendered=False) == 0
    for page in (project.pages / "claims.md", project.pages / "01_first.ipynb"):
        text = page.read_text()
        assert "Not checked" in text
        assert "data that are not available: sushi" in text
        assert "unchecked" in text
    assert "contradiction" not in capsys.readouterr().out.lower()

    project = write_project(tmp_path / "with", ONE_CLAIM, first=answer.format("[]"))
    assert build_book(project, rendered=False) == 1
    assert "P1-01: contradiction" in capsys.readouterr().out


EXERCISE = """\
## Exercises

:::{exercise}
:label: ex-one
What is 1 + 1?
:::

:::{solution} ex-one
:class: dropdown
It is SECRET.

```{math}
1 + 1 = SECRET
```
:::

Some words."""


def test_solutions_can_be_withheld_from_the_pages_and_the_archive(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(tmp_path, CLAIMS, first=FIRST)

    def add_exercise(notebook):
        cell = {"cell_type": "markdown", "id": "ex", "metadata": {}, "source": EXERCISE}
        notebook["cells"].append(cell)

    edit_notebook(project.notebooks / "01_first.ipynb", add_exercise)
    monkeypatch.chdir(project.root)

    def written():
        page = (project.pages / "01_first.ipynb").read_text()
        with ZipFile(
            io.BytesIO((project.pages / "notebooks.zip").read_bytes())
        ) as zipped:
            return page, zipped.read("notebooks/01_first.ipynb").decode()

    assert main(["build", "--no-render", "--without-solutions"]) == 0
    for text in written():
        assert "What is 1 + 1?" in text
        assert "Some words." in text
        assert "SECRET" not in text
        assert "{solution" not in text
    assert main(["build", "--no-render"]) == 0
    assert all("SECRET" in text for text in written())
    copy = project.build / "without_solutions"
    assert [path.name for path in copy.iterdir()] == ["notebooks.zip"]
    with ZipFile(copy / "notebooks.zip") as zipped:
        assert "SECRET" not in zipped.read("notebooks/01_first.ipynb").decode()


def test_the_copy_without_solutions_survives_other_builds(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(tmp_path, CLAIMS, first=FIRST)
    page = project.build / "html" / "index.html"

    def render(project):
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text((project.pages / "01_first.ipynb").read_text("utf-8"), "utf-8")
        return []

    def add_exercise(notebook):
        cell = {"cell_type": "markdown", "id": "ex", "metadata": {}, "source": EXERCISE}
        notebook["cells"].append(cell)

    edit_notebook(project.notebooks / "01_first.ipynb", add_exercise)
    monkeypatch.setattr("preflearn_book.runner.build.render", render)
    (project.book / "_toc.yml").write_text("root: index\n", "utf-8")
    assert build_book(project, solutions=False) == 0
    assert build_book(project) == 0
    assert "SECRET" in page.read_text("utf-8")
    copy = project.build / "without_solutions" / "html" / "index.html"
    assert "SECRET" not in copy.read_text("utf-8")


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.name)
def test_no_solution_of_a_chapter_is_left_and_nothing_else_is_lost(chapter):
    def texts(notebook):
        return [
            cell["source"]
            for cell in notebook["cells"]
            if cell["cell_type"] == "markdown"
        ]

    before = texts(chapter.notebook)
    after = texts(without_solutions(chapter.notebook))
    assert "{solution" not in json.dumps(after)
    assert len(before) == len(after)
    for old, new in zip(before, after, strict=True):
        if "{solution" not in old:
            assert new == old
        pattern = r"^#+ .*|^:label: .*|^[`:]{3,}\{exercise\}.*"
        kept = re.findall(pattern, old, re.MULTILINE)
        assert re.findall(pattern, new, re.MULTILINE) == kept
