"""Derivatives of what moves elements: each adjoint goes back to where its element came from."""

from __future__ import annotations

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.gradients.element_places import numbered, sent_back, whole_number


def unchanged(at: Reverse, /) -> Adjoints:
    """Of what gives its first input as it is."""
    return (at.adjoint, *[None] * (len(at.inputs) - 1))


def broadcast(at: Reverse, /) -> Adjoints:
    """The sum over all copies of an element."""
    data, rest = at.inputs[0], [None] * (len(at.inputs) - 1)
    if at.attributes["mode"] != "explicit":
        return (at.sum_to(at.adjoint, data), *rest)
    mapping, rank = at.inputs[2].known.value, at.outputs[0].rank
    if mapping is None or rank is None:
        raise ValueError("the axes that the data goes to are not known before it runs")
    kept = {int(axis) % rank for axis in mapping.reshape(-1)} if rank else set()
    added = np.array([axis for axis in range(rank) if axis not in kept], np.int64)
    adjoint = at.ops.reduce_sum(at.adjoint, added, keep_dims=False) if added.size else at.adjoint
    return (at.sum_to(adjoint, data), *rest)


def concat(at: Reverse, /) -> Adjoints:
    """Each tensor gets its part."""
    axis = at.attributes["axis"]
    if len(at.inputs) == 1:
        return (at.adjoint,)
    if all(one.rank is not None and one.shape.at(axis).is_static for one in at.inputs):
        lengths = at.constant(np.array([one.shape.at(axis).length for one in at.inputs], np.int64))
    else:
        along = np.array([axis])
        lengths = at.ops.concat(
            *(
                at.ops.gather(at.shape_of(one), along, np.array(0), batch_dims=0)
                for one in at.inputs
            ),
            axis=0,
        )
    return at.several("VariadicSplit", at.adjoint, np.array(axis), lengths)


def split(at: Reverse, /) -> Adjoints:
    """Split and VariadicSplit: the parts joined, zeros for those that the target does not depend
    on.
    """
    axis = whole_number(at.inputs[1], "axis")
    parts = [at.adjoint_of(number) for number in range(len(at.outputs))]
    return (at.ops.concat(*parts, axis=axis), *[None] * (len(at.inputs) - 1))


def transpose(at: Reverse, /) -> Adjoints:
    """The axes where they were; an empty order turns them round, and back again."""
    order = at.inputs[1]
    if order.shape.is_static and not order.shape.lengths[0]:
        return at.ops.transpose(at.adjoint, order), None
    known = order.known.value
    if known is not None:
        back: np.ndarray | Value = np.argsort(np.asarray(known, np.int64) % len(known)).astype(
            np.int64
        )
    elif order.shape.is_static:
        count = order.shape.lengths[0]
        blank, places = np.zeros(count, np.int64), np.arange(count)
        back = at.ops.scatter_elements_update(
            blank, order, places, np.array(0), reduction="none", use_init_val=True
        )
    else:
        raise ValueError("it is not known how many axes the order names: make it a constant")
    return at.ops.transpose(at.adjoint, back), None


def tile(at: Reverse, /) -> Adjoints:
    """The sum over all copies: each axis falls into the copies and the axis that they repeat."""
    ops, (data, repeats) = at.ops, at.inputs
    if data.rank is None or not repeats.shape.is_static:
        raise ValueError(
            f"the rank of the data ({data.shape}) or the number of repeats ({repeats.shape}) is not known"
        )
    count = repeats.shape.lengths[0]
    rank = max(data.rank, count)
    times = ops.convert(repeats, destination_type="i64")
    each = [
        ops.concat(np.ones(rank - short, np.int64), one, axis=0)
        for short, one in ((count, times), (data.rank, at.shape_of(data)))
    ]
    pairs = ops.concat(*(ops.unsqueeze(one, np.array([1])) for one in each), axis=1)
    apart = ops.reshape(
        at.adjoint, ops.reshape(pairs, np.array([-1]), special_zero=False), special_zero=False
    )
    return at.reshaped(
        ops.reduce_sum(apart, np.arange(0, 2 * rank, 2), keep_dims=False), data
    ), None


def pad(at: Reverse, /) -> Adjoints:
    """Of ``constant`` the adjoint is cut where the data grew, and grows where the data was cut; the
    value gets what lies around.

    Of the others each element gets the sum over its images.
    """
    data, begin, end, *value = at.inputs
    mode = at.attributes["pad_mode"]
    if mode != "constant":
        came_from = at.ops.pad(numbered(at, data), begin, end, pad_mode=mode)
        return (sent_back(at, came_from, data).of_data, None, None, *[None] * len(value))
    of_data = at.ops.pad(at.adjoint, -begin, -end, pad_mode=mode)
    if not value:
        return of_data, None, None
    inside = at.ops.pad(
        at.ops.broadcast(np.array(True), at.shape_of(data), mode="numpy"), begin, end, pad_mode=mode
    )
    around = at.ops.reshape(
        at.where(at.ops.logical_not(inside), at.adjoint), np.array([-1]), special_zero=False
    )
    return (
        of_data,
        None,
        None,
        at.reshaped(at.ops.reduce_sum(around, np.array([0]), keep_dims=False), value[0]),
    )


def roll(at: Reverse, /) -> Adjoints:
    """Rolled back."""
    _, shift, axes = at.inputs
    return at.ops.roll(at.adjoint, -shift, axes), None, None


def reverse(at: Reverse, /) -> Adjoints:
    """Turned round once more."""
    axes = at.inputs[1:]
    return (at.ops.reverse(at.adjoint, *axes, mode=at.attributes["mode"]), *[None] * len(axes))


def reverse_sequence(at: Reverse, /) -> Adjoints:
    """Turned round once more."""
    return at.ops.reverse_sequence(at.adjoint, at.inputs[1], **at.attributes), None


def depth_to_space(at: Reverse, /) -> Adjoints:
    """The blocks back into the depth."""
    return (at.ops.space_to_depth(at.adjoint, **at.attributes),)


def space_to_depth(at: Reverse, /) -> Adjoints:
    """The depth back into blocks."""
    return (at.ops.depth_to_space(at.adjoint, **at.attributes),)


def batch_to_space(at: Reverse, /) -> Adjoints:
    """The blocks back into the batch; what was cropped gets 0."""
    return at.ops.space_to_batch(at.adjoint, *at.inputs[1:]), None, None, None


def space_to_batch(at: Reverse, /) -> Adjoints:
    """The batch back into blocks, without what was padded."""
    return at.ops.batch_to_space(at.adjoint, *at.inputs[1:]), None, None, None
