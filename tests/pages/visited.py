"""Record pages that passed their visit, so that unchanged pages are not visited again.

A file `_build/visited/<page>.json` holds, as one JSON object:

- `digest`: of the page, its assets, the links that lead to it, and the visit itself
- `assets`: the files that the page loaded, relative to the folder of built pages
- `shape`: `height` and `first_picture` in pixels of a window 1400 wide (the latter
  is null for a page without a figure), `words`, `longest_paragraph` in words, and
  `bars`, the fraction of the height that claims and bars of folded code take
"""

from __future__ import annotations

import json
import os
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any


def _file_digest(path: Path) -> str:
    if not path.is_file():
        return "missing"
    status = path.stat()
    return _content_digest(path, status.st_mtime_ns, status.st_size)


@cache
def _content_digest(path: Path, modified: int, size: int) -> str:
    return sha256(path.read_bytes()).hexdigest()


class VisitedPages:
    """The pages of a built book that were visited and in which no problem was found.

    Parameters
    ----------
    html : Path
        Folder of built pages.
    folder : Path
        Folder of the records.
    visit : str
        Digest of the visit's code, of axe, and of the browser version.
    """

    def __init__(self, html: Path, folder: Path, visit: str) -> None:
        self.html = html
        self.folder = folder
        self.visit = visit

    def is_unchanged(self, name: str, anchors: list[str]) -> bool:
        """Return whether the page is the same as at its last visit that found no
        problems."""
        path = self._path(name)
        if not path.is_file():
            return False
        stored = json.loads(path.read_text("utf-8"))
        return stored["digest"] == self._digest(name, anchors, stored["assets"])

    def record(
        self,
        name: str,
        anchors: list[str],
        assets: list[str],
        shape: dict[str, Any],
        problems: list[str],
    ) -> None:
        """Store a visit that found no problems. Otherwise, delete the record of the
        page."""
        path = self._path(name)
        if problems:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        digest = self._digest(name, anchors, assets)
        content = {"digest": digest, "assets": assets, "shape": shape}
        # Replacing a file is atomic, so another worker never reads an incomplete
        # record.
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(content, indent=1), "utf-8")
        part.replace(path)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def _digest(self, name: str, anchors: list[str], assets: list[str]) -> str:
        files = sorted({name, *assets})
        digests = [_file_digest(self.html / file) for file in files]
        return sha256(
            json.dumps([self.visit, name, anchors, files, digests]).encode()
        ).hexdigest()
