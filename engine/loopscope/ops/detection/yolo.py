"""The output layers of the YOLO networks: RegionYolo and ReorgYolo."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import REAL_FLOATS
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients.images import rearranged
from loopscope.ops.kernel_arithmetic import to_element_type, widened
from loopscope.ops.kernel_checks import axis_within, check_rank, shape_of_rank


def region_yolo(
    data: Array,
    /,
    *,
    axis: int,
    end_axis: int,
    coords: int,
    classes: int,
    num: int,
    do_softmax: bool = True,
    mask: tuple[int, ...] = (),
    anchors: tuple[float, ...] = (),
) -> Array:
    """Convert raw predictions [N, regions * (coords + 1 + classes), H, W] into numbers from 0 to 1.

    These are centre, confidence, and class scores. With ``do_softmax`` classes go through softmax
    and ``axis`` to ``end_axis`` are flattened, else each class goes through the sigmoid.
    """
    del anchors  # Only decoding the boxes needs the anchors.
    regions = num if do_softmax else len(mask)
    entries = coords + classes + 1
    batch, channels, height, width = _dimensions(data)
    if channels < regions * entries:
        raise ValueError(
            f"{channels} channels: {regions} regions of {entries} need {regions * entries}"
        )
    values = np.array(widened(np.asarray(data)))
    rows = values[:, : regions * entries].reshape(batch, regions, entries, height, width)
    activated = rows.copy()
    activated[:, :, :2] = _sigmoid(rows[:, :, :2])
    last = coords + 1 if do_softmax else entries
    activated[:, :, coords:last] = _sigmoid(rows[:, :, coords:last])
    if do_softmax:
        activated[:, :, coords + 1 :] = _softmax(rows[:, :, coords + 1 :])
        values[:, : regions * entries] = activated.reshape(batch, -1, height, width)
        return to_element_type(values, data.dtype).reshape(
            _flattened_shape(data.shape, axis, end_axis)
        )
    return to_element_type(activated.reshape(batch, regions * entries, height, width), data.dtype)


def _dimensions(data: Array) -> tuple[int, int, int, int]:
    check_rank(data, 4, "the data")
    batch, channels, height, width = data.shape
    return batch, channels, height, width


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def _softmax(values: np.ndarray) -> np.ndarray:
    raised = np.exp(values - values.max(2, keepdims=True, initial=-np.inf))
    return raised / raised.sum(2, keepdims=True)


def _flattened_shape(shape: tuple[int, ...], axis: int, end_axis: int) -> tuple[int, ...]:
    first, last = axis_within(axis, len(shape)), axis_within(end_axis, len(shape))
    return (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])


def reorg_yolo(data: Array, /, *, stride: tuple[int, ...]) -> Array:
    """Move space to channels, in Darknet's order of elements.

    [N, C, H, W] becomes [N, C * stride^2, H / stride, W / stride]. Darknet reads the memory as [N,
    C / stride^2, H * stride, W * stride] and selects every stride-th row and column of that.
    """
    step = _step(stride)
    batch, channels, height, width = _dimensions(data)
    if channels % (step * step) or height % step or width % step:
        raise ValueError(
            f"data of shape {list(data.shape)} cannot be reorganized with stride {step}"
        )
    cut = np.asarray(data).reshape(batch, channels // (step * step), height, step, width, step)
    return cut.transpose(0, 3, 5, 1, 2, 4).reshape(
        batch, channels * step * step, height // step, width // step
    )


def _step(stride: Sequence[int]) -> int:
    if len(set(stride)) != 1:
        raise ValueError(f"stride {list(stride)}: expected one number")
    return stride[0]


def _infer_region(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    data = inputs[0]
    shape = shape_of_rank(data, 4, "the data")
    batch, dimensions, height, width = shape.at(0), shape.dimensions or (), shape.at(2), shape.at(3)
    if not attributes["do_softmax"]:
        channels = static(
            len(attributes["mask"]) * (attributes["coords"] + attributes["classes"] + 1)
        )
        return (Known(data.element_type, PartialShape((batch, channels, height, width))),)
    first, last = axis_within(attributes["axis"], 4), axis_within(attributes["end_axis"], 4)
    flat: Dimension = static(1)
    for dimension in dimensions[first : last + 1]:
        flat = flat * dimension
    return (
        Known(
            data.element_type, PartialShape((*dimensions[:first], flat, *dimensions[last + 1 :]))
        ),
    )


def _infer_reorg(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    shape, step = shape_of_rank(inputs[0], 4, "the data"), _step(attributes["stride"])
    height, width = (
        static(side.length // step) if side.is_static else UNKNOWN
        for side in (shape.at(2), shape.at(3))
    )
    return (
        Known(
            inputs[0].element_type,
            PartialShape((shape.at(0), shape.at(1) * (step * step), height, width)),
        ),
    )


row = family("detection")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "RegionYolo",
        region_yolo,
        infer=_infer_region,
        types=(REAL_FLOATS,),
        attributes=(
            Attribute("axis", "int"),
            Attribute("end_axis", "int"),
            Attribute("coords", "int", least=2),
            Attribute("classes", "int", least=0),
            Attribute("num", "int", least=0),
            Attribute("do_softmax", "bool", True),
            Attribute("mask", "ints", ()),
            Attribute("anchors", "floats", ()),
        ),
    ),
    row(
        "ReorgYolo",
        reorg_yolo,
        version=2,
        page="detection/reorg-yolo-1",
        infer=_infer_reorg,
        attributes=(Attribute("stride", "ints", least=1),),
        gradient=rearranged("reorg_yolo"),
    ),
)
