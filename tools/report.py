"""Report code size, lengths of chapters and pages, and numbers in prose that no output
shows.

An asterisk marks a line with a value above the goals and limits in this file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from chapter_size import ChapterSize, chapter_size
from prose_numbers import unsupported_numbers
from tokens import tokens_by_folder

ROOT = Path(__file__).parents[1]
TOKEN_GOALS = {
    "src/preflearn": 125_000,
    "src/preflearn_book/runner + src/preflearn_book/studies": 50_000,
    "tests": 260_000,
    "benchmarks": 40_000,
}
CHAPTER_LIMITS = ChapterSize(
    words=3000, code_cells=20, code_lines=300, longest_cell=25, longest_run=2
)
# Heights are in pixels; "bars" is the fraction of the height that claims and folded
# code take.
PAGE_LIMITS = {
    "height": 15_000,
    "words": 5_000,
    "longest_paragraph": 120,
    "first_picture": 2_500,
    "bars": 0.08,
}


def main() -> None:
    """Print all parts of the report."""
    print_sizes()
    print_chapters()
    print_pages()
    print_prose_numbers()


def print_sizes() -> None:
    """Print the size of the code in tokens, next to the goal."""
    counts = tokens_by_folder(ROOT)
    print("Tokens of Python code, without comments and docstrings")
    for name, goal in TOKEN_GOALS.items():
        count = sum(counts[folder] for folder in name.split(" + "))
        print(f"{_mark(count > goal)} {name:32} {count:9,d}   goal {goal:9,d}")


def print_chapters() -> None:
    """Print the length of each chapter as its author writes it."""
    names = list(CHAPTER_LIMITS.__dataclass_fields__)
    print("\nChapters:", ", ".join(name.replace("_", " ") for name in names))
    for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb")):
        size = chapter_size(_cells(path))
        values = [getattr(size, name) for name in names]
        is_long = any(
            value > getattr(CHAPTER_LIMITS, name)
            for name, value in zip(names, values, strict=True)
        )
        print(f"{_mark(is_long)} {path.stem:32}", *(f"{value:6d}" for value in values))


def print_pages() -> None:
    """Print the shape of each built page, as the tests in a browser measured it."""
    print("\nBuilt pages:", ", ".join(name.replace("_", " ") for name in PAGE_LIMITS))
    folder = ROOT / "_build" / "visited"
    paths = sorted(folder.rglob("*.json"))
    if not paths:
        print("  (none measured; `make test` measures them)")
    for path in paths:
        shape = json.loads(path.read_text("utf-8"))["shape"]
        values = [shape.get(name) for name in PAGE_LIMITS]
        is_long = any(
            value is not None and value > limit
            for value, limit in zip(values, PAGE_LIMITS.values(), strict=True)
        )
        print(
            f"{_mark(is_long)} {path.relative_to(folder).with_suffix('').as_posix():40}",
            *(f"{value if value is not None else '-':>8}" for value in values),
        )


def print_prose_numbers() -> None:
    """Print the decimal numbers in prose that no output of the executed chapter shows."""
    print("\nDecimal numbers in prose that no output of the chapter shows")
    tables = [
        *(ROOT / "data" / "published").glob("*.csv"),
        *(ROOT / "benchmarks").glob("*.md"),
    ]
    texts = [path.read_text("utf-8") for path in tables]
    executed = sorted((ROOT / "_build" / "latest").glob("*.ipynb"))
    if not executed:
        print("  (no executed chapters; `make book` executes them)")
    for path in executed:
        for number, sentence in unsupported_numbers(_cells(path), texts):
            print(f"  {path.stem}: {number}: {sentence[:100]}")


def _cells(path: Path) -> Iterable[dict]:
    return json.loads(path.read_text("utf-8"))["cells"]


def _mark(is_beyond: bool) -> str:
    return "*" if is_beyond else " "


if __name__ == "__main__":
    main()
