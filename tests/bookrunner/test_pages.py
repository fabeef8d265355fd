import io
import json
import re
from base64 import b64encode
from dataclasses import replace
from pathlib import Path
from zipfile import ZipFile

import pandas as pd
import pytest
from toy_project import FIRST, write_project

from bookrunner.build import build_book, collect, shown_chapters
from bookrunner.keys import State
from bookrunner.ledger import load_ledger
from bookrunner.outputs import Executed
from bookrunner.pages import archive, collected, figures, match_checks
from bookrunner.project import Project
from bookrunner.records import for_both_themes


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
    assert [output["output_type"] for output in page["cells"][-2]["outputs"]] == ["stream"]
    assert "Checked here: 1 holds, 1 typo" in sources[-1]
    assert 'id="check-P1-01"' in sources[-1]


def test_pages_that_did_not_change_are_not_touched(built):
    project, _ = built
    before = {path: path.stat().st_mtime_ns for path in project.pages.iterdir()}
    collected = {f"claims.{kind}" for kind in ("md", "csv", "json")} | {"errata_p1.md", "errata_p2.md"}
    collected |= {"01_first.ipynb", "status.md", "reproduce.md", "tally.md", "papers.md", "notebooks.zip"}
    assert {path.name for path in before} == collected
    stale = project.pages / "08_gone.ipynb"
    stale.write_text("{}")
    assert collect(project, State(project)) == []
    assert {path: path.stat().st_mtime_ns for path in project.pages.iterdir()} == before


def test_the_archive_holds_each_notebook_as_it_is_run(built):
    """After a cell that says how to install; and a README, which leads to the same place."""
    project, address = Project(Path(__file__).parents[2]), "https://example.org/owner/name"
    with ZipFile(io.BytesIO(archive(project.chapters, address))) as zipped:
        names = [f"notebooks/{chapter.path.name}" for chapter in project.chapters]
        assert len(names) > 17
        assert zipped.namelist() == ["notebooks/README.md", *names]
        assert address in zipped.read("notebooks/README.md").decode()
        for name, chapter in zip(names, project.chapters, strict=True):
            first, *cells = json.loads(zipped.read(name))["cells"]
            assert address in first["source"]
            assert cells == chapter.notebook["cells"]
        assert {entry.external_attr >> 16 for entry in zipped.infolist()} == {0o644}
    archived = built[0].pages / "notebooks.zip"
    assert archived.read_bytes() == archive(built[0].chapters)


def test_an_archive_of_the_same_notebooks_has_the_same_bytes(tmp_path, monkeypatch):
    made = []
    for day in (1, 2):
        project = write_project(tmp_path / str(day), first=FIRST, second="x = 1")
        monkeypatch.setattr("time.time", lambda day=day: 1.8e9 + 1e5 * day)
        made.append(archive(project.chapters))
    assert made[0] == made[1]
    (tmp_path / "2" / "notebooks" / "02_second.ipynb").unlink()
    assert archive(Project(tmp_path / "2").chapters) != made[0]


def test_the_published_pdf_is_named_only_where_the_book_is_published():
    assert "make pdf" in collected([], {})["reproduce.md"]
    assert ".pdf)" not in collected([], {})["reproduce.md"]
    page = collected([], {}, site="https://owner.github.io/name/")["reproduce.md"]
    assert "(https://owner.github.io/name/learning-from-comparisons.pdf)" in page


def counts(page):
    """The summary of the claims page: kind, all, each verdict, unchecked."""
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page)
    return {
        kind: [int(re.sub("<.*?>", "", cell)) for cell in cells.split("</td>")[:-1]] for kind, cells in rows
    }


def test_claims_page_links_both_ways_and_counts(built):
    project, _ = built
    page = (project.pages / "claims.md").read_text()
    assert "4 statements of the papers" in page
    assert counts(page)["all"] == [4, 1, 1, 0, 1, 0, 0, 0, 1]
    data = 'data-paper="P1" data-verdict="holds" data-kind="formula" data-consequence=""'
    assert f'id="claim-p1-01" {data}' in page
    assert '<span class="counts">3 claims: 1 definition, 1 holds, 1 typo</span>' in page
    assert '<a href="01_first.html#check-P1-01">' in page
    assert r"On 5 cases with $x_1 < 2$, \*exactly\*" in page
    assert "- with the sign turned: holds" in page
    assert "Its chapter was not run in this build." in page
    assert '<span class="claim-word">unchecked:</span> Later.' in page
    assert "**Definition.** Section 2, eq. 4; formula.\n\nSo.\n\nTrue by definition" in page
    assert '</span> A formula. <span class="claim-id">P1-02</span>' in page
    link = '<a href="errata_p1.html#erratum-p1-02">errata</a>'
    assert f"**Typo.** Section 2, eq. 3; formula; misprint, see the {link}.\n\n- as printed: fails" in page


def changed(built, *changes):
    """The claims of the built project with other entries in the ledger."""
    checked, _ = matched(built[0])
    return [replace(e, claim=replace(e.claim, **new)) for e, new in zip(checked, changes, strict=True)]


def test_claims_page_has_each_section_once_in_the_order_of_the_paper(built):
    places = ("section 2.10, eq. 9", "section 2.2", "abstract; section 7", "Table 1")
    moved = changed(built, *({"id": f"P1-0{k}", "where": where} for k, where in enumerate(places)))
    page = collected(moved, {})["claims.md"]
    titles = re.findall(r'claims-section">\n<summary>(.*?) <span', page)
    assert titles == ["Abstract", "Section 2.2", "Section 2.10", "Table 1"]


def test_reproductions_are_no_claims_of_the_papers(built):
    """They are listed apart, and counted nowhere among them."""
    pages = collected(changed(built, {"kind": "reproduction"}, {"kind": "theorem"}, {}, {}), {})
    page, apart = pages["claims.md"].split('<details class="claims-fold claims-reproductions">')
    assert "1 result that no paper wrote: 1 holds" in apart
    assert 'id="claim-p1-01"' in apart
    assert 'id="claim-p1-01"' not in page
    assert "3 statements" in page
    assert counts(page) == {
        "theorem": [1, 0, 0, 0, 1, 0, 0, 0, 0],
        "formula": [2, 1, 0, 0, 0, 0, 0, 0, 1],
        "all": [3, 1, 0, 0, 1, 0, 0, 0, 1],
    }
    assert '<a href="claims.html?kind=theorem&amp;verdict=typo">1</a>' in page
    assert "2 claims: 1 definition, 1 typo" in page
    assert "2 claims judged" in pages["tally.md"]
    assert '<a href="chapters/claims.html?kind=formula">1 formula</a>.' in pages["tally.md"]


def test_what_has_no_cell_is_told_by_its_note(built):
    new = {"verdict": "open", "note": "The data are not public.", "kind": "comparison"}
    page = collected(changed(built, {}, {}, new, {}), {})["claims.md"]
    assert "**Open.** Section 2, eq. 4; comparison.\n\nThe data are not public.\n\nNot computed here" in page


def test_tables_of_claims_hold_the_ledger_and_what_was_computed(built):
    pages = collected(matched(built[0])[0], {})
    rows = json.loads(pages["claims.json"])
    table = pd.read_csv(io.StringIO(pages["claims.csv"]), keep_default_na=False)
    assert rows == table.to_dict("records")
    assert [row["id"] for row in rows] == ["P1-01", "P1-02", "P1-03", "P2-01"]
    assert [bool(row["evidence"]) for row in rows] == [True, True, False, False]
    assert rows[1]["conditions"] == "as printed: fails; with the sign turned: holds"
    assert rows[0]["evidence"].startswith("On 5 cases")


def erratum(consequence, where, **more):
    texts = {"printed": "$a$", "read": "$-a$", "affects": "who computes it"}
    return {"consequence": consequence, "where": where, "kind": "formula"} | texts | more


def test_errata_come_by_consequence_and_then_by_place(built):
    page = collected(
        changed(
            built,
            erratum("misprint", "section 10, eq. 3"),
            erratum("wording", "section 1"),
            erratum("changes a result", "section 4, eq. 7", note="So."),
            erratum("misprint", "section 9, eq. 4", id="P1-09"),
        ),
        {},
    )["errata_p1.md"]
    assert re.findall(r"^##+ .*", page, re.MULTILINE) == [
        *("## What changes a result", "### Section 4, eq. 7"),
        *("## Misprints", "### Section 9, eq. 4", "### Section 10, eq. 3", "## Wording", "### Section 1"),
    ]
    assert "Of 4 statements that we looked at, 0 hold as they stand. In 4 places" in page
    assert ": 1 changes a result, 2 are misprints, 1 is a matter of wording.\n\nWhere" in page
    assert "As printed\n: $a$\n\nRead instead\n: $-a$\n" in page
    assert "\n\nAffected\n: Who computes it\n\nSo.\n\n<a href" in page
    assert "(erratum-p1-01)=\n### Section 10, eq. 3\n" in page
    assert (
        '<a href="claims.html#claim-p1-01">Claim P1-01</a>, checked in <a href="01_first.html#check-P1-01">'
        in page
    )
    assert '<a href="claims.html#claim-p1-09">Claim P1-09</a>.' in page


def test_errata_name_no_consequence_that_none_has(built):
    page = collected(changed(built, *[erratum("wording", "section 1")] * 4), {})["errata_p1.md"]
    said = page.partition("than what is printed: ")[2].partition("\n")[0]
    assert re.fullmatch(r"(1 changes a result, )?\d are matters of wording\.", said)


def test_a_paper_without_errata_says_so(built):
    page = collected(matched(built[0])[0], {})["errata_p2.md"]
    assert "We found nothing that has to be read otherwise." in page
    assert "##" not in page


def test_tally_counts_what_is_settled(built):
    text = collected(matched(built[0])[0], {})["tally.md"]
    assert "3 claims judged" in text
    link = '<a href="chapters/claims.html?verdict=holds">holds</a>'
    assert f'<li class="claim-holds"><strong>1</strong> <span aria-hidden="true">✓</span> {link}</li>' in text
    link = '<a href="chapters/claims.html?verdict=not+shown">not shown</a>'
    assert f'<strong>0</strong> <span aria-hidden="true">≈</span> {link}</li>' in text
    assert '<p>By kind: <a href="chapters/claims.html?kind=formula">3 formulas</a>.</p>' in text
    assert '<li class="claim-open"><strong>0</strong>' in text


def test_the_claims_of_a_paper_by_verdict(built):
    text = collected(changed(built, {}, {}, {}, {"kind": "reproduction"}), {})["papers.md"]
    assert re.findall('<th scope="row">(P.)', text) == ["P1"]  # a reproduction is no claim of P2
    parts = re.findall(r'style="flex-grow: (\d+)" href="([^"]+)" aria-label="P1: (.*?)"', text)
    link = "chapters/claims.html?paper=P1&amp;verdict="
    assert parts == [("1", f"{link}{verdict}", f"1 {verdict}") for verdict in ("definition", "holds", "typo")]


def test_figures_that_a_page_names_are_taken_from_the_chapters(built):
    executed = executed_of(built[0])
    cell = executed.notebook["cells"][-2]
    cell["metadata"]["mystnb"] = {"figure": {"name": "fig-a"}}
    cell["outputs"].append({"output_type": "display_data", "data": {"image/svg+xml": ["<svg>", "</svg>"]}})
    expected = {"fig-a.svg": for_both_themes("<svg></svg>")}
    assert figures("{figure} chapters/fig-a.svg", {"01_first": executed}) == expected
    assert figures("{figure} chapters/fig-b.svg", {"01_first": executed}) == {}


def test_of_an_explorer_a_page_shows_the_static_figure(built):
    executed = executed_of(built[0])
    cell = executed.notebook["cells"][-2]
    cell["metadata"]["mystnb"] = {"figure": {"name": "fig-a"}}
    shown = f'<img src="data:image/svg+xml;base64,{b64encode(b"<svg>").decode()}" alt="A line.">'
    cell["outputs"].append({"output_type": "display_data", "data": {"text/html": [shown]}})
    assert figures("{figure} chapters/fig-a.svg", {"01_first": executed}) == {"fig-a.svg": "<svg>"}


HEADER = {"date": "2026-11-25T05:42:21Z", "parameters": {"profile": "full", "seed": 7}, "wall_time_s": 75.0}
HEADER["data"] = {"sushi/a.txt": "01", "sushi/b.txt": "02", "nba/c.rda": "03"}


def test_each_figure_and_each_table_can_be_made_again(built):
    executed = executed_of(built[0])
    cell = executed.notebook["cells"][-2]
    cell["metadata"]["mystnb"] = {"figure": {"name": "fig-a", "caption": r"A *line* of $a_1$: and more."}}
    used = {"dataset": "nba", "file": "a.rda", "sha256": "0123456789abcdef", "source": "mirror"}
    executed.provenance["data"] = [used, used | {"file": "b.rda"}]
    executed.provenance["read"]["dataset chess"] = None
    shown = {"01_first": executed}
    page = collected([], shown)["reproduce.md"]
    how = r"{doc}`01_first` is made by `preflearn build 01 -p profile full` in .*, in the full profile with"
    assert re.search(
        rf"^### Chapter 1\n\n{how} seed 0\. Data sets: nba; others in place of chess\.\n", page, re.MULTILINE
    )
    head = "| figure or table | made in |\n| --- | --- |\n"
    figure = r"| {numref}`fig-a`, A \*line\* of $a_1$ | this build |"
    assert f"{head}{figure}\n| fit | this build |\n" in page
    page = collected([], shown, recorded={"01_first_fit": HEADER}, commit="0123-dirty")["reproduce.md"]
    link = "{download}`2026\u201111\u201125 <../../data/recorded/01_first_fit.csv>`"
    row = f"| fit | {link}: full profile, seed 7, 1\u00a0min\u00a015\u00a0s; sushi, nba |"
    assert f"{head}{figure}\n{row}\n" in page
    assert "Built from commit `0123`, with changes that are not committed" in page


def test_status_page_names_the_commit_only_where_there_is_one(built):
    shown = {"01_first": executed_of(built[0])}
    assert "commit" not in collected([], shown)["status.md"]
    page = collected([], shown, commit="0123")["status.md"]
    assert "Built from commit `0123`, with these versions: " in page


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
