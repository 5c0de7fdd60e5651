"""A small safe language for conditions and watches: ``max(abs(x)) > 3``, ``any(isnan(x))``,
``iteration == 5``.

Parsed with ``ast`` against a whitelist and interpreted over numpy; nothing is ever evaluated as
Python.
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
from loopscope.errors import ExpressionError, shorten

_LONGEST = 500
_MOST_NODES = 200

Lookup = Callable[[str], Any]
"""Gives the value of a name; raises ``ExpressionError`` when there is none."""

_MOST_ARGUMENTS = {"maximum": 2, "minimum": 2, "round": 2}
_LEAST_ARGUMENTS = {"maximum": 2, "minimum": 2}
_SINGLE_EQUALS = re.compile(r"(?<![=!<>])=(?!=)")
_QUOTED = re.compile(r"`([^`]*)`")


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A parsed expression. Names that are not identifiers are written in backticks:
    ```while/Add_3` > 0``.
    """

    text: str
    _tree: ast.expr
    _quoted: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        """All names that it looks up (functions excluded)."""
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
        """The value; ``ExpressionError`` says what has none."""
        return self._evaluated(lookup, truth=False)

    def is_true(self, lookup: Lookup) -> bool:
        """Whether the value is true; arrays count as true when every element is."""
        return bool(self._evaluated(lookup, truth=True))

    def _evaluated(self, lookup: Lookup, *, truth: bool) -> Any:
        try:
            with np.errstate(all="ignore"):
                found = Evaluation(lambda name: lookup(self._name(name))).value(self._tree)
                return is_true(found) if truth else found
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
        """The same with names that are indexed by a counter looked up under another name.

        For the counter ``i``, ``total[i]`` looks up ``total``, ``total[i - 1]`` looks up
        ``total@-1``; other indices stay what they are.
        """
        moved = _Moved(counter, list(self._quoted))
        tree = moved.visit(copy.deepcopy(self._tree))
        return Expression(self.text, tree, tuple(moved.quoted))


def names_in(text: str) -> frozenset[str]:
    """The names that an expression looks up; ``ExpressionError`` when it is outside the
    language.
    """
    return parse(text).names


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
        """The constant offset of an index from the counter (``i - 2`` gives -2); None for any
        other index.
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
    """An expression from what a person typed; ``ExpressionError`` names what is outside the
    language.
    """
    if len(text) > _LONGEST:
        raise ExpressionError(
            f"the expression has {len(text)} characters, at most {_LONGEST} are allowed"
        )
    quoted: list[str] = []

    def take(match: re.Match[str]) -> str:
        quoted.append(match[1])
        return f"_quoted_{len(quoted) - 1}"

    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", SyntaxWarning
            )  # a typed expression is not a source file to warn about
            tree = ast.parse(_QUOTED.sub(take, text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else "it is too deep"
        if _SINGLE_EQUALS.search(text):
            reason += "; to compare, write =="
        raise ExpressionError(f"{shorten(text)!r} is not an expression: {reason}") from None
    nodes = list(ast.walk(tree))
    if len(nodes) > _MOST_NODES:
        raise ExpressionError(
            f"the expression is too long: at most {_MOST_NODES} parts are allowed"
        )
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
        case ast.Call(func=ast.Name(id=name), args=given, keywords=[]) if name in FUNCTIONS:
            least, most = _LEAST_ARGUMENTS.get(name, 1), _MOST_ARGUMENTS.get(name, 1)
            if not least <= len(given) <= most:
                takes = (
                    f"{most} values"
                    if least == most == 2
                    else "1 value"
                    if most == 1
                    else "1 or 2 values"
                )
                other = (
                    f": {name}imum(one, other) takes two"
                    if name in ("max", "min") and given
                    else ""
                )
                raise ExpressionError(
                    f"{shorten(text)!r} gives {name} {len(given)} values, and it takes {takes}{other}"
                )
        case ast.Call():
            raise ExpressionError(
                f"{shorten(text)!r} calls what is not a function of the language: there are {', '.join(sorted(FUNCTIONS))}"
            )
        case ast.Attribute(attr=name) if name in _ATTRIBUTES:
            return
        case ast.Name(id=name) if name.startswith("_"):
            if not (name.startswith("_quoted_") and name[8:].isdigit() and int(name[8:]) < quoted):
                raise ExpressionError(
                    f"the name {shorten(name)!r} begins with an underscore: write it in backticks"
                )
        case _ if isinstance(node, _PLAIN):
            return
        case _:
            raise ExpressionError(
                f"{shorten(text)!r} is outside the language: "
                "it takes numbers, names, arithmetic, comparisons, and, or, not, indexing and functions"
            )
