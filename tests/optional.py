"""Skip tests whose optional packages or programs are missing; in CI, fail them instead."""

import importlib
import os
from types import ModuleType
from typing import NoReturn

import pytest


def skip_or_fail(reason: str) -> NoReturn:
    """Skip the current test or test module; if the variable CI is set, fail it."""
    if os.environ.get("CI"):
        pytest.fail(f"{reason}, but CI has to run this test", pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def optional_import(name: str) -> ModuleType:
    """Import an optional package; if it is missing, skip the test or fail it in CI."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        skip_or_fail(f"the package {name} is not installed")
