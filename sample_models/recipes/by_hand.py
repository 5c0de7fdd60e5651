"""Samples built node by node with OpenVINO's Python API."""

from __future__ import annotations

import numpy as np
from openvino import opset15 as ops

from sample_models.recipes.blocks import Iteration, branch, called, constant, model, parameter
from sample_models.recipes.recipe import Recipe


def recipes() -> list[Recipe]:
    return [_if_recipe(), _slices_recipe(), _backwards_recipe(), _bisection_recipe(), _swap_recipe()]


def _if_recipe() -> Recipe:
    """The If example of the specification's page, with the surroundings that it needs to run."""
    condition = parameter("cond", "boolean")
    x, z, w = (parameter(name, "f32", [2, 4]) for name in ("x", "z", "w"))
    bodies = []
    for other in ("add_z", "add_w"):
        left, right = parameter("add_x", "f32", [2, 4]), parameter(other, "f32", [2, 4])
        bodies.append(model(f"x_plus_{other[-1]}", {f"Identity_{other[-1]}": called("Add", ops.add(left, right))}, [left, right]))
    (result,) = branch("if/cond", condition, bodies[0], bodies[1], [(x, "add_x", "add_x"), (z, "add_z", None), (w, None, "add_w")])
    arrays = {
        "x": np.arange(8, dtype=np.float32).reshape(2, 4),
        "z": np.full((2, 4), 100, np.float32),
        "w": np.full((2, 4), -100, np.float32),
    }
    sets = {"true": {"cond": np.bool_(True), **arrays}, "false": {"cond": np.bool_(False), **arrays}}
    return Recipe("if_add", model("if_add", {"sum": result}, [condition, x, z, w]), sets)


def _slices_recipe() -> Recipe:
    """Rows of a table in, smoothed rows out: one slice in and one slice out per iteration."""
    table, weight = parameter("readings", "f32", [-1, 3]), parameter("weight", "f32")
    shape = called("shape_of_readings", ops.shape_of(table, "i64"))
    rows = called("number_of_rows", ops.gather(shape, constant("first", 0, np.int64), constant("axis", 0, np.int64)))
    loop = Iteration("for_each_row", rows, constant("start", True))
    reading = loop.sliced("reading", table)
    smooth = loop.carried("smooth", constant("zero_row", np.zeros((1, 3)), np.float32))
    pull, row = loop.invariant("weight", weight), loop.counter("row")
    change = called("change", ops.multiply(ops.subtract(reading, smooth, name="difference"), pull))
    next_smooth = called("next_smooth", ops.add(smooth, change))
    number = called("row_number", ops.unsqueeze(row, constant("new_axis", 0, np.int64)))
    loop.body(constant("keep_going", True), {"smooth": next_smooth}, {"rows": number})
    outputs = {"smoothed": loop.concatenated("next_smooth"), "row_numbers": loop.concatenated("rows"), "final": loop.last("next_smooth")}
    steps = np.repeat(np.array([[0, 10, 20]], np.float32), 6, axis=0)
    noise = np.random.default_rng(7).normal(0, 1, (4, 3)).astype(np.float32)
    sets = {
        "six_equal_rows": {"readings": steps, "weight": np.float32(0.5)},
        "four_noisy_rows": {"readings": noise, "weight": np.float32(0.25)},
    }
    return Recipe("slice_and_concatenate", model("slice_and_concatenate", outputs, [table, weight]), sets)


def _backwards_recipe() -> Recipe:
    """Discounted returns: what a reward is worth now needs the later ones first, so the TensorIterator walks backwards."""
    rewards, discount = parameter("rewards", "f32", [-1]), parameter("discount", "f32")
    walk = Iteration("from_last_to_first")
    reward = walk.sliced("reward", rewards, backwards=True)
    future = walk.carried("future", constant("nothing_after", [0.0], np.float32))
    factor = walk.invariant("discount", discount)
    worth = called("worth_now", ops.add(reward, ops.multiply(future, factor, name="discounted_future")))
    walk.body(None, {"future": worth})
    outputs = {"returns": walk.concatenated("next_future", backwards=True), "first_return": walk.last("next_future")}
    sets = {
        "prize_at_the_end": {"rewards": np.array([0, 0, 0, 0, 1], np.float32), "discount": np.float32(0.5)},
        "three_rewards": {"rewards": np.array([1, 2, 3], np.float32), "discount": np.float32(0.9)},
        "one_reward": {"rewards": np.array([7], np.float32), "discount": np.float32(0.9)},
    }
    return Recipe("walking_backwards", model("walking_backwards", outputs, [rewards, discount]), sets)


def _bisection_recipe() -> Recipe:
    """Where x*x*x - x equals the target: each iteration an If keeps the half that holds the answer."""
    target, tolerance = parameter("target", "f32"), parameter("tolerance", "f32")
    loop = Iteration("halve_the_interval", constant("no_limit", -1, np.int64), constant("start", True))
    low = loop.carried("low", constant("lowest", 1.0, np.float32))
    high = loop.carried("high", constant("highest", 4.0, np.float32))
    wanted, close = loop.invariant("target", target), loop.invariant("tolerance", tolerance)
    middle = called("middle", ops.multiply(ops.add(low, high, name="sum"), constant("half", 0.5, np.float32)))
    cube = called("cube", ops.multiply(ops.multiply(middle, middle, name="square"), middle))
    reached = called("reached", ops.subtract(cube, middle))
    too_low = called("is_too_low", ops.less(reached, wanted))
    bodies = []
    for side, keeps in (("upper", ("middle", "high")), ("lower", ("low", "middle"))):
        ports = {name: parameter(name, "f32") for name in keeps}
        bodies.append(model(f"keep_{side}_half", {f"{side}_low": ports[keeps[0]], f"{side}_high": ports[keeps[1]]}, list(ports.values())))
    halves = branch("which_half", too_low, bodies[0], bodies[1], [(middle, "middle", "middle"), (high, "high", None), (low, None, "low")])
    width = called("width", ops.subtract(halves[1], halves[0]))
    keep_going = called("keep_going", ops.greater(width, close))
    guess = called("guess_as_row", ops.unsqueeze(middle, constant("new_axis", 0, np.int64)))
    loop.body(keep_going, {"low": halves[0], "high": halves[1]}, {"guesses": guess})
    outputs = {"low": loop.last("next_low"), "high": loop.last("next_high"), "guesses": loop.concatenated("guesses")}
    sets = {
        "coarse": {"target": np.float32(10), "tolerance": np.float32(0.5)},
        "fine": {"target": np.float32(10), "tolerance": np.float32(0.01)},
        "other_side": {"target": np.float32(50), "tolerance": np.float32(0.5)},
    }
    return Recipe("bisection", model("bisection", outputs, [target, tolerance]), sets)


def _swap_recipe() -> Recipe:
    """Two carried values change places: the back edges cross, and no operation stands between Parameter and Result."""
    first, second, rounds = parameter("first", "f32"), parameter("second", "f32"), parameter("rounds", "i64")
    loop = Iteration("swap_each_round", rounds, constant("start", True))
    left, right = loop.carried("left", first), loop.carried("right", second)
    row = called("left_as_row", ops.unsqueeze(left, constant("new_axis", 0, np.int64)))
    loop.body(constant("keep_going", True), {"left": right, "right": left}, {"lefts": row})
    outputs = {"left_at_the_end": loop.last("next_left"), "right_at_the_end": loop.last("next_right"), "lefts": loop.concatenated("lefts")}
    values = {"first": np.float32(1), "second": np.float32(2)}
    sets = {name: {**values, "rounds": np.int64(count)} for name, count in {"three_rounds": 3, "four_rounds": 4, "one_round": 1}.items()}
    return Recipe("swap", model("swap", outputs, [first, second, rounds]), sets)
