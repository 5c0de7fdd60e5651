"""Runtime of generated loop code: kernels by title, and counting, slicing and joining of loops."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from loopscope.errors import EngineError
from loopscope.executor.machine import regions
from loopscope.executor.plan.body_ports import Concatenated
from loopscope.executor.plan.plan import ABSENT
from loopscope.executor.plan.slots import settle
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import LayerId
from loopscope.ops.casting import cast
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import REQUIRED
from loopscope.ops.dialect import catalogue_for

__all__ = [
    "ElementType",
    "converted",
    "iterations",
    "join",
    "kernel",
    "onnx_kernel",
    "part",
    "parts",
]


def kernel(title: str) -> Callable[..., Any]:
    """Return the kernel with a title such as ``Softmax-8``; it takes arrays and keyword attributes.

    Raise ``EngineError`` if the kernel does not exist.
    """
    name, _, version = title.rpartition("-")
    operation = next(
        (candidate for candidate in CATALOGUE.versions(name) if str(candidate.version) == version),
        None,
    )
    if operation is None or operation.kernel is None:
        raise EngineError(f"there is no kernel {title!r}")
    function = operation.kernel

    def call(*arrays: Any, **attributes: Any) -> Any:
        return _settled(function(*arrays, **attributes))

    return call


def _settled(result: Any) -> Any:
    if not isinstance(result, tuple):
        return settle(result)
    return tuple(
        tuple(settle(element) for element in item) if isinstance(item, tuple) else settle(item)
        for item in result
    )


def onnx_kernel(type: str, opset: str) -> Callable[..., Any]:
    """Return the kernel of an ONNX operation in an opset, such as ``("Gemm", "ai.onnx 18")``.

    The kernel takes arrays, attributes, and ``outputs``, the number of outputs if the operation
    allows several. Raise ``EngineError`` if the kernel does not exist.
    """
    operation = catalogue_for("onnx").find(type, opset)
    if operation is None or (operation.kernel is None and operation.prepare is None):
        raise EngineError(f"there is no kernel of {type!r} in {opset!r}")
    defaults = {
        attribute.keyword: attribute.default
        for attribute in operation.attributes
        if attribute.default is not REQUIRED
    }

    def call(*arrays: Any, outputs: int = 1, **attributes: Any) -> Any:
        keywords = {**defaults, **attributes}
        if operation.prepare is not None:
            return operation.prepare(keywords, outputs)(*arrays)
        assert operation.kernel is not None
        result = operation.kernel(
            *arrays, **keywords, **({"outputs": outputs} if operation.counts_outputs else {})
        )
        return _settled(result if operation.outputs == 1 else result[:outputs])

    return call


def iterations(trip_count: Any, limit: int | None = None) -> Iterable[int]:
    """Return the iteration numbers of a loop, limited by the trip count (negative: no limit) and
    the number of slices.
    """
    trips = regions.trip_count(np.asarray(trip_count))
    if trips == regions.UNLIMITED:
        return itertools.count() if limit is None else range(limit)
    return range(trips if limit is None else min(trips, limit))


def parts(source: Any, *, axis: int = 0, size: int = 1, start: int = 0, end: int = -1) -> int:
    """Return the number of parts of a tensor along an axis, from ``start`` to ``end`` inclusive."""
    length = source.shape[axis]
    first, last = (index + length if index < 0 else index for index in (start, end))
    return (abs(last - first) + 1) // size if length else 0


def part(
    source: Any,
    iteration: int,
    *,
    axis: int = 0,
    size: int = 1,
    start: int = 0,
    backwards: bool = False,
    drop_axis: bool = False,
) -> Any:
    """Return the part of a tensor along an axis for one iteration; ``backwards`` counts down from
    ``start``.
    """
    axis = axis + source.ndim if axis < 0 else axis
    first = start + source.shape[axis] if start < 0 else start
    begin = first - (iteration + 1) * size + 1 if backwards else first + iteration * size
    along = begin if drop_axis else slice(begin, begin + size)
    return settle(source[(slice(None),) * axis + (along,)])


def join(
    pieces: Sequence[Any],
    empty: Any,
    *,
    axis: int = 0,
    reverse: bool = False,
    stacked: bool = False,
) -> Any:
    """Return the collected parts joined along an axis, or ``empty`` without iterations."""
    if not pieces:
        return empty
    output = Concatenated(
        slot=ABSENT, result=ABSENT, axis=axis, reverse=reverse, stacked=stacked, layer=LayerId(0)
    )
    return regions.join(output, list(pieces))


def converted(value: Any, element_type: str) -> Any:
    """Return a value in another element type, converted like the inputs of an OpenVINO
    TensorIterator.
    """
    return settle(cast(np.asarray(value), ElementType(element_type)))
