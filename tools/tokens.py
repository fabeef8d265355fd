"""Count the Python tokens of each part of the project, without comments and docstrings.

Tokens measure size better than lines do: packing code onto fewer lines does not change
them.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = (
    "src/preflearn",
    "src/preflearn_book/runner",
    "src/preflearn_book/studies",
    "tests",
    "benchmarks",
    "tools",
)
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def count_tokens(source: str) -> int:
    """Return the number of tokens in Python source, without layout, comments and
    docstrings."""
    docstrings = _docstring_positions(source)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sum(
        token.type not in _LAYOUT and token.start not in docstrings for token in tokens
    )


def _docstring_positions(source: str) -> set[tuple[int, int]]:
    """Return where the docstrings start, as (line, column)."""
    positions = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(
            getattr(node.value, "value", None), str
        ):
            positions.add((node.lineno, node.col_offset))
    return positions


def tokens_by_folder(root: Path = ROOT) -> Counter[str]:
    """Return the number of tokens in each folder of the project."""
    counts: Counter[str] = Counter()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            counts[folder] += count_tokens(path.read_text("utf-8"))
    return counts


if __name__ == "__main__":
    counts = tokens_by_folder()
    for folder, count in counts.items():
        print(f"{count:9,d}  {folder}")
    print(f"{counts.total():9,d}  in all")
