"""How long a chapter is to its reader: words of prose, and the code that is not folded."""

import re
from dataclasses import dataclass

FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
_NOT_PROSE = (
    re.compile(r"^(`{3,}|:{3,})\{math\}.*?^\1", re.MULTILINE | re.DOTALL),
    re.compile(r"\$\$.*?\$\$|\$[^$]+\$", re.DOTALL),
    re.compile(r"^(`{3,}|:{3,}).*$|^:\w+:.*$|^\(\S+\)=$", re.MULTILINE),  # fences, options, targets
    re.compile(r"\{[a-z:]+\}(?=`)"),  # the name of a role; what it shows is a word
)


@dataclass(frozen=True)
class Size:
    words: int
    code_cells: int  # those that a reader sees, as the other two
    code_lines: int
    longest: int
    run: int  # of code cells, folded or not, without a sentence between


def prose_words(text: str) -> int:
    """Words in a text of MyST: a formula is none, a piece of code in a sentence is one."""
    for pattern in _NOT_PROSE:
        text = pattern.sub(" ", text)
    return len(re.findall(r"`[^`]+`|[^\W\d_](?:[\w'’-]*\w)?", text))


def chapter_size(cells: list[dict]) -> Size:
    words, lengths, run, runs = 0, [], 0, [0]
    for cell in cells:
        source, tags = "".join(cell["source"]), set(cell["metadata"].get("tags", []))
        if cell["cell_type"] == "markdown":
            words, run = words + prose_words(source), 0
            continue
        run += 1
        runs.append(run)
        if not tags & FOLDED:
            lengths.append(len(source.splitlines()))
    return Size(words, len(lengths), sum(lengths), max(lengths, default=0), max(runs))
