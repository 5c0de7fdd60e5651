"""An example of the page tf.while_loop: a counter, and a vector that needs it only for the
condition.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from msgspec import structs

import loopscope
from loopscope import builder
from loopscope.builder import Graph, Tensor, ops
from loopscope.ir import ModelGraph as FinishedGraph
from loopscope.ir import Node
from loopscope_samples.recipes.recipe import Recipe


def recipes() -> list[Recipe]:
    sets = {name: {"n": np.int64(n)} for name, n in (("twenty", 20), ("five", 5))}
    return [Recipe("counter_ahead", _counter_ahead(), sets)]


def _counter_ahead() -> loopscope.Model:
    """The page's fourth example, without its Prints, which no other runtime has; ``n`` is an
    input.
    """
    graph = Graph("counter_ahead")
    n = graph.parameter("n", "i64", [])
    first = graph.constant(0, name="first_count")
    numbers = ops.range(
        graph.constant(0, name="zero"),
        n,
        graph.constant(1, name="one"),
        output_type="i64",
        name="numbers",
    )

    def both(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return ops.add(i, 1, name="count"), ops.add(x, 1, name="add_to_x")

    def is_below(i: Tensor, x: Tensor) -> Tensor:
        return ops.less(i, n, name="keep_going")

    i, x = builder.while_loop(is_below, both, (first, numbers), name="while_below_n")
    return _with_ticks(graph.model({"i": i, "x": x}), "add_to_x", 5)


def _with_ticks(model: loopscope.Model, name: str, ticks: int) -> loopscope.Model:
    """Return the model whose operation of that name, in a loop's body, takes so many ticks in a
    schedule.
    """
    kept = {"ticks": {"version": "0", "value": str(ticks)}}

    def of_graph(graph: FinishedGraph) -> FinishedGraph:
        return dataclasses.replace(graph, nodes=tuple(map(of_node, graph.nodes)))

    def of_node(node: Node) -> Node:
        bodies = tuple(structs.replace(body, graph=of_graph(body.graph)) for body in node.bodies)
        return structs.replace(
            node, bodies=bodies, rt_info=kept if node.name == name else node.rt_info
        )

    return dataclasses.replace(model, graph=of_graph(model.graph))
