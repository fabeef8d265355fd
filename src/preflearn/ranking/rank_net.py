"""RankNet: a small network trained on pairs, a baseline of [AhmadiFahandar2019]_.

References
----------
.. [AhmadiFahandar2019] M. Ahmadi Fahandar, E. Hüllermeier, "Analogy-based preference
   learning with kernels", KI 2019.
.. [Burges2005] C. Burges, T. Shaked, E. Renshaw, A. Lazier, M. Deeds, N. Hamilton, G.
   Hullender, "Learning to rank using gradient descent", ICML 2005.
.. [Kingma2015] D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR
  2015.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from preflearn.core.compilation import njit_inner_sums, njit_sums
from preflearn.core.estimator import check_new_items
from preflearn.core.validation import Floats, check_count, generator, require
from preflearn.pairs import Pairs
from preflearn.ranking.base import RankingLearner, check_scored_items, check_size

_ADAM_DECAY = (0.9, 0.999)  # decay of the two running means, as in [Kingma2015]_
_ADAM_EPSILON = 1e-8


@dataclass(eq=False, repr=False)
class RankNet(RankingLearner):
    """RankNet: a neural network with one hidden layer, trained on pairs.

    Choose it as a nonlinear baseline; see section 3.1.2 of [AhmadiFahandar2019]_.

    For f(x) = v·max(0, Wx + b) and the m pairs (i, j) of items of one query where i has
    the larger score, Adam ([Kingma2015]_) minimizes, in mini-batches of pairs::

        1/m sum over pairs of log(1 + exp(-sigma (f(x_i) - f(x_j)))).

    Parameters
    ----------
    n_hidden : int
        Number of hidden units (rows of W).
    batch_size : int
        Number of pairs per step.
    learning_rate : float
        Step length of Adam, from 1e-6 to 1e6.
    n_epochs : int
        Number of passes over all pairs.
    sigma : float
        Factor on the score differences, from 1e-6 to 1e6.
    random_state : int, numpy Generator or None
        Source of randomness for the initial weights (uniform, with the limits of Glorot
        and Bengio) and the order of pairs. A Generator gives other values in each fit;
        with None, results are not reproducible.

    Attributes
    ----------
    weights_ : ndarray of shape (p + 2, n_hidden)
        Weights of the network: the transpose of W in the first p rows, then b, then v.
        The output has no bias, since it would cancel in score differences.
    loss_curve_ : ndarray of shape (n_epochs,)
        Mean loss of the pairs in each epoch, computed for each pair before its step.
    n_features_in_ : int

    Notes
    -----
    Features should be standardized. The paper does not specify the activation, the
    number of epochs, or the optimizer except for its learning rate; these are
    choices of this implementation. RankNet was proposed in [Burges2005]_.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 12)[:, None]
    >>> learner = RankNet(random_state=1).fit(X, X[:, 0] ** 2)
    >>> learner.rank([[0.0], [0.9], [-0.5]]).tolist()
    [3, 1, 2]
    """

    n_hidden: int = 64
    _: KW_ONLY
    batch_size: int = 16
    learning_rate: float = 0.01
    n_epochs: int = 20
    sigma: float = 1.0
    random_state: int | np.random.Generator | None = 0

    def fit(self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None) -> Self:
        """Fit the network to scored items; see `RankingLearner.fit`.

        Raises
        ------
        ValueError
            If input or parameters are not valid, features exceed 1e100 in absolute
            value, or no two items of a query have different scores.
        """
        units, batch, epochs = (
            check_count(getattr(self, name), name, 1)
            for name in ("n_hidden", "batch_size", "n_epochs")
        )
        rate, sigma = (
            check_size(getattr(self, name), name, 1e6)
            for name in ("learning_rate", "sigma")
        )
        rng = generator(self.random_state, allow_none=True)
        pairs, labels = Pairs.from_scores(*check_scored_items(X, y, qid))
        first, second = pairs.index.T
        same = np.array_equal(pairs.items[first], pairs.items[second])
        expected = (
            "two items of a query with different scores and different features, since "
            "nothing can be learned from equal items"
        )
        require(not same, X, "X", expected)
        index = np.where((labels > 0)[:, None], pairs.index, pairs.index[:, ::-1])
        weights = _first_weights(rng, pairs.items.shape[1], units)
        means = np.zeros((2, *weights.shape))
        steps = 0
        losses = []
        for _ in range(epochs):
            order = index[rng.permutation(len(index))]
            losses.append(
                _epoch(pairs.items, order, weights, means, steps, batch, rate, sigma)
            )
            steps += -(-len(index) // batch)
        self.weights_ = weights
        self.loss_curve_ = np.array(losses)
        self.n_features_in_ = pairs.items.shape[1]
        return self

    def rank_function(self, X: ArrayLike) -> Floats:
        """Return the outputs f(x) of the network, shape (n,); larger is better."""
        return _outputs(check_new_items(self, X), self.weights_)


def _first_weights(rng: np.random.Generator, p: int, units: int) -> Floats:
    weights = np.zeros((p + 2, units))
    weights[:p] = rng.uniform(-1, 1, (p, units)) * np.sqrt(6 / (p + units))
    weights[p + 1] = rng.uniform(-1, 1, units) * np.sqrt(6 / (units + 1))
    return weights


@njit_inner_sums
def _score(x, weights, hidden):
    """Compute f(x), and store the hidden layer."""
    p = len(x)
    for h in range(len(hidden)):
        hidden[h] = weights[p, h]
    for k in range(p):
        for h in range(len(hidden)):
            hidden[h] += x[k] * weights[k, h]
    score = 0.0
    for h in range(len(hidden)):
        hidden[h] = max(hidden[h], 0.0)
        score += hidden[h] * weights[p + 1, h]
    return score


@njit_sums
def _outputs(X, weights):
    hidden = np.empty(weights.shape[1])
    scores = np.empty(len(X))
    for i in range(len(X)):
        scores[i] = _score(X[i], weights, hidden)
    return scores


@njit_inner_sums
def _add_slope(x, weights, hidden, factor, slope):
    """Add the factor times the gradient of f(x); the hidden layer is overwritten."""
    p = len(x)
    for h in range(len(hidden)):
        active = hidden[h] > 0
        slope[p + 1, h] += factor * hidden[h]
        hidden[h] = factor * weights[p + 1, h] if active else 0.0
        slope[p, h] += hidden[h]
    for k in range(p):
        for h in range(len(hidden)):
            slope[k, h] += x[k] * hidden[h]


@njit_inner_sums
def _batch(X, index, weights, sigma, slope, hidden):
    """Return the sum of the losses of pairs (better, worse).

    The gradient of their mean is written to `slope`.
    """
    total = 0.0
    share = sigma / len(index)
    slope[:] = 0.0
    for i, j in index:
        margin = sigma * (
            _score(X[i], weights, hidden[0]) - _score(X[j], weights, hidden[1])
        )
        small = np.exp(-abs(margin))
        factor = -share * (small if margin > 0 else 1.0) / (1 + small)
        _add_slope(X[i], weights, hidden[0], factor, slope)
        _add_slope(X[j], weights, hidden[1], -factor, slope)
        total += max(-margin, 0.0) + np.log1p(small)
    return total


@njit_sums
def _epoch(X, index, weights, means, steps, batch, rate, sigma):
    """Run one pass over the pairs, and return the mean loss.

    Weights and the running means of Adam are updated in place.
    """
    slope = np.empty_like(weights)
    hidden = np.empty((2, weights.shape[1]))
    total = 0.0
    for start in range(0, len(index), batch):
        total += _batch(X, index[start : start + batch], weights, sigma, slope, hidden)
        steps += 1
        seen = 1 - _ADAM_DECAY[0] ** steps, 1 - _ADAM_DECAY[1] ** steps
        for k in range(len(weights)):
            for h in range(weights.shape[1]):
                means[0, k, h] += (1 - _ADAM_DECAY[0]) * (slope[k, h] - means[0, k, h])
                means[1, k, h] += (1 - _ADAM_DECAY[1]) * (
                    slope[k, h] ** 2 - means[1, k, h]
                )
                size = np.sqrt(means[1, k, h] / seen[1]) + _ADAM_EPSILON
                weights[k, h] -= rate * means[0, k, h] / seen[0] / size
    return total / len(index)
