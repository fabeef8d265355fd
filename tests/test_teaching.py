"""The course plan names existing exercises, sections, and data sets of the chapters."""

import csv
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "teaching.md").read_text("utf-8")
CHAPTERS = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
}
TEXTS = {
    name: [
        "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "markdown"
    ]
    for name, notebook in CHAPTERS.items()
}
EXERCISE = re.compile(
    r"^(?:`{3,}|:{3,})\{exercise\}(?: (.*))?\n:label: (\S+)", re.MULTILINE
)


def rows(heading):
    """Return the cells of the table below a heading, without its header."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
    return [line.split(" | ") for line in lines[1:]]


def chapters_of(cell):
    return re.findall(r"<chapters/(\w+)>", cell)


def exercises_of(chapter):
    """Titles and labels of the exercises of a chapter, in order."""
    return [found for text in TEXTS[chapter] for found in EXERCISE.findall(text)]


def test_every_exercise_is_listed_at_its_chapter_by_its_title_from_easy_to_hard():
    listed = {}
    for first, *others in rows("Exercises by difficulty"):
        (chapter,) = chapters_of(first)
        listed[chapter] = re.findall(
            r"\{ref\}`([^<`]+) <(ex-[^>]+)>`", " ".join(others)
        )
    assert listed == {chapter: exercises_of(chapter) for chapter in CHAPTERS}


def test_the_page_calls_each_exercise_by_its_title():
    titles = {label: title for name in CHAPTERS for title, label in exercises_of(name)}
    for title, label in re.findall(r"\{ref\}`([^<`]+) <(ex-[^>]+)>`", PAGE):
        assert titles[label] == title


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_exercises_of_a_chapter_are_in_a_section_of_this_name(chapter):
    (text,) = (text for text in TEXTS[chapter] if "{exercise}" in text)
    heading = "\n\n".join(TEXTS[chapter]).partition("{exercise}")[0]
    assert re.findall(r"^#+ .*", heading, re.MULTILINE)[-1] == "## Exercises"
    assert "hard" not in text.partition("{exercise}")[0]


def test_the_plan_has_twelve_weeks_with_background_and_practice():
    primer = (ROOT / "book" / "primer.md").read_text("utf-8")
    plan = rows("Twelve weeks")
    practice = rows("Practice of each week")
    assert [int(week) for week, *_ in plan] == list(range(1, 13))
    assert [int(week) for week, *_ in practice] == list(range(1, 13))
    for _, _, _, before, _ in plan:
        anchors = re.findall(r"\{ref\}`(primer-\w+)`", before)
        assert anchors
        assert all(f"({anchor})=" in primer for anchor in anchors)
    for _, computer, by_hand in practice:
        assert computer.strip()
        assert "{ref}`" in by_hand


def test_the_table_of_data_names_the_data_sets_of_each_week_with_their_sizes():
    sizes = {}
    with (ROOT / "data" / "registry.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            known = sizes.get(row["dataset"], 0)
            sizes[row["dataset"]] = known + int(row["bytes"] or 0)
    plan = rows("Twelve weeks")
    data = rows("Before the class: installation and data")
    for (_, read, *_), (_, quick, quick_mb, more, full_mb) in zip(
        plan, data, strict=True
    ):
        used = {
            name
            for chapter in chapters_of(read)
            for name in CHAPTERS[chapter]["metadata"]["preflearn"]["data"]
        }
        in_quick, added = (re.findall(r"`(\w+)`", cell) for cell in (quick, more))
        assert sorted(in_quick + added) == sorted(used)
        assert float(quick_mb) == round(sum(sizes[name] for name in in_quick) / 1e6, 1)
        assert float(full_mb) == round(sum(sizes[name] for name in used) / 1e6, 1)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_lists_the_data_sets_that_it_loads(chapter):
    code = "\n".join(
        "".join(cell["source"])
        for cell in CHAPTERS[chapter]["cells"]
        if cell["cell_type"] == "code"
    )
    named = set(CHAPTERS[chapter]["metadata"]["preflearn"]["data"])
    loaded = set(re.findall(r"datasets\.load_(\w+)\(", code))
    assert {"atp_tennis" if name == "atp" else name for name in loaded} <= named
