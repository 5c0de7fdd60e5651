"""Numbers rounded to what a narrower type can hold, and kept in their own: what a quantized or
half-precision value would be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from loopscope.ir.element_type import REAL_FLOATS, ElementType
from loopscope.ops.casting import cast
from loopscope.ops.declare import Array, Attribute, Operation
from loopscope.ops.effects import OPSET
from loopscope.ops.infer import same

GROUP = 128
"""Numbers along the last axis that share a scale in int4: what weight compression takes by
default.
"""
_MOST_INT8, _MOST_INT4 = 127.0, 7.0


def round_to(data: Array, /, *, to: str) -> Array:
    """Each number as the nearest that the type ``to`` can hold; the element type stays. Other
    tensors than of floats stay as they are.

    ``bf16``, ``f16``, ``f8e4m3``, ``f8e5m2``: as converting there and back (type/convert-1).
    ``int8``: whole multiples, from -127 to 127, of a scale for each row along the last axis.
    ``int4``: from -7 to 7, of a scale for each group of 128 in a row. A scale is the largest
    magnitude among them divided by 127 or 7; a row with NaN or an infinity in it has no scale, and
    becomes NaN.
    """
    if data.dtype.kind != "f" and ElementType.of_dtype(data.dtype) not in REAL_FLOATS:
        return data
    with np.errstate(all="ignore"):
        return cast(np.asarray(_ROUNDERS[to](data)), ElementType.of_dtype(data.dtype))


def _as(element_type: ElementType) -> Callable[[Array], Array]:
    return lambda data: cast(data, element_type)


def _in_rows(data: Array) -> Array:
    return _in_steps(_computed(data).reshape(_rows(data)), _MOST_INT8).reshape(data.shape)


def _in_groups(data: Array) -> Array:
    rows = _computed(data).reshape(_rows(data))
    length = rows.shape[-1]
    rounded = np.empty_like(rows)
    for begin in range(0, length, GROUP):
        rounded[..., begin : begin + GROUP] = _in_steps(
            rows[..., begin : begin + GROUP], _MOST_INT4
        )
    return rounded.reshape(data.shape)


def _in_steps(rows: Array, most: float) -> Array:
    scale = np.max(np.abs(rows), axis=-1, keepdims=True, initial=0) / rows.dtype.type(most)
    return np.asarray(
        np.where(scale == 0, 0, np.rint(rows / np.where(scale == 0, 1, scale)) * scale).astype(
            rows.dtype
        )
    )


def _computed(data: Array) -> Array:
    return np.asarray(data if data.dtype == np.float64 else data.astype(np.float32))


def _rows(data: Array) -> tuple[int, ...]:
    return data.shape or (1,)


_ROUNDERS: Mapping[str, Callable[[Array], Array]] = {
    "bf16": _as(ElementType.BF16),
    "f16": _as(ElementType.F16),
    "f8e4m3": _as(ElementType.F8E4M3),
    "f8e5m2": _as(ElementType.F8E5M2),
    "int8": _in_rows,
    "int4": _in_groups,
}
NARROWER = tuple(_ROUNDERS)
"""The types that numbers can be rounded to."""

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
            "to", "str", allowed=NARROWER, doc="The type that can hold the numbers that come out."
        ),
    ),
)
OPERATIONS: tuple[Operation, ...] = (ROUND_TO,)
