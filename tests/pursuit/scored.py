"""Scored items in queries, and the matrices of their losses and functions, computed
from the definitions."""

import numpy as np
from reference import laplacian, same_query


def problem(seed, n=14, p=2):
    rng = np.random.default_rng(seed)
    qid = np.sort(rng.integers(0, 3, n))
    qid[:2] = 0
    return rng.normal(size=(n, p)), rng.normal(size=n), rng.permutation(qid)


def mixed(qid, mix=0.0):
    """L~ of eq. 5."""
    return mix * np.eye(len(qid)) + (1 - mix) * laplacian(same_query(qid))
