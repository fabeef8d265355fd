import csv
import io
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from distributed import LocalCluster
from toy_project import run_here, write_notebook, write_project

from bookrunner import tasks
from bookrunner.command import main
from bookrunner.sweep import grid_points, run_sweep

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


def test_a_worker_killed_under_dask_loses_no_point(tmp_path, monkeypatch):
    project = write_project(tmp_path, "", first=WAITS)
    begun, grid = [tmp_path / f"begun-{seed}" for seed in (1, 2)], {"seed": "1,2,3"}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, scheduler_port=0) as cluster,
        ThreadPoolExecutor(1) as pool,
    ):
        swept = pool.submit(run_sweep, project, "first", grid, scheduler=cluster.scheduler_address)
        deadline = time.monotonic() + 120
        while not all(path.exists() for path in begun):
            assert not swept.done(), swept.result()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.kill(cluster.workers[0].pid, signal.SIGKILL)
        (tmp_path / "go").touch()
        table, outcomes = swept.result()
    assert [outcome.status for outcome in outcomes] == ["done"] * 3
    monkeypatch.setattr(tasks, "execute", run_here)
    monkeypatch.chdir(project.notebooks)
    here, _ = run_sweep(project, "first", grid, output=tmp_path / "here")
    timed = [[row | {"run_time_s": ""} for row in rows_of(path)] for path in (table, here)]
    assert timed[0] == timed[1]
    assert here.name == table.name


def test_sweep_says_what_a_scheduler_needs(tmp_path, monkeypatch, capsys):
    project = write_project(tmp_path, LEDGER, first=POINT)
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(tasks, "CONNECTION", 0.5)
    for address in ("tcp://127.0.0.1:1", "nowhere://x"):
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
