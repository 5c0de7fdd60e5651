"""A bare <layer> opens as a model: the pages' own examples, verbatim, and whatever else lacks
its surroundings.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

import loopscope
from loopscope.errors import ReadError
from loopscope.ir.model import BackEdge, Model
from loopscope.read.file_limits import ReadLimits

PAGES = Path(__file__).parent / "files" / "pages"
"""The examples of the pages of If-8 and of Loop-5 (as it was first written, and in Japanese), as
they stand there.
"""


def _said(model: Model) -> list[str]:
    return [f"{one.name} {one.element_type}{one.shape}" for one in model.inputs]


def test_the_example_of_if_8_runs() -> None:
    model = loopscope.read_model(PAGES / "if_8.xml")
    assert _said(model) == [
        "if/cond_input_0 boolean[]",
        *(f"if/cond_input_{at} f32[2,4]" for at in (1, 2, 3)),
    ]
    assert [one.name for one in model.outputs] == ["if/cond_output_0"]
    (port,) = model.graph.results[0].inputs
    assert (str(port.element_type), str(port.shape)) == ("f32", "[2,4]")
    assert model.name == "if/cond"
    names = "'if/cond_input_0', 'if/cond_input_1', 'if/cond_input_2', 'if/cond_input_3', 'if/cond_output_0'"
    assert model.notes == (f"this is a bare <layer>, not a model: {names} were put around it",)
    assert [found.message for found in loopscope.check(model).notes] == [*model.notes]
    x, z, w = (np.full((2, 4), value, np.float32) for value in (1, 2, 5))
    assert loopscope.run(model, [np.array(True), x, z, w]).outputs[0].tolist() == (x + z).tolist()
    assert loopscope.run(model, [np.array(False), x, z, w]).outputs[0].tolist() == (x + w).tolist()


@pytest.mark.parametrize("name", ["loop_5", "loop_5_japanese"])
def test_the_example_of_loop_5_opens_though_it_leaves_nearly_everything_out(name: str) -> None:
    model = loopscope.read_model(PAGES / f"{name}.xml")
    (loop,) = (node for node in model.graph.nodes if node.type == "Loop")
    body = loop.body("body")
    assert [(node.type, node.id) for node in body.graph.nodes] == [
        *(("Parameter", at) for at in (0, 1, 2, 5)),
        *(("Result", at) for at in (4, 10, 22)),
    ]
    assert [
        (entry.external, entry.internal, entry.axis, entry.purpose) for entry in body.outputs
    ] == [
        (3, 4, None, ""),
        (4, 10, 1, ""),
        (-1, 22, None, "execution_condition"),
    ]
    assert body.back_edges == (
        BackEdge(from_layer=body.graph.nodes[1].id, to_layer=body.graph.nodes[3].id),
    )
    assert _said(model) == ["Loop_input_0 i64[]", "Loop_input_1 boolean[]"]
    assert [one.name for one in model.outputs] == ["Loop_output_0", "Loop_output_1"]
    assert model.notes[1].startswith(
        "bodies lack layers that port maps and back edges name; these were put there: 'Loop/body/Parameter_0'"
    )
    report = loopscope.check(model)
    # What stands in its body it does not say, and its back edge begins at a layer that its port map
    # calls an input.
    unfed = {f"main/Loop/body/Result_{at}" for at in (4, 10, 22)}
    assert {found.where.address for found in report.errors} - unfed == {"main/Loop"}
    assert unfed < {found.where.address for found in report.errors}
    assert any(
        found.where.line == 13 + 1 or "back edge" in found.message for found in report.errors
    )


ADD = """<layer id="3" type="Add" name="sum" version="opset1">
    <input><port id="0"><dim>256</dim></port><port id="1"><dim>256</dim></port></input>
    <output><port id="2"><dim>256</dim></port></output>
</layer>"""
RELU = """<layer id="4" type="ReLU" name="positive" version="opset1">
    <input><port id="0" precision="FP32"><dim>256</dim></port></input>
    <output><port id="1" precision="FP32"><dim>256</dim></port></output>
</layer>"""
SUM = ["sum_input_0 f32[256]", "sum_input_1 f32[256]"]
EDGE = '<edge from-layer="3" from-port="2" to-layer="4" to-port="0"/>'


@pytest.mark.parametrize(
    ("text", "inputs", "outputs", "note"),
    [
        (
            ADD,
            SUM,
            ["sum_output_0"],
            "element type of 'sum_input_0', 'sum_input_1': f32 is taken",
        ),
        (
            ADD.replace('id="3" ', "").replace(' version="opset1"', ""),
            SUM,
            ["sum_output_0"],
            "",
        ),
        (RELU, ["positive_input_0 f32[256]"], ["positive_output_0"], ""),
        (
            ADD + RELU,
            [*SUM, "positive_input_0 f32[256]"],
            ["sum_output_0", "positive_output_0"],
            "",
        ),
        (
            f"<layers>{ADD}{RELU}</layers><edges>{EDGE}</edges>",
            SUM,
            ["positive_output_0"],
            "",
        ),
        (
            f'\ufeff<?xml version="1.0"?>\n<!-- <layer> -->\n<!-- a page -->{RELU}',
            ["positive_input_0 f32[256]"],
            ["positive_output_0"],
            "",
        ),
    ],
)
def test_what_is_missing_is_put_there(
    text: str, inputs: list[str], outputs: list[str], note: str
) -> None:
    model = loopscope.read_model(text.encode())
    assert _said(model) == inputs
    assert [one.name for one in model.outputs] == outputs
    assert note in "; ".join(model.notes)
    assert not loopscope.check(model).errors
    given = [np.full(256, value, np.float32) for value in range(1, len(inputs) + 1)]
    assert loopscope.run(model, given).outputs[0].shape == (256,)


def test_lines_stay_those_of_the_text() -> None:
    model = loopscope.read_model(f"<!-- one\ntwo -->\n{ADD}\n{RELU}".encode())
    assert [
        (node.name, node.line) for node in model.graph.nodes if node.type in ("Add", "ReLU")
    ] == [("sum", 3), ("positive", 7)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"<layer id='0'", "line 1: this is not well-formed XML"),
        (b"<layer>\n<input></layer>", "line 2: this is not well-formed XML"),
        (
            b"<layer id='0' type='Abs'>&boom;</layer>",
            "not well-formed XML: Entity 'boom' not defined",
        ),
        (
            b"<layer>" + b"<a>" * 300 + b"</a>" * 300 + b"</layer>",
            "not well-formed XML: Excessive depth",
        ),
        (b"<layer/><!DOCTYPE net [<!ENTITY boom 'x'>]>", "not well-formed XML"),
        (b"<layer/></net><net>", "not well-formed XML"),
        (b"<layer id='0'/>", "<layer> lacks the required attribute 'type'"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(text: bytes, says: str) -> None:
    with pytest.raises(ReadError) as caught:
        loopscope.read_model(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_bare_layers_are_bounded() -> None:
    with pytest.raises(
        ReadError, match="bare layers of 3,000 bytes, more than the limit 'layer_bytes' of 2,999"
    ):
        loopscope.read_model(ADD.encode().ljust(3000), limits=ReadLimits(layer_bytes=2999))


@pytest.mark.slow
@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        b"<!-- -->" * 100_000,
        b"<layer " + b"... " * 200_000 + b">",
        b"<layer a='" + b"<" * 200_000,
        b"<layer type='Loop'><port_map><input external_port_id='999999999' internal_layer_id='1'/></port_map></layer>",
        b"<layer type='Loop'><port_map>"
        + b"<input external_port_id='7' internal_layer_id='x'/>" * 20_000
        + b"</port_map><body/></layer>",
        b"<layers>" + b"<layer type='Abs'/>" * 20_000 + b"</layers>",
    ],
    ids=["comments", "dots", "tags", "a far port", "entries", "layers"],
)
def test_hostile_layers_take_no_long_time(text: bytes) -> None:
    with contextlib.suppress(ReadError):
        assert len(loopscope.read_model(text).graph.nodes) < 50_000
