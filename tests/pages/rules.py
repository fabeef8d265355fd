"""The rules that every page of the book follows, and the visit that checks them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from pages.browser import THEMES, WINDOWS, Opened, opened

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

MIN_LETTER_HEIGHT = 9  # in pixels
MAX_FOLLOWED_LINKS = 12  # number of links of a page that are followed on a commit
# in pixels: smallest width of a window in which "equations" is checked
_MIN_WIDE = 1000
_NARROW = min(WINDOWS)
_WIDE = max(WINDOWS)


class View(NamedTuple):
    """A theme and the width of a window."""

    theme: str
    width: int


class Rule(NamedTuple):
    """A rule for pages, and the views in which a visit checks it: a key of `_VIEWS`."""

    text: str
    views: str


RULES = {
    "errors": Rule("the console shows no error", "at the opening"),
    "foreign": Rule("nothing is requested from another host", "at the opening"),
    "failed": Rule("every request succeeds", "at the opening"),
    "landing": Rule("a link from another page shows its target", "at the opening"),
    "anchors": Rule("a link within the page shows its target", "at the opening"),
    "equations": Rule("no numbered equation scrolls on a wide page", "opened wide"),
    "leaves": Rule("nothing lies beyond the edges of the page", "at every width"),
    "spills": Rule("what is wider than the text scrolls", "at every width"),
    "cut": Rule("no box hides a part of its content", "at every width"),
    "uncued": Rule("what scrolls sideways shows that there is more", "at every width"),
    "numbers": Rule("no equation runs into its number", "at every width"),
    "reading": Rule(
        "headings, landmarks and images suit a screen reader", "at every width"
    ),
    "letters": Rule("letters of figures have at least 9 pixels", "on a telephone"),
    "focus": Rule(
        "every box that scrolls can be reached by keyboard", "on a telephone"
    ),
    "axe": Rule("axe finds nothing serious or critical", "at the opening"),
    "colors": Rule("all text has enough contrast", "in both themes"),
}
COMMIT = View("light", _WIDE)
NIGHTLY = [View(theme, width) for theme in THEMES for width in WINDOWS]
NIGHTLY.remove(COMMIT)


def widths(first: View) -> list[int]:
    """Return the widths of a visit, starting with that at the opening.

    The visit of a commit skips widths between the widest and the narrowest. Laying out
    a page again takes a sixth of a visit.
    """
    chosen = WINDOWS if first in NIGHTLY else (_WIDE, _NARROW)
    return sorted(chosen, key=lambda width: (width != first.width, -width))


# For each key: the views in which a rule is checked, given the view in which the page
# is opened. MathJax fits equations to the first window, so "equations" is checked only
# if that window is wide.
_VIEWS = {
    "at the opening": lambda first: [first],
    "opened wide": lambda first: [first] if first.width >= _MIN_WIDE else [],
    "at every width": lambda first: [
        View(first.theme, width) for width in widths(first)
    ],
    "on a telephone": lambda first: [View(first.theme, _NARROW)],
    "in both themes": lambda first: [View(theme, first.width) for theme in THEMES],
}

Question = tuple[str, View]


def questions(first: View) -> list[Question]:
    """Return each rule with each view in which it is checked, for a page opened in the
    view `first`."""
    return [
        (name, view)
        for name, rule in RULES.items()
        for view in _VIEWS[rule.views](first)
    ]


@dataclass
class Report:
    """Result of a visit: faults by question, the shape of the page, and the files that
    it loaded."""

    faults: dict[Question, list[str]]
    shape: dict[str, Any]
    loaded: list[str]

    def problems(self, first: View) -> list[str]:
        """Return one line per fault; raise KeyError if a rule was not checked."""
        return [
            f"{RULES[name].text}, but in the {view.theme} theme at {view.width} pixels: {fault}"
            for name, view in questions(first)
            for fault in self.faults[name, view]
        ]


def evenly_spaced(anchors: list[str], most: int) -> list[str]:
    """Return at most `most` evenly spaced anchors, including the last one."""
    step = max(1, ceil(len(anchors) / most))
    return anchors[::-1][::step][::-1]


def inspect(
    context: BrowserContext,
    base: str,
    name: str,
    anchors: list[str],
    axe: str,
    first: View = COMMIT,
) -> Report:
    """Open a page once and check all rules.

    The visit starts at the last anchor, as if a reader had followed a link from another
    page. Then it opens folds, resizes the window, and changes the theme with the
    button of the page. The source code of axe is given as `axe`.
    """
    asked = questions(first)
    landing = anchors[-1:]
    address = name + "".join(f"#{anchor}" for anchor in landing)
    with opened(context, base, address, first.width) as seen:
        faults: dict[Question, list[str]] = {
            ("landing", first): seen.ask("hidden", landing, False)
        }
        shape = seen.ask("shape")
        followed = (
            anchors if first in NIGHTLY else evenly_spaced(anchors, MAX_FOLLOWED_LINKS)
        )
        faults["anchors", first] = seen.ask("hidden", followed, True)
        seen.unfold()
        faults["anchors", first] += seen.ask("absent", anchors)
        seen.ask("findLooks")
        narrowest = View(first.theme, _NARROW)
        for width in widths(first):
            if width != first.width:
                seen.resize(width)
            for rule, found in seen.ask("layout").items():
                question = rule, View(first.theme, width)
                if question in asked:
                    faults[question] = found
            if width == _NARROW:
                faults["letters", narrowest] = seen.ask("letters", MIN_LETTER_HEIGHT)
        # Read these lists before axe is prepared: that removes elements which scripts
        # of the page may use.
        faults["errors", first] = list(seen.errors)
        faults["foreign", first] = list(seen.foreign)
        faults["failed", first] = list(seen.failed)
        _ask_axe(seen, axe, first, faults)
    # Every page loads the index of words; only a search depends on it.
    loaded = seen.loaded if name == "search.html" else seen.loaded - {"searchindex.js"}
    return Report(faults, shape, sorted(loaded))


def _ask_axe(
    seen: Opened, axe: str, first: View, faults: dict[Question, list[str]]
) -> None:
    seen.page.evaluate(axe)
    seen.ask("simplify")
    if seen.page.viewport_size != {"width": _NARROW, "height": WINDOWS[_NARROW]}:
        seen.resize(_NARROW)
    faults["focus", View(first.theme, _NARROW)] = seen.ask(
        "axeFinds", ["scrollable-region-focusable"]
    )
    if first.width != _NARROW:
        seen.resize(first.width)
    faults["axe", first] = seen.ask("axeFinds", None)
    seen.ask("strip")
    faults["colors", first] = seen.ask("axeFinds", "colors")
    other = View(seen.ask("changeTheme"), first.width)
    faults["colors", other] = seen.ask("axeFinds", "colors")
