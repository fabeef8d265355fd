"""Greedy search for a covariance: sums and products with the best BIC.

[Maystre2019]_ mentions such a search as future work.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with
   flexible time-dynamics", KDD 2019.
.. [Duvenaud2013] D. Duvenaud, J. Lloyd, R. Grosse, J. Tenenbaum, Z. Ghahramani,
   "Structure discovery in nonparametric regression through compositional kernel
   search", ICML 2013.
.. [Schwarz1978] G. Schwarz, "Estimating the dimension of a model", Annals of Statistics
  6, 1978.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import delayed
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from preflearn.core.validation import Floats, PerMatch, check_count, check_list, require
from preflearn.dynamics.covariances.composite import Covariance
from preflearn.dynamics.covariances.elementary import (
    Affine,
    Constant,
    Matern12,
    Matern32,
    Matern52,
    Wiener,
)
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.dynamics.model import DynamicComparisons, check_problem
from preflearn.dynamics.model_selection.evidence import (
    EvidenceMaximum,
    maximise_evidence,
)
from preflearn.dynamics.model_selection.hyperparameters import changed, evidence_of
from preflearn.dynamics.model_selection.structures import (
    Grammar,
    Structure,
    covariance_of,
    fixed_in,
    structure_at,
)
from preflearn.dynamics.model_selection.summary import in_words
from preflearn.matches import Matches
from preflearn.solvers.search import in_parallel

BASES: tuple[Covariance, ...] = (
    Constant(),
    Affine(),
    Wiener(),
    Matern12(),
    Matern32(),
    Matern52(),
)
_START_VARIANCE = 0.3  # relative to the noise variance of the likelihood
# tolerances for candidates: errors of a few hundredths of a nat
_TOL = 1e-5
_GTOL = 0.05
_MAX_STEPS = 40


class Discovery(NamedTuple):
    """Result of `discover_covariance`.

    Attributes
    ----------
    model : DynamicComparisons
        Model with the best structure, fitted at the maximum of the evidence.
    maximum : EvidenceMaximum
        Maximum of the evidence, with gradient and convergence.
    table : DataFrame
        One row per candidate, in the order of the search: `step`; `structure`, such as
        "Constant + Matern12"; `evidence` at its (local) maximum, in nats;
        `n_parameters`; `bic` (smaller is better); `seconds`; `converged`; `covariance`,
        with its parameters; `error`, the message if no fit was possible, else "".
    report : str
        Description of the search and its result.
    """

    model: DynamicComparisons
    maximum: EvidenceMaximum
    table: pd.DataFrame
    report: str


def discover_covariance(
    matches: Matches,
    y: ArrayLike,
    likelihood: Likelihood,
    *,
    sample_weight: PerMatch = None,
    offset: PerMatch = None,
    bases: Sequence[Covariance] = BASES,
    max_parts: int = 4,
    n_jobs: int | None = None,
) -> Discovery:
    r"""Search for the sum of products of covariances that explains the matches best.

    Use it if you have no model of the time dynamics (section 6 of [Maystre2019]_). The
    criterion is that of [Schwarz1978]_. For each structure the evidence is maximized
    over its p hyperparameters, including those of the likelihood. With N matches,

    .. math:: \mathrm{BIC} = -2 \log p(y) + p \log N.

    The maximum is local, found by gradients from the best of a few starts. A sum with a
    useless term may therefore have a lower evidence than one of its own parts; in an
    experiment, by up to 0.3 nats.

    The evidence already integrates over the scores, so flexibility of the prior alone
    does not raise it. BIC adds a penalty for the choice of the hyperparameters. The
    search is greedy, as in [Duvenaud2013]_. It starts with all single bases. Each step
    tries all structures that differ in one part from the best one: with one more term,
    with a term multiplied by one more part, with a part replaced, or with a part
    removed. The search ends if none is better. A part that was useful in an earlier
    step may be removed later.

    Parameters
    ----------
    matches : Matches
        Matches of the training data.
    y : array-like of shape (N,)
        Outcomes.
    likelihood : Likelihood
        Likelihood with the start values of its parameters.
    sample_weight : array-like of shape (N,), optional
        Weights, as in `DynamicComparisons.fit`; N in the criterion is their sum.
    offset : array-like of shape (N,), optional
        Offsets, as in `DynamicComparisons.fit`.
    bases : sequence of Covariance
        Parts of the structures; by default Constant, Affine, Wiener, and the three
        Matérn covariances, with origins at each feature's first match. Origins,
        periods, boundaries, and orders keep their values. Variances and lengths of time
        start at values that suit the time span of the data.
    max_parts : int
        Largest number of parts of a structure.
    n_jobs : int, optional
        Number of processes for the candidates of a step; -1 for one per processor; one
        by default, or the number set with `joblib.parallel_config`. It does not affect
        the result.

    Returns
    -------
    Discovery

    Raises
    ------
    ValueError
        In the cases of `DynamicComparisons.fit`; if a base is a sum or product or
        occurs twice; if no base can be fitted, or all matches have the same time.

    References
    ----------
    .. [Duvenaud2013] D. Duvenaud, J. Lloyd, R. Grosse, J. Tenenbaum, Z. Ghahramani,
       "Structure discovery in nonparametric regression through compositional kernel
       search", ICML 2013.
    .. [Schwarz1978] G. Schwarz, "Estimating the dimension of a model", Annals of
      Statistics 6, 1978.

    Examples
    --------
    >>> from preflearn.dynamics import Probit
    >>> from preflearn.matches import Matches
    >>> matches = Matches([[1, -1]] * 40, range(40), ["Ann", "Bob"])
    >>> y = [1] * 20 + [-1] * 20
    >>> found = discover_covariance(matches, y, Probit(), bases=[Constant(), Wiener()])
    >>> found.table.loc[found.table["bic"].idxmin(), "structure"]
    'Wiener'
    """
    best = DynamicComparisons(Constant(), likelihood, tol=_TOL, n_threads=1)
    observations = check_problem(best, matches, y, sample_weight, offset)
    half = float(np.ptp(matches.time)) / 2
    require(
        half > 0,
        float(matches.time[0]),
        "the time of all matches",
        "matches at two or more times",
    )
    grammar = Grammar(
        _check_bases(bases), half, check_count(max_parts, "max_parts", least=1)
    )
    tried = grammar.singles(_START_VARIANCE * getattr(likelihood, "variance", 1.0))
    structure = ()
    least = math.inf
    rows = list[dict[str, Any]]()
    # the loop ends, since there are finitely many structures of max_parts
    for step in count(1):
        calls = (
            delayed(_maximum)(
                best, matches, observations, grammar.label(starts[0]), starts
            )
            for starts in tried
        )
        found = in_parallel(calls, n_jobs)
        rows += [{"step": step, **row} for *_, row in found]
        leader = min(found, key=lambda candidate: candidate[-1]["bic"], default=None)
        if leader is None or not leader[-1]["bic"] < least:
            break
        structure, best, least = *leader[:2], leader[-1]["bic"]
        tried = grammar.next_to(structure)
    if not structure:
        raise ValueError(
            f"no base could be fitted ({rows[0]['error']}); pass other bases, or check the matches"
        )
    start = changed(best, tol=1e-6, n_threads=None)
    maximum = maximise_evidence(
        start, matches, *observations.T, fixed=fixed_in(start, structure)
    )
    table = pd.DataFrame(rows)
    return Discovery(
        maximum.model,
        maximum,
        table,
        _report(table, maximum, float(observations[:, 1].sum()), 2 * half),
    )


def _check_bases(bases: Sequence[Covariance]) -> list[Covariance]:
    listed = check_list(bases, "bases", expected := "a list of at least one covariance")
    require(len(listed) > 0, bases, "bases", expected)
    for k, base in enumerate(listed):
        good = isinstance(base, Covariance) and "variance" in base.positive()
        require(
            good,
            base,
            f"bases[{k}]",
            "a covariance with a variance that is not a sum or product",
        )
        require(
            base not in listed[:k],
            base,
            f"bases[{k}]",
            "a base that is not in the list already",
        )
    return listed


def _maximum(
    model: DynamicComparisons,
    matches: Matches,
    observations: Floats,
    label: str,
    starts: list[Structure],
) -> tuple[Structure, DynamicComparisons, dict[str, Any]]:
    """Maximize the evidence of a structure, from the best of its starts.

    Other parameters are those of `model`. The function returns the structure at the
    maximum, the model, and a row of the table.
    """
    begin = time.perf_counter()
    structure = starts[0]
    row: dict[str, Any] = {
        "structure": label,
        "evidence": math.nan,
        "n_parameters": 0,
        "bic": math.inf,
        "converged": False,
        "covariance": "",
        "error": "",
    }
    try:
        models = [changed(model, covariance=covariance_of(start)) for start in starts]
        fits = pd.DataFrame(
            [evidence_of(start, matches, observations, {}) for start in models]
        )
        best = int(np.argmax(np.where(fits["converged"], fits["evidence"], -np.inf)))
        model = models[best]
        structure = starts[best]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = maximise_evidence(
                model,
                matches,
                *observations.T,
                fixed=fixed_in(model, structure),
                gtol=_GTOL,
                max_iter=_MAX_STEPS,
            )
        model = changed(found.model)
        n = len(found.gradient)
        covariance: Any = model.covariance  # one for all features
        structure = structure_at(covariance, structure)
        row |= {
            "evidence": found.evidence,
            "n_parameters": n,
            "converged": found.converged,
            "bic": n * math.log(observations[:, 1].sum()) - 2 * found.evidence,
            "covariance": repr(covariance),
        }
    except ValueError as error:
        row["error"] = str(error)
    return structure, model, row | {"seconds": time.perf_counter() - begin}


def _report(
    table: pd.DataFrame, maximum: EvidenceMaximum, n: float, span: float
) -> str:
    covariance: Any = maximum.model.covariance  # one for all features
    first, *others = table.sort_values("bic", kind="stable").to_dict("records")
    lines = [
        f"{len(table)} structures were tried in {table['step'].iloc[-1]} steps. The smallest BIC, "
        f"{first['bic']:.1f}, is that of {first['structure']}: evidence {first['evidence']:.1f} with "
        f"{first['n_parameters']} parameter{'s' * (first['n_parameters'] != 1)} for {n:,.10g} matches.",
    ]
    if others and math.isfinite(gap := others[0]["bic"] - first["bic"]):
        lines.append(
            f"Next is {others[0]['structure']}, whose BIC is larger by {gap:.1f}."
        )
    return "\n".join([*lines, in_words(covariance, span)])
