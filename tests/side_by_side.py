"""Pages that put another program and ours side by side: their code runs, and the numbers below it come out.

Blocks stand under *<the peer>*, *here* or *both*. A comment below a statement is what it gives: numbers to
the digits that are shown, words, or the beginning of an error or a warning. Each kind of block has its names
to itself. What two blocks beside each other give must be equal, except among the traps.
"""

import ast
import re
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

NUMBER = r"-?\d+(?:\.\d+)?"
WIDEST = 39  # characters that a telephone shows


class Page:
    """A page of the book, by the name of its file and the name that the peer has on it."""

    def __init__(self, file, peer):
        self.text = (Path(__file__).parents[1] / "book" / f"{file}.md").read_text("utf-8")
        form = rf"^\*({re.escape(peer)}|here|both)\*\n```python\n(.*?)^```$"
        found = re.finditer(form, self.text, re.MULTILINE | re.DOTALL)
        self.peer, self.blocks = peer, [(block[1], block[2], block.start()) for block in found]

    def run(self, kind):
        """What the blocks of a kind show, with those of both, by the place of the block."""
        names = {}
        return {start: run(block, names) for of, block, start in self.blocks if of in (kind, "both")}

    def check_form(self):
        """Every block of code is of a kind, imports what a user has, and fits a telephone."""
        assert self.text.count("```python\n") == len(self.blocks)
        assert not re.search(r"from (studies|bookrunner)", self.text)  # a user has the package alone
        assert max(len(line) for _, block, _ in self.blocks for line in block.splitlines()) <= WIDEST

    def check_same(self, ours, theirs, least, tolerance):
        """What two blocks beside each other give is equal, but among the traps; there are so many of them."""
        traps = self.text.index("## Traps")
        pairs = [
            (first[2], second[2])
            for first, second in pairwise(self.blocks)
            if (first[0], second[0]) == (self.peer, "here") and first[2] < traps
        ]
        compared = [(left, right) for left, right in pairs if theirs[left]]  # the others only prepare
        assert len(compared) >= least
        for left, right in compared:
            assert len(theirs[left]) <= len(ours[right])
            for value, other in zip(theirs[left], ours[right], strict=False):
                np.testing.assert_allclose(np.ravel(value), np.ravel(other), atol=tolerance, rtol=0)


def statements(block):
    """The statements of a block, each with the comment below it."""
    lines, body = block.splitlines(), ast.parse(block).body
    ends = [node.lineno - 1 for node in body[1:]] + [len(lines)]
    for node, end in zip(body, ends, strict=True):
        below = [line[2:] for line in lines[node.end_lineno : end] if line.startswith("# ")]
        yield node, " ".join(below)


def run(block, names):
    """Run a block; return the values of the lines whose values are shown."""
    values = []
    for node, shown in statements(block):
        if re.match(r"\w+(Error|Warning): ", shown):
            raises(node, shown, names)
        elif shown:
            assert isinstance(node, ast.Expr)
            value = eval(compile(ast.Expression(node.value), "page", "eval"), names)
            agrees(value, shown)
            values.append(value)
        else:
            exec(compile(ast.Module([node], []), "page", "exec"), names)
    return values


def raises(node, shown, names):
    kind, _, text = shown.partition(": ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BaseException) as caught:  # noqa: PT011  the page says which
            exec(compile(ast.Module([node], []), "page", "exec"), names)
    assert caught.type.__name__ == kind
    assert str(caught.value).startswith(text.removesuffix(" ..."))


def agrees(value, shown):
    """Whether a value is what the page shows, to the digits that it shows."""
    if not re.fullmatch(rf"{NUMBER}(, {NUMBER})*", shown):
        found = ", ".join(map(str, value if isinstance(value, list) else [value]))
        beginning = shown.removesuffix("...")
        assert found == shown or (beginning != shown and found.startswith(beginning))
        return
    texts = shown.split(", ")
    found = np.ravel(value)
    assert len(found) == len(texts)
    assert [f"{v:.{len(text.partition('.')[2])}f}" for v, text in zip(found, texts, strict=True)] == texts
