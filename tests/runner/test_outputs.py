"""Executed notebooks: damaged files are treated as missing, and pages contain what a
reader needs."""

import json
import re

import pandas as pd
import pytest

from preflearn.core.source_digest import digest
from preflearn.plots import COLOURS
from preflearn_book.runner.files import write_atomically, write_if_changed
from preflearn_book.runner.outputs import Executed, read_executed, write_executed
from preflearn_book.runner.records import (
    NARROW_MIME,
    PROVENANCE_MIME,
    for_both_themes,
    unpacked,
)

RUN = {
    "chapter": "01_x",
    "profile": "quick",
    "parameters": {},
    "date": "",
    "seconds": 1,
    "inputs": {},
}
ABOUT = {"versions": {}, "data": [], "parameters": {}, "modules": [], "read": {}}


def executed_with(about=ABOUT, **payloads):
    """Return an executed notebook with these outputs in its first cell and its
    provenance in the last."""
    mimes = (
        kind if "/" in kind else f"application/vnd.preflearn.{kind}+json"
        for kind in payloads
    )
    bundles = [
        dict(zip(mimes, payloads.values(), strict=True)),
        {PROVENANCE_MIME: about},
    ]
    code = {"cell_type": "code", "metadata": {}, "source": "é"}
    cells = [code | {"outputs": [{"data": bundle}]} for bundle in bundles]
    return Executed({"cells": cells, "metadata": {}})


CLAIM = {
    "id": "P1-01",
    "holds": {"as printed": True},
    "computed": "holds",
    "evidence": "x",
    "value": 1,
}
CLAIM |= {"written": "holds", "agrees": True}
RECORD = {"name": "x", "csv": "n\\n", "keys": None, "timings": []}
RECORD |= {"rtol": {}, "atol": {}}


@pytest.mark.parametrize(
    ("payloads", "named"),
    [
        ({"record": RECORD}, "cell 1, .*record.*'flips'"),
        ({"claim": {"id": "P1-01"}, "text/html": ""}, "cell 1, .*claim"),
        ({"image/svg+xml": [1]}, "outputs: 0: data"),
        ({"about": "none"}, "the last cell"),
        ({"about": {"versions": {}}}, "the last cell: 'data'"),
    ],
)
def test_the_error_names_an_invalid_output(tmp_path, capsys, payloads, named):
    """The output comes from an older version of this package, or from a cell that
    displays our MIME type itself."""
    path = tmp_path / "quick.ipynb"
    executed = executed_with(**payloads)
    with pytest.raises(ValueError, match=named):
        write_executed(path, executed, dict(RUN))
    assert read_executed(path) is None
    executed.notebook["metadata"]["preflearn"] = {"run": dict(RUN)}
    executed.notebook["metadata"]["preflearn"]["run"]["digest"] = digest(
        executed.notebook
    )
    write_atomically(path, json.dumps(executed.notebook))
    assert read_executed(path) is None
    assert re.search(rf"{path}.*{named}", capsys.readouterr().err)


def test_provenance_is_taken_from_the_last_cell_only():
    forged = ABOUT | {"versions": {"numpy": "9"}}
    assert executed_with(provenance=forged).provenance == ABOUT


def test_half_of_a_surrogate_pair_is_kept(tmp_path):
    path = tmp_path / "quick.ipynb"
    text = {"text/html": "<p>\ud800</p>"}
    write_executed(path, executed_with(**text), dict(RUN))
    executed = read_executed(path)
    assert executed.notebook["cells"][0]["outputs"][0]["data"] == text
    page = executed.pages()["01_x"]
    write_if_changed(tmp_path / "page.ipynb", page)
    assert json.loads((tmp_path / "page.ipynb").read_text()) == json.loads(page)


DAMAGE = {
    "empty": b"",
    "cut": None,
    "not text": b"\x80\x81",
    "too deep": b"[" * 100_000,
    "other metadata": b'{"cells": [], "metadata": {"preflearn": {"run": {"digest": 0}}}}',
    "no run": b'{"cells": [], "metadata": {}}',
    "null": b"null",
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_treated_as_missing(tmp_path, capsys, kind):
    path = tmp_path / "quick.ipynb"
    assert read_executed(path) is None
    write_executed(path, executed_with(), dict(RUN))
    assert read_executed(path).run == RUN
    content = path.read_bytes()
    path.write_bytes(content[:-20] if DAMAGE[kind] is None else DAMAGE[kind])
    assert read_executed(path) is None
    path.write_bytes(content.replace(b"01_x", b"01_y"))
    assert read_executed(path) is None
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(str(path) in line for line in lines)


def code(source, *outputs, tags=()):
    return {
        "cell_type": "code",
        "metadata": {"tags": [*tags]},
        "source": source,
        "outputs": [*outputs],
    }


def text(source, tags=()):
    return {"cell_type": "markdown", "metadata": {"tags": [*tags]}, "source": source}


def badge(id, **changes):
    mime = "application/vnd.preflearn.claim+json"
    html = f'<details class="claim" id="check-{id}"></details>'
    return {"data": {mime: CLAIM | {"id": id} | changes, "text/html": html}}


TABLE = {"data": {"text/html": "<table></table>"}}
HIDDEN_CHECK = code("check(1)", badge("P1-01"), tags=["hide-input"])


def executed_of(*cells):
    return Executed({"cells": [*cells], "metadata": {"preflearn": {"run": RUN}}})


def page_of(*cells, broken=()):
    """Return the cells of a page between the installation and the statement of what was
    computed."""
    page = json.loads(executed_of(*cells).pages(broken=broken)["01_x"])["cells"]
    return [cell for cell in page[1:] if cell.get("id") != "computed"]


def shown_data(bundle):
    """Return the page's version of one output."""
    (cell,) = page_of(code("1", {"data": bundle}))[:1]
    return cell["outputs"][0]["data"]


def test_claims_and_hidden_code_of_a_section_are_folded_at_its_end():
    cells = page_of(
        text("# T"),
        code("import a", tags=["hide-input"]),
        text("Words.\n\n(sec-a)=\n## A\n\nMore words."),
        code(
            "check(1)",
            badge("P1-01"),
            TABLE,
            badge("P1-02", written="holds if"),
            tags=["hide-input", "x"],
        ),
        code("shown", badge("P1-03")),
        text("## B\n\n### b\n\n## C"),
        code("draw()", TABLE, tags=["hide-input"]),
    )
    sources = [cell["source"] for cell in cells]
    tags = [cell["metadata"].get("tags") for cell in cells]
    assert tags[1:5] == [["remove-cell"], [], ["remove-input", "x"], []]
    assert tags[-2] == ["remove-input"]
    head, heading, rest = sources[2].partition("(sec-a)=\n## A\n\nMore words.")
    assert (bool(heading), rest) == (True, "")
    assert re.match(r"Words\.\n\n<details .*import a\n", head, re.DOTALL)
    fold, heading, rest = sources[5].partition("## B\n\n### b\n\n## C")
    assert (bool(heading), rest) == (True, "")
    assert re.search(r"<summary>[^<]*2 hold, 1 holds if</summary>", fold)
    assert re.findall(r'id="check-(.*?)"', fold) == ["P1-01", "P1-02", "P1-03"]
    assert "check(1)" in fold
    assert "shown" not in fold
    assert "draw()" in sources[-1]
    assert [cell.get("outputs") for cell in cells[1:7]] == [
        [],
        None,
        [TABLE],
        [],
        None,
        [TABLE],
    ]
    # In Markdown, HTML ends at a blank line.
    assert re.search(
        r"</details>\n\n<details[^\n]*\n<summary>[^\n]*</summary>\n\n~~~", fold
    )
    assert re.search(r"~~~\n\n</details>\n", fold)


@pytest.mark.parametrize("place", ["in the opening", "in the section"])
def test_parameters_are_shown_below_the_first_figure(place):
    given = 'profile = "quick"'
    draw = code("draw()", TABLE, tags=["hide-input"])
    cells = [
        text("# T"),
        code(given, tags=["parameters", "hide-input"]),
        text("## A"),
        draw,
        text("## B"),
    ]
    if place == "in the opening":
        cells.insert(2, draw)
    first, second = (
        cell["source"]
        for cell in page_of(*cells)
        if cell["source"].endswith(("## A", "## B"))
    )
    assert (given in first, given in second) == (
        place == "in the opening",
        place == "in the section",
    )


TIDY = {  # HTML of pandas, and its form on the page
    "names of an index": (
        pd.DataFrame(
            {"x": [1.5, 2]},
            pd.MultiIndex.from_tuples([("a", 3), ("b", 1)], names=["ν", "R"]),
        ),
        "ν R x a 3 1.5 b 1 2.0",
    ),
    "counted rows": (pd.DataFrame({"x": ["a", "b"]}, index=[7, 8]), "x a b"),
    "rows with numbers of their own": (
        pd.DataFrame({"x": ["a", "b"]}, index=[7, 9]),
        " x 7 a 9 b",
    ),
    "counted rows with a name": (
        pd.DataFrame({"x": ["a", "b"]}, pd.RangeIndex(2, name="n")),
        "n x 0 a 1 b",
    ),
    "heads in two rows": (pd.DataFrame([[5]], ["a"], [["u"], ["v"]]), " u v a 5"),
    "a minus": (
        pd.DataFrame({"x": [-1, 2]}, index=["a-1", "2026-01-02"]),
        " x a-1 −1 2026-01-02 2",
    ),
    "powers": (
        pd.DataFrame(
            {"x": ["5e-09 ± 1e-10", "C 1e+06", "2.0e+00", "0e+00", "-3e-02"]},
            index=[*"abcde"],
        ),
        " x a 5·10^−9 ± 10^−10 b C 10^6 c 2.0 d 0 e −0.03",
    ),
}


@pytest.mark.parametrize("kind", TIDY)
def test_pandas_tables_are_formatted_for_readers(kind):
    table, expected = TIDY[kind]
    html = shown_data({"text/html": [table.to_html()]})["text/html"]
    cells = re.findall(
        r"<t[hd][^>]*>([^<]*)<", html.replace("<sup>", "^").replace("</sup>", "")
    )
    assert " ".join(cells).split() == expected.split()


@pytest.mark.parametrize(
    ("changes", "broken"),
    [({"agrees": False}, ()), ({"record": "01_x_fit"}, {"01_x_fit"})],
)
def test_contradictions_and_claims_on_broken_records_are_not_folded(changes, broken):
    cells = page_of(
        code("1", badge("P1-01", **changes), badge("P1-02"), tags=["hide-input"]),
        broken=broken,
    )
    (output,) = cells[0]["outputs"]
    assert 'id="check-P1-01"' in output["data"]["text/html"]
    assert cells[0]["metadata"]["tags"] == ["remove-input"]
    assert 'id="check-P1-02"' in cells[1]["source"]
    assert output["data"]["text/html"].startswith("<details open") == bool(broken)


def test_appendix_sections_are_on_a_separate_page():
    executed = executed_of(
        text("# T\n\nWords."),
        HIDDEN_CHECK,
        text("(sec-b)=\n## B", tags=["appendix"]),
        text("More.\n\n### Below"),
        code("check(2)", badge("P1-02"), tags=["hide-input"]),
        text("## C"),
        code("c"),
    )
    assert executed.places == {"P1-01": "01_x", "P1-02": "01_x_more"}
    pages = {name: json.loads(page)["cells"] for name, page in executed.pages().items()}
    main, more = (
        "\n".join(cell["source"] for cell in pages[name])
        for name in ("01_x", "01_x_more")
    )
    for part, here, elsewhere in (
        ('id="check-P1-01"', main, more),
        ("## C", main, more),
        ("<01_x_more>", main, more),
        ('id="check-P1-02"', more, main),
        ("## B", more, main),
        ("<01_x>", more, main),
    ):
        assert part in here
        assert part not in elsewhere
    assert more.index("More.") < more.index("check(2)")
    assert list(executed_of(text("# T")).pages()) == ["01_x"]


def computed_here(*cells, recomputed=None):
    (*_, last) = json.loads(executed_of(*cells).pages(recomputed=recomputed)["01_x"])[
        "cells"
    ]
    assert last["id"] == "computed"
    return last["source"]


def test_a_page_states_how_many_of_its_verdicts_this_build_computed():
    fresh = badge("P1-01")
    old = badge("P1-02", recorded="2026-11-01", record="01_x_runs")
    assert "all 2 verdicts" in computed_here(code("check(1)", fresh, fresh))
    mixed = code("check(2)", fresh, old, old)
    assert "1 of the 3 verdicts" in computed_here(mixed)
    assert "2026-11-01" in computed_here(mixed)
    assert "smaller run" in computed_here(mixed, recomputed={"01_x_runs": (0, 5)})
    rows = {"01_x_runs": (12, 3400), "01_x_unused": (1, 1)}
    assert re.search(r"3,400 rows.* 12 again", computed_here(mixed, recomputed=rows))


def test_a_page_without_verdicts_states_nothing_about_them():
    assert (
        page_of(text("# T"))
        == json.loads(executed_of(text("# T")).pages()["01_x"])["cells"][1:]
    )


def test_a_drawing_adapts_to_dark_pages():
    drawing = [
        '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="9">',
        "<g/></svg>",
    ]
    drawn = shown_data({"image/svg+xml": drawing})["image/svg+xml"]
    assert re.fullmatch(
        r'<\?xml.*?>\n<svg [^>]*width="9"><style>@media .*</style>\s*<g/></svg>',
        drawn,
        re.DOTALL,
    )
    assert drawn.count("<style>") == 1
    changed = dict(re.findall(r'\[style\*="\w+: (#\w+)"\][^{]*\{ \w+: (#\w+)', drawn))
    assert {"#ffffff", "#000000"} <= changed.keys()
    dim = {COLOURS[name].lower() for name in ("blue", "vermillion", "green", "purple")}
    assert dim <= changed.keys()
    assert len(set(changed.values())) == len(changed)


def test_the_drawing_for_narrow_pages_is_appended_to_the_wide_one():
    data = {"image/svg+xml": "<svg></svg>", NARROW_MIME: "<svg><g/></svg>"}
    drawn = shown_data(data)
    assert list(drawn) == ["image/svg+xml"]
    assert unpacked(drawn["image/svg+xml"]) == tuple(
        map(for_both_themes, data.values())
    )


def test_a_sentence_that_introduces_a_folded_check_is_removed():
    cells = []
    for introduction in (
        "It is so. It holds:",
        "Alone:",
        "Is it so?",
        "It is. Is it?",
        "Shown:",
    ):
        cells += [text(introduction), HIDDEN_CHECK]
    cells += [code("1", TABLE), text("Asked?"), text("Last:"), HIDDEN_CHECK]
    sources = [cell["source"] for cell in page_of(*cells)]
    assert sources[0] == "It is so."
    assert {"Alone:", "Is it so?", "Last:"}.isdisjoint(sources)
    assert {"It is. Is it?", "Shown:", "Asked?"} <= set(sources)


def test_a_note_on_a_broken_record_is_closed():
    notes = code('profile = "quick"', tags=["parameters", "hide-input"])
    page = page_of(
        text("# T"), notes, HIDDEN_CHECK, text("After"), broken=["01_x_table"]
    )
    (note,) = [cell["source"] for cell in page if "01_x_table" in cell["source"]]
    assert note.rstrip().endswith(":::")
