"""Rows of the table of recurrences: operators that are loops over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopscope.builder.tensor import Tensor
from loopscope.transform.recurrences.opening import Opening


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """An operator that is a loop: its roles, and the function that builds the loop."""

    type: str
    domain: str
    """Domain of ONNX (``ai.onnx``, ``com.microsoft``); ``openvino`` for OpenVINO's opsets."""
    inputs: tuple[str, ...]
    """Roles of the inputs, in order."""
    build: Callable[[Opening], tuple[Tensor, ...]]
    """Builds the loop and returns a tensor for each output of the operator.

    It computes in f32 where the operator has a narrower float, as the kernel does.
    """
    states: tuple[str, ...]
    """Names of the carried values in the body."""
    gates: tuple[str, ...] = ()
    """Names of the nodes of the body that are the gates of the recurrence."""
    data: str = "input"
    """Role of the input whose axis of time determines the number of iterations."""
    time_axis: int | None = 0
    """Axis of time in ``data``; None if the operator must be opened to know it."""
    axis_role: str = ""
    """Role of the constant input that is the axis of time, instead of ``time_axis``."""
