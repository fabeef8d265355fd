"""Build the book: execute its chapters, collect their pages and checks, render."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bookrunner.ledger import load_ledger
from bookrunner.links import broken_links
from bookrunner.outputs import Executed
from bookrunner.pages import Checked, claims_page, match_checks, status_page
from bookrunner.progress import duration
from bookrunner.project import Project
from bookrunner.records import write_atomically, write_recorded
from bookrunner.render import render
from bookrunner.runner import (
    Outcome,
    chapter_task,
    clean_temporaries,
    newest_executed,
    profile_of,
    prune,
    run_tasks,
)

__all__ = ["broken_links", "build_book", "collect", "failure_report", "ledger_state"]


def build_book(
    project: Project,
    chapters: Sequence[str] = (),
    parameters: Mapping[str, object] | None = None,
    *,
    jobs: int | None = None,
    force: bool = False,
    rendered: bool = True,
) -> int:
    """Execute chapters that changed, collect what all of them hold, and render the book.

    Parameters
    ----------
    project : Project
    chapters : sequence of str
        The chapters to execute, all by default; others keep what they were last executed to.
    parameters : mapping of str to object, optional
        Given to each of these chapters.
    jobs : int, optional
        How many chapters run at once; one a processor by default.
    force : bool
        Execute them although nothing changed.
    rendered : bool
        Whether to render the pages.

    Returns
    -------
    int
        0, or 1 if a cell failed, a computed verdict contradicts the ledger, a claim was not checked,
        or rendering gave warnings or broken links.

    Raises
    ------
    ValueError
        On an unknown chapter, a parameter that a chapter does not have, or an invalid ledger.
    """
    clean_temporaries([project.build, project.pages, project.root / "data" / "recorded"])
    selected = project.select(chapters)
    tasks = [chapter_task(project, chapter, parameters or {}) for chapter in selected]
    ledger_state(project)  # an invalid ledger is found before hours of work, not after them
    outcomes = run_tasks(project, tasks, jobs=jobs, force=force)
    failed = [outcome for outcome in outcomes if outcome.status == "failed"]
    for outcome in outcomes:
        if outcome.status in ("done", "unchanged"):
            _keep(project, outcome)
    n_done = sum(outcome.status == "done" for outcome in outcomes)
    n_unchanged = sum(outcome.status == "unchanged" for outcome in outcomes)
    print(f"chapters: {n_done} executed, {n_unchanged} unchanged, {len(failed)} failed")
    if failed:
        for outcome in failed:
            print(failure_report(outcome))
        return 1
    return _finish(project, rendered)


def _finish(project: Project, rendered: bool) -> int:
    problems = [f"claim {problem}" for problem in collect(project)]
    for name, notebook in executed_chapters(project).items():
        if notebook.replaced:
            print(f"{name}: other data in place of {', '.join(notebook.replaced)}")
    if rendered:
        problems += render(project, print)
        index = project.build / "html" / "index.html"
        if index.exists():
            print(f"the book: {index}")
    if problems:
        print(f"\nthe build failed; {len(problems)} problem{'s' * (len(problems) > 1)}:")
        print("\n".join(f"  - {problem}" for problem in problems))
    return 1 if problems else 0


def failure_report(outcome: Outcome) -> str:
    """What went wrong in a chapter: cell, source, traceback, and where the notebook is kept."""
    title = f"{outcome.task.label} failed after {duration(outcome.seconds)}: {outcome.summary}"
    kept = f"executed so far: {outcome.task.failed}" if outcome.task.failed.exists() else "it did not start"
    return "\n".join(["", "=" * 78, title, kept, "-" * 78, outcome.report])


def _keep(project: Project, outcome: Outcome) -> None:
    """Write the records of a full run, and forget old executions of the chapter."""
    task = outcome.task
    if task.parameters == {"profile": "full"}:
        _write_records(project, Executed(task.target))
    prune(task.target.parent, profile_of(task.chapter, task.parameters))


def _write_records(project: Project, executed: Executed) -> None:
    run, chapter = executed.run, project.chapter(executed.run["chapter"])
    versions = executed.provenance["versions"]
    provenance = {
        "chapter": chapter.name,
        "date": run["date"],
        "preflearn": versions.get("preflearn", "unknown"),
        "python": versions.get("python", "unknown"),
        "parameters": {k: v for k, v in chapter.parameters.items() if v is not ...} | run["parameters"],
        "wall_time_s": run["seconds"],
    }
    for payload in executed.records:
        write_recorded(project.root / "data" / "recorded", chapter.name, payload, provenance)


def executed_chapters(project: Project) -> dict[str, Executed]:
    """The last execution of each chapter that has one, by name."""
    newest = {c.name: newest_executed(project.build / "executed" / c.name) for c in project.chapters}
    return {name: Executed(path) for name, path in newest.items() if path is not None}


def ledger_state(project: Project) -> tuple[list[Checked], list[str]]:
    """The ledger with what the executed chapters computed, and the problems; see `match_checks`."""
    path = project.book / "claims.yml"
    ledger = load_ledger(path) if path.exists() else {}
    return match_checks(ledger, project.chapters, executed_chapters(project))


def collect(project: Project) -> list[str]:
    """Write the pages of all executed chapters, of the claims and of the status into the book.

    A page that has not changed is not touched; one whose notebook is gone is deleted.

    Returns
    -------
    list of str
        Problems with the ledger.
    """
    executed = executed_chapters(project)
    checked, problems = ledger_state(project)
    pages = {f"{name}.ipynb": notebook.page() for name, notebook in executed.items()}
    pages |= {"claims.md": claims_page(checked), "status.md": status_page(executed)}
    for name, text in pages.items():
        _write_if_changed(project.pages / name, text)
    for path in project.pages.glob("*.ipynb"):
        if path.name not in pages:
            path.unlink()
    return problems


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text("utf-8") != text:
        write_atomically(path, text)
