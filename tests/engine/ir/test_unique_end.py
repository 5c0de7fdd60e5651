"""Addresses by their ends."""

from __future__ import annotations

import pytest

import engine
from engine import build
from engine.errors import AddressError
from engine.ir import full_address


@pytest.fixture(scope="module")
def model() -> engine.Model:
    graph = build.Graph("ends")
    x = graph.parameter("layers.0/attn/x", "f32", [2])
    other = graph.parameter("layers.1/attn/x", "f32", [2])

    def body(i: build.Tensor, v: build.Tensor) -> tuple[build.Tensor, build.Tensor]:
        return i + 1, build.ops.tanh(v, name="deep/Tanh")

    _, out = build.while_loop(lambda i, v: i < 2, body, (graph.constant(0), x), name="outer/loop")
    return graph.model({"out": out, "sum": build.ops.add(other, x, name="Sum")})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("main/Sum", "main/Sum"),
        ("Sum", "Sum"),
        ("layers.0/attn/x", "main/layers.0%2Fattn%2Fx"),
        ("main/layers.0/attn/x", "main/layers.0%2Fattn%2Fx"),
        ("layers.1%2Fattn%2Fx:0", "layers.1%2Fattn%2Fx:0"),
        ("deep/Tanh", "main/outer%2Floop/body/deep%2FTanh"),
        ("Tanh:0", "main/outer%2Floop/body/deep%2FTanh:0"),
        ("outer/loop[1]/body/deep/Tanh", "main/outer%2Floop[1]/body/deep%2FTanh"),
        ("loop[*]/body/Tanh", "loop[*]/body/Tanh"),
        ("loop[1]/body/deep/Tanh", "main/outer%2Floop[1]/body/deep%2FTanh"),
        ("ttn/x", "ttn/x"),
        ("nothing", "nothing"),
        ("[", "["),
    ],
)
def test_an_end_of_one_address_means_it(model: engine.Model, text: str, expected: str) -> None:
    assert full_address(model, text) == expected


@pytest.mark.parametrize(
    ("text", "said"), [("attn/x", "is the end of 2 addresses: main/layers.0"), ("deep[1]/Tanh", r"\[1\] stands inside the name")]
)
def test_what_means_several_or_none_is_refused(model: engine.Model, text: str, said: str) -> None:
    with pytest.raises(AddressError, match=said):
        full_address(model, text)
