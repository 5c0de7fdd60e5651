"""A model's structure without its weights: Consts of a few elements, which may decide what runs, keep their data; all others lose it.

In the file the lost data are zeros, which take no room when packed, so that every reader of models reads it; ``without_data`` then
marks them as not kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, TensorProto

from engine.ir.constant import Constant, encode, packed_size
from engine.ir.element_type import ElementType
from engine.ir.model import Graph, Model, Node

SMALL = 64
"""Elements that a Const may have to keep its data: shapes, axes, trip counts, scalars."""


def without_data(model: Model) -> Model:
    """The model with its large Consts marked as not kept."""
    return replace(model, graph=_changed(model.graph, lambda one: replace(one, data=b"", is_kept=False)))


def with_zeros(model: Model) -> Model:
    """The model with zeros in its large Consts, which can be written to a file."""
    return replace(model, graph=_changed(model.graph, _zeros))


def onnx_with_zeros(document: bytes) -> bytes:
    """The content of an ONNX file, with zeros in its large tensors, wherever they are, also those whose data are in other files."""
    proto = onnx.ModelProto.FromString(document)
    waiting = [proto.graph]
    for function in proto.functions:
        waiting += _of_nodes(function.node)
    while waiting:
        graph = waiting.pop()
        for tensor in graph.initializer:
            _empty(tensor)
        for sparse in graph.sparse_initializer:
            _empty(sparse.values)
        waiting += _of_nodes(graph.node)
    return bytes(proto.SerializeToString())


def _of_nodes(nodes: Any) -> Iterator[GraphProto]:
    """The graphs in nodes, whose tensors are emptied."""
    for node in nodes:
        for attribute in node.attribute:
            for tensor in (attribute.t, *attribute.tensors) if attribute.type in _OF_TENSORS else ():
                _empty(tensor)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors) if attribute.type in _OF_SPARSE else ():
                _empty(sparse.values)
            if attribute.type == AttributeProto.GRAPH:
                yield attribute.g
            yield from attribute.graphs


_OF_TENSORS = (AttributeProto.TENSOR, AttributeProto.TENSORS)
_OF_SPARSE = (AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS)


def _empty(tensor: TensorProto) -> None:
    count = math.prod(tensor.dims)
    if count <= SMALL:
        return
    empty = TensorProto(dims=tensor.dims, data_type=tensor.data_type, name=tensor.name, doc_string=tensor.doc_string)
    if tensor.data_type == TensorProto.STRING:
        empty.string_data.extend([b""] * count)
    else:
        bits = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * 8
        bits = _NARROW.get(tensor.data_type, bits)
        empty.raw_data = bytes(packed_size_of(bits, count))
    tensor.CopyFrom(empty)


_NARROW = {
    number: bits
    for name, bits in (("UINT4", 4), ("INT4", 4), ("FLOAT4E2M1", 4), ("UINT2", 2), ("INT2", 2), ("BOOL", 8))
    if (number := getattr(TensorProto, name, None)) is not None
}


def packed_size_of(bits: int, count: int) -> int:
    """Bytes of so many elements that are packed without gaps."""
    return -(-bits * count // 8)


def _changed(graph: Graph, change: Any) -> Graph:
    nodes = tuple(_node(node, change) for node in graph.nodes)
    return replace(graph, nodes=nodes)


def _node(node: Node, change: Any) -> Node:
    constant = node.constant
    if constant is not None:
        return replace(node, constant=change(constant)) if constant.elements > SMALL else node
    if not node.bodies:
        return node
    return replace(node, bodies=tuple(replace(body, graph=_changed(body.graph, change)) for body in node.bodies))


def _zeros(constant: Constant) -> Constant:
    kind = constant.element_type
    texts = kind is ElementType.STRING
    data = encode(np.full(constant.shape, "", object)) if texts else bytes(packed_size(kind, constant.elements))
    return replace(constant, data=data, is_kept=True)
