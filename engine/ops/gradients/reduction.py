"""Derivatives of reductions: the adjoint goes back to every element that was folded into one."""

from __future__ import annotations

from engine.ops.derivative import Adjoints, Reverse, Value


def spread(at: Reverse, reduced: Value) -> Value:
    """A tensor in the shape of the output, repeated along the axes that were reduced, in the shape of the input."""
    data, axes = at.inputs
    if not at.attributes["keep_dims"]:
        # Unsqueeze counts negative axes in the rank that it makes, which is the rank that the reduction counted them in.
        reduced = at.ops.unsqueeze(reduced, axes)
    return at.ops.broadcast(reduced, at.shape_of(data), mode="bidirectional")


def reduce_sum(at: Reverse, /) -> Adjoints:
    """Each element counts once."""
    return spread(at, at.adjoint), None
