"""The types and shapes that ONNX's shape inference finds, asked of a copy of the model without the data of its weights."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto

_MOST_INFERRED_BYTES = 32 * 2**20
"""Beyond this the types and shapes of a file are taken as it says them."""
_LARGE = 1024
"""Elements of a tensor that is no shape, axes or the like: of its data no shape is computed."""
_TENSOR = int(AttributeProto.TENSOR)


def inferred(model: ModelProto) -> GraphProto | None:
    """The model's graph with all types and shapes that are found, nodes and bodies as they stand in it; None when none are."""
    outline = _outline(model)
    if outline.ByteSize() > _MOST_INFERRED_BYTES:
        return None
    try:
        found = onnx.shape_inference.infer_shapes(outline).graph
    except Exception:  # it raises many kinds, and a model that contradicts itself can still be looked at
        return None
    return found if len(found.node) == len(model.graph.node) else None


def _outline(model: ModelProto) -> ModelProto:
    """Of the outermost graph only shapes and types of large tensors are copied: most of a file is weights."""
    outline = ModelProto(ir_version=model.ir_version)
    outline.opset_import.extend(model.opset_import)
    outline.functions.extend(model.functions)
    graph = model.graph
    inside = outline.graph
    inside.node.extend(_nodes(graph.node[:]))
    inside.initializer.extend(_without_data(one) for one in graph.initializer[:])
    inside.sparse_initializer.extend(graph.sparse_initializer)
    inside.input.extend(graph.input)
    inside.output.extend(graph.output)
    inside.value_info.extend(graph.value_info)
    return outline


def _nodes(nodes: Iterable[NodeProto]) -> Iterable[NodeProto]:
    """Constants with large tensors as those of tensors without data."""
    for node in nodes:
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.ByteSize() > _LARGE:
            (held,) = node.attribute
            if held.type == _TENSOR:
                tensor = AttributeProto(name=held.name, type=held.type, t=_without_data(held.t))
                node = NodeProto(op_type="Constant", domain=node.domain, output=node.output, attribute=[tensor])
        yield node


def _without_data(tensor: TensorProto) -> TensorProto:
    if prod(tensor.dims[:]) <= _LARGE:
        return tensor
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
