import json
import os
import shutil
from dataclasses import replace

import pytest
from toy_project import FIRST, LEDGER, edit_notebook, run_here, write_notebook, write_project

from bookrunner import render, tasks
from bookrunner.build import build_book, collect, shown_chapters
from bookrunner.command import main
from bookrunner.keys import State
from bookrunner.ledger import load_ledger, read_ledger
from bookrunner.outputs import Executed
from bookrunner.pages import collected, figures, match_checks
from bookrunner.project import Project
from bookrunner.render import toc_of_existing

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


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    project = write_project(tmp_path_factory.mktemp("book"), first=FIRST)
    status = build_book(project, parameters={"profile": "full"}, rendered=False)
    return project, status


def executed_of(project):
    (path,) = (project.build / "executed" / "01_first").glob("*.ipynb")
    assert path.name == "full.ipynb"
    return Executed(json.loads(path.read_text()))


def matched(project):
    return match_checks(read_ledger(project.book), shown_chapters(project))


def test_build_succeeds_where_all_verdicts_agree(built):
    project, status = built
    assert status == 0
    checked, problems = matched(project)
    assert problems == []
    assert [entry.result and entry.result["computed"] for entry in checked] == [
        "holds",
        "holds if or typo",
        None,
        None,
    ]


def test_page_shows_the_chapter_and_not_the_machinery(built):
    project, _ = built
    page = json.loads((project.pages / "01_first.ipynb").read_text())
    text = json.dumps(page)
    assert "vnd.preflearn" not in text
    assert "papermill" not in text
    assert "emit_provenance" not in text
    assert "injected-parameters" not in text
    sources = ["".join(cell["source"]) for cell in page["cells"]]
    assert 'pip install ".[book]"' in sources[0]
    assert page["cells"][0]["metadata"]["tags"] == ["remove-cell"]
    assert "`profile = 'full'`" in sources[3]
    outputs = page["cells"][-1]["outputs"]
    assert [output["output_type"] for output in outputs] == ["display_data", "display_data", "stream"]
    assert 'id="check-P1-01"' in "".join(outputs[0]["data"]["text/html"])


def test_pages_that_did_not_change_are_not_touched(built):
    project, _ = built
    before = {path: path.stat().st_mtime_ns for path in project.pages.iterdir()}
    assert {path.name for path in before} == {"01_first.ipynb", "claims.md", "status.md", "tally.md"}
    stale = project.pages / "08_gone.ipynb"
    stale.write_text("{}")
    assert collect(project, State(project)) == []
    assert {path: path.stat().st_mtime_ns for path in project.pages.iterdir()} == before


def test_claims_page_links_both_ways_and_counts(built):
    project, _ = built
    page = (project.pages / "claims.md").read_text()
    assert "| all | 4 | 1 | 1 | 0 | 1 | 0 | 0 | 1 |" in page
    assert "(claim-p1-01)=\n" in page
    assert '<a href="01_first.html#check-P1-01">' in page
    assert r"On 5 cases with $x_1 < 2$, \*exactly\*" in page
    assert "- with the sign turned: holds" in page
    assert "*Its chapter was not run in this build.*" in page
    assert "**≡ definition** P1-03, eq. 4" in page
    assert "**✎ typo** P1-02, eq. 3\n\nA formula.\n\n- as printed: fails" in page
    assert "*True by definition" in page


def test_claims_page_has_each_section_once_in_the_order_of_the_paper(built):
    project, _ = built
    checked, _ = matched(project)
    places = ("section 2.10, eq. 9", "section 2.2", "abstract", "section 2.10")
    moved = [
        replace(e, claim=replace(e.claim, id=f"P1-0{k}", where=where))
        for k, (e, where) in enumerate(zip(checked, places, strict=True))
    ]
    titles = [line for line in collected(moved, {})["claims.md"].splitlines() if line.startswith("###")]
    assert titles == ["### Abstract", "### Section 2.2", "### Section 2.10"]


def test_tally_counts_what_is_settled(built):
    text = collected(matched(built[0])[0], {})["tally.md"]
    assert "3 claims judged" in text
    assert '<li class="claim-holds"><strong>1</strong> <span aria-hidden="true">✓</span> holds</li>' in text
    assert '<li class="claim-open"><strong>0</strong>' in text


def test_figures_that_a_page_names_are_taken_from_the_chapters(built):
    executed = executed_of(built[0])
    cell = executed.notebook["cells"][-2]
    cell["metadata"]["mystnb"] = {"figure": {"name": "fig-a"}}
    cell["outputs"].append({"output_type": "display_data", "data": {"image/svg+xml": ["<svg>", "</svg>"]}})
    assert figures("{figure} chapters/fig-a.svg", {"01_first": executed}) == {"fig-a.svg": "<svg></svg>"}
    assert figures("{figure} chapters/fig-b.svg", {"01_first": executed}) == {}


def test_status_page_has_times_versions_and_data(built):
    project, _ = built
    executed = executed_of(project)
    page = collected([], {"01_first": executed})["status.md"]
    assert "| {doc}`01_first` |" in page
    assert f"numpy {executed.provenance['versions']['numpy']}" in page
    assert "No chapter read a data set." in page
    assert executed.n_code_cells == 2
    used = [{"dataset": "sushi", "file": "a|b.txt", "sha256": "0123456789abcdef", "source": "mirror"}]
    executed.provenance["data"] = used
    executed.provenance["read"]["dataset nba"] = None
    page = collected([], {"01_first": executed})["status.md"]
    assert r"| 01 | sushi | a\|b.txt | `0123456789ab` | mirror |" in page
    assert "| 01 | nba |  |  | other data in its place |" in page


SIDES = "computed 'holds if or typo', the ledger says 'fails'"
HERE, THERE = "A formula.\n  chapter: 01_first", "A formula.\n  chapter: 09_later"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("verdict: typo", "verdict: holds if", None),
        (
            "verdict: typo",
            "verdict: fails",
            "contradiction: computed 'holds if or typo', the ledger says 'fails'",
        ),
        (
            "verdict: typo",
            "verdict: typo\n  ours: fails",
            "on our numbers computed 'holds if or typo', the led",
        ),
        ("verdict: typo", "verdict: definition", "the ledger says 'definition'"),
        ("chapter: 09_later", "chapter: 01_first", "P2-01: chapter 01_first never checks it"),
        (HERE, THERE, "P1-02: chapter 01_first checks it; the ledger gives it to 09_later"),
        ("P1-02", "P1-05", "P1-02: chapter 01_first checks it; it is not in the ledger"),
    ],
)
def test_each_disagreement_with_the_ledger_is_a_problem(built, tmp_path, old, new, problem):
    path, text = tmp_path / "claims.yml", (built[0].book / "claims.yml").read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    problems = match_checks(load_ledger(path), {"01_first": executed_of(built[0])})[1]
    assert problem in problems[0] if problem else problems == []
    assert len(problems) <= 1 + (new == "P1-05")  # which is never checked


def test_checking_twice_is_a_problem(built):
    project, _ = built
    executed = executed_of(project)
    executed.notebook["cells"].append(executed.notebook["cells"][-2])
    problems = match_checks(load_ledger(project.book / "claims.yml"), {"01_first": executed})[1]
    assert "P1-01: chapter 01_first checks it more than once; expected one check" in problems


def test_build_fails_on_a_contradiction(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    source = 'from bookrunner.ledger import check\ncheck("P1-01", False, "One case differs.")'
    ledger = "- {id: P1-01, where: x, statement: x, chapter: 01_first, verdict: holds}\n"
    project = write_project(tmp_path, ledger, first=source)
    assert build_book(project, rendered=False) == 1
    out = capsys.readouterr().out
    assert "claim P1-01: contradiction: computed 'fails', the ledger says 'holds' (One case differs.)" in out
    assert (
        "**⚠ contradiction: computed 'fails', the ledger says 'holds'**"
        in (project.pages / "claims.md").read_text()
    )


def test_the_book_shows_what_was_asked_for_last_whatever_the_clock_says(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tasks, "execute", run_here)
    project = write_project(tmp_path, LEDGER, first=FIRST)
    page = project.pages / "01_first.ipynb"
    for seed in (4, 5):
        assert build_book(project, parameters={"seed": seed}, rendered=False) == 0
        assert f"`seed = {seed}`" in page.read_text()
    four, five = (
        next(path for path in project.build.rglob("quick-*.ipynb") if f'"seed": {seed}' in path.read_text())
        for seed in (4, 5)
    )
    os.utime(four, (0, 0))  # the clock stepped
    os.utime(five, (4e9, 4e9))
    assert build_book(project, parameters={"seed": 4}, rendered=False) == 0
    assert "`seed = 4`" in page.read_text()
    write_notebook(project.notebooks / "02_second.ipynb", "1")
    project = Project(project.root)
    assert build_book(project, ["2"], rendered=False) == 0
    assert "`seed = 4`" in page.read_text()

    four.write_bytes(b"")
    monkeypatch.chdir(project.root)
    capsys.readouterr()
    assert main(["claims"]) == 0
    assert capsys.readouterr().err == ""  # of what is not shown, nothing is said
    assert main(["build", "1", "-p", "seed", "4", "--no-render"]) == 0
    captured = capsys.readouterr()
    assert "1 executed, 0 unchanged" in captured.out
    assert captured.err.count(f"preflearn: {four} can't be read and counts as missing") == 1
    (project.build / "shown" / "01_first.ipynb").write_bytes(b"")
    assert shown_chapters(project).keys() == {"02_second"}


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
    labelled = "# Second, fig-second\n\n```{math}\n:label: eq-second\nx\n```\n"
    edit_notebook(project.notebooks / "02_second.ipynb", lambda nb: nb["cells"][0].update(source=labelled))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(tasks, "execute", run_here)
        status = build_book(project, ["1"])
    return project, status


def test_one_chapter_of_a_fresh_clone_builds_without_problems(rendered, capsys):
    project, status = rendered
    assert status == 0
    html = project.build / "html"
    assert "check-P1-01" in (html / "chapters/01_first.html").read_text()
    assert not (html / "chapters/02_second.html").exists()
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


def test_a_wrong_address_of_the_repository_is_refused_before_anything_runs(rendered, capsys):
    project, _ = rendered
    config = project.root / "_config.yml"
    text = config.read_text()
    try:
        config.write_text(text.replace("https://github.com/owner/name", "not a url"))
        with pytest.raises(ValueError, match=r"repository 'not a url'; expected such as https://"):
            build_book(project, ["1"])
    finally:
        config.write_text(text)


def test_a_page_says_what_it_is_about(rendered):
    page = (rendered[0].build / "html/index.html").read_text()
    text = "A book &amp; its “words”. See"
    assert f'<meta name="description" property="og:description" content="{text}' in page


def test_damaged_pages_are_made_again(rendered, tmp_path, capsys, monkeypatch):
    project, _ = rendered
    html, whole = project.build / "html", tmp_path / "whole"
    shutil.copytree(html, whole)
    (html / "chapters" / "claims.html").write_text("half a pa")

    def rendered_again(project, toc):
        assert not html.exists()
        shutil.copytree(whole, html)
        return []

    monkeypatch.setattr(render, "_jupyter_book", rendered_again)
    assert build_book(project, ["1"]) == 0
    assert "rendered in" in capsys.readouterr().out
    assert build_book(project, ["1"]) == 0
    assert "up to date" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("config", "toc", "message"),
    [
        (CONFIG, "root: [", "_toc.yml is not valid YAML"),
        (CONFIG, "- root", "_toc.yml is ['root']; expected a mapping"),
        (CONFIG, "roots: 1", "_toc.yml has the root None; expected a page in "),
        (CONFIG, "root: elsewhere", "_toc.yml has the root 'elsewhere'; expected a page in "),
        (CONFIG, "[" * 10_000, "_toc.yml is not valid YAML"),
        (CONFIG, None, "_toc.yml is None; expected "),
        (None, None, "_config.yml is None"),
        ("- 1", None, "_config.yml is [1]; expected a mapping"),
    ],
)
def test_a_broken_frame_is_one_line_before_anything_runs(tmp_path, monkeypatch, capsys, config, toc, message):
    project = write_project(tmp_path, LEDGER, first=FIRST)
    for path, text in ((project.root / "_config.yml", config), (project.book / "_toc.yml", toc)):
        if text is not None:
            path.write_text(text)
    monkeypatch.chdir(project.root)
    assert main(["build"]) == 2
    assert capsys.readouterr().err.startswith(f"preflearn: error: {message}")
    assert not project.build.exists()


def test_contents_leave_out_chapters_without_a_page(tmp_path):
    (tmp_path / "01_first.ipynb").touch()
    (tmp_path / "claims.md").touch()
    toc = {
        "root": "index",
        "parts": [
            {"caption": "A", "chapters": [{"file": "chapters/01_first"}, {"file": "chapters/02_x"}]},
            {"caption": "B", "chapters": [{"file": "chapters/03_y"}]},
            {"caption": "C", "chapters": [{"file": "notation"}, {"file": "chapters/claims"}]},
        ],
    }
    assert toc_of_existing(toc, tmp_path) == {
        "root": "index",
        "parts": [
            {"caption": "A", "chapters": [{"file": "chapters/01_first"}]},
            {"caption": "C", "chapters": [{"file": "notation"}, {"file": "chapters/claims"}]},
        ],
    }
