"""Build the book (execute its chapters, collect their pages and checks, render) and
record full runs."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from preflearn_book.runner.dependencies import State
from preflearn_book.runner.files import (
    check_writable,
    locked,
    read_yaml,
    write_if_changed,
)
from preflearn_book.runner.outputs import (
    Executed,
    parts,
    read_executed,
    without_solutions,
)
from preflearn_book.runner.pages import archive, collected, figures, match_checks
from preflearn_book.runner.parameters import require
from preflearn_book.runner.project import Chapter, Project
from preflearn_book.runner.record_check import (
    contradicted_records,
    new_records,
    recomputed_rows,
    records_of,
    summary,
    to_run_again,
    write_records,
)
from preflearn_book.runner.records import filled
from preflearn_book.runner.render import published, render, repository
from preflearn_book.runner.sweep import run_needed_sweeps
from preflearn_book.runner.tasks import Outcome, Task, duration, run_tasks, task_of


def build_book(
    project: Project,
    chapters: Sequence[str] = (),
    parameters: Mapping[str, Any] | None = None,
    *,
    rendered: bool = True,
    skip_recorded: bool = False,
    solutions: bool = True,
    **options: Any,
) -> int:
    """Execute chapters that changed, collect the outputs of all, and render the book.

    If a cell fails, the other chapters continue, and the book shows the last successful
    run of the failed chapter. If there is none, the chapter's page shows the error.

    Parameters
    ----------
    project : Project
    chapters : sequence of str
        Chapters to execute, by default all. Other chapters keep their last outputs.
    parameters : mapping of str to object, optional
        Parameters of each of these chapters. A text is converted to the type of the
        parameter.
    rendered : bool
        Whether to render the pages.
    skip_recorded : bool
        Whether chapters whose recorded tables are still valid run in the quick profile
        instead of the full profile.
    solutions : bool
        Whether the pages and the archive of notebooks contain the solutions of exercises.
        If not, both are also copied to ``_build/without_solutions``, which no other build
        changes.
    **options
        Options of `run_tasks`.

    Returns
    -------
    int
        0, or 1 if a cell failed, a computed verdict contradicts the claims list, a claim was
        not checked, a quick run contradicts a record, or rendering gave warnings.

    Raises
    ------
    ValueError
        For an unknown chapter, a parameter that a chapter does not have, or an invalid
        claims list or table of contents. All are checked before anything is executed.
    OSError
        If a file cannot be written, or another build is running.
    """
    selected = project.select(chapters)
    tasks = [
        task_of(chapter, parameters or {}, project.executed / chapter.name)
        for chapter in selected
    ]
    state = State(project)
    if rendered:
        read_yaml(project.book / "_toc.yml")
    with locked(project.build / "lock", "a build of this book"):
        check_writable([project.pages])
        if skip_recorded:
            tasks = _quick_where_recorded(project, state, tasks, **options)
        run_needed_sweeps(project, tasks, **options)
        outcomes = run_tasks(state, tasks, **options)
        for outcome in outcomes:
            # The book shows the outputs of the last request.
            if outcome.executed:
                copy = project.latest / f"{outcome.task.chapter.name}.ipynb"
                write_if_changed(copy, outcome.task.target.read_text("utf-8"))
        failures = _failures(outcomes)
        problems = [f"chapter {name}: {summary}" for name, summary in failures.items()]
        problems += collect(project, state, failures, solutions)
        if rendered:
            problems += render(project)
            print(f"the book is in {project.build / 'html' / 'index.html'}")
        if not solutions:
            folder = _copy_without_solutions(project, rendered)
            print(f"a copy that later builds do not change is in {folder}")
    if problems:
        print(f"\nthe build failed; problems: {len(problems)}")
        print("\n".join(f"  - {problem}" for problem in problems))
        return 1
    return 0


def _copy_without_solutions(project: Project, rendered: bool) -> Path:
    """Copy the book, which the last build left without solutions, and its notebooks.

    The next build, such as that of ``make slides``, restores the solutions in
    ``_build/html``.
    """
    folder = project.build / "without_solutions"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy2(project.pages / "notebooks.zip", folder)
    html = project.build / "html"
    if rendered and html.is_dir():
        shutil.copytree(html, folder / "html")
    return folder


def _failures(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Print the outcome of each chapter; return why some failed, by name."""
    print(filled("outcomes.txt", outcomes=outcomes, duration=duration))
    failed = (outcome for outcome in outcomes if outcome.status == "failed")
    return {outcome.task.chapter.name: outcome.result.summary for outcome in failed}


def _quick_where_recorded(
    project: Project, state: State, tasks: Sequence[Task], **options: Any
) -> list[Task]:
    """Replace full runs by quick runs for chapters whose records are all still valid.

    A record is valid if a quick run reproduces it with the same data sets.
    """
    records = {
        task.chapter.name: records_of(project.recorded, task.chapter.name)
        for task in tasks
    }
    full = [
        task
        for task in tasks
        if task.parameters == {"profile": "full"} and records[task.chapter.name]
    ]
    quick = [task_of(task.chapter, {}, task.target.parent) for task in full]
    valid = dict[str, Task]()
    for outcome in run_tasks(state, quick, **options):
        chapter = outcome.task.chapter
        executed = outcome.executed
        kept = records[chapter.name]
        if (
            executed is None
            or to_run_again(kept, chapter, state)
            or contradicted_records(kept, executed)
        ):
            continue
        if all(
            executed.replaced == record.header.get("replaced", [])
            for record in kept.values()
        ):
            valid[chapter.name] = outcome.task
    print(f"chapters with valid records, not run in full: {', '.join(valid) or 'none'}")
    return [valid.get(task.chapter.name, task) for task in tasks]


def latest_chapters(project: Project) -> dict[str, Executed]:
    """The last executed notebook of each chapter, which the book shows, by name."""
    found = {
        chapter.name: read_executed(project.latest / f"{chapter.name}.ipynb")
        for chapter in project.chapters
    }
    return {name: executed for name, executed in found.items() if executed is not None}


def collect(
    project: Project,
    state: State,
    failures: Mapping[str, str] | None = None,
    solutions: bool = True,
) -> list[str]:
    """Write the pages of all executed chapters, the claims page, and the status page into
    the book.

    The same folder contains the files that the front page and the essay include or
    offer: counts of verdicts, figures, and the archive of the notebooks.

    Unchanged pages are not written again, and pages of removed notebooks are deleted. If
    a chapter was not executed yet, its page says so, with the reason if the chapter is
    one of the `failures` (reasons by chapter). The pages and the archive leave out the
    solutions of exercises unless `solutions` is true.

    Returns
    -------
    list of str
        Problems with the claims list, and records that quick runs contradict.
    """
    latest = latest_chapters(project)
    checked, problems = match_checks(state.claims, latest)
    broken = dict[str, list[str]]()
    again = dict[str, list[str]]()
    recorded = dict[str, Mapping[str, Any]]()
    recomputed = dict[str, tuple[int, int]]()
    for name, executed in latest.items():
        records = records_of(project.recorded, name)
        recorded |= {record: kept.header for record, kept in records.items()}
        if not executed.run["parameters"]:  # records belong to the default parameters
            broken |= contradicted_records(records, executed)
            again |= to_run_again(records, project.chapter(name), state)
            recomputed |= recomputed_rows(records, executed)
    print(
        filled("warnings.txt", latest=latest, again=again, missing=_missing(latest)),
        end="",
    )
    url = repository(project)
    front = project.book / "index.md"
    waiting = [chapter for chapter in project.chapters if chapter.name not in latest]
    pages: dict[str, str | bytes] = {
        f"{name}.md": filled(
            "waiting.md", name=name, chapter=chapter, failures=failures or {}
        )
        + "\n"
        for chapter in waiting
        for name in parts(chapter.name, chapter.notebook["cells"])
    }
    for notebook in latest.values():
        if not solutions:
            notebook = Executed(without_solutions(notebook.notebook))
        pages |= {
            f"{name}.ipynb": text
            for name, text in notebook.pages(url, broken, recomputed).items()
        }
    commit = _git(
        project, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"
    )
    pages |= collected(checked, latest, broken, again, recorded, commit, published(url))
    pages |= figures(front.read_text("utf-8") if front.is_file() else "", latest)
    pages["notebooks.zip"] = archive(project.chapters, url, solutions)
    for name, content in pages.items():
        write_if_changed(project.pages / name, content)
    for path in project.pages.iterdir():
        if path.name not in pages and path.is_file():
            path.unlink()
    records = [
        f"record {name}: {'; '.join(found[:3])} (differences in total: {len(found)})"
        for name, found in broken.items()
    ]
    return [f"claim {problem}" for problem in problems] + records


def _missing(latest: Mapping[str, Executed]) -> list[tuple[str, list[str], str]]:
    """List data sets that were not available: the name, the chapters that need it, and
    how to get it."""
    from preflearn.datasets.registry import (
        how_to_get,  # late: with pandas and all loaders
    )

    chapters: dict[str, list[str]] = {}
    for chapter, executed in latest.items():
        for dataset in executed.replaced:
            chapters.setdefault(dataset, []).append(chapter)
    return [(name, chapters[name], how_to_get(name)) for name in sorted(chapters)]


def record_chapter(
    project: Project,
    name: str,
    agreed: Callable[[], bool],
    parameters: Mapping[str, Any] | None = None,
    **options: Any,
) -> int:
    """Run a chapter in both profiles, show what changes in data/recorded, and write it.

    If the full run reads a sweep, the points of the sweep are executed first.

    Parameters
    ----------
    project : Project
    name : str
    agreed : callable
        Function that is called before anything is written. If it returns False, the old
        records are kept.
    parameters : mapping, optional
        Parameters of the full run, among the parameters of the chapter's sweep. With
        these parameters a chapter can compute some of its rows and merge them into its
        record.
    **options
        Options of `run_tasks`.

    Returns
    -------
    int
        0, or 1 if a cell failed, data are missing, rows of the quick run are not rows of
        the full run, or the commit that was run is no longer an ancestor of HEAD.
    """
    chapter = project.chapter(name)
    folder = project.executed / chapter.name
    others = sorted((parameters or {}).keys() - chapter.sweep.keys())
    expected = "none, since this chapter has no sweep"
    if chapter.sweep:
        expected = f"parameters of the chapter's sweep: {[*chapter.sweep]}"
    require(not others, others, "the list of parameters", expected)
    in_full = {"profile": "full"} | dict(parameters or {})
    tasks = [
        task_of(chapter, {}, folder),
        task_of(chapter, in_full, folder, f"{chapter.name}, full"),
    ]
    with locked(project.build / "lock", "a build of this book"):
        check_writable([project.recorded])
        commit = _git(project, "rev-parse", "HEAD")
        state = State(project)
        run_needed_sweeps(project, tasks, **options)
        outcomes = run_tasks(state, tasks, **options)
        quick, full = (outcome.executed for outcome in outcomes)
        if _failures(outcomes) or quick is None or full is None:
            return 1
        known = records_of(project.recorded, chapter.name)
        header = _header(chapter, full, commit)
        print(summary(known, full), end="")
        made = new_records(full, quick, header, known if parameters else {})
        replaced = {*quick.replaced, *full.replaced}
        missing = replaced.difference(
            *(kept.header.get("replaced", []) for kept in known.values())
        )
        wrong = [f"the data set {name} is not available" for name in sorted(missing)]
        for name, found in contradicted_records(made, quick).items():
            wrong += [f"{name}, quick run: {difference}" for difference in found]
        if (
            commit
            and _git(project, "merge-base", "--is-ancestor", commit, "HEAD") is None
        ):
            wrong.append(f"commit {commit} of this run is not an ancestor of HEAD")
        if wrong:
            print("nothing was written; problems:", *wrong, sep="\n  - ")
        elif not agreed():
            print("nothing was written")
        else:
            write_records(project.recorded, chapter.name, made)
            print(f"the records were written to {project.recorded}")
    return int(bool(wrong))


def _header(chapter: Chapter, full: Executed, commit: str | None) -> dict[str, Any]:
    about = full.provenance
    return {
        "chapter": chapter.name,
        "date": full.run["date"],
        "commit": commit,
        "versions": about["versions"],
        "parameters": about["parameters"],
        "wall_time_s": full.run["seconds"],
        "data": {
            name[5:]: sha256[:16]
            for name, sha256 in about["read"].items()
            if name.startswith("data ")
        },
        "replaced": full.replaced,
        "cells": chapter.code,
    }


def _git(project: Project, *words: str) -> str | None:
    """Return the output of a git command in the project; None if the command fails."""
    command = shlex.join(["git", "-C", str(project.root), *words])
    status, output = subprocess.getstatusoutput(command)
    return None if status else output
