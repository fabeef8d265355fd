"""Compiles what the learners need, once, so that no first call has to wait for it: `make` runs it."""

import warnings

import numpy as np
import pandas as pd

from preflearn.analogy import AnKerRank
from preflearn.dynamics import Constant, DynamicComparisons, Logit, Matern12, Probit
from preflearn.matches import Matches
from preflearn.pairs import Pairs
from preflearn.path import svm_path
from preflearn.ranking import RankNet
from preflearn.ratings import Elo, Glicko, TrueSkill
from preflearn.svm import SVMCompare, SVMRank

warnings.simplefilter("ignore")  # forty items of a grid have no secrets
rank, rng = np.arange(1, 41), np.random.default_rng(0)
X = np.column_stack([rank / 40, rng.random(40)])
pairs, y = Pairs.from_scores(X, -(rank // 20), ties="keep")
SVMCompare().fit(pairs, y)
for C in (1.0, "path"):
    SVMRank(C=C).fit(pairs[y != 0], y[y != 0])
svm_path(X @ X.T + 1.0, np.where(rank % 3, 1, -1))
for learner in (AnKerRank(random_state=0), RankNet(n_epochs=1, random_state=0)):
    learner.fit(X, rank)
one, step = rng.integers(8, size=200), rng.integers(1, 8, 200)
time, won = np.arange(200.0), rng.choice([-1, 1], 200)
frame = pd.DataFrame({"first": one, "second": (one + step) % 8, "time": time, "outcome": won})
league = Matches.from_frame(frame)
for model in (Elo(), Glicko(), TrueSkill()):
    model.fit(*league)
for likelihood in (Probit(), Logit()):
    for method in ("ep", "kl"):
        model = DynamicComparisons(Constant(1.0) + Matern12(1.0, 100.0), likelihood, method=method)
        model.fit(*league).predict_proba(league[0])
