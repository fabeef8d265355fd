"""Lines of readable length, letters of readable size, and a short sidebar."""

import pytest
from optional import optional_import
from pages.browser import WINDOWS, opened
from pages.claims_page import CLAIMS

sync_api = optional_import("playwright.sync_api")

CHAPTER = "chapters/08_path.html"
# Number of characters in each line of paragraphs without formulas.
LINES = """() => {
  const lengths = [];
  for (const text of document.querySelectorAll("article section > p")) {
    if (text.querySelector(".math") || text.closest(".admonition, figure")) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.bottom / 12)));
    if (lines.size > 2) lengths.push(text.innerText.length / (lines.size - 0.5));
  }
  return lengths;
}"""
SIZES = """(elements) => elements.filter((one) => one.checkVisibility())
  .map((one) => parseFloat(getComputedStyle(one).fontSize))"""
WIDTHS = "(elements) => elements.map((one) => one.getBoundingClientRect().width)"


def test_lines_of_text_are_short_and_figures_may_be_wider(desk, site):
    with opened(desk, site, CHAPTER) as seen:
        lengths = sorted(seen.page.evaluate(LINES))
        assert 60 <= lengths[len(lengths) // 2] <= 80
        article = seen.page.locator("article.bd-article")
        texts = article.locator("section > p").evaluate_all(WIDTHS)
        code = article.locator("div.cell_input").evaluate_all(WIDTHS)
        figures = article.locator("figure").evaluate_all(WIDTHS)
        assert max(texts) < min(max(code), max(figures)) - 100


@pytest.mark.parametrize("width", [max(WINDOWS), min(WINDOWS)])
def test_captions_and_code_have_at_least_14_pixels(desk, site, width):
    with opened(desk, site, CHAPTER, width) as seen:
        article = seen.page.locator("article.bd-article")
        for kind in ("figcaption p", "pre", "p > code"):
            sizes = article.locator(kind).evaluate_all(SIZES)
            assert sizes, kind
            assert min(sizes) >= 14, kind


def test_the_sidebar_names_methods_and_folds_all_other_parts(desk, site):
    with opened(desk, site, CHAPTER) as seen:
        sidebar = seen.page.locator(".bd-sidebar-primary nav.bd-links")
        links = sidebar.locator("a").evaluate_all(
            "links => links.filter((link) => link.checkVisibility()).map((link) => link.href)"
        )
        # the part of this chapter is open; the sidebar lists the appendix of this
        # chapter only
        names = [link.rstrip("#").split("/")[-1] for link in links]
        assert [name for name in names if name[0].isdigit()] == [
            "08_path.html",
            "08_path_more.html",
            "09_selection.html",
        ]
        titles = sidebar.locator("a[href*='09_selection.html']")
        colors = [
            part.evaluate("one => getComputedStyle(one).color")
            for part in (titles, titles.locator(".subtitle"))
        ]
        assert colors[0] != colors[1]
        part = sidebar.locator("details.part", has=seen.page.locator("[href*=errata_]"))
        part.locator("summary").focus()
        seen.page.keyboard.press("Enter")
        sync_api.expect(part.locator("[href*=errata_]").first).to_be_visible()


def test_an_open_part_contains_the_page(desk, site):
    with opened(desk, site, CLAIMS) as seen:
        open_parts = seen.page.locator(".bd-sidebar-primary details.part[open]")
        assert open_parts.count() == 1
        sync_api.expect(open_parts.locator(".active > a")).to_be_visible()


def test_the_drawer_of_a_telephone_shows_the_current_page(telephone, site):
    with opened(telephone, site, "api/datasets.html") as seen:
        seen.page.locator(".primary-toggle").tap()
        link = seen.page.locator("#pst-primary-sidebar-modal .active > a")
        sync_api.expect(link).to_be_in_viewport()


@pytest.mark.parametrize("name", [CLAIMS, CHAPTER])
def test_the_button_to_the_top_covers_nothing(telephone, site, name):
    with opened(telephone, site, name) as seen:
        page = seen.page
        button = page.locator("#pst-back-to-top")
        page.mouse.wheel(0, 900)
        page.wait_for_function("() => scrollY > 300")
        page.mouse.wheel(0, -100)
        sync_api.expect(button).to_be_visible()
        header = page.locator(".bd-header-article").bounding_box()
        box = button.bounding_box()
        assert box["y"] >= header["y"]
        assert box["y"] + box["height"] <= header["y"] + header["height"]
        covered = page.locator(".bd-header-article :is(a, button, label)").evaluate_all(
            """(controls) => {
            const top = document.querySelector("#pst-back-to-top").getBoundingClientRect();
            return controls.filter((one) => {
              const box = one.getBoundingClientRect();
              return one.id !== "pst-back-to-top" && box.width > 0 &&
                box.left < top.right && top.left < box.right;
            }).length;
            }"""
        )
        assert covered == 0
        button.click()
        page.wait_for_function("() => scrollY < 10")
