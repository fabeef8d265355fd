"""Names of a file for display: escaped for Markdown and plots, and shortened."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>$&~|^@#])")


def escape_markdown(text: object) -> str:
    r"""Escape a text, so that Markdown shows it without formulas, links, or HTML.

    Examples
    --------
    >>> print(escape_markdown("$a_1$ <b>"))
    \$a\_1\$ \<b\>
    """
    escaped = _MARKDOWN.sub(r"\\\1", str(text))
    # Some programs turn bare addresses into links.
    escaped = escaped.replace("://", r":\/\/").replace("www.", r"www\.")
    return re.sub(r"\s*[\r\n]\s*", " ", escaped)


def code_span(text: object) -> str:
    """A text as inline code of Markdown; the text may contain backticks.

    Examples
    --------
    >>> code_span("a`b")
    '`` a`b ``'
    """
    line = re.sub(r"\s*[\r\n]\s*", " ", str(text))
    runs = re.findall("`+", line)
    if not runs:
        return f"`{line}`"
    fence = "`" * (max(map(len, runs)) + 1)
    return f"{fence} {line} {fence}"


def plot_text(text: object) -> str:
    r"""Escape a text, so that matplotlib draws no formula and shows it in legends.

    Examples
    --------
    >>> plot_text("$a$")
    '\\$a\\$'
    """
    escaped = str(text).replace("$", r"\$")
    if escaped.startswith("_"):  # matplotlib leaves such a label out of legends
        escaped = f"\u200a{escaped}"
    return escaped


def short_labels(names: Iterable[object], width: int = 24) -> list[str]:
    """Labels of at most `width` characters; different names get different labels.

    The middle of a long name is left out. If two long names then look the same, their
    labels are extended until they differ.

    Examples
    --------
    >>> short_labels(["model_2024_instruct_a", "model_2024_instruct_b", "oak"], 12)
    ['model_2…ct_a', 'model_2…ct_b', 'oak']
    """
    texts = [" ".join(str(name).split()) for name in names]
    distinct = dict.fromkeys(texts)
    labels = {text: _shortened(text, width) for text in distinct}
    longest = max(map(len, distinct), default=0)
    while width < longest:
        counts: dict[str, int] = {}
        for label in labels.values():
            counts[label] = counts.get(label, 0) + 1
        alike = [text for text, label in labels.items() if counts[label] > 1]
        if not alike:
            break
        width += 4
        labels |= {text: _shortened(text, width) for text in alike}
    return [labels[text] for text in texts]


def plot_labels(names: Iterable[object], width: int = 24) -> list[str]:
    """Short and distinct labels for the axes and legends of matplotlib."""
    return [plot_text(label) for label in short_labels(names, width)]


def _shortened(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    n_end = width // 3
    return f"{text[: width - n_end - 1]}…{text[len(text) - n_end :]}"
