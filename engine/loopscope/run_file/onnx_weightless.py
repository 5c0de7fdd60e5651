"""Removal of the weights from the file of an ONNX model.

This module is separate from ``weightless.py``, because importing the onnx package is slow and few
runs are saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import onnx
from onnx import AttributeProto, GraphProto, TensorProto

from loopscope.run_file.weightless import SMALL


def onnx_with_zeros(document: bytes) -> bytes:
    """Return the content of an ONNX file with zeros in its large tensors.

    Tensors in graphs and functions at any depth are replaced, also those whose data are in other
    files.
    """
    proto = onnx.ModelProto.FromString(document)
    waiting = [proto.graph]
    for function in proto.functions:
        waiting += _empty_nodes(function.node)
    while waiting:
        graph = waiting.pop()
        for tensor in graph.initializer:
            _empty(tensor)
        for sparse in graph.sparse_initializer:
            _empty(sparse.values)
        waiting += _empty_nodes(graph.node)
    return bytes(proto.SerializeToString())


def _empty_nodes(nodes: Any) -> Iterator[GraphProto]:
    """Empty the tensors of nodes, and yield the graphs inside the nodes."""
    for node in nodes:
        for attribute in node.attribute:
            for tensor in (
                (attribute.t, *attribute.tensors) if attribute.type in _TENSOR_KINDS else ()
            ):
                _empty(tensor)
            for sparse in (
                (attribute.sparse_tensor, *attribute.sparse_tensors)
                if attribute.type in _SPARSE_KINDS
                else ()
            ):
                _empty(sparse.values)
            if attribute.type == AttributeProto.GRAPH:
                yield attribute.g
            yield from attribute.graphs


_TENSOR_KINDS = (AttributeProto.TENSOR, AttributeProto.TENSORS)
_SPARSE_KINDS = (AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS)


def _empty(tensor: TensorProto) -> None:
    count = math.prod(tensor.dims)
    if count <= SMALL:
        return
    empty = TensorProto(
        dims=tensor.dims, data_type=tensor.data_type, name=tensor.name, doc_string=tensor.doc_string
    )
    if tensor.data_type == TensorProto.STRING:
        empty.string_data.extend([b""] * count)
    else:
        bits = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * 8
        bits = _BITS.get(tensor.data_type, bits)
        empty.raw_data = bytes(packed_size_of(bits, count))
    tensor.CopyFrom(empty)


_BITS = {
    number: bits
    for name, bits in (
        ("UINT4", 4),
        ("INT4", 4),
        ("FLOAT4E2M1", 4),
        ("UINT2", 2),
        ("INT2", 2),
        ("BOOL", 8),
    )
    if (number := getattr(TensorProto, name, None)) is not None
}


def packed_size_of(bits: int, count: int) -> int:
    """Return the number of bytes of ``count`` elements that are packed without gaps."""
    return -(-bits * count // 8)
