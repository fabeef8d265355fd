"""A small Sphinx extension: the API reference from docstrings, and links from chapters
to it."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext import autodoc, autosummary

# The list of references, which is a page of the book, and lines of examples that only
# tests need.
_LIST = re.compile(
    r"\nReferences\n-+\n.*?(?=\n\w+\n-+\n|\Z)|\n>>> import pytest;[^\n]*", re.DOTALL
)
_IMPORTS = re.compile(
    r"from preflearn[\w.]* import (\([^)]*\)|.*)|\b(?:datasets|metrics|plots)\.(\w+)"
)
# A name in highlighted code that is not an argument, and code in a sentence that is not
# a link yet. A name after a dot belongs to another library, unless it is a data set.
_NAMED = re.compile(
    r'(?:(?<=datasets</span><span class="o">\.</span>)|(?<!<span class="o">\.</span>))'
    r'<span class="n">(\w+)</span>(?!<span class="o">=<)'
    r'|(?<!">)<code class="docutils literal notranslate"><span class="pre">([\w.]+).*?</code>'
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "eqs.")  # do not end a sentence
    autodoc.ExceptionDocumenter.member_order = 90  # after the functions that raise them
    # Before napoleon reads the docstring.
    app.connect("autodoc-process-docstring", _cite, priority=400)
    app.connect("autodoc-skip-member", _skip)
    app.connect("html-page-context", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _skip(app: Sphinx, what: str, name: str, member: Any, *_: Any) -> bool | None:
    """Leave out members that all estimators inherit from scikit-learn, and fields that
    the docstring of a class describes."""
    inherited = str(getattr(member, "__module__", "")).startswith("sklearn.")
    is_field = str(member.__doc__).startswith("Alias for field")
    if inherited or is_field or isinstance(member, bool):
        return True
    return None


def _cite(
    app: Sphinx, what: str, name: str, documented: Any, options: Any, lines: list[str]
) -> None:
    """Turn citations into links to the list of references."""
    lines[:] = re.sub(
        r"\[(\w+)\]_", r":cite:t:`\1`", _LIST.sub("", "\n".join(lines))
    ).split("\n")


def _link(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Link public names to their entries: classes always, other names if the page
    imports them."""
    if doctree is None:
        return
    imports = " ".join(map("".join, _IMPORTS.findall(doctree.astext())))
    imported = set(re.findall(r"\w+", imports))
    public = {}
    for full_name, entry in app.env.domaindata["py"]["objects"].items():
        package, _, name = full_name.rpartition(".")
        if package.count(".") == 1 and (name[0].isupper() or name in imported):
            public[name] = entry

    def linked(found: re.Match[str]) -> str:
        for name in (found[1] or found[2]).split("."):
            if entry := public.get(name):
                uri = app.builder.get_relative_uri(page, entry.docname)
                link = f'class="reference internal" href="{uri}#{entry.node_id}"'
                return f"<a {link}>{found[0]}</a>"
        return found[0]

    context["body"] = _NAMED.sub(linked, context["body"])
