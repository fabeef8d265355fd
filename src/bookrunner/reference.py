"""A small Sphinx extension: the reference of the API from the docstrings, and links to it from code and words."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

_LIST = re.compile(r"\nReferences\n-+\n.*?(?=\n\w+\n-+\n|\Z)", re.DOTALL)
_IMPORTS = re.compile(r"from preflearn[\w.]* import (\([^)]*\)|.*)|\b(?:datasets|metrics|plots)\.(\w+)")
# A name in highlighted code, and code in a sentence that is no link yet; a keyword argument is neither.
_CODE = re.compile(
    r'<span (?P<style>class="n")>(?P<name>\w+)</span>(?!<span class="o">=<)'
    r'|(?<!">)<code class="docutils literal notranslate"><span class="pre">(?:\w+\.)*?(?P<word>\w+)\b.*?</code>'
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    for name in ("autodoc", "autosummary", "napoleon"):
        app.setup_extension(f"sphinx.ext.{name}")
    app.connect("autodoc-process-docstring", _cite, priority=400)  # before napoleon reads it
    app.connect("autodoc-skip-member", _skip)
    app.connect("html-page-context", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _skip(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn gives all its estimators, and fields that the text of their class has."""
    foreign = str(getattr(member, "__module__", "")).startswith("sklearn.")
    return True if foreign or str(member.__doc__).startswith("Alias for field") else None


def _cite(app: Sphinx, what: str, name: str, documented: Any, options: Any, lines: list[str]) -> None:
    """A citation leads to the book's page of references."""
    text = _LIST.sub("", "\n".join(lines))
    lines[:] = re.sub(r"\[(\w+)\]_", r":cite:t:`\1`", text).split("\n")


def _link(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Lead from public names to their entries: classes by their name, the rest where a page imports it."""
    if doctree is None:
        return
    imported = set(re.findall(r"\w+", " ".join(map("".join, _IMPORTS.findall(doctree.astext())))))
    found = {
        full.rpartition(".")[2]: entry
        for full, entry in app.env.get_domain("py").objects.items()
        if full.count(".") == 2
    }
    public = {name: entry for name, entry in found.items() if name[0].isupper() or name in imported}

    def linked(match: re.Match[str]) -> str:
        entry = public.get(match["name"] or match["word"])
        if entry is None:
            return match[0]
        address = f"{app.builder.get_relative_uri(page, entry.docname)}#{entry.node_id}"
        if match["name"]:
            return f'<a {match["style"]} href="{address}">{match["name"]}</a>'
        return f'<a class="reference internal" href="{address}">{match[0]}</a>'

    context["body"] = _CODE.sub(linked, context["body"])
