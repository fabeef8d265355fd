"""The built book on paper: some of its pages, and the book as one file."""

import io
import re

import pytest
from optional import optional_import
from pages.browser import opened, window
from pages.builds import rest_nightly
from pdf import print_book

PdfReader = optional_import("pypdf").PdfReader

CHAPTER = "chapters/08_path"
PAGES = ("index", CHAPTER, "chapters/guide", "chapters/claims", "chapters/reproduce")
ON_A_COMMIT = ("index",)
AROUND = ".bd-header, .bd-header-article, .bd-sidebar, .prev-next-footer, .bd-footer, .claims-filters, button"


@pytest.fixture
def paper(browser):
    """A tab that prints once. In a second print, Chromium would include hidden
    content."""
    with window(browser) as context:
        yield context


def printed(pdf):
    """Return the words on the pages of a file. Each page must begin with its number and
    contain more words."""
    texts = [page.extract_text().split() for page in PdfReader(pdf).pages]
    assert [words[:1] for words in texts] == [
        [str(k)] for k in range(1, len(texts) + 1)
    ]
    assert [k for k, words in enumerate(texts, start=1) if len(words) < 2] == [], (
        "empty pages"
    )
    return [" ".join(words[1:]) for words in texts]


@pytest.mark.parametrize("name", rest_nightly(PAGES, ON_A_COMMIT))
def test_a_page_on_paper_is_the_text_alone_and_neither_empty_nor_cut(paper, site, name):
    with opened(paper, site, f"{name}.html") as seen:
        text = " ".join(printed(io.BytesIO(seen.page.pdf(format="A4"))))
        seen.emulate_paper()
        found = seen.ask("layout")
        assert [found[rule] for rule in ("leaves", "spills", "cut", "numbers")] == [
            [],
            [],
            [],
            [],
        ]
        assert not any(part.is_visible() for part in seen.page.locator(AROUND).all())
        assert seen.page.locator("article h1").inner_text().split()[-1] in text
        assert not re.search("Solution to|Code of the figures", text), "what is folded"


def titles_of(outline):
    """Return the titles of bookmarks, including nested ones."""
    parts = [
        titles_of(one) if isinstance(one, list) else [one.title] for one in outline
    ]
    return [" ".join(title.split()) for part in parts for title in part]


@pytest.mark.nightly
def test_bookmarks_are_the_headings(paper, site):
    """Chromium takes the titles from the printed text, once per page, without spaces at
    line ends."""
    with opened(paper, site, f"{CHAPTER}.html") as seen:
        seen.emulate_paper()
        pdf = seen.page.pdf(format="A4", outline=True, tagged=True)
        seen.page.locator("article .headerlink").evaluate_all(
            "links => links.forEach((link) => link.remove())"
        )
        headings = seen.page.locator("article :is(h1, h2, h3)").all_text_contents()
    found = titles_of(PdfReader(io.BytesIO(pdf)).outline)
    assert len(found) > 5
    assert found == [" ".join(text.split()) for text in headings]


@pytest.mark.nightly
def test_what_a_reader_opened_is_printed(paper, site):
    with opened(paper, site, f"{CHAPTER}.html") as seen:
        seen.unfold()
        code = seen.page.locator(".section-code")
        assert code.count() > 0
        assert all(fold.is_visible() for fold in code.all())
        text = " ".join(printed(io.BytesIO(seen.page.pdf(format="A4"))))
    assert "Solution to" in text
    assert "in the claims list" in text
    assert "Code of the figures" not in text


PAGE = """\
<!DOCTYPE html><meta charset="utf-8"><link rel="icon" href="data:,">
<link rel="stylesheet" href="{up}_static/book.css"><body>
<nav class="bd-links"><div class="bd-toc-item"><a href="{up}sub/two.html">The second</a></div></nav>
<article class="bd-article">{text}</article>"""
ONE = """\
<h1 id="same">First page</h1>
<p><a href="sub/two.html#same">over there</a> <a href="sub/two.html#hidden">in a fold</a>
<a href="table.csv">a file</a> <a href="https://example.org/x">elsewhere</a></p>
<div class="solution" id="answer"><p class="admonition-title">Answer</p>Forty-two</div>"""
TWO = """\
<h1 id="same">Second page</h1><p><a href="../one.html">back</a></p>
<details><summary>A fold</summary><p id="hidden">A secret</p></details>"""


def whole(browser, book, folder, two=TWO):
    """A book of two pages that link to each other, printed as one file."""
    (folder / "sub").mkdir()
    (folder / "_static").symlink_to(book.resolve() / "_static")
    (folder / "one.html").write_text(PAGE.format(up="", text=ONE))
    (folder / "sub" / "two.html").write_text(PAGE.format(up="../", text=two))
    print_book(browser, folder, ["one", "sub/two"], folder / "book.pdf")
    return folder / "book.pdf"


def test_the_whole_book_is_one_file_with_contents_links_and_numbers(
    book, browser, tmp_path
):
    pdf = whole(browser, book, tmp_path)
    first, contents, second, solutions = printed(pdf)
    assert first.startswith("First page")
    assert contents == "Contents The second Solutions"
    assert second.startswith("Second page")
    assert "A secret" not in second
    assert "Forty-two" in solutions
    reader = PdfReader(pdf)
    places = {
        name: reader.get_destination_page_number(to)
        for name, to in reader.named_destinations.items()
    }
    notes = [
        [note.get_object() for note in page.get("/Annots", [])] for page in reader.pages
    ]
    inner = [
        [places[note["/Dest"]] for note in page if "/Dest" in note] for page in notes
    ]
    assert inner == [[2, 2, 3], [2, 3], [0], []]
    outer = [note["/A"]["/URI"] for page in notes for note in page if "/A" in note]
    assert outer == ["https://example.org/x"]
    assert titles_of(reader.outline) == [
        "First page",
        "Contents",
        "Second page",
        "Solutions",
    ]


def test_an_empty_page_is_found(book, browser, tmp_path):
    blank = '<div style="break-before: page; height: 1px"></div><p style="break-before: page">end</p>'
    with pytest.raises(AssertionError, match="empty pages"):
        printed(whole(browser, book, tmp_path, TWO + blank))
