"""Noisy comparisons with ties, models of ties computed from their definitions, and
pairwise degrees."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import logistic, norm

from preflearn.pairs import Pairs
from preflearn.ranking import Davidson, OrdinalComparison

LAWS = {"logit": logistic, "probit": norm}
MODELS = [
    Davidson(0.1),
    OrdinalComparison("logit", 0.1),
    OrdinalComparison("probit", 0.1),
]
every_model = pytest.mark.parametrize(
    "model", MODELS, ids=["davidson", "logit", "probit"]
)


def compared(seed, m=60, n=8, p=3, width=0.7):
    """Return noisy comparisons of linear scores. Differences below the width are
    ties."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    index = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    scores = X @ rng.standard_normal(p)
    differences = scores[index[:, 0]] - scores[index[:, 1]] + rng.logistic(size=m)
    y = np.where(np.abs(differences) < width, 0, np.sign(differences)).astype(int)
    y[:3] = -1, 0, 1
    return Pairs(X, index), y


def tie_parameter(model):
    return np.log(model.nu_) if isinstance(model, Davidson) else model.threshold_


def probabilities(model, d, t):
    """Return P(second), P(tie), P(first) by the definitions, one column each."""
    if isinstance(model, Davidson):
        weights = np.array([np.exp(-d / 2), np.full_like(d, np.exp(t)), np.exp(d / 2)])
        return (weights / weights.sum(axis=0)).T
    cdf = LAWS[model.link].cdf
    return np.column_stack([cdf(-d - t), cdf(t - d) - cdf(-t - d), cdf(d - t)])


def objective(model, pairs, y, w, t, weights):
    p = probabilities(model, pairs.differences() @ w, t)[np.arange(len(y)), y + 1]
    return model.alpha / 2 * w @ w - weights @ np.log(np.maximum(p, 1e-300))


def degrees(seed, n, spread=1.0):
    """Return positive degrees that are not reciprocal."""
    rng = np.random.default_rng(seed)
    worths = spread * rng.normal(size=n)
    return expit(worths[:, None] - worths + rng.normal(size=(n, n))) * rng.uniform(
        0.5, 2, (n, n)
    )


def reciprocal(seed, n, levels=None, spread=1.0):
    P = degrees(seed, n, spread)
    P = P / (P + P.T)
    P = np.round(P * levels) / levels if levels else P
    return np.triu(P, 1) + np.tril(1 - P.T, -1)
