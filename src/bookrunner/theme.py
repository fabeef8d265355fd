"""A small Sphinx extension: what search engines and shared links say of a page, what a browser lets it do,
and where it can be run.
"""

from __future__ import annotations

import re
import textwrap
from base64 import b64encode
from hashlib import sha256
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from bookrunner.records import filled

_BINDER = {"binderhub_url": "https://mybinder.org", "notebook_interface": "jupyterlab"}
_LENGTH = 202  # with the sign of the cut
_CHARSET = '<meta charset="utf-8" />'  # belongs to the first kilobyte
_INLINE = re.compile(r"<script(?![^>]* (?:src|type)=)[^>]*>(.*?)</script>", re.DOTALL)
_HANDLERS = ("toggleFullScreen()", "window.print()")  # the theme's; the search parses pages with both
_FORMULA = "\N{OBJECT REPLACEMENT CHARACTER}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("config-inited", _configure)
    app.connect("html-page-context", _complete, priority=900)
    app.connect("build-finished", _protect)
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


def _complete(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Say what a page is about. Sources of chapters are in notebooks/, their pages in chapters/, built."""
    if doctree is not None:
        about = {"text": description(doctree), "title": context["title"], "site": app.config.html_title}
        context["metatags"] += filled("metatags.html", **about)
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if group.get("label") == "launch-buttons":
                button["url"] = button["url"].replace("/chapters/", "/notebooks/")


def _protect(app: Sphinx, exception: Exception | None) -> None:
    """Let a page load what lies beside it, and run of the scripts in it those that are there now."""
    for path in app.outdir.rglob("*.html"):
        text = path.read_text("utf-8")
        scripts = (script.encode() for script in (*_HANDLERS, *_INLINE.findall(text)))
        hashes = dict.fromkeys(b64encode(sha256(script).digest()).decode() for script in scripts)
        policy = filled("policy.html", hashes=hashes)
        if policy not in text:
            path.write_text(text.replace(_CHARSET, _CHARSET + policy, 1), "utf-8")


def description(doctree: nodes.document) -> str:
    """What a page says first, in sentences without formulas, cut between two words."""
    top = next(doctree.findall(nodes.section), doctree).deepcopy()
    for formula in list(top.findall(nodes.math)):
        formula.replace_self(nodes.Text(_FORMULA))
    paragraphs = (" ".join(one.astext().split()) for one in top.findall(nodes.paragraph))
    sentences = [one for text in paragraphs for one in re.split(r"(?<=[.?!]) (?=[A-Z])", text)]
    said = [one for one in sentences if _FORMULA not in one and re.fullmatch(r"[A-Z].*[.?!]", one)]
    return textwrap.shorten(" ".join(said), _LENGTH, placeholder=" …", break_on_hyphens=False)
