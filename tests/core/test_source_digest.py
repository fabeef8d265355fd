"""Digests of modules and of compiled functions, and which edits change them."""

import pytest

from preflearn.core import source_digest
from preflearn.core.source_digest import function_digest, module_digest

MODULE = '''
"""Doc."""
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

class Point(NamedTuple):
    """A point."""
    x: float
    y: float

    def norm(self):
        return self.x

SCALE = 2

def check(x: float) -> None:
    """Check x."""
    if x > 2:
        raise ValueError("too large")

def part(x):
    return SCALE * x

@njit
def loop(x):
    """Add one."""
    n: int = 1
    if x < 0:
        raise ValueError("negative")
    return part(x) + n

def unrelated(x):
    return loop(x) + 3
'''

# For each edit: whether it changes the digest of the module, and whether it changes the
# digest of the function `loop`.
EDITS = [
    ("def check", "# why\n\ndef check", False, False),
    ("Doc.", "Documentation.", False, False),
    ("Add one.", "Adds one.", False, False),
    ("x: float) -> None", "x: int) -> bool", False, False),
    ("n: int = 1", "n: float = 1", False, False),
    ("import NDArray", "import ArrayLike", False, False),
    ("too large", "far too large", True, False),
    ("x > 2", "x >= 2", True, False),
    ("return self.x", "return self.y", True, False),
    ("loop(x) + 3", "loop(x) + 4", True, False),
    ("n: int = 1", "n: int = 2", True, True),
    ("negative", "less than zero", True, True),
    ("part(x) + n", "part(x) - n", True, True),
    ("SCALE * x", "x * SCALE", True, True),
    ("SCALE = 2", "SCALE = 3", True, True),
    # an argument of `loop` may have this type
    ("x: float\n    y: float", "y: float\n    x: float", True, True),
]


@pytest.mark.parametrize(("before", "after", "changes_module", "changes_loop"), EDITS)
def test_a_digest_changes_only_with_code_that_has_an_effect(
    tmp_path, before, after, changes_module, changes_loop
):
    assert before in MODULE
    texts = [MODULE, MODULE.replace(before, after)]
    files = [tmp_path / "one.py", tmp_path / "two.py"]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    modules = {module_digest(text.encode()) for text in texts}
    loops = {source_digest.function_digest(file, "loop") for file in files}
    assert (len(modules) == 2) == changes_module
    assert (len(loops) == 2) == changes_loop


PACKAGE = {
    "loops": "from preflearn.direct import a as first\n\ndef loop(x):\n    return first(x)\n",
    "direct": "from preflearn import indirect\n\ndef a(x):\n    return indirect.f(x)\n",
    "indirect": "from preflearn.inner import b\n\ndef f(x):\n    return b.g(x)\n",
    "inner/__init__": "",
    "inner/b": "def g(x):\n    return x\n",
    "unused": "def h(x):\n    return x\n",
}


@pytest.mark.parametrize(
    ("module", "added", "changes"),
    [
        ("inner/b", "def g(x):\n    return -x\n", True),
        ("indirect", "def f(x):\n    return b.g(-x)\n", True),
        ("direct", "def a(x):\n    return -indirect.f(x)\n", True),
        ("direct", "def other(x):\n    return x\n", False),
        ("loops", "def other(x):\n    return loop(x)\n", False),
        ("unused", "def h(x):\n    return -x\n", False),
    ],
)
def test_a_function_depends_on_what_it_calls_in_other_modules(
    tmp_path, monkeypatch, module, added, changes
):
    monkeypatch.setattr(source_digest, "_SOURCE", tmp_path)
    folder = tmp_path / "preflearn"
    (folder / "inner").mkdir(parents=True)
    for name, text in PACKAGE.items():
        (folder / f"{name}.py").write_text(text)

    def digest():
        function_digest.cache_clear()
        source_digest._definitions.cache_clear()
        return function_digest(folder / "loops.py", "loop")

    before = digest()
    assert digest() == before
    (folder / f"{module}.py").write_text(PACKAGE[module] + added)
    assert (digest() != before) == changes


def test_a_nested_function_has_the_digest_of_the_outermost_one(tmp_path):
    file = tmp_path / "nested.py"
    file.write_text(
        "def outer(n):\n    def inner(x):\n        return x * n\n    return inner\n"
    )
    assert function_digest(file, "outer.<locals>.inner") == function_digest(
        file, "outer"
    )
