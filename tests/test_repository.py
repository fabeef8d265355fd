"""The repository agrees with its README: notebooks, environment, and texts."""

import ast
import importlib
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from preflearn_book.runner.claims import UNCOMPUTED, load_claims

ROOT = Path(__file__).parents[1]
# the chapters, without the templates use_*
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def tracked_files():
    done = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [ROOT / name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def cells(path, kind="code"):
    return [
        cell
        for cell in json.loads(path.read_text("utf-8"))["cells"]
        if cell["cell_type"] == kind
    ]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
FOR_READERS = {*PROJECT["dependencies"], *EXTRAS["book"], *EXTRAS["lab"]}
DIRECT = FOR_READERS | {*EXTRAS["test"], *EXTRAS["cluster"]}


def test_conda_installs_the_package_the_book_and_jupyterlab():
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    (pip,) = [entry["pip"] for entry in entries if isinstance(entry, dict)]
    conda = [entry for entry in entries if isinstance(entry, str)]
    assert {*conda, *pip} == FOR_READERS | {
        f"python{PROJECT['requires-python']}",
        "pip",
        "--editable .",
    }


IMPORTED = {
    "scikit-learn": "sklearn",
    "pyyaml": "yaml",
    "sphinxcontrib-bibtex": "sphinxcontrib.bibtex",
}
IMPORTED |= {"ipykernel": "IPython"}  # IPython is installed with ipykernel
RUN = {
    "ruff": "ruff check",
    "basedpyright": "basedpyright",
    "pytest-xdist": "--dist",
    "pytest-cov": "--cov",
    "pytest-randomly": "-p randomly",
    "jupyterlab": "jupyter lab ",
    "jupyterlab-myst": "jupyterlab-myst",
    "nbconvert": "jupyter nbconvert ",
}


def test_every_dependency_is_used():
    """A dependency is imported, named in the book's configuration, or used by a command
    in the Makefile or on a page."""
    folders = ("src", "tests", "benchmarks", "notebooks")
    paths = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".ipynb")
    ]
    code = "\n".join(
        path.read_text("utf-8") for path in paths if path != Path(__file__)
    )
    loaded = (ROOT / "_config.yml").read_text("utf-8")
    commands = "".join(
        (ROOT / name).read_text("utf-8")
        for name in ("Makefile", "book/run_the_notebooks.md")
    )
    unused = []
    for name in (re.match(r"[\w.-]+", entry)[0] for entry in DIRECT):
        module = re.escape(IMPORTED.get(name, name.replace("-", "_")))
        use = (
            RUN[name] in commands
            if name in RUN
            else re.search(rf"(?:import |from |\"){module}\b", code)
        )
        if not use and not re.search(rf"- ({module}|{name})$", loaded, re.MULTILINE):
            unused.append(name)
    assert not unused, unused


def test_one_version_is_named_everywhere_and_the_changelog_begins_with_it():
    """This version is the first entry of the changelog, with the date in
    CITATION.cff."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    releases = re.findall(r"^## (\S+) \((\S+)\)$", text, re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert releases[0] == (PROJECT["version"], str(citation["date-released"]))
    assert citation["version"] == PROJECT["version"]


def test_constraints_pin_every_direct_dependency():
    lines = [
        line
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert all(re.fullmatch(r"[\w.\-]+==[\w.+!]+", line) for line in lines)
    pinned, names = (
        {
            re.sub(r"[-_.]+", "-", re.match(r"[\w.\-]+", entry)[0]).lower()
            for entry in entries
        }
        for entries in (lines, DIRECT)
    )
    assert names <= pinned


def test_ci_installs_by_hash_what_is_pinned():
    """The hashes include each pinned version, the build requirements, and the files for
    CI's computers."""
    text = (ROOT / ".ci" / "hashes.txt").read_text().replace(" \\\n", "")
    form = re.compile(
        r"([a-z0-9-]+==[\w.+!]+)( ; python_version == \S+)?(    --hash=sha256:[0-9a-f]{64})+"
    )
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in lines if not form.fullmatch(line)] == []
    by_hash = {form.fullmatch(line)[1] for line in lines}
    pinned = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    assert {
        re.sub(r"[-_.]+", "-", name).lower() + rest
        for name, rest in map(_parted, pinned)
    } <= by_hash
    assert {"hatchling", "editables", "build"} <= {
        pin.partition("==")[0] for pin in by_hash
    }


def _parted(pin):
    name, _, version = pin.partition("==")
    return name, f"=={version}"


def workflow_jobs(name):
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())[
        "jobs"
    ]


# Jobs that test versions which are not pinned. Their files are not published.
UNPINNED_JOBS = {"wheel", "newest", "lowest"}


@pytest.mark.parametrize("name", ["ci", "nightly", "pages", "records", "release"])
def test_jobs_install_pinned_packages_by_their_hash(name):
    for title, job in workflow_jobs(name).items():
        if title in UNPINNED_JOBS:
            continue
        runs = " ".join(step.get("run", "") for step in job["steps"])
        assert not re.search(r"pip install|-m build(?! --no-isolation)", runs)
        if re.search(r"\bmake\b|preflearn|\.ci/run", runs):
            assert [step.get("uses") for step in job["steps"]].count(
                "./.github/actions/prepare"
            ) == 1


def test_the_release_reuses_nothing_that_an_earlier_run_computed():
    steps = workflow_jobs("release")["build"]["steps"]
    (prepare,) = [
        step for step in steps if step.get("uses") == "./.github/actions/prepare"
    ]
    assert prepare["with"]["reuse"] == "false"
    (run,) = [step for step in steps if step.get("run") == "bash .ci/run"]
    assert run["env"]["PREFLEARN_CI_CACHE"] == ""


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
        label
        for path in (ROOT / "tests").rglob("test_*.py")
        for label in marker.findall(path.read_text())
    }
    assert boxes
    assert tried == boxes


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stripped_and_parameterised(path):
    code = cells(path)
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)
    (parameters,) = [
        cell for cell in code if "parameters" in cell["metadata"].get("tags", [])
    ]
    source = "".join(parameters["source"])
    assert re.search(r'^profile = "quick"', source, re.MULTILINE)
    assert re.search(r"^seed = 0\b", source, re.MULTILINE)
    assert all("#" in line for line in source.splitlines()), (
        "each parameter owes its reader a comment"
    )


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_reads_well(path):
    for cell in cells(path):
        if "plt.show()" in "".join(cell["source"]):
            about = cell["metadata"]["mystnb"]
            assert len(about["figure"]["caption"]) > 40, about
            assert about["figure"]["name"].startswith("fig-")
            assert len(about["image"]["alt"]) > 40
    text = "".join("".join(cell["source"]) for cell in cells(path, "markdown"))
    figures = {
        cell["metadata"]["mystnb"]["figure"]["name"]
        for cell in cells(path)
        if "mystnb" in cell["metadata"]
    }
    assert figures <= set(re.findall(r"\{numref\}`([^`]+)`", text)), (
        "each figure is cited"
    )
    exercises, solutions = (
        len(re.findall(rf"(?:```|:::)\{{{kind}\}}", text))
        for kind in ("exercise", "solution")
    )
    assert exercises >= 4
    assert solutions == exercises


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_chapter_opens_with_its_box_and_has_the_four_items(path):
    first = "".join(cells(path, "markdown")[0]["source"])
    assert re.search(r"^#[^#].*\?$", first, re.MULTILINE), "a chapter asks a question"
    (minute,) = re.findall(
        r"^```\{admonition\} In one minute\n:class: tip\n(.*?)^```$", first, re.S | re.M
    )
    assert minute.strip()
    assert "four_items(" in "".join("".join(cell["source"]) for cell in cells(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_chapter_checks_exactly_its_claims(path):
    source = "\n".join("".join(cell["source"]) for cell in cells(path))
    checked = re.findall(r'\bcheck\(\s*"(P\d-\d+)"', source)
    claims = [
        claim for claim in load_claims().values() if claim.verdict not in UNCOMPUTED
    ]
    owed = {claim.id for claim in claims if claim.chapter == path.stem}
    assert len(checked) == len(set(checked))
    assert set(checked) == owed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_appendix_comes_last(path):
    """A cell that is visible only in the notebook states where the appendix begins."""
    tags = [
        cell["metadata"].get("tags", [])
        for cell in cells(path, "markdown")
        if re.search(r"^## ", "".join(cell["source"]), re.MULTILINE)
        or cell["id"].endswith("-appendix")
    ]
    in_appendix = ["appendix" in names for names in tags]
    assert in_appendix == sorted(in_appendix)
    if any(in_appendix):
        assert "remove-cell" in tags[in_appendix.index(True) - 1]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_chapter_records_named_results(path):
    assert any(
        re.search(r'record\(\s*"results",', "".join(cell["source"]))
        for cell in cells(path)
    )


def test_table_of_contents_names_every_chapter():
    toc = (ROOT / "book" / "_toc.yml").read_text()
    named = re.findall(r"chapters/(\d\d_\w+)", toc)
    assert [name for name in named if not name.endswith("_more")] == [
        path.stem for path in NOTEBOOKS
    ]
    aside = [path.stem for path in NOTEBOOKS if '"appendix"' in path.read_text("utf-8")]
    assert [name for name in named if name.endswith("_more")] == [
        f"{name}_more" for name in aside
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_heading_of_a_section_begins_its_cell(path):
    """Otherwise, a section that moves to the appendix page would include the text below
    the next heading."""
    texts = ["".join(cell["source"]) for cell in cells(path, "markdown")]
    assert [
        text for text in texts if re.search(r"[^=\s]\s*\n(\(\S+\)=\s*)*## ", text)
    ] == []


def test_citations_have_an_entry():
    keys = set(
        re.findall(
            r"^@\w+\{([\w:-]+),",
            (ROOT / "book" / "references.bib").read_text(),
            re.MULTILINE,
        )
    )
    texts = [*NOTEBOOKS, *(ROOT / "book").glob("*.md")]
    cited = {
        key.strip()
        for path in texts
        for group in re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", path.read_text("utf-8"))
        for key in group.split(",")
    }
    assert cited
    assert cited <= keys


TEXTS = {
    "",
    ".py",
    ".md",
    ".toml",
    ".yml",
    ".yaml",
    ".ipynb",
    ".txt",
    ".cfg",
    ".csv",
    ".cff",
}


def test_no_path_of_one_machine_and_no_index_address_is_committed():
    forbidden = re.compile(
        r"(?<![\w/.])/(?:work|farm|root|home/\w+|tmp)/\w|extra-index-url|pypi\.org|--index-url"
    )
    found = []
    for path in tracked_files():
        if path.suffix in TEXTS:
            lines = path.read_text("utf-8").splitlines()
            found += [
                f"{path.name}:{k}"
                for k, line in enumerate(lines, 1)
                if forbidden.search(line)
            ]
    assert [
        place for place in found if not place.startswith("test_repository.py")
    ] == []


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
    """By default, a job can only read. A job that can write runs neither our code nor
    that of an installed package."""
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in path.read_text()
    for job in workflow["jobs"].values():
        steps = job["steps"]
        rights = job.get("permissions", {})
        checkouts = [
            step
            for step in steps
            if step.get("uses", "").startswith("actions/checkout@")
        ]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)
        runs = " ".join(step.get("run", "") for step in steps)
        assert "write" not in rights.values() or not re.search(
            r"\b(pip|make|python|\.ci)\b", runs
        )
        assert not {"id-token", "contents"} <= set(rights), (
            "the index and the release are jobs of their own"
        )


def test_actions_are_named_by_commit_with_the_version_beside_it():
    """A tag can be moved, but a commit cannot. Dependabot updates both the commit and
    the version."""
    files = [*WORKFLOWS, ROOT / ".github" / "actions" / "prepare" / "action.yml"]
    used = {
        line
        for path in files
        for line in re.findall(r"uses: (?!\./)(.*)", path.read_text())
    }
    form = re.compile(r"([\w-]+/[\w-]+)(?:/[\w-]+)?@([0-9a-f]{40} # v\d+\.\d+\.\d+)")
    assert [line for line in used if not form.fullmatch(line)] == []
    actions = {form.match(line).groups() for line in used}
    assert len({name for name, _ in actions}) == len(actions), "one version of each"


def test_nobody_is_told_to_install_a_name_of_the_index_that_is_not_ours():
    """Anyone could register that name on the package index, and users would run their
    code. Installation must use a checkout."""
    asks = re.compile(r"pip install [^\n@]*\bpreflearn\b(?!\S* @ git)")
    texts = [
        path
        for path in tracked_files()
        if path.suffix in {*TEXTS, ".html", ".json", ".js"}
    ]
    found = {path.name for path in texts if asks.search(path.read_text("utf-8"))}
    assert found <= {"CHANGELOG.md"}, "only the history may tell what was"


def test_no_tracked_file_is_empty():
    empty = [path for path in tracked_files() if path.stat().st_size == 0]
    assert [
        path for path in empty if path.name not in ("__init__.py", "py.typed")
    ] == []


BENCHMARKS = sorted((ROOT / "benchmarks").glob("*.py"))


def test_the_page_of_benchmarks_names_each_script_and_each_table():
    readme = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    scripts = [
        f"benchmarks/{path.name}"
        for path in BENCHMARKS
        if not path.name.startswith("_")
    ]
    tables = [
        f"({path.name})"
        for path in (ROOT / "benchmarks").glob("*.md")
        if path.name != "README.md"
    ]
    assert [name for name in scripts + tables if name not in readme] == []


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
def test_benchmarks_import_names_that_exist(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(
            "preflearn"
        ):
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
