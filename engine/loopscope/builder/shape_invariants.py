"""Shape invariants of loop variables: what a user gives for a structure, as one shape for each
tensor in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from loopscope.builder.graph_builder import checked_shape
from loopscope.builder.loop import allows
from loopscope.builder.structure import paired
from loopscope.builder.tensor import Tensor
from loopscope.errors import BuildError
from loopscope.ir.shape import PartialShape


class Composite(ABC):
    """One value of a program that is several tensors, and takes one shape invariant for all of
    them.
    """

    __slots__ = ()

    @abstractmethod
    def invariants(self, given: PartialShape | None, what: str) -> Sequence[PartialShape | None]:
        """A shape for each tensor, in the order of ``leaves``; None: the first shape.
        ``BuildError`` for a shape that it cannot have.
        """


def shapes_of_variables(
    called: str, loop_vars: Any, shape_invariants: Any
) -> list[PartialShape | None]:
    """The given invariant of each tensor of ``loop_vars``; None stands for a tensor or a whole
    structure that keeps its first shapes.
    """
    return list(
        _shapes(f"{called}(): the shape invariant of loop_vars", loop_vars, shape_invariants, "")
    )


def _shapes(what: str, like: Any, given: Any, path: str) -> Iterator[PartialShape | None]:
    if isinstance(like, Composite) and (given is None or not isinstance(given, type(like))):
        yield from like.invariants(
            None if given is None else checked_shape(given, what + path), what + path
        )
        return
    below = paired(like, like if given is None else given, path, "shape_invariants")
    if below is None:
        yield None if given is None else checked_shape(given, what + path)
        return
    for inner, part, value in below:
        yield from _shapes(what, part, None if given is None else value, inner)


def shape_of_variable(
    called: str, path: str, initial: Tensor, given: PartialShape | None
) -> PartialShape:
    """The invariant of one tensor; ``BuildError`` when it does not allow the first shape."""
    if given is None:
        return initial.shape
    if not allows(given, initial.shape):
        raise BuildError(
            f"{called}(): {path} begins with shape {initial.shape}, which its shape invariant {given} does not allow"
        )
    return given
