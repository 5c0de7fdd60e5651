"""Tensors with a regular pattern: sequences of equal steps, shifted identities, one-hot rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, NUMERIC, ElementType
from loopscope.ir.shape import DYNAMIC, UNKNOWN, Dimension, PartialShape, length_within
from loopscope.ops.casting import cast
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import reduction as gradients
from loopscope.ops.infer import common_type, spelled, spelled_length
from loopscope.ops.kernel_arithmetic import COMPUTED
from loopscope.ops.kernel_checks import axis_within, check_elements

Number = int | float


def sequence(start: Array, stop: Array, step: Array, /, *, output_type: ElementType) -> Array:
    """Return the numbers from ``start`` up or down to ``stop`` (excluded). Page generation/range-4.

    Each input is a scalar or has one element. Inputs are first truncated towards zero when the
    output is an integer.
    """
    return _build(*_numbers((start, stop, step), output_type), output_type)


def sequence_of_own_type(start: Array, stop: Array, step: Array, /) -> Array:
    """Return the numbers from ``start`` up or down to ``stop`` (excluded). Page generation/range-1.

    The output has the type of the inputs.
    """
    element_type = ElementType.of(start)
    return _build(*_numbers((start, stop, step), element_type), element_type)


def _numbers(inputs: Sequence[Array], output_type: ElementType) -> tuple[Number, Number, Number]:
    numbers = []
    for name, value in zip(("start", "stop", "step"), inputs, strict=True):
        if value.size != 1:
            raise ValueError(f"{name} has shape {value.shape}, expected one element")
        number = (
            value.item() if value.dtype.kind in "fiu" else float(value.astype(np.float64).item())
        )
        if not math.isfinite(number):
            raise ValueError(f"{name} is {number}, expected a finite number")
        numbers.append(int(number) if output_type.is_integer else float(number))
    start, stop, step = numbers
    if step == 0:
        raise ValueError(f"step is 0 as {output_type}: the range from {start} to {stop} has no end")
    return start, stop, step


def _count(start: Number, stop: Number, step: Number) -> int:
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return max(-((start - stop) // step), 0)
    count = (stop - start) / step
    return max(math.ceil(count), 0) if math.isfinite(count) else 2**63


def _build(start: Number, stop: Number, step: Number, output_type: ElementType) -> Array:
    count = _count(start, stop, step)
    check_elements(count, f"the range from {start} to {stop} by {step}")
    if isinstance(start, float):
        return cast(start + np.arange(count) * step, output_type)
    # Modulo 2**64, so that one formula covers all integers, signed and unsigned.
    steps = np.arange(count, dtype=np.uint64) * np.uint64(int(step) % 2**64)
    return cast((steps + np.uint64(start % 2**64)).astype(np.int64), output_type)


def _shape(inputs: Sequence[Known], output_type: ElementType | None) -> PartialShape:
    start, stop, step = (known.value for known in inputs)
    if output_type is None:
        return PartialShape.unknown(1)
    if start is None or stop is None or step is None:
        return PartialShape((_partial_count(*inputs) if output_type.is_integer else UNKNOWN,))
    return PartialShape.of([_count(*_numbers((start, stop, step), output_type))])


def _partial_count(start: Known, stop: Known, step: Known) -> Dimension:
    """Return the possible lengths for integers of known step, from the bounds of start and stop."""
    first, last = start.elements, stop.elements
    if (
        first is None
        or last is None
        or step.value is None
        or step.value.dtype.kind not in "iu"
        or not step.value.item()
    ):
        return UNKNOWN
    step_size = step.value.item()
    counts = [
        (last.least - first.most).item() / step_size,
        (last.most - first.least).item() / step_size,
    ]
    lower, upper = (max(np.ceil(count), 0.0) for count in sorted(counts))
    return UNKNOWN if np.isnan(lower + upper) else length_within((lower, upper))


def _rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    return (Known(attributes["output_type"], _shape(inputs, attributes["output_type"])),)


def _own_type_rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    element_type = common_type(inputs)
    return (Known(element_type, _shape(inputs, element_type)),)


_OUTPUT_TYPE = Attribute(
    "output_type", "type", allowed=tuple(kind for kind in ElementType if kind in NUMERIC)
)

row = family("generation")

RANGES: tuple[Operation, ...] = (
    row(
        "Range",
        sequence_of_own_type,
        opsets=(1, 3),
        infer=_own_type_rule,
        inputs=(3, 3),
        types=(COMPUTED,),
        gradient=gradients.sequence,
    ),
    row(
        "Range",
        sequence,
        version=4,
        infer=_rule,
        inputs=(3, 3),
        attributes=(_OUTPUT_TYPE,),
        types=(COMPUTED,),
        gradient=gradients.sequence,
    ),
)


def eye(
    rows: Array,
    columns: Array,
    diagonal: Array,
    batch: Array | None = None,
    /,
    *,
    output_type: ElementType,
) -> Array:
    """Return zeros with ones on one diagonal, shape (*batch, rows, columns). Page generation/eye-9.

    ``rows``, ``columns`` and ``diagonal`` are scalars or have one element; a positive diagonal lies
    above the main one.
    """
    shape = (
        *([] if batch is None else batch.reshape(-1).tolist()),
        _single_number(rows, "num_rows"),
        _single_number(columns, "num_columns"),
    )
    if min(shape) < 0:
        raise ValueError(f"shape {shape} has a negative length")
    check_elements(math.prod(shape), f"the matrix of shape {shape}")
    offset = min(max(_single_number(diagonal, "diagonal_index"), -shape[-2]), shape[-1])
    matrix = cast(np.eye(shape[-2], shape[-1], offset, np.uint8), output_type)
    return np.broadcast_to(matrix, shape).copy() if len(shape) > 2 else matrix


def _single_number(value: Array, name: str) -> int:
    if value.size != 1:
        raise ValueError(f"{name} has shape {value.shape}, expected one element")
    return int(value.item())


def _eye_rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    matrix = (spelled_length(inputs[0]), spelled_length(inputs[1]))
    return (
        Known(
            attributes["output_type"], _with_batch(inputs[3] if len(inputs) > 3 else None, matrix)
        ),
    )


def _with_batch(batch: Known | None, matrix: tuple[Dimension, Dimension]) -> PartialShape:
    if batch is None:
        return PartialShape(matrix)
    batches = spelled(batch).dimensions
    return DYNAMIC if batches is None else PartialShape((*batches, *matrix))


EYE: tuple[Operation, ...] = (
    Operation(
        name="Eye",
        version=9,
        opsets=(9, 16),
        page="generation/eye-9",
        kernel=eye,
        infer=_eye_rule,
        inputs=(3, 4),
        attributes=(
            Attribute(
                "output_type",
                "type",
                allowed=tuple(kind for kind in ElementType if kind in NUMERIC),
            ),
        ),
        types=(INDEX_TYPES,),
    ),
)


def one_hot(
    indices: Array,
    depth: Array,
    on_value: Array,
    off_value: Array,
    /,
    *,
    axis: int,
    negative_indices_mode: str = "ignore_negative",
) -> Array:
    """Set ``on_value`` where the position along the new axis is the index, ``off_value`` elsewhere.

    An index out of range sets nothing. ``[...] -> [..., depth, ...]``, the new axis at ``axis``.
    Spec: sequence/one-hot-1, one-hot-16.
    """
    size = int(np.asarray(depth).reshape(-1)[0])
    if size < 0:
        raise ValueError(f"depth is {size}, expected at least 0")
    places = np.asarray(indices)
    axis = axis_within(axis, places.ndim + 1)
    check_elements(places.size * size, "the result of OneHot")
    if negative_indices_mode == "normalize":
        places = np.where(places < 0, places + size, places)
    classes = np.arange(size).reshape(size, *(1,) * (places.ndim - axis))
    hot = np.expand_dims(places, axis) == classes
    on, off = np.asarray(on_value).reshape(()), np.asarray(off_value).reshape(())
    result = np.full(hot.shape, off, off.dtype)
    result[hot] = on
    return result


def infer_one_hot(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the shape of the indices with the depth, if it is known, at the new axis."""
    element_type = common_type(inputs[2:4])
    dimensions = inputs[0].shape.dimensions
    if dimensions is None:
        return (Known(element_type),)
    axis = axis_within(attributes["axis"], len(dimensions) + 1)
    return (
        Known(
            element_type,
            PartialShape((*dimensions[:axis], spelled_length(inputs[1]), *dimensions[axis:])),
        ),
    )
