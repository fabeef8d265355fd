import json
from dataclasses import replace

import pytest
from toy_project import FIRST, write_project

from bookrunner.build import build_book, collect, shown_chapters
from bookrunner.keys import State
from bookrunner.ledger import load_ledger
from bookrunner.outputs import Executed
from bookrunner.pages import collected, figures, match_checks


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
    return match_checks(load_ledger(project.book / "claims.yml"), shown_chapters(project))


def test_build_succeeds_where_all_verdicts_agree(built):
    project, status = built
    assert status == 0
    checked, problems = matched(project)
    assert problems == []
    computed = [entry.result and entry.result["computed"] for entry in checked]
    assert computed == ["holds", "holds if or typo", None, None]


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
    assert "| 2 |" in page  # code cells: the parameters, and one more
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
            f"contradiction: {SIDES}",
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
