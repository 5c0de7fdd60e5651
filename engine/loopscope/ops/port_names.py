"""Names of the inputs and outputs of an operation, as its specification has them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from onnx import defs

from loopscope.ops.declare import Operation
from loopscope.ops.input_names import input_names
from loopscope.ops.onnx.reference import since


@dataclass(frozen=True, slots=True)
class PortNames:
    """Names of the ports of a node; a port without a name in the specification has its number."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def port_names(operation: Operation | None, opset: str, inputs: int, outputs: int) -> PortNames:
    """Return the names of a node with these numbers of inputs and outputs.

    ``opset`` is that of the node, such as ``ai.onnx 18``. Ports of one variadic parameter are
    numbered.

    >>> from loopscope.ops import catalogue_for
    >>> gru = catalogue_for("onnx").find("GRU", "ai.onnx 22")
    >>> port_names(gru, "ai.onnx 22", 4, 1)
    PortNames(inputs=('X', 'W', 'R', 'B'), outputs=('Y',))
    >>> concat = catalogue_for("onnx").find("Concat", "ai.onnx 13")
    >>> port_names(concat, "ai.onnx 13", 2, 1).inputs
    ('inputs 0', 'inputs 1')
    """
    schema = _schema(operation.name, opset) if operation is not None else None
    if schema is not None:
        return PortNames(_formal(schema.inputs, inputs), _formal(schema.outputs, outputs))
    if operation is None:
        return PortNames(_numbered((), inputs), _numbered((), outputs))
    described = [name for name in input_names(operation, inputs) if not name.startswith("input_")]
    return PortNames(_numbered(described, inputs), _numbered(operation.output_docs, outputs))


def _schema(name: str, opset: str) -> Any:
    """Return ONNX's schema of an operation; None for an operation of OpenVINO."""
    domain, _, version = opset.rpartition(" ")
    if not version.isdigit() or len(version) > 6:
        return None
    return since("" if domain == "ai.onnx" else domain, name, int(version))


def _formal(parameters: Iterable[Any], count: int) -> tuple[str, ...]:
    names: list[str] = []
    for parameter in parameters:
        if parameter.option is defs.OpSchema.FormalParameterOption.Variadic:
            names += [f"{parameter.name} {number}" for number in range(count - len(names))]
        else:
            names.append(parameter.name)
    return _numbered(names, count)


def _numbered(names: Iterable[str], count: int) -> tuple[str, ...]:
    """Return ``count`` names; ports beyond the named ones have their number."""
    padded = chain(names, repeat(""))
    return tuple(name or str(number) for number, name in zip(range(count), padded, strict=False))
