"""Items with scores, users' ratings, and documents of several queries.

They are from section 6 of [Zapien2009]_, section 6 of [Tsivtsivadze2013]_, and
LightGBM.
"""

import io
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from preflearn.core.validation import require
from preflearn.datasets.storage import provenance, r_arrays, read


class ScoredItems(NamedTuple):
    """Items of one query, with scores; larger is better.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Features of the items.
    scores : ndarray of shape (n,)
        Scores of the items; larger is better.
    feature_names : tuple of str
        Names of the columns of X.
    provenance : tuple of dict
        Sources and licenses of the files.
    """

    X: NDArray[np.float64]
    scores: NDArray[np.float64]
    feature_names: tuple[str, ...]
    provenance: tuple[dict[str, str], ...]


class Ratings(NamedTuple):
    """A sparse matrix of ratings, users by items.

    Attributes
    ----------
    ratings : csr_array of shape (users, items)
        Ratings as stored entries, including stored zeros: `ratings.nnz` is the
        number of ratings, and `ratings.eliminate_zeros()` would remove some of them.
    provenance : tuple of dict
        Sources and licenses of the files.
    """

    ratings: sparse.csr_array
    provenance: tuple[dict[str, str], ...]


class QueryDocuments(NamedTuple):
    """Documents of several queries, with relevance grades; larger is better.

    Attributes
    ----------
    X : csr_array of shape (n, p)
        Features of the documents.
    scores : ndarray of shape (n,)
        Relevance grades.
    qid : ndarray of shape (n,)
        Query numbers from 0, in the order of the files.
    is_test : ndarray of shape (n,)
        Whether the document is in the test file.
    provenance : tuple of dict
        Sources and licenses of the files.
    """

    X: sparse.csr_array
    scores: NDArray[np.float64]
    qid: NDArray[np.int64]
    is_test: NDArray[np.bool_]
    provenance: tuple[dict[str, str], ...]


def load_mixture() -> ScoredItems:
    """Load 200 points of a Gaussian mixture in the plane, 100 of each class.

    The score is the class, 0 or 1, which gives 10,000 comparisons. [Zapien2009]_, Table
    1, counts the pairs of the two classes.

    Returns
    -------
    ScoredItems
    """
    mixture = r_arrays(
        "mixture", "mixture.example.RData", lambda objects: objects["mixture.example"]
    )
    features = pd.DataFrame(mixture["x"], columns=["x1", "x2"])
    return _scored(features, mixture["y"], provenance("mixture"))


def load_auto() -> ScoredItems:
    """Load 392 cars with seven features.

    The score is the fuel economy in miles per US gallon.

    Returns
    -------
    ScoredItems
    """
    cars = r_arrays(
        "auto", "Auto.rda", lambda objects: objects["Auto"].drop(columns="name")
    )
    scores = cars.pop("mpg")
    return _scored(pd.DataFrame(cars), scores, provenance("auto"))


def load_diabetes() -> ScoredItems:
    """Load the Pima Indians diabetes data: 768 women with eight features.

    The score is 1 if diabetes was diagnosed, else 0. A zero in glucose, pressure,
    triceps, insulin, or mass means that the value was not measured.

    Returns
    -------
    ScoredItems
    """
    women = r_arrays("diabetes", "PimaIndiansDiabetes.rda", _diabetes_columns)
    scores = women.pop("diagnosed")
    return _scored(pd.DataFrame(women), scores, provenance("diabetes"))


def _diabetes_columns(objects: dict[str, Any]) -> pd.DataFrame:
    women = objects["PimaIndiansDiabetes"]
    return women.drop(columns="diabetes").assign(diagnosed=women["diabetes"] == "pos")


def load_cancer() -> ScoredItems:
    """Load 569 breast tumors with 30 features.

    The score is 1 if the tumor is benign, else 0. The data are included in
    scikit-learn, so this loader needs no file and no network.

    Returns
    -------
    ScoredItems

    Examples
    --------
    >>> load_cancer().X.shape
    (569, 30)
    """
    import sklearn
    from sklearn.datasets import (
        load_breast_cancer,  # imported late: it loads SciPy's statistics
    )

    tumours: Any = load_breast_cancer(as_frame=True)
    source = {
        "dataset": "cancer",
        "file": "breast_cancer.csv",
        "source": f"scikit-learn {sklearn.__version__}",
        "licence": "CC BY 4.0",
        "citation": "Street, Wolberg and Mangasarian 1993: Nuclear feature extraction (SPIE 1905)",
    }
    return _scored(tumours.data, tumours.target, (source,))


def load_jester() -> Ratings:
    """Load ratings of 100 jokes by 5000 users, from -10 to 10.

    They are a sample of the 73,421 users of the paper.

    Returns
    -------
    Ratings
    """
    return _ratings("jester", "Jester5k.rda", "Jester5k")


def load_movielens() -> Ratings:
    """Load ratings of 1664 movies by 943 users, from 1 to 5.

    The paper uses the larger data set with a million ratings.

    Returns
    -------
    Ratings
    """
    return _ratings("movielens", "MovieLense.rda", "MovieLense")


def load_lightgbm_ranking() -> QueryDocuments:
    """Load the ranking example of LightGBM: documents with relevance grades 0 to 4.

    There are 201 training and 50 test queries with 1 to 27 documents, and 300 sparse
    features. The source does not describe the features.

    Returns
    -------
    QueryDocuments

    Raises
    ------
    ValueError
        If the number of documents in a file differs from its list of query sizes.
    """
    # imported late: it loads much of scikit-learn
    from sklearn.datasets import load_svmlight_files

    names = ("rank.train", "rank.test")
    files = [io.BytesIO(read("lightgbm_ranking", name)) for name in names]
    # Both files are read together, to get the same number of columns.
    from_one: Any = False  # the features are numbered from 1
    X_train, y_train, X_test, y_test = load_svmlight_files(files, zero_based=from_one)
    sizes = []
    for name, scores in zip(names, (y_train, y_test), strict=True):
        text = read("lightgbm_ranking", f"{name}.query").decode("ascii")
        sizes.append(np.array(text.split(), dtype=np.int64))
        require(
            sizes[-1].sum() == len(scores),
            int(sizes[-1].sum()),
            f"the number of documents in {name}.query",
            f"{len(scores)}, as in {name}; run: preflearn data fetch lightgbm_ranking",
        )
    of_query = np.concatenate(sizes)
    return QueryDocuments(
        sparse.csr_array(sparse.vstack([X_train, X_test])),
        np.concatenate([y_train, y_test]),
        np.repeat(np.arange(len(of_query)), of_query),
        np.repeat([False, True], [len(y_train), len(y_test)]),
        provenance("lightgbm_ranking"),
    )


def _scored(
    features: pd.DataFrame, scores: ArrayLike, sources: tuple[dict[str, str], ...]
) -> ScoredItems:
    X = features.to_numpy(dtype=np.float64)
    names = tuple(map(str, features.columns))
    return ScoredItems(X, np.asarray(scores, dtype=np.float64), names, sources)


def _ratings(dataset: str, file: str, name: str) -> Ratings:
    stored = r_arrays(dataset, file, lambda objects: _slots(objects[name].data))
    columns = sparse.csc_array(
        (stored["x"], stored["i"], stored["p"]), shape=tuple(stored["Dim"])
    )
    ratings = sparse.csr_array(columns, dtype=np.float64)  # stored zeros stay stored
    return Ratings(ratings, provenance(dataset, [file]))


def _slots(matrix: Any) -> dict[str, ArrayLike]:
    """Parts of an R dgCMatrix, a sparse matrix in column order."""
    return {"x": matrix.x, "i": matrix.i, "p": matrix.p, "Dim": matrix.Dim}
