"""Samples of training: models with their gradients, whose loops and branches are walked back by
other loops and branches.
"""

from __future__ import annotations

import numpy as np

import loopscope
from loopscope import builder
from loopscope.builder import Graph, Tensor, ops
from loopscope_samples.recipes.recipe import InputSet, Recipe


def recipes() -> list[Recipe]:
    return [
        _vanishing_recipe(),
        _gated_recipe(),
        _exploding_recipe(),
        _branch_recipe(),
        _truncated_recipe(),
        _diverging_recipe(),
    ]


def _vanishing_recipe() -> Recipe:
    """A recurrent network that hears something once and is asked for it after a long silence."""
    graph = Graph("vanishing_gradient")
    signal, target = graph.parameter("signal", "f32", [None]), graph.parameter("target", "f32", [])
    recurrent, weight = (
        graph.parameter("recurrent", "f32", []),
        graph.parameter("weight", "f32", []),
    )

    def hear(memory: Tensor, sound: Tensor) -> Tensor:
        kept = ops.multiply(memory, recurrent, name="kept")
        return ops.tanh(
            ops.add(kept, ops.multiply(sound, weight, name="heard"), name="sum"), name="next_memory"
        )

    memory = builder.foldl(
        hear, signal, graph.constant(np.zeros(1, np.float32), name="silence"), name="for_each_sound"
    )
    made = loopscope.gradients(
        graph.model({"loss": _loss(memory, target)}),
        of="loss",
        with_respect_to=["recurrent", "weight"],
    )
    rest = {"target": np.float32(1), "recurrent": np.float32(0.5), "weight": np.float32(1)}
    sets = {
        "silence_of_30": _once(30),
        "silence_of_5": _once(5),
        "nothing_heard": np.zeros(0, np.float32),
    }
    return Recipe(
        "vanishing_gradient",
        made,
        {name: {"signal": signal, **rest} for name, signal in sets.items()},
    )


def _gated_recipe() -> Recipe:
    """The same task for a cell as in an LSTM: what it keeps is multiplied by a gate that stands
    open, and goes through no tanh.
    """
    graph = Graph("gated_memory")
    signal, target = graph.parameter("signal", "f32", [None]), graph.parameter("target", "f32", [])
    gate_bias, weight = (
        graph.parameter("gate_bias", "f32", []),
        graph.parameter("weight", "f32", []),
    )

    def hear(memory: Tensor, sound: Tensor) -> Tensor:
        loudness = ops.abs(sound, name="loudness")
        forget_gate = ops.sigmoid(
            ops.subtract(gate_bias, loudness, name="silence_keeps"), name="forget_gate"
        )
        candidate = ops.tanh(ops.multiply(sound, weight, name="heard"), name="candidate")
        return ops.add(
            ops.multiply(memory, forget_gate, name="kept"), candidate, name="next_memory"
        )

    memory = builder.foldl(
        hear, signal, graph.constant(np.zeros(1, np.float32), name="silence"), name="for_each_sound"
    )
    made = loopscope.gradients(
        graph.model({"loss": _loss(memory, target)}),
        of="loss",
        with_respect_to=["gate_bias", "weight"],
    )
    rest = {"target": np.float32(1), "weight": np.float32(1)}
    sets = {
        "gate_open": {"signal": _once(30), "gate_bias": np.float32(5)},
        "gate_half_open": {"signal": _once(30), "gate_bias": np.float32(0)},
        "silence_of_5": {"signal": _once(5), "gate_bias": np.float32(5)},
    }
    return Recipe("gated_memory", made, {name: {**one, **rest} for name, one in sets.items()})


def _exploding_recipe() -> Recipe:
    """One step of training of a network whose memory grows: the step is too long by as much as
    the gradient exploded.
    """
    graph = Graph("exploding_gradient")
    signal, target = graph.parameter("signal", "f32", [None]), graph.parameter("target", "f32", [])
    recurrent, learning_rate = (
        graph.parameter("recurrent", "f32", []),
        graph.parameter("learning_rate", "f32", []),
    )

    def hear(memory: Tensor, sound: Tensor) -> Tensor:
        return ops.add(ops.multiply(memory, recurrent, name="kept"), sound, name="next_memory")

    memory = builder.foldl(
        hear, signal, graph.constant(np.zeros(1, np.float32), name="silence"), name="for_each_sound"
    )
    loss = _loss(memory, target)
    (gradient,) = builder.gradients([loss], [recurrent])
    step = ops.multiply(gradient, learning_rate, name="step")
    outputs = {
        "loss": loss,
        "gradient": gradient,
        "trained": ops.subtract(recurrent, step, name="trained"),
    }
    rest = {"target": np.float32(2), "learning_rate": np.float32(0.01)}
    sets = {
        "grows_by_half": {"signal": _once(29), "recurrent": np.float32(1.5)},
        "stays": {"signal": _once(29), "recurrent": np.float32(1)},
        "short": {"signal": _once(3), "recurrent": np.float32(1.5)},
    }
    return Recipe(
        "exploding_gradient",
        graph.model(outputs),
        {name: {**one, **rest} for name, one in sets.items()},
    )


def _branch_recipe() -> Recipe:
    """Two experts, one of which answers: only that one learns."""
    graph = Graph("branch_not_taken")
    x, target = graph.parameter("x", "f32", []), graph.parameter("target", "f32", [])
    warm, cold = (
        graph.parameter("warm_weight", "f32", []),
        graph.parameter("cold_weight", "f32", []),
    )
    is_warm = ops.greater(x, graph.constant(0.0, name="freezing"), name="is_warm")
    answer = builder.cond(
        is_warm,
        lambda: ops.multiply(x, warm, name="warm_answer"),
        lambda: ops.multiply(x, cold, name="cold_answer"),
        name="choose_expert",
    )
    forward = graph.model({"loss": _loss(answer, target)})
    made = loopscope.gradients(forward, of="loss", with_respect_to=["warm_weight", "cold_weight"])
    rest = {
        "target": np.float32(1),
        "warm_weight": np.float32(0.25),
        "cold_weight": np.float32(0.25),
    }
    sets = {
        "warm": {"x": np.float32(2)},
        "cold": {"x": np.float32(-2)},
        "freezing": {"x": np.float32(0)},
    }
    return Recipe("branch_not_taken", made, {name: {**one, **rest} for name, one in sets.items()})


def _truncated_recipe() -> Recipe:
    """A leaky sum that learns from its last iterations only: those before use a copy of the
    weight that is not differentiated.
    """
    graph = Graph("truncated_training")
    signal, target = graph.parameter("signal", "f32", [None]), graph.parameter("target", "f32", [])
    weight, window = graph.parameter("weight", "f32", []), graph.parameter("window", "i64", [])
    learns = ops.multiply(weight, graph.constant(1.0, name="one"), name="learning_weight")
    length = ops.squeeze(
        ops.shape_of(signal, name="shape"), graph.constant([0], name="first"), name="length"
    )
    begins = ops.subtract(length, window, name="window_begins")
    decay = graph.constant(0.9, name="decay")

    def hear(memory: Tensor, sound: Tensor) -> Tensor:
        is_in_window = ops.greater_equal(
            builder.current_iteration("iteration"), begins, name="is_in_window"
        )
        used = ops.select(is_in_window, learns, weight, name="used_weight")
        return ops.add(
            ops.multiply(memory, decay, name="kept"),
            ops.multiply(sound, used, name="heard"),
            name="next_memory",
        )

    memory = builder.foldl(
        hear, signal, graph.constant(np.zeros(1, np.float32), name="silence"), name="for_each_sound"
    )
    forward = graph.model({"loss": _loss(memory, target)})
    made = loopscope.gradients(forward, of="loss", with_respect_to=["learning_weight", "weight"])
    rest: InputSet = {"target": np.float32(20), "weight": np.float32(1)}
    sets = {
        "last_5_of_20": {"signal": np.ones(20, np.float32), "window": np.int64(5)},
        "all_20": {"signal": np.ones(20, np.float32), "window": np.int64(20)},
        "one_sound_long_ago": {"signal": _once(19), "window": np.int64(5)},
        "last_5_of_8": {"signal": np.ones(8, np.float32), "window": np.int64(5)},
    }
    return Recipe("truncated_training", made, {name: {**one, **rest} for name, one in sets.items()})


def _diverging_recipe() -> Recipe:
    """Training inside the graph: each iteration differentiates the loss of its own weight and
    takes a step.
    """
    graph = Graph("diverging_training")
    weight, learning_rate = (
        graph.parameter("weight", "f32", []),
        graph.parameter("learning_rate", "f32", []),
    )
    most_steps = graph.parameter("most_steps", "i64", [])

    def train(step: Tensor, weight: Tensor, losses: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        loss = ops.power(weight, graph.constant(4.0, name="fourth"), name="loss")
        (gradient,) = builder.gradients(loss, weight, name="gradient")
        change = ops.multiply(learning_rate, gradient, name="change")
        listed = ops.unsqueeze(loss, graph.constant([0], name="first_axis"), name="listed")
        return (
            ops.add(step, graph.constant(np.int64(1), name="one"), name="next_step"),
            ops.subtract(weight, change, name="next_weight"),
            ops.concat([losses, listed], axis=0, name="next_losses"),
        )

    _, trained, losses = builder.while_loop(
        lambda step, *_: ops.less(step, most_steps, name="steps_left"),
        train,
        (
            graph.constant(np.int64(0), name="first_step"),
            weight,
            graph.constant(np.zeros(0, np.float32), name="no_losses"),
        ),
        shape_invariants=([], [], [None]),
        name="while_training",
    )
    sets = {"too_fast": (0.75, 8), "careful": (0.1, 6)}
    return Recipe(
        "diverging_training",
        graph.model({"trained_weight": trained, "losses": losses}),
        {
            name: {
                "weight": np.float32(1),
                "learning_rate": np.float32(rate),
                "most_steps": np.int64(steps),
            }
            for name, (rate, steps) in sets.items()
        },
    )


def _loss(value: Tensor, target: Tensor) -> Tensor:
    """Half of the squared distance, whose gradient is the distance."""
    graph = value.graph
    error = ops.subtract(value, target, name="error")
    squared = ops.multiply(error, error, name="squared")
    each = ops.multiply(squared, graph.constant(0.5, name="half"), name="half_squared")
    return (
        each
        if value.rank == 0
        else ops.reduce_sum(each, graph.constant([0], name="all_axes"), name="loss_value")
    )


def _once(silence: int) -> np.ndarray:
    """One sound, and then so many silent moments."""
    return np.concatenate([np.ones(1, np.float32), np.zeros(silence, np.float32)])
