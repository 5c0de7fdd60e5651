"""What a file states about a model and its nodes: metadata, source lines, fused operations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from onnx import helper

import loopscope
from loopscope.ir.model import Model, Node
from loopscope.view import (
    SourceLine,
    fused_names,
    model_facts,
    own_source_line,
    source_lines,
)
from loopscope_samples import sample

TRACE = """File "/home/ada/models/net.py", line 6, in forward
    y = torch.relu(self.conv(x))
  File "/opt/lib/python3.11/site-packages/torch/nn/modules/conv.py", line 565, in forward
    return self._conv_forward(input, self.weight, self.bias)"""
SHORT_TRACE = (
    "/opt/lib/python3.8/site-packages/torch/nn/linear.py(114): forward\nnet.py(12): step\n"
)


def node(**texts: object) -> Node:
    return Node(0, "n", "Relu", rt_info=texts)  # type: ignore[arg-type]


def exported(doc_string: str = "", **metadata: str) -> Model:
    relu = helper.make_node("Relu", ["x"], ["y"], name="relu", doc_string=doc_string)
    for key, value in metadata.items():
        relu.metadata_props.add(key=key.replace("__", "."), value=value)
    ends = [helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    graph = helper.make_graph([relu], "g", ends[:1], ends[1:])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], producer_name="pytorch", ir_version=10
    )
    model.producer_version = "2.14"
    model.metadata_props.add(key="author", value="Ada")
    return loopscope.read_model(model.SerializeToString())


def test_the_lines_of_a_traceback_outermost_first() -> None:
    lines = source_lines(node(**{"pkg.torch.onnx.stack_trace": TRACE}))
    assert lines == (
        SourceLine("/home/ada/models/net.py", 6, "forward", "y = torch.relu(self.conv(x))"),
        SourceLine(
            "/opt/lib/python3.11/site-packages/torch/nn/modules/conv.py",
            565,
            "forward",
            "return self._conv_forward(input, self.weight, self.bias)",
        ),
    )


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        (
            {"pkg.torch.onnx.stack_trace": TRACE},
            SourceLine("/home/ada/models/net.py", 6, "forward", "y = torch.relu(self.conv(x))"),
        ),
        ({"doc_string": SHORT_TRACE}, SourceLine("net.py", 12, "step")),
        # only library code: its innermost line
        (
            {"stack_trace": 'File "/lib/python3/site-packages/a.py", line 3, in f'},
            SourceLine("/lib/python3/site-packages/a.py", 3, "f"),
        ),
        # torch's generated code is not the user's program
        (
            {
                "stack_trace": 'File "net.py", line 7, in f\nFile "<eval_with_key>.24", line 10, in f'
            },
            SourceLine("net.py", 7, "f"),
        ),
        ({"doc_string": "adds two numbers"}, None),
        ({"pkg.torch.onnx.stack_trace": {"value": "nested"}}, None),
        ({}, None),
    ],
)
def test_the_line_of_the_users_program(texts: dict[str, object], line: SourceLine | None) -> None:
    assert own_source_line(node(**texts)) == line


def test_metadata_of_an_onnx_node_is_read() -> None:
    model = exported(doc_string="Activation.", pkg__torch__onnx__stack_trace=TRACE, other="1")
    (relu,) = (node for node in model.graph.nodes if node.type == "Relu")
    assert relu.rt_info == {
        "pkg.torch.onnx.stack_trace": TRACE,
        "other": "1",
        "doc_string": "Activation.",
    }
    line = own_source_line(relu)
    assert line is not None
    assert line.line == 6


def test_long_and_broken_metadata_is_cut_and_left_out() -> None:
    relu = helper.make_node("Relu", ["x"], ["y"])
    for number in range(40):
        relu.metadata_props.add(key=f"k{number}", value="v" * 10_000)
    ends = [helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    proto = helper.make_model(helper.make_graph([relu], "g", ends[:1], ends[1:]), ir_version=10)
    document = proto.SerializeToString().replace(b"k7", b"k\xff")
    (read,) = (node for node in loopscope.read_model(document).graph.nodes if node.type == "Relu")
    assert len(read.rt_info) == 31
    assert {len(str(text)) for text in read.rt_info.values()} == {4000}


def test_the_facts_of_an_onnx_file() -> None:
    assert model_facts(exported()) == (
        ("format", "ONNX IR 10"),
        ("name", "g"),
        ("producer", "pytorch"),
        ("producer version", "2.14"),
        ("author", "Ada"),
        ("opsets", "ai.onnx 20"),
    )


def test_documentation_of_graph_inputs_and_weights_is_read() -> None:
    product = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [helper.make_tensor_value_info(name, 1, [2, 2]) for name in "xy"]
    weights = helper.make_tensor("w", 1, [2, 2], range(4))
    graph = helper.make_graph([product], "g", ends[:1], ends[1:], [weights], "A layer.")
    graph.metadata_props.add(key="scope", value="head")
    graph.input[0].doc_string = "Samples."
    graph.initializer[0].doc_string = "Weights."
    model = loopscope.read_model(helper.make_model(graph, ir_version=10).SerializeToString())
    documented = {node.name: node.rt_info.get("doc_string") for node in model.graph.nodes}
    assert (documented["x"], documented["w"]) == ("Samples.", "Weights.")
    facts = dict(model_facts(model))
    assert facts["documentation of the graph"] == "A layer."
    assert facts["graph/scope"] == "head"


def test_the_facts_of_an_openvino_file() -> None:
    gcd = sample("gcd")
    assert gcd is not None
    facts = dict(model_facts(loopscope.read_model(gcd.model)))
    assert facts["format"] == "OpenVINO IR 11"
    assert facts["Runtime_version"].startswith("20")


def test_nested_metadata_of_any_depth_is_flattened_and_bounded() -> None:
    nested: dict[str, object] = {"value": "deep"}
    for _ in range(50):
        nested = {"a": nested}
    model = replace(exported(), rt_info={"b": {"c": "1"}, "n": nested})
    facts = model_facts(model)
    assert ("b/c", "1") in facts
    assert not any("deep" in text for _, text in facts)


def test_fused_operations_of_openvino() -> None:
    merged = node(fused_names={"version": "0", "value": "conv, relu,n,"})
    assert fused_names(merged) == ("conv", "relu")
    assert fused_names(node()) == ()


def test_hostile_names_are_neutral() -> None:
    text = 'File "a\x1b[31m\u202e.py", line 3, in f'
    line = own_source_line(node(stack_trace=text))
    assert line is not None
    assert "\x1b" not in line.file
    assert "\u202e" not in line.file
