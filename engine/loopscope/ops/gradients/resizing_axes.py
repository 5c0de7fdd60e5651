"""Derivative of Interpolate: resizing an axis is a matrix product.

Resizing the identity matrix yields that matrix.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.interpolate_1 import as_version_11

_MODES = ("nearest", "linear", "linear_onnx", "cubic")


def interpolate_1(node: Reverse, /) -> Adjoints:
    """Return the adjoints by the rule of version 11 with equivalent attributes.

    In version 1, axes are an attribute, and the coordinate mode follows from other attributes.
    """
    image, sizes = node.inputs
    if image.rank is None:
        raise ValueError(
            f"the rank of the image is not known ({image.shape}): "
            "give the model's inputs their ranks"
        )
    equivalent = replace(node, attributes=as_version_11(image.rank, **node.attributes))
    return _resize_back(
        equivalent, image, sizes, node.constant(np.array(node.attributes["axes"], np.int64))
    ), None


def interpolate_4(node: Reverse, /) -> Adjoints:
    """Return the adjoint of the image.

    Sizes and scales are two inputs without a derivative, as lengths are rounded.
    """
    image, sizes, scales, *axes = node.inputs
    target = scales if node.attributes["shape_calculation_mode"] == "scales" else sizes
    return (
        _resize_back(node, image, target, axes[0] if axes else None),
        None,
        None,
        *[None] * len(axes),
    )


def interpolate_11(node: Reverse, /) -> Adjoints:
    """Return the adjoint of the image.

    Sizes or scales are an input without a derivative, as lengths are rounded.
    """
    image, target, *axes = node.inputs
    return (_resize_back(node, image, target, axes[0] if axes else None), None, *[None] * len(axes))


def _resize_back(node: Reverse, image: Value, target: Value, axes: Value | None) -> Value:
    mode, rank = node.attributes["mode"], image.rank
    if mode not in _MODES or node.attributes["antialias"]:
        raise ValueError(
            f"mode is {mode!r}, antialias {node.attributes['antialias']}: "
            f"only {', '.join(_MODES)} without it have a derivative here"
        )
    if rank is None or (axes is not None and axes.known.value is None):
        raise ValueError("the rank of the image or the axes are not known before the model runs")
    resized = (
        range(rank)
        if axes is None or axes.known.value is None
        else [int(axis) % rank for axis in axes.known.value.reshape(-1)]
    )
    adjoint = node.adjoint
    for number, axis in enumerate(resized):
        if not _is_unchanged(node, image, target, number, axis):
            adjoint = along_axis(
                node, adjoint, _matrix(node, image, target, number, axis), axis, rank
            )
    begin, end = (
        [*node.attributes[name], *[0] * rank][:rank] for name in ("pads_begin", "pads_end")
    )
    unresized = [0 if axis in resized else 1 for axis in range(rank)]
    if any((low + high) * factor for low, high, factor in zip(begin, end, unresized, strict=True)):
        cuts = (
            np.array(
                [-width * factor for width, factor in zip(pads, unresized, strict=True)], np.int64
            )
            for pads in (begin, end)
        )
        adjoint = node.ops.pad(adjoint, *cuts, pad_mode="constant")
    return adjoint


def _pads(node: Reverse, axis: int) -> tuple[int, int]:
    begin, end = node.attributes["pads_begin"], node.attributes["pads_end"]
    return begin[axis] if axis < len(begin) else 0, end[axis] if axis < len(end) else 0


def _is_unchanged(node: Reverse, image: Value, target: Value, number: int, axis: int) -> bool:
    """Return True if the axis is certainly unchanged.

    With equal lengths, every coordinate maps to itself, except in mode ``tf_half_pixel_for_nn``.
    """
    value, length = target.known.value, image.shape.at(axis)
    if (
        value is None
        or any(_pads(node, axis))
        or node.attributes["coordinate_transformation_mode"] == "tf_half_pixel_for_nn"
    ):
        return False
    size_or_scale = float(value.reshape(-1)[number])
    if node.attributes["shape_calculation_mode"] == "scales":
        return size_or_scale == 1
    return length.is_static and size_or_scale == length.length


def _matrix(node: Reverse, image: Value, target: Value, number: int, axis: int) -> Value:
    """Return ``[length, resized]``: the share of each element in each resized element."""
    length = node.ops.gather(node.shape_of(image), np.array(axis), np.array(0), batch_dims=0)
    identity = node.ops.eye(length, length, np.int64(0), output_type=image.element_type)
    size_or_scale = node.ops.gather(target, np.array([number]), np.array(0), batch_dims=0)
    begin, end = _pads(node, axis)
    attributes = {**node.attributes, "pads_begin": (0, begin), "pads_end": (0, end)}
    return node.ops.interpolate(identity, size_or_scale, np.array([1]), **attributes)


def along_axis(node: Reverse, adjoint: Value, matrix: Value, axis: int, rank: int) -> Value:
    """Multiply an adjoint by the transpose of a matrix ``[length, resized]`` along an axis."""
    if axis == rank - 1:
        return node.ops.matmul(adjoint, matrix, transpose_a=False, transpose_b=True)
    swap = np.array([*range(axis), rank - 1, *range(axis + 1, rank - 1), axis])
    product = node.ops.matmul(
        node.ops.transpose(adjoint, swap), matrix, transpose_a=False, transpose_b=True
    )
    return node.ops.transpose(product, swap)
