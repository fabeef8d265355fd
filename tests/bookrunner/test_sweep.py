import csv
import io
import json
import os
import re
import shlex
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import nbformat
import pandas as pd
import psutil
import pytest
import toy_project
from distributed import LocalCluster
from toy_project import run_here, write_notebook, write_project

from bookrunner import records, tasks
from bookrunner.command import main
from bookrunner.keys import State
from bookrunner.parameters import grid_values
from bookrunner.project import Project
from bookrunner.sweep import grid_points, planned, run_sweep, swept

POINT = """\
from bookrunner.ledger import check
from bookrunner.records import record

assert seed != 2, "no luck"
check("P1-01", seed < 1, "At one point.", float(seed))
record("fit", {"loss": seed / 10, "n": n})"""

LEDGER = "- {id: P1-01, where: x, statement: x, chapter: 01_first, kind: formula, verdict: holds}\n"


def test_a_grid_has_its_limit():
    with pytest.raises(ValueError, match=r"1,000,000,000 points; expected at most 100,000"):
        grid_points(dict.fromkeys("abc", range(1000)))
    with pytest.raises(ValueError, match=r"of the grid is '1(,000){9}'; expected less than 2\*\*63"):
        grid_points(dict.fromkeys("abc", range(10**9)), sample=3)


def rows_of(table):
    return list(csv.DictReader(io.StringIO(table.read_text())))


def test_sweep_resumes_and_keeps_what_worked(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(tmp_path, LEDGER, first=POINT)
    table, outcomes = run_sweep(project, "first", {"seed": "0:3", "n": "10"}, jobs=2)
    assert [outcome.status for outcome in outcomes] == ["done", "done", "failed"]
    rows = rows_of(table)
    assert [row["P1-01"] for row in rows] == ["holds", "fails", ""]
    assert [row["P1-01 value"] for row in rows] == ["0.0", "1.0", ""]
    assert [row["fit.loss"] for row in rows] == ["0.0", "0.1", ""]
    assert float(rows[1]["run_time_s"]) > 0
    assert rows[2]["error"].startswith("AssertionError: no luck in cell 3")
    executed = {path: path.read_bytes() for path in table.parent.glob("*.ipynb")}
    assert len(executed) == 2

    _, again = run_sweep(project, "first", {"seed": "0:3", "n": "10"}, jobs=2)
    assert [outcome.status for outcome in again] == ["unchanged", "unchanged", "failed"]
    assert all(path.read_bytes() == content for path, content in executed.items())
    assert [row["status"] for row in rows_of(table)] == ["done", "done", "failed"]

    damaged = table.parent / "quick.ipynb"
    damaged.write_bytes(b"")
    first = table.read_bytes()
    other, outcomes = run_sweep(project, "first", {"seed": "0,1"}, jobs=2)
    assert [outcome.status for outcome in outcomes] == ["done", "unchanged"]
    assert f"{damaged} can't be read and counts as missing" in capsys.readouterr().err
    assert other != table
    assert table.read_bytes() == first
    assert len(rows_of(other)) == 2


TABLES = """\
import time

from bookrunner.records import record

seconds = time.monotonic()
rows = [{"learner": name, "loss": (seed + 1) / k, "time_s": seconds} for k, name in enumerate("abc", 1)]
words = {"loss": "share of wrong forecasts"}
record("runs", pd.DataFrame(rows), keys=["learner"], timings=["time_s"], columns=words)
record("fit", {"best": 1 / 3}, columns={"best": "the best loss"})
if seed == 3:
    raise ValueError("no luck")"""


def write_tables(root):
    """A chapter whose point is its second cell; what comes after it can't run."""
    project = write_project(root, LEDGER, first="import pandas as pd\n\nlearners = 'abc'")
    source = json.loads((project.notebooks / "01_first.ipynb").read_text())
    new = nbformat.v4.new_code_cell
    source["cells"] += [
        new(TABLES, metadata={"tags": ["point"]}),
        new("raise ValueError('of the whole table')"),
    ]
    (project.notebooks / "01_first.ipynb").write_text(json.dumps(source))
    return project


def test_tables_of_several_rows_are_stacked_and_explained(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_tables(tmp_path)
    grid = {"seed": "2,0", "n": [5, 6]}
    table, outcomes = run_sweep(project, "first", grid, jobs=2)
    assert [outcome.status for outcome in outcomes] == ["done"] * 4
    long = table.with_suffix(".runs.csv")
    rows = rows_of(long)
    assert [(row["seed"], row["n"], row["learner"]) for row in rows[:4]] == [
        ("2", "5", "a"),
        ("2", "5", "b"),
        ("2", "5", "c"),
        ("2", "6", "a"),
    ]
    assert [row["loss"] for row in rows[:3]] == ["3.0", "1.5", "1.0"]
    assert len(rows) == 12
    assert [row["fit.best"] for row in rows_of(table)] == [str(1 / 3)] * 4
    meanings = {(row["table"], row["column"]): row for row in rows_of(table.with_suffix(".columns.csv"))}
    assert meanings["", "seed"]["meaning"] == "of all draws"
    assert meanings["", "fit.best"]["meaning"] == "the best loss"
    assert meanings["runs", "loss"]["meaning"] == "share of wrong forecasts"
    assert meanings["runs", "learner"]["meaning"] == "learner, of the recorded table runs"
    assert {place for place, row in meanings.items() if row["timing"] == "True"} == {
        ("", "run_time_s"),
        ("runs", "time_s"),
    }
    for path in (table, long, table.with_suffix(".columns.csv")):
        frame = pd.read_parquet(path.with_suffix(".parquet"))
        pd.testing.assert_frame_equal(frame, pd.read_csv(path), check_dtype=False)

    # However a sweep is run, what is no time is the same.
    again, _ = run_sweep(project, "first", grid, jobs=1, output=tmp_path / "again")
    assert [r | {"time_s": 0} for r in rows_of(again.with_suffix(".runs.csv"))] == [
        r | {"time_s": 0} for r in rows
    ]


COLLIDES = """\
import pandas as pd
from bookrunner.records import record

record("runs", pd.DataFrame({"seed": [2**70, 8], "n": [5, 6], "who": ["a\\rb", "c"]}))"""


def test_a_recorded_column_hides_no_parameter(tmp_path, monkeypatch):
    """Nor does a number beyond 64 bits, or a text with a carriage return, keep the tables away."""
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(tmp_path, "", first=COLLIDES)
    table, _ = run_sweep(project, "first", [{"seed": 0}, {"seed": 1, "n": 2}], jobs=1)
    names = ["seed", "n", "runs.seed", "runs.n", "who"]
    for frame in (
        pd.read_csv(table.with_suffix(".runs.csv"))[names],
        pd.read_parquet(table.with_suffix(".runs.parquet"))[names],
    ):
        rows = frame.astype({"runs.seed": str}).to_numpy().tolist()
        assert rows[2:] == [[1, 2, str(2**70), 5, "a\rb"], [1, 2, "8", 6, "c"]]
        assert frame["seed"].tolist() == [0, 0, 1, 1]
    meanings = {row["column"]: row["meaning"] for row in rows_of(table.with_suffix(".columns.csv"))}
    assert meanings["seed"] == "of all draws"
    assert meanings["runs.seed"] == "seed, of the recorded table runs"


def test_names_of_our_columns_are_no_parameters(tmp_path, monkeypatch):
    monkeypatch.setattr(toy_project, "PARAMETERS", "profile = 'quick'\nk = error = 1")
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(tmp_path, "", first="print(k)")
    with pytest.raises(
        ValueError, match=r"to sweep is \['error'\]; expected none of \['status', 'run_time_s'"
    ):
        run_sweep(project, "first", {"error": "1,2"})
    monkeypatch.setattr(toy_project, "PARAMETERS", "profile = 'quick'\nk = m = 1  # both")
    project = write_project(tmp_path / "second", "", first="print(m)")
    table, _ = run_sweep(project, "first", {"m": "1,2"}, jobs=1)
    assert rows_of(table.with_suffix(".columns.csv"))[0]["meaning"] == ""  # none is known of the second name


def test_a_point_that_names_a_default_is_run_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(tmp_path, "", first="print(seed)")
    _, outcomes = run_sweep(project, "first", [{"seed": 1}, {"seed": 1, "n": 10}], jobs=1)
    assert [outcome.status for outcome in outcomes] == ["done", "done"]
    assert capsys.readouterr().err.count("done in") == 1


def test_a_point_that_ran_with_other_versions_is_no_result(tmp_path, monkeypatch):
    """A worker of a cluster has what its machine has."""
    monkeypatch.setattr(tasks, "execute", run_here)
    known = records.main_versions()
    monkeypatch.setattr(records, "main_versions", lambda: known | {"numpy": "0.1"})
    project = write_project(tmp_path, "", first="print(seed)")
    _, (outcome,) = run_sweep(project, "first", {"seed": "1"}, jobs=1)
    assert outcome.status == "failed"
    assert outcome.result.summary == f"numpy where it ran is '0.1'; expected {known['numpy']}"
    assert outcome.task.failed.exists()
    monkeypatch.undo()
    monkeypatch.setattr(tasks, "execute", run_here)
    assert [one.status for one in run_sweep(project, "first", {"seed": "1"}, jobs=1)[1]] == ["done"]
    assert not outcome.task.failed.exists()


def test_a_point_depends_on_the_cells_that_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_tables(tmp_path)
    assert run_sweep(project, "first", {"seed": "0"})[1][0].status == "done"
    path = project.notebooks / "01_first.ipynb"
    path.write_text(path.read_text().replace("of the whole table", "of all").replace("# Title", "# Heading"))
    assert run_sweep(Project(tmp_path), "first", {"seed": "0"})[1][0].status == "unchanged"
    path.write_text(path.read_text().replace("'abc'", "'abcd'"))
    assert run_sweep(Project(tmp_path), "first", {"seed": "0"})[1][0].status == "done"


def test_a_chapter_reads_what_was_swept(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    monkeypatch.setenv("PREFLEARN_ROOT", str(tmp_path))
    project, grid = write_tables(tmp_path), {"seed": [0, 1], "n": "5"}
    command = "preflearn sweep 01_first -p seed 0,1 -p n 5"
    with pytest.raises(FileNotFoundError, match=f"no _build/sweeps/01_first/results-seed-n-.*: {command}$"):
        swept("first", "runs", grid)
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)[1:]) == 0
    monkeypatch.setattr(records, "_READ", {})
    found = swept("first", "runs", grid)
    assert found.columns.tolist() == ["seed", "n", "learner", "loss", "time_s"]
    assert found["loss"].tolist() == [1, 1 / 2, 1 / 3, 2, 1, 2 / 3]
    assert len(records._READ) == 2
    assert all(name.startswith("table _build/sweeps/") and read for name, read in records._READ.items())
    assert {name: State(project)[name] for name in records._READ} == records._READ
    path = tmp_path / "notebooks" / "01_first.ipynb"
    source = path.read_text()
    path.write_text(source.replace("1 / ", "1.0 / "))
    with pytest.raises(ValueError, match=rf"since _build.* is \['point 01_first'\].*; again: {command}"):
        swept("first", "runs", grid)
    path.write_text(source)
    with pytest.raises(FileNotFoundError, match=r"no _build.*none.csv"):
        swept("first", "none", grid)
    run_sweep(project, "first", {"seed": "1,3"})
    with pytest.raises(
        ValueError, match=r"points that failed in .* is 1; expected none; again: preflearn sweep"
    ):
        swept("first", "runs", {"seed": "1,3"})


def test_a_sample_is_part_of_the_grid_and_the_same_again(tmp_path, monkeypatch):
    chapter = write_project(tmp_path, LEDGER, first=POINT).chapter("first")
    grid = {"seed": "0:100", "n": "1:5"}
    points, name = planned(chapter, grid, 30, 1)
    whole = planned(chapter, grid)[0]
    places = [whole.index(point) for point in points]
    assert places == sorted(set(places))
    assert len(places) == 30
    assert planned(chapter, grid, 30, 1) == (points, name)
    assert planned(chapter, grid, 30, 2)[0] != points
    assert planned(chapter, grid, 400)[0] == whole
    assert name != planned(chapter, grid)[1]
    with pytest.raises(ValueError, match="to draw is 401; expected at most the 400 of the grid"):
        planned(chapter, grid, 401)


def test_ratios_of_a_range_are_equal():
    values = grid_values("gamma", "0.01~10", 1.0)
    assert (values[0], values[500], values[-1]) == (0.01, 0.316228, 10.0)
    assert len(values) == 1001
    close = grid_values("gamma", "1~1.0001", 1.0)
    assert close == [round(1 + k / 1e5, 5) for k in range(11)]
    wide = grid_values("gamma", "1e-300~1e300", 1.0)
    assert (wide[0], wide[500], wide[-1], len(wide)) == (1e-300, 1.0, 1e300, 1001)
    for text in ("0~1", "2~1", "~1"):
        with pytest.raises(ValueError, match="gamma is"):
            grid_values("gamma", text, 1.0)


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("{seed: [1, 2], n: '3:5'}", [(1, 3), (1, 4), (2, 3), (2, 4)]),
        ("[{seed: 1, n: 2}, {n: 7, seed: '3'}]", [(1, 2), (3, 7)]),
    ],
)
def test_a_sweep_from_a_file(tmp_path, monkeypatch, capsys, text, points):
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(tmp_path, LEDGER, first="print(seed)")
    monkeypatch.chdir(project.root)
    (tmp_path / "sweep.yml").write_text(text)
    assert main(["sweep", "1", "--file", "sweep.yml"]) == 0
    said = capsys.readouterr()
    table = Path(said.out.split("results: ")[1].strip())
    assert [(int(row["seed"]), int(row["n"])) for row in rows_of(table)] == points
    assert f"(1 of {len(points)}, about " in said.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 1:20", "chapter 01_first: seed is 80; expected a list, or a text such as '0:20' or '1,2,5'"),
        ("seed: [1.5]", "chapter 01_first: seed is '1.5'; expected one like 0"),
        ("seed: [true]", "chapter 01_first: seed is 'True'; expected one like 0"),
        ("seed: [1, '1']", "chapter 01_first: seed: \"[1, '1']\" holds a value twice"),
        ("sed: [1]", "chapter 01_first has no parameter 'sed'"),
        ("[{seed: 1}, {sed: 2}]", "chapter 01_first has no parameter 'sed'"),
        ("[{seed: 1}, 2]", "a point is 2; expected parameters with their values"),
        ("[{seed: 1}, {seed: '1'}]", "the list of points is "),
        ("seed", "a sweep needs at least one parameter"),
        ("", "a sweep needs at least one parameter"),
        ("a: b: c", "sweep.yml is not valid YAML"),
        ("seed: [1]\nseed: [2]", "sweep.yml is not valid YAML: 'seed' is there twice"),
        ("!!python/object/apply:os.getcwd []", "sweep.yml is not valid YAML"),
    ],
)
def test_a_wrong_file_is_one_clean_line(tmp_path, monkeypatch, capsys, text, message):
    monkeypatch.chdir(write_project(tmp_path, LEDGER, first=POINT).root)
    (tmp_path / "sweep.yml").write_text(text)
    assert main(["sweep", "1", "--file", "sweep.yml"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"preflearn: error: {message}")
    assert said.count("\n") == 1


def test_sweep_refuses_unknown_names_before_it_runs(tmp_path):
    project = write_project(tmp_path, LEDGER)
    write_notebook(project.notebooks / "01_first.ipynb", "1")
    with pytest.raises(ValueError, match="no parameter 'sed'"):
        run_sweep(project, "first", {"sed": "1"})
    with pytest.raises(ValueError, match="seed is '010'; expected one like 0"):
        run_sweep(project, "first", {"seed": "1,010"})
    with pytest.raises(ValueError, match="no chapter 'second'"):
        run_sweep(project, "second", {"seed": "1"})
    assert not project.build.exists()


def test_sweep_on_a_dask_cluster(tmp_path):
    project = write_project(tmp_path, LEDGER, first=POINT)
    output = tmp_path / "results"
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, scheduler_port=0
    ) as cluster:
        address = cluster.scheduler_address
        grid = {"seed": "1,2"}
        table, outcomes = run_sweep(project, "first", grid, scheduler=address, output=output)
        assert [outcome.status for outcome in outcomes] == ["done", "failed"]
        _, again = run_sweep(project, "first", {"seed": "1"}, scheduler=address, output=output)
    assert [outcome.status for outcome in again] == ["unchanged"]
    assert table.parent == output
    assert "no luck" in outcomes[1].result.summary
    assert outcomes[1].task.failed.exists()


WAITS = """\
import time
from pathlib import Path

from bookrunner.records import record

folder = Path("..").resolve()
(folder / f"begun-{seed}").touch()
while not (folder / "go").exists():
    time.sleep(0.05)
record("fit", {"loss": seed / 10, "n": n})"""


def begun_by(paths, swept):
    deadline = time.monotonic() + 120
    while not all(path.exists() for path in paths):
        assert not swept.done(), swept.result()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_worker_killed_under_dask_loses_no_point(tmp_path, monkeypatch, capsys):
    """As if it were the last of those that Dask lets a point lose before it gives it up."""
    project = write_project(tmp_path, "", first=WAITS)
    begun, grid = [tmp_path / f"begun-{seed}" for seed in (1, 2)], {"seed": "1,2,3"}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, scheduler_port=0) as cluster,
        ThreadPoolExecutor(1) as pool,
    ):
        swept = pool.submit(run_sweep, project, "first", grid, scheduler=cluster.scheduler_address)
        begun_by(begun, swept)
        kernels = psutil.Process(cluster.workers[0].pid).children(recursive=True)
        assert any("ipykernel" in " ".join(kernel.cmdline()) for kernel in kernels)
        os.kill(cluster.workers[0].pid, signal.SIGKILL)
        assert psutil.wait_procs(kernels, timeout=30)[1] == []
        (tmp_path / "go").touch()
        table, outcomes = swept.result()
    assert [outcome.status for outcome in outcomes] == ["done"] * 3
    assert re.search(
        r"seed=[12]: its workers were lost; submitted again \(1 of 20 times\)", capsys.readouterr().err
    )
    monkeypatch.setattr(tasks, "execute", run_here)
    monkeypatch.chdir(project.notebooks)
    here, _ = run_sweep(project, "first", grid, output=tmp_path / "here")
    timed = [[row | {"run_time_s": ""} for row in rows_of(path)] for path in (table, here)]
    assert timed[0] == timed[1]
    assert here.name == table.name


def test_a_scheduler_that_stops_is_said_and_what_was_finished_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "CONNECTION", 3)
    project = write_project(tmp_path, "", first=WAITS.replace("not (", "seed > 1 and not ("))
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "2s"}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, scheduler_port=0
        ) as cluster,
        ThreadPoolExecutor(1) as pool,
    ):
        where = {"scheduler": cluster.scheduler_address}
        swept = pool.submit(run_sweep, project, "first", {"seed": "1:4"}, **where)
        begun_by([tmp_path / "begun-2"], swept)
        cluster.sync(cluster.scheduler.close)
        with pytest.raises(OSError, match="the Dask scheduler stopped; what was finished is kept"):
            swept.result(timeout=60)
        (tmp_path / "go").touch()
    assert len(list((project.build / "sweeps" / "01_first").glob("*.ipynb"))) == 1


def test_sweep_says_what_a_scheduler_needs(tmp_path, monkeypatch, capsys):
    project = write_project(tmp_path, LEDGER, first=POINT)
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(tasks, "CONNECTION", 0.5)
    for address in ("tcp://127.0.0.1:1", "nowhere://x", ""):
        assert main(["sweep", "first", "-p", "seed", "1", "--scheduler", address]) == 1
        said = f"preflearn: error: no Dask scheduler answers at {address!r}; expected the address that"
        assert capsys.readouterr().err.startswith(said)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["sweep", "first", "-p", "seed", "1", "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert "distributed is missing; install" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    project = write_project(tmp_path, LEDGER, first=POINT)
    (tmp_path / "taken").write_text("a file")
    for output in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(OSError, match=r"taken"):
            run_sweep(project, "first", {"seed": "1"}, output=output)
    assert not project.build.exists()
