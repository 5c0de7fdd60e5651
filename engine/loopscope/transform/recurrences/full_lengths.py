"""Detection of sequence lengths that a model computes from the number of steps itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from loopscope.ir.model import ModelGraph, OutputRef
from loopscope.ops.declare import Known

Knowledge = Callable[[OutputRef], Known]
"""Function that returns what is known of a tensor of the graph."""
_REPEATING = frozenset(
    {
        "Broadcast",
        "Cast",
        "Convert",
        "Expand",
        "Identity",
        "Reshape",
        "Squeeze",
        "Tile",
        "Unsqueeze",
    }
)
"""Operations whose output has the elements of their first input, some of them several times."""
_LONGEST_CHAIN = 20


def span_all_steps(
    graph: ModelGraph, lengths: OutputRef, data: OutputRef, axis: int, known: Knowledge
) -> bool:
    """Return True if all lengths are the length of ``axis`` of ``data``.

    They are constants of at least that length, or copies of it: a Gather from the shape of the
    data. False if another computation decides.
    """
    value, steps = known(lengths).value, known(data).shape.at(axis)
    if value is not None and steps.is_static:
        return bool(np.all(value >= steps.length))
    source: OutputRef | None = lengths
    for _ in range(_LONGEST_CHAIN):
        if source is None:
            return False
        node = graph.by_id[source.layer]
        inputs = graph.sources[node.id]
        if node.type == "Gather" and len(inputs) > 1 and inputs[0] and inputs[1]:
            places = known(inputs[1]).value
            is_axis = places is not None and places.size > 0 and bool(np.all(places == axis))
            return is_axis and _is_shape_of(graph, inputs[0], data)
        if node.type not in _REPEATING or not inputs:
            return False
        source = inputs[0]
    return False


def _is_shape_of(graph: ModelGraph, source: OutputRef, data: OutputRef) -> bool:
    """Return True if a tensor is the shape of ``data``, perhaps in another integer type."""
    node = graph.by_id[source.layer]
    while node.type in ("Cast", "Convert") and (inner := graph.sources[node.id][0]) is not None:
        node = graph.by_id[inner.layer]
    return node.type in ("Shape", "ShapeOf") and graph.sources[node.id][0] == data
