"""Ranking pursuit, RankRLS and the semi-supervised pursuit: against textbook versions,
rlscore, and limits.

python benchmarks/pursuit.py                     pursuit against a textbook version at n = 2,000
python benchmarks/pursuit.py --large             n = 20,000, P = 100, against reading the kept values
python benchmarks/pursuit.py --growth            in n and P
python benchmarks/pursuit.py --rls [--rlscore FOLDER]     RankRLS against dense algebra and rlscore's
python benchmarks/pursuit.py --unscored          growth in unscored items, to 100,000
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np
from _measure import alternate, markdown_table, peak_megabytes
from _rlscore import query_rankrls
from scipy.linalg import cho_factor, cho_solve
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.pursuit import RankingPursuit, RankRLS, SemiSupervisedRankingPursuit
from preflearn.pursuit.quadratic_forms import QueryForm

P_FEATURES = 20
PER_QUERY = 100
GAMMA = 0.05


def problem(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n items of 20 features in queries of 100."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P_FEATURES))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=n)
    return X, y, np.arange(n) // PER_QUERY


def dense_laplacian(qid: np.ndarray) -> np.ndarray:
    """L of all pairs of items of one query."""
    same = np.equal.outer(qid, qid).astype(float)
    return np.diag(same.sum(axis=1)) - same


def measured(run: Callable, *arguments: object) -> tuple[float, float]:
    """Seconds of one run, and the MB by which memory grows in another one."""
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start, peak_megabytes(partial, run, *arguments)


# ---- Pursuit


def textbook(
    K: np.ndarray, L: np.ndarray, s: np.ndarray, n_basis: int
) -> tuple[list[int], np.ndarray]:
    """Figure 1 with back-fitting, L dense, K'L and diag(K'LK) computed once, all
    vectorised."""
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


def run_ours(n: int, n_basis: int, memory: float = 1e9) -> RankingPursuit:
    X, y, qid = problem(n)
    return RankingPursuit(n_basis, gamma=GAMMA, memory=memory).fit(X, y, qid)


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


def large(n: int = 20_000, n_basis: int = 100) -> None:
    first, _ = measured(run_ours, n, 1)
    whole, memory = measured(run_ours, n, n_basis)
    step = (whole - first) / (n_basis - 1)
    kept = np.ones((n // 2, n), dtype=np.float32)
    (reading,) = alternate([lambda: kept.sum(dtype=np.float32)], 5)
    header = [
        "n",
        "P",
        "whole s",
        "set-up and one step s",
        "a step s",
        "reading what is kept s",
    ]
    rows = [[n, n_basis, whole, first, step, reading, step / reading, memory]]
    print(markdown_table([*header, "ratio", "MB"], rows))


def growth() -> None:
    rows = [
        [n, p, *measured(run_ours, n, p)]
        for n in (2500, 5000, 10_000)
        for p in (25, 100)
    ]
    rows += [
        [f"10000, memory = {memory:g}", 25, *measured(run_ours, 10_000, 25, memory)]
        for memory in (1e9, 3e8, 0.0)
    ]
    print(markdown_table(["n", "P", "s", "MB"], rows))


# ---- RankRLS

ALPHAS = tuple(10.0**k for k in np.linspace(-3, 3, 20))


def dense_rankrls(
    X: np.ndarray, y: np.ndarray, qid: np.ndarray, alpha: float
) -> np.ndarray:
    """(LK + alpha I) a = Ls, with L dense."""
    L = dense_laplacian(qid)
    K = rbf_kernel(X, gamma=GAMMA)
    return K @ np.linalg.solve(L @ K + alpha * np.eye(len(K)), L @ y)


def rls(folder: str | None, repeats: int) -> None:
    rows = []
    for n in (500, 2000):
        X, y, qid = problem(n)
        held = problem(200, 1)
        one = partial(RankRLS(100.0, gamma=GAMMA).fit, X, y, qid)
        many = partial(RankRLS(ALPHAS, gamma=GAMMA).fit, X, y, qid, held)
        peers: dict[str, Callable[[], object]] = {
            "dense, one alpha": partial(dense_rankrls, X, y, qid, 100.0)
        }
        if folder:  # its L is I - 11'/q
            learner = partial(
                query_rankrls(folder), X, y, qid, kernel="GaussianKernel", gamma=GAMMA
            )
            peers["rlscore, one alpha"] = partial(learner, regparam=100.0 / PER_QUERY)
        for name, peer in peers.items():
            ours, theirs = alternate([one, peer], repeats)
            predicted = (
                np.asarray(peer())
                if name.startswith("dense")
                else np.ravel(learner(regparam=1.0).predict(X))
            )
            spread = np.abs(
                QueryForm(qid).centred(predicted - one().rank_function(X))
            ).max()
            rows.append([n, name, ours, theirs, ours / theirs, f"{spread:.0e}"])
        if folder:

            def solved(learner: Callable = learner) -> None:
                fitted = learner(regparam=1.0)
                for alpha in ALPHAS:
                    fitted.solve(alpha / PER_QUERY)

            ours, theirs = alternate([many, solved], repeats)
            rows.append([n, "rlscore, 20 alphas", ours, theirs, ours / theirs, "-"])
    print(
        markdown_table(
            ["n", "peer", "ours s", "peer s", "ours / peer", "scores differ by"], rows
        )
    )


# ---- Unscored items


def run_semi_supervised(
    n_unscored: int, n_basis: int = 20
) -> SemiSupervisedRankingPursuit:
    X, y, qid = problem(1000)
    more, _, more_qid = problem(n_unscored, 2)
    halves = [np.arange(10), np.arange(10, 20)]
    model = SemiSupervisedRankingPursuit(halves, n_basis, nu=0.1, gamma=GAMMA)
    return model.fit(X, y, qid, more, more_qid)


def unscored() -> None:
    sizes = (5000, 10_000, 25_000, 50_000, 100_000)
    rows = []
    for size in sizes:
        start = time.process_time()
        run_semi_supervised(size)
        taken = time.process_time() - start
        rows.append([size, taken, peak_megabytes(partial, run_semi_supervised, size)])
    print(markdown_table(["unscored items", "CPU s", "MB"], rows))
    # Up to some 16,000 items the values of the functions are kept; beyond, they are
    # computed at each step.
    times = [taken for _, taken, _ in rows]
    slope = np.polyfit(np.log(sizes[2:]), np.log(times[2:]), 1)[0]
    print(f"\nslope of log time against log size, from {sizes[2]:,} on: {slope:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    for name in ("large", "growth", "rls", "unscored"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--rlscore", help="the folder of rlscore's source")
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    run_ours(300, 3, 4 * 300 * 300)  # compiles
    if chosen.large:
        large()
    if chosen.growth:
        growth()
    if chosen.rls:
        rls(chosen.rlscore, chosen.repeats)
    if chosen.unscored:
        unscored()
    if not (chosen.large or chosen.growth or chosen.rls or chosen.unscored):
        against_textbook(chosen.repeats)


if __name__ == "__main__":
    main()
