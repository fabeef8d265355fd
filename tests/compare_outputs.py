"""Compare the outputs of two builds of the book: ``python tests/compare_outputs.py OLD
NEW``.

OLD and NEW are folders book/chapters: the executed chapters, and the collected page of
claims. Code cells are matched by their ids, and their outputs are compared: the words
must be the same, and each number the same up to a relative tolerance. A difference is
printed with its kind (a number beyond the tolerance, a measured time, or other words),
and whether the source of the cell also changed. The exit status is 1 if anything except
a measured time differs.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path

NUMBER = re.compile(r"[-+]?\d+(?:[,_]\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?")
TIMING = re.compile(r"\b(?:seconds?|milliseconds?|ms|min|s)\b")
ADDRESS = re.compile(r"0x[0-9a-f]+")


def outputs(cell: dict) -> dict[str, str]:
    """Return the texts that a cell shows, by kind. Figures are SVG, so their numbers
    are text, too."""
    found: dict[str, str] = {}
    for output in cell.get("outputs", []):
        texts = (
            {"stream": output["text"]}
            if output["output_type"] == "stream"
            else output.get("data", {})
        )
        for kind, text in texts.items():
            found[kind] = found.get(kind, "") + (
                text if isinstance(text, str) else "".join(map(str, text))
            )
    return {
        kind: ADDRESS.sub("0x", text)
        for kind, text in found.items()
        if not kind.startswith("application/")
    }


def numbers(text: str) -> list[float]:
    """Return the numbers of a text, in order."""
    return [
        float(number.replace(",", "").replace("_", ""))
        for number in NUMBER.findall(text)
    ]


def compare(old: str, new: str, tolerance: float) -> tuple[str, float]:
    """Return the kind of the difference ("same", "rounding", "numbers", "time" or
    "words") and the largest relative difference."""
    if old == new:
        return "same", 0.0
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return "words", float("inf")
    pairs = zip(numbers(old), numbers(new), strict=True)
    largest = max(
        (abs(a - b) / max(abs(a), abs(b), 1e-300) for a, b in pairs), default=0.0
    )
    if largest <= tolerance:
        return "rounding", largest
    return ("time" if TIMING.search(new) else "numbers"), largest


def compare_notebooks(old: Path, new: Path, tolerance: float) -> Counter:
    """Print the differences of two executed notebooks; count outputs by kind of
    difference."""
    before, after = (json.loads(path.read_text("utf-8")) for path in (old, new))
    cells = {
        cell["id"]: cell for cell in before["cells"] if cell["cell_type"] == "code"
    }
    counts: Counter = Counter()
    for cell in after["cells"]:
        if cell["cell_type"] != "code":
            continue
        known = cells.pop(cell["id"], None)
        if known is None:
            counts["new cell"] += 1
            print(f"  {cell['id']}: new")
            continue
        source = (
            ""
            if known["source"] == cell["source"]
            else " (the source of the cell changed)"
        )
        previous = outputs(known)
        now = outputs(cell)
        for kind in sorted({*previous, *now}):
            what, largest = compare(
                previous.get(kind, ""), now.get(kind, ""), tolerance
            )
            counts[what] += 1
            if what not in ("same", "rounding"):
                print(
                    f"  {cell['id']}: {kind}: {what} differ, by {largest:.2g}{source}"
                )
                print(excerpt(previous.get(kind, ""), now.get(kind, "")))
    for cell_id in cells:
        counts["lost cell"] += 1
        print(f"  {cell_id}: lost")
    return counts


def excerpt(old: str, new: str, lines: int = 4) -> str:
    """Return the first lines that differ."""
    pairs = zip(old.splitlines(), new.splitlines(), strict=False)
    different = [(a, b) for a, b in pairs if a != b][:lines]
    return "\n".join(
        f"      - {a.strip()[:150]}\n      + {b.strip()[:150]}" for a, b in different
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument(
        "--tolerance", type=float, default=1e-6, help="relative; default 1e-6"
    )
    options = parser.parse_args()
    before, after = (
        {path.stem: path for path in folder.glob("*.ipynb")}
        for folder in (options.old, options.new)
    )
    total: Counter = Counter()
    claims = [
        (folder / "claims.md").read_text("utf-8")
        for folder in (options.old, options.new)
    ]
    what, largest = compare(*claims, options.tolerance)
    print(f"claims.md: {what}" + f", by {largest:.2g}" * (what != "same"))
    total[what] += 1
    for name in sorted({*before, *after}):
        print(name)
        if name not in before or name not in after:
            total["lost chapter" if name in before else "new chapter"] += 1
            continue
        counts = compare_notebooks(before[name], after[name], options.tolerance)
        print(
            "  "
            + ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        )
        total += counts
    print(
        "in all: "
        + ", ".join(f"{count} {what}" for what, count in sorted(total.items()))
    )
    return 0 if set(total) <= {"same", "rounding", "time"} else 1


if __name__ == "__main__":
    sys.exit(main())
