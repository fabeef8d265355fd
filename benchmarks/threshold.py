"""The exact threshold of eq. 6 against a search over a grid of thresholds, as the paper
does it.

python benchmarks/threshold.py             up to 1,000,000 pairs
python benchmarks/threshold.py --quick     up to 100,000 pairs
"""

from __future__ import annotations

import argparse

import numpy as np
from _measure import alternate, markdown_table, peak_megabytes

from preflearn.metrics import best_threshold

GRID = 100  # thresholds
REPEATS = 5


def problem(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy labels of m pairs, half of them ties, and predicted differences of scores."""
    rng = np.random.default_rng(0)
    differences = rng.standard_normal(m)
    noisy = differences + 0.5 * rng.standard_normal(m)
    y = np.where(np.abs(noisy) < np.median(np.abs(noisy)), 0, np.sign(noisy)).astype(
        int
    )
    return y, differences


def grid_search(y: np.ndarray, differences: np.ndarray) -> tuple[float, float]:
    """The best of evenly spaced thresholds, and its loss."""
    size = np.abs(differences)
    direction = np.sign(differences)
    taus = np.linspace(0, size.max(), GRID)
    losses = [np.mean(np.where(size > tau, direction, 0) != y) for tau in taus]
    return float(taus[np.argmin(losses)]), float(min(losses))


def search(method: str, m: int):
    """A call without arguments: this method on m pairs."""
    data = problem(m)
    return lambda: (best_threshold if method == "exact" else grid_search)(*data)


def compare(m: int) -> list[object]:
    """One row of the table."""
    calls = [search(method, m) for method in ("exact", "grid")]
    ours, peer = alternate(calls, REPEATS)
    losses = [call()[1] for call in calls]
    memory = [peak_megabytes(search, method, m) for method in ("exact", "grid")]
    return [m, ours, peer, peer / ours, *memory, losses[1] - losses[0]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 100,000 pairs")
    sizes = (
        (10_000, 100_000) if parser.parse_args().quick else (10_000, 100_000, 1_000_000)
    )
    header = [
        "pairs",
        "ours s",
        "grid s",
        "ratio",
        "ours MB",
        "grid MB",
        "grid's loss above ours",
    ]
    print(markdown_table(header, [compare(m) for m in sizes]))


if __name__ == "__main__":
    main()
