"""rlscore 0.8.1 as a peer: its source does not build on current Pythons, but the part
in Python runs.

pip download --no-deps --no-binary :all: rlscore; tar xf rlscore-*.tar.gz     gives the folder
"""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["query_rankrls"]


class _Uncompiled:
    """Finds rlscore's compiled modules, empty: the closed form does not call them."""

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        private = name.startswith("rlscore.") and name.rpartition(".")[2].startswith(
            "_"
        )
        return ModuleSpec(name, self) if private else None  # pyright: ignore[reportArgumentType]

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def query_rankrls(folder: str) -> Any:
    """The class QueryRankRLS of the source in `folder`; its L is I - 11'/q within a
    query of q items."""
    sys.path.insert(0, folder)
    # without its __init__, which imports compiled learners
    learner = types.ModuleType("rlscore.learner")
    learner.__path__ = [str(Path(folder) / "rlscore" / "learner")]
    sys.modules["rlscore.learner"] = learner
    sys.modules["numpy.linalg.linalg"] = np.linalg
    for name, value in (("mat", np.asmatrix), ("float", float), ("int", int)):
        if not hasattr(np, name):
            setattr(np, name, value)
    if not hasattr(inspect, "getargspec"):
        inspect.getargspec = inspect.getfullargspec  # pyright: ignore[reportAttributeAccessIssue]
    sys.meta_path.append(_Uncompiled())  # pyright: ignore[reportArgumentType]
    return importlib.import_module("rlscore.learner.query_rankrls").QueryRankRLS
