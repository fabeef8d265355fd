"""The command `preflearn`: build the book, record full runs, sweep, manage the data,
list the claims."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from preflearn_book.runner.project import find_project


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the result is its exit status.

    0: success; 1: a cell, a claim, the rendering or a file failed; 2: the command was
    wrong; 130: interrupted.
    """
    # A termination is handled as an interrupt.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _preflearn.main(arguments, prog_name="preflearn", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        text = "interrupted; what was finished is kept"
        status = 130
    except click.ClickException as error:
        text = f"error: {error.format_message()}"
        status = 2
    except ModuleNotFoundError as error:
        need = "install what the book and a cluster need, in a checkout: pip install '.[book,cluster]'"
        text = f"error: {error.name} is missing; {need}"
        status = 2
    except OSError as error:  # such as a full disk, a lock, a data set
        text = f"error: {error}"
        status = 1
    except ValueError as error:
        text = f"error: {error}"
        status = 2
    print(f"preflearn: {text}", file=sys.stderr)
    return status


@click.group()
def _preflearn() -> None:
    """Learning from Comparisons: build the book and rerun its experiments.

    \b
    preflearn build                          the whole book, quick profile
    preflearn build 03 -p seed 7             one chapter, with another seed
    preflearn build --profile full --jobs 8  the papers' sizes
    preflearn record 03                      one chapter in full, into data/recorded
    preflearn sweep 03 -p seed 0:20 -p n_exact 20,40
    preflearn report --example
    preflearn report games.csv -p first home -p second away -p time date -p outcome result
    preflearn data verify
    """


_PARAMETERS = click.option(
    "-p", "parameters", nargs=2, multiple=True, metavar="NAME VALUE", help="May recur."
)
_JOBS = click.option(
    "--jobs", type=click.IntRange(1), metavar="N", help="Default: one per processor."
)
_CELL_TIME = click.option(
    "--cell-time",
    "cell_seconds",
    type=click.IntRange(1, 10**7),
    default=21600,
    show_default=True,
    metavar="SECONDS",
)


def _execution_options(command: Any) -> Any:
    """Add the options that `build`, `record` and `sweep` share."""
    return _JOBS(_CELL_TIME(command))


def _named(parameters: Iterable[tuple[str, str]]) -> dict[str, str]:
    counts = Counter(name for name, _ in parameters)
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise ValueError(f"the parameter {repeated[0]!r} is given twice")
    return dict(parameters)


@_preflearn.command(
    "build", short_help="Execute chapters that changed, and render the book."
)
@click.argument("chapters", nargs=-1, metavar="[CHAPTER]...")
@click.option(
    "--profile", type=click.Choice(["quick", "full"]), help="full: the papers' sizes."
)
@click.option("--force", is_flag=True, help="Execute although nothing changed.")
@click.option("--no-render", is_flag=True, help="Stop before the pages are rendered.")
@click.option(
    "--skip-recorded",
    is_flag=True,
    help="In full, run only chapters whose record is not valid.",
)
@_PARAMETERS
@_execution_options
def _build(
    chapters: Any, profile: Any, no_render: bool, parameters: Any, **options: Any
) -> int:
    """Execute chapters whose notebook, modules, parameters, data or versions changed,
    side by side; collect their pages and claims; compare with data/recorded; render the
    book into _build/html.

    A CHAPTER is such as 03 or 03_lemma; the default is all. The profile quick takes
    minutes, full has the papers' sizes, and computes a sweep that a chapter reads. An
    interrupted build goes on where it was. -p gives a chapter's parameter another
    value. A cell may take --cell-time seconds.
    """
    from preflearn_book.runner.build import build_book

    given = _named(parameters)
    if profile:
        given["profile"] = profile
    return build_book(
        find_project(), chapters, given, rendered=not no_render, **options
    )


@_preflearn.command(
    "record",
    short_help="Run one chapter in full, and write its tables to data/recorded.",
)
@click.argument("chapter")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--dry", is_flag=True, help="Only show what moves.")
@_PARAMETERS
@_execution_options
def _record(chapter: str, yes: bool, dry: bool, parameters: Any, **options: Any) -> int:
    """Run one chapter in both profiles, show what moves against data/recorded, and
    write the tables there.

    If the full run reads a sweep, its points are computed first. With a parameter of
    the sweep, such as -p learners "Elo; Glicko" of chapter 17, no point is computed;
    the chapter computes the rows itself and merges them into its record.
    """
    from preflearn_book.runner.build import record_chapter

    def agreed() -> bool:
        return not dry and (
            yes or (sys.stdin.isatty() and click.confirm("write these tables?"))
        )

    given = _named(parameters)
    return record_chapter(find_project(), chapter, agreed, given, **options)


@_preflearn.command(
    "sweep", short_help="Execute one chapter at many points of its parameters."
)
@click.argument("chapter")
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on a Dask cluster, such as tcp://host:8786.",
)
@click.option(
    "--output", type=Path, metavar="DIR", help="Default: _build/sweeps/CHAPTER."
)
@_PARAMETERS
@_execution_options
def _sweep(
    chapter: str, parameters: Any, jobs: Any, scheduler: Any, **options: Any
) -> int:
    """Execute one chapter at every point of a grid: -p takes a range such as 0:20 or
    0:20:5, or a list such as 1,2,5. A point that is there already is not run again.

    A table named by the points, results-....csv, has one row per point. Tables that
    points record with several rows are written to the same folder, and a table that
    explains the columns.
    """
    from preflearn_book.runner.sweep import run_sweep, summary_of_points

    grid = _named(parameters)
    if not grid:
        raise ValueError("a sweep needs at least one parameter, such as: -p seed 0:20")
    if jobs is not None and scheduler is not None:
        raise ValueError(
            "--jobs is for this computer and --scheduler for a cluster; expected one of them"
        )
    table, outcomes = run_sweep(
        find_project(), chapter, grid, jobs=jobs, scheduler=scheduler, **options
    )
    print(summary_of_points(table, outcomes))
    return int(any(outcome.status == "failed" for outcome in outcomes))


@_preflearn.command(
    "report", short_help="Run a template on your own matches or judgements."
)
@click.argument(
    "data",
    required=False,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@click.option(
    "--example",
    is_flag=True,
    help="Write a simulated league, games.csv, and report on it.",
)
@click.option(
    "--matches",
    "kind",
    flag_value="matches",
    help="The file holds matches with times.",
)
@click.option(
    "--judgements",
    "kind",
    flag_value="judgements",
    help="The file holds judgements, with or without judges.",
)
@click.option(
    "--output",
    type=Path,
    metavar="FILE",
    help="Default: NAME_report.html in this folder.",
)
@_PARAMETERS
def _report(
    data: Path | None,
    example: bool,
    kind: str | None,
    output: Path | None,
    parameters: Any,
) -> int:
    """Run a template on DATA, a table of matches with times, or of judgements, and
    write one HTML page.

    DATA is CSV, JSON, JSON lines, Parquet, or .xlsx, also compressed by gzip; "-" is the
    standard input. -p names columns, such as: -p first home -p second away -p time date
    -p outcome result. The templates, notebooks/use_matches.ipynb and
    use_judgements.ipynb, say what there is. Without --matches or --judgements, a file
    with a column "judge" holds judgements, unless -p time names a column.
    """
    from preflearn_book.runner.report import (
        EXAMPLE_COLUMNS,
        write_example,
        write_report,
    )

    named = _named(parameters)
    if example:
        if data is not None or kind == "judgements":
            raise ValueError(
                "--example brings its own file of matches; leave out DATA and --judgements"
            )
        data = write_example(Path())
        named = EXAMPLE_COLUMNS | named
    elif data is None:
        raise ValueError(
            "the file is missing: preflearn report FILE.csv, or preflearn report --example"
        )
    return write_report(data, named, kind or "", output)


@_preflearn.command("data", short_help="The public data sets: list, fetch, verify.")
@click.argument("action", type=click.Choice(["list", "fetch", "verify"]))
@click.argument("names", nargs=-1, metavar="[DATASET]...")
def _data(action: str, names: tuple[str, ...]) -> int:
    """List all data sets, their licenses, and whether they are here; download some into
    the cache; or compare the files that are here with their registered hashes. A
    missing data set is not an error.
    """
    import pandas as pd

    from preflearn import datasets

    if action == "fetch":
        missed = []
        for name in names:
            try:
                print(*datasets.fetch(name, progress=sys.stderr.isatty()), sep="\n")
            except (OSError, ValueError) as error:  # try the next one
                missed.append(f"preflearn: error: {error}\n")
        sys.stderr.writelines(missed)
        return min(len(missed), 1)
    rows = datasets.listing()
    if action == "verify":
        rows = pd.concat([datasets.verify(name) for name in names or [None]])
    print(rows.to_string(index=False))
    if action == "list":
        return 0
    return int(not set(rows["status"]) <= {"ok", "missing", "unverifiable"})


@_preflearn.command("claims")
def _claims() -> int:
    """The claims list, with the last computed verdicts."""
    from preflearn_book.runner.build import latest_chapters
    from preflearn_book.runner.claims import load_claims
    from preflearn_book.runner.pages import match_checks
    from preflearn_book.runner.records import filled

    project = find_project()
    checked, problems = match_checks(
        load_claims(project.book / "claims.yml"), latest_chapters(project)
    )
    print(filled("claims.txt", checked=checked, problems=problems))
    return int(any(entry.kind == "contradiction" for entry in checked))
