"""Derivatives of data movement, and of operations that pass elements on.

The adjoint of a moved element returns to the position of its source. The adjoint of a passed
element takes the shape and type of the input; a value that was not selected gets 0. FakeQuantize
has the straight-through estimate, which ignores the rounding.
"""

from __future__ import annotations

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.gradients.element_places import numbered, sent_back, whole_number


def unchanged(node: Reverse, /) -> Adjoints:
    """Return the adjoint for an operation that returns its first input unchanged."""
    return (node.adjoint, *[None] * (len(node.inputs) - 1))


def broadcast(node: Reverse, /) -> Adjoints:
    """Sum the adjoint over all copies of an element."""
    data, others = node.inputs[0], [None] * (len(node.inputs) - 1)
    if node.attributes["mode"] != "explicit":
        return (node.sum_to(node.adjoint, data), *others)
    mapping, rank = node.inputs[2].known.value, node.outputs[0].rank
    if mapping is None or rank is None:
        raise ValueError("the axes that the data goes to are not known before it runs")
    mapped = {int(axis) % rank for axis in mapping.reshape(-1)} if rank else set()
    added_axes = np.array([axis for axis in range(rank) if axis not in mapped], np.int64)
    adjoint = (
        node.ops.reduce_sum(node.adjoint, added_axes, keep_dims=False)
        if added_axes.size
        else node.adjoint
    )
    return (node.sum_to(adjoint, data), *others)


def concat(node: Reverse, /) -> Adjoints:
    """Split the adjoint into the parts of the inputs."""
    axis = node.attributes["axis"]
    if len(node.inputs) == 1:
        return (node.adjoint,)
    if all(tensor.rank is not None and tensor.shape.at(axis).is_static for tensor in node.inputs):
        lengths = node.constant(
            np.array([tensor.shape.at(axis).length for tensor in node.inputs], np.int64)
        )
    else:
        axis_index = np.array([axis])
        lengths = node.ops.concat(
            *(
                node.ops.gather(node.shape_of(tensor), axis_index, np.array(0), batch_dims=0)
                for tensor in node.inputs
            ),
            axis=0,
        )
    return node.several("VariadicSplit", node.adjoint, np.array(axis), lengths)


def split(node: Reverse, /) -> Adjoints:
    """Concatenate the adjoints of Split and VariadicSplit; unused parts have zeros."""
    axis = whole_number(node.inputs[1], "axis")
    parts = [node.adjoint_of(number) for number in range(len(node.outputs))]
    return (node.ops.concat(*parts, axis=axis), *[None] * (len(node.inputs) - 1))


def transpose(node: Reverse, /) -> Adjoints:
    """Transpose the adjoint by the inverse order; an empty order reverses the axes, as before."""
    order = node.inputs[1]
    if order.shape.is_static and not order.shape.lengths[0]:
        return node.ops.transpose(node.adjoint, order), None
    known = order.known.value
    if known is not None:
        inverse: np.ndarray | Value = np.argsort(np.asarray(known, np.int64) % len(known)).astype(
            np.int64
        )
    elif order.shape.is_static:
        count = order.shape.lengths[0]
        zeros, positions = np.zeros(count, np.int64), np.arange(count)
        inverse = node.ops.scatter_elements_update(
            zeros, order, positions, np.array(0), reduction="none", use_init_val=True
        )
    else:
        raise ValueError("it is not known how many axes the order names: make it a constant")
    return node.ops.transpose(node.adjoint, inverse), None


def tile(node: Reverse, /) -> Adjoints:
    """Sum the adjoint over all copies, after splitting each axis into copies and elements."""
    ops, (data, repeats) = node.ops, node.inputs
    if data.rank is None or not repeats.shape.is_static:
        raise ValueError(
            f"the rank of the data ({data.shape}) or the number of repeats "
            f"({repeats.shape}) is not known"
        )
    count = repeats.shape.lengths[0]
    rank = max(data.rank, count)
    counts = ops.convert(repeats, destination_type="i64")
    padded_lengths = [
        ops.concat(np.ones(rank - length, np.int64), lengths, axis=0)
        for length, lengths in ((count, counts), (data.rank, node.shape_of(data)))
    ]
    pairs = ops.concat(
        *(ops.unsqueeze(lengths, np.array([1])) for lengths in padded_lengths), axis=1
    )
    split_axes = ops.reshape(
        node.adjoint, ops.reshape(pairs, np.array([-1]), special_zero=False), special_zero=False
    )
    return node.reshaped(
        ops.reduce_sum(split_axes, np.arange(0, 2 * rank, 2), keep_dims=False), data
    ), None


def pad(node: Reverse, /) -> Adjoints:
    """Return the adjoints of data and padding value.

    With ``constant``, the adjoint is cropped where the data grew, and padded where it was cropped.
    The value gets the sum over the padding. In other modes, each element gets the sum over its
    copies.
    """
    data, begin, end, *value = node.inputs
    mode = node.attributes["pad_mode"]
    if mode != "constant":
        source_numbers = node.ops.pad(numbered(node, data), begin, end, pad_mode=mode)
        return (sent_back(node, source_numbers, data).of_data, None, None, *[None] * len(value))
    of_data = node.ops.pad(node.adjoint, -begin, -end, pad_mode=mode)
    if not value:
        return of_data, None, None
    inside = node.ops.pad(
        node.ops.broadcast(np.array(True), node.shape_of(data), mode="numpy"),
        begin,
        end,
        pad_mode=mode,
    )
    padding = node.ops.reshape(
        node.where(node.ops.logical_not(inside), node.adjoint), np.array([-1]), special_zero=False
    )
    return (
        of_data,
        None,
        None,
        node.reshaped(node.ops.reduce_sum(padding, np.array([0]), keep_dims=False), value[0]),
    )


def roll(node: Reverse, /) -> Adjoints:
    """Roll the adjoint back."""
    _, shift, axes = node.inputs
    return node.ops.roll(node.adjoint, -shift, axes), None, None


def reverse(node: Reverse, /) -> Adjoints:
    """Reverse the adjoint."""
    axes = node.inputs[1:]
    return (
        node.ops.reverse(node.adjoint, *axes, mode=node.attributes["mode"]),
        *[None] * len(axes),
    )


def reverse_sequence(node: Reverse, /) -> Adjoints:
    """Reverse the sequences of the adjoint."""
    return node.ops.reverse_sequence(node.adjoint, node.inputs[1], **node.attributes), None


def depth_to_space(node: Reverse, /) -> Adjoints:
    """Move the blocks of the adjoint back into the depth."""
    return (node.ops.space_to_depth(node.adjoint, **node.attributes),)


def space_to_depth(node: Reverse, /) -> Adjoints:
    """Move the depth of the adjoint back into blocks."""
    return (node.ops.depth_to_space(node.adjoint, **node.attributes),)


def batch_to_space(node: Reverse, /) -> Adjoints:
    """Move the blocks of the adjoint back into the batch; cropped elements get 0."""
    return node.ops.space_to_batch(node.adjoint, *node.inputs[1:]), None, None, None


def space_to_batch(node: Reverse, /) -> Adjoints:
    """Move the batch of the adjoint back into blocks, without the padding."""
    return node.ops.batch_to_space(node.adjoint, *node.inputs[1:]), None, None, None


def same_elements(node: Reverse, /) -> Adjoints:
    """Reshape the adjoint of Reshape, Squeeze and Unsqueeze to the shape of the input."""
    return (node.reshaped(node.adjoint, node.inputs[0]), *[None] * (len(node.inputs) - 1))


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


def select(node: Reverse, /) -> Adjoints:
    """Pass the adjoint to each operand where it was chosen."""
    condition, when_true, when_false = node.inputs
    if node.attributes["auto_broadcast"] == "pdpd":
        raise ValueError("auto_broadcast is 'pdpd': only numpy's has a derivative here")
    of_true = node.where(condition, node.adjoint)
    of_false = node.where(node.ops.logical_not(condition), node.adjoint)
    return None, node.sum_to(of_true, when_true), node.sum_to(of_false, when_false)


def fake_quantize(node: Reverse, /) -> Adjoints:
    """Return the straight-through adjoints of data and limits.

    Data between the input limits gets the adjoint, scaled by the ratio of the ranges. The input
    limits get their effect on the scaled result. The adjoints of the output limits are weighted by
    the quantized level, which is exact.
    """
    data, low, high, target_low, target_high = node.inputs
    if node.attributes["auto_broadcast"] not in ("numpy", "none"):
        raise ValueError(
            f"auto_broadcast is {node.attributes['auto_broadcast']!r}: "
            "only numpy's has a derivative here"
        )
    below = data <= node.ops.minimum(low, high)
    above = data > node.ops.maximum(low, high)
    inside = node.ops.logical_not(node.ops.logical_or(below, above))
    span, steps = high - low, float(node.attributes["levels"] - 1)
    position = (data - low) / span
    top_level = np.ones((), data.element_type.dtype if data.element_type else np.float32)
    level = node.ops.select(
        above, top_level, node.where(inside, node.ops.round(position * steps) / steps)
    )
    of_position = node.where(inside, node.adjoint * (target_high - target_low) / span)
    return (
        node.sum_to(of_position, data),
        node.sum_to(of_position * (position - 1.0), low),
        node.sum_to(-(of_position * position), high),
        node.sum_to(node.adjoint * (1.0 - level), target_low),
        node.sum_to(node.adjoint * level, target_high),
    )
