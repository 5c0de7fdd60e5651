"""Translation rules of operations that move elements: shapes, slices, concatenation and others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from loopscope.errors import WriteError
from loopscope.ir.element_type import ElementType
from loopscope.write.tensorflow.nodes import GraphDefNodes, GraphDefTensor, NodeRequest, Rule

I64, BOOLEAN = ElementType.I64, ElementType.BOOLEAN


def _reshape(request: NodeRequest) -> Sequence[GraphDefTensor]:
    lengths = _resolve_zeros(request) if request.is_true("special_zero") else request.inputs[1]
    attributes = {"T": request.kind, "Tshape": lengths.element_type}
    return [
        request.nodes.add_one(
            "Reshape", [request.inputs[0], lengths], request.kind, request.node.name, **attributes
        )
    ]


def _resolve_zeros(request: NodeRequest) -> GraphDefTensor:
    """Return the lengths of a Reshape, with each 0 replaced by the input's length at that axis."""
    lengths = request.constant(1).reshape(-1)
    if 0 not in lengths:
        return request.inputs[1]
    nodes, input_shape = request.nodes, shape_of(request.nodes, request.inputs[0])
    first_axis = nodes.constant(np.int64(0))
    parts = [
        nodes.numbers(int(length))
        if length
        else gather(nodes, input_shape, nodes.numbers(axis), first_axis)
        for axis, length in enumerate(lengths)
    ]
    return concatenate(nodes, parts, 0)


def _unsqueeze(request: NodeRequest) -> Sequence[GraphDefTensor]:
    rank = request.inputs[0].shape.rank
    axes = [int(axis) for axis in request.constant(1).reshape(-1)]
    if rank is None and len(axes) > 1 and min(axes) < 0:
        raise WriteError(
            "Unsqueeze has several negative axes, but the rank of its input is not known"
        )
    normalized = [
        axis + rank + len(axes) if axis < 0 and rank is not None else axis for axis in axes
    ]
    tensor = request.inputs[0]
    for axis in sorted(normalized):
        tensor = request.nodes.add_one(
            "ExpandDims",
            [tensor, request.nodes.constant(np.int64(axis))],
            request.kind,
            T=request.kind,
            Tdim=I64,
        )
    return [
        request.nodes.add_one("Identity", [tensor], request.kind, request.node.name, T=request.kind)
    ]


def _squeeze(request: NodeRequest) -> Sequence[GraphDefTensor]:
    axes = (
        [int(axis) for axis in request.constant(1).reshape(-1)] if len(request.inputs) > 1 else []
    )
    return [
        request.nodes.add_one(
            "Squeeze",
            request.inputs[:1],
            request.kind,
            request.node.name,
            T=request.kind,
            squeeze_dims=axes,
        )
    ]


def _transpose(request: NodeRequest) -> Sequence[GraphDefTensor]:
    tensor, order = request.inputs
    known = request.constants[1]
    if known is not None and not known.size:  # an empty order reverses all axes
        if tensor.shape.rank is None:
            raise WriteError("Transpose reverses the axes, but the rank of its input is not known")
        order = request.nodes.numbers(*reversed(range(tensor.shape.rank)))
    attributes = {"T": request.kind, "Tperm": order.element_type}
    return [
        request.nodes.add_one(
            "Transpose", [tensor, order], request.kind, request.node.name, **attributes
        )
    ]


def _concat(request: NodeRequest) -> Sequence[GraphDefTensor]:
    return [
        concatenate(request.nodes, request.inputs, int(request.text("axis")), request.node.name)
    ]


def concatenate(
    nodes: GraphDefNodes, parts: Sequence[GraphDefTensor], axis: int, name: str = ""
) -> GraphDefTensor:
    """Concatenate tensors along an axis."""
    kind = parts[0].element_type
    return nodes.add_one(
        "ConcatV2",
        [*parts, nodes.constant(np.int64(axis))],
        kind,
        name,
        N=len(parts),
        T=kind,
        Tidx=I64,
    )


def _gather(request: NodeRequest) -> Sequence[GraphDefTensor]:
    data, indices, axis = request.inputs[:3]
    if _may_be_negative(request.constants[1]):
        indices = _normalize_indices(request.nodes, data, indices, request.axis(2))
    return [
        gather(
            request.nodes,
            data,
            indices,
            axis,
            batch_dims=int(request.text("batch_dims", "0")),
            name=request.node.name,
        )
    ]


def _may_be_negative(indices: np.ndarray | None) -> bool:
    """Return True for computed indices (None), and for constants of which one is negative."""
    return indices is None or bool((indices < 0).any())


def _normalize_indices(
    nodes: GraphDefNodes, data: GraphDefTensor, indices: GraphDefTensor, axis: int
) -> GraphDefTensor:
    """Return the indices with negative ones normalized, because TensorFlow does not allow them."""
    kind = indices.element_type
    if axis < 0:
        if data.shape.rank is None:
            raise WriteError("the axis is negative, but the rank of the input is not known")
        axis += data.shape.rank
    first_axis = nodes.constant(np.int64(0))
    length = gather(nodes, shape_of(nodes, data), nodes.constant(np.int64(axis)), first_axis)
    shifted = nodes.add_one("AddV2", [indices, nodes.cast(length, kind)], kind, T=kind)
    negative = nodes.add_one(
        "Less", [indices, nodes.constant(np.zeros((), kind.dtype))], BOOLEAN, T=kind
    )
    result = nodes.add_one("SelectV2", [negative, shifted, indices], kind, T=kind)
    return replace(result, shape=indices.shape)


def gather(
    nodes: GraphDefNodes,
    data: GraphDefTensor,
    indices: GraphDefTensor,
    axis: GraphDefTensor,
    *,
    batch_dims: int = 0,
    name: str = "",
) -> GraphDefTensor:
    """Return the slices of a tensor with these indices along an axis."""
    kinds = {
        "Tparams": data.element_type,
        "Tindices": indices.element_type,
        "Taxis": axis.element_type,
    }
    return nodes.add_one(
        "GatherV2",
        [data, indices, nodes.scalar(axis)],
        data.element_type,
        name,
        batch_dims=batch_dims,
        **kinds,
    )


def _scatter_update(request: NodeRequest) -> Sequence[GraphDefTensor]:
    data, indices, updates = request.inputs[:3]
    if _may_be_negative(request.constants[1]):
        indices = _normalize_indices(request.nodes, data, indices, request.axis(3))
    if indices.shape.is_static and np.prod(indices.shape.lengths) == 1:
        return [_replace_part(request, data, indices, updates)]
    if request.axis(3) != 0:
        raise WriteError("TensorFlow has ScatterUpdate of several parts along the first axis only")
    last = request.nodes.constant(np.int64(-1))
    rows = request.nodes.add_one(
        "ExpandDims", [indices, last], indices.element_type, T=indices.element_type, Tdim=I64
    )
    attributes = {"T": request.kind, "Tindices": indices.element_type}
    return [
        request.nodes.add_one(
            "TensorScatterUpdate",
            [data, rows, updates],
            request.kind,
            request.node.name,
            **attributes,
        )
    ]


def _replace_part(
    request: NodeRequest, data: GraphDefTensor, index: GraphDefTensor, updates: GraphDefTensor
) -> GraphDefTensor:
    """Replace one slice: concatenate the part before it, the update and the part after it.

    This form also runs in runtimes without TensorScatterUpdate.
    """
    nodes, axis = request.nodes, request.axis(3)
    if axis < 0:
        raise WriteError("ScatterUpdate has a negative axis, expected one from 0")
    part = nodes.reshape_to(nodes.cast(index, I64), [1])
    if index.shape.rank == 0:
        updates = nodes.add_one(
            "ExpandDims",
            [updates, nodes.constant(np.int64(axis))],
            request.kind,
            T=request.kind,
            Tdim=I64,
        )
    part_end = nodes.add_one("AddV2", [part, nodes.numbers(1)], I64, T=I64)
    zeros = nodes.numbers(*[0] * axis)
    ones = nodes.numbers(*[1] * (axis + 1))
    other_axes_mask = (1 << axis) - 1
    before_bound, after_bound = (
        concatenate(nodes, [zeros, bound], 0) if axis else bound for bound in (part, part_end)
    )
    attributes: dict[str, Any] = {"T": request.kind, "Index": I64}
    before = nodes.add_one(
        "StridedSlice",
        [data, before_bound, before_bound, ones],
        request.kind,
        begin_mask=other_axes_mask | 1 << axis,
        end_mask=other_axes_mask,
        **attributes,
    )
    after = nodes.add_one(
        "StridedSlice",
        [data, after_bound, after_bound, ones],
        request.kind,
        begin_mask=other_axes_mask,
        end_mask=other_axes_mask | 1 << axis,
        **attributes,
    )
    return concatenate(nodes, [before, updates, after], axis, request.node.name)


def _shape_of(request: NodeRequest) -> Sequence[GraphDefTensor]:
    return [
        shape_of(
            request.nodes,
            request.inputs[0],
            ElementType(request.text("output_type", "i64")),
            request.node.name,
        )
    ]


def shape_of(
    nodes: GraphDefNodes, tensor: GraphDefTensor, kind: ElementType = I64, name: str = ""
) -> GraphDefTensor:
    """Return the lengths of a tensor."""
    return nodes.add_one("Shape", [tensor], kind, name, T=tensor.element_type, out_type=kind)


def _strided_slice(request: NodeRequest) -> Sequence[GraphDefTensor]:
    inputs = list(request.inputs)
    if len(inputs) < 4:
        inputs.append(request.nodes.numbers(*[1] * len(request.numbers("begin_mask"))))
    kinds = {tensor.element_type for tensor in inputs[1:]}
    inputs[1:] = (
        inputs[1:]
        if len(kinds) == 1
        else [request.nodes.cast(tensor, I64) for tensor in inputs[1:]]
    )
    masks = {
        f"{name}_mask": request.numbers(f"{name}_mask")
        for name in ("begin", "end", "new_axis", "shrink_axis", "ellipsis")
    }
    bits = {
        name: sum((bit != 0) << position for position, bit in enumerate(mask))
        for name, mask in masks.items()
    }
    attributes = {"T": request.kind, "Index": inputs[1].element_type}
    return [
        request.nodes.add_one(
            "StridedSlice", inputs, request.kind, request.node.name, **attributes, **bits
        )
    ]


def _slice(request: NodeRequest) -> Sequence[GraphDefTensor]:
    """Slice one axis after another: the number of computed bounds may be arbitrary."""
    nodes, tensor = request.nodes, request.inputs[0]
    bounds = [nodes.cast(bound, I64) for bound in request.inputs[1:4]]
    axes = (
        request.constant(4).reshape(-1).tolist()
        if len(request.inputs) > 4
        else list(range(request.constant(3).size))
    )
    if min(axes, default=0) < 0:
        if tensor.shape.rank is None:
            raise WriteError("Slice has negative axes, but the rank of its input is not known")
        axes = [axis % tensor.shape.rank for axis in axes]
    for index, axis in enumerate(axes):
        first_axis = nodes.constant(np.int64(0))
        start, stop, step = (
            gather(nodes, bound, nodes.numbers(index), first_axis) for bound in bounds
        )
        zeros = nodes.numbers(*[0] * axis)
        ones = nodes.numbers(*[1] * axis)
        other_axes_mask = (1 << axis) - 1
        inputs = (
            [
                concatenate(nodes, [zeros, start], 0),
                concatenate(nodes, [zeros, stop], 0),
                concatenate(nodes, [ones, step], 0),
            ]
            if axis
            else [start, stop, step]
        )
        tensor = nodes.add_one(
            "StridedSlice",
            [tensor, *inputs],
            request.kind,
            T=request.kind,
            Index=I64,
            begin_mask=other_axes_mask,
            end_mask=other_axes_mask,
        )
    return [nodes.add_one("Identity", [tensor], request.kind, request.node.name, T=request.kind)]


def _range(request: NodeRequest) -> Sequence[GraphDefTensor]:
    kind = ElementType(request.text("output_type", str(request.kind)))
    bounds = [request.nodes.scalar(request.nodes.cast(bound, kind)) for bound in request.inputs]
    return [request.nodes.add_one("Range", bounds, kind, request.node.name, Tidx=kind)]


def _broadcast(request: NodeRequest) -> Sequence[GraphDefTensor]:
    if request.text("mode", "numpy") not in ("numpy", "bidirectional"):
        raise WriteError(
            f"Broadcast has mode {request.text('mode')}, but TensorFlow broadcasts as numpy"
        )
    lengths = request.inputs[1]
    everywhere = request.nodes.add_one(
        "Fill",
        [lengths, request.nodes.constant(np.bool_(True))],
        BOOLEAN,
        T=BOOLEAN,
        index_type=lengths.element_type,
    )
    # SelectV2 broadcasts all its inputs, in both directions; fewer runtimes support BroadcastTo.
    return [
        request.nodes.add_one(
            "SelectV2",
            [everywhere, request.inputs[0], request.inputs[0]],
            request.kind,
            request.node.name,
            T=request.kind,
        )
    ]


def _tile(request: NodeRequest) -> Sequence[GraphDefTensor]:
    """Add a Tile whose number of repeats is the rank of its data, as TensorFlow requires."""
    nodes, (tensor, repeats) = request.nodes, request.inputs
    rank, known = tensor.shape.rank, request.constants[1]
    if rank is not None and known is not None:
        missing_repeats = rank - known.size
        if missing_repeats > 0:
            repeats = nodes.numbers(*[1] * missing_repeats, *map(int, known.reshape(-1)))
        for _ in range(-missing_repeats):
            first_axis = nodes.constant(np.int64(0))
            tensor = nodes.add_one(
                "ExpandDims", [tensor, first_axis], request.kind, T=request.kind, Tdim=I64
            )
    attributes = {"T": request.kind, "Tmultiples": repeats.element_type}
    return [nodes.add_one("Tile", [tensor, repeats], request.kind, request.node.name, **attributes)]


def _split(request: NodeRequest) -> Sequence[GraphDefTensor]:
    parts = int(request.text("num_splits"))
    axis = request.nodes.constant(np.int32(request.axis(1)))
    return request.nodes.add(
        "Split",
        [axis, request.inputs[0]],
        [request.kind] * parts,
        request.node.name,
        T=request.kind,
        num_split=parts,
    )


MOVEMENTS: Mapping[str, Rule] = {
    "Broadcast": _broadcast,
    "Concat": _concat,
    "Gather": _gather,
    "Range": _range,
    "Reshape": _reshape,
    "ScatterUpdate": _scatter_update,
    "ShapeOf": _shape_of,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
"""Rules by layer type."""
