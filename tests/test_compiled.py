"""Compiled modules where no folder for numba's cache can be written."""

import linecache
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import preflearn
from preflearn import compiled
from preflearn.ground import gram

CODE = """
import numpy as np
import preflearn.path  # whose modules hold all compiled functions
from preflearn.ground.gram import DenseGram
print(DenseGram(np.eye(2)).times(np.array([2.0, 0.0])))
"""


def run(code, environment, folder=None):
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    assert run(CODE, environment, tmp_path) == "[2. 0.]\n"
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
    assert run(PLAIN, os.environ | {"NUMBA_DISABLE_JIT": "1"}) == "[0.5]\n"


STAMPS = """
from pathlib import Path
from preflearn import checks, compiled, pairs
from preflearn.ground import gram
for module in (gram, pairs):
    print(compiled._stamp(Path(module.__file__)))
"""


def stamps(folder):
    return run(STAMPS, os.environ | {"PYTHONPATH": str(folder)}, folder).split()


def test_compiled_code_is_of_the_contents_of_what_its_file_imports(tmp_path):
    """numba would keep a function whose own file stayed, though a function that it calls has changed."""
    package = tmp_path / "preflearn"
    shutil.copytree(Path(preflearn.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = stamps(tmp_path)
    for path in package.rglob("*.py"):
        os.utime(path, (1, 1))
    unrelated = package / "datasets" / "sushi.py"
    unrelated.write_text(unrelated.read_text("utf-8") + "more = 1\n", "utf-8")
    assert stamps(tmp_path) == before
    (package / "pairs.py").write_text((package / "pairs.py").read_text("utf-8") + "more = 1\n", "utf-8")
    between = stamps(tmp_path)
    assert [one == other for one, other in zip(between, before, strict=True)] == [True, False]
    indirect = package / "checks.py"  # which both import
    indirect.write_text(indirect.read_text("utf-8") + "more = 1\n", "utf-8")
    assert not set(stamps(tmp_path)) & {*between, *before}
    gram.combine(gram.fixed(np.eye(2)), np.arange(2), np.ones(2))
    assert gram.combine._cache._cache_file._source_stamp == compiled._stamp(Path(gram.__file__))


FILE = '''
"""Doc."""
def check(x):
    if x > 2:
        raise ValueError("too large" + f"{x} is 7")
@njit
def loop(x):
    """Adds."""
    if x < 0:
        raise ValueError("less than nothing")
    return x + 1
options = {"error_model": "numpy"}
WORDS = len("six words".split())
'''


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("def check", "# why\n\ndef check", True),
        ("Doc.", "Documentation.", True),
        ("Adds.", "Adds one.", True),
        ("too large", "far too large", True),
        ("{x} is 7", "{x!r} was 8", True),
        ("six words", "seven words", False),  # whose number a loop may take
        ("x > 2", "x > 3", False),
        ("x > 2", "x >= 2", False),
        ("x + 1", "x - 1", False),
        ("less than nothing", "less than none", False),  # which the compiled code says
        ("numpy", "python", False),
    ],
)
def test_only_what_is_compiled_counts(tmp_path, before, after, same):
    assert before in FILE
    stamps = []
    for name, text in (("one.py", FILE), ("other.py", FILE.replace(before, after))):
        (tmp_path / name).write_text(text)
        stamps.append(compiled._stamp(tmp_path / name))
    assert (stamps[0] == stamps[1]) == same


POINT = """
from typing import NamedTuple

class Point(NamedTuple):
    x: float
"""
LOOP = """
from preflearn.{} import Point
from preflearn.compiled import njit

@njit
def double(point):
    return 2 * point.x

print(double(Point(1.5)), sum(double.stats.cache_hits.values()))
"""


def test_a_module_that_is_no_longer_there_only_makes_the_cache_start_anew(tmp_path):
    """numba unpickles the types of old entries, which fails if their module was renamed."""
    package, printed = tmp_path / "preflearn", []
    shutil.copytree(Path(preflearn.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("before", "before", "after"):
        (package / "before.py").unlink(missing_ok=True)
        (package / f"{name}.py").write_text(POINT)
        (package / "loop.py").write_text(LOOP.format(name))
        command = [sys.executable, "-c", "import preflearn.loop"]
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        printed.append(done.stdout or done.stderr)
    assert printed == ["3.0 0\n", "3.0 1\n", "3.0 0\n"]


def test_a_law_that_is_written_in_a_cell_is_compiled():
    """Its file has no contents that could be read."""
    space = {"__name__": "__main__"}
    cell = "def double(x):\n    return 2.0 * x\n"
    name = "<ipython-input-2-0123456789ab>"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    exec(compile(cell, name, "exec"), space)
    assert compiled.njit(space["double"])(3.0) == 6.0
    assert compiled.pointer(space["double"], "float64(float64)")(3.0) == 6.0


LOOPS = """
from preflearn.compiled import njit, njit_part

@njit_part
def part(x):
    return 2 * x

@njit
def loop(x):
    return part(x) + 1
"""


def loops(folder, **environment):
    """A module of compiled functions in a copy of the package, and what runs code with it."""
    package = folder / "preflearn"
    shutil.copytree(Path(preflearn.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "loops.py").write_text(LOOPS)
    environment = (
        os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")} | environment
    )

    def run(code):
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done

    return package / "loops.py", run


def test_a_part_is_compiled_with_its_callers_and_is_plain_python_to_python(tmp_path):
    _, run = loops(tmp_path)
    code = "from preflearn.loops import loop, part; print(loop(3.0), part('ab'), len(part.part.signatures))"
    assert run(code).stdout == "7.0 abab 1\n"
    assert run(code).stdout == "7.0 abab 0\n"  # within what the cache had


def test_a_killed_process_leaves_no_older_code_under_a_new_name(tmp_path):
    """numba writes which file has the code before it writes that file."""
    module, run = loops(tmp_path)
    code = "from preflearn.loops import loop; print(loop(3.0))"
    assert run(code).stdout == "7.0\n"
    module.write_text(LOOPS.replace("x) + 1", "x) + 5"))
    killed = "from numba.core.caching import IndexDataCacheFile as file\nimport os\n"
    killed += "file._save_data = lambda *any: os._exit(0)\n"
    assert run(killed + code).stdout == ""
    assert run(code).stdout == "11.0\n"


WAITED = """
import time
from numba.core import event
from preflearn import compiled
from preflearn.loops import loop

class Slow(event.Listener):
    def on_start(self, event):
        time.sleep({})
    def on_end(self, event):
        pass

event.register("numba:compile", Slow())
loop(3.0)
"""


def test_a_word_is_said_once_where_compilation_takes_long_and_never_again(tmp_path):
    _, run = loops(tmp_path, PREFLEARN_QUIET="")
    again = WAITED + "loop(3)\n"
    assert (
        run(again.format(1.5)).stderr.count("preflearn compiles preflearn.loops for this machine, once") == 1
    )
    assert run(again.format(1.5)).stderr == ""  # all is there


def test_no_word_is_said_where_nobody_wants_it(tmp_path):
    _, run = loops(tmp_path, PREFLEARN_QUIET="1")
    assert run(WAITED.format(1.5)).stderr == ""
