"""The rules that every page of the built book keeps, in both themes, on a wide screen and on a telephone."""

import re

import pytest
import yaml
from pages.browser import RULES, THEMES, WINDOWS, inspect, linked_anchors, page_names, served, window
from pages.builds import ROOT

FIRST = dict(zip(THEMES, WINDOWS, strict=True))  # the window in which a page is opened; then it is turned
TOC = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text("utf-8"))
FILES = [TOC["root"], *(chapter["file"] for part in TOC["parts"] for chapter in part["chapters"])]
PAGES = [f"{name}.html" for name in [*FILES, "search"]]


@pytest.fixture(scope="module")
def axe():
    """The script of axe, which looks for what readers with a handicap can't use."""
    base = pytest.importorskip(
        "axe_playwright_python.base", reason="axe is not installed: no test of its rules"
    )
    return base.AXE_SCRIPT


@pytest.fixture(scope="module")
def anchors(book):
    return linked_anchors(book)


@pytest.fixture(scope="class")
def reader(browser, request):
    """A reader who chose the theme of the class."""
    theme = request.cls.theme
    with window(browser, theme, FIRST[theme]) as context:
        yield context


@pytest.fixture(scope="class", params=PAGES)
def found(reader, site, anchors, axe, request):
    """What is wrong with a page, by width and rule, from one visit."""
    return inspect(reader, site, request.param, anchors[request.param], axe)


class EveryPage:
    """A class a theme, so that both are looked at side by side."""

    @pytest.mark.parametrize("rule", RULES)
    @pytest.mark.parametrize("width", WINDOWS)
    def test_keeps_the_rule(self, found, width, rule):
        assert not found[width][rule], "\n".join([RULES[rule] + ", but:", *found[width][rule]])


class TestLight(EveryPage):
    theme = "light"


class TestDark(EveryPage):
    theme = "dark"


def test_every_theme_is_looked_at():
    assert {TestLight.theme, TestDark.theme} == set(THEMES)


def test_every_page_is_looked_at(book):
    assert set(page_names(book)) == set(PAGES)


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
    "axe": '<p id="fault-axe" style="color: #bbb; background: #fff">Hardly to be read</p>',
}
FINE = (
    '<p id="fine-anchors">Shown</p><div id="fine-uncued" tabindex="0" style="width: 9em; overflow: auto; '
    'white-space: nowrap; box-shadow: inset -9px 0 9px gray">A shadow says that there is more</div>'
)


@pytest.fixture(scope="module")
def doctored(book, browser, axe, tmp_path_factory):
    """What is found on a chapter with these faults, one equation too wide and another under its number."""
    folder, name = tmp_path_factory.mktemp("doctored"), f"{FILES[1]}.html"
    text = (book / name).read_text("utf-8")
    begin = text.index("</h1>", text.index("<article")) + len("</h1>")
    text = text[:begin] + FINE + "".join(FAULTS.values()) + text[begin:]
    wide, crowded = re.findall(r'<div class="math[^>]* id="([^"]+)">\s*<span class="eqno">', text)[:2]
    text = re.sub(rf'(id="{wide}">.*?\\\[)', r"\g<1>" + "x + " * 80, text, count=1, flags=re.DOTALL)
    text = text.replace(f'id="{wide}"', 'id="fault-equations"').replace(
        f'id="{crowded}"', 'id="fault-numbers"'
    )
    text = text.replace(
        "</head>", "<style>#fault-numbers .eqno { position: absolute; left: 50% }</style></head>"
    )
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text(text, "utf-8")
    for part in ("_static", "_images"):
        (folder / part).symlink_to(book.resolve() / part)
    with served(folder) as address, window(browser) as context:
        anchors = ["fine-anchors", "fault-anchors", "fault-behind", "fault-landing"]
        return inspect(context, address, name, anchors, axe)[1400]


@pytest.mark.parametrize("rule", RULES)
def test_rule_finds_a_fault(doctored, rule):
    assert f"fault-{rule}" in " ".join(doctored[rule])
    assert "fine-" not in " ".join(doctored[rule])


def test_a_covered_anchor_is_not_a_seen_one(doctored):
    assert any(line.startswith("#fault-behind lies behind") for line in doctored["anchors"])
