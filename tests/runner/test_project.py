import json
import os
import subprocess
import sys

import pytest
from toy_project import FIRST, edit_notebook, write_notebook, write_project

from preflearn_book.runner.project import Chapter, Project, find_project


@pytest.fixture
def project(tmp_path):
    return write_project(tmp_path, first=FIRST)


def test_chapters_have_several_names(project):
    for name in ("01_first", "first", "01", "1", "notebooks/01_first.ipynb"):
        assert project.chapter(name).name == "01_first"
    with pytest.raises(ValueError, match=r"'7'.*'01_first'"):
        project.chapter("7")


def test_an_unnumbered_notebook_in_the_table_of_contents_is_built(project):
    for name in ("use_first", "scratch", "chapter_first"):
        write_notebook(project.notebooks / f"{name}.ipynb")
    assert [chapter.name for chapter in Project(project.root).chapters] == ["01_first"]
    (project.book / "_toc.yml").write_text(
        "root: index\nchapters:\n  - file: chapters/use_first\n"
    )
    project = Project(project.root)
    assert [chapter.name for chapter in project.chapters] == ["01_first", "use_first"]
    assert project.chapter("use_first").path == project.notebooks / "use_first.ipynb"
    assert project.chapter("first").name == "01_first"
    for name in ("use", "scratch", ""):
        with pytest.raises(ValueError, match=repr(name)):
            project.chapter(name)


def test_parameters_have_the_names_and_types_of_the_tagged_cell(project):
    (chapter,) = project.chapters
    assert chapter.parameters == {"profile": "quick", "seed": 0, "n": 10}
    assert chapter.checked_parameters({"seed": 0, "n": 11}) == {"n": 11}
    assert chapter.checked_parameters({"seed": False}) == {"seed": False}
    texts = {"seed": "3", "n": "10", "profile": "full"}
    assert chapter.checked_parameters(texts) == {"seed": 3, "profile": "full"}
    with pytest.raises(ValueError, match=r"'sed'.*'seed'"):
        chapter.checked_parameters({"sed": 1})


MARKDOWN = {"cell_type": "markdown", "id": "a", "source": "# x", "metadata": {}}


def notebook_with(*cells):
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "\xff",
        "[" * 100_000,
        notebook_with("x"),
        notebook_with(MARKDOWN | {"metadata": {"tags": None}}),
        notebook_with(MARKDOWN | {"source": ["a", 2]}),
    ],
)
def test_the_error_names_a_broken_notebook(tmp_path, text):
    path = tmp_path / "03_x.ipynb"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"03_x\.ipynb"):
        Chapter(path).parameters  # noqa: B018
    path.write_text(notebook_with(MARKDOWN))
    assert Chapter(path).parameters == {}


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("seed = = 0", r"03_x\.ipynb.*parameters"),
        ("seed = " + "(" * 500, r"03_x\.ipynb.*parameters"),
        ("-" * 100_000, r"03_x\.ipynb.*parameters"),
        ("profile = 'ful'\nodd = {[1]: 2}\nseed = 0", "03_x.ipynb.*'ful'"),
    ],
)
def test_the_error_names_a_notebook_with_a_bad_parameters_cell(tmp_path, source, named):
    path = write_notebook(tmp_path / "03_x.ipynb")
    edit_notebook(path, lambda nb: nb["cells"][1].update(source=source))
    with pytest.raises(ValueError, match=named):
        Chapter(path).checked_parameters({"seed": 1})


def test_a_project_is_found_from_its_subfolders(project, tmp_path_factory, monkeypatch):
    assert find_project(project.notebooks).root == project.root
    monkeypatch.setenv("PREFLEARN_ROOT", str(tmp_path_factory.mktemp("empty")))
    with pytest.raises(ValueError, match="checkout"):
        find_project()


def test_numerical_libraries_of_this_suite_use_one_thread():
    # This runs in a separate process, because a library may lower its number of threads
    # while it runs.
    code = "import numpy, threadpoolctl as t; print({p['num_threads'] for p in t.threadpool_info()})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"{{{os.environ['OPENBLAS_NUM_THREADS']}}}"
