import re
from pathlib import Path

import pytest
from docutils.core import publish_doctree
from pages.builds import contents

from preflearn_book.runner.claims import VERDICTS
from preflearn_book.runner.files import read_yaml
from preflearn_book.runner.records import for_both_themes
from preflearn_book.runner.render import published
from preflearn_book.runner.theme import description, minutes, pictured, unpack

ROOT = Path(__file__).parents[2]
DESCRIPTIONS = read_yaml(ROOT / "book" / "descriptions.yml")


@pytest.mark.parametrize("page", contents())
def test_each_page_of_the_contents_has_a_different_description(page):
    """Search engines show up to 200 characters, without formulas."""
    found = description(page, DESCRIPTIONS)
    assert re.fullmatch(r"[A-Z][^$\\`<>]{40,198}[.?]", found)
    assert found not in {
        description(other, DESCRIPTIONS) for other in contents() if other != page
    }


def test_an_appendix_is_described_by_the_first_sentence_of_its_chapter():
    descriptions = {"chapters/01_first": "Is it so? It is."}
    assert description("chapters/01_first_more", descriptions).endswith(". Is it so?")
    assert (
        description("chapters/02_second_more", descriptions)
        == description("search", descriptions)
        == ""
    )


@pytest.mark.parametrize(
    ("repository", "address"),
    [
        ("https://github.com/Owner/name", "https://owner.github.io/name/"),
        ("https://github.com/owner/a.name.git/", "https://owner.github.io/a.name/"),
        ("https://example.org/owner/name", ""),
        ("", ""),
    ],
)
def test_the_address_of_the_pages_follows_from_a_github_repository(repository, address):
    assert published(repository) == address


@pytest.mark.parametrize(("words", "time"), [(4, 1), (1_000, 8), (2_500, 20)])
def test_reading_time_counts_sentences_but_not_code(words, time):
    prose = "word word\n" * (words // 2)
    code = "code " * 900
    text = f"A title\n=======\n\n{prose}\n::\n\n    {code}\n"
    assert minutes(publish_doctree(text)) == time


def luminance(color):
    parts = (int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))
    linear = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return sum(
        weight * part
        for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    )


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(
    ("theme", "backgrounds"),
    [("light", ["#ffffff", "#f3f4f5"]), ("dark", ["#121212", "#222832"])],
)
def test_each_verdict_has_a_different_color_with_enough_contrast(theme, backgrounds):
    """The rules of the dark theme are in a separate block."""
    sheet = (ROOT / "book" / "_static" / "book.css").read_text()
    dark = re.search(
        r'^html\[data-theme="dark"\] \{\n(?:  \.claim-.*\n)+', sheet, re.MULTILINE
    )
    rules = dark[0] if theme == "dark" else sheet.replace(dark[0], "")
    found = {}
    for selectors, color in re.findall(
        r"(\.claim-[^{}]*)\{ --claim-edge: (#\w{6}); \}", rules
    ):
        found |= dict.fromkeys(re.findall(r"\.claim-([a-z-]+)", selectors), color)
    verdicts = {verdict.replace(" ", "-") for verdict in VERDICTS}
    assert set(found) == verdicts | {"contradiction", "unchecked"}
    assert len({found[verdict] for verdict in verdicts}) == len(verdicts)
    for color in found.values():
        assert min(contrast(color, ground) for ground in backgrounds) >= 3, color


def test_narrow_windows_show_the_drawing_for_narrow_pages(tmp_path):
    wide = '<svg width="9"><g/></svg>'
    narrow = '<svg width="4"><g/></svg>'
    (tmp_path / "ab-1.svg").write_text(for_both_themes(wide, narrow))
    (tmp_path / "other.svg").write_text(for_both_themes(wide))
    for _ in range(2):  # the second build finds the files of the first
        assert unpack(tmp_path) == {"ab-1"}
    assert (tmp_path / "ab-1.svg").read_text() == for_both_themes(wide)
    assert (tmp_path / "ab-1.narrow.svg").read_text() == for_both_themes(narrow)
    two = '<img alt="Two." src="../_images/ab-1.svg" />'
    one = '<img src="../_images/other.svg" />'
    source = '<source media="(max-width: 600px)" srcset="../_images/ab-1.narrow.svg"/>'
    html = pictured(two + one, {"ab-1"})
    assert html == f"<picture>{source}{two}</picture>{one}"
    assert pictured(html, {"ab-1"}) == html
