"""Rules for operations that move data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.write.onnx.openvino.operation_rules import Rule
from loopscope.write.onnx.openvino.translated_graph import I64, OnnxTensor, Request


def _gather(request: Request) -> Sequence[OnnxTensor]:
    if int(request.text("batch_dims", "0")):
        raise request.refusal("ONNX does not gather in batches")
    axis = int(request.value(2).reshape(-1)[0])
    return [request.add("Gather", request.inputs[:2], request.kind, axis=axis)]


def _with_axes(operation: str) -> Rule:
    def rule(request: Request) -> Sequence[OnnxTensor]:
        axes = [request.indices(1)] if len(request.inputs) > 1 else []
        return [request.add(operation, [request.inputs[0], *axes], request.kind)]

    return rule


def _reshape(request: Request) -> Sequence[OnnxTensor]:
    target = request.inputs[1].value
    has_zeros = target is None or 0 in target.tolist()
    keeps = request.is_true("special_zero") or not has_zeros
    return [
        request.add(
            "Reshape",
            [request.inputs[0], request.indices(1)],
            request.kind,
            allowzero=int(not keeps),
        )
    ]


def _shape_of(request: Request) -> Sequence[OnnxTensor]:
    rank = request.inputs[0].shape.rank
    shape = PartialShape.unknown(1) if rank is None else PartialShape.of([rank])
    lengths = request.add("Shape", request.inputs, I64, shape)
    return [request.cast(lengths, ElementType(request.text("output_type", "i64")))]


def _broadcast(request: Request) -> Sequence[OnnxTensor]:
    if request.text("mode", "numpy") not in ("numpy", "bidirectional"):
        raise request.refusal(f"ONNX does not broadcast as {request.text('mode')}")
    return [request.add("Expand", [request.inputs[0], request.indices(1)], request.kind)]


def _tile(request: Request) -> Sequence[OnnxTensor]:
    repeats = request.indices(1)
    missing = request.rank() - (repeats.shape.lengths[0] if repeats.shape.is_static else 0)
    if not repeats.shape.is_static or missing < 0:
        raise request.refusal("ONNX expects a number of repetitions per axis")
    if missing:
        ones = request.graph.constant(np.ones(missing, np.int64))
        repeats = request.add("Concat", [ones, repeats], I64, axis=0)
    return [request.add("Tile", [request.inputs[0], repeats], request.kind)]


def _pad(request: Request) -> Sequence[OnnxTensor]:
    mode = request.text("pad_mode", "constant")
    if mode not in ("constant", "edge", "reflect"):
        raise request.refusal(f"ONNX does not pad in the mode {mode}")
    pads = request.add("Concat", [request.indices(1), request.indices(2)], I64, axis=0)
    value = request.inputs[3:4] if mode == "constant" else []
    return [request.add("Pad", [request.inputs[0], pads, *value], request.kind, mode=mode)]


def _concat(request: Request) -> Sequence[OnnxTensor]:
    axis = int(request.text("axis"))
    return [request.add("Concat", request.inputs, request.kind, axis=axis)]


def _transpose(request: Request) -> Sequence[OnnxTensor]:
    order = tuple(request.value(1).reshape(-1).tolist())
    attributes: dict[str, Any] = {"perm": order} if order else {}
    return [request.add("Transpose", [request.inputs[0]], request.kind, **attributes)]


def _slice(request: Request) -> Sequence[OnnxTensor]:
    start, stop, step = (request.indices(index) for index in (1, 2, 3))
    axes = [request.indices(4)] if len(request.inputs) > 4 else []
    if not axes:
        if not start.shape.is_static:
            raise request.refusal("the number of its axes is not known")
        axes = [request.graph.constant(np.arange(start.shape.lengths[0]))]
    return [request.add("Slice", [request.inputs[0], start, stop, axes[0], step], request.kind)]


def _strided_slice(request: Request) -> Sequence[OnnxTensor]:
    """Slice along the first axes; an axis of the shrink mask is dropped."""
    if any(request.integers(mask) and any(request.integers(mask)) for mask in _UNSUPPORTED_MASKS):
        raise request.refusal("it has new axes or an ellipsis")
    begins, ends = (request.value(index).reshape(-1).tolist() for index in (1, 2))
    steps = request.value(3).reshape(-1).tolist() if len(request.inputs) > 3 else [1] * len(begins)
    masks = [
        [*request.integers(name), *[0] * len(begins)]
        for name in ("begin_mask", "end_mask", "shrink_axis_mask")
    ]
    starts, stops, dropped = list[int](), list[int](), list[int]()
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if masks[2][axis]:
            dropped.append(axis)
            starts.append(begin)
            stops.append(begin + 1 if begin != -1 else _END)
            continue
        starts.append((0 if step > 0 else _END) if masks[0][axis] else begin)
        stops.append((_END if step > 0 else -_END) if masks[1][axis] else end)
    for axis in dropped:
        steps[axis] = 1
    bounds = [
        request.graph.constant(np.array(values, np.int64))
        for values in (starts, stops, range(len(begins)), steps)
    ]
    part = request.add("Slice", [request.inputs[0], *bounds], request.kind)
    if not dropped:
        return [part]
    axes = request.graph.constant(np.array(dropped, np.int64))
    return [request.add("Squeeze", [part, axes], request.kind)]


_UNSUPPORTED_MASKS = ("new_axis_mask", "ellipsis_mask")
_END = 2**31 - 1


def _split(request: Request) -> Sequence[OnnxTensor]:
    outputs = [(request.kind, port.shape) for port in request.node.outputs]
    axis = int(request.value(1).reshape(-1)[0])
    return request.graph.add(
        "Split",
        [request.inputs[0]],
        request.node.name,
        outputs,
        axis=axis,
        num_outputs=len(outputs),
    )


def _variadic_split(request: Request) -> Sequence[OnnxTensor]:
    outputs = [(request.kind, port.shape) for port in request.node.outputs]
    lengths = request.inputs[2].value
    if lengths is None or -1 in lengths.tolist():
        raise request.refusal("a length of its parts is not a constant")
    axis = int(request.value(1).reshape(-1)[0])
    return request.graph.add(
        "Split", [request.inputs[0], request.indices(2)], request.node.name, outputs, axis=axis
    )


def _select(request: Request) -> Sequence[OnnxTensor]:
    return [request.add("Where", request.inputs, request.inputs[1].element_type)]


def _range(request: Request) -> Sequence[OnnxTensor]:
    element_type = ElementType(request.text("output_type", str(request.kind)))
    ends = [request.cast(tensor, element_type) for tensor in request.inputs]
    return [request.add("Range", ends, element_type, PartialShape.unknown(1))]


def _scatter_update(request: Request) -> Sequence[OnnxTensor]:
    axis = int(request.value(3).reshape(-1)[0])
    rank = request.rank(1)
    if axis or rank > 1:
        raise request.refusal("ONNX scatters slices along the first axis only")
    indices = request.cast(request.inputs[1], I64)
    place = request.graph.constant(np.array([-1]))
    indices = request.add("Unsqueeze", [indices, place], I64)
    return [request.add("ScatterND", [request.inputs[0], indices, request.inputs[2]], request.kind)]


def _scatter_nd(request: Request) -> Sequence[OnnxTensor]:
    indices = request.cast(request.inputs[1], I64)
    return [request.add("ScatterND", [request.inputs[0], indices, request.inputs[2]], request.kind)]


def _identity(request: Request) -> Sequence[OnnxTensor]:
    return [request.add("Identity", request.inputs, request.kind, request.inputs[0].shape)]


MOVEMENTS: Mapping[str, Rule] = {
    "Broadcast": _broadcast,
    "Concat": _concat,
    "Gather": _gather,
    "Identity": _identity,
    "Range": _range,
    "Reshape": _reshape,
    "ScatterNDUpdate": _scatter_nd,
    "ScatterUpdate": _scatter_update,
    "Select": _select,
    "ShapeOf": _shape_of,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _with_axes("Squeeze"),
    "StridedSlice": _strided_slice,
    "Pad": _pad,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _with_axes("Unsqueeze"),
    "VariadicSplit": _variadic_split,
}
"""Rule of each operation that moves data."""
