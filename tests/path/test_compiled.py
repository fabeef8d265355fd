"""Compiled modules where no folder for numba's cache can be written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import preflearn
from preflearn import compiled
from preflearn.path import graph_events

CODE = """
import numpy as np
import preflearn.path  # whose modules hold all compiled functions
from preflearn.ground.gram import DenseGram
print(DenseGram(np.eye(2)).times(np.array([2.0, 0.0])))
"""


def test_import_and_run_without_any_folder_for_a_cache(tmp_path):
    # Files stand where the cache folders would be, which binds root too: permissions do not.
    package, file = tmp_path / "preflearn", tmp_path / "file"
    shutil.copytree(Path(preflearn.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in {module.parent for module in package.rglob("*.py")}:
        (folder / "__pycache__").write_text("")
    file.write_text("")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    environment |= {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"HOME": str(file / "home"), "XDG_CACHE_HOME": str(file / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2. 0.]\n"
    assert not list(tmp_path.rglob("*.nbi"))


def test_compiled_code_is_of_all_files_of_the_package(tmp_path, monkeypatch):
    """numba would keep a function whose own file stayed, though a function that it calls has changed."""
    assert graph_events.follow._cache._cache_file._source_stamp == compiled._stamp()
    monkeypatch.setattr(compiled, "__file__", str(tmp_path / "compiled.py"))
    (tmp_path / "other.py").write_text("x = 1\n")
    before = compiled._stamp.__wrapped__()
    (tmp_path / "other.py").write_text("x = 22\n")
    assert compiled._stamp.__wrapped__() != before
