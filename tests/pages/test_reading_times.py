"""The plan for instructors and the ways through the book state the reading times that
the pages show."""

import pickle
import re

import pytest
from docutils import nodes
from pages.builds import ROOT

from preflearn_book.runner.theme import minutes

# Where the table of the ways through the book says "in part".
PARTS = {
    "chapters/12_covariance": ["sec-c12-functions", "sec-c12-four"],
    "chapters/14_sports": ["sec-sports-players"],
}


def minutes_of_page(book, name):
    """The minutes at the top of a page."""
    text = (book / f"{name}.html").read_text("utf-8")
    return int(re.search(r'"reading-time">About (\d+) minute', text)[1])


def of_section(book, name, label):
    """The minutes of a section of a page, or of the appendix of this page."""
    folder = book.parent / ".doctrees"
    for page in (folder / f"{name}.doctree", folder / f"{name}_more.doctree"):
        if page.is_file():
            doctree = pickle.loads(page.read_bytes())
            for section in doctree.findall(nodes.section):
                if label in section["ids"]:
                    return minutes(section)
    raise ValueError(f"no section {label} in {name}")


def rows(page, heading):
    text = (ROOT / "book" / page).read_text("utf-8")
    section = text.partition(heading)[2].partition("\n## ")[0]
    return [
        line.split(" | ")
        for line in re.findall(r"^\| (.*) \|$", section, re.MULTILINE)[1:]
    ]


def names_of(cell):
    """The pages and the sections that a cell refers to."""
    return (
        re.findall(r"\{doc\}`[^<`]*<([^>]+)>`", cell),
        re.findall(r"\{ref\}`([^`]+)`", cell),
    )


def test_the_plan_states_the_minutes_of_each_week(book):
    plan = rows("teaching.md", "\n## Twelve weeks\n")
    assert len(plan) == 12
    for week, read, stated, *_ in plan:
        total = 0
        for part in read.split("; "):
            (name,), labels = names_of(part)
            if labels and "in particular" not in part:
                total += sum(of_section(book, name, label) for label in labels)
            else:
                total += minutes_of_page(book, name)
        assert int(stated) == pytest.approx(total, abs=5), f"week {week}: {total}"


def test_the_ways_through_the_book_state_the_sum_of_the_minutes(book):
    page = (ROOT / "book" / "paths.md").read_text("utf-8")
    explained = page.partition("*In part* means")[2].partition("\n")[0]
    for labels in PARTS.values():
        assert all(f"<{label}>" in explained for label in labels)
    for *_, read, stated in rows("paths.md", "\n\n| You know"):
        total = 0
        for part in read.split(", "):
            names, _ = names_of(part)
            for name in names:
                if "(in part)" in part:
                    total += sum(of_section(book, name, one) for one in PARTS[name])
                else:
                    total += minutes_of_page(book, name)
        assert int(stated) == pytest.approx(total, abs=7), f"{read}: {total}"


def test_chapters_take_the_minutes_that_both_pages_state(book):
    chapters = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    times = [minutes_of_page(book, f"chapters/{path.stem}") for path in chapters]
    page = (ROOT / "book" / "paths.md").read_text("utf-8")
    least, most = map(int, re.search(r"between (\d+) and (\d+) minutes", page).groups())
    assert least <= min(times) < least + 5
    assert most - 5 < max(times) <= most
