"""IR documents read as they are meant."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from loopscope.errors import ReadError
from loopscope.ir.address import graphs
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import BackEdge, InputMap, LayerId, OutputMap, OutputRef
from loopscope.read import read_model
from tests.engine.read.documents import ADDITION, NESTED_WEIGHTS, WEIGHTS, nested_loops


def test_a_document_becomes_the_model_that_it_describes() -> None:
    model = read_model(ADDITION.encode(), WEIGHTS)
    assert (model.name, model.version, model.dialect, model.file) == (
        "addition",
        11,
        "openvino",
        "",
    )
    assert [(node.id, node.name, node.type, node.line) for node in model.graph.nodes] == [
        (0, "x", "Parameter", 4),
        (1, "c", "Const", 13),
        (2, "sum", "Add", 21),
        (3, "y", "Result", 42),
    ]
    parameter, constant, addition, result = model.graph.nodes
    assert parameter.attributes == {"shape": "?,3", "element_type": "f32"}
    assert parameter.outputs[0].names == ("x", "input,1")
    assert str(parameter.outputs[0].shape) == "[?,3]"
    assert constant.constant is not None
    np.testing.assert_array_equal(constant.constant.array(), np.array([1, 2, 3], np.float32))
    assert addition.rt_info == {"fused_names": {"version": "0", "value": "a,b"}}
    assert model.graph.sources[addition.id] == (
        OutputRef(parameter.id, 0),
        OutputRef(constant.id, 0),
    )
    assert result.output_names == ("y",)
    assert model.rt_info == {
        "OpenVINO Runtime": "2026",
        "conversion_parameters": {"framework": "pytorch"},
    }
    assert [(signature.name, signature.names) for signature in model.outputs] == [("y", ("y",))]


@pytest.mark.parametrize("before", ["\n", "  \r\n\n\t"])
def test_blank_lines_before_the_declaration_do_no_harm(before: str) -> None:
    lines = before.count("\n")
    model = read_model((before + ADDITION).encode(), WEIGHTS)
    assert [node.line for node in model.graph.nodes] == [line + lines for line in (4, 13, 21, 42)]
    assert model.rt_info == read_model(ADDITION.encode(), WEIGHTS).rt_info
    with pytest.raises(ReadError, match=f"^line {8 + lines}: .*mismatched tag"):
        read_model((before + ADDITION.replace("</dim>", "</dam>", 1)).encode(), WEIGHTS)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("f32", ElementType.F32), ("BIN", ElementType.U1), ("UNSPECIFIED", None), ("dynamic", None)],
)
def test_precisions_of_output_ports(text: str, wanted: ElementType | None) -> None:
    document = ADDITION.replace('<port id="2" precision="FP32"', f'<port id="2" precision="{text}"')
    assert read_model(document.encode(), WEIGHTS).graph.nodes[2].outputs[0].element_type is wanted


def test_data_of_a_parameter_counts_and_its_port_does_not() -> None:
    text = ADDITION.replace(
        '<port id="0" precision="FP32" names', '<port id="0" precision="I64" names'
    )
    port = read_model(text.encode(), WEIGHTS).graph.nodes[0].outputs[0]
    assert (port.element_type, str(port.shape)) == (ElementType.F32, "[?,3]")
    assert (
        read_model(text.replace("?,3", "..4,2..").encode(), WEIGHTS)
        .inputs[0]
        .shape.contains((3, 5))
    )


def test_layers_with_equal_insides_share_nothing_that_differs() -> None:
    once = '<layer id="7" name="{0}" type="Relu" version="opset1"><input><port id="0" precision="FP32"/></input></layer>'
    odd = once.format("c > d").replace("</input>", "<rt_info><input/></rt_info></input>")
    text = ADDITION.replace(
        "</layers>",
        once.format("a") + once.format("b") + once.format("a>b") + odd + odd + "</layers>",
    )
    nodes = read_model(text.encode(), WEIGHTS).graph.nodes[4:]
    assert [node.name for node in nodes] == ["a", "b", "a>b", "c > d", "c > d"]
    assert all(node.inputs == nodes[0].inputs and len(node.inputs) == 1 for node in nodes)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "latin1"])
def test_every_encoding_of_xml_is_read(encoding: str) -> None:
    declared = ADDITION.replace(
        'version="1.0"', f'version="1.0" encoding="{encoding.removesuffix("-sig")}"'
    ).replace('name="sum"', 'name="süm"')
    assert read_model(declared.encode(encoding), WEIGHTS).graph.nodes[2].name == "süm"


@pytest.mark.parametrize("declared", ["", ' encoding="UTF-8"', " encoding = 'utf-8'"])
def test_names_in_the_code_page_of_some_computer_are_escaped(declared: str) -> None:
    text = ADDITION.replace('version="1.0"', f'version="1.0"{declared}').replace(
        'name="sum"', 'name="süm"'
    )
    nodes = read_model(text.encode("latin1"), WEIGHTS).graph.nodes
    assert [(node.name, node.line) for node in nodes] == [
        ("x", 4),
        ("c", 13),
        (r"s\xfcm", 21),
        ("y", 42),
    ]


@pytest.mark.parametrize("behind", [b"\0\0\0", b"\xff", b"end", b"<net/>", b"<!-- cut", b"&lt;"])
def test_what_stands_behind_a_document_does_no_harm(behind: bytes) -> None:
    assert len(read_model(ADDITION.encode() + behind, WEIGHTS).graph.nodes) == 4


@pytest.mark.parametrize("layer", ["<data a", '<data element_type="f32"'])
def test_the_first_data_of_a_layer_counts(layer: str) -> None:
    text = re.sub(f"({layer}[^>]*/>)", r"\1<data/>", ADDITION)
    assert text.count("<data/>") == 1
    assert [node.attributes for node in read_model(text.encode(), WEIGHTS).graph.nodes] == [
        node.attributes for node in read_model(ADDITION.encode(), WEIGHTS).graph.nodes
    ]


def test_a_bare_doctype_and_comments_are_harmless() -> None:
    text = ADDITION.replace("<net", "<!DOCTYPE net><!-- </net> --><net").replace(
        "<input>", "<!-- </input> --><input>"
    )
    assert len(read_model(text.encode(), WEIGHTS).graph.nodes) == 4


def test_weights_are_looked_for_beside_the_document_when_a_const_needs_them(tmp_path: Path) -> None:
    path = tmp_path / "m.xml"
    path.write_text(ADDITION)
    with pytest.raises(
        ReadError,
        match=r"m\.xml:14, main/c \(Const opset1\): its data lies in a weights file that cannot be opened .*put m\.bin beside",
    ):
        read_model(path)
    assert read_model(path, WEIGHTS).graph.nodes[1].constant is not None
    (tmp_path / "m.bin").write_bytes(WEIGHTS)
    assert read_model(path).file == str(path)
    path.write_text(
        ADDITION.replace('shape="3" offset="0" size="12"', 'shape="0" offset="0" size="0"')
    )
    (tmp_path / "m.bin").unlink()
    assert read_model(path).graph.nodes[1].constant is not None


def test_port_maps_of_a_loop() -> None:
    (body,) = read_model(nested_loops(1).encode(), NESTED_WEIGHTS).graph.by_id[LayerId(2)].bodies
    assert body.name == "body"
    assert body.inputs == (InputMap(2, LayerId(0)),)
    assert body.outputs == (
        OutputMap(3, LayerId(3)),
        OutputMap(-1, LayerId(4), purpose="execution_condition"),
    )
    assert body.back_edges == (BackEdge(LayerId(3), LayerId(0)),)


def test_three_hundred_loops_inside_each_other(tmp_path: Path) -> None:
    path = tmp_path / "deep.xml"
    path.write_text(nested_loops(300))
    path.with_suffix(".bin").write_bytes(NESTED_WEIGHTS)
    places = list(graphs(read_model(path)))
    assert len(places) == 301
    assert places[-1].address.count("/body") == 300


def test_an_if_with_a_missing_body_is_still_a_model() -> None:
    text = ADDITION.replace('type="Add" version="opset1"', 'type="If" version="opset8"')
    branch = "<then_port_map/><then_body><layers/><edges/></then_body><else_port_map/>"
    node = read_model(
        text.replace("<data auto", f"{branch}<data auto").encode(), WEIGHTS
    ).graph.nodes[2]
    assert [body.name for body in node.bodies] == ["then"]


def test_a_file_of_openvino_has_the_inputs_and_outputs_that_openvino_finds(tmp_path: Path) -> None:
    x = ops.parameter(ov.PartialShape("[?,2..8,4]"), np.float32, name="x")
    mask = ops.parameter([], np.bool_, name="mask")
    split = ops.split(
        ops.select(mask, x, ops.constant(np.array([0.5], np.float16).astype(np.float32))),
        ops.constant(np.int64(2)),
        2,
    )
    split.output(1).get_tensor().set_names({"second half", "a,b"})
    ov.save_model(ov.Model(split.outputs(), [mask, x], "halves"), tmp_path / "m.xml")
    model, theirs = read_model(tmp_path / "m.xml"), ov.Core().read_model(tmp_path / "m.xml")
    for ours, port in zip(
        (*model.inputs, *model.outputs), (*theirs.inputs, *theirs.outputs), strict=True
    ):
        assert set(ours.names) == port.names
        assert str(ours.element_type) == port.element_type.get_type_name()
    assert [str(signature.shape) for signature in model.inputs] == ["[]", "[?,2..8,4]"]
    assert {node.name: node.rt_info for node in model.graph.nodes if node.rt_info}


def test_version_10_calls_inputs_and_outputs_after_their_layers() -> None:
    text = ADDITION.replace('name="addition" version="11"', 'name="addition" version="10"').replace(
        ' names="x,input\\,1"', ""
    )
    model = read_model(text.encode(), WEIGHTS)
    assert model.version == 10
    assert [signature.names for signature in (*model.inputs, *model.outputs)] == [
        ("x",),
        ("y", "sum"),
    ]


def test_types_that_the_model_rests_on_are_read_in_any_case() -> None:
    model = read_model(
        ADDITION.replace('"Parameter"', '"PARAMETER"').replace('"Result"', '"result"').encode(),
        WEIGHTS,
    )
    assert (len(model.inputs), len(model.outputs)) == (1, 1)
