"""Select, Bucketize and NonZero against OpenVINO and the worked examples of the spec."""

from __future__ import annotations

import numpy as np
import pytest

from loopscope.ir.element_type import ElementType
from loopscope.ops.declare import AttributeProblem
from tests.engine.ops.oracle import agree, ours, references


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 2), (3, 2), (3, 2)),
        ((), (2, 3), (3,)),
        ((3,), (2, 1), (1, 3)),
        ((2, 1), (2, 3), ()),
        ((0,), (0,), (0,)),
        ((1,), (), ()),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "dtype", [np.float32, np.int32, np.bool_], ids=lambda dtype: dtype.__name__
)
def test_select(dtype: type[np.generic], shapes: tuple[tuple[int, ...], ...]) -> None:
    generator = np.random.default_rng(2)
    condition = generator.integers(0, 2, shapes[0]).astype(np.bool_)
    agree(
        "Select",
        1,
        [condition, *(generator.integers(0, 9, shape).astype(dtype) for shape in shapes[1:])],
    )


def test_select_example_of_the_spec() -> None:
    condition = np.array([[False, False], [True, False], [True, True]])
    then, otherwise = np.array([[-1, 0], [1, 2], [3, 4]]), np.array([[11, 10], [9, 8], [7, 6]])
    assert ours("Select", 1, [condition, then, otherwise])[0].tolist() == [[11, 10], [1, 8], [3, 4]]


@pytest.mark.parametrize("element_type", list(ElementType), ids=str)
def test_select_takes_every_type(element_type: ElementType) -> None:
    if element_type is ElementType.STRING:
        then, otherwise = np.array(["a", "b"], object), np.array(["c", "d"], object)
    else:
        then, otherwise = (np.array(bits, np.uint8) for bits in ([1, 0], [0, 1]))
        wide = element_type.dtype.names is None
        then, otherwise = (
            one.astype(element_type.dtype) if wide else one.view(element_type.dtype)
            for one in (then, otherwise)
        )
    got = ours("Select", 1, [np.array([True, False]), then, otherwise])[0]
    assert got.dtype == element_type.dtype
    assert got[0] == then[0]
    assert got[1] == otherwise[1]


def test_select_broadcast_modes() -> None:
    condition, then, otherwise = (
        np.array([True, False]),
        np.ones((2, 3), np.float32),
        np.zeros((1,), np.float32),
    )
    expected = np.array([[1, 1, 1], [0, 0, 0]], np.float32)
    np.testing.assert_array_equal(
        ours("Select", 1, [condition, then, otherwise], {"auto_broadcast": "pdpd"})[0], expected
    )
    with pytest.raises(ValueError, match="'none'"):
        ours("Select", 1, [condition, then, otherwise], {"auto_broadcast": "none"})
    agree("Select", 1, [condition, then, otherwise], {"auto_broadcast": "pdpd"}, oracle=references)
    with pytest.raises(ValueError, match="cannot be broadcast to"):
        ours("Select", 1, [condition, otherwise, then], {"auto_broadcast": "pdpd"})
    with pytest.raises(AttributeProblem, match="auto_broadcast"):
        ours("Select", 1, [condition, then, otherwise], {"auto_broadcast": "both"})


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("output_type", ["i32", "i64"])
@pytest.mark.parametrize("boundaries", [[0, 5, 10], [5], []], ids=str)
def test_bucketize(boundaries: list[int], output_type: str, right: bool) -> None:
    attributes = {"with_right_bound": right, "output_type": output_type}
    data = np.array([[3, 50], [10, -1], [0, 5]])
    for kinds in ((np.float32, np.float32), (np.int32, np.int32), (np.float32, np.int32)):
        inputs = [data.astype(kinds[0]), np.array(boundaries, kinds[1])]
        if boundaries or output_type == "i32":
            agree("Bucketize", 3, inputs, attributes)


def test_bucketize_examples() -> None:
    data, boundaries = np.array([[3, 50], [10, -1]]), np.array([0, 5, 10])
    assert ours("Bucketize", 3, [data, boundaries])[0].tolist() == [[1, 3], [2, 0]]
    assert ours("Bucketize", 3, [data, boundaries], {"with_right_bound": "false"})[0].tolist() == [
        [1, 3],
        [3, 0],
    ]
    half = data.astype(ElementType.BF16.dtype)
    assert ours("Bucketize", 3, [half, boundaries.astype(np.float16)])[0].tolist() == [
        [1, 3],
        [2, 0],
    ]
    assert ours("Bucketize", 3, [np.float32(7), boundaries])[0].tolist() == 2


@pytest.mark.parametrize("output_type", ["i32", "i64"])
@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 4), (0,), (2, 0), (1,)], ids=str)
@pytest.mark.parametrize(
    "dtype", [np.float32, np.int32, np.bool_, np.uint8], ids=lambda dtype: dtype.__name__
)
def test_nonzero(dtype: type[np.generic], shape: tuple[int, ...], output_type: str) -> None:
    agree(
        "NonZero",
        3,
        [np.random.default_rng(4).integers(0, 2, shape).astype(dtype)],
        {"output_type": output_type},
    )


def test_nonzero_example_of_the_spec_and_scalars() -> None:
    assert ours("NonZero", 3, [np.array([[1, 0], [1, 1]])])[0].tolist() == [[0, 1, 1], [0, 0, 1]]
    assert ours("NonZero", 3, [np.float32(3)])[0].shape == (1, 1)
    assert ours("NonZero", 3, [np.float32(0)])[0].shape == (1, 0)
    assert ours("NonZero", 3, [np.array([0, 1, 2], np.int8).astype(ElementType.I4.dtype)])[
        0
    ].tolist() == [[1, 2]]
