"""The derivative of Interpolate: what an axis is resized by is a matrix, which the identity
matrix shows when it is resized itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.interpolate_1 import as_version_11

_MODES = ("nearest", "linear", "linear_onnx", "cubic")


def interpolate_1(at: Reverse, /) -> Adjoints:
    """As version 11 with the same meaning: axes are an attribute, and coordinates follow from
    the others.
    """
    image, sizes = at.inputs
    if image.rank is None:
        raise ValueError(
            f"the rank of the image is not known ({image.shape}): give the model's inputs their ranks"
        )
    same = replace(at, attributes=as_version_11(image.rank, **at.attributes))
    return _resized_back(
        same, image, sizes, at.constant(np.array(at.attributes["axes"], np.int64))
    ), None


def interpolate_4(at: Reverse, /) -> Adjoints:
    """By sizes or scales, which are two inputs and have no derivative here: lengths are rounded."""
    image, sizes, scales, *axes = at.inputs
    given = scales if at.attributes["shape_calculation_mode"] == "scales" else sizes
    return (
        _resized_back(at, image, given, axes[0] if axes else None),
        None,
        None,
        *[None] * len(axes),
    )


def interpolate_11(at: Reverse, /) -> Adjoints:
    """By sizes or scales, which are one input and have no derivative here: lengths are rounded."""
    image, given, *axes = at.inputs
    return (_resized_back(at, image, given, axes[0] if axes else None), None, *[None] * len(axes))


def _resized_back(at: Reverse, image: Value, given: Value, axes: Value | None) -> Value:
    mode, rank = at.attributes["mode"], image.rank
    if mode not in _MODES or at.attributes["antialias"]:
        raise ValueError(
            f"mode is {mode!r}, antialias {at.attributes['antialias']}: only {', '.join(_MODES)} without it have a derivative here"
        )
    if rank is None or (axes is not None and axes.known.value is None):
        raise ValueError("the rank of the image or the axes are not known before the model runs")
    chosen = (
        range(rank)
        if axes is None or axes.known.value is None
        else [int(axis) % rank for axis in axes.known.value.reshape(-1)]
    )
    adjoint = at.adjoint
    for number, axis in enumerate(chosen):
        if not _stays(at, image, given, number, axis):
            adjoint = along_axis(at, adjoint, _matrix(at, image, given, number, axis), axis, rank)
    begin, end = ([*at.attributes[name], *[0] * rank][:rank] for name in ("pads_begin", "pads_end"))
    rest = [0 if axis in chosen else 1 for axis in range(rank)]
    if any((low + high) * kept for low, high, kept in zip(begin, end, rest, strict=True)):
        cuts = (
            np.array([-one * kept for one, kept in zip(pads, rest, strict=True)], np.int64)
            for pads in (begin, end)
        )
        adjoint = at.ops.pad(adjoint, *cuts, pad_mode="constant")
    return adjoint


def _pads(at: Reverse, axis: int) -> tuple[int, int]:
    begin, end = at.attributes["pads_begin"], at.attributes["pads_end"]
    return begin[axis] if axis < len(begin) else 0, end[axis] if axis < len(end) else 0


def _stays(at: Reverse, image: Value, given: Value, number: int, axis: int) -> bool:
    """Whether the axis is surely not changed: every coordinate but TensorFlow's for the nearest
    falls on itself.
    """
    value, length = given.known.value, image.shape.at(axis)
    if (
        value is None
        or any(_pads(at, axis))
        or at.attributes["coordinate_transformation_mode"] == "tf_half_pixel_for_nn"
    ):
        return False
    wanted = float(value.reshape(-1)[number])
    if at.attributes["shape_calculation_mode"] == "scales":
        return wanted == 1
    return length.is_static and wanted == length.length


def _matrix(at: Reverse, image: Value, given: Value, number: int, axis: int) -> Value:
    """``[length, resized]``: what each element gives to each of the resized axis."""
    length = at.ops.gather(at.shape_of(image), np.array(axis), np.array(0), batch_dims=0)
    identity = at.ops.eye(length, length, np.int64(0), output_type=image.element_type)
    one = at.ops.gather(given, np.array([number]), np.array(0), batch_dims=0)
    begin, end = _pads(at, axis)
    attributes = {**at.attributes, "pads_begin": (0, begin), "pads_end": (0, end)}
    return at.ops.interpolate(identity, one, np.array([1]), **attributes)


def along_axis(at: Reverse, adjoint: Value, matrix: Value, axis: int, rank: int) -> Value:
    """An adjoint times the transpose of a matrix ``[length, resized]``, along one of its axes."""
    if axis == rank - 1:
        return at.ops.matmul(adjoint, matrix, transpose_a=False, transpose_b=True)
    swap = np.array([*range(axis), rank - 1, *range(axis + 1, rank - 1), axis])
    product = at.ops.matmul(
        at.ops.transpose(adjoint, swap), matrix, transpose_a=False, transpose_b=True
    )
    return at.ops.transpose(product, swap)
