"""The command `preflearn`: build the book, sweep over parameters, see to the data, read the ledger."""

from __future__ import annotations

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

__all__ = ["main"]

_EXAMPLES = """\
examples:
  preflearn build                          the whole book, quick profile
  preflearn build 03 -p seed 7             one chapter, with another seed
  preflearn build --profile full --jobs 8  the papers' sizes; writes data/recorded
  preflearn sweep 03 -p seed 0:20 -p n 100,200,400
  preflearn data verify
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the result is its exit status.

    0: all is well; 1: a cell, a claim, the rendering or a file failed; 2: the command was wrong;
    130: interrupted.
    """
    options = _parser().parse_args(arguments)
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        return options.run(options)
    except ValueError as error:
        print(f"preflearn: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("preflearn: interrupted; what was finished is kept", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="preflearn",
        description="Learning from Comparisons: build the book and rerun its experiments.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_build(commands)
    _add_sweep(commands)
    _add_data(commands)
    claims = commands.add_parser("claims", help="the ledger of claims, with the last computed verdicts")
    claims.set_defaults(run=_claims)
    return parser


def _add_build(commands: argparse._SubParsersAction) -> None:
    build = commands.add_parser(
        "build",
        help="execute chapters that changed, and render the book",
        description="Execute chapters whose notebook, package, parameters, data or versions changed, "
        "side by side; collect their pages and claims; render the book into _build/html.",
    )
    build.add_argument("chapters", nargs="*", metavar="CHAPTER", help="such as 03 or 03_lemma; default: all")
    build.add_argument(
        "--profile",
        choices=("quick", "full"),
        default="quick",
        help="quick: minutes; full: the papers' sizes, written to data/recorded (default: quick)",
    )
    _add_parameter(build, "VALUE", "give a chapter's parameter another value; may be repeated")
    build.add_argument("--jobs", type=int, metavar="N", help="chapters at once (default: one a processor)")
    build.add_argument("--force", action="store_true", help="execute although nothing changed")
    build.add_argument("--no-render", action="store_true", help="stop before the pages are rendered")
    build.set_defaults(run=_build)


def _add_sweep(commands: argparse._SubParsersAction) -> None:
    sweep = commands.add_parser(
        "sweep",
        help="execute one chapter at every point of a grid of parameters",
        description="Execute one chapter at every point of a grid. A point that is there already is not "
        "run again; results.csv holds a row a point.",
    )
    sweep.add_argument("chapter", metavar="CHAPTER")
    _add_parameter(
        sweep, "VALUES", "a range such as 0:20 or 0:20:5, or a list such as 1,2,5; may be repeated"
    )
    where = sweep.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=int, metavar="N", help="points at once (default: one a processor)")
    where.add_argument(
        "--scheduler", metavar="ADDRESS", help="run on a Dask cluster, such as tcp://host:8786"
    )
    sweep.add_argument(
        "--output", type=Path, metavar="DIR", help="where results go (default: _build/sweeps/CHAPTER)"
    )
    sweep.set_defaults(run=_sweep)


def _add_parameter(parser: argparse.ArgumentParser, value: str, text: str) -> None:
    parser.add_argument(
        "-p", dest="parameters", nargs=2, action="append", default=[], metavar=("NAME", value), help=text
    )


def _add_data(commands: argparse._SubParsersAction) -> None:
    data = commands.add_parser("data", help="the public data sets: list, fetch, verify")
    what = data.add_subparsers(required=True, metavar="ACTION")
    listing = what.add_parser("list", help="all data sets, their licences, and whether they are here")
    listing.set_defaults(run=_data_list)
    fetch = what.add_parser("fetch", help="download data sets into the cache and verify them")
    fetch.add_argument("datasets", nargs="+", metavar="DATASET")
    fetch.set_defaults(run=_data_fetch)
    verify = what.add_parser("verify", help="compare the files that are here with their registered hashes")
    verify.add_argument("datasets", nargs="*", metavar="DATASET")
    verify.set_defaults(run=_data_verify)


def _named(parameters: list[list[str]]) -> dict[str, str]:
    counts = Counter(name for name, _ in parameters)
    if repeated := [name for name, count in counts.items() if count > 1]:
        raise ValueError(f"the parameter {repeated[0]!r} is given twice")
    return dict(parameters)


def _build(options: argparse.Namespace) -> int:
    from bookrunner.build import build_book
    from bookrunner.project import find_project, typed

    parameters = {name: typed(value) for name, value in _named(options.parameters).items()}
    if options.profile != "quick":
        parameters["profile"] = options.profile
    return build_book(
        find_project(),
        options.chapters,
        parameters,
        jobs=options.jobs,
        force=options.force,
        rendered=not options.no_render,
    )


def _sweep(options: argparse.Namespace) -> int:
    from bookrunner.project import find_project
    from bookrunner.sweep import grid_values, run_sweep

    grid = {name: grid_values(values) for name, values in _named(options.parameters).items()}
    if not grid:
        raise ValueError("a sweep needs at least one parameter, such as: -p seed 0:20")
    table, outcomes = run_sweep(
        find_project(),
        options.chapter,
        grid,
        jobs=options.jobs,
        scheduler=options.scheduler,
        output=options.output,
    )
    counts = Counter(outcome.status for outcome in outcomes)
    print(f"points: {', '.join(f'{count} {status}' for status, count in sorted(counts.items()))}")
    for outcome in outcomes:
        if outcome.status == "failed":
            print(f"  {outcome.task.label}: {outcome.summary}")
    print(f"results: {table}")
    return 1 if counts["failed"] else 0


def _data_list(_: argparse.Namespace) -> int:
    from preflearn import datasets

    print(datasets.listing().to_string(index=False))
    return 0


def _data_fetch(options: argparse.Namespace) -> int:
    from preflearn import datasets

    status = 0
    for name in options.datasets:
        try:
            for path in datasets.fetch(name, progress=sys.stderr.isatty()):
                print(path)
        except datasets.DatasetUnavailable as error:
            print(f"preflearn: {error}", file=sys.stderr)
            status = 1
    return status


def _data_verify(options: argparse.Namespace) -> int:
    import pandas as pd

    from preflearn import datasets

    rows = pd.concat([datasets.verify(name) for name in options.datasets or [None]])
    print(rows.to_string(index=False))
    # A set that is not here is no damage; a file with other bytes is.
    return 0 if rows["status"].isin(["ok", "missing", "unverifiable"]).all() else 1


def _claims(_: argparse.Namespace) -> int:
    from bookrunner.build import ledger_state
    from bookrunner.project import find_project

    checked, problems = ledger_state(find_project())
    for entry in checked:
        computed = entry.result["computed"] if entry.result else "-"
        mark = "!" if entry.contradicts else " "
        claim = entry.claim
        print(f"{mark} {claim.id:7} {claim.verdict:9} {computed:17} {claim.chapter:16} {claim.where}")
    contradictions = sum(entry.contradicts for entry in checked)
    n_computed = sum(entry.result is not None for entry in checked)
    print(f"{len(checked)} claims, {n_computed} computed, {contradictions} contradictions")
    for problem in problems:
        print(f"  - {problem}")
    return 1 if contradictions else 0
