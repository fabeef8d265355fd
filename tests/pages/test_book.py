"""The built book as its readers see it: pages, figures, equations, verdicts, and
links."""

import ast
import importlib
import json
import re
from urllib.parse import unquote

import pytest
from pages.browser import page_names
from pages.builds import ROOT, build, contents

from preflearn_book.runner.claims import BACKGROUND, UNCOMPUTED, load_claims
from preflearn_book.runner.project import Project
from preflearn_book.runner.render import repository

CHAPTERS = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def page(book, name):
    return (book / "chapters" / f"{name}.html").read_text("utf-8")


def pages(book, chapter):
    """Return the texts of a chapter's pages by name: the chapter and its appendix."""
    names = [chapter, f"{chapter}_more"]
    return {
        name: page(book, name) for name in names if f"chapters/{name}" in contents()
    }


def test_second_build_executes_and_renders_nothing(build_output):
    output = build_output if "up to date" in build_output else build()
    assert "0 executed" in output
    assert "up to date" in output


def test_every_page_of_the_contents_is_there(book):
    assert [name for name in contents() if not (book / f"{name}.html").is_file()] == []


# no link to another host
LINK = re.compile(r'<[^>]*\s(?:href|src)="([^":#?]*)(?:\?[^"#]*)?(?:#([^"]*))?"')
ANCHOR = re.compile(r'\s(?:id|name)="([^"]+)"')


def broken_links(html):
    """Return links and sources whose file or anchor is missing in a folder of pages, as
    page, file, and anchor."""
    texts = {
        (html / name).resolve(): (html / name).read_text("utf-8")
        for name in page_names(html)
    }
    anchors = {path: {"", *ANCHOR.findall(text)} for path, text in texts.items()}
    found = []
    for page, text in texts.items():
        for file, anchor in sorted(set(LINK.findall(text))):
            # resolve the link as on the server
            root = html if file.startswith("/") else page.parent
            target = (root / unquote(file).lstrip("/")).resolve() if file else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or unquote(anchor) not in anchors.get(
                target, {unquote(anchor)}
            ):
                found.append((page.name, file, anchor))
    return found


def test_no_internal_link_is_broken(book):
    assert broken_links(book) == []


def test_broken_links_are_found_and_good_ones_are_not(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a b.png").touch()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">x</h1><a href="#top">1</a><a href="sub/page.html?q=1#there">2</a><img src="a%20b.png">'
        '<a href="https://example.org/x">3</a><a href="#">4</a><a href="mailto:a@b.c">5</a>'
        '<script src="gone.js"></script><a href="sub/page.html#gone">6</a><a href="sub/none.html">7</a>'
        '<a href="/sub/page.html#there">8</a><a href="/none.html">9</a>'
    )
    (tmp_path / "sub" / "page.html").write_text(
        '<a name="there"></a><a href="../index.html#top">x</a>'
    )
    expected = [
        ("/none.html", ""),
        ("gone.js", ""),
        ("sub/none.html", ""),
        ("sub/page.html", "gone"),
    ]
    assert broken_links(tmp_path) == [("index.html", *link) for link in expected]


def test_each_page_has_one_title_and_one_width(book):
    titles = {}
    for name in page_names(book):
        text = (book / name).read_text("utf-8")
        assert text.count('name="viewport"') == 1, name
        (titles[name],) = re.findall(r"<title>\s*(.*?)\s*</title>", text)
        parts = re.split(" &#8212; | - ", titles[name])
        assert len(set(parts)) == len(parts), titles[name]
    assert len(set(titles.values())) == len(titles)


def test_the_end_of_a_page_leads_to_its_neighbours_by_their_titles(book):
    names = contents()
    texts = {name: (book / f"{name}.html").read_text("utf-8") for name in names}
    titles = {
        name: re.findall(r"<h1[^>]*>(.*?)<a class=\"headerlink", texts[name])[-1]
        for name in names
    }
    link = r'<a class="(left-prev|right-next)"\s+href="([^"]+)".*?<p class="prev-next-title">(.*?)</p>'
    for name, before, after in zip(
        names, [None, *names], [*names[1:], None], strict=False
    ):
        found = [
            (side, ((book / name).parent / target).resolve(), title)
            for side, target, title in re.findall(link, texts[name], re.DOTALL)
        ]
        sides = [("left-prev", before), ("right-next", after)]
        assert found == [
            (side, (book / f"{one}.html").resolve(), titles[one])
            for side, one in sides
            if one
        ]


def test_what_needs_an_address_is_there_only_where_one_is_named(book):
    named = bool(repository(Project(ROOT)))
    page = (book / f"chapters/{CHAPTERS[0]}.html").read_text("utf-8")
    buttons = [
        f"source-{kind}-button" for kind in ("repository", "file", "edit", "issues")
    ]
    for sign in ['rel="canonical"', "og:image", "og:url", "launch-buttons", *buttons]:
        assert (sign in page) == named, sign
    assert [(book / name).exists() for name in ("sitemap.xml", "robots.txt")] == [
        named,
        named,
    ]


def test_words_of_the_glossary_lead_to_their_chapters_and_are_in_the_index(book):
    text, index = (
        (book / f"{name}.html").read_text("utf-8") for name in ("glossary", "genindex")
    )
    words = re.findall(
        r'<dt id="(term-[^"]+)">(.*?)<.*?<dd>(.*?)</dd>', text, re.DOTALL
    )
    assert words
    for anchor, word, said in words:
        assert "href=" in said, word
        assert f'href="glossary.html#{anchor}"' in index, word


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapter_page_is_whole(book, chapter):
    texts = pages(book, chapter).values()
    articles = [
        text[text.index("<article") : text.index("</article>")] for text in texts
    ]
    for article in articles:
        assert "Traceback" not in article
        assert "output stderr" not in article  # a warning would have this class
        assert not re.search(r"\[\?\]|undefined label|<strong>\?\?</strong>", article)
        for figure in re.findall(r"<figure.*?</figure>", article, re.DOTALL):
            assert re.search(r'<img[^>]* alt="[^"]{40,}"', figure), figure[:300]
            assert "caption-number" in figure
        prose = re.sub(r"<(pre|script).*?</\1>", "", article, flags=re.DOTALL)
        # MathJax ignores Markdown that a cell displays
        assert re.findall(r"\$[^$\n]+\$", prose) == []
    article = articles[0]
    assert re.search(r'class="reading-time">About \d+ minutes?<', article)
    assert "<figure" in article
    assert 'class="math' in article
    assert 'class="eqno"' in article
    assert "exercise" in article
    source = (ROOT / "notebooks" / f"{chapter}.ipynb").read_text("utf-8")
    boxes = re.findall(r"\{prf:(?!ref\})[a-z]+\}", source)
    assert "".join(texts).count('<div class="proof ') == len(boxes)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_verdicts_of_a_chapter_link_both_ways(book, chapter):
    texts = pages(book, chapter)
    claims = page(book, "claims")
    for claim in load_claims().values():
        has_badge = claim.kind != BACKGROUND and claim.verdict not in UNCOMPUTED
        if claim.chapter == chapter and has_badge:
            (name,) = (
                name for name, text in texts.items() if f'id="check-{claim.id}"' in text
            )
            assert f"{name}.html#check-{claim.id}" in claims
    assert "claim-contradiction" not in "".join(texts.values())


def test_claims_page_counts_the_claims_list(book):
    text = (book / "chapters" / "claims.html").read_text("utf-8")
    assert len(re.findall(r'<details class="claim [^>]* id="claim-p', text)) == len(
        load_claims()
    )


def test_status_page_names_every_chapter(book):
    text = (book / "chapters" / "status.html").read_text("utf-8")
    for chapter in CHAPTERS:
        assert f"{chapter}.html" in text
    assert "numpy" in text


def test_pages_load_nothing_from_elsewhere(book):
    """The book opens without a network: no script, style, or image is loaded from
    another host."""
    loads = r'<(?:script|img)[^>]* src="https?:|<link[^>]* rel="stylesheet"[^>]* href="https?:'
    assert [
        name
        for name in page_names(book)
        if re.search(loads, (book / name).read_text("utf-8"))
    ] == []


def test_style_sheet_is_the_present_one(book):
    sheet = "_static/book.css"
    assert (book / sheet).read_text() == (ROOT / "book" / sheet).read_text()


@pytest.fixture(scope="session")
def reference():
    """Return the modules on each page of the reference.

    They are imported here, outside of tests. When scikit-learn is imported, it sets an
    environment variable, which a test must not do.
    """
    modules = {}
    for stub in sorted((ROOT / "book" / "api").glob("*.md")):
        names = re.findall(
            r"^\.\. automodule:: (\S+)", stub.read_text("utf-8"), re.MULTILINE
        )
        modules[stub.stem] = [importlib.import_module(name) for name in names]
    return modules


def test_reference_has_each_public_name_once(book, reference):
    for page, modules in reference.items():
        text = (book / "api" / f"{page}.html").read_text("utf-8")
        for module in modules:
            ids = [f' id="{module.__name__}.{name}"' for name in module.__all__]
            assert [anchor for anchor in ids if text.count(anchor) != 1] == []
        # Sphinx reads some docstrings in an unintended way: "b." alone is an empty
        # list, and an indented table is a quotation.
        assert not re.search(r"<li>\s*</li>|<blockquote>|<ol ", text)


def imported(chapter):
    """Return the public names that the code of a chapter imports individually, with
    their modules."""
    cells = json.loads((ROOT / "notebooks" / f"{chapter}.ipynb").read_text("utf-8"))[
        "cells"
    ]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    nodes = [node for source in code for node in ast.walk(ast.parse(source))]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(
            "preflearn."
        ):
            public = getattr(importlib.import_module(node.module), "__all__", ())
            yield from (
                f"{node.module}.{alias.name}"
                for alias in node.names
                if alias.name in public
            )


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_chapter_leads_to_the_reference_of_what_it_uses(book, reference, chapter):
    text = "".join(pages(book, chapter).values())
    names = set(imported(chapter))
    assert names
    assert [
        name
        for name in names
        if not re.search(rf'href="../api/\w+.html#{re.escape(name)}"', text)
    ] == []
    classes = {
        name.rpartition(".")[2]
        for name in names
        if name.rpartition(".")[2][0].isupper()
    }
    plain = rf'<code class="docutils literal notranslate"><span class="pre">({"|".join(classes)})</span>'
    assert not classes or not re.search(rf'(?<!">){plain}', text), (
        "a class in a sentence is a link"
    )
