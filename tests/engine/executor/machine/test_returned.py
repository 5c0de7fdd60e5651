"""What kernels take and return is looked at: a sequence where a tensor belongs, nothing, too
little, and what is no array.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.parser import parse_model

import loopscope
from loopscope.ops import custom
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Operation
from tests.engine.drafts import F32, Draft

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
X = np.ones(2, np.float32)
NO_TENSORS = {
    "a sequence of one input": (
        "y = Min (s)",
        "Min-13 failed: input 0 is a sequence of 2, expected a tensor",
    ),
    "a sequence beside a tensor": (
        "y = Add (s, x)",
        "Add-14 failed: input 0 is a sequence of 2, expected a tensor",
    ),
    "a sequence to numpy": (
        "y = Relu (s)",
        "Relu-14 failed: input 0 is a sequence of 2, expected a tensor",
    ),
    "an optional without a value": (
        "o = Optional <type = float[2]> () y = Neg (o)",
        "input 0 is an optional without a value",
    ),
}


@pytest.mark.parametrize(("nodes", "says"), NO_TENSORS.values(), ids=NO_TENSORS.keys())
def test_what_is_no_tensor_is_refused(nodes: str, says: str) -> None:
    text = f"main (float[2] x) => (float[2] y) {{ s = SequenceConstruct (x, x) {nodes} }}"
    model = loopscope.read_model(parse_model(HEAD + text).SerializeToString())
    with pytest.raises(loopscope.RunStopped, match="main/") as stopped:
        loopscope.run(model, {"x": X})
    assert says in str(stopped.value)


def test_it_is_refused_in_generated_code_as_well() -> None:
    """Only from iteration 20 on an If gives a sequence, when the loop runs through generated
    code.
    """
    text = """main (float[2] x, int64 trips) => (float[2] y) {
        y = Loop (trips, , x) <body = step (int64 i, bool go, float[2] v) => (bool again, float[2] w) {
            again = Identity (go)
            late = Constant <value_int = 20> ()
            is_early = Less (i, late)
            u = If (is_early) <
                then_branch = yes () => (float[2] a) { a = Identity (v) },
                else_branch = no () => (seq(float[2]) b) { b = SequenceConstruct (v, v) }
            >
            w = Add (u, v)
        }>
    }"""
    model = loopscope.read_model(parse_model(HEAD + text).SerializeToString())
    assert loopscope.run(model, {"x": X, "trips": np.int64(20)}).finished
    with pytest.raises(loopscope.RunStopped, match="input 0 is a sequence of 2, expected a tensor"):
        loopscope.run(model, {"x": X, "trips": np.int64(40)})


@pytest.mark.parametrize("trips", [1, 40])
def test_a_sequence_of_undeclared_results_is_one(trips: int) -> None:
    """Nothing but SequenceMap makes one here: stepping took it for an array, and generated code
    failed in Python's words.
    """
    text = """main (float[3] x, int64 trips) => (float[3] last) {
        half = Constant <value_float = 0.5> ()
        last = Loop (trips, , x) <body = step (int64 number, bool go, float[3] v) => (bool again, float[3] w) {
            again = Identity (go)
            both = SequenceMap (v) <body = each (one) => (same) { same = Identity (v) }>
            w = Mul (both, half)
        }>
    }"""
    model = loopscope.read_model(parse_model(HEAD + text).SerializeToString())
    with pytest.raises(
        loopscope.RunStopped,
        match="Mul_2: Mul-14 failed: input 0 is a sequence of 1, expected a tensor",
    ):
        loopscope.run(model, {"x": np.ones(3, np.float32), "trips": np.array(trips)})


def test_identity_hands_on_whatever_there_is() -> None:
    text = (
        "main (float[2] x) => (seq(float[2]) y) { s = SequenceConstruct (x, x) y = Identity (s) }"
    )
    assert (
        len(
            loopscope.run(
                loopscope.read_model(parse_model(HEAD + text).SerializeToString()), {"x": X}
            ).outputs[0]
        )
        == 2
    )


@pytest.mark.parametrize("operation", ["Identity", "Min", "Relu", "Add"])
def test_an_input_that_is_left_out_is_told_before_the_run(operation: str) -> None:
    """It became "output 'y' has no value: the run did not finish"."""
    node = helper.make_node(operation, ["", "x"] if operation == "Add" else [""], ["y"])
    graph = helper.make_graph([node], "g", [_info("x")], [_info("y")])
    model = loopscope.read_model(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]).SerializeToString()
    )
    with pytest.raises(
        loopscope.InvalidModel, match=f"Input 0 is missing, but {operation} requires it"
    ):
        loopscope.run(model, {"x": X})


def _info(name: str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])


RETURNED: dict[str, tuple[Any, int | None, str]] = {
    "nothing": (None, 1, "its kernel returned nothing, expected an array"),
    "a Python number": (2.0, 1, "its kernel returned a Python float, expected an array"),
    "a tuple of one": ((X,), 1, "its kernel returned a sequence of 1, expected an array"),
    "an array for several": (X, None, "its kernel returned an array, expected a tuple of 1"),
    "too few": ((), None, "its kernel returned a tuple of 0, expected a tuple of 1"),
    "nothing among several": ((None,), None, "its kernel returned nothing, expected an array"),
}


@pytest.fixture
def own_catalogue() -> Iterator[None]:
    before = CATALOGUE.categories
    yield
    CATALOGUE.categories = before
    CATALOGUE.install(())


@pytest.mark.usefixtures("own_catalogue")
@pytest.mark.parametrize(("made", "outputs", "says"), RETURNED.values(), ids=RETURNED.keys())
def test_what_a_users_kernel_returns(made: Any, outputs: int | None, says: str) -> None:
    custom.install(
        [
            Operation(
                name="Odd",
                version=1,
                opsets=(1, 1),
                page="",
                kernel=lambda x: made,
                outputs=outputs,
            )
        ]
    )
    draft = Draft()
    x = draft.parameter("x", F32, (2,))
    draft.result(draft.op("Odd", x))
    with pytest.raises(loopscope.RunStopped) as stopped:
        loopscope.run(draft.model(), [X])
    assert says in str(stopped.value)
