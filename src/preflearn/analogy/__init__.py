"""The analogy kernel between pairs of items, and rankers that use it (P5)."""

from preflearn.analogy.able2rank import Able2Rank
from preflearn.analogy.additive import AdditiveAnalogy
from preflearn.analogy.anker_rank import AnKerRank
from preflearn.analogy.certificate import Certificate, psd_certificate
from preflearn.analogy.feature_scaling import DomainScaler
from preflearn.analogy.gram_products import AnalogyOperator
from preflearn.analogy.kernel import analogy_kernel

__all__ = [
    "Able2Rank",
    "AdditiveAnalogy",
    "AnKerRank",
    "AnalogyOperator",
    "Certificate",
    "DomainScaler",
    "analogy_kernel",
    "psd_certificate",
]
