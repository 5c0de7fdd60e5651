"""Errors for operations that need a value, with advice: a tensor has no value while its graph is
built.
"""

from __future__ import annotations

from typing import Any, NoReturn

from loopscope.errors import BuildError

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
