"""The page of claims in a browser: filters, folds, and links to and from chapters."""

import pytest
from optional import optional_import
from pages.browser import WINDOWS, opened
from pages.builds import rest_nightly
from pages.claims_page import CLAIMS, ids_of, listed

from preflearn_book.runner.claims import COUNTED_VERDICTS, NOT_COUNTED, load_claims

sync_api = optional_import("playwright.sync_api")


def ids_not_counted():
    return [id_ for kind in NOT_COUNTED for id_ in ids_of(kind=kind)]


def test_claims_page_fits_one_screen_and_is_filtered(desk, site):
    """The test uses the keyboard. The address stores the selection, and the selected
    claims are open."""
    verdict = "fails"
    with opened(desk, site, CLAIMS) as seen:
        page = seen.page
        assert listed(page) == []
        assert page.locator("article").bounding_box()["height"] <= WINDOWS[1400]
        sync_api.expect(page.locator(".claims-filters")).to_be_in_viewport(ratio=1)
        page.get_by_label("verdict").focus()
        page.keyboard.type(verdict)
        expected = ids_of(verdict=verdict)
        assert sorted(listed(page)) == sorted(expected)
        not_counted = ids_not_counted()
        apart = len({*not_counted} & {*expected})
        numbers = [
            len(expected) - apart,
            len(load_claims()) - len(not_counted),
            apart,
            len(not_counted),
        ]
        status = page.get_by_role("status").inner_text()
        assert [int(word) for word in status.split() if word.isdigit()] == numbers
        heads = page.locator(
            ".claims-section:not([hidden]) > summary .counts"
        ).all_inner_texts()
        assert (
            sum(int(head.split(" of ")[0]) for head in heads) == len(expected) - apart
        )
        paper = expected[-1][6:8]
        page.get_by_label("paper").select_option(paper.upper())
        expected = [
            claim
            for claim in expected
            if claim.startswith(f"claim-{paper}") and claim not in not_counted
        ]
        assert sorted(listed(page)) == sorted(expected)
        page.get_by_label("words").fill(expected[0].removeprefix("claim-").upper())
        assert expected[0] in listed(page)
        assert f"paper={paper.upper()}&verdict=fails&words=P" in page.url
        page.reload()
        assert expected[0] in listed(page)
        page.get_by_role("button", name="Show all").click()
        assert listed(page) == []
        assert page.url == site + CLAIMS
        assert seen.errors == []


@pytest.mark.parametrize("width", rest_nightly(WINDOWS, [min(WINDOWS)]))
def test_a_link_to_some_claims_shows_what_was_chosen(desk, site, width):
    """In a narrow window, the filters are below the introduction of the page."""
    chosen = f"{CLAIMS}?verdict=not+shown"
    with opened(desk, site, chosen, width) as seen:
        sync_api.expect(seen.page.locator(".claims-filters")).to_be_in_viewport(ratio=1)


def test_a_telephone_shows_the_counts_of_all_verdicts(telephone, site):
    with opened(telephone, site, CLAIMS) as seen:
        heads = seen.page.locator(".claims-summary th[scope=col]")
        assert heads.count() >= 2 + len(COUNTED_VERDICTS)
        for head in heads.all():
            box = head.bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= min(WINDOWS)
        letters = seen.page.locator(".claims-summary td").evaluate_all(
            "cells => cells.map((cell) => parseFloat(getComputedStyle(cell).fontSize))"
        )
        assert min(letters) >= 12


def test_the_essay_leads_to_the_claims_behind_each_part_of_a_bar(desk, site):
    """The keyboard reaches every part, one after the other."""
    with opened(desk, site, "learned.html") as seen:
        parts = seen.page.locator(".claims-papers a")
        names = parts.evaluate_all(
            "links => links.map((link) => link.getAttribute('aria-label'))"
        )
        of_papers = [
            claim for claim in load_claims().values() if claim.kind not in NOT_COUNTED
        ]
        assert sum(int(name.split()[1]) for name in names) == len(of_papers)
        parts.first.focus()
        for name in names[1:]:
            seen.page.keyboard.press("Tab")
            assert (
                seen.page.evaluate("document.activeElement.getAttribute('aria-label')")
                == name
            )
        seen.page.keyboard.press("Enter")
        sync_api.expect(seen.page.locator(".claims-filters")).to_be_visible(
            timeout=60_000
        )
        paper = seen.page.get_by_label("paper").input_value()
        verdict = seen.page.get_by_label("verdict").input_value()
        expected = set(ids_of(paper=paper, verdict=verdict)) - set(ids_not_counted())
        assert set(listed(seen.page)) == expected
        assert len(expected) == int(names[-1].split()[1])
        assert seen.errors == []


def test_claims_page_works_without_scripts(browser, site):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{site}{CLAIMS}")
        assert page.locator(".claims-filters").count() == 0
        claim = page.locator(".claims-paper .claim").first
        for fold in (".claims-paper", ".claims-section"):
            assert not claim.is_visible()
            page.locator(f"{fold} > summary").first.click()
        link = claim.locator("p:not(summary *)").first
        assert claim.is_visible()
        assert not link.is_visible()
        claim.locator("summary").click()
        assert link.is_visible()


def test_a_claim_and_its_chapter_link_to_each_other(desk, site):
    """The link back opens the claim and the folds around it."""
    claim = next(
        claim
        for claim in load_claims().values()
        if claim.verdict == "holds" and claim.kind not in NOT_COUNTED
    )
    with opened(desk, site, f"{CLAIMS}#claim-{claim.id.lower()}") as seen:
        entry = seen.page.locator(f"#claim-{claim.id.lower()}")
        entry.get_by_role("link", name=f"Chapter {int(claim.chapter[:2])}").click()
        badge = seen.page.locator(f"#check-{claim.id}")
        sync_api.expect(badge.locator(".claim-where")).to_be_in_viewport(timeout=60_000)
        badge.get_by_role("link", name=claim.id).click()
        sync_api.expect(entry.get_by_role("link").first).to_be_in_viewport(
            timeout=60_000
        )
        assert seen.errors == []
