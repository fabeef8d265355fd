"""A small Sphinx extension: what search engines and shared links say of a page, and where it can be run."""

from __future__ import annotations

import html
import itertools
import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

_BINDER = {"binderhub_url": "https://mybinder.org", "notebook_interface": "jupyterlab"}
_LENGTH = 200
_FORMULA = "\N{OBJECT REPLACEMENT CHARACTER}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("config-inited", _configure)
    app.connect("html-page-context", _lead_to_notebooks, priority=900)
    app.connect("html-page-context", _describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _configure(app: Sphinx, config: Config) -> None:
    """Load what the pages need, once; where a repository is named, link to it and offer to run chapters."""
    # sphinx-mathjax-offline names the whole bundle here; mathjax3_config says which parts are loaded.
    config.mathjax_path = config.mathjax_path.replace("/tex-chtml.js", "/startup.js")
    # Jupyter Book adds every script of the static folder, to be run before the page is there; those in its
    # sub-folders are not for pages to load but take the place of the theme's.
    scripts = sorted(file for file in config.html_js_files if isinstance(file, str) and "/" not in file)
    config.html_js_files = [(file, {"defer": "defer"}) for file in scripts]
    if config.html_theme_options.get("repository_url"):
        config.html_theme_options |= {"use_repository_button": True, "launch_buttons": _BINDER}


def _lead_to_notebooks(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """The sources of chapters are in notebooks/, and their pages in chapters/, which is built."""
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if group.get("label") == "launch-buttons":
                button["url"] = button["url"].replace("/chapters/", "/notebooks/")


def _describe(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    if doctree is None:
        return
    title = re.sub(r"<[^>]+>|\\[()]", "", context.get("title", ""))
    about = {"og:title": html.unescape(title), "og:type": "article", "og:site_name": app.config.html_title}
    if text := description(doctree):
        about |= {"description": text, "og:description": text}
    for name, content in about.items():
        kind = "property" if name.startswith("og:") else "name"
        context["metatags"] += f'\n<meta {kind}="{name}" content="{html.escape(content)}" />'


def description(doctree: nodes.document) -> str:
    """What a page says before its first section, in sentences without formulas, cut between two words."""
    top = next(doctree.findall(nodes.section), doctree)
    said: list[str] = []
    blocks = itertools.takewhile(lambda node: not isinstance(node, nodes.section), top.children)
    for block in blocks:
        for paragraph in block.findall(nodes.paragraph):
            copy = paragraph.deepcopy()
            for formula in list(copy.findall(nodes.math)):
                formula.replace_self(nodes.Text(_FORMULA))
            sentences = re.split(r"(?<=[.?!]) (?=[A-Z])", " ".join(copy.astext().split()))
            said += [one for one in sentences if _FORMULA not in one and re.fullmatch(r"[A-Z].*[.?!]", one)]
    text = " ".join(said)
    return text if len(text) <= _LENGTH else text[:_LENGTH].rsplit(" ", 1)[0] + " …"
