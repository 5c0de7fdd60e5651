"""Samples that show one thing each: a choice, slices, a walk backwards, an interval, a swap."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
from openvino import opset15

from engine import build
from engine.build import Collected, Graph, Tensor, ops
from sample_models.recipes.recipe import Recipe


def recipes() -> list[Recipe]:
    return [_if_recipe(), _slices_recipe(), _backwards_recipe(), _bisection_recipe(), _swap_recipe()]


def _if_recipe() -> Recipe:
    """The If example of the specification's page, with the surroundings that it needs to run."""
    graph = Graph("if_add")
    condition = graph.parameter("cond", "boolean", [])
    x, z, w = (graph.parameter(name, "f32", [2, 4]) for name in ("x", "z", "w"))
    made = build.cond(condition, lambda: ops.add(x, z), lambda: ops.add(x, w), name="if/cond")
    arrays = {
        "x": np.arange(8, dtype=np.float32).reshape(2, 4),
        "z": np.full((2, 4), 100, np.float32),
        "w": np.full((2, 4), -100, np.float32),
    }
    sets = {"true": {"cond": np.bool_(True), **arrays}, "false": {"cond": np.bool_(False), **arrays}}
    return Recipe("if_add", graph.model({"sum": made}), sets)


def _slices_recipe() -> Recipe:
    """Rows of a table in, smoothed rows out: one slice in and one slice out per iteration."""
    graph = Graph("slice_and_concatenate")
    readings, weight = graph.parameter("readings", "f32", [None, 3]), graph.parameter("weight", "f32", [])
    smoothed, row_numbers = Collected("smoothed"), Collected("row_numbers")

    def follow(smooth: Tensor, reading: Tensor) -> Tensor:
        change = ops.multiply(ops.subtract(reading, smooth, name="difference"), weight, name="change")
        next_smooth = ops.add(smooth, change, name="next_smooth")
        smoothed.extend(next_smooth)
        row_numbers.append(build.current_iteration("row"))
        return next_smooth

    start = graph.constant(np.zeros((1, 3), np.float32), name="zero_row")
    final = build.foldl(follow, readings, start, name="for_each_row")
    outputs = {"smoothed": smoothed.tensor, "row_numbers": row_numbers.tensor, "final": final}
    steps = np.repeat(np.array([[0, 10, 20]], np.float32), 6, axis=0)
    noise = np.random.default_rng(7).normal(0, 1, (4, 3)).astype(np.float32)
    sets = {
        "six_equal_rows": {"readings": steps, "weight": np.float32(0.5)},
        "four_noisy_rows": {"readings": noise, "weight": np.float32(0.25)},
    }
    return Recipe("slice_and_concatenate", graph.model(outputs), sets)


def _backwards_recipe() -> Recipe:
    """Discounted returns: what a reward is worth now needs the later ones first, so the TensorIterator walks backwards.

    With OpenVINO's own API: the builder makes Loops, and no TensorIterators.
    """
    rewards, discount = _input("rewards", [-1]), _input("discount", [])
    reward, future, factor = _input("reward", [1]), _input("future", [1]), _input("discount", [])
    discounted = opset15.multiply(future, factor, name="discounted_future")
    worth = opset15.result(opset15.add(reward, discounted, name="worth_now"), name="next_future_result")
    walk: Any = opset15.tensor_iterator()
    walk.set_friendly_name("from_last_to_first")
    walk.set_function(ov.Model([worth], [reward, future, factor], "from_last_to_first_body"))
    walk.set_sliced_input(reward, rewards.output(0), start=-1, stride=-1, part_size=1, end=0, axis=0)
    nothing = opset15.constant(np.zeros(1, np.float32), name="nothing_after")
    walk.set_merged_input(future, nothing.output(0), worth.output(0))
    walk.set_invariant_input(factor, discount.output(0))
    outputs = {
        "returns": walk.get_concatenated_slices(worth.output(0), -1, -1, 1, 0, 0),
        "first_return": walk.get_iter_value(worth.output(0), -1),
    }
    for name, value in outputs.items():
        value.get_tensor().add_names({name})
    results = [opset15.result(value, name=name) for name, value in outputs.items()]
    sets = {
        "prize_at_the_end": {"rewards": np.array([0, 0, 0, 0, 1], np.float32), "discount": np.float32(0.5)},
        "three_rewards": {"rewards": np.array([1, 2, 3], np.float32), "discount": np.float32(0.9)},
        "one_reward": {"rewards": np.array([7], np.float32), "discount": np.float32(0.9)},
    }
    return Recipe("walking_backwards", ov.Model(results, [rewards, discount], "walking_backwards"), sets)


def _input(name: str, shape: list[int]) -> ov.Node:
    node = opset15.parameter(ov.PartialShape(shape), ov.Type.f32, name=name)
    node.output(0).get_tensor().set_names({name})
    return node


def _bisection_recipe() -> Recipe:
    """Where x*x*x - x equals the target: each iteration an If keeps the half that holds the answer."""
    graph = Graph("bisection")
    target, tolerance = graph.parameter("target", "f32", []), graph.parameter("tolerance", "f32", [])
    guesses = Collected("guesses")

    def halve(low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        half = graph.constant(0.5, name="half")
        middle = ops.multiply(ops.add(low, high, name="sum"), half, name="middle")
        cube = ops.multiply(ops.multiply(middle, middle, name="square"), middle, name="cube")
        reached = ops.subtract(cube, middle, name="reached")
        too_low = ops.less(reached, target, name="is_too_low")
        halves = build.cond(too_low, lambda: (middle, high), lambda: (low, middle), name="which_half")
        guesses.append(middle)
        return halves

    def is_wide(low: Tensor, high: Tensor) -> Tensor:
        return ops.greater(ops.subtract(high, low, name="width"), tolerance, name="keep_going")

    interval = (graph.constant(1.0, name="lowest"), graph.constant(4.0, name="highest"))
    low, high = build.do_while(is_wide, halve, interval, name="halve_the_interval")
    sets = {
        "coarse": {"target": np.float32(10), "tolerance": np.float32(0.5)},
        "fine": {"target": np.float32(10), "tolerance": np.float32(0.01)},
        "other_side": {"target": np.float32(50), "tolerance": np.float32(0.5)},
    }
    return Recipe("bisection", graph.model({"low": low, "high": high, "guesses": guesses.tensor}), sets)


def _swap_recipe() -> Recipe:
    """Two carried values change places: the back edges cross, and no operation stands between Parameter and Result."""
    graph = Graph("swap")
    first, second, rounds = graph.parameter("first", "f32", []), graph.parameter("second", "f32", []), graph.parameter("rounds", "i64", [])
    lefts = Collected("lefts")

    def swap(number: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        lefts.append(left)
        return right, left

    left, right = build.for_loop(rounds, swap, (first, second), name="swap_each_round")
    values = {"first": np.float32(1), "second": np.float32(2)}
    sets = {name: {**values, "rounds": np.int64(count)} for name, count in {"three_rounds": 3, "four_rounds": 4, "one_round": 1}.items()}
    return Recipe("swap", graph.model({"left_at_the_end": left, "right_at_the_end": right, "lefts": lefts.tensor}), sets)
