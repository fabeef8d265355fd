import json

import pytest
from toy_project import FIRST, write_project

from bookrunner.build import broken_links, build_book, collect, ledger_state
from bookrunner.ledger import load_ledger
from bookrunner.outputs import Executed
from bookrunner.pages import match_checks, status_page
from bookrunner.records import recorded
from bookrunner.render import toc_of_existing


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    project = write_project(tmp_path_factory.mktemp("book"), first=FIRST)
    status = build_book(project, parameters={"profile": "full"}, rendered=False)
    return project, status


def executed_of(project):
    (path,) = (project.build / "executed" / "01_first").glob("*.ipynb")
    return Executed(path)


def test_build_succeeds_where_all_verdicts_agree(built):
    project, status = built
    assert status == 0
    checked, problems = ledger_state(project)
    assert problems == []
    assert [entry.result and entry.result["computed"] for entry in checked] == [
        "holds",
        "holds if or typo",
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
    assert "`profile = 'full'`" in sources[2]
    outputs = page["cells"][-1]["outputs"]
    assert [output["output_type"] for output in outputs] == ["display_data", "display_data", "stream"]
    assert 'id="check-P1-01"' in "".join(outputs[0]["data"]["text/html"])


def test_a_full_run_is_recorded_with_its_provenance(built, monkeypatch):
    project, _ = built
    monkeypatch.setenv("PREFLEARN_ROOT", str(project.root))
    table = recorded("01_first", "fit")
    assert table.to_dict("records") == [{"loss": 0.0, "n": 10}]
    assert table.attrs["parameters"] == {"profile": "full", "seed": 0, "n": 10}
    assert table.attrs["date"].endswith("Z")
    assert table.attrs["wall_time_s"] > 0


def test_pages_that_did_not_change_are_not_touched(built):
    project, _ = built
    before = {path: path.stat().st_mtime_ns for path in project.pages.iterdir()}
    assert {path.name for path in before} == {"01_first.ipynb", "claims.md", "status.md"}
    stale = project.pages / "08_gone.ipynb"
    stale.write_text("{}")
    assert collect(project) == []
    assert {path: path.stat().st_mtime_ns for path in project.pages.iterdir()} == before


def test_claims_page_links_both_ways_and_counts(built):
    project, _ = built
    page = (project.pages / "claims.md").read_text()
    assert "| all | 3 | 1 | 0 | 1 | 0 | 0 | 1 |" in page
    assert "(claim-p1-01)=\n" in page
    assert '<a href="01_first.html#check-P1-01">' in page
    assert r"On 5 cases with $x_1 < 2$, \*exactly\*" in page
    assert "- with the sign turned: holds" in page
    assert "chapter is in preparation" in page


def test_status_page_has_times_versions_and_data(built):
    project, _ = built
    executed = executed_of(project)
    page = status_page({"01_first": executed})
    assert "| {doc}`01_first` |" in page
    assert f"numpy {executed.provenance['versions']['numpy']}" in page
    assert "No chapter read a data set." in page
    assert executed.n_code_cells == 2
    used = [{"dataset": "sushi", "file": "a|b.txt", "sha256": "0123456789abcdef", "source": "mirror"}]
    executed.notebook["metadata"]["preflearn"]["data"] = ["sushi", "nba"]
    executed.provenance["data"] = used
    page = status_page({"01_first": executed})
    assert r"| 01 | sushi | a\|b.txt | `0123456789ab` | mirror |" in page
    assert "| 01 | nba |  |  | other data in its place |" in page


def problems_with(project, tmp_path, old, new):
    path = tmp_path / "claims.yml"
    text = (project.book / "claims.yml").read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return match_checks(load_ledger(path), project.chapters, {"01_first": executed_of(project)})[1]


def test_each_disagreement_with_the_ledger_is_a_problem(built, tmp_path):
    project, _ = built
    (problem,) = problems_with(project, tmp_path, "verdict: typo", "verdict: fails")
    assert problem.startswith("P1-02: computed 'holds if or typo', but the ledger says 'fails'")
    assert problems_with(project, tmp_path, "verdict: typo", "verdict: holds if") == []
    (problem,) = problems_with(project, tmp_path, "chapter: 09_later", "chapter: 01_first")
    assert problem == "P2-01: chapter 01_first never checks it"
    (problem,) = problems_with(
        project,
        tmp_path,
        "eq. 3\n  statement: A formula.\n  chapter: 01_first",
        "eq. 3\n  statement: A formula.\n  chapter: 09_later",
    )
    assert problem == "P1-02: chapter 01_first checks it; the ledger gives it to 09_later"
    (problem,) = problems_with(project, tmp_path, "P1-02", "P1-05")[:1]
    assert problem == "P1-02: chapter 01_first checks it, but it is not in the ledger"


def test_checking_twice_is_a_problem(built):
    project, _ = built
    executed = executed_of(project)
    executed.notebook["cells"].append(executed.notebook["cells"][-2])
    problems = match_checks(
        load_ledger(project.book / "claims.yml"), project.chapters, {"01_first": executed}
    )[1]
    assert "P1-01: chapter 01_first checks it more than once; expected one check" in problems


def test_build_fails_on_a_contradiction(tmp_path, capsys):
    source = 'from bookrunner.ledger import check\ncheck("P1-01", False, "One case differs.")'
    ledger = "- {id: P1-01, where: x, statement: x, chapter: 01_first, verdict: holds}\n"
    project = write_project(tmp_path, ledger, first=source)
    assert build_book(project, rendered=False) == 1
    out = capsys.readouterr().out
    assert "claim P1-01: computed 'fails', but the ledger says 'holds' (One case differs.)" in out
    assert (
        "**contradiction: computed fails, the ledger says holds**"
        in (project.pages / "claims.md").read_text()
    )


def test_a_chapter_that_was_not_run_is_no_problem(built):
    project, _ = built
    checked, problems = match_checks(load_ledger(project.book / "claims.yml"), project.chapters, {})
    assert problems == []
    assert checked[0].why == "Not yet checked: its chapter was not run in this build."


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


def test_broken_links_are_found_and_good_ones_are_not(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "macros.html").write_text('<a href="{{ nowhere }}">x</a>')
    (tmp_path / "a b.png").touch()
    (tmp_path / "index.html").write_text(
        '<h1 id="top">x</h1><a href="#top">1</a><a href="sub/page.html?q=1#there">2</a><img src="a%20b.png">'
        '<a href="https://example.org/x">3</a><a href="#">4</a><a href="mailto:a@b.c">5</a>'
        '<script src="gone.js"></script><a href="sub/page.html#gone">6</a><a href="sub/none.html">7</a>'
    )
    (tmp_path / "sub" / "page.html").write_text('<a name="there"></a><a href="../index.html#top">x</a>')
    assert broken_links(tmp_path) == [
        ("index.html", "gone.js", "file"),
        ("index.html", "sub/page.html#gone", "anchor"),
        ("index.html", "sub/none.html", "file"),
    ]
    with pytest.raises(ValueError, match="no HTML page"):
        broken_links(tmp_path / "nothing")
