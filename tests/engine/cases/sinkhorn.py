"""A Sinkhorn loop as an exporter writes it, with the operations around it: 48 nodes.

ONNX Runtime 1.31 computes its first product wrongly: it fuses a Transpose with a product of a
matrix and a vector.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import loopscope
from loopscope.read import read_model

SIZE = 6
ITERATIONS = 5


def sinkhorn_model() -> loopscope.Model:
    """Return the model: costs f32[6,6] and weights f32[6], f32[6] give a plan f32[6,6]."""
    graph = helper.make_graph(
        [*_before(), _loop(), *_after()],
        "sinkhorn",
        [_value("costs", SIZE, SIZE), _value("rows", SIZE), _value("columns", SIZE)],
        [_value("plan", SIZE, SIZE), _value("distance", 1)],
        [
            numpy_helper.from_array(np.array(ITERATIONS, np.int64), "iterations"),
            numpy_helper.from_array(np.array(True), "always"),
            numpy_helper.from_array(np.array(0.5, np.float32), "strength"),
            numpy_helper.from_array(np.array(1e-6, np.float32), "small"),
            numpy_helper.from_array(np.ones(SIZE, np.float32), "ones"),
            numpy_helper.from_array(np.array([0], np.int64), "zero"),
            numpy_helper.from_array(np.array([1], np.int64), "one"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return read_model(model.SerializeToString())


def inputs() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    return {
        "costs": generator.uniform(0.0, 2.0, (SIZE, SIZE)).astype(np.float32),
        "rows": generator.uniform(0.5, 1.5, SIZE).astype(np.float32),
        "columns": generator.uniform(0.5, 1.5, SIZE).astype(np.float32),
    }


def _value(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _before() -> list[onnx.NodeProto]:
    """Return 12 nodes that normalise the inputs and compute the kernel exp(-costs / strength)."""
    node = helper.make_node
    return [
        node("ReduceMax", ["costs"], ["largest"], keepdims=0),
        node("Max", ["largest", "small"], ["largest_or_small"]),
        node("Div", ["costs", "largest_or_small"], ["scaled"]),
        node("Div", ["scaled", "strength"], ["relative"]),
        node("Neg", ["relative"], ["negative"]),
        node("Exp", ["negative"], ["kernel"]),
        node("ReduceSum", ["rows"], ["row_total"], keepdims=0),
        node("Div", ["rows", "row_total"], ["a"]),
        node("ReduceSum", ["columns"], ["column_total"], keepdims=0),
        node("Div", ["columns", "column_total"], ["b"]),
        node("Identity", ["ones"], ["u_first"]),
        node("Identity", ["ones"], ["v_first"]),
    ]


def _loop() -> onnx.NodeProto:
    """Return the Loop, whose body has 24 nodes."""
    node = helper.make_node
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go_on"]),
            node("MatMul", ["kernel", "v"], ["row_sums"]),
            node("Abs", ["row_sums"], ["row_sizes"]),
            node("Max", ["row_sizes", "small"], ["row_safe"]),
            node("Div", ["a", "row_safe"], ["u_raw"]),
            node("Max", ["u_raw", "small"], ["u_positive"]),
            node("Log", ["u_positive"], ["u_log"]),
            node("Exp", ["u_log"], ["u_next"]),
            node("Transpose", ["kernel"], ["kernel_t"], perm=[1, 0]),
            node("MatMul", ["kernel_t", "u_next"], ["column_sums"]),
            node("Abs", ["column_sums"], ["column_sizes"]),
            node("Max", ["column_sizes", "small"], ["column_safe"]),
            node("Div", ["b", "column_safe"], ["v_raw"]),
            node("Max", ["v_raw", "small"], ["v_positive"]),
            node("Log", ["v_positive"], ["v_log"]),
            node("Exp", ["v_log"], ["v_next"]),
            node("Sub", ["u_next", "u"], ["u_change"]),
            node("Abs", ["u_change"], ["u_moved"]),
            node("ReduceMax", ["u_moved"], ["u_error"], keepdims=0),
            node("Sub", ["v_next", "v"], ["v_change"]),
            node("Abs", ["v_change"], ["v_moved"]),
            node("ReduceMax", ["v_moved"], ["v_error"], keepdims=0),
            node("Max", ["u_error", "v_error"], ["error"]),
            node("Greater", ["error", "small"], ["moving"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("number", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            _value("u", SIZE),
            _value("v", SIZE),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            _value("u_next", SIZE),
            _value("v_next", SIZE),
            helper.make_tensor_value_info("error", TensorProto.FLOAT, []),
            helper.make_tensor_value_info("moving", TensorProto.BOOL, []),
        ],
    )
    return node(
        "Loop",
        ["iterations", "always", "u_first", "v_first"],
        ["u_last", "v_last", "errors", "movements"],
        name="until_balanced",
        body=body,
    )


def _after() -> list[onnx.NodeProto]:
    """Return 11 nodes that scale the kernel to the plan, and compute the distance."""
    node = helper.make_node
    return [
        node("Unsqueeze", ["u_last", "one"], ["u_column"]),
        node("Unsqueeze", ["v_last", "zero"], ["v_row"]),
        node("Mul", ["u_column", "kernel"], ["half"]),
        node("Mul", ["half", "v_row"], ["plan"]),
        node("Mul", ["plan", "scaled"], ["cost_parts"]),
        node("ReduceSum", ["cost_parts"], ["cost"], keepdims=0),
        node("Mul", ["cost", "largest_or_small"], ["cost_unscaled"]),
        node("ReduceMax", ["errors"], ["worst"], keepdims=0),
        node("Max", ["worst", "small"], ["worst_or_small"]),
        node("Mul", ["cost_unscaled", "worst_or_small"], ["weighted"]),
        node("Unsqueeze", ["weighted", "zero"], ["distance"]),
    ]
