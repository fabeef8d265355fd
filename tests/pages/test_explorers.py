"""Explorers of the built book: they respond to a mouse, a finger, and the keyboard."""

import pytest
from optional import optional_import
from pages.browser import WINDOWS, opened
from pages.explorers import EXPLORERS, pages_of_explorers, selector

sync_api = optional_import("playwright.sync_api")


@pytest.fixture(scope="session")
def pages(book):
    return pages_of_explorers(book)


def test_every_kind_of_explorer_is_moved(pages):
    assert set(pages) == set(EXPLORERS)


def center(place):
    """Scroll to a place and return its middle."""
    place.scroll_into_view_if_needed()
    box = place.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def steps_of(way):
    return [way * part for part in (0.5, 1)] if way else []


def drag_by_mouse(page, place, way):
    x, y = center(place)
    page.mouse.move(x, y)
    page.mouse.down()
    for step in steps_of(way):
        page.mouse.move(x + step, y)
    page.mouse.up()


def touch(page, places):
    """Put a finger on the first of some places, move it over the others, and lift it."""
    session = page.context.new_cdp_session(page)
    for number, (x, y) in enumerate(places):
        kind = "touchMove" if number else "touchStart"
        points = [{"x": x, "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


def drag_by_finger(page, place, way):
    x, y = center(place)
    touch(page, [(x + step, y) for step in [0, *steps_of(way)]])


def press_five_times(page, explorer, control, key):
    explorer.locator(control).first.focus()
    for _ in range(5):
        page.keyboard.press(key)


def assert_answers(explorer, act):
    """Check that the sentence below the explorer changes after an action."""
    sentence = explorer.locator("[aria-live]")
    before = sentence.inner_text()
    assert len(before) > 20
    act()
    sync_api.expect(sentence).not_to_have_text(before, timeout=60_000)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", EXPLORERS)
def test_words_in_an_explorer_lie_on_nothing(desk, site, pages, kind):
    """This holds for every position of the explorer, and at each width."""
    with opened(desk, site, pages[kind]) as seen:
        word = seen.page.locator(
            f"{selector(kind)} .explorer-panels text:not(.press text, .grip text)"
        ).first
        for width in WINDOWS:
            seen.resize(width)
            assert seen.ask("words", selector(kind)) == [], width
            word.evaluate("text => text.after(text.cloneNode(true))")
            assert seen.ask("words", selector(kind), False) != [], (
                "two words lie on each other"
            )
            word.evaluate("text => text.nextSibling.remove()")
        assert seen.complaints == []


@pytest.mark.parametrize("kind", EXPLORERS)
def test_explorer_answers_to_mouse_keyboard_and_finger(telephone, site, pages, kind):
    """The test uses a mouse and keys in a wide window, and a finger on a telephone,
    where the explorer must fit."""
    spot, way, control, key = EXPLORERS[kind]
    with opened(telephone, site, pages[kind], width=1400) as seen:
        explorer = seen.page.locator(selector(kind))
        place = explorer.locator(spot).first
        assert_answers(explorer, lambda: drag_by_mouse(seen.page, place, way))
        assert_answers(
            explorer, lambda: press_five_times(seen.page, explorer, control, key)
        )
        seen.resize(400)
        assert_answers(explorer, lambda: drag_by_finger(seen.page, place, way))
        # A finger that pans the page does not move the explorer.
        state = explorer.locator(".explorer-state").inner_text()
        x, y = center(explorer.locator(".explorer-panels svg").last)
        touch(seen.page, [(x + 2 * step, y - 9 * step) for step in range(9)])
        assert explorer.locator(".explorer-state").inner_text() == state
        assert seen.complaints == []
        # The narrowest telephone.
        seen.page.set_viewport_size({"width": 320, "height": 640})
        seen.page.wait_for_timeout(300)
        ui = explorer.locator(".explorer-ui")
        assert ui.evaluate(
            "ui => ui.scrollWidth <= ui.closest('.cell_output').clientWidth"
        )


WITHOUT_SERVER = [
    kind if kind == "graph" else pytest.param(kind, marks=pytest.mark.nightly)
    for kind in EXPLORERS
]


@pytest.mark.parametrize("kind", WITHOUT_SERVER)
def test_explorer_answers_to_the_keyboard_without_a_server(desk, book, pages, kind):
    _, _, control, key = EXPLORERS[kind]
    with opened(desk, f"{book.resolve().as_uri()}/", pages[kind]) as seen:
        explorer = seen.page.locator(selector(kind))
        assert_answers(
            explorer, lambda: press_five_times(seen.page, explorer, control, key)
        )
        assert seen.complaints == []
