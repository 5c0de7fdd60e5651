"""What the rule of an operation's derivative is given, and what it gives: tensors of a graph
that is being built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape, is_of_an_array


class KnownValue(Protocol):
    """What is known of a tensor's value while the graph is built."""

    @property
    def value(self) -> np.ndarray | None:
        """None where it is no constant, or a large one."""


class Value(Protocol):
    """A tensor of a graph under construction: what is known of it, and the operators that it has.

    Numbers beside it become constants of its type; ``==`` and ``!=`` are ``ops.equal`` and
    ``ops.not_equal``.
    """

    @property
    def element_type(self) -> ElementType | None: ...
    @property
    def shape(self) -> PartialShape: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def known(self) -> KnownValue: ...
    def __add__(self, other: Any, /) -> Value: ...
    def __radd__(self, other: Any, /) -> Value: ...
    def __sub__(self, other: Any, /) -> Value: ...
    def __rsub__(self, other: Any, /) -> Value: ...
    def __mul__(self, other: Any, /) -> Value: ...
    def __rmul__(self, other: Any, /) -> Value: ...
    def __truediv__(self, other: Any, /) -> Value: ...
    def __rtruediv__(self, other: Any, /) -> Value: ...
    def __pow__(self, other: Any, /) -> Value: ...
    def __matmul__(self, other: Any, /) -> Value: ...
    def __neg__(self) -> Value: ...
    def __lt__(self, other: Any, /) -> Value: ...
    def __le__(self, other: Any, /) -> Value: ...
    def __gt__(self, other: Any, /) -> Value: ...
    def __ge__(self, other: Any, /) -> Value: ...


class Functions(Protocol):
    """The operations that have one output, as functions in snake_case: inputs by position,
    attributes by keyword.
    """

    def __getattr__(self, name: str, /) -> Callable[..., Value]: ...


class Several(Protocol):
    """Any operation by its type; gives all its outputs: ``several("Split", x, axis,
    num_splits=2)``.
    """

    def __call__(self, type: str, /, *inputs: Any, **attributes: Any) -> tuple[Value, ...]: ...


class Scan(Protocol):
    """A loop over elements along the first axis, as ``loopscope.builder.scan``: all values of a
    fold, each along a new first axis.
    """

    def __call__(
        self, fn: Callable[..., Any], elems: Any, initializer: Any, reverse: bool = False, /
    ) -> Any: ...


@dataclass(frozen=True, slots=True, eq=False)
class Reverse:
    """One node that is walked back through: its inputs and outputs, and how the target changes
    with each output.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    adjoints: tuple[Value | None, ...]
    """For each output; None where the target does not depend on it. At least one is a tensor."""
    attributes: Mapping[str, Any]
    """Typed, by the kernel's keywords."""
    ops: Functions
    several: Several
    constant: Callable[[np.ndarray], Value]
    """A Const of an array, in the array's type."""
    scan: Scan
    places: tuple[int, ...] = ()
    """The position of each input; ONNX may leave out some before the last one."""

    def input_at(self, place: int) -> Value | None:
        """The input of that position; None where it is left out."""
        return self.inputs[self.places.index(place)] if place in self.places else None

    @property
    def adjoint(self) -> Value:
        """The adjoint of output 0, zeros where the target does not depend on it."""
        return self.adjoint_of(0)

    def adjoint_of(self, output: int) -> Value:
        """The adjoint of one output, zeros where the target does not depend on it."""
        found = self.adjoints[output]
        return self.zeros_like(self.outputs[output]) if found is None else found

    def shape_of(self, value: Value) -> Value:
        """The shape of a tensor, i64; a constant where it is known."""
        if value.shape.is_static:
            if not is_of_an_array(value.shape.lengths):
                raise ValueError(
                    f"a shape with {len(value.shape.lengths)} dimensions is larger than any array"
                )
            return self.constant(np.array(value.shape.lengths, np.int64))
        return self.ops.shape_of(value)

    def filled(self, number: float, value: Value) -> Value:
        """The same number everywhere, in the type and shape of a tensor."""
        one = np.full((), number, _dtype(value))
        if value.shape.is_static and math.prod(value.shape.lengths) <= _WRITTEN_OUT:
            return self.constant(np.broadcast_to(one, value.shape.lengths))
        return self.ops.broadcast(one, self.shape_of(value), mode="numpy")

    def filled_to(self, number: float, like: Value, lengths: Sequence[int]) -> Value:
        """The same number everywhere, in the type of a tensor and a shape that is known."""
        return self.constant(np.full(tuple(lengths), number, _dtype(like)))

    def zeros_like(self, value: Value) -> Value:
        """Zeros in the type and shape of a tensor."""
        return self.filled(0, value)

    def reshaped(self, adjoint: Value, like: Value) -> Value:
        """The same elements in the shape of another tensor."""
        if adjoint.shape == like.shape and like.shape.is_static:
            return adjoint
        return self.ops.reshape(adjoint, self.shape_of(like), special_zero=False)

    def reshaped_to(self, value: Value, lengths: Sequence[int]) -> Value:
        """The same elements in a shape that is known."""
        return self.ops.reshape(value, np.array(lengths, np.int64), special_zero=False)

    def ranked(self, value: Value, rank: int) -> Value:
        """The same tensor, whose rank is known from elsewhere."""
        if value.rank is not None:
            return value
        return self.ops.reshape(value, np.zeros(rank, np.int64), special_zero=True)

    def where(self, condition: Value, value: Value) -> Value:
        """The value where the condition holds, 0 elsewhere; the condition broadcasts as numpy
        does.
        """
        return self.ops.select(condition, value, np.zeros((), _dtype(value)))

    def sum_to(self, adjoint: Value, like: Value) -> Value:
        """The adjoint of an operand that was broadcast as numpy does: summed over the axes that
        it was repeated along.
        """
        mine, wanted = adjoint.shape, like.shape
        if mine.is_static and mine == wanted:
            return adjoint
        if mine.dimensions is None or wanted.dimensions is None:
            return self._sum_to_any_rank(adjoint, like)
        lead = len(mine.dimensions) - len(wanted.dimensions)
        lengths = [*[None] * lead, *wanted.dimensions]
        certain = [
            axis
            for axis, one in enumerate(lengths)
            if one is None or (one.is_static and one.length == 1)
        ]
        summed = self._summed(adjoint, np.array(certain, np.int64))
        if all(one is None or one.is_static for one in lengths):
            return self.reshaped(summed, like)
        if lead:
            summed = self.ops.squeeze(summed, np.arange(lead))
        return self._sum_of_copies(summed, like)

    def _sum_of_copies(self, adjoint: Value, like: Value) -> Value:
        """Of the same rank: each axis falls into as many parts as the operand is long, one or each
        of one, and these are summed.

        OpenVINO takes no axes that are only found when the model runs.
        """
        ops, rank = self.ops, like.rank or 0
        wanted = self.shape_of(like)
        copies = ops.divide(self.shape_of(adjoint), ops.maximum(wanted, np.array([1])))
        pairs = ops.concat(
            ops.unsqueeze(wanted, np.array([1])), ops.unsqueeze(copies, np.array([1])), axis=1
        )
        apart = ops.reshape(
            adjoint, ops.reshape(pairs, np.array([-1]), special_zero=False), special_zero=False
        )
        return ops.reduce_sum(apart, np.arange(1, 2 * rank, 2), keep_dims=False)

    def _sum_to_any_rank(self, adjoint: Value, like: Value) -> Value:
        """Lengths of 1 are found when the model runs."""
        ops = self.ops
        lead = ops.shape_of(self.shape_of(adjoint)) - ops.shape_of(self.shape_of(like))
        lengths = ops.concat(ops.broadcast(np.int64(1), lead), self.shape_of(like), axis=0)
        axes = ops.reshape(
            ops.non_zero(ops.equal(lengths, np.int64(1))), np.array([-1]), special_zero=False
        )
        return ops.reshape(self._summed(adjoint, axes), self.shape_of(like), special_zero=False)

    def _summed(self, adjoint: Value, axes: Any) -> Value:
        if isinstance(axes, np.ndarray) and not axes.size:
            return adjoint
        return self.ops.reduce_sum(adjoint, axes, keep_dims=True)


def _dtype(value: Value) -> np.dtype:
    return (value.element_type or ElementType.F32).dtype


_WRITTEN_OUT = 64
"""Elements of a constant that is smaller than the nodes that would make it."""

Adjoints = Sequence[Value | None]
"""For each input how the target changes with it; None where it does not (whole numbers,
conditions, or an operation that is flat).
"""

Gradient = Callable[[Reverse], Adjoints]
"""The rule of one operation. Raises ``ValueError`` for attributes under which there is no
derivative, and says why.
"""


@dataclass(frozen=True, slots=True)
class WithGaps:
    """The rule of an operation whose inputs may be left out before the last one: it knows them
    by position.
    """

    rule: Callable[[Reverse], Mapping[int, Value | None]]
    """Gives adjoints by the position of the input."""

    def __call__(self, at: Reverse, /) -> Adjoints:
        found = self.rule(at)
        return [found.get(place) for place in at.places]


def flat(at: Reverse, /) -> Adjoints:
    """The derivative is 0 wherever there is one: steps, signs, comparisons."""
    return (None,) * len(at.inputs)


def elementwise(slope: Callable[[Reverse], Value]) -> Gradient:
    """The rule of a function of each element: ``slope`` gives its derivative at the input, in
    the input's shape.
    """

    def gradient(at: Reverse, /) -> Adjoints:
        return (at.adjoint * slope(at), *[None] * (len(at.inputs) - 1))

    return gradient
