import re
import warnings

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from margins.problems import separable
from reference import flipped_rows, hinge_machine
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC
from small_problems import DEFINITE, KERNELS, league
from small_problems import noisy_comparisons as compared

from preflearn.ground import NotPositiveSemidefiniteError
from preflearn.margins import MarginQP
from preflearn.metrics import best_threshold
from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison
from preflearn.svm import DegenerateBiasError, SVMCompare, SVMRank
from preflearn.svm.machine import on_margin


def square_root(K):
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0))


def flipped_gram(pairs, y, K):
    """K-tilde of eq. 18 by the definition, and its labels."""
    flipped, labels = pairs.flipped(y)
    first, second = flipped.index.T
    return K[first][:, first] - K[first][:, second] - K[second][:, first] + K[second][:, second], labels


def primal_by_cvxpy(pairs, y, K, C):
    """Eq. 15, with u written in coordinates of the items' features."""
    d = pairs.incidence() @ square_root(K)
    rows, labels = flipped_rows(d, y)
    value, u, beta, _ = hinge_machine(rows, C, labels)
    return value, d @ u, float(beta)


def rank_by_cvxpy(pairs, y, K, C, duplicate):
    """Eq. 3; rank2 of Table 2 with the two copies of each preference in one cost."""
    d = pairs.incidence() @ square_root(K)
    rows, labels = flipped_rows(d, y)
    cost = np.where(labels > 0, C * (1 + duplicate), C * duplicate)
    value, u, *_ = hinge_machine(rows, cost)
    return value, d @ u


@given(
    st.integers(0, 2**31),
    st.sampled_from(DEFINITE),
    st.sampled_from([0.05, 1.0, 30.0]),
    st.sampled_from([0.2, 0.4, 0.6, 0.9]),
    st.sampled_from([(40, 12), (16, 30)]),
)
def test_compare_equals_cvxpy(seed, kernel, C, tie_share, size):
    pairs, y = compared(seed, *size, tie_share=tie_share)
    K = pairwise_kernels(pairs.items, metric=kernel, **KERNELS[kernel])
    value, z, beta = primal_by_cvxpy(pairs, y, K, C)
    machine = SVMCompare(C, kernel, **KERNELS[kernel])
    assume(abs(beta) > 1e-3)
    if beta > 0:
        with pytest.raises(DegenerateBiasError):
            machine.fit(pairs, y)
        return
    machine.fit(pairs, y)
    assert machine.objective_ == pytest.approx(value, rel=1e-6)
    assert machine.dual_gap_ < 1e-8
    ours = -machine.bias_ * machine.decision_function(pairs)
    np.testing.assert_allclose(ours, z, atol=1e-4)
    combined = K @ (pairs.incidence().T @ machine.dual_coef_)
    np.testing.assert_allclose(ours, pairs.incidence() @ combined, atol=1e-7)


@settings(max_examples=15)
@given(
    st.integers(0, 2**31),
    st.sampled_from(DEFINITE),
    st.sampled_from([0.05, 1.0, 30.0]),
    st.sampled_from(["ignore", "duplicate"]),
)
@example(1184315, "rbf", 1.0, "duplicate")  # tau would be 1, where rounding scatters ten differences
def test_rank_equals_cvxpy(seed, kernel, C, ties):
    pairs, y = compared(seed)
    K = pairwise_kernels(pairs.items, metric=kernel, **KERNELS[kernel])
    value, z = rank_by_cvxpy(pairs, y, K, C, ties == "duplicate")
    machine = SVMRank(C, kernel, ties=ties, **KERNELS[kernel]).fit(pairs, y)
    ours = machine.decision_function(pairs)
    assert machine.objective_ == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(ours, z, atol=1e-4)
    tau, loss = best_threshold(y, on_margin(ours))
    assert machine.tau_ == pytest.approx(tau, abs=2e-6)
    assert machine.score(pairs, y) == pytest.approx(1 - loss)


def test_equals_libsvm_on_the_flipped_gram():
    pairs, y = compared(2, m=150, n=60, tie_share=0.6)
    K = pairwise_kernels(pairs.items, metric="rbf", gamma=0.3)
    gram, labels = flipped_gram(pairs, y, K)
    peer = SVC(kernel="precomputed", C=3.0, tol=1e-8).fit(gram, labels)
    machine = SVMCompare(3.0, gamma=0.3).fit(pairs, y)
    assert machine.bias_ == pytest.approx(peer.intercept_[0], abs=1e-6)
    flipped, _ = pairs.flipped(y)
    ours = machine.bias_ * (1 - machine.decision_function(flipped))
    np.testing.assert_allclose(ours, peer.decision_function(gram), atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_separable_data_with_a_large_cost_give_the_margin(seed):
    pairs, y = separable(seed, m=60, p=4, tie_share=0.5)
    exact = MarginQP().fit(pairs, y)
    machine = SVMCompare(1e7, "linear").fit(pairs, y)
    np.testing.assert_allclose(machine.coef_, exact.coef_, rtol=1e-6)
    assert machine.bias_ == pytest.approx(exact.bias_, rel=1e-6)
    assert machine.score(pairs, y) == 1


def test_ties_within_the_margin_do_not_change_rank2():
    """Table 2's two copies of a tie lose 2 + (|u·d| - 1)_+, a constant within the margin."""
    pairs, y = compared(5, m=30, n=40, tie_share=0.4, noise=0.0)
    rank = SVMRank(0.02, "linear").fit(pairs, y)
    rank2 = SVMRank(0.01, "linear", ties="duplicate").fit(pairs, y)
    assert np.abs(rank.decision_function(pairs)[y == 0]).max() < 1
    np.testing.assert_allclose(rank2.coef_, rank.coef_, atol=1e-8)
    rank, rank2 = SVMRank(2.0, "rbf").fit(pairs, y), SVMRank(1.0, "rbf", ties="duplicate").fit(pairs, y)
    assert np.abs(rank2.decision_function(pairs)[y == 0]).max() <= 1 + 1e-6
    assert np.abs(rank.decision_function(pairs) - rank2.decision_function(pairs)).max() > 1e-3


class TestBias:
    @pytest.mark.parametrize("labels", [[1, -1, 1, -1, 1, 0], [-1, 1, 1, -1, -1, 0]])
    def test_contradictions_against_few_ties_are_refused(self, labels):
        pairs = Pairs([[0.0], [1.0]], [[1, 0]] * 6)
        for C in (1e-3, 1.0, 1e3):
            with pytest.raises(DegenerateBiasError, match=r"here\. Model ties \(Ordinal") as caught:
                (unfitted := SVMCompare(C, "linear")).fit(pairs, labels)
            assert "5 preferences against 1 ties" in str(caught.value)
            with pytest.raises(NotFittedError):
                unfitted.predict(pairs)
        weights = np.where(np.equal(labels, 0), 6.0, 1.0)
        assert SVMCompare(1.0, "linear").fit(pairs, labels, weights).bias_ <= -1 + 1e-9

    def test_tiny_cost_with_few_ties(self):
        pairs, y = compared(6, m=50, tie_share=0.2, noise=0.1)
        with pytest.raises(DegenerateBiasError, match=r"beta is 1\b|beta is 0\.99") as caught:
            SVMCompare(1e-6).fit(pairs, y)
        advised = re.search(r"Raise C to (\S+), where beta is (-\S+); or model ties", str(caught.value))
        machine = SVMCompare(float(advised[1])).fit(pairs, y)
        assert machine.bias_ == pytest.approx(float(advised[2]), rel=0.01)
        assert machine.score(pairs, y) > 0.8

    def test_no_cost_helps_a_league_and_what_the_message_names_does(self):
        """1,900 noisy games of 20 teams, a quarter of them ties: noise decides which."""
        pairs, y, strength = league()
        teams = np.eye(20)
        for C in 10.0 ** np.arange(-6, 3, 2):
            with pytest.raises(DegenerateBiasError, match=r"here\. Model ties \(Ordinal") as caught:
                SVMCompare(C, "linear").fit(pairs, y)
            machine = SVMCompare(C, "linear", tie_weight="least").fit(pairs, y)
            assert machine.bias_ < -0.1
            assert machine.tie_weight_ == pytest.approx(0.6 * np.count_nonzero(y) / np.count_nonzero(y == 0))
            assert np.corrcoef(machine.rank_function(teams), strength)[0, 1] > 0.8
        assert "what tells ties from preferences does not outweigh their numbers" in str(caught.value)
        for named in (Davidson(), OrdinalComparison(), SVMRank(kernel="linear")):
            assert type(named).__name__ in str(caught.value)
            assert np.corrcoef(named.fit(pairs, y).rank_function(teams), strength)[0, 1] > 0.8

    @settings(max_examples=20)
    @given(st.integers(0, 2**31), st.sampled_from([1e-6, 0.1, 10.0]), st.booleans())
    def test_the_least_tie_weight_serves_whatever_the_labels_are(self, seed, C, weighted):
        rng = np.random.default_rng(seed)
        pairs = Pairs(rng.integers(0, 3, (6, 2)) * 1.0, [rng.choice(6, 2, replace=False) for _ in range(20)])
        y, weights = rng.integers(-1, 2, 20) * rng.integers(0, 2, 20), rng.random(20) if weighted else None
        y[:2] = 0, 1
        machine = SVMCompare(C, "linear", tie_weight="least").fit(pairs, y, weights)
        assert machine.bias_ < 0
        scaled = np.where(y == 0, machine.tie_weight_, 1.0) * (1 if weights is None else weights)
        same = SVMCompare(C, "linear").fit(pairs, y, scaled)
        assert same.objective_ == pytest.approx(machine.objective_)
        given = SVMCompare(C, "linear", tie_weight=machine.tie_weight_).fit(pairs, y, weights)
        assert given.objective_ == pytest.approx(machine.objective_)
        even = scaled[y != 0].sum() / scaled[y == 0].sum()
        shares = (0.6, 0.7, 0.8, 0.9, 1.0)
        assert machine.tie_weight_ == 1 or any(even * share == pytest.approx(1) for share in shares)

    @pytest.mark.parametrize("wrong", [0, -1.0, np.nan, "balanced", None, True])
    def test_a_bad_tie_weight_is_named(self, wrong):
        with pytest.raises(ValueError, match=f"tie_weight is {wrong!r}; expected a positive number or 'l"):
            SVMCompare(tie_weight=wrong).fit(*compared(6, m=50, tie_share=0.2, noise=0.1))

    def test_any_bias_within_the_optimal_interval_is_optimal(self):
        """One tie against one preference: beta is not unique, and the middle is taken."""
        pairs = Pairs([[0.0], [1.0], [1.0]], [[1, 0], [2, 1]])
        machine = SVMCompare(0.1, "linear").fit(pairs, [1, 0])
        assert machine.bias_ == pytest.approx(-1, abs=1e-6)
        assert machine.objective_ == pytest.approx(0.1 * 2 - 0.1**2 / 2)


@pytest.mark.parametrize("machine", [SVMCompare(), SVMRank(), SVMRank(ties="duplicate")])
class TestEstimators:
    def test_constant_features(self, machine):
        pairs, y = Pairs(np.ones((4, 2)), [[0, 1], [1, 2], [2, 3]]), [1, 0, 0]
        for kernel in ("rbf", "linear", "poly"):
            fitted = clone(machine).set_params(kernel=kernel).fit(pairs, y)
            assert fitted.predict(pairs).tolist() == [0, 0, 0]
            assert fitted.rank_function([[2.0, 3.0]]).tolist() == pytest.approx([0.0], abs=1e-9)

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"C": 0}, "C is 0; expected a positive number"),
            ({"C": 1e30}, r"cost C · weight is [12]e\+30; expected at most"),
            ({"C": 1e-200}, "cost C · weight is 1e-200; expected at least"),
            ({"kernel": lambda X, Y: X[:, :1] + 0 * Y[:, 0]}, "symmetric"),
            ({"kernel": lambda X, Y: -X @ Y.T}, "eigenvalues from -"),
            ({"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}, "eigenvalues from -"),
            ({"kernel": "poly", "gamma": 1e90, "degree": 9}, "overflow|finite"),
        ],
    )
    def test_bad_parameters(self, machine, parameters, message):
        pairs, y = compared(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of numpy, about the overflow that is reported
            with pytest.raises(ValueError, match=message):
                clone(machine).set_params(**parameters).fit(pairs, y)

    def test_an_indefinite_gram_matrix(self, machine):
        K = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        pairs = Pairs(K, [[0, 1], [1, 2], [2, 0]])
        with pytest.raises(NotPositiveSemidefiniteError, match="eigenvalues from -1 to 3"):
            clone(machine).set_params(kernel="precomputed").fit(pairs, [1, 0, 0])

    def test_costs_beyond_rounding(self, machine):
        pairs, y = compared(1)
        with pytest.raises(ValueError, match=r"cost C · weight is [12]e-120; expected at least"):
            clone(machine).set_params(C=1e-60).fit(pairs, y, sample_weight=np.full(len(y), 1e-60))
        with pytest.raises(ValueError, match=r"cost · k\(x, x\) is .*e\+\d+; expected at most"):
            clone(machine).set_params(kernel="linear").fit(Pairs(pairs.items * 1e12, pairs.index), y)


def test_compare_without_ties_and_rank_without():
    pairs, y = compared(2, m=40, tie_share=0.4)
    with pytest.raises(ValueError, match=r"only preferences.*use SVMRank"):
        SVMCompare().fit(pairs[y != 0], y[y != 0])
    machine = SVMRank().fit(pairs[y != 0], y[y != 0])
    assert set(machine.predict(pairs[y != 0])) <= {-1, 0, 1}
    with pytest.raises(ValueError, match="ties is 'drop'"):
        SVMRank(ties="drop").fit(pairs, y)


# ---- Certificates of what is returned


def degenerate(rng):
    """A small problem with copies of items, ties of any share, offsets and weights of any size."""
    n, m, p = (int(rng.integers(*ends)) for ends in ((2, 25), (2, 50), (1, 5)))
    X = rng.standard_normal((n, p)) if rng.random() < 0.7 else rng.integers(0, 3, (n, p)).astype(float)
    X = X * 10.0 ** rng.choice([-2, 0, 0, 2]) + rng.standard_normal(p) * 10.0 ** rng.choice([-9, 1, 5])
    first = rng.integers(0, n, m)
    second = (first + rng.integers(1, n, m)) % n
    d = (X[first] - X[second]) @ rng.standard_normal(p)
    d = d / (d.std() or 1.0) + rng.choice([0, 0.3, 3]) * rng.standard_normal(m)
    y = np.where(np.abs(d) <= np.quantile(np.abs(d), rng.choice([0.1, 0.5, 0.8])), 0, np.sign(d)).astype(int)
    y[:2] = [1, 0]
    weights = [np.ones(m), rng.uniform(0.1, 2, m), 10.0 ** rng.uniform(-6, 6, m)][rng.integers(3)]
    return Pairs(X, np.column_stack([first, second])), y, weights


def proved(machine, pairs, y, cost):
    """The objective at the differences of scores that come out, and a dual value that dual_coef_ proves."""
    z, a, tied = machine.decision_function(pairs), machine.dual_coef_, y == 0
    sizes = np.abs(a)
    assert (a * y >= -1e-12 * cost).all()
    assert (sizes <= cost * (2 if isinstance(machine, SVMRank) else 1) * (1 + 1e-9)).all()
    if isinstance(machine, SVMCompare):
        z = -machine.bias_ * z
        side = np.maximum(0, 1 + machine.bias_ + z) + np.maximum(0, 1 + machine.bias_ - z)
        loss = np.where(tied, side, np.maximum(0, 1 - machine.bias_ - y * z))
        weight, least = sizes[~tied].sum(), sizes[tied].sum()
        most = 2 * cost[tied].sum() - least
        slack = max(least - weight, weight - most, 0.0)
        value = 2 * weight - 10 * (1 + abs(machine.bias_)) * slack
    elif machine.ties == "ignore":
        loss, value = np.where(tied, 0, np.maximum(0, 1 - y * z)), sizes.sum()
    else:
        loss = np.where(tied, np.maximum(0, 1 + z) + np.maximum(0, 1 - z), 2 * np.maximum(0, 1 - y * z))
        value = sizes[~tied].sum() + (2 * cost - sizes)[tied].sum()
    squared = a @ z
    return squared / 2 + cost @ loss, value - squared / 2


@settings(max_examples=20 if settings.get_current_profile_name() != "thorough" else 1000)
@given(
    st.integers(0, 2**31),
    st.sampled_from([SVMCompare(), SVMRank(), SVMRank(ties="duplicate")]),
    st.sampled_from(["linear", "rbf", "laplacian"]),
    st.sampled_from([1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6]),
)
def test_returned_models_meet_their_certificate(seed, machine, kernel, C):
    """Five problems each: the objective of what is returned is what is said, within the gap that is said."""
    for part in range(5):
        pairs, y, weights = degenerate(np.random.default_rng([seed, part]))
        fitted = clone(machine).set_params(C=C, kernel=kernel)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                fitted.fit(pairs, y, sample_weight=weights)
            except DegenerateBiasError:
                continue
            except ValueError as error:
                refused = str(error)
            else:
                refused = ""
        if refused:
            assert "lower C" in refused
            continue
        kinds = [warning.category for warning in caught]
        assert kinds == [ConvergenceWarning] * (fitted.dual_gap_ > 1e-6)
        objective, dual = proved(fitted, pairs, y, C * weights)
        order = 10 if kinds else 3  # beyond 1e-6 rounding decides, and is known by its order only
        assert objective == pytest.approx(fitted.objective_, rel=order * fitted.dual_gap_ + 2e-6)
        if not kinds:
            assert objective - dual <= 3e-6 * objective


@pytest.mark.parametrize("machine", [SVMCompare(3.0), SVMRank(3.0, ties="duplicate")])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "laplacian"])
def test_an_offset_of_the_items_changes_nothing(machine, kernel):
    pairs, y = compared(11, m=60, n=30)
    moved = Pairs(pairs.items + np.array([1e5, -3e4, 7.0]), pairs.index)
    first, second = (clone(machine).set_params(kernel=kernel).fit(data, y) for data in (pairs, moved))
    expected = first.decision_function(pairs)
    np.testing.assert_allclose(second.decision_function(moved), expected, atol=1e-6)
    assert second.objective_ == pytest.approx(first.objective_, rel=1e-8)
    K = pairwise_kernels(pairs.items, metric="rbf", gamma=0.3)
    given = clone(machine).set_params(kernel="precomputed")
    first, second = (given.fit(Pairs(gram, pairs.index), y).objective_ for gram in (K, K + 1e6))
    assert second == pytest.approx(first, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_labels_that_say_nothing_give_equal_scores_exactly(seed):
    """With ties that weigh as much as preferences, u = 0 is optimal for labels without a pattern."""
    rng = np.random.default_rng(seed)
    pairs = Pairs.from_arrays(rng.standard_normal((200, 3)), rng.standard_normal((200, 3)))
    y = np.repeat([1, -1, 0], [50, 50, 100])
    for C in (0.01, 1.0, 1e3):
        machine = SVMCompare(C, kernel="linear").fit(pairs, y)
        assert machine.bias_ == pytest.approx(-1, abs=1e-6)
        assert not machine.decision_function(pairs).any()
        assert machine.objective_ == pytest.approx(2 * C * 100)
    y[:100] = np.where(pairs.differences()[:100, 0] > 0, 1, -1)
    tiny = SVMCompare(1e-12, kernel="linear").fit(pairs, y)  # a small u that means something is kept
    assert np.mean(np.sign(tiny.decision_function(pairs))[:100] == y[:100]) > 0.8


@pytest.mark.parametrize("seed", range(2))
def test_a_kernel_that_hardly_varies_leaves_no_noise(seed):
    """Ties outweigh labels without a pattern, so u = 0 is optimal; a gap of 1e-9 would hide any order."""
    rng = np.random.default_rng(seed)
    index = np.array([rng.choice(100, 2, replace=False) for _ in range(400)])
    pairs, y = Pairs(rng.standard_normal((100, 7)), index), np.zeros(400, dtype=int)
    y[:40] = rng.choice([-1, 1], 40)
    assert not SVMCompare(0.1, gamma=1e-5).fit(pairs, y).decision_function(pairs).any()
