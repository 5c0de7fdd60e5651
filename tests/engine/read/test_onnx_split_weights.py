"""Laws of parting: the outline and what was left where it lies are the file; damaged files are
left to the parser.
"""

from __future__ import annotations

import numpy as np
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st
from onnx import GraphProto, ModelProto, TensorProto, helper, numpy_helper

import loopscope
from loopscope.read.onnx.split_weights import SplitFile, WeightViews, split_weights

LARGE = 40
lengths = st.integers(0, 30)


def whole(parts: SplitFile) -> ModelProto:
    model = ModelProto()
    model.ParseFromString(parts.outline)
    put_back(model.graph, parts.views)
    return model


def put_back(graph: GraphProto, held: WeightViews) -> None:
    for number, data in held.initializers.items():
        graph.initializer[number].raw_data = bytes(data)
    for number, data in held.constants.items():
        graph.node[number].attribute[0].t.raw_data = bytes(data)
    for (number, name), inside in held.bodies.items():
        put_back(next(one.g for one in graph.node[number].attribute if one.name == name), inside)


def tensor(length: int, name: str) -> TensorProto:
    return numpy_helper.from_array(np.arange(length, dtype=np.float32), name)


@st.composite
def graphs(draw: st.DrawFn, depth: int = 0) -> GraphProto:
    graph = helper.make_graph(
        [], "drawn", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    )
    graph.initializer.extend(
        tensor(draw(lengths), f"w{number}") for number in range(draw(st.integers(0, 3)))
    )
    for number in range(draw(st.integers(0, 4))):
        match draw(st.sampled_from(("Relu", "Constant", "If", "Scan", "Other", "Constants"))):
            case "Constant":
                graph.node.append(
                    helper.make_node(
                        "Constant", [], [f"c{number}"], value=tensor(draw(lengths), "")
                    )
                )
            case "Constants":  # of another domain: what it means is its own affair
                graph.node.append(
                    helper.make_node(
                        "Constant",
                        [],
                        [f"c{number}"],
                        domain="other",
                        value=tensor(draw(lengths), ""),
                    )
                )
            case "If" if depth < 2:
                bodies = {name: draw(graphs(depth + 1)) for name in ("then_branch", "else_branch")}
                graph.node.append(helper.make_node("If", ["yes"], [f"i{number}"], **bodies))
            case "Scan" if depth < 2:
                graph.node.append(
                    helper.make_node(
                        "Scan",
                        ["x"],
                        [f"s{number}"],
                        body=draw(graphs(depth + 1)),
                        num_scan_inputs=1,
                    )
                )
            case "Other":
                graph.node.append(
                    helper.make_node(
                        "Other",
                        ["x"],
                        [f"o{number}"],
                        table=tensor(draw(lengths), ""),
                        domain="other",
                    )
                )
            case _:
                graph.node.append(helper.make_node("Relu", ["x"], [f"r{number}"]))
    return graph


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    model = helper.make_model(draw(graphs()), doc_string="d" * draw(lengths))
    if draw(st.booleans()):
        model.functions.append(
            helper.make_function(
                "own", "f", ["x"], ["y"], [helper.make_node("Relu", ["x"], ["y"])], []
            )
        )
    return bytes(model.SerializeToString())


@given(documents())
def test_the_outline_and_what_was_left_are_the_file(document: bytes) -> None:
    parts = split_weights(document, 0, LARGE)
    assert whole(parts) == ModelProto.FromString(document)
    assert len(parts.outline) <= len(document)


@given(documents(), st.data())
def test_a_damaged_file_is_what_it_was(document: bytes, data: st.DataObject) -> None:
    damaged = bytearray(document)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del damaged[data.draw(st.integers(0, len(damaged))) :]
    parts = split_weights(bytes(damaged), 0, LARGE)
    try:
        wanted = ModelProto.FromString(bytes(damaged))
    except DecodeError:
        return
    assert whole(parts).SerializeToString(deterministic=True) == wanted.SerializeToString(
        deterministic=True
    )


def test_large_data_is_neither_copied_nor_parsed() -> None:
    graph = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=tensor(9_000, ""))], "g", [], []
    )
    graph.initializer.append(tensor(30_000, "w"))
    graph.node.append(helper.make_node("If", ["yes"], ["z"], then_branch=graph, else_branch=graph))
    document = helper.make_model(graph).SerializeToString()
    parts = split_weights(document)
    assert len(parts.outline) < 1_000
    assert len(parts.views.bodies) == 2
    model = loopscope.read_model(document)
    constant = next(one.constant for one in model.graph.nodes if one.name == "w")
    assert constant is not None
    assert isinstance(constant.data, memoryview)
    assert constant.data.obj is document
    assert constant.array().tolist() == list(range(30_000))


def test_a_field_that_is_said_twice_holds_what_is_said_last() -> None:
    first, second = (
        numpy_helper.from_array(np.full(100, value, np.float32), "w") for value in (1, 2)
    )
    twice = first.SerializeToString() + TensorProto(raw_data=second.raw_data).SerializeToString()
    inside = b"\x2a" + bytes([len(twice) & 127 | 128, len(twice) >> 7]) + twice
    document = b"\x08\x08\x3a" + bytes([len(inside) & 127 | 128, len(inside) >> 7]) + inside
    parts = split_weights(document, 0, LARGE)
    assert bytes(parts.views.initializers[0]) == second.raw_data
    assert whole(parts) == ModelProto.FromString(document)
