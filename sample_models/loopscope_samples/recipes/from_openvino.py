"""A sample made with OpenVINO's own API, because the builder makes Loops and no TensorIterators:
a walk backwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
from openvino import opset15

from loopscope_samples.recipes.recipe import Recipe


def recipes() -> list[Recipe]:
    return [_backwards_recipe()]


def _backwards_recipe() -> Recipe:
    """Discounted returns: what a reward is worth now needs the later ones first, so the
    TensorIterator walks backwards.
    """
    rewards, discount = _input("rewards", [-1]), _input("discount", [])
    reward, future, factor = _input("reward", [1]), _input("future", [1]), _input("discount", [])
    discounted = opset15.multiply(future, factor, name="discounted_future")
    worth = opset15.result(
        opset15.add(reward, discounted, name="worth_now"), name="next_future_result"
    )
    walk: Any = opset15.tensor_iterator()
    walk.set_friendly_name("from_last_to_first")
    walk.set_function(ov.Model([worth], [reward, future, factor], "from_last_to_first_body"))
    walk.set_sliced_input(
        reward, rewards.output(0), start=-1, stride=-1, part_size=1, end=0, axis=0
    )
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
        "prize_at_the_end": {
            "rewards": np.array([0, 0, 0, 0, 1], np.float32),
            "discount": np.float32(0.5),
        },
        "three_rewards": {"rewards": np.array([1, 2, 3], np.float32), "discount": np.float32(0.9)},
        "one_reward": {"rewards": np.array([7], np.float32), "discount": np.float32(0.9)},
    }
    return Recipe(
        "walking_backwards", ov.Model(results, [rewards, discount], "walking_backwards"), sets
    )


def _input(name: str, shape: list[int]) -> ov.Node:
    node = opset15.parameter(ov.PartialShape(shape), ov.Type.f32, name=name)
    node.output(0).get_tensor().set_names({name})
    return node
