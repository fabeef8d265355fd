"""preflearn: learning from comparisons, the methods of the book.

Five papers, one incidence matrix; each subpackage has the methods of one paper::

    from preflearn.pairs import Pairs                  the comparisons, and their incidence matrix B
    from preflearn import metrics                      losses of comparison functions
    from preflearn.margins import MarginLP             P1: margins of separable comparisons
    from preflearn.svm import SVMCompare               P1: support vector machines for comparisons
    from preflearn.path import ranksvm_path            P2: whole regularization paths
    from preflearn.pursuit import RankingPursuit       P3: sparse rankings of scored items
    from preflearn.matches import Matches              comparisons with a time
    from preflearn.dynamics import DynamicComparisons  P4: scores that move in time, learned from matches
    from preflearn.ratings import Elo                  P4's baselines: ratings updated match by match
    from preflearn.analogy import AnKerRank            P5: rankings by analogies between pairs
    from preflearn.ranking import bradley_terry        baselines, models of ties, aggregation
    from preflearn import datasets, plots              public data, simulations; the style of figures

Import modules by name, so that one method does not load the others.
"""

from importlib.metadata import version

__version__ = version("preflearn")
__all__ = ["__version__"]
