"""A small Sphinx extension: what search engines and shared links say of a page, what a
browser lets it do, and where it can be run, edited and discussed.
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
from preflearn_book.runner.records import filled, unpacked
from preflearn_book.runner.render import published

_BINDER = {"binderhub_url": "https://mybinder.org", "notebook_interface": "jupyterlab"}
_BUTTONS = (
    "use_repository_button",
    "use_source_button",
    "use_edit_page_button",
    "use_issues_button",
)
_SOURCES = {  # of pages that are made: where what they show is written
    r"book/chapters/(\w+?)(?:_more)?\.ipynb(?:\?plain=1)?": r"notebooks/\1.ipynb",
    r"book/chapters/(?:claims|errata_p\d)\.md": "book/claims.yml",
    r"book/chapters/(\w+)\.md": r"src/preflearn_book/runner/templates/\1.md",
}
_APPENDIX = "An appendix holds what few readers need. "
_WORDS_A_MINUTE = 125  # with a look at formulas, code and figures between them
_CHARSET = '<meta charset="utf-8" />'  # belongs to the first kilobyte
_VIEWPORT = re.compile(r'\s*<meta name="viewport"[^>]*>')  # three templates write one
_ARROW = '<summary><span class="toctree-toggle"'  # the theme gives it no name
# A picture that has a rendering for narrow pages beside it, and is not yet one of the
# two.
_PICTURE = re.compile(
    r'(?<!/>)(<img [^>]*?src="((?:\.\./)*_images/([\w-]+))\.svg"[^>]*>)'
)
_INLINE = re.compile(r"<script(?![^>]* (?:src|type)=)[^>]*>(.*?)</script>", re.DOTALL)
# the theme's; the search parses pages with both
_HANDLERS = ("toggleFullScreen()", "window.print()")
# What a page at the root of the book leads to, without links to places within it and to
# other hosts.
_RELATIVE = re.compile(
    r'\b(href|src|action|data-content_root)="(?:\./)?(?![\w+.-]+:|[#/])'
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("config-inited", _configure)
    app.connect("html-page-context", _complete, priority=900)
    app.connect("build-finished", _publish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _configure(app: Sphinx, config: Config) -> None:
    """Load what the pages need, once; where a repository is named, all that follows
    from its address."""
    # sphinx-mathjax-offline names the whole bundle here; mathjax3_config says which
    # parts are loaded.
    config.mathjax_path = config.mathjax_path.replace("/tex-chtml.js", "/startup.js")
    # Jupyter Book adds every script of the static folder, to be run before the page is
    # there; those in its sub-folders are not for pages to load but take the place of
    # the theme's.
    scripts = sorted(
        file
        for file in config.html_js_files
        if isinstance(file, str) and "/" not in file
    )
    config.html_js_files = [(file, {"defer": "defer"}) for file in scripts]
    said = app.srcdir / "descriptions.yml"
    config.html_context["descriptions"] = read_yaml(said) if said.is_file() else {}
    if url := config.html_theme_options.get("repository_url"):
        buttons = dict.fromkeys(_BUTTONS, True) | {
            "launch_buttons": _BINDER,
            "path_to_docs": "book",
        }
        config.html_theme_options |= buttons
        config.html_baseurl = published(url)


def _complete(
    app: Sphinx,
    page: str,
    template: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Say what a page is about, and how long a chapter takes; lead to what is edited,
    not to what is made."""
    if doctree is None:
        context["pageurl"] = None
    else:
        about = {
            "text": description(page, context["descriptions"]),
            "title": context["title"],
        }
        about |= {
            "site": app.config.html_title,
            "url": context["pageurl"],
            "base": app.config.html_baseurl,
        }
        context["metatags"] += filled("metatags.html", **about)
        if context["title"] == context["docstitle"]:
            context["docstitle"] = ""  # or the title of the first page says it twice
        if re.match(r"chapters/\d\d_", page):
            many = minutes(doctree)
            time = f'<p class="reading-time">About {many} minute{"s" * (many > 1)}</p>'
            context["body"] = context["body"].replace("</h1>", "</h1>\n" + time, 1)
    buttons = [
        one
        for group in context.get("header_buttons", [])
        for one in group.get("buttons", [])
    ]
    for button in (one for one in buttons if "url" in one):
        for made, source in _SOURCES.items():
            button["url"] = re.sub(made, source, button["url"])


def _publish(app: Sphinx, exception: Exception | None) -> None:
    """Let a page load what lies beside it, and run of the scripts in it those that are
    there now.

    Whoever asks for a page that is not there gets 404.html in its place, in whatever
    folder.
    """
    base = app.config.html_baseurl
    narrow = unpack(app.outdir / "_images")
    for path in app.outdir.rglob("*.html"):
        text = pictured(path.read_text("utf-8"), narrow)
        if path == app.outdir / "404.html":
            text = _RELATIVE.sub(rf'\1="{base or "/"}', text)
        scripts = (script.encode() for script in (*_HANDLERS, *_INLINE.findall(text)))
        hashes = dict.fromkeys(
            b64encode(sha256(script).digest()).decode() for script in scripts
        )
        policy = filled("policy.html", hashes=hashes)
        if policy not in text:
            text = _VIEWPORT.sub("", text).replace(_CHARSET, _CHARSET + policy, 1)
            text = text.replace(
                _ARROW, _ARROW.replace(">", ' aria-label="Pages below">', 1)
            )
            path.write_text(text, "utf-8")
    if base:
        pages = filled("sitemap.xml", base=base, pages=sorted(app.env.all_docs))
        (app.outdir / "sitemap.xml").write_text(pages, "utf-8")
        (app.outdir / "robots.txt").write_text(
            f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n"
        )


def unpack(images: Path) -> set[str]:
    """Lay drawings for narrow pages beside those for wide ones; the names of those that
    have one."""
    for path in images.glob("*.svg"):
        wide, narrow = unpacked(path.read_text("utf-8"))
        if narrow:
            path.with_suffix(".narrow.svg").write_text(narrow, "utf-8")
            path.write_text(wide, "utf-8")
    return {
        path.name.removesuffix(".narrow.svg") for path in images.glob("*.narrow.svg")
    }


def pictured(text: str, narrow: Collection[str]) -> str:
    """The text of a page that shows drawings for narrow pages on narrow windows, where
    there are such."""

    def both(found: re.Match[str]) -> str:
        source = f'<source media="(max-width: 600px)" srcset="{found[2]}.narrow.svg"/>'
        return (
            f"<picture>{source}{found[1]}</picture>" if found[3] in narrow else found[1]
        )

    return _PICTURE.sub(both, text)


def description(page: str, descriptions: dict[str, str]) -> str:
    """What is written of a page; of an appendix, the first sentence of what is written
    of its chapter."""
    said = descriptions.get(page.removesuffix("_more"), "")
    return (
        _APPENDIX + re.split(r"(?<=[.?!]) ", said)[0]
        if said and page.endswith("_more")
        else said
    )


def minutes(doctree: nodes.document) -> int:
    """How long it takes to read the sentences of a page, at least a minute."""
    words = sum(len(one.astext().split()) for one in doctree.findall(nodes.paragraph))
    return max(1, round(words / _WORDS_A_MINUTE))
