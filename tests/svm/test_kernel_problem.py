"""The certificate of a fit, compared with extended precision."""

import numpy as np
import pytest

from preflearn.metrics import threshold
from preflearn.pairs import Pairs
from preflearn.svm import SVMCompare


def close_items(apart, spread, seed):
    """Return twenty items, a second one close to each, and noisy comparisons of random
    pairs."""
    rng = np.random.default_rng(seed)
    one = spread * rng.normal(size=(20, 3))
    items = np.vstack([one, one + apart * rng.normal(size=(20, 3))])
    index = np.vstack(
        [
            rng.permuted(np.tile(np.arange(40), (160, 1)), axis=1)[:, :2],
            np.c_[:20, 20:40],
        ]
    )
    scores = np.sin(items[:, 0]) + 0.3 * items[:, 1]
    d = scores[index[:, 0]] - scores[index[:, 1]] + 0.3 * rng.normal(size=len(index))
    return Pairs(items, index), threshold(d, 0.3)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("apart", "spread", "C"),
    [(1e-6, 3, 10), (1e-6, 3, 1e3), (1e-6, 3, 1e5), (1e-5, 3, 1e4), (1e-5, 1e3, 1e4)],
)
def test_the_gap_includes_the_rounding_of_the_kernel(apart, spread, C, seed):
    pairs, y = close_items(apart, spread, seed)
    gamma = 1 / spread**2
    model = SVMCompare(C, gamma=gamma).fit(pairs, y)
    items, centres = (
        X.astype(np.longdouble) for X in (pairs.items, model._expansion.centres)
    )
    a = model._expansion.coef * np.longdouble(-model.bias_)
    K, own = (
        np.exp(-np.longdouble(gamma) * ((X[:, None] - centres) ** 2).sum(-1))
        for X in (items, centres)
    )
    f = K @ a
    beta = np.longdouble(model.bias_)
    z = f[pairs.index[:, 0]] - f[pairs.index[:, 1]]
    ties = y == 0
    rows = np.concatenate(
        [beta + y[~ties] * z[~ties], -beta - z[ties], -beta + z[ties]]
    )
    objective = a @ own @ a / 2 + C * np.maximum(0, 1 - rows).sum()
    assert abs(objective / model.objective_ - 1) <= model.dual_gap_ + 1e-14
