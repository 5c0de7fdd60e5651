"""What a conversion kept of a TensorFlow graph and what it lost, in sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from loopscope.errors import shorten
from loopscope.ir.model import Model, ModelGraph
from loopscope.read.tensorflow.graph_file import GraphDefFile

TENSORFLOW = "tensorflow"
"""The opset of an operation that stands in the model as TensorFlow has it."""
_MOST_KINDS = 8
_VARIABLES = frozenset({"VarHandleOp", "Variable", "VariableV2"})
_WRITES = re.compile(
    r"Assign(Add|Sub)?(VariableOp)?|ResourceScatter\w+|Scatter(Nd)?(Add|Sub|Mul|Div|Min|Max|Update)|(Resource)?(Sparse)?Apply\w+"
)
"""Operations that change a variable."""


def notes(source: GraphDefFile, model: Model, states: Sequence[str] = ()) -> tuple[str, ...]:
    """How many nodes the model has under their names, which operations nobody converted, and which
    variables would have changed.

    ``states``: the variables that the model reads and assigns, so that nothing is lost of them.
    """
    needed = source.needed(
        name for output in model.outputs for name in (output.name, *output.names)
    )
    return (_kept(needed, model), *_unconverted(model), *(() if states else _assigned(needed)))


def layers(graph: ModelGraph) -> Iterator[Any]:
    """The nodes of a graph and of all bodies in it."""
    waiting = [graph]
    while waiting:
        inner = waiting.pop()
        yield from inner.nodes
        waiting.extend(body.graph for node in inner.nodes for body in node.bodies)


def _kept(needed: tuple[Any, ...], model: Model) -> str:
    names = set(_names(model.graph))
    lost = Counter(node.op for node in needed if node.name not in names)
    kept = len(needed) - lost.total()
    told = f"{kept} of {len(needed)} nodes kept their names in the conversion"
    return f"{told}; OpenVINO merged, folded or left out {_counted(lost)}" if lost else told


def _names(graph: ModelGraph) -> Iterator[str]:
    """Names of layers and tensors, whole and without the calls around them."""
    for layer in layers(graph):
        for name in (
            layer.name,
            *layer.output_names,
            *(name for port in layer.outputs for name in port.names),
        ):
            parts = name.partition(":")[0].split("/")
            yield from ("/".join(parts[start:]) for start in range(min(len(parts), 32)))


def _unconverted(model: Model) -> Iterator[str]:
    unknown = Counter(node.type for node in layers(model.graph) if node.opset == TENSORFLOW)
    if without := sum(unknown.pop(kind, 0) for kind in _VARIABLES):
        yield (
            f"{without} of the variables have no value here: those of a meta graph lie in the .index and .data files beside it, which are "
            "found when it is opened by its path"
        )
    if unknown:
        yield (
            f"nobody converts {_counted(unknown)}: they stand in the graph as TensorFlow has them; give what they compute with --ops, "
            f'for the opset "{TENSORFLOW}"'
        )


def _assigned(needed: tuple[Any, ...]) -> Iterator[str]:
    writes = [node for node in needed if _WRITES.fullmatch(node.op)]
    if writes:
        which = ", ".join(
            f"{shorten(node.name, 60)!r} ({node.op})" for node in writes[:_MOST_KINDS]
        )
        yield (
            f"the model changes variables in {which}: the conversion leaves that out, every variable keeps the value that was saved, "
            "and results differ from TensorFlow's where a variable is read after it was changed"
        )


def _counted(kinds: Counter[str]) -> str:
    """Such as ``Const 3, Identity 1``, the most frequent first."""
    most = kinds.most_common(_MOST_KINDS)
    others = kinds.total() - sum(count for _, count in most)
    return ", ".join(
        [
            *(f"{shorten(kind, 40)} {count}" for kind, count in most),
            *([f"{others} others"] if others else []),
        ]
    )
