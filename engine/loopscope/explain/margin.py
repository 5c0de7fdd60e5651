"""Margin of a comparison of floats: the distance of its operands, and the types that would change
its result.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.ir.element_type import is_real_float
from loopscope.ir.number_text import significant
from loopscope.ops.narrowing import round_to

_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_NARROWER = ("f16", "bf16")
"""Types that devices use instead of f32."""


@dataclass(frozen=True, slots=True)
class Margin:
    """Distance of two compared floats from the opposite result."""

    distance: float
    """Absolute difference of the operands."""
    otherwise: tuple[str, ...]
    """Types in which the rounded operands compare differently."""

    @property
    def sentence(self) -> str:
        """Sentence about a narrow decision; empty if no narrower type changes the result."""
        if not self.otherwise:
            return ""
        types = " and ".join(self.otherwise)
        return (
            f"That was decided by {significant(self.distance, 1)}: {types} would decide otherwise."
        )


def margin(left: np.generic, right: np.generic, sign: str) -> Margin | None:
    """Return the margin of two elements compared with ``sign``; None unless both are finite floats.

    >>> margin(np.float32(0.5004), np.float32(0.5), ">").sentence
    'That was decided by 0.0004: bf16 would decide otherwise.'
    """
    operands = [np.asarray(left), np.asarray(right)]
    if not all(is_real_float(operand.dtype) for operand in operands):
        return None
    values = [float(operand) for operand in operands]
    if not all(map(np.isfinite, values)):
        return None
    compares = _SIGNS[sign]
    result = compares(*values)
    narrower = {to: [float(round_to(operand, to=to)) for operand in operands] for to in _NARROWER}
    return Margin(
        abs(values[0] - values[1]),
        tuple(to for to, rounded in narrower.items() if compares(*rounded) != result),
    )
