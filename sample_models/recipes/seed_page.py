"""An example of the page tf.while_loop: a counter, and a vector that needs it only for the condition."""

from __future__ import annotations

import numpy as np

import engine
from engine import build
from engine.build import Graph, Tensor, ops
from sample_models.recipes.recipe import Recipe


def recipes() -> list[Recipe]:
    sets = {name: {"n": np.int64(n)} for name, n in (("twenty", 20), ("five", 5))}
    return [Recipe("counter_ahead", _counter_ahead(), sets)]


def _counter_ahead() -> engine.Model:
    """The page's fourth example, without its Prints, which no other runtime has; ``n`` is an input."""
    graph = Graph("counter_ahead")
    n = graph.parameter("n", "i64", [])
    first = graph.constant(0, name="first_count")
    numbers = ops.range(graph.constant(0, name="zero"), n, graph.constant(1, name="one"), output_type="i64", name="numbers")

    def both(i: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        return ops.add(i, 1, name="count"), ops.add(x, 1, name="add_to_x")

    def is_below(i: Tensor, x: Tensor) -> Tensor:
        return ops.less(i, n, name="keep_going")

    i, x = build.while_loop(is_below, both, (first, numbers), name="while_below_n")
    return graph.model({"i": i, "x": x})
