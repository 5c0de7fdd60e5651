"""Reductions against OpenVINO and the particular cases of the spec."""

from __future__ import annotations

import numpy as np
import pytest

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Known
from loopscope.ops.kernel_arithmetic import COMPUTED
from tests.engine.ops.oracle import agree, ours

NUMERIC = [
    ("ReduceL1", 4),
    ("ReduceL2", 4),
    ("ReduceMax", 1),
    ("ReduceMean", 1),
    ("ReduceMin", 1),
    ("ReduceProd", 1),
    ("ReduceSum", 1),
]
LOGICAL = [("ReduceLogicalAnd", 1), ("ReduceLogicalOr", 1)]
CASES = [
    ((2, 3, 4), [1]),
    ((2, 3, 4), [0, 2]),
    ((2, 3, 4), [-1]),
    ((2, 3, 4), [2, 1, 0]),
    ((5,), [0]),
    ((1, 1), [0]),
    ((2, 3, 4, 2), [1, -1]),
]


@pytest.mark.parametrize("keep", [True, False], ids=["keep", "drop"])
@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
@pytest.mark.parametrize(("name", "version"), NUMERIC)
def test_numbers(
    name: str, version: int, shape: tuple[int, ...], axes: list[int], keep: bool
) -> None:
    data = np.random.default_rng(6).normal(size=shape).astype(np.float32)
    agree(name, version, [data, np.array(axes)], {"keep_dims": keep}, constant=[1], atol=1e-5)


@pytest.mark.parametrize(("name", "version"), NUMERIC)
def test_scalar_axis_and_integer_types(name: str, version: int) -> None:
    data = np.array([[1, -4, 7], [-8, 4, 2]], np.int32)
    agree(name, version, [data, np.array(1, np.int32)], {"keep_dims": False}, constant=[1])
    agree(name, version, [data, np.array([0, 1], np.int32)], {"keep_dims": True}, constant=[1])


@pytest.mark.parametrize("keep", [True, False], ids=["keep", "drop"])
@pytest.mark.parametrize(("name", "version"), LOGICAL)
def test_logic(name: str, version: int, keep: bool) -> None:
    data = np.array([[True, False], [True, True], [False, False]])
    for axes in ([0], [1], [0, 1], [-1]):
        agree(name, version, [data, np.array(axes)], {"keep_dims": keep}, constant=[1])
    agree(
        name,
        version,
        [np.zeros((2, 0), np.bool_), np.array([1])],
        {"keep_dims": keep},
        constant=[1],
    )


@pytest.mark.parametrize(("name", "version"), [*NUMERIC, *LOGICAL])
def test_no_axes_means_nothing_is_folded(name: str, version: int) -> None:
    """The spec calls it the identity; of L1 and L2 each element is then its own magnitude. The
    CPU plugin cannot compile it.
    """
    data = (
        np.array([[1, -4], [3, 2]], np.float32)
        if (name, version) in NUMERIC
        else np.array([[True, False]])
    )
    expected = np.abs(data) if name in ("ReduceL1", "ReduceL2") else data
    np.testing.assert_array_equal(ours(name, version, [data, np.zeros(0, np.int64)])[0], expected)
    assert ours(name, version, [data[0, 0], np.zeros(0, np.int64)])[0].shape == ()


@pytest.mark.parametrize(
    ("name", "version", "of_float", "of_integer"),
    [
        ("ReduceL1", 4, 0.0, 0),
        ("ReduceL2", 4, 0.0, 0),
        ("ReduceMean", 1, 0.0, 0),
        ("ReduceProd", 1, 1.0, 1),
        ("ReduceSum", 1, 0.0, 0),
        ("ReduceMax", 1, -np.inf, -(2**31)),
        ("ReduceMin", 1, np.inf, 2**31 - 1),
    ],
)
def test_of_nothing(name: str, version: int, of_float: float, of_integer: int) -> None:
    """OpenVINO's CPU stops at the greatest finite float for Max and Min; ONNX and IEEE have
    infinity.
    """
    for dtype, expected in ((np.float32, of_float), (np.int32, of_integer)):
        got = ours(
            name, version, [np.zeros((2, 0, 3), dtype), np.array([1])], {"keep_dims": "true"}
        )[0]
        np.testing.assert_array_equal(got, np.full((2, 1, 3), expected, dtype))
        assert ours(name, version, [np.zeros((2, 0, 3), dtype), np.array([0])])[0].shape == (0, 3)
    if name not in ("ReduceMax", "ReduceMin"):
        agree(
            name,
            version,
            [np.zeros((2, 0, 3), np.float32), np.array([1])],
            {"keep_dims": True},
            constant=[1],
        )


@pytest.mark.parametrize(("name", "version"), NUMERIC)
def test_every_type_is_kept(name: str, version: int) -> None:
    for element_type in COMPUTED:
        data = np.array([[1, 2], [1, 1]], np.float32).astype(element_type.dtype)
        got = ours(name, version, [data, np.array([1])])[0]
        assert got.dtype == element_type.dtype, element_type
        if element_type.is_float and element_type not in (ElementType.F8E8M0, ElementType.F4E2M1):
            exact = ours(name, version, [data.astype(np.float64), np.array([1])])[0]
            np.testing.assert_array_equal(
                got.astype(np.float64), exact.astype(element_type.dtype).astype(np.float64)
            )


def test_sums_of_half_floats_do_not_stall() -> None:
    """Accumulated in f16, 2048 + 1 would stay 2048."""
    assert ours("ReduceSum", 1, [np.ones(5000, np.float16), np.array([0])])[0] == 5000
    assert ours("ReduceMean", 1, [np.full(5000, 60000, np.float16), np.array([0])])[
        0
    ] == np.float16(60000)


@pytest.mark.parametrize(("data", "expected"), [([3, 4], 3), ([-3, -4], -3), ([1, 1, 2], 1)])
def test_means_of_integers_are_truncated(data: list[int], expected: int) -> None:
    agree(
        "ReduceMean",
        1,
        [np.array(data, np.int32), np.array([0])],
        {"keep_dims": False},
        constant=[1],
    )
    assert ours("ReduceMean", 1, [np.array(data, np.int64), np.array([0])])[0] == expected
    assert ours("ReduceMean", 1, [np.array([200, 201], np.uint8), np.array([0])])[0] == 200


@pytest.mark.parametrize(("axes", "message"), [([2], "axis 2 is out of range"), ([0, -2], "twice")])
def test_wrong_axes_are_refused(axes: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ours("ReduceSum", 1, [np.ones((2, 3), np.float32), np.array(axes)])


@pytest.mark.parametrize(
    ("axes", "keep", "expected"),
    [
        (Known.of(np.array([1])), False, "[2,?]"),
        (Known.of(np.array([1])), True, "[2,1,?]"),
        (Known(ElementType.I64, PartialShape.of([2])), False, "[?]"),
        (Known(ElementType.I64, PartialShape.of([])), False, "[?,?]"),
        (Known(ElementType.I64, PartialShape.of([-1])), False, "..."),
        (Known(ElementType.I64, PartialShape.of([-1])), True, "[?,?,?]"),
    ],
)
def test_inferred_shapes(axes: Known, keep: bool, expected: str) -> None:
    operation = CATALOGUE.find("ReduceSum", "opset1")
    assert operation is not None
    assert operation.infer is not None
    (known,) = operation.infer(
        [Known(ElementType.F32, PartialShape.of([2, 3, None])), axes], {"keep_dims": keep}
    )
    assert (known.element_type, str(known.shape)) == (ElementType.F32, expected)
