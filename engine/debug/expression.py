"""A small safe language for conditions and watches: ``max(abs(x)) > 3``, ``any(isnan(x))``, ``iteration == 5``.

Parsed with ``ast`` against a whitelist and interpreted over numpy; nothing is ever evaluated as Python.
"""

from __future__ import annotations

import ast
import copy
import math
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.debug.whole import without_wrapping
from engine.errors import ExpressionError, shorten

_LONGEST = 500
_MOST_NODES = 200
_MOST_ELEMENTS = 1 << 26

Lookup = Callable[[str], Any]
"""Gives the value of a name; raises ``ExpressionError`` when there is none."""

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": np.abs,
    "all": np.all,
    "any": np.any,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "exp": np.exp,
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "log": np.log,
    "max": np.max,
    "maximum": np.maximum,
    "mean": lambda value: np.mean(value) if np.size(value) else np.float64(np.nan),
    "min": np.min,
    "minimum": np.minimum,
    "norm": np.linalg.norm,
    "round": np.round,
    "shape": lambda value: tuple(np.shape(value)),
    "sign": np.sign,
    "size": np.size,
    "sqrt": np.sqrt,
    "std": lambda value: np.std(value) if np.size(value) else np.float64(np.nan),
    "sum": np.sum,
}
_MOST_ARGUMENTS = {"maximum": 2, "minimum": 2, "round": 2}
_LEAST_ARGUMENTS = {"maximum": 2, "minimum": 2}
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
    ast.BitAnd: np.logical_and,
    ast.BitOr: np.logical_or,
    ast.MatMult: np.matmul,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: lambda one, other: _equal(one, other),
    ast.NotEq: lambda one, other: np.logical_not(_equal(one, other)),
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: np.negative,
    ast.UAdd: np.positive,
    ast.Not: lambda value: not _true(value),
}
_QUOTED = re.compile(r"`([^`]*)`")


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A parsed expression. Names that are no identifiers are written in backticks: ```while/Add_3` > 0``."""

    text: str
    _tree: ast.expr
    _quoted: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        """All names that it looks up (functions excluded)."""
        called = {id(node.func) for node in ast.walk(self._tree) if isinstance(node, ast.Call)}
        return frozenset(self._name(node.id) for node in ast.walk(self._tree) if isinstance(node, ast.Name) and id(node) not in called)

    def _name(self, identifier: str) -> str:
        return self._quoted[int(identifier[8:])] if identifier.startswith("_quoted_") else identifier

    def value(self, lookup: Lookup) -> Any:
        """The value; ``ExpressionError`` says what has none."""
        try:
            with np.errstate(all="ignore"):
                return self._value(self._tree, lookup)
        except (ValueError, TypeError, IndexError, OverflowError, MemoryError, ZeroDivisionError, AttributeError) as error:
            raise ExpressionError(f"{shorten(self.text)!r} has no value here: {error}") from error

    def is_true(self, lookup: Lookup) -> bool:
        """Whether the value is true; arrays count as true when every element is."""
        return _true(self.value(lookup))

    def over(self, counter: str) -> Expression:
        """The same with names that are indexed by a counter looked up under another name.

        For the counter ``i``, ``total[i]`` looks up ``total``, ``total[i - 1]`` looks up ``total@-1``; other indices stay what they are.
        """
        moved = _Moved(counter, list(self._quoted))
        tree = moved.visit(copy.deepcopy(self._tree))
        return Expression(self.text, tree, tuple(moved.quoted))

    def _value(self, node: ast.expr, lookup: Lookup) -> Any:
        match node:
            case ast.Constant():
                return np.asarray(node.value)[()] if not isinstance(node.value, bool) else np.bool_(node.value)
            case ast.Name():
                return lookup(self._name(node.id))
            case ast.BinOp():
                return _bounded(_BINARY[type(node.op)], self._value(node.left, lookup), self._value(node.right, lookup))
            case ast.UnaryOp():
                return without_wrapping(_UNARY[type(node.op)], self._value(node.operand, lookup))
            case ast.BoolOp():
                every = isinstance(node.op, ast.And)
                return np.bool_((all if every else any)(_true(self._value(one, lookup)) for one in node.values))
            case ast.Compare():
                return self._compare(node, lookup)
            case ast.IfExp():
                return self._value(node.body if _true(self._value(node.test, lookup)) else node.orelse, lookup)
            case ast.Call(func=ast.Name(id=name)):
                return _bounded(_FUNCTIONS[name], *(self._value(one, lookup) for one in node.args))
            case ast.Subscript():
                return _part(np.asarray(self._value(node.value, lookup)), self._index(node.slice, lookup))
            case ast.Tuple():
                return tuple(self._value(one, lookup) for one in node.elts)
            case ast.Attribute():
                return getattr(np.asarray(self._value(node.value, lookup)), node.attr)
        raise ExpressionError(f"{type(node).__name__} is not part of the language")

    def _compare(self, node: ast.Compare, lookup: Lookup) -> Any:
        left = self._value(node.left, lookup)
        result: Any = np.bool_(True)
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._value(right_node, lookup)
            result = np.logical_and(result, _bounded(_COMPARE[type(operator)], left, right))
            left = right
        return result

    def _index(self, node: ast.expr, lookup: Lookup) -> Any:
        match node:
            case ast.Tuple():
                return tuple(self._index(one, lookup) for one in node.elts)
            case ast.Slice():
                return slice(*(None if one is None else int(self._value(one, lookup)) for one in (node.lower, node.upper, node.step)))
            case _:
                value = self._value(node, lookup)
                return int(value) if np.ndim(value) == 0 else value


class _Moved(ast.NodeTransformer):
    """Turns ``name[i - 1]`` into a quoted name."""

    def __init__(self, counter: str, quoted: list[str]) -> None:
        self.counter = counter
        self.quoted = quoted

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        shift = self._shift(node.slice)
        if shift is None or not isinstance(node.value, ast.Name):
            return self.generic_visit(node)
        name = node.value.id
        if name.startswith("_quoted_"):
            name = self.quoted[int(name[8:])]
        self.quoted.append(f"{name}@{shift:+d}" if shift else name)
        return ast.Name(f"_quoted_{len(self.quoted) - 1}", ast.Load())

    def _shift(self, index: ast.expr) -> int | None:
        """How far an index lies from the counter; None when it is no such index."""
        match index:
            case ast.Name(id=self.counter):
                return 0
            case ast.BinOp(left=ast.Name(id=self.counter), op=ast.Add() | ast.Sub() as sign, right=ast.Constant(value=int() as distance)):
                return distance if isinstance(sign, ast.Add) else -distance
            case _:
                return None


def parse(text: str) -> Expression:
    """An expression from what a person typed; ``ExpressionError`` names what is outside the language."""
    if len(text) > _LONGEST:
        raise ExpressionError(f"the expression has {len(text)} characters, at most {_LONGEST} are allowed")
    quoted: list[str] = []

    def take(match: re.Match[str]) -> str:
        quoted.append(match[1])
        return f"_quoted_{len(quoted) - 1}"

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # what a person typed is no source file to warn of
            tree = ast.parse(_QUOTED.sub(take, text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "it is too deep"
        raise ExpressionError(f"{shorten(text)!r} is no expression: {reason}") from None
    nodes = list(ast.walk(tree))
    if len(nodes) > _MOST_NODES:
        raise ExpressionError(f"the expression is too long: at most {_MOST_NODES} parts are allowed")
    for node in nodes:
        _allow(node, text, len(quoted))
    return Expression(text.strip(), tree, tuple(quoted))


_PLAIN = (
    ast.Load,
    ast.Name,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Subscript,
    ast.Slice,
    ast.Tuple,
    ast.And,
    ast.Or,
    *_BINARY,
    *_COMPARE,
    *_UNARY,
)
_ATTRIBUTES = frozenset({"shape", "ndim", "size", "T"})


def _allow(node: ast.AST, text: str, quoted: int) -> None:
    match node:
        case ast.Constant(value=bool() | int() | float()):
            if isinstance(node.value, int) and node.value >= 2**64:
                raise ExpressionError(f"the number {shorten(str(node.value), 30)} is too large")
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in _FUNCTIONS:
            least, most = _LEAST_ARGUMENTS.get(name, 1), _MOST_ARGUMENTS.get(name, 1)
            if not least <= len(given) <= most:
                takes = f"{most} values" if least == most == 2 else "1 value" if most == 1 else "1 or 2 values"
                other = f": {name}imum(one, other) takes two" if name in ("max", "min") and given else ""
                raise ExpressionError(f"{shorten(text)!r} gives {name} {len(given)} values, and it takes {takes}{other}")
        case ast.Call():
            raise ExpressionError(f"{shorten(text)!r} calls what is no function of the language: there are {', '.join(sorted(_FUNCTIONS))}")
        case ast.Attribute(attr=name) if name in _ATTRIBUTES:
            return
        case ast.Name(id=name) if name.startswith("_"):
            if not (name.startswith("_quoted_") and name[8:].isdigit() and int(name[8:]) < quoted):
                raise ExpressionError(f"the name {shorten(name)!r} begins with an underscore: write it in backticks")
        case _ if isinstance(node, _PLAIN):
            return
        case _:
            raise ExpressionError(
                f"{shorten(text)!r} is outside the language: "
                "it takes numbers, names, arithmetic, comparisons, and, or, not, indexing and functions"
            )


def _bounded(function: Callable[..., Any], *arguments: Any) -> Any:
    shapes = [np.shape(argument) for argument in arguments if not isinstance(argument, tuple)]
    if len(shapes) == 2:
        one, other = shapes
        if function is np.matmul:
            _check_size((*np.broadcast_shapes(one[:-2], other[:-2]), *one[-2:-1], *(other[-1:] if len(other) > 1 else ())))
        else:
            _check_size(np.broadcast_shapes(one, other))
    return without_wrapping(function, *arguments)


def _part(value: np.ndarray, index: Any) -> Any:
    """What an index takes out of an array; arrays as indices may ask for any number of elements."""
    asked = [np.shape(one) for one in (index if isinstance(index, tuple) else (index,)) if isinstance(one, np.ndarray)]
    if asked and value.ndim:
        _check_size((*np.broadcast_shapes(*asked), *value.shape[1:]))
    return value[index]


def _check_size(shape: tuple[int, ...]) -> None:
    size = math.prod(shape)
    if size > _MOST_ELEMENTS:
        raise ExpressionError(f"the value would have {size} elements, at most {_MOST_ELEMENTS} are allowed")


def _equal(one: Any, other: Any) -> Any:
    if isinstance(one, tuple) or isinstance(other, tuple):
        return np.bool_(tuple(np.atleast_1d(one).tolist()) == tuple(np.atleast_1d(other).tolist()))
    return np.equal(one, other)


def _true(value: Any) -> bool:
    return bool(np.all(value))
