"""The course plan names existing exercises and data sets of the chapters."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "teaching.md").read_text("utf-8")
CHAPTERS = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
}
REGISTRY = (ROOT / "data" / "registry.csv").read_text("utf-8").splitlines()[1:]
DATASETS = {line.partition(",")[0] for line in REGISTRY}


def rows(heading):
    """Return the cells of the table below a heading, without its header."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
    return [line.split(" | ") for line in lines[1:]]


def chapters_of(cell):
    return re.findall(r"<chapters/(\w+)>", cell)


def test_every_exercise_is_listed_at_its_chapter():
    listed = {}
    for first, *others in rows("Exercises by difficulty"):
        (chapter,) = chapters_of(first)
        listed[chapter] = sorted(re.findall(r"<(ex-[\w-]+)>", " ".join(others)))
    label = re.compile(r"\{exercise\}.*\n:label: (\S+)")
    exercises = {
        chapter: sorted(
            found
            for cell in notebook["cells"]
            if cell["cell_type"] == "markdown"
            for found in label.findall("".join(cell["source"]))
        )
        for chapter, notebook in CHAPTERS.items()
    }
    assert listed == exercises


def test_the_plan_has_twelve_weeks_and_names_the_data_of_their_chapters():
    plan = rows("Twelve weeks")
    assert [int(week) for week, *_ in plan] == list(range(1, 13))
    for _, read, _, data in plan:
        named = set(re.findall(r"`(\w+)`", data))
        if data.startswith("all except"):
            named = DATASETS - named
        chapters = chapters_of(read)
        assert chapters
        used = {
            name
            for chapter in chapters
            for name in CHAPTERS[chapter]["metadata"]["preflearn"]["data"]
        }
        assert named == used
