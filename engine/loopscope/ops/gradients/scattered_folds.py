"""Derivatives of scatters that fold what they write into what is there: products, least,
greatest and mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopscope.ops.derivative import Reverse, Value

FOLDS = ("prod", "min", "max", "mean")


@dataclass(frozen=True, slots=True)
class Places:
    """Where a scatter writes: ``take`` reads these places of a tensor, ``put`` folds updates
    into them.
    """

    take: Callable[[Value], Value]
    put: Callable[[Value, Value, str], Value]
    """Of data, updates and the name of a reduction."""


def folded(at: Reverse, places: Places, updates: Value, reduction: str) -> tuple[Value, Value]:
    """The adjoints of data and updates."""
    match reduction:
        case "prod":
            return _product(at, places, updates)
        case "mean":
            ones = at.filled(1, at.inputs[0]), at.filled(1, updates)
            share = at.adjoint / places.put(*ones, "sum")
            return share, places.take(share)
        case _:
            return _extreme(at, places, updates)


def _product(at: Reverse, places: Places, updates: Value) -> tuple[Value, Value]:
    """Each factor gets the product of the others, which is 0 where one of the others is."""
    both = at.inputs[0], updates
    zeros = [at.ops.equal(one, at.zeros_like(one)) for one in both]
    counted = [at.ops.convert_like(zero, one) for zero, one in zip(zeros, both, strict=True)]
    factors = [
        at.ops.select(zero, at.filled(1, one), one) for zero, one in zip(zeros, both, strict=True)
    ]
    product, count = (
        places.put(factors[0], factors[1], "prod"),
        places.put(counted[0], counted[1], "sum"),
    )
    others = product, places.take(product)
    counts = count, places.take(count)
    adjoints = at.adjoint, places.take(at.adjoint)
    found = [
        at.where(counts[n] - counted[n] < 0.5, adjoints[n] * others[n] / factors[n])
        for n in range(2)
    ]
    return found[0], found[1]


def _extreme(at: Reverse, places: Places, updates: Value) -> tuple[Value, Value]:
    """The least or greatest gets the adjoint; several that are equal share it."""
    both, result = (at.inputs[0], updates), at.outputs[0]
    won = [
        at.ops.equal(one, found)
        for one, found in zip(both, (result, places.take(result)), strict=True)
    ]
    counted = [at.ops.convert_like(one, at.adjoint) for one in won]
    share = at.adjoint / at.ops.maximum(
        places.put(counted[0], counted[1], "sum"), at.filled(1, result)
    )
    return at.where(won[0], share), at.where(won[1], places.take(share))
