"""Inputs and outputs of the body of a backward loop; most are resolved after the body is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loopscope.builder.gradient.forward_records import RecordRequest
from loopscope.builder.gradient.spans import Number
from loopscope.builder.tensor import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """Tensors outside of the backward loop from which its inputs are computed."""

    count: Number
    """Trip count of the forward loop."""
    recorded: Mapping[RecordRequest, Tensor]


@dataclass(frozen=True, slots=True, eq=False)
class Fed:
    """A Parameter that receives an outer tensor, or a slice of one in each iteration."""

    parameter: Tensor
    outer: Callable[[Outside], Tensor]
    axis: int | None = None
    stride: int = 1
    """Length of a slice, with the sign of the direction."""
    records: tuple[RecordRequest, ...] = ()
    """Records that the outer tensor is computed from."""


@dataclass(frozen=True, slots=True, eq=False)
class BackwardCarried:
    """A Parameter that receives a value of the previous iteration."""

    parameter: Tensor
    initial: Callable[[Outside], Tensor]
    after: Tensor
    records: tuple[RecordRequest, ...] = ()
    """Records that the initial value is computed from."""


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """A tensor per iteration, concatenated along an axis."""

    part: Tensor
    axis: int
    stride: int
