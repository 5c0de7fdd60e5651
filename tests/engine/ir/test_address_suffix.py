"""Addresses by their ends."""

from __future__ import annotations

import contextlib
from pathlib import Path

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopscope
from loopscope import builder
from loopscope.errors import AddressError
from loopscope.ir import full_address, readable
from loopscope.ir.address import nodes


@pytest.fixture(scope="module")
def model() -> loopscope.Model:
    graph = builder.Graph("ends")
    x = graph.parameter("layers.0/attn/x", "f32", [2])
    other = graph.parameter("layers.1/attn/x", "f32", [2])

    def body(i: builder.Tensor, v: builder.Tensor) -> tuple[builder.Tensor, builder.Tensor]:
        return i + 1, builder.ops.tanh(builder.ops.tanh(v, name="outer/y"), name="deep/Tanh")

    _, out = builder.while_loop(lambda i, v: i < 2, body, (graph.constant(0), x), name="outer/loop")
    return graph.model({"out": out, "sum": builder.ops.add(other, x, name="Sum")})


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
        ("layers.0/attn › x", "main/layers.0%2Fattn%2Fx"),
        ("layers.1/attn › x · output 0", "main/layers.1%2Fattn%2Fx:0"),
        ("outer › loop · iteration 1 › deep › Tanh", "main/outer%2Floop[1]/body/deep%2FTanh"),
        ("loop · every iteration › deep › Tanh", "main/outer%2Floop[*]/body/deep%2FTanh"),
        ("loop[1]/deep/Tanh", "main/outer%2Floop[1]/body/deep%2FTanh"),
        ("loop · iteration 1, the last of 2", "main/outer%2Floop[1]"),
        (" outer/loop ", "main/outer%2Floop"),
        ("loop · iteration 1 › outer/y", "main/outer%2Floop[1]/body/outer%2Fy"),
        ("loop · iteration 1 › y", "main/outer%2Floop[1]/body/outer%2Fy"),
        ("ttn/x", "ttn/x"),
        ("nothing", "nothing"),
        ("[", "["),
    ],
)
def test_an_end_of_one_address_means_it(model: loopscope.Model, text: str, expected: str) -> None:
    assert full_address(model, text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("attn/x", "is the end of 2 addresses: layers.0/attn › x, layers.1/attn › x; write more"),
        ("deep[1]/Tanh", r"\[1\] stands inside the name"),
    ],
)
def test_what_means_several_or_none_is_refused(
    model: loopscope.Model, text: str, said: str
) -> None:
    with pytest.raises(AddressError, match=said):
        full_address(model, text)


@pytest.mark.parametrize("form", ["exact", "readable"])
def test_every_node_is_meant_by_both_its_forms(model: loopscope.Model, form: str) -> None:
    for address, _ in nodes(model):
        assert full_address(model, address if form == "exact" else readable(address)) in (
            address,
            address.removeprefix("main/"),
        )


@given(st.text(max_size=40))
def test_what_is_typed_never_raises_but_as_an_address(model: loopscope.Model, text: str) -> None:
    with contextlib.suppress(AddressError):
        full_address(model, text)


def test_a_tensor_name_means_the_output_that_has_it(tmp_path: Path) -> None:
    helper, tensor = onnx.helper, onnx.TensorProto
    split = helper.make_node("Split", ["x"], ["getitem:0", "getitem:1"], "halves", num_outputs=2)
    outputs = [helper.make_tensor_value_info(name, tensor.FLOAT, [2]) for name in split.output]
    graph = helper.make_graph(
        [split], "named", [helper.make_tensor_value_info("x", tensor.FLOAT, [4])], outputs
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]),
        tmp_path / "named.onnx",
    )
    model = loopscope.read_model(tmp_path / "named.onnx")
    debugger = loopscope.Debugger(model, [[1, 2, 3, 4]])
    debugger.run()
    for name, value in (("getitem:0", [1, 2]), ("getitem:1", [3, 4])):
        assert debugger.value(full_address(model, name)).tolist() == value
    assert full_address(model, "getitem:2") == "getitem:2"
