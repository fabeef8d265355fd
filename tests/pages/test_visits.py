"""Every page of the book is visited once in a browser and must satisfy the rules."""

import io
import os
import re

import pytest
from matplotlib.image import imread
from pages.browser import opened, page_names, served, window
from pages.builds import expected_pages, rest_nightly
from pages.faults import CHAPTER, FAULTS, FINE, POLICY, STYLES, with_faults
from pages.rules import (
    COMMIT,
    NIGHTLY,
    RULES,
    View,
    evenly_spaced,
    inspect,
    questions,
    widths,
)
from pages.visited import VisitedPages

PAGES = expected_pages()
VISIT_ALL = os.environ.get("PREFLEARN_VISIT") == "all"
# A commit visits one page of each of these kinds, and all other pages.
OF_ONE_KIND = {
    r"api/\w+\.html": "api/dynamics.html",
    r"chapters/\d\d_\w+_more\.html": "chapters/13_inference_more.html",
    r"chapters/errata_\w+\.html": "chapters/errata_p3.html",
    r"coming_from_\w+\.html": "coming_from_scikit_learn.html",
}
ON_A_COMMIT = {
    name
    for name in PAGES
    if not any(re.fullmatch(kind, name) for kind in OF_ONE_KIND)
    or name in OF_ONE_KIND.values()
}


@pytest.mark.parametrize("name", rest_nightly(PAGES, ON_A_COMMIT))
def test_page_keeps_the_rules(desk, site, anchors, axe, visited, name):
    if not VISIT_ALL and visited.is_unchanged(name, anchors[name]):
        pytest.skip("unchanged since its last visit, which found nothing wrong")
    report = inspect(desk, site, name, anchors[name], axe)
    problems = report.problems(COMMIT)
    visited.record(name, anchors[name], report.loaded, report.shape, problems)
    assert not problems, "\n".join(problems)


@pytest.fixture(
    scope="package", params=NIGHTLY, ids=lambda first: "-".join(map(str, first))
)
def other_window(browser, request):
    with window(browser, *request.param) as context:
        yield request.param, context


@pytest.mark.nightly
@pytest.mark.parametrize("name", PAGES)
def test_page_keeps_the_rules_however_it_is_opened(
    other_window, site, anchors, axe, name
):
    first, context = other_window
    problems = inspect(context, site, name, anchors[name], axe, first).problems(first)
    assert not problems, "\n".join(problems)


def test_every_page_is_visited(book):
    assert set(page_names(book)) == set(PAGES)


def test_a_commit_visits_a_page_of_each_kind():
    assert set(OF_ONE_KIND.values()) <= set(PAGES)


def test_a_figure_has_the_background_of_its_page(desk, site):
    with opened(desk, site, CHAPTER) as seen:
        for background in (255, 18):  # background of the light and of the dark theme
            picture = seen.page.locator("article figure img").first.screenshot()
            corner = imread(io.BytesIO(picture))[2, 2, :3] * 255
            assert corner.round().tolist() == [background] * 3
            seen.ask("changeTheme")


def test_scripts_and_an_image_from_elsewhere_are_rejected(book, desk, tmp_path):
    """The page contains a script that was not there when it was built, and files of
    another host."""
    foreign = '<script src="http://fault-foreign.invalid/x.js"></script>'
    name, text = with_faults(
        book, tmp_path, FAULTS["errors"] + FAULTS["foreign"] + foreign
    )
    assert POLICY.search(text)
    (tmp_path / name).write_text(text, "utf-8")
    with served(tmp_path) as address, opened(desk, address, name) as seen:
        rejected = [line for line in seen.errors if "Content Security Policy" in line]
        assert len(rejected) == 3
        assert "fault-errors" not in seen.errors


def doctored_report(book, context, folder, axe, first):
    """Visit a page with all faults, an equation that is too wide, and an equation that
    covers its number."""
    name, text = with_faults(book, folder, FINE + "".join(FAULTS.values()))
    text = POLICY.sub("", text)  # the policy would prevent the faults
    wide, crowded = re.findall(
        r'<div class="math[^>]* id="([^"]+)">\s*<span class="eqno">', text
    )[:2]
    start = rf'(id="{wide}">.*?\\\[)'
    text = re.sub(start, r"\g<1>" + "x + " * 80, text, count=1, flags=re.DOTALL)
    text = text.replace(f'id="{wide}"', 'id="fault-equations"')
    text = text.replace(f'id="{crowded}"', 'id="fault-numbers"')
    text = text.replace("</head>", f"{STYLES}</head>")
    (folder / name).write_text(text, "utf-8")
    anchors = ["fine-anchors", "fault-anchors", "fault-behind", "fault-landing"]
    with served(folder) as address:
        return inspect(context, address, name, anchors, axe, first)


def faults_not_found(report, first):
    """Return the questions whose answer lacks the fault made for their rule."""
    return [
        (rule, view)
        for rule, view in questions(first)
        if not any(f"fault-{rule}" in line for line in report.faults[rule, view])
    ]


@pytest.fixture(scope="package")
def doctored(book, desk, axe, tmp_path_factory):
    return doctored_report(book, desk, tmp_path_factory.mktemp("doctored"), axe, COMMIT)


def test_every_question_finds_its_fault(doctored):
    assert faults_not_found(doctored, COMMIT) == []
    assert {rule for rule, _ in questions(COMMIT)} == set(RULES)
    assert set(doctored.faults) == set(questions(COMMIT)), (
        "an answer that nobody asked for"
    )


@pytest.mark.nightly
def test_every_question_finds_its_fault_however_the_page_is_opened(
    book, other_window, axe, tmp_path
):
    first, context = other_window
    assert (
        faults_not_found(doctored_report(book, context, tmp_path, axe, first), first)
        == []
    )


def test_what_is_fine_is_not_a_fault(doctored):
    lines = [line for found in doctored.faults.values() for line in found]
    assert [line for line in lines if "fine-" in line] == []


def test_a_covered_anchor_is_a_fault(doctored):
    assert any(
        line.startswith("#fault-behind lies behind")
        for line in doctored.faults["anchors", COMMIT]
    )


@pytest.mark.parametrize("width", widths(COMMIT))
def test_each_obstacle_to_a_screen_reader_is_found(doctored, width):
    found = "\n".join(doctored.faults["reading", View("light", width)])
    for fault in ("level", "landmark", "text", "order"):
        assert f"fault-reading-{fault}" in found
    assert "2 headings of level 1" in found


@pytest.mark.parametrize("width", widths(COMMIT))
def test_boxes_that_cut_in_width_or_in_height_are_found(doctored, width):
    found = "\n".join(doctored.faults["cut", View("light", width)])
    assert re.search(r"#fault-cut .* in width", found)
    assert re.search(r"#fault-cut-height .* in height", found)


def test_letters_that_shrink_with_their_figure_are_found(doctored):
    """They would have 12 pixels if the telephone showed the whole width."""
    found = doctored.faults["letters", View("light", 400)]
    assert any("#fault-letters-shrunk" in line for line in found)


def test_the_followed_anchors_are_evenly_spaced_and_include_the_last():
    anchors = [str(k) for k in range(25)]
    assert evenly_spaced(anchors, 12) == [str(k) for k in range(0, 25, 3)]
    assert evenly_spaced(anchors[:24], 12) == [str(k) for k in range(1, 24, 2)]
    assert evenly_spaced(anchors[:5], 12) == anchors[:5]
    assert evenly_spaced([], 12) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_low_contrast_in_one_theme_only_is_found_there(doctored, theme):
    found = {
        view.theme: [line for line in lines if f"fault-{theme}" in line]
        for (rule, view), lines in doctored.faults.items()
        if rule == "colors"
    }
    assert [name for name, lines in found.items() if lines] == [theme]


def test_an_unanswered_question_is_an_error(doctored):
    with pytest.raises(KeyError):
        doctored.problems(View("dark", 400))


SHAPED = """<!DOCTYPE html><body style="margin: 0"><article>
<p style="margin: 0; height: 300px">one two three four five</p>
<figure style="margin: 0; height: 200px"></figure>
<details class="hide" style="height: 100px"><summary>Code</summary>never counted</details>
<p style="margin: 0; height: 400px">one two</p></article>"""


def test_the_shape_of_a_page_is_measured(desk, tmp_path):
    (tmp_path / "page.html").write_text(SHAPED)
    with served(tmp_path) as address, opened(desk, address, "page.html") as seen:
        shape = seen.ask("shape")
    assert shape == {
        "height": 1000,
        "words": 8,
        "longest_paragraph": 5,
        "first_picture": 300,
        "bars": 0.1,
    }


@pytest.fixture
def small_book(tmp_path):
    """Return a page that was visited, with a style sheet and an image."""
    html = tmp_path / "html"
    (html / "sub").mkdir(parents=True)
    for name in ("sub/page.html", "style.css", "image.svg", "other.css"):
        (html / name).write_text(name)
    store = VisitedPages(html, tmp_path / "visited", "visit 1")
    store.record(
        "sub/page.html", ["a"], ["style.css", "image.svg"], {"words": 3}, problems=[]
    )
    return store


def test_an_unchanged_page_is_not_visited_again(small_book):
    (small_book.html / "other.css").write_text("not loaded by the page")
    assert small_book.is_unchanged("sub/page.html", ["a"])


@pytest.mark.parametrize("file", ["sub/page.html", "style.css", "image.svg"])
def test_a_changed_or_missing_file_of_a_page_asks_for_a_visit(small_book, file):
    path = small_book.html / file
    path.write_text("changed")
    assert not small_book.is_unchanged("sub/page.html", ["a"])
    path.unlink()
    assert not small_book.is_unchanged("sub/page.html", ["a"])


def test_a_changed_probe_browser_or_link_asks_for_a_visit(small_book):
    other = VisitedPages(small_book.html, small_book.folder, "visit 2")
    assert not other.is_unchanged("sub/page.html", ["a"])
    assert not small_book.is_unchanged("sub/page.html", ["a", "b"])
    assert not small_book.is_unchanged("unknown.html", [])


def test_a_faulty_page_is_visited_again(small_book):
    small_book.record("sub/page.html", ["a"], [], {}, problems=["a fault"])
    assert not small_book.is_unchanged("sub/page.html", ["a"])
    assert list(small_book.folder.rglob("*.*")) == []
