"""A local Sphinx extension: Jupyter Book stops with one sentence if the chapters are
missing.

Jupyter Book alone would warn of each missing page, and end with "build succeeded". This
module is the first in the list of `_config.yml` and imports only the standard library,
so it works before anything is installed.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def setup(app: Any) -> dict[str, bool]:
    """Stop Jupyter Book, or register nothing.

    Raises
    ------
    SystemExit
        With the sentence, and exit status 1. After any other error Jupyter Book prints
        a traceback.
    """
    if problem := what_is_missing(Path(app.srcdir)):
        raise SystemExit(problem)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def what_is_missing(folder: Path) -> str:
    """A sentence that says what to run before Jupyter Book can build a folder; "" if it
    can."""
    contents = folder / "_toc.yml"
    listed = contents.read_text("utf-8") if contents.is_file() else ""
    pages = re.findall(r"^ *- file: (chapters/\S+)$", listed, re.MULTILINE)
    if not pages:
        return (
            "The pages of this book are in the folder book: run `make book`, and later "
            "`jupyter-book build book --config _config.yml`."
        )
    absent = [page for page in pages if not any(folder.glob(f"{page}.*"))]
    if absent:
        return (
            f"{len(absent)} pages of this book, such as {absent[0]}, are made by executing the notebooks: "
            "run `make book` (or `preflearn build`) first."
        )
    if find_spec("preflearn_book") is None:
        return "The package is not installed: run `pip install '.[book]'` in this folder, or `make book`."
    return ""
