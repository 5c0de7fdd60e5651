"""Causal depthwise convolution over time, with the last inputs as a state."""

from __future__ import annotations

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.kernel_checks import check_elements

ACTIVATIONS = ("none", "silu", "swish")


def causal_convolution(
    data: Array,
    weight: Array,
    bias: Array | None = None,
    past_state: Array | None = None,
    /,
    *,
    activation: str = "none",
    dilation: int = 1,
    ndim: int = 1,
    channels_last: int = 0,
    state_window: int = 0,
    state_update_capacity: int = 0,
    state_channels_last: int = -1,
    state_length: int = 0,
    input_channel_offset: int = 0,
    input_channels: int = 0,
) -> tuple[Array, Array]:
    """Convolve each channel over time with the inputs before it; return the last inputs as state.

    ``[B, C, T], [C, 1, K], [C], [B, C, (K-1)*dilation] -> [B, C, T], [B, C, (K-1)*dilation]``. With
    ``channels_last`` data and states are ``[B, T, ...]``, where the further lengths multiply to C.
    """
    _refuse_extensions(
        ndim=(ndim, 1),
        state_window=(state_window, 0),
        state_update_capacity=(state_update_capacity, 0),
        state_channels_last=(state_channels_last, -1),
        state_length=(state_length, 0),
        input_channel_offset=(input_channel_offset, 0),
        input_channels=(input_channels, 0),
    )
    if data.ndim < 3 or (data.ndim > 3 and not channels_last):
        raise ValueError(f"the input has shape {list(data.shape)}, expected 3 lengths")
    wide = _channels_first(data) if channels_last else computable(data)
    batch, channels, steps = wide.shape
    size = kernel_size(weight, bias, channels)
    reach = (size - 1) * positive_dilation(dilation)
    if past_state is None:
        past = np.zeros((batch, channels, reach), wide.dtype)
    else:
        past = _channels_first(past_state) if channels_last else computable(past_state)
        if past.shape != (batch, channels, reach):
            lengths = [batch, reach, channels] if channels_last else [batch, channels, reach]
            raise ValueError(
                f"the past state has shape {list(past_state.shape)}, expected {lengths}"
            )
    check_elements(batch * channels * (reach + steps), "the input with its state")
    whole = np.concatenate((past, wide), axis=2)
    result = activated(convolved(whole, computable(weight), bias, steps, dilation), activation)
    state = whole[:, :, steps:]
    if channels_last:
        channel_axes = data.shape[2:]
        result = result.swapaxes(1, 2).reshape(data.shape)
        state = state.swapaxes(1, 2).reshape(batch, reach, *channel_axes)
    return (
        rounded(np.ascontiguousarray(result), data.dtype),
        rounded(np.ascontiguousarray(state), data.dtype),
    )


def convolved(whole: Array, weight: Array, bias: Array | None, steps: int, dilation: int) -> Array:
    """Convolve ``[..., C, reach + T]`` with ``weight [C, 1, K]`` to ``[..., C, T]``."""
    taps = weight[:, 0]
    result = np.zeros((*whole.shape[:-1], steps), whole.dtype)
    if bias is not None:
        result += computable(bias)[:, None]
    for tap in range(taps.shape[1]):
        result += whole[..., tap * dilation : tap * dilation + steps] * taps[:, tap, None]
    return result


def activated(values: Array, activation: str) -> Array:
    """Apply the activation of a convolution."""
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"activation is {activation[:40]!r}, expected one of {', '.join(ACTIVATIONS)}"
        )
    if activation == "none":
        return values
    with np.errstate(over="ignore"):
        result: Array = values / (1 + np.exp(-values))
    return result


def kernel_size(weight: Array, bias: Array | None, channels: int) -> int:
    """Return the number of taps; raise ``ValueError`` if weight or bias do not fit the channels."""
    if weight.ndim != 3 or weight.shape[:2] != (channels, 1) or not weight.shape[2]:
        raise ValueError(
            f"the weight has shape {list(weight.shape)}, expected [{channels}, 1, taps]"
        )
    if bias is not None and bias.shape != (channels,):
        raise ValueError(f"the bias has shape {list(bias.shape)}, expected [{channels}]")
    return weight.shape[2]


def positive_dilation(dilation: int) -> int:
    """Return the dilation; raise ``ValueError`` if it is less than 1."""
    if dilation < 1:
        raise ValueError(f"dilation is {dilation}, expected at least 1")
    return dilation


def _channels_first(data: Array) -> Array:
    """Return ``[B, T, ...]`` as ``[B, C, T]`` in the type of the computation."""
    batch, steps = data.shape[:2]
    channels = int(np.prod(data.shape[2:], dtype=np.int64))
    return computable(data).reshape(batch, steps, channels).swapaxes(1, 2)


def _refuse_extensions(**settings: tuple[int, int]) -> None:
    """Raise ``ValueError`` for a setting that only ONNX Runtime's GPU kernels compute.

    ``settings``: for each attribute its value, and the only value that is computed.
    """
    for name, (value, supported) in settings.items():
        if value != supported:
            raise ValueError(
                f"{name} is {value}, expected {supported}: ONNX Runtime's CPU computes no other"
            )
