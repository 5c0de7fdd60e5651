"""Derivatives of conversions: the adjoint is converted back to the type of the input."""

from __future__ import annotations

from loopscope.ops.derivative import Adjoints, Reverse


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
