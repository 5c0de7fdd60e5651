"""The ports of a loop's body, in slots: what each of its Parameters receives, and what the loop
gives of its Results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from loopscope.executor.plan.numbers import Slot
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope.ops.bounds import check_whole
from loopscope.ops.casting import cast


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CarriedValue:
    """A Parameter that receives the value of a Result of the iteration before."""

    parameter: Slot
    initial: Slot | None
    """Outer slot of the first value; None: unconnected, zeros as OpenVINO does."""
    result: Slot
    layer: LayerId
    """The body's Parameter."""
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
    """False for ONNX: a part is one element along the axis, and the axis is dropped. Sequences
    are taken apart too.
    """


_WIDE = 4
"""Bytes of a type from which no iteration number wraps around in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Counter:
    """A Parameter that receives the iteration number."""

    parameter: Slot
    element_type: ElementType
    shape: tuple[int, ...]
    layer: LayerId

    @property
    def is_plain(self) -> bool:
        """True if numpy's own type for a number of the element type has all iteration numbers."""
        dtype = self.element_type.dtype
        return (
            not self.shape
            and dtype.isbuiltin == 1
            and dtype.kind in "iuf"
            and dtype.itemsize >= _WIDE
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
    """Outer slot."""


@dataclass(frozen=True, slots=True, eq=False)
class Unfed:
    """A Parameter that nothing feeds: zeros."""

    parameter: Slot
    layer: LayerId


Binding = CarriedValue | Sliced | Counter | Invariant | Unfed
"""What a Parameter of a loop's body receives."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LastValue:
    """An output of a loop: the value of a Result in the last iteration."""

    slot: Slot
    result: Slot
    initial: Slot | None
    """Outer slot that it equals when no iteration ran; None: never computed then."""
    carried_without_initial: Slot | None
    """Parameter slot whose zeros it equals when no iteration ran (unconnected carried
    Parameter).
    """
    layer: LayerId


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Concatenated:
    """An output of a loop: the values of a Result in all iterations, joined along an axis."""

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
    """ONNX SequenceMap: the values become a sequence."""
