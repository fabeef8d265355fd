"""The calculator of scores in the built book, used as by readers."""

import pytest
from node import run_in_node
from optional import optional_import
from pages.browser import WINDOWS, opened

sync_api = optional_import("playwright.sync_api")
PAGE = "scores_in_the_browser.html"
ROUND_ROBIN = "Ann,Bob,Ann\nBob,Cid,Bob\nCid,Ann,Cid\nAnn,Bob,tie\nBob,Ann,Bob\n"


@pytest.fixture
def calculator(desk, site):
    """Open the page in a wide window. After the test, there must be no errors and no
    requests to other hosts."""
    with opened(desk, site, PAGE) as seen:
        yield seen
        assert seen.complaints == []


def paste(page, text):
    """Replace the table, as if it were pasted."""
    page.get_by_label("Comparisons, one per line").focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)
    page.get_by_role("button", name="Compute scores").click()


def rows(page):
    """Return the texts of the score table, row by row."""
    return page.locator("#scores-calculator tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )


def test_a_pasted_table_is_computed(calculator):
    page = calculator.page
    example = rows(page)
    paste(page, ROUND_ROBIN)
    found = rows(page)
    assert found != example
    code = """(script, text) => {
      const table = script.readTable(text), { scores } = script.fit(3, table.comparisons);
      return Object.fromEntries(table.items.map((name, k) => [name, scores[k]]));
    }"""
    scores = run_in_node("scores.js", code, ROUND_ROBIN)
    assert [row[0] for row in found] == sorted(scores, key=scores.get, reverse=True)
    for name, score, *_ in found:
        assert float(score.replace("−", "-")) == pytest.approx(scores[name], abs=0.0051)
    assert page.locator(".scores-picture circle").count() == len(found)
    command = page.locator("#scores-calculator code").inner_text()
    assert command.startswith("preflearn report FILE --judgements")


def test_a_choice_by_keyboard_changes_the_scores(calculator):
    page = calculator.page
    for name in ("Ties", "Penalty"):
        before = rows(page)
        page.get_by_label(name, exact=True).focus()
        page.keyboard.press("ArrowDown")
        assert rows(page) != before, name
    said = page.locator("#scores-calculator p[aria-live]")
    before = said.inner_text()
    page.get_by_label("with", exact=True).focus()
    page.keyboard.press("ArrowDown")
    sync_api.expect(said).not_to_have_text(before)


def test_names_are_text_whatever_they_contain(calculator):
    page = calculator.page
    names = ["<img src=x onerror=alert(1)>", "<b>bold</b>", "&amp;", "' onfocus='x"]
    lines = [f'"{a}","{b}","{a}"' for a in names for b in names if a != b]
    paste(page, "\n".join(lines))
    assert sorted(row[0] for row in rows(page)) == sorted(names)
    assert page.locator("#scores-calculator :is(img, b, script)").count() == 0


def test_groups_and_unbeaten_items_are_named(calculator):
    page = calculator.page
    paste(page, ROUND_ROBIN + "Dan,Eve,Dan\n")
    status = page.locator("#scores-calculator").get_by_role("status").inner_text()
    assert "2 groups" in status
    assert "“Dan” won every comparison" in status
    assert "penalty of 0.1" in status
    page.get_by_label("Compare").select_option("Ann")
    page.get_by_label("with", exact=True).select_option("Eve")
    assert "never meet" in page.locator("#scores-calculator p[aria-live]").inner_text()


def test_an_error_names_the_line_and_goes_once_it_is_mended(calculator):
    page = calculator.page
    paste(page, ROUND_ROBIN + "Ann,Bob,Zoe\n")
    alert = page.locator("#scores-calculator").get_by_role("alert")
    sync_api.expect(alert).to_contain_text("Line 6")
    sync_api.expect(alert).to_contain_text("“Zoe”")
    assert not page.locator("#scores-calculator table").is_visible()
    paste(page, ROUND_ROBIN)
    sync_api.expect(alert).to_be_empty()
    assert page.locator("#scores-calculator table").is_visible()


def test_a_file_is_read_on_the_page(calculator, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("winner;loser\nJosé;Ann\nAnn;José\nAnn;José\n", "utf-8")
    page = calculator.page
    page.get_by_label("or open a file").set_input_files(path)
    sync_api.expect(page.locator("#scores-calculator tbody tr").first).to_contain_text(
        "Ann"
    )
    assert (
        "winner -p second loser" in page.locator("#scores-calculator code").inner_text()
    )


@pytest.mark.parametrize("width", WINDOWS)
def test_the_longest_table_fits(calculator, width):
    """The table has 200 items with long names in two groups, and the second group is
    unbeaten."""
    long = "a name that is rather long, "
    lines = [f'"{long}{k}","{long}{(k + 1) % 198}"' for k in range(198)]
    paste(calculator.page, "\n".join([*lines, "Ann,Bob"]))
    calculator.resize(width)
    found = calculator.ask("layout")
    assert [found[rule] for rule in ("leaves", "spills", "cut", "uncued")] == [[]] * 4
    labels = calculator.page.locator(".scores-picture text:has(title)").evaluate_all(
        "labels => labels.map((label) => label.firstChild.data)"
    )
    assert len(labels) == 200
    assert len(set(labels)) == 200


def test_a_finger_works_the_page(telephone, site):
    with opened(telephone, site, PAGE) as seen:
        seen.page.get_by_role("button", name="Clear").tap()
        assert not seen.page.locator("#scores-calculator table").is_visible()
        seen.page.get_by_role("button", name="Show the example").tap()
        assert seen.page.locator("#scores-calculator table").is_visible()
        assert seen.complaints == []


def test_without_scripts_the_example_is_there(browser, site):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{site}{PAGE}")
        assert page.locator("#scores-calculator tbody tr").count() > 2
        assert page.locator("#scores-calculator").get_by_text("JavaScript").is_visible()
        assert page.locator("#scores-calculator textarea").count() == 0
