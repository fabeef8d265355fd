"""Pursuit in several views: each step compared with brute force, Figure 2 as printed,
and the number of kernel entries."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import laplacian, root, same_query
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.pairs import Pairs
from preflearn.pursuit import (
    RankingPursuit,
    SemiSupervisedRankingPursuit,
    semi_supervised,
)

TWO = ([0, 1], [2, 3])
THREE = ([0, 1], [1, 2, 3], slice(2, 4))
GAMMA = 0.4


def values(views, X, centres):
    """Return the functions of each view at the rows of X."""
    return [rbf_kernel(X[:, columns], centres[:, columns], GAMMA) for columns in views]


def problem(seed, n=9, n_unscored=13, p=4):
    rng = np.random.default_rng(seed)
    qid = rng.integers(0, 2, n)
    other = rng.integers(1, 4, n_unscored)
    qid[:2] = 0
    other[:2] = 1
    return (
        rng.normal(size=(n, p)),
        rng.normal(size=n),
        qid,
        rng.normal(size=(n_unscored, p)),
        other,
    )


def objective(s, f, L, fbar, Lbar, nu):
    """Objective (3) as printed, with f (n, M) and fbar (l, M)."""
    apart = sum((x - y) @ Lbar @ (x - y) for x in fbar.T for y in fbar.T)
    return sum((s - g) @ L @ (s - g) for g in f.T) + nu * apart


def least(columns, residuals, bars, apart, R, Rbar, nu):
    """Return the coefficients and the sum of least squares. The inputs include the
    residuals (n, M) and the views so far on the unscored items, `apart` (l, M)."""
    one = np.eye(columns.shape[1])
    Rbar = np.sqrt(nu) * Rbar
    less = [v - u for v, u in product(one, repeat=2)]
    A = np.vstack(
        [*(R @ (columns * v) for v in one), *(Rbar @ (bars * both) for both in less)]
    )
    b = np.concatenate([*(R @ residuals).T, *(-Rbar @ apart @ both for both in less)])
    a = np.linalg.lstsq(A, b, rcond=1e-10)[0]
    return a, float(np.square(b - A @ a).sum())


def brute_force(K, Kbar, s, L, Lbar, nu, n_basis, shared, printed):
    """Try all choices at each step. With `printed`, follow lines 1 to 9 of Figure 2."""
    M = len(K)
    N = K[0].shape[1]
    R = root(L)
    Rbar = root(Lbar)
    f = np.zeros((len(s), M))
    fbar = np.zeros((len(Lbar), M))
    basis = []
    coefs = []
    found = [objective(s, f, L, fbar, Lbar, nu)]
    for _ in range(n_basis):
        residuals = s[:, None] - (
            f.mean(axis=1, keepdims=True) + 0 * f if printed else f
        )
        apart = np.zeros_like(fbar) if printed else fbar
        tried = []
        for choice in (
            [(j,) * M for j in range(N)] if shared else product(range(N), repeat=M)
        ):
            columns, bars = (
                np.column_stack([k[:, j] for k, j in zip(side, choice, strict=True)])
                for side in (K, Kbar)
            )
            tried.append(
                (
                    *least(columns, residuals, bars, apart, R, Rbar, nu),
                    choice,
                    columns,
                    bars,
                )
            )
        a, _, choice, columns, bars = min(tried, key=lambda one: one[1])
        f = f + a * columns
        fbar = fbar + a * bars
        basis.append(list(choice))
        coefs.append(a)
        found.append(objective(s, f, L, fbar, Lbar, nu))
    return basis, np.array(coefs).T, found


# ---- Each step


@pytest.mark.parametrize("algorithm", ["corrected", "printed"])
@pytest.mark.parametrize(
    ("views", "shared", "n"),
    [(TWO, True, 9), (TWO, False, 8), (THREE, True, 9), (THREE, False, 4)],
)
@pytest.mark.parametrize(("nu", "seed"), [(0.0, 0), (0.3, 1), (20.0, 2)])
def test_each_step_is_that_of_brute_force(views, shared, n, nu, seed, algorithm):
    X, s, qid, Xbar, other = problem(seed, n=n)
    settings = {"algorithm": algorithm, "shared_index": shared, "gamma": GAMMA}
    model = SemiSupervisedRankingPursuit(views, 4, nu, **settings).fit(
        X, s, qid, Xbar, other
    )
    K = values(views, X, X)
    Kbar = values(views, Xbar, X)
    printed = algorithm == "printed"
    basis, coefs, found = brute_force(
        K,
        Kbar,
        s,
        laplacian(same_query(qid)),
        laplacian(same_query(other)),
        nu,
        4,
        shared,
        printed,
    )
    assert model.basis_.tolist() == basis
    assert model.coefs_ == pytest.approx(coefs, rel=1e-6)
    assert model.objectives_ == pytest.approx(found, rel=1e-9)
    f = np.column_stack(
        [K[v][:, model.basis_[:, v]] @ coefs[v] for v in range(len(views))]
    )
    assert model.predict_views(X) == pytest.approx(f, rel=1e-6)
    assert model.rank_function(X) == pytest.approx(f.mean(axis=1), rel=1e-6)


@given(
    st.integers(0, 300),
    st.floats(0, 1e4),
    st.booleans(),
    st.sampled_from([TWO[:1], TWO, THREE]),
)
def test_the_objective_is_3_and_never_rises(seed, nu, shared, views):
    X, s, qid, Xbar, other = problem(seed, n=6)
    L = laplacian(same_query(qid))
    Lbar = laplacian(same_query(other))
    model = SemiSupervisedRankingPursuit(views, 6, nu, shared_index=shared, gamma=GAMMA)
    model.fit(X, s, qid, Xbar, other)
    assert (np.diff(model.objectives_) < 0).all()
    found = objective(s, model.predict_views(X), L, model.predict_views(Xbar), Lbar, nu)
    assert found == pytest.approx(model.objectives_[-1], rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("nu", [0.0, 3.0])
@pytest.mark.parametrize("algorithm", ["corrected", "printed"])
def test_one_view_is_the_supervised_pursuit(nu, algorithm):
    X, s, qid, Xbar, other = problem(3, n=20)
    model = SemiSupervisedRankingPursuit([slice(None)], 8, nu, algorithm=algorithm).fit(
        X, s, qid, Xbar, other
    )
    expected = RankingPursuit(8, backfit=False).fit(X, s, qid)
    assert model.basis_[:, 0].tolist() == expected.basis_.tolist()
    assert model.coefs_[0] == pytest.approx(expected.coef_)
    assert model.objectives_ == pytest.approx(expected.losses_)


@pytest.mark.parametrize("shared", [True, False])
def test_it_ends_at_the_minimum_over_all_coefficients(shared):
    rng = np.random.default_rng(0)
    K = rng.normal(size=(8, 6))
    Kbar = rng.normal(size=(10, 6))
    s = rng.normal(size=8)
    model = SemiSupervisedRankingPursuit(
        [slice(0, 3), slice(3, 6)], 5000, shared_index=shared, kernel="precomputed"
    ).fit(K, s, X_unscored=Kbar)
    assert len(model.basis_) < 500
    assert (np.diff(model.objectives_) < 0).all()
    R, Rbar = (root(laplacian(same_query([0] * size))) for size in (8, 10))
    zero = np.zeros((8, 3))
    blocks = [[R @ K[:, :3], zero], [zero, R @ K[:, 3:]]]
    A = np.block(
        [*blocks, [np.sqrt(2) * Rbar @ Kbar[:, :3], -np.sqrt(2) * Rbar @ Kbar[:, 3:]]]
    )
    b = np.concatenate([R @ s, R @ s, np.zeros(10)])
    a = np.linalg.lstsq(A, b)[0]
    assert model.objectives_[-1] == pytest.approx(np.square(b - A @ a).sum(), rel=1e-12)


# ---- What section 3.1 says


def test_figure_2_raises_objective_3():
    """The scored difference is 1 in both views; the unscored one is 1 in one view and
    -1 in the other. A step is a fifth of the residual."""
    data = {"X": [[0, 0], [1, 1]], "y": [0, 1], "X_unscored": [[0, 0], [1, -1]]}
    model = SemiSupervisedRankingPursuit([[0], [1]], 60, kernel="precomputed")
    printed = clone(model).set_params(algorithm="printed").fit(**data)
    assert printed.objectives_[:3] == pytest.approx([2, 1.6, 1.856])
    assert printed.coefs_[:, :2].tolist() == pytest.approx(
        np.array([[0.2, 0.16], [0.2, 0.16]])
    )
    # four times the objective without any function
    assert printed.objectives_[-1] == pytest.approx(8, rel=1e-4)
    corrected = model.fit(**data)
    assert corrected.objectives_ == pytest.approx([2, 1.6])


@pytest.mark.parametrize("shared", [True, False])
def test_the_matrix_may_be_singular(shared):
    """Functions that are constant within every query have g = 0 and do not lower the
    objective."""
    rng = np.random.default_rng(0)
    qid = np.repeat([0, 1, 2], 4)
    X = rng.normal(size=(3, 4))[qid]
    s = rng.normal(size=12)
    model = SemiSupervisedRankingPursuit(TWO, 5, 1.0, shared_index=shared).fit(
        X, s, qid, X, qid
    )
    assert model.basis_.shape == (0, 2)
    assert model.coefs_.shape == (2, 0)
    assert len(model.objectives_) == 1
    assert model.rank_function(X).tolist() == [0] * 12
    X[:, 2:] = rng.normal(size=(12, 2))  # now the second view varies within queries
    # without unscored items, agreement is measured on the scored ones
    model.fit(X, s, qid)
    assert (model.coefs_[0] == 0).all()
    assert (np.diff(model.objectives_) < 0).all()
    assert clone(model).fit(X, s, qid, X, qid).objectives_ == pytest.approx(
        model.objectives_
    )
    assert model.fit(X, 0.1 * qid + 0.3, qid).basis_.shape == (0, 2)


# ---- The number of kernel entries


class CountedKernel:
    """A Gaussian kernel that counts the entries it computes."""

    def __init__(self):
        self.entries = 0

    def __call__(self, X, Y):
        self.entries += len(X) * len(Y)
        return np.exp(-np.square(X[:, None] - Y[None]).sum(axis=-1))

    def __deepcopy__(self, memo):
        return self


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    ("kept", "algorithm", "cost"),
    [
        # the values of the chosen function are computed a second time
        (0, "corrected", lambda n, unscored: (n + unscored) * (n + 1)),
        # only the increments have to agree
        (0, "printed", lambda n, unscored: n * (n + 1) + unscored),
        (10**6, "corrected", lambda n, unscored: 0),  # all values are kept
    ],
)
def test_a_step_computes_each_function_once_per_item_and_view(
    monkeypatch, kept, algorithm, shared, cost
):
    monkeypatch.setattr(semi_supervised, "_MAX_KEPT_BYTES", kept)
    X, s, qid, *_ = problem(0, n=7)
    Xbar = np.random.default_rng(1).normal(size=(50, 4))
    entries = []
    for n_basis in (2, 5):
        kernel = CountedKernel()
        model = SemiSupervisedRankingPursuit(
            [[0], [1, 2]],
            n_basis,
            shared_index=shared,
            algorithm=algorithm,
            kernel=kernel,
        )
        model.fit(X, s, qid, Xbar, np.arange(50) // 5)
        assert len(model.basis_) == n_basis
        entries.append(kernel.entries)
    assert entries[1] - entries[0] == 3 * 2 * cost(7, 50)


@pytest.mark.parametrize("shared", [True, False])
def test_values_that_are_not_kept_change_nothing(monkeypatch, shared):
    X, s, qid, Xbar, other = problem(7, n=15, n_unscored=40)
    model = SemiSupervisedRankingPursuit(TWO, 6, shared_index=shared).fit(
        X, s, qid, Xbar, other
    )
    monkeypatch.setattr(semi_supervised, "_MAX_KEPT_BYTES", 0)
    again = clone(model).fit(X, s, qid, Xbar, other)
    assert again.basis_.tolist() == model.basis_.tolist()
    assert again.coefs_ == pytest.approx(model.coefs_)


# ---- Invariances

seeds = st.integers(0, 300)
algorithms = st.sampled_from(["corrected", "printed"])


@given(seeds, algorithms, st.floats(-1e3, 1e3), st.floats(0.1, 1e3))
def test_a_shift_of_scores_changes_nothing_and_a_scale_scales(
    seed, algorithm, shift, scale
):
    X, s, qid, Xbar, other = problem(seed)
    one = SemiSupervisedRankingPursuit(TWO, 3, algorithm=algorithm, gamma=GAMMA)
    one.fit(X, s, qid, Xbar, other)
    again = clone(one).fit(X, scale * s + shift * (1 + qid), qid, Xbar, other)
    assert again.basis_.tolist() == one.basis_.tolist()
    assert again.coefs_ == pytest.approx(scale * one.coefs_, rel=1e-6)


def test_wide_kernels_keep_their_digits():
    """As gamma tends to 0, (k - 1) / gamma tends to -|x - x'|², and so do the choices
    and score differences."""
    X, s, qid, Xbar, other = problem(9)
    models = [
        SemiSupervisedRankingPursuit(TWO, 4, gamma=gamma).fit(X, s, qid, Xbar, other)
        for gamma in (1e-7, 1e-13)
    ]
    pairs = Pairs(Xbar, [[i, i + 1] for i in range(12)])
    first, second = (model.decision_function(pairs) for model in models)
    assert models[0].basis_.tolist() == models[1].basis_.tolist()
    assert first == pytest.approx(second, rel=1e-4, abs=1e-6)
    assert models[0].objectives_ == pytest.approx(models[1].objectives_, rel=1e-5)


# ---- The estimator


def test_views_by_columns_masks_and_slices():
    X, s, qid, Xbar, other = problem(10)
    masks = (slice(0, 2), np.array([False, False, True, True]))
    one, again = (
        SemiSupervisedRankingPursuit(v, 4).fit(X, s, qid, Xbar, other)
        for v in (TWO, masks)
    )
    assert one.basis_.tolist() == again.basis_.tolist()


def test_scale_is_that_of_the_columns_of_a_view():
    X, s, *_ = problem(11)
    X[:, 2:] *= 1000
    model = SemiSupervisedRankingPursuit(TWO, 4, 0.0).fit(X, s)
    X[:, 2:] /= 1000
    assert SemiSupervisedRankingPursuit(TWO, 4, 0.0).fit(X, s).coefs_ == pytest.approx(
        model.coefs_
    )


@pytest.mark.parametrize(
    ("parameters", "data", "message"),
    [
        ({"nu": -1}, {}, "nu is -1"),
        ({"algorithm": "other"}, {}, "algorithm is 'other'"),
        ({"shared_index": 1}, {}, "shared_index is 1"),
        ({"views": []}, {}, "views is"),
        ({"views": "rbf"}, {}, "views is 'rbf'"),
        ({"views": [[0], [4]]}, {}, r"views\[1\] is \[4\].* 3"),
        ({"views": [[0], slice(9, 9)]}, {}, r"views\[1\]"),
        ({"views": [[0.5]]}, {}, r"views\[0\]"),
        ({"kernel": "linear"}, {"X": 1e90 * problem(0)[0]}, "view 0"),
        ({}, {"y": 1e-160 * problem(0)[1]}, "scores y"),
        ({"views": [[0], [1, 2]], "kernel": "precomputed"}, {}, r"\[1, 2\]"),
        ({"views": [[0], [1]] * 4, "shared_index": False}, {}, "shared_index=True"),
        ({}, {"X_unscored": [[1.0]]}, r"X_unscored.*\(1, 1\)"),
        ({}, {"X_unscored": np.zeros((2, 4)), "qid_unscored": [0, 1]}, "unscored"),
        ({}, {"X_unscored": None, "qid_unscored": [0, 1]}, "X_unscored"),
    ],
)
def test_bad_input_is_named(parameters, data, message):
    X, s, _, Xbar, _ = problem(0)
    model = SemiSupervisedRankingPursuit(**{"views": TWO, **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(**{"X": X, "y": s, "X_unscored": Xbar, **data})
