"""Count lines of code by folder, without blank lines, docstrings and comments."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def code_lines(source: str) -> int:
    """Lines of Python that hold code."""
    return len(working_lines(source))


def working_lines(source: str) -> list[str]:
    """Lines of a Python file without docstrings, comments and blank lines."""
    lines, said, text = source.splitlines(), set[int](), set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and node.lineno != node.end_lineno:
            text.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            said.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    words = (number for number, line in enumerate(lines, 1) if not line.strip() or line.lstrip()[:1] == "#")
    silent = said.union(set(words) - text)
    return [line for number, line in enumerate(lines, 1) if number not in silent]


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
