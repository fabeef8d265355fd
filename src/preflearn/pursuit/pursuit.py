"""Ranking pursuit and kernel matching pursuit (sections 3 and 4 of P3).

References
----------
.. [Tsivtsivadze2013] E. Tsivtsivadze, T. Heskes, "Semi-supervised ranking pursuit".
.. [Vincent2002] P. Vincent, Y. Bengio, "Kernel matching pursuit", Machine Learning 48,
  2002.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from preflearn.core.estimator import check_new_items
from preflearn.core.expansion import Functions, functions_of, given_functions
from preflearn.core.kernels import Kernel
from preflearn.core.validation import (
    Floats,
    check_array,
    check_count,
    check_real,
)
from preflearn.pursuit.base import (
    ScoredItemsEstimator,
    TrainingData,
    check_training_data,
)
from preflearn.pursuit.dictionary import Dictionary, check_size
from preflearn.pursuit.greedy import Backfit, Search, Step, check_backfit, follow
from preflearn.pursuit.near_optimal import NearOptimal, beam_search
from preflearn.pursuit.quadratic_forms import QueryForm


@dataclass(eq=False, repr=False)
class RankingPursuit(ScoredItemsEstimator):
    """Sparse ranking function from scored items, by greedy selection of kernels.

    Choose it if the ranking function should be a sum of few kernel functions, for
    example for fast prediction. Each step adds the function that lowers the loss most.
    `RankRLS` uses all items and is not sparse.

    With L~ = mix I + (1 - mix) L, eq. 5 of [Tsivtsivadze2013]_, the loss of f = sum_j
    a_j k_j on the training items is (s - f)'L~(s - f), eq. 2 and 4. At mix = 0 it is
    the sum of ((s_i - s_j) - (f_i - f_j))² over pairs of the same query. At mix = 1 it
    is the sum of (s_i - f_i)², the loss of kernel matching pursuit [Vincent2002]_ and
    twice the expression in section 4. In a query of q items, the part of s - f that is
    not constant has the weight q in L and the weight 1 in I. For long queries, mix =
    1/2 is therefore nearly the same as ranking.

    Parameters
    ----------
    n_basis : int
        Largest number P of functions.
    kernel, gamma, degree, coef0
        Kernel and its parameters, as in `SVMRank`; "precomputed": X contains the
        values of N functions, shape (n, N).
    mix : float
        beta of eq. 5, from 0 (ranking) to 1 (kernel matching pursuit).
    backfit : False, "after" or "pre"
        Treatment of earlier coefficients. False: they do not change (Figure 1).
        "after": a function is chosen with the old coefficients, and then all
        coefficients are refitted (orthogonal matching pursuit). "pre": the function is
        chosen that gives the lowest loss after all coefficients are refitted
        (orthogonal least squares).
    dictionary : array-like of shape (N, p), optional
        Centers of the functions; None: the training items.
    memory : float
        Limit in bytes for the values of the dictionary. They are stored in float64 if
        they fit, or in float32 (choices are verified in float64); otherwise they are
        recomputed at each step.

    Attributes
    ----------
    basis_ : ndarray of int, shape (P,)
        Rows of the dictionary in the order in which they were chosen. Without
        back-fitting, a row may be chosen repeatedly.
    coef_ : ndarray of shape (P,)
        Coefficients of these functions.
    coefs_ : ndarray of shape (P, P + 1)
        Coefficients after 0, 1, ... steps, one column per step.
    losses_ : ndarray of shape (P + 1,)
        Loss on the training items after 0, 1, ... steps.
    n_features_in_ : int

    Notes
    -----
    The pursuit ends early if no function lowers the loss by more than rounding errors,
    for example if n_basis exceeds the rank of the dictionary. Queries of one item,
    or of equal scores, are allowed: the former add nothing to the loss, the latter
    penalize differences of f within the query. If all scores are equal, `basis_` is
    empty. At mix = 0 a constant in f has no meaning. If the decreases of several
    functions agree to 1e-9, the first one is chosen.

    **Alternative.** For regression (mix = 1) with given columns and up to a few hundred
    items, scikit-learn's orthogonal_mp takes a third to two thirds of the time. It
    supports neither queries nor predictions for new items.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [5.0]], [0.0, 1.0, 4.0, 3.0]
    >>> model = RankingPursuit(n_basis=2, gamma=0.5).fit(X, y)
    >>> model.basis_.tolist(), model.score(X, y)
    ([0, 2], 1.0)
    """

    n_basis: int = 10
    kernel: Kernel = "rbf"
    _: KW_ONLY
    mix: float = 0.0
    backfit: Backfit = "after"
    dictionary: ArrayLike | None = None
    memory: float = 1e9

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to scored items.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
            Features. Sparse features remain sparse if the kernel is linear and n < p;
            otherwise they become dense.
        y : array-like of shape (n,)
            Scores; larger is better.
        qid : array-like of shape (n,), optional
            Query ids: only items with equal ids are compared. None: one query.

        Raises
        ------
        ValueError
            If parameters, shapes, or values are not valid, squares of values would
            over- or underflow, or no two items are compared and mix < 1.
        """
        expected = "a number from 0 (ranking) to 1 (regression)"
        mix = check_real(self.mix, "mix", expected, least=0.0, most=1.0)
        data = check_training_data(X, y, qid, mix, self.kernel)
        functions = self._dictionary_functions(data.X)
        most = check_count(self.n_basis, "n_basis", 1)
        check_backfit(self.backfit)
        values = "the scores y"
        if mix == 0:
            values = "the differences of the scores y"
        check_size(float(np.abs(data.y).max()), values)
        search = self._search(functions, data, self.backfit)
        follow(search.step, most)
        self.basis_ = np.array(search.order, dtype=np.int64)
        self.coefs_ = search.coefs()
        self.coef_ = self.coefs_[:, -1]
        self.losses_ = np.array(search.losses)
        self._functions = functions
        self._training = data
        self.n_features_in_ = data.X.shape[1]
        return self

    def near_optimal(self, epsilon: float = 0.1, beam: int = 10) -> NearOptimal:
        """Find other models of nearly the lowest loss.

        They have at most as many functions as the fitted model, and their loss is at
        most (1 + epsilon) times the lowest loss that is found.

        The method is a beam search over the pursuit with backfit="pre", on the training
        items. With ``beam=1`` it is the pursuit itself.

        Parameters
        ----------
        epsilon : float
            Largest relative difference between the loss of a model and the lowest loss.
        beam : int
            Number of sets of functions that are kept at each step, and largest
            number of models.
        """
        epsilon = check_real(epsilon, "epsilon", "a number of at least 0", least=0.0)
        beam = check_count(beam, "beam", 1)
        check_is_fitted(self, "n_features_in_")
        search = self._search(self._functions, self._training, "pre")
        models = beam_search(search, max(1, len(self.basis_)), epsilon, beam)
        return NearOptimal(models, self._model_scores)

    def _dictionary_functions(self, X: Floats) -> Functions:
        if self.dictionary is None:
            return functions_of(self, X)
        if self.kernel == "precomputed":
            raise ValueError(
                "dictionary cannot be combined with kernel='precomputed', where the columns "
                "of X are the dictionary; pass dictionary=None"
            )
        centres = check_array(self.dictionary, "dictionary", ("N", X.shape[1]))
        return functions_of(self, X, centres.copy())

    def _search(
        self, functions: Functions, data: TrainingData, backfit: Backfit
    ) -> Search:
        expected = "a number of bytes, at least 0"
        memory = check_real(self.memory, "memory", expected, least=0.0)
        seen = functions.seen(data.form.mix)
        dictionary = Dictionary(seen, data.X, memory, single=True)
        return Search(dictionary, data.form, data.y, backfit)

    def _model_scores(self, X: ArrayLike, model: Step) -> Floats:
        """Return a model's scores of items, up to a constant at mix = 0."""
        functions = self._functions.seen(self._training.form.mix)
        return functions.expansion(model.basis, model.coef)(check_new_items(self, X))


def searched(
    K: Floats, form: QueryForm, scores: Floats, most: int, backfit: Backfit
) -> Search:
    """Run a pursuit of up to `most` steps on given function values K (n, N).

    The input is not checked.
    """
    dictionary = Dictionary(given_functions(K.shape[1]), K, np.inf)
    search = Search(dictionary, form, scores, backfit)
    follow(search.step, most)
    return search
