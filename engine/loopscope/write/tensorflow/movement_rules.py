"""The rules of operations that move elements: shapes, parts, and what is put together of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.errors import WriteError
from loopscope.ir.element_type import ElementType
from loopscope.write.tensorflow.asked_node import NodeRequest, Rule
from loopscope.write.tensorflow.nodes import GraphDefNodes, GraphDefTensor

I64, BOOLEAN = ElementType.I64, ElementType.BOOLEAN


def _reshape(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    lengths = _without_zeros(asked) if asked.is_true("special_zero") else asked.inputs[1]
    attributes = {"T": asked.kind, "Tshape": lengths.element_type}
    return [
        asked.nodes.one(
            "Reshape", [asked.inputs[0], lengths], asked.kind, asked.node.name, **attributes
        )
    ]


def _without_zeros(asked: NodeRequest) -> GraphDefTensor:
    """The lengths of a Reshape, of which a 0 means the one that was there."""
    wanted = asked.constant(1).reshape(-1)
    if 0 not in wanted:
        return asked.inputs[1]
    nodes, there = asked.nodes, shape_of(asked.nodes, asked.inputs[0])
    first = nodes.constant(np.int64(0))
    parts = [
        nodes.numbers(int(one)) if one else gathered(nodes, there, nodes.numbers(at), first)
        for at, one in enumerate(wanted)
    ]
    return joined(nodes, parts, 0)


def _unsqueeze(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    rank, axes = asked.inputs[0].shape.rank, [int(one) for one in asked.constant(1).reshape(-1)]
    if rank is None and len(axes) > 1 and min(axes) < 0:
        raise WriteError(
            "Unsqueeze counts several axes from the end of a tensor whose rank is not known"
        )
    whole = [axis + rank + len(axes) if axis < 0 and rank is not None else axis for axis in axes]
    found = asked.inputs[0]
    for axis in sorted(whole):
        found = asked.nodes.one(
            "ExpandDims",
            [found, asked.nodes.constant(np.int64(axis))],
            asked.kind,
            T=asked.kind,
            Tdim=I64,
        )
    return [asked.nodes.one("Identity", [found], asked.kind, asked.node.name, T=asked.kind)]


def _squeeze(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    axes = [int(one) for one in asked.constant(1).reshape(-1)] if len(asked.inputs) > 1 else []
    return [
        asked.nodes.one(
            "Squeeze",
            asked.inputs[:1],
            asked.kind,
            asked.node.name,
            T=asked.kind,
            squeeze_dims=axes,
        )
    ]


def _transpose(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    kind = asked.inputs[1].element_type
    return [
        asked.nodes.one(
            "Transpose", asked.inputs, asked.kind, asked.node.name, T=asked.kind, Tperm=kind
        )
    ]


def _concat(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    return [joined(asked.nodes, asked.inputs, int(asked.text("axis")), asked.node.name)]


def joined(
    nodes: GraphDefNodes, parts: Sequence[GraphDefTensor], axis: int, name: str = ""
) -> GraphDefTensor:
    """Parts in a row along an axis."""
    kind = parts[0].element_type
    return nodes.one(
        "ConcatV2",
        [*parts, nodes.constant(np.int64(axis))],
        kind,
        name,
        N=len(parts),
        T=kind,
        Tidx=I64,
    )


def _gather(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    data, indices, axis = asked.inputs[:3]
    known = asked.constants[1]
    if known is None or (known < 0).any():
        indices = _from_the_front(asked.nodes, data, indices, axis)
    return [
        gathered(
            asked.nodes,
            data,
            indices,
            axis,
            batch_dims=int(asked.text("batch_dims", "0")),
            name=asked.node.name,
        )
    ]


def _from_the_front(
    nodes: GraphDefNodes, data: GraphDefTensor, indices: GraphDefTensor, axis: GraphDefTensor
) -> GraphDefTensor:
    """Indices of which negative ones count from the end: TensorFlow knows none."""
    kind = indices.element_type
    length = gathered(nodes, shape_of(nodes, data), nodes.scalar(axis), nodes.constant(np.int64(0)))
    whole = nodes.one("AddV2", [indices, nodes.cast(length, kind)], kind, T=kind)
    negative = nodes.one(
        "Less", [indices, nodes.constant(np.zeros((), kind.dtype))], BOOLEAN, T=kind
    )
    return nodes.one("SelectV2", [negative, whole, indices], kind, T=kind)


def gathered(
    nodes: GraphDefNodes,
    data: GraphDefTensor,
    indices: GraphDefTensor,
    axis: GraphDefTensor,
    *,
    batch_dims: int = 0,
    name: str = "",
) -> GraphDefTensor:
    """Parts of a tensor, by their numbers along an axis."""
    kinds = {
        "Tparams": data.element_type,
        "Tindices": indices.element_type,
        "Taxis": axis.element_type,
    }
    return nodes.one(
        "GatherV2",
        [data, indices, nodes.scalar(axis)],
        data.element_type,
        name,
        batch_dims=batch_dims,
        **kinds,
    )


def _scatter_update(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    data, indices, updates = asked.inputs[:3]
    if indices.shape.is_static and np.prod(indices.shape.lengths) == 1:
        return [_with_one_part(asked, data, indices, updates)]
    if asked.axis(3) != 0:
        raise WriteError(
            "ScatterUpdate of several parts along another axis than the first is none of TensorFlow's"
        )
    last = asked.nodes.constant(np.int64(-1))
    rows = asked.nodes.one(
        "ExpandDims", [indices, last], indices.element_type, T=indices.element_type, Tdim=I64
    )
    attributes = {"T": asked.kind, "Tindices": indices.element_type}
    return [
        asked.nodes.one(
            "TensorScatterUpdate", [data, rows, updates], asked.kind, asked.node.name, **attributes
        )
    ]


def _with_one_part(
    asked: NodeRequest, data: GraphDefTensor, index: GraphDefTensor, updates: GraphDefTensor
) -> GraphDefTensor:
    """What is before a part, the part, and what is after it: runtimes know that which do not
    know TensorScatterUpdate.
    """
    nodes, axis = asked.nodes, asked.axis(3)
    if axis < 0:
        raise WriteError("ScatterUpdate counts its axis from the end")
    part = nodes.reshaped(nodes.cast(index, I64), [1])
    if index.shape.rank == 0:
        updates = nodes.one(
            "ExpandDims",
            [updates, nodes.constant(np.int64(axis))],
            asked.kind,
            T=asked.kind,
            Tdim=I64,
        )
    behind = nodes.one("AddV2", [part, nodes.numbers(1)], I64, T=I64)
    zeros, ones, others = (
        nodes.numbers(*[0] * axis),
        nodes.numbers(*[1] * (axis + 1)),
        (1 << axis) - 1,
    )
    until, since = (joined(nodes, [zeros, bound], 0) if axis else bound for bound in (part, behind))
    attributes: dict[str, Any] = {"T": asked.kind, "Index": I64}
    before = nodes.one(
        "StridedSlice",
        [data, until, until, ones],
        asked.kind,
        begin_mask=others | 1 << axis,
        end_mask=others,
        **attributes,
    )
    after = nodes.one(
        "StridedSlice",
        [data, since, since, ones],
        asked.kind,
        begin_mask=others,
        end_mask=others | 1 << axis,
        **attributes,
    )
    return joined(nodes, [before, updates, after], axis, asked.node.name)


def _shape_of(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    return [
        shape_of(
            asked.nodes,
            asked.inputs[0],
            ElementType(asked.text("output_type", "i64")),
            asked.node.name,
        )
    ]


def shape_of(
    nodes: GraphDefNodes, tensor: GraphDefTensor, kind: ElementType = I64, name: str = ""
) -> GraphDefTensor:
    """The lengths of a tensor."""
    return nodes.one("Shape", [tensor], kind, name, T=tensor.element_type, out_type=kind)


def _strided_slice(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    inputs = list(asked.inputs)
    if len(inputs) < 4:
        inputs.append(asked.nodes.numbers(*[1] * len(asked.numbers("begin_mask"))))
    same = {one.element_type for one in inputs[1:]}
    inputs[1:] = (
        inputs[1:] if len(same) == 1 else [asked.nodes.cast(one, I64) for one in inputs[1:]]
    )
    masks = {
        f"{name}_mask": asked.numbers(f"{name}_mask")
        for name in ("begin", "end", "new_axis", "shrink_axis", "ellipsis")
    }
    bits = {
        name: sum((bit != 0) << at for at, bit in enumerate(mask)) for name, mask in masks.items()
    }
    attributes = {"T": asked.kind, "Index": inputs[1].element_type}
    return [
        asked.nodes.one("StridedSlice", inputs, asked.kind, asked.node.name, **attributes, **bits)
    ]


def _slice(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    """Along one axis after the other: bounds that are computed may be of any number."""
    nodes, found = asked.nodes, asked.inputs[0]
    bounds = [nodes.cast(one, I64) for one in asked.inputs[1:4]]
    axes = (
        asked.constant(4).reshape(-1).tolist()
        if len(asked.inputs) > 4
        else list(range(asked.constant(3).size))
    )
    if min(axes, default=0) < 0:
        if found.shape.rank is None:
            raise WriteError(
                "Slice counts its axes from the end of a tensor whose rank is not known"
            )
        axes = [axis % found.shape.rank for axis in axes]
    for at, axis in enumerate(axes):
        first = nodes.constant(np.int64(0))
        start, stop, step = (gathered(nodes, one, nodes.numbers(at), first) for one in bounds)
        zeros, ones, others = (
            nodes.numbers(*[0] * axis),
            nodes.numbers(*[1] * axis),
            (1 << axis) - 1,
        )
        inputs = (
            [
                joined(nodes, [zeros, start], 0),
                joined(nodes, [zeros, stop], 0),
                joined(nodes, [ones, step], 0),
            ]
            if axis
            else [start, stop, step]
        )
        found = nodes.one(
            "StridedSlice",
            [found, *inputs],
            asked.kind,
            T=asked.kind,
            Index=I64,
            begin_mask=others,
            end_mask=others,
        )
    return [nodes.one("Identity", [found], asked.kind, asked.node.name, T=asked.kind)]


def _range(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    kind = ElementType(asked.text("output_type", str(asked.kind)))
    bounds = [asked.nodes.scalar(asked.nodes.cast(one, kind)) for one in asked.inputs]
    return [asked.nodes.one("Range", bounds, kind, asked.node.name, Tidx=kind)]


def _broadcast(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    if asked.text("mode", "numpy") not in ("numpy", "bidirectional"):
        raise WriteError(f"Broadcast works as {asked.text('mode')}, and TensorFlow as numpy")
    lengths = asked.inputs[1]
    everywhere = asked.nodes.one(
        "Fill",
        [lengths, asked.nodes.constant(np.bool_(True))],
        BOOLEAN,
        T=BOOLEAN,
        index_type=lengths.element_type,
    )
    # SelectV2 broadcasts all that it is given, both ways; BroadcastTo has fewer runtimes.
    return [
        asked.nodes.one(
            "SelectV2",
            [everywhere, asked.inputs[0], asked.inputs[0]],
            asked.kind,
            asked.node.name,
            T=asked.kind,
        )
    ]


def _tile(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    attributes = {"T": asked.kind, "Tmultiples": asked.inputs[1].element_type}
    return [asked.nodes.one("Tile", asked.inputs, asked.kind, asked.node.name, **attributes)]


def _split(asked: NodeRequest) -> Sequence[GraphDefTensor]:
    parts = int(asked.text("num_splits"))
    axis = asked.nodes.constant(np.int32(asked.axis(1)))
    return asked.nodes.add(
        "Split",
        [axis, asked.inputs[0]],
        [asked.kind] * parts,
        asked.node.name,
        T=asked.kind,
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
"""By the type of a layer."""
