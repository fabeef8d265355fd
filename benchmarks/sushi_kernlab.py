"""Compare kernlab's ksvm with exact fits of SVMcompare on the sushi data.

    python benchmarks/sushi_kernlab.py 1e-5 1e-4 > data/published/P1_kernlab.csv

The script needs R and kernlab (Debian: r-base-core, r-cran-kernlab). The arguments are
widths of the Gaussian kernel. The costs are from the authors' script
sushi.proportion.R. Some fits of kernlab take a minute. The data set is the first one of
chapter 5 with 400 training pairs, a tenth of which are ties.
"""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from preflearn import datasets
from preflearn.metrics import comparison_auc
from preflearn.pairs import Pairs
from preflearn.path import svm_path
from preflearn_book.studies.ch05_sushi import disjoint_samples

COSTS = 10.0 ** np.arange(-1, 4.5, 0.5)
COLUMNS = "solver,gamma,C,bias,objective,auc_of_u,validation_auc,test_auc"
Floats = NDArray[np.float64]


def data_set() -> list[tuple[Pairs, NDArray]]:
    """Training, validation, and test pairs with labels, as in chapter 5."""
    sushi = datasets.load_sushi()
    raw = sushi.pairs.items
    items = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    rng = np.random.default_rng([0, 0, 400, 10, 3])
    pairs = Pairs(items, sushi.pairs.index)
    return disjoint_samples(pairs, sushi.y, (400, 400, 5000), 0.1, rng)


def between(rows: Pairs, others: Pairs, gamma: float) -> Floats:
    """The kernel between the differences of two lists of pairs."""
    K = rbf_kernel(rows.items, others.items, gamma=gamma)
    return rows.B.differences(others.B.differences(K.T).T)


def by_kernlab(rows: Pairs, labels: NDArray, gammas: list[float]) -> Floats:
    """One row per fit: gamma, C, bias b, and the signed dual weights."""
    with TemporaryDirectory() as folder:
        names = ("second", "first", "labels", "costs", "gammas")
        parts = (rows.second, rows.first, labels, COSTS, gammas)
        files = [Path(folder, name) for name in names]
        for file, values in zip(files, parts, strict=True):
            np.savetxt(file, values, delimiter=",", fmt="%.17g")
        out = Path(folder, "weights")
        script = Path(__file__).with_suffix(".R")
        subprocess.run(["Rscript", script, *files, out], check=True)
        return np.fromfile(out).reshape(-1, 3 + len(labels))


def versions() -> str:
    """The versions of R and kernlab, such as "R 4.2.2, kernlab 0.9-32"."""
    code = 'cat(paste0("R ", getRversion(), ", kernlab ", packageVersion("kernlab")))'
    done = subprocess.run(
        ["Rscript", "-e", code], check=True, capture_output=True, text=True
    )
    return done.stdout


def exact(gram: Floats, labels: NDArray) -> Floats:
    """Bias and signed dual weights for each cost, from the path.

    They are NaN beyond the end of the path.
    """
    path = svm_path(gram, labels, lambda_min=1 / COSTS[-1])
    fits = np.full((len(COSTS), 1 + len(labels)), np.nan)
    for row, C in zip(fits, COSTS, strict=True):
        if path.lambda_end <= 1 / C:
            row[0] = path.bias(1 / C)
            row[1:] = C * labels * path.alpha(1 / C)
    return fits


def main(gammas: list[float]) -> None:
    """Print the table."""
    (train, y), *others = data_set()
    rows, labels = train.flipped(y)
    rows = Pairs.from_arrays(rows.first, rows.second)
    kernlab = by_kernlab(rows, labels, gammas)
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    print(f'# source: "benchmarks/sushi_kernlab.py, {versions()}, {today}"')
    print(COLUMNS)
    for gamma in gammas:
        gram = between(rows, rows, gamma)
        kernels = [between(pairs, rows, gamma) for pairs, _ in others]
        theirs = kernlab[np.isclose(kernlab[:, 0], gamma)][:, 2:]
        theirs[:, 0] *= -1  # f = u.d - b there
        for solver, fits in (("kernlab", theirs), ("exact", exact(gram, labels))):
            for C, (bias, *weights) in zip(COSTS, fits, strict=True):
                v = np.array(weights)
                hinges = np.maximum(0, 1 - labels * (gram @ v + bias)).sum()
                objective = v @ gram @ v / 2 + C * hinges
                z = [kernel @ v for kernel in kernels]
                of_u = comparison_auc(others[1][1], z[1])
                areas = [
                    comparison_auc(label, part / -bias)
                    for (_, label), part in zip(others, z, strict=True)
                ]
                values = gamma, C, bias, objective, of_u, *areas
                print(solver, *(f"{value:.6g}" for value in values), sep=",")


if __name__ == "__main__":
    main([float(argument) for argument in sys.argv[1:]])
