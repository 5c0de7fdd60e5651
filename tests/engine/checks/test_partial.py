"""What intervals of elements become: whatever the elements are, the result lies in what was
followed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.checks.partial import FOLLOWED, followed
from loopscope.checks.propagate import propagate
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import DYNAMIC, Dimension, PartialShape, PartialValue
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Known, typed
from loopscope.read import read_model
from tests.draws import draws
from tests.engine.ops.oracle import ours

ops = ov.opset13

AXIS, ZERO = np.array(1), np.array(0)
_MASKS = {"begin_mask": "0", "end_mask": "0", "new_axis_mask": "0,1"}
CASES: dict[str, list[tuple[list[tuple[int, ...] | np.ndarray], dict[str, str]]]] = {
    "Add": [([(3,), ()], {}), ([(2, 1), (3,)], {})],
    "Broadcast": [([(3,), np.array([2, 3])], {})],
    "Ceiling": [([(3,)], {})],
    "Concat": [([(2,), (1,), (3,)], {"axis": "0"}), ([(2, 1), (2, 2)], {"axis": "-1"})],
    "Convert": [([(3,)], {"destination_type": to}) for to in ("i32", "i64", "f32", "u8", "f16")],
    "ConvertLike": [([(3,), np.zeros(1, np.float32)], {})],
    "Divide": [
        ([(3,), (3,)], {}),
        ([(3,), np.array(2)], {"m_pythondiv": "false"}),
        ([(3,), np.array(-3)], {}),
    ],
    "Equal": [([(3,), (3,)], {})],
    "Floor": [([(3,)], {})],
    "Gather": [([(4,), np.array([3, -1, 0]), ZERO], {}), ([(2, 3), np.array(1), AXIS], {})],
    "GatherElements": [([(2, 2), np.array([[1, 0]])], {"axis": "0"})],
    "GatherND": [([(2, 3), np.array([[1, 2], [0, 0]])], {})],
    "Greater": [([(3,), ()], {})],
    "GreaterEqual": [([(3,), ()], {})],
    "Less": [([(3,), ()], {})],
    "LessEqual": [([(3,), (3,)], {})],
    "LogicalAnd": [([(3,), (3,)], {})],
    "LogicalNot": [([(3,)], {})],
    "LogicalOr": [([(3,), (3,)], {})],
    "Maximum": [([(3,), (3,)], {})],
    "Minimum": [([(3,), np.array(1)], {})],
    "Multiply": [([(3,), (3,)], {})],
    "Negative": [([(3,)], {})],
    "NotEqual": [([(3,), (3,)], {})],
    "Pad": [
        ([(2,), np.array([1]), np.array([2]), ()], {"pad_mode": "constant"}),
        ([(3,), ZERO[None], AXIS[None]], {"pad_mode": "edge"}),
    ],
    "ReduceMax": [([(2, 3), AXIS], {"keep_dims": "true"})],
    "ReduceMin": [([(4,), ZERO], {})],
    "ReduceProd": [([(3,), ZERO], {}), ([(2, 2), AXIS], {})],
    "ReduceSum": [([(2, 3), np.array([0, 1])], {})],
    "Reshape": [([(4,), np.array([2, -1])], {"special_zero": "true"})],
    "ScatterElementsUpdate": [([(4,), np.array([2, 0]), (2,), ZERO], {})],
    "ScatterNDUpdate": [([(4,), np.array([[2], [0]]), (2,)], {})],
    "ScatterUpdate": [([(4,), np.array([2]), (1,), ZERO], {})],
    "Select": [([(3,), (3,), (3,)], {})],
    "Slice": [([(6,), np.array([-1]), np.array([-7]), np.array([-2])], {})],
    "Split": [([(4,), ZERO], {"num_splits": "2"})],
    "Squeeze": [([(1, 3), ZERO], {})],
    "StridedSlice": [
        ([(4, 2), np.array([1]), np.array([3])], _MASKS),
        ([(4,), ZERO[None], AXIS[None]], {**_MASKS, "shrink_axis_mask": "1"}),
    ],
    "Subtract": [([(3,), (1,)], {})],
    "Tile": [([(2,), np.array([2])], {})],
    "Transpose": [([(2, 3), np.array([1, 0])], {})],
    "Unsqueeze": [([(3,), np.array([0])], {})],
    "VariadicSplit": [([(5,), ZERO, np.array([2, -1])], {})],
}
_OF_CONDITIONS = {"LogicalAnd", "LogicalNot", "LogicalOr", "Select"}
_SLACK = st.sampled_from([0, 0, 1, 2, np.inf])


def test_every_rule_has_cases() -> None:
    assert set(CASES) == set(FOLLOWED)


@settings(max_examples=draws(40), deadline=None)
@pytest.mark.parametrize("name", sorted(CASES))
@given(data=st.data())
def test_what_is_computed_lies_in_what_is_followed(name: str, data: st.DataObject) -> None:
    inputs, texts = data.draw(st.sampled_from(CASES[name]))
    operation = CATALOGUE.versions(name)[-1]
    of_type = st.sampled_from(
        [np.int64, np.int32, np.int8]
        + ([] if name in ("ReduceSum", "ReduceProd") else [np.float32, np.float16])
    )
    dtype = data.draw(of_type)
    arrays, known = [], []
    for position, given_input in enumerate(inputs):
        if isinstance(given_input, np.ndarray):
            arrays.append(
                given_input.astype(dtype) if name in ("Divide", "Minimum") else given_input
            )
            known.append(Known.of(arrays[-1]))
        else:
            condition = name in _OF_CONDITIONS and (position == 0 or name != "Select")
            array, knowledge = data.draw(
                _elements(given_input, np.dtype(np.bool_) if condition else np.dtype(dtype))
            )
            arrays.append(array)
            known.append(knowledge)
    if name == "Divide":
        arrays[1] = np.where(arrays[1] == 0, 1, arrays[1]).astype(dtype)
        known[1] = (
            known[1]
            if known[1].elements is None or known[1].elements.contains(arrays[1])
            else Known.of(arrays[1])
        )
    results = ours(name, operation.version, arrays, texts)
    attributes = typed(operation, texts)
    assert operation.infer is not None
    with np.errstate(all="ignore"):
        found = followed(operation, known, attributes, operation.infer(known, attributes))
    for promised, result in zip(found, results, strict=True):
        assert promised.value is None or promised.value.tolist() == result.tolist()
        assert promised.value is None or promised.value.dtype == result.dtype
        assert promised.partial is None or promised.partial.contains(result), (
            promised.partial,
            result,
        )


@st.composite
def _elements(draw: st.DrawFn, shape: tuple[int, ...], dtype: np.dtype) -> tuple[np.ndarray, Known]:
    """An array, and a part of the truth about it."""
    size = int(np.prod(shape))
    numbers = st.booleans() if dtype.kind == "b" else st.integers(-9, 40) | st.integers(90, 127)
    array = np.array(draw(st.lists(numbers, min_size=size, max_size=size)), dtype).reshape(shape)
    below, above = (
        np.array(draw(st.lists(_SLACK, min_size=size, max_size=size))).reshape(shape)
        for _ in range(2)
    )
    exact = array.astype(np.float64)
    least, most = exact - below, exact + above
    if dtype.kind == "b":
        least, most = np.maximum(least, 0), np.minimum(most, 1)
    return array, Known(
        ElementType.of(array), PartialShape.of(shape), partial=PartialValue(least, most)
    )


def test_elements_out_of_their_type_are_not_followed() -> None:
    operation = CATALOGUE.versions("Add")[-1]
    near = Known(
        ElementType.I8,
        PartialShape.of([2]),
        partial=PartialValue(np.array([120.0, 1.0]), np.array([127.0, 1.0])),
    )
    (found,) = followed(
        operation,
        [near, near],
        {"auto_broadcast": "numpy"},
        [Known(ElementType.I8, PartialShape.of([2]))],
    )
    assert found.partial is not None
    assert found.partial.intervals == [(-np.inf, np.inf), (2.0, 2.0)]


def test_nothing_large_is_computed() -> None:
    operation = replace(
        CATALOGUE.versions("Broadcast")[-1],
        kernel=lambda *_, **__: pytest.fail("a hundred million elements were made"),
    )
    one = Known(
        ElementType.I64,
        PartialShape.of([1]),
        partial=PartialValue(np.array([1.0]), np.array([2.0])),
    )
    inputs, attributes = [one, Known.of(np.array([10**4, 10**4]))], {"mode": "numpy"}
    assert operation.infer is not None
    (found,) = followed(operation, inputs, attributes, operation.infer(inputs, attributes))
    assert (str(found.shape), found.partial) == ("[10000,10000]", None)


def _batch_kept() -> ov.Model:
    """[batch, 4, 6] -> [batch * 4, 6] by arithmetic on the shape."""
    data = ops.parameter([-1, 4, 6])
    lengths = ops.split(ops.shape_of(data, "i32"), ops.constant(0), 3).outputs()
    joined = ops.concat([ops.multiply(lengths[0], lengths[1]), lengths[2]], 0)
    return ov.Model(
        [ops.reshape(data, joined, False), ops.broadcast(ops.constant(np.float32(0)), joined)],
        [data],
    )


def _padded_and_cut() -> ov.Model:
    data = ops.parameter(ov.PartialShape([ov.Dimension(2, 5), -1, 7]))
    first = ops.gather(ops.shape_of(data), ops.constant(np.array([0], np.int64)), ops.constant(0))
    less = ops.subtract(first, ops.constant(np.array([1], np.int64)))
    cut = ops.slice(
        data, ops.constant(np.array([0], np.int64)), less, ops.constant(np.array([1], np.int64))
    )
    strided = ops.strided_slice(
        data,
        ops.constant(np.array([0, 0], np.int64)),
        ops.concat([less, ops.constant(np.array([9], np.int64))], 0),
        ops.constant(np.array([1, 1], np.int64)),
        [0, 0],
        [0, 1],
    )
    padded = ops.pad(
        data,
        ops.concat([less, ops.constant(np.array([0, 1], np.int64))], 0),
        ops.constant(np.array([0, 0, 0], np.int64)),
        "constant",
    )
    return ov.Model([cut, strided, padded, ops.tile(data, ops.concat([first, first], 0))], [data])


def _chosen() -> ov.Model:
    """A length that is one or the other, and one that was never less than 1."""
    data, flag, asked = (
        ops.parameter([3, -1]),
        ops.parameter([], np.bool_),
        ops.parameter([1], np.int64),
    )
    rows = ops.gather(ops.shape_of(data), ops.constant(np.array([0], np.int64)), ops.constant(0))
    either = ops.select(flag, rows, ops.constant(np.array([8], np.int64)))
    at_least = ops.maximum(
        ops.minimum(asked, ops.constant(np.array([6], np.int64))),
        ops.constant(np.array([1], np.int64)),
    )
    target = ops.concat([either, at_least, rows], 0)
    zeros = ops.broadcast(ops.constant(np.float32(0)), target)
    scaled = ops.floor(
        ops.multiply(ops.convert(either, "f32"), ops.constant(np.array([1.5], np.float32)))
    )
    counted = ops.range(
        ops.constant(np.int64(0)),
        ops.squeeze(ops.convert(scaled, "i64"), ops.constant(0)),
        ops.constant(np.int64(2)),
        "i64",
    )
    return ov.Model([zeros, counted], [data, flag, asked])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (_batch_kept, ["[?,6]", "[?,6]"]),
        (_padded_and_cut, ["[1..4,?,7]", "[1..4,?,7]", "[3..9,?,8]", "[2..5,?,14..35]"]),
        (_chosen, ["[3..8,1..6,3]", "[2..6]"]),
    ],
)
def test_lengths_are_followed_to_where_they_are_used(
    make: Callable[[], ov.Model], expected: list[str], tmp_path: Path
) -> None:
    ov.save_model(make(), tmp_path / "m.xml", compress_to_fp16=False)
    read = read_model(tmp_path / "m.xml")
    found = propagate(read, CATALOGUE)
    assert [str(found.output("main", result.id).shape) for result in read.graph.results] == expected


@pytest.mark.parametrize(
    ("given_shape", "target", "special_zero", "expected"),
    [
        ([None, 4, 6], [(0, np.inf), (-1, -1)], False, "[?,?]"),
        ([2, 4, 6], [(1, 4), (-1, -1)], False, "[1..4,12..48]"),
        ([None, 4], [(0, 0), (2, 4)], True, "[?,2..4]"),
        ([3, 4], [(0, 2), (-1, -1)], True, "[1..3,4..12]"),
        ([3, 4], [(-1, 2), (-1, -1)], False, "[?,?]"),
        (None, [(2, 3), (-1, -1)], False, "[2..3,?]"),
    ],
)
def test_reshape_to_lengths_in_intervals(
    given_shape: list[int | None] | None,
    target: list[tuple[float, float]],
    special_zero: bool,
    expected: str,
) -> None:
    least, most = np.array(target, np.float64).T
    data = Known(ElementType.F32, DYNAMIC if given_shape is None else PartialShape.of(given_shape))
    shape = Known(
        ElementType.I64, PartialShape.of([len(target)]), partial=PartialValue(least, most)
    )
    operation = CATALOGUE.versions("Reshape")[-1]
    assert operation.infer is not None
    assert str(operation.infer([data, shape], {"special_zero": special_zero})[0].shape) == expected


def test_a_trip_count_in_an_interval_bounds_the_loop(tmp_path: Path) -> None:
    data, part = ops.parameter(ov.PartialShape([ov.Dimension(2, 5), 3])), ops.parameter([1, 3])
    body = ov.Model([ops.constant(np.bool_(True)), ops.relu(part)], [part])
    trips = ops.gather(ops.shape_of(data), ops.constant(np.int64(0)), ops.constant(0))
    loop = ops.loop(trips, ops.constant(np.bool_(True)))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 0])
    loop.set_sliced_input(part, data.output(0), 0, 1, 1, -1, 0)
    rows = loop.get_concatenated_slices(body.results[1].input_value(0), 0, 1, 1, -1, 0)
    ov.save_model(ov.Model([rows], [data]), tmp_path / "m.xml", compress_to_fp16=False)
    read = read_model(tmp_path / "m.xml")
    known = propagate(read, CATALOGUE).output("main", read.graph.results[0].id)
    assert known.shape == PartialShape.of([Dimension(2, 5), 3])


def test_what_is_either_of_two_lies_in_both_intervals(tmp_path: Path) -> None:
    """A shape out of an If has the lengths of either branch; one that a loop changes keeps what
    it never changes.
    """
    condition, data = ops.parameter([], np.bool_), ops.parameter([-1, 4])

    def branch(rows: int) -> tuple[ov.Model, ov.Node]:
        taken = ops.parameter([2], np.int64)
        columns = ops.gather(taken, ops.constant(np.array([1], np.int64)), ops.constant(0))
        return ov.Model(
            [ops.concat([ops.constant(np.array([rows], np.int64)), columns], 0)], [taken]
        ), taken

    (then, then_shape), (other, other_shape) = branch(2), branch(5)
    choice = ops.if_op(condition)
    choice.set_then_body(then)
    choice.set_else_body(other)
    choice.set_input(ops.shape_of(data).output(0), then_shape, other_shape)
    chosen = choice.set_output(then.results[0], other.results[0])

    shape = ops.parameter([2], np.int64)
    longer = ops.add(shape, ops.constant(np.array([1, 0], np.int64)))
    body = ov.Model([ops.constant(np.bool_(True)), longer], [shape])
    loop = ops.loop(ops.constant(np.int64(7)), ops.constant(np.bool_(True)))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(shape, chosen, longer.output(0))
    grown = loop.get_iter_value(longer.output(0), -1)

    zeros = [ops.broadcast(ops.constant(np.float32(0)), target) for target in (chosen, grown)]
    ov.save_model(ov.Model(zeros, [condition, data]), tmp_path / "m.xml", compress_to_fp16=False)
    read = read_model(tmp_path / "m.xml")
    found = propagate(read, CATALOGUE)
    assert [str(found.output("main", result.id).shape) for result in read.graph.results] == [
        "[2..5,4]",
        "[?,4]",
    ]
