import re
from pathlib import Path

import pytest
from pages.builds import contents

from preflearn_book.runner.files import read_yaml
from preflearn_book.runner.navigation import sidebar, subtitle

BOOK = Path(__file__).parents[2] / "book"
SUBTITLES = read_yaml(BOOK / "subtitles.yml")
SYNONYMS = read_yaml(BOOK / "synonyms.yml")

# name of a part: its pages, by their addresses relative to the folder "chapters"
PARTS = {
    "Guide": {"guide.html": "Guide", "../glossary.html": "Glossary"},
    "Chapters": {"01_one.html": "1. One?", "02_two.html": "2. Two?"},
    "Between": {"../between.html": "Between"},
    "More chapters": {"03_three.html": "3. Three?"},
    "The end": {"../end.html": "The end"},
}


def page_with_sidebar(current=""):
    """Return HTML as the theme writes it, for a page in the folder "chapters"."""
    lines = ['<a class="reference internal" href="01_one.html">1. One?</a>']
    lines.append('<nav class="bd-links bd-docs-nav" aria-label="Main"><div>')
    for part, pages in PARTS.items():
        lines.append(
            '<p aria-level="2" class="caption" role="heading">'
            f'<span class="caption-text">{part}</span></p>'
        )
        lines.append('<ul class="nav bd-sidenav">')
        for address, title in pages.items():
            here = address == current
            lines.append(
                f'<li class="toctree-l1{" current active" if here else ""}">'
                f'<a class="{"current " if here else ""}reference internal" '
                f'href="{"#" if here else address}">{title}</a></li>'
            )
        lines.append("</ul>")
    return "\n".join([*lines, "</div></nav>", "<ul></ul>"])


def folds(text):
    """Return whether each folded part is open, by name."""
    part = (
        r'<details class="part"( open)?><summary>.*?<span class="caption-text">(.*?)<'
    )
    return {name: bool(is_open) for is_open, name in re.findall(part, text)}


def test_a_sidebar_shows_subtitles_in_its_links_only():
    subtitles = {"chapters/01_one": "A & b", "glossary": "Words"}
    text = sidebar(page_with_sidebar("01_one.html"), "chapters/01_one", subtitles)
    assert '"#">1. One? <span class="subtitle">A &amp; b</span></a>' in text
    assert '"../glossary.html">Glossary <span class="subtitle">Words</span></a>' in text
    assert text.count('class="subtitle"') == 2


@pytest.mark.parametrize("base", ["", "https://owner.github.io/name/"])
def test_subtitles_of_a_page_for_any_folder(base):
    root = base or "/"
    text = page_with_sidebar().replace('href="', f'href="{root}chapters/')
    text = text.replace("chapters/../", "")
    html = sidebar(text, "404", {"chapters/02_two": "Two", "end": "End"}, base)
    assert re.findall(r'(\S+)">[^<]* <span class="subtitle">(\w+)<', html) == [
        (f'href="{root}chapters/02_two.html', "Two"),
        (f'href="{root}end.html', "End"),
    ]


def test_only_the_part_of_the_page_is_open():
    text = sidebar(page_with_sidebar("../end.html"), "end", {})
    assert folds(text) == {name: name == "The end" for name in PARTS}
    assert text.count("<ul") == text.count("</ul>") == len(PARTS) + 1
    assert text.count("</details>") == len(PARTS)
    for name in PARTS:
        assert text.count(f'<span class="caption-text">{name}</span>') == 1


def test_a_page_without_a_sidebar_is_unchanged():
    assert sidebar("<p>No navigation</p>", "page", {}) == "<p>No navigation</p>"


def test_a_page_without_a_subtitle_has_no_line_for_it():
    assert subtitle("index", {"other": "Other"}) == ""


def test_each_chapter_and_each_page_of_the_reference_has_a_subtitle_of_its_own():
    named = {
        page
        for page in contents()
        if re.match(r"chapters/\d\d_(?!.*_more$)|api/(?!index)", page)
    }
    assert len(named) > 20
    assert {*SUBTITLES} == named
    assert len({*SUBTITLES.values()}) == len(SUBTITLES)


def test_synonyms_lead_to_pages_of_the_contents_and_each_to_one():
    assert {place.partition("#")[0] for place in SYNONYMS} <= {*contents()}
    words = [word.lower() for some in SYNONYMS.values() for word in some]
    assert sorted({*words}) == sorted(words)
