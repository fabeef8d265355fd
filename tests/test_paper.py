"""The paper about the software cites existing works and names the authors in
CITATION.cff."""

import re
from pathlib import Path

import yaml
from pybtex.database import parse_file

from preflearn_book.runner.claims import load_claims

ROOT = Path(__file__).parents[1]
_, HEAD, TEXT = (ROOT / "paper" / "paper.md").read_text("utf-8").split("---\n", 2)
ABOUT = yaml.safe_load(HEAD)


def test_authors_are_those_of_the_citation():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert [author["name"] for author in ABOUT["authors"]] == [
        author["name"] for author in citation["authors"]
    ]


def test_each_work_is_cited_and_equals_the_entry_of_the_book():
    ours = parse_file(ROOT / "paper" / ABOUT["bibliography"]).entries
    book = parse_file(ROOT / "book" / "references.bib").entries
    cited = set(re.findall(r"@(\w+)", TEXT))
    assert cited == {*ours}
    for key in cited & {*book}:
        assert ours[key] == book[key]


def test_numbers_of_the_paper_are_those_of_the_repository():
    claims = [c for c in load_claims().values() if c.kind != "background check"]
    assert "more than 300 claims of five papers" in TEXT
    assert 300 < len(claims) < 400
    assert len({claim.paper for claim in claims}) == 5
    chapters = list((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    assert f"The book has {len(chapters)} chapters." in TEXT
    readme = (ROOT / "README.md").read_text("utf-8")
    (ratio,) = re.findall(r"\| kickscore \| (283 to [\d,]+) \|", readme)
    assert f"{ratio} times as fast" in TEXT
