"""Write .ci/hashes.txt: what CI installs, each file by its hash. For each Python that
CI has, beforehand:

python3.12 -m pip install --dry-run --ignore-installed --only-binary :all: --report
3.12.json \
    -c constraints.txt '.[book,lab,test,cluster]' hatchling editables build
python .ci/lock.py 3.11.json 3.12.json 3.13.json
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

TOP = "# Written by .ci/lock.py: the versions of constraints.txt, and what builds the package, by hash.\n"


def main(reports: list[str]) -> None:
    """Lines of requirements from what pip would install by each report; a marker where
    not all would."""
    found = defaultdict[str, dict[str, set[str]]](lambda: defaultdict(set))
    pythons = set[str]()
    for report in reports:
        read = json.loads(Path(report).read_text())
        python = ".".join(read["environment"]["python_version"].split(".")[:2])
        pythons.add(python)
        for one in read["install"]:
            if archive := one["download_info"].get("archive_info"):  # not this checkout
                name = re.sub(r"[-_.]+", "-", one["metadata"]["name"]).lower()
                found[f"{name}=={one['metadata']['version']}"][python].add(
                    archive["hashes"]["sha256"]
                )
    lines = [TOP]
    for pin, by_python in sorted(found.items()):
        some = " or ".join(
            f'python_version == "{python}"' for python in sorted(by_python)
        )
        marker = "" if by_python.keys() == pythons else f" ; {some}"
        hashes = sorted(set().union(*by_python.values()))
        lines.append(
            " \\\n    ".join(
                [pin + marker, *(f"--hash=sha256:{one}" for one in hashes)]
            )
            + "\n"
        )
    Path(__file__).with_name("hashes.txt").write_text("".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
