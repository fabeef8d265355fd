"""Items with scores: the data sets of section 6 of [Zapien2009]_."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from preflearn.datasets.rfiles import r_objects
from preflearn.datasets.storage import provenance

__all__ = ["ScoredItems", "load_auto", "load_cancer", "load_diabetes", "load_mixture"]


class ScoredItems(NamedTuple):
    """Items of one query, with scores; larger is better.

    Attributes
    ----------
    X : ndarray of shape (n, p)
    scores : ndarray of shape (n,)
    feature_names : tuple of str
    provenance : tuple of dict
    """

    X: NDArray[np.float64]
    scores: NDArray[np.float64]
    feature_names: tuple[str, ...]
    provenance: tuple[dict[str, str], ...]


def load_mixture() -> ScoredItems:
    """200 points of a mixture of Gaussians in the plane, 100 of each class: 10,000 comparisons.

    The score is the class, 0 or 1. [Zapien2009]_, Table 1, counts the pairs of the two classes.

    Returns
    -------
    ScoredItems

    Raises
    ------
    DatasetUnavailable
        If the file can't be had.
    CorruptedFile
        If it is not the registered one.
    """
    file = "mixture.example.RData"
    mixture = r_objects("mixture", file)["mixture.example"]
    X = np.asarray(mixture["x"], dtype=np.float64)
    scores = np.asarray(mixture["y"], dtype=np.float64)
    return ScoredItems(X, scores, ("x1", "x2"), provenance("mixture", [file]))


def load_auto() -> ScoredItems:
    """392 cars of seven features; the score is the fuel economy in miles per US gallon.

    Returns
    -------
    ScoredItems

    Raises
    ------
    DatasetUnavailable
        If the file can't be had.
    CorruptedFile
        If it is not the registered one.
    """
    frame = r_objects("auto", "Auto.rda")["Auto"]
    features = frame.drop(columns=["mpg", "name"])
    return ScoredItems(
        features.to_numpy(dtype=np.float64),
        frame["mpg"].to_numpy(dtype=np.float64),
        tuple(map(str, features.columns)),
        provenance("auto", ["Auto.rda"]),
    )


def load_diabetes() -> ScoredItems:
    """768 women of eight features (Pima Indians); the score is 1 where diabetes was diagnosed, else 0.

    A zero in glucose, pressure, triceps, insulin or mass means that it was not measured.

    Returns
    -------
    ScoredItems

    Raises
    ------
    DatasetUnavailable
        If the file can't be had.
    CorruptedFile
        If it is not the registered one.
    """
    file = "PimaIndiansDiabetes.rda"
    frame = r_objects("diabetes", file)["PimaIndiansDiabetes"]
    features = frame.drop(columns="diabetes")
    return ScoredItems(
        features.to_numpy(dtype=np.float64),
        (frame["diabetes"] == "pos").to_numpy(dtype=np.float64),
        tuple(map(str, features.columns)),
        provenance("diabetes", [file]),
    )


def load_cancer() -> ScoredItems:
    """569 breast tumours of 30 features; the score is 1 where the tumour is benign, else 0.

    The data are a part of scikit-learn, so that this loader needs no file and no network.

    Returns
    -------
    ScoredItems

    Examples
    --------
    >>> load_cancer().X.shape
    (569, 30)
    """
    bunch = load_breast_cancer()
    source = {
        "dataset": "cancer",
        "file": "breast_cancer.csv",
        "source": f"scikit-learn {sklearn.__version__}",
        "licence": "CC BY 4.0",
        "citation": "Street, Wolberg and Mangasarian 1993: Nuclear feature extraction (SPIE 1905)",
    }
    return ScoredItems(
        bunch.data, bunch.target.astype(np.float64), tuple(map(str, bunch.feature_names)), (source,)
    )
