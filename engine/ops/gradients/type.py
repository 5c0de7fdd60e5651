"""Derivatives of conversions: between floats the adjoint is converted back."""

from __future__ import annotations

from engine.ops.derivative import Adjoints, Reverse


def convert(at: Reverse, /) -> Adjoints:
    """The adjoint in the type of the input."""
    return (at.ops.convert_like(at.adjoint, at.inputs[0]), *[None] * (len(at.inputs) - 1))
