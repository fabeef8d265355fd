"""The lines of the guide run on its data with public names only, and its costs are
those of the same lines."""

import ast
import importlib
import json
import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from preflearn.pairs import Pairs

ROOT = Path(__file__).parents[1]
CELLS = json.loads((ROOT / "notebooks" / "guide.ipynb").read_text("utf-8"))["cells"]
SOURCES = {cell["id"]: "".join(cell["source"]) for cell in CELLS}
PARTS = [name.removesuffix("-lines") for name in SOURCES if name.endswith("-lines")]


def run(names, seed=0):
    """Return the namespace after some cells, whose output is discarded."""
    space = {}
    for name in ("parameters", "setup", *names):
        with redirect_stdout(StringIO()):
            exec(SOURCES[name].replace("seed = 0", f"seed = {seed}"), space)
    return space


@pytest.fixture
def guide_costs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("guide_costs")


@pytest.mark.parametrize("part", PARTS)
def test_lines_run_on_the_data_alone_and_show_numbers(part):
    space = run([f"{part}-data"])
    assigned = [
        node
        for node in ast.parse(SOURCES[f"{part}-data"]).body
        if isinstance(node, ast.Assign)
    ]
    targets = [
        node
        for one in assigned
        for node in ast.walk(one.targets[0])
        if isinstance(node, ast.Name)
    ]
    data = {node.id: space[node.id] for node in targets}
    *first, last = ast.parse(SOURCES[f"{part}-lines"]).body
    exec(compile(ast.Module(first, []), part, "exec"), data)
    displayed = str(eval(compile(ast.Expression(last.value), part, "eval"), data))
    assert re.search(r"\d", displayed)
    assert "nan" not in displayed.lower()


def test_lines_import_public_names_only():
    imports = [
        node
        for part in PARTS
        for node in ast.walk(ast.parse(SOURCES[f"{part}-lines"]))
        if isinstance(node, ast.ImportFrom)
    ]
    assert len(imports) >= len(PARTS)
    for node in imports:
        module = importlib.import_module(node.module)
        public = getattr(
            module,
            "__all__",
            [name for name in vars(module) if not name.startswith("_")],
        )
        assert {alias.name for alias in node.names} <= set(public)


def test_a_new_item_is_forecast_and_features_without_effect_are_seldom_significant():
    """In eight simulated tables of dishes, salt and fat have an effect, and the price
    does not."""
    SOURCES["import"] = SOURCES["features-lines"].splitlines()[0]
    effects = []
    ratios = []
    for seed in range(8):
        space = run(["import", "dishes-data", "dishes-model", "dishes-new"], seed)
        low, high = space["chef"].interval(0.95, space["steps"]).T
        effects.append([low[0] > 0, high[1] < 0, low[2] > 0 or high[2] < 0])
        tasted = space["chef"].standard_errors(Pairs(space["rows"], [[0, 1]]))
        ratios.append(space["chef"].standard_errors(space["new"]).min() / tasted[0])
        assert 0.5 < space["alpha"] < 100
    salt, fat, price = np.sum(effects, axis=0)
    assert salt == 8
    assert fat >= 6
    assert price <= 1
    assert min(ratios) > 1  # the errors of a dish without tastings are larger


def test_costs_that_were_not_measured_are_reported_as_such(monkeypatch):
    space = run(["costs-read"])
    displayed = []
    monkeypatch.setitem(space, "display", displayed.append)
    monkeypatch.setitem(space, "Markdown", str)
    table = {
        "situation": "x",
        "comparisons": [10**3, 10**5, 10**7],
        "seconds": [0.002, 150.0, 1e6],
    }
    table |= {
        "megabytes": [1, 3000, 1e6],
        "kind": ["measured", "extrapolated", "out of reach"],
    }
    space["costs"] = pd.DataFrame(table)
    space["cost"]("x")
    assert re.search(
        r"2\.0 milliseconds.* 1,000 .*at least 2\.5 minutes and 3 GB.* 100,000",
        displayed[0],
    )
    assert "days" not in displayed[0]  # times that are out of reach are not shown


@pytest.mark.parametrize(
    "part",
    [PARTS[0], *(pytest.param(part, marks=pytest.mark.nightly) for part in PARTS[1:])],
)
def test_costs_are_those_of_these_lines(part, guide_costs):
    assert list(guide_costs.SITUATIONS) == PARTS
    seconds, megabytes = guide_costs.timed(part, 500)
    assert seconds > 0
    assert 0 <= megabytes < 1000


def test_growth_is_extrapolated_from_the_last_two_sizes_and_at_least_tenfold(
    guide_costs,
):
    assert guide_costs.beyond([(1.0, 10.0), (2.0, 10.0), (40.0, 40.0)]) == (
        800.0,
        160.0,
    )
    assert guide_costs.beyond([(2.0, 0.0), (1.0, 100.0)]) == (10.0, 1000.0)
