"""The registry of chapter 17: all learners of each task family.

To add a baseline, edit only this file:

1. Write `fit(train, **configuration)`, which returns the fitted model. The model is a
   function from the test data to the input of the judge of the task family. The modules
   `ch17_pairs`, `ch17_orders`, and `ch17_time` describe the data.
2. Add a `Learner` at the end of its task families in `LEARNERS`, with `BUDGET`
   configurations, or without configurations if there is nothing to choose.
3. Run ``preflearn record 17 -p learners "NAME"``. It evaluates only this learner, on
   all tasks of its families, and merges its rows into the recorded tables.

Linear and Gaussian kernels are separate learners, so that each has all of the budget. A
Gaussian kernel has two widths, the same for all learners of a family.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np

from preflearn.core.validation import require
from preflearn.pursuit import RLS, RankingPursuit, RankRLS
from preflearn.ranking import ExpectedRankRegression
from preflearn.solvers.search import grid
from preflearn.svm import LogisticCompare, LPCompare, SVMCompare, SVMRank
from preflearn_book.studies import ch17_orders as orders
from preflearn_book.studies import ch17_pairs as pairs
from preflearn_book.studies import ch17_time as time
from preflearn_book.studies.ch17_protocol import (
    BUDGET,
    CONSTANT,
    RANDOM,
    Learner,
    configurations,
    spaced,
)

AFTERWARDS = ("SVMCompare, threshold refitted", "logistic, with counts")
"""Learners that were added to explain losses after these were known. They are not
ranked."""


def _learner(name: str, fit: Callable, **values: Sequence[Any]) -> Learner:
    return Learner(name, fit, configurations(values) if values else [{}])


def _order_learner(name: str, estimator: Any, **values: Sequence[Any]) -> Learner:
    fit = partial(orders.fit_estimator, estimator=estimator)
    return _learner(name, fit, **values)


def _pair_learner(name: str, estimator: Any, **values: Sequence[Any]) -> Learner:
    fit = partial(pairs.fit_estimator, estimator=estimator)
    return _learner(name, fit, **values)


def _powers_of_ten(low: float, high: float) -> list[float]:
    return np.logspace(low, high, BUDGET).tolist()


# ---- Learners of several families

# The exponent of the kernel at the mean squared distance is twice the width.
_PAIR_WIDTHS = [0.1, 1.0]


def _pair_learners(
    name: str, estimator: Any, **values: Sequence[Any]
) -> tuple[Learner, Learner]:
    """A learner from pairs with a linear kernel and with a Gaussian kernel."""
    return (
        _pair_learner(name, estimator, **values),
        _pair_learner(f"{name}, rbf", estimator, **values, width=_PAIR_WIDTHS),
    )


_SVM_COMPARE = _pair_learners(
    "SVMCompare", partial(SVMCompare, tie_weight="least"), C=spaced(1e-4, 1e4)
)
_RANKING_SVM = _pair_learners("ranking SVM", SVMRank, C=spaced(1e-4, 1e4))
_LOGISTIC = _learner("logistic regression", pairs.fit_logistic, C=spaced(1e-6, 1e3))
_KERNEL_LOGISTIC = _learner(
    "logistic, kernel features",
    pairs.fit_kernel_logistic,
    width=_PAIR_WIDTHS,
    C=spaced(1e-3, 1e5),
)
# With at least 256 of 600 rows in each leaf, a tree has at most one split.
_TREE_SIZES = {
    "n_estimators": [50, 150],
    "min_child_samples": [2, 4, 8, 16, 32, 64, 128, 256],
}
_TREES = _learner("boosted trees", pairs.fit_trees, **_TREE_SIZES)
_LAMBDAMART = _learner("LambdaMART", pairs.fit_lambdamart, **_TREE_SIZES)
_PAIR_BASELINES = (
    _learner(CONSTANT, pairs.fit_frequencies),
    _learner(RANDOM, pairs.fit_coin),
)

_WIDTHS = [0.03, 0.3]
_BASES = {"n_basis": [1, 2, 4, 8, 16, 32, 64, 128], "width": _WIDTHS}


def _order_learners(
    svm: Sequence[float],
    rbf_svm: Sequence[float],
    rank_rls: Sequence[float],
    n_hidden: Sequence[int],
    logistic: Sequence[float],
    kernel_logistic: Sequence[float],
    smallest_leaf: int = 1,
) -> tuple[Learner, ...]:
    """Learners of all families of orders, given their costs and numbers of units."""
    tree_sizes = {
        "min_child_samples": [smallest_leaf * 3 ** (k // 2) for k in range(BUDGET)],
        "num_leaves": [2, 6],
    }
    return (
        _order_learner("ranking SVM", partial(SVMRank, kernel="linear"), C=svm),
        _order_learner("ranking SVM, rbf", SVMRank, C=rbf_svm, width=_WIDTHS),
        _order_learner("RankRLS", RankRLS, alpha=rank_rls, width=_WIDTHS),
        _order_learner("ranking pursuit", RankingPursuit, **_BASES),
        _order_learner("expected rank regression", ExpectedRankRegression),
        _learner(
            "RankNet",
            orders.fit_ranknet,
            n_hidden=n_hidden,
            learning_rate=_powers_of_ten(-5, 3),
        ),
        _learner("logistic regression", orders.fit_logistic, C=logistic),
        _learner(
            "logistic, kernel features",
            orders.fit_logistic,
            C=kernel_logistic,
            width=_WIDTHS,
        ),
        _learner("boosted trees", orders.fit_trees, **tree_sizes),
        _learner("LambdaMART", orders.fit_lambdamart, **tree_sizes),
        _learner("Gaussian process", orders.fit_gaussian_process),
        _learner("correlation weights", orders.fit_correlations),
        _learner("best feature", orders.fit_best_feature),
        _learner(CONSTANT, orders.fit_zero),
        _learner(RANDOM, orders.fit_random),
    )


# ---- Learners of results in time


def _grid(**values: Sequence[float]) -> list[dict[str, Any]]:
    return grid(values).to_dict("records")  # pyright: ignore[reportReturnType]  (keys are names)


def _table_learner(
    name: str, fit: Callable[..., time.Forecast], **values: Sequence[float]
) -> Learner:
    return Learner(name, partial(time.fit_table, fit), _grid(**values))


# Each length scale has half of the variances. Scores that change faster vary less.
_DYNAMIC = [
    *_grid(variance=(0.04, 0.15, 0.6, 2.4), years=(3.0,)),
    *_grid(variance=(0.15, 0.6, 2.4, 9.6), years=(30.0,)),
]
_GLICKO = [
    *_grid(deviation=(20.0, 60.0, 180.0, 540.0), c=(7.0,)),
    *_grid(deviation=(60.0, 180.0, 540.0, 1620.0), c=(2.0,)),
]
_TRUESKILL = [
    *_grid(variance=(0.006, 0.04, 0.25, 1.6), dynamics=(0.004,)),
    *_grid(variance=(0.025, 0.16, 1.0, 6.4), dynamics=(0.001,)),
]


# ---- The registry

LEARNERS: dict[str, tuple[Learner, ...]] = {
    "features": (
        *_SVM_COMPARE,
        _learner(
            "SVMCompare, threshold refitted",
            pairs.fit_with_threshold,
            C=spaced(1e-4, 1e4),
        ),
        *_RANKING_SVM,
        *_pair_learners(
            "LPCompare", partial(LPCompare, nu=0.8), radius=spaced(0.1, 1e4)
        ),
        *_pair_learners(
            "LogisticCompare",
            partial(LogisticCompare, tie_weight="least", random_state=0),
            alpha=spaced(1e-9, 1e2),
        ),
        _learner(
            "ordinal model",
            pairs.fit_ordinal,
            link=["logit", "probit"],
            alpha=spaced(1e-3, 1e4),
        ),
        _learner(
            "RankNet",
            pairs.fit_ranknet,
            learning_rate=[0.003, 0.01],
            n_epochs=[2, 4, 9, 20, 45, 100, 220, 500],
        ),
        _LOGISTIC,
        _KERNEL_LOGISTIC,
        _TREES,
        _LAMBDAMART,
        _learner(
            "Gaussian process",
            pairs.fit_gaussian_process,
            width=_PAIR_WIDTHS,
            noise=spaced(1e-5, 1e3),
        ),
        *_PAIR_BASELINES,
    ),
    "objects": (
        _learner(
            "AnKer-rank",
            orders.fit_anker_rank,
            C=_powers_of_ten(-4, 3),
        ),
        _learner(
            "able2rank",
            orders.fit_able2rank,
            k=[1, 3, 10, 30, 100, 300, 1000, 3000],
        ),
        *_order_learners(
            svm=_powers_of_ten(-5, 5),
            rbf_svm=_powers_of_ten(-3, 8),
            rank_rls=_powers_of_ten(-4, 4),
            n_hidden=[8, 32],
            logistic=_powers_of_ten(-2, 9),
            kernel_logistic=_powers_of_ten(0, 11),
        ),
    ),
    "queries": (
        *_order_learners(
            svm=_powers_of_ten(-7, -1),
            rbf_svm=_powers_of_ten(-5, 2),
            rank_rls=_powers_of_ten(-2, 8),
            n_hidden=[2, 8],
            logistic=_powers_of_ten(-5, 4),
            kernel_logistic=_powers_of_ten(-4, 5),
            smallest_leaf=4,
        ),
        _order_learner("RLS", RLS, alpha=_powers_of_ten(-4, 6), width=_WIDTHS),
        _learner(
            "RLS, centered by query",
            partial(orders.fit_centered, estimator=RLS),
            alpha=_powers_of_ten(-4, 6),
            width=_WIDTHS,
        ),
    ),
    "ratings": orders.for_each_user(
        *_order_learners(
            svm=_powers_of_ten(-7, 0),
            rbf_svm=_powers_of_ten(-5, 4),
            rank_rls=_powers_of_ten(-3, 9),
            n_hidden=[2, 8],
            logistic=_powers_of_ten(-7, 3),
            kernel_logistic=_powers_of_ten(-5, 8),
        ),
        _order_learner("RLS", RLS, alpha=_powers_of_ten(-3, 9), width=_WIDTHS),
        _order_learner("combined pursuit", partial(RankingPursuit, mix=0.5), **_BASES),
        _learner("popularity", orders.fit_popularity),
        _learner("Bradley-Terry", orders.fit_bradley_terry),
    ),
    "time": (
        Learner("dynamic model", time.fit_dynamic, _DYNAMIC),
        Learner("Elo", time.fit_elo, _grid(rate=spaced(0.02, 1.0))),
        Learner("Glicko", time.fit_glicko, _GLICKO),
        Learner("TrueSkill", time.fit_trueskill, _TRUESKILL),
        _table_learner(
            "Bradley-Terry", time.fit_bradley_terry, alpha=spaced(0.01, 100.0)
        ),
        _table_learner(
            "Bradley-Terry, half-life",
            time.fit_bradley_terry,
            alpha=(0.02, 0.2, 2.0, 20.0),
            half_life=(0.25, 1.0),
        ),
        _table_learner("logistic regression", time.fit_logistic, C=spaced(1e-4, 1e3)),
        _table_learner(
            "logistic, with counts",
            partial(time.fit_logistic, counts=True),
            C=spaced(1e-4, 1e3),
        ),
        _table_learner(
            "boosted trees",
            time.fit_trees,
            n_estimators=(12, 35, 100, 300),
            num_leaves=(3, 8),
        ),
        _table_learner(CONSTANT, time.fit_frequencies),
        _table_learner(RANDOM, time.fit_equal_probabilities),
    ),
    "regimes": (
        *_SVM_COMPARE,
        *_RANKING_SVM,
        _LOGISTIC,
        _KERNEL_LOGISTIC,
        _TREES,
        _LAMBDAMART,
        _learner(
            "Davidson",
            pairs.fit_davidson,
            alpha=spaced(1e-6, 100.0),
        ),
        _learner(
            "Davidson, also features",
            pairs.fit_davidson,
            own=[0.5, 2.0],
            alpha=spaced(1e-5, 1e4),
        ),
        *_PAIR_BASELINES,
    ),
}
"""The learners of each task family, in the order of the recorded rows."""


def select_learners(
    family: str, names: Collection[str] | None = None
) -> tuple[Learner, ...]:
    """The learners of a task family, or its learners with the given names."""
    return tuple(
        learner
        for learner in LEARNERS[family]
        if names is None or learner.name in names
    )


def parse_names(text: str) -> list[str] | None:
    """Parse the names of learners in a text such as "Elo; Glicko"; None for "all".

    Commas in names may be left out, because the lists of a sweep are separated by commas.
    For example, "ranking SVM rbf" means "ranking SVM, rbf".

    Raises
    ------
    ValueError
        If no task family has a learner with one of the names.
    """
    if text == "all":
        return None
    known = {
        learner.name.replace(",", ""): learner.name
        for learners in LEARNERS.values()
        for learner in learners
    }
    parts = [part.strip() for part in text.replace(",", "").split(";")]
    unknown = [part for part in parts if part not in known]
    require(not unknown, unknown, "the list of learners", f"some of {sorted(known)}")
    return [known[part] for part in parts]
