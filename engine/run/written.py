"""Expressions of elementwise operations as calls that write into an array that is there, without memory of their own."""

from __future__ import annotations

import ast

_UFUNCS: dict[type[ast.AST], str] = {
    ast.Add: "np.add",
    ast.Sub: "np.subtract",
    ast.Mult: "np.multiply",
    ast.Div: "np.divide",
    ast.Mod: "np.remainder",
    ast.USub: "np.negative",
}
"""What numpy calls for the operators on arrays."""

_OUT_BY_NAME = frozenset({"np.maximum", "np.minimum"})
"""Functions that take the array to write into only by its name."""


def writing(expression: str, target: str) -> list[str] | None:
    """Lines after which ``target`` holds what an expression over names gives, bit for bit; None where that takes a second array.

    The expression is one of ours, over names of arrays of the target's type that broadcast to its shape, and numbers.
    """
    lines: list[str] = []
    tree = ast.parse(expression, mode="eval").body
    return lines if _write(tree, target, lines) else None


def _write(tree: ast.expr, target: str, lines: list[str]) -> bool:
    call, operands = _call(tree)
    if not call:
        return False
    inner = [operand for operand in operands if not isinstance(operand, (ast.Name, ast.Constant))]
    if len(inner) > 1 or not all(_write(operand, target, lines) for operand in inner):
        return False
    names = [target if operand in inner else ast.unparse(operand) for operand in operands]
    lines.append(f"{call}({', '.join(names)}, {'out=' if call in _OUT_BY_NAME else ''}{target})")
    return True


def _call(tree: ast.expr) -> tuple[str, list[ast.expr]]:
    """The function that computes the root of an expression, and its operands; empty for what has none."""
    match tree:
        case ast.BinOp(left=left, op=op, right=right):
            return _UFUNCS.get(type(op), ""), [left, right]
        case ast.UnaryOp(op=op, operand=operand):
            return _UFUNCS.get(type(op), ""), [operand]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), args=operands):
            return f"np.{name}", operands
        case ast.Call(func=ast.Name(id="abs"), args=operands):
            return "np.absolute", operands
        case _:
            return "", []
