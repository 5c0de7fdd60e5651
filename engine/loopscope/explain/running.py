"""The functions that the code of a loop calls: kernels by their titles, and the counting,
slicing and joining of loops.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from loopscope.errors import EngineError
from loopscope.executor.machine import regions
from loopscope.executor.plan.body_ports import Concatenated
from loopscope.executor.plan.plan import ABSENT, settle
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
    """The kernel with a title such as ``Softmax-8``, which takes arrays and keyword attributes.
    ``EngineError`` when there is none.
    """
    name, _, version = title.rpartition("-")
    operation = next((one for one in CATALOGUE.versions(name) if str(one.version) == version), None)
    if operation is None or operation.kernel is None:
        raise EngineError(f"there is no kernel {title!r}")
    found = operation.kernel

    def call(*arrays: Any, **attributes: Any) -> Any:
        return _settled(found(*arrays, **attributes))

    return call


def _settled(made: Any) -> Any:
    if not isinstance(made, tuple):
        return settle(made)
    return tuple(
        tuple(settle(each) for each in one) if isinstance(one, tuple) else settle(one)
        for one in made
    )


def onnx_kernel(type: str, opset: str) -> Callable[..., Any]:
    """The kernel of an ONNX operation as an opset has it, such as ``("Gemm", "ai.onnx 18")``; what
    it is called with are arrays, its attributes, and ``outputs``, how many of them the node has,
    where it does not always have one. ``EngineError`` when there is none.
    """
    operation = catalogue_for("onnx").find(type, opset)
    if operation is None or (operation.kernel is None and operation.prepare is None):
        raise EngineError(f"there is no kernel of {type!r} in {opset!r}")
    usual = {
        one.keyword: one.default for one in operation.attributes if one.default is not REQUIRED
    }

    def call(*arrays: Any, outputs: int = 1, **attributes: Any) -> Any:
        keywords = {**usual, **attributes}
        if operation.prepare is not None:
            return operation.prepare(keywords, outputs)(*arrays)
        assert operation.kernel is not None
        made = operation.kernel(
            *arrays, **keywords, **({"outputs": outputs} if operation.counts_outputs else {})
        )
        return _settled(made if operation.outputs == 1 else made[:outputs])

    return call


def iterations(trip_count: Any, most: int | None = None) -> Iterable[int]:
    """The numbers of the iterations of a loop: up to a trip count (negative: no limit), and to
    the parts of what it slices.
    """
    trips = regions.trip_count(np.asarray(trip_count))
    if trips == regions.UNLIMITED:
        return itertools.count() if most is None else range(most)
    return range(trips if most is None else min(trips, most))


def parts(source: Any, *, axis: int = 0, size: int = 1, start: int = 0, end: int = -1) -> int:
    """How many parts a tensor has along an axis, from ``start`` to ``end``, both included."""
    length = source.shape[axis]
    first, last = (place + length if place < 0 else place for place in (start, end))
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
    """The part of a tensor along an axis for one iteration; ``backwards`` counts from ``start``
    down.
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
    """The collected parts joined along an axis; ``empty`` when there was no iteration."""
    if not pieces:
        return empty
    output = Concatenated(
        slot=ABSENT, result=ABSENT, axis=axis, reverse=reverse, stacked=stacked, layer=LayerId(0)
    )
    return regions.join(output, list(pieces))


def converted(value: Any, element_type: str) -> Any:
    """A value in another element type, converted as OpenVINO converts the inputs of a
    TensorIterator.
    """
    return settle(cast(np.asarray(value), ElementType(element_type)))
