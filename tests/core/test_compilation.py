"""The cache of compiled functions: when an entry is valid, and running without a
cache."""

import inspect
import linecache
import os
import shutil
import subprocess
import sys

import numba
import pytest
from numba.core import caching, ccallback, event, sigutils
from numba.core.typing import templates

from preflearn.core import compilation, source_digest

LOOPS = """
from preflearn.{} import Point
from preflearn.core.compilation import njit, njit_inner

@njit_inner
def part(x):
    return 2 * x

@njit
def loop(point):
    return part(point.x) + {}
"""
POINTS = """
from typing import NamedTuple

class Point(NamedTuple):
    x: float
"""
PROGRAM = """
import time
from numba.core import event
from numba.core.caching import IndexDataCacheFile
from preflearn.loops import Point, loop, part

class Slow(event.Listener):
    depth = 0
    def on_start(self, event):
        time.sleep(0 if self.depth else {delay})
        self.depth += 1
    def on_end(self, event):
        self.depth -= 1

event.register("numba:compile", Slow())
{more}
print(loop(Point(3.0)), part("ab"), len(part.part.signatures), sum(loop.stats.cache_hits.values()))
loop(Point(3))
"""
KILL_BEFORE_SAVING = "import os; IndexDataCacheFile._save_data = lambda *_: os._exit(0)"


class Package:
    """A small package named preflearn, with our modules for compilation and a module of
    compiled functions."""

    def __init__(self, folder):
        self.folder = folder
        self.path = folder / "preflearn"
        core = self.path / "core"
        core.mkdir(parents=True)
        for package in (self.path, core):
            (package / "__init__.py").touch()
        for module in (compilation, source_digest):
            shutil.copy(module.__file__, core)

    def write(self, points, added):
        """Write the compiled functions. They use a type of the module `points`."""
        (self.path / f"{points}.py").write_text(POINTS)
        (self.path / "loops.py").write_text(LOOPS.format(points, added))

    def run(self, delay=0, more="", **environment):
        """Run the program in a separate process; return its stdout and stderr."""
        variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("NUMBA")
        }
        variables |= {
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PREFLEARN_QUIET": "1",
        }
        command = [sys.executable, "-c", PROGRAM.format(delay=delay, more=more)]
        options = {
            "env": variables | environment,
            "cwd": self.folder,
            "capture_output": True,
            "text": True,
        }
        done = subprocess.run(command, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip(), done.stderr


def test_compiled_code_is_kept_until_its_source_changes(tmp_path):
    package = Package(tmp_path)
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    package.write("before", 1)
    printed, said = package.run(delay=2, **cache, PREFLEARN_QUIET="")
    # `part` is compiled with its caller, and Python code calls it as plain Python
    assert printed == "7.0 abab 1 0"
    assert said.count("preflearn.loops") == 1  # a slow compilation is reported once
    assert package.run(**cache, PREFLEARN_QUIET="") == ("7.0 abab 0 1", "")

    # numba unpickles the types of old entries, which fails if their module was renamed.
    # It writes the index, which names the file with the code, before this file. A
    # process that is killed between these steps must not leave the older code under the
    # new name.
    (package.path / "before.py").unlink()
    package.write("after", 5)
    assert package.run(delay=2, more=KILL_BEFORE_SAVING, **cache) == ("", "")
    assert package.run(**cache) == ("11.0 abab 1 0", "")


def test_functions_are_compiled_without_any_folder_for_a_cache(tmp_path):
    """Files take the places of the cache folders. Unlike permissions, they also stop
    root."""
    package = Package(tmp_path)
    file = tmp_path / "file"
    package.write("points", 1)
    (package.path / "__pycache__").touch()
    file.touch()
    printed, _ = package.run(
        HOME=str(file / "home"), XDG_CACHE_HOME=str(file / "cache")
    )
    assert printed == "7.0 abab 1 0"
    assert not list(tmp_path.rglob("*.nbi"))


PLAIN = """
import numpy as np
import preflearn.analogy, preflearn.dynamics, preflearn.path, preflearn.pursuit, preflearn.ratings
from preflearn.pairs import Pairs
from preflearn.svm import SVMCompare
Pairs.from_scores(np.arange(4.0)[:, None], [0, 1, 1, 3], ties="keep")
pairs = Pairs([[0.0], [1.0], [4.0]], [[1, 0], [2, 1]])
print(SVMCompare(C=100, kernel="linear").fit(pairs, [0, 1]).coef_)
"""


def test_without_compilation_functions_stay_those_of_python():
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PLAIN], env=environment, capture_output=True, text=True
    )
    assert done.stdout == "[0.5]\n", done.stderr


def test_a_function_written_in_a_notebook_cell_is_compiled():
    """The file of a notebook cell cannot be read."""
    space = {"__name__": "__main__"}
    cell = "def double(x):\n    return 2.0 * x\n"
    name = "<ipython-input-2-0123456789ab>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    exec(compile(cell, name, "exec"), space)
    assert compilation.njit(space["double"])(3.0) == 6.0
    assert compilation.pointer(space["double"], "float64(float64)")(3.0) == 6.0


UNDOCUMENTED = {
    "the stamp of a cache entry": (
        caching.IndexDataCacheFile("folder", "name", "stamp"),
        ("_source_stamp", "_version", "_load_index"),
    ),
    "the file of a cache entry, and its name": (
        caching.FunctionCache(Package.run),
        ("_cache_file", "_impl", "cache_path"),
    ),
    "the name of a cache file": (caching.CompileResultCacheImpl, ("filename_base",)),
    "our cache for a compiled function": (
        numba.njit(lambda x: x) if not numba.config.DISABLE_JIT else None,
        ("_cache",),
    ),
    "our cache for a function pointer": (
        ccallback.CFunc(
            lambda x: x, sigutils.normalize_signature("float64(float64)"), {}, {}
        ),
        ("_cache", "address"),
    ),
    "functions that only compiled code calls": (templates, ("infer_global",)),
    "the notice of a slow compilation": (event, ("Listener", "register")),
}


@pytest.mark.parametrize("purpose", UNDOCUMENTED)
def test_numba_still_has_the_names_that_our_compilation_uses(purpose):
    """If this test fails, a new version of numba breaks what the message describes."""
    source, names = UNDOCUMENTED[purpose]
    missing = [name for name in names if not hasattr(source, name)]
    text = inspect.getsource(compilation)
    assert not missing, f"numba {numba.__version__} has no {missing}, for {purpose}"
    # the list contains only names that are used
    assert all(name in text for name in names)
