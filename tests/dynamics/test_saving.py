"""Files: what is written is read to the last bit. Damaged files and other files are
rejected."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from dynamics.problems import PRIOR, both_methods, curves, fit_small, fitted

from preflearn.dynamics import (
    Constant,
    Matern32,
    OrdinalProbit,
    PiecewiseConstant,
    Wiener,
    load,
)
from preflearn.dynamics.saving import as_names, read_npz, write_npz
from preflearn.matches import Matches

NAMES = "Ann", ("Ann", "Bob"), "", 7, 0.1, ("a", ("b", 1)), np.str_("Cy"), np.int64(3)
HEADER = {
    "likelihood": {"name": "Probit"},
    "tol": 1e-6,
    "features": NAMES,
    "none": None,
}
ARRAYS = {
    "alpha": np.array([0.1, -1e300, 5e-324]),
    "counts": np.arange(6, dtype=np.int32).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "rate": np.array(0.5),
    "empty": np.zeros((0, 2)),
}


def parts(path):
    """Return the header and the arrays."""
    return read_npz(path, lambda *both: both)


@pytest.fixture
def path(tmp_path):
    write_npz(tmp_path / "model.npz", HEADER, ARRAYS)
    return tmp_path / "model.npz"


def bytes_of(array):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def rewritten(path, **changes):
    """Change some members of the archive, or remove those that are None."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members |= {f"{name}.npy": content for name, content in changes.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)


def header_bytes(path, **changes):
    with np.load(path) as archive:
        header = json.loads(archive["header"].tobytes())
    text = json.dumps(header | changes)
    return bytes_of(np.frombuffer(text.encode(), dtype=np.uint8))


def test_what_is_written_is_read_to_the_last_bit(path):
    header, arrays = parts(path)
    names = as_names(header["features"])
    assert header | {"features": names} == HEADER
    assert {hash(name) for name in names} == {hash(name) for name in NAMES}
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    with np.load(path, allow_pickle=False) as archive:
        assert set(archive.files) == {"header", *ARRAYS}
        np.testing.assert_array_equal(archive["alpha"], ARRAYS["alpha"])


def test_the_file_has_exactly_the_name_that_is_given_and_nothing_else_is_left(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write_npz("model", HEADER, ARRAYS)
    write_npz(str(tmp_path / "model"), {}, {})  # replaces the first file
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    assert parts("model") == ({}, {})


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, [b"Ann"], [("a", 1j)]])
def test_what_json_lacks_is_rejected_and_the_old_file_stays(path, value):
    before = path.read_bytes()
    with pytest.raises(ValueError, match="saved"):
        write_npz(path, {"x": value}, {})
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_missing_files_and_folders_are_named(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_npz(tmp_path / "nowhere" / "model.npz", {}, {})
    with pytest.raises(FileNotFoundError, match=r"gone\.npz"):
        parts(tmp_path / "gone.npz")
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    for folder in ("", "..", "models"):
        with pytest.raises(IsADirectoryError, match=f"'{folder}' is a folder"):
            write_npz(folder, {}, {})


def test_files_of_another_format_or_version_are_named(path, tmp_path):
    text = tmp_path / "a.txt"
    other = tmp_path / "b.npz"
    plain = tmp_path / "c.npy"
    text.write_text("alpha,beta\n")
    np.savez(other, alpha=ARRAYS["alpha"])
    np.save(plain, ARRAYS["alpha"])
    for file in (text, other, plain, tmp_path):
        with pytest.raises(ValueError, match=file.name):
            parts(file)
    for change, named in (
        ({"format": "x"}, "format is 'x'"),
        ({"version": 2}, "version is 2"),
        ({"version": None}, "version is None"),
    ):
        write_npz(path, HEADER, ARRAYS)
        rewritten(path, header=header_bytes(path, **change))
        with pytest.raises(ValueError, match=named):
            parts(path)


def test_a_model_that_the_first_version_saved_loads():
    model = load(Path(__file__).with_name("saved_before.npz"))
    prior = {
        "Ann": Constant(0.2) + Wiener(0.5, "first"),
        "*": PiecewiseConstant(1.0, (2.0,)) * Matern32(0.5, 2.0),
    }
    matches = Matches(
        [[1, -1, 0], [0, 1, -1], [1, 0, -1]], [1.0, 2.5, 4], ["Ann", ("Ann", "Bob"), 7]
    )
    options = {"rate": 0.7, "tol": 1e-10, "n_threads": 1}
    again = fitted(
        prior, OrdinalProbit(0.4), matches, [1, 0, -1], max_iter=1000, **options
    )
    assert model.get_params() == again.get_params()
    np.testing.assert_allclose(
        model.predict_proba(matches), again.predict_proba(matches), atol=1e-9
    )


@both_methods
def test_a_model_is_what_was_saved(tmp_path, method):
    frame = pd.DataFrame(
        {
            "home": list("abca"),
            "away": list("bcab"),
            "time": range(4),
            "outcome": [1, -1, 0, 1],
        }
    )
    matches, y = Matches.from_frame(frame, first="home", second="away")
    covariance = {"a": Constant(0.2), "c": PiecewiseConstant(1.0, (1.0,)), "*": PRIOR}
    known = {
        "mean": {"a": 0.3, "b": 1.0},
        "sample_weight": [0.5, 1, 2, 1],
        "offset": [0.0, 0.2, -0.4, 0.1],
    }
    options = {"rate": 0.7, "tol": 1e-10, "n_threads": 1}
    model = fitted(
        covariance, OrdinalProbit(0.4), matches, y, method, **known, **options
    )
    model.save(tmp_path / "model.npz")
    read = load(tmp_path / "model.npz")
    assert read.get_params() == model.get_params()
    assert read.trace_.equals(model.trace_)
    for name in ("features_", "converged_", "n_iter_", "log_marginal_likelihood_"):
        assert getattr(read, name) == getattr(model, name)
    np.testing.assert_array_equal(read.observations_, model.observations_)
    np.testing.assert_array_equal(curves(read, "abc"), curves(model, "abc"))
    fixtures = frame[["home", "away", "time"]]
    np.testing.assert_array_equal(
        read.predict_proba(fixtures), model.predict_proba(matches)
    )
    later = Matches([[1, -1]], [5.0], ["c", "d"])
    np.testing.assert_array_equal(
        curves(read.update(later, [1]), "abcd"),
        curves(model.update(later, [1]), "abcd"),
    )


def test_options_that_are_numbers_of_numpy_are_saved(tmp_path):
    options = {
        "n_threads": np.int64(1),
        "tol": np.float32(1e-6),
        "max_iter": np.int64(50),
    }
    fit_small(**options).save(tmp_path / "model.npz")
    read = load(tmp_path / "model.npz")
    assert {name: getattr(read, name) for name in options} == options
    # one covariance for all features is not stored as a mapping
    assert read.covariance == PRIOR


def begin_at(place, value):
    return lambda starts: np.r_[starts[:place], value, starts[place + 1 :]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the contents of the file of a model with 30 matches."""
    path = tmp_path_factory.mktemp("saved") / "model.npz"
    fit_small().save(path)
    return parts(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("covariance", None),
        ("covariance", [1, 2]),
        ("likelihood", {"kind": "Foo"}),
        ("options", {"foo": 3}),
        ("options", {"tol": -1}),
        ("features", 3),
        ("features", [{}, "Bob", "Cy", "Dee"]),
        ("time", lambda time: None),
        ("time", lambda time: time * np.nan),
        ("outcomes", lambda y: y[:-1]),
        ("outcomes", lambda y: 7 * y),
        ("pseudo_observations", lambda sites: sites[:-1]),
        ("pseudo_observations", lambda sites: sites * np.nan),
        ("indices", lambda columns: columns + 100),
        ("indptr", lambda starts: starts[::-1]),
        # Each of these once ended the process, or raised an error of C++.
        *(
            ("indptr", begin_at(*at))
            for at in [(5, 400_000), (30, 700), (1, 99), (1, -5), (1, 2**31 - 1)]
        ),
        ("trace_rate", lambda rate: rate[:-1]),
    ],
)
def test_files_whose_parts_do_not_fit_are_rejected(tmp_path, saved, name, value):
    header, arrays = saved
    if callable(value):
        arrays = {
            k: part
            for k, part in (arrays | {name: value(arrays[name])}).items()
            if part is not None
        }
    else:
        header = header | {name: value}
    path = tmp_path / "model.npz"
    write_npz(path, header, arrays)
    with pytest.raises(ValueError, match=r"model\.npz.*damaged"):
        load(path)


def in_header(text):
    return {"header": bytes_of(np.frombuffer(text.encode(), dtype=np.uint8))}


def damages(path, arrays, stride):
    """Yield the contents of damaged files."""
    whole = path.read_bytes()
    for place in range(0, len(whole), stride):
        for mask in (0x01, 0x80, 0xFF):
            yield whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :]
        yield whole[:place]
        yield whole[:place] + bytes(64) + whole[place + 64 :]
        yield whole[:place] + whole[place + 64 :]
    changes = [
        {"covariance": [["*", THOUSANDS]]},
        *({"options": {"tol": value}} for value in ("1", True, None, 1e400, 10**400)),
    ]
    members = [{"header": header_bytes(path, **change)} for change in changes]
    members += [
        in_header(text)
        for text in ("{", "[" * 10**6, '{"a":' * 10**5, "1" * 10**5, "NaN", "")
    ]
    for name, array in arrays.items():
        contents = [None, b"", b"\x93NUMPY", bytes_of(array)[:-1]]
        members += [{name: content} for content in contents]
    for change in members:
        rewritten(path, **change)
        yield path.read_bytes()
        path.write_bytes(whole)


CONSTANT = Constant(1.0).to_dict()
THOUSANDS = {
    "kind": "Product",
    "parts": [{"kind": "Sum", "parts": [CONSTANT] * 2}] * 40,
}


@pytest.mark.parametrize("stride", [671, pytest.param(67, marks=pytest.mark.nightly)])
def test_a_damaged_file_is_rejected_or_is_the_same_model(tmp_path, stride):
    """A few bytes of an archive do not matter, such as its dates. None may change a
    number."""
    path = tmp_path / "model.npz"
    broken = tmp_path / "broken.npz"
    rejected = 0
    model = fit_small()
    model.save(path)
    forecasts = model.predict_proba(model.matches_)
    (_, arrays) = parts(path)
    for content in damages(path, arrays, stride):
        broken.write_bytes(content)
        try:
            found = load(broken)
        except ValueError:
            rejected += 1
        else:
            assert found.get_params() == model.get_params()
            np.testing.assert_array_equal(
                found.predict_proba(model.matches_), forecasts
            )
    assert rejected > 100
