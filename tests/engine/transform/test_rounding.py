"""A run with values rounded: stepped, generated and replayed alike, and the same as a cell
written in numpy that rounds.
"""

from __future__ import annotations

from collections.abc import Mapping

import ml_dtypes
import numpy as np
import pytest
from onnx import parser

import loopscope
from loopscope import builder
from loopscope.errors import AddressError, InputError
from loopscope.ir.address import nodes
from loopscope.ops.quantization import ROUND_TO, round_to
from loopscope.read import read_model
from loopscope.transform.rounding import rounded
from loopscope_samples import FOLDER
from loopscope_samples.recipes import hybrid_stack, linear_attention

MODEL = loopscope.read_model(FOLDER / "linear_attention" / "model.xml")
STATE = "main/for_each_token/body/S"


def run(
    model: loopscope.Model,
    inputs: Mapping[str, np.ndarray],
    rounding: Mapping[str, str],
    *,
    stepped: bool = False,
) -> loopscope.Debugger:
    debugger = loopscope.Debugger(model, inputs, rounding=rounding)
    while stepped and debugger.state == "paused":
        debugger.step()
    debugger.run()
    assert debugger.state == "finished", debugger.failure
    return debugger


def attention(inputs: Mapping[str, np.ndarray], to: str) -> tuple[np.ndarray, list[np.ndarray]]:
    """The layer in numpy, its state rounded in every token; the output, and each token's state
    as it is read.
    """
    state, outs, states = inputs["state"], [], []
    for token in range(inputs["value"].shape[2]):
        q, k, v, g, beta = (
            inputs[name][:, :, token] for name in ("query", "key", "value", "g", "beta")
        )
        state = round_to(state, to=to)
        states.append(state)
        state = state * np.exp(g)[..., None, None]
        delta = (v - np.sum(state * k[..., None], -2)) * beta[..., None]
        state = state + k[..., None] * delta[..., None, :]
        outs.append(np.sum(state * (q / np.sqrt(np.float32(q.shape[-1])))[..., None], -2))
    return np.stack(outs, 2), states


@pytest.mark.parametrize("to", ["bf16", "f16", "int8", "int4"])
def test_a_carried_state_is_rounded_in_every_iteration(to: str) -> None:
    inputs = linear_attention.inputs(30, seed=4)
    expected, states = attention(inputs, to)
    for stepped in (False, True):
        debugger = run(MODEL, inputs, {"main/*/S": to}, stepped=stepped)
        # A state that lies between two steps may go either way; with these inputs none does.
        np.testing.assert_allclose(debugger.result.outputs[0], expected, rtol=1e-4, atol=1e-5)
        for token in (17, 3, 29):
            seen = debugger.value(f"main/for_each_token[{token}]/body/S")
            np.testing.assert_allclose(seen, states[token], rtol=1e-4, atol=1e-5)
    plain = run(MODEL, inputs, {})
    assert np.abs(plain.result.outputs[0] - expected).max() > 1e-4


def test_time_travel_in_a_rounded_run() -> None:
    debugger = run(MODEL, linear_attention.inputs(12, seed=2), {STATE: "bf16"})
    debugger.seek("main/for_each_token[5]/body/memory")
    state = debugger.value("main/for_each_token/body/S")
    np.testing.assert_array_equal(state, state.astype(ml_dtypes.bfloat16).astype(np.float32))
    before = debugger.value("main/for_each_token/body/S before rounding")
    assert np.any(before != state)
    np.testing.assert_array_equal(state, round_to(before, to="bf16"))
    debugger.step_back()
    assert debugger.cursor.step > 0


def weighed() -> loopscope.Model:
    graph = builder.Graph("weighed")
    x = graph.parameter("x", "f32", [3])
    weight = graph.constant(np.array([0.1, 0.2, 0.3], np.float32), name="weight")

    def body(i: builder.Tensor, v: builder.Tensor) -> tuple[builder.Tensor, builder.Tensor]:
        return i + 1, v * weight + 1.0

    return graph.model(builder.while_loop(lambda i, _: i < 3, body, [graph.constant(0), x])[1])


def test_a_constant_is_rounded_in_place() -> None:
    model = weighed()
    made = rounded(model, {"main/weight": "bf16"})
    assert len(made.graph.nodes) == len(model.graph.nodes)
    weight, value = (
        np.array([0.1, 0.2, 0.3], np.float32).astype(ml_dtypes.bfloat16).astype(np.float32),
        np.ones(3, np.float32),
    )
    for _ in range(3):
        value = value * weight + np.float32(1)
    np.testing.assert_array_equal(
        loopscope.run(made, {"x": np.ones(3, np.float32)}).outputs[0], value
    )


def _addresses(model: loopscope.Model) -> set[str]:
    return {address for address, _ in nodes(model)}


REPEATED = """<ir_version: 8, opset_import: ["" : 17]>
    repeated (int64 count, float[3] x) => (float[3] y) {
      always = Constant <value = bool {1}> ()
      [same] a = Abs (x)
      [same] b = Exp (a)
      [later] c = Add (a, b)
      y = Loop (count, always, c) <body = step (int64 i, bool go, float[3] v) => (bool again, float[3] w) {
        again = Identity (go)
        third = Constant <value = float {0.3333}> ()
        [same] s = Mul (v, third)
        [same] w = Abs (s)
      }>
    }"""


def test_addresses_of_a_rounded_model_are_those_of_the_model() -> None:
    """Also of nodes of one name, whose addresses have their numbers, and of names that what is
    added would have.
    """
    proto = parser.parse_model(REPEATED)
    next(node for node in proto.graph.node if node.name == "later").name = "same before rounding"
    model = read_model(proto.SerializeToString())
    before = _addresses(model)
    repeated = sorted(one for one in before if "~" in one)
    assert len(repeated) >= 4
    inputs = {"count": np.array(3), "x": np.array([1, 2, 3], np.float32)}
    plain = run(model, inputs, {})
    for rounding in ({"*": "bf16"}, {repeated[0]: "f16"}, {"main/*/v": "f8e4m3"}):
        assert before <= _addresses(rounded(model, rounding))
        other = run(model, inputs, rounding)
        drift = loopscope.drift(plain, other)
        assert all(pair.one == pair.other and pair.how == "name" for pair in drift.pairs)
        assert not drift.unmatched[0]
        for address in before:
            assert np.shape(other.value(address)) == np.shape(plain.value(address))


def test_the_last_pattern_that_names_a_value_counts() -> None:
    made = rounded(weighed(), {"*": "bf16", "main/weight": "f16"})
    (weight,) = [node for node in made.graph.nodes if node.name == "weight"]
    assert weight.constant is not None
    np.testing.assert_array_equal(
        weight.constant.array(), np.array([0.1, 0.2, 0.3], np.float16).astype(np.float32)
    )


def test_onnx() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    carried (int64 count, float[3] x) => (float[3] y) {
      always = Constant <value = bool {1}> ()
      y = Loop (count, always, x) <body = step (int64 i, bool go, float[3] v) => (bool again, float[3] w) {
        again = Identity (go)
        third = Constant <value = float {0.3333}> ()
        w = Mul (v, third)
      }>
    }"""
    model = read_model(parser.parse_model(text).SerializeToString())
    inputs = {"count": np.array(4), "x": np.array([1, 2, 3], np.float32)}
    value = inputs["x"]
    for _ in range(4):
        value = (value.astype(np.float16).astype(np.float32) * np.float32(0.3333)).astype(
            np.float32
        )
    np.testing.assert_array_equal(run(model, inputs, {"main/*/v": "f16"}).result.outputs[0], value)


def test_the_whole_model() -> None:
    inputs = linear_attention.inputs(12, seed=2)
    debugger = run(MODEL, inputs, {"*": "bf16"})
    for name in ("S", "memory", "delta", "new_state"):
        value = debugger.value(f"main/for_each_token[7]/body/{name}")
        np.testing.assert_array_equal(value, value.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert [one.name for one in debugger.model.outputs] == [one.name for one in MODEL.outputs]
    assert [one.names for one in debugger.model.outputs] == [one.names for one in MODEL.outputs]


STACK = loopscope.read_model(FOLDER / "hybrid_stack" / "model.xml")


@pytest.mark.parametrize(
    ("pattern", "layers"),
    [
        ("main/*/S", (0, 1, 3)),
        ("main/*/for_each_token/body/layers.*/S", (0, 1, 3)),
        ("for_each_token/*S", (0, 1, 3)),
        ("main/layers.*/linear_attn/*/S", (0, 3)),
        ("layers.*/linear_attn/for_each_token · every iteration › S", (0, 3)),
    ],
)
def test_a_pattern_means_names_with_scopes_too(pattern: str, layers: tuple[int, ...]) -> None:
    """Addresses write the slashes of a name as %2F; who writes a pattern reads slashes."""
    scopes = [f"layers.{layer}%2F{'mamba' if layer == 1 else 'linear_attn'}" for layer in layers]
    states = {f"main/{scope}%2Ffor_each_token/body/{scope}%2FS" for scope in scopes}
    made = rounded(STACK, {pattern: "bf16"})
    assert {
        address.removesuffix(" rounded")
        for address, node in nodes(made)
        if node.type == ROUND_TO.name
    } == states
    debugger = run(STACK, hybrid_stack.prompt(6, seed=1), {pattern: "bf16"})
    for address in states:
        value = debugger.value(address.replace("/body/", "[3]/body/"))
        np.testing.assert_array_equal(value, value.astype(ml_dtypes.bfloat16).astype(np.float32))


@pytest.mark.parametrize(
    "text",
    ["S", "for_each_token › S", "for_each_token · every iteration › S", "for_each_token/S:0"],
)
def test_an_end_of_an_address_in_any_form_is_a_pattern(text: str) -> None:
    inputs = linear_attention.inputs(4, seed=4)
    expected = run(MODEL, inputs, {STATE: "bf16"}).result.outputs[0]
    np.testing.assert_array_equal(run(MODEL, inputs, {text: "bf16"}).result.outputs[0], expected)


def test_an_end_of_several_addresses_is_refused_with_some_of_them() -> None:
    with pytest.raises(AddressError, match="is the end of 2 addresses: layers"):
        rounded(STACK, {"linear_attn/for_each_token/S": "bf16"})


@pytest.mark.parametrize(
    ("pattern", "to", "error", "told"),
    [
        ("main/*/nothing", "bf16", AddressError, "matches no float value"),
        ("main/tokens", "bf16", AddressError, "matches no float value"),  # integers
        ("main/*/S", "fp4", InputError, "expected bf16, f16"),
    ],
)
def test_what_cannot_be_rounded_is_refused(
    pattern: str, to: str, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        loopscope.Debugger(MODEL, linear_attention.inputs(1, seed=0), rounding={pattern: to})
