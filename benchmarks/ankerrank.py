"""Time AnKer-rank from data to ranking against a plain scikit-learn pipeline.

Both programs normalize the features and compute the Gram matrix of all training pairs.
They choose C by 2-fold cross-validation, repeated three times, fit, calibrate the
decision values out of fold, and rank the hotels of the other city. `AnKerRank` chooses
C on the whole path. The plain pipeline computes the kernel with NumPy and uses a grid
of 13 values of C. The script needs the data sets H1 and H2.

python benchmarks/ankerrank.py           also from Frankfurt to Düsseldorf, several minutes
python benchmarks/ankerrank.py --quick   from Düsseldorf to Frankfurt
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from _measure import markdown_table, peak_megabytes, script_parser
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedKFold,
    cross_val_predict,
)
from sklearn.svm import SVC

from preflearn.analogy import AnKerRank, DomainScaler
from preflearn.datasets import load_object_ranking
from preflearn.metrics import ranking_loss
from preflearn.ranking.base import positions

COSTS = np.logspace(-3, 3, 13)
ROWS = 16  # rows of the NumPy formula at a time


def broadcast_gram(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Eq. 9 as written, a few rows at a time."""
    K = np.empty((len(U), len(V)))
    for start in range(0, len(U), ROWS):
        part = U[start : start + ROWS, None]
        K[start : start + ROWS] = (
            np.where(np.sign(part) == np.sign(V), 1 - np.abs(part - V), 0).mean(axis=2)
            ** 2
        )
    return K


def plain(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """AnKer-rank with NumPy and scikit-learn. Row sums and Bradley-Terry scores have
    the same order."""
    first, second = np.triu_indices(len(X), 1)
    apart = y[first] != y[second]
    first = first[apart]
    second = second[apart]
    coins = np.random.default_rng(0).choice([-1, 1], len(first))
    U = (X[first] - X[second]) * (coins * np.where(y[first] > y[second], 1, -1))[
        :, None
    ]
    K = broadcast_gram(U, U)
    cv = RepeatedKFold(n_splits=2, n_repeats=3, random_state=0)
    search = GridSearchCV(SVC(kernel="precomputed"), {"C": COSTS}, cv=cv).fit(K, coins)
    halves = KFold(2, shuffle=True, random_state=0)
    f = cross_val_predict(
        search.best_estimator_, K, coins, cv=halves, method="decision_function"
    )
    scale = LogisticRegression(C=np.inf).fit(np.reshape(f, (-1, 1)), coins)
    first, second = np.triu_indices(len(Q), 1)
    P = np.zeros((len(Q), len(Q)))
    chances = []
    for V in (Q[first] - Q[second], Q[second] - Q[first]):
        decided = np.concatenate(
            [
                search.decision_function(broadcast_gram(V[start : start + 500], U))
                for start in range(0, len(V), 500)
            ]
        )
        chances.append(scale.predict_proba(decided[:, None])[:, 1])
    P[first, second] = (1 + chances[0] - chances[1]) / 2
    P[second, first] = 1 - P[first, second]
    return positions(P.sum(axis=1))


def ours(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    return AnKerRank(random_state=0).fit(X, y).rank(Q)


METHODS = {"ours": ours, "plain": plain}


def prepared(method: str, train: str, test: str) -> Callable[[], np.ndarray]:
    """A call without arguments that runs a method from one city to the other.

    All code is compiled before.
    """
    source = load_object_ranking(train)
    target = load_object_ranking(test)
    rng = np.random.default_rng(0)
    # Load compiled code.
    ours(rng.uniform(size=(60, 28)), np.arange(60), rng.uniform(size=(5, 28)))

    def call() -> np.ndarray:
        X, Q = DomainScaler().fit(source.X).both(target.X)
        return METHODS[method](X, source.y, Q)

    return call


def measured(method: str, train: str, test: str, repeats: int) -> list[object]:
    """One row of the table: seconds (median), peak memory of a fresh process, loss."""
    call = prepared(method, train, test)
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        predicted = call()
        seconds.append(time.perf_counter() - start)
    loss = ranking_loss(-load_object_ranking(test).y, predicted)
    row = [
        f"{train} to {test}",
        method,
        float(np.median(seconds)),
        peak_megabytes(prepared, method, train, test),
        loss,
    ]
    print(*row, flush=True)
    return row


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="from the smaller set to the larger one only",
    )
    towns = (
        [("H1", "H2")] if parser.parse_args().quick else [("H1", "H2"), ("H2", "H1")]
    )
    rows = [
        measured(method, *pair, 3 if method == "ours" else 1)
        for pair in towns
        for method in METHODS
    ]
    print(markdown_table(["task", "method", "seconds", "peak MB", "loss"], rows))


if __name__ == "__main__":
    main()
