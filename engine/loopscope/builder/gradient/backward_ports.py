"""What the body of a backward loop receives and gives; most of it is decided when it is known
what the body needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loopscope.builder.gradient.forward_records import RecordRequest
from loopscope.builder.gradient.spans import Number
from loopscope.builder.tensor import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """What there is around the backward loop when its inputs are made."""

    count: Number
    """Iterations of the forward loop."""
    recorded: Mapping[RecordRequest, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class Fed:
    """A Parameter that gets an outer tensor, or a part of one in each iteration."""

    parameter: Tensor
    outer: Callable[[Outside], Tensor]
    axis: int | None = None
    stride: int = 1
    """Its size is the length of a part, its sign the way."""
    records: tuple[RecordRequest, ...] = ()
    """What the outer tensor is made of."""


@dataclass(frozen=True, slots=True, eq=False)
class BackwardCarried:
    """A Parameter that gets what the iteration before has left."""

    parameter: Tensor
    initial: Callable[[Outside], Tensor]
    after: Tensor
    records: tuple[RecordRequest, ...] = ()
    """What the initial value is made of."""


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """A tensor of each iteration, joined along an axis."""

    part: Tensor
    axis: int
    stride: int
