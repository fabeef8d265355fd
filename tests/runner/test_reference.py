import importlib
import re
from pathlib import Path

import pytest
import yaml
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path for path in (ROOT / "book" / "api").glob("*.md") if path.stem != "index"
)
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]
USED = r"autodoc_\w+|napoleon_\w+|add_module_names|autosummary_generate|default_role|nitpick_ignore_regex"


def documented(path):
    """Return the modules that a page of the reference shows."""
    return re.findall(
        r"^\.\. automodule:: (preflearn\.\w+)$", path.read_text("utf-8"), re.MULTILINE
    )


MODULES = [module for path in PAGES for module in documented(path)]


def test_each_public_module_has_a_page_in_the_contents():
    package = ROOT / "src" / "preflearn"
    modules = [
        path.parent if path.name == "__init__.py" else path
        for path in package.rglob("*.py")
    ]
    public = {
        f"preflearn.{path.stem}"
        for path in modules
        if path.parent == package
        and hasattr(importlib.import_module(f"preflearn.{path.stem}"), "__all__")
    }
    assert sorted(MODULES) == sorted(public)
    contents = re.findall(r"file: api/(\w+)", (ROOT / "book" / "_toc.yml").read_text())
    assert sorted(contents) == sorted(["index", *(path.stem for path in PAGES)])


@pytest.mark.parametrize("module", MODULES)
def test_the_start_page_lists_each_public_name_once(module):
    """Constants have no docstring, so they are listed in sentences."""
    text = (ROOT / "book" / "api" / "index.md").read_text("utf-8")
    part = text.partition(f".. currentmodule:: {module}\n")[2].partition(
        "currentmodule::"
    )[0]
    listed = re.findall(r"^   (\w+)$", part, re.MULTILINE)
    constants = [
        name.rpartition(".")[2] for name in re.findall(r"\{py:data\}`~([\w.]+)`", part)
    ]
    assert sorted(listed + constants) == sorted(importlib.import_module(module).__all__)


PAGE = """\
```{eval-rst}
.. automodule:: preflearn.margins
.. automodule:: preflearn.datasets
   :members: four_items
.. autoclass:: preflearn.matches.Matches
   :members: from_frame, from_parquet
```
"""
CHAPTER = """\
# A chapter

`MarginLP`, `MarginLP(x=1)`, `preflearn.margins.MarginQP`, `separability`, `Other` and [`MarginQP`](api.md).

```python
from preflearn.margins import MarginLP, NotSeparableError
from preflearn import datasets
MarginLP().fit(*datasets.four_items())
other.MarginLP()
f(four_items=1, separability=2)
```
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the text of two pages, built with the settings of the book."""
    root = tmp_path_factory.mktemp("reference")
    (root / "index.md").write_text(
        "# Top\n\n```{toctree}\napi\nchapter\n```\n\n```{bibliography}\n```\n"
    )
    (root / "api.md").write_text("# Reference\n\n" + PAGE)
    (root / "chapter.md").write_text(CHAPTER)
    (root / "references.bib").write_text(
        (ROOT / "book" / "references.bib").read_text("utf-8")
    )
    names = (
        "sphinx.ext.autodoc",
        "sphinx.ext.autosummary",
        "sphinx.ext.napoleon",
        "preflearn_book.runner.reference",
    )
    settings = {
        name: value for name, value in CONFIG.items() if re.fullmatch(USED, name)
    }
    settings |= {
        "extensions": ["myst_parser", "sphinxcontrib.bibtex", *names],
        "bibtex_bibfiles": ["references.bib"],
        "html_theme": "basic",
    }
    out = root / "out"
    trees = root / "trees"
    app = Sphinx(
        root, None, out, trees, "html", settings, status=None, warningiserror=True
    )
    app.build()
    return {
        name: (out / f"{name}.html").read_text("utf-8")
        for name in ("api", "chapter", "index")
    }


def test_entries_show_docstrings_without_inherited_members(built):
    page = built["api"]
    for name in ("MarginLP", "NotSeparableError", "separability"):
        assert page.count(f'id="preflearn.margins.{name}"') == 1
    assert "central_separator" not in page  # this function is not public
    for word in ("Parameters", "Attributes", "Raises", "Returns"):
        assert re.search(rf'<dt class="field-\w+">{word}<', page), word
    for unwanted in ("set_fit_request", "Alias for field", "import pytest"):
        assert unwanted not in page


def test_parameters_of_one_line_share_their_text(built):
    page = built["api"]
    assert "<strong>first, second</strong> (<em>str</em>)" in page


def test_a_citation_leads_to_the_references(built):
    link = re.search(
        r'Venuto <em>et al.</em> \[<a [^>]*href="index.html#([^"]+)"', built["api"]
    )
    assert f'id="{link[1]}"' in built["index"]
    assert "[Venuto2017]" not in built["api"]


def test_names_in_text_and_code_lead_to_their_entries(built):
    page = built["chapter"]
    leads = r'<a class="reference internal" href="api.html#preflearn\.(\w+\.\w+)">(<code|<span class="n">)'
    found = [
        (name, "text" if tag == "<code" else "code")
        for name, tag in re.findall(leads, page)
    ]
    lp = "margins.MarginLP"
    qp = "margins.MarginQP"
    assert found == [
        *((lp, "text"), (lp, "text"), (qp, "text")),
        *((lp, "code"), ("margins.NotSeparableError", "code"), (lp, "code")),
        ("datasets.four_items", "code"),
    ]
    assert not re.search(r"<a [^>]*>(?:(?!</a>).)*<a ", page, re.DOTALL), (
        "no link within a link"
    )
