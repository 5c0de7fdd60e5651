"""Derivatives of activations, at the output where that is cheaper."""

from __future__ import annotations

from engine.ops.derivative import Adjoints, Reverse, elementwise

exponential = elementwise(lambda at: at.outputs[0])
sigmoid = elementwise(lambda at: at.outputs[0] * (1.0 - at.outputs[0]))


def relu(at: Reverse, /) -> Adjoints:
    """The adjoint where the input is positive; 0 at 0, as every framework has it."""
    return (at.where(at.inputs[0] > 0.0, at.adjoint),)
