"""Checks of the rank that an operation requires, for arrays and for known shapes."""

from __future__ import annotations

from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Array, Known


def shape_of_rank(known: Known, rank: int, what: str) -> PartialShape:
    """Return the shape with ``rank`` dimensions, also if it is unknown; raise ``ValueError`` for
    another rank.

    >>> str(shape_of_rank(Known(), 2, "the table"))
    '[?,?]'
    """
    if known.shape.dimensions is None:
        return PartialShape.unknown(rank)
    if len(known.shape.dimensions) != rank:
        raise ValueError(f"{what} has shape {known.shape}, expected rank {rank}")
    return known.shape


def check_rank(array: Array, rank: int, what: str) -> None:
    """Raise ``ValueError`` if an array has another rank."""
    if array.ndim != rank:
        raise ValueError(f"{what} has shape {list(array.shape)}, expected rank {rank}")
