"""Programs of nested control flow, drawn with the builder as a person writes them, whose numbers
are exact in every runtime.

Left out is what OpenVINO gets wrong: loops that are known never to run, states that a body never
reads, bare swaps of states, branches of different rank.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import loopscope
from loopscope import builder
from loopscope.builder import Tensor, ops
from loopscope.builder.tensor_array import TensorArray

Block = tuple[Tensor, Tensor | int]
"""A value, and how many bodies ran to compute it."""
EIGHTHS = st.integers(-16, 16).map(lambda number: number / 8)
DEEPEST = 2


def bounded(value: Tensor) -> Tensor:
    return ops.clamp(value, min=-4, max=4)


def product(one: Tensor, other: Tensor) -> Tensor:
    """In eighths, as all values are: every result is exact, so that no runtime's rounding turns
    a condition.
    """
    return ops.floor(one * other * 8.0) * 0.125


def shaped(value: Tensor, like: Tensor) -> Tensor:
    """The value in the shape of another: a scalar, or [3]."""
    if like.rank == value.rank:
        return value
    return bounded(ops.reduce_sum(value, 0)) if like.rank == 0 else value + np.zeros(3, np.float32)


def kept(value: Tensor, carried: Tensor) -> Tensor:
    """The next value of a variable, which reads the last one: of others OpenVINO forgets the
    first value, which is that of no iteration.
    """
    return ops.minimum(shaped(value, carried), carried + 1)


def varying(variable: Tensor) -> list[None]:
    return [None] * (variable.rank or 0)


class Drawing:
    """Draws blocks of nodes; outer values may be used at any depth, and become captures there."""

    def __init__(self, draw: st.DrawFn, graph: builder.Graph) -> None:
        self.draw = draw
        self.graph = graph

    def pick(self, pool: list[Tensor]) -> Tensor:
        return self.draw(st.sampled_from(pool))

    def block(self, pool: list[Tensor], depth: int = 0) -> Block:
        pool, ran = list(pool), 0
        kinds = ["arithmetic", "choice", "slice"]
        if depth < DEEPEST:
            kinds += [
                "while_",
                "do_while",
                "for_",
                "cond",
                "scan",
                "map_",
                "fold",
                "switch",
                "array",
            ]
        for _ in range(self.draw(st.integers(1, 2))):
            value, more = getattr(self, self.draw(st.sampled_from(kinds)))(pool, depth)
            pool.append(bounded(value))
            ran = more + ran
        return pool[-1], ran

    def arithmetic(self, pool: list[Tensor], depth: int) -> Block:
        function: Any = self.draw(
            st.sampled_from([ops.add, ops.subtract, product, ops.maximum, ops.minimum])
        )
        other = self.pick(pool) if self.draw(st.booleans()) else self.draw(EIGHTHS)
        return function(self.pick(pool), other), 0

    def choice(self, pool: list[Tensor], depth: int) -> Block:
        one, other = self.pick(pool), self.pick(pool)
        return ops.select(one < self.draw(EIGHTHS), other, one), 0

    def slice(self, pool: list[Tensor], depth: int) -> Block:
        vector = shaped(self.pick(pool), self.vector(pool))
        return vector[self.draw(st.sampled_from([0, -1, slice(None, None, -1)]))], 0

    def vector(self, pool: list[Tensor]) -> Tensor:
        return next(one for one in pool if one.rank == 1)

    def while_(self, pool: list[Tensor], depth: int) -> Block:
        most = self.draw(st.none() | st.integers(1, 4))
        bound, limit = self.draw(EIGHTHS), self.draw(st.integers(1, 5))

        def cond(n: Tensor, v: Tensor, ran: Tensor) -> Tensor:
            return (n < limit) & (ops.reduce_sum(v, list(range(v.rank or 0))) < bound * 2)

        def body(n: Tensor, v: Tensor, ran: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            value, inner = self.block([*pool, v], depth + 1)
            return n + 1, kept(value + 0.125, v), ran + inner + 1

        start = self.pick(pool)
        _, value, ran = builder.while_loop(
            cond, body, (0, start, 0), (None, varying(start), None), maximum_iterations=most
        )
        return value, ran

    def do_while(self, pool: list[Tensor], depth: int) -> Block:
        """Gives what is collected; with at least one iteration, because of none OpenVINO's
        second run shows the first one's parts.
        """
        bound, limit = self.draw(EIGHTHS), self.draw(st.integers(1, 5))
        most = self.draw(st.none() | st.integers(1, 4))
        parts = builder.Collected()

        def cond(n: Tensor, v: Tensor, ran: Tensor) -> Tensor:
            return (n < limit) & (ops.reduce_sum(v, list(range(v.rank or 0))) < bound * 2)

        def body(n: Tensor, v: Tensor, ran: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            number = ops.convert(builder.current_iteration(), destination_type="f32")
            value, inner = self.block([*pool, v, number], depth + 1)
            parts.append(shaped(value, v))
            return n + 1, kept(value + 0.125, v), ran + inner + 1

        start = self.pick(pool)
        _, _, ran = builder.do_while(
            cond, body, (0, start, 0), (None, varying(start), None), maximum_iterations=most
        )
        return ops.reduce_sum(parts.tensor, 0), ran

    def for_(self, pool: list[Tensor], depth: int) -> Block:
        computed = ops.convert(abs(shaped(self.pick(pool), pool[0])), destination_type="i64")
        count = computed if self.draw(st.booleans()) else self.draw(st.integers(1, 4))

        def body(i: Tensor, v: Tensor, ran: Tensor) -> tuple[Tensor, Tensor]:
            value, inner = self.block([*pool, v, ops.convert(i, destination_type="f32")], depth + 1)
            return kept(value, v), ran + inner + 1

        start = self.pick(pool)
        return builder.for_loop(count, body, (start, 0), (varying(start), None))

    def cond(self, pool: list[Tensor], depth: int) -> Block:
        like = self.pick(pool)

        def branch() -> tuple[Tensor, Tensor]:
            value, ran = self.block(pool, depth + 1)
            return shaped(value, like), ran + self.graph.constant(0)

        return builder.cond(shaped(self.pick(pool), pool[0]) < self.draw(EIGHTHS), branch, branch)

    def switch(self, pool: list[Tensor], depth: int) -> Block:
        like = self.pick(pool)
        index = ops.convert(shaped(self.pick(pool), pool[0]), destination_type="i32")

        def branch() -> tuple[Tensor, Tensor] | None:
            value, ran = self.block(pool, depth + 1)
            return shaped(value, like), ran + self.graph.constant(0)

        return builder.switch_case(index, [branch] * self.draw(st.integers(2, 3)), default=branch)

    def scan(self, pool: list[Tensor], depth: int) -> Block:
        def step(state: dict[str, Tensor], element: Tensor) -> dict[str, Tensor] | None:
            value, inner = self.block([*pool, state["v"], element], depth + 1)
            return {"v": shaped(value, pool[0]), "ran": state["ran"] + inner + 1}

        start = {"v": shaped(self.pick(pool), pool[0]), "ran": np.int64(0)}
        reverse = self.draw(st.booleans())
        made = builder.scan(
            step, shaped(self.pick(pool), self.vector(pool)), start, reverse=reverse
        )
        return made["v"], made["ran"][0 if reverse else -1]

    def map_(self, pool: list[Tensor], depth: int) -> Block:
        def of(element: Tensor) -> tuple[Tensor, Tensor]:
            value, inner = self.block([*pool, element], depth + 1)
            return shaped(value, pool[0]), inner + self.graph.constant(1)

        value, ran = builder.map_fn(of, shaped(self.pick(pool), self.vector(pool)))
        return value, ops.reduce_sum(ran, 0)

    def fold(self, pool: list[Tensor], depth: int) -> Block:
        def step(accumulated: tuple[Tensor, Tensor], element: Tensor) -> tuple[Tensor, Tensor]:
            value, inner = self.block([*pool, accumulated[0], element], depth + 1)
            return shaped(value, pool[0]), accumulated[1] + inner + 1

        return builder.foldl(
            step,
            shaped(self.pick(pool), self.vector(pool)),
            (shaped(self.pick(pool), pool[0]), np.int64(0)),
        )

    def array(self, pool: list[Tensor], depth: int) -> Block:
        def body(i: Tensor, array: TensorArray, ran: Tensor) -> tuple[TensorArray, Tensor]:
            value, inner = self.block([*pool, array.read(i)], depth + 1)
            return array.write(2 - i, shaped(value, pool[0])), ran + inner + 1

        source = builder.TensorArray.unstack(shaped(self.pick(pool), self.vector(pool)))
        array, ran = builder.for_loop(3, body, (source, 0))
        return array.stack(), ran


class Drawn:
    """Keeps hypothesis from printing a model's every node."""

    def __init__(self, model: loopscope.Model) -> None:
        self.model = model

    def __repr__(self) -> str:
        return f"models of {len(self.model.graph.nodes)} nodes"


@st.composite
def models(draw: st.DrawFn) -> Drawn:
    graph = builder.Graph("random")
    scalar, vector = (
        graph.parameter("scalar", "f32", []),
        graph.parameter("vector", "f32", [draw(st.sampled_from([3, None]))]),
    )
    pool = [scalar, vector]
    value, ran = Drawing(draw, graph).block(pool)
    return Drawn(graph.model({"value": value, "ran": ran + graph.constant(0)}))
