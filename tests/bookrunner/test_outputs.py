"""What is read back counts as missing where it is not what we wrote."""

import json
import re

import pandas as pd
import pytest

from bookrunner.files import digest, write_atomically, write_if_changed
from bookrunner.outputs import Executed, read_executed, write_executed
from bookrunner.records import NARROW_MIME, PROVENANCE_MIME, for_both_themes, unpacked
from preflearn.plots import COLOURS

RUN = {"chapter": "01_x", "profile": "quick", "parameters": {}, "date": "", "seconds": 1, "inputs": {}}
ABOUT = {"versions": {}, "data": [], "parameters": {}, "modules": [], "read": {}}


def executed_with(about=ABOUT, **payloads):
    """An executed notebook with these outputs in its first cell, and its provenance in the last."""
    mimes = (kind if "/" in kind else f"application/vnd.preflearn.{kind}+json" for kind in payloads)
    bundles = [dict(zip(mimes, payloads.values(), strict=True)), {PROVENANCE_MIME: about}]
    code = {"cell_type": "code", "metadata": {}, "source": "é"}
    cells = [code | {"outputs": [{"data": bundle}]} for bundle in bundles]
    return Executed({"cells": cells, "metadata": {}})


CLAIM = {"id": "P1-01", "holds": {"as printed": True}, "computed": "holds", "evidence": "x", "value": 1}
CLAIM |= {"written": "holds", "agrees": True}
RECORD = {"name": "x", "csv": "n\\n", "keys": None, "rtol": 0, "atol": 0, "timings": []}


@pytest.mark.parametrize(
    ("payloads", "message"),
    [
        ({"record": RECORD}, "cell 1, .*record.*'flips'"),
        ({"record": "x"}, "cell 1, .*record.*not of type 'object'"),
        ({"claim": {"id": "P1-01"}, "text/html": ""}, "cell 1, .*claim.*is a required property"),
        ({"claim": [1], "text/html": ""}, "cell 1, .*claim"),
        ({"claim": CLAIM}, "the cells: 0: outputs: 0: data: 'text/html' is a dependency of .*claim"),
        ({"claim": CLAIM, "text/html": None}, "the cells: 0: .*: text/html: None is not"),
        ({"image/svg+xml": [1]}, "the cells: 0: outputs: 0: data: .*1 is not of type 'string'"),
        ({"about": "none"}, "the last cell: 'none' is not of type 'object'"),
        ({"about": ABOUT | {"modules": [3]}}, "the last cell: modules: 0: 3 is not of type 'string'"),
        ({"about": {"versions": {}}}, "the last cell: 'data' is a required property"),
    ],
)
def test_an_output_of_another_form_than_ours_is_named(tmp_path, capsys, payloads, message):
    """As an older version of this package made it, or a cell that shows our kind of output itself."""
    path, executed = tmp_path / "quick.ipynb", executed_with(**payloads)
    with pytest.raises(ValueError, match=message):
        write_executed(path, executed, dict(RUN))
    assert read_executed(path) is None
    executed.notebook["metadata"]["preflearn"] = {"run": dict(RUN)}
    executed.notebook["metadata"]["preflearn"]["run"]["digest"] = digest(executed.notebook)
    write_atomically(path, json.dumps(executed.notebook))
    assert read_executed(path) is None
    said = capsys.readouterr().err
    assert re.search(rf"{path} can't be read and counts as missing \(ValueError: {message}", said)


def test_provenance_is_taken_from_the_last_cell_only():
    forged = ABOUT | {"versions": {"numpy": "9"}}
    assert executed_with(provenance=forged).provenance == ABOUT


def test_half_of_a_character_is_kept_as_it_is(tmp_path):
    path, text = tmp_path / "quick.ipynb", {"text/html": "<p>\ud800</p>"}
    write_executed(path, executed_with(**text), dict(RUN))
    executed = read_executed(path)
    assert executed.notebook["cells"][0]["outputs"][0]["data"] == text
    page = executed.pages()["01_x"]
    write_if_changed(tmp_path / "page.ipynb", page)
    assert json.loads((tmp_path / "page.ipynb").read_text()) == json.loads(page)


DAMAGE = {
    "empty": b"",
    "cut": None,
    "a list": b"[]",
    "no text": b"\x80\x81",
    "too deep": b"[" * 100_000,
    "other metadata": b'{"cells": [], "metadata": {"preflearn": {"run": {"digest": 0}}}}',
    "no run": b'{"cells": [], "metadata": {}}',
    "null": b"null",
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_what_is_not_what_was_written_counts_as_missing(tmp_path, capsys, kind):
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
    assert all(line.startswith(f"preflearn: {path} can't be read and counts as missing") for line in lines)


def code(source, *outputs, tags=()):
    return {"cell_type": "code", "metadata": {"tags": [*tags]}, "source": source, "outputs": [*outputs]}


def text(source):
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def badge(id, **changes):
    mime, html = "application/vnd.preflearn.claim+json", f'<details class="claim" id="check-{id}"></details>'
    return {"data": {mime: CLAIM | {"id": id} | changes, "text/html": html}}


TABLE = {"data": {"text/html": "<table></table>"}}


def page_of(*cells, broken=()):
    executed = Executed({"cells": [*cells], "metadata": {"preflearn": {"run": RUN}}})
    return json.loads(executed.pages(broken=broken)["01_x"])["cells"][1:]


def test_claims_and_hidden_code_of_a_section_stand_at_its_end():
    """In one fold each; tables stay, and so does code that was not hidden."""
    cells = page_of(
        text("# T"),
        code("import a", tags=["hide-input"]),
        text("Words.\n\n(sec-a)=\n## A\n\nMore words."),
        code("check(1)", badge("P1-01"), TABLE, badge("P1-02", written="holds if"), tags=["hide-input", "x"]),
        code("shown", badge("P1-03")),
        text("## B\n\n### b\n\n## C"),
        code("draw()", TABLE, tags=["hide-input"]),
    )
    sources, tags = [cell["source"] for cell in cells], [cell["metadata"].get("tags") for cell in cells]
    assert tags[1:5] == [["remove-cell"], None, ["remove-input", "x"], []]
    assert tags[-2] == ["remove-input"]
    head, label, rest = sources[2].partition("(sec-a)=\n## A\n\nMore words.")
    assert label
    assert rest == ""
    assert re.match(
        r"Words\.\n\n<details class=\"section-fold section-code\">.*?~~~python\nimport a\n~", head, re.S
    )
    assert "Checked here" not in head
    fold, _, rest = sources[5].partition("## B\n\n### b\n\n## C")
    assert "<summary>Checked here: 2 hold, 1 holds if</summary>" in fold
    assert re.findall(r'id="check-(.*?)"', fold) == ["P1-01", "P1-02", "P1-03"]
    assert "check(1)" in fold
    assert "shown" not in fold
    assert rest == ""
    assert "draw()" in sources[-1]
    assert "Checked here" not in sources[-1]
    assert [cell.get("outputs") for cell in cells[1:7]] == [[], None, [TABLE], [], None, [TABLE]]


@pytest.mark.parametrize("shown", ["in the opening", "in the section"])
def test_parameters_stand_below_the_first_picture(shown):
    given, draw = 'profile = "quick"', code("draw()", TABLE, tags=["hide-input"])
    cells = [text("# T"), code(given, tags=["parameters", "hide-input"]), text("## A"), draw, text("## B")]
    if shown == "in the opening":
        cells.insert(2, draw)
    first, second = (cell["source"] for cell in page_of(*cells) if cell["source"].endswith(("## A", "## B")))
    assert (given in first, given in second) == (shown == "in the opening", shown == "in the section")
    assert "Parameters and code of" in first + second


TIDY = {  # what pandas gives, and what a page has in place of it
    "names of an index": (
        pd.DataFrame({"x": [1.5, 2]}, pd.MultiIndex.from_tuples([("a", 3), ("b", 1)], names=["ν", "R"])),
        "ν R x a 3 1.5 b 1 2.0",
    ),
    "one name": (pd.DataFrame({"x": [7]}, pd.Index(["a"], name="n")), "n x a 7"),
    "counted rows": (pd.DataFrame({"x": ["a", "b"]}, index=[7, 8]), "x a b"),
    "rows with numbers of their own": (pd.DataFrame({"x": ["a", "b"]}, index=[7, 9]), " x 7 a 9 b"),
    "counted rows with a name": (pd.DataFrame({"x": ["a", "b"]}, pd.RangeIndex(2, name="n")), "n x 0 a 1 b"),
    "heads in two rows": (pd.DataFrame([[5]], ["a"], [["u"], ["v"]]), " u v a 5"),
    "a minus": (pd.DataFrame({"x": [-1, 2]}, index=["a-1", "2026-01-02"]), " x a-1 −1 2026-01-02 2"),
    "powers": (
        pd.DataFrame({"x": ["5e-09 ± 1e-10", "C 1e+06", "2.0e+00", "0e+00", "-3e-02"]}, index=[*"abcde"]),
        " x a 5·10^−9 ± 10^−10 b C 10^6 c 2.0 d 0 e −0.03",
    ),
}


@pytest.mark.parametrize("kind", TIDY)
def test_a_table_reads_as_a_person_would_write_it(kind):
    table, expected = TIDY[kind]
    html = table.to_html()
    (cell,) = page_of(code("table", {"data": {"text/html": [html]}}))
    shown = cell["outputs"][0]["data"]["text/html"].replace("<sup>", "^").replace("</sup>", "")
    cells = re.findall(r"<t[hd][^>]*>([^<]*)<", shown)
    assert " ".join(cells).split() == expected.split()


def test_a_blank_line_ends_each_piece_of_html():
    """As Markdown wants it: what follows would be HTML, too."""
    (cell,) = page_of(code("1", badge("P1-01"), tags=["hide-input"]))[1:]
    assert re.search(
        r"</details>\n</details>\n\n<details[^\n]*\n<summary>[^\n]*</summary>\n\n~~~", cell["source"]
    )
    assert re.search(r"~~~\n\n</details>\n", cell["source"])


@pytest.mark.parametrize(
    ("changes", "broken"), [({"agrees": False}, ()), ({"record": "01_x_fit"}, {"01_x_fit"})]
)
def test_a_contradiction_and_what_is_in_doubt_stay_in_sight(changes, broken):
    cells = page_of(code("1", badge("P1-01", **changes), badge("P1-02"), tags=["hide-input"]), broken=broken)
    (output,) = cells[0]["outputs"]
    assert 'id="check-P1-01"' in output["data"]["text/html"]
    assert cells[0]["metadata"]["tags"] == ["remove-input"]
    assert "Checked here: 1 holds<" in cells[1]["source"]
    if broken:
        assert output["data"]["text/html"].startswith('<details open class="claim"')
        assert output["data"]["text/html"].endswith("computed again.</p></details>")


def test_sections_of_the_appendix_have_a_page_of_their_own():
    """The notebook stays whole: any section may be one, and each claim is found where it is shown."""
    aside = text("(sec-b)=\n## B") | {"metadata": {"tags": ["appendix"]}}
    cells = [
        text("# T\n\nWords."),
        code("check(1)", badge("P1-01"), tags=["hide-input"]),
        aside,
        text("More.\n\n### Below"),
        code("check(2)", badge("P1-02"), tags=["hide-input"]),
        text("## C"),
        code("c"),
    ]
    executed = Executed({"cells": cells, "metadata": {"preflearn": {"run": RUN}}})
    assert executed.places == {"P1-01": "01_x", "P1-02": "01_x_more"}
    pages = {name: json.loads(page)["cells"] for name, page in executed.pages().items()}
    main, more = ("\n".join(cell["source"] for cell in pages[name]) for name in ("01_x", "01_x_more"))
    assert 'id="check-P1-01"' in main
    assert 'id="check-P1-02"' in more
    assert "## B" not in main
    assert "## C" in main
    assert "{doc}`The appendix of this chapter <01_x_more>`: B\n" in main
    assert "# Appendix: T\n" in more
    assert "{doc}`the chapter <01_x>`" in more
    assert more.index("More.") < more.index("check(2)")
    assert len(pages["01_x"]) + len(pages["01_x_more"]) > len(cells)


def test_a_chapter_without_appendix_has_one_page_and_no_link():
    executed = Executed({"cells": [text("# T")], "metadata": {"preflearn": {"run": RUN}}})
    assert list(executed.pages()) == ["01_x"]
    assert "appendix" not in "".join(cell["source"] for cell in json.loads(executed.pages()["01_x"])["cells"])


def test_a_drawing_takes_the_ground_of_a_dark_page_and_keeps_the_colours_of_data():
    drawing = ['<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="9">', "<g/></svg>"]
    (cell,) = page_of(code("draw()", {"data": {"image/svg+xml": drawing}}))[:1]
    shown = cell["outputs"][0]["data"]["image/svg+xml"]
    assert re.fullmatch(
        r'<\?xml.*?>\n<svg [^>]*width="9"><style>@media .*</style>\s*<g/></svg>', shown, re.DOTALL
    )
    assert shown.count("<style>") == 1
    changed = set(re.findall(r'\[style\*="\w+: (#\w+)"\]', shown))
    assert changed == {"#ffffff", "#000000", "#d5d5d5", "#dddddd"}
    assert changed.isdisjoint(colour.lower() for name, colour in COLOURS.items() if name != "black")


def test_the_drawing_for_narrow_pages_travels_with_that_for_wide_ones():
    data = {"image/svg+xml": "<svg></svg>", NARROW_MIME: "<svg><g/></svg>"}
    (cell,) = page_of(code("draw()", {"data": data}))[:1]
    assert list(shown := cell["outputs"][0]["data"]) == ["image/svg+xml"]
    assert unpacked(shown["image/svg+xml"]) == tuple(map(for_both_themes, data.values()))


def test_what_leads_to_a_check_goes_from_the_page_where_that_is_folded():
    hidden = code("check(1)", badge("P1-01"), tags=["hide-input"])
    cells = [text("It is so. It holds:"), hidden, text("Alone:"), hidden, text("Is it so?"), hidden]
    cells += [
        text("It is. Is it?"),
        hidden,
        text("Shown:"),
        hidden,
        code("1", TABLE),
        text("Asked?"),
        text("Last:"),
    ]
    said = [cell["source"] for cell in page_of(*cells, hidden)]
    assert said[0] == "It is so."
    assert {"Alone:", "Is it so?", "Last:"}.isdisjoint(said)
    assert {"It is. Is it?", "Shown:", "Asked?"} <= set(said)


def test_a_note_keeps_its_fence():
    notes = code('profile = "quick"', tags=["parameters", "hide-input"])
    hidden = code("check(1)", badge("P1-01"), tags=["hide-input"])
    page = page_of(text("# T"), notes, hidden, text("After"), broken=["01_x_table"])
    (note,) = [cell["source"] for cell in page if "01_x_table" in cell["source"]]
    assert note.rstrip().endswith(":::")
