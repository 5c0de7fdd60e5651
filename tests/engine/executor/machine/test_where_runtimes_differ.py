"""What users run into with real runtimes, a row of the specification's table each: what we do,
what ended the loop, and what we warn of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import numpy as np
import openvino as ov
import pytest

import loopscope
from loopscope.checks.check import check
from loopscope.ir.element_type import ElementType
from loopscope.ops.catalogue import CATALOGUE
from tests.engine.drafts import BOOL, F32, I64, Draft, Ref, Slice, branch, loop, tensor_iterator


@dataclass(frozen=True)
class Row:
    """One row: a model, its inputs, what it gives, why its first loop ended (or its branch), and
    the codes of what we say.
    """

    name: str
    model: Callable[[], loopscope.Model]
    inputs: Sequence[object]
    outputs: Sequence[Sequence[object]]
    iterations: int | None
    ended_by: str | None
    codes: frozenset[str]


def summing(
    trips: int, parts: int = 0, stop_at: float = 1e9, axis: int = 0, start: bool = True
) -> loopscope.Model:
    """Adds 1 (or a part of the second input) to x; gives the last x and all of them."""
    main, body = Draft(), Draft()
    x, state = main.parameter("x", F32, (1,)), body.parameter("state", F32, (1,))
    sliced: list[tuple[Ref, Ref, Slice]] = []
    more = body.const([1.0])
    if parts:
        part = body.parameter("part", F32, (1,))
        sliced, more = [(main.parameter("parts", F32, (parts,)), part, {"axis": axis})], part
    total = body.op("Add", state, more)
    again = body.result(
        body.op("Less", body.op("Squeeze", total, body.const([0], I64)), body.const(stop_at))
    )
    out = body.result(total)
    made = loop(
        main,
        body,
        main.const(trips, I64),
        main.const(start, BOOL),
        again=again,
        carried=[(x, state, out)],
        sliced=sliced,
        last=[out],
        joined=[(out, {})],
        name="loop",
    )
    main.result(made)
    main.result(Ref(made.layer, 1))
    return main.model()


def iterator(**slicing: Unpack[Slice]) -> loopscope.Model:
    main, body = Draft(), Draft()
    x, part = main.parameter("x", F32, (4, 1)), body.parameter("part", F32, (1, 1))
    out = body.result(body.op("Multiply", part, body.const([[2.0]])))
    main.result(
        tensor_iterator(main, body, sliced=[(x, part, {"axis": 0, **slicing})], joined=[(out, {})])
    )
    return main.model()


def choosing(condition: ElementType, ranks: tuple[int, int] = (1, 1)) -> loopscope.Model:
    """then: 2 x; else: x; perhaps with an axis more."""
    main = Draft()
    c, x = main.parameter("c", condition, ()), main.parameter("x", F32, (2,))
    arms = []
    for name, rank, factor in (("then", ranks[0], 2.0), ("else", ranks[1], 1.0)):
        arm = Draft()
        value = arm.op("Multiply", arm.parameter("p", F32, (2,)), arm.const(factor))
        if rank == 2:
            value = arm.op("Unsqueeze", value, arm.const([0], I64))
        arms.append(branch(name, arm, [(1, Ref(0))], [arm.result(value)]))
    main.result(main.region("If", [c, x], arms, 1, name="if", opset=8))
    return main.model()


def swapping() -> loopscope.Model:
    main, body = Draft(), Draft()
    a, b = main.parameter("a", F32, (1,)), main.parameter("b", F32, (1,))
    left, right = body.parameter("left", F32, (1,)), body.parameter("right", F32, (1,))
    to_left, to_right = body.result(right), body.result(left)
    again = body.result(body.const(True, BOOL))
    carried = [(a, left, to_left), (b, right, to_right)]
    made = loop(
        main,
        body,
        main.const(3, I64),
        main.const(True, BOOL),
        again=again,
        carried=carried,
        last=[to_left, to_right],
    )
    main.result(made)
    main.result(Ref(made.layer, 1))
    return main.model()


def only_a_condition() -> loopscope.Model:
    main, body = Draft(), Draft()
    trips = main.parameter("trips", I64, ())
    x, kept = main.parameter("x", F32, (1,)), body.parameter("kept", F32, (1,))
    again = body.result(body.const(False, BOOL))
    out = body.result(body.op("Add", kept, body.const([1.0])))
    made = loop(
        main,
        body,
        trips,
        main.const(True, BOOL),
        again=again,
        invariants=[(x, kept)],
        joined=[(out, {})],
    )
    main.result(made)
    return main.model()


def unread() -> loopscope.Model:
    """The last value of a state that the body writes and never reads."""
    main, body = Draft(), Draft()
    trips, x = main.parameter("trips", I64, ()), main.parameter("x", F32, (1,))
    state = body.parameter("state", F32, (1,))
    again, out = body.result(body.const(True, BOOL)), body.result(body.const([5.0]))
    main.result(
        loop(
            main,
            body,
            trips,
            main.const(True, BOOL),
            again=again,
            carried=[(x, state, out)],
            last=[out],
        )
    )
    return main.model()


def iterator_in_iterator() -> loopscope.Model:
    main, body, inner = Draft(), Draft(), Draft()
    x, row, cell = (
        main.parameter("x", F32, (2, 3)),
        body.parameter("row", F32, (1, 3)),
        inner.parameter("cell", F32, (1, 1)),
    )
    doubled = inner.result(inner.op("Multiply", cell, inner.const([[2.0]])))
    out = body.result(
        tensor_iterator(
            body, inner, sliced=[(row, cell, {"axis": 1})], joined=[(doubled, {"axis": 1})]
        )
    )
    main.result(tensor_iterator(main, body, sliced=[(x, row, {"axis": 0})], joined=[(out, {})]))
    return main.model()


def converting() -> loopscope.Model:
    """A TensorIterator whose initial value is i64 though the body declares f32, and gives f32
    back.
    """
    main, body = Draft(), Draft()
    x, start = main.parameter("x", F32, (3,)), main.parameter("start", I64, (1,))
    part, state = body.parameter("part", F32, (1,)), body.parameter("state", F32, (1,))
    out = body.result(body.op("Add", state, body.op("Multiply", part, body.const([0.5]))))
    made = tensor_iterator(
        main,
        body,
        carried=[(start, state, out)],
        sliced=[(x, part, {"axis": 0})],
        last=[out],
        joined=[(out, {})],
    )
    main.result(made)
    main.result(Ref(made.layer, 1))
    return main.model()


def fibonacci(*, late: bool = False, plus_zero: bool = False) -> loopscope.Model:
    """a + b goes back to a, and a goes back to b: before or after a in the port map, with or
    without 0 added.
    """
    main, body = Draft(), Draft()
    starts = main.parameter("first", F32, (1,)), main.parameter("second", F32, (1,))
    a, b = body.parameter("a", F32, (1,)), body.parameter("b", F32, (1,))
    kept = body.op("Add", a, body.const(0.0)) if plus_zero else a
    carried = [(starts[0], a, body.result(body.op("Add", a, b))), (starts[1], b, body.result(kept))]
    again = body.result(body.const(True, BOOL))
    last = [result for _, _, result in carried]
    made = loop(
        main,
        body,
        main.const(5, I64),
        main.const(True, BOOL),
        again=again,
        carried=carried[::-1] if late else carried,
        last=last,
        name="loop",
    )
    main.result(made)
    main.result(Ref(made.layer, 1))
    return main.model()


ZERO, X = np.array([0], np.float32), np.array([1, 2, 3, 4], np.float32)
COLUMN = X.reshape(4, 1)
ROWS = [
    Row(
        "no limit",
        lambda: summing(-1, stop_at=3),
        [ZERO],
        [[3], [1, 2, 3]],
        3,
        "condition",
        frozenset(),
    ),
    Row(
        "zero iterations joined",
        lambda: summing(0),
        [ZERO],
        [[0], []],
        0,
        "zero_trip_count",
        frozenset({"LS808", "LS912"}),
    ),
    Row(
        "start of a slice",
        lambda: iterator(start=1),
        [COLUMN],
        [[[4], [6], [8]]],
        3,
        "slices_exhausted",
        frozenset({"LS904"}),
    ),
    Row(
        "end of a slice",
        lambda: iterator(end=2),
        [COLUMN],
        [[[2], [4], [6]]],
        3,
        "slices_exhausted",
        frozenset({"LS904"}),
    ),
    Row(
        "slices run out",
        lambda: summing(6, parts=4),
        [ZERO, X],
        [[10], [1, 3, 6, 10]],
        4,
        "slices_exhausted",
        frozenset({"LS901"}),
    ),
    Row(
        "stops early",
        lambda: summing(9, stop_at=3),
        [ZERO],
        [[3], [1, 2, 3]],
        3,
        "condition",
        frozenset({"LS911"}),
    ),
    Row(
        "f32 condition 2.0",
        lambda: choosing(F32),
        [2.0, [1, 2]],
        [[2, 4]],
        None,
        None,
        frozenset({"LS605"}),
    ),
    Row(
        "f32 condition 0",
        lambda: choosing(F32),
        [0.0, [1, 2]],
        [[1, 2]],
        None,
        None,
        frozenset({"LS605"}),
    ),
    Row(
        "i64 condition 256",
        lambda: choosing(I64),
        [256, [1, 2]],
        [[2, 4]],
        None,
        None,
        frozenset({"LS605"}),
    ),
    Row(
        "ranks differ, then",
        lambda: choosing(BOOL, (2, 1)),
        [True, [1, 2]],
        [[[2, 4]]],
        None,
        None,
        frozenset({"LS607"}),
    ),
    Row(
        "ranks differ, else",
        lambda: choosing(BOOL, (2, 1)),
        [False, [1, 2]],
        [[1, 2]],
        None,
        None,
        frozenset({"LS607"}),
    ),
    Row(
        "beyond 32 bits",
        lambda: summing(2**32 + 2, stop_at=5),
        [ZERO],
        [[5], [1, 2, 3, 4, 5]],
        5,
        "condition",
        frozenset({"LS902"}),
    ),
    Row(
        "zero trips of slices",
        lambda: summing(0, parts=4),
        [ZERO, X],
        [[0], []],
        0,
        "zero_trip_count",
        frozenset({"LS903"}),
    ),
    Row(
        "negative axis",
        lambda: summing(4, parts=4, axis=-1),
        [ZERO, X],
        [[10], [1, 3, 6, 10]],
        4,
        "trip_count",
        frozenset({"LS905"}),
    ),
    Row("swapped states", swapping, [[1], [2]], [[2], [1]], 3, "trip_count", frozenset({"LS906"})),
    Row(
        "overwritten states",
        fibonacci,
        [[1], [0]],
        [[8], [5]],
        5,
        "trip_count",
        frozenset({"LS906"}),
    ),
    Row(
        "counted as one",
        only_a_condition,
        [0, [1]],
        [[]],
        0,
        "zero_trip_count",
        frozenset({"LS909"}),
    ),
    Row(
        "false start",
        lambda: summing(4, start=False),
        [ZERO],
        [[0], []],
        0,
        "initial_condition",
        frozenset({"LS913"}),
    ),
    Row("unread state", unread, [0, [7]], [[7]], 0, "zero_trip_count", frozenset({"LS914"})),
    Row("unread state, written", unread, [2, [7]], [[5]], 2, "trip_count", frozenset({"LS914"})),
    Row("one iteration", only_a_condition, [5, [1]], [[2]], 1, "condition", frozenset({"LS909"})),
    Row(
        "iterator in iterator",
        iterator_in_iterator,
        [np.array([[1, 2, 3], [4, 5, 6]], np.float32)],
        [[[2, 4, 6], [8, 10, 12]]],
        2,
        "slices_exhausted",
        frozenset({"LS907"}),
    ),
    Row(
        "converted initial value",
        converting,
        [np.array([1, 2, 3], np.float32), np.array([7], np.int64)],
        [[10], [7.5, 8.5, 10]],
        3,
        "slices_exhausted",
        frozenset({"LS507"}),
    ),
]


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_row(row: Row, everything: bool) -> None:
    model = row.model()
    codes = {one.code for one in check(model, CATALOGUE).diagnostics}
    assert row.codes <= codes
    debugger = loopscope.Debugger(model, row.inputs, record=loopscope.Record(everything=everything))
    debugger.run()
    plain = loopscope.run(model, row.inputs)
    for mine, theirs, expected in zip(
        debugger.result.outputs, plain.outputs, row.outputs, strict=True
    ):
        assert mine.tolist() == theirs.tolist() == list(expected)
        assert mine.dtype == theirs.dtype == np.float32
    first = plain.control_flow[0]
    assert (first.iterations, first.ended_by) == (row.iterations, row.ended_by)
    assert list(debugger.control_flow) == list(plain.control_flow)


@pytest.mark.parametrize(
    ("late", "plus_zero"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_overwritten_states_are_told_just_where_openvino_gets_them_wrong(
    late: bool, plus_zero: bool, tmp_path: Path
) -> None:
    model = fibonacci(late=late, plus_zero=plus_zero)
    inputs = [np.array([1], np.float32), np.array([0], np.float32)]
    assert [output.tolist() for output in loopscope.run(model, inputs).outputs] == [[8], [5]]
    loopscope.write_model(model, tmp_path / "model.xml")
    theirs = ov.Core().compile_model(tmp_path / "model.xml", "CPU")(inputs)
    wrong = [output.tolist() for output in theirs.values()] != [[8], [5]]
    assert wrong == ("LS906" in {one.code for one in check(model, CATALOGUE).diagnostics})


def test_a_converted_initial_value_is_converted_wherever_it_is_looked_at() -> None:
    model = converting()
    debugger = loopscope.Debugger(model, [np.array([1, 2, 3], np.float32), np.array([7], np.int64)])
    debugger.run()
    label = debugger.control_flow[0].address
    for iteration, expected in enumerate((7.0, 7.5, 8.5)):
        value = debugger.value(f"{label}[{iteration}]/body/state")
        assert value.dtype == np.float32
        assert value.tolist() == [expected]
