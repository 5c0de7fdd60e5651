"""Causal convolutions of com.microsoft, also over sequences of several lengths side by side."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.onnx.stateful_layers import (
    ACTIVATIONS,
    activated,
    causal_convolution,
    convolved,
    kernel_size,
    positive_dilation,
)

LARGEST_CAPACITY = 8
"""Largest number of tokens per sequence that an operation returns as an update of a state."""


def ragged_causal_convolution(
    data: Array,
    weight: Array,
    bounds: Array,
    bias: Array | None,
    past_state: Array,
    capture_count: Array | None = None,
    /,
    *,
    activation: str = "none",
    dilation: int = 1,
    state_update_capacity: int = 0,
) -> tuple[Array, Array, Array]:
    """Convolve sequences that lie side by side, each with a state.

    ``[tokens, C], [C, 1, K], [B+1], [C], [B, C, (K-1)*dilation], [B] -> [tokens, C], [B, C,
    (K-1)*dilation], [B, capacity, C]``. Sequence i has the tokens from ``bounds[i]`` on, up to the
    next bound. The last output has the first tokens of each sequence, as many as
    ``capture_count`` allows.
    """
    if data.ndim != 2:
        raise ValueError(f"the input has shape {list(data.shape)}, expected [tokens, channels]")
    tokens, channels = data.shape
    starts = sequence_bounds(bounds, tokens)
    batch = len(starts) - 1
    reach = (kernel_size(weight, bias, channels) - 1) * positive_dilation(dilation)
    if past_state.shape != (batch, channels, reach):
        raise ValueError(
            f"the initial state has shape {list(past_state.shape)}, "
            f"expected [{batch}, {channels}, {reach}]"
        )
    counts = captured_counts(capture_count, np.diff(starts), state_update_capacity)
    wide, taps = computable(data), computable(weight)
    result = np.empty((tokens, channels), wide.dtype)
    state = np.array(computable(past_state))
    check_elements(batch * state_update_capacity * channels, "the update of the state")
    update = np.zeros((batch, state_update_capacity, channels), wide.dtype)
    for index, (start, end) in enumerate(itertools.pairwise(starts)):
        whole = np.concatenate((state[index], wide[start:end].T), axis=1)
        result[start:end] = convolved(whole, taps, bias, end - start, dilation).T
        state[index] = whole[:, end - start :]
        update[index, : counts[index]] = wide[start : start + counts[index]]
    outputs = (activated(result, activation), state, update)
    first, second, third = (rounded(output, data.dtype) for output in outputs)
    return first, second, third


def sequence_bounds(bounds: Array, tokens: int) -> list[int]:
    """Return the bounds of sequences; raise ``ValueError`` if they do not cover all tokens."""
    starts: list[int] = bounds.reshape(-1).astype(np.int64).tolist()
    ordered = all(start < end for start, end in itertools.pairwise(starts))
    if not starts or starts[0] or starts[-1] != tokens or not ordered:
        raise ValueError(
            f"the sequences begin and end at {starts[:8]}, "
            f"expected increasing numbers from 0 to {tokens}"
        )
    return starts


def captured_counts(counts: Array | None, lengths: Array, capacity: int) -> list[int]:
    """Return how many tokens of each sequence are part of the update of its state."""
    if not 0 <= capacity <= LARGEST_CAPACITY:
        raise ValueError(f"state_update_capacity is {capacity}, expected 0 to {LARGEST_CAPACITY}")
    if (counts is None) is bool(capacity):
        presence = "missing" if counts is None else "given"
        raise ValueError(f"capture_count is {presence} and state_update_capacity is {capacity}")
    if counts is None:
        return [0] * len(lengths)
    if counts.shape != lengths.shape:
        raise ValueError(
            f"capture_count has shape {list(counts.shape)}, expected {list(lengths.shape)}"
        )
    limited: list[int] = np.clip(counts, 0, np.minimum(lengths, capacity)).tolist()
    return limited


def infer_causal_convolution(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the convolved input, and the state from the number of taps."""
    data, taps = inputs[0], inputs[1].shape.at(2)
    if data.shape.rank is None:
        return (data, Known(data.element_type), Known(data.element_type))
    lengths = data.shape.lengths if data.shape.is_static else None
    reach = static((taps.length - 1) * attributes["dilation"]) if taps.is_static else None
    state = DYNAMIC
    if reach is not None and lengths is not None:
        dimensions = tuple(map(static, lengths))
        state = PartialShape(
            (dimensions[0], reach, *dimensions[2:])
            if attributes["channels_last"]
            else (*dimensions[:2], reach)
        )
    return (data, Known(data.element_type, state), Known(data.element_type))


def infer_ragged_causal_convolution(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the convolved input, the state, and its update."""
    data, state = inputs[0], inputs[4]
    capacity = static(max(0, attributes["state_update_capacity"]))
    update = PartialShape((state.shape.at(0), capacity, data.shape.at(1)))
    return (
        Known(data.element_type, data.shape),
        Known(data.element_type, state.shape),
        Known(data.element_type, update),
    )


_ACTIVATION = Attribute("activation", "str", "none", allowed=ACTIVATIONS)
_LENGTHS = frozenset({ElementType.I32})

OPERATIONS: tuple[Operation, ...] = (
    row(
        "CausalConvWithState",
        causal_convolution,
        infer=infer_causal_convolution,
        inputs=(2, 4),
        outputs=2,
        attributes=(
            _ACTIVATION,
            Attribute("dilation", "int", 1),
            Attribute("ndim", "int", 1),
            Attribute("channels_last", "int", 0),
            Attribute("state_window", "int", 0),
            Attribute("state_update_capacity", "int", 0),
            Attribute("state_channels_last", "int", -1),
            Attribute("state_length", "int", 0),
            Attribute("input_channel_offset", "int", 0),
            Attribute("input_channels", "int", 0),
        ),
        types=(FLOATING,),
    ),
    row(
        "VarlenCausalConvWithState",
        ragged_causal_convolution,
        infer=infer_ragged_causal_convolution,
        inputs=(5, 6),
        optional_inputs=frozenset({3}),
        outputs=3,
        attributes=(
            _ACTIVATION,
            Attribute("dilation", "int", 1),
            Attribute("state_update_capacity", "int", 0),
        ),
        types=(FLOATING, FLOATING, _LENGTHS, FLOATING, FLOATING, _LENGTHS),
    ),
)
