import csv
import json
import os
import re
import shlex
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pandas as pd
import psutil
import pytest
import toy_project
from clusters import local_cluster
from optional import optional_import
from toy_project import ONE_CLAIM, run_here, wait_until, write_project

from preflearn_book.runner import records, tasks
from preflearn_book.runner.command import main
from preflearn_book.runner.dependencies import State
from preflearn_book.runner.project import Project
from preflearn_book.runner.sweep import planned, run_sweep, swept

POINT = """\
from preflearn_book.runner.claims import check
from preflearn_book.runner.records import record

assert seed != 2, "no luck"
check("P1-01", seed < 1, "At one point.", float(seed))
record("fit", {"loss": seed / 10, "n": n})"""


@pytest.fixture
def in_process(monkeypatch):
    """Run points in this process, without kernels."""
    monkeypatch.setattr(tasks, "execute", run_here)


def rows_of(table):
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


def statuses(outcomes):
    return [outcome.status for outcome in outcomes]


def test_the_size_of_a_grid_is_limited(tmp_path):
    chapter = write_project(tmp_path, first=POINT).chapter("first")
    with pytest.raises(ValueError, match="points is 1000000"):
        planned(chapter, {"seed": "0:1000", "n": "0:1000"})


# ---- Runs and tables


def test_a_sweep_lists_missing_data_sets(tmp_path, in_process, monkeypatch, capsys):
    monkeypatch.delenv("PREFLEARN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asks = (
        "from preflearn_book.runner.records import note_read\n"
        'if seed:\n    note_read("dataset sushi", None)'
    )
    monkeypatch.chdir(write_project(tmp_path / "book", "", first=asks).root)
    assert main(["sweep", "1", "-p", "seed", "0:2"]) == 0
    printed = capsys.readouterr().out
    assert "not available: sushi" in printed
    assert "preflearn data fetch sushi" in printed
    rows = rows_of(Path(printed.split("results: ")[1].strip()))
    assert [row["missing_data"] for row in rows] == ["", "sushi"]


def test_a_sweep_resumes_and_keeps_finished_points(tmp_path, capsys, in_process):
    project = write_project(tmp_path, ONE_CLAIM, first=POINT)
    table, outcomes = run_sweep(project, "first", {"seed": "0:3", "n": "10"}, jobs=2)
    assert statuses(outcomes) == ["done", "done", "failed"]
    rows = rows_of(table)
    assert [row["P1-01"] for row in rows] == ["holds", "fails", ""]
    assert [row["P1-01 value"] for row in rows] == ["0.0", "1.0", ""]
    assert [row["fit.loss"] for row in rows] == ["0.0", "0.1", ""]
    assert float(rows[1]["run_time_s"]) > 0
    assert "no luck" in rows[2]["error"]
    executed = {path: path.read_bytes() for path in table.parent.glob("*.ipynb")}
    assert len(executed) == 2

    # n = 10 is the default value
    _, outcomes = run_sweep(project, "first", {"seed": "0:3"}, jobs=2)
    assert statuses(outcomes) == ["unchanged", "unchanged", "failed"]
    assert capsys.readouterr().err.count("FAILED after") == 2
    assert all(path.read_bytes() == content for path, content in executed.items())

    damaged = table.parent / "quick.ipynb"
    damaged.write_bytes(b"")
    first = table.read_bytes()
    other, outcomes = run_sweep(project, "first", {"seed": "0,1"}, jobs=2)
    assert statuses(outcomes) == ["done", "unchanged"]
    assert str(damaged) in capsys.readouterr().err
    assert (table.read_bytes(), len(rows_of(other))) == (first, 2)


TABLES = """\
import time

from preflearn_book.runner.records import record

seconds = time.monotonic()
rows = [{"learner": name, "loss": (seed + 1) / k, "time_s": seconds} for k, name in enumerate("abc", 1)]
words = {"loss": "fraction of wrong forecasts"}
record("runs", pd.DataFrame(rows), keys=["learner"], timings=["time_s"], columns=words)
record("fit", {"best": 1 / 3}, columns={"best": "the best loss"})
if seed == 3:
    raise ValueError("no luck")"""


def write_tables(root):
    """Write a chapter in which the second cell gives the point, and the cell after it
    cannot run."""
    project = write_project(root, "", first="import pandas as pd\n\nlearners = 'abc'")
    source = json.loads((project.notebooks / "01_first.ipynb").read_text())
    new = nbformat.v4.new_code_cell
    source["cells"] += [
        new(TABLES, metadata={"tags": ["point"]}),
        new("raise ValueError('of the whole table')"),
    ]
    (project.notebooks / "01_first.ipynb").write_text(json.dumps(source))
    return project


def test_tables_of_several_rows_are_stacked_and_explained(tmp_path, in_process):
    project = write_tables(tmp_path)
    grid = {"seed": "2,0", "n": "5,6"}
    table, outcomes = run_sweep(project, "first", grid, jobs=2)
    assert statuses(outcomes) == ["done"] * 4
    long = table.with_suffix(".runs.csv")
    columns = table.with_suffix(".columns.csv")
    rows = rows_of(long)
    assert [(row["seed"], row["n"], row["learner"]) for row in rows[2:4]] == [
        ("2", "5", "c"),
        ("2", "6", "a"),
    ]
    assert [row["loss"] for row in rows[:3]] == ["3.0", "1.5", "1.0"]
    assert len(rows) == 12
    assert [row["fit.best"] for row in rows_of(table)] == [str(1 / 3)] * 4
    meanings = {(row["table"], row["column"]): row for row in rows_of(columns)}
    assert meanings["", "seed"]["meaning"] == "of all draws"
    assert meanings["", "fit.best"]["meaning"] == "the best loss"
    assert meanings["runs", "loss"]["meaning"] == "fraction of wrong forecasts"
    timings = {place for place, row in meanings.items() if row["timing"] == "True"}
    assert timings == {("", "run_time_s"), ("runs", "time_s")}
    serial, _ = run_sweep(project, "first", grid, jobs=1, output=tmp_path / "again")
    untimed = [
        [row | {"time_s": 0} for row in rows_of(path.with_suffix(".runs.csv"))]
        for path in (table, serial)
    ]
    assert untimed[0] == untimed[1]


def test_a_sweep_prints_its_numbers_and_the_verdicts_that_contradict(
    tmp_path, in_process, monkeypatch, capsys
):
    monkeypatch.chdir(write_project(tmp_path, ONE_CLAIM, first=POINT).root)
    assert main(["sweep", "first", "-p", "seed", "0,1,3"]) == 0
    printed = capsys.readouterr().out
    assert "fit.loss: 0.1 (0 to 0.3)" in printed
    assert re.search("P1-01 .* 2 points", printed)
    assert main(["sweep", "first", "-p", "seed", "0"]) == 0
    assert "all 1 agree" in capsys.readouterr().out


COLLIDES = """\
import pandas as pd
from preflearn_book.runner.records import record

record("runs", pd.DataFrame({"seed": [2**70, 8], "n": [5, 6], "who": ["a\\rb", "c"]}))"""


def test_a_recorded_column_with_the_name_of_a_parameter_is_renamed(
    tmp_path, in_process
):
    """A number beyond 64 bits and a text with a carriage return are kept, too."""
    project = write_project(tmp_path, "", first=COLLIDES)
    table, _ = run_sweep(project, "first", {"seed": "0:2", "n": "2"}, jobs=1)
    rows = rows_of(table.with_suffix(".runs.csv"))
    assert [*rows[0]] == ["seed", "n", "runs.seed", "runs.n", "who"]
    assert [[*row.values()] for row in rows[2:]] == [
        ["1", "2", str(2**70), "5", "a\rb"],
        ["1", "2", "8", "6", "c"],
    ]


def test_a_parameter_cannot_have_the_name_of_another_column(tmp_path, monkeypatch):
    monkeypatch.setattr(toy_project, "PARAMETERS", "profile = 'quick'\nerror = 1")
    with pytest.raises(ValueError, match="'error'"):
        run_sweep(
            write_project(tmp_path, "", first="print(error)"), "first", {"error": "1,2"}
        )


def test_a_point_with_other_versions_is_rejected(tmp_path, in_process, monkeypatch):
    """A worker of a cluster uses the packages of its own computer."""
    project = write_project(tmp_path, "", first="print(seed)")
    known = records.main_versions()
    with monkeypatch.context() as other:
        other.setattr(records, "main_versions", lambda: known | {"numpy": "0.1"})
        _, (outcome,) = run_sweep(project, "first", {"seed": "1"}, jobs=1)
    assert outcome.status == "failed"
    assert "numpy" in outcome.result.summary
    assert outcome.task.failed.exists()
    assert statuses(run_sweep(project, "first", {"seed": "1"}, jobs=1)[1]) == ["done"]
    assert not outcome.task.failed.exists()


def test_a_point_depends_on_the_cells_that_it_runs(tmp_path, in_process):
    project = write_tables(tmp_path)
    assert statuses(run_sweep(project, "first", {"seed": "0"})[1]) == ["done"]
    path = project.notebooks / "01_first.ipynb"
    path.write_text(
        path.read_text()
        .replace("of the whole table", "of all")
        .replace("# Title", "# Heading")
    )
    assert statuses(run_sweep(Project(tmp_path), "first", {"seed": "0"})[1]) == [
        "unchanged"
    ]
    path.write_text(path.read_text().replace("'abc'", "'abcd'"))
    assert statuses(run_sweep(Project(tmp_path), "first", {"seed": "0"})[1]) == ["done"]


def test_a_chapter_reads_the_table_of_a_sweep(tmp_path, in_process, monkeypatch):
    monkeypatch.setenv("PREFLEARN_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    project = write_tables(tmp_path)
    grid = {"seed": "0,1", "n": "5"}
    command = "preflearn sweep 01_first -p seed 0,1 -p n 5"
    with pytest.raises(FileNotFoundError, match=command):
        swept("first", "runs", grid)
    assert main(shlex.split(command)[1:]) == 0
    monkeypatch.setattr(records, "_READ", {})
    found = swept("first", "runs", grid)
    assert found.columns.tolist() == ["seed", "n", "learner", "loss", "time_s"]
    assert found["loss"].tolist() == [1, 1 / 2, 1 / 3, 2, 1, 2 / 3]
    assert len(records._READ) == 2
    in_other_order = {"n": "5", "seed": "0,1"}
    pd.testing.assert_frame_equal(swept("first", "runs", in_other_order), found)
    assert {name: State(project)[name] for name in records._READ} == records._READ
    path = tmp_path / "notebooks" / "01_first.ipynb"
    path.write_text(path.read_text().replace("1 / ", "1.0 / "))
    with pytest.raises(ValueError, match=command):
        swept("first", "runs", grid)
    run_sweep(Project(tmp_path), "first", {"seed": "1,3"})
    with pytest.raises(ValueError, match="failed"):
        swept("first", "runs", {"seed": "1,3"})


def test_an_unwritable_folder_raises_an_error_before_anything_runs(tmp_path):
    project = write_project(tmp_path, "", first=POINT)
    (tmp_path / "taken").write_text("a file")
    for output in (tmp_path / "taken", tmp_path / "taken" / "below"):
        with pytest.raises(OSError, match="taken"):
            run_sweep(project, "first", {"seed": "1"}, output=output)
    assert not project.build.exists()


# ---- Dask


def test_a_sweep_fails_if_the_scheduler_does_not_answer(tmp_path, monkeypatch, capsys):
    optional_import("distributed")
    monkeypatch.chdir(write_project(tmp_path, "", first=POINT).root)
    monkeypatch.setattr(tasks, "CONNECTION", 0.5)
    command = ["sweep", "first", "-p", "seed", "1", "--scheduler"]
    for address in ("tcp://127.0.0.1:1", "nowhere://x", ""):
        assert main([*command, address]) == 1
        assert repr(address) in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main([*command, "tcp://127.0.0.1:1"]) == 2
    assert "distributed" in capsys.readouterr().err


def test_a_sweep_on_a_dask_cluster(tmp_path, in_process):
    project = write_project(tmp_path, ONE_CLAIM, first=POINT)
    output = tmp_path / "results"
    with local_cluster(n_workers=1, processes=False) as dask_cluster:
        options = {"scheduler": dask_cluster.scheduler_address, "output": output}
        table, outcomes = run_sweep(project, "first", {"seed": "1,2"}, **options)
        assert statuses(outcomes) == ["done", "failed"]
        assert statuses(run_sweep(project, "first", {"seed": "1"}, **options)[1]) == [
            "unchanged"
        ]
    assert table.parent == output
    assert "no luck" in outcomes[1].result.summary
    assert outcomes[1].task.failed.exists()


WAITS = """\
import time
from pathlib import Path

from preflearn_book.runner.records import record

folder = Path("..").resolve()
(folder / f"begun-{seed}").touch()
while not (folder / "go").exists():
    time.sleep(0.05)
record("fit", {"loss": seed / 10, "n": n})"""


@pytest.mark.nightly
def test_a_worker_killed_under_dask_loses_no_point(tmp_path):
    """Dask runs a point again on another worker."""
    project = write_project(tmp_path, "", first=WAITS)
    begun = [tmp_path / f"begun-{seed}" for seed in (1, 2)]
    grid = {"seed": "1,2,3"}
    with (
        local_cluster({}, n_workers=2) as dask_cluster,
        ThreadPoolExecutor(1) as pool,
    ):
        swept = pool.submit(
            run_sweep, project, "first", grid, scheduler=dask_cluster.scheduler_address
        )
        wait_until(lambda: all(path.exists() for path in begun), swept.done)
        worker = psutil.Process(dask_cluster.workers[0].pid)
        kernels = worker.children(recursive=True)
        assert any("ipykernel" in " ".join(kernel.cmdline()) for kernel in kernels)
        os.kill(worker.pid, signal.SIGKILL)
        assert psutil.wait_procs(kernels, timeout=120)[1] == []
        (tmp_path / "go").touch()
        table, outcomes = swept.result()
    assert statuses(outcomes) == ["done"] * 3
    assert [row["fit.loss"] for row in rows_of(table)] == ["0.1", "0.2", "0.3"]


@pytest.mark.nightly
def test_finished_points_are_kept_when_the_scheduler_stops(tmp_path, monkeypatch):
    monkeypatch.setattr(tasks, "CONNECTION", 60)
    project = write_project(
        tmp_path, "", first=WAITS.replace("not (", "seed > 1 and not (")
    )
    settings = {"distributed.comm.timeouts.connect": "20s"}
    with (
        local_cluster(settings, n_workers=1, processes=False) as dask_cluster,
        ThreadPoolExecutor(1) as pool,
    ):
        where = {"scheduler": dask_cluster.scheduler_address}
        swept = pool.submit(run_sweep, project, "first", {"seed": "1:4"}, **where)
        wait_until((tmp_path / "begun-2").exists, swept.done)
        dask_cluster.sync(dask_cluster.scheduler.close)
        with pytest.raises(OSError, match="kept"):
            swept.result(timeout=300)
        (tmp_path / "go").touch()
    assert len(list((project.build / "sweeps" / "01_first").glob("*.ipynb"))) == 1
