"""Ports of a loop body, in slots: the inputs of its Parameters, and the loop outputs from its
Results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loopscope.executor.plan.slots import Slot
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope.ops.casting import cast
from loopscope.ops.kernel_checks import check_whole


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CarriedValue:
    """A Parameter that receives a Result of the previous iteration."""

    parameter: Slot
    initial: Slot | None
    """Outer slot of the first value; None for an unconnected Parameter, which is zeros as in
    OpenVINO.
    """
    result: Slot
    layer: LayerId
    """The Parameter in the body."""
    result_layer: LayerId


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sliced:
    """A Parameter that receives part i of an outer tensor along an axis."""

    parameter: Slot
    source: Slot
    axis: int
    start: int
    end: int
    stride: int
    part_size: int
    layer: LayerId
    whole_parts: bool = True
    """False for ONNX: a part is one element along the axis, and the axis is dropped. Sequences are
    sliced too.
    """


_WIDE_BYTES = 4
"""Size in bytes of a type from which iteration numbers do not wrap around."""


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """A Parameter that receives the iteration number."""

    parameter: Slot
    element_type: ElementType
    shape: tuple[int, ...]
    layer: LayerId

    @property
    def is_plain(self) -> bool:
        """True if numpy's scalar type of the element type represents all iteration numbers."""
        dtype = self.element_type.dtype
        return (
            not self.shape
            and dtype.isbuiltin == 1
            and dtype.kind in "iuf"
            and dtype.itemsize >= _WIDE_BYTES
        )

    def number(self, iteration: int) -> np.ndarray | np.generic:
        """Return the iteration number in the declared type and shape; ``ValueError`` for text."""
        if self.is_plain:
            plain: np.generic = self.element_type.dtype.type(iteration)
            return plain
        value: np.ndarray | np.generic = np.asarray(cast(np.asarray(iteration), self.element_type))[
            ()
        ]
        if not self.shape:
            return value
        check_whole(math.prod(self.shape), "the iteration number")
        return np.full(self.shape, value)


@dataclass(frozen=True, slots=True, eq=False)
class Invariant:
    """A Parameter that has one outer value in all iterations."""

    parameter: Slot
    source: Slot


@dataclass(frozen=True, slots=True, eq=False)
class Unfed:
    """A Parameter that nothing feeds; its value is zeros."""

    parameter: Slot
    layer: LayerId


Binding = CarriedValue | Sliced | Counter | Invariant | Unfed
"""Source of the value of a loop body's Parameter."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LastValue:
    """A loop output with the value of a Result in the last iteration."""

    slot: Slot
    result: Slot
    initial: Slot | None
    """Outer slot of the output's value without an iteration; None if that value is not computed."""
    carried_without_initial: Slot | None
    """Slot of the unconnected carried Parameter whose zeros are the output without an iteration."""
    layer: LayerId


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Concatenated:
    """A loop output that joins the values of a Result in all iterations along an axis."""

    slot: Slot
    result: Slot
    axis: int
    reverse: bool
    stacked: bool
    layer: LayerId
    part_size: int = 1
    start: int = 0
    end: int = -1
    into_sequence: bool = False
    """True for ONNX SequenceMap, whose values become a sequence."""
