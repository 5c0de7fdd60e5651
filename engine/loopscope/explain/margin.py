"""How narrowly a comparison of floats was decided: the distance of its operands, and the types
in which it would come out otherwise.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.ir.element_type import REAL_FLOATS, ElementType
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
"""What devices compute in instead of f32."""


@dataclass(frozen=True, slots=True)
class Margin:
    """How far two floats were from being compared otherwise."""

    distance: float
    """Of the operands."""
    otherwise: tuple[str, ...]
    """The types to which both may be rounded so that the comparison comes out otherwise."""

    @property
    def sentence(self) -> str:
        """What is to be said of a narrow decision; empty for any other."""
        if not self.otherwise:
            return ""
        return f"That was decided by {self.distance:.1g}: {' and '.join(self.otherwise)} would decide otherwise."


def margin(one: np.generic, other: np.generic, sign: str) -> Margin | None:
    """Of two elements that a comparison with ``sign`` compared; None where they are no finite
    floats.

    >>> margin(np.float32(0.5004), np.float32(0.5), ">").sentence
    'That was decided by 0.0004: bf16 would decide otherwise.'
    """
    operands = [np.asarray(one), np.asarray(other)]
    if any(ElementType.of_dtype(operand.dtype) not in REAL_FLOATS for operand in operands):
        return None
    values = [float(operand) for operand in operands]
    if not all(map(np.isfinite, values)):
        return None
    compares = _SIGNS[sign]
    held = compares(*values)
    narrower = {to: [float(round_to(operand, to=to)) for operand in operands] for to in _NARROWER}
    return Margin(
        abs(values[0] - values[1]),
        tuple(to for to, rounded in narrower.items() if compares(*rounded) != held),
    )
