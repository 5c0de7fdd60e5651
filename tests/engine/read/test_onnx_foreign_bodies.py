"""Graphs of an operation that nobody knows: read as bodies that can be looked at, drawn, and not
run.
"""

from __future__ import annotations

import pytest
from onnx import GraphProto, ModelProto, TensorProto, helper

import loopscope
from loopscope.checks.check import check
from loopscope.ir.address import graphs
from loopscope.ir.model import Model
from loopscope.ops.catalogue import CATALOGUE
from loopscope.view.build import graph_view


def inner(name: str, operation: str, *inputs: str) -> GraphProto:
    value = helper.make_tensor_value_info
    node = helper.make_node(operation, inputs, ["after"], name=operation.lower())
    return helper.make_graph(
        [node],
        name,
        [value("before", TensorProto.FLOAT, [2])],
        [value("after", TensorProto.FLOAT, [2])],
    )


def around(kind: str, **attributes: GraphProto | list[GraphProto]) -> Model:
    """A model with an operation of ``com.acme`` that has these graphs, between a Neg that they
    may capture and an Abs.
    """
    node = helper.make_node(kind, ["x"], ["y"], name="ours", domain="com.acme")
    node.attribute.extend(helper.make_attribute(name, graph) for name, graph in attributes.items())
    nodes = [helper.make_node("Neg", ["x"], ["outer"]), node, helper.make_node("Abs", ["y"], ["z"])]
    given, made_of_it = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])] for name in ("x", "z")
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.acme", 1)]
    made: ModelProto = helper.make_model(
        helper.make_graph(nodes, "model", given, made_of_it), opset_imports=opsets
    )
    return loopscope.read_model(made.SerializeToString())


ADD, RELU = inner("adds", "Add", "before", "outer"), inner("cuts", "Relu", "before")
BODIES = {
    "one graph": ({"step": ADD}, ["main", "main/ours/step"]),
    "a list of graphs": (
        {"cases": [ADD, RELU]},
        ["main", "main/ours/cases_0", "main/ours/cases_1"],
    ),
    "both": ({"step": RELU, "cases": [ADD]}, ["main", "main/ours/step", "main/ours/cases_0"]),
    "two that would be called the same": (
        {"cases_0": RELU, "cases": [ADD]},
        ["main", "main/ours/cases_0", "main/ours/cases_0_2"],
    ),
    "a name that no address can hold as it is": (
        {"a/b[2]": RELU},
        ["main", "main/ours/a%2Fb%5B2%5D"],
    ),
}


@pytest.mark.parametrize(("attributes", "addresses"), BODIES.values(), ids=BODIES.keys())
def test_every_graph_is_a_body_named_by_its_attribute(
    attributes: dict[str, GraphProto], addresses: list[str]
) -> None:
    assert sorted(place.address for place in graphs(around("Repeat", **attributes))) == sorted(
        addresses
    )


@pytest.mark.parametrize("kind", ["Repeat", "Loop", "If", "Scan"])
def test_what_a_body_captures_is_bound_and_nothing_else_is(kind: str) -> None:
    (owner,) = (node for node in around(kind, step=ADD, other=RELU).graph.nodes if node.bodies)
    step, other = owner.bodies
    assert [step.graph.by_id[entry.internal].name for entry in step.inputs] == ["outer"]
    assert (other.inputs, step.outputs, step.back_edges) == ((), (), ())


@pytest.mark.parametrize("kind", ["Repeat", "Loop", "If", "Scan"])
def test_it_is_drawn_with_its_bodies_and_the_check_names_the_operation_alone(kind: str) -> None:
    model = around(kind, step=ADD, other=RELU)
    view = graph_view(model)
    assert {"ours", "step", "other"} <= {
        address.rsplit("/", 1)[-1] for address in (one.address for one in view.clusters)
    }
    assert {"main/ours/step/add", "main/ours/other/relu"} <= {node.address for node in view.nodes}
    (found,) = (one for one in check(model, CATALOGUE).errors)
    assert found.code == "LS301"
    assert f"'{kind}' (com.acme 1 with graphs) is unknown" in found.message


def test_a_run_says_which_operation_is_missing() -> None:
    with pytest.raises(loopscope.InvalidModel, match="'Repeat'"):
        loopscope.run(around("Repeat", step=ADD), {"x": [1, 2]})


@pytest.mark.parametrize("kind", ["Repeat", "Loop", "If", "Scan"])
def test_a_loop_of_another_domain_is_drawn_as_no_loop(kind: str) -> None:
    view = graph_view(around(kind, body=RELU, other=RELU))
    assert view.clusters[0].kind == "region"
    (header,) = (node for node in view.nodes if node.title == "inputs")
    assert [(edge.kind, edge.label) for edge in view.edges if edge.target == header.id] == [
        ("data", "")
    ]
    assert not {"repeat", "if"} & {node.title for node in view.nodes}
