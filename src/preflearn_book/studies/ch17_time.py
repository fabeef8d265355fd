"""Arena "time" of chapter 17: who wins the next match, told from all matches of earlier
days.

A problem is a window of matches to learn from and the matches that follow it, to be
forecast. What is to be forecast comes with its outcomes, since they become known day by
day; no learner uses one before its day is over:

- The dynamic model and the rating systems go through `one_step_ahead` and
  `earlier_forecasts`.
- The others are fitted to a table, and anew every `REFIT` days, to the matches of
  earlier days. (With 30 days Bradley-Terry models were behind by this alone, 0.01 to
  0.03 nats on the NBA.)
- Features of a match count what its players did on earlier days (`rolling`).

All use the same: who met when, who had the advantage of the home ground, and the
outcomes; no points. The margin of ties, and the advantage of the rating systems, are
those of an ordinal model without time on the window to learn from. No forecast is
smoothed or clipped afterwards: no learner gives an outcome the probability 0, the
constant since it counts each outcome once more than it was seen.

Validation is forward in time: the first two thirds of the days to learn from, and the
last third to forecast.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from lightgbm import LGBMClassifier
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from preflearn import dynamics
from preflearn.core.diagnosis import NotIdentifiedWarning
from preflearn.core.validation import Floats
from preflearn.matches import ADVANTAGE, Matches, TimeWarning, n_earlier
from preflearn.pairs import Pairs
from preflearn.ranking.tie_models import Davidson, OrdinalComparison
from preflearn.ratings import Elo, Glicko, TrueSkill, earlier_forecasts
from preflearn.solvers.search import grid
from preflearn_book.studies.ch14_sports import YEAR
from preflearn_book.studies.ch17_protocol import CONSTANT, QUIET_TREES, Learner, spaced
from preflearn_book.studies.ch17_seasons import Games, new_user, problem, tasks

__all__ = ["LEARNERS", "new_user", "problem", "tasks"]

REFIT = 7.0
"""Days to be forecast after which learners of a table are fitted anew."""

_POINTS = 400 / np.log(10)  # of a rating, in a unit of log-odds


# ---- Learners that go day by day: what is fitted are margin and advantage, the rest is done by the forecast


def _timeless(known: Games, link: Any) -> tuple[float, float]:
    """Margin of ties and advantage, by an ordinal model without time."""
    found = OrdinalComparison(link, alpha=1.0).fit(_pairs(known.matches), known.y)
    return found.threshold_, float(
        found.coef_[-1]
    ) if ADVANTAGE in known.matches.features else 0.0


def _pairs(matches: Matches) -> Pairs:
    """Each row of the design, compared with a row of zeros."""
    n, p = matches.design.shape
    rows: Any = sparse.vstack([matches.design, sparse.csr_array((1, p))], format="csr")
    return Pairs(rows, np.column_stack([np.arange(n), np.full(n, n)]))


def _dynamic(
    known: Games, variance: float, years: float
) -> dynamics.DynamicComparisons:
    margin, _ = _timeless(known, "probit")
    scores = dynamics.Matern12(variance, lengthscale=years * YEAR)
    law = dynamics.OrdinalProbit(margin) if known.ties else dynamics.Probit()
    parts: Any = {ADVANTAGE: dynamics.Constant(1.0), "*": scores}
    return dynamics.DynamicComparisons(parts, law, n_threads=1)


def _elo(known: Games, rate: float) -> Elo:
    margin, advantage = _timeless(known, "logit")
    law = dynamics.OrdinalLogit(margin) if known.ties else dynamics.Logit()
    return Elo(likelihood=law, rate=rate, advantage=advantage)


def _glicko(known: Games, deviation: float, c: float) -> Glicko:
    return Glicko(
        deviation=deviation, c=c, advantage=_POINTS * _timeless(known, "logit")[1]
    )


def _trueskill(known: Games, variance: float, dynamics: float) -> TrueSkill:
    margin, advantage = _timeless(known, "probit")
    return TrueSkill(
        variance, dynamics, margin=margin * known.ties, advantage=advantage
    )


def _day_by_day(model: Any, asked: Games) -> Floats:
    dated = asked.matches, asked.y, asked.start
    if not isinstance(model, dynamics.DynamicComparisons):
        found = earlier_forecasts(model, *dated)
        return found if asked.ties or found.shape[1] == 2 else found[:, [0, 2]]
    with warnings.catch_warnings():
        # length scales go beyond the window
        warnings.simplefilter("ignore", TimeWarning)
        return dynamics.one_step_ahead(model, *dated).probabilities


# ---- Learners that are fitted to a table


class _Table(NamedTuple):
    """What was learned from the window, and how to learn it from more."""

    law: Callable[[Games], Floats]  # the probabilities of matches
    again: Callable[[Games], Callable[[Games], Floats]]


def _table(learn: Callable[..., Any], known: Games, **configuration: Any) -> _Table:
    again = partial(learn, **configuration)
    return _Table(again(known), again)


def _block_by_block(model: _Table, asked: Games) -> Floats:
    """Forecast `REFIT` days each time, from all matches of earlier days."""
    time = asked.matches.time
    found = []
    firsts = np.searchsorted(time, np.arange(time[asked.start], time[-1] + 1e-9, REFIT))
    begins = np.unique(np.maximum(firsts, asked.start)).tolist()
    for begin, end in pairwise([*begins, len(time)]):
        first = begin == asked.start
        law = (
            model.law
            if first
            else model.again(asked.block(0, n_earlier(asked.matches, begin)))
        )
        found.append(law(asked.block(begin, end)))
    return np.vstack(found)


def _bradley_terry(
    known: Games, alpha: float, half_life: float = math.inf
) -> Callable[[Games], Floats]:
    """With Davidson's ties, where there are any; a match counts half, `half_life` years
    later."""
    age = (known.matches.time[-1] - known.matches.time) / YEAR
    with warnings.catch_warnings():
        # some alpha are small: that is tried here
        warnings.simplefilter("ignore", NotIdentifiedWarning)
        model = Davidson(alpha).fit(
            _pairs(known.matches), known.y, 0.5 ** (age / half_life)
        )
    columns = [0, 1, 2] if known.ties else [0, 2]
    return lambda asked: model.probabilities(asked.matches.design @ model.coef_)[
        :, columns
    ]


def _logistic(
    known: Games, C: float, *, counts: bool = True
) -> Callable[[Games], Floats]:
    """With the sizes of the features where there are ties, since these don't grow with
    a difference.

    Without counts it does not know how many matches a player had before.
    """
    used = [0, 1, 2, 3] if counts else [0, 1, 2]

    def sized(asked: Games) -> Floats:
        sizes = np.abs(asked.features[:, used])[:, : len(used) * asked.ties]
        return np.hstack([asked.features[:, [*used, 4]], sizes])

    machine = make_pipeline(
        StandardScaler(), LogisticRegression(C=C, solver="newton-cholesky", tol=1e-6)
    )
    machine.fit(sized(known), known.y)
    return lambda asked: machine.predict_proba(sized(asked))


def _trees(
    known: Games, n_estimators: int, num_leaves: int
) -> Callable[[Games], Floats]:
    sizes: dict[str, Any] = {"n_estimators": n_estimators, "num_leaves": num_leaves}
    machine = LGBMClassifier(**sizes, learning_rate=0.1, **QUIET_TREES)
    machine.fit(known.features, known.y)
    return lambda asked: np.asarray(machine.predict_proba(asked.features))


def _frequencies(known: Games) -> Callable[[Games], Floats]:
    """How often each outcome was seen, with the advantage and without, and once more."""
    home = known.features[:, 4] > 0
    kinds = np.array([-1, 0, 1] if known.ties else [-1, 1])
    counts = np.array(
        [
            (known.y[home == at][:, None] == kinds).sum(axis=0) + 1.0
            for at in (False, True)
        ]
    )
    chances = counts / counts.sum(axis=1, keepdims=True)
    return lambda asked: chances[(asked.features[:, 4] > 0).astype(int)]


def _guess(known: Games) -> Callable[[Games], Floats]:
    """All outcomes are as probable, as in the row "Random" of Table 3 of
    [Maystre2019]_."""
    k = 2 + known.ties
    return lambda asked: np.full((len(asked.y), k), 1 / k)


def _of_table(
    name: str, learn: Callable[..., Any], **values: Sequence[float]
) -> Learner:
    return Learner(name, partial(_table, learn), _block_by_block, _grid(**values))


def _grid(**values: Sequence[float]) -> list[dict[str, Any]]:
    return grid(values).to_dict("records")  # pyright: ignore[reportReturnType]  (keys are names)


# Where scores move fast they need less room, so that half of the numbers go with each.
_MOVING = [
    *_grid(variance=(0.04, 0.15, 0.6, 2.4), years=(3.0,)),
    *_grid(variance=(0.15, 0.6, 2.4, 9.6), years=(30.0,)),
]
_GLICKO = [
    *_grid(deviation=(20.0, 60.0, 180.0, 540.0), c=(7.0,)),
    *_grid(deviation=(60.0, 180.0, 540.0, 1620.0), c=(2.0,)),
]
_TRUESKILL = [
    *_grid(variance=(0.025, 0.1, 0.4, 1.6), dynamics=(0.004,)),
    *_grid(variance=(0.1, 0.4, 1.6, 6.4), dynamics=(0.001,)),
]

LEARNERS: tuple[Learner, ...] = (
    Learner("dynamic model", _dynamic, _day_by_day, _MOVING),
    Learner("Elo", _elo, _day_by_day, _grid(rate=spaced(0.02, 1.0))),
    Learner("Glicko", _glicko, _day_by_day, _GLICKO),
    Learner("TrueSkill", _trueskill, _day_by_day, _TRUESKILL),
    _of_table("Bradley-Terry", _bradley_terry, alpha=spaced(0.01, 100.0)),
    _of_table(
        "Bradley-Terry, half-life",
        _bradley_terry,
        alpha=(0.02, 0.2, 2.0, 20.0),
        half_life=(0.25, 1.0),
    ),
    _of_table("logistic regression", _logistic, C=spaced(1e-4, 1e3)),
    _of_table(
        "logistic, without counts",
        partial(_logistic, counts=False),
        C=spaced(1e-4, 1e3),
    ),
    _of_table(
        "boosted trees", _trees, n_estimators=(12, 35, 100, 300), num_leaves=(3, 8)
    ),
    _of_table(CONSTANT, _frequencies),
    _of_table("random", _guess),
)
