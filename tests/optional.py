"""What a test needs but a developer's machine may lack: there it skips, in CI it fails."""

import importlib
import os
from types import ModuleType

import pytest


def unavailable(reason: str) -> None:
    """Skip the test, or the module being imported; fail instead when the variable CI is set."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}, but CI has to run this test", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def optional_import(name: str) -> ModuleType:
    """Import an optional package, or call `unavailable`."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        unavailable(f"the package {name} is not installed")
        raise
