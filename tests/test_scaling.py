"""The page on what is beyond one machine: its tables are whole, and its sentences are what they say."""

import importlib
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from chapter_size import chapter_size

ROOT = Path(__file__).parents[1]
CELLS = json.loads((ROOT / "notebooks" / "scaling.ipynb").read_text("utf-8"))["cells"]
SOURCES = {cell["id"]: "".join(cell["source"]) for cell in CELLS}
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]
TEXT = "\n\n".join("".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "markdown")


def table(name):
    return pd.read_csv(ROOT / "data" / f"{name}.csv", comment="#")


COSTS, SHARDS, MEMORY = map(table, ("scaling", "scaling_shards", "scaling_memory"))


def run(*names):
    """The names that these cells define."""
    space = {}
    for name in ("setup", *names):
        exec(SOURCES[name], space)
    return space


def test_the_page_is_laid_out_as_chapters_are():
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in CODE)
    size = chapter_size(CELLS)
    assert 1200 <= size.words <= 2500
    assert size.longest <= 25
    assert size.run <= 2
    assert max(len("".join(cell["source"]).splitlines()) for cell in CODE) <= 30
    for cell in CODE:
        if "panels(" in "".join(cell["source"]) and "mystnb" in cell["metadata"]:
            about = cell["metadata"]["mystnb"]
            assert f"{{numref}}`{about['figure']['name']}`" in TEXT
            assert min(len(about["figure"]["caption"]), len(about["image"]["alt"])) > 40
    assert sum("mystnb" in cell["metadata"] for cell in CODE) == 2
    pages = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {name.strip("./") for name in re.findall(r"\{doc\}`[^`<]+<([^>]+)>`", TEXT)} <= pages


def test_each_method_was_run_at_seven_sizes_of_growing_cost():
    for name, group in COSTS.groupby("method"):
        assert len(group) >= 7, name
        assert np.log10(group["comparisons"].max() / group["comparisons"].min()) >= 2, name
        assert (np.diff(group["comparisons"]) > 0).all()
        assert group["seconds"].iloc[-1] == group["seconds"].max() <= 60


def test_each_method_of_the_benchmark_is_in_the_table_and_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    scaling = importlib.import_module("scaling")
    assert list(scaling.METHODS) == COSTS["method"].unique().tolist()
    for method in scaling.METHODS.values():
        method.make(200)()


def test_a_known_slope_is_found_and_taken_further():
    space = run("line", "draw", "slopes-table", "walls-of", "words")
    size = 10.0 ** np.arange(2, 5.1, 0.5)
    slope, half = space["line"](size, 3e-7 * size**2)
    assert slope == pytest.approx(2)
    assert half < 1e-6
    group = pd.DataFrame({"comparisons": size, "seconds": 3e-7 * size**2})
    of = space["grows"](group, "seconds")
    assert space["slopes"](of) == pytest.approx((2, 2, 2))
    assert space["reached"](3e3, of) == pytest.approx([1e5] * 3)
    assert space["reached"](3e5, of) == pytest.approx([1e6] * 3)
    assert space["grown"](of) == pytest.approx(3e-7 * 1e18)
    assert space["slopes"](space["grows"](group.assign(seconds=size**0.5), "seconds")) == (1, 1, 1)
    bent = group.assign(seconds=size**2 + 1e-3 * size**3)
    b, low, high = space["slopes"](space["grows"](bent, "seconds"))
    assert low < b <= high
    assert b == pytest.approx(np.log((1e10 + 1e12) / (1e9 + 10**10.5)) / np.log(10**0.5))
    assert [space["one_digit"](x) for x in (3.4e7, 9.7e5, 1e10)] == ["3·10⁷", "1·10⁶", "1·10¹⁰"]
    words = [space["in_words"](x, space["TIMES"]) for x in (30, 7200, 1e3 * 86_400, 4e10)]
    assert words == ["30 seconds", "2 hours", "3 years", "over 1,000 years"]


def test_what_the_page_says_of_the_walls_is_so():
    space = run("line", "draw", "slopes-table", "walls-of", "words")
    steep, flat = space["steep"], space["flat"]
    assert len(flat) > len(COSTS["method"].unique()) / 2
    assert all(np.mean([space["TIME"][name][k] for k in (2, 4)]) > 1.7 for name in steep)
    for name in set(flat) - {"one step ahead"}:
        hours = space["reached"](3600, space["TIME"][name])[0]
        assert hours > space["reached"](24_000, space["MEMORY"][name])[0], name
        assert space["grown"](space["TIME"][name]) < 86_400, name


def test_shards_agree_with_one_machine_and_send_what_the_plan_says():
    assert SHARDS[["score_off", "std_off"]].to_numpy().max() < 1e-6
    assert (SHARDS["plan_bytes"] == 16 * SHARDS["sides"] * SHARDS["turns"]).all()
    assert (SHARDS["messages"] == 2 * SHARDS["turns"]).all()
    assert (SHARDS["sweeps"] == SHARDS["every"] * SHARDS["turns"]).all()
    header = (SHARDS["sent_bytes"] - SHARDS["plan_bytes"]) / SHARDS["messages"]
    assert header.between(0, 1000).all()
    each = SHARDS[SHARDS["every"] == 1]
    assert (each["sweeps"] == each["one_machine_sweeps"]).all()
    assert each["crossing_share"].is_monotonic_increasing
    stale = SHARDS[SHARDS["crossing_share"] == 0.1].sort_values("every")
    assert stale["sent_bytes"].is_monotonic_decreasing
    assert stale["sweeps"].is_monotonic_increasing


def test_a_hundred_million_matches_are_for_64_gb_and_not_for_24():
    peak = MEMORY.set_index("kind").loc["peak", "bytes_per_match"]
    assert 24e9 < 1e8 * peak < 64e9
    arrays = MEMORY[MEMORY["kind"] == "array"]["bytes_per_match"].sum()
    assert arrays <= peak <= 1.5 * arrays
    whole, parts = MEMORY[MEMORY["kind"] == "read"]["bytes_per_match"]
    assert parts < whole


def test_matches_that_are_streamed_are_those_of_the_frame():
    pytest.importorskip("pyarrow")
    space = run()
    exec(SOURCES["parameters"], space)
    exec(SOURCES["stream-lines"], space)
    assert abs(space["matches"].design - space["whole"].design).max() == 0
    assert space["matches"].features == space["whole"].features
    assert (space["y"] == space["y_whole"]).all()
