"""Derivatives of scatters with a reduction: product, minimum, maximum and mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopscope.ops.derivative import Reverse, Value

FOLDS = ("prod", "min", "max", "mean")


@dataclass(frozen=True, slots=True)
class Places:
    """Functions that access the target positions of a scatter.

    ``take`` reads these positions of a tensor. ``put`` reduces updates into them.
    """

    take: Callable[[Value], Value]
    put: Callable[[Value, Value, str], Value]
    """Function of data, updates and the name of a reduction."""


def folded(node: Reverse, places: Places, updates: Value, reduction: str) -> tuple[Value, Value]:
    """Return the adjoints of data and updates."""
    match reduction:
        case "prod":
            return _product(node, places, updates)
        case "mean":
            ones = node.filled(1, node.inputs[0]), node.filled(1, updates)
            share = node.adjoint / places.put(*ones, "sum")
            return share, places.take(share)
        case _:
            return _extreme(node, places, updates)


def _product(node: Reverse, places: Places, updates: Value) -> tuple[Value, Value]:
    """Multiply the adjoint by the product of the other factors, which is 0 if one of them is 0."""
    operands = node.inputs[0], updates
    zeros = [node.ops.equal(operand, node.zeros_like(operand)) for operand in operands]
    zero_counts = [
        node.ops.convert_like(zero, operand) for zero, operand in zip(zeros, operands, strict=True)
    ]
    factors = [
        node.ops.select(zero, node.filled(1, operand), operand)
        for zero, operand in zip(zeros, operands, strict=True)
    ]
    product = places.put(factors[0], factors[1], "prod")
    count = places.put(zero_counts[0], zero_counts[1], "sum")
    others = product, places.take(product)
    counts = count, places.take(count)
    adjoints = node.adjoint, places.take(node.adjoint)
    of_operands = [
        node.where(
            counts[index] - zero_counts[index] < 0.5,
            adjoints[index] * others[index] / factors[index],
        )
        for index in range(2)
    ]
    return of_operands[0], of_operands[1]


def _extreme(node: Reverse, places: Places, updates: Value) -> tuple[Value, Value]:
    """Pass the adjoint to the minimum or maximum; equal elements share it."""
    operands, result = (node.inputs[0], updates), node.outputs[0]
    matches = [
        node.ops.equal(operand, extreme)
        for operand, extreme in zip(operands, (result, places.take(result)), strict=True)
    ]
    counts = [node.ops.convert_like(match, node.adjoint) for match in matches]
    share = node.adjoint / node.ops.maximum(
        places.put(counts[0], counts[1], "sum"), node.filled(1, result)
    )
    return node.where(matches[0], share), node.where(matches[1], places.take(share))
