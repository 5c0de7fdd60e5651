"""Loops, TensorIterators and Ifs of random graphs: every role that a value may have in them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopscope.ir.model import BackEdge, Body, InputMap, LayerId, OutputMap
from tests.engine.drafts import Ref, branch
from tests.engine.drawn.graph import BOOLEAN, F32, I32, I64, Growing, Value
from tests.engine.drawn.operations import (
    SIMPLE,
    arithmetic,
    binary,
    compare,
    random_numbers,
    select,
    unary,
    variable,
)

Attributes = dict[str, Any]


def region(g: Growing) -> None:
    """A node with bodies, or an operation where there are enough around it."""
    if g.depth >= g.options.depth:
        binary(g)
    else:
        g.c.pick(
            [add_loop, add_loop, add_if]
            if g.options.numbers
            else [add_loop, add_if, add_loop, add_if, add_iterator]
        )(g)


def fill(g: Growing, most: int) -> None:
    """Some operations more."""
    for _ in range(1 + g.c.integer(most)):
        kind = g.c.integer(20)
        if g.options.numbers and g.c.chance(97):
            g.c.pick([arithmetic, arithmetic, arithmetic, compare, region])(g)
        elif kind < 8:
            g.c.pick([binary, binary, unary, compare, select])(g)
        elif kind < 13:
            g.c.pick(SIMPLE)(g)
        elif kind == 13:
            random_numbers(g)
        elif kind == 14:
            variable(g)
        else:
            region(g)


@dataclass
class Drawing:
    """A loop's body, and what goes in and out of it."""

    outer: Growing
    inner: Growing
    sources: list[Ref] = field(default_factory=list)
    maps: list[InputMap] = field(default_factory=list)
    carried: list[tuple[Value, Value]] = field(default_factory=list)
    """First value outside, and Parameter."""
    edges: list[tuple[Ref, Ref]] = field(default_factory=list)
    """Result, and Parameter."""
    results: dict[Ref, Ref] = field(default_factory=dict)
    last: list[tuple[Ref, Value]] = field(default_factory=list)
    joined: list[tuple[Ref, Value, Attributes]] = field(default_factory=list)

    def feed(self, source: Ref, parameter: Ref, **attributes: Any) -> None:
        """An outer value goes into a Parameter; sometimes through an input that feeds another,
        too.
        """
        if source in self.sources[2:] and self.outer.c.chance(20):
            number = self.sources.index(source, 2)
        else:
            number = len(self.sources)
            self.sources.append(source)
        self.maps.append(InputMap(number, LayerId(parameter.layer), **attributes))

    def entry(self, value: Value, shape: tuple[int | None, ...] | None = None) -> Value:
        """A Parameter for a value, or for its parts."""
        c, given = self.inner.c, value.shape if shape is None else shape
        unknown = None in given or (shape is None and c.chance(10))
        said = [-1 if unknown or length is None else length for length in given]
        return self.inner.put(
            self.inner.parameter(f"p{len(self.inner.nodes)}", value.type, said), value.type, given
        )

    def result(self, value: Value) -> Ref:
        """A Result; mostly one for all that ask for a value."""
        if value.ref not in self.results or self.inner.c.chance(10):
            self.results[value.ref] = self.inner.result(value.ref)
        return self.results[value.ref]

    def carry(self, most: int) -> None:
        for _ in range(self.outer.c.integer(most)):
            value = self.outer.some(lambda v: v.static) or self.outer.want(F32, ())
            self.carried.append((value, self.entry(value)))
            self.feed(value.ref, self.carried[-1][1].ref)

    def capture(self, most: int) -> None:
        for _ in range(self.outer.c.integer(most)):
            value = self.outer.some() or self.outer.want(F32, ())
            self.feed(value.ref, self.entry(value).ref)

    def slice(self, value: Value) -> None:
        """A Parameter for the parts of a value along an axis, forwards or backwards."""
        c = self.outer.c
        axis = c.integer(len(value.shape))
        size = 2 if value.shape[axis] % 2 == 0 and c.chance(30) else 1
        parameter = self.entry(value, (*value.shape[:axis], size, *value.shape[axis + 1 :]))
        self.feed(
            value.ref,
            parameter.ref,
            axis=axis,
            part_size=size,
            **direction(size, backwards=c.chance(35)),
        )

    def send_back(self) -> None:
        """A Result for each carried value: a new one, another's Parameter, or its own."""
        c, inner = self.inner.c, self.inner
        for _, parameter in self.carried:
            if not parameter.static:
                more = inner.want(parameter.type, (1,))
                new = inner.put(
                    inner.op("Concat", parameter.ref, more.ref, axis="0"), parameter.type, (None,)
                )
            elif c.chance(20):
                new = c.pick(
                    [
                        one
                        for _, one in self.carried
                        if (one.type, one.shape) == (parameter.type, parameter.shape)
                    ]
                )
            else:
                new = inner.want(parameter.type, parameter.shape)
                new = inner.clamped(new) if c.chance(60) else new
            self.edges.append((self.result(new), parameter.ref))

    def give(self) -> None:
        """Outputs: last values of what is carried and of anything, joined values."""
        c, inner = self.inner.c, self.inner
        for (result, _), (_, parameter) in zip(self.edges, self.carried, strict=True):
            if c.chance(70):
                self.last.append((result, parameter))
        for _ in range(c.integer(3)):
            value = c.pick(inner.pool)
            self.last.append((self.result(value), value))
        for _ in range(c.pick([0, 1, 1, 2])):
            value = inner.some(lambda v: v.static) or inner.want(F32, (1,))
            axis = c.integer(len(value.shape))
            size = value.shape[axis] if value.shape else 1
            if size:
                attributes = {
                    "axis": axis,
                    "part_size": size,
                    **direction(size, backwards=c.chance(25)),
                }
                self.joined.append((self.result(value), value, attributes))
        if not self.last and not self.joined:
            value = c.pick(inner.pool)
            self.last.append((self.result(value), value))

    def close(self, type: str, opset: int, again: Ref | None = None) -> None:
        """The node outside, and its outputs among the values there."""
        count = len(self.sources)
        outputs = [
            OutputMap(count + number, LayerId(result.layer))
            for number, (result, _) in enumerate(self.last)
        ]
        for number, (result, _, attributes) in enumerate(self.joined, count + len(self.last)):
            outputs.append(OutputMap(number, LayerId(result.layer), **attributes))
        if again is not None:
            outputs.append(OutputMap(-1, LayerId(again.layer), purpose="execution_condition"))
        edges = tuple(
            BackEdge(LayerId(result.layer), LayerId(parameter.layer))
            for result, parameter in self.edges
        )
        body = Body("body", self.inner.graph(), tuple(self.maps), tuple(outputs), edges)
        made = self.outer.region(
            type, self.sources, (body,), len(self.last) + len(self.joined), opset=opset
        )
        self._offer(made.layer)

    def _offer(self, layer: int) -> None:
        outer, c = self.outer, self.outer.c
        for number, (_, value) in enumerate(self.last):
            one = Value(Ref(layer, number), value.type, value.shape)
            outer.pool.append(outer.clamped(one) if c.chance(40) else one)
        for number, (_, value, attributes) in enumerate(self.joined, len(self.last)):
            axis, shape = attributes["axis"], list(value.shape) or [1]
            whole = outer.put(
                Ref(layer, number), value.type, [*shape[:axis], None, *shape[axis + 1 :]]
            )
            if value.type is not BOOLEAN:
                total = outer.op("ReduceSum", whole.ref, outer.ints([axis]), keep_dims="false")
                outer.clamped(outer.put(total, value.type, [*shape[:axis], *shape[axis + 1 :]]))


def direction(size: int, *, backwards: bool) -> Attributes:
    """The rest of what says how an axis is gone along."""
    return {"stride": -size, "start": -1, "end": 0} if backwards else {"stride": size}


def add_loop(g: Growing) -> None:
    """A Loop whose trip count is constant, computed or none, with a condition of any kind."""
    c, inner = g.c, g.inner()
    way = (
        "constant"
        if g.options.numbers and c.chance(85)
        else c.pick(["constant", "constant", "computed", "none"])
    )
    loop = Drawing(g, inner, [_trips(g, way), _start(g)])
    counter = None
    if way == "none" or c.chance(60):
        type, shape = c.pick([I64, I32]), c.pick([(), (1,)])
        counter = inner.put(inner.parameter("number", type, shape), type, shape)
        loop.maps.append(InputMap(-1, LayerId(counter.ref.layer), purpose="current_iteration"))
    loop.carry(4)
    if g.depth < 2 and way != "none" and c.chance(12):
        value = g.want(c.pick([F32, I64]), (1,))
        loop.carried.append((value, loop.entry(value, (None,))))
        loop.feed(value.ref, loop.carried[-1][1].ref)
    loop.capture(4)
    for _ in range(c.pick([0, 0, 1, 2])):
        parted = g.some(lambda v: v.static and v.shape != () and v.size > 0)
        if parted is not None:
            loop.slice(parted)
    if c.chance(5):
        inner.put(inner.parameter("free", F32, (3,)), F32, (3,))
    if not inner.pool:
        inner.constant(F32, ())
    fill(inner, 6)
    if g.options.numbers:
        region(inner)
    loop.send_back()
    again = _again(inner, counter if way == "none" else None)
    again_result = (
        loop.results[again] if again in loop.results and c.chance(50) else inner.result(again)
    )
    loop.give()
    if c.chance(10):
        loop.last.append((again_result, Value(again, BOOLEAN, ())))
    loop.close("Loop", 5, again_result)


def _trips(g: Growing, way: str) -> Ref:
    if way == "constant":
        return g.const(
            np.full(g.c.pick([(), (1,)]), g.c.pick([3, 1, 2, 4, 5, 7, 12, 0])), g.c.pick([I64, I32])
        )
    if way == "none":
        return g.const(-1, I64)
    return g.op(
        "Clamp", g.convert(g.scalar(g.some() or g.want(F32, ())), I64).ref, min="0", max="6"
    )


def _start(g: Growing) -> Ref:
    if g.c.chance(15):
        return g.want(BOOLEAN, ()).ref
    return g.const(np.full(g.c.pick([(), (1,)]), g.c.integer(10) < 9), BOOLEAN)


def _again(g: Growing, counter: Value | None) -> Ref:
    """The condition of an iteration; with a counter one that ends the loop."""
    c = g.c
    if counter is not None:
        number = g.scalar(counter)
        again = g.op("Less", number.ref, g.const(c.pick([1, 3, 6, 0]), number.type))
        return g.op("LogicalAnd", again, g.want(BOOLEAN, ()).ref) if c.chance(40) else again
    if c.chance(50):
        return g.const(np.full(c.pick([(), (1,)]), c.integer(12) < 11), BOOLEAN)
    again = g.want(BOOLEAN, c.pick([(), (), (1,)])).ref
    return g.op("LogicalOr", again, g.want(BOOLEAN, ()).ref) if c.chance(60) else again


def add_iterator(g: Growing) -> None:
    """A TensorIterator over the parts of one value."""
    value = g.some(
        lambda v: v.static and v.shape != () and v.size > 0 and max(v.shape) <= 40
    ) or g.want(F32, (4,))
    iterator = Drawing(g, g.inner())
    iterator.slice(value)
    iterator.carry(3)
    iterator.capture(2)
    fill(iterator.inner, 4)
    iterator.send_back()
    iterator.give()
    iterator.close("TensorIterator", 1)


def add_if(g: Growing) -> None:
    """An If whose branches give values of the same types and shapes."""
    c = g.c
    condition = (
        g.scalar(compare(g)) if c.chance(40) else g.want(BOOLEAN, c.pick([(), (), (), (1,)]))
    )
    sources = [condition.ref]
    kinds = [
        (v.type, v.shape)
        for v in (g.some(lambda v: v.static) or g.want(F32, ()) for _ in range(1 + c.integer(2)))
    ]
    bodies = []
    for name in ("then", "else"):
        inner, fed = g.inner(), list[tuple[int, Ref]]()
        for _ in range(c.integer(4)):
            value = g.some() or g.want(F32, ())
            if value.ref not in sources:
                sources.append(value.ref)
            said = [-1 if length is None else length for length in value.shape]
            parameter = inner.put(
                inner.parameter(f"p{len(fed)}", value.type, said), value.type, value.shape
            )
            fed.append((sources.index(value.ref), parameter.ref))
        if not inner.pool:
            inner.constant(F32, ())
        if c.chance(75):
            fill(inner, 4)
        bodies.append(
            branch(
                name,
                inner,
                fed,
                [inner.result(inner.want(type, shape).ref) for type, shape in kinds],
            )
        )
    made = g.region("If", sources, bodies, len(kinds), opset=8)
    for number, (type, shape) in enumerate(kinds):
        one = g.put(Ref(made.layer, number), type, shape)
        if c.chance(30):
            g.clamped(one)
