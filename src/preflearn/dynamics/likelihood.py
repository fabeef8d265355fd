"""Provisional classes (the lead wrote them so that the engine can run; owner LIK replaces this file)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from preflearn.checks import Floats, check_array, refuse
from preflearn.compiled import njit
from preflearn.dynamics.integrals import expected, log_partition
from preflearn.dynamics.density import density


@njit
def _all(which, kind, a, b, y, mean, variance):
    out = np.empty((3, len(y)))
    for i in range(len(y)):
        if which == 0:
            out[0, i], out[1, i], out[2, i] = log_partition(kind, a, b, y[i], mean[i], variance[i])
        else:
            out[0, i], out[1, i], out[2, i] = expected(kind, a, b, y[i], mean[i], variance[i])
    return out


class Likelihood:
    kind: ClassVar[int]
    has_ties: ClassVar[bool] = False

    @property
    def parameters(self) -> Floats:
        values = [v for k, v in self.__dict__.items()]
        return np.array((values + [0.0, 0.0])[:2], dtype=float)

    def describe(self) -> dict[str, Any]:
        return {"name": type(self).__name__, **asdict(self)}

    def check(self, y, n: int) -> Floats:
        y = check_array(y, "y", (n,), "one outcome a match")
        if self.kind < 4:
            allowed = (-1, 0, 1) if self.has_ties else (-1, 1)
            refuse(~np.isin(y, allowed), y, "y", f"one of {list(allowed)}")
        if self.kind == 4:
            refuse((y < 0) | (y != np.floor(y)), y, "y", "a count")
        if self.kind == 6:
            refuse(y != np.floor(y), y, "y", "a whole number")
        return y

    def log_partition(self, y, mean, variance):
        y, mean, variance = np.broadcast_arrays(*(np.asarray(v, float) for v in (y, mean, variance)))
        return tuple(_all(0, self.kind, *self.parameters, y.ravel(), mean.ravel(), variance.ravel()))

    def expected(self, y, mean, variance):
        y, mean, variance = np.broadcast_arrays(*(np.asarray(v, float) for v in (y, mean, variance)))
        return tuple(_all(1, self.kind, *self.parameters, y.ravel(), mean.ravel(), variance.ravel()))

    def probabilities(self, mean, variance) -> Floats:
        labels = (-1, 0, 1) if self.has_ties else (-1, 1)
        p = np.column_stack([np.exp(self.log_partition(v, mean, variance)[0]) for v in labels])
        return p / p.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Probit(Likelihood):
    kind = 0


@dataclass(frozen=True)
class Logit(Likelihood):
    kind = 1


@dataclass(frozen=True)
class OrdinalProbit(Likelihood):
    margin: float
    kind = 2
    has_ties = True


@dataclass(frozen=True)
class OrdinalLogit(Likelihood):
    margin: float
    kind = 3
    has_ties = True


@dataclass(frozen=True)
class Poisson(Likelihood):
    kind = 4


@dataclass(frozen=True)
class Gaussian(Likelihood):
    variance: float = 1.0
    margin: float = 0.0
    kind = 5


@dataclass(frozen=True)
class Skellam(Likelihood):
    base_rate: float = 1.0
    kind = 6


def likelihood_from(d: dict[str, Any]) -> Likelihood:
    d = dict(d)
    return globals()[d.pop("name")](**d)
