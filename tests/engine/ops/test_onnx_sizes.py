"""What an operation is said to give is what it gives: a limit of so many elements lets it run,
and one less does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import defs

from loopscope.ir.element_type import ElementType
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.kernel_checks import at_most
from loopscope.ops.onnx.output_sizes import check_size
from loopscope.ops.onnx.reference import prepared

Arguments = Sequence[np.ndarray | None]
LENGTHS = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def _made(type: str, opset: int, arguments: Arguments, attributes: Mapping[str, Any]) -> np.ndarray:
    kernel = prepared(defs.get_schema(type, opset), opset, attributes, 1, drawn=False)
    return np.asarray(kernel(*arguments)[0])


def _is_exact(type: str, opset: int, arguments: Arguments, attributes: Mapping[str, Any]) -> None:
    """The rule alone is asked for one less: reading the sentence shows that it, and nothing
    else, has refused.
    """
    made = _made(type, opset, arguments, attributes)
    with at_most(made.size):
        check_size(type, arguments, attributes)
    with (
        at_most(made.size - 1),
        pytest.raises(ValueError, match=f"the output of {type} would have {made.size} elements"),
    ):
        check_size(type, arguments, attributes)


@st.composite
def _axes(draw: st.DrawFn, rank: int) -> list[int] | None:
    """Some axes in any order, counted from either end; or none named."""
    chosen = draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))
    named = [axis - rank if draw(st.booleans()) else axis for axis in chosen]
    return named if draw(st.booleans()) else None


@given(st.data(), LENGTHS)
def test_center_crop_pad(data: st.DataObject, lengths: list[int]) -> None:
    axes = data.draw(_axes(len(lengths)))
    count = len(lengths if axes is None else axes)
    wanted = np.array(data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)))
    _is_exact(
        "CenterCropPad",
        18,
        [np.ones(lengths, np.float32), wanted],
        {} if axes is None else {"axes": axes},
    )


@given(st.data(), LENGTHS, st.sampled_from(["stretch", "not_larger", "not_smaller"]), st.booleans())
def test_resize(data: st.DataObject, lengths: list[int], policy: str, scaled: bool) -> None:
    axes = data.draw(_axes(len(lengths)))
    count = len(lengths if axes is None else axes)
    attributes: dict[str, Any] = {
        "mode": "nearest",
        "nearest_mode": "floor",
        "coordinate_transformation_mode": "asymmetric",
    }
    attributes |= {} if axes is None else {"axes": [axis % len(lengths) for axis in axes]}
    if scaled:
        scales = np.array(
            data.draw(
                st.lists(st.sampled_from([0.5, 1.0, 1.3, 2.0, 2.7]), min_size=count, max_size=count)
            ),
            np.float32,
        )
        arguments: list[np.ndarray | None] = [np.ones(lengths, np.float32), None, scales]
    else:
        sizes = np.array(data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)))
        arguments = [np.ones(lengths, np.float32), None, None, sizes]
        attributes["keep_aspect_ratio_policy"] = policy
    if _length_of_resized(arguments, attributes):
        _is_exact("Resize", 19, arguments, attributes)


def _length_of_resized(arguments: Arguments, attributes: Mapping[str, Any]) -> int:
    """0 where an axis would vanish, which the reference does not compute."""
    data, scales, sizes = arguments[0], arguments[2], (*arguments, None)[3]
    assert data is not None
    axes = attributes.get("axes", range(data.ndim))
    if scales is not None:
        return min(
            int(data.shape[axis] * scale) for axis, scale in zip(axes, scales.tolist(), strict=True)
        )
    assert sizes is not None
    ratio = min(size / data.shape[axis] for axis, size in zip(axes, sizes.tolist(), strict=True))
    return min(int(data.shape[axis] * ratio + 0.5) for axis in axes)


@given(LENGTHS, st.data())
def test_tile(lengths: list[int], data: st.DataObject) -> None:
    times = np.array(
        data.draw(st.lists(st.integers(1, 5), min_size=len(lengths), max_size=len(lengths)))
    )
    _is_exact("Tile", 13, [np.ones(lengths, np.float32), times], {})


@given(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([-3, -1, 1, 2, 5]))
def test_range(start: int, limit: int, delta: int) -> None:
    arguments = [np.array(one) for one in (start, limit, delta)]
    made = len(range(start, limit, delta))
    with at_most(made):
        check_size("Range", arguments, {})
    if made:
        with at_most(made - 1), pytest.raises(ValueError, match=f"would have {made} elements"):
            check_size("Range", arguments, {})


@pytest.mark.parametrize(
    ("type", "arguments", "attributes"),
    [
        ("Pad", [np.ones((2, 3), np.float32)], {"pads": [1, 0, 2, 5]}),
        ("RandomUniform", [], {"shape": [3, 4]}),
        ("RandomNormal", [], {"shape": [3, 4], "seed": 1.0}),
        (
            "MelWeightMatrix",
            [
                np.array(5),
                np.array(16),
                np.array(8000),
                np.array(0.0, np.float32),
                np.array(4000.0, np.float32),
            ],
            {},
        ),
    ],
)
def test_what_an_operation_gives(
    type: str, arguments: list[np.ndarray], attributes: dict[str, Any]
) -> None:
    _is_exact(type, 2 if type == "Pad" else 17, arguments, attributes)


def test_pads_of_some_axes_and_below_zero() -> None:
    """Pad 18 has kernels of its own; the rule holds for whoever asks it."""
    data, axes = np.ones((224, 224, 3), np.float32), np.array([-3, 1])
    with at_most(200 * 226 * 3):
        check_size("Pad", [data, np.array([-12, 1, -12, 1]), None, axes], {})
    with at_most(200 * 226 * 3 - 1), pytest.raises(ValueError, match=f"{200 * 226 * 3} elements"):
        check_size("Pad", [data, np.array([-12, 1, -12, 1]), None, axes], {})


def test_an_image_of_common_size_is_none_too_large() -> None:
    """Once it was taken for 30,211,571,712 elements."""
    image = np.ones((1, 3, 224, 224), np.float32)
    made = _made(
        "Resize", 19, [image, None, None, np.array([448, 448])], {"axes": [2, 3], "mode": "nearest"}
    )
    assert made.shape == (1, 3, 448, 448)
    assert _made("CenterCropPad", 18, [image, np.array([448, 448])], {"axes": [-2, -1]}).shape == (
        1,
        3,
        448,
        448,
    )
    with pytest.raises(ValueError, match="more than the limit"):
        check_size("Resize", [image, None, np.array([1e30, 1e30], np.float32)], {"axes": [-2, -1]})


@pytest.mark.parametrize(
    ("type", "arguments", "told"),
    [
        ("Resize", [np.ones((2, 2)), None, None, np.array([3, 3, 3])], "3 sizes, expected 2"),
        ("Resize", [np.ones((2, 2)), None, np.array([3.0])], "1 scales, expected 2"),
        ("CenterCropPad", [np.ones((2, 2)), np.array([3])], "1 lengths, expected 2"),
        ("Pad", [np.ones((2, 2)), np.array([3])], "1 pads, expected 4"),
    ],
)
def test_too_few_or_too_many_are_told(type: str, arguments: Arguments, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        check_size(type, arguments, {})


ONES = np.ones((2, 3), np.float32)
OPENVINO: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    ("Tile", "opset1", [ONES, np.array([4, 1, 2])], {}),
    ("Pad", "opset12", [ONES, np.array([-1, 2]), np.array([0, 1])], {"pad_mode": "constant"}),
    ("Broadcast", "opset3", [ONES, np.array([5, 2, 3])], {}),
    (
        "Range",
        "opset4",
        [np.int64(9), np.int64(-9), np.int64(-2)],
        {"output_type": ElementType.I64},
    ),
    (
        "Eye",
        "opset9",
        [np.int64(3), np.int64(4), np.int64(0), np.array([2])],
        {"output_type": ElementType.I64},
    ),
]


@pytest.mark.parametrize(
    ("type", "opset", "arguments", "attributes"),
    OPENVINO,
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_an_operation_of_openvino_gives(
    type: str, opset: str, arguments: list[Any], attributes: dict[str, Any]
) -> None:
    operation = CATALOGUE.find(type, opset)
    assert operation is not None
    assert operation.kernel is not None
    made = operation.kernel(*arguments, **attributes)
    size = np.asarray(made).size
    with at_most(size):
        operation.kernel(*arguments, **attributes)
    with at_most(size - 1), pytest.raises(ValueError, match=f"would have {size} elements"):
        operation.kernel(*arguments, **attributes)


@pytest.mark.parametrize(
    ("axis", "split"),
    [
        (0, None),
        (-2, None),
        (0, np.array(1)),
        (0, np.array(1000)),
        (0, np.array(0)),
        (0, np.array(-1)),
    ],
)
def test_an_empty_tensor_is_not_split_into_billions(axis: int, split: np.ndarray | None) -> None:
    """Found by the fuzzer: it took as long as they take to be made, though none of them has an
    element.
    """
    with pytest.raises(
        ValueError,
        match=r"the output of SplitToSequence would have \d+ tensors, more than the limit of 1000000",
    ):
        check_size("SplitToSequence", [np.zeros((2**40, 0)), split], {"axis": axis})


@pytest.mark.parametrize(
    ("axis", "split"), [(0, None), (1, None), (0, np.array(2)), (0, np.array([1, 3])), (5, None)]
)
def test_a_tensor_is_split(axis: int, split: np.ndarray | None) -> None:
    check_size("SplitToSequence", [np.zeros((4, 3)), split], {"axis": axis})
