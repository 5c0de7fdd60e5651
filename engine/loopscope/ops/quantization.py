"""Simulated quantization: the category of the OpenVINO specs, and rounding to narrower types.

Loopscope's own operation rounds numbers to the values of a narrower type, in their own type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.element_type import REAL_FLOATS, ElementType, is_real_float
from loopscope.ops.casting import cast
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import movement as gradients
from loopscope.ops.infer import broadcast_shapes, common_type, elementwise, same
from loopscope.ops.kernel_arithmetic import computable, rounded
from loopscope.ops.own_operations import OPSET

_BLOCK_ELEMENTS = 1 << 18


def fake_quantize(
    data: Array,
    input_low: Array,
    input_high: Array,
    output_low: Array,
    output_high: Array,
    /,
    *,
    levels: int,
    auto_broadcast: str,
) -> Array:
    """Round each element to the nearest of ``levels`` evenly spaced values, in its own type.

    ``[...]`` and four limits that broadcast to it ``-> [...]``; halves go to the even level. Spec:
    quantization/fake-quantize-1.
    """
    limits = [computable(limit) for limit in (input_low, input_high, output_low, output_high)]
    if auto_broadcast == "none" and any(limit.shape != data.shape for limit in limits):
        raise ValueError(
            f"auto_broadcast is 'none', and data of shape {list(data.shape)} has "
            "limits of other shapes"
        )
    wide = computable(data)
    shape = np.broadcast_shapes(wide.shape, *(limit.shape for limit in limits))
    wide = np.broadcast_to(wide, shape).reshape(shape or (1,))
    result = np.empty(wide.shape, wide.dtype)
    limits = [limit.reshape((1,) * (wide.ndim - limit.ndim) + limit.shape) for limit in limits]
    for block in _blocks(wide.shape):
        _quantize(
            wide[block],
            [_part(limit, block) for limit in limits],
            wide.dtype.type(levels - 1),
            result[block],
        )
    return rounded(result.reshape(shape), data.dtype)


def _quantize(values: Array, limits: Sequence[Array], steps: np.generic, out: Array) -> None:
    """Compute the page's formula in the page's order, because another order rounds differently and
    moves 0 off 0.
    """
    low, high, target_low, target_high = limits
    np.subtract(values, low, out=out)
    out /= high - low
    out *= steps
    np.rint(out, out=out)
    out /= steps
    out *= target_high - target_low
    out += target_low
    np.copyto(out, target_low, where=values <= np.minimum(low, high))
    np.copyto(out, target_high, where=values > np.maximum(low, high))


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Yield slices along the first axis longer than 1, small enough to stay in the processor's
    cache.
    """
    axis = next((axis for axis, length in enumerate(shape) if length != 1), None)
    if axis is None:
        yield (slice(None),) * len(shape)
        return
    step = max(1, _BLOCK_ELEMENTS // max(1, prod(shape[axis + 1 :])))
    for start in range(0, shape[axis], step):
        yield (
            *(slice(None),) * axis,
            slice(start, start + step),
            *(slice(None),) * (len(shape) - axis - 1),
        )


def _part(limit: Array, block: tuple[slice, ...]) -> Array:
    return limit[
        tuple(
            piece if length > 1 else slice(None)
            for piece, length in zip(block, limit.shape, strict=True)
        )
    ]


_MAX_VALUES = {ElementType.F8E4M3: 448.0, ElementType.F8E5M2: 57344.0}


def fake_convert(
    data: Array, scale: Array, shift: Array | None = None, /, *, destination_type: ElementType
) -> Array:
    """Round ``data * scale - shift`` to an 8-bit float type, and convert back.

    ``[...]``, ``scale`` and ``shift`` that broadcast to it ``-> [...]``. Values beyond the 8-bit
    type's range become its largest value. Spec: quantization/fake-convert-13.
    """
    wide, factor = computable(data), computable(scale)
    shifted = wide * factor
    if shift is not None:
        shifted = shifted - computable(shift)
    limit = _MAX_VALUES[destination_type]
    # The runtime converts through f16 to 8 bits.
    result = (
        np.clip(shifted, -limit, limit)
        .astype(np.float16)
        .astype(destination_type.dtype)
        .astype(wide.dtype)
    )
    if shift is not None:
        result = result + computable(shift)
    return rounded(np.asarray(result / factor), data.dtype)


def infer_fake_convert(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the common type, and the shapes of data, scale and shift broadcast together."""
    shapes = [known.shape for known in inputs]
    return (Known(common_type(inputs), broadcast_shapes(*shapes)),)


row = family("quantization")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "FakeQuantize",
        fake_quantize,
        infer=elementwise,
        inputs=(5, 5),
        attributes=(
            Attribute("levels", "int", least=2),
            Attribute("auto_broadcast", "str", "numpy", allowed=("numpy", "none", "pdpd")),
        ),
        types=(REAL_FLOATS,),
        gradient=gradients.fake_quantize,
    ),
    row(
        "FakeConvert",
        fake_convert,
        version=13,
        infer=infer_fake_convert,
        inputs=(2, 3),
        attributes=(
            Attribute(
                "destination_type",
                "type",
                ElementType.F8E4M3,
                allowed=(ElementType.F8E4M3, ElementType.F8E5M2),
            ),
        ),
        types=(REAL_FLOATS,),
    ),
)


GROUP = 128
"""Number of elements along the last axis that share a scale in int4: the default of weight
compression.
"""
_MAX_INT8, _MAX_INT4 = 127.0, 7.0


def round_to(data: Array, /, *, to: str) -> Array:
    """Round each number to the nearest value of the type ``to``; the element type stays.

    Tensors other than floats stay unchanged. ``bf16``, ``f16``, ``f8e4m3``, ``f8e5m2``: as
    converting there and back (type/convert-1). ``int8``: integer multiples, from -127 to 127, of a
    scale for each row along the last axis. ``int4``: from -7 to 7, of a scale for each group of 128
    in a row. A scale is the largest magnitude of the row or group divided by 127 or 7; a row with
    NaN or an infinity becomes NaN.
    """
    if data.dtype.kind != "f" and not is_real_float(data.dtype):
        return data
    with np.errstate(all="ignore"):
        return cast(np.asarray(_ROUNDERS[to](data)), ElementType.of_dtype(data.dtype))


def _cast_to(element_type: ElementType) -> Callable[[Array], Array]:
    return lambda data: cast(data, element_type)


def _round_rows(data: Array) -> Array:
    return _round_to_scale(_as_f32_or_f64(data).reshape(_row_shape(data)), _MAX_INT8).reshape(
        data.shape
    )


def _round_groups(data: Array) -> Array:
    rows = _as_f32_or_f64(data).reshape(_row_shape(data))
    length = rows.shape[-1]
    rounded = np.empty_like(rows)
    for begin in range(0, length, GROUP):
        rounded[..., begin : begin + GROUP] = _round_to_scale(
            rows[..., begin : begin + GROUP], _MAX_INT4
        )
    return rounded.reshape(data.shape)


def _round_to_scale(rows: Array, limit: float) -> Array:
    scale = np.max(np.abs(rows), axis=-1, keepdims=True, initial=0) / rows.dtype.type(limit)
    return np.asarray(
        np.where(scale == 0, 0, np.rint(rows / np.where(scale == 0, 1, scale)) * scale).astype(
            rows.dtype
        )
    )


def _as_f32_or_f64(data: Array) -> Array:
    return np.asarray(data if data.dtype == np.float64 else data.astype(np.float32))


def _row_shape(data: Array) -> tuple[int, ...]:
    return data.shape or (1,)


_ROUNDERS: Mapping[str, Callable[[Array], Array]] = {
    "bf16": _cast_to(ElementType.BF16),
    "f16": _cast_to(ElementType.F16),
    "f8e4m3": _cast_to(ElementType.F8E4M3),
    "f8e5m2": _cast_to(ElementType.F8E5M2),
    "int8": _round_rows,
    "int4": _round_groups,
}
NARROWER = tuple(_ROUNDERS)
"""Types that numbers can be rounded to."""

ROUND_TO = Operation(
    name="RoundTo",
    version=1,
    opsets=(1, 17),
    opset=OPSET,
    page="",
    kernel=round_to,
    infer=same,
    attributes=(
        Attribute(
            "to", "str", allowed=NARROWER, doc="The type whose values the results are rounded to."
        ),
    ),
)
NARROWING: tuple[Operation, ...] = (ROUND_TO,)
