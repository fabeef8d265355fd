import re
from pathlib import Path

import pytest
from docutils.core import publish_doctree

from bookrunner.ledger import VERDICTS
from bookrunner.theme import description

ROOT = Path(__file__).parents[2]

LONG = "One sentence. " * 40


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'A book & its "words". It has :math:`x` in it. See the\nnext page.',
            'A book & its "words". See the next page.',
        ),
        ("no sentence", ""),
        ("", ""),
        (LONG, f"{LONG[:199]} …"),
    ],
)
def test_a_page_says_what_it_is_about_in_sentences_without_formulas(text, said):
    assert description(publish_doctree(f"A title\n=======\n\n{text}")) == said


def luminance(colour):
    parts = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("theme", "grounds"), [("light", ["#ffffff", "#f3f4f5"]), ("dark", ["#121212", "#222832"])]
)
def test_each_verdict_has_a_colour_of_its_own_that_is_seen(theme, grounds):
    """On the grounds of pages and of boxes; the dark theme's rules stand within a block of their own."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    sheet = (ROOT / "book" / "_static" / "book.css").read_text()
    dark = re.search(r'^html\[data-theme="dark"\] \{\n(?:  \.claim-.*\n)+', sheet, re.MULTILINE)
    rules = dark[0] if theme == "dark" else sheet.replace(dark[0], "")
    found = {}
    for selectors, colour in re.findall(r"(\.claim-[^{}]*)\{ --claim-edge: (#\w{6}); \}", rules):
        found |= dict.fromkeys(re.findall(r"\.claim-([a-z-]+)", selectors), colour)
    verdicts = {verdict.replace(" ", "-") for verdict in VERDICTS}
    assert set(found) == verdicts | {"contradiction", "unchecked"}
    assert len({found[verdict] for verdict in verdicts}) == len(verdicts)
    for colour in found.values():
        assert min(contrast(colour, ground) for ground in grounds) >= 3, colour
