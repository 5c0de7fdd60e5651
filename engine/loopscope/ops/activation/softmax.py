"""Activations along an axis: SoftMax and its logarithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.elementwise_kernels import COMPUTED_FLOATS, through_float
from loopscope.ops.family import family
from loopscope.ops.gradients import elementwise as gradients
from loopscope.ops.input_checks import axis_within


@through_float
def softmax(data: Array, /, *, axis: int = 1) -> Array:
    """Divide e^x by the sum of e^x along ``axis``.

    Pages activation/softmax-1 and activation/softmax-8.
    """
    axis = axis_within(axis, data.ndim)
    if data.size == 0:
        return data.copy()
    powers = data - data.max(axis, keepdims=True)
    np.exp(powers, out=powers)
    if axis == data.ndim - 1:
        # Row sums as a matrix-vector product: BLAS is several times faster than the reduction on
        # short rows.
        sums = powers @ np.ones(data.shape[-1], data.dtype)
        powers /= sums[..., None]
    else:
        powers /= powers.sum(axis, keepdims=True)
    return powers


@through_float
def log_softmax(data: Array, /, *, axis: int = 1) -> Array:
    """Return x minus the logarithm of the sum of e^x along ``axis``.

    Page activation/log-soft-max-5.
    """
    axis = axis_within(axis, data.ndim)
    if data.size == 0:
        return data.copy()
    shifted = data - data.max(axis, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis, keepdims=True))
    return shifted


def _rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    shape = inputs[0].shape
    if shape.rank is not None:
        axis_within(attributes["axis"], shape.rank)
    return (Known(inputs[0].element_type, shape),)


_AXIS = Attribute("axis", "int", 1)
_FROM_THE_FRONT = Attribute("axis", "int", 1, least=0)

row = family("activation", infer=_rule, types=(COMPUTED_FLOATS,))

OPERATIONS: tuple[Operation, ...] = (
    row(
        "LogSoftmax",
        log_softmax,
        version=5,
        page="activation/log-soft-max-5",
        attributes=(Attribute("axis", "int", 1),),
        gradient=gradients.log_softmax,
    ),
    row(
        "SoftMax",
        softmax,
        opsets=(1, 7),
        page="activation/softmax-1",
        attributes=(Attribute("axis", "int", 1, least=0),),
        gradient=gradients.softmax,
    ),
    row(
        "SoftMax",
        softmax,
        version=8,
        page="activation/softmax-8",
        attributes=(_AXIS,),
        gradient=gradients.softmax,
    ),
)
