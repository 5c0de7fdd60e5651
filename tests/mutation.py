"""Change one operator or number of the code at a time and look which tests notice:
``python -m tests.mutation [MUTANTS_PER_FILE]``.

A change that no test notices is a survivor: its line needs a test, or the change means the same.
As a pytest plugin (``-p tests.mutation``) this module imports one file with one change.
"""

from __future__ import annotations

import ast
import importlib.machinery
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).parent.parent
_VARIABLE = "LOOPSCOPE_MUTANT"
_SECONDS = 180
"""Time for the tests of a mutant; one that takes longer counts as noticed."""

_ENGINE = "engine/loopscope"
_MACHINE = ("tests/engine/executor/machine", "tests/engine/debug/test_two_speeds.py")
SUBJECTS: Mapping[str, Sequence[str]] = {
    f"{_ENGINE}/executor/machine/regions.py": _MACHINE,
    f"{_ENGINE}/checks/trips.py": ("tests/engine/checks", "tests/engine/executor/machine"),
    f"{_ENGINE}/timeline/sizes.py": ("tests/engine/timeline", "tests/engine/debug"),
    f"{_ENGINE}/timeline/replay_plan.py": ("tests/engine/timeline", "tests/engine/debug"),
    f"{_ENGINE}/timeline/run_values.py": (
        "tests/engine/timeline",
        "tests/engine/debug",
        "tests/engine/run_file",
    ),
    f"{_ENGINE}/executor/codegen/emit_loop.py": ("tests/engine/executor/codegen", *_MACHINE),
}
"""Files to change, with the tests that should notice."""

_COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
}


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of a syntax tree."""

    line: int
    change: str
    """The change in words, such as ``Lt to LtE``."""
    apply: Callable[[], None]


def mutations(tree: ast.Module) -> list[Mutation]:
    """Return all changes of a tree, in order; each changes the tree in place."""
    annotations = {
        id(inner)
        for node in ast.walk(tree)
        for field in ("annotation", "returns")
        if isinstance(annotation := getattr(node, field, None), ast.AST)
        for inner in ast.walk(annotation)
    }
    return [
        mutation
        for node in ast.walk(tree)
        if id(node) not in annotations
        for mutation in _of_node(node)
    ]


def _of_node(node: ast.AST) -> Iterator[Mutation]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            comparison = _COMPARISONS[type(operator)]
            yield _mutation(
                node, operator, comparison, lambda: node.ops.__setitem__(0, comparison())
            )
        case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
            other = _OPERATORS[type(operator)]
            yield _mutation(node, operator, other, lambda: setattr(node, "op", other()))
        case ast.BoolOp(op=operator):
            logical = ast.Or if isinstance(operator, ast.And) else ast.And
            yield _mutation(node, operator, logical, lambda: setattr(node, "op", logical()))
        case ast.Constant(value=bool() as flag):
            yield Mutation(
                node.lineno, f"{flag} to {not flag}", lambda: setattr(node, "value", not flag)
            )
        case ast.Constant(value=int() as number):
            yield Mutation(
                node.lineno,
                f"{number} to {number + 1}",
                lambda: setattr(node, "value", number + 1),
            )


def _mutation(
    node: ast.expr, operator: ast.AST, other: type[ast.AST], apply: Callable[[], None]
) -> Mutation:
    return Mutation(node.lineno, f"{type(operator).__name__} to {other.__name__}", apply)


def mutated_code(source: bytes, path: str, number: int) -> CodeType:
    """Return the code of a file with the change of that number."""
    tree = ast.parse(source, path)
    mutations(tree)[number].apply()
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


class _Loader(importlib.machinery.SourceFileLoader):
    number = 0

    def get_code(self, fullname: str) -> CodeType:
        return mutated_code(self.get_data(self.path), self.path, self.number)


class _Finder(MetaPathFinder):
    def __init__(self, file: Path, number: int) -> None:
        self._file, self._number = file, number

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or Path(spec.origin) != self._file:
            return None
        loader = _Loader(fullname, spec.origin)
        loader.number = self._number
        spec.loader = loader
        return spec


def survivors(file: str, tests: Sequence[str], limit: int) -> tuple[int, list[Mutation]]:
    """Return the number of mutants of a file that were tried, and those that no test noticed."""
    every = mutations(ast.parse((ROOT / file).read_bytes()))
    numbers = sorted(random.Random(file).sample(range(len(every)), min(limit, len(every))))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        noticed = list(pool.map(lambda number: _is_noticed(file, number, tests), numbers))
    return len(numbers), [
        every[number] for number, is_noticed in zip(numbers, noticed, strict=True) if not is_noticed
    ]


def _is_noticed(file: str, number: int, tests: Sequence[str]) -> bool:
    words = [
        "-m",
        "pytest",
        "-x",
        "-q",
        "-n",
        "0",
        "-p",
        "tests.mutation",
        "-p",
        "no:cacheprovider",
    ]
    try:
        ended = subprocess.run(
            [sys.executable, *words, "-m", "not measured", *tests],
            cwd=ROOT,
            env={**os.environ, _VARIABLE: f"{number}:{file}"},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    return ended.returncode != 0


def main(words: Sequence[str]) -> int:
    """Print the survivors of each file; return the exit code 0."""
    limit = int(words[0]) if words else 30
    for file, tests in SUBJECTS.items():
        tried, unnoticed = survivors(file, tests, limit)
        print(f"{file}: {tried - len(unnoticed)} of {tried} changes are noticed", flush=True)
        for mutation in unnoticed:
            print(f"  line {mutation.line}: {mutation.change}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
elif _VARIABLE in os.environ:
    _number, _, _path = os.environ[_VARIABLE].partition(":")
    sys.meta_path.insert(0, _Finder(ROOT / _path, int(_number)))
