"""The file ``loops.toml``: reading its tests, and writing one test from a run."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import loopscope
from loopscope.errors import EngineError, InputError, shorten
from loopscope.explain import ExecutionHistory, executions
from loopscope_app.command.loop_tests import expectations as kinds
from loopscope_app.command.loop_tests.expectations import ENDINGS, Expectation

NAME = "loops.toml"
_MAX_BYTES = 1 << 20
_MAX_TESTS = 1000
_MAX_WRITTEN_TAPE = 64
"""Largest number of executions of an If that a written file lists one by one."""
_BY_ADDRESS: Mapping[str, Callable[[str, object], Expectation]] = {
    "iterations": kinds.parse_iterations,
    "ended": kinds.parse_ended,
    "branch": kinds.parse_branch,
}
_BY_VALUE: Mapping[str, Callable[[object], Expectation]] = {
    "drift": kinds.parse_drift,
    "same_control_flow_as": kinds.parse_same_control_flow,
    "check": kinds.parse_check,
    "finite": kinds.parse_finite,
}
_TEXTS = ("name", "model", "inputs")


@dataclass(frozen=True, slots=True)
class LoopTest:
    """One test: a model with inputs, and what is expected of its runs."""

    name: str
    model: str
    """Path of a model, a saved run or a trace."""
    inputs: str
    """Inputs as ``--inputs`` takes them; ``random:1000`` and ranges describe many runs."""
    expectations: tuple[Expectation, ...]
    folder: Path
    """Folder of the file; relative paths begin there."""

    def path(self, name: str) -> str:
        """Return a path that the file names, relative to its folder."""
        return str(self.folder / name)


def read_tests(path: str | Path) -> tuple[LoopTest, ...]:
    """Return the tests of a file, or of ``loops.toml`` in a folder.

    Raise ``InputError`` for a file that is not TOML, an unknown key or a malformed expectation.
    """
    file = Path(path) / NAME if Path(path).is_dir() else Path(path)
    with file.open("rb") as stream:
        data = stream.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise InputError(f"{file}: expected at most {_MAX_BYTES:,} bytes of tests")
    try:
        content = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{file}: it is not a TOML file ({shorten(str(error), 200)})") from None
    tables = content.get("test")
    if set(content) != {"test"} or not isinstance(tables, list) or not tables:
        raise InputError(f"{file}: expected tables that begin with [[test]] and nothing else")
    if len(tables) > _MAX_TESTS:
        raise InputError(f"{file}: it has {len(tables):,} tests, expected at most {_MAX_TESTS:,}")
    return tuple(
        _parse_test(table, f"{file}, test {number}", file.parent)
        for number, table in enumerate(tables, 1)
    )


def _parse_test(table: object, where: str, folder: Path) -> LoopTest:
    if not isinstance(table, dict):
        raise InputError(f"{where}: expected a table of keys and values")
    unknown = set(table) - {*_TEXTS, *_BY_ADDRESS, *_BY_VALUE}
    if unknown:
        names = ", ".join((*_TEXTS, *_BY_ADDRESS, *_BY_VALUE))
        raise InputError(
            f"{where}: {shorten(sorted(unknown)[0], 60)!r} is not a key, expected {names}"
        )
    for key in _TEXTS:
        if not isinstance(table.get(key, ""), str):
            raise InputError(f"{where}: {key}: expected a text, got {shorten(repr(table[key]))}")
    if not table.get("model"):
        raise InputError(f"{where}: model: expected the path of a model")
    try:
        parsed = tuple(_expectations(table))
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if not parsed:
        raise InputError(f"{where}: it expects nothing, expected iterations, ended, branch, ...")
    name = table.get("name") or f"{table['model']} {table.get('inputs', '')}".strip()
    return LoopTest(name, table["model"], table.get("inputs", ""), parsed, folder)


def _expectations(table: Mapping[str, Any]) -> Iterator[Expectation]:
    for key, parse in _BY_ADDRESS.items():
        entries = table.get(key, {})
        if not isinstance(entries, dict):
            raise InputError(
                f'{key}: expected an address, as in {key}."main/loop" = ..., got a value'
            )
        for address, value in entries.items():
            if isinstance(value, dict):
                raise InputError(f"{key}: expected the address {address!r}... in quotes")
            yield parse(address, value)
    for key, parse_value in _BY_VALUE.items():
        if key in table:
            yield parse_value(table[key])


def written(debugger: loopscope.Debugger, model: str, inputs: str) -> str:
    """Return a file with one test that expects what a finished run did.

    Raise ``EngineError`` for a run that did not finish or that has no loops and no branches.
    """
    if debugger.state != "finished":
        raise EngineError(f"expected a run that finishes, but it {debugger.failure or 'stopped'}")
    lines = ["# Written from one run by `loopscope test --write`: review it, then keep it.", ""]
    lines += ["[[test]]", f"model = {quoted(model)}"]
    lines += [f"inputs = {quoted(inputs)}"] if inputs else []
    described = [line for region in executions(debugger) for line in _described(region)]
    if not described:
        raise EngineError("the model has no loops and no branches that ran: nothing to expect")
    return "\n".join([*lines, *described, 'check = "no errors"', ""])


def _described(region: ExecutionHistory) -> Iterator[str]:
    """Yield the lines about one loop or If that ran."""
    if not region.count:
        return
    address = quoted(region.static)
    if region.kind == "If":
        runs = list(itertools.islice(region.tape(), _MAX_WRITTEN_TAPE + 1))
        branches = {branch for branch, _ in runs}
        if len(branches) == 1:
            yield f"branch.{address} = {quoted(branches.pop())}"
        elif region.count <= _MAX_WRITTEN_TAPE:
            tape = "".join(branch[0].upper() * count for branch, count in runs)
            yield f"branch.{address} = {quoted(tape)}"
        else:
            taken = sum(count for branch, count in region.tape() if branch == "then")
            yield f"branch.{address} = {quoted(f'then {taken}')}"
        return
    records = [
        record
        for number in range(region.count)
        if (record := region.run.record(region.address(number))) is not None
    ]
    counts = [record.iterations or 0 for record in records]
    lower, upper = min(counts), max(counts)
    yield f"iterations.{address} = " + (
        str(lower) if lower == upper else quoted(f"{lower}..{upper}")
    )
    endings = sorted({str(record.ended_by) for record in records} & set(ENDINGS))
    if len(endings) == 1:
        yield f"ended.{address} = {quoted(endings[0])}"
    elif endings:
        yield f"ended.{address} = [{', '.join(map(quoted, endings))}]"


def quoted(text: str) -> str:
    """Return a TOML basic string.

    >>> quoted('main/a"b')
    '"main/a\\\\"b"'
    """
    escaped = (
        f"\\u{ord(letter):04x}"
        if ord(letter) < 32 or ord(letter) == 127
        else f"\\{letter}"
        if letter in '"\\'
        else letter
        for letter in text
    )
    return f'"{"".join(escaped)}"'
