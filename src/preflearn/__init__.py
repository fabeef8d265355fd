"""preflearn: learning from comparisons, the package behind the book.

Modules are imported by name, so that one method does not load the others::

    from preflearn.pairs import Pairs
    from preflearn.margins import MarginLP, MarginQP
    from preflearn import claims, datasets, metrics, plots
"""

from importlib.metadata import version

__version__ = version("preflearn")
__all__ = ["__version__"]
