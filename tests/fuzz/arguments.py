"""Arguments of fuzzed calls: ordinary arguments by name and type, and hostile ones made
from them."""

from __future__ import annotations

import inspect
import itertools
import typing
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from preflearn import dynamics
from preflearn.matches import Matches
from preflearn.pairs import Pairs
from preflearn.path import ItemFolds
from preflearn.ranking import Davidson
from preflearn.ratings import Elo, Glicko, TrueSkill
from preflearn.svm import SVMCompare, SVMRank

COVARIANCES = [
    *(
        dynamics.Constant(1.5),
        dynamics.Wiener(0.1, "first"),
        dynamics.Matern12() + dynamics.Constant(),
    ),
    dynamics.Matern32(0.5, 3.0) * dynamics.Periodic(1.0, 1.0, 7.0, 2)
    + dynamics.Affine(origin="first"),
]
LIKELIHOODS = [
    *(
        dynamics.Probit(),
        dynamics.Logit(),
        dynamics.OrdinalProbit(0.3),
        dynamics.OrdinalLogit(0.3),
    ),
    *(dynamics.Poisson(), dynamics.Gaussian(1.0), dynamics.Skellam(1.0)),
    *(dynamics.Lapse(dynamics.Probit(), 0.1), dynamics.StudentT(1.0, 4.0)),
]
SYSTEMS = [
    Elo(),
    Glicko(),
    TrueSkill(margin=0.2),
    Elo(likelihood=dynamics.OrdinalProbit(0.3)),
]
MACHINES = [SVMCompare(), SVMRank(), SVMRank(kernel="linear")]
TEXTS = ["", "a", "a" * 5000, "no such word", "nan", "../x", "\0", "\ud800", b"x"]
NUMBERS = [
    *(
        0,
        1,
        -1,
        0.5,
        2,
        1e-3,
        100,
        1e10,
        -1e10,
        1e100,
        -1e100,
        1e-100,
        1e300,
        -1.7e308,
        1e-300,
        5e-324,
    ),
    *(
        float("nan"),
        float("inf"),
        -float("inf"),
        10**400,
        -(10**400),
        2**63,
        2**53,
        10**9,
        True,
        1j,
    ),
    *(
        np.float32(3e38),
        np.int8(-128),
        np.uint64(2**64 - 1),
        np.longdouble("1e400"),
        np.float16(1e-7),
    ),
    *(
        Fraction(1, 3),
        Decimal("1e999"),
        np.array(1.0),
        np.array([1.0]),
        np.datetime64("2024-01-01"),
    ),
    *(np.timedelta64(1, "D"), pd.NaT, pd.NA, np.ma.masked),
]
THINGS = [
    None,
    object(),
    {},
    [],
    (),
    [[]],
    {1, 2},
    datetime(2024, 1, 1),
    [None],
    "x",
    np.empty((0, 3)),
]
# Parameters that determine the amount of work. A large valid number would only take
# long.
WORK = """n n_tasks n_configurations n_epochs n_hidden n_repeats n_users n_matches n_players n_times
n_features p k n_components batch_size order max_parts n_games sizes n_threads n_jobs stages degree
n_reference beam n_draws"""
# Parameters that never keep their default, which takes long or does not suit a small
# problem.
GIVEN = """n_configurations n_epochs n_repeats n_users n_jobs n_threads order max_parts bases groups least
most n_reference n_splits n_draws"""
ENORMOUS = 10_000


class Problem:
    """A small problem, with a value for each parameter name."""

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        self.rng = rng
        self.folder = folder
        self.n, self.p, self.m = (
            int(rng.integers(*ends)) for ends in ((3, 9), (1, 4), (4, 16))
        )

    def pick(self, options: Any) -> Any:
        """Return one of the options."""
        return options[int(self.rng.integers(len(options)))]

    @cached_property
    def values(self) -> dict[str, Any]:
        """Values by parameter name, or by the names of the call and the parameter."""
        rng = self.rng
        n = self.n
        p = self.p
        m = self.m
        X = (
            rng.random((n, p))
            if rng.random() < 0.6
            else rng.integers(0, 2, (n, p)).astype(float)
        )
        first = rng.integers(n, size=m)
        index = np.column_stack([first, (first + rng.integers(1, n, m)) % n])
        pairs = Pairs(X, index)
        names = list("abcdefgh")[:n]
        time = np.sort(rng.integers(0, 40, m)).astype(float)
        # a wide margin separates the small differences from the others
        d = pairs.differences() @ rng.normal(size=p)
        labels = np.where(
            np.abs(d) <= np.quantile(np.abs(d), 0.4), 0, np.sign(d)
        ).astype(int)
        if labels.all() or not labels.any():
            labels[:2] = 1, 0
        strict = np.where(d > np.median(d), 1, -1)
        scores = np.round(rng.normal(size=n), 1)
        matches = Matches(pairs.B.matrix(), time, names)
        law = self.pick(LIKELIHOODS)
        two_outcomes = (dynamics.Probit, dynamics.Logit, dynamics.Lapse)
        y = strict if type(law) in two_outcomes else labels
        y = np.abs(labels) if isinstance(law, dynamics.Poisson) else y
        frame = pd.DataFrame(np.array(names)[index], columns=["first", "second"])
        frame = frame.assign(
            time=time, outcome=labels, advantage=True, first_score=2, second_score=1
        )
        U = np.clip(pairs.differences(), -1, 1)
        P = rng.random((n, n))
        of_pairs = (pairs, labels)
        covariance = self.pick(COVARIANCES)
        model = dynamics.DynamicComparisons(covariance, law, n_threads=1)
        key = sorted(dynamics.parameters_of(model))[0]
        data = {
            "items": names,
            "pairs": index,
            "y": labels,
            "preferences": U[:, [0, 0]],
            "ties": U[:2, [0, 0]],
        }
        return {
            "X": X,
            "Q": X[:3] / 2,
            "U": U,
            "V": U[:3],
            "u": U[0],
            "P": P / (P + P.T),
            "K": X @ X.T,
            "by": X,
            "scores": scores,
            "rank": rng.permutation(n) + 1,
            "qid": np.arange(n) // 2,
            "pairs": pairs if rng.random() < 0.8 else pairs.items[index],
            "differences": d,
            "index": index,
            "f": scores,
            "sample_weight": rng.random(m),
            "groups": np.sort(np.arange(m) % 3),
            "v": rng.normal(size=m),
            "y": labels,
            "predicted": labels,
            "probabilities": rng.dirichlet(np.ones(3), m),
            "lam": float(rng.random() + 0.01),
            "matches": matches,
            "design": pairs.B.matrix(),
            "time": time,
            "features": names,
            "t": time,
            "t2": time[:3],
            "asked": Matches(pairs.B.matrix(), time + 50, names),
            "frame": frame,
            "start": max(1, m // 2),
            "end": time,
            "mean": rng.normal(size=m),
            "variance": rng.random(m),
            "d": rng.normal(size=m),
            "feature": names[0],
            "items": X,
            "scale": 1.0,
            "n": m,
            "p": p,
            "train": of_pairs,
            "valid": of_pairs,
            "test": of_pairs,
            "level": 0,
            "C_grid": np.array([0.1, 1.0]),
            "gamma_grid": np.array([0.5]),
            "gammas": [0.5],
            "interval.level": 0.9,
            "ranks.level": 0.9,
            "cluster": index[:, 0],
            "alphas": [0.1, 1.0],
            "shares": (0.5, 0.8),
            "stages": [1, 2],
            "sizes": [2, 3],
            "views": [[0], [p - 1]],
            "X_unscored": X + 0.1,
            "qid_unscored": None,
            "answers": [True, None, False],
            "typical.answers": [True, True, False],
            "cap": 9,
            "counts": [3, 4, 5],
            "candidates": [9, 9, 9],
            "chosen": [0.1, 1.0],
            "selection.grid": [0.1, 0.3, 1.0],
            "ours": rng.random(5),
            "theirs": rng.random(5),
            "span": 99.0,
            "ranges": {key: (0.1, 1.0)},
            "values": {key: 0.4},
            "n_configurations": 2,
            "n_epochs": 2,
            "n_repeats": 1,
            "n_users": 60,
            "n_jobs": 1,
            "max_parts": 2,
            "n_threads": 1,
            "order": 3,
            "n_tasks": 1,
            "n_matches": 30,
            "bases": [dynamics.Constant(), dynamics.Matern12()],
            "n_players": 5,
            "n_games": 30,
            "tie_share": 0.3,
            "margin": 0.3,
            "dataset": "sushi",
            "axes": Figure().subplots(),
            "levels": [-1, 1],
            "coef": np.ones(2),
            "color": "C0",
            "path": self.folder / "x.npz",
            "table": {"loss": 0.5},
            "data": data | {"players": names[:2], "mean": [0, 1], "std": [1, 1]},
            "grid": {"C": [0.1, 1]},
            "name": "loss",
            "chapter": "03_lemma",
            "profile": "quick",
            "tolerance": 0.1,
            "begin": 0.0,
            "length": 7.0,
            "cut": 20,
            "weeks": [slice(0, 3), slice(3, m)],
            "stop": 40,
            "boundaries": (5.0, 20.0),
            "elo": rng.normal(size=(m, 2)),
            "glicko": rng.normal(size=(m, 2)),
            "rng": np.random.default_rng(1),
            "group": (3, 12),
            "n_reference": 5,
            "ratings": sparse.csr_array(np.round(rng.random((80, 12)) * 5)),
            "least": 1,
            "most": 10,
            "n_hidden": 4,
            "random_state": 0,
            "seed": 0,
            "n_basis": 2,
            "norm": "l2",
            "system": self.pick(SYSTEMS),
            "model": model,
            "transformer": StandardScaler(),
            "DynamicComparisons.covariance": self.pick([covariance, {"*": covariance}]),
            "covariance": covariance,
            "likelihood": law,
            "of matches": y,
            "description": covariance.to_dict(),
            "of items": scores,
            "for items": rng.random(n),
            "strict": strict,
            "from_arrays.first": pairs.first,
            "from_arrays.second": pairs.second,
            "best_worst.sets": [[0, 1, 2], [1, 2]],
            "best_worst.best": [0, 1],
            "best_worst.worst": [2, 2],
            "PlackettLuce.fit.rankings": [list(names), [names[1], names[0]]],
            "next_pairs.n": 2,
            "PlackettLuce.fit.sample_weight": [1.0, 2.0],
            "PlackettLuce.fit.unranked": [[], []],
            "bootstrap.model": Davidson(),
            "n_draws": 3,
            "next_pairs.model": Davidson(0.1).fit(*of_pairs),
            "next_pairs.candidates": pairs,
            "unit": index[:, 0],
            "svm_path.y": strict,
            "svm_path.K": pairs.differences() @ pairs.differences().T,
            "ranksvm_path.y": strict,
            "cross_validated_path.y": strict,
            "folds": ItemFolds(2),
            "n_splits": 2,
            "AdditiveAnalogy.fit.y": strict,
            "bradley_terry_probabilities.y": strict,
            "proportion.d": rng.random(m),
            "proportion.a": rng.random(m),
            "proportion.b": rng.random(m),
            "proportion.c": rng.random(m),
            "load_object_ranking.name": "D1",
            "load_starcraft.name": "WoL",
            "published.name": "P1_grids",
            "style.name": "EP",
            "proportion.name": "min-max",
            "proportion_gram.name": "min-max",
            "proportion_gram.pairs": rng.random((3, 2)),
            "update.matches": matches[m - 1 :],
            "update.y": y[m - 1 :],
            "partial_fit.matches": matches[m - 1 :],
            "partial_fit.y": y[m - 1 :],
            "difference_plane.differences": rng.normal(size=(m, 2)),
        }

    def ordinary(self, call: Callable[..., Any], owner: Any = None) -> dict[str, Any]:
        """Return arguments that mostly belong together: all that the call requires, and
        some optional ones."""
        parameters = inspect.signature(call).parameters
        hints = hints_of(call)
        given = {}
        for name, one in parameters.items():
            needed = one.default is one.empty or name in GIVEN.split()
            if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL) and (
                needed or self.rng.random() < 0.3
            ):
                given[name] = self._value(
                    name, one.default, hints.get(name), parameters, call, owner
                )
        return given

    def _value(
        self, name: str, default: Any, hint: Any, others: Any, call: Any, owner: Any
    ) -> Any:
        special = f"{call.__name__}.{name}"
        values = self.values
        special = (
            f"{call.__qualname__}.{name}"
            if f"{call.__qualname__}.{name}" in values
            else special
        )
        if special == "load.path":
            return self.saved()
        if special in values:
            return values[special]
        if (words := _literals(hint)) and (
            default is not inspect.Parameter.empty or name not in values
        ):
            return self.pick(words)
        if name == "model" and "pairs" in others:
            return self.pick(MACHINES).fit(*values["train"])
        of_items = {"X", "scores", "rank", "items"} & {*others}
        if name in ("y", "predicted") and of_items:
            return values["of items"]
        if name == "y" and "matches" in others:
            law = hasattr(owner, "likelihood") or {"model", "likelihood"} & {*others}
            return values["of matches"] if law else values["y"]
        if name == "y" and isinstance(owner, dynamics.Likelihood):
            return (
                np.abs(values["strict"])
                if isinstance(owner, dynamics.Poisson)
                else values["strict"]
            )
        if name == "y" and isinstance(owner, Pairs):
            return self.rng.integers(-1, 2, len(owner))
        if name == "sample_weight" and of_items:
            return values["for items"]
        if name == "description":
            return owner.to_dict()
        if isinstance(default, str):
            return default
        if (hint is float or isinstance(default, float)) and not isinstance(
            values.get(name), float
        ):
            return float(self.rng.choice([0.01, 0.3, 0.7, 1.0, 3.0]))
        if hint is bool or isinstance(default, bool):
            return bool(self.rng.random() < 0.5)
        if name in values:
            fits = hint is not pd.DataFrame or name in ("table", "recorded")
            return values[name] if fits else values["frame"]
        return (
            default
            if default is not inspect.Parameter.empty
            else float(self.rng.random())
        )

    def saved(self) -> Path:
        """Return the file of a fitted model."""
        values = self.values
        values["model"].fit(values["matches"], values["of matches"]).save(
            values["path"]
        )
        return values["path"]

    def hostile(self, name: str, value: Any) -> Any:
        """Return what a user might pass by mistake instead of a value. Much of it is
        plausible, some is not."""
        pick = self.pick
        rng = self.rng
        if name == "path":
            damaged = value.exists() and rng.random() < 0.8
            return (
                _damaged(value, rng) if damaged else pick([*TEXTS[:-1], value.parent])
            )
        if name == "axes":
            return value
        if rng.random() < 0.1:
            return pick(THINGS)
        if isinstance(value, str):
            return pick(TEXTS + NUMBERS[:3])
        if isinstance(value, Pairs) and rng.random() < 0.8:
            largest = [1e150, 1e90, 1e-170, 5e-324, 0, 1]
            return pick([value[:0], Pairs(value.items * pick(largest), value.index)])
        if isinstance(value, Matches):
            factor = pick([1, 1e-300, 1e50, 1e99, -1])
            stretch = pick([0, 1, 1e-12, 1e-300, 1e90])
            other = Matches(value.design * factor, value.time * stretch, value.features)
            return pick(
                [
                    value[:0],
                    other,
                    other,
                    other,
                    value.design,
                ]
            )
        if isinstance(value, pd.DataFrame):
            return _frame(value, self)
        if isinstance(value, Mapping):
            return {
                k: self.hostile(name, v) for k, v in value.items() if rng.random() < 0.7
            } or {"": 0}
        if (
            isinstance(value, (list, tuple))
            and value
            and (np.ndim(value[0]) or rng.random() < 0.5)
        ):
            at = int(rng.integers(len(value)))
            # a record becomes a tuple, too
            made = list if isinstance(value, list) else tuple
            return made([*value[:at], self.hostile(name, value[at]), *value[at + 1 :]])
        if isinstance(value, (np.ndarray, list, tuple, Pairs)):
            return _array(np.asarray(value), self)
        if sparse.issparse(value):
            factor = pick([1, 0, 1e200, np.nan])
            return pick(
                [
                    value.toarray(),
                    value * factor,
                    value.T,
                    value[:0],
                    value.astype(bool),
                ]
            )
        found = pick(NUMBERS + NUMBERS + TEXTS)
        return (
            2**70
            if name in WORK.split() and ENORMOUS < (_float(found) or 0) <= 2**53
            else found
        )


def hints_of(call: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations as objects, or none if some exist only for type
    checkers."""
    try:
        return typing.get_type_hints(call.__init__ if isinstance(call, type) else call)
    except Exception:
        return {}


def _literals(hint: Any) -> list[Any]:
    if typing.get_origin(hint) is typing.Literal:
        return list(typing.get_args(hint))
    return list(itertools.chain(*map(_literals, typing.get_args(hint))))


def _float(value: Any) -> float | None:
    try:
        return None if isinstance(value, np.ndarray) else float(value)
    except (OverflowError, TypeError, ValueError):
        return None


def _damaged(path: Path, rng: np.random.Generator) -> Path:
    content = bytearray(path.read_bytes())
    for at in rng.integers(len(content), size=int(rng.integers(1, 9))):
        content[at] = int(rng.integers(256))
    found = path.with_name("damaged.npz")
    found.write_bytes(
        content[: int(rng.integers(len(content)))] if rng.random() < 0.3 else content
    )
    return found


def _frame(frame: pd.DataFrame, problem: Problem) -> pd.DataFrame:
    column = problem.pick(list(frame))
    kind = int(problem.rng.integers(6))
    if kind < 4:
        shuffled = frame.iloc[problem.rng.permutation(len(frame))]
        twice = pd.concat([frame, frame[[column]]], axis=1)
        return (frame.drop(columns=column), shuffled, frame.iloc[:0], twice)[kind]
    found = frame.astype({column: object})
    row = int(problem.rng.integers(len(found)))
    found.iat[row, list(found).index(column)] = problem.pick([*NUMBERS, *TEXTS, None])
    return found


def _array(array: np.ndarray, problem: Problem) -> Any:
    """Return an array with other values, or of another shape or type."""
    array = array.copy()
    rng = problem.rng
    # change one entry
    if array.size and array.dtype.kind in "fiu" and rng.random() < 0.4:
        values = array.astype(object if rng.random() < 0.2 else float)
        at = np.unravel_index(int(rng.integers(array.size)), array.shape)
        number = problem.pick(
            [n for n in NUMBERS if values.dtype == object or _float(n) is not None]
        )
        values[at] = number if values.dtype == object else _float(number)
        return values if rng.random() < 0.7 else values.tolist()
    kinds = ("int32", "bool", "object", "str", "longdouble", "float16", ">f8", "M8[D]")
    whole = [
        *(
            lambda a=a: array * a
            for a in (0, -1, 1e-300, 5e-324, 1e80, 1e150, 1e300, np.nan, 1j)
        ),
        *(lambda t=t: array.astype(t) for t in kinds),
        *(
            lambda s=s: array[s]
            for s in (slice(-1), slice(0), slice(None, None, -1), (..., None), 0)
        ),
        *(
            lambda f=f: f(array)
            for f in (
                np.transpose,
                np.ravel,
                np.sort,
                np.asfortranarray,
                np.ndarray.tolist,
            )
        ),
        *(lambda f=f: f(array) for f in (list, sparse.csr_array, pd.DataFrame, iter)),
        *(
            lambda: np.concatenate([array, array]),
            lambda: np.zeros_like(array) + array[:1],
        ),
        *(
            lambda: np.ma.masked_less(array, 0),
            lambda: np.repeat(array, 2, axis=0)[::2],
        ),
    ]
    try:
        with np.errstate(all="ignore"):
            found = problem.pick(whole)()
    except Exception:  # some changes are impossible for some arrays
        return array
    if isinstance(found, np.ndarray) and rng.random() < 0.3:
        found.flags.writeable = False
    return found
