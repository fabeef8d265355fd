"""A small Sphinx extension: descriptions of pages for search engines and shared links,
a content security policy, and links to run, edit and discuss a page.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection
from hashlib import sha256
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from preflearn_book.runner.files import read_yaml
from preflearn_book.runner.navigation import Synonyms, sidebar, subtitle
from preflearn_book.runner.records import filled, unpacked
from preflearn_book.runner.render import published

_BINDER = {"binderhub_url": "https://mybinder.org", "notebook_interface": "jupyterlab"}
_BUTTONS = (
    "use_repository_button",
    "use_source_button",
    "use_edit_page_button",
    "use_issues_button",
)
_SOURCES = {  # source files of generated pages
    r"book/chapters/(\w+?)(?:_more)?\.ipynb(?:\?plain=1)?": r"notebooks/\1.ipynb",
    r"book/chapters/(?:claims|errata_p\d)\.md": "book/claims.yml",
    r"book/chapters/(\w+)\.md": r"src/preflearn_book/runner/templates/\1.md",
}
_APPENDIX = "This appendix contains details that few readers need. "
_WORDS_A_MINUTE = 125  # includes the time for formulas, code and figures
_CHARSET = '<meta charset="utf-8" />'  # must be in the first kilobyte
_VIEWPORT = re.compile(r'\s*<meta name="viewport"[^>]*>')  # three templates contain one
_ARROW = '<summary><span class="toctree-toggle"'  # has no accessible name in the theme
# A drawing that may have a version for narrow pages, and is not yet in a picture.
_PICTURE = re.compile(
    r'(?<!/>)(<img [^>]*?src="((?:\.\./)*_images/([\w-]+))\.svg"[^>]*>)'
)
_INLINE = re.compile(r"<script(?![^>]* (?:src|type)=)[^>]*>(.*?)</script>", re.DOTALL)
# Handlers of the theme; the search index parses pages with both.
_HANDLERS = ("toggleFullScreen()", "window.print()")
# Relative links of a page at the root of the book, without links within the page and
# links to other hosts.
_RELATIVE = re.compile(
    r'\b(href|src|action|data-content_root)="(?:\./)?(?![\w+.-]+:|[#/])'
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("config-inited", _configure)
    app.connect("html-page-context", _complete, priority=900)
    app.connect("build-finished", _publish)
    app.add_transform(Synonyms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _configure(app: Sphinx, config: Config) -> None:
    """Load each script once; if a repository is configured, add the links that need its
    address."""
    # sphinx-mathjax-offline sets the whole bundle here; mathjax3_config selects parts.
    config.mathjax_path = config.mathjax_path.replace("/tex-chtml.js", "/startup.js")
    # Jupyter Book adds every script of the static folder, and runs it before the page
    # is loaded. Scripts in subfolders replace those of the theme and are not added.
    scripts = sorted(
        file
        for file in config.html_js_files
        if isinstance(file, str) and "/" not in file
    )
    config.html_js_files = [(file, {"defer": "defer"}) for file in scripts]
    for name in ("descriptions", "subtitles"):
        path = app.srcdir / f"{name}.yml"
        config.html_context[name] = read_yaml(path) if path.is_file() else {}
    if url := config.html_theme_options.get("repository_url"):
        config.html_theme_options |= dict.fromkeys(_BUTTONS, True)
        config.html_theme_options |= {"launch_buttons": _BINDER, "path_to_docs": "book"}
        config.html_baseurl = published(url)


def _complete(
    app: Sphinx,
    page: str,
    template: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Add the description, the subtitle, and the reading time of a page; link to source
    files instead of built files."""
    if doctree is None:
        context["pageurl"] = None
    else:
        context["metatags"] += filled(
            "metatags.html",
            text=description(page, context["descriptions"]),
            title=context["title"],
            site=app.config.html_title,
            url=context["pageurl"],
            base=app.config.html_baseurl,
        )
        if context["title"] == context["docstitle"]:
            # otherwise the title of the first page repeats it
            context["docstitle"] = ""
        below = subtitle(page, context["subtitles"])
        if re.match(r"chapters/\d\d_", page):
            many = minutes(doctree)
            unit = "minutes" if many > 1 else "minute"
            below += f'<p class="reading-time">About {many} {unit}</p>'
        context["body"] = context["body"].replace("</h1>", "</h1>\n" + below, 1)
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if "url" in button:
                for made, source in _SOURCES.items():
                    button["url"] = re.sub(made, source, button["url"])


def _publish(app: Sphinx, exception: Exception | None) -> None:
    """Allow each page to load only its own files and scripts.

    404.html is shown for missing pages in any folder, so its links start at the root.
    """
    base = app.config.html_baseurl
    subtitles = app.config.html_context["subtitles"]
    narrow = unpack(app.outdir / "_images")
    for path in app.outdir.rglob("*.html"):
        text = pictured(path.read_text("utf-8"), narrow)
        page = path.relative_to(app.outdir).with_suffix("").as_posix()
        if page == "404":
            text = _RELATIVE.sub(rf'\1="{base or "/"}', text)
        scripts = (script.encode() for script in (*_HANDLERS, *_INLINE.findall(text)))
        hashes = dict.fromkeys(
            b64encode(sha256(script).digest()).decode() for script in scripts
        )
        policy = filled("policy.html", hashes=hashes)
        if policy not in text:  # else it was made by an earlier build
            text = _VIEWPORT.sub("", text).replace(_CHARSET, _CHARSET + policy, 1)
            text = text.replace(
                _ARROW, _ARROW.replace(">", ' aria-label="Pages below">', 1)
            )
            path.write_text(sidebar(text, page, subtitles, base), "utf-8")
    if base:
        pages = filled("sitemap.xml", base=base, pages=sorted(app.env.all_docs))
        (app.outdir / "sitemap.xml").write_text(pages, "utf-8")
        (app.outdir / "robots.txt").write_text(
            f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n"
        )


def unpack(images: Path) -> set[str]:
    """Write packed drawings for narrow pages to files; return the names of the drawings
    that have one."""
    for path in images.glob("*.svg"):
        wide, narrow = unpacked(path.read_text("utf-8"))
        if narrow:
            path.with_suffix(".narrow.svg").write_text(narrow, "utf-8")
            path.write_text(wide, "utf-8")
    return {
        path.name.removesuffix(".narrow.svg") for path in images.glob("*.narrow.svg")
    }


def pictured(text: str, narrow: Collection[str]) -> str:
    """Show drawings for narrow pages in narrow windows, if there are any."""

    def both(found: re.Match[str]) -> str:
        if found[3] not in narrow:
            return found[1]
        source = f'<source media="(max-width: 600px)" srcset="{found[2]}.narrow.svg"/>'
        return f"<picture>{source}{found[1]}</picture>"

    return _PICTURE.sub(both, text)


def description(page: str, descriptions: dict[str, str]) -> str:
    """Return the description of a page; appendixes use a sentence of their chapter."""
    text = descriptions.get(page.removesuffix("_more"), "")
    if text and page.endswith("_more"):
        return _APPENDIX + re.split(r"(?<=[.?!]) ", text)[0]
    return text


def minutes(element: nodes.Element) -> int:
    """Return the minutes that it takes to read a page or a section, at least one."""
    words = sum(len(node.astext().split()) for node in element.findall(nodes.paragraph))
    return max(1, round(words / _WORDS_A_MINUTE))
