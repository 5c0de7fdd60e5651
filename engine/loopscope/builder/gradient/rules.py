"""The rule of one node, asked with what it needs: its tensors, and the operations of the graph
it is in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from loopscope.builder.graph_builder import Graph
from loopscope.builder.iterate import scan
from loopscope.builder.operations import Operations
from loopscope.builder.tensor import Tensor
from loopscope.ir.model import Node
from loopscope.ops.declare import Known, Operation, typed
from loopscope.ops.derivative import Reverse, WithGaps


def reverse_of(
    graph: Graph,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    adjoints: Sequence[Tensor | None],
    attributes: dict[str, Any],
    places: Sequence[int] = (),
) -> Reverse:
    """What a rule gets."""

    def several(type: str, /, *given: Any, **attributes: Any) -> tuple[Tensor, ...]:
        return graph.apply(type, given, attributes)

    ops = _operations(graph)
    return Reverse(
        tuple(inputs),
        tuple(outputs),
        tuple(adjoints),
        attributes,
        ops,
        several,
        graph.constant,
        scan,
        tuple(places),
    )


_OPERATIONS: WeakKeyDictionary[Graph, Operations] = WeakKeyDictionary()
"""Of each graph: its functions are made once, not once for each node that is walked back."""


def _operations(graph: Graph) -> Operations:
    made = _OPERATIONS.get(graph)
    if made is None:
        made = _OPERATIONS[graph] = Operations(graph.catalogue)
    return made


def filled(graph: Graph, number: float, like: Tensor) -> Tensor:
    """The same number everywhere, in the type and shape of a tensor."""
    return graph.lift(reverse_of(graph, (), (), (), {}).filled(number, like))


def zeros(graph: Graph, known: Known) -> Tensor:
    """Zeros of a type and a shape that are known."""
    none = np.zeros((), known.element_type.dtype if known.element_type else np.float32)
    lengths = np.array(known.shape.lengths, np.int64)
    return (
        graph.apply("Broadcast", (none, lengths), {})[0] if lengths.size else graph.constant(none)
    )


def adjoints_of_inputs(
    graph: Graph,
    node: Node,
    operation: Operation,
    inputs: Mapping[int, Tensor],
    adjoints: Sequence[Tensor | None],
) -> Sequence[Tensor | None]:
    """What the operation's rule gives for each input that is there, by position; ``ValueError``
    when it has none under these attributes.
    """
    assert operation.gradient is not None
    if len(inputs) < max(inputs, default=-1) + 1 and not isinstance(operation.gradient, WithGaps):
        raise ValueError("it leaves out an input before its last one")
    outputs = graph.frame.tensors[node.id]
    at = reverse_of(
        graph,
        tuple(inputs.values()),
        outputs,
        adjoints,
        typed(operation, node.attributes),
        tuple(inputs),
    )
    given = operation.gradient(at)
    if len(given) != len(inputs):
        raise ValueError(f"its rule gives {len(given)} adjoints for {len(inputs)} inputs")
    return [one if one is None else graph.lift(one) for one in given]
