"""Graphs of TensorFlow give TensorFlow's numbers, operations without a conversion included; what
was lost is told.
"""

from __future__ import annotations

import functools
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import loopscope
from loopscope import builder
from loopscope.errors import ReadError
from loopscope.ir.graph_messages import MESSAGES
from loopscope.ir.model import ModelGraph, Node
from loopscope.ops import custom
from loopscope.ops.catalogue import CATALOGUE
from loopscope.read.file_limits import ReadLimits
from loopscope.read.recognise import Format
from loopscope.read.tensorflow import conversion_notes, graph_conversion
from loopscope.read.tensorflow.graph_file import GraphDefFile, read_source
from loopscope.read.tensorflow.graph_rewrites import with_ifs
from loopscope.read.tensorflow.node_scopes import with_call_scopes
from loopscope.read.tensorflow.v1_control_flow import FRAME_OPERATIONS, with_functions
from loopscope.view.group_boxes import function_calls

FILES = Path(__file__).parent / "files" / "tensorflow"
EXPECTED = json.loads((FILES / "expected.json").read_text())
"""By file: pairs of feeds and of what TensorFlow gives."""
_TYPES = {"x": np.float32, "n": np.int32, "p": np.bool_, "q": np.bool_}
_KEPT = "nodes kept their names in the conversion"
PRINTS = [name for name in EXPECTED if "print" in name]


@functools.cache
def _read(name: str) -> loopscope.Model:
    """A file of ``FILES``, converted once for all tests."""
    return loopscope.read_model(FILES / name)


def _check_numbers(path: Path) -> None:
    model = _read(path.name) if path.parent == FILES else loopscope.read_model(path)
    names = {
        name.partition(":")[0]: one.name for one in model.inputs for name in (one.name, *one.names)
    }
    (out,) = (
        at for at, one in enumerate(model.outputs) if {"out", "out:0"} & {one.name, *one.names}
    )
    for feeds, wanted in EXPECTED[path.name]:
        given: dict[str, object] = {
            names[name]: np.array(value, _TYPES[name]) for name, value in feeds.items()
        }
        np.testing.assert_allclose(
            loopscope.run(model, given).outputs[out], wanted, rtol=1e-6, err_msg=str(feeds)
        )


@pytest.mark.parametrize("name", EXPECTED)
def test_tensorflow_s_numbers(name: str) -> None:
    _check_numbers(FILES / name)


def test_inputs_and_outputs_are_found_by_their_node_and_by_their_tensor() -> None:
    """TF_GraphOperationByName: ``x`` is the operation, ``x:0`` its tensor."""
    model = _read("flat_print.pb")
    assert [one.name for one in (*model.inputs, *model.outputs)] == ["x", "out"]
    for name, fetch in (("x", "out"), ("x:0", "out:0"), ("x", "main/out")):
        assert loopscope.run(model, {name: [1, 2]}, fetch).outputs[0].tolist() == [3, 5]


def test_a_name_that_another_node_has_stays_away() -> None:
    graph = builder.Graph("names")
    made = builder.ops.exp(graph.parameter("x:0", "f32", [2]), name="x")
    model = graph_conversion.by_node_names(graph.model({"y:0": made}))
    assert [node.name for node in model.graph.nodes] == ["x:0", "x", "y"]


def _nodes(graph: ModelGraph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for body in node.bodies:
            yield from _nodes(body.graph)


@pytest.mark.parametrize("name", PRINTS)
def test_print_is_ours(name: str) -> None:
    (node,) = (node for node in _nodes(_read(name).graph) if node.type == "Print")
    assert node.opset == "loopscope"
    assert node.attributes["message"] == (
        "i:" if "loop" in name else "x:" if "flat" in name else ""
    )


@pytest.mark.parametrize("reader", ["add", "other"])
def test_a_print_that_is_reached_by_control_alone_is_kept_where_its_value_is_read(
    reader: str, tmp_path: Path
) -> None:
    text = """
      node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
             attr { key: "shape" value { shape { dim { size: 2 } } } } }
      node { name: "look" op: "Print" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } }
             attr { key: "U" value { list { type: DT_FLOAT } } } attr { key: "message" value { s: "x is " } } }
      node { name: "other" op: "Neg" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
      node { name: "out" op: "AddV2" input: "READ" input: "x" input: "^look" attr { key: "T" value { type: DT_FLOAT } } }
    """
    path = tmp_path / "look.pbtxt"
    path.write_text(text.strip().replace("READ", "x" if reader == "add" else "other"))
    model = loopscope.read_model(path)
    assert [node.name for node in model.graph.nodes if node.type == "Print"] == ["look"]
    (place,) = (
        place for place, one in enumerate(model.outputs) if one.name.removesuffix(":0") == "out"
    )
    assert loopscope.run(model, [[1, 2]]).outputs[place].tolist() == (
        [2, 4] if reader == "add" else [0, 0]
    )


_CALLS = """
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "first" op: "PartitionedCall" input: "x" attr { key: "f" value { func { name: "OUTER" } } }
       attr { key: "Tin" value { list { type: DT_FLOAT } } } attr { key: "Tout" value { list { type: DT_FLOAT } } } }
node { name: "out" op: "OUTER" input: "first" }
library {
  function {
    signature { name: "OUTER" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "top" op: "TopKV2" input: "x" input: "k:output:0" attr { key: "T" value { type: DT_FLOAT } } }
    node_def { name: "k" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
               attr { key: "value" value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 2 } } } }
    node_def { name: "inner" op: "INNER" input: "top:values:0" }
    ret { key: "y" value: "inner:y:0" }
  }
  function {
    signature { name: "INNER" input_arg { name: "a" type: DT_FLOAT } output_arg { name: "y" type: DT_FLOAT } }
    node_def { name: "add" op: "AddV2" input: "a" input: "a" attr { key: "T" value { type: DT_FLOAT } } }
    ret { key: "y" value: "add:z:0" }
  }
}
""".replace("OUTER", "__inference_outer_17").replace("INNER", "double")


def test_each_call_of_a_function_has_a_scope_and_says_which_call_it_is(tmp_path: Path) -> None:
    path = tmp_path / "calls.pbtxt"
    path.write_text(_CALLS.strip())
    model = loopscope.read_model(path)
    assert [node.name for node in model.graph.nodes if node.type == "Add"] == [
        "outer/double/add",
        "outer_1/double/add",
    ]
    assert {
        group: (call.function, call.number, call.total)
        for group, call in function_calls(model).items()
    } == {
        "main/outer%2F*": ("outer", 1, 2),
        "main/outer%2Fdouble%2F*": ("double", 1, 2),
        "main/outer_1%2F*": ("outer", 2, 2),
        "main/outer_1%2Fdouble%2F*": ("double", 2, 2),
    }
    outputs = loopscope.run(model, [[1, 3]]).outputs
    assert [output.tolist() for output in outputs if output.dtype == np.float32] == [[12, 4]]


@pytest.mark.parametrize(
    "text",
    [
        _CALLS.replace('op: "double"', 'op: "__inference_outer_17"'),  # calls itself
        _CALLS.replace('node { name: "out" op: "__inference_outer_17" input: "first" }', ""),
        _CALLS.replace("_outer_17", "_signature_wrapper___call___9").replace("double", "__call__"),
    ],
    ids=["recursive", "called once", "around a signature"],
)
def test_functions_that_call_themselves_or_are_called_once_stay(text: str) -> None:
    graph = text_format.Parse(text, MESSAGES["GraphDef"]())
    assert with_call_scopes(graph) is None


def _unknown(folder: Path) -> Path:
    """A graph with an operation of somebody's own, between two that are converted."""
    path = folder / "flat_print.pbtxt"
    path.write_text(
        (FILES / "flat_print.pbtxt").read_text().replace('op: "Print"', 'op: "Announce"')
    )
    return path


def test_an_operation_that_nobody_converts_has_its_name_and_attributes(tmp_path: Path) -> None:
    model = loopscope.read_model(_unknown(tmp_path))
    (node,) = (node for node in model.graph.nodes if node.type == "Announce")
    assert (node.name, node.opset, len(node.inputs)) == ("Print", "tensorflow", 2)
    assert dict(node.attributes) == {
        "T": "f32",
        "U": "f32",
        "first_n": "-1",
        "message": "x:",
        "summarize": "5",
    }
    assert model.notes[1].startswith(
        "OpenVINO does not convert Announce 1: these stay TensorFlow operations; define what they compute"
    )
    assert [found.where.address for found in loopscope.check(model).errors] == ["main/Print"]


_OPERATIONS = """
from loopscope import Operation
from loopscope.ops import Attribute, same

OPERATIONS = (
    Operation(
        name="Announce", version=1, opsets=(1, 17), opset="tensorflow", page="", kernel=lambda value, data, /, *, message: value,
        infer=same, inputs=(2, 2), attributes=(Attribute("message", "str", ""),),
    ),
)
"""


def test_an_operation_that_nobody_converts_can_be_supplied(tmp_path: Path) -> None:
    (tmp_path / "operations.py").write_text(_OPERATIONS)
    before = CATALOGUE.categories
    custom.install_file(tmp_path / "operations.py")
    try:
        _check_numbers(_unknown(tmp_path))
    finally:
        CATALOGUE.categories = before
        CATALOGUE.install(())


def test_a_lone_switch_of_v1_is_drawn() -> None:
    (switch,) = (node for node in _read("lone_switch.pb").graph.nodes if node.type == "Switch")
    assert (switch.opset, len(switch.inputs), len(switch.outputs)) == ("tensorflow", 2, 2)


def test_an_output_that_the_conversion_drops_is_named() -> None:
    model = _read("flat_print.pb")
    (output,) = (output.name for output in model.outputs)
    source = GraphDefFile(_graph("flat_print.pb"), {output: output, "steps": "ReadVariableOp"})
    assert (
        "the conversion leaves out 1 of the 2 outputs that the file names: 'steps'"
        in conversion_notes.notes(source, model)
    )


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
    assert _read(name).notes[0] == note


def test_a_model_that_changes_a_variable_says_what_the_conversion_lost() -> None:
    model = _read("assigns.zip")
    _, lost = model.notes
    assert lost.startswith(
        "the model changes variables in 'AssignAddVariableOp' (AssignAddVariableOp): the conversion leaves that out"
    )
    assert any(lost in str(found) for found in loopscope.check(model).notes)


def test_a_meta_graph_finds_its_values_beside_it(tmp_path: Path) -> None:
    alone = loopscope.read_model((FILES / "weights.meta").read_bytes())
    assert alone.notes[1].startswith(
        "1 of the variables have no value here: those of a meta graph lie in the .index and .data files"
    )
    assert [
        (node.name, node.attributes["dtype"])
        for node in alone.graph.nodes
        if node.type == "VarHandleOp"
    ] == [("w", "f32")]
    renamed = tmp_path / "model[1].meta"
    for file in FILES.glob("weights.*"):
        shutil.copyfile(file, tmp_path / file.name.replace("weights", "model[1]"))
    assert loopscope.run(loopscope.read_model(renamed), [np.ones(2, np.float32)]).outputs[
        0
    ].tolist() == [3, 4]


def test_a_graph_as_text_is_read_from_bytes_too() -> None:
    model = loopscope.read_model((FILES / "flat_print.pbtxt").read_bytes())
    assert model.converted_from.startswith("a TensorFlow graph as text, converted by OpenVINO")


@pytest.mark.parametrize("text", [b'node {\n name: "x"', b"node { " * 5000])
def test_damaged_text_is_one_sentence(text: bytes) -> None:
    with pytest.raises(
        ReadError, match="TensorFlow graph as text; OpenVINO does not convert it"
    ) as caught:
        loopscope.read_model(text)
    assert len(str(caught.value)) < 800


def test_a_graph_that_is_too_long_to_be_counted_opens_and_says_so() -> None:
    model = loopscope.read_model(
        FILES / "flat_print.pbtxt", limits=ReadLimits(graph_text_bytes=100)
    )
    assert model.notes == (
        "what the conversion kept is not counted: the graph has 1,565 bytes, more than 100",
    )
    assert [node.type for node in model.graph.nodes if node.opset == "loopscope"] == ["Print"]


@pytest.mark.parametrize(
    ("name", "regions"),
    [
        ("cond_in_loop.pb", ["Loop", "If"]),
        ("loop_in_cond.pb", ["If", "Loop"]),
        ("cond_in_cond.pb", ["If", "If"]),
        ("loop_in_loop.pb", ["Loop", "Loop", "If"]),
        ("three_loops_deep.pb", ["Loop", "Loop", "Loop"]),
        ("fibonacci.pb", ["Loop", "Loop"]),
        ("frames_in_functions.zip", ["Loop", "Loop", "If", "If"]),
        ("frames_as_text.zip", ["Loop", "Loop", "If", "If"]),
        ("case.pb", ["Loop", *["If"] * 6]),
    ],
)
def test_frames_and_branches_of_v1_become_loops_and_ifs(name: str, regions: list[str]) -> None:
    model = _read(name)
    assert sorted(node.type for node in _nodes(model.graph) if node.bodies) == sorted(regions)
    assert not [node.type for node in _nodes(model.graph) if node.opset == "tensorflow"]


@pytest.mark.parametrize(
    ("name", "regions"),
    [
        ("cond_in_cond.pb", ["cond", "cond/cond"]),
        ("cond_in_loop.pb", ["while", "while/cond"]),
        ("loop_in_cond.pb", ["cond", "cond/while"]),
        ("print_in_cond.pb", ["cond"]),
        ("plain_loop.meta", ["while"]),
        ("three_loops_deep.pb", ["while", "while/while", "while/while/while"]),
        (
            "case.pb",
            [
                "outer",
                "outer/indexed_case",
                "outer/indexed_case/inner",
                "outer/indexed_case/inner/indexed_case",
                "while",
                "while/in_loop",
                "while/in_loop/indexed_case",
            ],
        ),
    ],
)
def test_loops_and_branches_of_v1_have_their_scope_as_name(name: str, regions: list[str]) -> None:
    assert sorted(node.name for node in _nodes(_read(name).graph) if node.bodies) == regions


@pytest.mark.parametrize(
    "damage",
    [
        lambda case: case.attr["branches"].list.ClearField("func"),
        lambda case: case.input.append("x"),
        lambda case: setattr(case.attr["branches"].list.func[0], "name", "nowhere"),
        lambda case: case.attr["Tin"].list.type.append(1),
    ],
)
def test_a_malformed_case_stays(damage: Callable[[Any], object]) -> None:
    graph = _graph("case.pb")
    (case,) = (node for node in graph.node if node.op == "StatelessCase")
    assert with_ifs(graph) is not None
    damage(case)
    assert with_ifs(graph) is None


def test_nodes_have_the_devices_of_the_file(tmp_path: Path) -> None:
    graph = _graph("cond_in_loop.pb")
    for number, node in enumerate(graph.node):
        node.device = f"/job:worker/task:{number % 2}"
    path = tmp_path / "placed.pb"
    path.write_bytes(graph.SerializeToString())
    placed = {node.name: node.device for node in graph.node}
    found = [node for node in _nodes(loopscope.read_model(path).graph) if node.name in placed]
    assert found
    assert all(node.rt_info["device"] == placed[node.name] for node in found)


@pytest.mark.parametrize("name", ["accumulated.pb", "accumulated_v1.pb", "accumulated.meta"])
def test_a_variable_that_is_assigned_is_a_state(name: str) -> None:
    """TensorFlow gives 6.5, 13 and 19.5: s += x . w + b, with the values of a checkpoint or of
    the initializers.
    """
    model = _read(name)
    assert loopscope.check(model).ok
    states = {
        node.attributes["variable_id"]
        for node in model.graph.nodes
        if node.type in ("ReadValue", "Assign")
    }
    assert states == {"s"}
    assert len({node.name for node in model.graph.nodes}) == len(model.graph.nodes)
    assert not any("changes variables" in note for note in model.notes)
    session = loopscope.Session(model)
    place = [one.name for one in model.outputs].index("out")
    assert [float(session.run([[[1, 2, 2]]]).outputs[place]) for _ in range(3)] == [6.5, 13, 19.5]


def _graph(name: str) -> Any:
    return read_source(FILES / name, Format.FROZEN).graph


def test_a_graph_that_is_folded_has_no_v1_control_flow_left() -> None:
    folded = with_functions(_graph("loop_in_loop.pb"))
    assert folded is not None
    inside = [node.op for function in folded.library.function for node in function.node_def]
    assert {"StatelessWhile", "StatelessIf"} < {*inside, *(node.op for node in folded.node)}
    assert not {"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond"} & {
        *inside,
        *(node.op for node in folded.node),
    }


def test_frames_in_functions_are_folded_there(tmp_path: Path) -> None:
    """A SavedModel calls its functions: what is folded stays in them, and the variables that
    they read are still the model's.
    """
    with zipfile.ZipFile(FILES / "frames_in_functions.zip") as files:
        files.extractall(tmp_path)
    graph = read_source(tmp_path / "model" / "saved_model.pb", Format.SAVED_MODEL).graph
    folded = with_functions(graph)
    assert folded is not None
    assert [node.name for node in folded.node] == [node.name for node in graph.node]
    names = [function.signature.name for function in folded.library.function]
    assert len(set(names)) == len(names)
    assert not [
        node.op
        for function in folded.library.function
        for node in function.node_def
        if node.op in FRAME_OPERATIONS
    ]
    damaged = type(graph)()
    damaged.CopyFrom(graph)
    broken = next(
        node
        for function in damaged.library.function
        for node in function.node_def
        if node.op == "Exit"
    )
    del broken.input[:]
    assert with_functions(damaged) is None, (
        "one function that is not well formed leaves all as it is"
    )


def test_a_saved_model_as_text_is_read_from_its_folder_and_by_its_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES / "frames_as_text.zip") as files:
        files.extractall(tmp_path)
    (feeds, wanted) = EXPECTED["frames_as_text.zip"][3]
    for path in (tmp_path / "model", tmp_path / "model" / "saved_model.pbtxt"):
        model = loopscope.read_model(path)
        assert model.converted_from.startswith(
            "a TensorFlow SavedModel as text, converted by OpenVINO"
        )
        given = {"x": np.array(feeds["x"], np.float32), "n": np.int32(feeds["n"])}
        np.testing.assert_allclose(loopscope.run(model, given).outputs[0], wanted, rtol=1e-6)
    with pytest.raises(
        ReadError,
        match="one file of a TensorFlow SavedModel: give the folder, or a zip of all of it",
    ):
        loopscope.read_model((tmp_path / "model" / "saved_model.pbtxt").read_bytes())
    with pytest.raises(
        ReadError,
        match=r"a TensorFlow SavedModel as text; it has [\d,]+ bytes, more than the limit 'graph_text_bytes' of 100",
    ):
        loopscope.read_model(tmp_path / "model", limits=ReadLimits(graph_text_bytes=100))


def test_a_meta_graph_as_text_is_read_from_bytes_too() -> None:
    model = loopscope.read_model((FILES / "weights.pbtxt").read_bytes())
    assert model.converted_from.startswith("a TensorFlow meta graph as text")
    assert model.notes[1].startswith("1 of the variables have no value here")
    with pytest.raises(ReadError, match="a TensorFlow meta graph as text; it cannot be parsed"):
        loopscope.read_model(b"meta_info_def { tags: ")


def test_nothing_is_folded_where_there_is_nothing_to_fold_or_it_is_not_well_formed() -> None:
    """Whatever node is missing, and wherever an input is another, the graph is folded whole or
    left whole.
    """
    assert with_functions(_graph("flat_print.pb")) is None
    assert with_functions(_graph("lone_switch.pb")) is None
    whole = _graph("loop_in_loop.pb")
    left = 0
    for at in range(len(whole.node)):
        for change in ("missing", "no inputs", "other inputs"):
            damaged = type(whole)()
            damaged.CopyFrom(whole)
            if change == "missing":
                del damaged.node[at]
            else:
                del damaged.node[at].input[:]
            if change == "other inputs":
                damaged.node[at].input.extend(
                    [damaged.node[at - 1].name, damaged.node[at - 2].name]
                )
            folded = with_functions(damaged)
            left += folded is None
            assert folded is None or not [
                node.name for node in folded.node if node.op in ("Switch", "Merge", "Enter")
            ]
    assert left > len(whole.node)
