"""Derivatives of operations that rearrange an image or extract patches.

The same operation on the elements' numbers yields the source of each output element.
"""

from __future__ import annotations

import numpy as np

from loopscope.ops.derivative import Adjoints, Gradient, Reverse
from loopscope.ops.gradients.element_places import numbered, sent_back, whole_numbers
from loopscope.ops.gradients.resizing_axes import along_axis


def rearranged(function: str) -> Gradient:
    """Return the rule of an operation whose output contains input elements and zeros.

    An input element may occur several times.
    """

    def gradient(node: Reverse, /) -> Adjoints:
        data, *others = node.inputs
        source_numbers = getattr(node.ops, function)(
            numbered(node, data), *others, **node.attributes
        )
        return (sent_back(node, source_numbers, data).of_data, *[None] * len(others))

    return gradient


def col2im(node: Reverse, /) -> Adjoints:
    """Extract the patches of the image's adjoint at the positions to which Col2Im added them."""
    data, _, kernel = node.inputs
    sizes, image = whole_numbers(kernel, "kernel_size"), node.adjoint
    batched = data.rank == 3
    if data.rank not in (2, 3):
        raise ValueError(
            f"the rank of the data is not known ({data.shape}): give the model's inputs their ranks"
        )
    if not batched:
        image = node.ops.unsqueeze(image, np.array([0]))
    begins, ends = (np.array([0, 0, *node.attributes[name]]) for name in ("pads_begin", "pads_end"))
    framed = node.ops.pad(image, begins, ends, pad_mode="constant")
    steps = {"strides": node.attributes["strides"], "rates": node.attributes["dilations"]}
    patches = node.ops.extract_image_patches(framed, sizes=sizes, auto_pad="valid", **steps)
    # ExtractImagePatches puts the channels last, Col2Im has them first.
    batch, count = (
        node.ops.gather(node.shape_of(tensor), np.array([axis]), np.array(0), batch_dims=0)
        for tensor, axis in ((image, 0), (data, -1))
    )
    lengths = node.ops.concat(batch, np.array([sizes[0] * sizes[1], -1]), count, axis=0)
    parts = node.ops.reshape(patches, lengths, special_zero=False)
    return node.reshaped(node.ops.transpose(parts, np.array([0, 2, 1, 3])), data), None, None


def adaptive_max_pool(node: Reverse, /) -> Adjoints:
    """Send each adjoint back to the maximum, whose index in its channel is the second output."""
    data = node.inputs[0]
    lines = [
        node.ops.reshape(tensor, np.array([0, 0, -1]), special_zero=True)
        for tensor in (numbered(node, data), node.outputs[1])
    ]
    return sent_back(node, node.ops.gather_elements(*lines, axis=2), data).of_data, None


def adaptive_average_pool(node: Reverse, /) -> Adjoints:
    """Multiply the adjoint by a pooling matrix, axis by axis.

    The pooled identity matrix contains the share of each element in each mean.
    """
    data, counts = node.inputs
    if data.rank is None:
        raise ValueError(
            f"the rank of the data is not known ({data.shape}): give the model's inputs their ranks"
        )
    adjoint = node.adjoint
    for axis in range(2, data.rank):
        length = node.ops.gather(node.shape_of(data), np.array(axis), np.array(0), batch_dims=0)
        identity = node.ops.eye(length, length, np.array(0), output_type=data.element_type)
        pooled = node.ops.adaptive_avg_pool(
            node.ops.unsqueeze(identity, np.array([0])),
            node.ops.gather(counts, np.array([axis - 2]), np.array(0), batch_dims=0),
        )
        adjoint = along_axis(
            node, adjoint, node.ops.squeeze(pooled, np.array([0])), axis, data.rank
        )
    return adjoint, None
