"""Names of inputs, and the meaning of each input, output and attribute of an operation.

The names are those of the specification or of the kernel's parameters. The meanings come from
tables such as ``port_meanings.txt``.
"""

from __future__ import annotations

import functools
import inspect
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from loopscope.ops.declare import Operation, Role

_WITHOUT_KERNEL = {Role.READ_VALUE: ("initial",), Role.ASSIGN: ("value",)}


def input_names(operation: Operation, count: int | None = None) -> tuple[str, ...]:
    """Return a name for each input (``count`` of them for an operation that takes any number)."""
    lower, upper = operation.inputs
    number = count if count is not None else (upper if upper is not None else lower)
    names = list(named_inputs(operation)[:number])
    return (*names, *(f"input_{index}" for index in range(len(names), number)))


def named_inputs(operation: Operation) -> tuple[str, ...]:
    """Return the inputs that the specification or the kernel names; empty if the operation takes
    any number, or its kernel has no readable signature.
    """
    if operation.spec_inputs:
        return operation.spec_inputs
    kernel = operation.kernel
    while isinstance(kernel, functools.partial):
        kernel = kernel.func
    if kernel is None:
        return _WITHOUT_KERNEL.get(operation.role, ())
    try:
        parameters = inspect.signature(kernel).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(
        parameter.name.rstrip("_")
        for parameter in parameters
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY
    )


def input_text(operation: Operation) -> str:
    """Return the number of inputs that an operation takes, in words."""
    lower, upper = operation.inputs
    names = ", ".join(input_names(operation))
    if upper is None:
        return f"{lower} or more inputs"
    if lower == upper:
        return f"{lower} input{'' if lower == 1 else 's'}" + (f" ({names})" if names else "")
    return f"{lower} to {upper} inputs ({names})"


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
