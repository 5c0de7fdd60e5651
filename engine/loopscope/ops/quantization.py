"""Category quantization of the OpenVINO operation specs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from loopscope.ir.element_type import REAL_FLOATS, ElementType
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.gradients import straight_through as gradients
from loopscope.ops.infer import broadcast_shapes, common_type, elementwise
from loopscope.ops.precision import computable, rounded

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
