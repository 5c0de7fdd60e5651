"""Derivatives of what rearranges an image or takes patches of it: the same done to the elements'
numbers says where each came from.
"""

from __future__ import annotations

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse
from loopscope.ops.gradients.element_places import numbered, sent_back, whole_numbers
from loopscope.ops.gradients.resizing_axes import along_axis


def rearranged(function: str) -> Gradient:
    """Of an operation whose output holds elements of its input, some of them often, and zeros."""

    def gradient(at: Reverse, /) -> Adjoints:
        data, *rest = at.inputs
        came_from = getattr(at.ops, function)(numbered(at, data), *rest, **at.attributes)
        return (sent_back(at, came_from, data).of_data, *[None] * len(rest))

    return gradient


def col2im(at: Reverse, /) -> Adjoints:
    """Each patch gets the part of the image's adjoint that it was laid on."""
    data, _, kernel = at.inputs
    sizes, image = whole_numbers(kernel, "kernel_size"), at.adjoint
    batched = data.rank == 3
    if data.rank not in (2, 3):
        raise ValueError(
            f"the rank of the data is not known ({data.shape}): give the model's inputs their ranks"
        )
    if not batched:
        image = at.ops.unsqueeze(image, np.array([0]))
    begins, ends = (np.array([0, 0, *at.attributes[name]]) for name in ("pads_begin", "pads_end"))
    framed = at.ops.pad(image, begins, ends, pad_mode="constant")
    steps = {"strides": at.attributes["strides"], "rates": at.attributes["dilations"]}
    patches = at.ops.extract_image_patches(framed, sizes=sizes, auto_pad="valid", **steps)
    # Patches have their channels last, blocks have them first.
    batch, count = (
        at.ops.gather(at.shape_of(one), np.array([place]), np.array(0), batch_dims=0)
        for one, place in ((image, 0), (data, -1))
    )
    lengths = at.ops.concat(batch, np.array([sizes[0] * sizes[1], -1]), count, axis=0)
    parts = at.ops.reshape(patches, lengths, special_zero=False)
    return at.reshaped(at.ops.transpose(parts, np.array([0, 2, 1, 3])), data), None, None


def adaptive_max_pool(at: Reverse, /) -> Adjoints:
    """Each maximum was taken from the place that the second output names among those of its
    channel.
    """
    data = at.inputs[0]
    lines = [
        at.ops.reshape(one, np.array([0, 0, -1]), special_zero=True)
        for one in (numbered(at, data), at.outputs[1])
    ]
    return sent_back(at, at.ops.gather_elements(*lines, axis=2), data).of_data, None


def adaptive_average_pool(at: Reverse, /) -> Adjoints:
    """Axis by axis: what the identity matrix becomes when it is pooled is what each element
    gives to each mean.
    """
    data, counts = at.inputs
    if data.rank is None:
        raise ValueError(
            f"the rank of the data is not known ({data.shape}): give the model's inputs their ranks"
        )
    adjoint = at.adjoint
    for axis in range(2, data.rank):
        length = at.ops.gather(at.shape_of(data), np.array(axis), np.array(0), batch_dims=0)
        identity = at.ops.eye(length, length, np.array(0), output_type=data.element_type)
        pooled = at.ops.adaptive_avg_pool(
            at.ops.unsqueeze(identity, np.array([0])),
            at.ops.gather(counts, np.array([axis - 2]), np.array(0), batch_dims=0),
        )
        adjoint = along_axis(at, adjoint, at.ops.squeeze(pooled, np.array([0])), axis, data.rank)
    return adjoint, None
