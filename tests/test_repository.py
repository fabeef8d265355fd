"""The repository keeps the promises of its README: notebooks, environment, texts."""

import ast
import importlib
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from chapter_size import chapter_size, prose_words
from code_lines import by_folder, code_lines

from bookrunner.ledger import UNCOMPUTED, load_ledger

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))  # the chapters; use_* are templates
CODE_LINES = by_folder()


def tracked_files():
    done = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def cells(path, kind="code"):
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == kind]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
DIRECT = {*PROJECT["dependencies"], *EXTRAS["book"], *EXTRAS["test"], *EXTRAS["cluster"]}


def test_environment_for_conda_is_that_of_pip():
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (pip,) = [entry["pip"] for entry in entries if isinstance(entry, dict)]
    conda = [entry for entry in entries if isinstance(entry, str)]
    assert {*conda, *pip} == DIRECT | {f"python{PROJECT['requires-python']}", "pip", "--editable ."}


IMPORTED = {"scikit-learn": "sklearn", "pyyaml": "yaml", "sphinxcontrib-bibtex": "sphinxcontrib.bibtex"}
IMPORTED |= {"ipykernel": "IPython"}  # which comes with it
RUN = {
    "ruff": "ruff check",
    "basedpyright": "basedpyright",
    "pytest-xdist": "--dist",
    "pytest-cov": "--cov",
}


def test_every_dependency_is_used():
    """Imported somewhere, named in the book's configuration, or an option of the test command."""
    folders = ("src", "tests", "benchmarks", "notebooks")
    paths = [
        path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".ipynb")
    ]
    code = "\n".join(path.read_text("utf-8") for path in paths if path != Path(__file__))
    loaded = (ROOT / "_config.yml").read_text("utf-8")
    commands = (ROOT / "Makefile").read_text("utf-8")
    unused = []
    for name in (re.match(r"[\w.-]+", entry)[0] for entry in DIRECT):
        module = re.escape(IMPORTED.get(name, name.replace("-", "_")))
        use = RUN[name] in commands if name in RUN else re.search(rf"(?:import |from |\"){module}\b", code)
        if not use and not re.search(rf"- ({module}|{name})$", loaded, re.MULTILINE):
            unused.append(name)
    assert not unused, unused


def test_one_version_is_named_everywhere_and_the_changelog_begins_with_it():
    """Its release is the first entry, short enough to be read, with the day of CITATION.cff."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    releases = re.findall(r"^## (\S+) \((\S+)\)$", text, re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert releases[0] == (PROJECT["version"], str(citation["date-released"]))
    assert citation["version"] == PROJECT["version"]
    assert [len(entry.splitlines()) <= 60 for entry in text.split("\n## ")[1:]] == [True] * len(releases)


def test_constraints_pin_every_direct_dependency():
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.\-]+==[\w.+!]+", line) for line in lines)
    pinned, names = (
        {re.sub(r"[-_.]+", "-", re.match(r"[\w.\-]+", entry)[0]).lower() for entry in entries}
        for entries in (lines, DIRECT)
    )
    assert names <= pinned


def test_ci_installs_by_hash_what_is_pinned():
    """Of each pinned version, and of what builds the package, the files that CI's machines take."""
    text = (ROOT / ".ci" / "hashes.txt").read_text().replace(" \\\n", "")
    form = re.compile(r"([a-z0-9-]+==[\w.+!]+)( ; python_version == \S+)?(    --hash=sha256:[0-9a-f]{64})+")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not form.fullmatch(line)] == []
    by_hash = {form.fullmatch(line)[1] for line in lines}
    pinned = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    assert {re.sub(r"[-_.]+", "-", name).lower() + rest for name, rest in map(_parted, pinned)} <= by_hash
    assert {"hatchling", "editables", "build"} <= {pin.partition("==")[0] for pin in by_hash}


def _parted(pin):
    name, _, version = pin.partition("==")
    return name, f"=={version}"


@pytest.mark.parametrize("name", ["ci", "pages", "records", "release"])
def test_a_job_with_our_files_installs_nothing_from_elsewhere(name):
    """But for the weekly run with the newest versions, and what only tries the wheel."""
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())["jobs"]
    for steps in (job["steps"] for title, job in jobs.items() if title != "wheel"):
        runs = [step.get("run", "") for step in steps]
        assert not any(re.search(r"pip install|-m build(?! --no-isolation)", run) for run in runs)
        if any(re.search(r"\bmake\b|preflearn|\.ci/run", run) for run in runs):
            assert sum(run.startswith("bash .ci/install") for run in runs) == 1


def test_each_theorem_box_is_tried_by_a_test_that_names_it():
    box = r"\{prf:(?:lemma|theorem|proposition|corollary)\}.*\n:label: (\S+)"
    boxes = {
        label
        for path in NOTEBOOKS
        for cell in cells(path, "markdown")
        for label in re.findall(box, "".join(cell["source"]))
    }
    marker = re.compile(r"^@pytest\.mark\.theorem\(\"(\S+)\"\)", re.MULTILINE)
    tried = {
        label for path in (ROOT / "tests").rglob("test_*.py") for label in marker.findall(path.read_text())
    }
    assert boxes
    assert tried == boxes


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stripped_and_parameterised(path):
    code = cells(path)
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    (parameters,) = [cell for cell in code if "parameters" in cell["metadata"].get("tags", [])]
    source = "".join(parameters["source"])
    assert re.search(r'^profile = "quick"', source, re.MULTILINE)
    assert re.search(r"^seed = 0\b", source, re.MULTILINE)
    assert all("#" in line for line in source.splitlines()), "each parameter owes its reader a comment"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_reads_well(path):
    lengths = sorted(len("".join(cell["source"]).splitlines()) for cell in cells(path))
    assert lengths[-1] <= 30
    for cell in cells(path):
        if "plt.show()" in "".join(cell["source"]):
            about = cell["metadata"]["mystnb"]
            assert len(about["figure"]["caption"]) > 40, about
            assert about["figure"]["name"].startswith("fig-")
            assert len(about["image"]["alt"]) > 40
    text = "".join("".join(cell["source"]) for cell in cells(path, "markdown"))
    figures = {
        cell["metadata"]["mystnb"]["figure"]["name"] for cell in cells(path) if "mystnb" in cell["metadata"]
    }
    assert figures <= set(re.findall(r"\{numref\}`([^`]+)`", text)), "each figure is cited"
    exercises, solutions = (
        len(re.findall(rf"(?:```|:::)\{{{kind}\}}", text)) for kind in ("exercise", "solution")
    )
    assert 2 <= exercises <= 3
    assert solutions == exercises


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_chapter_is_read_in_one_sitting(path):
    size = chapter_size(json.loads(path.read_text("utf-8"))["cells"])
    assert 1500 <= size.words <= 3000
    assert 10 <= size.code_cells <= 20
    assert size.code_lines <= 300
    assert size.longest <= 25
    assert size.run <= 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_chapter_opens_with_its_box_and_has_the_four_items(path):
    first = "".join(cells(path, "markdown")[0]["source"])
    assert re.search(r"^#[^#].*\?$", first, re.MULTILINE), "a chapter asks a question"
    (minute,) = re.findall(r"^```\{admonition\} In one minute\n:class: tip\n(.*?)^```$", first, re.S | re.M)
    assert prose_words(minute) <= 90
    assert "four_items(" in "".join("".join(cell["source"]) for cell in cells(path))
    assert "incidence matrix" in "".join("".join(cell["source"]) for cell in cells(path, "markdown"))


def test_length_of_a_chapter_is_counted():
    text = "# A title\n```{math}\n:label: x\nf = Bw\n```\nIt's $b$, by {ref}`a place <b>`:\n"
    assert prose_words(text) == 5  # A title, It's, by, the place
    code = {"cell_type": "code", "metadata": {}, "source": "a\nb\n"}
    folded = code | {"metadata": {"tags": ["hide-input"]}}
    words = {"cell_type": "markdown", "metadata": {}, "source": text}
    size = chapter_size([code, folded, code, words, code])
    assert (size.words, size.code_cells, size.code_lines, size.longest, size.run) == (5, 3, 6, 2, 3)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_chapter_checks_exactly_its_claims(path):
    source = "\n".join("".join(cell["source"]) for cell in cells(path))
    checked = re.findall(r'\bcheck\(\s*"(P\d-\d+)"', source)
    claims = [claim for claim in load_ledger().values() if claim.verdict not in UNCOMPUTED]
    owed = {claim.id for claim in claims if claim.chapter == path.stem}
    assert len(checked) == len(set(checked))
    assert set(checked) == owed


def test_the_essay_states_shares_that_the_ledger_has():
    def share(kind, verdict):
        some = [claim for claim in load_ledger().values() if claim.kind == kind]
        return sum(claim.verdict == verdict for claim in some) / len(some)

    text = (ROOT / "book" / "learned.md").read_text("utf-8")
    said = ["one printed formula in six has a misprint", "More than one in four need a condition"]
    said += ["One comparison in four is neither confirmed nor refuted"]
    said += ["More than half", "Fewer than one in ten is refuted"]
    assert [words for words in said if words not in text] == []
    assert share("formula", "typo") == pytest.approx(1 / 6, abs=0.02)
    assert 1 / 4 < share("theorem", "holds if") < 1 / 3
    assert share("comparison", "holds") > 0.5
    assert share("comparison", "fails") < 0.1
    assert share("comparison", "not shown") == pytest.approx(1 / 4, abs=0.02)


def test_table_of_contents_names_every_chapter():
    toc = (ROOT / "book" / "_toc.yml").read_text()
    named = re.findall(r"chapters/(\d\d_\w+)", toc)
    assert [name for name in named if not name.endswith("_more")] == [path.stem for path in NOTEBOOKS]
    aside = [path.stem for path in NOTEBOOKS if '"appendix"' in path.read_text("utf-8")]
    assert [name for name in named if name.endswith("_more")] == [f"{name}_more" for name in aside]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_heading_of_a_section_begins_its_cell(path):
    """Or a section of the appendix would take with it what stands below the next heading."""
    texts = ["".join(cell["source"]) for cell in cells(path, "markdown")]
    assert [text for text in texts if re.search(r"[^=\s]\s*\n(\(\S+\)=\s*)*## ", text)] == []


def test_citations_have_an_entry():
    keys = set(re.findall(r"^@\w+\{([\w:-]+),", (ROOT / "book" / "references.bib").read_text(), re.MULTILINE))
    texts = [*NOTEBOOKS, *(ROOT / "book").glob("*.md")]
    cited = {
        key.strip()
        for path in texts
        for group in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", path.read_text("utf-8"))
        for key in group.split(",")
    }
    assert cited
    assert cited <= keys


TEXTS = {"", ".py", ".md", ".toml", ".yml", ".yaml", ".ipynb", ".txt", ".cfg", ".csv", ".cff"}


def test_no_path_of_one_machine_and_no_index_address_is_committed():
    forbidden = re.compile(
        r"(?<![\w/.])/(?:work|farm|root|home/\w+|tmp)/\w|extra-index-url|pypi\.org|--index-url"
    )
    found = []
    for path in tracked_files():
        if path.suffix in TEXTS:
            lines = path.read_text("utf-8").splitlines()
            found += [f"{path.name}:{k}" for k, line in enumerate(lines, 1) if forbidden.search(line)]
    assert [place for place in found if not place.startswith("test_repository.py")] == []


def test_workflows_call_the_same_script():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    runs = [step.get("run", "") for step in workflow["jobs"]["test"]["steps"]]
    assert "bash .ci/run" in runs
    script = (ROOT / ".ci" / "run").read_text()
    readme = (ROOT / "README.md").read_text()
    for command in ("make book", "make test"):
        assert command in script
        assert command in readme


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_has_no_right_that_it_does_not_need(path):
    """By default it reads; what may write more runs no code of ours, nor of a package that it installs."""
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in path.read_text()
    for job in workflow["jobs"].values():
        steps, rights = job["steps"], job.get("permissions", {})
        checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)
        runs = " ".join(step.get("run", "") for step in steps)
        assert "write" not in rights.values() or not re.search(r"\b(pip|make|python|\.ci)\b", runs)
        assert not {"id-token", "contents"} <= set(rights), "the index and the release are jobs of their own"


def test_actions_are_named_by_commit_with_the_version_beside_it():
    """A tag can be moved; dependabot renews both."""
    used = {line for path in WORKFLOWS for line in re.findall(r"uses: (.*)", path.read_text())}
    form = re.compile(r"([\w-]+/[\w-]+)@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in used if not form.fullmatch(line)] == []
    assert len({form.match(line)[1] for line in used}) == len(used), "one version of each"


def test_nobody_is_told_to_install_a_name_of_the_index_that_is_not_ours():
    """Whoever takes it there runs code at our readers'; a checkout is what it is."""
    asks = re.compile(r"pip install [^\n@]*\bpreflearn\b(?!\S* @ git)")
    texts = [path for path in tracked_files() if path.suffix in {*TEXTS, ".html", ".json", ".js"}]
    found = {path.name for path in texts if asks.search(path.read_text("utf-8"))}
    assert found <= {"CHANGELOG.md"}, "only the history may tell what was"


# Tests of the whole, of a face, of what several modules owe, and against a peer: by their place in tests/.
WHOLE = {
    *("test_coming_from_kickscore", "test_coming_from_choix", "test_coming_from_scikit_learn"),
    "test_coming_from_trueskill_through_time",
    *("test_commands", "test_guide", "test_imports", "test_primer", "test_readme", "test_repository"),
    "test_scaling",
    "test_searches_in_parallel",
    *(
        "pages/test_book",
        "pages/test_browser",
        "pages/test_browser_dark",
        "pages/test_figures",
        "pages/test_firefox",
        "pages/test_keyboard",
        "pages/test_numbers",
        "pages/test_previews",
        "pages/test_print",
        "pages/test_reading_order",
        "bookrunner/test_records_published",
        "fuzz/test_fuzz",
    ),
    "perturb/test_perturb",
}
UNTESTED = {"__init__", "base"}


def test_tests_mirror_the_modules():
    """A module of a folder is tested by tests/FOLDER/test_MODULE.py, the boxes of a chapter beside them."""
    owed, known = set(), set(WHOLE)
    for path in (ROOT / "src").rglob("*.py"):
        package, *folders = path.relative_to(ROOT / "src").parts[:-1]
        folder = "/".join([*folders[:1]] if package == "preflearn" else [package])
        name = f"{folder}/test_{path.stem}".lstrip("/")
        known.add(name)
        if path.stem not in UNTESTED and package == "preflearn":
            owed.add(name)
    there = {
        str(path.relative_to(ROOT / "tests").with_suffix("")) for path in (ROOT / "tests").rglob("test_*.py")
    }
    boxes = {name for name in there if re.search(r"(^|/)test_chapter\d\d_boxes$", name)}
    assert sorted(owed - there) == []
    assert sorted(there - known - boxes) == []


def test_code_lines_are_counted_without_words():
    source = '"""Title.\n\nMore."""\nx = 1  # why\n\n# a comment\ndef f():\n    """Says."""\n'
    source += "    return (x,\n            2)\n"
    assert code_lines(source) == 4


BUDGETS = {
    "ground floor": 1_434,
    "ground": 1_325,
    "margins": 485,
    "svm": 665,
    "path": 1_245,
    "pursuit": 987,
    "dynamics": 3_110,
    "ratings": 422,
    "ranking": 749,
    "analogy": 855,
    "datasets": 542,
    "studies": 2_826,
    "bookrunner": 2_282,
}
# bookrunner: 114 lines more than planned, for one meaning a word, leads in words and choices that say whether
# they sit at an end (the yardstick), errata and the tool of claims; 35 for links to the reference; the rest
# reads files of users and makes reports of them, and 160 stack and explain the tables of sweeps, draw points
# or read them from a file, and begin again what lost its workers; 30 say of pages what search engines and
# readers want to know (descriptions, addresses, buttons, minutes), with a sitemap and a page for lost links;
# 23 make the archive of the notebooks, and 3 write zero without a
# sign, what is missing as a dash, and lead from no name of another library; 14 tell columns of numbers, which
# end where their heads end, one raises powers, which no notebook needs to, and 14 print once what parameters
# of one line of a docstring share.
# studies: 1,300 lines more than the chapters of the papers need: the benchmark over all methods (four arenas,
# simulated worlds, some thirty learners behind one protocol) and a prototype on two workers; a line bounds
# the draws of halves.
# preflearn: 257 lines more than in November 2026, for least squares and Bradley-Terry that do not grow as
# n^3, blocks in the smoother, forecasts in parts and one step ahead at the cost of what moves, kernels of
# close items, and compilation that says a word; and some 900 for data of users. Those are what comparisons
# identify, players without an identity matrix, standard errors and ranks, rankings, races and line-ups,
# weights and offsets, forecasts of frames by names, standings, and a word where data may mean something else.
# 6 set the legend of a narrow drawing outside its panels.
PREFLEARN = 11_819


OVER = (
    "{} has {:,} lines of code and a budget of {:,}: look for the simpler idea (what is there twice, what "
    "nobody uses, what a library has). A commit that removes code lowers the budget, which stands in "
    "tests/test_repository.py; one that raises it changes the plan too, with the reason."
)


@pytest.mark.parametrize("folder", BUDGETS)
def test_a_folder_is_read_in_one_sitting(folder):
    found, most = CODE_LINES[folder], BUDGETS[folder]
    assert found <= most, OVER.format(folder, found, most)


def test_the_package_is_small():
    assert set(CODE_LINES) == set(BUDGETS), "each folder of src has a budget, and no other"
    found = sum(CODE_LINES.values()) - CODE_LINES["studies"] - CODE_LINES["bookrunner"]
    assert found <= PREFLEARN, OVER.format("preflearn", found, PREFLEARN)


BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))


def test_the_page_of_benchmarks_names_each_script_and_each_table():
    readme = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    scripts = [f"benchmarks/{path.name}" for path in BENCHMARKS if not path.name.startswith("_")]
    tables = [f"({path.name})" for path in (ROOT / "benchmarks").glob("*.md") if path.name != "README.md"]
    assert [name for name in scripts + tables if name not in readme] == []


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_benchmarks_import_names_that_exist(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(("preflearn", "studies")):
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
