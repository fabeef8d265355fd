"""A reader without a mouse: Tab through a page, an explorer, and the filters of claims."""

import pytest
from optional import optional_import
from pages.browser import opened
from pages.builds import rest_nightly
from pages.claims_page import CLAIMS, listed

sync_api = optional_import("playwright.sync_api")

CHAPTER = "chapters/08_path.html"
CONTROLS = "a[href], button, input, select, summary, [tabindex='0']"


@pytest.mark.parametrize(
    "name", rest_nightly(["index.html", CHAPTER, CLAIMS], ["index.html", CLAIMS])
)
def test_tab_reaches_every_control_in_order_and_is_seen(desk, site, name):
    with opened(desk, site, name) as seen:
        steps = 0
        while steps < 600:
            seen.page.keyboard.press("Tab")
            if not seen.ask("stop"):
                break
            steps += 1
        assert steps > 60
        assert seen.ask("walked", CONTROLS) == {
            "missed": [],
            "backwards": [],
            "unseen": [],
        }
        assert seen.complaints == []


def test_faults_of_a_walk_are_found(desk, site):
    faults = """<button style="outline: none">Without a ring</button><a href="#">Second</a>
    <a href="#" tabindex="2">First</a><button id="last">Not reached</button>"""
    with opened(desk, site, "404.html") as seen:
        seen.page.evaluate("(faults) => { document.body.innerHTML = faults; }", faults)
        for _ in range(3):
            seen.page.keyboard.press("Tab")
            seen.ask("stop")
        found = seen.ask("walked", CONTROLS)
        numbers = {rule: len(lines) for rule, lines in found.items()}
        assert numbers == {"missed": 1, "backwards": 1, "unseen": 1}


def to_the_text(page):
    """Follow the link that skips the navigation."""
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")


def tab_to(page, control):
    """Press Tab until the first of some controls has the focus."""
    first = page.locator(control).first
    for _ in range(60):
        page.keyboard.press("Tab")
        if first.evaluate("(control) => control === document.activeElement"):
            return first
    pytest.fail(f"Tab does not lead to {control}")


def test_an_explorer_is_worked_by_keys(desk, site):
    with opened(desk, site, CHAPTER) as seen:
        to_the_text(seen.page)
        tab_to(seen.page, ".explorer input")
        explorer = seen.page.locator(".explorer")
        sentence = explorer.locator("[aria-live]")
        controls = explorer.locator(CONTROLS).all()
        boxes = [control.bounding_box() for control in controls]
        places = [(round(box["y"], -1), box["x"]) for box in boxes]
        assert places == sorted(places)
        for k, control in enumerate(controls):
            sync_api.expect(control).to_be_focused()
            slider = control.get_attribute("type") == "range"
            for key in (
                ["ArrowRight", "End", "Home"] if slider else [("Enter", "Space")[k % 2]]
            ):
                before = sentence.inner_text()
                seen.page.keyboard.press(key)
                sync_api.expect(sentence).not_to_have_text(before)
            seen.page.keyboard.press("Tab")
        assert len(controls) > 2
        assert not explorer.evaluate("(box) => box.contains(document.activeElement)")
        assert seen.errors == []


def test_claims_are_filtered_opened_and_followed_by_keys(desk, site):
    with opened(desk, site, CLAIMS) as seen:
        page = seen.page
        press = page.keyboard.press
        to_the_text(page)
        tab_to(page, ".claims-filters select")
        for name in ("paper", "verdict", "kind", "consequence", "chapter", "words"):
            sync_api.expect(
                page.locator(f".claims-filters [name={name}]")
            ).to_be_focused()
            if name == "paper":
                press("ArrowDown")
                assert {one[:8] for one in listed(page)} == {"claim-p1"}
            press("Tab")
        sync_api.expect(page.get_by_role("button", name="Show all")).to_be_focused()
        press("Space")
        assert listed(page) == []
        sync_api.expect(page.get_by_role("searchbox", name="words")).to_be_focused()
        for fold, key in (
            (".claims-paper", "Enter"),
            (".claims-section", "Space"),
            (".claim", "Enter"),
        ):
            tab_to(page, f"{fold} > summary")
            press(key)
            sync_api.expect(page.locator(fold).first).to_have_attribute("open", "")
        target = tab_to(page, ".claim a").get_attribute("href")
        press("Enter")
        page.wait_for_url(f"**/{target}")
        assert seen.errors == []
