"""Files that are whole or absent: atomic writes, a lock, and the forms of what is read
back."""

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
    """Replace what a file name can't hold, and shorten a text to 80 characters."""
    return re.sub(r"[^A-Za-z0-9.=,+_-]+", "_", text)[:80]


def write_atomically(path: Path, content: str | bytes) -> Path:
    """Write a file as a whole: a reader sees the old file or the new one.

    The bytes are on the disk before the name is, so that a crash leaves no empty file.
    Half of a surrogate pair, which UTF-8 can't encode, is written as its escape, which
    JSON reads back.

    Raises
    ------
    OSError
        If it can't be written; the message names the file.
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
    """Write a file unless it holds that content, so that its time stays that of the
    last change."""
    if not path.exists() or path.read_bytes() != _encoded(content):
        write_atomically(path, content)


def _encoded(content: str | bytes) -> bytes:
    if isinstance(content, bytes):
        return content
    return content.encode(errors="backslashreplace")


def check_writable(folders: Iterable[Path]) -> None:
    """Raise OSError, naming the place, unless files can be made in each of these
    folders."""
    for folder in folders:
        write_atomically(folder / ".writable", "").unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file of a piece of work; the system lets go of it when the process
    dies, however it does.

    Raises
    ------
    BlockingIOError
        If another process holds it; the message says which.
    OSError
        If it can't be written; the message names the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            text = f"{what} is under way: {file.read(200).strip()} holds {path}; wait for it or end it"
            raise BlockingIOError(text) from None
        except (ImportError, OSError):
            pass  # a system or a file system without locks
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
        If it is not YAML, nested too deeply, or names a key twice, of which PyYAML
        keeps the last; the message is one line that names the file.
    """
    import yaml  # late, since chapters and the command's help come without

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = Counter(
                key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)
            )
            for key, count in keys.items():
                if count > 1:
                    raise ValueError(f"{key!r} is there twice{node.start_mark}")
            return super().construct_mapping(node, deep)

    try:
        # The loader in C is faster, and ends the process where the nesting is too deep
        # for its stack.
        return yaml.load(path.read_text("utf-8"), Loader)
    except (
        yaml.YAMLError,
        ValueError,
        KeyError,
        AttributeError,
        RecursionError,
    ) as error:
        # The last ones are raised if a tag does not fit its value: !!bool maybe,
        # !!timestamp soon.
        raise ValueError(
            f"{path.name} is not valid YAML: {' '.join(str(error).split())}"
        ) from None


def check_form(value: object, form: str, where: str) -> None:
    """Raise ValueError, naming the place, unless a value has the form of this name in
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
    """The content of forms.json."""
    return json.loads(Path(__file__).with_name("forms.json").read_text("utf-8"))
