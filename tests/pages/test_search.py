"""What the search of the built book finds, and how its results read."""

import html
import re

import pytest
from pages.browser import opened, page_names, window


def search(page, words):
    """Type words into the search field and give the results: address and text as the reader sees it."""
    field = page.locator(".bd-search-container input[type=search]")
    field.fill(words)
    field.press("Enter")
    page.wait_for_function(
        """words => new URLSearchParams(location.search).get("q") === words
        && /found \\d+ page|did not match/.test(
            document.querySelector("#search-results .search-summary")?.innerText)
        && [...document.querySelectorAll("#search-results ul.search li")]
            .every((entry) => entry.querySelector("p.context, span"))""",
        arg=words,
    )
    results = page.locator("#search-results ul.search li")
    return [(li.locator("a").first.get_attribute("href"), li.inner_text()) for li in results.all()]


def named_boxes(book):
    """Theorems and their kin that have a name: page, anchor, number and name."""
    box = re.compile(
        r'<div class="proof [^"]*" id="([^"]+)">\s*<p class="admonition-title">'
        r'<span class="caption-number">([^<]+)</span>\s*\((.+?)\)</p>'
    )
    return [
        (name, anchor, number.strip(), html.unescape(re.sub(r"<[^>]*>|\\\(.*?\\\)", "", title)))
        for name in page_names(book)
        for anchor, number, title in box.findall((book / name).read_text("utf-8"))
    ]


def test_search_finds_each_theorem_by_its_name(browser, site, book):
    boxes = named_boxes(book)
    assert len(boxes) > 10
    with window(browser) as context, opened(context, site, "search.html") as seen:
        for name, anchor, number, title in boxes:
            first = search(seen.page, title)[:3]
            assert name in [link.split("#")[0] for link, _ in first], (number, title, first)
            assert f"{name}#{anchor}" in [link for link, _ in first], (number, title, first)
        assert seen.errors == []


@pytest.mark.parametrize(
    ("words", "chapter"),
    [("Lemma 3.1", "03_lemma"), ("incidence matrix", "01_one_graph"), ("bias", "04_svmcompare")],
)
def test_search_shows_text_without_formulas_in_code(browser, site, words, chapter):
    with window(browser) as context, opened(context, site, "search.html") as seen:
        results = search(seen.page, words)
        assert f"chapters/{chapter}.html" in [link.split("#")[0] for link, _ in results[:3]]
        assert [text for _, text in results if re.search(r"\\[A-Za-z()\[\]{}]|\$", text)] == []
