"""Atomic writes of files, a lock, and checks of the form of files that are read."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any


def file_name(text: str) -> str:
    """Replace characters that a file name cannot contain, and shorten to 80 characters."""
    return re.sub(r"[^A-Za-z0-9.=,+_-]+", "_", text)[:80]


def write_atomically(path: Path, content: str | bytes) -> Path:
    """Write a file atomically: readers see either the old file or the new one.

    The content is on the disk before the file gets its name, so a crash never leaves an
    empty file. Half of a surrogate pair, which UTF-8 cannot encode, is written as an
    escape sequence that JSON can read.

    Raises
    ------
    OSError
        If the file cannot be written; the message names it.
    """
    temporary = path.with_name(f".tmp-{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(_encoded(content))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise OSError(
            error.errno, f"can't write: {error.strerror}", str(path)
        ) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    return path


def write_if_changed(path: Path, content: str | bytes) -> None:
    """Write a file unless it already has this content, so that its time is the time of
    the last change."""
    if not path.exists() or path.read_bytes() != _encoded(content):
        write_atomically(path, content)


def _encoded(content: str | bytes) -> bytes:
    if isinstance(content, bytes):
        return content
    return content.encode(errors="backslashreplace")


def check_writable(folders: Iterable[Path]) -> None:
    """Raise OSError, naming the folder, unless files can be created in all of these
    folders."""
    for folder in folders:
        write_atomically(folder / ".writable", "").unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold a lock file during some work; the system releases the lock when the process
    ends for any reason.

    Raises
    ------
    BlockingIOError
        If another process holds the lock; the message says which one.
    OSError
        If the file cannot be written; the message names it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read(200).strip()
            text = f"{what} is already running: {holder} holds {path}; wait until it ends, or stop it"
            raise BlockingIOError(text) from None
        except (ImportError, OSError):
            pass  # the system or the file system does not support locks
        try:
            file.truncate(0)
            os.write(file.fileno(), f"process {os.getpid()}".encode())
        except OSError as error:  # a full disk
            raise OSError(
                error.errno, f"can't write: {error.strerror}", str(path)
            ) from None
        yield


def read_yaml(path: Path) -> object:
    """Parse a YAML file.

    Raises
    ------
    ValueError
        If the file is not valid YAML, is nested too deeply, or contains a key twice
        (PyYAML would keep the last one). The message is one line that names the file.
    """
    import yaml  # imported late: chapters and --help do not need it

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = Counter(
                key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)
            )
            for key, count in keys.items():
                if count > 1:
                    raise ValueError(f"{key!r} appears twice{node.start_mark}")
            return super().construct_mapping(node, deep)

    try:
        # The loader in C is faster, but crashes the process if the nesting is too deep.
        return yaml.load(path.read_text("utf-8"), Loader)
    except (
        yaml.YAMLError,
        ValueError,
        KeyError,
        AttributeError,
        RecursionError,
    ) as error:
        # The last ones are raised if a value does not match its tag, as in !!bool maybe
        # or !!timestamp soon.
        raise ValueError(
            f"{path.name} is not valid YAML: {' '.join(str(error).split())}"
        ) from None


def check_form(value: object, form: str, where: str) -> None:
    """Raise ValueError, naming the place, unless a value matches the schema `form` in
    forms.json."""
    from jsonschema.exceptions import best_match

    if error := best_match(_validator(form).iter_errors(value)):
        place = "".join(f"{part}: " for part in error.absolute_path)
        raise ValueError(f"{where}: {place}{error.message:.200}")


@cache
def _validator(form: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(forms()[form] | {"$defs": forms()["$defs"]})


@cache
def forms() -> dict[str, Any]:
    """Return the content of forms.json."""
    return json.loads(Path(__file__).with_name("forms.json").read_text("utf-8"))
