"""Derivatives of arithmetic: operands that were broadcast sum their adjoint back to their shape."""

from __future__ import annotations

from collections.abc import Callable

from engine.ops.derivative import Adjoints, Gradient, Reverse, Value, elementwise

Partials = Callable[[Reverse, Value, Value], tuple[Value, Value]]


def _binary(partials: Partials) -> Gradient:
    """The rule of two operands: ``partials`` gives the adjoint of each in the shape of the output."""

    def gradient(at: Reverse, /) -> Adjoints:
        left, right = at.inputs
        if at.attributes.get("auto_broadcast", "numpy") not in ("numpy", "none"):
            raise ValueError(f"auto_broadcast is {at.attributes['auto_broadcast']!r}: only numpy's has a derivative here")
        of_left, of_right = partials(at, left, right)
        return at.sum_to(of_left, left), at.sum_to(of_right, right)

    return gradient


add = _binary(lambda at, left, right: (at.adjoint, at.adjoint))
subtract = _binary(lambda at, left, right: (at.adjoint, -at.adjoint))
multiply = _binary(lambda at, left, right: (at.adjoint * right, at.adjoint * left))
divide = _binary(lambda at, left, right: (at.adjoint / right, -(at.adjoint * (at.outputs[0] / right))))

tanh = elementwise(lambda at: 1.0 - at.outputs[0] * at.outputs[0])


def negative(at: Reverse, /) -> Adjoints:
    """The adjoint with the other sign."""
    return (-at.adjoint,)
