"""Static models by their unknowns: features of a linear kernel, players, pairs,
functions; with a peer each.

    python benchmarks/regimes_unknowns.py            # some two minutes
    python benchmarks/regimes_unknowns.py --quick    # the smaller sizes

One thread, processor seconds without those of the data, the best of three after one, in
one run. `excess` says how accurate the peer is: by how much its objective is above
ours, for bradley_terry the largest entry of its gradient and of ours, for least squares
the largest difference of scores.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from _measure import markdown_table, peak_megabytes
from regimes_losses import problem as compared
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.linear_model import Ridge, orthogonal_mp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits

from preflearn.core.outcome_losses import LINKS, davidson_loss, ordinal_loss
from preflearn.pairs import Pairs
from preflearn.pursuit import RLS, RankingPursuit, RankRLS
from preflearn.ranking import Davidson, OrdinalComparison, bradley_terry
from preflearn.svm import SVMCompare, SVMRank

Call = Callable[[], Any]
# data, ours, the peer
Line = tuple[str, str, Call, Call, str, Call, Callable[[Any, Any], str]]


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """The least processor time of three calls, and the last result."""
    taken = []
    result = call()
    for _ in range(3):
        start = time.process_time()
        result = call()
        taken.append(time.process_time() - start)
    return min(taken), result


# ---- p unknowns of a linear kernel


@cache
def scored(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, X @ rng.normal(size=p) + rng.normal(size=n)


def ours_of_scores(kind: str, n: int, p: int) -> np.ndarray:
    X, y = scored(n, p)
    model = (RankRLS if kind == "RankRLS" else RLS)(float(n), "linear").fit(X, y)
    return model.rank_function(X)


def ridge(kind: str, n: int, p: int) -> np.ndarray:
    """Of one query the loss of RankRLS is n times that of centred scores."""
    X, y = scored(n, p)
    ranking = kind == "RankRLS"
    return (
        Ridge(1.0 if ranking else n, fit_intercept=ranking, solver="cholesky")
        .fit(X, y)
        .predict(X)
    )


def apart(ours: np.ndarray, theirs: np.ndarray) -> str:
    return f"{np.abs(ours - ours.mean() - theirs + theirs.mean()).max():.0e}"


# ---- Players


@cache
def wins(n: int, m: int) -> sparse.csr_array:
    rng = np.random.default_rng(0)
    worths = rng.normal(size=n)
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    won = rng.random(m) < expit(worths[first] - worths[second])
    index = np.where(won, (first, second), (second, first))
    return sparse.csr_array((np.ones(m), index), shape=(n, n))


def ours_of_wins(n: int, m: int, dense: bool) -> np.ndarray:
    P = wins(n, m)
    return bradley_terry(P.toarray() if dense else P)


def slope(P: sparse.csr_array, worths: np.ndarray) -> np.ndarray:
    counts = P.tocoo()
    i = counts.row
    j = counts.col
    behind = counts.data * expit(worths[j] - worths[i])
    return np.bincount(i, behind, len(worths)) - np.bincount(j, behind, len(worths))


def newton_cg(n: int, m: int) -> np.ndarray:
    """SciPy's Newton-CG with products of the sparse Hessian."""
    counts = wins(n, m).tocoo()
    i = counts.row
    j = counts.col
    c = counts.data
    B = sparse.csr_array((np.ones(len(c)), (np.arange(len(c)), i)), shape=(len(c), n))
    B = (
        B
        - sparse.csr_array((np.ones(len(c)), (np.arange(len(c)), j)), shape=(len(c), n))
    ).tocsr()
    adjoint = B.T.tocsr()

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        d = B @ w
        return -float(c @ log_expit(d)), -(adjoint @ (c * expit(-d)))

    def product(w: np.ndarray, v: np.ndarray) -> np.ndarray:
        d = B @ w
        return adjoint @ (c * expit(d) * expit(-d) * (B @ v))

    return minimize(
        loss,
        np.zeros(n),
        jac=True,
        hessp=product,
        method="Newton-CG",
        options={"xtol": 1e-9},
    ).x


def gradients(n: int, m: int, ours: np.ndarray, theirs: np.ndarray) -> str:
    P = wins(n, m)
    return " and ".join(
        f"{np.abs(slope(P, worths)).max():.0e}" for worths in (theirs, ours)
    )


@lru_cache(1)
def one_hot(n: int) -> tuple[Pairs, np.ndarray]:
    return compared(100_000, n, 0)


def ties(kind: str, alpha: float, n: int) -> float:
    model = Davidson(alpha) if kind == "Davidson" else OrdinalComparison(alpha=alpha)
    return model.fit(*one_hot(n)).objective_


def lbfgs(kind: str, alpha: float, n: int) -> float:
    """The same objective on B, all that one-hot players need; of a positive threshold
    the logarithm."""
    pairs, y = one_hot(n)
    B = pairs.incidence()
    adjoint = B.T.tocsr()

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        w = x[:-1]
        t = x[-1] if kind == "Davidson" else np.exp(x[-1])
        if kind == "Davidson":
            found = davidson_loss(B @ w, t, y)
            chain = 1.0
        else:
            found = ordinal_loss(B @ w, t, y, LINKS["logit"])
            chain = t
        gradient = np.append(adjoint @ found.d + alpha * w, found.t.sum() * chain)
        return float(found.value.sum() + alpha / 2 * (w @ w)), gradient

    options = {"maxiter": 3000, "maxfun": 5000, "ftol": 1e-13, "gtol": 1e-9}
    return minimize(
        objective, np.zeros(n + 1), jac=True, method="L-BFGS-B", options=options
    ).fun


def above(ours: float, theirs: float) -> str:
    return f"{theirs / ours - 1:.0e}"


# ---- Pairs


@cache
def preferences(m: int, p: int) -> tuple[Pairs, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m // 4, p))
    n = m // 4
    first = rng.integers(0, n, m)
    pairs = Pairs(X, np.column_stack([first, (first + rng.integers(1, n, m)) % n]))
    d = pairs.B.differences(X @ rng.normal(size=p))
    return pairs, np.where(d + 0.5 * np.abs(d).mean() * rng.normal(size=m) > 0, 1, -1)


def hinges(u: np.ndarray, m: int, p: int) -> float:
    pairs, y = preferences(m, p)
    return u @ u / 2 + 0.1 * np.maximum(0, 1 - y * (pairs.differences() @ u)).sum()


def ours_linear(m: int, p: int) -> float:
    return hinges(SVMRank(0.1, "linear").fit(*preferences(m, p)).coef_, m, p)


def linear_svc(m: int, p: int) -> float:
    """On differences, half of them turned: it wants two classes, and has no intercept."""
    pairs, y = preferences(m, p)
    turn = np.where(np.arange(m) % 2, 1, -1)
    machine = LinearSVC(
        C=0.1, loss="hinge", fit_intercept=False, tol=1e-4, max_iter=10_000
    )
    return hinges(
        machine.fit(pairs.differences() * (turn * y)[:, None], turn).coef_[0], m, p
    )


@cache
def used_once(m: int) -> tuple[Pairs, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * m, 10))
    pairs = Pairs(X, np.arange(2 * m).reshape(m, 2))
    d = pairs.B.differences(
        np.sin(X @ rng.normal(size=10)) + X[:, 0]
    ) + 0.3 * rng.normal(size=m)
    return pairs, np.where(
        np.abs(d) < np.quantile(np.abs(d), 0.4), 0, np.sign(d)
    ).astype(np.int8)


def ours_once(m: int) -> float:
    return SVMCompare(10.0, gamma=0.1).fit(*used_once(m)).objective_


def libsvm(m: int) -> float:
    pairs, labels = (given := used_once(m))[0].flipped(given[1])
    K = rbf_kernel(pairs.items, gamma=0.1)
    (first, second) = pairs.index.T
    rows = K[first] - K[second]
    Q = rows[:, first] - rows[:, second]
    machine = SVC(C=10.0, kernel="precomputed", tol=1e-6, cache_size=1000).fit(
        Q, labels
    )
    weights = np.zeros(len(labels))
    weights[machine.support_] = machine.dual_coef_[0]
    z = Q @ weights
    return float(
        weights @ z / 2
        + 10 * np.maximum(0, 1 - labels * (z + machine.intercept_[0])).sum()
    )


# ---- Functions


@cache
def functions(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    K = rng.normal(size=(n, n))
    return K / np.linalg.norm(K, axis=0), rng.normal(size=n)


def pursuit(n: int) -> float:
    return RankingPursuit(10, "precomputed", mix=1.0).fit(*functions(n)).losses_[-1]


def omp(n: int) -> float:
    K, y = functions(n)
    return float(np.square(y - K @ orthogonal_mp(K, y, n_nonzero_coefs=10)).sum())


def lines(quick: bool) -> Iterator[Line]:
    for n in (1000,) if quick else (1000, 8000):
        for kind in ("RankRLS", "RLS"):
            call = (
                partial(ours_of_scores, kind, n, 10),
                "Ridge, Cholesky",
                partial(ridge, kind, n, 10),
            )
            yield (
                f"{kind}, linear",
                f"{n} items, 10 features",
                partial(scored, n, 10),
                *call,
                apart,
            )
    for n in (1000,) if quick else (1000, 4000):
        for dense in (False, True):
            call = (
                partial(ours_of_wins, n, 50 * n, dense),
                "Newton-CG",
                partial(newton_cg, n, 50 * n),
            )
            name = f"bradley_terry, {'dense' if dense else 'sparse'}"
            yield (
                name,
                f"{n} players, {50 * n} matches",
                partial(wins, n, 50 * n),
                *call,
                partial(gradients, n, 50 * n),
            )
    for n in (2500,) if quick else (2500, 4000, 8000):
        for kind in ("Davidson", "OrdinalComparison"):
            for alpha in (1.0, 1e-3):
                call = (
                    partial(ties, kind, alpha, n),
                    "L-BFGS on B",
                    partial(lbfgs, kind, alpha, n),
                )
                yield (
                    f"{kind}, alpha {alpha:g}",
                    f"{n} players, 100000 matches",
                    partial(one_hot, n),
                    *call,
                    above,
                )
    for m, p in ((2000, 10), (10_000, 50)):
        call = partial(ours_linear, m, p), "LinearSVC", partial(linear_svc, m, p)
        yield (
            "SVMRank, linear, C = .1",
            f"{m} pairs, {p} features",
            partial(preferences, m, p),
            *call,
            above,
        )
    call = partial(ours_once, 1200), "libsvm, flipped Gram", partial(libsvm, 1200)
    yield (
        "SVMCompare, rbf, C = 10",
        "1200 pairs, each item once",
        partial(used_once, 1200),
        *call,
        above,
    )
    for n in (50, 300):
        call = partial(pursuit, n), "orthogonal_mp", partial(omp, n)
        yield (
            "RankingPursuit, mix 1, 10 functions",
            f"{n} items",
            partial(functions, n),
            *call,
            above,
        )


def prepared(data: Callable[[], Any], call: Callable[[], Any]) -> Callable[[], Any]:
    data()  # is kept
    return call


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the smaller sizes")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")  # of peers
    header = [
        "method",
        "size",
        "ours s",
        "peer",
        "peer s",
        "ours / peer",
        "excess",
        "ours MB",
        "peer MB",
    ]
    print(markdown_table(header, []))
    with threadpool_limits(1):
        for name, size, data, ours, peer, theirs, accuracy in lines(quick):
            (seconds, found), (other, reached) = timed(ours), timed(theirs)
            memory = [peak_megabytes(prepared, data, call) for call in (ours, theirs)]
            row = [
                name,
                size,
                seconds,
                peer,
                other,
                seconds / other,
                accuracy(found, reached),
                *memory,
            ]
            print(markdown_table(row, []).splitlines()[0], flush=True)


if __name__ == "__main__":
    main()
