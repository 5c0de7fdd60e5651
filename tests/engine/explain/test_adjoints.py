"""Backpropagation that is looked at: the numbers against numpy's own backward walks, the
verdicts as sentences.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.tensor import Tensor
from loopscope.errors import AddressError, ValueUnavailable
from loopscope.explain import branches_of, walked_back, walks_of
from loopscope.explain.adjoint_verdict import fate
from loopscope.explain.history import history

SAMPLES = Path("sample_models")


def _of_sample(name: str, inputs: str) -> loopscope.Debugger:
    folder = SAMPLES / name
    run = loopscope.Debugger(
        loopscope.read_model(folder / "model.xml"),
        dict(np.load(folder / "inputs" / f"{inputs}.npz")),
    )
    run.run()
    return run


def _backward(
    model: loopscope.Model, of: str, wrt: list[str], inputs: list[Any]
) -> loopscope.Debugger:
    run = loopscope.Debugger(loopscope.gradients(model, of, wrt), inputs)
    run.run()
    return run


def _looped(
    body: Callable[[Tensor, Tensor], Any], count: int, name: str = "loop"
) -> loopscope.Model:
    graph = builder.Graph("looped")
    x = graph.parameter("x", "f64", [2])
    (last,) = builder.for_loop(count, body, [x], name=name)
    return graph.model({"loss": ops.reduce_sum(last, [0])})


VERDICTS = [
    (
        "vanishing_gradient",
        "silence_of_30",
        "vanishes: from 1 at the end to 1.6e-10 in iteration 0; it halves per iteration",
    ),
    (
        "vanishing_gradient",
        "silence_of_5",
        "flows: from 0.98 at the end to 0.0053 in iteration 0; it shrinks to 0.44 of its size per iteration",
    ),
    ("vanishing_gradient", "nothing_heard", "does not flow: there was no iteration"),
    (
        "gated_memory",
        "gate_open",
        "flows: from 0.38 at the end to 0.3 in iteration 0; it shrinks to 0.99 of its size per iteration",
    ),
    (
        "gated_memory",
        "gate_half_open",
        "vanishes: from 1 at the end to 2.5e-10 in iteration 0; it halves per iteration",
    ),
    (
        "exploding_gradient",
        "grows_by_half",
        "explodes: from 127832 at the end to 2.5e10 in iteration 0; it grows 1.5 times per iteration",
    ),
    (
        "exploding_gradient",
        "stays",
        "flows: from 1 at the end to 1 in iteration 0; it stays about the same",
    ),
]


@pytest.mark.parametrize(
    ("sample", "inputs", "sentence"), VERDICTS, ids=lambda one: one.split(":")[0].replace(" ", "_")
)
def test_the_verdict_on_an_adjoint(sample: str, inputs: str, sentence: str) -> None:
    (walk,) = walks_of(_of_sample(sample, inputs))
    assert [one.sentence for one in walk.adjoints] == [sentence]


def test_the_norms_are_those_of_numpy() -> None:
    run = _of_sample("vanishing_gradient", "silence_of_30")
    (walk,) = walks_of(run)
    memory = history(run, "main/for_each_sound/body/memory").scalars
    assert memory is not None
    after = np.append(memory[1:], run.value("main/for_each_sound"))
    expected = [float(after[-1] - 1)]
    for value in after[::-1]:
        expected.append(expected[-1] * (1 - value**2) * 0.5)
    np.testing.assert_array_equal(walk.adjoints[0].places, np.arange(32))
    np.testing.assert_allclose(walk.adjoints[0].norms, np.abs(expected[::-1]), rtol=1e-5)
    held = history(run, walk.adjoints[0].address).scalars
    assert held is not None
    np.testing.assert_allclose(np.abs(held[::-1]), walk.adjoints[0].norms[1:], rtol=1e-7)


def test_an_iteration_walks_back_the_one_that_many_from_the_end() -> None:
    run = _of_sample("vanishing_gradient", "silence_of_30")
    (walk,) = walks_of(run)
    assert (
        walk.sentence
        == "`backward/for_each_sound/Loop` computes the gradient of `for_each_sound`: its iteration 0 belongs to iteration 30, the last of 31."
    )
    assert [walk.mirrored(one) for one in (0, 28, 30)] == [30, 2, 0]
    sounds = [
        history(run, f"main/{loop}/body/sound").column
        for loop in ("for_each_sound", "backward%2Ffor_each_sound%2FLoop")
    ]
    assert sounds[0] is not None
    assert sounds[1] is not None
    np.testing.assert_array_equal(sounds[1], sounds[0][::-1])


def test_what_each_iteration_contributes_to_a_weight() -> None:
    (walk,) = walks_of(_of_sample("truncated_training", "last_5_of_20"))
    learning, other = walk.contributions
    assert (learning.name, learning.sentence) == (
        "learning_weight",
        "only iterations 15 to 19 contribute; iteration 19 contributes most, 24% of it",
    )
    assert (
        other.sentence
        == "only iterations 0 to 14 contribute; iteration 14 contributes most, 13% of it"
    )
    distance = float(np.polyval(np.ones(20), 0.9)) - 20
    np.testing.assert_allclose(
        learning.norms,
        [0.0] * 15 + [abs(distance) * 0.9**each for each in (4, 3, 2, 1, 0)],
        rtol=1e-5,
    )
    assert learning.shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("batch", [1, 6], ids=["one_product_after_the_loop", "a_running_sum"])
def test_contributions_to_a_matrix_are_the_products_of_its_iterations(batch: int) -> None:
    """With few rows the loop only joins the factors, and each iteration's product is made when
    it is looked at.
    """
    graph = builder.Graph("recurrent")
    xs, w = graph.parameter("xs", "f64", [5, batch, 8]), graph.parameter("w", "f64", [8, 8])
    h = builder.foldl(lambda h, x: ops.tanh(x + h @ w), xs, np.zeros((batch, 8)), name="steps")
    random = np.random.default_rng(batch)
    sequence, weight = random.normal(size=(5, batch, 8)), random.normal(size=(8, 8)) / 4
    run = _backward(
        graph.model({"loss": ops.reduce_sum(h, [0, 1])}), "loss", ["w"], [sequence, weight]
    )
    states = [np.zeros((batch, 8))]
    for step in sequence:
        states.append(np.tanh(step + states[-1] @ weight))
    adjoint, parts = np.ones((batch, 8)), list[np.ndarray]()
    for before, after in zip(states[-2::-1], states[:0:-1], strict=True):
        slope = adjoint * (1 - after**2)
        parts.insert(0, before.T @ slope)
        adjoint = slope @ weight.T
    (walk,) = walks_of(run)
    (found,) = walk.contributions
    assert found.name == "w"
    np.testing.assert_allclose(found.norms, [np.linalg.norm(part) for part in parts], rtol=1e-12)
    whole = np.sum(parts, axis=0)
    np.testing.assert_allclose(
        found.shares, [(part * whole).sum() / (whole**2).sum() for part in parts], rtol=1e-12
    )
    np.testing.assert_allclose(walk.adjoints[0].norms[0], np.linalg.norm(adjoint), rtol=1e-12)


def _cut_by_a_relu(i: Tensor, x: Tensor) -> Tensor:
    return (
        ops.relu(x - ops.select(ops.equal(i, 4), np.float64(100), np.float64(0.01)), name="ReLU_3")
        + 1.0
    )


def _cut_by_a_zero(i: Tensor, x: Tensor) -> Tensor:
    gate = ops.select(ops.equal(i, 2), np.float64(0), np.float64(1), name="gate")
    return ops.multiply(x, gate, name="gated") + 1.0


def _cut_by_a_branch(i: Tensor, x: Tensor) -> Any:
    return builder.cond(
        ops.not_equal(i, 3),
        lambda: x * 2.0,
        lambda: ops.broadcast(np.float64(7), [2]),
        name="choice",
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (_cut_by_a_relu, "is cut off in iteration 4: `ReLU_3` was not positive"),
        (_cut_by_a_zero, "is cut off in iteration 2: `gated` takes `gate`, which was 0"),
        (
            _cut_by_a_branch,
            "is cut off in iteration 3: only the else branch ran, and `x` is used in then",
        ),
    ],
)
def test_what_cuts_an_adjoint_off(body: Callable[[Tensor, Tensor], Any], sentence: str) -> None:
    run = _backward(_looped(body, 6), "loss", ["x"], [np.array([0.5, 0.25])])
    (walk,) = walks_of(run)
    assert [one.sentence for one in walk.adjoints] == [sentence]


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ("warm", "does not flow: only the then branch ran, and `cold_weight` is used in else"),
        ("cold", "does not flow: only the else branch ran, and `warm_weight` is used in then"),
    ],
)
def test_a_branch_that_did_not_run_gets_nothing(inputs: str, sentence: str) -> None:
    (found,) = branches_of(_of_sample("branch_not_taken", inputs))
    assert (found.forward, found.sentence) == ("main/choose_expert", sentence)


def test_a_weight_of_a_branch_that_never_ran_in_a_loop() -> None:
    graph = builder.Graph("weights")
    x, w = graph.parameter("x", "f64", [2]), graph.parameter("w", "f64", [])

    def body(i: Tensor, h: Tensor) -> Any:
        return builder.cond(
            ops.greater(ops.reduce_sum(h, [0]), 100.0),
            lambda: h * w,
            lambda: h * 1.5,
            name="choice",
        )

    (last,) = builder.for_loop(3, body, [x], name="loop")
    run = _backward(
        graph.model({"loss": ops.reduce_sum(last, [0])}),
        "loss",
        ["x", "w"],
        [np.ones(2), np.float64(3)],
    )
    (walk,) = walks_of(run)
    assert [(one.name, one.sentence) for one in walk.contributions] == [
        ("w", "does not flow: only the else branch ran, and `w` is used in then")
    ]


def test_a_loop_whose_result_no_branch_used() -> None:
    graph = builder.Graph("unused")
    x = graph.parameter("x", "f64", [2])
    (last,) = builder.for_loop(3, lambda i, h: ops.tanh(h), [x], name="loop")
    loss = builder.cond(
        ops.greater(ops.reduce_sum(x, [0]), 0.0),
        lambda: ops.reduce_sum(x, [0]),
        lambda: ops.reduce_sum(last, [0]),
        name="choice",
    )
    (walk,) = walks_of(_backward(graph.model({"loss": loss}), "loss", ["x"], [np.ones(2)]))
    assert (
        walk.adjoints[0].sentence
        == "does not flow: only the then branch ran, and `loop` is used in else"
    )


def test_the_loop_is_found_from_either_side_and_at_a_place_in_an_outer_loop() -> None:
    graph = builder.Graph("nested")
    x = graph.parameter("x", "f64", [2])

    def outer(i: Tensor, h: Tensor) -> Any:
        (inner,) = builder.for_loop(2, lambda j, g: g * 0.5, [h], name="inner")
        return inner

    (last,) = builder.for_loop(3, outer, [x], name="outer")
    run = _backward(graph.model({"loss": ops.reduce_sum(last, [0])}), "loss", ["x"], [np.ones(2)])
    assert (
        walked_back(run, "main/outer").backward
        == walked_back(run, "main/backward%2Fouter%2FLoop").backward
    )
    for address in (
        "main/backward%2Fouter%2FLoop[2]/body/backward%2Finner%2FLoop",
        "main/outer[0]/body/inner",
    ):
        inside = walked_back(run, address)
        assert inside.forward == "main/outer[0]/body/inner"
        assert inside.backward == "main/backward%2Fouter%2FLoop[2]/body/backward%2Finner%2FLoop"
        np.testing.assert_allclose(
            inside.adjoints[0].norms, np.sqrt(2) * np.array([0.5**6, 0.5**5, 0.5**4])
        )
    with pytest.raises(AddressError, match="is not part of a forward/backward loop pair"):
        walked_back(run, "main/loss")


def test_before_the_way_back_has_begun() -> None:
    model = loopscope.read_model(SAMPLES / "vanishing_gradient" / "model.xml")
    run = loopscope.Debugger(
        model, dict(np.load(SAMPLES / "vanishing_gradient" / "inputs" / "silence_of_5.npz"))
    )
    assert walks_of(run) == ()
    with pytest.raises(ValueUnavailable, match="has not run yet"):
        walked_back(run, "main/for_each_sound")


def test_half_of_the_way_back() -> None:
    model = loopscope.read_model(SAMPLES / "vanishing_gradient" / "model.xml")
    run = loopscope.Debugger(
        model, dict(np.load(SAMPLES / "vanishing_gradient" / "inputs" / "silence_of_5.npz"))
    )
    loop = "main/backward%2Ffor_each_sound%2FLoop"
    while not run.cursor.address.startswith(f"{loop}[3]/body"):
        run.step_into()
    walk = walked_back(run, loop)
    assert (walk.count, walk.walked) == (6, 4)
    assert list(walk.adjoints[0].places) == [3, 4, 5, 6]


def test_a_growing_adjoint_ends_in_infinity_and_then_in_nan() -> None:
    places = np.arange(5)[::-1]
    assert (
        fate(places, np.array([1.0, 1e20, np.inf, np.inf, np.nan]), 4, 1e-38).words()
        == "explodes: from 1 at the end to infinity in iteration 2"
    )
    assert (
        fate(places, np.array([1.0, 2.0, np.nan, np.nan, np.nan]), 4, 1e-38).words()
        == "is not a number from iteration 2 back"
    )


def test_what_is_too_small_for_its_type_has_vanished_and_is_not_cut_off() -> None:
    norms = np.array([1.0, 1e-12, 1e-24, 1e-37, 0.0, 0.0])
    assert fate(np.arange(6)[::-1], norms, 5, 1e-38).words() == (
        "vanishes: from 1 at the end to 0 in iteration 1; it shrinks to 5e-13 of its size per iteration"
    )
