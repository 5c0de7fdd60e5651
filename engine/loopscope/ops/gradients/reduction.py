"""Derivatives of reductions: the adjoint goes back to every element that was folded into one."""

from __future__ import annotations

import math

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value


def spread(at: Reverse, reduced: Value) -> Value:
    """A tensor in the shape of the output, repeated along the axes that were reduced, in the
    shape of the input.
    """
    data, axes = at.inputs
    known = axes.shape.dimensions
    folds_nothing = (
        known is not None
        and all(one.is_static and not one.length for one in known[:1])
        and len(known) == 1
    )
    if (
        not at.attributes["keep_dims"] and not folds_nothing
    ):  # OpenVINO refuses an Unsqueeze of no axis
        # Unsqueeze counts negative axes in the rank that it makes, which is the rank that the
        # reduction counted them in.
        reduced = at.ops.unsqueeze(reduced, axes)
    return at.ops.broadcast(reduced, at.shape_of(data), mode="bidirectional")


def reduce_sum(at: Reverse, /) -> Adjoints:
    """Each element counts once."""
    return spread(at, at.adjoint), None


def reduce_mean(at: Reverse, /) -> Adjoints:
    """Each element counts as much as the others of its mean."""
    return spread(at, at.adjoint) / _count(at), None


def reduce_extreme(at: Reverse, /) -> Adjoints:
    """ReduceMax and ReduceMin: the elements that were taken, in equal parts, as PyTorch's
    ``amax`` and ``amin`` have it.
    """
    data = at.inputs[0]
    taken = at.where(at.ops.equal(data, spread(at, at.outputs[0])), at.filled(1, data))
    together = at.ops.reduce_sum(taken, at.inputs[1], keep_dims=at.attributes["keep_dims"])
    return taken * spread(at, at.adjoint / together), None


def reduce_prod(at: Reverse, /) -> Adjoints:
    """The product of the other elements: divided by the element, or, for the only 0, the product of
    those that are not 0.

    Where two elements or more are 0 the first derivative is right and the second, which is the
    product of all others, is taken as 0.
    """
    data, axes = at.inputs
    keep = at.attributes["keep_dims"]
    zero, one = at.ops.equal(data, at.zeros_like(data)), at.filled(1, data)
    safe = at.ops.select(zero, one, data)
    zeros = at.ops.reduce_sum(at.where(zero, one), axes, keep_dims=keep)
    alone = at.where(zeros < 1.5, at.ops.reduce_prod(safe, axes, keep_dims=keep))
    others = at.ops.select(zero, spread(at, alone), spread(at, at.outputs[0]) / safe)
    return spread(at, at.adjoint) * others, None


def reduce_l1(at: Reverse, /) -> Adjoints:
    """The sign of each element, 0 at 0."""
    return spread(at, at.adjoint) * at.ops.sign(at.inputs[0]), None


def reduce_l2(at: Reverse, /) -> Adjoints:
    """Each element by the length; 0 where the length is 0, as PyTorch has it."""
    length = at.outputs[0]
    safe = at.ops.select(length > 0.0, length, at.filled(1, length))
    return at.inputs[0] * spread(at, at.adjoint / safe), None


def _count(at: Reverse) -> Value | float:
    """How many elements are folded into one."""
    data, folded = at.inputs[0], at.outputs[0]
    if data.shape.is_static and folded.shape.is_static:
        return math.prod(data.shape.lengths) / max(math.prod(folded.shape.lengths), 1)
    whole, parts = (
        at.ops.reduce_prod(at.shape_of(one), np.array([0]), keep_dims=False)
        for one in (data, folded)
    )
    return at.ops.convert_like(at.ops.divide(whole, at.ops.maximum(parts, np.int64(1))), data)
