"""Print the lowest version of each dependency that pyproject.toml allows, as
constraints for pip."""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest_versions(dependencies: list[str]) -> list[str]:
    """Return `name==floor` for each requirement of the form `name>=floor`."""
    pins = []
    for requirement in dependencies:
        match = re.match(r"([\w.-]+)>=([\w.]+)", requirement)
        if match is None:
            raise ValueError(
                f"{requirement!r} has no lower bound; write it as 'name>=version'"
            )
        pins.append(f"{match[1]}=={match[2]}")
    return pins


if __name__ == "__main__":
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    print("\n".join(lowest_versions(project["dependencies"])))
