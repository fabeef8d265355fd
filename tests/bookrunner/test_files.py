import pytest

from bookrunner.files import write_atomically


def test_a_failing_write_leaves_the_old_file_and_no_other(tmp_path):
    path = write_atomically(tmp_path / "a.csv", "old")
    with pytest.raises(AttributeError):
        write_atomically(path, None)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
