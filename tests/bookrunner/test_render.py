import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import psutil
import pytest
from pages.browser import page_names
from toy_project import FIRST, LEDGER, edit_notebook, run_here, write_project

from bookrunner import render, tasks
from bookrunner.build import build_book
from bookrunner.command import main

ROOT = Path(__file__).parents[2]
PAPERS = {"P1": "Venuto2017", "P2": "Zapien2009"}
CONFIG = """\
title: A book
execute: {execute_notebooks: "off"}
bibtex_bibfiles: [references.bib]
repository: {url: https://github.com/owner/name, branch: main}
sphinx:
  extra_extensions: [bookrunner.theme]
  config:
    suppress_warnings: [mystnb.unknown_mime_type]
    templates_path: [_templates]
    html_additional_pages: {"404": 404.html}
"""
ADDRESS = "https://owner.github.io/name/"  # where the pages of that repository are


INDEX = """\
# The book

A book & its "words".

See {doc}`chapters/01_first`, {doc}`chapters/02_second` and {eq}`eq-second`.

```{include} chapters/tally.md
```

```{include} chapters/papers.md
```

```{figure} chapters/fig-second.svg
It waits.
```

```{bibliography}
```
"""
CONTENTS = "format: jb-book\nroot: index\nchapters:\n"


def write_book(root):
    """The sources of a book of two chapters."""
    project = write_project(root, LEDGER, first=FIRST, second="1")
    pages = ("01_first", "02_second", "claims", "errata_p1", "errata_p2", "status", "reproduce")
    toc = CONTENTS + "".join(f"  - file: chapters/{name}\n" for name in pages)
    (project.book / "_toc.yml").write_text(f"{toc}  - file: plain\n")
    (project.book / "plain.md").write_text("# A page that includes nothing\n")
    (project.book / "descriptions.yml").write_text('index: A book & its "words".\n')
    shutil.copytree(ROOT / "book" / "_templates", project.book / "_templates")
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
    return project


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """That book, of which one chapter was built, on a fresh clone."""
    project = write_book(tmp_path_factory.mktemp("rendered"))
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


def test_a_page_leads_to_what_is_edited_and_not_to_what_is_made(rendered):
    html, github = rendered[0].build / "html", "https://github.com/owner/name"
    for page, source in (
        ("chapters/01_first", "notebooks/01_first.ipynb"),
        ("chapters/errata_p1", "book/claims.yml"),
        ("chapters/status", "src/bookrunner/templates/status.md"),
        ("plain", "book/plain.md"),
    ):
        text = (html / f"{page}.html").read_text()
        assert f'href="{github}/edit/main/{source}"' in text
        assert re.search(rf'href="{github}/blob/main/{re.escape(source)}(\?plain=1)?"', text)
        assert f'href="{github}/issues/new?title=' in text


def test_a_page_says_what_it_is_about(rendered):
    html = rendered[0].build / "html"
    page, plain = ((html / f"{name}.html").read_text() for name in ("index", "plain"))
    about = "A book &amp; its &#34;words&#34;."
    assert f'<meta name="description" property="og:description" content="{about}" />' in page
    assert 'name="description"' not in plain
    parts = {"title": "The book", "type": "article", "site_name": "A book"}
    parts |= {"url": f"{ADDRESS}index.html", "image": f"{ADDRESS}_static/page.png"}
    for name, content in parts.items():
        assert f'<meta property="og:{name}" content="{content}" />' in page
    for text in (page, plain):
        assert text.count('name="viewport"') == 1
    assert f'<link rel="canonical" href="{ADDRESS}plain.html" />' in plain


def test_a_chapter_says_how_long_it_takes(rendered):
    html = rendered[0].build / "html"
    time = '<p class="reading-time">About 1 minute</p>'
    assert time in (html / "chapters/01_first.html").read_text()
    assert "reading-time" not in (html / "plain.html").read_text()


def test_search_engines_find_each_page_once(rendered):
    html = rendered[0].build / "html"
    listed = re.findall(f"<loc>{ADDRESS}(.*)</loc>", (html / "sitemap.xml").read_text())
    others = {"search.html", "genindex.html", "404.html"}
    assert sorted({*listed} | others) == page_names(html)
    assert not others.intersection(listed)
    assert f"Sitemap: {ADDRESS}sitemap.xml" in (html / "robots.txt").read_text()


def test_a_page_that_is_not_there_leads_into_the_book_from_any_folder(rendered):
    page = (rendered[0].build / "html/404.html").read_text()
    assert '<meta name="robots" content="noindex" />' in page
    assert 'rel="canonical"' not in page
    links = re.findall(r'\s(?:href|src|action|data-content_root)="([^"]*)"', page)
    assert {f"{ADDRESS}index.html", f"{ADDRESS}chapters/01_first.html", f"{ADDRESS}search.html"} <= {*links}
    assert [link for link in links if not re.match(r"#|https?:|data:", link)] == []


def test_a_page_runs_no_script_but_its_own(rendered):
    html = rendered[0].build / "html"
    for name in ("index.html", "search.html", "chapters/01_first.html"):
        head, _, rest = (html / name).read_text().partition('<meta http-equiv="Content-Security-Policy"')
        policy, _, page = rest.partition(" />")
        assert "<script" not in head
        assert "default-src 'self'; object-src 'none'" in policy
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


def test_docstrings_are_read_and_sphinx_sees_where_one_changed(rendered):
    (source,) = [name for name in render._read(rendered[0]) if name.endswith("preflearn/pairs.py")]
    changed = Path(source).stat().st_mtime
    assert render._is_seen(rendered[0].root / source, changed - 1)
    assert not render._is_seen(rendered[0].root / source, changed + 1)


@pytest.mark.parametrize("toc", ["root: [", "[" * 10_000])
def test_broken_contents_are_one_line_before_anything_runs(tmp_path, monkeypatch, capsys, toc):
    project = write_project(tmp_path, LEDGER, first=FIRST)
    (project.book / "_toc.yml").write_text(toc)
    monkeypatch.chdir(project.root)
    assert main(["build"]) == 2
    assert capsys.readouterr().err.startswith("preflearn: error: _toc.yml is not valid YAML")
    assert not project.build.exists()


@pytest.mark.parametrize("year", [2001, 2101])
def test_no_change_is_hidden_by_a_clock_that_was_set(rendered, capsys, year):
    """Sphinx reads again what is later than its last reading."""
    project, _ = rendered
    source, page = project.book / "plain.md", project.build / "html" / "plain.html"
    for words in ("An edition of the present.", f"An edition of {year}.", "The next edition."):
        source.write_text(f"# A page\n\n{words}\n")
        if str(year) in words:
            os.utime(source, (0, (year - 1970) * 31556952))
        assert build_book(project, ["1"]) == 0
        assert words in page.read_text()
    os.utime(source, (0, 0))
    capsys.readouterr()
    assert build_book(project, ["1"]) == 0
    assert "up to date" in capsys.readouterr().out


WAITS = """\
import os, time
from pathlib import Path

def wait(app, page, *_):
    if page == "index":
        Path("begun").write_text(str(os.getpid()))
        while not Path("go").exists():
            time.sleep(0.05)

def setup(app):
    app.connect("html-page-context", wait)
"""


def test_a_build_killed_while_it_renders_leaves_pages_that_the_next_one_mends(tmp_path, monkeypatch):
    project = write_book(tmp_path)
    (tmp_path / "waits.py").write_text(WAITS)
    (tmp_path / "_config.yml").write_text(CONFIG.replace("[bookrunner.theme]", "[bookrunner.theme, waits]"))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tasks, "execute", run_here)
    front, page = project.book / "index.md", project.build / "html" / "index.html"
    begun, go = tmp_path / "begun", tmp_path / "go"
    go.touch()
    assert build_book(project, ["1"]) == 0
    earlier = page.read_text()

    go.unlink()
    begun.unlink()
    front.write_text(INDEX + "The second edition.")
    command = [str(Path(sys.executable).with_name("preflearn")), "build", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    _wait_until(lambda: begun.exists() and begun.read_text(), process)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert page.read_text() == earlier
    _wait_until(lambda: _gone(int(begun.read_text())))  # with its parent, or two would write these pages

    go.touch()
    assert build_book(project, ["1"]) == 0
    assert "The second edition." in page.read_text()
    assert not [path.name for path in tmp_path.rglob(".tmp-*")]


def _wait_until(condition, process=None):
    deadline = time.monotonic() + 120
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
