"""The house: it opens without the book's tools, each public name has one door, and imports run one way."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import preflearn

ROOT = Path(preflearn.__file__).parent
MODULES = sorted(module.name for module in pkgutil.walk_packages([str(ROOT)], "preflearn."))
FACES = [
    name for name in MODULES if name.count(".") == 1 and hasattr(importlib.import_module(name), "__all__")
]

# Only the extras [book], [test] and [cluster] bring these, or they are our own machinery of the book.
ABSENT = (
    "papermill",
    "ipykernel",
    "IPython",
    "jupyter_book",
    "sphinx",
    "matplotlib",
    "seaborn",
    "cvxpy",
    "yaml",
    "tqdm",
    "bookrunner",
    "nbformat",
)
BARE = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ImportError(name + " is absent")

sys.meta_path.insert(0, Absent())
{body}
"""

# What each folder or module may stand on; "path" serves three methods, and "ranking" aggregates for one; else
# methods know nothing of each other.
GROUND = {"checks", "compiled", "pairs", "matches", "counting", "metrics", "ground"}
ALLOWED = {
    "checks": set(),
    "compiled": set(),
    "pairs": {"checks", "compiled"},
    "matches": {"checks", "compiled", "pairs"},
    "counting": {"checks", "compiled", "pairs"},
    "metrics": {"checks", "pairs", "counting"},
    "ground": GROUND,
    "margins": GROUND,
    "svm": GROUND | {"path"},
    "path": GROUND,
    "pursuit": GROUND,
    "dynamics": GROUND,
    "ratings": GROUND | {"dynamics"},  # Elo follows the gradient of a likelihood of dynamics
    "analogy": GROUND | {"path", "ranking"},
    "ranking": GROUND,
    "datasets": {"checks", "pairs", "metrics"},
    "plots": GROUND,
}


def run_bare(body):
    code = BARE.format(absent=ABSENT, body=body)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_every_module_opens_without_the_tools_of_the_book():
    done = run_bare(f"for name in {MODULES!r}: importlib.import_module(name)")
    assert done.returncode == 0, done.stderr


def test_the_tools_are_absent_in_that_test():
    """Else the test above would not see what it looks for."""
    body = """
for tool in {absent!r}:
    try:
        importlib.import_module(tool)
    except ImportError as error:
        print(error)
"""
    done = run_bare(body.format(absent=ABSENT))
    assert done.stdout.splitlines() == [f"{tool} is absent" for tool in ABSENT]


def test_styles_and_colours_need_no_matplotlib():
    done = run_bare("from preflearn.plots import COLOURS, style; print(style('tie')['color'], len(COLOURS))")
    assert done.stdout == "#767676 9\n", done.stderr


@pytest.mark.parametrize("face", FACES)
def test_public_names_exist(face):
    module = importlib.import_module(face)
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
    assert len(set(module.__all__)) == len(module.__all__)


def test_a_public_name_has_one_door():
    doors = {}
    for face in FACES:
        for name in importlib.import_module(face).__all__:
            doors.setdefault(name, []).append(face)
    assert {name: faces for name, faces in doors.items() if len(faces) > 1} == {}


def folders(package):
    """The files of the package by their top folder or module."""
    return {path: path.relative_to(package).parts[0].removesuffix(".py") for path in package.rglob("*.py")}


def imported(path):
    """Top folders or modules of preflearn that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("preflearn.")}
        found |= {"bookrunner"} & {name.partition(".")[0] for name in names}
    return found


@pytest.mark.parametrize("folder", sorted(set(folders(ROOT).values()) - {"__init__"}))
def test_imports_run_one_way(folder):
    assert folder in ALLOWED, f"say in ALLOWED what {folder} stands on"
    for path, owner in folders(ROOT).items():
        if owner == folder:
            arrows = imported(path) - {folder} - ALLOWED[folder]
            assert not arrows, f"{path.relative_to(ROOT)} imports {sorted(arrows)}"


def test_imports_make_no_circle():
    TopologicalSorter({name: below - {name} for name, below in ALLOWED.items()}).prepare()  # or CycleError


# What takes long to load, beside scikit-learn's base, NumPy, SciPy, pandas and numba, without which no face
# opens: it is loaded where it is used.
LATE = (
    "sklearn.linear_model",
    "sklearn.kernel_approximation",
    "sklearn.svm",
    "sklearn.datasets",
    "xarray",
    "pooch",
)


@pytest.mark.parametrize("face", FACES)
def test_an_import_loads_nothing_that_only_a_call_needs(face):
    code = f"import sys, {face}; print([name for name in {LATE!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_an_import_compiles_nothing_and_reads_no_source(tmp_path):
    code = "import preflearn.path, preflearn.dynamics, preflearn.analogy as last\n"
    code += "from preflearn import compiled; print(compiled._stamp.cache_info().misses)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "0\n", done.stderr
