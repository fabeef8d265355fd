"""Time ranking pursuit and RankRLS against textbook versions with a dense Laplacian.

python benchmarks/pursuit.py
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from _measure import alternate, markdown_table, peak_megabytes, script_parser
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.pursuit import RLS, RankingPursuit, RankRLS
from preflearn.pursuit.quadratic_forms import QueryForm

P_FEATURES = 20
PER_QUERY = 100
GAMMA = 0.05


def problem(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n items of 20 features in queries of 100."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, P_FEATURES))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=n)
    return X, y, np.arange(n) // PER_QUERY


def dense_laplacian(qid: np.ndarray) -> np.ndarray:
    """The Laplacian L of all item pairs within a query."""
    same = np.equal.outer(qid, qid).astype(float)
    return np.diag(same.sum(axis=1)) - same


# ---- Pursuit


def textbook(
    K: np.ndarray, L: np.ndarray, s: np.ndarray, n_basis: int
) -> tuple[list[int], np.ndarray]:
    """Figure 1 with back-fitting, vectorized.

    L is dense, and K'L and diag(K'LK) are computed once.
    """
    KL = K.T @ L
    squares = np.einsum("ij,ji->i", KL, K)
    r = s
    chosen = []
    a = np.zeros(0)
    for _ in range(n_basis):
        decreases = np.square(KL @ r) / squares
        decreases[chosen] = 0
        chosen.append(int(np.argmax(decreases)))
        part = KL[chosen]
        a = cho_solve(cho_factor(part @ K[:, chosen]), part @ s)
        r = s - K[:, chosen] @ a
    return chosen, a


def run_textbook(n: int, n_basis: int) -> tuple[list[int], np.ndarray]:
    X, y, qid = problem(n)
    return textbook(rbf_kernel(X, gamma=GAMMA), dense_laplacian(qid), y, n_basis)


def run_ours(n: int, n_basis: int) -> RankingPursuit:
    X, y, qid = problem(n)
    return RankingPursuit(n_basis, gamma=GAMMA).fit(X, y, qid)


def against_textbook(repeats: int) -> None:
    rows = []
    for n in (200, 1000, 2000):
        calls = [
            partial(run, n, p) for p in (1, 100) for run in (run_ours, run_textbook)
        ]
        ours_1, book_1, ours, book = alternate(calls, repeats)
        same = run_ours(n, 100).basis_.tolist() == run_textbook(n, 100)[0]
        memory = [
            peak_megabytes(partial, run, n, 100) for run in (run_ours, run_textbook)
        ]
        rows.append(
            [
                n,
                ours_1,
                book_1,
                ours - ours_1,
                book - book_1,
                ours / book,
                same,
                *memory,
            ]
        )
    header = [
        "n",
        "ours: set-up and one step",
        "textbook",
        "99 steps: ours s",
        "textbook s",
        "whole: ratio",
    ]
    print(markdown_table([*header, "same choices", "ours MB", "textbook MB"], rows))


# ---- RankRLS


def dense_rankrls(
    X: np.ndarray, y: np.ndarray, qid: np.ndarray, alpha: float
) -> np.ndarray:
    """Solve (LK + alpha I) a = Ls with a dense L."""
    L = dense_laplacian(qid)
    K = rbf_kernel(X, gamma=GAMMA)
    return K @ np.linalg.solve(L @ K + alpha * np.eye(len(K)), L @ y)


def rls(repeats: int) -> None:
    rows = []
    for n in (500, 2000):
        X, y, qid = problem(n)
        calls = [
            partial(RankRLS(100.0, gamma=GAMMA).fit, X, y, qid),
            partial(dense_rankrls, X, y, qid, 100.0),
        ]
        ours, theirs = alternate(calls, repeats)
        apart = calls[1]() - calls[0]().rank_function(X)
        spread = np.abs(QueryForm(qid).centred(apart)).max()
        rows.append([n, ours, theirs, ours / theirs, f"{spread:.0e}"])
    header = ["n", "ours s", "dense algebra s", "ours / dense"]
    print(markdown_table([*header, "difference of scores"], rows))


# ---- One alpha of a linear kernel


def linear(repeats: int) -> None:
    """RLS against Ridge, for dense and for sparse items."""
    rng = np.random.default_rng(0)
    sparse_items = sparse.random_array(
        (2000, 5000), density=0.002, rng=rng, format="csr"
    )
    rows = []
    cases: list[tuple[Any, str]] = [
        (rng.normal(size=(500, 150)), "cholesky"),
        (rng.normal(size=(5000, 1500)), "cholesky"),
        (sparse_items, "sparse_cg"),
    ]
    for X, solver in cases:
        y = X @ rng.normal(size=X.shape[1]) + 0.1 * rng.normal(size=X.shape[0])
        ridge = Ridge(alpha=1.0, fit_intercept=False, solver=solver, tol=1e-10)
        calls = [partial(RLS(1.0, "linear").fit, X, y), partial(ridge.fit, X, y)]
        ours, theirs = alternate(calls, repeats)
        fits: list[Any] = [call() for call in calls]
        apart = fits[0].rank_function(X) - fits[1].predict(X)
        spread = f"{np.abs(apart).max():.0e}"
        rows.append([*X.shape, solver, ours, theirs, ours / theirs, spread])
    header = ["n", "p", "solver of Ridge", "ours s", "Ridge s", "ours / Ridge"]
    print(markdown_table([*header, "difference of scores"], rows))


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    run_ours(300, 3)  # Compile before timing.
    against_textbook(repeats)
    rls(repeats)
    linear(repeats)


if __name__ == "__main__":
    main()
