"""Derivatives of image operations: resizing, rearranged or extracted patches, adaptive pooling.

Resizing an axis is a matrix product; resizing the identity matrix yields that matrix. A patch
operation on the elements' numbers yields the source of each output element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse, Value
from loopscope.ops.gradients.element_places import numbered, sent_back, whole_numbers

_MODES = ("nearest", "linear", "linear_onnx", "cubic")


def interpolate_1(as_version_11: Callable[..., Mapping[str, Any]]) -> Gradient:
    """Return the rule of version 1: that of version 11 with the attributes that ``as_version_11``
    returns for a rank and the attributes of version 1.

    In version 1, axes are an attribute, and the coordinate mode follows from other attributes.
    """

    def gradient(node: Reverse, /) -> Adjoints:
        image, sizes = node.inputs
        if image.rank is None:
            raise ValueError(
                f"the rank of the image is not known ({image.shape}): "
                "give the model's inputs their ranks"
            )
        equivalent = replace(node, attributes=as_version_11(image.rank, **node.attributes))
        axes = node.constant(np.array(node.attributes["axes"], np.int64))
        return _resize_back(equivalent, image, sizes, axes), None

    return gradient


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


def rearranged(function: str) -> Gradient:
    """Return the rule of an operation whose output contains input elements and zeros.

    An input element may occur several times.
    """

    def gradient(node: Reverse, /) -> Adjoints:
        data, *others = node.inputs
        source_numbers = getattr(node.ops, function)(
            numbered(node, data), *others, **node.attributes
        )
        return (sent_back(node, source_numbers, data).of_data, *[None] * len(others))

    return gradient


def col2im(node: Reverse, /) -> Adjoints:
    """Extract the patches of the image's adjoint at the positions to which Col2Im added them."""
    data, _, kernel = node.inputs
    sizes, image = whole_numbers(kernel, "kernel_size"), node.adjoint
    batched = data.rank == 3
    if data.rank not in (2, 3):
        raise ValueError(
            f"the rank of the data is not known ({data.shape}): give the model's inputs their ranks"
        )
    if not batched:
        image = node.ops.unsqueeze(image, np.array([0]))
    begins, ends = (np.array([0, 0, *node.attributes[name]]) for name in ("pads_begin", "pads_end"))
    framed = node.ops.pad(image, begins, ends, pad_mode="constant")
    steps = {"strides": node.attributes["strides"], "rates": node.attributes["dilations"]}
    patches = node.ops.extract_image_patches(framed, sizes=sizes, auto_pad="valid", **steps)
    # ExtractImagePatches puts the channels last, Col2Im has them first.
    batch, count = (
        node.ops.gather(node.shape_of(tensor), np.array([axis]), np.array(0), batch_dims=0)
        for tensor, axis in ((image, 0), (data, -1))
    )
    lengths = node.ops.concat(batch, np.array([sizes[0] * sizes[1], -1]), count, axis=0)
    parts = node.ops.reshape(patches, lengths, special_zero=False)
    return node.reshaped(node.ops.transpose(parts, np.array([0, 2, 1, 3])), data), None, None


def adaptive_max_pool(node: Reverse, /) -> Adjoints:
    """Send each adjoint back to the maximum, whose index in its channel is the second output."""
    data = node.inputs[0]
    lines = [
        node.ops.reshape(tensor, np.array([0, 0, -1]), special_zero=True)
        for tensor in (numbered(node, data), node.outputs[1])
    ]
    return sent_back(node, node.ops.gather_elements(*lines, axis=2), data).of_data, None


def adaptive_average_pool(node: Reverse, /) -> Adjoints:
    """Multiply the adjoint by a pooling matrix, axis by axis.

    The pooled identity matrix contains the share of each element in each mean.
    """
    data, counts = node.inputs
    if data.rank is None:
        raise ValueError(
            f"the rank of the data is not known ({data.shape}): give the model's inputs their ranks"
        )
    adjoint = node.adjoint
    for axis in range(2, data.rank):
        length = node.ops.gather(node.shape_of(data), np.array(axis), np.array(0), batch_dims=0)
        identity = node.ops.eye(length, length, np.array(0), output_type=data.element_type)
        pooled = node.ops.adaptive_avg_pool(
            node.ops.unsqueeze(identity, np.array([0])),
            node.ops.gather(counts, np.array([axis - 2]), np.array(0), batch_dims=0),
        )
        adjoint = along_axis(
            node, adjoint, node.ops.squeeze(pooled, np.array([0])), axis, data.rank
        )
    return adjoint, None
