"""Chapter 17, arena "features": pairs with ties of items that have features, and who learns from them.

A learner gets Pairs and labels -1, 0, 1, and gives probabilities of the three, or labels. Features are scaled
by the items learned from. Folds never part what belongs together: the pairs of a user, the matches of a day.

References
----------
.. [Rasmussen2006] C. E. Rasmussen, C. K. I. Williams, "Gaussian processes for machine learning", 2006.
.. [Venuto2017] D. Venuto, T. D. Hocking, L. Spanurattana, M. Sugiyama, "Support vector comparison
   machines", 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from preflearn.checks import Floats
from preflearn.datasets import load_football, load_sushi, simulate_norm_pairs
from preflearn.ground import DateSplit, ItemKFold, OnItems, QueryKFold
from preflearn.ground.search import grid
from preflearn.matches import Matches
from preflearn.metrics import best_threshold, comparison_loss, log_loss, threshold
from preflearn.pairs import Pairs
from preflearn.ranking import OrdinalComparison, RankNet
from preflearn.ratings import Elo, Glicko
from preflearn.svm import LogisticCompare, LPCompare, SVMCompare, SVMRank
from studies.ch07_histories import FEATURES, match_features
from studies.ch17_protocol import CONSTANT, Learner, Problem, Split

N_FOLDS = 3
N_PAIRS, N_ASKED = 300, 1000  # to learn from, and to forecast
DRAWS = 5
TIES = 0.3
_NORMS = {"norm 1": 1, "norm 2": 2, "norm inf": np.inf}
_YEARS = ("1998", "2003", "2008", "2013", "2018")  # what is forecast begins with the year
_RECENT = 10  # matches of a team
_USERS, _PAIRS_OF_A_USER = N_PAIRS // 5, 5  # ten ratings, two at a time
_CENTRES = 100  # items of the kernel features

Labelled = tuple[Pairs, NDArray]


def judge(truth: ArrayLike, forecast: ArrayLike) -> dict[str, float]:
    """The zero-one loss of labels; of probabilities (m, 3) also the logarithmic one, and the overconfidence.

    The overconfidence is the mean of the largest probability less the accuracy: 0 where a learner is right as
    often as it says.

    Examples
    --------
    >>> judge([1, 0], [1, 1]), judge([1], [[0.25, 0.25, 0.5]])["overconfidence"]
    ({'loss': 0.5}, -0.5)
    """
    forecast = np.asarray(forecast)
    if forecast.ndim == 1:
        return {"loss": comparison_loss(truth, forecast)}
    loss = comparison_loss(truth, forecast.argmax(axis=1) - 1)
    confidence = float(forecast.max(axis=1).mean())
    return {
        "loss": loss,
        "log_loss": log_loss(truth, forecast),
        "overconfidence": confidence - (1 - loss),
    }


# Learners


def _fitted(make: Callable[..., Any], train: Labelled, **how: Any) -> Any:
    return make(**how).fit(*train)


def predicted(model: Any, pairs: Pairs) -> NDArray:
    return model.predict(pairs)


def probable(model: Any, pairs: Pairs) -> Floats:
    return model.predict_proba(pairs)


class BothOrders(NamedTuple):
    """A classifier of -1, 0, 1 that has seen each pair in both orders, and whose forecasts are the mean.

    Attributes
    ----------
    probabilities : callable
        From rows to those of -1, 0, 1.
    rows : callable
        From Pairs to one row a pair.
    """

    probabilities: Callable[[Floats], Any]
    rows: Callable[[Pairs], Floats]

    @classmethod
    def fit(cls, train: Labelled, rows: Callable, learn: Callable[[Floats, NDArray], Any]) -> BothOrders:
        """`learn` gives the probabilities from rows and labels."""
        pairs, y = train
        return cls(learn(np.vstack([rows(pairs), rows(pairs.swapped())]), np.append(y, -y)), rows)

    def predict_proba(self, pairs: Pairs) -> Floats:
        """Probabilities (m, 3); those of swapped pairs are the same from behind."""
        there, back = (self.probabilities(self.rows(some)) for some in (pairs, pairs.swapped()))
        return (there + back[:, ::-1]) / 2


def logistic(train: Labelled, C: float, rows: Callable[[Pairs], Floats] = Pairs.differences) -> BothOrders:
    """Logistic regression of three classes on differences.

    With both orders its minimum is Davidson's model on features, with alpha = 1 / (4 C).
    """

    def learn(X: Floats, y: NDArray) -> Any:
        return LogisticRegression(C=C, max_iter=10_000).fit(X, y).predict_proba

    return BothOrders.fit(train, rows, learn)


def kernel_logistic(train: Labelled, C: float, width: float) -> BothOrders:
    """The same on differences of kernel features, of 100 items at most; `width` is gamma times p."""
    pairs = train[0]
    n = min(_CENTRES, len(np.unique(pairs.items[pairs.B.occurring()], axis=0)))
    features = OnItems(Nystroem(gamma=width / pairs.shape[2], n_components=n, random_state=0)).fit(pairs)
    return logistic(train, C, lambda some: features.transform(some).differences())


def boosted(train: Labelled, min_child_samples: int, n_estimators: int) -> BothOrders:
    """Trees of seven leaves on the features of first and second, and their differences."""
    import lightgbm  # late, since only this learner needs it

    fixed = {"objective": "multiclass", "num_class": 3, "num_leaves": 7, "max_bin": 63, "seed": 0}
    quiet = {"num_threads": 1, "deterministic": True, "force_row_wise": True, "verbosity": -1}

    def learn(X: Floats, y: NDArray) -> Any:
        settings = fixed | quiet | {"min_data_in_leaf": min_child_samples}
        return lightgbm.train(settings, lightgbm.Dataset(X, y + 1), n_estimators).predict

    return BothOrders.fit(train, lambda some: np.hstack([some.first, some.second, some.differences()]), learn)


class RankedPairs(NamedTuple):
    """RankNet on preferences, each a query of two items; the threshold is chosen on the training pairs."""

    net: RankNet
    tau: float

    @classmethod
    def fit(cls, train: Labelled, **how: Any) -> RankedPairs:
        pairs, y = train
        X, rank = np.vstack([pairs.first, pairs.second]), np.append(-y, 0 * y)
        net = RankNet(**how).fit(X, rank, np.tile(np.arange(len(y)), 2))
        return cls(net, best_threshold(y, cls(net, 0.0).differences(pairs))[0])

    def differences(self, pairs: Pairs) -> Floats:
        return self.net.worths(pairs.first) - self.net.worths(pairs.second)

    def predict(self, pairs: Pairs) -> NDArray:
        return threshold(self.differences(pairs), self.tau)


class PairProcess(NamedTuple):
    """A Gaussian process over items: least squares for the labels of pairs, then a link for probabilities.

    Section 6.5 of [Rasmussen2006]_: the link, here the probit model with ties, is fitted to what the process
    says of each pair without its label, eq. 5.12.
    """

    width: float
    centres: Pairs
    weights: Floats
    link: OrdinalComparison

    @classmethod
    def fit(cls, train: Labelled, width: float, noise: float) -> PairProcess:
        pairs, y = train
        K = cls._covariance(pairs, pairs, width) + noise * np.eye(len(y))
        inverse = cho_solve(cho_factor(K), np.eye(len(y)))
        weights = inverse @ y
        without = y - weights / np.diag(inverse)
        link = OrdinalComparison("probit", alpha=1e-3).fit(_on_a_line(without), y)
        return cls(width, pairs, weights, link)

    @staticmethod
    def _covariance(some: Pairs, others: Pairs, width: float) -> Floats:
        kernel = partial(rbf_kernel, gamma=width / some.shape[2])
        (a, b), (c, d) = (some.first, some.second), (others.first, others.second)
        return kernel(a, c) + kernel(b, d) - kernel(a, d) - kernel(b, c)

    def predict_proba(self, pairs: Pairs) -> Floats:
        means = self._covariance(pairs, self.centres, self.width) @ self.weights
        return self.link.predict_proba(_on_a_line(means))


def _on_a_line(differences: Floats) -> Pairs:
    """Pairs of items of one feature that differ so."""
    return Pairs.from_arrays(differences[:, None], np.zeros((len(differences), 1)))


def _shares(train: Labelled) -> Floats:
    counts = np.bincount(train[1] + 1, minlength=3) + 1  # of each one more, as none is impossible
    return counts / counts.sum()


def _same(shares: Floats, pairs: Pairs) -> Floats:
    return np.tile(shares, (len(pairs), 1))


def _coin(train: Labelled) -> list[int]:
    return (train[1] + 1).tolist()


def _tossed(seed: list[int], pairs: Pairs) -> NDArray:
    return np.random.default_rng(seed).integers(-1, 2, len(pairs))


def learner(name: str, fit: Callable, forecast: Callable, **values: Any) -> Learner:
    return Learner(name, fit, forecast, grid(values).to_dict("records"))  # pyright: ignore[reportArgumentType]


_KERNELS, _COSTS = ["linear", "rbf"], [0.01, 0.3, 10.0, 300.0]
LEARNERS = (
    learner(
        "SVMCompare",
        partial(_fitted, partial(SVMCompare, tie_weight="least")),
        predicted,
        kernel=_KERNELS,
        C=_COSTS,
    ),
    learner("ranking SVM", partial(_fitted, SVMRank), predicted, kernel=_KERNELS, C=_COSTS),
    learner(
        "LPCompare",
        partial(_fitted, partial(LPCompare, nu=0.8)),
        predicted,
        kernel=_KERNELS,
        radius=[1.0, 10.0, 100.0, 1000.0],
    ),
    learner(
        "LogisticCompare",
        partial(_fitted, partial(LogisticCompare, tie_weight="least", random_state=0)),
        predicted,
        kernel=_KERNELS,
        alpha=[1e-6, 1e-4, 1e-2, 1.0],
    ),
    learner(
        "ordinal model",
        partial(_fitted, OrdinalComparison),
        probable,
        link=["logit", "probit"],
        alpha=[1.0, 10.0, 100.0, 1000.0],
    ),
    learner("RankNet", RankedPairs.fit, predicted, learning_rate=[0.003, 0.01], n_epochs=[2, 8, 30, 120]),
    learner("logistic regression", logistic, probable, C=np.geomspace(1e-5, 100.0, 8).tolist()),
    learner(
        "logistic, kernel features", kernel_logistic, probable, width=[0.1, 1.0], C=[0.1, 3.0, 100.0, 3000.0]
    ),
    learner("boosted trees", boosted, probable, n_estimators=[15, 50], min_child_samples=[5, 12, 30, 75]),
    learner("Gaussian process", PairProcess.fit, probable, width=[0.1, 1.0], noise=[0.03, 0.3, 3.0, 30.0]),
    Learner(CONSTANT, _shares, _same),
    Learner("random", _coin, _tossed),
)


# Problems


def parted(pairs: Pairs, y: NDArray, learn: NDArray, ask: NDArray) -> Split:
    """Pairs to learn from and pairs to forecast, with features scaled by the items learned from."""
    scaled = OnItems(StandardScaler()).fit(pairs[learn])
    return Split((scaled.transform(pairs[learn]), y[learn]), scaled.transform(pairs[ask]), y[ask])


def posed(
    name: str, arena: str, pairs: Pairs, y: NDArray, folds: Any, facts: Mapping[str, float] = {}
) -> Problem:
    """The problem whose first pairs are learned from, the rest forecast.

    Parameters
    ----------
    name : str
        Domain and unit.
    folds : iterable of (train, test)
        Row numbers of the pairs to learn from; there are as many as the largest of them says.
    """
    domain, unit = name.rsplit("/", 1)
    parts = list(folds)
    n = 1 + max(int(part.max()) for fold in parts for part in fold)
    facts = {
        "n_pairs": n,
        "n_features": pairs.shape[2],
        "n_items": len(np.unique(pairs.index[:n])),
        "tie_share": round(float(np.mean(y[:n] == 0)), 3),
    } | dict(facts)
    whole = parted(pairs, y, np.arange(n), np.arange(n, len(y)))
    return Problem(arena, domain, unit, whole, [parted(pairs, y, *part) for part in parts], judge, facts)


def tasks(profile: str) -> list[str]:
    """Names of the problems, domain/unit; of the profile "quick" one of each domain but two."""
    draws = [f"{domain}/{draw}" for domain in (*_NORMS, "sushi") for draw in range(DRAWS)]
    every = draws + [f"football/{year}" for year in _YEARS]
    return ["norm 2/0", "sushi/0", "football/2018"] if profile == "quick" else every


def problem(name: str) -> Problem:
    """A problem by its name; the same each time."""
    domain, unit = name.split("/")
    if domain == "football":
        return _football(name)
    if domain == "sushi":
        return _sushi(name)
    rng = np.random.default_rng([17, list(_NORMS).index(domain), int(unit)])
    pairs, y, _ = simulate_norm_pairs(_NORMS[domain], N_PAIRS + N_ASKED, TIES, rng)
    turned = rng.random(len(y)) < 0.5  # by design the first is better more often, which is no lesson
    index = np.where(turned[:, None], pairs.index[:, ::-1], pairs.index)
    pairs, y = Pairs(pairs.items, index), np.where(turned, -y, y)
    alone = np.arange(N_PAIRS)  # no two pairs share an item
    return posed(name, "features", pairs, y, QueryKFold(N_FOLDS).split(pairs[:N_PAIRS], groups=alone))


def _sushi(name: str) -> Problem:
    """Ratings of other users, each rating in one pair, drawn at random: not by the order of the file."""
    data, rng = load_sushi(), np.random.default_rng(17)
    own = data.user.reshape(-1, 2 * _PAIRS_OF_A_USER)
    rows = rng.permuted(np.arange(own.size).reshape(own.shape), axis=1)[rng.permutation(len(own))]
    n_users = _USERS + N_ASKED // _PAIRS_OF_A_USER
    start = n_users * int(name.split("/")[1])  # no user is in two draws
    first, second = rows[start : start + n_users].reshape(-1, 2).T
    pairs = Pairs.from_arrays(data.pairs.items[first], data.pairs.items[second])
    y = np.sign(data.scores[first] - data.scores[second]).astype(np.int8)
    folds = QueryKFold(N_FOLDS).split(pairs[:N_PAIRS], groups=data.user[first[:N_PAIRS]])
    return posed(name, "features", pairs, y, folds)


def _football(name: str) -> Problem:
    """The last matches before a year, and those that follow."""
    matches, X = _known_before()
    cut = int(np.searchsorted(matches["time"], np.datetime64(name.split("/")[1])))
    rows = np.arange(cut - N_PAIRS, cut + N_ASKED)
    pairs, y = Pairs.from_arrays(X[rows, 0], X[rows, 1]), matches["outcome"].to_numpy()[rows]
    dates = matches["time"].to_numpy()[rows[:N_PAIRS]]
    return posed(name, "features", pairs, y, DateSplit(N_FOLDS).split(pairs[:N_PAIRS], groups=dates))


@cache
def _known_before() -> tuple[pd.DataFrame, Floats]:
    """Matches between teams that had ten before, and features of both from earlier days (N, 2, p)."""
    frame = load_football().matches
    matches, y = Matches.from_frame(frame, advantage="advantage")
    elo = Elo(k=30.0, advantage=100.0).fit(matches, y).before_
    X, names = match_features(frame, elo, Glicko().fit(matches, y).before_, past="times", elite=1e9)
    X = np.concatenate([X, recent_results(frame)], axis=2)
    X = np.delete(X, names.index("ever elite"), axis=2)
    rows = (X[:, :, FEATURES.index("games")] >= _RECENT).all(axis=1)
    return frame.loc[rows], X[rows]


def recent_results(frame: pd.DataFrame, recent: int = _RECENT) -> Floats:
    """Mean points, goals for and goals against in a team's last matches of earlier days, shape (N, 2, 3).

    Points are 1, 0 and -1; of a team without earlier matches all are 0.

    Examples
    --------
    >>> frame = pd.DataFrame({"first": ["a", "b"], "second": ["b", "a"], "time": [0, 1],
    ...                       "outcome": [1, 0], "first_score": [3, 1], "second_score": [2, 1]})
    >>> recent_results(frame)[1].tolist()
    [[-1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]
    """
    own = frame[["outcome", "first_score", "second_score"]].to_numpy(dtype=np.float64)
    both = np.stack([own, own[:, [0, 2, 1]] * [-1, 1, 1]], axis=1).reshape(-1, 3)
    team = frame[["first", "second"]].to_numpy().ravel()
    day = np.repeat(frame["time"].to_numpy(), 2)
    table = pd.DataFrame(both)
    before = table.groupby(team).transform(lambda some: some.shift().rolling(recent, min_periods=1).mean())
    first = before.fillna(0.0).groupby([team, day]).transform("first")
    return first.to_numpy().reshape(-1, 2, 3)


def new_user() -> list[Problem]:
    """ "I have 300 pairs and 20 features": patients, in no arena, and other patients to compare.

    Diabetes: whose disease goes further in a year, by ten measurements and ten products of them; a tie where
    the difference is among the smallest. Breast cancer: who is ill, by means and worst values of ten measures
    of cells; two of one kind tie.
    """
    illness, ill = load_diabetes(return_X_y=True)
    cells, healthy = load_breast_cancer(return_X_y=True)
    products = PolynomialFeatures(interaction_only=True, include_bias=False).fit_transform(illness)
    measures = np.hstack([cells[:, :10], cells[:, 20:]])  # means and worst
    data = {"diabetes": (products[:, :20], ill), "breast cancer": (measures, 1.0 - healthy)}
    return [_patients(f"{name}/{draw}", *data[name]) for name in data for draw in range(DRAWS)]


def _patients(name: str, X: Floats, scores: Floats) -> Problem:
    rng = np.random.default_rng([17, 3, len(X), int(name.split("/")[1])])
    half = np.array_split(rng.permutation(len(X)), 2)
    index = np.vstack([drawn_pairs(rng, part, n) for part, n in zip(half, (N_PAIRS, N_ASKED), strict=True)])
    gap = np.subtract(*scores[index].T)
    few = len(np.unique(scores)) > 2  # else scores tie by themselves
    y = threshold(gap, float(np.quantile(np.abs(gap), TIES)) if few else 0.0)
    pairs = Pairs(X, index)
    folds = ItemKFold(N_FOLDS, shuffle=True, random_state=0).split(pairs[:N_PAIRS])
    return posed(name, "new user", Pairs(X, index), y, folds)


def drawn_pairs(rng: np.random.Generator, items: NDArray, n: int) -> NDArray:
    """n pairs of different items."""
    first = rng.integers(len(items), size=n)
    step = rng.integers(1, len(items), size=n)
    return items[np.stack([first, (first + step) % len(items)], axis=1)]
