"""The derivative of normalizing over a neighbourhood (LRN): an element is in its own divisor and
in those of its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse, Value
from loopscope.ops.gradients.element_places import whole_numbers

_FIRST, _ONE = np.array([0]), np.array([1])


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """``data / (bias + alpha * sum of squares) ** beta``, the sum over so many neighbours before
    and after along each axis.
    """

    axes: Sequence[int]
    before: int
    after: int
    alpha: float
    beta: float
    bias: float


def lrn(at: Reverse, /) -> Adjoints:
    """Along the axes that are the second input."""
    data, axes = at.inputs
    rank, size = _rank(data), int(at.attributes["size"])
    chosen = sorted({axis % rank for axis in whole_numbers(axes, "axes")})
    reach, alpha = (size - 1) // 2, float(at.attributes["alpha"]) / size ** len(chosen)
    near = Neighbourhood(
        chosen, reach, reach, alpha, float(at.attributes["beta"]), float(at.attributes["bias"])
    )
    return of_normalized(at, data, near), None


def of_normalized(at: Reverse, data: Value, near: Neighbourhood) -> Value:
    """The adjoint of the data."""
    sums = _among(at, data * data, near.axes, near.before, near.after) * near.alpha + near.bias
    pulled = _among(
        at, at.adjoint * data * sums ** (-near.beta - 1), near.axes, near.after, near.before
    )
    return at.adjoint * sums**-near.beta - data * pulled * (2 * near.alpha * near.beta)


def _among(at: Reverse, value: Value, axes: Sequence[int], before: int, after: int) -> Value:
    """The sum of each element and so many neighbours before and after it, along each axis in
    turn.
    """
    for axis in axes:
        value = _along(at, value, axis, before, after)
    return value


def _along(at: Reverse, value: Value, axis: int, before: int, after: int) -> Value:
    rest = [0] * (_rank(value) - axis - 1)
    around = at.ops.pad(
        value,
        np.array([*[0] * axis, before, *rest]),
        np.array([*[0] * axis, after, *rest]),
        pad_mode="constant",
    )
    shape = at.shape_of(around)
    lead = at.ops.reduce_prod(
        at.ops.slice(shape, _FIRST, np.array([axis]), _ONE), _FIRST, keep_dims=True
    )
    length = at.ops.slice(shape, np.array([axis]), np.array([axis + 1]), _ONE)
    columns = at.ops.reshape(
        around, at.ops.concat(lead, _ONE, length, np.array([-1]), axis=0), special_zero=False
    )
    window = at.filled_to(1, value, (1, 1, before + 1 + after, 1))
    sums = at.ops.convolution(
        columns, window, strides=(1, 1), pads_begin=(0, 0), pads_end=(0, 0), dilations=(1, 1)
    )
    return at.reshaped(sums, value)


def _rank(data: Value) -> int:
    if data.rank is None:
        raise ValueError("the rank of the data is not known: give the model's inputs their ranks")
    return data.rank
