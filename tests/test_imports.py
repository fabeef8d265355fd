"""Imports do not need the book's tools, run in one direction, and give each public name
one path."""

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
MODULES = sorted(
    module.name for module in pkgutil.walk_packages([str(ROOT)], "preflearn.")
)
TOP_LEVEL = [name for name in MODULES if name.count(".") == 1]

# Only the extras [book], [test] and [cluster] install these, or they are programs of
# the book.
BOOK_TOOLS = (
    *("papermill", "ipykernel", "IPython", "jupyter_book", "sphinx", "matplotlib"),
    *("seaborn", "cvxpy", "yaml", "tqdm", "preflearn_book", "nbformat"),
)
# These take long to load, so they are imported where they are used.
LATE = (
    *(
        "sklearn.linear_model",
        "sklearn.kernel_approximation",
        "sklearn.svm",
        "sklearn.datasets",
    ),
    *("xarray", "pooch"),
)

# Allowed imports of each folder or module. Two methods use "path", and one uses an
# aggregation of "ranking". Other methods do not import each other.
BASE = {"core", "solvers", "pairs", "matches", "metrics"}
ALLOWED = {
    "core": {"pairs", "matches", "metrics", "solvers"},
    "solvers": {"core", "pairs"},
    "pairs": {"core"},
    "matches": {"core", "pairs"},
    "metrics": {"core", "pairs"},
    "margins": BASE,
    "svm": BASE | {"path"},
    "path": BASE,
    "pursuit": BASE,
    "dynamics": BASE,
    # Elo follows the gradient of a likelihood from dynamics
    "ratings": BASE | {"dynamics"},
    "analogy": BASE | {"path", "ranking"},
    "ranking": BASE,
    "datasets": {"core", "pairs", "metrics"},
    "plots": BASE,
}


def run(code):
    """Return what a program prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
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
    assert hidden == list(BOOK_TOOLS)  # otherwise this test would not detect anything
    assert color.startswith("#")


LOADED_LATE = f"""
import importlib, json, sys

found = {{}}
for name in {TOP_LEVEL}:
    importlib.import_module(name)
    for late in {LATE}:
        if late in sys.modules:
            found.setdefault(late, name)
from preflearn.core import compilation
print(json.dumps([found, compilation.function_digest.cache_info().misses]))
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


def module_name(path):
    """Return the name of a module below the package, such as "core.splits". For a
    package, it is the name of the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imported(path):
    """Return the modules of preflearn, and names in them, that a file imports
    anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {
            name.partition(".")[2] for name in names if name.startswith("preflearn.")
        }
        found |= {"preflearn_book"} & {name.partition(".")[0] for name in names}
    return found


def test_imports_run_one_way():
    imports = {module_name(path): imported(path) for path in ROOT.rglob("*.py")}
    assert {name.partition(".")[0] for name in imports} - {""} == set(ALLOWED)
    for name, found in imports.items():
        folder = name.partition(".")[0]
        folders = {other.partition(".")[0] for other in found}
        forbidden = folders - {folder} - ALLOWED.get(folder, set())
        assert not forbidden, f"{name} imports {sorted(forbidden)}"
    # The next line raises CycleError if modules of different folders import each other.
    TopologicalSorter(
        {name: found & imports.keys() - {name} for name, found in imports.items()}
    ).prepare()
