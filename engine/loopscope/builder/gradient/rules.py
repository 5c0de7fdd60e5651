"""Application of an operation's gradient rule to a node of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.builder.graph_builder import Graph
from loopscope.builder.iterate import scan
from loopscope.builder.operations import Operations
from loopscope.builder.tensor import Tensor
from loopscope.ir.model import Node
from loopscope.object_cache import cache_by_object
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
    """Return the argument of a gradient rule."""

    def several(type: str, /, *inputs: Any, **attributes: Any) -> tuple[Tensor, ...]:
        return graph.apply(type, inputs, attributes)

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


@cache_by_object
def _operations(graph: Graph) -> Operations:
    """Return the operation functions, which are created once per graph and not per node."""
    return Operations(graph.catalogue)


def filled(graph: Graph, number: float, like: Tensor) -> Tensor:
    """Return a tensor with one number everywhere, in the type and shape of ``like``."""
    return graph.lift(reverse_of(graph, (), (), (), {}).filled(number, like))


def zeros(graph: Graph, known: Known) -> Tensor:
    """Return zeros of a known type and shape."""
    zero = np.zeros((), known.element_type.dtype if known.element_type else np.float32)
    lengths = np.array(known.shape.lengths, np.int64)
    return (
        graph.apply("Broadcast", (zero, lengths), {})[0] if lengths.size else graph.constant(zero)
    )


def adjoints_of_inputs(
    graph: Graph,
    node: Node,
    operation: Operation,
    inputs: Mapping[int, Tensor],
    adjoints: Sequence[Tensor | None],
) -> Sequence[Tensor | None]:
    """Return the adjoints of a node's connected inputs, by position, from the operation's rule.

    ``ValueError`` if the rule does not support these attributes.
    """
    assert operation.gradient is not None
    if len(inputs) < max(inputs, default=-1) + 1 and not isinstance(operation.gradient, WithGaps):
        raise ValueError("it omits an input before the last one")
    outputs = graph.frame.tensors[node.id]
    step = reverse_of(
        graph,
        tuple(inputs.values()),
        outputs,
        adjoints,
        typed(operation, node.attributes),
        tuple(inputs),
    )
    results = operation.gradient(step)
    if len(results) != len(inputs):
        raise ValueError(f"its rule gives {len(results)} adjoints for {len(inputs)} inputs")
    return [adjoint if adjoint is None else graph.lift(adjoint) for adjoint in results]
