"""Count lines of code by folder, without blank lines, docstrings and comments."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bookrunner.files import working_lines

SOURCE = Path(__file__).parents[1] / "src"


def code_lines(source: str) -> int:
    """Lines of Python that hold code."""
    return len(working_lines(source.encode()))


def by_folder() -> Counter[str]:
    """Lines of code of each folder of a package, and of the files on its ground."""
    counts: Counter[str] = Counter()
    for path in sorted(SOURCE.rglob("*.py")):
        package, *inner = path.relative_to(SOURCE).parts
        name = inner[0] if len(inner) > 1 else "ground floor"
        counts[name if package == "preflearn" else package] += code_lines(path.read_text("utf-8"))
    return counts


if __name__ == "__main__":
    for folder, count in (found := by_folder()).items():
        print(f"{count:6d}  {folder}")
    print(f"{found.total():6d}  in all")
