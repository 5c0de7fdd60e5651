"""A sample of each fault: a sound model, and what is replaced in its text."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import openvino
from onnx import parser

from loopscope import builder
from loopscope.builder import ops
from loopscope.ir.model import Model
from loopscope.read import read_model
from loopscope_samples.recipes import linear_attention
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
from tests.engine.checks.onnx_texts import DETERMINANT, MIXED, OUTER, SHADOWED, TRANSPOSED, TWICE

_TRIPS = constant(2, "trips", "i64", 0, I64)
_START = constant(3, "start", "boolean", 8, BOOL)
_GO = constant(6, "go", "boolean", 8, BOOL)
_X_FLAT = parameter(0, "x", "2,3", f32(2, 3))
_C_FLAT = constant(1, "c", "f32", 12, f32(3), "3", 12)
_I = parameter(0, "i", "", I64, "i64")
_C_BRANCH = parameter(0, "c", "", BOOL, "boolean")
_SLICE = '<input axis="0" external_port_id="2" internal_layer_id="1" start="0" end="-1" stride="1" part_size="1"/>'
_JOIN = '<output axis="0" external_port_id="5" internal_layer_id="8" start="0" end="-1" stride="1" part_size="1"/>'
_CARRIED = '<input external_port_id="3" internal_layer_id="2"/>'
_LAST = '<output external_port_id="4" internal_layer_id="8"/>'
_AGAIN = '<output external_port_id="-1" internal_layer_id="7" purpose="execution_condition"/>'
_BACK = '<edge from-layer="8" to-layer="2"/>'
_PART = '<input axis="0" external_port_id="0" internal_layer_id="0" start="0" end="-1" stride="1" part_size="1"/>'
_H = '<input external_port_id="1" internal_layer_id="1"/>'
_MORE = layer(4, "more", "Add", "", (f32(1, 3), f32(1, 3)), (f32(1, 3),))
_SUM = layer(2, "sum", "Add", 'auto_broadcast="numpy"', (f32(2, 3), f32(3)), (f32(2, 3),))
_THEN = layer(1, "then_op", "Add", "", (f32(3), f32(3)), (f32(3),))
_THEN_MAP = """<then_port_map>
<input external_port_id="1" internal_layer_id="0"/>"""
_ELSE_MAP = _THEN_MAP.replace("then", "else")
_THEN_X = parameter(0, "then_x", "3", f32(3))
_THEN_Y = result(2, "then_y", f32(3))
_C_OUTPUT = '<output><port id="2" precision="FP32"><dim>3</dim></port></output>'
_LAST_EDGE = '<edge from-layer="5" from-port="2" to-layer="8" to-port="0"/>'
_FLAT_EDGE = '<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>'


def _axis(base: str, axis: int) -> str:
    return base.replace('axis="0"', f'axis="{axis}"')


def _attribute(base: str, name: str, old: str, new: str) -> tuple[str, str]:
    return base, base.replace(f'{name}="{old}"', f'{name}="{new}"')


def _typed(base: str, old: str, new: str) -> tuple[str, str]:
    return _attribute(base, "element_type", old, new)


def _after(old: str, new: str) -> tuple[str, str]:
    return old, f"{old}\n{new}"


def _edge(a: int, b: int, c: int, d: int) -> str:
    return f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>'


@dataclass(frozen=True)
class Sample:
    """A base with replacements, each of which must find its text."""

    base: str
    replacements: tuple[tuple[str, str], ...]

    def model(self) -> Model:
        text = BASES[self.base]
        for old, new in self.replacements:
            assert old in text, old
            text = text.replace(old, new, 1)
        return read_model(text.encode(), WEIGHTS)


@dataclass(frozen=True)
class OnnxSample:
    """A model in ONNX's text form."""

    text: str

    def model(self) -> Model:
        return read_model(parser.parse_model(self.text).SerializeToString())


@dataclass(frozen=True)
class Made:
    """A model that Python makes."""

    make: Callable[[], Model]

    def model(self) -> Model:
        return self.make()


def _five_tokens() -> Model:
    """Linear attention that stops after five tokens."""
    with tempfile.TemporaryDirectory() as folder:
        openvino.save_model(
            linear_attention.model(5), Path(folder) / "five.xml", compress_to_fp16=False
        )
        return read_model(
            (Path(folder) / "five.xml").read_bytes(), (Path(folder) / "five.bin").read_bytes()
        )


def _turned() -> Model:
    graph = builder.Graph("turned")
    x, w = (
        graph.parameter("x", "f32", [2, 3]),
        graph.constant(np.arange(9, dtype=np.float32).reshape(3, 3)),
    )
    there = ops.matmul(x, w, transpose_a=False, transpose_b=False, name="there")
    return graph.model(
        {"back": ops.matmul(there, w, transpose_a=False, transpose_b=True, name="back_again")}
    )


def _indexed() -> Model:
    graph = builder.Graph("indexed")
    data, index = graph.parameter("data", "f32", [4]), graph.parameter("index", "i32", [])
    bounds = (ops.unsqueeze(index, 0), ops.unsqueeze(index + 1, 0), np.array([1], np.int32))
    return graph.model(
        ops.strided_slice(
            data, *bounds, begin_mask=[0], end_mask=[0], shrink_axis_mask=[1], name="element"
        )
    )


def _sums() -> Model:
    graph = builder.Graph("sums")
    parts, start = graph.parameter("parts", "f32", [3, 2]), graph.parameter("start", "f32", [2])
    return graph.model(
        {"last": builder.foldl(lambda state, part: ops.add(part, state, name="both"), parts, start)}
    )


def _do_while() -> Model:
    graph = builder.Graph("do while")
    x = graph.parameter("x", "f32", [])
    return graph.model(builder.do_while(lambda v: v < 9.0, lambda v: v * 2.0, [x]))


def _sample(base: str, *replacements: tuple[str, str]) -> Sample:
    return Sample(base, replacements)


_NAMED = """<ir_version: 8, opset_import: ["" : 17]>
one (float[2] x) => (float[2] y) {{
  [a] h = Neg (x)
  [{second}] y = Neg (h)
}}"""
_DEFAULT = """<ir_version: 8, opset_import: ["" : 17]>
main (float[3] x, float[3] w = {1, 2, 3}) => (float[3] y) { y = Add (x, w) }"""
_MINUS_ONE = """<ir_version: 8, opset_import: ["" : 17]>
main (float[3] x) => (float[3] y) {
  trips = Constant <value_int = -1> ()
  y = Loop (trips, , x) <body = step (int64 i, bool go, float[3] v) => (bool again, float[3] w) {
    again = Identity (go)
    w = Add (v, v)
  }>
}"""


_BYTES = """<ir_version: 8, opset_import: ["" : 17]>
main (uint8[1,3] x) => (int32[1,1] y) <int8[3,1] w = {1, -2, 127}> { y = MatMulInteger (x, w) }"""


_EXCHANGED = """<ir_version: 8, opset_import: ["" : 17]>
main (float[1] a, float[1] b, float[3] x) => (float[1] y, float[1] z) {
  y, z = Scan <num_scan_inputs = 1, body = step (float[1] p, float[1] q, float v) => (q, next) { next = Add (p, v) }> (a, b, x)
}"""
_NUMBERED = """<ir_version: 8, opset_import: ["" : 17]>
main (int64 n, bool go, int64 x) => (int64 y) {
  y = Loop (n, go, x) <body = step (int64 i, bool going, int64 last) => (bool again, int64 i) { again = Identity (going) }>
}"""


TWO_RANKS = """<ir_version: 8, opset_import: ["" : 17]>
choose (bool c, bool d, float[3] x) => (y, z) {
  y = If (c) <then_branch = a () => (p) { p = Neg (x) }, else_branch = b () => (q) {
    axes = Constant <value_ints = [0]> ()
    q = Unsqueeze (x, axes)
  }>
  z = If (d) <then_branch = e () => (r) { r = Neg (x) }, else_branch = f () => (s) {
    more = Constant <value_ints = [0]> ()
    s = Unsqueeze (x, more)
  }>
}"""
"""An ONNX model that OpenVINO's CPU refuses, at two places."""


SAMPLES: dict[str, Sample | OnnxSample | Made] = {
    "LS101": _sample(
        "flat", (_C_FLAT, _C_FLAT.replace('id="1"', 'id="0"')), (_FLAT_EDGE, _edge(0, 0, 2, 1))
    ),
    "LS102": _sample("flat", (_SUM, _SUM.replace('id="1"', 'id="0"', 1)), (_FLAT_EDGE, "")),
    "LS103": _sample("flat", (_FLAT_EDGE, _edge(9, 0, 2, 1))),
    "LS104": _sample("flat", (_FLAT_EDGE, "")),
    "LS105": _sample("flat", _after(_FLAT_EDGE, _edge(0, 0, 2, 1))),
    "LS106": _sample("loop", (_edge(2, 0, 4, 1), _edge(5, 2, 4, 1))),
    "LS107": _sample(
        "flat",
        (_C_FLAT, layer(1, "c", "Parameter", 'shape="3" element_type="f32"')),
        (_FLAT_EDGE, _edge(0, 0, 2, 1)),
    ),
    "LS108": _sample(
        "state",
        (
            'type="Assign" version="opset6"><data variable_id="v"',
            'type="Assign" version="opset6"><data variable_id="w"',
        ),
    ),
    "LS109": _sample("flat", (_C_FLAT, _C_FLAT.replace('name="c"', 'name="x"'))),
    "LS110": _sample("flat", (result(3, "y", f32(2, 3)), ""), (_edge(2, 2, 3, 0), "")),
    "LS111": OnnxSample(_DEFAULT),
    "LS112": OnnxSample(_NAMED.format(second="a")),
    "LS201": _sample(
        "flat",
        _after(
            _C_FLAT,
            layer(
                7,
                "s",
                "Const",
                'element_type="string" shape="2" offset="0" size="12"',
                gives=(F32,),
            ),
        ),
    ),
    "LS202": _sample("flat", _attribute(_C_FLAT, "size", "12", "16")),
    "LS203": _sample(
        "flat",
        _after(_C_FLAT, constant(7, "d", "f32", 16, f32(3), "3", 12)),
        (_edge(0, 0, 2, 0), _edge(7, 0, 2, 0)),
    ),
    "LS301": _sample("loop", (_MORE, _MORE.replace('type="Add"', 'type="Addd"'))),
    "LS302": _sample("loop", ('version="opset5"', 'version="opset1"')),
    "LS303": _sample("flat", (_SUM, _SUM.replace('"numpy"', '"bogus"'))),
    "LS304": _sample(
        "flat", (_SUM, _SUM.replace("Add", "Relu").replace(' auto_broadcast="numpy"', ' x="1"'))
    ),
    "LS305": _sample(
        "flat", (_SUM, _SUM.replace("</output>", '<port id="3" precision="FP32"/></output>'))
    ),
    "LS306": _sample("branch", ("<else_body>", "<nobody>"), ("</else_body>", "</nobody>")),
    "LS307": _sample("flat", (_SUM, _SUM.replace("<data", '<data axis="1"'))),
    "LS308": _sample("flat", (result(3, "y", f32(2, 3)), layer(3, "y", "ReLU", "", (f32(2, 3),)))),
    "LS401": _sample("loop", (_LAST, _LAST.replace('layer_id="8"', 'layer_id="77"'))),
    "LS402": _sample("loop", (_LAST, _LAST.replace('layer_id="8"', 'layer_id="5"'))),
    "LS403": _sample("branch", (_THEN_MAP, _THEN_MAP.replace('port_id="1"', 'port_id="5"'))),
    "LS404": _sample("loop", (_CARRIED, "")),
    "LS405": _sample("loop", (_LAST, "")),
    "LS406": _sample(
        "loop", ('internal_layer_id="0" purpose="current_iteration"', 'internal_layer_id="0"')
    ),
    "LS407": _sample("loop", _after(_CARRIED, _CARRIED.replace('port_id="3"', 'port_id="2"'))),
    "LS408": _sample("loop", _after(_JOIN, _LAST.replace('port_id="4"', 'port_id="9"'))),
    "LS409": _sample("loop", _after(_JOIN, _LAST.replace('port_id="4"', 'port_id="5"'))),
    "LS410": _sample("loop", (_CARRIED, _CARRIED.replace("/>", ' purpose="state"/>'))),
    "LS411": _sample("branch", (_THEN_MAP, _THEN_MAP.replace("<input", '<input axis="0"'))),
    "LS412": _sample(
        "branch",
        _after(_THEN_Y, result(7, "spare", f32(3))),
        _after(_edge(1, 2, 2, 0), _edge(0, 0, 7, 0)),
    ),
    "LS413": _sample("branch", (_THEN_MAP, "<then_port_map>"), (_ELSE_MAP, "<else_port_map>")),
    "LS414": _sample("loop", (_JOIN, _JOIN.replace('port_id="5"', 'port_id="9"'))),
    "LS501": _sample("loop", (_BACK, _BACK.replace('from-layer="8"', 'from-layer="5"'))),
    "LS502": _sample("loop", (_BACK, _BACK.replace('from-layer="8"', 'from-layer="7"'))),
    "LS503": _sample("loop", (_BACK, _BACK.replace('to-layer="2"', 'to-layer="4"'))),
    "LS504": _sample("loop", _after(_BACK, _BACK)),
    "LS505": _sample("loop", _after(_BACK, _BACK.replace('to-layer="2"', 'to-layer="1"'))),
    "LS506": _sample(
        "loop",
        (_CARRIED, '<input external_port_id="3" internal_layer_id="0"/>'),
        ('<input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/>', ""),
    ),
    "LS507": _sample("iterator", _typed(parameter(1, "h0", "1,3", f32(1, 3)), "f32", "i64")),
    "LS508": _sample(
        "loop",
        _attribute(parameter(1, "a0", "1,3", f32(1, 3)), "shape", "1,3", "3"),
        (_LAST_EDGE, _edge(1, 0, 8, 0)),
    ),
    "LS509": _sample("loop", _after(_BACK, _BACK.replace('to-layer="2"', 'to-layer="0"'))),
    "LS511": _sample("loop", (_AGAIN, "")),
    "LS512": _sample("loop", (_START, constant(3, "start", "i64", 0, I64))),
    "LS513": _sample("loop", (_START, _START.replace('shape=""', 'shape="1,1"'))),
    "LS514": _sample("loop", (_TRIPS, constant(2, "trips", "f32", 12, F32))),
    "LS515": _sample(
        "loop",
        (
            _TRIPS,
            _TRIPS.replace('shape=""', 'shape="2"').replace(
                'offset="0" size="8"', 'offset="28" size="16"'
            ),
        ),
    ),
    "LS516": _sample("loop", (_I, parameter(0, "i", "", F32))),
    "LS517": _sample("loop", (_I, _I.replace('shape=""', 'shape="1,1"'))),
    "LS518": _sample("loop", _after(_AGAIN, _AGAIN)),
    "LS519": _sample("loop", _typed(_START, "boolean", "u8")),
    "LS520": _sample("loop", _typed(_TRIPS, "i64", "u64")),
    "LS521": _sample("loop", _typed(_I, "i64", "u64")),
    "LS531": _sample("loop", (_SLICE, _axis(_SLICE, 5))),
    "LS532": _sample("loop", (_JOIN, _axis(_JOIN, 5))),
    "LS533": _sample("loop", _attribute(_SLICE, "part_size", "1", "0")),
    "LS534": _sample("loop", _attribute(_SLICE, "stride", "1", "0")),
    "LS535": _sample("iterator", (_H, _H.replace("<input", '<input axis="1"'))),
    "LS536": _sample("iterator", _attribute(_PART, "end", "-1", "4")),
    "LS537": _sample("iterator", _attribute(_PART, "stride", "1", "-1")),
    "LS538": _sample("loop", _attribute(_SLICE, "start", "0", "1")),
    "LS539": _sample("loop", _attribute(_JOIN, "stride", "1", "2")),
    "LS540": _sample(
        "loop", (_SLICE, _SLICE.replace('stride="1" part_size="1"', 'stride="3" part_size="3"'))
    ),
    "LS541": _sample("iterator", (_PART, '<input external_port_id="0" internal_layer_id="0"/>')),
    "LS542": _sample("loop", (_JOIN, _axis(_JOIN, 1))),
    "LS543": _sample("loop", _attribute(_TRIPS, "offset", "0", "36")),
    "LS601": _sample(
        "branch",
        (_THEN_Y, ""),
        (_edge(1, 2, 2, 0), ""),
        (_THEN_MAP + '\n<output external_port_id="2" internal_layer_id="2"/>', _THEN_MAP),
    ),
    "LS602": _sample(
        "branch", (_THEN_MAP, _THEN_MAP + '\n<output external_port_id="3" internal_layer_id="2"/>')
    ),
    "LS603": _sample(
        "branch", (_THEN, layer(1, "then_op", "Equal", "", (f32(3), f32(3)), (("BOOL", (3,)),)))
    ),
    "LS604": _sample("branch", (_C_BRANCH, _C_BRANCH.replace('shape=""', 'shape="1,1"'))),
    "LS605": _sample("branch", (_C_BRANCH, parameter(0, "c", "", F32))),
    "LS606": _sample("branch", (_C_BRANCH, _C_BRANCH.replace('shape=""', 'shape="2"'))),
    "LS607": _sample(
        "branch",
        (_THEN, constant(1, "then_op", "f32", 12, F32)),
        (_edge(0, 0, 1, 0), ""),
        (_edge(0, 0, 1, 1), ""),
        (_edge(1, 2, 2, 0), _edge(1, 0, 2, 0)),
        (_THEN_X, ""),
        (_THEN_MAP, "<then_port_map>"),
    ),
    "LS608": _sample(
        "branch",
        (
            '<output external_port_id="2" internal_layer_id="2"/>',
            '<output external_port_id="2" internal_layer_id="2"/><output external_port_id="3" internal_layer_id="2"/>',
        ),
    ),
    "LS609": _sample(
        "branch",
        ('<output external_port_id="2" internal_layer_id="2"/>\n', ""),
        ('<output external_port_id="2" internal_layer_id="2"/>\n', ""),
        (f"{_C_OUTPUT}\n<else_port_map>", "\n<else_port_map>"),
        (_edge(2, 2, 3, 0), _edge(1, 0, 3, 0)),
    ),
    "LS701": _sample("flat", _typed(_X_FLAT, "f32", "i64")),
    "LS702": _sample("flat", _attribute(_X_FLAT, "shape", "2,3", "2,4")),
    "LS703": _sample(
        "branch",
        (_C_BRANCH, constant(0, "c", "boolean", 9, BOOL)),
        _after(_THEN_X, constant(7, "four", "f32", 12, f32(4), "4", 16)),
        (_edge(0, 0, 1, 1), _edge(7, 0, 1, 1)),
    ),
    "LS704": _sample(
        "flat",
        (_X_FLAT, parameter(0, "x", "2,3", ("I32", (2, 3)), "i32")),
        (_SUM, layer(2, "sum", "SoftMax", 'axis="1"', (("I32", (2, 3)),), (("I32", (2, 3)),))),
        (_FLAT_EDGE, ""),
        (_edge(2, 2, 3, 0), _edge(2, 1, 3, 0)),
    ),
    "LS705": _sample(
        "flat",
        (_SUM, _SUM.replace('<port id="2" precision="FP32">', '<port id="2" precision="I64">')),
    ),
    "LS706": _sample(
        "flat",
        (
            _SUM,
            _SUM.replace(
                '<port id="2" precision="FP32"><dim>2</dim>',
                '<port id="2" precision="FP32"><dim>7</dim>',
            ),
        ),
    ),
    "LS707": _sample(
        "loop", _attribute(parameter(1, "part", "1,3", f32(1, 3)), "shape", "1,3", "2,3")
    ),
    "LS708": _sample("loop", _typed(parameter(1, "part", "1,3", f32(1, 3)), "f32", "i64")),
    "LS801": _sample(
        "loop",
        _attribute(_TRIPS, "offset", "0", "36"),
        (_SLICE, '<input external_port_id="2" internal_layer_id="1"/>'),
        (_JOIN, '<output external_port_id="5" internal_layer_id="8"/>'),
    ),
    "LS802": _sample("loop", (_LAST_EDGE, _edge(2, 0, 8, 0))),
    "LS803": _sample("loop", (_edge(2, 0, 4, 1), _edge(1, 0, 4, 1))),
    "LS804": _sample(
        "loop",
        (_MORE, layer(4, "more", "Concat", 'axis="0"', (f32(1, 3), f32(1, 3)), (f32(2, 3),))),
    ),
    "LS805": _sample(
        "loop",
        (
            '<port id="5" precision="FP32"><dim>4</dim>',
            '<port id="5" precision="FP32"><dim>7</dim>',
        ),
    ),
    "LS806": _sample(
        "flat",
        _after(_SUM, layer(7, "spare", "Relu", "", (f32(2, 3),), (f32(2, 3),))),
        _after(_FLAT_EDGE, _edge(0, 0, 7, 0)),
    ),
    "LS807": _sample("loop", (_GO, constant(6, "go", "boolean", 9, BOOL))),
    "LS808": _sample("branch", (_C_BRANCH, constant(0, "c", "boolean", 8, BOOL))),
    "LS809": _sample("flat", (_edge(0, 0, 2, 0), _edge(1, 0, 2, 0))),
    "LS810": _sample("loop", (_edge(4, 5, 6, 0), _edge(4, 4, 6, 0))),
    "LS901": _sample("loop", _attribute(_TRIPS, "offset", "0", "52")),
    "LS902": _sample("loop", _attribute(_TRIPS, "offset", "0", "44")),
    "LS903": _sample("loop", _attribute(_TRIPS, "offset", "0", "28")),
    "LS904": _sample("iterator", _attribute(_PART, "start", "0", "1")),
    "LS905": _sample("loop", (_SLICE, _axis(_SLICE, -2))),
    "LS906": _sample(
        "loop",
        (_CARRIED, _CARRIED + '\n<input external_port_id="2" internal_layer_id="1"/>'),
        (_SLICE, ""),
        (_BACK, _BACK + '\n<edge from-layer="9" to-layer="1"/>'),
        _after(result(8, "carried", f32(1, 3)), result(9, "other", f32(1, 3))),
        (_LAST_EDGE, _edge(1, 0, 8, 0) + "\n" + _edge(2, 0, 9, 0)),
    ),
    "LS907": _sample("nested"),
    "LS908": _sample(
        "branch",
        (_THEN_MAP, _THEN_MAP + '\n<input external_port_id="1" internal_layer_id="7"/>'),
        _after(_THEN_X, parameter(7, "again", "3", f32(3))),
        (_edge(0, 0, 1, 1), _edge(7, 0, 1, 1)),
    ),
    "LS909": _sample(
        "loop",
        (_TRIPS, parameter(2, "trips", "", I64, "i64")),
        (_GO, constant(6, "go", "boolean", 9, BOOL)),
    ),
    "LS910": OnnxSample(_MINUS_ONE),
    "LS911": _sample(
        "loop",
        (
            _GO,
            layer(6, "go", "Less", "", (F32, F32), (BOOL,))
            + "\n"
            + constant(9, "five", "f32", 12, F32),
        ),
        (_edge(6, 0, 7, 0), "\n".join([_edge(3, 1, 6, 0), _edge(9, 0, 6, 1), _edge(6, 2, 7, 0)])),
    ),
    "LS912": _sample("loop", (_TRIPS, parameter(2, "trips", "", I64, "i64"))),
    "LS913": _sample("loop", (_START, constant(3, "start", "boolean", 9, BOOL))),
    "LS914": _sample(
        "loop",
        (_TRIPS, parameter(2, "trips", "", I64, "i64")),
        (_edge(2, 0, 4, 1), _edge(1, 0, 4, 1)),
    ),
    "LS915": _sample("iterator", (_edge(0, 0, 2, 0), _edge(1, 0, 2, 0))),
    "LS916": _sample(
        "loop",
        (_LAST, _LAST.replace('"4"', '"5"')),
        (_JOIN, _JOIN.replace('port_id="5"', 'port_id="4"')),
        (_LAST_EDGE, _edge(2, 0, 8, 0)),
    ),
    "LS917": _sample(
        "loop", (_BACK, ""), (result(5, "last", f32(1, 3)), ""), (_edge(4, 4, 5, 0), "")
    ),
    "LS919": Made(_turned),
    "LS920": Made(_sums),
    "LS921": OnnxSample(_BYTES),
    "LS922": OnnxSample(_EXCHANGED),
    "LS923": OnnxSample(_NUMBERED),
    "LS940": OnnxSample(SHADOWED),
    "LS941": OnnxSample(OUTER),
    "LS942": OnnxSample(TWICE),
    "LS943": OnnxSample(MIXED),
    "LS950": OnnxSample(DETERMINANT),
    "LS924": OnnxSample(TRANSPOSED),
    "LS925": Made(_indexed),
    "LS930": Made(_five_tokens),
    "LS931": Made(_do_while),
    "LS918": _sample(
        "branch",
        (_THEN_MAP, _THEN_MAP + '\n<input external_port_id="0" internal_layer_id="7"/>'),
        _after(_THEN_X, parameter(7, "condition", "", BOOL, "boolean")),
    ),
}
