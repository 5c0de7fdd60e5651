"""What is known before a model runs: against OpenVINO's own inference, and where it has to give
up in time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from loopscope.checks.propagate import Propagated, propagate
from loopscope.ir.address import graphs
from loopscope.ir.constant import Constant
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import (
    BackEdge,
    Body,
    Edge,
    InputMap,
    LayerId,
    Model,
    ModelGraph,
    Node,
    OutputMap,
    Port,
)
from loopscope.ir.shape import PartialShape
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Known
from loopscope.read import read_model
from tests.engine.checks.documents import (
    BASES,
    BOOL,
    F32,
    I64,
    LOOP,
    WEIGHTS,
    constant,
    edges,
    f32,
    layer,
    parameter,
)

ops = ov.opset13


def _propagated(text: str) -> Propagated:
    return propagate(read_model(text.encode(), WEIGHTS), CATALOGUE)


def _reduced(original: str, *replacements: tuple[str, str]) -> str:
    for old, new in replacements:
        assert old in original, old
        original = original.replace(old, new, 1)
    return original


def _while_growing() -> ov.Model:
    """A Loop whose state gets one row more in each iteration, with a trip count from an input."""
    state, part, number = (
        ops.parameter([-1, 3], name="state"),
        ops.parameter([1, 3], name="part"),
        ops.parameter([], np.int64, name="number"),
    )
    grown = ops.concat([state, part], 0)
    more = ops.less(number, ops.constant(np.int64(5)))
    body = ov.Model(
        [grown, more, ops.reduce_sum(grown, ops.constant(np.array([0], np.int64)), True)],
        [state, part, number],
    )
    first, parts, trips = ops.parameter([1, 3]), ops.parameter([-1, 3]), ops.parameter([], np.int64)
    loop = ops.loop(trips, ops.constant(np.bool_(True)))
    loop.set_function(body)
    loop.set_special_body_ports([2, 1])
    loop.set_sliced_input(part, parts.output(0), 0, 1, 1, -1, 0)
    loop.set_merged_input(state, first.output(0), grown.output(0))
    outputs = [
        loop.get_iter_value(grown.output(0), -1),
        loop.get_concatenated_slices(body.results[2].input_value(0), 0, 1, 1, -1, 0),
    ]
    return ov.Model(outputs, [first, parts, trips])


def _shapes_computed() -> ov.Model:
    data, like = ops.parameter([2, 3, -1]), ops.parameter([2, 3, 4])
    rows = ops.gather(
        ops.shape_of(like), ops.constant(np.array([0], np.int64)), ops.constant(np.int64(0))
    )
    flat = ops.reshape(data, ops.concat([rows, ops.constant(np.array([-1], np.int64))], 0), False)
    ends = ops.split(flat, ops.constant(np.int64(0)), 2)
    turned = ops.transpose(flat, ops.constant(np.array([1, 0], np.int64)))
    wide = ops.unsqueeze(flat, ops.constant(np.array([0, 3], np.int64)))
    return ov.Model([turned.output(0), *ends.outputs(), wide.output(0)], [data, like])


def _branches() -> ov.Model:
    def branch(rows: int) -> tuple[ov.Model, ov.Node]:
        taken = ops.parameter([1, 3])
        return ov.Model(
            [ops.broadcast(taken, ops.constant(np.array([rows, 3], np.int64)))], [taken]
        ), taken

    condition, data = ops.parameter([], np.bool_), ops.parameter([1, 3])
    (then, then_input), (other, other_input) = branch(2), branch(5)
    choice = ops.if_op(condition)
    choice.set_then_body(then)
    choice.set_else_body(other)
    choice.set_input(data.output(0), then_input, other_input)
    output = choice.set_output(then.results[0], other.results[0])
    return ov.Model([output], [condition, data])


@pytest.mark.parametrize("make", [_while_growing, _shapes_computed, _branches])
def test_agrees_with_openvino(make: Callable[[], ov.Model], tmp_path: Path) -> None:
    model = make()
    path = tmp_path / "m.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    ours = read_model(path)
    found = propagate(ours, CATALOGUE)
    assert not found.contradictions
    for result, theirs in zip(ours.graph.results, ov.Core().read_model(path).outputs, strict=True):
        known = found.output("main", result.id)
        assert str(known.element_type) == theirs.element_type.get_type_name()
        assert _fits(known.shape, theirs.partial_shape), (
            f"{known.shape}, OpenVINO says {theirs.partial_shape}"
        )


def _fits(ours: PartialShape, theirs: ov.PartialShape) -> bool:
    """Not less than OpenVINO knows, and nothing that OpenVINO rules out."""
    if ours.rank != theirs.rank.get_length():
        return False
    least = [dimension.get_min_length() for dimension in theirs]
    most = [dimension.get_max_length() for dimension in theirs]
    return all(
        (mine.is_static or low != high) and (mine.most is None or high == -1 or mine.most >= low)
        for mine, low, high in zip(ours.dimensions or (), least, most, strict=True)
    )


@pytest.mark.parametrize("base", sorted(BASES))
def test_agrees_with_what_sound_files_declare(base: str) -> None:
    model = read_model(BASES[base].encode(), WEIGHTS)
    found = propagate(model, CATALOGUE)
    for place in graphs(model):
        for node in place.graph.nodes:
            for known, port in zip(found.known[place.address, node.id], node.outputs, strict=False):
                assert known.element_type is port.element_type
                assert known.shape.contains(port.shape.lengths if port.shape.is_static else ())


def test_inputs_replace_what_the_file_declares() -> None:
    model = read_model(LOOP.encode(), WEIGHTS)
    found = propagate(
        model, CATALOGUE, {LayerId(1): Known(ElementType.F32, PartialShape.of([7, 3]))}
    )
    assert str(found.output("main", LayerId(4), 0).shape) == "[7,3]"
    assert str(found.output("main", LayerId(4), 1).shape) == "[28,3]"


def test_a_growing_state_becomes_dynamic() -> None:
    more = layer(4, "more", "Add", "", (f32(1, 3), f32(1, 3)), (f32(1, 3),))
    found = _propagated(
        _reduced(
            LOOP,
            (
                more,
                more.replace('"Add"', '"Concat"').replace("<input>", '<data axis="0"/><input>', 1),
            ),
        )
    )
    assert str(found.output("main/loop/body", LayerId(2)).shape) == "[1..,3]"
    assert str(found.output("main", LayerId(4)).shape) == "[2..,3]"
    assert str(found.output("main", LayerId(4), 1).shape) == "[8..,3]"


def test_a_loop_that_may_not_run_hands_out_what_it_began_with() -> None:
    found = _propagated(
        _reduced(LOOP, (constant(2, "trips", "i64", 0, I64), parameter(2, "trips", "", I64, "i64")))
    )
    assert str(found.output("main", LayerId(4)).shape) == "[1,3]"
    assert str(found.output("main", LayerId(4), 1).shape) == "[..4,3]"


def test_small_constants_are_computed() -> None:
    text = f"""<net name="n" version="11"><layers>
{constant(0, "four", "i64", 0, I64)}
{layer(1, "twice", "Add", "", (I64, I64), (I64,))}
{layer(2, "more", "Less", "", (I64, I64), (BOOL,))}
{layer(3, "floats", "Convert", 'destination_type="f32"', (I64,), (F32,))}
</layers>{edges((0, 0, 1, 0), (0, 0, 1, 1), (0, 0, 2, 0), (1, 2, 2, 1), (1, 2, 3, 0))}</net>"""
    found = _propagated(text)
    values = [found.output("main", LayerId(number)).value for number in (1, 2, 3)]
    assert [None if value is None else value.item() for value in values] == [8, True, 8.0]
    assert all(value is not None and not value.flags.writeable for value in values)


def test_huge_constants_are_not() -> None:
    known = propagate(_broadcast(), CATALOGUE).output("main", LayerId(2))
    assert (str(known.shape), known.value) == ("[1000000,1000000]", None)


def _broadcast() -> Model:
    """A Broadcast of a constant to a trillion elements."""

    def constant_node(number: int, array: np.ndarray) -> Node:
        return Node(
            LayerId(number),
            f"c{number}",
            "Const",
            "opset1",
            outputs=(Port(0),),
            constant=Constant.of(array),
        )

    return Model(
        ModelGraph(
            (
                constant_node(0, np.array(1)),
                constant_node(1, np.array([10**6, 10**6])),
                Node(
                    LayerId(2),
                    "b",
                    "Broadcast",
                    "opset3",
                    {"mode": "numpy"},
                    (Port(0), Port(1)),
                    (Port(2),),
                ),
            ),
            (Edge(LayerId(0), 0, LayerId(2), 0), Edge(LayerId(1), 0, LayerId(2), 1)),
        )
    )


def _nest(depth: int) -> Model:
    """Loops in loops, each handing a growing state to the next one inside."""
    content: ModelGraph | None = None
    port = Port(0, ElementType.F32, PartialShape.of([1]))
    for level in range(depth):
        state = Node(
            LayerId(0),
            "s",
            "Parameter",
            "opset1",
            {"shape": "1", "element_type": "f32"},
            outputs=(port,),
        )
        go = Node(
            LayerId(1),
            "go",
            "Const",
            "opset1",
            outputs=(Port(0),),
            constant=Constant.of(np.array(True)),
        )
        if content is None:
            inner = Node(
                LayerId(2),
                "more",
                "Concat",
                "opset1",
                {"axis": "0"},
                (Port(0), Port(1)),
                (Port(2),),
            )
            ends: tuple[tuple[int, int, int, int], ...] = (
                (0, 0, 2, 0),
                (0, 0, 2, 1),
                (2, 2, 3, 0),
                (1, 0, 4, 0),
            )
        else:
            body = Body(
                "body",
                content,
                (InputMap(2, LayerId(0)),),
                (
                    OutputMap(3, LayerId(3)),
                    OutputMap(-1, LayerId(4), purpose="execution_condition"),
                ),
                (BackEdge(LayerId(3), LayerId(0)),),
            )
            inner = Node(
                LayerId(2),
                f"loop{level}",
                "Loop",
                "opset5",
                {},
                (Port(0), Port(1), Port(2)),
                (Port(3),),
                (body,),
            )
            ends = ((5, 0, 2, 0), (1, 0, 2, 1), (0, 0, 2, 2), (2, 3, 3, 0), (1, 0, 4, 0))
        trips = Node(
            LayerId(5),
            "trips",
            "Const",
            "opset1",
            outputs=(Port(0),),
            constant=Constant.of(np.array(3)),
        )
        results = [
            Node(LayerId(3), "out", "Result", "opset1", inputs=(Port(0),)),
            Node(LayerId(4), "again", "Result", "opset1", inputs=(Port(0),)),
        ]
        content = ModelGraph(
            (state, go, trips, inner, *results),
            tuple(Edge(LayerId(a), b, LayerId(c), d) for a, b, c, d in ends),
        )
    assert content is not None
    return Model(content)


@pytest.mark.measured
def test_three_hundred_nested_loops_are_gone_through_in_time() -> None:
    begin = time.process_time()
    found = propagate(_nest(300), CATALOGUE)
    assert time.process_time() - begin < 5
    assert not found.contradictions
    assert found.output("main", LayerId(2)).shape.rank == 1


def test_unknown_operations_give_outputs_of_which_nothing_is_known() -> None:
    sum_layer = layer(2, "sum", "Add", 'auto_broadcast="numpy"', (f32(2, 3), f32(3)), (f32(2, 3),))
    found = _propagated(
        _reduced(BASES["flat"], (sum_layer, sum_layer.replace('"Add"', '"Mystery"')))
    )
    known = found.output("main", LayerId(2))
    assert (known.element_type, known.shape.rank, known.value) == (None, None, None)


@pytest.mark.measured
def test_a_chain_of_ten_thousand_is_fast() -> None:
    count = 10_000
    port = Port(0, ElementType.F32, PartialShape.of([2, 3]))
    nodes = [Node(LayerId(0), "x", "Parameter", "opset1", outputs=(port,))]
    nodes += [
        Node(LayerId(number), str(number), "Relu", "opset1", inputs=(Port(0),), outputs=(Port(1),))
        for number in range(1, count)
    ]
    ends = [
        Edge(LayerId(number - 1), 0 if number == 1 else 1, LayerId(number), 0)
        for number in range(1, count)
    ]
    begin = time.process_time()
    found = propagate(Model(ModelGraph(tuple(nodes), tuple(ends))), CATALOGUE)
    assert time.process_time() - begin < 2
    assert str(found.output("main", LayerId(count - 1)).shape) == "[2,3]"
