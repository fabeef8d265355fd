"""Pages that show code of another program next to ours. The code runs and gives the
results on the page.

A block of code follows *<the other program>*, *here* or *both*. A comment below a
statement is its result: numbers with the digits that are shown, words, or the beginning
of an error or a warning. The blocks of one kind share their names. Two adjacent blocks
must give equal results, except in the section on traps.
"""

import ast
import re
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

NUMBER = r"-?\d+(?:\.\d+)?"
WIDEST = 39  # characters per line on a telephone


class Page:
    """A page of the book, by the name of its file and the name of the other program on
    it."""

    def __init__(self, file, program):
        self.text = (Path(__file__).parents[1] / "book" / f"{file}.md").read_text(
            "utf-8"
        )
        form = rf"^\*({re.escape(program)}|here|both)\*\n```python\n(.*?)^```$"
        found = re.finditer(form, self.text, re.MULTILINE | re.DOTALL)
        self.program = program
        self.blocks = [(block[1], block[2], block.start()) for block in found]

    def run(self, kind):
        """Run the blocks of a kind and those of both. Return their results by the
        position of the block."""
        names = {}
        return {
            start: run(block, names)
            for of, block, start in self.blocks
            if of in (kind, "both")
        }

    def check_form(self):
        """Check that each block has a kind, imports only what users have, and fits a
        telephone."""
        assert self.text.count("```python\n") == len(self.blocks)
        # users have only the package preflearn
        assert not re.search(r"from preflearn_book", self.text)
        assert (
            max(len(line) for _, block, _ in self.blocks for line in block.splitlines())
            <= WIDEST
        )

    def check_same(self, ours, theirs, least, tolerance):
        """Check that at least `least` pairs of blocks before the traps give equal
        results."""
        traps = self.text.index("## Traps")
        pairs = [
            (first[2], second[2])
            for first, second in pairwise(self.blocks)
            if (first[0], second[0]) == (self.program, "here") and first[2] < traps
        ]
        # other blocks only prepare data
        compared = [(left, right) for left, right in pairs if theirs[left]]
        assert len(compared) >= least
        for left, right in compared:
            assert len(theirs[left]) <= len(ours[right])
            for value, other in zip(theirs[left], ours[right], strict=False):
                np.testing.assert_allclose(
                    np.ravel(value), np.ravel(other), atol=tolerance, rtol=0
                )


def statements(block):
    """Yield the statements of a block, each with the comment below it."""
    lines = block.splitlines()
    body = ast.parse(block).body
    ends = [node.lineno - 1 for node in body[1:]] + [len(lines)]
    for node, end in zip(body, ends, strict=True):
        below = [
            line[2:] for line in lines[node.end_lineno : end] if line.startswith("# ")
        ]
        yield node, " ".join(below)


def run(block, names):
    """Run a block, and return the values of the statements whose results are shown."""
    values = []
    for node, printed in statements(block):
        if re.match(r"\w+(Error|Warning): ", printed):
            raises(node, printed, names)
        elif printed:
            assert isinstance(node, ast.Expr)
            value = eval(compile(ast.Expression(node.value), "page", "eval"), names)
            agrees(value, printed)
            values.append(value)
        else:
            exec(compile(ast.Module([node], []), "page", "exec"), names)
    return values


def raises(node, printed, names):
    kind, _, text = printed.partition(": ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BaseException) as caught:  # noqa: PT011  the page says which
            exec(compile(ast.Module([node], []), "page", "exec"), names)
    assert caught.type.__name__ == kind
    assert str(caught.value).startswith(text.removesuffix(" ..."))


def agrees(value, printed):
    """Check that a value equals the value on the page, to the digits that are shown."""
    if not re.fullmatch(rf"{NUMBER}(, {NUMBER})*", printed):
        found = ", ".join(map(str, value if isinstance(value, list) else [value]))
        beginning = printed.removesuffix("...")
        assert found == printed or (
            beginning != printed and found.startswith(beginning)
        )
        return
    texts = printed.split(", ")
    found = np.ravel(value)
    assert len(found) == len(texts)
    assert [
        f"{v:.{len(text.partition('.')[2])}f}"
        for v, text in zip(found, texts, strict=True)
    ] == texts
