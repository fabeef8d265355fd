"""README's numbers are those of the papers, of the recorded full runs and of the benchmarks."""

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def column(name, quantity, /, **wanted):
    """A column of a table of data/, of the rows in which other columns have these contents."""
    rows = pd.read_csv(ROOT / "data" / f"{name}.csv", comment="#")
    for other, content in wanted.items():
        rows = rows[rows[other.replace("_", " ")] == content]
    assert len(rows)
    return rows[quantity].astype(float)


def sushi_error(pattern):
    """Test error of SVMcompare in percent, with 400 pairs, half of which are ties."""
    about = {"pattern": pattern, "method": "compare", "n": 400, "share_of_ties": 0.5}
    return 100 * column("recorded/05_simulations_runs", "test error", **about).mean()


def published_error(pattern):
    return column(
        "published/P1_figures_4_5", "mean", figure=4, pattern=pattern, method="compare", x=400
    ).item()


JESTER = {"dataset": "jester", "group": "20-40", "method": "Ranking Pursuit"}


def sports(dataset, model):
    """Log loss as published in Table 3, and ours at the published hyperparameters."""
    table = {"place": "Table 3", "quantity": "loss", "dataset": dataset, "model": model}
    ours = column("recorded/14_sports_forecasts", "loss", values="Table 8", dataset=dataset, model=model)
    return column("published/P4_tables", "value", **table).item(), ours.item()


def transfers(method):
    """The mean loss over the transfers of Table 2 whose data sets are available."""
    ours = pd.read_csv(ROOT / "data/recorded/16_ankerrank_runs.csv", comment="#")
    published = pd.read_csv(ROOT / "data/published/P5_tables.csv", comment="#")
    published = published[(published["kind"] == "row") & (published["method"] == method)]
    losses = [
        published.set_index(["train", "test"])["loss"].astype(float),
        ours.groupby(["train", "test"])[method].mean(),
    ]
    both = pd.concat(losses, axis=1, join="inner")
    assert len(both)
    return tuple(both.mean())


RESULTS = [
    lambda: (published_error("linf"), sushi_error("linf")),
    lambda: (published_error("sushi"), sushi_error("sushi")),
    lambda: (None, sushi_error("sushi, equal ratings shuffled")),
    lambda: (
        column("published/P3_tables", "value", table=1, **JESTER).item(),
        column("recorded/10_pursuit_runs", "disagreement", chosen_by="disagreement", **JESTER).mean(),
    ),
    lambda: sports("ATP tennis", "Ours"),
    lambda: sports("ATP tennis", "Elo"),
    lambda: sports("NBA basketball", "Ours"),
    lambda: transfers("able2rank"),
    lambda: transfers("AnKer-rank"),
]
ROWS = re.findall(r"^\| P\d \| .* \| ([\d.]*)(?: %)? ?\| ([\d.]+)(?: %)? \|$", README, re.MULTILINE)


@pytest.mark.parametrize(("row", "result"), list(zip(ROWS, RESULTS, strict=True)))
def test_results_are_the_published_and_the_recorded_ones(row, result):
    for text, number in zip(row, result(), strict=True):
        digits = len(text.partition(".")[2])
        assert text == ("" if number is None else f"{number:.{digits}f}")


def test_ratios_are_those_of_the_benchmarks():
    rows = re.findall(r"^\| (\[.*?\]\()(\w.*? \| .*?) \| (.*?) \|$", README, re.MULTILINE)
    measured = (ROOT / "benchmarks" / "README.md").read_text("utf-8").splitlines()
    cells = [line.strip("| ").split(" | ") for line in measured if line.startswith("| [")]
    known = {(f"{name} | {peer}", ratio) for name, ratio, _, peer, *_ in cells}
    in_readme = {(link + text.removeprefix("benchmarks/"), ratio) for link, text, ratio in rows}
    assert len(in_readme) >= 5
    assert in_readme <= known
