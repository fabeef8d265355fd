"""The example of `preflearn report --example`: its file, and what the command does with
it."""

import csv
import tomllib
from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from example_games import CLUBS, EXAMPLE, games, to_csv
from toy_project import run_here

from preflearn_book.runner import execution
from preflearn_book.runner.command import main

ROOT = Path(__file__).parents[1]
WRITTEN = EXAMPLE.read_text("utf-8")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_file_is_what_its_script_writes():
    assert to_csv(games()) == WRITTEN
    assert to_csv(games(seed=5)) != WRITTEN


def test_it_is_a_league_with_dates_two_sides_and_a_round_to_come():
    rows = list(csv.DictReader(WRITTEN.splitlines()))
    days = [date.fromisoformat(row["date"]) for row in rows]
    assert days == sorted(days)
    assert all(row["home"] != row["away"] for row in rows)
    met = Counter((row["home"], row["away"]) for row in rows)
    assert len(met) == len(CLUBS) * (len(CLUBS) - 1)
    assert set(met.values()) == {4}, (
        "each season, each club is at home against each other club"
    )
    for day in set(days):
        sides = [
            side
            for row in rows
            if row["date"] == str(day)
            for side in (row["home"], row["away"])
        ]
        assert sorted(sides) == CLUBS, "each club plays once a week"
    results = Counter(row["result"] for row in rows)
    assert set(results) == {"H", "D", "A", ""}
    assert results["H"] > results["A"], "the home team has an advantage"
    assert {row["date"] for row in rows if not row["result"]} == {str(days[-1])}


def test_it_is_installed_where_the_command_looks_for_it():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"][
        "hatch"
    ]["build"]
    files = build["targets"]["wheel"]["force-include"]
    assert files["examples/games.csv"] == "preflearn_book/_files/examples/games.csv"


def test_the_command_writes_the_example_and_reports_on_it(here, monkeypatch, capsys):
    monkeypatch.setattr(execution, "execute", run_here)
    assert main(["report", "--example", "-p", "n_next", "3"]) == 0
    assert {path.name for path in here.iterdir()} == {"games.csv", "games_report.html"}
    assert (here / "games.csv").read_text("utf-8") == WRITTEN
    page = (here / "games_report.html").read_text("utf-8")
    assert all(club in page for club in CLUBS)
    assert "<strong>220 matches</strong>" in page
    assert "The rest of the season</h2>" in page
    assert "52 matches with an outcome and 4 to come" in " ".join(page.split())
    said = capsys.readouterr().out
    assert "example file" in said
    (command,) = [
        line.strip()
        for line in said.splitlines()
        if line.strip().startswith("preflearn report")
    ]
    monkeypatch.setattr(execution, "execute", stop)
    with pytest.raises(StoppedError):
        main(command.split()[1:])


class StoppedError(Exception):
    """The arguments are valid, and the report would begin."""


def stop(*_, **__):
    raise StoppedError


@pytest.mark.parametrize(
    ("arguments", "status", "named"),
    [
        (["--example"], 1, "games.csv"),
        (["--example", "games.csv"], 2, "DATA"),
        (["--example", "--judgements"], 2, "--judgements"),
        ([], 2, "--example"),
    ],
)
def test_a_file_of_the_user_is_kept_and_a_wrong_command_says_why(
    here, capsys, arguments, status, named
):
    (here / "games.csv").write_text("mine")
    assert main(["report", *arguments]) == status
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert named in message
    assert [path.read_text() for path in here.iterdir()] == ["mine"]
