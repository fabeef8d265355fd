import json
import re
from base64 import b64encode
from hashlib import sha256

import pytest
from toy_project import FIRST, LEDGER, edit_notebook, run_here, write_project

from bookrunner import render, tasks
from bookrunner.build import build_book
from bookrunner.command import main

PAPERS = {"P1": "Venuto2017", "P2": "Zapien2009"}
CONFIG = """\
title: A book
execute: {execute_notebooks: "off"}
bibtex_bibfiles: [references.bib]
repository: {url: https://github.com/owner/name, branch: main}
sphinx:
  extra_extensions: [bookrunner.theme]
  config: {suppress_warnings: [mystnb.unknown_mime_type]}
"""


INDEX = """\
# The book

A book & its "words".

See {doc}`chapters/01_first`, {doc}`chapters/02_second` and {eq}`eq-second`.

```{include} chapters/tally.md
```

```{figure} chapters/fig-second.svg
It waits.
```

```{bibliography}
```
"""
CONTENTS = "format: jb-book\nroot: index\nchapters:\n"


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """A book of two chapters of which one was built, on a fresh clone."""
    project = write_project(tmp_path_factory.mktemp("rendered"), LEDGER, first=FIRST, second="1")
    pages = ("01_first", "02_second", "claims", "status")
    toc = CONTENTS + "".join(f"  - file: chapters/{name}\n" for name in pages)
    (project.book / "_toc.yml").write_text(toc)
    (project.book / "index.md").write_text(INDEX)
    (project.book / "references.bib").write_text(
        "".join(f"@misc{{{key}, title={{x}}, author={{A, B}}, year={{2000}}}}\n" for key in PAPERS.values())
    )
    (project.root / "_config.yml").write_text(CONFIG)
    labelled = "# Second\n\n```{math}\n:label: eq-second\nx\n```\n"
    figure = {"mystnb": {"figure": {"name": "fig-second"}}}

    def change(notebook):
        notebook["cells"][0]["source"] = labelled
        notebook["cells"][2]["metadata"] = figure

    edit_notebook(project.notebooks / "02_second.ipynb", change)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(tasks, "execute", run_here)
        status = build_book(project, ["1"])
    return project, status


def test_one_chapter_of_a_fresh_clone_builds_without_problems(rendered, capsys):
    project, status = rendered
    assert status == 0
    html = project.build / "html"
    assert "check-P1-01" in (html / "chapters/01_first.html").read_text()
    assert "Not computed yet" in (html / "chapters/02_second.html").read_text()
    assert "3 claims judged" in (html / "index.html").read_text()
    assert build_book(project, ["1"]) == 0
    assert "up to date" in capsys.readouterr().out


def test_one_line_of_configuration_leads_to_the_repository(rendered):
    project, _ = rendered
    page = (project.build / "html/chapters/01_first.html").read_text()
    assert 'href="https://github.com/owner/name"' in page
    binder = "https://mybinder.org/v2/gh/owner/name/main?urlpath=lab/tree/notebooks/01_first.ipynb"
    assert f'href="{binder}"' in page
    assert "pip install" not in page
    downloaded = json.loads((project.build / "html/_sources/chapters/01_first.ipynb").read_text())
    assert "preflearn[book] @ git+https://github.com/owner/name" in downloaded["cells"][0]["source"]


def test_a_page_says_what_it_is_about(rendered):
    page = (rendered[0].build / "html/index.html").read_text()
    about = "A book &amp; its “words”. See"
    assert f'<meta name="description" property="og:description" content="{about}' in page
    for name, content in (("title", "The book"), ("type", "article"), ("site_name", "A book")):
        assert f'<meta property="og:{name}" content="{content}" />' in page


def test_a_page_runs_no_script_but_its_own(rendered):
    html = rendered[0].build / "html"
    for name in ("index.html", "search.html", "chapters/01_first.html"):
        head, _, rest = (html / name).read_text().partition('<meta http-equiv="Content-Security-Policy"')
        policy, _, page = rest.partition(" />")
        assert "<script" not in head
        assert "default-src 'none'" in policy
        inline = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
        inline += re.findall(r'onclick="(.*?)"', page)
        hashes = [b64encode(sha256(script.encode()).digest()).decode() for script in inline]
        assert hashes
        assert all(f"'sha256-{one}'" in policy for one in hashes)


def test_pages_that_are_gone_or_damaged_are_made_again(rendered, capsys, monkeypatch):
    project, _ = rendered
    html = project.build / "html"
    assert not list(html.rglob("render.json"))  # the folder is published as it is
    asked = []
    monkeypatch.setattr(render, "_jupyter_book", lambda project: asked.append(project) or [])
    (html / "index.html").write_text("half a p")
    for said in ("rendered in", "up to date"):
        assert build_book(project, ["1"]) == 0
        assert said in capsys.readouterr().out
    assert (len(asked), html.exists()) == (1, False)


def test_a_link_that_no_chapter_answers_counts_while_chapters_wait(rendered, monkeypatch):
    project, _ = rendered
    (project.build / "render.json").unlink(missing_ok=True)
    said = ("undefined label: 'eq-second'", "equation not found: eq-second", "undefined label: 'sec-none'")
    warnings = [f"index.md:3: WARNING: {text}" for text in said]
    monkeypatch.setattr(render, "_jupyter_book", lambda project: warnings)
    assert render.render(project) == warnings[2:]


@pytest.mark.parametrize("toc", ["root: [", "[" * 10_000])
def test_broken_contents_are_one_line_before_anything_runs(tmp_path, monkeypatch, capsys, toc):
    project = write_project(tmp_path, LEDGER, first=FIRST)
    (project.book / "_toc.yml").write_text(toc)
    monkeypatch.chdir(project.root)
    assert main(["build"]) == 2
    assert capsys.readouterr().err.startswith("preflearn: error: _toc.yml is not valid YAML")
    assert not project.build.exists()
