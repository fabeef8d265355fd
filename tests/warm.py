"""Compile the functions that learners need, so that a first call does not wait. `make`
runs this once."""

import warnings
from multiprocessing import get_context

import numpy as np
import pandas as pd

from preflearn.analogy import AnKerRank
from preflearn.dynamics import Constant, DynamicComparisons, Logit, Matern12, Probit
from preflearn.matches import Matches
from preflearn.pairs import Pairs, ranks_to_scores
from preflearn.path import svm_path
from preflearn.ranking import RankNet
from preflearn.ratings import Elo, Glicko, TrueSkill
from preflearn.svm import SVMCompare, SVMRank


def fit_learners_of_pairs_and_rankings() -> None:
    rank = np.arange(1, 41)
    X = np.column_stack([rank / 40, np.random.default_rng(0).random(40)])
    pairs, y = Pairs.from_scores(X, -(rank // 20), ties="keep")
    SVMCompare().fit(pairs, y)
    for C in (1.0, "path"):
        SVMRank(C=C).fit(pairs[y != 0], y[y != 0])
    svm_path(X @ X.T + 1.0, np.where(rank % 3, 1, -1))
    for learner in (AnKerRank(random_state=0), RankNet(n_epochs=1, random_state=0)):
        learner.fit(X, ranks_to_scores(rank))


def fit_models_of_matches() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(8, size=200)
    second = (first + rng.integers(1, 8, 200)) % 8
    outcome = rng.choice([-1, 1], 200)
    frame = pd.DataFrame(
        {"first": first, "second": second, "time": np.arange(200.0), "outcome": outcome}
    )
    league = Matches.from_frame(frame)
    for model in (Elo(), Glicko(), TrueSkill()):
        model.fit(*league)
    for likelihood in (Probit(), Logit()):
        for method in ("ep", "kl"):
            model = DynamicComparisons(
                Constant(1.0) + Matern12(1.0, 100.0), likelihood, method=method
            )
            model.fit(*league).predict_proba(league[0])


def main() -> None:
    """Compile in two processes."""
    warnings.simplefilter("ignore")  # ignores warnings about fits to these small data
    other = get_context("fork").Process(target=fit_models_of_matches)
    other.start()
    fit_learners_of_pairs_and_rankings()
    other.join()
    if other.exitcode:
        raise SystemExit(other.exitcode)


if __name__ == "__main__":
    main()
