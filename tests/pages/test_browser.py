"""The built book in a browser: every page in both themes and at three widths."""

import html
import io
import re

import pytest
from matplotlib.image import imread
from pages.browser import (
    FIRST,
    RULES,
    THEMES,
    WINDOWS,
    chromium,
    inspect,
    linked_anchors,
    opened,
    page_names,
    served,
    window,
)
from pages.builds import contents

from bookrunner.ledger import REPRODUCTION, load_ledger

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: no test in a browser"
)
axe_base = pytest.importorskip(
    "axe_playwright_python.base", reason="axe is not installed: no test in a browser"
)
if chromium() is None:
    pytest.skip("there is no chromium on this machine: no test in a browser", allow_module_level=True)

FILES = contents()
NUMBERED = [name for name in FILES if re.fullmatch(r"chapters/0\d_(?!.*_more).*", name)]  # with equations
PAGES = [f"{name}.html" for name in [*FILES, "search", "genindex", "404"]]


@pytest.fixture(scope="module")
def browser():
    sync_api.expect.set_options(timeout=60_000)  # a slow machine is no failure
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def site(book):
    with served(book) as address:
        yield address


@pytest.fixture(scope="module")
def anchors(book):
    return linked_anchors(book)


@pytest.fixture(scope="module")
def reader(browser):
    """A reader who chose the light theme; for the dark one see test_browser_dark."""
    with window(browser, "light", FIRST["light"]) as context:
        yield context


@pytest.fixture(scope="module", params=PAGES)
def found(reader, site, anchors, request):
    """What is wrong with a page, by width and rule, from one visit."""
    return inspect(reader, site, request.param, anchors[request.param], axe_base.AXE_SCRIPT)


@pytest.mark.parametrize("rule", RULES)
def test_page_keeps_the_rule(found, rule):
    wrong = [f"{width} wide: {line}" for width, lines in found.items() for line in lines.get(rule, [])]
    assert not wrong, "\n".join([RULES[rule] + ", but:", *wrong])


def test_every_page_is_looked_at(book):
    assert set(page_names(book)) == set(PAGES)


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
        sync_api.expect(sentence).not_to_have_text(before, timeout=60_000)
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


@pytest.mark.parametrize("width", WINDOWS)
@pytest.mark.parametrize("kind", EXPLORERS)
def test_words_in_an_explorer_lie_on_nothing(browser, site, book, kind, width):
    """Wherever it is moved."""
    (name,) = pages_with(book, f'data-explorer="{kind}"')
    explorer = f'.explorer[data-explorer="{kind}"]'
    with window(browser, width=width) as context, opened(context, site, name) as seen:
        state = seen.page.locator(f"{explorer} .explorer-state")
        before = state.inner_text()
        assert seen.ask("words", explorer) == []
        assert state.inner_text() != before  # it was moved
        word = seen.page.locator(f"{explorer} .explorer-panels text:not(.press text, .grip text)").first
        word.evaluate("text => text.after(text.cloneNode(true))")
        assert seen.ask("words", explorer) != []


CLAIMS = "chapters/claims.html"


def listed(page):
    """Ids of the claims that a reader of the claims page sees without opening a fold."""
    return page.eval_on_selector_all(
        ".claims-fold .claim",
        "claims => claims.filter((one) => one.checkVisibility()).map((one) => one.id)",
    )


def ids_of(**wanted):
    """Ids of the ledger's entries with these contents."""
    return [
        f"claim-{one.id.lower()}"
        for one in load_ledger().values()
        if all(getattr(one, name) == content for name, content in wanted.items())
    ]


def test_claims_page_fits_one_screen_and_is_filtered(browser, site):
    """By the keyboard; the choice is in the address, and what is left stands open."""
    verdict = "fails"
    with window(browser) as context, opened(context, site, CLAIMS) as seen:
        page = seen.page
        assert listed(page) == []
        assert page.locator("article").bounding_box()["height"] <= WINDOWS[1400]
        sync_api.expect(page.locator(".claims-filters")).to_be_in_viewport(ratio=1)
        page.get_by_label("verdict").focus()
        page.keyboard.type(verdict)
        expected = ids_of(verdict=verdict)
        assert sorted(listed(page)) == sorted(expected)
        apart = ids_of(kind=REPRODUCTION)
        made, wrong = len(apart), len({*apart} & {*expected})
        claims = f"{len(expected) - wrong} of {len(load_ledger()) - made} claims"
        said = f"{claims} shown, {wrong} of {made} reproductions"
        assert page.get_by_role("status").inner_text() == said
        heads = page.locator(".claims-section:not([hidden]) > summary .counts").all_inner_texts()
        assert sum(int(head.split(" of ")[0]) for head in heads) == len(expected) - wrong
        paper = expected[-1][6:8]
        page.get_by_label("paper").select_option(paper.upper())
        ours = ids_of(kind="reproduction")  # no paper's
        expected = [one for one in expected if one.startswith(f"claim-{paper}") and one not in ours]
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


@pytest.mark.parametrize("width", WINDOWS)
def test_a_link_to_some_claims_shows_what_was_chosen(browser, site, width):
    """On a telephone the filters stand below what opens the page."""
    chosen = f"{CLAIMS}?verdict=not+shown"
    with window(browser, width=width) as context, opened(context, site, chosen) as seen:
        sync_api.expect(seen.page.locator(".claims-filters")).to_be_in_viewport(ratio=1)


def test_the_essay_leads_to_the_claims_behind_each_part_of_a_bar(browser, site):
    """By the keyboard: every part is reached, one after the other."""
    with window(browser) as context, opened(context, site, "learned.html") as seen:
        parts = seen.page.locator(".claims-papers a")
        names = parts.evaluate_all("links => links.map((link) => link.getAttribute('aria-label'))")
        of_papers = [one for one in load_ledger().values() if one.kind != "reproduction"]
        assert sum(int(name.split()[1]) for name in names) == len(of_papers)
        parts.first.focus()
        for name in names[1:]:
            seen.page.keyboard.press("Tab")
            assert seen.page.evaluate("document.activeElement.getAttribute('aria-label')") == name
        seen.page.keyboard.press("Enter")
        sync_api.expect(seen.page.locator(".claims-filters")).to_be_visible(timeout=60_000)
        paper, verdict = (seen.page.get_by_label(name).input_value() for name in ("paper", "verdict"))
        expected = ids_of(paper=paper, verdict=verdict)
        assert set(listed(seen.page)) == set(expected) - set(ids_of(kind="reproduction"))
        assert len(listed(seen.page)) == int(names[-1].split()[1])
        assert seen.errors == []


def test_claims_page_works_without_scripts(browser, site):
    context = browser.new_context(java_script_enabled=False)
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
    context.close()


@pytest.mark.parametrize("theme", THEMES)
def test_a_link_from_the_ledger_opens_the_claim_and_its_fold(browser, site, theme):
    claim = next(one for one in load_ledger().values() if one.verdict == "holds")
    with (
        window(browser, theme) as context,
        opened(context, site, f"{CLAIMS}#claim-{claim.id.lower()}") as seen,
    ):
        entry = seen.page.locator(f"#claim-{claim.id.lower()}")
        entry.get_by_role("link", name=f"Chapter {claim.chapter[:2]}").click()
        badge = seen.page.locator(f"#check-{claim.id}")
        sync_api.expect(badge.locator(".claim-where")).to_be_in_viewport(timeout=60_000)
        badge.get_by_role("link", name=claim.id).click()
        sync_api.expect(entry.get_by_role("link").first).to_be_in_viewport(timeout=60_000)
        assert seen.errors == []


@pytest.mark.parametrize(("theme", "ground"), [("light", 255), ("dark", 18)])
def test_a_figure_has_the_ground_of_its_page(browser, site, theme, ground):
    with window(browser, theme) as context, opened(context, site, f"{NUMBERED[0]}.html") as seen:
        picture = seen.page.locator("article figure img").first.screenshot()
    corner = imread(io.BytesIO(picture))[2, 2, :3] * 255
    assert corner.round().tolist() == [ground] * 3


def test_no_code_of_checks_and_figures_is_printed(browser, site):
    with window(browser) as context, opened(context, site, f"{NUMBERED[1]}.html") as seen:
        seen.unfold()
        code = seen.page.locator(".section-code")
        assert code.count() > 0
        assert all(one.is_visible() for one in code.all())
        seen.page.emulate_media(media="print")
        assert not any(one.is_visible() for one in code.all())


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


def search(page, words):
    """Type words into the search field and give the results: address and text as the reader sees it."""
    field = page.locator(".bd-search-container input[type=search]")
    field.fill(words)
    field.press("Enter")
    page.wait_for_function(
        """words => new URLSearchParams(location.search).get("q") === words
        && /found \\d+ page|did not match/.test(
            document.querySelector("#search-results .search-summary")?.innerText)
        && [...document.querySelectorAll("#search-results ul.search li")]
            .every((entry) => entry.querySelector("p.context, span"))""",
        arg=words,
    )
    results = page.locator("#search-results ul.search li")
    return [(li.locator("a").first.get_attribute("href"), li.inner_text()) for li in results.all()]


def named_boxes(book):
    """Theorems and their kin that have a name: page, anchor, number and name."""
    box = re.compile(
        r'<div class="proof [^"]*" id="([^"]+)">\s*<p class="admonition-title">'
        r'<span class="caption-number">([^<]+)</span>\s*\((.+?)\)</p>'
    )
    return [
        (name, anchor, number.strip(), html.unescape(re.sub(r"<[^>]*>|\\\(.*?\\\)", "", title)))
        for name in page_names(book)
        for anchor, number, title in box.findall((book / name).read_text("utf-8"))
    ]


def test_search_finds_each_theorem_by_its_name(browser, site, book):
    boxes = named_boxes(book)
    assert len(boxes) > 10
    with window(browser) as context, opened(context, site, "search.html") as seen:
        for name, anchor, number, title in boxes:
            first = search(seen.page, title)[:3]
            assert name in [link.split("#")[0] for link, _ in first], (number, title, first)
            assert f"{name}#{anchor}" in [link for link, _ in first], (number, title, first)
        assert seen.errors == []


@pytest.mark.parametrize(
    ("words", "chapter"),
    [("Lemma 3.1", "03_lemma"), ("incidence matrix", "01_one_graph"), ("bias", "04_svmcompare")],
)
def test_search_shows_text_without_formulas_in_code(browser, site, words, chapter):
    with window(browser) as context, opened(context, site, "search.html") as seen:
        results = search(seen.page, words)
        assert f"chapters/{chapter}.html" in [link.split("#")[0] for link, _ in results[:3]]
        assert [text for _, text in results if re.search(r"\\[A-Za-z()\[\]{}]|\$", text)] == []


# The rules themselves: a page with one fault of each kind.
FAULTS = {
    "errors": '<script>console.error("fault-errors")</script>',
    "foreign": '<img src="http://fault-foreign.invalid/x.png" alt="A picture of another host">',
    "failed": '<img src="fault-failed.png" alt="A picture that is not there">',
    "landing": '<script>addEventListener("load", () => scrollTo({ top: 0, behavior: "instant" }))</script>'
    '<div style="height: 3000px"></div><p id="fault-landing">The reader ends elsewhere.</p>',
    "anchors": '<p id="fault-anchors" style="display: none">Hidden</p>',
    "behind": '<p id="fault-behind" style="scroll-margin-top: -3rem">Behind the header</p>',
    "leaves": '<p id="fault-leaves" style="width: 3000px">A long way</p>',
    "spills": '<table id="fault-spills" style="display: table; width: 115%"><tr><td>Wide</td></tr></table>',
    "cut": '<div id="fault-cut" style="width: 3em; overflow: hidden; white-space: nowrap">Half is seen</div>',
    "uncued": '<div id="fault-uncued" style="width: 2em; overflow: auto; white-space: nowrap">Read on</div>',
    "height": '<div style="height: 12000px"></div>',
    "words": f"<div>{'word ' * 5000}</div>",
    "paragraphs": f'<p id="fault-paragraphs">{"word " * 121}</p>',
    "bars": '<details class="hide" id="fault-bars"><summary style="height: 4000px">Code</summary></details>',
    "axe": '<p id="fault-axe" style="color: #bbb; background: #fff">Hardly to be read</p>',
}
FINE = (
    '<p id="fine-anchors">Shown</p><div id="fine-uncued" tabindex="0" style="width: 9em; overflow: auto; '
    'white-space: nowrap; box-shadow: inset -9px 0 9px gray">A shadow says that there is more</div>'
)


POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


def with_faults(book, folder, faults):
    """The name of a page, and its text with these faults in it; what it loads is linked into the folder."""
    name = f"{NUMBERED[0]}.html"
    text = (book / name).read_text("utf-8")
    begin = text.index("</h1>", text.index("<article")) + len("</h1>")
    (folder / name).parent.mkdir(parents=True)
    for part in ("_static", "_images"):
        (folder / part).symlink_to(book.resolve() / part)
    return name, text[:begin] + faults + text[begin:]


def test_scripts_and_an_image_from_elsewhere_are_refused(book, browser, tmp_path):
    """A script in the page that was not there when it was built, and what another host has."""
    foreign = '<script src="http://fault-foreign.invalid/x.js"></script>'
    name, text = with_faults(book, tmp_path, FAULTS["errors"] + FAULTS["foreign"] + foreign)
    assert POLICY.search(text)
    (tmp_path / name).write_text(text, "utf-8")
    with served(tmp_path) as address, window(browser) as context, opened(context, address, name) as seen:
        refused = [line for line in seen.errors if "Content Security Policy" in line]
        assert len(refused) == 3
        assert "fault-errors" not in seen.errors


@pytest.fixture(scope="module")
def doctored(book, browser, tmp_path_factory):
    """What is found on a chapter with these faults, one equation too wide and another under its number."""
    folder = tmp_path_factory.mktemp("doctored")
    name, text = with_faults(book, folder, FINE + "".join(FAULTS.values()))
    text = POLICY.sub("", text)  # which would not let the faults happen
    wide, crowded = re.findall(r'<div class="math[^>]* id="([^"]+)">\s*<span class="eqno">', text)[:2]
    text = re.sub(rf'(id="{wide}">.*?\\\[)', r"\g<1>" + "x + " * 80, text, count=1, flags=re.DOTALL)
    text = text.replace(f'id="{wide}"', 'id="fault-equations"').replace(
        f'id="{crowded}"', 'id="fault-numbers"'
    )
    text = text.replace(
        "</head>", "<style>#fault-numbers .eqno { position: absolute; left: 50% }</style></head>"
    )
    (folder / name).write_text(text, "utf-8")
    with served(folder) as address, window(browser) as context:
        anchors = ["fine-anchors", "fault-anchors", "fault-behind", "fault-landing"]
        return inspect(context, address, name, anchors, axe_base.AXE_SCRIPT)[1400]


@pytest.mark.parametrize("rule", RULES)
def test_rule_finds_a_fault(doctored, rule):
    of_the_page = rule in ("height", "words", "picture")
    marks = [""] if of_the_page else [f"fault-{rule}"]
    assert any(mark in found for mark in marks for found in doctored[rule])
    assert "fine-" not in " ".join(doctored[rule])


def test_a_covered_anchor_is_not_a_seen_one(doctored):
    assert any(line.startswith("#fault-behind lies behind") for line in doctored["anchors"])
