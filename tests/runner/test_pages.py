import io
import json
import re
from base64 import b64encode
from dataclasses import replace
from zipfile import ZipFile

import pandas as pd
import pytest
from toy_project import FIRST, write_project

from preflearn_book.runner.build import build_book, collect, latest_chapters
from preflearn_book.runner.claims import load_claims
from preflearn_book.runner.dependencies import State
from preflearn_book.runner.outputs import Executed
from preflearn_book.runner.pages import archive, collected, figures, match_checks
from preflearn_book.runner.project import Project


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose first chapter was built in the full profile."""
    project = write_project(tmp_path_factory.mktemp("book"), first=FIRST)
    assert build_book(project, parameters={"profile": "full"}, rendered=False) == 0
    return project


@pytest.fixture
def executed(project):
    path = project.build / "executed" / "01_first" / "full.ipynb"
    return Executed(json.loads(path.read_text()))


@pytest.fixture
def checked(project):
    return match_checks(
        load_claims(project.book / "claims.yml"), latest_chapters(project)
    )[0]


def changed(checked, *changes):
    """Return the checked claims with other entries in the claims list."""
    return [
        replace(e, claim=replace(e.claim, **new))
        for e, new in zip(checked, changes, strict=True)
    ]


def test_build_succeeds_if_all_verdicts_agree(project):
    checked, problems = match_checks(
        load_claims(project.book / "claims.yml"), latest_chapters(project)
    )
    assert problems == []
    computed = [entry.result and entry.result["computed"] for entry in checked]
    assert computed == ["holds", "holds if or typo", None, None]


def test_a_page_does_not_contain_cells_and_outputs_of_the_runner(project):
    page = json.loads((project.pages / "01_first.ipynb").read_text())
    text = json.dumps(page)
    assert not re.search(
        "vnd.preflearn|papermill|emit_provenance|injected-parameters", text
    )
    sources = ["".join(cell["source"]) for cell in page["cells"]]
    assert "pip install" in sources[0]
    assert page["cells"][0]["metadata"]["tags"] == ["remove-cell"]
    assert "profile = 'full'" in sources[3]
    assert [output["output_type"] for output in page["cells"][-3]["outputs"]] == [
        "stream"
    ]
    assert 'id="check-P1-01"' in sources[-2]
    assert "all 2 verdicts" in sources[-1]


def test_unchanged_pages_are_not_written_and_obsolete_pages_are_deleted(project):
    before = {path: path.stat().st_mtime_ns for path in project.pages.iterdir()}
    assert {"claims.md", "errata_p2.md", "01_first.ipynb", "notebooks.zip"} <= {
        path.name for path in before
    }
    (project.pages / "08_gone.ipynb").write_text("{}")
    assert collect(project, State(project)) == []
    assert {path: path.stat().st_mtime_ns for path in project.pages.iterdir()} == before


def test_the_archive_contains_each_notebook_with_an_installation_cell(
    tmp_path, monkeypatch
):
    address = "https://example.org/owner/name"
    archives = []
    for day in (1, 2):
        project = write_project(tmp_path / str(day), first=FIRST, second="x = 1")
        monkeypatch.setattr("time.time", lambda day=day: 1.8e9 + 1e5 * day)
        archives.append(archive(project.chapters, address))
    assert archives[0] == archives[1]  # the archive does not depend on the time
    with ZipFile(io.BytesIO(archives[0])) as zipped:
        names = [f"notebooks/{chapter.path.name}" for chapter in project.chapters]
        assert zipped.namelist() == ["notebooks/README.md", *names]
        assert address in zipped.read("notebooks/README.md").decode()
        for name, chapter in zip(names, project.chapters, strict=True):
            first, *cells = json.loads(zipped.read(name))["cells"]
            assert address in first["source"]
            assert cells == chapter.notebook["cells"]
        assert {entry.external_attr >> 16 for entry in zipped.infolist()} == {0o644}
    (tmp_path / "2" / "notebooks" / "02_second.ipynb").unlink()
    assert archive(Project(tmp_path / "2").chapters, address) != archives[0]


def counts(page):
    """Return the summary of the claims page: kind, total, each verdict, and
    unchecked."""
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page)
    return {
        kind: [int(re.sub("<.*?>", "", cell)) for cell in cells.split("</td>")[:-1]]
        for kind, cells in rows
    }


def test_the_claims_page_links_both_ways_and_counts(project):
    page = (project.pages / "claims.md").read_text()
    assert counts(page)["all"] == [4, 1, 0, 1, 0, 0, 1, 1]
    data = (
        'data-paper="P1" data-verdict="holds" data-kind="formula" data-consequence=""'
    )
    assert f'id="claim-p1-01" {data}' in page
    assert '<a href="01_first.html#check-P1-01">' in page
    assert '<a href="errata_p1.html#erratum-p1-02">' in page
    # everything except mathematics is escaped
    assert r"On 5 cases with $x_1 < 2$, \*exactly\*" in page
    assert "with the sign turned: holds" in page


def test_the_claims_page_has_each_section_once_in_the_order_of_the_paper(checked):
    places = (
        "section 2.10, eq. 9",
        "section 2.9",
        "abstract; section 7",
        "section 2, eq. 11",
    )
    moved = changed(
        checked, *({"id": f"P1-0{k}", "where": where} for k, where in enumerate(places))
    )
    titles = re.findall(
        r'claims-section">\n<summary>(.*?) <span', collected(moved, {})["claims.md"]
    )
    assert titles == ["Abstract", "Section 2", "Section 2.9", "Section 2.10"]


def test_reproductions_are_not_counted_among_the_claims(checked):
    kinds = (
        {"kind": "reproduction"},
        {"kind": "theorem"},
        {},
        {"kind": "reproduction"},
    )
    pages = collected(changed(checked, *kinds), {})
    page, apart = pages["claims.md"].split(
        '<details class="claims-fold claims-reproductions">'
    )
    assert 'id="claim-p1-01"' in apart
    assert 'id="claim-p1-01"' not in page
    assert counts(page) == {
        "theorem": [1, 0, 0, 1, 0, 0, 0],
        "formula": [1, 0, 0, 0, 0, 0, 1],
        "all": [2, 0, 0, 1, 0, 0, 1],
    }
    assert "claims.html?kind=theorem&amp;verdict=typo" in page
    parts = re.findall(
        r'style="flex-grow: (\d+)" href="([^"]+)" aria-label="P1:', pages["papers.md"]
    )
    link = "chapters/claims.html?paper=P1&amp;verdict="
    assert parts == [("1", f"{link}typo"), ("1", f"{link}open")]
    assert re.findall('<th scope="row">(P.)', pages["papers.md"]) == ["P1"]


def test_background_checks_are_listed_separately_and_link_to_their_page(checked):
    kinds = ({"kind": "background check"}, {}, {}, {})
    page, apart = collected(changed(checked, *kinds), {})["claims.md"].split(
        '<details class="claims-fold claims-background">'
    )
    assert 'id="claim-p1-01"' in apart
    assert 'id="claim-p1-01"' not in page
    assert "#check-P1-01" not in apart


def test_the_tally_counts_the_claims_of_each_verdict(checked):
    text = collected(checked, {})["tally.md"]
    found = re.findall(
        r'<li class="claim-([\w-]+)"><strong>(\d+)</strong>.*?href="([^"]+)"', text
    )
    number = {verdict: int(count) for verdict, count, _ in found}
    assert (number["holds"], number["typo"], number["open"]) == (1, 1, 1)
    assert "chapters/claims.html?verdict=not+shown" in {link for *_, link in found}


def test_tables_of_claims_contain_the_claims_list_and_the_results(checked):
    pages = collected(checked, {})
    rows = json.loads(pages["claims.json"])
    table = pd.read_csv(io.StringIO(pages["claims.csv"]), keep_default_na=False)
    assert rows == table.to_dict("records")
    assert [row["id"] for row in rows] == ["P1-01", "P1-02", "P1-03", "P2-01"]
    assert [bool(row["evidence"]) for row in rows] == [True, True, False, False]
    assert rows[1]["conditions"] == "as printed: fails; with the sign turned: holds"


def erratum(consequence, where, **more):
    texts = {"printed": "$a$", "read": "$-a$", "affects": "who computes it"}
    return (
        {"consequence": consequence, "where": where, "kind": "formula"} | texts | more
    )


def test_errata_are_ordered_by_consequence_and_then_by_place(checked):
    entries = [
        erratum("misprint", "section 10, eq. 3"),
        erratum("wording", "section 1"),
        erratum("changes a result", "section 4, eq. 7", note="So."),
        erratum("misprint", "section 9, eq. 4", id="P1-09"),
    ]
    page = collected(changed(checked, *entries), {})["errata_p1.md"]
    assert re.findall(r"^### (.*)", page, re.MULTILINE) == [
        "Section 4, eq. 7 (P1-03)",
        "Section 9, eq. 4 (P1-09)",
        "Section 10, eq. 3 (P1-01)",
        "Section 1 (P1-02)",
    ]
    assert len(re.findall(r"^## ", page, re.MULTILINE)) == 3
    assert re.search(r"\n: \$a\$\n.*\n: \$-a\$\n", page, re.DOTALL)
    assert "(erratum-p1-01)=\n### Section 10, eq. 3 (P1-01)\n" in page
    for link in (
        "claims.html#claim-p1-01",
        "01_first.html#check-P1-01",
        "claims.html#claim-p1-09",
    ):
        assert f'<a href="{link}">' in page


@pytest.fixture
def figure_cell(executed):
    cell = executed.notebook["cells"][-2]
    cell["metadata"]["mystnb"] = {
        "figure": {"name": "fig-a", "caption": r"A *line* of $a_1$: and more."}
    }
    return cell


def test_a_page_shows_the_static_figure_of_an_explorer(executed, figure_cell):
    image = f'<img src="data:image/svg+xml;base64,{b64encode(b"<svg>").decode()}" alt="A line.">'
    figure_cell["outputs"].append({"data": {"text/html": [image]}})
    assert figures("{figure} chapters/fig-a.svg", {"01_first": executed}) == {
        "fig-a.svg": "<svg>"
    }
    assert figures("{figure} chapters/fig-b.svg", {"01_first": executed}) == {}


HEADER = {
    "date": "2026-11-25T05:42:21Z",
    "parameters": {"profile": "full", "seed": 7},
    "wall_time_s": 75.0,
}
HEADER["data"] = {"sushi/a.txt": "01", "sushi/b.txt": "02", "nba/c.rda": "03"}


def test_the_reproduce_page_lists_each_figure_and_each_table(executed, figure_cell):
    used = {
        "dataset": "nba",
        "file": "a.rda",
        "sha256": "0123456789abcdef",
        "source": "mirror",
    }
    executed.provenance["data"] = [used, used | {"file": "b.rda"}]
    executed.provenance["read"]["dataset chess"] = None
    page = collected([], {"01_first": executed})["reproduce.md"]
    assert "`preflearn build 01 -p profile full`" in page
    # the page names the data that replace the chess data
    assert re.search(r"nba;.*chess", page)
    assert r"{numref}`fig-a`, A \*line\* of $a_1$ |" in page
    page = collected(
        [],
        {"01_first": executed},
        recorded={"01_first_fit": HEADER},
        commit="0123-dirty",
    )
    row = re.search(r"\| fit \|.*", page["reproduce.md"])[0]
    assert "<../../data/recorded/01_first_fit.csv>" in row
    assert re.search("seed 7, 1\u00a0min\u00a015\u00a0s; sushi, nba", row)
    assert "`0123`" in page["reproduce.md"]


def test_the_status_page_has_times_versions_and_data(executed):
    page = collected([], {"01_first": executed}, commit="0123")["status.md"]
    assert "| {doc}`01_first` |" in page
    assert "`0123`" in page
    assert f"numpy {executed.provenance['versions']['numpy']}" in page
    assert "| 2 |" in page  # number of code cells: the parameters and one more
    used = [
        {
            "dataset": "sushi",
            "file": "a|b.txt",
            "sha256": "0123456789abcdef",
            "source": "mirror",
        }
    ]
    executed.provenance["data"] = used
    executed.provenance["read"]["dataset nba"] = None
    page = collected([], {"01_first": executed})["status.md"]
    assert r"| 01 | sushi | a\|b.txt | `0123456789ab` | mirror |" in page
    assert "| 01 | nba |  |" in page


HERE = "A formula.\n  chapter: 01_first"
THERE = "A formula.\n  chapter: 09_later"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("verdict: typo", "verdict: holds if", None),
        ("verdict: typo", "verdict: fails", "'holds if or typo'.*'fails'"),
        (
            "verdict: typo",
            "verdict: typo\n  ours: fails",
            "our numbers.*'holds if or typo'",
        ),
        ("verdict: typo", "verdict: open", "'open'"),
        ("chapter: 09_later", "chapter: 01_first", "P2-01: chapter 01_first"),
        (HERE, THERE, "P1-02: chapter 01_first.*09_later"),
        ("P1-02", "P1-05", "P1-02: chapter 01_first"),
    ],
)
def test_each_disagreement_with_the_claims_list_is_a_problem(
    project, executed, tmp_path, old, new, problem
):
    path = tmp_path / "claims.yml"
    text = (project.book / "claims.yml").read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    problems = match_checks(load_claims(path), {"01_first": executed})[1]
    assert re.search(problem, problems[0]) if problem else problems == []
    # if an entry is renamed to P1-05, it is also a problem that this entry is never checked
    assert len(problems) <= 1 + (new == "P1-05")


def test_a_claim_that_is_checked_twice_is_a_problem(project, executed):
    executed.notebook["cells"].append(executed.notebook["cells"][-2])
    problems = match_checks(
        load_claims(project.book / "claims.yml"), {"01_first": executed}
    )[1]
    assert any(problem.startswith("P1-01: chapter 01_first") for problem in problems)


def test_the_reproduce_and_status_pages_show_the_same_run_time(executed):
    executed.run["seconds"] = 75.0
    pages = collected([], {"01_first": executed})
    assert "add up to 1\u00a0min\u00a015\u00a0s." in pages["reproduce.md"]
    assert "| all | 1\u00a0min\u00a015\u00a0s |" in pages["status.md"]
