"""Graphs that grow value by value: every value is known by its element type and shape, so that
the next operation fits.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from loopscope.ir.element_type import ElementType
from tests.engine.drafts import Draft, Ref

F16, F32, F64 = ElementType.F16, ElementType.F32, ElementType.F64
U8, I32, I64, BOOLEAN = ElementType.U8, ElementType.I32, ElementType.I64, ElementType.BOOLEAN
FLOATS, INTEGERS = (F32, F64, F16), (I32, I64, U8)
MOST_ELEMENTS = 1 << 14
SMALL_SHAPES = [(), (), (1,), (3,), (4,), (2, 3), (3, 2), (1, 3), (2, 1, 2)]
LARGE_SHAPES = [(16, 32), (8, 64), (300,), (512,), (64, 64), (1, 512), (32, 16)]
"""Shapes of arrays that are too large to be packed into columns."""
Shape = tuple[int | None, ...]
"""None for lengths that nobody knows."""
T = TypeVar("T")


class Choices:
    """Random choices that can be made again."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def integer(self, below: int) -> int:
        return self.random.randrange(below) if below > 1 else 0

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(len(options))]

    def chance(self, percent: int) -> bool:
        return self.integer(100) < percent


@dataclass
class Value:
    """A tensor of a graph."""

    ref: Ref
    type: ElementType
    shape: Any

    @property
    def static(self) -> bool:
        return None not in self.shape

    @property
    def size(self) -> int:
        return int(np.prod(self.shape)) if self.static else -1


@dataclass
class Options:
    """What models are made of."""

    floats: tuple[ElementType, ...] = (F32, F32, F32, F64, F16)
    large: bool = True
    exotic: bool = True
    """Operations without a Python expression for all types, and functions such as Exp."""
    depth: int = 3
    numbers: bool = False
    """Numbers and little arithmetic, in loops whose trip counts are constant: what an execution
    begins with says all of it.
    """


@dataclass
class Growing(Draft):
    """A graph, and the values that its next operations may use."""

    c: Choices = field(default_factory=lambda: Choices(0))
    options: Options = field(default_factory=Options)
    depth: int = 0
    variables: list[str] = field(default_factory=list)
    """The names of all variables of the model."""
    pool: list[Value] = field(default_factory=list)

    def inner(self) -> Growing:
        """A graph for a body of this one."""
        return Growing(
            c=self.c, options=self.options, depth=self.depth + 1, variables=self.variables
        )

    def put(self, ref: Ref, type: ElementType, shape: Sequence[int | None]) -> Value:
        """A value that later operations may use."""
        v = Value(ref, type, tuple(shape))
        self.pool.append(v)
        return v

    def number(self, type: ElementType) -> Any:
        c = self.c
        if type is BOOLEAN:
            return bool(c.integer(2))
        if type in INTEGERS:
            return c.pick([1, 2, 0, 3, 5]) if type is U8 else c.pick([1, 2, 0, 3, -1, -2])
        return c.pick([1.0, 0.5, -0.5, 2.0, -1.25, 0.0, 0.1, -3.3])

    def constant(self, type: ElementType, shape: tuple[int, ...]) -> Value:
        size = int(np.prod(shape))
        if size > 8:
            start, step = self.number(type), self.c.pick([0.01, 0.3, -0.2])
            data: np.ndarray = (np.arange(size) * step) % 2.7 - 1.3 + float(start)
            if type is BOOLEAN:
                data = data > 0
            elif type is U8:
                data = np.abs(data * 3)
            elif type in INTEGERS:
                data = data * 3
            data = data.astype(type.dtype).reshape(shape)
        else:
            data = np.array([self.number(type) for _ in range(size)], type.dtype).reshape(shape)
        ref = self.const(data, type)
        return self.put(ref, type, shape)

    def ints(self, values: Any) -> Ref:
        """A constant of axes, lengths or places."""
        return self.const(values, self.c.pick([I64, I64, I32]))

    def some(self, test: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """One of the values, the newest more often."""
        found = [v for v in self.pool if test(v)]
        if not found:
            return None
        if self.c.chance(50):
            found = found[-4:]
        return self.c.pick(found)

    def any_type(self) -> ElementType:
        c = self.c
        if self.options.numbers:
            return c.pick([F32, F32, I64, BOOLEAN])
        return c.pick(
            [
                c.pick(self.options.floats),
                c.pick(self.options.floats),
                c.pick((I64, I32, U8)),
                BOOLEAN,
            ]
        )

    def any_shape(self) -> tuple[int, ...]:
        if self.options.numbers:
            return ()
        return self.c.pick(SMALL_SHAPES + LARGE_SHAPES if self.options.large else SMALL_SHAPES)

    def convert(self, v: Value, type: ElementType) -> Value:
        if v.type is type:
            return v
        ref = v.ref
        if v.type in FLOATS and type in INTEGERS:
            ref = self.op("Clamp", ref, min="0" if type is U8 else "-5", max="5")
        return self.put(self.op("Convert", ref, destination_type=type.value), type, v.shape)

    def scalar(self, v: Value) -> Value:
        """Of any value a rank-0 number of its type (bool by ReduceLogicalOr)."""
        if v.shape == ():
            return v
        kind = (
            "ReduceLogicalOr"
            if v.type is BOOLEAN
            else self.c.pick(["ReduceSum", "ReduceMax", "ReduceMin"])
            if v.static
            else "ReduceSum"
        )
        ref = self.op(kind, v.ref, self.ints(list(range(len(v.shape)))), keep_dims="false")
        return self.put(ref, v.type, ())

    def fit(self, v: Value, type: ElementType, shape: tuple[int, ...]) -> Value:
        """Of any value one of that type and shape."""
        if v.shape != shape:
            if not (v.static and broadcasts(v.shape, shape)):
                v = self.scalar(v)
            v = self.convert(v, type)
            if v.shape != shape:
                if type is BOOLEAN or self.c.chance(40):
                    ref = self.op("Broadcast", v.ref, self.ints(list(shape)), opset=3, mode="numpy")
                else:
                    ref = self.op("Add", v.ref, self.const(np.zeros(shape), type))
                v = self.put(ref, type, shape)
            return v
        return self.convert(v, type)

    def want(self, type: ElementType, shape: tuple[int, ...]) -> Value:
        """Some value of that type and shape."""
        same = self.some(lambda v: v.type is type and v.shape == shape)
        if same is not None and self.c.chance(70):
            return same
        v = self.some()
        if v is None or self.c.chance(20):
            return self.constant(type, shape)
        return self.fit(v, type, shape)

    def partner(self, v: Value) -> Value:
        """Something that broadcasts with a value, of its type."""
        c = self.c
        if not v.static:
            return self.want(v.type, ())
        w = self.some(
            lambda w: w.static and together(v.shape, w.shape) and (w.type is v.type or c.chance(30))
        )
        if w is not None and c.chance(75):
            return self.convert(w, v.type)
        return self.constant(v.type, c.pick([(), v.shape, (1,)] if len(v.shape) else [(), ()]))

    def clamped(self, v: Value) -> Value:
        """The value within bounds, so that loops do not only compare infinities."""
        if v.type not in FLOATS or self.options.numbers:
            return v
        return self.put(self.op("Clamp", v.ref, min="-3", max="3"), v.type, v.shape)


def broadcasts(one: Any, to: Any) -> bool:
    try:
        return np.broadcast_shapes(one, to) == tuple(to)
    except ValueError:
        return False


def together(one: Any, other: Any) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(one, other))) <= MOST_ELEMENTS
    except ValueError:
        return False
