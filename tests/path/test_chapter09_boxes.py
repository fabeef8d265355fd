"""The theorem boxes of chapter 09: kernels with the same ranking, the reduced graph,
its rank, and its solutions."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reference import rank
from scipy.sparse import csgraph, csr_array
from sklearn.metrics.pairwise import rbf_kernel

from preflearn.pairs import Incidence, Pairs
from preflearn.path import ranksvm_path, reduced_graph


def drawn(seed, n=6, m=9):
    """Return items with two features, of which the last two are equal, and pairs of
    items, some of which are repeated."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    X[-1] = X[-2]
    index = np.array([rng.permutation(n)[:2] for _ in range(m)])
    return X, index[rng.integers(0, m, m + 2)]


def first_lambda(gram):
    return float(gram.times(np.ones(gram.B.shape[0])).max())


def weights_at(gram, lams):
    """Return the dual weights at each lambda, from the path of the package."""
    one = np.ones(gram.B.shape[0])
    first = first_lambda(gram)
    if min(lams) >= first:
        return [one for _ in lams]
    path = ranksvm_path(
        Pairs(gram.K, gram.B.index), one, "precomputed", lambda_min=min(lams) / 2
    )
    return [path.alpha(lam) for lam in lams]


def residual(gram, alpha, lam):
    """Return the largest violation of the optimality conditions, computed from the
    weights alone."""
    z = gram.times(alpha) / lam
    return np.abs(alpha - np.clip(alpha + 1 - z, 0, 1)).max()


@pytest.mark.theorem("prop-cut")
@given(st.integers(0, 2**31), st.floats(0.01, 3.0))
def test_a_cut_is_no_part_of_a_ranking(seed, share):
    """The same weights are optimal for the other kernel, and all its scores are shifted
    by sum beta_j g(x_j)."""
    X, index = drawn(seed)
    rng = np.random.default_rng(seed)
    B = Incidence(index, len(X))
    K = rbf_kernel(X, gamma=0.5)
    g = rng.standard_normal(len(X))
    c = rng.standard_normal()
    other = K + g[:, None] + g + c
    grams = B.gram(K), B.gram(other)
    identity = np.eye(len(index))
    np.testing.assert_allclose(
        grams[0].times(identity), grams[1].times(identity), atol=1e-12
    )
    lam = share * first_lambda(grams[0])
    if lam < 1e-6:
        return
    alpha = weights_at(grams[0], [lam])[0]
    assert max(residual(gram, alpha, lam) for gram in grams) < 1e-8
    beta = B.adjoint(alpha) / lam
    assert abs(beta.sum()) < 1e-12 * max(1, np.abs(beta).max()) * len(X)
    np.testing.assert_allclose(
        other @ beta, K @ beta + g @ beta, atol=1e-9 * (1 + np.abs(beta).sum())
    )
    # (a)
    np.testing.assert_allclose(
        (K + c) @ beta, K @ beta, atol=1e-9 * (1 + np.abs(beta).sum())
    )
    origin = rng.standard_normal(2)  # (b): the linear kernel with another origin
    moved = X - origin
    w = X.T @ beta
    np.testing.assert_allclose(
        moved @ moved.T @ beta, X @ w - origin @ w, atol=1e-8 * (1 + np.abs(beta).sum())
    )


@pytest.mark.theorem("prop-repeated")
@given(st.integers(0, 2**31), st.integers(2, 4), st.floats(0.01, 1.5))
def test_lambda_over_m_carries_over(seed, h, share):
    X, index = drawn(seed)
    K = rbf_kernel(X, gamma=0.5)
    once, often = (Incidence(np.tile(index, (k, 1)), len(X)).gram(K) for k in (1, h))
    lam = share * first_lambda(once)
    if lam < 1e-6:
        return
    alpha = weights_at(once, [lam])[0]
    assert residual(often, np.tile(alpha, h), h * lam) < 1e-8
    again = weights_at(often, [h * lam])[0]
    assert residual(often, again, h * lam) < 1e-8
    scores = [
        K @ gram.B.adjoint(a) / t
        for gram, a, t in ((once, alpha, lam), (often, again, h * lam))
    ]
    np.testing.assert_allclose(*map(once.B.differences, scores), atol=1e-6)


@pytest.mark.theorem("prop-reduced")
@given(st.lists(st.integers(0, 3), min_size=2, max_size=9))
@example([0, 1, 1, 2])
@example([0, 1])
@example([0, 0, 1, 1])
def test_the_reduced_graph(scores):
    """Compute the number of pairs, the number of pairs that close a cycle, and the
    triangles whose third pair follows from the others."""
    sizes = np.unique(scores, return_counts=True)[1]
    if (L := len(sizes)) == 1:
        return
    n = len(scores)
    index = reduced_graph(scores)
    graph = graph_of(n, index)
    assert len(index) == 2 * n - sizes[0] - sizes[-1] - L + 1
    assert csgraph.connected_components(graph, False)[0] == 1
    spare = len(index) - (n - 1)
    assert spare == np.sum(sizes[1:-1] - 1)
    assert len(index) <= max(n - 1, 2 * n - 4)  # (a)
    pairs = set(map(tuple, index.tolist()))
    triangles = [
        (a, o, b) for a, o in pairs for p, b in pairs if o == p and (a, b) in pairs
    ]
    assert (len(triangles) > 0) == (spare > 0)
    scores = np.array(scores)
    assert all(scores[a] == scores[o] > scores[b] for a, o, b in triangles)
    reached = np.isfinite(csgraph.shortest_path(graph))
    assert reached[scores[:, None] > scores].all()  # (b)
    assert not reached[scores[:, None] < scores].any()
    if L == 2:
        assert spare == 0


@st.composite
def graphs_and_features(draw):
    n = draw(st.integers(2, 5))
    edges = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(
        lambda edge: edge[0] != edge[1]
    )
    edges = draw(st.lists(edges, min_size=1, max_size=7))
    p = draw(st.integers(1, 4))
    rows = st.lists(st.integers(-2, 2), min_size=p, max_size=p)
    return n, edges, draw(st.lists(rows, min_size=n, max_size=n))


def incidence(n, edges):
    """Return the incidence matrix with integer entries, so that products are exact."""
    return Incidence(np.array(edges), n).matrix().toarray().astype(int)


def graph_of(n, edges):
    return csr_array((np.ones(len(edges)), np.transpose(edges)), (n, n))


@pytest.mark.theorem("prop-rank")
@given(graphs_and_features())
@example(
    (
        4,
        [(2, 0), (2, 1), (3, 0), (3, 1)],
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
    )
)
@example((3, [(1, 0), (2, 1)], [[0, 1], [1, 0], [1, 0]]))
def test_rank_exactly(problem):
    n, edges, X = problem
    X = np.array(X)
    B = incidence(n, edges)
    K = X @ X.T
    gram = B @ K @ B.T
    count, labels = csgraph.connected_components(graph_of(n, edges), False)
    # V spans the vectors that sum to 0 on each component; `null` is the dimension of
    # the null space of K restricted to them.
    V = (
        np.eye(n, dtype=int)
        - np.eye(n, dtype=int)[[list(labels).index(label) for label in labels]]
    )
    V = V[V.any(axis=1)]
    null = len(V) - rank(V @ K)
    assert rank(B) == len(V) == n - count
    assert rank(gram) == n - count - null
    forest = len(edges) == n - count
    assert (rank(gram) == len(edges)) == (forest and null == 0)
    assert rank(gram) <= len(X[0])  # (c)
    connected = [(i, j) for i in range(n) for j in range(i) if labels[i] == labels[j]]
    wider = incidence(
        n, [*edges, *connected[:3]]
    )  # (a): more pairs within the components
    assert rank(wider @ K @ wider.T) == rank(gram)
    if any((X[i] == X[j]).all() for i, j in connected):  # (d): equal items
        assert null > 0


@pytest.mark.theorem("prop-rank")
@given(graphs_and_features())
def test_rank_with_a_gaussian_kernel(problem):
    """(b): for distinct items, K is positive definite, so that only cycles make B K B'
    singular."""
    n, edges, X = problem
    X = np.array(X, dtype=float)
    distinct = len(np.unique(X, axis=0)) == n
    K = rbf_kernel(X, gamma=1.0)
    assert (np.linalg.eigvalsh(K).min() > 1e-5) == distinct
    if distinct:
        B = incidence(n, edges)
        cut = np.linalg.eigvalsh(B @ K @ B.T)
        assert (
            np.sum(cut > 1e-5)
            == n - csgraph.connected_components(graph_of(n, edges), False)[0]
        )


@pytest.mark.theorem("prop-implies")
@given(
    st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 1)), min_size=2, max_size=9),
    st.integers(0, 2**31),
)
def test_margins_of_the_reduced_graph_imply_all(problem, seed):
    """(a): scores that satisfy the margins of the reduced graph satisfy those of all
    pairs. The scores are built level by level."""
    scores, qid = np.array([*problem, (0, 2), (1, 2)]).T
    rng = np.random.default_rng(seed)
    index = reduced_graph(scores, qid)
    f = rng.standard_normal(len(scores))
    for _ in range(len(scores) ** 2):  # raise the better item if a margin is violated
        for better, worse in index:
            f[better] = max(f[better], f[worse] + 1)
    assert (f[index[:, 0]] - f[index[:, 1]] >= 1 - 1e-12).all()
    every, y = Pairs.from_scores(f[:, None], scores, qid)
    gain = y * every.differences()[:, 0]
    assert (gain >= 1 - 1e-9).all()
    chosen = set(index[:, 1])
    for (i, j), value in zip(every.index.tolist(), gain, strict=True):
        worse = i if scores[i] < scores[j] else j
        assert worse in chosen or value >= 2 - 1e-9


def weight_at(x, index, lam):
    """Return w of the linear SVM with one feature, by bisection on the slope of its
    objective."""
    d = np.subtract(*np.array(x)[np.array(index).T])

    def slope(w):
        return lam * w - d[d * w < 1].sum()

    low = -1e6
    high = 1e6
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return (low + high) / 2


@pytest.mark.theorem("prop-implies")
@pytest.mark.parametrize("lam", [1e-3, 0.1, 0.3, 1.0, 1.99, 2.0, 5.0, 1e3])
def test_the_counterexamples(lam):
    x = [0.0, 3.0, 2.0]
    scores = [0, 0, 1]
    assert reduced_graph(scores).tolist() == [[0, 1], [2, 0]]
    full = weight_at(x, [[2, 0], [2, 1]], lam)
    reduced = weight_at(x, reduced_graph(scores), lam)
    assert full == pytest.approx(min(1 / lam, 1 / 2), rel=1e-9)
    assert reduced == pytest.approx(-min(1 / lam, 1 / 3), rel=1e-9)
    x = [0.0, 0.8, 1.0, 1.5]
    scores = [0, 0, 0, 1]
    full = weight_at(x, [[3, 0], [3, 1], [3, 2]], lam)
    reduced = weight_at(x, reduced_graph(scores), lam)
    assert full > 0
    assert reduced == pytest.approx(-min(0.3 / lam, 1.0), rel=1e-9)


@pytest.mark.theorem("prop-identity")
@pytest.mark.parametrize(("lower", "upper"), [(3, 1), (4, 2), (7, 2), (12, 1), (12, 5)])
def test_the_path_of_the_identity(lower, upper):
    n = lower + upper
    scores = np.repeat([0, 1], [lower, upper])
    index = reduced_graph(scores)
    inner = scores[index[:, 0]] == 0
    gram = Incidence(index, n).gram(np.eye(n))
    first = lower - upper
    second = n / (2 * lower - 1)
    assert second < first
    lams = np.unique(np.append(np.linspace(0.01, 1.2 * first, 60), [first, second]))[
        ::-1
    ]
    for lam, alpha in zip(lams, weights_at(gram, lams), strict=True):
        if lam >= first:
            a = 1.0
            b = 1.0
        elif lam >= second:
            a = (upper + lam) / lower
            b = 1.0
        else:
            a = lam * (2 * upper + 1) / n
            b = lam * (2 * lower - 1) / n
        np.testing.assert_allclose(alpha, np.where(inner, a, b), atol=1e-10)
        assert residual(gram, np.where(inner, a, b), lam) < 1e-12
        if lam <= second:
            f = gram.B.adjoint(alpha) / lam
            expected = np.where(scores == 1, 2 * lower - 1, -(2 * upper + 1)) / n
            expected[0] = (lower - upper - 1) / n
            np.testing.assert_allclose(f, expected, atol=1e-10)
            np.testing.assert_allclose(gram.B.differences(f), 1.0, atol=1e-10)
