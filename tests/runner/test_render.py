import json
import os
import re
import shutil
import signal
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import psutil
import pytest
from pages.browser import page_names
from toy_project import (
    CLAIMS,
    FIRST,
    edit_notebook,
    run_here,
    wait_until,
    write_project,
)

from preflearn_book.runner import render, tasks
from preflearn_book.runner.build import build_book
from preflearn_book.runner.command import main
from preflearn_book.runner.project import Project

ROOT = Path(__file__).parents[2]
PAPERS = {"P1": "Venuto2017", "P2": "Zapien2009"}
CONFIG = """\
title: A book
execute: {execute_notebooks: "off"}
bibtex_bibfiles: [references.bib]
repository: {url: https://github.com/owner/name, branch: main}
sphinx:
  extra_extensions: [preflearn_book.runner.theme]
  config:
    suppress_warnings: [mystnb.unknown_mime_type]
    templates_path: [_templates]
    html_additional_pages: {"404": 404.html}
"""
ADDRESS = "https://owner.github.io/name/"
GITHUB = "https://github.com/owner/name"


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
    """Write the sources of a book of two chapters."""
    project = write_project(root, CLAIMS, first=FIRST, second="1")
    pages = (
        "01_first",
        "02_second",
        "claims",
        "errata_p1",
        "errata_p2",
        "status",
        "reproduce",
    )
    toc = CONTENTS + "".join(f"  - file: chapters/{name}\n" for name in pages)
    (project.book / "_toc.yml").write_text(f"{toc}  - file: plain\n")
    (project.book / "plain.md").write_text("# A page that includes nothing\n")
    (project.book / "descriptions.yml").write_text('index: A book & its "words".\n')
    (project.book / "subtitles.yml").write_text("chapters/01_first: Method & model\n")
    (project.book / "synonyms.yml").write_text(
        "plain: [Elo ratings]\nchapters/02_second#equation-eq-second: [RLHF]\n"
    )
    shutil.copytree(ROOT / "book" / "_templates", project.book / "_templates")
    (project.book / "index.md").write_text(INDEX)
    (project.book / "references.bib").write_text(
        "".join(
            f"@misc{{{key}, title={{x}}, author={{A, B}}, year={{2000}}}}\n"
            for key in PAPERS.values()
        )
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
    """The book with one of its chapters built; tests must not change it."""
    project = write_book(tmp_path_factory.mktemp("rendered"))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(tasks, "execute", run_here)
        assert build_book(project, ["1"]) == 0
    return project


@pytest.fixture(scope="module")
def html(rendered):
    return rendered.build / "html"


@pytest.fixture
def copied(rendered, tmp_path):
    """A copy of the rendered book that tests may change."""
    return Project(shutil.copytree(rendered.root, tmp_path / "copied"))


def test_one_chapter_of_a_fresh_clone_builds(html):
    assert "check-P1-01" in (html / "chapters/01_first.html").read_text()
    assert re.search(
        r"build\W.*02_second</", (html / "chapters/02_second.html").read_text()
    )
    assert not list(
        html.rglob("render.json")
    )  # no file in the folder is changed before publication


def test_one_line_of_configuration_leads_to_the_repository(html):
    page = (html / "chapters/01_first.html").read_text()
    assert f'href="{GITHUB}"' in page
    binder = "https://mybinder.org/v2/gh/owner/name/main?urlpath=lab/tree/notebooks/01_first.ipynb"
    assert f'href="{binder}"' in page
    assert "pip install" not in page
    downloaded = json.loads((html / "_sources/chapters/01_first.ipynb").read_text())
    assert f"preflearn[book] @ git+{GITHUB}" in downloaded["cells"][0]["source"]


@pytest.mark.parametrize(
    ("page", "source"),
    [
        ("chapters/01_first", "notebooks/01_first.ipynb"),
        ("chapters/errata_p1", "book/claims.yml"),
        ("chapters/status", "src/preflearn_book/runner/templates/status.md"),
        ("plain", "book/plain.md"),
    ],
)
def test_a_page_leads_to_the_file_that_is_edited(html, page, source):
    text = (html / f"{page}.html").read_text()
    assert f'href="{GITHUB}/edit/main/{source}"' in text
    assert re.search(
        rf'href="{GITHUB}/blob/main/{re.escape(source)}(\?plain=1)?"', text
    )
    assert f'href="{GITHUB}/issues/new?title=' in text


def test_a_page_has_a_description_for_other_sites(html):
    page, plain = ((html / f"{name}.html").read_text() for name in ("index", "plain"))
    about = "A book &amp; its &#34;words&#34;."
    assert (
        f'<meta name="description" property="og:description" content="{about}" />'
        in page
    )
    assert 'name="description"' not in plain
    for name, content in {"title": "The book", "url": f"{ADDRESS}index.html"}.items():
        assert f'<meta property="og:{name}" content="{content}" />' in page
    assert f'<link rel="canonical" href="{ADDRESS}plain.html" />' in plain
    assert plain.count('name="viewport"') == 1
    assert "reading-time" in (html / "chapters/01_first.html").read_text()
    assert "reading-time" not in plain


def test_a_shared_link_shows_the_picture_of_the_book(html):
    page = (html / "chapters/01_first.html").read_text()
    (address,) = re.findall(r'<meta property="og:image" content="(.*?)" />', page)
    assert address == f"{ADDRESS}_static/social.png"
    picture = (ROOT / "book" / "_static" / "social.png").read_bytes()
    size = [int.from_bytes(picture[k : k + 4], "big") for k in (16, 20)]
    for name, pixels in zip(("width", "height"), size, strict=True):
        assert f'<meta property="og:image:{name}" content="{pixels}" />' in page
    assert re.search(r'<meta property="og:image:alt" content="[A-Z].+" />', page)
    assert '<meta name="twitter:card" content="summary_large_image" />' in page


def test_a_subtitle_stands_below_the_title_and_in_each_sidebar(html):
    text = (html / "chapters/01_first.html").read_text()
    assert re.search(r'</h1>\n<p class="subtitle">Method &amp; model</p>', text)
    for name in ("index", "plain", "chapters/01_first", "chapters/02_second", "404"):
        page = (html / f"{name}.html").read_text()
        assert page.count('<span class="subtitle">Method &amp; model</span></a>') == 1


def test_the_search_finds_a_page_by_its_synonyms(html):
    script = (html / "searchindex.js").read_text()
    index = json.loads(script[script.index("{") : script.rindex("}") + 1])
    for word, name, anchor in (
        ("elo ratings", "plain", ""),
        ("rlhf", "chapters/02_second", "equation-eq-second"),
    ):
        page = index["docnames"].index(name)
        assert index["indexentries"][word] == [[page, anchor, True]]
        address = f"{name}.html" + f"#{anchor}".rstrip("#")
        assert f'href="{address}"' in (html / "genindex.html").read_text()
    assert "RLHF" not in (html / "chapters/02_second.html").read_text()


def test_search_engines_find_each_page_once(html):
    listed = re.findall(f"<loc>{ADDRESS}(.*)</loc>", (html / "sitemap.xml").read_text())
    others = {"search.html", "genindex.html", "404.html"}
    assert sorted({*listed} | others) == page_names(html)
    assert not others.intersection(listed)
    assert f"Sitemap: {ADDRESS}sitemap.xml" in (html / "robots.txt").read_text()


def test_the_page_for_a_missing_address_leads_into_the_book_from_any_folder(html):
    page = (html / "404.html").read_text()
    assert '<meta name="robots" content="noindex" />' in page
    assert 'rel="canonical"' not in page
    links = re.findall(r'\s(?:href|src|action|data-content_root)="([^"]*)"', page)
    assert {
        f"{ADDRESS}index.html",
        f"{ADDRESS}chapters/01_first.html",
        f"{ADDRESS}search.html",
    } <= {*links}
    assert [link for link in links if not re.match(r"#|https?:|data:", link)] == []


@pytest.mark.parametrize(
    "name", ["index.html", "search.html", "chapters/01_first.html"]
)
def test_a_page_allows_its_own_scripts_only(html, name):
    head, _, rest = (
        (html / name)
        .read_text()
        .partition('<meta http-equiv="Content-Security-Policy"')
    )
    policy, _, page = rest.partition(" />")
    assert "<script" not in head
    assert "default-src 'self'; object-src 'none'" in policy
    inline = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    inline += re.findall(r'onclick="(.*?)"', page)
    hashes = [b64encode(sha256(script.encode()).digest()).decode() for script in inline]
    assert hashes
    assert all(f"'sha256-{one}'" in policy for one in hashes)


def test_a_changed_docstring_is_rendered_again(rendered):
    (source,) = [
        name for name in render._read(rendered) if name.endswith("preflearn/pairs.py")
    ]
    changed = Path(source).stat().st_mtime
    assert render._is_seen(rendered.root / source, changed - 1)
    assert not render._is_seen(rendered.root / source, changed + 1)


def test_missing_or_damaged_pages_are_rendered_again(copied, monkeypatch):
    html = copied.build / "html"
    calls = []
    monkeypatch.setattr(
        render, "_jupyter_book", lambda project: calls.append(project) or []
    )
    assert build_book(copied, ["1"]) == 0
    assert (len(calls), html.exists()) == (0, True)
    (html / "index.html").write_text("half a p")
    for _ in range(2):
        assert build_book(copied, ["1"]) == 0
        assert (len(calls), html.exists()) == (1, False)


def test_a_link_to_a_chapter_that_was_not_built_is_not_a_problem(copied, monkeypatch):
    (copied.build / "render.json").unlink()
    texts = (
        "undefined label: 'eq-second'",
        "equation not found: eq-second",
        "undefined label: 'sec-none'",
    )
    warnings = [f"index.md:3: WARNING: {text}" for text in texts]
    monkeypatch.setattr(render, "_jupyter_book", lambda project: warnings)
    assert render.render(copied) == warnings[2:]


@pytest.mark.parametrize("toc", ["root: [", "[" * 10_000])
def test_an_invalid_table_of_contents_raises_an_error_before_anything_runs(
    tmp_path, monkeypatch, capsys, toc
):
    project = write_project(tmp_path, CLAIMS, first=FIRST)
    (project.book / "_toc.yml").write_text(toc)
    monkeypatch.chdir(project.root)
    assert main(["build"]) == 2
    message = capsys.readouterr().err
    assert "_toc.yml" in message
    assert message.count("\n") == 1
    assert not project.build.exists()


@pytest.mark.nightly
@pytest.mark.parametrize("year", [2001, 2101])
def test_changes_are_detected_despite_wrong_time_stamps(copied, year):
    """Sphinx rereads only files that are newer than its last run."""
    source = copied.book / "plain.md"
    page = copied.build / "html" / "plain.html"
    for words in (f"An edition of {year}.", "The next edition."):
        source.write_text(f"# A page\n\n{words}\n")
        if str(year) in words:
            os.utime(source, (0, (year - 1970) * 31556952))
        assert build_book(copied, ["1"]) == 0
        assert words in page.read_text()


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


@pytest.mark.nightly
def test_the_next_build_repairs_pages_of_a_killed_rendering(tmp_path, monkeypatch):
    project = write_book(tmp_path)
    (tmp_path / "waits.py").write_text(WAITS)
    (tmp_path / "_config.yml").write_text(
        CONFIG.replace(
            "[preflearn_book.runner.theme]", "[preflearn_book.runner.theme, waits]"
        )
    )
    monkeypatch.setenv(
        "PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tasks, "execute", run_here)
    page = project.build / "html" / "index.html"
    begun = tmp_path / "begun"
    go = tmp_path / "go"
    go.touch()
    assert build_book(project, ["1"]) == 0
    earlier = page.read_text()

    go.unlink()
    begun.unlink()
    (project.book / "index.md").write_text(INDEX + "The second edition.")
    command = [str(Path(sys.executable).with_name("preflearn")), "build", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    wait_until(
        lambda: begun.exists() and begun.read_text(), lambda: process.poll() is not None
    )
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert page.read_text() == earlier
    # the process must end with its parent, or two processes would write these pages
    wait_until(lambda: is_gone(int(begun.read_text())))

    go.touch()
    assert build_book(project, ["1"]) == 0
    assert "The second edition." in page.read_text()
    assert not [path.name for path in tmp_path.rglob(".tmp-*")]


def is_gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_the_book_is_rendered_even_if_a_chapter_fails(copied, monkeypatch, capsys):
    monkeypatch.setattr(tasks, "execute", run_here)

    def divide(notebook):
        notebook["cells"][2]["source"] = "1 / 0"

    edit_notebook(copied.notebooks / "02_second.ipynb", divide)
    assert build_book(Project(copied.root)) == 1
    assert "chapter 02_second: ZeroDivisionError" in capsys.readouterr().out
    page = (copied.build / "html" / "chapters" / "02_second.html").read_text()
    assert "could not be run" in page
    assert "ZeroDivisionError: division by zero" in page
    assert (
        "check-P1-01"
        in (copied.build / "html" / "chapters" / "01_first.html").read_text()
    )
