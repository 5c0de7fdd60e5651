"""Evaluation of an expression: interpreted over numpy, in bounded time and memory."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopscope.debug.exact_integers import without_wrapping
from loopscope.errors import ExpressionError

_MAX_ELEMENTS = 1 << 26
"""Maximum number of elements of one value."""
_MAX_WORK = 1 << 28
"""Maximum number of elements that all parts of an expression together may process."""
_POWER_COST, _PRODUCTS_PER_UNIT = 64, 32
"""Cost model: one power counts as 64 additions; 32 multiply-adds of a float matrix product count as
one addition.
"""
_MAX_DIGITS = 300

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs,
    "all": np.all,
    "any": np.any,
    "argmax": lambda value: np.argmax(_nonempty(value)),
    "argmin": lambda value: np.argmin(_nonempty(value)),
    "exp": np.exp,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "log": np.log,
    "max": lambda value: np.max(_nonempty(value)),
    "maximum": np.maximum,
    "mean": lambda value: np.mean(value) if np.size(value) else np.float64(np.nan),
    "min": lambda value: np.min(_nonempty(value)),
    "minimum": np.minimum,
    "norm": np.linalg.norm,
    "round": lambda value, digits=0: _rounded(np.asarray(value), _integer(digits)),
    "shape": lambda value: (len(value),) if isinstance(value, tuple) else np.shape(value),
    "sign": np.sign,
    "size": lambda value: len(value) if isinstance(value, tuple) else np.size(value),
    "sqrt": np.sqrt,
    "std": lambda value: np.std(value) if np.size(value) else np.float64(np.nan),
    "sum": np.sum,
}
BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
    ast.BitAnd: lambda left, right: np.logical_and(*_booleans("&", left, right)),
    ast.BitOr: lambda left, right: np.logical_or(*_booleans("|", left, right)),
    ast.MatMult: np.matmul,
}
COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda left, right: _equal(left, right),
    ast.NotEq: lambda left, right: np.logical_not(_equal(left, right)),
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: np.negative,
    ast.UAdd: np.positive,
    ast.Not: lambda value: np.bool_(not is_true(value)),
}
_ACCEPTS_TEXT = frozenset(
    (*COMPARE.values(), UNARY[ast.Not], FUNCTIONS["shape"], FUNCTIONS["size"])
)
"""Functions that also accept texts and sequences."""


class Evaluation:
    """Evaluation of one expression, with its remaining work budget."""

    def __init__(self, lookup: Callable[[str], Any]) -> None:
        self._lookup = lookup
        self._left = _MAX_WORK

    def value(self, node: ast.expr) -> Any:
        """Return the value of a part of the expression. Errors of numpy propagate."""
        match node:
            case ast.Constant():
                return (
                    np.asarray(node.value)[()]
                    if not isinstance(node.value, bool)
                    else np.bool_(node.value)
                )
            case ast.Name():
                return self._lookup(node.id)
            case ast.BinOp():
                return self._call(
                    BINARY[type(node.op)], self.value(node.left), self.value(node.right)
                )
            case ast.UnaryOp():
                return self._call(UNARY[type(node.op)], self.value(node.operand))
            case ast.BoolOp():
                every = isinstance(node.op, ast.And)
                return np.bool_(
                    (all if every else any)(is_true(self.value(part)) for part in node.values)
                )
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return self.value(node.body if is_true(self.value(node.test)) else node.orelse)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(FUNCTIONS[name], *(self.value(part) for part in node.args))
            case ast.Subscript():
                return self._part(self.value(node.value), self._index(node.slice))
            case ast.Tuple():
                return tuple(self.value(part) for part in node.elts)
            case ast.Attribute():
                value = self.value(node.value)
                _reject_sequence(value)
                return getattr(np.asarray(value), node.attr)
        raise ExpressionError(f"{type(node).__name__} is not part of the language")

    def _compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        result: Any = np.bool_(True)
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.value(right_node)
            result = np.logical_and(result, self._call(COMPARE[type(operator)], left, right))
            left = right
        return result

    def _index(self, node: ast.expr) -> Any:
        match node:
            case ast.Tuple():
                return tuple(self._index(part) for part in node.elts)
            case ast.Slice():
                return slice(
                    *(
                        None if part is None else _integer(self.value(part))
                        for part in (node.lower, node.upper, node.step)
                    )
                )
            case _:
                value = self.value(node)
                return _integer(value) if np.ndim(value) == 0 else value

    def _part(self, value: Any, index: Any) -> Any:
        """Return the indexed part of an array or sequence. Array indices may request any number of
        elements.
        """
        if isinstance(value, tuple) and isinstance(index, (int, slice)):
            item = value[index]
            return np.int64(item) if isinstance(item, int) else item
        _reject_sequence(value)
        array = np.asarray(value)
        shapes = [
            np.shape(part)
            for part in (index if isinstance(index, tuple) else (index,))
            if isinstance(part, np.ndarray)
        ]
        if shapes and array.ndim:
            self._spend(_checked_size((*np.broadcast_shapes(*shapes), *array.shape[1:])))
        return array[index]

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if function in _ACCEPTS_TEXT and any(
            isinstance(argument_value, tuple) for argument_value in arguments
        ):
            return function(*arguments)
        for argument in arguments if function not in _ACCEPTS_TEXT else ():
            _require_numbers(argument)
        shapes = [np.shape(argument) for argument in arguments if not isinstance(argument, tuple)]
        if function is np.matmul and len(shapes) == 2:
            self._spend(
                _product_cost(
                    *shapes,
                    whole=all(
                        np.asarray(argument_value).dtype.kind in "biu"
                        for argument_value in arguments
                    ),
                )
            )
        elif len(shapes) == 2:
            self._spend(
                _checked_size(np.broadcast_shapes(*shapes))
                * (_POWER_COST if function is np.power else 1)
            )
        elif shapes:
            self._spend(math.prod(shapes[0]))
        return without_wrapping(function, *arguments)

    def _spend(self, elements: int) -> None:
        self._left -= elements
        if self._left < 0:
            raise ValueError("it would take too long: take a part of the tensors, such as x[:1000]")


def is_true(value: Any) -> bool:
    """Return True if every element is true."""
    if isinstance(value, tuple):
        return all(is_true(item) for item in value)
    return bool(np.all(value))


def _require_numbers(argument: Any) -> None:
    """Raise ``ValueError`` for values that arithmetic does not accept."""
    _reject_sequence(argument)
    if not isinstance(argument, tuple) and np.asarray(argument).dtype == object:
        is_text = all(isinstance(item, str) for item in np.asarray(argument).flat)
        raise ValueError("texts can only be compared" if is_text else "it is not a tensor")


def _reject_sequence(value: Any) -> None:
    """Raise ``ValueError`` for a sequence of tensors. A tuple of numbers is allowed."""
    if isinstance(value, tuple) and any(isinstance(item, tuple) or np.ndim(item) for item in value):
        raise ValueError("a sequence is not a tensor: take one of its elements, such as name[0]")


def _booleans(sign: str, *arguments: Any) -> tuple[Any, ...]:
    """Raise ``ValueError`` for numbers: ``x > 0 & x < 9`` means ``x > (0 & x) < 9``, which is never
    intended.
    """
    if any(np.asarray(argument).dtype != bool for argument in arguments):
        raise ValueError(
            f"{sign} joins booleans and binds more tightly than comparisons: "
            f"write (x > 0) {sign} (x < 9)"
        )
    return arguments


def _nonempty(value: Any) -> Any:
    if not np.size(value):
        raise ValueError("an empty tensor has no least and no greatest element")
    return value


def _rounded(value: np.ndarray, digits: int) -> Any:
    # Beyond this, nothing or everything is rounded.
    digits = max(-_MAX_DIGITS, min(digits, _MAX_DIGITS))
    if value.dtype.kind not in "fV":
        return np.round(value, digits)[()]
    rounded = np.round(value.astype(np.float64), digits)
    return np.where(np.isfinite(rounded), rounded, value).astype(value.dtype)[()]


def _integer(value: Any) -> int:
    if np.ndim(value) or np.asarray(value).dtype.kind not in "biu":
        raise ValueError(f"{value} is not a whole number")
    return int(value)


def _product_cost(left: tuple[int, ...], right: tuple[int, ...], *, whole: bool) -> int:
    """Return the cost of a matrix product."""
    shape = (
        *np.broadcast_shapes(left[:-2], right[:-2]),
        *left[-2:-1],
        *(right[-1:] if len(right) > 1 else ()),
    )
    return _checked_size(shape) * (left[-1] if left else 1) // (1 if whole else _PRODUCTS_PER_UNIT)


def _checked_size(shape: tuple[int, ...]) -> int:
    """Return the number of elements of a shape; ``ExpressionError`` if it exceeds the limit."""
    size = math.prod(shape)
    if size > _MAX_ELEMENTS:
        raise ExpressionError(
            f"the value would have {size} elements, at most {_MAX_ELEMENTS} are allowed"
        )
    return size


def _equal(left: Any, right: Any) -> Any:
    if isinstance(left, tuple) or isinstance(right, tuple):
        return np.bool_(_sequences_equal(left, right))
    return np.equal(left, right)


def _sequences_equal(left: Any, right: Any) -> bool:
    """Return True if two sequences, or a sequence and a vector, have equal items."""
    if isinstance(left, tuple) or isinstance(right, tuple):
        vectors = [
            side if isinstance(side, tuple) else tuple(np.atleast_1d(side))
            for side in (left, right)
        ]
        return len(vectors[0]) == len(vectors[1]) and all(map(_sequences_equal, *vectors))
    return bool(np.array_equal(left, right))
