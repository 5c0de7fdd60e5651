"""Random numbers: uniformly distributed ones, and class numbers sampled by their probabilities.

They equal those of OpenVINO for the same seeds. The generators of 32-bit numbers are those
specified for RandomUniform-8: Philox 4x32-10 and Mersenne Twister. ONNX does not specify a
generator: the class numbers of its Multinomial are drawn by that of NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ir.shape import UNKNOWN, Dimension, PartialShape, static
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.infer import spelled
from loopscope.ops.kernel_arithmetic import COMPUTED, COMPUTED_FLOATS
from loopscope.ops.kernel_checks import check_elements

_ROUNDS = 10
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


def philox(key: int, counter: int, first: int, groups: int) -> np.ndarray:
    """Return four uint32 numbers, as uint64, for each of ``groups`` positions; shape (groups, 4).

    The positions are consecutive from ``first``. A position that overflows 64 bits carries into
    ``counter``. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3".
    """
    position = np.arange(groups, dtype=np.uint64) + np.uint64(first)
    carried = np.where(
        position < np.uint64(first), np.uint64((counter + 1) % 2**64), np.uint64(counter)
    )
    lanes = [position & _LOW, position >> _HALF, carried & _LOW, carried >> _HALF]
    low_key, high_key = key & 0xFFFFFFFF, key >> 32
    for _ in range(_ROUNDS):
        even, odd = lanes[0] * _MULTIPLIERS[0], lanes[2] * _MULTIPLIERS[1]
        lanes = [
            (odd >> _HALF) ^ lanes[1] ^ np.uint64(low_key),
            odd & _LOW,
            (even >> _HALF) ^ lanes[3] ^ np.uint64(high_key),
            even & _LOW,
        ]
        low_key = (low_key + _KEY_STEPS[0]) & 0xFFFFFFFF
        high_key = (high_key + _KEY_STEPS[1]) & 0xFFFFFFFF
    return np.stack(lanes, axis=1)


def mersenne(seed: int, count: int) -> np.ndarray:
    """Return the first ``count`` uint32 numbers of MT19937, as uint64."""
    return (
        np.random.RandomState(seed & 0xFFFFFFFF)
        .randint(0, 2**32, count, np.uint32)
        .astype(np.uint64)
    )


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


def _uniform_rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    return (Known(attributes["output_type"], spelled(inputs[0])),)


_OUTPUT_TYPES = (
    ElementType.F32,
    ElementType.F64,
    ElementType.F16,
    ElementType.BF16,
    ElementType.I32,
    ElementType.I64,
)

UNIFORM: tuple[Operation, ...] = (
    Operation(
        name="RandomUniform",
        version=8,
        opsets=(8, 16),
        page="generation/random-uniform-8",
        kernel=random_uniform,
        infer=_uniform_rule,
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


_SHAPE_TYPE = np.int64


def multinomial(
    probabilities: Array,
    samples: Array,
    /,
    *,
    convert_type: ElementType,
    with_replacement: bool,
    log_probs: bool,
    global_seed: int = 0,
    op_seed: int = 0,
    state: int | Stream,
) -> tuple[Array, Stream]:
    """Draw class numbers, shape (batch, samples), by probabilities of shape (batch, classes).

    Page generation/multinomial-13. The specification names no generator: the uniform numbers are
    those of RandomUniform-8 in f64 for the same seeds.
    """
    count = int(samples.item()) if samples.size == 1 else -1
    if probabilities.ndim != 2 or count < 0:
        raise ValueError(
            f"probs has shape {probabilities.shape}, num_samples is {samples}: "
            "expected rank 2 and one count"
        )
    batch, classes = probabilities.shape
    if not with_replacement and count > classes:
        raise ValueError(
            f"num_samples is {count} without replacement, expected at most {classes} (classes)"
        )
    check_elements(batch * count, "the samples")
    shape = np.array((batch, count), _SHAPE_TYPE)
    drawn, following = random_uniform(
        shape,
        np.array(0.0),
        np.array(1.0),
        output_type=ElementType.F64,
        global_seed=global_seed,
        op_seed=op_seed,
        state=state,
    )
    weights = probabilities.astype(np.float64)
    weights = np.exp(weights) if log_probs else weights
    if not (
        np.isfinite(weights).all() and (weights >= 0).all() and (weights.sum(axis=1) > 0).all()
    ):
        raise ValueError(
            "probabilities must be finite and not negative, and at least one of each row positive"
        )
    choose = _draw_with_replacement if with_replacement else _draw_without_replacement
    return choose(weights, drawn).astype(convert_type.dtype), following


def _draw_with_replacement(weights: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    chosen = [
        np.searchsorted(_cumulative(row), numbers, "left")
        for row, numbers in zip(weights, drawn, strict=True)
    ]
    return np.array(chosen).reshape(drawn.shape)


def _draw_without_replacement(weights: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Draw classes; each drawn class gets weight 0 in the later draws of its row."""
    remaining, rows = weights.copy(), np.arange(len(weights))
    chosen = np.zeros(drawn.shape, np.int64)
    for draw in range(drawn.shape[1]):
        chosen[:, draw] = (_cumulative(remaining) < drawn[:, draw, None]).sum(axis=1)
        remaining[rows, chosen[:, draw]] = 0
    return chosen


def _cumulative(weights: np.ndarray) -> np.ndarray:
    """Return cumulative probabilities along the last axis, from weights of any sum."""
    sums = np.cumsum(weights, axis=-1)
    return sums / sums[..., -1:]


def _multinomial_rule(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    shape, samples = inputs[0].shape, inputs[1].value
    batch = shape.at(0) if shape.rank == 2 else UNKNOWN
    count: Dimension = (
        UNKNOWN if samples is None or samples.size != 1 else static(max(int(samples.item()), 0))
    )
    return (Known(attributes["convert_type"], PartialShape((batch, count))),)


MULTINOMIAL: tuple[Operation, ...] = (
    Operation(
        name="Multinomial",
        version=13,
        opsets=(13, 16),
        page="generation/multinomial-13",
        kernel=multinomial,
        infer=_multinomial_rule,
        inputs=(2, 2),
        attributes=(
            Attribute("convert_type", "type", allowed=(ElementType.I32, ElementType.I64)),
            Attribute("with_replacement", "bool"),
            Attribute("log_probs", "bool"),
            Attribute("global_seed", "int", 0, least=0),
            Attribute("op_seed", "int", 0, least=0),
        ),
        types=(COMPUTED_FLOATS, INDEX_TYPES),
        stateful=True,
    ),
)


def multinomial_of_logits(
    logits: np.ndarray,
    /,
    *,
    state: int,
    sample_size: int = 1,
    dtype: int = 6,
    seed: float | None = None,
) -> Any:
    """Draw classes from unnormalised log-probabilities, [batch, sample_size]. Return them and the
    next state.
    """
    random = np.random.RandomState(int(seed) % 2**32 if seed is not None else state % 2**32)
    weights = np.exp(logits.astype(np.float64) - logits.max(axis=-1, keepdims=True))
    edges = np.cumsum(weights / weights.sum(axis=-1, keepdims=True), axis=-1)
    drawn = random.uniform(size=(len(logits), sample_size))
    classes = np.array(
        [
            np.searchsorted(row, points, side="right")
            for row, points in zip(edges, drawn, strict=True)
        ]
    )
    return np.minimum(classes, logits.shape[-1] - 1).astype(
        np.int64 if dtype == 7 else np.int32
    ), int(random.randint(2**31))
