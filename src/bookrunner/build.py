"""Build the book: execute its chapters, collect their pages and checks, render."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bookrunner.execution import GENEROUS, Limits
from bookrunner.files import check_writable, clean_temporaries, digest, locked, read_json, write_atomically
from bookrunner.keys import State, code_of_numbers, outdated_records
from bookrunner.ledger import Claim, read_ledger
from bookrunner.outputs import Executed, read_executed
from bookrunner.pages import claims_page, figures, match_checks, status_page, tally
from bookrunner.project import Chapter, Project
from bookrunner.records import write_recorded
from bookrunner.render import read_contents, render, repository
from bookrunner.tasks import Outcome, Task, duration, run_tasks

Ledger = Mapping[str, Claim]  # by id
Shown = Mapping[str, Executed]  # by chapter


def build_book(
    project: Project,
    chapters: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
    *,
    jobs: int | None = None,
    force: bool = False,
    rendered: bool = True,
    limits: Limits = GENEROUS,
) -> int:
    """Execute chapters that changed, collect what all of them hold, and render the book.

    Parameters
    ----------
    project : Project
    chapters : sequence of str
        The chapters to execute, all by default; others keep what they were last executed to.
    parameters : mapping of str to object, optional
        Given to each of these chapters; a text becomes a value of the parameter's kind.
    jobs : int, optional
        How many chapters run at once; one a processor by default.
    force : bool
        Execute them although nothing changed.
    rendered : bool
        Whether to render the pages.
    limits : Limits
        What a cell may take.

    Returns
    -------
    int
        0, or 1 if a cell failed, a computed verdict contradicts the ledger, a claim was not checked,
        or rendering gave warnings or broken links.

    Raises
    ------
    ValueError
        On an unknown chapter, a parameter that a chapter does not have, an invalid ledger or table of
        contents: all before anything is executed.
    OSError
        If something can't be written, or another build is under way.
    """
    selected = project.select(chapters)
    tasks = [_chapter_task(project, chapter, parameters or {}) for chapter in selected]
    ledger = read_ledger(project.book)
    if rendered:
        read_contents(project)
        repository(project)
    state = State(project, ledger)
    with locked(project.build / "lock", "a build of this book"):
        recorded = project.root / "data" / "recorded"
        check_writable([project.build, project.pages, recorded])
        clean_temporaries([project.build, project.pages, recorded])
        outcomes = run_tasks(state, tasks, jobs=jobs, force=force, limits=limits)
        for outcome in outcomes:
            _keep(project, outcome)
        shown = shown_chapters(project, outcomes)
        _say_outcomes(outcomes)
        if any(outcome.status == "failed" for outcome in outcomes):
            return 1
        outdated = _say_changes(project, outcomes)
        return _finish(project, ledger, shown, rendered, outdated)


def _chapter_task(project: Project, chapter: Chapter, parameters: Mapping[str, Any]) -> Task:
    """The task that a build runs for a chapter: one file for each set of parameters."""
    checked = chapter.checked_parameters(parameters)
    chapter.check_datasets()
    others = {name: value for name, value in checked.items() if name != "profile"}
    key = chapter.profile(checked) + (f"-{digest(others)[:12]}" if others else "")
    target = project.build / "executed" / chapter.name / f"{key}.ipynb"
    return Task(chapter.name, chapter, checked, target, project.build / "failed" / f"{chapter.name}.ipynb")


def _say_outcomes(outcomes: Sequence[Outcome]) -> None:
    counts = [sum(o.status == status for o in outcomes) for status in ("done", "unchanged", "failed")]
    print("chapters: {} executed, {} unchanged, {} failed".format(*counts))
    for outcome in outcomes:
        if outcome.status == "failed":
            print(failure_report(outcome))


def _say_changes(project: Project, outcomes: Sequence[Outcome]) -> list[str]:
    """The inputs of this build once more: what was edited meanwhile, and what was recorded by older code.

    Returns the names of the latter.
    """
    now = State(Project(project.root), read_ledger(project.book))
    for outcome in outcomes:
        if outcome.executed and (changed := now.changes(outcome.executed)):
            print(f"{outcome.task.label}: {changed[0]} changed while it ran; the next build runs it again")
    if outdated := outdated_records(project, now):
        print(f"data/recorded: older than the code that makes it: {', '.join(outdated)}")
    return outdated


def _finish(project: Project, ledger: Ledger, shown: Shown, rendered: bool, outdated: list[str]) -> int:
    for name, notebook in shown.items():
        if notebook.replaced:
            print(f"{name}: other data in place of {', '.join(notebook.replaced)}")
    problems = [f"claim {problem}" for problem in collect(project, ledger, shown, outdated)]
    if rendered:
        problems += render(project)
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
    """Write the records of a full run to which no other parameter was given."""
    executed = outcome.executed
    if executed is None or executed.run["parameters"] != {"profile": "full"}:
        return
    run, chapter, versions = executed.run, outcome.task.chapter, executed.provenance["versions"]
    provenance = {
        "chapter": chapter.name,
        "date": run["date"],
        "preflearn": versions["preflearn"],
        "python": versions["python"],
        "parameters": executed.provenance["parameters"],
        "wall_time_s": run["seconds"],
        "code": {k: v[:12] for k, v in code_of_numbers(run["inputs"]).items()},
    }
    for payload in executed.records:
        write_recorded(project.root / "data" / "recorded", chapter.name, payload, provenance)


def shown_chapters(project: Project, outcomes: Sequence[Outcome] = ()) -> dict[str, Executed]:
    """What the book shows of each chapter that was executed, by name: what the last build asked for.

    A file notes which that was; a chapter that it does not name is shown with its default parameters.
    """
    note = project.build / "shown.json"
    names = read_json(note)
    present = {outcome.task.chapter.name: outcome for outcome in outcomes if outcome.executed}
    shown = {}
    for name in (chapter.name for chapter in project.chapters):
        if name in present:
            names[name], executed = present[name].task.target.name, present[name].executed
        else:
            executed = read_executed(project.build / "executed" / name / str(names.get(name, "quick.ipynb")))
        if executed is not None:
            shown[name] = executed
    if outcomes:
        write_atomically(note, json.dumps(names, indent=1))
    return shown


def collect(project: Project, ledger: Ledger, shown: Shown, outdated: Sequence[str] = ()) -> list[str]:
    """Write the pages of all executed chapters, of the claims and of the status into the book.

    Beside them lies what the front page includes: the tally of verdicts, and the figures that it names.

    A page that has not changed is not touched; one whose notebook is gone is deleted.

    Returns
    -------
    list of str
        Problems with the ledger.
    """
    checked, problems = match_checks(ledger, project.chapters, shown)
    url, front = repository(project), project.book / "index.md"
    pages = {f"{name}.ipynb": notebook.page(url) for name, notebook in shown.items()}
    pages |= {"claims.md": claims_page(checked), "tally.md": tally(checked)}
    pages["status.md"] = status_page(shown, outdated)
    pages |= figures(front.read_text("utf-8") if front.is_file() else "", shown)
    for name, text in pages.items():
        path = project.pages / name
        if not path.exists() or path.read_bytes() != text.encode():
            write_atomically(path, text)
    for path in [*project.pages.glob("*.ipynb"), *project.pages.glob("*.svg")]:
        if path.name not in pages:
            path.unlink()
    return problems
