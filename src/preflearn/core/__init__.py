"""Parts that all methods share: estimators, kernels, splits, and diagnosis."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from preflearn.core.diagnosis import Diagnosis, NotIdentifiedWarning, diagnose
    from preflearn.core.estimator import ComparisonEstimator, OnItems
    from preflearn.core.kernels import NotPositiveSemidefiniteError
    from preflearn.core.splits import DateSplit, ItemKFold, QueryKFold, check_leakage

__all__ = [
    "ComparisonEstimator",
    "DateSplit",
    "Diagnosis",
    "ItemKFold",
    "NotIdentifiedWarning",
    "NotPositiveSemidefiniteError",
    "OnItems",
    "QueryKFold",
    "check_leakage",
    "diagnose",
]

_MODULES = ("diagnosis", "estimator", "kernels", "splits")


def __getattr__(name: str) -> Any:
    """Import a public name at its first use.

    An import at the top would be circular, since `preflearn.pairs` imports the
    validation module of this package.
    """
    if name in __all__:
        for module in _MODULES:
            imported = import_module(f"preflearn.core.{module}")
            if hasattr(imported, name):
                return getattr(imported, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the module's names, including the public names that are imported lazily."""
    return sorted({*globals(), *__all__})
