"""The command line `preflearn`: reports, builds of the book, sweeps, records of full
runs, data sets, and the claims list."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from preflearn_book.runner.project import find_project

_KEPT = "finished files are kept, and no file is incomplete"


class _Terminated(SystemExit):
    """Raised by SIGTERM; the event loops of asyncio let a SystemExit pass."""


def _terminate(_number: int, _frame: Any) -> None:
    raise _Terminated


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the result is its exit status.

    0: success; 1: a cell, a claim, the rendering, or a file failed; 2: the command line
    has an error; 130: interrupted by Ctrl-C; 143: terminated by SIGTERM.
    """
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        return _status_of(arguments)
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _status_of(arguments: Sequence[str] | None) -> int:
    try:
        return _preflearn.main(arguments, prog_name="preflearn", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        text = f"interrupted; {_KEPT}"
        status = 130
    except _Terminated:
        text = f"terminated by SIGTERM; {_KEPT}"
        status = 143
    except click.ClickException as error:
        text = f"error: {error.format_message()}"
        if "unexpected extra argument" in text:  # as after: -p first Player 1
            text += "; put names that contain spaces in quotes: -p NAME 'TWO WORDS'"
        status = 2
    except ModuleNotFoundError as error:
        need = "in a clone of the repository, run: pip install '.[book,cluster]'"
        text = f"error: the package {error.name} is not installed; {need}"
        status = 2
    except OSError as error:  # such as a full disk, a lock, a missing data set
        text = f"error: {error}"
        status = 1
    except ValueError as error:
        text = f"error: {error}"
        status = 2
    print(f"preflearn: {text}", file=sys.stderr)
    return status


@click.group()
def _preflearn() -> None:
    """Write reports on your comparisons, and build the book Learning from Comparisons.

    Write a report on a file of your own. It needs no other part of the repository:

    \b
      preflearn report --example
      preflearn report games.csv -p first home -p second away \\
          -p time date -p outcome result

    Build the book, or run its chapters with other parameters, in a clone of the
    repository:

    \b
      preflearn build                          all chapters, small problems
      preflearn build 03 -p seed 7             one chapter, with another seed
      preflearn build --profile full --jobs 8  problem sizes of the papers
      preflearn sweep 03 -p seed 0:20          one chapter for 20 seeds
      preflearn record 03                      full run into data/recorded
      preflearn data list                      the public data sets
      preflearn claims                         the claims of the papers

    For the options of a command, use for example: preflearn report --help
    """


def _parameter_option(text: str) -> Any:
    """The option -p, with the help text of one command."""
    return click.option(
        "-p", "parameters", nargs=2, multiple=True, metavar="NAME VALUE", help=text
    )


_JOBS = click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Number of chapters or points that run in parallel. Default: the number of processors.",
)
_MAX_SECONDS = 10**7  # a third of a year


def _check_seconds(_context: Any, _option: Any, seconds: int) -> int:
    # click.IntRange would also show these bounds in the help.
    if not 1 <= seconds <= _MAX_SECONDS:
        raise click.BadParameter(f"{seconds} is not between 1 and {_MAX_SECONDS}.")
    return seconds


_CELL_TIME = click.option(
    "--cell-time",
    "cell_seconds",
    type=int,
    callback=_check_seconds,
    default=21600,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for each cell of a notebook.",
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
    "build", short_help="Execute the chapters that changed and render the book."
)
@click.argument("chapters", nargs=-1, metavar="[CHAPTER]...")
@click.option(
    "--profile",
    type=click.Choice(["quick", "full"]),
    help="quick (the default): small problems, minutes. full: the problem sizes of the papers, hours.",
)
@click.option(
    "--force", is_flag=True, help="Execute chapters that did not change, too."
)
@click.option("--no-render", is_flag=True, help="Do not render the pages.")
@click.option(
    "--skip-recorded",
    is_flag=True,
    help="With --profile full: run chapters whose recorded results are still valid in the quick profile.",
)
@click.option(
    "--without-solutions",
    is_flag=True,
    help="Leave solutions out of the pages and the notebooks, and copy both to _build/without_solutions.",
)
@_parameter_option("Value of a notebook parameter, such as: -p seed 7. Repeatable.")
@_execution_options
def _build(
    chapters: Any,
    profile: Any,
    no_render: bool,
    without_solutions: bool,
    parameters: Any,
    **options: Any,
) -> int:
    """Execute the chapters that changed and render the book into _build/html.

    Run this command in a clone of the repository. A CHAPTER is a number or a name, such
    as 03 or 03_lemma. The default is all chapters. A chapter is executed if its
    notebook, a module that it imports, a parameter, the data, or a package version
    changed. Chapters are executed in parallel.

    The build compares the results with the claims list and with the recorded results in
    data/recorded, and fails if they disagree. If you interrupt a build and start it
    again, finished chapters are not executed again.
    """
    from preflearn_book.runner.build import build_book

    given = _named(parameters)
    if profile:
        given["profile"] = profile
    return build_book(
        find_project(),
        chapters,
        given,
        rendered=not no_render,
        solutions=not without_solutions,
        **options,
    )


@_preflearn.command(
    "record",
    short_help="Run a chapter in full and write its tables to data/recorded.",
)
@click.argument("chapter")
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--dry", is_flag=True, help="Show the changes and write nothing.")
@_parameter_option("Value of a notebook parameter. Repeatable.")
@_execution_options
def _record(chapter: str, yes: bool, dry: bool, parameters: Any, **options: Any) -> int:
    """Run one chapter in both profiles and write its tables to data/recorded.

    Run this command in a clone of the repository. CHAPTER is a number or a name, such as
    03 or 03_lemma.

    The command first shows what differs from the recorded tables and asks before it
    writes. If the full run of a chapter reads the results of a sweep, the command
    computes the missing points of the sweep first.

    For chapter 17, you can record some learners only, for example with -p learners
    "Elo; Glicko". Then the command runs no sweep. It computes the rows of these learners
    and merges them into the recorded tables.
    """
    from preflearn_book.runner.build import record_chapter

    def agreed() -> bool:
        return not dry and (
            yes or (sys.stdin.isatty() and click.confirm("write these tables?"))
        )

    given = _named(parameters)
    return record_chapter(find_project(), chapter, agreed, given, **options)


@_preflearn.command(
    "sweep", short_help="Execute a chapter at every point of a parameter grid."
)
@click.argument("chapter")
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Address of a Dask scheduler, such as tcp://host:8786, to run on a cluster.",
)
@click.option(
    "--output",
    type=Path,
    metavar="DIR",
    help="Folder of the results. Default: _build/sweeps/CHAPTER.",
)
@_parameter_option(
    "Values of a notebook parameter: a list such as 1,2,5, or a range such as 0:20. Repeatable."
)
@_execution_options
def _sweep(
    chapter: str, parameters: Any, jobs: Any, scheduler: Any, **options: Any
) -> int:
    """Execute one chapter at every point of a parameter grid.

    Run this command in a clone of the repository. CHAPTER is a number or a name, such as
    03 or 03_lemma. Its parameters are in the first code cell of its notebook.

    \b
    For example, 20 seeds and 2 values of n_problems give 40 points:
      preflearn sweep 03 -p seed 0:20 -p n_problems 10,20

    The values are a list such as 1,2,5 or a range such as 0:20 or 0:20:5 (start, end,
    step; the end is not included). Points that were computed before are not computed
    again.

    The command writes a table with one row per point, results-....csv, into the output
    folder, next to the executed notebooks. Further files there contain the tables that
    the chapter records and the meaning of all columns.
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
    "report", short_help="Write a report on a file of matches, judgments, or races."
)
@click.argument(
    "data",
    required=False,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@click.option(
    "--example",
    is_flag=True,
    help="Write an example file, games.csv (a simulated league), and a report on it.",
)
@click.option(
    "--matches",
    "kind",
    flag_value="matches",
    help="The file contains matches with dates or times.",
)
@click.option(
    "--judgements",
    "--judgments",
    "kind",
    flag_value="judgements",
    help="The file contains judgments, such as votes, with or without judges.",
)
@click.option(
    "--races",
    "kind",
    flag_value="races",
    help="The file contains races: one row per participant of an event.",
)
@click.option(
    "--output",
    type=Path,
    metavar="FILE",
    help="File of the report. Default: NAME_report.html in the current folder.",
)
@_parameter_option("A parameter of the report; see the table above. Repeatable.")
def _report(
    data: Path | None,
    example: bool,
    kind: str | None,
    output: Path | None,
    parameters: Any,
) -> int:
    """Write a report on DATA, a file of matches, judgments, or races, as one HTML page.

    DATA is a CSV, JSON, JSON lines, Parquet, or .xlsx file with one row per comparison,
    or one row per participant of a race, optionally compressed by gzip. Use - to read
    standard input.

    \b
    Examples:
      preflearn report --example
      preflearn report games.csv -p first home -p second away \\
          -p time date -p outcome result
      preflearn report votes.csv --judgements -p first model_a \\
          -p second model_b -p outcome winner -p judge who
      preflearn report races.csv

    Without --matches, --judgements, and --races, the parameters choose the report: judge
    and features choose the report on judgments; time, neutral, pair, season, and points
    choose the report on matches; event, player, place, and retired choose the report on
    races. If you pass none of these parameters, a file that has columns with an event, a
    participant, and a place gets the report on races. A file that has a column with dates
    or times and no column "judge" gets the report on matches. Any other file gets the
    report on judgments.

    \b
    Parameters of all reports (-p NAME VALUE):
      n_next       number of forecasts, or of pairs to compare next; by default
                   20 matches, 8 pairs, or 3 races
      profile      quick or full (more computation)
      seed         random seed

    \b
    Parameters of the reports on matches and on judgments:
      first        column with the first side, such as the home team
      second       column with the second side
      outcome      column with the winner, tie, 1/0/-1, H/D/A, or 3-0; or two
                   columns, as in "home_goals - away_goals"; or "first won"
                   if the first side of every row won
      weight       column with the number of comparisons that a row represents
      counts       whether two columns of outcomes count wins, not points:
                   yes, no, or auto
      advantage    whether the first side has an advantage, such as playing at
                   home: yes, no, or auto (if the data show one)
      until        last date or number to learn from; later matches are forecast
      time_format  format of the dates if they are ambiguous, as in %d/%m/%Y

    \b
    Parameters of the report on matches:
      time         column with dates, seasons, years, or numbers
      neutral      column that says where no side has the advantage; by
                   default the column "neutral", if the file has one
      pair         two names, as in "Ann - Bob", whose match is also forecast
      margins      if two columns contain points: whether to also test a model of
                   point differences (yes or no)
      season       column with the season, or the first date of the current
                   season; by default the column "season", if the file has
                   one, else the matches since the last break of more than
                   60 days; the rest of the season is simulated
      points       points for a win, a tie, and a loss, as in "3 1 0"; by
                   default 3 1 0, or the number of wins if there are no ties

    \b
    Parameters of the report on judgments:
      judge        column with the name of the judge; by default the column
                   "judge", if the file has one
      features     features of both sides: length stands for the columns
                   first_length and second_length
      time         column with dates or numbers, needed only with until

    \b
    Parameters of the report on races:
      event        column with the event, such as the race
      player       column with the participant
      place        column with the place, where 1 is best; the columns are
                   found by titles and values if you do not name them
      retired      participants whose place is a text, such as DNF: last
                   (default) ranks them after all others of their event,
                   leave_out leaves them out
    """
    from preflearn_book.runner.report import (
        EXAMPLE_COLUMNS,
        write_example,
        write_report,
    )

    named = _named(parameters)
    if example:
        if data is not None or kind in ("judgements", "races"):
            raise ValueError(
                "--example writes its own file of matches; leave out DATA, --judgements, and --races"
            )
        data = write_example(Path())
        named = EXAMPLE_COLUMNS | named
    elif data is None:
        raise ValueError(
            "no file is given; run preflearn report FILE, or preflearn report --example"
        )
    return write_report(data, named, kind or "", output)


@_preflearn.command(
    "data", short_help="List, download, or verify the public data sets."
)
@click.argument("action", type=click.Choice(["list", "fetch", "verify"]))
@click.argument("names", nargs=-1, metavar="[DATASET]...")
def _data(action: str, names: tuple[str, ...]) -> int:
    """List, download, or verify the public data sets of the chapters.

    \b
    list    show all data sets, their licenses, and which are on this computer
    fetch   download the named data sets into the cache
    verify  compare the files on this computer with their registered SHA-256
            hashes; a missing file is not an error
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


@_preflearn.command("claims", short_help="Print the claims and the computed verdicts.")
def _claims() -> int:
    """Print the claims of the papers with the verdicts that were computed last."""
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
