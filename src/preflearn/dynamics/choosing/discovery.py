"""Which covariance? A greedy search over sums and products by the evidence: future work of [Maystre2019]_.

References
----------
.. [Maystre2019] L. Maystre, V. Kristof, M. Grossglauser, "Pairwise comparisons with flexible
   time-dynamics", KDD 2019.
.. [Duvenaud2013] D. Duvenaud, J. Lloyd, R. Grosse, J. Tenenbaum, Z. Ghahramani, "Structure discovery in
   nonparametric regression through compositional kernel search", ICML 2013.
.. [Schwarz1978] G. Schwarz, "Estimating the dimension of a model", Annals of Statistics 6, 1978.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from preflearn.checks import Floats, check_count, require
from preflearn.dynamics.choosing.draws import check_jobs
from preflearn.dynamics.choosing.evidence import EvidenceMaximum, maximise_evidence
from preflearn.dynamics.choosing.parameters import changed
from preflearn.dynamics.choosing.structures import Grammar, Structure, covariance_of, fixed_in, structure_at
from preflearn.dynamics.choosing.words import in_words
from preflearn.dynamics.covariances.composite import Covariance, Product, Sum
from preflearn.dynamics.covariances.elementary import Affine, Constant, Matern12, Matern32, Matern52, Wiener
from preflearn.dynamics.covariances.prior import REST, Prior
from preflearn.dynamics.engine.fits import quietly_fitted
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.dynamics.likelihoods.normal import Gaussian
from preflearn.dynamics.model import DynamicComparisons
from preflearn.matches import Matches

BASES: tuple[Covariance, ...] = (
    Constant(),
    Affine(origin="first"),
    Wiener(origin="first"),
    Matern12(),
    Matern32(),
    Matern52(),
)
_FIRST = 0.3  # the variance at the start, of the likelihood's noise
_TOL, _GTOL, _STEPS = 1e-5, 0.05, 40  # of candidates: a few hundredths of a nat


class _Found(NamedTuple):
    """A structure at the maximum of its evidence, or why there is none."""

    structure: Structure
    likelihood: Likelihood
    others: dict[Any, Covariance]
    row: dict[str, Any]


class Discovery(NamedTuple):
    """What `discover_covariance` has found.

    Attributes
    ----------
    model : DynamicComparisons
        Fitted at the maximum of the evidence of the best structure.
    maximum : EvidenceMaximum
        With its certificates.
    table : DataFrame
        One row a candidate, in the order of the search: `step`; `structure`, as "Constant + Matern12";
        `evidence` at its maximum, a local one, in nats; `n_parameters`; `bic`, smaller is better; `seconds`;
        `converged`; `covariance`, with its parameters; `error`, the message if it could not be fitted, else
        "".
    report : str
        The search and what was found, in words.
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
    bases: Sequence[Covariance] = BASES,
    others: Mapping[Hashable, Covariance] | None = None,
    method: str = "ep",
    max_parts: int = 4,
    unit: str = "day",
    n_jobs: int = 1,
) -> Discovery:
    r"""Search for the sum of products of covariances that explains the matches best (section 6).

    Each structure is judged at the maximum of its evidence over its p hyperparameters and those of the
    likelihood, by the criterion of [Schwarz1978]_ with N matches,

    .. math:: \mathrm{BIC} = -2 \log p(y) + p \log N.

    That maximum is a local one, by gradients from the best of a few starts: a sum with a term that is of no
    use may end below one of its own parts, by up to 0.3 nats where this was looked for.

    The evidence itself takes the scores into account, so that a flexible prior is no advantage as such; BIC
    adds the price of having chosen the hyperparameters. The search is greedy, as in [Duvenaud2013]_. It
    begins with all single bases. A step tries all structures that differ from the best one by one part: one
    more term, a term multiplied by one more part, a part replaced, or one dropped; and it takes the best. It
    ends where none is better. So a part that does not pay is dropped, also one that paid before others came.

    Parameters
    ----------
    matches : Matches
    y : array-like of shape (N,)
        Outcomes.
    likelihood : Likelihood
        The start of its parameters.
    bases : sequence of Covariance
        What structures are made of; by default Constant, Affine and Wiener from each feature's first match,
        and the three Matérn covariances. Origins, periods, boundaries and orders are theirs. Variances and
        lengths of time start at what fits the data's span.
    others : mapping of feature name to Covariance, optional
        Of features that have their own, such as "advantage": not searched, their parameters are
        maximised along.
    method : {"ep", "kl"}
        As of `DynamicComparisons`.
    max_parts : int
        In one structure.
    unit : str
        Of time, for the report.
    n_jobs : int
        Processes for the candidates of a step; -1: as many as there are processors. The result is the same.

    Returns
    -------
    Discovery

    Raises
    ------
    ValueError
        As `DynamicComparisons.fit`; on bases that are sums or products, or appear twice; on others that are
        no features of the matches; if no base can be fitted, or all matches are at one time.

    References
    ----------
    .. [Duvenaud2013] D. Duvenaud, J. Lloyd, R. Grosse, J. Tenenbaum, Z. Ghahramani, "Structure discovery in
       nonparametric regression through compositional kernel search", ICML 2013.
    .. [Schwarz1978] G. Schwarz, "Estimating the dimension of a model", Annals of Statistics 6, 1978.

    Examples
    --------
    >>> from preflearn.dynamics import Matches, Probit
    >>> matches = Matches([[1, -1]] * 40, range(40), ["Ann", "Bob"])
    >>> y = [1] * 20 + [-1] * 20
    >>> found = discover_covariance(matches, y, Probit(), bases=[Constant(), Wiener(origin="first")])
    >>> found.table.loc[found.table["bic"].idxmin(), "structure"]
    'Wiener'
    """
    require(isinstance(matches, Matches) and len(matches) > 0, matches, "matches", "Matches, at least one")
    require(isinstance(likelihood, Likelihood), likelihood, "likelihood", "a likelihood, such as Probit()")
    outcomes = likelihood.check(y, len(matches))
    half = float(np.ptp(matches.time)) / 2
    require(half > 0, float(matches.time[0]), "the time of all matches", "matches at several times")
    require(isinstance(others, Mapping | None), others, "others", "a mapping of features to covariances")
    for name in others or {}:
        require(name in matches.features and name != REST, name, "a name in others", "a feature of matches")
    in_words(Constant(), unit)  # refuses a bad unit before the search
    others = dict(others or {})
    model = DynamicComparisons({REST: Constant(), **others}, likelihood, method, tol=_TOL, n_threads=1)
    model._check_parameters()
    grammar = Grammar(_check_bases(bases), half, check_count(max_parts, "max_parts", least=1))
    noise = likelihood.variance if isinstance(likelihood, Gaussian) else 1.0
    tried = grammar.singles(_FIRST * noise)
    best, rows = _Found((), likelihood, others, {"bic": math.inf}), list[dict[str, Any]]()
    with Parallel(n_jobs=check_jobs(n_jobs), max_nbytes=None) as parallel:
        for step in count(1):
            found: Any = parallel(
                delayed(_maximum)(model, matches, outcomes, best, grammar.label(starts[0]), starts)
                for starts in tried
            )
            rows += [{"step": step, **candidate.row} for candidate in found]
            leader = min(found, key=lambda candidate: candidate.row["bic"], default=best)
            if not leader.row["bic"] < best.row["bic"]:
                break
            best = leader
            tried = grammar.next_to(best.structure)
    if not best.structure:
        raise ValueError(f"no base could be fitted: {rows[0]['error']}; expected at least one that can")
    start = changed(_model(model, best.structure, best), tol=1e-6, n_threads=None)
    maximum = maximise_evidence(start, matches, outcomes, fixed=fixed_in(start, best.structure))
    table = pd.DataFrame(rows)
    return Discovery(maximum.model, maximum, table, _report(table, maximum, len(matches), 2 * half, unit))


def _check_bases(bases: Sequence[Covariance]) -> list[Covariance]:
    listed = list(bases) if isinstance(bases, Iterable) else []
    require(len(listed) > 0, bases, "bases", "at least one covariance, in a list")
    for k, base in enumerate(listed):
        good = isinstance(base, Covariance) and not isinstance(base, Sum | Product)
        require(good, base, f"bases[{k}]", "a covariance that is no sum and no product")
        require(base not in listed[:k], base, f"bases[{k}]", "each base once")
    return listed


# ---- The maximum of one structure


def _model(template: DynamicComparisons, structure: Structure, like: _Found) -> DynamicComparisons:
    """Of a structure, with the other parameters of an earlier find."""
    covariance = covariance_of(structure)
    whole = {REST: covariance, **like.others} if like.others else covariance
    return changed(template, covariance=whole, likelihood=like.likelihood)


def _maximum(
    template: DynamicComparisons,
    matches: Matches,
    outcomes: Floats,
    before: _Found,
    label: str,
    starts: list[Structure],
) -> _Found:
    """A local one, from the start that has the largest evidence."""
    begin, row = time.perf_counter(), {"structure": label}
    try:
        models = [_model(template, start, before) for start in starts]
        evidences = [_evidence(model, matches, outcomes) for model in models]
        best = int(np.argmax(evidences))
        fixed = fixed_in(models[best], starts[best])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            maximum = maximise_evidence(
                models[best], matches, outcomes, fixed=fixed, gtol=_GTOL, max_iter=_STEPS
            )
    except ValueError as error:
        row |= {"evidence": math.nan, "n_parameters": 0, "bic": math.inf, "converged": False}
        row |= {"covariance": "", "error": str(error), "seconds": time.perf_counter() - begin}
        return before._replace(row=row)
    others: dict[Any, Covariance] = dict(Prior(maximum.model.covariance).covariances)
    covariance = others.pop(REST)
    n = len(maximum.gradient)
    bic = n * math.log(len(matches)) - 2 * maximum.evidence
    row |= {"evidence": maximum.evidence, "n_parameters": n, "bic": bic, "converged": maximum.converged}
    row |= {"covariance": repr(covariance), "error": ""}
    row |= {"seconds": time.perf_counter() - begin}
    return _Found(structure_at(covariance, starts[best]), maximum.model.likelihood, others, row)


def _evidence(model: DynamicComparisons, matches: Matches, outcomes: Floats) -> float:
    """At a start; minus infinity where no fit is possible."""
    try:
        fitted = quietly_fitted(model, matches, outcomes)
    except ValueError:
        return -math.inf
    return fitted.log_marginal_likelihood_ if fitted.converged_ else -math.inf


def _report(table: pd.DataFrame, maximum: EvidenceMaximum, n: int, span: float, unit: str) -> str:
    first, *others = table.sort_values("bic", kind="stable").to_dict("records")
    lines = [
        f"{len(table)} structures were tried in {table['step'].iloc[-1]} steps. The smallest BIC, "
        f"{first['bic']:.1f}, is that of {first['structure']}: evidence {first['evidence']:.1f} with "
        f"{first['n_parameters']} parameter{'s' * (first['n_parameters'] != 1)} for {n:,} matches.",
        *(
            f"Next is {other['structure']}, whose BIC is larger by {other['bic'] - first['bic']:.1f}."
            for other in others[:1]
            if math.isfinite(other["bic"])
        ),
        in_words(maximum.model.covariance, unit, span=span),
    ]
    return "\n".join(lines)
