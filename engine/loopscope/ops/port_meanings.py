"""Meaning of each input, output and attribute of the built-in operations, from tables such as
``port_meanings.txt``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from loopscope.ops.declare import Operation
from loopscope.ops.input_names import input_names

_TABLE = Path(__file__).with_name("port_meanings.txt")
EVERY = "*"
"""Name of the table's entry for all operations; it describes inputs and attributes."""

Meanings = Mapping[str, str]


@cache
def table(path: Path = _TABLE) -> Mapping[tuple[str, str], Meanings]:
    """Return the texts by operation and kind (``in``, ``out``, ``attr``), each by name in the order
    of the file.
    """
    texts: defaultdict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    operations: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            kind, name, text = line.split(maxsplit=2)
            for operation in operations:
                texts[operation, kind][name] = text
        elif not line.startswith("#"):
            operations = line.split()
    return texts


def with_meanings(operation: Operation, path: Path = _TABLE) -> Operation:
    """Return an operation with the texts of a table for its inputs, outputs and attributes."""
    inputs = _meanings(operation.name, "in", path)
    outputs = list(table(path).get((operation.name, "out"), {}).items())
    attributes = _meanings(operation.name, "attr", path)
    return replace(
        operation,
        input_docs={name: inputs[name] for name in input_names(operation) if name in inputs},
        output_docs=dict(outputs[: operation.outputs]),
        attributes=tuple(
            replace(entry, doc=attributes.get(entry.name, "")) for entry in operation.attributes
        ),
    )


def _meanings(operation: str, kind: str, path: Path) -> Meanings:
    return {**table(path).get((EVERY, kind), {}), **table(path).get((operation, kind), {})}
