"""Find decimal numbers in the prose of a chapter that none of its outputs shows.

Exercises and their solutions are left out. A number that is found is not necessarily
wrong: it may come from a paper, from a formula, or from another page.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_NUMBER = re.compile(r"(?<![\w.,/-])\d+\.\d+(?![\w.]*\d)")
_SHOWN = re.compile(r"(?<![\w.])(\d+(?:,\d{3})*)(?:\.(\d+))?(?![\w.]*\d)")
_NUMBER_WITH_ERROR = re.compile(r"\$([\d.]+) \\pm ([\d.]+)\$")
_SKIPPED = re.compile(  # formulas, exercises, code, section numbers
    r"^(`{3,}|:{3,})\{(?:math|solution|exercise)\}.*?^\1|\$\$.*?\$\$|\$[^$]+\$|`[^`\n]*`"
    r"|\b(?:[Ss]ections?|Lemma) [\d.]+",
    re.MULTILINE | re.DOTALL,
)
_MAX_OUTPUT = 100_000  # characters; longer outputs are data of explorers


class Text(NamedTuple):
    """A piece of text and the number of the section that contains it."""

    section: int
    text: str


class Shown(NamedTuple):
    """An output: its section, its word stems, and its numbers with all roundings."""

    section: int
    stems: set[str]
    numbers: set[str]


def unsupported_numbers(
    cells: Iterable[dict], tables: Iterable[str] = ()
) -> list[tuple[str, str]]:
    """List the numbers in prose that no output supports, each with its sentence.

    An output supports a number if it shows that number, possibly rounded or as a
    percentage, and is in the same section or shares two words with the sentence. All
    outputs support the opening of a chapter. All outputs and the given `tables` support
    the rows of Markdown tables.
    """
    prose, outputs = _read(cells)
    digests = [
        Shown(output.section, _word_stems(output.text), _roundings(output.text))
        for output in outputs
    ]
    in_tables = set()
    for table in tables:
        in_tables |= _roundings(table)
    unsupported = []
    for sentence in prose:
        supported = _supported(sentence, digests, in_tables)
        for number in _NUMBER.findall(sentence.text):
            if number not in supported:
                unsupported.append((number, sentence.text.strip()))
    return unsupported


def _read(cells: Iterable[dict]) -> tuple[list[Text], list[Text]]:
    """Return the sentences of a notebook and its textual outputs."""
    prose = []
    outputs = []
    section = 0
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            if re.search(r"^## ", source, re.MULTILINE):
                section += 1
            prose += [Text(section, sentence) for sentence in _sentences(source)]
        outputs += [Text(section, text) for text in _output_texts(cell)]
    return prose, outputs


def _sentences(source: str) -> list[str]:
    source = _NUMBER_WITH_ERROR.sub(r"\1 ± \2", source)
    return re.split(r"\.\s|\n", _SKIPPED.sub(" ", source))


def _output_texts(cell: dict) -> Iterator[str]:
    for output in cell.get("outputs", []):
        texts = [
            text
            for mime, text in output.get("data", {}).items()
            if mime.startswith("text/")
        ]
        for text in [*texts, output.get("text", "")]:
            whole = "".join(text)
            if len(whole) < _MAX_OUTPUT:
                yield re.sub(r"<[^>]*>", " ", whole)


def _word_stems(text: str) -> set[str]:
    return {word[:6].lower() for word in re.findall(r"[^\W\d_]{4,}", text)}


def _roundings(text: str) -> set[str]:
    """Return the numbers in a text with all or fewer decimals.

    Percentages of them are included, and thousandths of those with one decimal.
    """
    numbers = set()
    for whole, decimals in _SHOWN.findall(text):
        value = float(f"{whole.replace(',', '')}.{decimals or 0}")
        digits = len(decimals)
        numbers |= {f"{value:.{k}f}" for k in range(digits + 1)}
        numbers |= {f"{100 * value:.{k}f}" for k in range(digits - 1)}
        if digits == 1:
            numbers.add(f"{value / 1000:.3f}")
    return numbers


def _supported(sentence: Text, outputs: list[Shown], in_tables: set[str]) -> set[str]:
    is_table_row = sentence.text.startswith("|")
    stems = _word_stems(sentence.text)
    numbers = set(in_tables) if is_table_row else set()
    for output in outputs:
        is_near = (
            sentence.section in (0, output.section) or len(output.stems & stems) > 1
        )
        if is_table_row or is_near:
            numbers |= output.numbers
    return numbers
