"""What is read back counts as missing where it is not what we wrote."""

import json
import re

import pytest

from bookrunner.files import digest, write_atomically, write_if_changed
from bookrunner.outputs import Executed, read_executed, write_executed
from bookrunner.records import PROVENANCE_MIME

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
    write_if_changed(tmp_path / "page.ipynb", executed.page())
    assert json.loads((tmp_path / "page.ipynb").read_text()) == json.loads(executed.page())


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
