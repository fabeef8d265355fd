"""Count lines of code by folder, without blank lines, docstrings and comments."""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def code_lines(source: str) -> int:
    """Lines of Python that hold code."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            docstrings.update(range(node.lineno, node.end_lineno + 1))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {
        line
        for token in tokens
        if token.type not in _SILENT
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - docstrings)


def by_folder() -> Counter[str]:
    """Lines of code of each folder of a package, and of the files on its ground."""
    counts: Counter[str] = Counter()
    for path in sorted(SOURCE.rglob("*.py")):
        package, *inner = path.relative_to(SOURCE).parts
        name = inner[0] if len(inner) > 1 else {"plots.py": "plots"}.get(inner[0], "ground")
        counts[name if package == "preflearn" else package] += code_lines(path.read_text("utf-8"))
    return counts


if __name__ == "__main__":
    for folder, count in (found := by_folder()).items():
        print(f"{count:6d}  {folder}")
    print(f"{found.total():6d}  in all")
