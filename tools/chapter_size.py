"""Measure how long a chapter is for its reader: words of prose, and code that is not
folded."""

import re
from dataclasses import dataclass

FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
_NOT_PROSE = (
    re.compile(r"^(`{3,}|:{3,})\{math\}.*?^\1", re.MULTILINE | re.DOTALL),
    re.compile(r"\$\$.*?\$\$|\$[^$]+\$", re.DOTALL),
    # fences, options, targets
    re.compile(r"^(`{3,}|:{3,}).*$|^:\w+:.*$|^\(\S+\)=$", re.MULTILINE),
    re.compile(r"\{[a-z:]+\}(?=`)"),  # the name of a role; the text it shows counts
)


@dataclass(frozen=True)
class ChapterSize:
    """Length of a chapter.

    Attributes
    ----------
    words : int
        Number of words of prose.
    code_cells : int
        Number of code cells that are not folded.
    code_lines : int
        Number of lines in these cells.
    longest_cell : int
        Number of lines of the longest of these cells.
    longest_run : int
        Largest number of code cells, folded or not, without prose between them.
    """

    words: int
    code_cells: int
    code_lines: int
    longest_cell: int
    longest_run: int


def count_words(text: str) -> int:
    """Count the words of MyST text: formulas do not count, code within a sentence is
    one word."""
    for pattern in _NOT_PROSE:
        text = pattern.sub(" ", text)
    return len(re.findall(r"`[^`]+`|[^\W\d_](?:[\w'’-]*\w)?", text))


def chapter_size(cells: list[dict]) -> ChapterSize:
    """Measure the cells of a notebook."""
    words = 0
    lengths = []
    run = 0
    longest_run = 0
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            words += count_words(source)
            run = 0
            continue
        run += 1
        longest_run = max(longest_run, run)
        if FOLDED.isdisjoint(cell["metadata"].get("tags", [])):
            lengths.append(len(source.splitlines()))
    return ChapterSize(
        words, len(lengths), sum(lengths), max(lengths, default=0), longest_run
    )
