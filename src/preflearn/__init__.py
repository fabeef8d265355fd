"""Learning from comparisons: the methods of five papers, with baselines and data.

Each subpackage has the methods of one topic. P1 to P5 are the five papers of the book::

    from preflearn.pairs import Pairs                  pairs of items and their incidence matrix B
    from preflearn import metrics                      errors of predicted comparisons and rankings
    from preflearn.margins import MarginLP             P1: largest margins of separable comparisons
    from preflearn.svm import SVMCompare               P1: support vector machines for comparisons
    from preflearn.path import ranksvm_path            P2: solutions for all regularization parameters
    from preflearn.pursuit import RankingPursuit       P3: sparse rankings of scored items
    from preflearn.matches import Matches              comparisons with a time
    from preflearn.dynamics import DynamicComparisons  P4: scores that change over time
    from preflearn.ratings import Elo                  rating systems, updated after each match
    from preflearn.analogy import AnKerRank            P5: rankings by analogies between pairs
    from preflearn.ranking import bradley_terry        static models, baselines, rank aggregation
    from preflearn import datasets, plots              public data and simulations; figure style

Import each module by its name. Importing one method does not load the others.
"""

from importlib.metadata import version

__version__ = version("preflearn")
__all__ = ["__version__"]
