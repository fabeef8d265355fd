import json
import os
import subprocess
import sys

import pytest
from toy_project import FIRST, edit_notebook, write_notebook, write_project

from bookrunner.project import Chapter, Project, find_project


@pytest.fixture
def project(tmp_path):
    return write_project(tmp_path, first=FIRST)


def test_chapters_have_several_names(project):
    for name in ("01_first", "first", "01", "1", "notebooks/01_first.ipynb"):
        assert project.chapter(name).name == "01_first"
    with pytest.raises(ValueError, match=r"no chapter '7'; expected one of \['01_first'\]"):
        project.chapter("7")


def test_a_page_without_a_number_is_built_where_the_contents_name_it(project):
    for name in ("use_first", "scratch", "chapter_first"):
        write_notebook(project.notebooks / f"{name}.ipynb")
    assert [chapter.name for chapter in Project(project.root).chapters] == ["01_first"]
    (project.book / "_toc.yml").write_text("root: index\nchapters:\n  - file: chapters/use_first\n")
    project = Project(project.root)
    assert [chapter.name for chapter in project.chapters] == ["01_first", "use_first"]
    assert project.chapter("use_first").path == project.notebooks / "use_first.ipynb"
    assert project.chapter("first").name == "01_first"
    for name in ("use", "scratch", ""):
        with pytest.raises(ValueError, match="there is no chapter"):
            project.chapter(name)


def test_parameters_are_read_from_the_tagged_cell(project):
    chapter = project.chapters[0]
    assert chapter.parameters == {"profile": "quick", "seed": 0, "n": 10}
    assert chapter.checked_parameters({"seed": 0, "n": 11}) == {"n": 11}
    assert chapter.checked_parameters({"seed": False}) == {"seed": False}
    with pytest.raises(ValueError, match=r"no parameter 'sed'; expected one of \['n', 'profile', 'seed'\]"):
        chapter.checked_parameters({"sed": 1})


MARKDOWN = {"cell_type": "markdown", "id": "a", "source": "# x", "metadata": {}}


def _with(*cells):
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "\xff",
        "[" * 100_000,
        _with("x"),
        _with(MARKDOWN | {"metadata": {"tags": None}}),
        _with(MARKDOWN | {"source": ["a", 2]}),
    ],
)
def test_a_broken_notebook_is_named(tmp_path, text):
    path = tmp_path / "03_x.ipynb"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=r"^03_x\.ipynb is not a notebook: ."):
        Chapter(path).parameters  # noqa: B018
    path.write_text(_with(MARKDOWN))
    assert Chapter(path).parameters == {}


@pytest.mark.parametrize("source", ["seed = = 0", "seed = 0\n  n = 1", "seed = " + "(" * 500, "-" * 100_000])
def test_a_typo_among_the_parameters_is_named(tmp_path, source):
    path = write_notebook(tmp_path / "03_x.ipynb")
    edit_notebook(path, lambda nb: nb["cells"][1].update(source=source))
    with pytest.raises(ValueError, match=r"^03_x\.ipynb: the cell of parameters is not valid Python"):
        Chapter(path).checked_parameters({"seed": 1})


def test_parameters_are_typed_by_the_cell(project):
    found = project.chapters[0].checked_parameters({"seed": "3", "n": "10", "profile": "full"})
    assert found == {"seed": 3, "profile": "full"}


@pytest.mark.parametrize("profile", ["'ful'", "3", "'../../../elsewhere'"])
def test_an_unknown_profile_as_the_default_is_refused(project, profile):
    (chapter,) = project.chapters
    parameters = f"profile = {profile}\nodd = {{[1]: 2}}"
    edit_notebook(chapter.path, lambda nb: nb["cells"][1].update(source=parameters))
    with pytest.raises(ValueError, match=r"^chapter 01_first: profile is .*; expected one of"):
        Chapter(chapter.path).checked_parameters({})


def test_project_is_found_from_a_folder_inside(project, tmp_path_factory, monkeypatch):
    assert find_project(project.notebooks).root == project.root
    monkeypatch.setenv("PREFLEARN_ROOT", str(tmp_path_factory.mktemp("empty")))
    with pytest.raises(ValueError, match="expected a checkout of preflearn"):
        find_project()


def test_numerical_libraries_of_this_suite_were_told_their_threads():
    # In a process of its own: in this one a library may have lowered its number since.
    code = "import numpy, threadpoolctl as t; print({p['num_threads'] for p in t.threadpool_info()})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{{{os.environ['OPENBLAS_NUM_THREADS']}}}"
