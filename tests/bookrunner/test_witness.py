"""Seven changes of a house, and what each says of a record: nothing, run it again, or that a number moved."""

import json

import pytest
from slips import ROOT, SLIPS, slip
from toy_project import changed, edit_notebook, live_in, register, write_house

from bookrunner import keys
from bookrunner.command import main
from bookrunner.witness import moves, records_of

CHAPTER = """\
import pandas as pd
from bookrunner import check, record, recorded
from preflearn.datasets.storage import read
from preflearn.toy import factor

read("toy", "a.txt")
sizes = [1, 2, 3] if profile == "quick" else [1, 2, 3, 4, 5]
rows = pd.DataFrame({"size": sizes, "value": [factor * k for k in sizes], "time_s": sizes})
record("rows", rows, keys=["size"], timings=["time_s"])
record("mean", {"value": rows["value"].mean(), "n": len(sizes)})
check("P1-01", True, "In full.", recorded=recorded("01_first", "mean"))"""

CLAIMS = "- {id: P1-01, where: eq. 2, statement: x, chapter: 01_first, kind: formula, verdict: holds}\n"
NOTEBOOK, TOY = "notebooks/01_first.ipynb", "src/preflearn/toy"
AGAIN = "run again (changed: "


@pytest.fixture(scope="module")
def recorded_house(tmp_path_factory):
    project = write_house(tmp_path_factory.mktemp("house") / "checkout", CHAPTER, CLAIMS)
    toy = project.root / TOY
    toy.mkdir()
    (toy / "__init__.py").write_text("from preflearn.toy.first import factor\n")
    loader = "def load(name):\n    raise ValueError(f'there is no {name}')\n"
    (toy / "first.py").write_text("from preflearn.toy.loader import load\n\nfactor = 1 / 3\n")
    (toy / "second.py").write_text("factor = 0.34\n")
    (toy / "loader.py").write_text(loader)
    with pytest.MonkeyPatch.context() as monkeypatch:
        live_in(project, monkeypatch)
        assert main(["record", "1", "--yes"]) == 0
    return project


@pytest.fixture
def house(recorded_house, monkeypatch):
    live_in(recorded_house, monkeypatch)
    return recorded_house


@pytest.fixture
def build(capsys):
    def run():
        status = main(["build", "--no-render"])
        return status, capsys.readouterr().out

    return run


def test_nothing_changed(house, build):
    status, out = build()
    assert status == 0, out
    assert AGAIN not in out
    assert "records" not in (house.pages / "01_first.ipynb").read_text()
    about = records_of(house.recorded, "01_first")["01_first_rows"].header
    assert (about["commit"], about["replaced"]) == (None, [])
    assert about["parameters"] == {"profile": "full", "seed": 0, "n": 10}
    assert about["versions"]["numpy"]
    assert not any("module" in key for key in about)


def test_one_word_of_an_error_message_says_nothing(house, build):
    with changed(house.root / TOY / "loader.py", lambda text: text.replace("there is no", "unknown:")):
        status, out = build()
    assert (status, AGAIN in out, "1 executed" in out) == (0, False, True)


def test_emptied_cells_are_to_run_again_and_their_tables_are_missed_by_name(house, build):
    def empty(text):
        notebook = json.loads(text)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["source"] = []
        return json.dumps(notebook)

    with changed(house.root / NOTEBOOK, empty):
        status, out = build()
    assert status == 1
    assert out.count(f"{AGAIN}the code cells)") == 2
    assert "record 01_first_rows: the quick run no longer makes this table" in out
    assert "record 01_first_mean: the quick run no longer makes this table" in out


def test_another_line_that_makes_the_table_is_named_with_row_and_column_and_marked(house, build):
    with changed(house.root / NOTEBOOK, lambda text: text.replace("factor * k", "factor * k**2")):
        status, out = build()
        page, claims, about = (
            (house.pages / name).read_text() for name in ("01_first.ipynb", "claims.md", "status.md")
        )
    assert status == 1
    assert out.count(f"{AGAIN}the code cells)") == 2
    row = "row size = 2, column 'value': recorded 0.6666666666666666, now 1.3333333333333333"
    assert f"record 01_first_rows: {row}" in out
    assert "record 01_first_mean: row 1, column 'value': recorded 0.66" in out
    assert "`01_first_mean`, `01_first_rows`" in page
    assert "In doubt." in page
    assert "*In doubt.*" in claims
    assert "- `01_first_rows`: row size = 2" in about


def test_other_data_are_to_be_run_again(house, build):
    path = house.root.parent / "mirror" / "toy" / "a.txt"
    with changed(path, lambda text: "other"):
        register(house, b"other", "http://127.0.0.1:9/none")
        status, out = build()
    assert status == 0
    assert out.count(f"{AGAIN}the data file toy/a.txt)") == 2


def test_other_versions_say_nothing_by_themselves(house, build, monkeypatch):
    known = keys.main_versions()
    monkeypatch.setattr(keys, "main_versions", lambda: known | {"numpy": "0.1"})
    status, out = build()
    assert (status, AGAIN in out, "1 executed" in out) == (0, False, True)


def test_a_face_that_leads_elsewhere_is_caught_by_the_witness(house, build):
    with changed(house.root / TOY / "__init__.py", lambda text: text.replace("first", "second")):
        status, out = build()
    assert (status, AGAIN in out) == (1, False)
    assert "record 01_first_rows: row size = 1, column 'value': recorded 0.3333333333333333, now 0.34" in out


def test_rounding_and_sentences_say_nothing(house, build):
    rounded = changed(
        house.root / TOY / "first.py", lambda text: text.replace("1 / 3", "1 / 3 * (1 + 1e-13)")
    )
    said = changed(house.root / NOTEBOOK, lambda text: text.replace("# Title", "# Another title"))
    with rounded, said:
        status, out = build()
    assert (status, AGAIN in out) == (0, False)


def test_record_shows_what_moves_and_writes_only_if_told(house, capsys):
    before = {path: path.read_bytes() for path in house.recorded.iterdir()}
    assert len(before) == 3  # two records, and the witness of the one without keys
    with changed(house.root / TOY / "first.py", lambda text: text.replace("1 / 3", "1 / 4")):
        for arguments in (["--dry"], []):
            assert main(["record", "1", *arguments]) == 0
            out = capsys.readouterr().out
            assert "rows: 5 rows moved, in ['value']; most of all row size = " in out
            assert "nothing is written" in out
    assert {path: path.read_bytes() for path in house.recorded.iterdir()} == before


def test_rows_of_a_quick_run_have_to_be_rows_of_the_full_one(house, capsys):
    with changed(house.root / NOTEBOOK, lambda text: text.replace("[1, 2, 3] if", "[1, 2, 6] if")):
        assert main(["record", "1", "--yes"]) == 1
    assert "rows, of the quick run: row size = 6" in capsys.readouterr().out


def test_no_record_is_made_from_other_data(house, capsys, monkeypatch):
    monkeypatch.setenv("PREFLEARN_DATA", "nowhere")
    monkeypatch.setenv("PREFLEARN_OFFLINE", "1")
    ask = "try:\n    read('toy', 'a.txt')\nexcept OSError:\n    pass\n"

    def forgive(notebook):
        source = "".join(notebook["cells"][2]["source"])
        notebook["cells"][2]["source"] = source.replace('read("toy", "a.txt")', ask)

    before = (house.root / NOTEBOOK).read_text()
    edit_notebook(house.root / NOTEBOOK, forgive)
    assert main(["record", "1", "--yes"]) == 1
    assert "other data in place of toy" in capsys.readouterr().out
    assert main(["build", "--no-render"]) == 0  # which is no witness
    (house.root / NOTEBOOK).write_text(before)


def test_rounding_may_choose_another_of_equals_in_few_rows(house, build):
    def flip(share):
        return lambda text: text.replace("keys=[", f"flips={share}, keys=[").replace(
            "factor * k", "factor * k + (k == 2) / 10"
        )

    with changed(house.root / NOTEBOOK, flip(0.3)):
        assert "01_first_rows: row size = 2" in build()[1]
    with changed(house.root / NOTEBOOK, flip(0.4)):  # one row of three
        assert "01_first_rows: row size = 2" not in build()[1]


COMPARED = {"keys": ["a"], "rtol": 1e-6, "atol": 1e-9, "timings": ["s"]}


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        ("a,x\n1,2\n", "a,x\n1,2.0000001\n", []),
        ("a,x\n1,2\n", "a,x\n1,2.00001\n", ["row a = 1, column 'x': recorded 2.0, now 2.00001"]),
        ("a,x\n1,2\n2,3\n", "a,x\n2.0,3\n", []),
        (
            "a,x\n1,2\n",
            "a,x\n3,2\n",
            [
                f"row a = 3, column {name!r}: recorded '', now {value}"
                for name, value in (("a", 3.0), ("x", 2.0))
            ],
        ),
        ("a,x,s\n1,2,1\n", "a,x,s\n1,2,9\n", []),
        ("a,x\n1,\n", "a\n1\n", []),
        ("a,x\n1,2\n", "a\n1\n", ["row a = 1, column 'x': recorded 2.0, now ''"]),
        ("a,x\n1,C 1\n", "a,x\n1,C 10\n", ["row a = 1, column 'x': recorded 'C 1', now 'C 10'"]),
        ("a,x\n1,0\n", "a,x\n1,1e-12\n", []),
    ],
)
def test_rows_are_found_by_keys_and_cells_compared_with_the_tolerance(before, now, found):
    assert [str(move) for move in moves(COMPARED | {"csv": now}, before, subset=True)] == found


def test_tables_without_keys_are_compared_row_by_row():
    payload = COMPARED | {"keys": None, "csv": "x\n1\n2\n"}
    assert moves(payload, "x\n1\n2\n") == []
    assert [move.row for move in moves(payload, "x\n1\n3\n4\n")] == ["row 2", "row 3"]


def test_a_slip_in_a_solver_is_caught():
    """The cheapest of the chapters; `python tests/slips.py` tries all that have records."""
    assert "recorded 1.0, now 1.001" in slip("03")["03_lemma_coincidence"][0]


@pytest.mark.parametrize("number", SLIPS)
def test_slips_change_a_line_that_is_there(number):
    file, before, _ = SLIPS[number]
    assert (ROOT / "src" / file).read_text("utf-8").count(before) == 1
