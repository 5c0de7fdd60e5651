"""Derivatives of what makes a tensor of a few numbers: each number gets the sum of its places."""

from __future__ import annotations

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value


def sequence(at: Reverse, /) -> Adjoints:
    """The start is in every element, the step as often as the element's number; how many there
    are does not change.
    """
    start, _, step = at.inputs
    count = at.ops.reduce_prod(at.shape_of(at.adjoint), np.array([0]), keep_dims=False)
    numbers = at.ops.convert_like(
        at.ops.range(np.int64(0), count, np.int64(1), output_type="i64"), at.adjoint
    )
    return (
        _converted(at, _sum(at, at.adjoint), start),
        None,
        _converted(at, _sum(at, at.adjoint * numbers), step),
    )


def one_hot(at: Reverse, /) -> Adjoints:
    """The value of the places that are named, and the one of the others."""
    places, depth, on_value, off_value = at.inputs
    hot = at.ops.one_hot(places, depth, np.array(True), np.array(False), **at.attributes)
    of_on, of_off = (_sum(at, at.where(one, at.adjoint)) for one in (hot, at.ops.logical_not(hot)))
    return None, None, _converted(at, of_on, on_value), _converted(at, of_off, off_value)


def _sum(at: Reverse, value: Value) -> Value:
    return at.ops.reduce_sum(
        at.ops.reshape(value, np.array([-1]), special_zero=False), np.array([0]), keep_dims=False
    )


def _converted(at: Reverse, total: Value, like: Value) -> Value | None:
    """In the type and shape of the number; None for whole numbers."""
    if like.element_type is None or not like.element_type.is_float:
        return None
    return at.reshaped(at.ops.convert_like(total, like), like)
