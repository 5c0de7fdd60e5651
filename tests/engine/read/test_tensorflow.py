"""Graphs of TensorFlow give TensorFlow's numbers, operations without a conversion included; what was lost is told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import engine
from engine.errors import ReadError
from engine.ir.model import Graph, Node
from engine.ops import custom
from engine.ops.catalogue import CATALOGUE
from engine.ops.declare import Array, Attribute, Operation
from engine.ops.infer import same
from engine.read.file_limits import ReadLimits

FILES = Path(__file__).parent / "files" / "tensorflow"
EXPECTED = json.loads((FILES / "expected.json").read_text())
"""By file: pairs of feeds and of what TensorFlow gives."""
_TYPES = {"x": np.float32, "n": np.int32, "p": np.bool_, "q": np.bool_}
_KEPT = "nodes kept their names in the conversion"
PRINTS = [name for name in EXPECTED if "print" in name]


@pytest.fixture
def with_print() -> Iterator[None]:
    """Print as a user would supply it."""
    before = CATALOGUE.categories
    attributes = (Attribute("message", "str", ""), Attribute("first_n", "int", -1), Attribute("summarize", "int", 3))
    row = Operation(
        name="Print",
        version=1,
        opsets=(1, 17),
        opset="tensorflow",
        page="",
        kernel=_print,
        infer=same,
        inputs=(1, None),
        attributes=attributes,
    )
    custom.install([row])
    yield
    CATALOGUE.categories = before
    CATALOGUE.install(())


def _print(value: Array, *data: Array, message: str, first_n: int, summarize: int) -> Array:
    return value


def _check_numbers(path: Path) -> None:
    model = engine.read_model(path)
    names = {name.partition(":")[0]: one.name for one in model.inputs for name in (one.name, *one.names)}
    (out,) = (at for at, one in enumerate(model.outputs) if {"out", "out:0"} & {one.name, *one.names})
    for feeds, wanted in EXPECTED[path.name]:
        given: dict[str, object] = {names[name]: np.array(value, _TYPES[name]) for name, value in feeds.items()}
        np.testing.assert_allclose(engine.run(model, given).outputs[out], wanted, rtol=1e-6, err_msg=str(feeds))


@pytest.mark.parametrize("name", ["plain_loop.meta", "weights.meta"])
def test_tensorflow_s_numbers(name: str) -> None:
    _check_numbers(FILES / name)


@pytest.mark.parametrize("name", PRINTS)
def test_an_operation_that_nobody_converts_can_be_supplied(name: str, with_print: None) -> None:
    _check_numbers(FILES / name)


def _nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for body in node.bodies:
            yield from _nodes(body.graph)


@pytest.mark.parametrize("name", PRINTS)
def test_an_operation_that_nobody_converts_has_its_name_and_attributes(name: str) -> None:
    model = engine.read_model(FILES / name)
    (node,) = (node for node in _nodes(model.graph) if node.type == "Print")
    assert node.opset == "tensorflow"
    assert node.name.split("/")[-1].startswith("Print")
    assert node.attributes["message"] == ("i:" if "loop" in name else "x:" if "flat" in name else "")
    assert (node.attributes["T"], node.attributes["first_n"]) == ("f32", "-1")
    assert "nobody converts Print 1" in model.notes[1]
    report = engine.check(model)
    assert {found.where.address for found in report.errors if "Print" in str(found)}, "the operation is to be supplied"


def test_a_lone_switch_of_v1_is_drawn() -> None:
    (switch,) = (node for node in engine.read_model(FILES / "lone_switch.pb").graph.nodes if node.type == "Switch")
    assert (switch.opset, len(switch.inputs), len(switch.outputs)) == ("tensorflow", 2, 2)


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("flat_print.pb", f"7 of 7 {_KEPT}"),
        ("weights.meta", f"4 of 5 {_KEPT}; OpenVINO merged, folded or left out ReadVariableOp 1"),
        (
            "plain_loop.meta",
            "20 of 25 nodes kept their names in the conversion; OpenVINO merged, folded or left out NextIteration 2, Enter 2, LoopCond 1",
        ),
    ],
)
def test_the_nodes_that_are_kept_are_counted(name: str, note: str) -> None:
    assert engine.read_model(FILES / name).notes[0] == note


def test_a_model_that_changes_a_variable_says_what_the_conversion_lost() -> None:
    model = engine.read_model(FILES / "assigns.zip")
    _, lost = model.notes
    assert lost.startswith("the model changes variables in 'AssignAddVariableOp' (AssignAddVariableOp): the conversion leaves that out")
    assert any(lost in str(found) for found in engine.check(model).notes)


def test_a_meta_graph_finds_its_values_beside_it(tmp_path: Path) -> None:
    alone = engine.read_model((FILES / "weights.meta").read_bytes())
    assert alone.notes[1].startswith("1 of the variables have no value here: those of a meta graph lie in the .index and .data files")
    assert [(node.name, node.attributes["dtype"]) for node in alone.graph.nodes if node.type == "VarHandleOp"] == [("w", "f32")]
    renamed = tmp_path / "model[1].meta"
    for file in FILES.glob("weights.*"):
        shutil.copyfile(file, tmp_path / file.name.replace("weights", "model[1]"))
    assert engine.run(engine.read_model(renamed), [np.ones(2, np.float32)]).outputs[0].tolist() == [3, 4]


def test_a_graph_as_text_is_read_from_bytes_too() -> None:
    model = engine.read_model((FILES / "flat_print.pbtxt").read_bytes())
    assert model.converted_from.startswith("a TensorFlow graph as text, converted by OpenVINO")


@pytest.mark.parametrize("text", [b'node {\n name: "x"', b"node { " * 5000])
def test_damaged_text_is_one_sentence(text: bytes) -> None:
    with pytest.raises(ReadError, match="TensorFlow graph as text; OpenVINO does not convert it") as caught:
        engine.read_model(text)
    assert len(str(caught.value)) < 800


def test_a_graph_that_is_too_long_to_be_counted_opens_and_says_so() -> None:
    model = engine.read_model(FILES / "flat_print.pbtxt", limits=ReadLimits(graph_text_bytes=100))
    assert model.notes == ("what the conversion kept is not counted: the graph has 1,565 bytes, more than 100",)
    assert [node.opset for node in model.graph.nodes if node.type == "Print"] == ["tensorflow"]
