"""Pages of the built book in Firefox have no errors, no missing equations, and no
content that is too wide."""

import time
from urllib.parse import urlsplit

import pytest
from optional import skip_or_fail
from pages.browser import served
from pages.builds import expected_pages, rest_nightly
from pages.explorers import EXPLORERS, pages_of_explorers, selector
from pages.faults import FAULTS, POLICY, with_faults
from pages.firefox import Firefox, firefox_program

PAGES = expected_pages()
KEYS = {"Space": " ", "ArrowRight": "\ue014"}
UNSET = """return [...document.querySelectorAll(".bd-article .math:not(:has(mjx-container))")]
  .map((formula) => formula.textContent)"""
REQUESTS = """return performance.getEntriesByType("resource")
  .map((entry) => [entry.name, entry.responseStatus])"""
LEAVES = "probes.unfold(); return probes.layout().leaves"
# Pages of each kind; the chapter is one with equations and an explorer.
ON_A_COMMIT = {
    "index.html",
    "search.html",
    "chapters/claims.html",
    "chapters/guide.html",
    "chapters/08_path.html",
    "api/analogy.html",
}


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    program = firefox_program()
    if program is None:
        skip_or_fail("Firefox is not installed")
    browser = Firefox(program, tmp_path_factory.mktemp("firefox"))
    yield browser
    browser.close()


def problems_of(firefox, site, name):
    """Return the problems of a page, by rule."""
    firefox.resize(1400)
    firefox.open(site + name)
    found = {}
    for width in (1400, 500):  # a window of Firefox cannot be narrower than 500 pixels
        firefox.resize(width)
        found[f"leaves at {width}"] = firefox.run(LEAVES)
    found["unset equations"] = firefox.run(UNSET)
    requests = firefox.run(REQUESTS)
    found["failed"] = [address for address, status in requests if status >= 400]
    own = ("", urlsplit(site).netloc)
    found["foreign"] = [
        address for address, _ in requests if urlsplit(address).netloc not in own
    ]
    found["errors"] = firefox.complaints()
    return {rule: lines for rule, lines in found.items() if lines}


def answer_after(firefox, script, before):
    """Run a script until its answer changes, for at most one minute."""
    end = time.monotonic() + 60
    while (after := firefox.run(script)) == before and time.monotonic() < end:
        time.sleep(0.1)
    return after


def assert_explorer_answers(firefox, kind):
    _, _, control, key = EXPLORERS[kind]
    sentence = (
        f"return document.querySelector('{selector(kind)} [aria-live]').innerText"
    )
    before = answer_after(firefox, sentence, "")  # scripts of the page may still draw
    assert len(before) > 20
    firefox.type(f"{selector(kind)} {control}", 5 * KEYS[key])
    assert answer_after(firefox, sentence, before) != before
    assert firefox.complaints() == []


@pytest.mark.parametrize("name", rest_nightly(PAGES, ON_A_COMMIT))
def test_page_is_whole_in_firefox(firefox, site, name):
    assert problems_of(firefox, site, name) == {}


@pytest.mark.parametrize("kind", rest_nightly(EXPLORERS, ["match", "path", "graph"]))
def test_explorer_answers_to_the_keyboard_in_firefox(firefox, site, book, kind):
    firefox.resize(1400)
    firefox.open(site + pages_of_explorers(book)[kind])
    assert_explorer_answers(firefox, kind)


def test_faults_are_found_in_firefox(firefox, book, tmp_path):
    faults = "".join(FAULTS[name] for name in ("errors", "foreign", "failed", "leaves"))
    name, text = with_faults(book, tmp_path, faults)
    (tmp_path / name).write_text(POLICY.sub("", text).replace(r"\(", "(", 1), "utf-8")
    with served(tmp_path) as address:
        found = problems_of(firefox, address, name)
    widths = {f"leaves at {width}" for width in (1400, 500)}
    assert set(found) == {*widths, "unset equations", "failed", "foreign", "errors"}
    assert any("fault-errors" in line for line in found["errors"])


def test_a_firefox_that_does_not_start_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="stopped"):
        Firefox("false", tmp_path)
