"""Notes on what the conversion of a TensorFlow graph preserved and lost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from loopscope.errors import listed, shorten
from loopscope.ir.model import Model, ModelGraph
from loopscope.read.tensorflow.graph_file import GraphDefFile

TENSORFLOW = "tensorflow"
"""Opset of operations that stay in the model unconverted."""
_MAX_KINDS = 8
_VARIABLES = frozenset({"VarHandleOp", "Variable", "VariableV2"})
_WRITES = re.compile(
    r"Assign(Add|Sub)?(VariableOp)?|ResourceScatter\w+"
    r"|Scatter(Nd)?(Add|Sub|Mul|Div|Min|Max|Update)|(Resource)?(Sparse)?Apply\w+"
)
"""Operations that change a variable."""


def notes(source: GraphDefFile, model: Model, states: Sequence[str] = ()) -> tuple[str, ...]:
    """Return notes: nodes that kept their names, operations without a conversion, ignored
    assignments.

    ``states`` are variables that the model reads and assigns as states. With any, no assignment is
    lost.
    """
    needed = source.needed(
        name for output in model.outputs for name in (output.name, *output.names)
    )
    return (
        _kept_note(needed, model),
        *_output_notes(source, model),
        *_unconverted_notes(model),
        *(() if states else _assignment_notes(needed)),
    )


def layers(graph: ModelGraph) -> Iterator[Any]:
    """Yield the nodes of a graph and of all bodies in it."""
    waiting = [graph]
    while waiting:
        inner = waiting.pop()
        yield from inner.nodes
        waiting.extend(body.graph for node in inner.nodes for body in node.bodies)


def _kept_note(needed: tuple[Any, ...], model: Model) -> str:
    names = set(_names(model.graph))
    lost = Counter(node.op for node in needed if node.name not in names)
    count = len(needed) - lost.total()
    sentence = f"{count} of {len(needed)} nodes kept their names in the conversion"
    return (
        f"{sentence}; OpenVINO merged, folded or left out {_format_counts(lost)}"
        if lost
        else sentence
    )


def _output_notes(source: GraphDefFile, model: Model) -> Iterator[str]:
    """Yield a note if the conversion dropped outputs, as it does with one that only reads a
    variable.
    """
    names = {name for output in model.outputs for name in (output.name, *output.names)}
    if missing := sorted(source.outputs.keys() - names):
        yield (
            f"the conversion leaves out {len(missing)} of the {len(source.outputs)} outputs that"
            f" the file names: {listed(missing)}"
        )


def _names(graph: ModelGraph) -> Iterator[str]:
    """Yield the names of layers and tensors, in full and without the calls around them."""
    for layer in layers(graph):
        for name in (
            layer.name,
            *layer.output_names,
            *(name for port in layer.outputs for name in port.names),
        ):
            parts = name.partition(":")[0].split("/")
            yield from ("/".join(parts[start:]) for start in range(min(len(parts), 32)))


def _unconverted_notes(model: Model) -> Iterator[str]:
    unknown = Counter(node.type for node in layers(model.graph) if node.opset == TENSORFLOW)
    if without := sum(unknown.pop(kind, 0) for kind in _VARIABLES):
        yield (
            f"{without} of the variables have no value here: those of a meta graph lie in the"
            " .index and .data files beside it, which are found when it is opened by its path"
        )
    if unknown:
        yield (
            f"OpenVINO does not convert {_format_counts(unknown)}: these stay TensorFlow"
            f' operations; define what they compute with --ops, for the opset "{TENSORFLOW}"'
        )


def _assignment_notes(needed: tuple[Any, ...]) -> Iterator[str]:
    writes = [node for node in needed if _WRITES.fullmatch(node.op)]
    if writes:
        names = ", ".join(f"{shorten(node.name, 60)!r} ({node.op})" for node in writes[:_MAX_KINDS])
        yield (
            f"the model changes variables in {names}: the conversion leaves that out, every"
            " variable keeps the value that was saved, and results differ from TensorFlow's where"
            " a variable is read after it was changed"
        )


def _format_counts(kinds: Counter[str]) -> str:
    """Format counts such as ``Const 3, Identity 1``, the most frequent first."""
    frequent = kinds.most_common(_MAX_KINDS)
    remaining = kinds.total() - sum(count for _, count in frequent)
    return ", ".join(
        [
            *(f"{shorten(kind, 40)} {count}" for kind, count in frequent),
            *([f"{remaining} others"] if remaining else []),
        ]
    )
