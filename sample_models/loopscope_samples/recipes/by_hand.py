"""Samples that show one thing each: a choice, slices, an interval, a swap."""

from __future__ import annotations

import numpy as np

from loopscope import builder
from loopscope.builder import Collected, Graph, Tensor, ops
from loopscope_samples.recipes.recipe import Recipe


def recipes() -> list[Recipe]:
    return [
        _if_recipe(),
        _ranks_recipe(),
        _slices_recipe(),
        _bisection_recipe(),
        _swap_recipe(),
    ]


def _if_recipe() -> Recipe:
    """The If example of the specification's page, with the surroundings that it needs to run."""
    graph = Graph("if_add")
    condition = graph.parameter("cond", "boolean", [])
    x, z, w = (graph.parameter(name, "f32", [2, 4]) for name in ("x", "z", "w"))
    made = builder.cond(condition, lambda: ops.add(x, z), lambda: ops.add(x, w), name="if/cond")
    arrays = {
        "x": np.arange(8, dtype=np.float32).reshape(2, 4),
        "z": np.full((2, 4), 100, np.float32),
        "w": np.full((2, 4), -100, np.float32),
    }
    sets = {
        "true": {"cond": np.bool_(True), **arrays},
        "false": {"cond": np.bool_(False), **arrays},
    }
    return Recipe("if_add", graph.model({"sum": made}), sets)


def _ranks_recipe() -> Recipe:
    """Branches of different rank: a whole row, or its largest element as a number."""
    graph = Graph("row_or_best")
    scores = graph.parameter("scores", "f32", [None])
    whole_row = graph.parameter("whole_row", "boolean", [])

    def row() -> Tensor:
        return ops.add(scores, graph.constant(np.float32(0), name="nothing"), name="row")

    def best() -> Tensor:
        return ops.reduce_max(scores, np.array([0]), keep_dims=False, name="best")

    answer = builder.cond(whole_row, row, best, name="row_or_best")
    hundred = graph.constant(np.float32(100), name="hundred")
    percent = ops.multiply(answer, hundred, name="percent")
    values = np.array([0.25, 0.5, 0.125], np.float32)
    sets = {
        "best_only": {"scores": values, "whole_row": np.bool_(False)},
        "whole_row": {"scores": values, "whole_row": np.bool_(True)},
    }
    return Recipe("row_or_best", graph.model({"percentage": percent}), sets)


def _slices_recipe() -> Recipe:
    """Rows of a table in, smoothed rows out: one slice in and one slice out per iteration."""
    graph = Graph("slice_and_concatenate")
    readings, weight = (
        graph.parameter("readings", "f32", [None, 3]),
        graph.parameter("weight", "f32", []),
    )
    smoothed, row_numbers = Collected("smoothed"), Collected("row_numbers")

    def follow(smooth: Tensor, reading: Tensor) -> Tensor:
        change = ops.multiply(
            ops.subtract(reading, smooth, name="difference"), weight, name="change"
        )
        next_smooth = ops.add(smooth, change, name="next_smooth")
        smoothed.extend(next_smooth)
        row_numbers.append(builder.current_iteration("row"))
        return next_smooth

    start = graph.constant(np.zeros((1, 3), np.float32), name="zero_row")
    final = builder.foldl(follow, readings, start, name="for_each_row")
    outputs = {"smoothed": smoothed.tensor, "row_numbers": row_numbers.tensor, "final": final}
    steps = np.repeat(np.array([[0, 10, 20]], np.float32), 6, axis=0)
    noise = np.random.default_rng(7).normal(0, 1, (4, 3)).astype(np.float32)
    sets = {
        "six_equal_rows": {"readings": steps, "weight": np.float32(0.5)},
        "four_noisy_rows": {"readings": noise, "weight": np.float32(0.25)},
    }
    return Recipe("slice_and_concatenate", graph.model(outputs), sets)


def _bisection_recipe() -> Recipe:
    """Where x*x*x - x equals the target: each iteration an If keeps the half that holds the
    answer.
    """
    graph = Graph("bisection")
    target, tolerance = (
        graph.parameter("target", "f32", []),
        graph.parameter("tolerance", "f32", []),
    )
    guesses = Collected("guesses")

    def halve(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        half = graph.constant(0.5, name="half")
        middle = ops.multiply(ops.add(low, high, name="sum"), half, name="middle")
        cube = ops.multiply(ops.multiply(middle, middle, name="square"), middle, name="cube")
        reached = ops.subtract(cube, middle, name="reached")
        too_low = ops.less(reached, target, name="is_too_low")
        halves = builder.cond(
            too_low, lambda: (middle, high), lambda: (low, middle), name="which_half"
        )
        guesses.append(middle)
        return halves

    def is_wide(low: Tensor, high: Tensor) -> Tensor:
        return ops.greater(ops.subtract(high, low, name="width"), tolerance, name="keep_going")

    interval = (graph.constant(1.0, name="lowest"), graph.constant(4.0, name="highest"))
    low, high = builder.do_while(is_wide, halve, interval, name="halve_the_interval")
    sets = {
        "coarse": {"target": np.float32(10), "tolerance": np.float32(0.5)},
        "fine": {"target": np.float32(10), "tolerance": np.float32(0.01)},
        "other_side": {"target": np.float32(50), "tolerance": np.float32(0.5)},
    }
    return Recipe(
        "bisection", graph.model({"low": low, "high": high, "guesses": guesses.tensor}), sets
    )


def _swap_recipe() -> Recipe:
    """Two carried values change places: the back edges cross, and no operation stands between
    Parameter and Result.
    """
    graph = Graph("swap")
    first, second, rounds = (
        graph.parameter("first", "f32", []),
        graph.parameter("second", "f32", []),
        graph.parameter("rounds", "i64", []),
    )
    lefts = Collected("lefts")

    def swap(number: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        lefts.append(left)
        return right, left

    left, right = builder.for_loop(rounds, swap, (first, second), name="swap_each_round")
    values = {"first": np.float32(1), "second": np.float32(2)}
    sets = {
        name: {**values, "rounds": np.int64(count)}
        for name, count in {"three_rounds": 3, "four_rounds": 4, "one_round": 1}.items()
    }
    return Recipe(
        "swap",
        graph.model({"left_at_the_end": left, "right_at_the_end": right, "lefts": lefts.tensor}),
        sets,
    )
