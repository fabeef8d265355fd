"""The guide: its lines run, name what is public and lead to pages that there are, as README's table does."""

import ast
import importlib
import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from chapter_size import chapter_size

from preflearn.pairs import Pairs

ROOT = Path(__file__).parents[1]
PATH = ROOT / "notebooks" / "guide.ipynb"
CELLS = {cell["id"]: cell for cell in json.loads(PATH.read_text("utf-8"))["cells"]}
SOURCES = {name: "".join(cell["source"]) for name, cell in CELLS.items()}
TEXT = "\n\n".join(SOURCES[name] for name, cell in CELLS.items() if cell["cell_type"] == "markdown")
PARTS = [name.removesuffix("-lines") for name in SOURCES if name.endswith("-lines")]
ROW = re.compile(r"^\| (?:\{ref\}`)?([^|`<]+?)(?: <guide-\w+>`)? \| ([^|]+) \| ([^|]+)", re.MULTILINE)


def rows(text):
    """Of a table "I have | I want | I begin with": what one has, and what that leads to."""
    table = text[text.index("| I have |") :].split("\n\n")[0]
    found = [row for row in ROW.findall(table) if row[0] not in ("I have", "---")]
    return {have: (want, re.search(r"`(?:~?[\w.]*\.)?(\w+)`", name)[1]) for have, want, name in found}


ROWS = rows(TEXT)


def run(part):
    """What the lines of a section show, of the data alone."""
    space = {}
    for name in ("parameters", "setup", f"{part}-data"):
        exec(SOURCES[name], space)
    assigned = [node for node in ast.parse(SOURCES[f"{part}-data"]).body if isinstance(node, ast.Assign)]
    targets = [node for one in assigned for node in ast.walk(one.targets[0]) if isinstance(node, ast.Name)]
    data = {node.id: space[node.id] for node in targets}
    *first, last = ast.parse(SOURCES[f"{part}-lines"]).body
    exec(compile(ast.Module(first, []), part, "exec"), data)
    return eval(compile(ast.Expression(last.value), part, "eval"), data)


def test_there_are_eight_situations_and_a_section_each():
    assert len(PARTS) == len(ROWS) == 8
    assert re.findall(r"<guide-(\w+)>`", SOURCES["title"])[:8] == PARTS
    for part in PARTS:
        assert SOURCES[part].startswith(f"(guide-{part})=\n## ")
        assert "I have " in SOURCES[part]
        assert "I want " in SOURCES[part]
        assert "If it does not fit." in SOURCES[f"{part}-else"]
        assert "{doc}`" in SOURCES[f"{part}-out"], "the chapter"


def test_readme_and_the_front_page_have_the_same_table():
    readme, front = ((ROOT / name).read_text("utf-8") for name in ("README.md", "book/index.md"))
    assert rows(readme) == ROWS
    assert rows(front) == ROWS
    head = readme[readme.index("| I have |") :].split("\n\n")[0]
    paths = re.findall(r"\]\((notebooks/[^)]+)\)", head)
    assert len(paths) == len(ROWS)
    assert all((ROOT / path).is_file() for path in paths)
    links = dict(re.findall(r"\[`(\w+)`\]\((src/[^)]+)\)", head))
    assert list(links) == [name for _, name in ROWS.values()]
    for name, path in links.items():
        assert re.search(rf"^(class|def) {name}\b", (ROOT / path).read_text("utf-8"), re.MULTILINE)


DOORS = ["I have comparisons and want an answer", "I want to understand", "I am an author or a referee"]


def test_readme_and_the_front_page_have_three_doors_in_one_order():
    readme, front = ((ROOT / name).read_text("utf-8") for name in ("README.md", "book/index.md"))
    doors = re.findall(r"^:::\{card\} \{doc\}`(.*?) <([\w/]+)>`$", front, re.MULTILINE)
    assert doors == list(zip(DOORS, ["chapters/guide", "paths", "chapters/claims"], strict=True))
    assert front.index(":::{card}") < front.index("\n## "), "in the first screen"
    assert [title for title in re.findall(r"^## (.*)", readme, re.MULTILINE) if title in DOORS] == DOORS


def test_the_ways_through_the_book_say_what_they_cost():
    """Twenty minutes a chapter, as the page says, and each chapter is on some way."""
    text = (ROOT / "book" / "paths.md").read_text("utf-8")
    assert "some twenty minutes" in text
    ways = re.findall(r"^\|.*\| (\{doc\}.*) \| (\d+) \|$", text, re.MULTILINE)
    assert len(ways) >= 5
    named = [re.findall(r"`(\d+) <chapters/((\d\d)_\w+)>`", way) for way, _ in ways]
    assert [20 * len(names) for names in named] == [int(minutes) for _, minutes in ways]
    assert all(int(number) == int(file[:2]) for names in named for number, file, _ in names)
    chapters = {path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")}
    assert {file for names in named for _, file, _ in names} == chapters


@pytest.mark.parametrize("part", PARTS)
def test_at_most_five_lines_run_and_show_something(part):
    tree = ast.parse(SOURCES[f"{part}-lines"])
    assert len(tree.body) <= 5
    assert len(SOURCES[f"{part}-lines"].splitlines()) <= 7, "with an empty line, and one that is broken"
    shown = str(run(part))
    assert re.search(r"\d", shown)
    assert "nan" not in shown.lower()


@pytest.mark.parametrize(
    ("part", "name"), [(p, name) for p, (_, name) in zip(PARTS, ROWS.values(), strict=True)]
)
def test_the_lines_use_what_the_table_names_and_it_is_public(part, name):
    used = set()
    for node in ast.walk(ast.parse(SOURCES[f"{part}-lines"])):
        if isinstance(node, ast.ImportFrom):
            used |= {alias.name for alias in node.names}
            face = importlib.import_module(node.module)
            names = getattr(face, "__all__", [n for n in vars(face) if not n.startswith("_")])
            assert {alias.name for alias in node.names} <= set(names)
    assert name in used


def test_each_link_leads_to_what_there_is():
    pages = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {name.strip("./") for name in re.findall(r"\{doc\}`[^`<]+<([^>]+)>`", TEXT)} <= pages
    labels = set(re.findall(r"^\((guide[\w-]*)\)=$", TEXT, re.MULTILINE))
    assert set(re.findall(r"\{ref\}`[^`<]+<([^>]+)>`", TEXT)) == labels
    for name in re.findall(r"\{py:\w+\}`~([\w.]+)`", TEXT):
        face, _, what = name.rpartition(".")
        module = importlib.import_module(face)
        assert what in getattr(module, "__all__", vars(module)), name


def test_the_page_is_laid_out_as_chapters_are():
    code = [cell for cell in CELLS.values() if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    assert chapter_size(list(CELLS.values())).run <= 2
    assert max(len(source.splitlines()) for source in SOURCES.values()) <= 30
    shown = {name for name, cell in CELLS.items() if cell in code and not cell["metadata"].get("tags")}
    assert shown == {f"{part}-lines" for part in PARTS} | {"dishes-model", "dishes-new"}
    figures = [cell["metadata"]["mystnb"] for cell in code if "plt.show()" in "".join(cell["source"])]
    assert len(figures) == 9
    for about in figures:
        assert f"{{numref}}`{about['figure']['name']}`" in TEXT
        assert min(len(about["figure"]["caption"]), len(about["image"]["alt"])) > 40


def test_a_new_item_is_forecast_and_features_that_do_nothing_are_seldom_held_to_matter():
    """The lines about a table of dishes, on eight draws of it: salt and fat count, the price does not."""
    told, wide = [], []
    for seed in range(8):
        space = {}
        for name in ("parameters", "setup", "features-lines", "dishes-data", "dishes-model", "dishes-new"):
            source = SOURCES[name] if name != "features-lines" else SOURCES[name].splitlines()[0]
            with redirect_stdout(StringIO()):
                exec(source.replace("seed = 0", f"seed = {seed}"), space)
        low, high = space["chef"].interval(0.95, space["steps"]).T
        told.append([low[0] > 0, high[1] < 0, low[2] > 0 or high[2] < 0])
        tasted = space["chef"].standard_errors(Pairs(space["rows"], [[0, 1]]))
        wide.append(space["chef"].standard_errors(space["new"]).min() / tasted[0])
        assert 0.5 < space["alpha"] < 100
    right = np.sum(told, axis=0)
    assert right[0] == 8
    assert right[1] >= 6
    assert right[2] <= 1
    assert min(wide) > 1, "of a dish that nobody tasted less is known"


COSTS = pd.read_csv(ROOT / "data" / "guide_costs.csv", comment="#")


def test_each_situation_has_a_cost_at_each_size():
    sizes = COSTS.groupby("situation", sort=False)["comparisons"].apply(list).to_dict()
    assert list(sizes) == list(ROWS)
    assert set(map(tuple, sizes.values())) == {(10**3, 10**4, 10**5, 10**6, 10**7)}
    assert set(COSTS["kind"]) <= {"measured", "extrapolated", "out of reach"}
    assert (COSTS[COSTS["comparisons"] == 1000]["kind"] == "measured").all()


def test_what_was_not_measured_is_said_to_be_so(monkeypatch):
    space, said = {}, []
    exec(SOURCES["setup"], space)
    exec(SOURCES["costs-read"], space)
    monkeypatch.setitem(space, "display", said.append)
    monkeypatch.setitem(space, "Markdown", str)
    table = {"situation": "x", "comparisons": [10**3, 10**5, 10**7], "seconds": [0.002, 150.0, 1e6]}
    table |= {"megabytes": [1, 3000, 1e6], "kind": ["measured", "extrapolated", "out of reach"]}
    space["costs"] = pd.DataFrame(table)
    space["cost"]("x")
    (text,) = said
    assert "take 2.0 milliseconds for 1,000 comparisons." in text
    assert "they take at least 2.5 minutes and 3 GB for 100,000." in text
    assert text.endswith("10,000,000 are out of their reach.")


def test_the_costs_of_each_situation_are_said_drawn_and_listed(monkeypatch):
    space, said = {}, []
    with matplotlib.rc_context():
        for name in ("setup", "costs-read"):
            exec(SOURCES[name], space)
        monkeypatch.setitem(space, "display", said.append)
        monkeypatch.setitem(space, "Markdown", str)
        monkeypatch.setattr(plt, "show", lambda: None)
        for name in [*(f"{part}-cost" for part in PARTS), "costs-figure", "costs-table"]:
            exec(SOURCES[name], space)
        lines = [line.get_label() for line in plt.gca().lines]
        plt.close()
    *texts, table, _ = said
    asked = [re.search(r'cost\("(.+)"\)', SOURCES[f"{part}-cost"])[1] for part in PARTS]
    assert asked == lines == list(table.index) == list(ROWS)
    common = [text for text in texts if text.startswith("**On common ground.** ")]
    assert (
        sum(text.startswith("**Cost.** The lines take ") for text in texts) == len(texts) - len(common) == 8
    )
    for text in common:
        first = re.search(r"Of (\d+) domains, (.+?) is level with the best in (\d+)", text)
        assert 2 * int(first[3]) >= int(first[1]), f"{first[2]} is what the guide begins with"


@pytest.mark.parametrize("part", PARTS)
def test_the_costs_are_those_of_these_lines(part, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    measure = importlib.import_module("guide_costs")
    assert [situation.name for situation in measure.SITUATIONS.values()] == list(ROWS)
    assert list(measure.SITUATIONS) == PARTS
    seconds, megabytes = measure.timed(part, 500)
    assert 0 < seconds < 60
    assert megabytes < 1000


def test_growth_beyond_what_was_run_is_that_of_the_last_two_and_tenfold_at_least(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    beyond = importlib.import_module("guide_costs").beyond
    assert beyond([(1.0, 10.0), (2.0, 10.0), (40.0, 40.0)]) == (800.0, 160.0)
    assert beyond([(2.0, 0.0), (1.0, 100.0)]) == (10.0, 1000.0)
