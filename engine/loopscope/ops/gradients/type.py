"""Derivatives of conversions: between floats the adjoint is converted back."""

from __future__ import annotations

from loopscope.ops.derivative import Adjoints, Reverse


def convert(at: Reverse, /) -> Adjoints:
    """The adjoint in the type of the input."""
    return (at.ops.convert_like(at.adjoint, at.inputs[0]), *[None] * (len(at.inputs) - 1))


def convert_both(at: Reverse, /) -> Adjoints:
    """Each adjoint in the type of its input; of whole numbers there is none."""
    return [
        at.ops.convert_like(at.adjoint_of(number), one)
        if one.element_type is None or one.element_type.is_float
        else None
        for number, one in enumerate(at.inputs)
    ]
