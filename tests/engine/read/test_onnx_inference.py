"""Types and shapes that an ONNX file does not say: found by ONNX's shape inference, which never
sees the weights.
"""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np
import pytest
from onnx import (
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from loopscope.ir import memory
from loopscope.ir.address import graphs
from loopscope.ir.model import Model
from loopscope.native.workers import WORKERS
from loopscope.read import read_model
from loopscope.read.onnx.scope import Scope
from loopscope.read.onnx.scope_reader import ScopeReader
from loopscope.read.onnx.split_weights import NO_VIEWS, WeightViews

_WIDE = 3000


def _model(
    nodes: list[NodeProto],
    weights: dict[str, np.ndarray],
    functions: list[FunctionProto] | None = None,
) -> ModelProto:
    given = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, _WIDE]),
        helper.make_tensor_value_info("yes", TensorProto.BOOL, []),
    ]
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "main", given, [ValueInfoProto(name="y")], held)
    opsets = [helper.make_opsetid("", 18), *([helper.make_opsetid("mine", 1)] if functions else [])]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions or [])


def _branch(name: str, array: np.ndarray) -> GraphProto:
    held = helper.make_node("Constant", [], [f"{name} w"], value=numpy_helper.from_array(array))
    product = helper.make_node("MatMul", ["x", f"{name} w"], [f"{name} y"], name=f"{name} product")
    return helper.make_graph([held, product], name, [], [ValueInfoProto(name=f"{name} y")])


def weights_beyond_the_limit() -> ModelProto:
    """36 MB of them; a small tensor says the shape."""
    weight, shape = np.ones((_WIDE, _WIDE), np.float32), np.array([3, 2, 1000])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Reshape", ["p", "shape"], ["y"]),
    ]
    return _model(nodes, {"w": weight, "shape": shape})


def weights_in_constants() -> ModelProto:
    held = helper.make_node(
        "Constant", [], ["w"], value=numpy_helper.from_array(np.ones((_WIDE, 7), np.float32))
    )
    return _model(
        [
            held,
            helper.make_node("MatMul", ["x", "w"], ["p"]),
            helper.make_node("Relu", ["p"], ["y"]),
        ],
        {},
    )


def weights_in_branches() -> ModelProto:
    sides = {
        f"{side}_branch": _branch(side, np.ones((_WIDE, 7), np.float32))
        for side in ("then", "else")
    }
    return _model([helper.make_node("If", ["yes"], ["y"], **sides)], {})


def weights_for_a_function() -> ModelProto:
    inside = [helper.make_node("MatMul", ["a", "b"], ["c"]), helper.make_node("Relu", ["c"], ["d"])]
    function = helper.make_function(
        "mine", "twice", ["a", "b"], ["d"], inside, [helper.make_opsetid("", 18)]
    )
    nodes = [
        helper.make_node("twice", ["x", "w"], ["p"], domain="mine"),
        helper.make_node("Neg", ["p"], ["y"]),
    ]
    return _model(nodes, {"w": np.ones((_WIDE, 7), np.float32)}, [function])


def _types(model: Model) -> dict[str, str]:
    """Of all values that nodes give."""
    return {
        name: f"{port.element_type}{port.shape}"
        for placed in graphs(model)
        for node in placed.graph.nodes
        if node.type not in ("Const", "Parameter") and node.constant is None
        for port in node.outputs
        for name in port.names
    }


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (weights_beyond_the_limit, {"p": "f32[2,3000]", "y": "f32[3,2,1000]"}),
        (weights_in_constants, {"p": "f32[2,7]", "y": "f32[2,7]"}),
        (weights_in_branches, {"then y": "f32[2,7]", "else y": "f32[2,7]", "y": "f32[2,7]"}),
        (
            weights_for_a_function,
            {"p": "f32[2,7]", "y": "f32[2,7]", "c": "None...", "d": "None..."},
        ),
    ],
)
def test_types_are_found_without_the_data_of_weights(
    make: Callable[[], ModelProto], expected: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    asking = WORKERS.asking

    def told(work: str, *parts: bytes) -> AbstractContextManager[Callable[[], list[bytes]]]:
        asked.extend(map(len, parts))
        return asking(work, *parts)

    monkeypatch.setattr(WORKERS, "asking", told)
    assert _types(read_model(make().SerializeToString())) == expected
    assert asked[0] < 2000


def test_the_data_of_weights_is_read() -> None:
    """Though it was left out for the inference."""
    model = read_model(weights_in_constants().SerializeToString())
    (held,) = [node.constant for node in model.graph.nodes if node.constant is not None]
    assert held.array().sum() == _WIDE * 7


def test_what_is_kept_out_of_collections_stays_out() -> None:
    """A server does so with its modules, which would make each collection three times as long."""
    gc.freeze()
    try:
        kept = gc.get_freeze_count()
        read_model(weights_in_constants().SerializeToString())
        assert gc.get_freeze_count() > kept * 0.9
    finally:
        gc.unfreeze()


def test_frozen_objects_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python counts them one by one, which takes 15 ms in the app."""
    counts = iter([100_000])
    monkeypatch.setattr(memory, "_STATE", type(memory._STATE)())
    monkeypatch.setattr(gc, "get_freeze_count", lambda: next(counts))
    for _ in range(3):
        with memory.no_garbage_collection():
            pass
    assert not [*counts]


def test_garbage_is_collected_again_after_a_file_that_is_refused() -> None:
    broken = _model([], {})
    broken.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[-1])
    with pytest.raises(Exception, match="a length is negative"):
        read_model(broken.SerializeToString())
    assert gc.isenabled()


_ONE_MODEL_AFTER_ANOTHER = """
import sys, weakref
from loopscope.read import read_model
from loopscope.read.onnx.split_weights import NO_VIEWS, WeightViews
from loopscope.read.onnx.scope import Scope
from loopscope.read.onnx.scope_reader import ScopeReader

class Circle:
    def __init__(self, model):
        self.model, self.ballast, self.itself = model, [bytes(100) for _ in range(300_000)], self

document = sys.stdin.buffer.read()
made = [weakref.ref(Circle(read_model(document))) for _ in range(8)]
print(sum(one() is not None for one in made))
"""


@pytest.mark.measured
def test_reading_one_model_after_another_keeps_none_that_only_circles_hold() -> None:
    """In a process of its own: what collects depends on all else that a process holds, such as
    what other tests left.
    """
    document = weights_in_constants().SerializeToString()
    told = subprocess.run(
        [sys.executable, "-c", _ONE_MODEL_AFTER_ANOTHER],
        input=document,
        capture_output=True,
        check=True,
    )
    assert int(told.stdout) < 4


@pytest.mark.parametrize(
    "made", [weights_in_constants, weights_in_branches, weights_for_a_function]
)
def test_reading_leaves_no_circles_that_hold_the_file(made: Callable[[], ModelProto]) -> None:
    """Else the next model finds no memory that this one gave back, and gets every page of it
    anew from the system.
    """
    document = made().SerializeToString()
    gc.collect()
    gc.disable()
    try:
        read_model(document)
        left = {
            type(one)
            for one in gc.get_objects()
            if isinstance(one, Scope | ScopeReader | WeightViews) and one is not NO_VIEWS
        }
    finally:
        gc.enable()
    assert not left
