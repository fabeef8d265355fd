"""README's tables of results are what the papers print, what full runs recorded, and what was measured."""

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def table(name, **wanted):
    """Rows of a table of data/, where some columns have these contents."""
    rows = pd.read_csv(ROOT / "data" / f"{name}.csv", comment="#")
    for column, content in wanted.items():
        rows = rows[rows[column.replace("_", " ")] == content]
    assert len(rows)
    return rows


def errors(pattern):
    """Test error of SVMcompare in percent, printed in Figure 4 and ours: 400 pairs, half of them ties."""
    printed = table("published/P1_figures_4_5", figure=4, pattern=pattern, method="compare", x=400)
    ours = table("recorded/05_simulations_runs", pattern=pattern, method="compare", n=400, share_of_ties=0.5)
    return printed["mean"].item(), 100 * ours["test error"].mean()


def shuffled():
    pattern = "sushi, equal ratings shuffled"
    ours = table("recorded/05_simulations_runs", pattern=pattern, method="compare", n=400, share_of_ties=0.5)
    return None, 100 * ours["test error"].mean()


def jester():
    about = {"dataset": "jester", "group": "20-40", "method": "Ranking Pursuit"}
    ours = table("recorded/10_pursuit_runs", chosen_by="disagreement", **about)
    return table("published/P3_tables", table=1, **about)["value"].item(), ours["disagreement"].mean()


def sports(dataset, model):
    """Log loss of Table 3, and ours at the printed hyperparameters."""
    printed = table("published/P4_tables", place="Table 3", dataset=dataset, model=model, quantity="loss")
    ours = table("recorded/14_sports_forecasts", values="Table 8", dataset=dataset, model=model)
    return float(printed["value"].item()), ours["loss"].item()


def transfers(method):
    """The mean of Table 2 over the transfers that could be had, and ours."""
    ours = table("recorded/16_ankerrank_runs").groupby(["train", "test"])[method].mean()
    printed = table("published/P5_tables", kind="row", method=method).set_index(["train", "test"])["loss"]
    both = pd.concat([printed, ours], axis=1, join="inner")
    assert len(both) == 27
    return tuple(both.mean())


RESULTS = [
    lambda: errors("linf"),
    lambda: errors("sushi"),
    shuffled,
    jester,
    lambda: sports("ATP tennis", "Ours"),
    lambda: sports("ATP tennis", "Elo"),
    lambda: sports("NBA basketball", "Ours"),
    lambda: transfers("able2rank"),
    lambda: transfers("AnKer-rank"),
]
ROWS = re.findall(r"^\| P\d \| .* \| ([\d.]*)(?: %)? ?\| ([\d.]+)(?: %)? \|$", README, re.MULTILINE)


@pytest.mark.parametrize("row", range(len(RESULTS)))
def test_a_result_is_the_one_that_is_printed_and_the_one_that_was_recorded(row):
    assert len(ROWS) == len(RESULTS)
    for said, number in zip(ROWS[row], RESULTS[row](), strict=True):
        digits = len(said.partition(".")[2])
        assert said == ("" if number is None else f"{number:.{digits}f}")


def test_ratios_are_those_of_the_benchmarks():
    rows = re.findall(r"^\| (\[.*?\]\(\w.*?) \| (.*?) \| (.*?) \|$", README, re.MULTILINE)
    rows = [[name.replace("(benchmarks/", "("), peer, ratio] for name, peer, ratio in rows]
    measured = (ROOT / "benchmarks" / "README.md").read_text("utf-8").splitlines()
    cells = [line.strip("| ").split(" | ") for line in measured if line.startswith("| [")]
    assert len(rows) >= 5
    assert [
        row for row in rows if row not in [[name, peer, ratio] for name, ratio, _, peer, *_ in cells]
    ] == []
    assert any(float(ratio.split(" to ")[0]) < 1 for *_, ratio in rows), "also where a peer is faster"


def test_there_is_the_picture_that_it_shows():
    (path,) = re.findall(r"^!\[.{40,}\]\((.*)\)$", README, re.MULTILINE)
    assert (ROOT / path).read_bytes().startswith(b"\x89PNG")
    assert (ROOT / path).with_suffix(".sha256").is_file()
