"""Whatever a file says, a check reports and never fails."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from onnx import TensorProto, ValueInfoProto, helper

from loopscope.checks.check import advice, check, checked
from loopscope.checks.diagnostic import InvalidModel, Report
from loopscope.checks.text import data, render
from loopscope.errors import ReadError
from loopscope.ir.model import Model
from loopscope.ops.catalogue import CATALOGUE
from loopscope.read import read_model
from tests.draws import draws
from tests.engine.checks.documents import (
    BASES,
    BOOL,
    F32,
    I64,
    WEIGHTS,
    constant,
    f32,
    graph,
    layer,
    net,
    parameter,
    result,
)

_VALUE = re.compile(r'"([^"\n]{0,20})"')
_ODD = [
    "",
    "-1",
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "8",
    "99",
    "-2",
    "9223372036854775807",
    "f32",
    "i64",
    "boolean",
    "string",
    "u1",
    "?",
    "...",
]
_TYPES = [
    "Add",
    "Concat",
    "Reshape",
    "Loop",
    "If",
    "TensorIterator",
    "Parameter",
    "Result",
    "Range",
    "Broadcast",
    "TopK",
    "Split",
    "Gather",
]


def _mutated(text: str, chance: random.Random) -> str:
    """A few values replaced by others of the file, odd ones or operation types; a few lines
    removed, repeated or moved.
    """
    values = _VALUE.findall(text)
    for _ in range(chance.randint(1, 4)):
        match = chance.choice(list(_VALUE.finditer(text)))
        new = chance.choice([chance.choice(values), chance.choice(_ODD), chance.choice(_TYPES)])
        text = f'{text[: match.start()]}"{new}"{text[match.end() :]}'
    lines = text.split("\n")
    for _ in range(chance.randint(0, 2)):
        index, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        if chance.random() < 0.5:
            lines[index], lines[other] = lines[other], lines[index]
        else:
            lines.insert(other, lines[index])
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(draws(60)))
def test_a_check_never_fails(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        text = _mutated(chance.choice(list(BASES.values())), chance)
        try:
            model = read_model(text.encode(), WEIGHTS)
        except ReadError:
            continue
        report = check(model, CATALOGUE)
        assert isinstance(report, Report)
        assert render(report)
        assert data(report)["runnable"] is report.ok
        assert _refused(model) <= {one.code for one in report.errors}


@pytest.mark.parametrize(
    "kind", ["Convert", "Reshape", "Squeeze", "Unsqueeze", "Tanh", "Gather", "Identity"]
)
def test_rules_that_look_back_end_in_a_cycle(kind: str) -> None:
    """Two layers that feed each other, where rules ask what a trip count, a weight or a carried
    value comes from.
    """
    found = check(read_model(_cyclic(kind).encode(), WEIGHTS), CATALOGUE)
    assert [one.code for one in found.errors if one.code == "LS106"] == ["LS106"] * 3


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("dropped", ["last", "first"])
def test_operations_may_lack_an_operand(base: str, dropped: str) -> None:
    """Each operation in turn has one input fewer; what fed it feeds nothing."""
    text = BASES[base]
    for inputs in re.finditer(r"<input>(.*?)</input>", text):
        ports = re.findall(r"<port .*?</port>|<port [^>]*/>", inputs[1])
        left = ports[:-1] if dropped == "last" else ports[1:]
        model = read_model(
            f"{text[: inputs.start(1)]}{''.join(left)}{text[inputs.end(1) :]}".encode(), WEIGHTS
        )
        assert check(model, CATALOGUE).errors


def _cyclic(kind: str) -> str:
    square = f32(4, 4)
    body = graph(
        [
            parameter(0, "state", "4,4", square),
            layer(1, "turn", kind, "", (square,), (square,)),
            layer(2, "back", kind, "", (square,), (square,)),
            result(3, "carried", square),
            constant(4, "go", "boolean", 8, BOOL),
            result(5, "again", BOOL),
        ],
        *((1, 1, 2, 0), (2, 1, 1, 0), (2, 1, 3, 0), (4, 0, 5, 0)),
    )
    port_map = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/><output external_port_id="3" internal_layer_id="3"/>'
        '<output external_port_id="-1" internal_layer_id="5" purpose="execution_condition"/></port_map>'
        '<back_edges><edge from-layer="3" to-layer="0"/></back_edges>'
    )
    layers = [
        parameter(0, "x", "4,4", square),
        layer(1, "weight", kind, "", (square,), (square,)),
        layer(2, "weight again", kind, "", (square,), (square,)),
        layer(3, "product", "MatMul", 'transpose_b="true"', (square, square), (square,)),
        layer(4, "length", kind, "", (I64,), (I64,)),
        layer(5, "length again", kind, "", (I64,), (I64,)),
        constant(6, "start", "boolean", 8, BOOL),
        layer(
            7,
            "loop",
            "Loop",
            "",
            (I64, BOOL, square),
            (square,),
            f"{port_map}<body>\n{body}\n</body>",
        ),
        result(8, "y", square),
    ]
    ends = ((1, 1, 2, 0), (2, 1, 1, 0), (0, 0, 3, 0), (2, 1, 3, 1), (4, 1, 5, 0), (5, 1, 4, 0))
    return net(
        "cyclic", graph(layers, *ends, (5, 1, 7, 0), (6, 0, 7, 1), (3, 2, 7, 2), (7, 3, 8, 0))
    )


def _refused(model: Model) -> set[str]:
    """The codes for which a model is not run."""
    try:
        checked(model, CATALOGUE)
    except InvalidModel as refused:
        return {one.code for one in refused.report.errors}
    return set()


def test_a_million_faults_make_a_report_that_can_be_read() -> None:
    edge = '<edge from-layer="9" from-port="0" to-layer="2" to-port="1"/>'
    text = BASES["flat"].replace("</edges>", edge * 20_000 + "</edges>")
    report = check(read_model(text.encode(), WEIGHTS), CATALOGUE)
    assert len(report.diagnostics) < 2_000
    rest = [
        one.code
        for one in report.errors
        if one.message.startswith("There are more than 1000 findings")
    ]
    assert rest == ["LS103"]


def test_names_cannot_touch_a_terminal() -> None:
    text = (
        BASES["flat"]
        .replace('name="c"', 'name="&#9;\u202ex&quot;"')
        .replace('name="x"', 'name="&#9;\u202ex&quot;"')
    )
    shown = render(check(read_model(text.encode(), WEIGHTS), CATALOGUE))
    assert "LS109" in shown
    assert "\u202e" not in shown
    assert "\t" not in shown


def test_a_result_has_one_output() -> None:
    """Others would be asked for and never come."""
    text = re.sub(
        r'type="Add"(.*?)</output>',
        r'type="Result"\1<port id="3" precision="FP32"/></output>',
        BASES["flat"],
        count=1,
        flags=re.S,
    )
    found = check(read_model(text.encode(), WEIGHTS), CATALOGUE)
    assert "LS305" in [one.code for one in found.diagnostics]


@pytest.mark.slow
@pytest.mark.timeout(30)
def test_ten_thousand_states_are_checked_in_linear_time() -> None:
    """Each takes over the one before it, so that rules about back edges ask of each what it
    comes from.
    """
    count = 10_000
    states = range(count)
    body = graph(
        [
            *(parameter(number, f"s{number}", "", F32) for number in states),
            *(result(count + number, f"r{number}", F32) for number in states),
            constant(2 * count, "go", "boolean", 8, BOOL),
            result(2 * count + 1, "again", BOOL),
        ],
        *((number, 0, count + number, 0) for number in states),
        (2 * count, 0, 2 * count + 1, 0),
    )
    port_map = "".join(
        f'<input external_port_id="{2 + number}" internal_layer_id="{number}"/>'
        f'<output external_port_id="{2 + count + number}" internal_layer_id="{count + number}"/>'
        for number in states
    )
    again = f'<output external_port_id="-1" internal_layer_id="{2 * count + 1}" purpose="execution_condition"/>'
    back = "".join(
        f'<edge from-layer="{count + number}" to-layer="{(number + 1) % count}"/>'
        for number in states
    )
    inside = (
        f"<port_map>{port_map}{again}</port_map><back_edges>{back}</back_edges><body>{body}</body>"
    )
    layers = [
        parameter(0, "x", "", F32),
        constant(1, "trips", "i64", 0, I64),
        constant(2, "start", "boolean", 8, BOOL),
        layer(3, "loop", "Loop", "", (I64, BOOL, *(F32,) * count), (F32,) * count, inside),
        result(4, "y", F32),
    ]
    ends = (
        (1, 0, 3, 0),
        (2, 0, 3, 1),
        *((0, 0, 3, 2 + number) for number in states),
        (3, 2 + count, 4, 0),
    )
    model = read_model(net("states", graph(layers, *ends)).encode(), WEIGHTS)
    assert {diagnostic.code for diagnostic in check(model, CATALOGUE).diagnostics} == {"LS906"}
    assert not advice(model, CATALOGUE).warnings


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("classlabels_int64s", 3, "Attribute 'classlabels_int64s' is 3, expected integers."),
        ("post_transform", ["NONE"], "Attribute 'post_transform' is ('NONE',), expected text."),
    ],
)
def test_one_value_in_place_of_a_list_is_named(name: str, value: Any, told: str) -> None:
    """And a list in place of one value: kernels are given what their operations declare."""
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", **{name: value}
    )
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, None) for end in ("x", "scores")]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(
        helper.make_graph([node], "trees", ends[:1], ends[1:]), opset_imports=opsets
    )
    found = check(read_model(model.SerializeToString()), CATALOGUE).errors
    assert [(one.code, one.message) for one in found] == [("LS303", told)]


def test_bodies_that_share_an_attribute_are_read() -> None:
    """Types are inferred of one of the two, which has fewer nodes: a node of the other, with a
    body of its own, has no such place.
    """
    negates = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["a"])], "negates", [], [ValueInfoProto(name="a")]
    )
    inner = helper.make_node("If", ["c"], ["b"], then_branch=negates, else_branch=negates)
    nested = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["d"]), inner], "nested", [], [ValueInfoProto(name="b")]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=negates, else_branch=negates)
    node.attribute.append(helper.make_attribute("then_branch", nested))
    ends = {"c": TensorProto.BOOL, "x": TensorProto.FLOAT, "y": TensorProto.FLOAT}
    infos = [helper.make_tensor_value_info(name, kind, []) for name, kind in ends.items()]
    model = helper.make_model(
        helper.make_graph([node], "shared", infos[:2], infos[2:]),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    read = read_model(model.SerializeToString())
    assert [one.name for one in read.graph.nodes if one.bodies] == ["If_0"]
