"""Rounding of numbers to the values of a narrower type, in their own type: simulated quantization
or half precision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from loopscope.ir.element_type import ElementType, is_real_float
from loopscope.ops.casting import cast
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.effects import OPSET
from loopscope.ops.infer import same

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
OPERATIONS: tuple[Operation, ...] = (ROUND_TO,)
