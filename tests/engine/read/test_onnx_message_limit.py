"""Files with too many parts are refused before they are parsed, wherever the parts stand;
weights count for nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from unittest.mock import Mock

import numpy as np
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, numpy_helper

from loopscope.read.onnx.message_limit import check_message_count, varint

_MANY = 1000
_WEIGHTS = numpy_helper.from_array(np.zeros(8 * _MANY, np.float32), "w")


def _document(nodes: int, weights_first: bool) -> bytes:
    """Protobuf takes the parts of a message in any order: two graphs that follow each other are
    one.
    """
    held = GraphProto(initializer=[_WEIGHTS]).SerializeToString()
    nodes_of_it = GraphProto(node=[NodeProto(input=["a"])] * nodes).SerializeToString()
    graph = GraphProto.FromString(held + nodes_of_it if weights_first else nodes_of_it + held)
    return bytes(ModelProto(graph=graph).SerializeToString())


def _split(nodes: int, weights_first: bool) -> bytes:
    """The same, with the weights in a part of the graph of their own."""
    parts = [
        ModelProto(graph=GraphProto(initializer=[_WEIGHTS])),
        ModelProto(graph=GraphProto(node=[NodeProto(input=["a"])] * nodes)),
    ]
    return b"".join(part.SerializeToString() for part in (parts if weights_first else parts[::-1]))


@pytest.mark.parametrize("weights_first", [True, False])
@pytest.mark.parametrize("document", [_document, _split])
def test_parts_are_counted_and_weights_are_not(
    document: Callable[[int, bool], bytes], weights_first: bool
) -> None:
    # Two parts for each node (it and its input), and those around them: the graphs, the tensor.
    check_message_count(document(_MANY // 2 - 5, weights_first), _MANY)
    with pytest.raises(ValueError, match="more than 1,000 parts"):
        check_message_count(document(_MANY // 2 + 1, weights_first), _MANY)


def test_numbers_count_for_nothing_and_are_passed_over_in_one_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Integers of one to ten bytes, and floats: each is a field of its own in the file."""
    integers = [2**power for power in range(0, 63, 7)] * _MANY + [-1]
    nodes = [
        NodeProto(attribute=[AttributeProto(ints=integers), AttributeProto(floats=[0.5] * _MANY)])
    ] * 2
    document = ModelProto(
        graph=GraphProto(node=[*[NodeProto(input=["a"])] * (_MANY // 2), *nodes])
    ).SerializeToString()
    asked = Mock(side_effect=varint)
    monkeypatch.setattr(sys.modules[check_message_count.__module__], "varint", asked)
    with pytest.raises(ValueError, match="more than 1,000 parts"):
        check_message_count(document, _MANY)
    assert asked.call_count < 5 * _MANY
    check_message_count(document, _MANY + 10)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_file_that_ends_within_a_number_is_left_to_the_parser(cut: int) -> None:
    document = ModelProto(
        graph=GraphProto(node=[NodeProto(attribute=[AttributeProto(ints=[2**62] * _MANY, f=0.5)])])
    ).SerializeToString()
    check_message_count(document[:-cut], 10)


@pytest.mark.parametrize("text", [b"LEAF", b"", b"x" * 200])
def test_texts_of_an_attribute_count_for_a_quarter(text: bytes) -> None:
    """Each is a field of its own in the file, as the mode of each node of a forest."""

    def document(texts: int) -> bytes:
        forest = NodeProto(attribute=[AttributeProto(name="nodes_modes", strings=[text] * texts)])
        return bytes(ModelProto(graph=GraphProto(node=[forest])).SerializeToString())

    check_message_count(document(4 * _MANY - 40), _MANY)
    with pytest.raises(ValueError, match="more than 1,000 parts"):
        check_message_count(document(4 * _MANY + 40), _MANY)
