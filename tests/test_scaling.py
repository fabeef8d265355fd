"""The page on limits of one machine: its functions, its benchmark, and its recorded
tables."""

import importlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from optional import optional_import

ROOT = Path(__file__).parents[1]
CELLS = json.loads((ROOT / "notebooks" / "scaling.ipynb").read_text("utf-8"))["cells"]
SOURCES = {cell["id"]: "".join(cell["source"]) for cell in CELLS}


def table(name):
    return pd.read_csv(ROOT / "data" / f"{name}.csv", comment="#")


COSTS, SHARDS, MEMORY = map(table, ("scaling", "scaling_shards", "scaling_memory"))


def run(*names):
    """Return the namespace after these cells."""
    space = {"profile": "quick", "seed": 0}
    for name in ("setup", *names):
        exec(SOURCES[name], space)
    return space


@pytest.fixture
def scaling(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("scaling")


def test_each_method_was_run_at_growing_sizes():
    assert len(COSTS) > 0
    for _, group in COSTS.groupby("method"):
        assert len(group) >= 7
        assert group["comparisons"].max() >= 100 * group["comparisons"].min()
        assert (np.diff(group["comparisons"]) > 0).all()
        assert group["seconds"].iloc[-1] == group["seconds"].max()


METHODS = COSTS["method"].unique().tolist()


@pytest.mark.parametrize(
    "name",
    [
        METHODS[0],
        *(pytest.param(name, marks=pytest.mark.nightly) for name in METHODS[1:]),
    ],
)
def test_each_method_in_the_table_is_run_by_the_benchmark(name, scaling):
    assert list(scaling.METHODS) == METHODS
    scaling.METHODS[name].make(200)()


def test_a_known_slope_is_found_and_extrapolated():
    space = run("line", "draw", "slopes-table", "walls-of")
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
    assert space["slopes"](
        space["grows"](group.assign(seconds=size**0.5), "seconds")
    ) == (1, 1, 1)
    bent = group.assign(seconds=size**2 + 1e-3 * size**3)
    b, low, high = space["slopes"](space["grows"](bent, "seconds"))
    assert low < b <= high
    assert b == pytest.approx(
        np.log((1e10 + 1e12) / (1e9 + 10**10.5)) / np.log(10**0.5)
    )


def test_numbers_are_rounded_in_words():
    space = run("words")
    assert [space["one_digit"](x) for x in (3.4e7, 9.7e5, 1e10)] == [
        "3·10⁷",
        "1·10⁶",
        "1·10¹⁰",
    ]
    words = [space["in_words"](x, space["TIMES"]) for x in (30, 7200, 1e3 * 86_400)]
    assert words == ["30 seconds", "2 hours", "3 years"]


def test_shards_give_the_answer_of_one_machine_with_the_planned_messages():
    assert SHARDS[["score_off", "std_off"]].to_numpy().max() < 1e-6
    assert (SHARDS["plan_bytes"] == 16 * SHARDS["sides"] * SHARDS["turns"]).all()
    assert (SHARDS["messages"] == 2 * SHARDS["turns"]).all()
    assert (SHARDS["sweeps"] == SHARDS["every"] * SHARDS["turns"]).all()
    assert (SHARDS["sent_bytes"] >= SHARDS["plan_bytes"]).all()
    each = SHARDS[SHARDS["every"] == 1]
    assert (each["sweeps"] == each["one_machine_sweeps"]).all()


def test_the_peak_of_memory_holds_all_arrays():
    peak = MEMORY.set_index("kind").loc["peak", "bytes_per_match"]
    arrays = MEMORY[MEMORY["kind"] == "array"]["bytes_per_match"].sum()
    assert arrays <= peak <= 1.5 * arrays
    whole, parts = MEMORY[MEMORY["kind"] == "read"]["bytes_per_match"]
    assert parts < whole


def test_matches_read_in_parts_are_those_of_the_frame():
    optional_import("pyarrow")
    space = run("parameters", "stream-lines")
    assert abs(space["matches"].design - space["whole"].design).max() == 0
    assert space["matches"].features == space["whole"].features
    assert (space["y"] == space["y_whole"]).all()
