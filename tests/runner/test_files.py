import pytest

from preflearn_book.runner.files import locked, read_yaml, write_atomically


def test_a_failed_write_leaves_only_the_old_file(tmp_path):
    path = write_atomically(tmp_path / "a.csv", "old")
    with pytest.raises(AttributeError):
        write_atomically(path, None)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_error_names_a_lock_on_a_full_disk(tmp_path):
    resource = pytest.importorskip("resource")  # this module does not exist on Windows
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with (
            pytest.raises(OSError, match=r"a\.lock"),
            locked(tmp_path / "a.lock", "this"),
        ):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with locked(tmp_path / "a.lock", "this"):  # the first lock was released
        pass


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a: 1\nb: 2\na: 3", "'a'"),
        ("- {x: {a: 1, 'a': 1}}", "'a'"),
        ("!!bool maybe", "'maybe'"),
        ("!!timestamp soon", "YAML"),
    ],
)
def test_yaml_that_would_lose_content_raises_an_error(tmp_path, text, named):
    (tmp_path / "x.yml").write_text(text)
    with pytest.raises(ValueError, match=rf"x\.yml.*{named}"):
        read_yaml(tmp_path / "x.yml")


def test_a_yaml_merge_may_repeat_a_key(tmp_path):
    (tmp_path / "x.yml").write_text("[&all {a: 1, b: 2}, {<<: *all, b: 3}, *all]")
    assert read_yaml(tmp_path / "x.yml") == [
        {"a": 1, "b": 2},
        {"a": 1, "b": 3},
        {"a": 1, "b": 2},
    ]
