import os

from toy_project import FIRST, LEDGER, run_here, write_notebook, write_project

from bookrunner import tasks
from bookrunner.build import build_book, shown_chapters
from bookrunner.command import main
from bookrunner.project import Project


def test_build_fails_on_a_contradiction(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    source = 'from bookrunner.ledger import check\ncheck("P1-01", False, "One case differs.")'
    ledger = "- {id: P1-01, where: x, statement: x, chapter: 01_first, kind: formula, verdict: holds}\n"
    project = write_project(tmp_path, ledger, first=source)
    assert build_book(project, rendered=False) == 1
    out = capsys.readouterr().out
    assert "claim P1-01: contradiction: computed 'fails', the ledger says 'holds' (One case differs.)" in out
    page = (project.pages / "claims.md").read_text()
    assert '<span class="claim-mark" aria-hidden="true">⚠</span>' in page
    assert "**Contradiction: computed 'fails', the ledger says 'holds'.**" in page
    assert "1 claim: 1 contradiction" in page


def test_the_book_shows_what_was_asked_for_last_whatever_the_clock_says(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(tmp_path, LEDGER, first=FIRST)
    page = project.pages / "01_first.ipynb"
    for seed in (4, 5):
        assert build_book(project, parameters={"seed": seed}, rendered=False) == 0
        assert f"`seed = {seed}`" in page.read_text()
    four, five = (
        next(path for path in project.build.rglob("quick-*.ipynb") if f'"seed": {seed}' in path.read_text())
        for seed in (4, 5)
    )
    os.utime(four, (0, 0))  # the clock stepped
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
    assert capsys.readouterr().err == ""  # of what is not shown, nothing is said
    assert main(["build", "1", "-p", "seed", "4", "--no-render"]) == 0
    captured = capsys.readouterr()
    assert "1 executed, 0 unchanged" in captured.out
    assert captured.err.count(f"preflearn: {four} can't be read and counts as missing") == 1
    (project.build / "shown" / "01_first.ipynb").write_bytes(b"")
    assert shown_chapters(project).keys() == {"02_second"}
