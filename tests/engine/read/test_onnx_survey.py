"""Files with too many parts are refused before they are parsed, wherever the parts stand; weights count for nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, numpy_helper

from engine.read.onnx.survey import survey

_MANY = 1000
_WEIGHTS = numpy_helper.from_array(np.zeros(8 * _MANY, np.float32), "w")


def _document(nodes: int, weights_first: bool) -> bytes:
    """Protobuf takes the parts of a message in any order: two graphs that follow each other are one."""
    held = GraphProto(initializer=[_WEIGHTS]).SerializeToString()
    nodes_of_it = GraphProto(node=[NodeProto(input=["a"])] * nodes).SerializeToString()
    graph = GraphProto.FromString(held + nodes_of_it if weights_first else nodes_of_it + held)
    return bytes(ModelProto(graph=graph).SerializeToString())


def _split(nodes: int, weights_first: bool) -> bytes:
    """The same, with the weights in a part of the graph of their own."""
    parts = [ModelProto(graph=GraphProto(initializer=[_WEIGHTS])), ModelProto(graph=GraphProto(node=[NodeProto(input=["a"])] * nodes))]
    return b"".join(part.SerializeToString() for part in (parts if weights_first else parts[::-1]))


@pytest.mark.parametrize("weights_first", [True, False])
@pytest.mark.parametrize("document", [_document, _split])
def test_parts_are_counted_and_weights_are_not(document: Callable[[int, bool], bytes], weights_first: bool) -> None:
    # Two parts for each node (it and its input), and those around them: the graphs, the tensor.
    survey(document(_MANY // 2 - 5, weights_first), _MANY)
    with pytest.raises(ValueError, match="more than 1,000 parts"):
        survey(document(_MANY // 2 + 1, weights_first), _MANY)
