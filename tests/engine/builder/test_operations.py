"""One function per operation: names, defaults, documentation, what becomes a Const, and what is
refused in which words.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import openvino.opset16 as factories
import pytest

import loopscope
from loopscope import builder
from loopscope.builder import ops
from loopscope.builder.graph_builder import Graph
from loopscope.builder.naming import letters
from loopscope.errors import BuildError
from loopscope.ir.element_type import ElementType
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Attribute, Known, Operation
from loopscope.ops.infer import same
from tests.engine.builder.both import run_both

OTHERWISE = {"constant", "parameter", "result", "if_op", "loop", "tensor_iterator", "ops"}
"""Names in OpenVINO's module that are made in another way here, or are no operations."""
ALIASES = {"absolute": "abs", "ceil": "ceiling", "cumsum": "cum_sum"}


@pytest.fixture
def graph() -> builder.Graph:
    return builder.Graph("operations")


def test_every_operation_has_a_function_that_explains_itself() -> None:
    assert len(dir(ops)) > 190
    for name in ops:
        function = getattr(ops, name)
        assert function.__name__ == name
        assert "Spec page: " in function.__doc__
        parameters = inspect.signature(function).parameters
        assert "name" in parameters
        assert all(one.kind is not one.POSITIONAL_OR_KEYWORD for one in parameters.values())


def test_functions_are_called_as_openvinos_factories() -> None:
    theirs = {name for name in dir(factories) if not name.startswith("_")} - OTHERWISE
    assert {ALIASES.get(name, name) for name in theirs} <= set(ops)


def test_any_spelling_of_the_same_letters_is_the_same_function() -> None:
    assert ops.MatMul is ops.mat_mul is ops.matmul
    assert len({letters(operation.name) for operation in CATALOGUE}) == len(
        {operation.name for operation in CATALOGUE}
    )


def test_older_versions_are_there_when_asked_for(graph: Graph) -> None:
    x = graph.parameter("x", "f32", [2, 3])
    ops.version("Gather", 7)(x, [0], 1, name="old")
    ops.gather(x, [0], 1, name="new")
    opsets = {node.name: node.opset for node in graph.model(x).graph.nodes}
    assert (opsets["old"], opsets["new"]) == ("opset7", "opset8")
    with pytest.raises(
        BuildError,
        match=r"gather-99 does not exist; existing versions: Gather-1, Gather-7, Gather-8",
    ):
        ops.version("gather", 99)


def test_help_says_inputs_attributes_defaults_and_values() -> None:
    text = ops.gelu.__doc__
    assert "approximation_mode: 'erf' or 'tanh'; default 'erf'" in (text or "")
    assert (
        str(inspect.signature(ops.reduce_sum))
        == "(data: 'Tensor', axes: 'Tensor', /, *, keep_dims=False, name: 'str' = '') -> 'Tensor'"
    )
    assert "name" in dir(inspect.signature(ops.avg_pool).parameters["exclude_pad"])


def test_defaults_are_written_and_given_values_too(graph: Graph) -> None:
    x = graph.parameter("x", "f32", [1, 1, 4, 4])
    ops.avg_pool(x, kernel=[2, 2], exclude_pad=True, name="pool")
    ops.topk(x, 2, axis=-1, mode="max", sort="value", name="top")
    written = {node.name: dict(node.attributes) for node in graph.model(x).graph.nodes}
    assert written["pool"] == {
        "kernel": "2,2", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0", "dilations": "1,1",
        "auto_pad": "explicit", "exclude-pad": "true", "rounding_type": "floor",
    }  # fmt: skip
    assert written["top"] == {
        "axis": "-1",
        "mode": "max",
        "sort": "value",
        "stable": "false",
        "index_element_type": "i32",
    }


def test_names_that_python_keeps_get_an_underscore() -> None:
    def kernel(data: np.ndarray, /, *, lambda_: float) -> np.ndarray:
        """Cut off."""
        return data * lambda_

    shrink = Operation(
        name="Shrink",
        version=1,
        opsets=(1, 16),
        page="none",
        kernel=kernel,
        infer=same,
        attributes=(Attribute("lambda", "float"),),
    )
    catalogue = CATALOGUE.with_operations([shrink])
    graph = builder.Graph("custom", catalogue=catalogue)
    x = graph.parameter("x", "f32", [2])
    model = graph.model(builder.Operations(catalogue).shrink(x, lambda_=0.5))
    assert loopscope.run(model, [[2, 4]], catalogue=catalogue).outputs[0].tolist() == [1, 2]
    assert model.graph.nodes[1].attributes == {"lambda": "0.5"}


LIFTED = {
    "a number takes the type beside it": (lambda x: x + 1, ["f32"]),
    "on either side": (lambda x: 2 - x, ["f32"]),
    "an array too": (lambda x: x * np.array([1.0, 2.0]), ["f32"]),
    "whole numbers in an array too": (lambda x: x * np.array([1, 2]), ["f32"]),
    "an axis has its own type": (lambda x: ops.reduce_sum(x, 0), ["i64"]),
    "a list of axes": (lambda x: ops.transpose(x, [0]), ["i64"]),
    "numbers that choose": (lambda x: ops.select(x > 0, x, 7), ["f32", "f32"]),
    "numbers alone are i64": (lambda x: ops.gather(x, ops.add(0, 1), 0), ["i64", "i64", "i64"]),
    "floats alone are f32": (lambda x: ops.select(ops.less(0.5, 1.5), x, x), ["f32", "f32"]),
    "truth is boolean": (lambda x: ops.logical_or(x > 0, True), ["f32", "boolean"]),
}


@pytest.mark.parametrize("case", LIFTED)
def test_numbers_become_constants(graph: Graph, case: str) -> None:
    make, expected = LIFTED[case]
    model = graph.model(make(graph.parameter("x", "f32", [2])))
    assert [
        str(node.constant.element_type) for node in model.graph.nodes if node.constant
    ] == expected
    run_both(model, [np.array([1, -2], np.float32)])


WRONG = {
    "too many inputs": (lambda x: ops.add(x, x, x), r"add\(\) expects 2 inputs \(.*\), got 3"),
    "too few inputs": (
        lambda x: ops.gather(x),
        r"gather\(\) expects 3 inputs \(data, indices, axis\), got 1",
    ),
    "unknown attribute": (
        lambda x: ops.relu(x, alpha=1),
        r"relu\(\) does not have an attribute 'alpha'; it has no attributes",
    ),
    "misspelt attribute": (
        lambda x: ops.reduce_sum(x, 0, keepdims=True),
        r"does not have an attribute 'keepdims'; its attributes are keep_dims",
    ),
    "missing attribute": (
        lambda x: ops.concat([x, x]),
        r"concat\(\) needs the attribute 'axis': a whole number",
    ),
    "kind of attribute": (
        lambda x: ops.concat([x, x], axis=0.5),
        r"concat\(\): attribute 'axis' is 0.5, expected a whole number",
    ),
    "truth is no number": (
        lambda x: ops.concat([x, x], axis=True),
        r"attribute 'axis' is True, expected a whole number",
    ),
    "value of attribute": (
        lambda x: ops.gelu(x, approximation_mode="fast"),
        r"'approximation_mode' is 'fast', expected one of erf, tanh",
    ),
    "element type": (
        lambda x: ops.convert(x, destination_type="f31"),
        r"an element type is 'f31', expected one of f64, f32",
    ),
    "types differ": (
        lambda x: x + np.array([1], np.float16) + ops.convert(x, destination_type="i32"),
        r"add\(\): input 1 is i32.*must be equal",
    ),
    "shapes differ": (
        lambda x: x + np.ones(3),
        r"add\(\): shapes \[2\] and \[3\] cannot be broadcast",
    ),
    "type not allowed": (
        lambda x: ops.logical_not(x),
        r"logical_not\(\): input 0 \(\w+\) is <Tensor 'x' f32\[2\]>, expected boolean",
    ),
    "float as axis": (
        lambda x: ops.reduce_sum(x, 0.5),
        r"reduce_sum\(\): input 1 \(axes\) is 0.5, which is f32; expected",
    ),
    "float among integers": (lambda x: ops.shape_of(x) + 0.5, r"cannot|must be equal"),
    "no tensor at all": (
        lambda x: ops.relu(object()),
        r"relu\(\): input 0 \(\w+\) is <object .*expected a Tensor",
    ),
    "left out in between": (
        lambda x: ops.gather(x, None, 0),
        r"gather\(\): input 1 \(indices\) is missing",
    ),
    "truth of a tensor": (lambda x: 1 if x > 0 else 2, r"has no value while the graph is built"),
    "whole division": (lambda x: ops.shape_of(x) / 2, r"use `//`"),
    "axis out of range": (
        lambda x: ops.concat([x, x], axis=3),
        r"concat\(\): axis 3 is out of range",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_told_where_they_were_given(graph: Graph, case: str) -> None:
    make, words = WRONG[case]
    x = graph.parameter("x", "f32", [2])
    with pytest.raises(BuildError, match=words) as caught:
        make(x)
    assert any(
        Path(entry.path).name == "test_operations.py" and "lambda" in str(entry.statement)
        for entry in caught.traceback
    )


def test_refused_calls_leave_nothing_behind(graph: Graph) -> None:
    x = graph.parameter("x", "f32", [2])
    with pytest.raises(BuildError):
        ops.add(x, [1.0, 2.0, 3.0])
    assert [node.name for node in graph.model(x).graph.nodes] == ["x", "x_result"]


def test_unknown_operations_and_those_made_otherwise() -> None:
    with pytest.raises(AttributeError, match="operation 'relo' does not exist"):
        _ = ops.relo
    with pytest.raises(
        AttributeError, match=r"Loop is not a function of builder\.ops: use while_loop"
    ):
        _ = ops.loop


def test_known_values_give_shapes(graph: Graph) -> None:
    x = graph.parameter("x", "f32", [4, 6])
    count = ops.gather(ops.shape_of(x), 1, 0)
    shape = ops.concat([[-1], ops.unsqueeze(count // 2, 0)], axis=0)
    assert ops.reshape(x, shape, special_zero=False).shape.lengths == (8, 3)
    assert isinstance(count.known, Known)
    assert count.known.value == 6
    assert count.element_type is ElementType.I64


def test_several_outputs_and_variadic_inputs(graph: Graph) -> None:
    x = graph.parameter("x", "f32", [2, 6])
    left, right = ops.split(x, 1, num_splits=2)
    values, indices = ops.topk(left, 1, axis=1, mode="max", sort="value")
    assert (left.name, right.name, values.shape.lengths) == ("Split:0", "Split:1", (2, 1))
    both = ops.concat([right, left], axis=1)
    assert ops.concat(right, left, axis=1).shape == both.shape
    result = run_both(
        graph.model({"values": values, "indices": indices, "both": both}),
        [np.arange(12, dtype=np.float32).reshape(2, 6)],
    )
    assert result.named["values"].tolist() == [[2], [8]]
