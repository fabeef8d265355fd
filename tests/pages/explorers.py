"""How a reader moves each kind of explorer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from pages.browser import page_names


class Explorer(NamedTuple):
    """Where to hold an explorer, how far to move (0: a tap), which control to focus,
    and a key that changes it."""

    spot: str
    way: int
    control: str
    key: str


_SLIDER = ("input[type=range]", "ArrowRight")
_LAST_PANEL = ".explorer-panels > div:last-child > svg:last-child"
EXPLORERS = {
    "graph": Explorer("[role=switch] .hit", 0, "[role=switch]", "Space"),
    "margins": Explorer(".grip", -60, *_SLIDER),
    "semiorder": Explorer("[role=slider]", 60, "[role=slider]", "ArrowRight"),
    "bias": Explorer(".explorer-panels svg", -60, *_SLIDER),
    "path": Explorer(".explorer-panels div:last-child svg", -60, *_SLIDER),
    "pursuit": Explorer(_LAST_PANEL, -60, *_SLIDER),
    "match": Explorer(_LAST_PANEL, -60, *_SLIDER),
    "timelines": Explorer(".explorer-panels > div:last-child > svg", -60, *_SLIDER),
    "covariance": Explorer("[role=button] .label", 0, "[role=button]", "Space"),
    "league": Explorer(".explorer-matches button", 0, *_SLIDER),
    "benchmark": Explorer("input[type=range]", 40, *_SLIDER),
    "analogy": Explorer("[role=slider]", -60, "[role=slider]", "ArrowRight"),
}


def selector(kind: str) -> str:
    """Return the CSS selector of an explorer."""
    return f'.explorer[data-explorer="{kind}"]'


def pages_of_explorers(html: Path) -> dict[str, str]:
    """Return the page of each kind of explorer in a built book."""
    found: dict[str, str] = {}
    for name in page_names(html):
        for kind in re.findall(
            r'data-explorer="(\w+)"', (html / name).read_text("utf-8")
        ):
            assert kind not in found, f"{kind} is on {found[kind]} and on {name}"
            found[kind] = name
    return found
