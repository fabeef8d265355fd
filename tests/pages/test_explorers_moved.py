"""Readers who move the explorers of the built book: with a mouse, a finger and the keyboard."""

import re

import pytest
from pages.browser import opened, page_names, window

# A reader moves an explorer, and the sentence under it says what came of it.
EXPLORERS = {  # what to hold, how far to move it (none: a tap), what to focus, and the key that changes it
    "graph": ("[role=switch] .hit", 0, "[role=switch]", "Space"),
    "margins": (".grip", -60, "input[type=range]", "ArrowRight"),
    "bias": (".explorer-panels svg", -60, "input[type=range]", "ArrowRight"),
    "path": (".explorer-panels div:last-child svg", -60, "input[type=range]", "ArrowRight"),
    "pursuit": (".explorer-panels > div:last-child > svg:last-child", -60, "input[type=range]", "ArrowRight"),
    "match": (".explorer-panels > div:last-child > svg:last-child", -60, "input[type=range]", "ArrowRight"),
    "timelines": (".explorer-panels > div:last-child > svg", -60, "input[type=range]", "ArrowRight"),
    "analogy": ("[role=slider]", -60, "[role=slider]", "ArrowRight"),
}


def pages_with(book, text):
    return [name for name in page_names(book) if text in (book / name).read_text("utf-8")]


def test_every_kind_of_explorer_is_moved(book):
    kinds = {
        kind
        for name in page_names(book)
        for kind in re.findall(r'data-explorer="(\w+)"', (book / name).read_text())
    }
    assert kinds == set(EXPLORERS)


@pytest.mark.parametrize("by", ["mouse", "finger", "keyboard", "keyboard without a server"])
@pytest.mark.parametrize("kind", EXPLORERS)
def test_explorer_answers(browser, site, book, kind, by):
    (name,) = pages_with(book, f'data-explorer="{kind}"')
    spot, way, control, key = EXPLORERS[kind]
    base = f"{book.resolve().as_uri()}/" if by == "keyboard without a server" else site
    with (
        window(browser, width=400 if by == "finger" else 1400) as context,
        opened(context, base, name) as seen,
    ):
        explorer = seen.page.locator(f'.explorer[data-explorer="{kind}"]')
        sentence = explorer.locator("[aria-live]")
        before = sentence.inner_text()
        assert len(before) > 20
        if by in ("mouse", "finger"):
            place = explorer.locator(spot).first
            place.scroll_into_view_if_needed()
            x, y, width, height = (place.bounding_box()[side] for side in ("x", "y", "width", "height"))
            hold_and_move(seen.page, by, x + width / 2, y + height / 2, way)
        else:
            explorer.locator(control).first.focus()
            for _ in range(5):
                seen.page.keyboard.press(key)
        from playwright.sync_api import expect

        expect(sentence).not_to_have_text(before, timeout=60_000)
        assert [*seen.errors, *seen.foreign, *seen.failed] == []


@pytest.mark.parametrize("kind", EXPLORERS)
def test_a_finger_that_pans_the_page_moves_no_explorer(browser, site, book, kind):
    (name,) = pages_with(book, f'data-explorer="{kind}"')
    with window(browser, width=400) as context, opened(context, site, name) as seen:
        explorer = seen.page.locator(f'.explorer[data-explorer="{kind}"]')
        place = explorer.locator(".explorer-panels svg").last
        place.scroll_into_view_if_needed()
        shown = explorer.locator(".explorer-state").inner_text()
        x, y, width, height = (place.bounding_box()[side] for side in ("x", "y", "width", "height"))
        touch = seen.page.context.new_cdp_session(seen.page)
        for step, event in enumerate(["touchStart", *8 * ["touchMove"], "touchEnd"]):
            spot = {"x": x + width / 2 + 2 * step, "y": y + height / 2 - 9 * step}
            points = [] if event == "touchEnd" else [spot]
            touch.send("Input.dispatchTouchEvent", {"type": event, "touchPoints": points})
        assert explorer.locator(".explorer-state").inner_text() == shown


@pytest.mark.parametrize("kind", EXPLORERS)
def test_explorer_fits_the_narrowest_telephone(browser, site, book, kind):
    (name,) = pages_with(book, f'data-explorer="{kind}"')
    with window(browser, width=400) as context, opened(context, site, name) as seen:
        seen.page.set_viewport_size({"width": 320, "height": 640})
        seen.page.wait_for_timeout(300)
        ui = seen.page.locator(f'.explorer[data-explorer="{kind}"] .explorer-ui')
        room, wanted = ui.evaluate("node => [node.closest('.cell_output').clientWidth, node.scrollWidth]")
        assert wanted <= room


def hold_and_move(page, by, x, y, way):
    """Press at a place, move sideways, and let go."""
    steps = [x + way * share for share in (0.5, 1)] if way else []
    if by == "mouse":
        page.mouse.move(x, y)
        page.mouse.down()
        for step in steps:
            page.mouse.move(step, y)
        page.mouse.up()
        return
    touch = page.context.new_cdp_session(page)
    events = [("touchStart", [{"x": x, "y": y}]), *(("touchMove", [{"x": step, "y": y}]) for step in steps)]
    for kind, points in [*events, ("touchEnd", [])]:
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
