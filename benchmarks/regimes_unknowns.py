"""Time static models by their number of unknowns: features of a linear kernel, or players.

    python benchmarks/regimes_unknowns.py            # about two minutes
    python benchmarks/regimes_unknowns.py --quick    # the smaller sizes

Each method has a reference implementation, which runs in the same process. The times are
processor seconds of one thread without the data, the best of three runs after a warm-up.
`excess` is the accuracy of the reference: the relative difference of its objective from
ours. For bradley_terry, it is the largest gradient entry of the reference and of ours.
For least squares, it is the largest difference of scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from _measure import markdown_table, peak_megabytes, processor_seconds, script_parser
from regimes_losses import problem as compared
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

from preflearn.core.outcome_losses import LINKS, davidson_loss, ordinal_loss
from preflearn.pairs import Pairs
from preflearn.pursuit import RLS, RankRLS
from preflearn.ranking import Davidson, OrdinalComparison, bradley_terry

Call = Callable[[], Any]
# data, preflearn, reference
Line = tuple[str, str, Call, Call, str, Call, Callable[[Any, Any], str]]


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """The minimum processor time of three calls after a warm-up, and the last result."""
    call()
    return processor_seconds(call, 3)


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
    """For one query, the loss of RankRLS is n times the loss of centered scores."""
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
    """Newton-CG of SciPy with products of the sparse Hessian."""
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
    """The same objective on the incidence matrix B, which suffices for one-hot players.

    A positive threshold is represented by its logarithm.
    """
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


def prepared(data: Callable[[], Any], call: Callable[[], Any]) -> Callable[[], Any]:
    data()  # is kept
    return call


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="the smaller sizes")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")  # of the references
    header = [
        "method",
        "size",
        "ours s",
        "other program",
        "other s",
        "ours / other",
        "excess",
        "ours MB",
        "other MB",
    ]
    print(markdown_table(header, []))
    with threadpool_limits(1):
        for name, size, data, ours, program, theirs, accuracy in lines(quick):
            (seconds, found), (other, reached) = timed(ours), timed(theirs)
            memory = [peak_megabytes(prepared, data, call) for call in (ours, theirs)]
            row = [
                name,
                size,
                seconds,
                program,
                other,
                seconds / other,
                accuracy(found, reached),
                *memory,
            ]
            print(markdown_table(row, []).splitlines()[0], flush=True)


if __name__ == "__main__":
    main()
