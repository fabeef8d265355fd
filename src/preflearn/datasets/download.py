"""Download one registered file: not a byte more than registered, and no name before its hash is right."""

from __future__ import annotations

import hashlib
import io
import time
import warnings
from pathlib import Path
from tempfile import NamedTemporaryFile

from preflearn.datasets.registry import RegisteredFile

__all__ = ["download"]

_TIMEOUT = (5, 30)  # seconds to connect, and between two packets
_STALE = 60  # seconds; a file that is complete in memory is written in far less


class _Bounded(io.BytesIO):
    """Takes so many bytes, and raises OSError on the next."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def write(self, chunk, /) -> int:
        if self.tell() + len(chunk) > self.limit:
            raise OSError(f"stopped, since more than the registered {self.limit} bytes came")
        return super().write(chunk)


def download(entry: RegisteredFile, place: Path, progress: bool = False) -> None:
    """Download a file, with a second try; it gets its place when its hash is right, and else leaves nothing.

    Parameters
    ----------
    entry : RegisteredFile
        One whose hash is known.
    place : Path
    progress : bool
        Whether to draw a bar.

    Raises
    ------
    OSError, ValueError
        If the file can't be had or stored, is larger than registered, or has another hash.
    """
    try:
        content = _content(entry, progress)
    except (OSError, ValueError):
        content = _content(entry, progress)
    place.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{place.name}."
    for left in place.parent.glob(f"{prefix}*"):  # by a process that was killed while it wrote
        if time.time() - left.stat().st_mtime > _STALE:
            left.unlink(missing_ok=True)
    with NamedTemporaryFile(dir=place.parent, prefix=prefix, delete=False) as stream:
        try:
            stream.write(content)
            stream.close()
            Path(stream.name).replace(place)
        finally:
            Path(stream.name).unlink(missing_ok=True)


def _content(entry: RegisteredFile, progress: bool) -> bytes:
    """What the address of a file answers; in memory, so that a killed download leaves nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # late, since it loads tqdm, which warns inside notebooks
        import pooch
    stream = _Bounded(entry.limit)
    pooch.HTTPDownloader(progressbar=progress, timeout=_TIMEOUT)(entry.url, stream, None)
    found = hashlib.sha256(stream.getvalue()).hexdigest()
    if found != entry.sha256:
        raise ValueError(f"SHA-256 is {found}, expected {entry.sha256}")
    return stream.getvalue()
