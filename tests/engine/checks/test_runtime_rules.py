"""Where a rule warns of OpenVINO's CPU, it does differ; where the rule is silent beside it, it
does not.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

import loopscope
from loopscope import builder
from loopscope.checks.check import check
from loopscope.ir.element_type import ElementType
from loopscope.ops.catalogue import CATALOGUE
from tests.engine.checks.documents import (
    BASES,
    BOOL,
    F32,
    I64,
    WEIGHTS,
    constant,
    f32,
    layer,
    parameter,
    result,
)
from tests.engine.drafts import Draft, branch

_INPUTS = [np.arange(1, 13, dtype=np.float32).reshape(4, 3), np.full((1, 3), 0.5, np.float32)]
_FROM_NEXT = '<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>'
_JOIN = '<output axis="0" external_port_id="3" internal_layer_id="3" start="0" end="-1" stride="1" part_size="1"/>'
_PORT = '<port id="3" precision="FP32"><dim>4</dim><dim>3</dim></port>'
_CARRIED = result(3, "carried", f32(1, 3))
_BOTH_READ = """<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>"""
_LOOP_LAST = '<output external_port_id="4" internal_layer_id="8"/>'
_LOOP_JOIN = '<output axis="0" external_port_id="5" internal_layer_id="8" start="0" end="-1" stride="1" part_size="1"/>'
_LOOP_NEXT = '<edge from-layer="5" from-port="2" to-layer="8" to-port="0"/>'
Edits = tuple[tuple[str, str], ...]


def _edge(a: int, b: int, c: int, d: int) -> str:
    return f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>'


def _delayed(layers: list[str], *ends: tuple[int, int, int, int]) -> Edits:
    """What is joined is ``part + h``; what goes back to ``h`` is computed from ``part`` by the
    layers given.
    """
    return (
        (_JOIN, _JOIN.replace('internal_layer_id="3"', 'internal_layer_id="9"')),
        (_CARRIED, "\n".join([_CARRIED, result(9, "joined", f32(1, 3)), *layers])),
        (_FROM_NEXT, "\n".join([_edge(2, 2, 9, 0), *(_edge(*one) for one in ends)])),
    )


_AXIS = constant(7, "axis", "i64", 28, I64)
_APART = layer(5, "apart", "Unsqueeze", "", (f32(1, 3), I64), (f32(1, 1, 3),))
_AGAIN = layer(6, "again", "Squeeze", "", (f32(1, 1, 3), I64), (f32(1, 3),))
_VIEW = (
    [_AXIS, _APART, _AGAIN],
    (0, 0, 5, 0),
    (7, 0, 5, 1),
    (5, 2, 6, 0),
    (7, 0, 6, 1),
    (6, 2, 3, 0),
)
_ONE = constant(7, "one", "f32", 12, F32)
_TIMES = layer(5, "times", "Multiply", "", (f32(1, 3), F32), (f32(1, 3),))
_SWAPPED = (
    (_LOOP_LAST, _LOOP_LAST.replace('"4"', '"5"')),
    (_LOOP_JOIN, _LOOP_JOIN.replace('port_id="5"', 'port_id="4"')),
)
_UNCHANGED = ((_LOOP_NEXT, _edge(2, 0, 8, 0)),)
_WITHOUT_LAST = ((result(5, "last", f32(1, 3)), ""), (_edge(4, 4, 5, 0), ""))
_NO_WAY_BACK = ('<edge from-layer="8" to-layer="2"/>', "")

DIFFERS: dict[str, tuple[str, Edits, str]] = {
    "the part before": ("iterator", _delayed([], (0, 0, 3, 0)), "LS906"),
    "the part before, by way of other shapes": (
        "iterator",
        _delayed(_VIEW[0], *_VIEW[1:]),
        "LS906",
    ),
    "parts that are only counted": (
        "iterator",
        ((_BOTH_READ, _edge(1, 0, 2, 0) + _edge(1, 0, 2, 1)),),
        "LS915",
    ),
    "parts that only an unused output needs": (
        "iterator",
        (
            (_FROM_NEXT, _edge(1, 0, 3, 0) + _edge(2, 2, 9, 0)),
            (_CARRIED, _CARRIED + result(9, "unused", f32(1, 3))),
            (
                _JOIN,
                _JOIN
                + _JOIN.replace('port_id="3"', 'port_id="4"').replace(
                    'layer_id="3"', 'layer_id="9"'
                ),
            ),
            (_PORT, _PORT + _PORT.replace('id="3"', 'id="4"')),
        ),
        "LS915",
    ),
    "one input for two Parameters": (
        "iterator",
        (
            (_CARRIED, _CARRIED + parameter(9, "again", "1,3", f32(1, 3))),
            (_JOIN, _JOIN + '<input external_port_id="1" internal_layer_id="9"/>'),
            (_edge(1, 0, 2, 1), _edge(9, 0, 2, 1)),
        ),
        "LS908",
    ),
    "parts that nothing needs": ("iterator", ((_FROM_NEXT, _edge(1, 0, 3, 0)),), "LS915"),
    "the last value, which nobody uses, and all joined": (
        "loop",
        (_NO_WAY_BACK, *_WITHOUT_LAST),
        "LS917",
    ),
    "joined, then the last value of what does not change": (
        "loop",
        (*_SWAPPED, *_UNCHANGED),
        "LS916",
    ),
}
AGREES: dict[str, tuple[str, Edits]] = {
    "the part before, times one": (
        "iterator",
        _delayed([_ONE, _TIMES], (0, 0, 5, 0), (7, 0, 5, 1), (5, 2, 3, 0)),
    ),
    "the part before, which nothing reads": (
        "iterator",
        (*_delayed([], (0, 0, 3, 0)), (_edge(1, 0, 2, 1), _edge(0, 0, 2, 1))),
    ),
    "the last value, which nobody uses, all joined, and the next iteration": (
        "loop",
        _WITHOUT_LAST,
    ),
    "the last value, and all joined": ("loop", (_NO_WAY_BACK,)),
    "the last value of what does not change, then joined": ("loop", _UNCHANGED),
    "joined, then the last value of what changes": ("loop", _SWAPPED),
}


def _written(folder: Path, base: str, edits: Edits) -> Path:
    text = BASES[base]
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)  # the first one is the body's
    (folder / "model.bin").write_bytes(WEIGHTS)
    file = folder / "model.xml"
    file.write_text(text)
    return file


def _openvinos(file: str) -> list[np.ndarray]:
    request = (
        ov.Core()
        .compile_model(file, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        .create_infer_request()
    )
    request.infer(_INPUTS)
    return [np.array(tensor.data) for tensor in request.output_tensors]


def _outcome(file: Path) -> list[np.ndarray] | None:
    """OpenVINO's outputs, from a process of its own: None where that dies, or OpenVINO refuses
    the model.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        try:
            return pool.submit(_openvinos, str(file)).result()
        except (BrokenProcessPool, RuntimeError):
            return None


def _ours_and_theirs(file: Path) -> tuple[list[str], list[list], list[list] | None]:
    model = loopscope.read_model(file)
    codes = [one.code for one in check(model, CATALOGUE).diagnostics if one.code.startswith("LS9")]
    theirs = _outcome(file) if {"LS916", "LS917"} & set(codes) else _openvinos(str(file))
    lists = None if theirs is None else [one.tolist() for one in theirs]
    return codes, [one.tolist() for one in loopscope.run(model, _INPUTS).outputs], lists


@pytest.mark.parametrize("case", DIFFERS)
def test_a_warning_is_true(case: str, tmp_path: Path) -> None:
    base, edits, code = DIFFERS[case]
    codes, ours, theirs = _ours_and_theirs(_written(tmp_path, base, edits))
    assert codes == [code]
    assert ours != theirs


@pytest.mark.parametrize("case", AGREES)
def test_no_warning_beside_it(case: str, tmp_path: Path) -> None:
    codes, ours, theirs = _ours_and_theirs(_written(tmp_path, *AGREES[case]))
    assert codes == []
    assert ours == theirs


def test_the_iteration_number_as_a_state(tmp_path: Path) -> None:
    """The number of the iteration before."""
    x = builder.Graph("before").parameter("x", "i64", [])
    _, total = builder.for_loop(4, lambda i, before, total: (i, total * 10 + before), [x, 0])
    model = x.graph.model({"total": total})
    loopscope.write_model(model, tmp_path / "model.xml")
    assert [
        one.code for one in check(model, CATALOGUE).diagnostics if one.code.startswith("LS9")
    ] == ["LS906"]
    assert loopscope.run(model, [7]).outputs[0] == 7012
    request = ov.Core().compile_model(tmp_path / "model.xml", "CPU").create_infer_request()
    request.infer([np.array(7, np.int64)])
    assert request.get_output_tensor(0).data != 7012


_THEN_X = parameter(0, "then_x", "3", f32(3))
_THEN_MAP = """<then_port_map>
<input external_port_id="1" internal_layer_id="0"/>"""
_TAKEN = (
    (_THEN_MAP, _THEN_MAP + '<input external_port_id="0" internal_layer_id="7"/>'),
    (_THEN_X, _THEN_X + parameter(7, "condition", "", BOOL, "boolean")),
)
_READ = (
    (
        result(2, "then_y", f32(3)),
        result(2, "then_y", f32(3))
        + layer(8, "chosen", "Select", "", (BOOL, f32(3), f32(3)), (f32(3),)),
    ),
    (
        _edge(1, 2, 2, 0),
        "".join([_edge(7, 0, 8, 0), _edge(1, 2, 8, 1), _edge(0, 0, 8, 2), _edge(8, 3, 2, 0)]),
    ),
)


@pytest.mark.parametrize(
    ("edits", "code"),
    [((), ""), (_TAKEN, "LS918"), ((*_TAKEN, *_READ), "")],
    ids=["not taken", "unread", "read"],
)
def test_a_condition_that_a_branch_takes(edits: Edits, code: str, tmp_path: Path) -> None:
    file = _written(tmp_path, "branch", edits)
    model = loopscope.read_model(file)
    assert [
        one.code for one in check(model, CATALOGUE).diagnostics if one.code.startswith("LS9")
    ] == ([code] if code else [])
    compiled = ov.Core().compile_model(file, "CPU")
    alike = []
    for condition in (True, False):
        inputs = [np.array(condition), np.array([1, 2, 3], np.float32)]
        request = compiled.create_infer_request()
        request.infer(inputs)
        alike.append(
            request.get_output_tensor(0).data.tolist()
            == loopscope.run(model, inputs).outputs[0].tolist()
        )
    assert all(alike) is not bool(code)


@pytest.mark.parametrize("taken", [False, True])
def test_a_constant_condition_that_a_branch_takes(taken: bool, tmp_path: Path) -> None:
    """What OpenVINO asks instead is the first byte of the next input."""
    x = np.float32(0.1)
    then, otherwise, main = Draft(), Draft(), Draft()
    value, condition = (
        main.parameter("x", ElementType.F32, ()),
        main.const(False, ElementType.BOOLEAN),
    )
    asked = then.parameter("asked", ElementType.BOOLEAN, ())
    made = then.result(
        then.op("Add", then.op("Convert", asked, destination_type="f32"), then.const(5.0))
    )
    given = otherwise.parameter("given", ElementType.F32, ())
    sources = [condition, value] if taken else [condition, value, condition]
    bodies = [
        branch("then", then, [(0 if taken else 2, asked)], [made]),
        branch("else", otherwise, [(1, given)], [otherwise.result(given)]),
    ]
    main.result(main.region("If", sources, bodies, 1, name="if", opset=8))
    model = main.model()
    loopscope.write_model(model, tmp_path / "model.xml")
    assert [
        one.code for one in check(model, CATALOGUE).diagnostics if one.code.startswith("LS9")
    ] == (["LS918"] if taken else [])
    assert loopscope.run(model, [x]).outputs[0] == x
    try:
        request = ov.Core().compile_model(tmp_path / "model.xml", "CPU").create_infer_request()
        request.infer([x])
        theirs = request.get_output_tensor(0).data[()]
    except RuntimeError:
        theirs = None
    assert (theirs == x) is not taken
