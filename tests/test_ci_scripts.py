"""The scripts that CI runs: the cache between runs, and the installation of browsers."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CI = Path(__file__).parents[1] / ".ci"
KEPT = (
    "src/pkg/__pycache__/loop.nbi",
    "_build/executed/01/quick.ipynb",
    "_build/visited/index.json",
)
NOT_KEPT = (
    "src/pkg/module.py",
    "src/pkg/forms.json",
    "_build/executed/01/failed/quick.ipynb",
    "_build/html/index.html",
)


def run(script, *arguments, **environment):
    """Run a script with an environment that is empty except for the given variables and
    PATH."""
    variables = {"PATH": os.environ["PATH"]} | environment
    return subprocess.run(
        [script, *arguments], env=variables, capture_output=True, text=True
    )


def checkout(folder, files=()):
    """Make a folder with the script of the cache and some files whose content is their
    name."""
    (folder / ".ci").mkdir(parents=True)
    shutil.copy(CI / "cache", folder / ".ci")
    (folder / "src").mkdir()
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder / ".ci" / "cache"


def test_cache_carries_computed_files_to_another_checkout(tmp_path):
    kept = str(tmp_path / "the cache")
    save = checkout(tmp_path / "first checkout", [*KEPT, *NOT_KEPT])
    assert run(save, "save", PREFLEARN_CI_CACHE=kept).returncode == 0
    restore = checkout(tmp_path / "second")
    assert run(restore, "restore", PREFLEARN_CI_CACHE=kept).returncode == 0
    assert [(tmp_path / "second" / name).read_text() for name in KEPT] == list(KEPT)
    assert not any((tmp_path / "second" / name).exists() for name in NOT_KEPT)


def test_cache_replaces_no_file_of_the_checkout(tmp_path):
    kept = tmp_path / "cache"
    kept.mkdir()
    subprocess.run(
        ["tar", "-cf", kept / "cache.tar", "-C", CI.parent, "pyproject.toml"],
        check=True,
    )
    script = checkout(tmp_path / "checkout", ["pyproject.toml"])
    assert run(script, "restore", PREFLEARN_CI_CACHE=str(kept)).returncode == 0
    content = (tmp_path / "checkout" / "pyproject.toml").read_text()
    assert content == "pyproject.toml"


def test_an_empty_cache_variable_disables_the_cache(tmp_path):
    script = checkout(tmp_path / "checkout", KEPT)
    environment = {"PREFLEARN_CI_CACHE": "", "HOME": str(tmp_path)}
    assert run(script, "save", **environment).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkout"]


def test_damaged_cache_is_reported_and_does_not_stop_the_run(tmp_path):
    script = checkout(tmp_path / "checkout")
    archive = tmp_path / "cache" / "cache.tar"
    archive.parent.mkdir()
    archive.write_bytes(b"no archive")
    done = run(script, "restore", PREFLEARN_CI_CACHE=str(archive.parent))
    assert done.returncode == 0
    assert "damaged" in done.stderr


def programs(folder, **scripts):
    """Make a folder with shell scripts and links to the programs that .ci/browsers
    needs; return its path."""
    folder.mkdir()
    for name in ("bash", "cat", "dirname", "id", "mktemp"):
        (folder / name).symlink_to(shutil.which(name))
    for name, text in scripts.items():
        program = folder / name
        program.write_text(f"#!{shutil.which('bash')}\n{text}\n")
        program.chmod(0o755)
    return str(folder)


APT = {"apt-get": "echo $0 $*; exit 100", "sudo": '"$@"'}


def test_a_browser_that_cannot_be_installed_stops_ci(tmp_path):
    done = run(CI / "browsers", PATH=programs(tmp_path / "bin", **APT), CI="true")
    assert done.returncode == 1
    assert "chromium" in done.stderr
    assert "apt-get" in done.stderr


@pytest.mark.parametrize(
    ("found", "environment"),
    [({}, {}), ({"chromium": "", "firefox": ""}, {"CI": "true"})],
)
def test_nothing_is_installed_outside_ci_or_when_both_browsers_are_there(
    tmp_path, found, environment
):
    path = programs(tmp_path / "bin", **APT, **found)
    assert run(CI / "browsers", PATH=path, **environment).returncode == 0
