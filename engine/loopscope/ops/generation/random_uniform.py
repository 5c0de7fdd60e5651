"""Uniformly distributed random numbers that equal OpenVINO's for the same seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.elements import COMPUTED
from loopscope.ops.generation.generators import mersenne, philox
from loopscope.ops.infer import spelled

Stream = tuple[int, int, int]
"""Key, counter and position of a Philox generator."""

_NUMBERS_PER_GROUP = 4
_SKIPPED_PER_ELEMENT = 256
"""Number of positions that TensorFlow and OpenVINO's CPU plugin reserve per drawn element."""
_MANTISSA_BITS = {
    ElementType.F64: 52,
    ElementType.F32: 23,
    ElementType.F16: 10,
    ElementType.BF16: 7,
}
_TWO_NUMBERS = frozenset({ElementType.F64, ElementType.I64})


def random_uniform(
    shape: Array,
    least: Array,
    most: Array,
    /,
    *,
    output_type: ElementType,
    global_seed: int = 0,
    op_seed: int = 0,
    alignment: str = "TENSORFLOW",
    state: int | Stream,
) -> tuple[Array, Stream]:
    """Draw random numbers from ``least`` to below ``most``, both scalars or of one element.

    Page generation/random-uniform-8. ``TENSORFLOW`` draws from Philox and continues after the last
    call, ``PYTORCH`` starts Mersenne Twister anew each time. When both seeds are 0, the run's
    entropy is the key.
    """
    lengths = tuple(int(length) for length in shape.reshape(-1).tolist())
    if lengths and min(lengths) < 0:
        raise ValueError(f"shape {lengths} has a negative length")
    count = math.prod(lengths)
    check_elements(count, f"the tensor of shape {lengths}")
    low, high = _bound(least, "minval", output_type), _bound(most, "maxval", output_type)
    if not low < high:
        raise ValueError(f"minval is {low}, maxval is {high}: expected a minimum below the maximum")
    key, counter, position = (
        state if isinstance(state, tuple) else _start(global_seed, op_seed, state)
    )
    if alignment == "PYTORCH":
        values = _from_mersenne(key, count, low, high, output_type)
    else:
        values = _from_philox((key, counter, position), count, low, high, output_type)
    return values.reshape(lengths), _next_stream((key, counter, position), count)


def _start(global_seed: int, op_seed: int, entropy: int) -> Stream:
    key = global_seed if global_seed or op_seed else entropy
    return key % 2**64, op_seed % 2**64, 0


def _next_stream(stream: Stream, count: int) -> Stream:
    key, counter, position = stream
    position += count * _SKIPPED_PER_ELEMENT
    return key, (counter + position // 2**64) % 2**64, position % 2**64


def _bound(value: Array, name: str, output_type: ElementType) -> Any:
    """Return a bound as a Python int or as a numpy float of the output type."""
    if value.size != 1:
        raise ValueError(f"{name} has shape {value.shape}, expected one element")
    number = value.reshape(()).astype(output_type.dtype)[()]
    if output_type.is_integer:
        return int(number)
    if not math.isfinite(float(number)):
        raise ValueError(f"{name} is {number}, expected a finite number")
    return number


def _from_philox(
    stream: Stream, count: int, low: Any, high: Any, output_type: ElementType
) -> Array:
    width = 2 if output_type in _TWO_NUMBERS else 1
    groups = -(-count * width // _NUMBERS_PER_GROUP)
    numbers = philox(*stream, groups).reshape(-1)[: count * width]
    if output_type.is_integer:
        if width == 2:
            numbers = (numbers[1::2] << np.uint64(32)) | numbers[::2]
        return _to_integers(numbers, low, high, output_type)
    bits = _MANTISSA_BITS[output_type]
    mantissa = (numbers[::2] << np.uint64(32)) | numbers[1::2] if width == 2 else numbers
    # This is the mantissa of a float between 1 and 2, less 1.
    fractions = (mantissa & np.uint64(2**bits - 1)).astype(np.float64) * 2.0**-bits
    return _scale(fractions, low, high, output_type)


def _from_mersenne(seed: int, count: int, low: Any, high: Any, output_type: ElementType) -> Array:
    double = output_type is ElementType.F64 or (
        output_type is ElementType.I64 and max(low, high) > 2**32 - 1
    )
    numbers = mersenne(seed, count * 2 if double else count)
    if double:
        numbers = (numbers[::2] << np.uint64(32)) + numbers[1::2]
    if output_type.is_integer:
        return _to_integers(numbers, low, high, output_type)
    digits = _MANTISSA_BITS[output_type] + 1
    fractions = (numbers & np.uint64(2**digits - 1)).astype(np.float64) * 2.0**-digits
    return _scale(fractions, low, high, output_type)


def _to_integers(numbers: np.ndarray, low: int, high: int, output_type: ElementType) -> Array:
    offsets = numbers % np.uint64(high - low)
    return (offsets + np.uint64(low % 2**64)).astype(np.int64).astype(output_type.dtype)


def _scale(fractions: np.ndarray, low: Any, high: Any, output_type: ElementType) -> Array:
    values = fractions.astype(output_type.dtype)
    return values * (high - low) + low


def _rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    return (Known(attributes["output_type"], spelled(inputs[0])),)


_OUTPUT_TYPES = (
    ElementType.F32,
    ElementType.F64,
    ElementType.F16,
    ElementType.BF16,
    ElementType.I32,
    ElementType.I64,
)

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="RandomUniform",
        version=8,
        opsets=(8, 16),
        page="generation/random-uniform-8",
        kernel=random_uniform,
        infer=_rule,
        inputs=(3, 3),
        attributes=(
            Attribute("output_type", "type", allowed=_OUTPUT_TYPES),
            Attribute("global_seed", "int", 0, least=0),
            Attribute("op_seed", "int", 0, least=0),
            Attribute("alignment", "str", "TENSORFLOW", allowed=("TENSORFLOW", "PYTORCH")),
        ),
        types=(INDEX_TYPES, COMPUTED),
        stateful=True,
    ),
)
