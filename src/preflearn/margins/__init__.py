"""Linear ranking functions with the largest margin (P1, section 3.1).

They exist if the comparisons are linearly separable.
"""

from preflearn.margins.lp import MarginLP
from preflearn.margins.qp import MarginQP
from preflearn.margins.separable import NotSeparableError, Separability, separability

__all__ = ["MarginLP", "MarginQP", "NotSeparableError", "Separability", "separability"]
