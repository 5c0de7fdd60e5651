"""Derivatives of what only changes a shape: the adjoint takes the shape of the input."""

from __future__ import annotations

from loopscope.ops.derivative import Adjoints, Reverse


def same_elements(at: Reverse, /) -> Adjoints:
    """Reshape, Squeeze, Unsqueeze: each element of the output is one of the input."""
    return (at.reshaped(at.adjoint, at.inputs[0]), *[None] * (len(at.inputs) - 1))
