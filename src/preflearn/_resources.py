"""Where the text files that belong to the package lie: registry, ledger, published numbers."""

from __future__ import annotations

from pathlib import Path

__all__ = ["resource"]

_PACKAGE = Path(__file__).parent


def resource(relative: str) -> Path:
    """The path of a file of the project, such as "data/registry.csv" or "book/claims.yml".

    An installed wheel carries these files inside the package, a checkout at its root.

    Raises
    ------
    FileNotFoundError
        If neither place has the file.
    """
    for root in (_PACKAGE / "_files", _PACKAGE.parents[1]):
        if (path := root / relative).exists():
            return path
    raise FileNotFoundError(f"{relative} is missing from the installation of preflearn; install it again")
