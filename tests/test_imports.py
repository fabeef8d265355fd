"""Imports need none of the book's tools, run one way, and give each public name one path."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import preflearn

ROOT = Path(preflearn.__file__).parent
MODULES = sorted(module.name for module in pkgutil.walk_packages([str(ROOT)], "preflearn."))
TOP_LEVEL = [name for name in MODULES if name.count(".") == 1]

# Only the extras [book], [test] and [cluster] install these, or they are the book's own programs.
BOOK_TOOLS = (
    *("papermill", "ipykernel", "IPython", "jupyter_book", "sphinx", "matplotlib"),
    *("seaborn", "cvxpy", "yaml", "tqdm", "bookrunner", "nbformat"),
)
# These take long to load, so they are imported where they are used.
LATE = (
    *("sklearn.linear_model", "sklearn.kernel_approximation", "sklearn.svm", "sklearn.datasets"),
    *("xarray", "pooch"),
)

# What each folder or module may import; "path" serves three methods, "ranking" aggregates for one; other
# methods do not import each other.
GROUND = {"checks", "compiled", "pairs", "matches", "counting", "metrics", "ground"}
ALLOWED = {
    "checks": set(),
    "source_digest": set(),
    "compiled": {"source_digest"},
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


def run(code):
    """What a program prints, as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


WITHOUT_TOOLS = f"""
import importlib, json, sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BOOK_TOOLS}:
            raise ImportError(name)

sys.meta_path.insert(0, Hidden())
for name in {MODULES}:
    importlib.import_module(name)
from preflearn.plots import style

hidden = []
for tool in {BOOK_TOOLS}:
    try:
        importlib.import_module(tool)
    except ImportError:
        hidden.append(tool)
print(json.dumps([hidden, style("tie")["color"]]))
"""


def test_every_module_imports_without_the_tools_of_the_book():
    hidden, color = run(WITHOUT_TOOLS)
    assert hidden == list(BOOK_TOOLS)  # else this test would see nothing
    assert color.startswith("#")


LOADED_LATE = f"""
import importlib, json, sys

found = {{}}
for name in {TOP_LEVEL}:
    importlib.import_module(name)
    for late in {LATE}:
        if late in sys.modules:
            found.setdefault(late, name)
from preflearn import compiled
print(json.dumps([found, compiled.function_digest.cache_info().misses]))
"""


def test_imports_load_nothing_that_only_a_call_needs_and_compile_nothing():
    loaded_by, digests = run(LOADED_LATE)
    assert loaded_by == {}
    assert digests == 0


def test_public_names_exist_and_have_one_import_path():
    paths = {}
    for module in map(importlib.import_module, TOP_LEVEL):
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name)
            paths.setdefault(name, []).append(module.__name__)
    assert len(paths) > 0
    assert {name: modules for name, modules in paths.items() if len(modules) > 1} == {}


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


def test_imports_run_one_way():
    folder_of = folders(ROOT)
    assert set(folder_of.values()) - {"__init__"} == set(ALLOWED)
    for path, folder in folder_of.items():
        forbidden = imported(path) - {folder} - ALLOWED.get(folder, set())
        assert not forbidden, f"{path.relative_to(ROOT)} imports {sorted(forbidden)}"
    # A CycleError, where two folders may import each other:
    TopologicalSorter({name: below - {name} for name, below in ALLOWED.items()}).prepare()
