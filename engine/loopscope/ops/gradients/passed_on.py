"""Derivatives of operations that pass elements on: reshape, conversion, selection, FakeQuantize.

The adjoint takes the shape and type of the input; a value that was not selected gets 0.
FakeQuantize has the straight-through estimate, which ignores the rounding.
"""

from __future__ import annotations

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse


def same_elements(node: Reverse, /) -> Adjoints:
    """Reshape the adjoint of Reshape, Squeeze and Unsqueeze to the shape of the input."""
    return (node.reshaped(node.adjoint, node.inputs[0]), *[None] * (len(node.inputs) - 1))


def convert(node: Reverse, /) -> Adjoints:
    """Convert the adjoint to the type of the input."""
    return (node.ops.convert_like(node.adjoint, node.inputs[0]), *[None] * (len(node.inputs) - 1))


def convert_both(node: Reverse, /) -> Adjoints:
    """Convert each adjoint to the type of its input; None for integer inputs."""
    return [
        node.ops.convert_like(node.adjoint_of(number), value)
        if value.element_type is None or value.element_type.is_float
        else None
        for number, value in enumerate(node.inputs)
    ]


def select(node: Reverse, /) -> Adjoints:
    """Pass the adjoint to each operand where it was chosen."""
    condition, when_true, when_false = node.inputs
    if node.attributes["auto_broadcast"] == "pdpd":
        raise ValueError("auto_broadcast is 'pdpd': only numpy's has a derivative here")
    of_true = node.where(condition, node.adjoint)
    of_false = node.where(node.ops.logical_not(condition), node.adjoint)
    return None, node.sum_to(of_true, when_true), node.sum_to(of_false, when_false)


def fake_quantize(node: Reverse, /) -> Adjoints:
    """Return the straight-through adjoints of data and limits.

    Data between the input limits gets the adjoint, scaled by the ratio of the ranges. The input
    limits get their effect on the scaled result. The adjoints of the output limits are weighted by
    the quantized level, which is exact.
    """
    data, low, high, target_low, target_high = node.inputs
    if node.attributes["auto_broadcast"] not in ("numpy", "none"):
        raise ValueError(
            f"auto_broadcast is {node.attributes['auto_broadcast']!r}: "
            "only numpy's has a derivative here"
        )
    below = data <= node.ops.minimum(low, high)
    above = data > node.ops.maximum(low, high)
    inside = node.ops.logical_not(node.ops.logical_or(below, above))
    span, steps = high - low, float(node.attributes["levels"] - 1)
    position = (data - low) / span
    top_level = np.ones((), data.element_type.dtype if data.element_type else np.float32)
    level = node.ops.select(
        above, top_level, node.where(inside, node.ops.round(position * steps) / steps)
    )
    of_position = node.where(inside, node.adjoint * (target_high - target_low) / span)
    return (
        node.sum_to(of_position, data),
        node.sum_to(of_position * (position - 1.0), low),
        node.sum_to(-(of_position * position), high),
        node.sum_to(node.adjoint * (1.0 - level), target_low),
        node.sum_to(node.adjoint * level, target_high),
    )
