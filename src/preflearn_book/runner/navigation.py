"""What leads readers to a page: its subtitle in the sidebar, and the words of the field
under which the search finds it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from posixpath import dirname, join, normpath
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util import logging

from preflearn_book.runner.files import read_yaml

_SIDEBAR = re.compile(r'<nav class="bd-links.*?</nav>', re.DOTALL)
_ENTRY = re.compile(r'(<a class="[^"]*reference internal" href="([^"#]*)#?">)(.*?)</a>')
_CAPTION = '<p aria-level="2" class="caption" role="heading">'
_PART = re.compile(rf"{_CAPTION}(.*?)</p>\s*(<ul.*</ul>)", re.DOTALL)


def sidebar(text: str, page: str, subtitles: Mapping[str, str], base: str = "") -> str:
    """The HTML of a page with subtitles and folded parts in its sidebar.

    A part is folded if it does not contain this page. Links of a page for any folder
    begin with `base` or "/".
    """
    return _SIDEBAR.sub(
        lambda found: _folded(_subtitled(found[0], page, subtitles, base)),
        text,
        count=1,
    )


def _subtitled(nav: str, page: str, subtitles: Mapping[str, str], base: str) -> str:
    def added(found: re.Match[str]) -> str:
        target = page
        if link := found[2].removeprefix(base or "/"):
            target = normpath(join(dirname(page), link)).removesuffix(".html")
        if target not in subtitles:
            return found[0]
        subtitle = f'<span class="subtitle">{escape(subtitles[target])}</span>'
        return f"{found[1]}{found[3]} {subtitle}</a>"

    return _ENTRY.sub(added, nav)


def _folded(nav: str) -> str:
    before, *parts = re.split(f"(?={re.escape(_CAPTION)})", nav)
    for k, part in enumerate(parts):
        is_open = " open" if 'class="toctree-l1 current' in part else ""
        parts[k] = _PART.sub(
            rf'<details class="part"{is_open}><summary><span aria-level="2" '
            r'class="caption" role="heading">\1</span></summary>\n\2</details>',
            part,
        )
    return before + "".join(parts)


def subtitle(page: str, subtitles: Mapping[str, str]) -> str:
    """The line below the title of a page, "" if it has no subtitle."""
    text = subtitles.get(page)
    return f'<p class="subtitle">{escape(text)}</p>\n' if text else ""


class Synonyms(SphinxTransform):
    """Enter the words of synonyms.yml for a page into the index that the search reads."""

    default_priority = 800  # before Sphinx collects the entries of the index

    def apply(self, **_: Any) -> None:
        """Add index entries, which are not seen on the page."""
        path = self.app.srcdir / "synonyms.yml"
        synonyms: Any = read_yaml(path) if path.is_file() else {}
        for place, words in synonyms.items():
            page, _, anchor = place.partition("#")
            if page != self.env.docname:
                continue
            if anchor and anchor not in self.document.ids:
                logging.getLogger(__name__).warning(
                    "synonyms.yml: %s has no anchor %r", page, anchor
                )
            entries = [("single", word, anchor, "main", None) for word in words]
            section = self.document.next_node(nodes.section) or self.document
            section += addnodes.index(entries=entries)
