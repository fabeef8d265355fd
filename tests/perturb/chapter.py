"""Run a chapter once, and then each cell with a check many times, each time with one
error."""

from __future__ import annotations

import ast
import contextlib
import copy
import dis
import io
import json
import os
import re
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any
from unittest import mock

import numpy as np
from perturb.mutations import (
    KINDS,
    LIBRARIES,
    OURS,
    Mutation,
    answering,
    fitting,
    given,
    parts_of,
    returning,
    root_of,
)

from preflearn_book.runner.claims import _forms, computed_verdict
from preflearn_book.runner.records import plain_scalar

TOLERANCES = ("tol", "eps")
_MEMORY = 6 << 30
_CLOCKS = {signal.SIGPROF: signal.ITIMER_PROF, signal.SIGALRM: signal.ITIMER_REAL}
"""A cell's time is that of its process; where others work for it, twenty times as much
by the wall."""

DATA = ("published", "recorded")
"""The functions of preflearn_book.runner that return data; the others apply decision rules.
"""


class TimeUpError(BaseException):
    """A cell took too long. This is not an Exception, because cells may catch
    exceptions."""


@dataclass
class Claim:
    """The state of the check of one claim."""

    id: str
    cell: int
    computed: tuple[str, ...]
    forms: dict[str, bool | None]
    turned: str = ""
    deep: bool = False
    steady: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return f"{self.id}: {f'turned by {self.turned}' if self.turned else 'did not turn'}"

    @property
    def pending(self) -> bool:
        """Whether a further run is useful, because an answer has not changed, or only
        inputs of the cell have changed the verdict."""
        return not self.deep or bool(self.steady)

    def see(
        self,
        computed: tuple[str, ...],
        forms: dict[str, bool | None],
        site: Site,
        kind: str,
    ) -> None:
        """Update the state with the result of a run with an error."""
        self.steady -= {
            form for form in self.steady if forms.get(form, ...) != self.forms[form]
        }
        if computed != self.computed and site.deep >= self.deep:
            self.turned = self.turned if self.deep else f"{site.name} {kind}"
            self.deep |= site.deep


class Settled(dict):
    """Results of the checks of one run, by claim. It replaces
    `preflearn_book.runner.check`."""

    def __call__(
        self, id: str, holds: Any, evidence: str, value: Any = None, **more: Any
    ) -> None:
        """Store the verdicts of `holds` and of `ours`, and each answer by its form."""
        if value is not None:
            plain_scalar("the value", value)
        ours = more.get("ours", "the same")
        ours = holds if isinstance(ours, str) else ours
        forms = _forms(holds) | {
            f"on ours, {form}": answer for form, answer in _forms(ours).items()
        }
        if ours is holds:
            forms = _forms(holds)
        self[id] = (computed_verdict(holds), computed_verdict(ours)), forms


@dataclass
class Site:
    """One place for an error in a cell: a name that it reads, or a number that it
    contains."""

    name: str
    # returns a new value for the namespace, a new tree, or None for no change
    wrong: Callable[[Mutation], Any]
    # True if the cell calls or contains it, False if it is a value from an earlier cell
    deep: bool = True


class Notebook:
    """The namespace of a chapter, as in its kernel, and methods to run its cells."""

    def __init__(self, path: Path, seconds: float, seed: int = 0) -> None:
        self.path = path
        self.seconds = seconds
        self.seed = seed
        cells = json.loads(path.read_text("utf-8"))["cells"]
        self.sources = {
            k: "".join(c["source"])
            for k, c in enumerate(cells)
            if c["cell_type"] == "code"
        }
        self.module = ModuleType("__main__")
        self.space = vars(self.module)
        self.settled = Settled()

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        """Run as the main module, in the folder of the notebook, without a display."""
        patches = (
            mock.patch.dict(os.environ, MPLBACKEND="agg"),
            mock.patch("preflearn_book.runner.check", self.settled),
            mock.patch.dict(sys.modules, {"__main__": self.module}),
            contextlib.chdir(self.path.parent),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        )
        with contextlib.ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch)
            yield

    def run(self, tree: ast.Module, seconds: float = 0) -> dict[str, Any]:
        """Execute a cell and return the results of its checks. Any exception of the
        cell is raised."""
        from matplotlib import pyplot as plt

        def up(*_: Any) -> None:
            raise TimeUpError

        before = [signal.signal(kind, up) for kind in _CLOCKS]
        self.settled.clear()
        for kind, timer in _CLOCKS.items():
            signal.setitimer(timer, seconds if kind == signal.SIGPROF else 20 * seconds)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(tree, f"<{self.path.stem}>", "exec"), self.space)
        finally:
            for (kind, timer), handler in zip(_CLOCKS.items(), before, strict=True):
                signal.setitimer(timer, 0)
                signal.signal(kind, handler)
            plt.close("all")
        return dict(self.settled)

    def read(self, code: CodeType, seen: set[str] | None = None) -> dict[str, set[str]]:
        """Return the global names that a cell reads, directly or by functions of the
        notebook, with the attributes that are read."""
        found: dict[str, set[str]] = {}
        seen = set() if seen is None else seen
        instructions = list(dis.get_instructions(code))
        for here, after in zip(instructions, [*instructions[1:], None], strict=True):
            if (
                here.opname in ("LOAD_NAME", "LOAD_GLOBAL")
                and here.argval in self.space
            ):
                attributes = found.setdefault(here.argval, set())
                if after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                    attributes.add(after.argval)
        inner = [part for part in code.co_consts if isinstance(part, CodeType)]
        for name in found.keys() - seen:
            value = self.space[name]
            mine = (
                [value, *vars(value).values()] if isinstance(value, type) else [value]
            )
            for part in mine:
                if isinstance(part, FunctionType) and part.__globals__ is self.space:
                    inner.append(part.__code__)
            seen.add(name)
        for part in inner:
            for name, attributes in self.read(part, seen).items():
                found.setdefault(name, set()).update(attributes)
        return found


def perturb(
    path: Path,
    seconds: float = 20,
    budget: float = 60,
    most: int = 1000,
    seed: int = 0,
    thorough: bool = False,
    only: Collection[str] = (),
) -> dict:
    """Run a notebook, and then its cells with checks again, with one error at a time.

    Parameters
    ----------
    path : Path
        A notebook.
    seconds : float
        Time limit of one run of a cell, in seconds.
    budget, most : float, int
        Time limit of all runs of one cell, in seconds, and largest number of runs. The
        runs end when all verdicts have changed.
    seed : int
        Seed of the random parts of a mutation.
    thorough : bool
        Whether to continue until each answer of `holds` has changed, and not only by
        values from earlier cells.
    only : collection of str
        Ids of the claims to perturb; all by default.

    Returns
    -------
    dict
        `claims`: a list of `Claim`. `unsteady`: cells that failed, or that gave
        another result when they ran again without an error. `runs`: number of runs.
    """
    notebook = Notebook(path, seconds, seed)
    claims = dict[str, Claim]()
    unsteady = {}
    runs = 0
    with notebook.open():
        for number, source in notebook.sources.items():
            if only and claims.keys() >= set(only):
                break
            tree = ast.parse(source)
            code = compile(tree, "cell", "exec")
            checks = "check" in notebook.read(code) or "check(" in source
            if checks:
                again = Again(notebook, number, tree)
            try:
                found = notebook.run(tree)
            except Exception as error:
                unsteady[number] = f"{type(error).__name__}: {error}"
                break
            if only:
                found = {id: said for id, said in found.items() if id in only}
            for id, (computed, forms) in found.items():
                claims[id] = Claim(id, number, computed, forms, steady=set(forms))
            if found:
                here = [claims[id] for id in found]
                runs += again.all(here, budget, most, thorough)
                if again.unsteady:
                    unsteady[number] = again.unsteady
                for claim in here:
                    print(
                        f"{path.stem}, cell {number}, {claim}",
                        file=sys.__stderr__,
                        flush=True,
                    )
    return {"claims": list(claims.values()), "unsteady": unsteady, "runs": runs}


class Again:
    """One cell, which can be run again on the namespace as it was before the cell."""

    def __init__(self, notebook: Notebook, number: int, tree: ast.Module) -> None:
        self.notebook = notebook
        self.number = number
        self.tree = tree
        self.unsteady = ""
        self.before = dict(notebook.space)
        self.reads = notebook.read(compile(tree, "cell", "exec"))
        self.values = {
            name: self.before[name]
            for name in sorted(self.reads)
            if not callable(self.before[name])
            and not isinstance(self.before[name], ModuleType)
        }
        self.kept = _copied(self.values)

    def all(self, claims: list[Claim], budget: float, most: int, thorough: bool) -> int:
        """Run the cell with one error at a time until the verdicts of all of its claims
        have changed. Return the number of runs."""
        after = dict(self.notebook.space)
        started = time.process_time()
        runs = 0
        try:
            if not self._as_it_is(claims):
                return 1
            for kind, site in self._plan():
                pending = [
                    claim
                    for claim in claims
                    if (claim.pending if thorough else not claim.turned)
                ]
                if (
                    not pending
                    or time.process_time() - started > budget
                    or runs >= most
                ):
                    break
                runs += self._once(kind, site, pending)
        finally:
            self.notebook.space.clear()
            self.notebook.space.update(after)
        return runs

    def _restored(self) -> None:
        space = self.notebook.space
        space.clear()
        space.update(self.before)
        space.update(_copied(self.kept))

    def _as_it_is(self, claims: list[Claim]) -> bool:
        self._restored()
        try:
            with np.errstate(invalid="raise", divide="raise"):
                found = self.notebook.run(self.tree, 10 * self.notebook.seconds)
            self.strict: dict[str, Any] = {"invalid": "raise", "divide": "raise"}
        except FloatingPointError:
            self.strict = {}
            self._restored()
            found = self.notebook.run(self.tree, 10 * self.notebook.seconds)
        except (Exception, TimeUpError) as error:
            self.unsteady = f"{type(error).__name__}: {error}"
            return False
        others = [
            claim.id
            for claim in claims
            if found.get(claim.id, [None])[0] != claim.computed
        ]
        self.unsteady = f"another verdict of {', '.join(others)}" if others else ""
        return not others

    def _once(self, kind: str, site: Site, claims: list[Claim]) -> int:
        mutation = Mutation(kind, self.notebook.seed, answers=not site.deep)
        self._restored()
        try:
            wrong = site.wrong(mutation)
        except Exception:
            return 0
        if wrong is None:
            return 0
        tree = wrong if isinstance(wrong, ast.Module) else self.tree
        if tree is self.tree:
            self.notebook.space[re.split(r"\W", site.name)[0]] = wrong
        with contextlib.suppress(Exception, TimeUpError), np.errstate(**self.strict):
            self.notebook.run(tree, self.notebook.seconds)
        for claim in claims:
            if claim.id in self.notebook.settled and mutation.changed:
                claim.see(*self.notebook.settled[claim.id], site, kind)
        return 1

    def _plan(self) -> Iterator[tuple[str, Site]]:
        sites = [*self._typed(), *self._called(), *self._valued()]
        for kind in KINDS:
            for site in sites:
                yield kind, site

    def _valued(self) -> Iterator[Site]:
        for name, value in self.values.items():
            for part in [None, *parts_of(value)]:

                def wrong(
                    mutation: Mutation, name: str = name, part: Any = part
                ) -> Any:
                    given = self.notebook.space[name]
                    out = (
                        mutation(given) if part is None else mutation.part(given, part)
                    )
                    return out if mutation.changed else None

                yield Site(
                    name if part is None else f"{name}[{part!r}]", wrong, deep=False
                )

    def _called(self) -> Iterator[Site]:
        for name, attributes in self.reads.items():
            value = self.before[name]
            if isinstance(value, ModuleType):
                for attribute in sorted(attributes):
                    found = getattr(value, attribute, None)
                    if callable(found):
                        yield from _wrong_calls(f"{name}.{attribute}", found, value)
            elif callable(value):
                yield from _wrong_calls(name, value)
            elif root_of(value) in LIBRARIES and hasattr(value, "__dict__"):

                def wrong(mutation: Mutation, name: str = name) -> Any:
                    out = copy.copy(self.notebook.space[name])
                    object.__setattr__(out, "__class__", answering(type(out), mutation))
                    return out

                yield Site(f"{name}.methods", wrong)

    def _typed(self) -> Iterator[Site]:
        for k, constant in enumerate(_constants(self.tree)):

            def wrong(mutation: Mutation, k: int = k) -> Any:
                tree = copy.deepcopy(self.tree)
                node = _constants(tree)[k]
                node.value = mutation(node.value)
                return tree if mutation.changed else None

            yield Site(f"{constant.value} of line {constant.lineno}", wrong)


def _copied(values: dict[str, Any]) -> dict[str, Any]:
    """Return deep copies that share what the values shared. A value that cannot be
    copied is returned itself."""
    memo: dict[int, Any] = {}
    out = {}
    for name, value in values.items():
        try:
            out[name] = (
                value if root_of(value) == "matplotlib" else copy.deepcopy(value, memo)
            )
        except Exception:
            out[name] = value
    return out


def _wrong_calls(
    name: str, found: Any, module: ModuleType | None = None
) -> Iterator[Site]:
    """Yield the sites of a function or class: its results, its first argument, and its
    fitted attributes."""
    root = root_of(found)
    if root not in LIBRARIES and not (root == "preflearn_book.runner" and name in DATA):
        return
    if isinstance(found, type):
        if issubclass(found, BaseException):
            return
        ways = {"": returning}
        if hasattr(found, "fit"):
            ways = {".fit": fitting, ".methods": answering, "()": returning}
        elif not hasattr(found, "_fields") and root in OURS:
            ways[".methods"] = answering
    else:
        ways = {"": returning, "(...)": given}
    for suffix, way in ways.items():

        def wrong(mutation: Mutation, way: Any = way) -> Any:
            made = way(found, mutation)
            if module is None:
                return made
            stand_in = ModuleType(module.__name__)
            vars(stand_in).update(vars(module))
            setattr(stand_in, name.split(".")[1], made)
            return stand_in

        yield Site(name + suffix, wrong)


def _constants(tree: ast.AST) -> list[ast.Constant]:
    """Return the numbers in a cell that are not tolerances, indices, or values of
    `check`."""
    out: list[ast.Constant] = []

    def visit(node: ast.AST, judged: bool = False) -> None:
        """Collect numbers, except those in a comparison outside of calls, which are
        thresholds."""
        parts = list(ast.iter_child_nodes(node))
        if (
            isinstance(node, ast.Constant)
            and type(node.value) in (int, float)
            and not judged
        ):
            out.append(node)
        elif isinstance(node, ast.Subscript):
            parts = [node.value]
        elif isinstance(node, ast.Call):
            settles = isinstance(node.func, ast.Name) and node.func.id == "check"
            named = [
                part
                for part in node.keywords
                if not any(word in str(part.arg) for word in TOLERANCES)
            ]
            named = [
                part for part in named if not settles or part.arg in ("holds", "ours")
            ]
            parts = [node.func, *node.args, *named]
            judged = False
        elif isinstance(node, ast.JoinedStr):
            parts = []
        for part in parts:
            visit(part, judged or isinstance(node, ast.Compare))

    visit(tree)
    return out


def alone() -> None:
    """Prepare a separate process: discard the output of compiled code, and limit the
    memory, so that a wrong size raises an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
