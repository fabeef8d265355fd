"""Time static models against plain programs of 5 to 40 lines, which this script contains.

    python benchmarks/static_plain.py                    # all sizes
    python benchmarks/static_plain.py --quick            # without the largest size
    python benchmarks/static_plain.py votes ranks        # selected parts

The times are processor seconds of one thread, the minimum of three calls or of one long
call. The memory is the peak of a fresh process. `power` is the exponent with which the
time of preflearn grew since the previous size. `difference` is the largest difference
between the results.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _measure import markdown_table, peak_megabytes, processor_seconds, script_parser
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components
from scipy.special import expit
from threadpoolctl import threadpool_limits

from preflearn.ranking import Davidson, PlackettLuce, bradley_terry

Floats = NDArray[np.float64]
ALPHA = 1e-3
Call = Callable[[], Floats]


# ---- Votes: scores and standard errors of 200 items


def votes(m: int, n: int = 200) -> tuple[NDArray, NDArray, NDArray]:
    rng = np.random.default_rng(1)
    s = rng.normal(size=n)
    first = rng.integers(n, size=m)
    index = np.column_stack([first, (first + rng.integers(1, n, m)) % n])
    half = (s[index[:, 0]] - s[index[:, 1]]) / 2
    u = rng.random(m) * (np.exp(half) + 0.6 + np.exp(-half))
    y = (u > np.exp(-half)).astype(np.int8) + (u > np.exp(-half) + 0.6) - 1
    return index, y.astype(np.int8), rng.integers(10_000, size=m)


def plain_davidson(index: NDArray, y: NDArray, judge: NDArray | None = None) -> Floats:
    """Newton's method on the counts of (first, second, label), with sandwich errors."""
    n = int(index.max()) + 1
    code = (index[:, 0] * n + index[:, 1]) * 3 + y + 1
    counts = np.bincount(code, minlength=3 * n * n)
    kept = np.flatnonzero(counts)
    (i, j), label = np.divmod(kept // 3, n), kept % 3 - 1
    w = counts[kept]
    B = sparse.csr_array(
        (
            np.tile([1.0, -1.0], len(w)),
            (np.repeat(np.arange(len(w)), 2), np.ravel((i, j), "F")),
        )
    )
    x = np.zeros(n + 1)
    prior = np.append(np.full(n, ALPHA), 0.0)
    for _ in range(15):
        d, t = x[i] - x[j], x[n]
        p = np.exp([-d / 2, np.full(len(d), t), d / 2])
        p /= p.sum(axis=0)
        of_d = (p[2] - p[0] - label) / 2
        of_t = p[1] - (label == 0)
        dd = (p[2] + p[0] - (p[2] - p[0]) ** 2) / 4
        dt = -(p[2] - p[0]) / 2 * p[1]
        D = sparse.hstack([B, np.ones((len(w), 1))], format="csr")
        H = np.zeros((n + 1, n + 1))
        H[:n, :n] = (B.T @ (B * (w * dd)[:, None])).toarray()
        H[:n, n] = H[n, :n] = B.T @ (w * dt)
        H[n, n] = w @ (p[1] * (1 - p[1]))
        step = np.linalg.solve(
            H + np.diag(prior), np.append(B.T @ (w * of_d), w @ of_t) + prior * x
        )
        x -= step
        if np.abs(step).max() < 1e-10:
            break
    V = np.linalg.inv(H + np.diag(prior) + np.pad(np.full((n, n), 1.0), (0, 1)))
    C = np.eye(n) - 1 / n
    if judge is None:
        return np.sqrt(np.diag(C @ V[:n, :n] @ C))
    place = np.empty(3 * n * n, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    J = int(judge.max()) + 1
    table = sparse.csr_array((np.ones(len(y)), (judge, place[code])), shape=(J, len(w)))
    D = sparse.hstack([B * of_d[:, None], of_t[:, None]], format="csr")
    summed: Any = table @ D
    GV = summed.toarray() @ V[:, :n] @ C
    W = V[:n, :n] @ C
    return np.sqrt(np.diag(J / (J - 1) * GV.T @ GV + ALPHA * W.T @ W))


def votes_call(method: str, m: int) -> Call:
    index, y, judge = votes(m)
    cluster = judge if "judges" in method else None
    if method.startswith("plain"):
        return lambda: plain_davidson(index, y, cluster)
    return lambda: Davidson(ALPHA).fit(index, y, cluster=cluster).standard_errors()


# ---- Rankings of unequal lengths: worths and standard errors


def rankings(n: int) -> list[list[int]]:
    """Short rankings, and one ranking of a quarter of the items."""
    rng = np.random.default_rng(0)
    short = [rng.choice(n, 3, replace=False).tolist() for _ in range(5 * n)]
    return [*short, rng.choice(n, max(4, n // 4), replace=False).tolist()]


def plain_plackett_luce(rows: list[list[int]], n: int) -> Floats:
    """L-BFGS for the worths, on compressed rows."""
    item = np.concatenate(rows)
    ends = np.cumsum([len(row) for row in rows])
    chosen = np.ones(len(item), dtype=bool)
    chosen[ends - 1] = False  # The last item is not chosen.
    wins = np.bincount(item[chosen], minlength=n)
    row = np.repeat(np.arange(len(rows)), np.diff(ends, prepend=0))

    def loss(theta: Floats) -> tuple[float, Floats]:
        worth = np.exp(theta[item])
        total = np.cumsum(worth)
        left = total[ends - 1][row] - total + worth  # of the items not yet chosen
        sums = np.cumsum(np.where(chosen, 1 / left, 0.0))
        share = worth * (sums - np.append(0.0, sums[ends[:-1] - 1])[row])
        value = np.log(left[chosen]).sum() - wins @ theta + ALPHA / 2 * theta @ theta
        return value, np.bincount(item, share, n) - wins + ALPHA * theta

    options = {"maxiter": 10_000, "ftol": 0.0, "gtol": 1e-9 * len(rows)}
    return minimize(loss, np.zeros(n), jac=True, method="L-BFGS-B", options=options).x


def rankings_call(method: str, n: int) -> Call:
    rows = rankings(n)
    if method.startswith("plain"):
        return lambda: plain_plackett_luce(rows, n)
    if "errors" in method:
        return lambda: PlackettLuce(0.1).fit(rows).standard_errors()
    return lambda: PlackettLuce(ALPHA).fit(rows).coef_


# ---- Quasi-variances and ranks of a fit


def league(n: int, games: int = 20) -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(0)
    s = rng.normal(size=n)
    first = rng.integers(n, size=games * n)
    index = np.column_stack([first, (first + rng.integers(1, n, games * n)) % n])
    p = expit(s[index[:, 0]] - s[index[:, 1]])
    return index, np.where(rng.random(len(p)) < p, 1, -1)


def plain_quasi_variances(covariance: Floats) -> Floats:
    """Gauss-Newton steps with dense equations."""
    own = np.diag(covariance)
    logs = np.log(own[:, None] + own - 2 * covariance + np.eye(len(own)))
    q = own.copy()
    for _ in range(50):
        total = q[:, None] + q
        u = (1 - np.eye(len(q))) / total
        gradient = (u * (np.log(total) - logs)).sum(axis=1)
        A = u * u
        step = linalg.solve(A + np.diag(A.sum(axis=1)), gradient, assume_a="pos")
        q -= step
        if np.abs(step).max() < 1e-11 * np.abs(q).max():
            break
    return q


def quasi_call(method: str, n: int) -> Call:
    model = Davidson(0.1).fit(*league(n))
    # Both programs need the covariance, and the model keeps it.
    covariance = model._covariance()[1]
    if method.startswith("plain"):
        return lambda: plain_quasi_variances(covariance)
    return model.quasi_variances


def plain_ranks(scores: Floats, covariance: Floats, n_draws: int = 10_000) -> Floats:
    """Ranks of 256 draws at a time, and the quantiles of the sorted ranks."""
    n = len(scores)
    root = np.linalg.cholesky(covariance + 1 / n)  # A constant does not change ranks.
    rng = np.random.default_rng(0)
    drawn = np.empty((n, n_draws), dtype=np.int16)
    for k in range(0, n_draws, 256):
        draws = scores + rng.standard_normal((min(256, n_draws - k), n)) @ root.T
        rank = np.empty(draws.shape, dtype=np.int16)
        order = np.argsort(-draws, axis=1)
        np.put_along_axis(rank, order, np.arange(1, n + 1, dtype=np.int16)[None], 1)
        drawn[:, k : k + 256] = rank.T
    drawn.sort(axis=1)
    ends = [drawn[:, int(p * n_draws)] for p in (0.025, 0.975)]
    return np.array(ends, dtype=np.float64)


def ranks_call(method: str, n: int) -> Call:
    model = Davidson(0.1).fit(*league(n))
    scores, covariance = model._covariance()
    if method.startswith("plain"):
        return lambda: plain_ranks(scores, covariance)
    return lambda: np.array(model.ranks()[1:], dtype=np.float64)


# ---- Standard errors of 100 pairs of many items


def plain_errors(index: NDArray, y: NDArray, w: Floats, pairs: NDArray) -> Floats:
    """Conjugate gradients for all pairs at once, with the sparse Hessian."""
    n = len(w)
    d = w[index[:, 0]] - w[index[:, 1]]
    p = expit(d) * expit(-d)
    off = sparse.coo_array((p, tuple(index.T)), shape=(n, n)).tocsr()
    off = off + off.T
    diagonal = off.sum(axis=1) + ALPHA
    H = sparse.diags_array(diagonal) - off
    b = np.zeros((n, len(pairs)))
    b[pairs[:, 0], np.arange(len(pairs))] = 1.0
    b[pairs[:, 1], np.arange(len(pairs))] -= 1.0
    x, r = np.zeros_like(b), b.copy()
    z = r / diagonal[:, None]
    v, size = z.copy(), (r * z).sum(axis=0)
    while np.linalg.norm(r, axis=0).max() > 1e-6 * math.sqrt(2):
        image = H @ v
        length = size / (v * image).sum(axis=0)
        x += length * v
        r -= length * image
        z = r / diagonal[:, None]
        size, before = (r * z).sum(axis=0), size
        v = z + size / before * v
    return np.sqrt((x * b).sum(axis=0))


def pairs_call(method: str, n: int) -> Call:
    index, y = league(n)
    pairs = np.random.default_rng(1).permutation(n)[:200].reshape(100, 2)
    model = Davidson(ALPHA).fit(index, y)
    if method.startswith("plain"):
        return lambda: plain_errors(index, y, model.coef_, pairs)
    return lambda: model.standard_errors(pairs)


# ---- One unbeaten player


def unbeaten_counts(n: int) -> Any:
    index, y = league(n)
    wins = np.where(y[:, None] > 0, index, index[:, ::-1])
    wins = wins[wins[:, 1] != 0]
    return sparse.csr_array((np.ones(len(wins)), tuple(wins.T)), shape=(n, n))


def plain_bradley_terry(P: Any) -> Floats:
    """Newton's method for the largest component. Other scores are infinite."""
    part = connected_components(P, connection="strong")[1]
    members = np.flatnonzero(part == np.bincount(part).argmax())
    Q = P[members][:, members]
    n = len(members)
    both = (Q + Q.T).tocoo()
    i, j = both.coords
    s, wins = np.zeros(n), np.asarray(Q.sum(axis=1)).ravel()
    for _ in range(50):
        p = expit(s[i] - s[j])
        gradient = wins - np.bincount(i, both.data * p, n)
        off = sparse.csr_array((both.data * p * (1 - p), (i, j)), shape=(n, n))
        H = sparse.diags_array(off.sum(axis=1) + 1e-9) - off
        step = sparse.linalg.cg(
            H, gradient, rtol=1e-4, M=sparse.diags_array(1 / H.diagonal())
        )[0]
        s += step
        if np.abs(step).max() < 1e-9:
            break
    result = np.full(P.shape[0], np.inf)
    result[members] = s - s.mean()
    return result


def unbeaten_call(method: str, n: int) -> Call:
    P = unbeaten_counts(n)
    if method.startswith("plain"):
        return lambda: plain_bradley_terry(P)

    beaten = np.isfinite(plain_bradley_terry(P))

    def ours() -> Floats:
        worths = bradley_terry(P)
        return np.where(beaten, worths - worths[beaten].mean(), np.inf)

    return ours


# ---- Tables

# a call by method and size; the methods, preflearn first; the sizes
PARTS: dict[str, tuple[Callable[[str, int], Call], list[str], list[int]]] = {
    "votes": (votes_call, ["Davidson", "plain"], [10**4, 10**5, 10**6, 10**7]),
    "judges": (votes_call, ["Davidson, judges", "plain, judges"], [10**5, 10**6]),
    "rankings": (
        rankings_call,
        ["PlackettLuce", "PlackettLuce, errors", "plain"],
        [20, 200, 2_000],
    ),
    "quasi-variances": (quasi_call, ["quasi_variances", "plain"], [30, 300, 3_000]),
    "ranks": (ranks_call, ["ranks", "plain"], [40, 400, 4_000]),
    "pairs": (pairs_call, ["standard_errors", "plain"], [10**3, 10**4, 10**5]),
    "unbeaten": (unbeaten_call, ["bradley_terry", "plain"], [200, 2_000, 20_000]),
}


def lines(part: str, quick: bool) -> list[list[object]]:
    make, methods, sizes = PARTS[part]
    table: list[list[object]] = []
    last = 0.0
    for k, size in enumerate(sizes[: -1 if quick else None]):
        results = [processor_seconds(make(method, size), 3, 5.0) for method in methods]
        ours, first = results[0]
        other = results[-1][1]
        finite = np.isfinite(first) & np.isfinite(other)
        apart = f"{np.abs(first[finite] - other[finite]).max():.0e}"
        power: object = ""
        if k:
            power = f"{math.log(ours / last) / math.log(size / sizes[k - 1]):.2f}"
        last = ours
        for method, (seconds, _) in zip(methods, results, strict=True):
            megabytes = peak_megabytes(partial(make), method, size)
            own = method == methods[0]
            table.append(
                [
                    size,
                    method,
                    seconds,
                    "" if own else ours / seconds,
                    power if own else "",
                    "" if own else apart * (method == methods[-1]),
                    megabytes,
                ]
            )
    return table


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true", help="without the largest size")
    chosen = parser.parse_args()
    header = ["size", "method", "s", "ours / plain", "power", "difference", "peak MB"]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in chosen.parts:
            print(
                f"### {part}\n\n{markdown_table(header, lines(part, chosen.quick))}\n"
            )


if __name__ == "__main__":
    main()
