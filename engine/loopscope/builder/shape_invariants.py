"""Shape invariants of loop variables: one shape per tensor from the structure that a user
passes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from loopscope.builder.graph_builder import check_shape
from loopscope.builder.loop import allows
from loopscope.builder.structure import pair_parts
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.shape import PartialShape


class Composite(ABC):
    """A value that consists of several tensors and has one shape invariant for all of them."""

    __slots__ = ()

    @abstractmethod
    def invariants(
        self, invariant: PartialShape | None, what: str
    ) -> Sequence[PartialShape | None]:
        """Return a shape for each tensor, in the order of ``leaves``; None for the initial shape.

        ``BuildError`` for a shape that the value cannot have.
        """


def shapes_of_variables(
    caller: str, loop_vars: Any, shape_invariants: Any
) -> list[PartialShape | None]:
    """Return the shape invariant of each tensor of ``loop_vars``; None for a tensor or structure
    with its initial shapes.
    """
    return list(
        _walk_shapes(
            f"{caller}(): the shape invariant of loop_vars", loop_vars, shape_invariants, ""
        )
    )


def _walk_shapes(what: str, like: Any, invariants: Any, path: str) -> Iterator[PartialShape | None]:
    if isinstance(like, Composite) and (
        invariants is None or not isinstance(invariants, type(like))
    ):
        yield from like.invariants(
            None if invariants is None else check_shape(invariants, what + path), what + path
        )
        return
    pairs = pair_parts(like, like if invariants is None else invariants, path, "shape_invariants")
    if pairs is None:
        yield None if invariants is None else check_shape(invariants, what + path)
        return
    for inner, part, value in pairs:
        yield from _walk_shapes(what, part, None if invariants is None else value, inner)


def shape_of_variable(
    caller: str, path: str, initial: Tensor, invariant: PartialShape | None
) -> PartialShape:
    """Return the invariant of one tensor, or raise ``BuildError`` if it excludes the initial
    shape.
    """
    if invariant is None:
        return initial.shape
    if not allows(invariant, initial.shape):
        raise BuildError(
            f"{caller}(): {path} starts with shape {initial.shape}, which its shape invariant "
            f"{invariant} excludes"
        )
    return invariant
