"""The dynamic slice: what a value came from, held against runs in which one thing more is
changed, element by element.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import loopscope
from loopscope.errors import EngineError
from loopscope.explain.index_provenance import Index, parse_index, part_of
from loopscope.explain.provenance import ProvenanceStep, provenance
from tests.draws import draws
from tests.engine.debug.replay import Replay
from tests.engine.drafts import BOOL, F32, I64, Draft, Slice, loop, tensor_iterator
from tests.engine.drawn.two_numbers import Drawn, bodies, whole
from tests.engine.read.onnx_models import read

SLOW = settings(
    max_examples=draws(80),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
FEEDS = st.tuples(st.floats(-2, 2, width=32), st.floats(-2, 2, width=32))


def ran(model: loopscope.Model, *inputs: object, **options: Any) -> loopscope.Debugger:
    debugger = loopscope.Debugger(model, list(inputs), **options)
    debugger.run()
    assert debugger.state == "finished", debugger.failure
    return debugger


@SLOW
@given(draft=bodies(), inputs=FEEDS, data=st.data())
def test_what_changes_a_value_is_behind_it(
    draft: Drawn, inputs: tuple[float, float], data: st.DataObject
) -> None:
    model, feeds = whole(draft), [np.float32(value) for value in inputs]
    debugger, plain = ran(model, *feeds), Replay({})
    plain.run(model, feeds)
    # A condition that is a Const is not told.
    free = [
        one
        for one, value in plain.values.items()
        if one not in ("main/p", "main/q") and not (value.dtype == bool and "const" in one)
    ]
    if not free:
        return
    loops = [one.address for one in debugger.control_flow]  # and what comes of them
    asked = {*loops[:2], *free[-3:], data.draw(st.sampled_from(free))} & {*free}
    behind = {one: {step.address for step in provenance(debugger, one, 100_000)} for one in asked}
    for address in data.draw(st.lists(st.sampled_from(free), min_size=1, max_size=12, unique=True)):
        was = debugger.value(address)
        if was.ndim:
            continue
        changed = ~was if was.dtype == bool else was + data.draw(st.sampled_from([1, -1, 5]))
        other = loopscope.Debugger(
            model, feeds, changes={address: changed}, limits=loopscope.Limits(iterations=500)
        )
        other.run()
        for one in asked - {address}:
            try:
                now = other.value(one)
            except (
                EngineError
            ):  # it is not there any more: what is about its being there is not about its value
                continue
            if not np.array_equal(debugger.value(one), now, equal_nan=True):
                assert address in behind[one]


@pytest.mark.parametrize(("trips", "ran_for"), [(-1, 4), (9, 4), (3, 3), (0, 0)])
def test_what_decided_how_often_a_loop_ran_is_behind_what_it_gave(trips: int, ran_for: int) -> None:
    """``state`` grows by 1; whether the loop goes on is read from ``flags``, which is not a part
    of any value.
    """
    main, body = Draft(), Draft()
    x, flags, first = (
        main.parameter("x", F32, ()),
        main.parameter("flags", BOOL, (6,)),
        main.parameter("first", BOOL, ()),
    )
    n, state, flag = (
        main.parameter("n", I64, ()),
        body.parameter("state", F32, ()),
        body.parameter("flag", BOOL, (1,)),
    )
    out, go = (
        body.result(body.op("Add", state, body.const(1.0))),
        body.result(body.op("Squeeze", flag, name="go")),
    )
    made = loop(
        main,
        body,
        n,
        first,
        again=go,
        carried=[(x, state, out)],
        sliced=[(flags, flag, {"axis": 0})],
        last=[out],
        name="loop",
    )
    main.result(main.op("Negative", made, name="y"))
    on = np.array([True, True, True, False, True, True])
    debugger = ran(main.model(), np.float32(0), on, np.True_, np.int64(trips))
    record = debugger.record("main/loop")
    assert record is not None
    assert record.iterations == ran_for
    steps = provenance(debugger, "main/y")
    asked = (
        ran_for if trips in (-1, 9) else max(0, ran_for - 1)
    )  # after the last that the trip count allows, nothing is asked
    assert {str(step.part) for step in steps if step.address == "main/flags"} == {
        f"[{number}]" for number in range(asked)
    }
    assert {"main/n", "main/first", "main/x"} <= {step.address for step in steps}


# -- parts
# --------------------------------------------------------------------------------------------------------


def reached(
    steps: Sequence[ProvenanceStep], address: str, shape: tuple[int, ...]
) -> set[tuple[int, ...]]:
    """The elements of a value that a provenance has."""
    own = [step.part for step in steps if step.address == address]
    every = itertools.product(*map(range, shape))
    return {index for index in every if any(part is None or part.contains(index) for part in own)}


def moved_by(
    model: loopscope.Model, x: np.ndarray, asked: str
) -> dict[tuple[int, ...], np.ndarray]:
    """For each element of the input, which elements of a value change when it is changed."""
    was = ran(model, x).value(asked)
    found = {}
    for one in np.ndindex(x.shape):
        other = x.copy()
        other[one] += 1000
        found[one] = ran(model, other).value(asked) != was
    return found


def walked(
    length: int, size: int, *, backwards: bool, reverse: bool, axis: int, kind: str
) -> loopscope.Model:
    """Parts of x [length, length] along an axis, negated and joined; then moved on by one
    operation.
    """
    main, body = Draft(), Draft()
    part_shape = (size, length) if axis == 0 else (length, size)
    x, part = main.parameter("x", F32, (length, length)), body.parameter("part", F32, part_shape)
    out = body.result(body.op("Negative", part, name="minus"))
    way: Slice = {
        "axis": axis,
        "part_size": size,
        "stride": -size if backwards else size,
        "start": -1 if backwards else 0,
        "end": 0 if backwards else -1,
    }
    put: Slice = {
        "axis": axis,
        "part_size": size,
        "stride": -size if reverse else size,
        "start": -1 if reverse else 0,
        "end": 0 if reverse else -1,
    }
    made = tensor_iterator(main, body, sliced=[(x, part, way)], joined=[(out, put)])
    main.result(MOVES[kind](main, made, x))
    return main.model()


MOVES = {
    "nothing": lambda main, made, x: made,
    "transposed": lambda main, made, x: main.op(
        "Transpose", made, main.const([1, 0], I64), name="y"
    ),
    "joined": lambda main, made, x: main.op("Concat", x, made, axis="1", name="y"),
    "gathered": lambda main, made, x: main.op(
        "Gather", made, main.const([2, 0], I64), main.const(1, I64), opset=8, name="y"
    ),
    "reshaped": lambda main, made, x: main.op(
        "Reshape", made, main.const([-1], I64), special_zero="false", name="y"
    ),
    "added": lambda main, made, x: main.op("Subtract", made, x, name="y"),
    "row added": lambda main, made, x: main.op(
        "Subtract",
        made,
        main.op("Gather", x, main.const([1], I64), main.const(0, I64), opset=8),
        name="y",
    ),
    "scattered": lambda main, made, x: main.op(
        "ScatterUpdate",
        x,
        main.const([0], I64),
        main.op("Gather", made, main.const([3], I64), main.const(0, I64), opset=8),
        main.const(0, I64),
        opset=3,
        name="y",
    ),
    "split": lambda main, made, x: main.op(
        "Split", made, main.const(0, I64), num_splits="2", outputs=2, name="y"
    ),
    "chosen": lambda main, made, x: main.op(
        "Select", main.const([True, False, True, False], BOOL), made, x, name="y"
    ),
    "summed": lambda main, made, x: main.op(
        "ReduceSum", made, main.const([1], I64), keep_dims="true", name="y"
    ),
}


@pytest.mark.parametrize("kind", MOVES)
@pytest.mark.parametrize(
    ("backwards", "reverse"), [(False, False), (False, True), (True, False), (True, True)]
)
@pytest.mark.parametrize(("axis", "size"), [(0, 1), (0, 2), (1, 1)])
def test_an_element_leads_to_the_elements_that_it_was_made_of(
    kind: str, backwards: bool, reverse: bool, axis: int, size: int
) -> None:
    model = walked(4, size, backwards=backwards, reverse=reverse, axis=axis, kind=kind)
    x = np.arange(16, dtype=np.float32).reshape(4, 4) + 1
    debugger = ran(model, x)
    names = [
        node.name for node in model.graph.nodes if node.name == "y" or node.type == "TensorIterator"
    ]
    asked = f"main/{names[-1]}"
    for place in [asked, *([f"{asked}:1"] if kind == "split" else [])]:
        shape, moved = debugger.value(place).shape, moved_by(model, x, place)
        for index in (
            (0,) * len(shape),
            tuple(length - 1 for length in shape),
            tuple(length // 2 for length in shape),
        ):
            found = reached(provenance(debugger, place, 10_000, part=index), "main/x", x.shape)
            expected = {one for one, changed in moved.items() if changed[index]}
            assert found >= expected
            if kind not in ("summed", "chosen"):
                assert found == expected, (place, index)


def scanned() -> tuple[loopscope.Model, dict[str, np.ndarray]]:
    text = """
main (float[2] state, float[3, 2] forward, float[2, 3] sideways) => (float[2] last, float[2, 3] stacked, float[3, 2] reversed) {
  last, stacked, reversed = Scan (state, forward, sideways) <
    num_scan_inputs = 2, scan_input_axes = [0, -1], scan_input_directions = [0, 1],
    scan_output_axes = [-1, 0], scan_output_directions = [0, 1],
    body = step (float[2] s, float[2] a, float[2] b) => (float[2] t, float[2] one, float[2] two) {
      t = Add (s, a)
      one = Mul (a, b)
      two = Sub (b, a)
    }
  >
}
"""
    feeds = {
        "state": np.ones(2),
        "forward": np.arange(1, 7).reshape(3, 2),
        "sideways": np.arange(2, 8).reshape(2, 3),
    }
    return read(text), {name: value.astype(np.float32) for name, value in feeds.items()}


SCANNED = [
    (":1", (1, 2), {"main/forward[2, 1]", "main/sideways[1, 0]"}),
    (":1", (slice(None), 0), {"main/forward[0]", "main/sideways[:, 2]"}),
    (
        ":1",
        (0,),
        {f"main/forward[{k}, 0]" for k in range(3)} | {f"main/sideways[0, {k}]" for k in range(3)},
    ),
    (":2", (0, 1), {"main/forward[2, 1]", "main/sideways[1, 0]"}),
    (
        ":2",
        (slice(1, 3), 0),
        {f"main/forward[{k}, 0]" for k in (0, 1)} | {f"main/sideways[0, {k}]" for k in (1, 2)},
    ),
    ("", (-1,), {"main/state[1]"} | {f"main/forward[{k}, 1]" for k in range(3)}),
]


@pytest.mark.parametrize(("output", "index", "expected"), SCANNED)
def test_elements_of_what_a_scan_stacks(
    output: str, index: tuple[Any, ...], expected: set[str]
) -> None:
    model, feeds = scanned()
    debugger = loopscope.Debugger(model, feeds)
    debugger.run()
    steps = provenance(debugger, f"main/Scan_0{output}", part=index)
    inputs = {
        f"{one.address}{one.part or ''}" for one in steps if one.address.rpartition("/")[2] in feeds
    }
    assert inputs == expected


def test_pieces_of_different_lengths_are_told_apart() -> None:
    """An iteration k joins k + 1 numbers, of which nothing is known before it runs."""
    main, body = Draft(), Draft()
    x, count = main.parameter("x", F32, (1,)), body.parameter("count", I64, (1,))
    value = body.parameter("value", F32, (1,))
    wide = body.op("Broadcast", value, count, mode="numpy", name="wide")
    more = body.result(body.op("Add", count, body.const([1], I64), name="more"))
    out, again = body.result(wide), body.result(body.const(True, BOOL))
    start = main.const([1], I64, name="start")
    ends = main.const(4, I64), main.const(True, BOOL)
    joined: Slice = {"stride": -1, "start": -1, "end": 0}
    made = loop(
        main,
        body,
        *ends,
        again=again,
        carried=[(start, count, more)],
        invariants=[(x, value)],
        joined=[(out, joined)],
        name="loop",
    )
    main.result(made)
    debugger = ran(main.model(), np.ones(1, np.float32))
    assert debugger.value("main/loop").shape == (10,)
    pieces = {
        index: [
            (link.address, str(link.part or ""))
            for link in provenance(debugger, "main/loop", 1, part=(index,))[0].links[:-1]
        ]
        for index in (0, 3, 4, 6, 7, 8, 9)
    }
    at = {0: (3, 0), 3: (3, 3), 4: (2, 0), 6: (2, 2), 7: (1, 0), 8: (1, 1), 9: (0, None)}
    expected = {
        index: [(f"main/loop[{k}]/body/wide", "" if place is None else f"[{place}]")]
        for index, (k, place) in at.items()
    }
    assert pieces == expected
    both = provenance(debugger, "main/loop", 1, part=(slice(3, 8),))[0].links[:-1]
    assert [f"{link.address}{link.part or ''}" for link in both] == [
        "main/loop[1]/body/wide[0]",
        "main/loop[2]/body/wide",
        "main/loop[3]/body/wide[3]",
    ]


def test_elements_of_sequences() -> None:
    text = """
main (float[3] x, float[3] y) => (float[N] joined) {
  two = Mul (x, x)
  first = SequenceConstruct (x, two)
  mapped = SequenceMap (first, y) <
    body = each (float[3] v, float[3] w) => (float[3] u) { u = Sub (v, w) }
  >
  joined = ConcatFromSequence <axis = 0> (mapped)
}
"""
    debugger = loopscope.Debugger(read(text), [np.ones(3, np.float32), np.zeros(3, np.float32)])
    debugger.run()
    (loop,) = [record.address for record in debugger.control_flow if record.kind == "SequenceMap"]
    first, *_ = provenance(debugger, loop, part=(1,))
    (piece,) = [link for link in first.links if link.role == "concatenated"]
    assert piece.address == f"{loop}[1]/body/Sub_0"
    links = [link for step in provenance(debugger, piece.address) for link in step.links]
    assert [str(link.part) for link in links if link.role == "slice"] == ["[1]", "None"]
    with pytest.raises(EngineError, match="no element 2 along axis 0 of length 2"):
        provenance(debugger, loop, part=(2,))


REFUSED: list[tuple[Index, str]] = [
    ((4,), "no element 4 along axis 0 of length 2"),
    ((0, 0, 0), "an index of 3 numbers into a value of shape .2, 3."),
    ((slice(1, 1),), "no element along axis 0 of length 2 lies in 1:1"),
    ((slice(0, 2, 2),), "expected steps of 1, got 2"),
]


@pytest.mark.parametrize(("index", "told"), REFUSED)
def test_parts_that_are_not_there_are_refused(index: tuple[Any, ...], told: str) -> None:
    with pytest.raises(EngineError, match=told):
        part_of(np.zeros((2, 3)), index)


@pytest.mark.parametrize("text", ["x", "1.5", "1:2:3", "1,,2", "--1", "1;2", "…"])
def test_texts_that_are_no_index_are_refused(text: str) -> None:
    with pytest.raises(EngineError, match="is not a part of a value"):
        parse_index(text)


@pytest.mark.parametrize(
    ("index", "text"),
    [
        ((), "None"),
        ((slice(None),), "None"),
        ((1,), "[1]"),
        ((-1, slice(0, 2)), "[1, 0:2]"),
        ((slice(None), 2), "[:, 2]"),
    ],
)
def test_parts_read_as_indices(index: tuple[Any, ...], text: str) -> None:
    assert str(part_of(np.zeros((2, 3)), index)) == text
