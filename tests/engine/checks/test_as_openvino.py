"""Files that were edited by hand are refused where OpenVINO refuses them, and mean the same
where it reads them.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

import loopscope
from loopscope.checks.diagnostic import InvalidModel
from loopscope.debug.result import RunStopped
from tests.engine.checks.documents import BASES, WEIGHTS

_LAST = '<output external_port_id="4" internal_layer_id="8"/>'
_JOIN = '<output axis="0" external_port_id="5" internal_layer_id="8" start="0" end="-1" stride="1" part_size="1"/>'
_CARRIED = '<input external_port_id="3" internal_layer_id="2"/>'
_BACK = '<edge from-layer="8" to-layer="2"/>'
_PART = 'name="part" type="Parameter" version="opset1"><data shape="1,3" element_type="f32"/>'
_INPUTS = [np.arange(12, dtype=np.float32).reshape(4, 3), np.ones((1, 3), np.float32)]


def _numbered(entry: str, number: int) -> str:
    return entry.replace('port_id="4"', f'port_id="{number}"').replace(
        'port_id="5"', f'port_id="{number}"'
    )


def _files(folder: Path, old: str, new: str) -> Path:
    text = BASES["loop"]
    assert old in text
    (folder / "model.bin").write_bytes(WEIGHTS)
    file = folder / "model.xml"
    file.write_text(text.replace(old, new))
    return file


READ = {
    "as it is": (_LAST, _LAST),
    "last value, then joined under its number": (_LAST, _LAST + _numbered(_JOIN, 4)),
    "joined under its number, then last value": (_LAST, _numbered(_JOIN, 4) + _LAST),
    "the joined one, then another of its number": (_JOIN, _JOIN + _numbered(_LAST, 5)),
    "another of its number, then the joined one": (_JOIN, _numbered(_LAST, 5) + _JOIN),
    "an input entry twice": (_CARRIED, _CARRIED * 2),
    "a back edge twice": (_BACK, _BACK * 2),
    "a part that is also carried": (_BACK, _BACK + _BACK.replace('to-layer="2"', 'to-layer="1"')),
    "a Parameter of unknown length": (_PART, _PART.replace('"1,3"', '"?,3"')),
    "a Parameter that says nothing of its type": (_PART, _PART.replace(' element_type="f32"', "")),
    "a constant's type spelled as ports spell it": (
        '<data element_type="i64" shape=""',
        '<data element_type="I64" shape=""',
    ),
    "a Parameter of another length that the body is defined for": (
        _PART,
        _PART.replace('"1,3"', '"1,1"'),
    ),
}
REFUSED = {
    "two outputs of one number, and none of the other": (_JOIN, _numbered(_JOIN, 4), "LS405"),
    "a back edge to the iteration number": (
        _BACK,
        _BACK + _BACK.replace('to-layer="2"', 'to-layer="0"'),
        "LS509",
    ),
    "a Parameter of a type that the body is not defined for": (
        _PART,
        _PART.replace("f32", "i64"),
        "LS708",
    ),
    "a Parameter of a shape that the body is not defined for": (
        _PART,
        _PART.replace('"1,3"', '"2,2"'),
        "LS708",
    ),
    "the iteration number and an input for one Parameter": (
        _CARRIED,
        _CARRIED.replace('layer_id="2"', 'layer_id="0"'),
        "LS407",
    ),
}


@pytest.mark.parametrize("edit", READ)
def test_what_openvino_reads_means_the_same(edit: str, tmp_path: Path) -> None:
    file = _files(tmp_path, *READ[edit])
    mine = loopscope.run(loopscope.read_model(file), _INPUTS).outputs
    theirs = ov.Core().compile_model(str(file), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(_INPUTS)
    assert len(mine) == len(theirs)
    for position, output in enumerate(mine):
        np.testing.assert_array_equal(output, theirs[position])


@pytest.mark.parametrize("edit", REFUSED)
def test_what_openvino_refuses_is_refused(edit: str, tmp_path: Path) -> None:
    old, new, code = REFUSED[edit]
    file = _files(tmp_path, old, new)
    with pytest.raises(RuntimeError):
        ov.Core().read_model(file)
    with pytest.raises(InvalidModel) as caught:
        loopscope.run(loopscope.read_model(file), _INPUTS)
    assert code in {one.code for one in caught.value.report.errors}


def test_a_result_of_a_branch_makes_one_output(tmp_path: Path) -> None:
    condition, data = ov.opset15.parameter([], bool), ov.opset15.parameter([3], np.float32)
    bodies = []
    for operation in (ov.opset15.relu, ov.opset15.negative):
        inner = ov.opset15.parameter([3], np.float32)
        results = [ov.opset15.result(operation(inner)), ov.opset15.result(inner)]
        bodies.append((ov.Model(results, [inner], "branch"), inner, results))
    node = ov.opset15.if_op(condition)
    node.set_then_body(bodies[0][0])
    node.set_else_body(bodies[1][0])
    node.set_input(data.output(0), bodies[0][1], bodies[1][1])
    outputs = [
        node.set_output(one, other) for one, other in zip(bodies[0][2], bodies[1][2], strict=True)
    ]
    file = tmp_path / "model.xml"
    ov.serialize(ov.Model(outputs, [condition, data], "choice"), str(file))
    inputs = [np.array(True), np.array([-1, 0, 1], np.float32)]
    np.testing.assert_array_equal(
        loopscope.run(loopscope.read_model(file), inputs).outputs[1], inputs[1]
    )
    then_map, rest = file.read_text().split("</then_port_map>", 1)
    layers = re.findall(r'<output external_port_id="\d+" internal_layer_id="(\d+)"', then_map)
    file.write_text(
        then_map.replace(f'internal_layer_id="{layers[1]}"', f'internal_layer_id="{layers[0]}"')
        + "</then_port_map>"
        + rest
    )
    with pytest.raises(RuntimeError, match="already associated"):
        ov.Core().read_model(file)
    with pytest.raises(
        InvalidModel, match=f"2 outputs of the then branch are mapped from Result {layers[0]}"
    ):
        loopscope.run(loopscope.read_model(file), inputs)


def test_axes_are_a_list(tmp_path: Path) -> None:
    """OpenVINO takes no tensor of two dimensions for the axes of Squeeze either."""
    parameter = ov.opset15.parameter([1, 3], np.float32)
    axes = ov.opset15.parameter(ov.PartialShape.dynamic(), np.int64)
    file = tmp_path / "model.xml"
    ov.serialize(ov.Model([ov.opset15.squeeze(parameter, axes)], [parameter, axes]), str(file))
    model = loopscope.read_model(file)
    assert loopscope.run(model, [np.ones((1, 3), np.float32), np.array([0])]).outputs[0].shape == (
        3,
    )
    with pytest.raises(
        RunStopped, match=r"expected a list of integers, the tensor has shape \[1, 1\]"
    ):
        loopscope.run(model, [np.ones((1, 3), np.float32), np.array([[0]])])
