"""The derivative of FakeQuantize, as if what is rounded were not: the straight-through estimate."""

from __future__ import annotations

import numpy as np

from loopscope.ops.derivative import Adjoints, Reverse


def fake_quantize(at: Reverse, /) -> Adjoints:
    """Straight through: the data between the input limits gets the adjoint, scaled as the range is;
    the limits what moves the result.

    The output limits are weighed by the level that was taken, which is exact.
    """
    data, low, high, target_low, target_high = at.inputs
    if at.attributes["auto_broadcast"] not in ("numpy", "none"):
        raise ValueError(
            f"auto_broadcast is {at.attributes['auto_broadcast']!r}: only numpy's has a derivative here"
        )
    below = data <= at.ops.minimum(low, high)
    above = data > at.ops.maximum(low, high)
    inside = at.ops.logical_not(at.ops.logical_or(below, above))
    span, steps = high - low, float(at.attributes["levels"] - 1)
    part = (data - low) / span
    one = np.ones((), data.element_type.dtype if data.element_type else np.float32)
    level = at.ops.select(above, one, at.where(inside, at.ops.round(part * steps) / steps))
    of_part = at.where(inside, at.adjoint * (target_high - target_low) / span)
    return (
        at.sum_to(of_part, data),
        at.sum_to(of_part * (part - 1.0), low),
        at.sum_to(-(of_part * part), high),
        at.sum_to(at.adjoint * (1.0 - level), target_low),
        at.sum_to(at.adjoint * level, target_high),
    )
