"""Small safe language for conditions and watches: ``max(abs(x)) > 3``, ``any(isnan(x))``,
``iteration == 5``.

Expressions are parsed with ``ast`` against a whitelist and interpreted over numpy. They are never
evaluated as Python.
"""

from __future__ import annotations

import ast
import copy
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopscope.debug.evaluate import BINARY, COMPARE, FUNCTIONS, UNARY, Evaluation, is_true
from loopscope.errors import ExpressionError, counted, shorten

_MAX_CHARACTERS = 500
_MAX_NODES = 200

Lookup = Callable[[str], Any]
"""Function from a name to its value; raises ``ExpressionError`` if the name has none."""

_MAX_ARGUMENTS = {"maximum": 2, "minimum": 2, "round": 2}
_MIN_ARGUMENTS = {"maximum": 2, "minimum": 2}
_SINGLE_EQUALS = re.compile(r"(?<![=!<>])=(?!=)")
_QUOTED = re.compile(r"`([^`]*)`")


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A parsed expression. Names that are not identifiers are written in backticks: ```while/Add_3`
    > 0``.
    """

    text: str
    _tree: ast.expr
    _quoted: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        """All names that the expression looks up, without functions."""
        called = {id(node.func) for node in ast.walk(self._tree) if isinstance(node, ast.Call)}
        return frozenset(
            self._name(node.id)
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Name) and id(node) not in called
        )

    def _name(self, identifier: str) -> str:
        return (
            self._quoted[int(identifier[8:])] if identifier.startswith("_quoted_") else identifier
        )

    def value(self, lookup: Lookup) -> Any:
        """Return the value; ``ExpressionError`` if a part has no value."""
        return self._evaluated(lookup, truth=False)

    def is_true(self, lookup: Lookup) -> bool:
        """Return True if the value is true. An array is true if every element is."""
        return bool(self._evaluated(lookup, truth=True))

    def _evaluated(self, lookup: Lookup, *, truth: bool) -> Any:
        try:
            with np.errstate(all="ignore"):
                value = Evaluation(lambda name: lookup(self._name(name))).value(self._tree)
                return is_true(value) if truth else value
        except (
            ValueError,
            TypeError,
            IndexError,
            OverflowError,
            MemoryError,
            ZeroDivisionError,
            AttributeError,
        ) as error:
            raise ExpressionError(f"{shorten(self.text)!r} has no value here: {error}") from error

    def over(self, counter: str) -> Expression:
        """Return the expression with each name that is indexed by a counter replaced.

        For the counter ``i``, ``total[i]`` looks up ``total``, and ``total[i - 1]`` looks up
        ``total@-1``. Other indices are unchanged.
        """
        transformer = _ShiftedNames(counter, list(self._quoted))
        tree = transformer.visit(copy.deepcopy(self._tree))
        return Expression(self.text, tree, tuple(transformer.quoted))


def names_in(text: str) -> frozenset[str]:
    """Return the names that an expression looks up; ``ExpressionError`` if it does not parse."""
    return parse(text).names


class _ShiftedNames(ast.NodeTransformer):
    """Transformer that replaces ``name[i - 1]`` by a quoted name."""

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
        """Return the constant offset of an index from the counter (``i - 2`` gives -2); None for
        any other index.
        """
        match index:
            case ast.Name(id=self.counter):
                return 0
            case ast.BinOp(
                left=ast.Name(id=self.counter),
                op=ast.Add() | ast.Sub() as sign,
                right=ast.Constant(value=int() as distance),
            ):
                return distance if isinstance(sign, ast.Add) else -distance
            case _:
                return None


def parse(text: str) -> Expression:
    """Return the expression of a typed text; ``ExpressionError`` names the unsupported part."""
    if len(text) > _MAX_CHARACTERS:
        raise ExpressionError(
            f"the expression has {len(text)} characters, at most {_MAX_CHARACTERS} are allowed"
        )
    quoted: list[str] = []

    def take(match: re.Match[str]) -> str:
        quoted.append(match[1])
        return f"_quoted_{len(quoted) - 1}"

    try:
        with warnings.catch_warnings():
            # A typed expression is not a source file to warn about.
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(_QUOTED.sub(take, text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "it is too deep"
        if _SINGLE_EQUALS.search(text):
            reason += "; to compare, write =="
        raise ExpressionError(f"{shorten(text)!r} is not an expression: {reason}") from None
    nodes = list(ast.walk(tree))
    if len(nodes) > _MAX_NODES:
        raise ExpressionError(f"the expression is too long: at most {_MAX_NODES} parts are allowed")
    for node in nodes:
        _allow(node, text, len(quoted))
    return Expression(text.strip(), tree, tuple(quoted))


_ALLOWED_NODES = (
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
    *BINARY,
    *COMPARE,
    *UNARY,
)
_ATTRIBUTES = frozenset({"shape", "ndim", "size", "T"})


def _allow(node: ast.AST, text: str, quoted: int) -> None:
    match node:
        case ast.Constant(value=bool() | int() | float()):
            if isinstance(node.value, int) and node.value >= 2**64:
                raise ExpressionError(f"the number {shorten(str(node.value), 30)} is too large")
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            lower, upper = _MIN_ARGUMENTS.get(name, 1), _MAX_ARGUMENTS.get(name, 1)
            if not lower <= len(arguments) <= upper:
                takes = (
                    f"{upper} values"
                    if lower == upper == 2
                    else "1 value"
                    if upper == 1
                    else "1 or 2 values"
                )
                hint = (
                    f": {name}imum(x, y) takes two" if name in ("max", "min") and arguments else ""
                )
                raise ExpressionError(
                    f"{shorten(text)!r} passes {counted(len(arguments), 'value')} to {name}, "
                    f"expected {takes}{hint}"
                )
        case ast.Call(func=ast.Name(id=name)) if name in FUNCTIONS:
            raise ExpressionError(
                f"{shorten(text)!r} names an argument of {name}: expected {name}(x), "
                "because functions apply to all elements"
            )
        case ast.Call():
            raise ExpressionError(
                f"{shorten(text)!r} calls an unknown function: "
                f"expected one of {', '.join(sorted(FUNCTIONS))}, such as max(x)"
            )
        case ast.Attribute(attr=name) if name in _ATTRIBUTES:
            return
        case ast.Name(id=name) if name.startswith("_"):
            if not (name.startswith("_quoted_") and name[8:].isdigit() and int(name[8:]) < quoted):
                raise ExpressionError(
                    f"the name {shorten(name)!r} begins with an underscore: write it in backticks"
                )
        case _ if isinstance(node, _ALLOWED_NODES):
            return
        case _:
            raise ExpressionError(
                f"{shorten(text)!r} is not supported: expected numbers, names, arithmetic, "
                "comparisons, and, or, not, indexing and functions"
            )
