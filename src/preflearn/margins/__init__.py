"""P1, section 3.1: linear ranking functions with the largest margin, if any exist."""

from preflearn.margins.lp import MarginLP
from preflearn.margins.qp import MarginQP
from preflearn.margins.separable import NotSeparableError, Separability, separability

__all__ = ["MarginLP", "MarginQP", "NotSeparableError", "Separability", "separability"]
