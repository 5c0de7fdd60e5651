"""What an expression gives: interpreted over numpy, in bounded time and memory."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopscope.debug.exact_integers import without_wrapping
from loopscope.errors import ExpressionError

_MOST_ELEMENTS = 1 << 26
"""Of one value."""
_MOST_WORK = 1 << 28
"""Elements that all parts of an expression together may look at."""
_OF_POWER, _OF_PRODUCT = 64, 32
"""A power takes as long as so many additions; so many multiplications of a matrix product of
floats as long as one.
"""
_MOST_DIGITS = 300

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs,
    "all": np.all,
    "any": np.any,
    "argmax": lambda value: np.argmax(_filled(value)),
    "argmin": lambda value: np.argmin(_filled(value)),
    "exp": np.exp,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "log": np.log,
    "max": lambda value: np.max(_filled(value)),
    "maximum": np.maximum,
    "mean": lambda value: np.mean(value) if np.size(value) else np.float64(np.nan),
    "min": lambda value: np.min(_filled(value)),
    "minimum": np.minimum,
    "norm": np.linalg.norm,
    "round": lambda value, digits=0: _rounded(np.asarray(value), _whole(digits)),
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
    ast.BitAnd: lambda one, other: np.logical_and(*_booleans("&", one, other)),
    ast.BitOr: lambda one, other: np.logical_or(*_booleans("|", one, other)),
    ast.MatMult: np.matmul,
}
COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda one, other: _equal(one, other),
    ast.NotEq: lambda one, other: np.logical_not(_equal(one, other)),
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
_OF_TEXTS = frozenset((*COMPARE.values(), UNARY[ast.Not], FUNCTIONS["shape"], FUNCTIONS["size"]))
"""What may be asked of texts and sequences too."""


class Evaluation:
    """One look at the value of an expression."""

    def __init__(self, lookup: Callable[[str], Any]) -> None:
        self._lookup = lookup
        self._left = _MOST_WORK

    def value(self, node: ast.expr) -> Any:
        """The value of a part of the expression. What numpy raises, it raises."""
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
                    (all if every else any)(is_true(self.value(one)) for one in node.values)
                )
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp():
                return self.value(node.body if is_true(self.value(node.test)) else node.orelse)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(FUNCTIONS[name], *(self.value(one) for one in node.args))
            case ast.Subscript():
                return self._part(self.value(node.value), self._index(node.slice))
            case ast.Tuple():
                return tuple(self.value(one) for one in node.elts)
            case ast.Attribute():
                value = self.value(node.value)
                _must_be_no_sequence(value)
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
                return tuple(self._index(one) for one in node.elts)
            case ast.Slice():
                return slice(
                    *(
                        None if one is None else _whole(self.value(one))
                        for one in (node.lower, node.upper, node.step)
                    )
                )
            case _:
                value = self.value(node)
                return _whole(value) if np.ndim(value) == 0 else value

    def _part(self, value: Any, index: Any) -> Any:
        """What an index takes out of an array, or of a sequence; arrays as indices may ask for
        any number of elements.
        """
        if isinstance(value, tuple) and isinstance(index, (int, slice)):
            taken = value[index]
            return np.int64(taken) if isinstance(taken, int) else taken
        _must_be_no_sequence(value)
        array = np.asarray(value)
        asked = [
            np.shape(one)
            for one in (index if isinstance(index, tuple) else (index,))
            if isinstance(one, np.ndarray)
        ]
        if asked and array.ndim:
            self._spend(_checked((*np.broadcast_shapes(*asked), *array.shape[1:])))
        return array[index]

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if function in _OF_TEXTS and any(isinstance(one, tuple) for one in arguments):
            return function(*arguments)
        for argument in arguments if function not in _OF_TEXTS else ():
            _must_be_numbers(argument)
        shapes = [np.shape(argument) for argument in arguments if not isinstance(argument, tuple)]
        if function is np.matmul and len(shapes) == 2:
            self._spend(
                _product(
                    *shapes, whole=all(np.asarray(one).dtype.kind in "biu" for one in arguments)
                )
            )
        elif len(shapes) == 2:
            self._spend(
                _checked(np.broadcast_shapes(*shapes)) * (_OF_POWER if function is np.power else 1)
            )
        elif shapes:
            self._spend(math.prod(shapes[0]))
        return without_wrapping(function, *arguments)

    def _spend(self, elements: int) -> None:
        self._left -= elements
        if self._left < 0:
            raise ValueError("it would take too long: take a part of the tensors, such as x[:1000]")


def is_true(value: Any) -> bool:
    """Whether a value counts as true: when every element is."""
    if isinstance(value, tuple):
        return all(is_true(one) for one in value)
    return bool(np.all(value))


def _must_be_numbers(argument: Any) -> None:
    """``ValueError`` for what cannot be computed with."""
    _must_be_no_sequence(argument)
    if not isinstance(argument, tuple) and np.asarray(argument).dtype == object:
        is_text = all(isinstance(one, str) for one in np.asarray(argument).flat)
        raise ValueError("texts can only be compared" if is_text else "it is not a tensor")


def _must_be_no_sequence(value: Any) -> None:
    """``ValueError`` for a sequence of tensors; a tuple of numbers may be computed with."""
    if isinstance(value, tuple) and any(isinstance(one, tuple) or np.ndim(one) for one in value):
        raise ValueError("a sequence is not a tensor: take one of its elements, such as name[0]")


def _booleans(sign: str, *arguments: Any) -> tuple[Any, ...]:
    """``ValueError`` for numbers: ``x > 0 & x < 9`` means ``x > (0 & x) < 9``, which nobody
    intends.
    """
    if any(np.asarray(argument).dtype != bool for argument in arguments):
        raise ValueError(
            f"{sign} joins booleans and binds more tightly than comparisons: write (x > 0) {sign} (x < 9)"
        )
    return arguments


def _filled(value: Any) -> Any:
    if not np.size(value):
        raise ValueError("an empty tensor has no least and no greatest element")
    return value


def _rounded(value: np.ndarray, digits: int) -> Any:
    digits = max(
        -_MOST_DIGITS, min(digits, _MOST_DIGITS)
    )  # beyond, nothing is rounded, or everything
    if value.dtype.kind not in "fV":
        return np.round(value, digits)[()]
    rounded = np.round(value.astype(np.float64), digits)
    return np.where(np.isfinite(rounded), rounded, value).astype(value.dtype)[()]


def _whole(value: Any) -> int:
    if np.ndim(value) or np.asarray(value).dtype.kind not in "biu":
        raise ValueError(f"{value} is not a whole number")
    return int(value)


def _product(one: tuple[int, ...], other: tuple[int, ...], *, whole: bool) -> int:
    """What a matrix product takes."""
    shape = (
        *np.broadcast_shapes(one[:-2], other[:-2]),
        *one[-2:-1],
        *(other[-1:] if len(other) > 1 else ()),
    )
    return _checked(shape) * (one[-1] if one else 1) // (1 if whole else _OF_PRODUCT)


def _checked(shape: tuple[int, ...]) -> int:
    """The elements of a shape; ``ExpressionError`` for too many."""
    size = math.prod(shape)
    if size > _MOST_ELEMENTS:
        raise ExpressionError(
            f"the value would have {size} elements, at most {_MOST_ELEMENTS} are allowed"
        )
    return size


def _equal(one: Any, other: Any) -> Any:
    if isinstance(one, tuple) or isinstance(other, tuple):
        return np.bool_(_are_same(one, other))
    return np.equal(one, other)


def _are_same(one: Any, other: Any) -> bool:
    """Whether two sequences, or a sequence and a vector, hold the same."""
    if isinstance(one, tuple) or isinstance(other, tuple):
        vectors = [
            each if isinstance(each, tuple) else tuple(np.atleast_1d(each)) for each in (one, other)
        ]
        return len(vectors[0]) == len(vectors[1]) and all(map(_are_same, *vectors))
    return bool(np.array_equal(one, other))
