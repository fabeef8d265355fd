"""Internal links of built pages that lead nowhere."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """Collect anchors and links of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: dict[str, None] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.anchors.add(value)
            elif value and (name == "src" or (name == "href" and tag in ("a", "link", "area"))):
                self.links[value] = None


def broken_links(html_dir: Path) -> list[str]:
    """All internal links and sources in a folder of HTML pages whose file or anchor is missing, in words.

    Links to other hosts, and the empty anchor, are not looked at.

    ValueError where the folder holds no page.
    """
    root = html_dir.resolve()
    # Folders such as _static hold templates of the theme, which are no pages.
    paths = (path for path in root.rglob("*.html") if not path.relative_to(root).parts[0].startswith("_"))
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(paths)}
    if not pages:
        raise ValueError(f"{html_dir} holds no HTML page")
    return [
        f"{path.relative_to(root).as_posix()}: the link {link!r} leads nowhere (no such {missing})"
        for path, page in pages.items()
        for link in page.links
        if (missing := _missing(link, path, pages))
    ]


def _missing(link: str, path: Path, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return "file"
    anchor = unquote(parts.fragment)
    return "anchor" if anchor and target in pages and anchor not in pages[target].anchors else ""
