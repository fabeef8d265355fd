"""The search page finds theorems by name and shows no TeX."""

import html
import re

from optional import optional_import
from pages.browser import opened, page_names
from pages.builds import ROOT

from preflearn_book.runner.files import read_yaml

sync_api = optional_import("playwright.sync_api")

# Function of the search page that turns the words in its address into a list of
# results, with the best one last.
ADDRESSES = """(names) => names.map((name) => {
  history.replaceState(null, "", "?q=" + encodeURIComponent(name));
  search();
  const results = Search._performSearch(...Search._parseQuery(name));
  return results.reverse().slice(0, 3).map(([page, , anchor]) => `${page}.html${anchor}`);
})"""
RESULTS_ARE_SHOWN = """words => new URLSearchParams(location.search).get("q") === words
  && /found \\d+ page|did not match/.test(
      document.querySelector("#search-results .search-summary")?.innerText)
  && [...document.querySelectorAll("#search-results ul.search li")]
      .every((entry) => entry.querySelector("p.context, span"))"""


def named_boxes(book):
    """Return address and name of each theorem, definition and the like that has a name."""
    box = re.compile(
        r'<div class="proof [^"]*" id="([^"]+)">\s*<p class="admonition-title">'
        r'<span class="caption-number">[^<]+</span>\s*\((.+?)\)</p>'
    )
    return {
        f"{name}#{anchor}": html.unescape(re.sub(r"<[^>]*>|\\\(.*?\\\)", "", title))
        for name in page_names(book)
        for anchor, title in box.findall((book / name).read_text("utf-8"))
    }


def test_search_finds_each_theorem_by_its_name(desk, site, book):
    boxes = named_boxes(book)
    assert len(boxes) > 10
    with opened(desk, site, "search.html?q=theorem") as seen:
        seen.page.wait_for_function("() => Search.hasIndex()")
        found = seen.page.evaluate(ADDRESSES, list(boxes.values()))
        assert seen.complaints == []
    wrong = [
        (address, name, first)
        for (address, name), first in zip(boxes.items(), found, strict=True)
        if address not in first
    ]
    assert wrong == []


def test_search_finds_words_of_the_field_by_synonyms(desk, site):
    """This holds for each listed word, and for some words that readers type without
    knowing the list."""
    expected = {
        word: address.replace("#", ".html#") if "#" in address else f"{address}.html"
        for address, words in read_yaml(ROOT / "book" / "synonyms.yml").items()
        for word in words
    }
    guide = "chapters/guide.html#guide"
    expected |= {
        "reward model": f"{guide}-terms",
        "LLM arena": f"{guide}-models",
        "Elo rating": "chapters/07_matches.html",
        "Thurstone": "api/ranking.html",
        "pairwise comparison": "chapters/01_one_graph.html",
        "Bradley-Terry": f"{guide}-items",
    }
    with opened(desk, site, "search.html?q=theorem") as seen:
        seen.page.wait_for_function("() => Search.hasIndex()")
        found = seen.page.evaluate(ADDRESSES, list(expected))
    wrong = [
        (word, address, first)
        for (word, address), first in zip(expected.items(), found, strict=True)
        if address not in first
    ]
    assert wrong == []


def typed_search(page, words):
    """Type words into the search field, and return the address and the visible text of
    each result."""
    field = page.locator(".bd-search-container input[type=search]")
    field.fill(words)
    field.press("Enter")
    page.wait_for_function(RESULTS_ARE_SHOWN, arg=words)
    results = page.locator("#search-results ul.search li")
    return [
        (item.locator("a").first.get_attribute("href"), item.inner_text())
        for item in results.all()
    ]


def test_typed_searches_show_the_chapter_first_and_no_formulas_in_code(desk, site):
    wanted = {"Lemma 3.1": "03_lemma", "incidence matrix": "01_one_graph"}
    with opened(desk, site, "search.html") as seen:
        for words, chapter in wanted.items():
            results = typed_search(seen.page, words)
            assert f"chapters/{chapter}.html" in [
                link.split("#")[0] for link, _ in results[:3]
            ]
            texts = [text for _, text in results]
            assert [
                text for text in texts if re.search(r"\\[A-Za-z()\[\]{}]|\$", text)
            ] == []
        assert seen.complaints == []
