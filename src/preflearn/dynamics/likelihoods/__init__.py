"""Likelihoods of an outcome given a score difference, and their integrals.

To add a likelihood, write a class in a module of this folder, and add it to `EXAMPLES`
and to `__all__`. The package exports the class from there, and the tests run over all
entries.
"""

from preflearn.dynamics.likelihoods.counts import Poisson, Skellam
from preflearn.dynamics.likelihoods.likelihood import Likelihood
from preflearn.dynamics.likelihoods.logit import Logit, OrdinalLogit
from preflearn.dynamics.likelihoods.normal import Gaussian, OrdinalProbit, Probit
from preflearn.dynamics.likelihoods.robust import Lapse, StudentT

__all__ = [
    "Gaussian",
    "Lapse",
    "Likelihood",
    "Logit",
    "OrdinalLogit",
    "OrdinalProbit",
    "Poisson",
    "Probit",
    "Skellam",
    "StudentT",
]

# An instance of each likelihood, and possible outcomes.
EXAMPLES: dict[Likelihood, tuple[float, ...]] = {
    Probit(): (1, -1),
    Logit(): (1, -1),
    OrdinalProbit(margin=0.4): (1, 0, -1),
    OrdinalLogit(margin=0.4): (1, 0, -1),
    Poisson(): (0, 1, 2, 3),
    Gaussian(variance=0.5): (0.7, -1.2, 2.0, 0.1),
    Skellam(base_rate=1.3): (0, 2, -1),
    Lapse(Probit(), rate=0.1): (1, -1),
    Lapse(OrdinalLogit(margin=0.4), rate=0.05): (1, 0, -1),
    StudentT(scale=0.7, df=4.0): (0.7, -1.2, 6.0, 0.1),
}
