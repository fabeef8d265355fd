"""Values of functions in float64, in float32, or recomputed: their products, and the
functions that are chosen."""

import numpy as np
import pytest
from pursuit.scored import problem

from preflearn.core.expansion import functions_of
from preflearn.pursuit import RankingPursuit
from preflearn.pursuit.dictionary import Dictionary
from preflearn.pursuit.quadratic_forms import QueryForm

BACKFITS = (False, "after", "pre")


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize(
    "memory",
    [8 * 300 * 300, 4 * 300 * 300, 0],
    ids=["float64", "float32", "recomputed"],
)
def test_products_are_those_of_the_matrix(memory, own):
    """Functions are multiplied in several blocks, and only one triangle of a symmetric
    kernel is used."""
    X, v, _ = problem(0, n=300)
    functions = functions_of(
        RankingPursuit(gamma=0.3), X, None if own else X[::-1] + 0.1
    )
    K = functions.columns(X)
    dictionary = Dictionary(functions, X, memory, single=True)
    form = QueryForm(np.zeros(300, dtype=np.int64), 1.0)
    np.testing.assert_allclose(
        dictionary.squares(form), np.square(K).sum(axis=0), rtol=1e-12
    )
    assert dictionary.largest == pytest.approx(K.max())
    blocks = list(dictionary.blocks())
    np.testing.assert_allclose(
        np.hstack([columns for _, columns in blocks]), K, rtol=1e-12
    )
    assert [part.start for part, _ in blocks][:2] == [0, 256]
    error = (
        1e-12
        if dictionary.spread is None
        else 1.01 * dictionary.spread * np.linalg.norm(v)
    )
    assert (dictionary.spread is None) == (memory != 4 * 300 * 300)
    assert (np.abs(dictionary.times(v) - v @ K) <= error).all()
    np.testing.assert_allclose(
        dictionary.columns(np.array([7, 299])), K[:, [7, 299]], rtol=1e-12
    )


@pytest.mark.parametrize("backfit", BACKFITS)
@pytest.mark.parametrize("memory", [4 * 40 * 40, 0], ids=["float32", "recomputed"])
@pytest.mark.parametrize("own", [True, False])
def test_memory_changes_no_choice(memory, backfit, own):
    X, s, qid = problem(1, n=40)
    dictionary = None if own else np.random.default_rng(5).normal(size=(40, 2))
    settings = {"gamma": 0.5, "backfit": backfit, "dictionary": dictionary}
    whole, other = (
        RankingPursuit(12, memory=m, **settings).fit(X, s, qid) for m in (1e9, memory)
    )
    assert other.basis_.tolist() == whole.basis_.tolist()
    assert other.coef_ == pytest.approx(whole.coef_, rel=1e-6)


@pytest.mark.parametrize("backfit", ["after", "pre"])
def test_choices_that_float32_cannot_tell_apart_are_those_of_float64(backfit):
    """The centers form pairs at a distance of a millionth. Their decreases differ by
    less than the precision of float32."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 1))
    s = rng.normal(size=30)
    centres = np.repeat(rng.normal(size=(15, 1)), 2, axis=0)
    centres[1::2] += 1e-6
    settings = {"gamma": 1.0, "dictionary": centres, "backfit": backfit}
    whole, other = (
        RankingPursuit(6, memory=m, **settings).fit(X, s) for m in (1e9, 4 * 30 * 30)
    )
    assert other.basis_.tolist() == whole.basis_.tolist()


@pytest.mark.parametrize("memory", [0, 4 * 14 * 14, 1e9])
@pytest.mark.parametrize("size", [1e-20, 1e-12, 1e25])
def test_the_unit_of_functions_changes_no_choice(memory, size):
    X, y, qid = problem(1)
    base = RankingPursuit(3, "linear").fit(X, y, qid)
    # the largest float32 is about 3e38
    other = RankingPursuit(3, "linear", memory=memory).fit(size * X, y, qid)
    assert other.basis_.tolist() == base.basis_.tolist()
    np.testing.assert_allclose(other.losses_, base.losses_, rtol=1e-9)
