"""Previews of links to an equation, a theorem, a figure, a citation, a claim, a term,
or a section of the background page."""

import pytest
from optional import optional_import
from pages.browser import opened

from preflearn_book.runner.claims import load_claims

sync_api = optional_import("playwright.sync_api")

CHAPTER = "chapters/08_path.html"
LINKS = {  # one link to each kind of target, on the same page and on another one
    "equation": "#equation-eq-p-kkt",
    "theorem": "#thm-ranking-path",
    "theorem elsewhere": "08_path_more.html#thm-linear-paths",
    "figure": "#fig-p-four",
    "explorer": "#fig-p-explorer",
    "citation": "../references.html#",
    "claim": "claims.html#claim-p2-04",
    "term": "../glossary.html#term-dual-weight",
    "background": "../primer.html#primer-svm",
}
BACKGROUND = "box => getComputedStyle(box).backgroundColor"
COLOR = "box => getComputedStyle(box).color"
ABROAD = [kind for kind, link in LINKS.items() if not link.startswith("#")]


def link_to(page, kind):
    return page.locator(
        f'article p > a[href^="{LINKS[kind]}"], article .reference[href^="{LINKS[kind]}"]'
    ).first


def reach(link, by):
    """Move the pointer to a link and wait, or move the focus to it from the link
    before."""
    if by == "mouse":
        link.hover()
        return
    link.focus()
    link.page.keyboard.press("Shift+Tab")
    link.page.keyboard.press("Tab")
    sync_api.expect(link).to_be_focused()


@pytest.mark.parametrize(
    ("by", "theme"),
    [
        ("mouse", "light"),
        pytest.param("keyboard", "dark", marks=pytest.mark.nightly),
    ],
)
def test_a_link_shows_what_it_leads_to(desk, site, by, theme):
    with opened(desk, site, CHAPTER) as seen:
        seen.unfold()
        if theme == "dark":
            assert seen.ask("changeTheme") == theme
        for kind in LINKS:
            assert_shows_its_target(seen.page, by, kind)
        assert_preview_goes_when_the_reader_goes_on(seen.page, by)
        assert seen.complaints == []


def assert_shows_its_target(page, by, kind):
    link = link_to(page, kind)
    preview = page.get_by_role("tooltip")
    reach(link, by)
    sync_api.expect(preview).to_contain_text(
        link.inner_text().removesuffix(" in the claims list")
    )
    if kind == "claim":
        sync_api.expect(preview).to_contain_text(load_claims()["P2-04"].verdict)
    assert link.get_attribute("aria-describedby") == preview.get_attribute("id")
    sync_api.expect(preview.locator(".math:not(:has(mjx-container))")).to_have_count(0)
    if kind == "term":
        sync_api.expect(preview.locator("dd")).to_contain_text(" ")
    if kind == "background":
        assert preview.locator("p").count() == 1
    has_formulas = preview.locator("mjx-container").count() > 0
    assert has_formulas or kind in ("citation", "term")
    assert preview.locator("[id], .headerlink").count() == 0
    pictures = "images => images.map((image) => image.checkVisibility() && image.naturalWidth > 0)"
    assert preview.locator("img").evaluate_all(pictures) == [True] * (
        kind in ("figure", "explorer")
    )
    sync_api.expect(preview).to_be_in_viewport(ratio=1)
    body = page.locator("body")
    assert preview.evaluate(BACKGROUND) == body.evaluate(BACKGROUND)
    assert preview.locator(".popover-body").evaluate(COLOR) == body.evaluate(COLOR)
    if by == "mouse":
        preview.hover()
        # longer than the time in which a pointer must reach the preview
        page.wait_for_timeout(600)
    assert preview.is_visible()
    page.keyboard.press("Escape")
    sync_api.expect(preview).to_have_count(0)
    assert link.get_attribute("aria-describedby") is None


def assert_preview_goes_when_the_reader_goes_on(page, by):
    reach(link_to(page, "theorem"), by)
    sync_api.expect(page.get_by_role("tooltip")).to_have_count(1)
    if by == "mouse":
        page.mouse.move(5, 5)
    else:
        page.keyboard.press("Shift+Tab")
    theorem = page.get_by_role("tooltip").filter(has_text="Theorem 8.1")
    sync_api.expect(theorem).to_have_count(0)


def test_a_section_of_a_chapter_has_no_preview(desk, site):
    """Only sections of the background page are short enough."""
    with opened(desk, site, CHAPTER) as seen:
        link = link_to(seen.page, "background")
        link.evaluate(
            """(link) => {
            link.href = `#${document.querySelector("article section section").id}`;
            link.dataset.changed = "";
            }"""
        )
        seen.page.locator("[data-changed]").hover()
        seen.page.wait_for_timeout(600)
        assert seen.page.get_by_role("tooltip").count() == 0


def test_a_preview_does_not_move_the_text(desk, site):
    with opened(desk, site, CHAPTER) as seen:
        link = link_to(seen.page, "term")
        link.scroll_into_view_if_needed()
        last = seen.page.locator("article p").last
        before = [link.bounding_box(), last.bounding_box()]
        link.hover()
        sync_api.expect(seen.page.get_by_role("tooltip")).to_have_count(1)
        assert [link.bounding_box(), last.bounding_box()] == before


def test_what_comes_late_is_shown_once(desk, site):
    with opened(desk, site, CHAPTER) as seen:
        held = []
        seen.page.route("**/references.html", lambda route: held.append(route))
        for _ in range(2):  # to the link, to the next one, and back
            reach(link_to(seen.page, "citation"), "keyboard")
            seen.page.wait_for_timeout(300)
        (request,) = held
        request.continue_()
        sync_api.expect(seen.page.get_by_role("tooltip")).to_have_count(1)
        seen.page.wait_for_timeout(300)
        assert seen.page.get_by_role("tooltip").count() == 1
        assert [*seen.errors, *seen.failed] == []


def test_a_finger_follows_the_link(telephone, site):
    with opened(telephone, site, CHAPTER) as seen:
        link_to(seen.page, "equation").tap()
        seen.page.wait_for_url(f"**{LINKS['equation']}")
        seen.page.wait_for_timeout(600)
        assert seen.page.get_by_role("tooltip").count() == 0


def test_pages_in_a_folder_show_what_they_hold_themselves(desk, book):
    """A browser does not let a page read another file. For a citation, the browser's
    own tooltip remains."""
    with opened(desk, f"{book.resolve().as_uri()}/", CHAPTER) as seen:
        for kind in (*ABROAD[:2], "equation"):
            link_to(seen.page, kind).hover()
            seen.page.wait_for_timeout(600)
            assert seen.page.get_by_role("tooltip").count() == (kind not in ABROAD)
        assert "regularization path" in str(
            link_to(seen.page, "citation").get_attribute("title")
        )
        assert [*seen.errors, *seen.failed] == []
