"""Reshaping against OpenVINO and the examples of the spec."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from loopscope.ir.element_type import ElementType
from tests.engine.ops.oracle import agree, ours

DATA = np.random.default_rng(3).normal(size=(2, 3, 4)).astype(np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes", "constant"),
    [
        ("Reshape", 1, [DATA, i64(0, -1)], {"special_zero": True}, (1,)),
        ("Reshape", 1, [DATA, i64(4, -1, 1)], {"special_zero": False}, ()),
        ("Reshape", 1, [DATA[:0], i64(0, -1)], {"special_zero": True}, (1,)),
        ("Reshape", 1, [np.zeros((3, 0), np.float32), i64(7, -1)], {"special_zero": False}, (1,)),
        ("Reshape", 1, [np.zeros((0, 3), np.float32), i64(0, 5)], {"special_zero": False}, (1,)),
        ("Squeeze", 1, [DATA.reshape(1, 2, 3, 1, 4), i64(0, -2)], {}, (1,)),
        ("Squeeze", 1, [DATA.reshape(1, 2, 3, 1, 4)], {}, ()),
        ("Squeeze", 1, [DATA, i64(1)], {}, (1,)),
        ("Squeeze", 15, [DATA.reshape(2, 1, 12), i64(1)], {}, (1,)),
        ("Squeeze", 15, [DATA.reshape(2, 1, 12), i64(-2)], {"allow_axis_skip": False}, (1,)),
        ("Unsqueeze", 1, [DATA, i64(0, -1)], {}, (1,)),
        ("Unsqueeze", 1, [DATA, np.array(1)], {}, (1,)),
        ("ShapeOf", 1, [DATA], {}, ()),
        ("ShapeOf", 3, [DATA], {"output_type": "i32"}, ()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_as_openvino(
    name: str,
    version: int,
    inputs: list[np.ndarray],
    attributes: dict[str, Any],
    constant: tuple[int, ...],
) -> None:
    agree(name, version, inputs, attributes, constant=constant)


@pytest.mark.parametrize(
    ("given", "target", "special_zero", "expected"),
    [
        ((2, 5, 5, 0), [0, 4], "false", (0, 4)),
        ((2, 5, 5, 24), [0, -1, 4], "true", (2, 150, 4)),
        ((2, 2, 3), [0, 0, 1, -1], "true", (2, 2, 1, 3)),
        ((3, 1, 1), [-1, 0], "true", (3, 1)),
        ((3, 1, 1), [0, -1], "true", (3, 1)),
        ((), [1, 1], "false", (1, 1)),
        ((1, 1), [], "false", ()),
    ],
)
def test_reshape_examples(
    given: tuple[int, ...], target: list[int], special_zero: str, expected: tuple[int, ...]
) -> None:
    (result,) = ours(
        "Reshape",
        1,
        [np.zeros(given, np.float32), np.array(target, np.int64)],
        {"special_zero": special_zero},
    )
    assert result.shape == expected


def test_an_empty_dimension_is_filled_with_0() -> None:
    """Where any length would do, OpenVINO's CPU plugin says 1, its reference 0: 0 is the
    quotient that reshape-1 asks for.
    """
    inputs = [np.zeros((0, 3), np.float32), i64(0, -1)]
    assert ours("Reshape", 1, inputs, {"special_zero": "false"})[0].shape == (0, 0)


@pytest.mark.parametrize("element_type", list(ElementType), ids=str)
def test_every_element_type(element_type: ElementType) -> None:
    data = (
        np.zeros((1, 2), np.uint8).view(element_type.dtype)
        if element_type.dtype.names
        else np.zeros((1, 2)).astype(element_type.dtype)
    )
    scalar = (
        data[0, 0].reshape(()) if element_type is not ElementType.STRING else np.array("a", object)
    )
    for name, inputs, attributes in (
        ("Reshape", [data, i64(2, 1)], {"special_zero": "true"}),
        ("Reshape", [scalar, i64(-1)], {"special_zero": "false"}),
        ("Squeeze", [data, i64(0)], {}),
        ("Squeeze", [scalar], {}),
        ("Unsqueeze", [scalar, i64(0, 1)], {}),
    ):
        assert ours(name, 1, inputs, attributes)[0].dtype == element_type.dtype
    assert ours("ShapeOf", 3, [scalar])[0].shape == (0,)


@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "message"),
    [
        (
            "Reshape",
            [DATA, i64(0, 0, 0, 0)],
            {"special_zero": "true"},
            r"copies dimension 3 of a tensor of shape \[2, 3, 4\]",
        ),
        ("Reshape", [DATA, i64(5, 5)], {"special_zero": "true"}, "reshape array of size 24"),
        ("Squeeze", [DATA, i64(3)], {}, "axis 3 is out of range for rank 3"),
        ("Unsqueeze", [DATA, i64(5)], {}, "axis 5 is out of range for rank 4"),
        ("Unsqueeze", [DATA, i64(0, 0)], {}, "twice"),
    ],
)
def test_refusals(
    name: str, inputs: list[np.ndarray], attributes: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ours(name, 1, inputs, attributes)
