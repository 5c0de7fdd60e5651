"""Errors with advice for frequent mistakes: lost writes, and operations that need a value.

A write to a ``TensorArray`` returns a new array, so a write has no effect if its result is unused.
A tensor has no value while its graph is built.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, NoReturn

from loopscope.errors import BuildError
from loopscope.ir.model import Edge, LayerId

_OPERATORS = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"),
    "power": ("__pow__", "__rpow__"),
    "matmul": ("__matmul__", "__rmatmul__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
    "bitwise_and": ("__and__", "__rand__"),
    "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"),
}
"""Operators of tensors by the numpy function of ``array + tensor`` and similar: for a tensor on the
left, and on the right.
"""

_REPLACEMENTS = {
    "T": "ops.transpose",
    "all": "ops.reduce_logical_and",
    "any": "ops.reduce_logical_or",
    "argmax": "ops.topk",
    "astype": "ops.convert",
    "dtype": "element_type",
    "max": "ops.reduce_max",
    "mean": "ops.reduce_mean",
    "min": "ops.reduce_min",
    "ndim": "rank",
    "reshape": "ops.reshape",
    "sum": "ops.reduce_sum",
    "transpose": "ops.transpose",
}
_VALUE_ATTRIBUTES = ("eval", "item", "numpy", "tolist", "value")


class Valueless:
    """An object without a value. Uses of its value raise ``BuildError``; numpy's operators call the
    object's operators.
    """

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        self._refuse(
            "branch with builder.cond, repeat with builder.while_loop, combine conditions with &, "
            "| and ~"
        )

    def __index__(self) -> NoReturn:
        self._refuse(
            "count with builder.for_loop; to index an array with it, convert the array with "
            "graph.constant"
        )

    def __int__(self) -> NoReturn:
        self._refuse("convert it with ops.convert")

    def __float__(self) -> NoReturn:
        self._refuse("compute with the functions of builder.ops instead of Python's")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse(
            "it cannot be a numpy array, nor an element or index of one; builder.ops computes "
            "with tensors, graph.constant creates one"
        )

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        self._refuse(f"use a function of builder.ops instead of numpy's {function.__name__}()")

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        operators = (
            _OPERATORS.get(function.__name__)
            if method == "__call__" and len(inputs) == 2 and not options
            else None
        )
        if operators is None:
            self._refuse(f"use a function of builder.ops instead of numpy's {function.__name__}()")
        left, right = inputs
        return (
            getattr(left, operators[0])(right)
            if isinstance(left, Valueless)
            else getattr(right, operators[1])(left)
        )

    def __setitem__(self, index: object, value: object) -> NoReturn:
        raise BuildError(
            f"{self!r} cannot be changed: ops.scatter_update returns a changed tensor, "
            "builder.TensorArray is written element by element"
        )

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _VALUE_ATTRIBUTES:
            raise AttributeError(
                f"{self!r} has no {name!r}, because it has no value while the graph is built: "
                "loopscope.run(graph.model(...))"
            )
        raise AttributeError(
            f"{self!r} has no {name!r}: use {_REPLACEMENTS.get(name, 'a function of builder.ops')}"
        )

    def _refuse(self, instead: str) -> NoReturn:
        raise BuildError(f"{self!r} has no value while the graph is built: {instead}")


@dataclass(frozen=True, slots=True)
class Written:
    """A write whose resulting array is unused so far."""

    layer: LayerId
    """Node of the array with the new element."""
    array: weakref.ref
    line: str

    @staticmethod
    def here(layer: LayerId, array: object) -> Written:
        """Return a record of a write at the line that called this package."""
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
            "loopscope.builder."
        ):
            frame = frame.f_back
        return Written(
            layer,
            weakref.ref(array),
            f"{PurePath(frame.f_code.co_filename).name}, line {frame.f_lineno}",
        )


def reject_lost_writes(writes: Iterable[Written], edges: Sequence[Edge], *, for_good: bool) -> None:
    """Raise ``BuildError`` if the result of a write is unused.

    Without ``for_good``, a result that the caller still references is accepted, because it may be
    used later.
    """
    used = {edge.from_layer for edge in edges}
    for write in writes:
        if write.layer not in used and (for_good or write.array() is None):
            raise BuildError(
                f"TensorArray.write() in {write.line} is lost, because the array that it returns "
                "is unused: "
                "write array = array.write(index, value), and return the array from a body"
            )
