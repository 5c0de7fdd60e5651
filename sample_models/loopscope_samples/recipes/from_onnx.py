"""Samples that begin as ONNX graphs: Loop, If with captured values, and Scan (a TensorIterator
once OpenVINO has read it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper
from openvino._offline_transformations import apply_moc_transformations

from loopscope_samples.recipes import data_sets
from loopscope_samples.recipes.names import name_ports, readable
from loopscope_samples.recipes.recipe import Recipe

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
OPSET = 18


def recipes() -> list[Recipe]:
    return [_zero_iterations(), _early_exit(), _scan()]


def _zero_iterations() -> Recipe:
    """Loop with both of its brakes as inputs: a trip count and a first condition."""
    body = helper.make_graph(
        [
            helper.make_node("Cast", ["step"], ["step_number"], "step_number", to=FLOAT),
            helper.make_node("Add", ["total", "step_number"], ["next_total"], "next_total"),
            helper.make_node("Identity", ["go"], ["keep_going"], "keep_going"),
            helper.make_node("Identity", ["next_total"], ["partial_sum"], "partial_sum"),
        ],
        "add_step",
        [_value("step", INT, []), _value("go", BOOL, []), _value("total", FLOAT, [1])],
        [
            _value("keep_going", BOOL, []),
            _value("next_total", FLOAT, [1]),
            _value("partial_sum", FLOAT, [1]),
        ],
    )
    graph = helper.make_graph(
        [
            helper.make_node(
                "Loop",
                ["trips", "go", "initial"],
                ["total", "partial_sums"],
                "add_steps",
                body=body,
            )
        ],
        "zero_iterations",
        [_value("trips", INT, []), _value("go", BOOL, []), _value("initial", FLOAT, [1])],
        [_value("total", FLOAT, [1]), _value("partial_sums", FLOAT, [None, 1])],
    )
    start = np.array([100], np.float32)
    sets = {
        "five_trips": {"trips": np.int64(5), "go": np.bool_(True), "initial": start},
        "no_trips": {"trips": np.int64(0), "go": np.bool_(True), "initial": start},
        "condition_false": {"trips": np.int64(5), "go": np.bool_(False), "initial": start},
    }
    return Recipe("zero_iterations", _converted(graph, {"partial_sums": "add_steps"}), sets)


def _early_exit() -> Recipe:
    """A small classifier answers when it is sure; else the larger one inside the If's other
    branch does.
    """
    draw = np.random.default_rng(21).normal
    weights = {
        "small_weights": draw(0, 1.5, (4, 3)),
        "hidden_weights": draw(0, 1.0, (4, 8)),
        "large_weights": draw(0, 1.0, (8, 3)),
    }
    easy = helper.make_graph(
        [helper.make_node("Identity", ["small_scores"], ["easy_scores"], "take_small_answer")],
        "sure",
        [],
        [_value("easy_scores", FLOAT, [1, 3])],
    )
    hard = helper.make_graph(
        [
            helper.make_node("MatMul", ["features", "hidden_weights"], ["hidden"], "hidden"),
            helper.make_node("Relu", ["hidden"], ["active"], "active"),
            helper.make_node(
                "MatMul", ["active", "large_weights"], ["large_logits"], "large_logits"
            ),
            helper.make_node("Softmax", ["large_logits"], ["large_scores"], "large_scores", axis=1),
        ],
        "unsure",
        [],
        [_value("large_scores", FLOAT, [1, 3])],
    )
    graph = helper.make_graph(
        [
            helper.make_node(
                "MatMul", ["features", "small_weights"], ["small_logits"], "small_logits"
            ),
            helper.make_node("Softmax", ["small_logits"], ["small_scores"], "small_scores", axis=1),
            helper.make_node(
                "ReduceMax", ["small_scores", "both_axes"], ["confidence"], "confidence", keepdims=0
            ),
            helper.make_node("Greater", ["confidence", "enough"], ["is_sure"], "is_sure"),
            helper.make_node(
                "If", ["is_sure"], ["scores"], "early_exit", then_branch=easy, else_branch=hard
            ),
        ],
        "early_exit",
        [_value("features", FLOAT, [1, 4]), _value("enough", FLOAT, [])],
        [_value("scores", FLOAT, [1, 3]), _value("confidence", FLOAT, [])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
        + [numpy_helper.from_array(np.array([0, 1]), "both_axes")],
    )
    features = np.array([[2.0, -1.0, 0.5, 1.5]], np.float32)
    sets = {
        "clear_case": {"features": features, "enough": np.float32(0.8)},
        "same_case_stricter": {"features": features, "enough": np.float32(0.9999)},
        "borderline_case": {"features": np.zeros((1, 4), np.float32), "enough": np.float32(0.8)},
    }
    return Recipe(
        "early_exit", _converted(graph, {"scores": "early_exit"}), sets, data_sets.early_exit()
    )


def _scan() -> Recipe:
    """Running maximum and how long it has stood, over the rows of a table."""
    body = helper.make_graph(
        [
            helper.make_node("Max", ["highest", "row"], ["next_highest"], "next_highest"),
            helper.make_node("Greater", ["row", "highest"], ["is_record"], "is_record"),
            helper.make_node("Cast", ["is_record"], ["record"], "record", to=FLOAT),
            helper.make_node("Add", ["records", "record"], ["next_records"], "next_records"),
            helper.make_node("Identity", ["next_highest"], ["highest_so_far"], "highest_so_far"),
        ],
        "look_at_row",
        [_value("highest", FLOAT, [2]), _value("records", FLOAT, [2]), _value("row", FLOAT, [2])],
        [
            _value("next_highest", FLOAT, [2]),
            _value("next_records", FLOAT, [2]),
            _value("highest_so_far", FLOAT, [2]),
        ],
    )
    graph = helper.make_graph(
        [
            helper.make_node(
                "Scan",
                ["lowest", "none", "table"],
                ["highest", "records", "highest_so_far"],
                "each_row",
                body=body,
                num_scan_inputs=1,
            )
        ],
        "records",
        [_value("table", FLOAT, [None, 2])],
        [
            _value("highest", FLOAT, [2]),
            _value("records", FLOAT, [2]),
            _value("highest_so_far", FLOAT, [None, 2]),
        ],
        [
            numpy_helper.from_array(np.full(2, -1000, np.float32), "lowest"),
            numpy_helper.from_array(np.zeros(2, np.float32), "none"),
        ],
    )
    sets = {
        "five_rows": {"table": np.array([[3, 1], [1, 2], [4, 2], [1, 5], [5, 3]], np.float32)},
        "falling": {"table": np.array([[9, 8], [7, 6], [5, 4]], np.float32)},
        "one_row": {"table": np.array([[0, 0]], np.float32)},
    }
    return Recipe("records_scan", _converted(graph, {"highest_so_far": "each_row"}), sets)


def _value(name: str, element_type: int, shape: Sequence[int | None]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)


def _converted(graph: onnx.GraphProto, names: Mapping[str, str]) -> ov.Model:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    converted = ov.Core().read_model(model.SerializeToString())
    apply_moc_transformations(converted, cf=True)
    return readable(name_ports(converted, tuple(output.name for output in graph.output)), names)
