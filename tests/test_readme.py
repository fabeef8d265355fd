"""README's numbers are those of papers, recorded full runs, and benchmarks, and its
links have targets."""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from pages.builds import contents
from readme_links import with_links

from preflearn_book.runner.project import Project
from preflearn_book.runner.render import published, repository

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def column(name, quantity, /, **wanted):
    """Return a column of a table in data/, for the rows in which other columns have
    these values."""
    rows = pd.read_csv(ROOT / "data" / f"{name}.csv", comment="#")
    for other, content in wanted.items():
        rows = rows[rows[other.replace("_", " ")] == content]
    assert len(rows)
    return rows[quantity].astype(float)


def sushi_error(pattern):
    """Return the test error of SVMcompare in percent, with 400 pairs, half of which are
    ties."""
    about = {"pattern": pattern, "method": "compare", "n": 400, "share_of_ties": 0.5}
    return 100 * column("recorded/05_simulations_runs", "test error", **about).mean()


def published_error(pattern):
    return column(
        "published/P1_figures_4_5",
        "mean",
        figure=4,
        pattern=pattern,
        method="compare",
        x=400,
    ).item()


JESTER = {"dataset": "jester", "group": "20-40", "method": "Ranking Pursuit"}


def sports(dataset, model):
    """Return the log loss published in Table 3, and ours at the published
    hyperparameters."""
    table = {"place": "Table 3", "quantity": "loss", "dataset": dataset, "model": model}
    ours = column(
        "recorded/14_sports_forecasts",
        "loss",
        values="Table 8",
        dataset=dataset,
        model=model,
    )
    return column("published/P4_tables", "value", **table).item(), ours.item()


def transfers(method):
    """Return the mean loss over the transfers of Table 2 with available data sets."""
    ours = pd.read_csv(ROOT / "data/recorded/16_ankerrank_runs.csv", comment="#")
    published = pd.read_csv(ROOT / "data/published/P5_tables.csv", comment="#")
    published = published[
        (published["kind"] == "row") & (published["method"] == method)
    ]
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
        column(
            "recorded/10_pursuit_runs",
            "disagreement",
            chosen_by="disagreement",
            **JESTER,
        ).mean(),
    ),
    lambda: sports("ATP tennis", "Ours"),
    lambda: sports("ATP tennis", "Elo"),
    lambda: sports("NBA basketball", "Ours"),
    lambda: transfers("able2rank"),
    lambda: transfers("AnKer-rank"),
]
ROWS = re.findall(
    r"^\| P\d \| .* \| ([\d.]*)(?: %)? ?\| ([\d.]+)(?: %)? \|$", README, re.MULTILINE
)


@pytest.mark.parametrize(("row", "result"), list(zip(ROWS, RESULTS, strict=True)))
def test_results_are_the_published_and_the_recorded_ones(row, result):
    for text, number in zip(row, result(), strict=True):
        digits = len(text.partition(".")[2])
        assert text == ("" if number is None else f"{number:.{digits}f}")


def test_ratios_are_those_of_the_benchmarks():
    rows = re.findall(
        r"^\| (\[.*?\]\()(\w.*? \| .*?) \| (.*?) \|$", README, re.MULTILINE
    )
    measured = (ROOT / "benchmarks" / "README.md").read_text("utf-8").splitlines()
    cells = [
        line.strip("| ").split(" | ") for line in measured if line.startswith("| [")
    ]
    known = {(f"{name} | {other}", ratio) for name, ratio, _, other, *_ in cells}
    in_readme = {
        (link + text.removeprefix("benchmarks/"), ratio) for link, text, ratio in rows
    }
    assert len(in_readme) >= 5
    assert in_readme <= known


CHAPTERS = [chapter.name for chapter in Project(ROOT).chapters]


def test_links_to_the_book_lead_to_its_pages_once_these_are_published():
    site = published(repository(Project(ROOT)))
    assert with_links(README, site, CHAPTERS) == README, (
        "run python tools/readme_links.py"
    )


def test_published_pages_are_those_of_the_contents_and_the_way_back_is_the_same():
    site = "https://owner.github.io/name/"
    linked = with_links(README, site, CHAPTERS)
    pages = re.findall(rf"\]\({site}(\S+)\.html\)", linked)
    assert len(pages) >= 12
    assert set(pages) <= set(contents())
    assert with_links(linked, "", CHAPTERS) == with_links(README, "", CHAPTERS)
    assert with_links(linked, "https://other.github.io/x/", CHAPTERS).count(
        "other.github.io"
    ) == len(pages)


def headings(text):
    """Return the anchors of headings, in the form of GitHub."""
    titles = re.findall(
        r"^#+ (.*)$",
        re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL),
        re.M,
    )
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_within_the_repository_have_a_target():
    links = re.findall(r"\]\(([^)\s]+)\)", README)
    assert {link[1:] for link in links if link.startswith("#")} <= headings(README)
    files = [
        link.partition("#")[0]
        for link in links
        if not link.startswith(("#", "https://"))
    ]
    assert files
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_a_release_has_the_files_that_readme_names():
    """The job that builds the package makes these files, and they are not uploaded to
    the package index."""
    section = re.search(
        r"^## See the book\n(.*?)^## ", README, re.MULTILINE | re.DOTALL
    )[1]
    named = set(re.findall(r"`([\w-]+\.(?:pdf|zip))`", section))
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    runs = " ".join(step.get("run", "") for step in jobs["build"]["steps"])
    assert named == set(re.findall(r"_build/([\w-]+\.(?:pdf|zip))", runs))
    assert {"pdf", "notebooks"} <= set(re.search(r"make (.*)", runs)[1].split())
    downloads = {
        name: [
            step["with"]["name"]
            for step in jobs[name]["steps"]
            if "download" in step.get("uses", "")
        ]
        for name in ("publish", "github")
    }
    assert downloads == {"publish": ["dist"], "github": ["dist", "book"]}
    assert "book/*" in jobs["github"]["steps"][-1]["run"]
