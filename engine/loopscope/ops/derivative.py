"""Protocol of derivative rules: a rule takes and returns tensors of a graph under construction."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape, is_of_an_array


class KnownValue(Protocol):
    """Facts about a tensor's value while the graph is built."""

    @property
    def value(self) -> np.ndarray | None:
        """Value of a small constant, else None."""


class Value(Protocol):
    """A tensor of a graph under construction, with its known facts and operators.

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


def known_rank(value: Value, name: str = "data") -> int:
    """Return the rank of a tensor; raise ``ValueError`` with its name if it is not known."""
    if value.rank is None:
        raise ValueError(
            f"the rank of the {name} is not known: give the model's inputs their ranks"
        )
    return value.rank


class Functions(Protocol):
    """The operations with one output, as functions in snake_case: inputs by position, attributes by
    keyword.
    """

    def __getattr__(self, name: str, /) -> Callable[..., Value]: ...


class Several(Protocol):
    """A function that builds any operation by its type and returns all its outputs:
    ``several("Split", x, axis, num_splits=2)``.
    """

    def __call__(self, type: str, /, *inputs: Any, **attributes: Any) -> tuple[Value, ...]: ...


class Scan(Protocol):
    """A loop over elements along the first axis, as ``loopscope.builder.scan``. It returns all
    values of a fold, stacked along a new first axis.
    """

    def __call__(
        self, fn: Callable[..., Any], elems: Any, initializer: Any, reverse: bool = False, /
    ) -> Any: ...


@dataclass(frozen=True, slots=True, eq=False)
class Reverse:
    """A node in reverse-mode differentiation: its inputs, its outputs, and the adjoint of each
    output.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    adjoints: tuple[Value | None, ...]
    """Adjoint of each output; None where the target does not depend on it. At least one is a
    tensor.
    """
    attributes: Mapping[str, Any]
    """Typed attributes, by the kernel's keywords."""
    ops: Functions
    several: Several
    constant: Callable[[np.ndarray], Value]
    """Function that adds a Const of an array, in the array's type."""
    scan: Scan
    places: tuple[int, ...] = ()
    """Position of each input; ONNX may omit some before the last one."""

    def input_at(self, place: int) -> Value | None:
        """Return the input at that position; None if it is omitted."""
        return self.inputs[self.places.index(place)] if place in self.places else None

    @property
    def adjoint(self) -> Value:
        """Adjoint of output 0; zeros if the target does not depend on it."""
        return self.adjoint_of(0)

    def adjoint_of(self, output: int) -> Value:
        """Return the adjoint of one output; zeros if the target does not depend on it."""
        adjoint = self.adjoints[output]
        return self.zeros_like(self.outputs[output]) if adjoint is None else adjoint

    def shape_of(self, value: Value) -> Value:
        """Return the shape of a tensor as i64; a constant if it is static."""
        if value.shape.is_static:
            if not is_of_an_array(value.shape.lengths):
                raise ValueError(
                    f"a shape with {len(value.shape.lengths)} dimensions is larger than any array"
                )
            return self.constant(np.array(value.shape.lengths, np.int64))
        return self.ops.shape_of(value)

    def filled(self, number: float, value: Value) -> Value:
        """Return the same number everywhere, in the type and shape of a tensor."""
        scalar = np.full((), number, _dtype(value))
        if value.shape.is_static and math.prod(value.shape.lengths) <= _MAX_CONSTANT_ELEMENTS:
            return self.constant(np.broadcast_to(scalar, value.shape.lengths))
        return self.ops.broadcast(scalar, self.shape_of(value), mode="numpy")

    def filled_to(self, number: float, like: Value, lengths: Sequence[int]) -> Value:
        """Return the same number everywhere, in the type of a tensor and a known shape."""
        return self.constant(np.full(tuple(lengths), number, _dtype(like)))

    def zeros_like(self, value: Value) -> Value:
        """Return zeros in the type and shape of a tensor."""
        return self.filled(0, value)

    def reshaped(self, adjoint: Value, like: Value) -> Value:
        """Return the same elements in the shape of another tensor."""
        if adjoint.shape == like.shape and like.shape.is_static:
            return adjoint
        return self.ops.reshape(adjoint, self.shape_of(like), special_zero=False)

    def reshaped_to(self, value: Value, lengths: Sequence[int]) -> Value:
        """Return the same elements in a known shape."""
        return self.ops.reshape(value, np.array(lengths, np.int64), special_zero=False)

    def ranked(self, value: Value, rank: int) -> Value:
        """Return the same tensor with a static rank, which the caller knows."""
        if value.rank is not None:
            return value
        return self.ops.reshape(value, np.zeros(rank, np.int64), special_zero=True)

    def where(self, condition: Value, value: Value) -> Value:
        """Return the value where the condition is true and 0 elsewhere; the condition broadcasts as
        in numpy.
        """
        return self.ops.select(condition, value, np.zeros((), _dtype(value)))

    def sum_to(self, adjoint: Value, like: Value) -> Value:
        """Return the adjoint of an operand that was broadcast as in numpy: the sum over the
        repeated axes.
        """
        source, target = adjoint.shape, like.shape
        if source.is_static and source == target:
            return adjoint
        if source.dimensions is None or target.dimensions is None:
            return self._sum_to_any_rank(adjoint, like)
        lead = len(source.dimensions) - len(target.dimensions)
        lengths = [*[None] * lead, *target.dimensions]
        summed_axes = [
            axis
            for axis, length in enumerate(lengths)
            if length is None or (length.is_static and length.length == 1)
        ]
        total = self._summed(adjoint, np.array(summed_axes, np.int64))
        if all(length is None or length.is_static for length in lengths):
            return self.reshaped(total, like)
        if lead:
            total = self.ops.squeeze(total, np.arange(lead))
        return self._sum_of_copies(total, like)

    def _sum_of_copies(self, adjoint: Value, like: Value) -> Value:
        """Sum the copies along each axis of an adjoint of equal rank.

        Each axis is split into (length of the operand, number of copies), and the second part is
        summed. OpenVINO does not accept reduction axes that are known only at run time.
        """
        ops, rank = self.ops, like.rank or 0
        lengths = self.shape_of(like)
        copies = ops.divide(self.shape_of(adjoint), ops.maximum(lengths, np.array([1])))
        pairs = ops.concat(
            ops.unsqueeze(lengths, np.array([1])), ops.unsqueeze(copies, np.array([1])), axis=1
        )
        split = ops.reshape(
            adjoint, ops.reshape(pairs, np.array([-1]), special_zero=False), special_zero=False
        )
        return ops.reduce_sum(split, np.arange(1, 2 * rank, 2), keep_dims=False)

    def _sum_to_any_rank(self, adjoint: Value, like: Value) -> Value:
        """Sum over the axes of length 1, which are known only at run time."""
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


_MAX_CONSTANT_ELEMENTS = 64
"""Number of elements up to which a constant is smaller than the nodes that would compute it."""

Adjoints = Sequence[Value | None]
"""Adjoint of each input; None for inputs without one (integers, conditions, or a flat
operation).
"""

Gradient = Callable[[Reverse], Adjoints]
"""Derivative rule of one operation.

It raises ``ValueError`` with the reason for attributes without a derivative.
"""


@dataclass(frozen=True, slots=True)
class WithGaps:
    """Derivative rule for an operation with gaps among its inputs; the rule uses the positions of
    the inputs.
    """

    rule: Callable[[Reverse], Mapping[int, Value | None]]
    """Function that returns adjoints by the position of the input."""

    def __call__(self, node: Reverse, /) -> Adjoints:
        adjoints = self.rule(node)
        return [adjoints.get(place) for place in node.places]


def flat(node: Reverse, /) -> Adjoints:
    """Return no adjoints: the derivative is 0 wherever it exists (steps, signs, comparisons)."""
    return (None,) * len(node.inputs)


def elementwise(slope: Callable[[Reverse], Value]) -> Gradient:
    """Return the rule of an elementwise function; ``slope`` builds its derivative at the input, in
    the input's shape.
    """

    def gradient(node: Reverse, /) -> Adjoints:
        return (node.adjoint * slope(node), *[None] * (len(node.inputs) - 1))

    return gradient
