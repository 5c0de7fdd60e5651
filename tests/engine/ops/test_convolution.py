"""Category convolution against OpenVINO, and what it cannot execute against the formula."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from loopscope.ops.convolution import dense
from tests.engine.ops.oracle import Value, agree, ours

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def weights(*shape: int, outputs: int = 1) -> np.ndarray:
    """Filters, ``outputs`` leading axes apart, under which random numbers stay about as large as
    they are, however many are summed.
    """
    scaled: np.ndarray = numbers(*shape) / np.sqrt(np.float32(np.prod(shape[outputs:])))
    return scaled


def window(
    strides: list[int],
    begin: list[int],
    end: list[int],
    dilations: list[int],
    auto_pad: str = "explicit",
) -> dict[str, object]:
    return {
        "strides": strides,
        "pads_begin": begin,
        "pads_end": end,
        "dilations": dilations,
        "auto_pad": auto_pad,
    }


def close(
    name: str, version: int, inputs: Sequence[Value], attributes: Mapping[str, object], **more: Any
) -> None:
    agree(name, version, inputs, attributes, rtol=1e-4, atol=3e-5, **more)


@pytest.fixture(params=[0, dense._MAX_GATHERED_ELEMENTS], ids=["in blocks", "few at once"])
def few_elements(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are built in blocks, or, where they are few, taken one by one."""
    monkeypatch.setattr(dense, "_MAX_GATHERED_ELEMENTS", request.param)


CONVOLUTIONS = [
    ((2, 3, 9), (4, 3, 3), window([2], [1], [0], [1])),
    ((1, 3, 9), (4, 3, 1), window([1], [0], [0], [1])),
    ((2, 3, 9, 8), (4, 3, 3, 2), window([2, 1], [1, 0], [0, 2], [1, 2])),
    ((1, 8, 40, 41), (4, 8, 3, 3), window([1, 1], [1, 1], [1, 1], [1, 1])),
    ((2, 8, 40, 41), (4, 8, 3, 5), window([1, 2], [1, 1], [1, 1], [2, 1])),
    ((2, 40, 12, 12), (30, 40, 3, 3), window([1, 1], [1, 2], [3, 0], [2, 3])),
    ((1, 3, 12, 12), (4, 3, 5, 5), window([1, 1], [4, 4], [4, 4], [1, 1])),
    ((1, 600, 9, 9), (4, 600, 3, 3), window([1, 1], [1, 1], [1, 1], [1, 1])),
    ((2, 3, 9, 8), (4, 3, 4, 2), window([2, 1], [0, 0], [0, 0], [1, 2], "same_upper")),
    ((2, 3, 9, 8), (4, 3, 4, 2), window([2, 1], [0, 0], [0, 0], [1, 2], "same_lower")),
    ((2, 3, 9, 8), (4, 3, 4, 2), window([2, 1], [3, 3], [0, 0], [1, 2], "valid")),
    ((2, 3, 5, 9, 8), (4, 3, 2, 4, 2), window([2, 1, 1], [0, 0, 1], [0, 0, 0], [1, 2, 1])),
    ((2, 3, 5, 9), (4, 3, 1, 1), window([2, 1], [0, 0], [0, 0], [1, 1])),
    ((2, 3, 5, 9), (4, 3, 1, 1), window([1, 1], [1, 0], [0, 2], [1, 1])),
]


@pytest.mark.usefixtures("few_elements")
@pytest.mark.parametrize(("data", "filters", "attributes"), CONVOLUTIONS, ids=str)
def test_convolution(
    data: tuple[int, ...], filters: tuple[int, ...], attributes: dict[str, object]
) -> None:
    close("Convolution", 1, [numbers(*data), weights(*filters)], attributes)


@pytest.mark.usefixtures("few_elements")
@pytest.mark.parametrize(
    ("data", "filters", "attributes"),
    [
        ((2, 6, 9, 8), (3, 4, 2, 4, 2), window([2, 1], [1, 2], [0, 0], [1, 1])),
        ((2, 6, 9, 8), (6, 1, 1, 3, 3), window([1, 1], [1, 1], [1, 1], [1, 1])),
        ((2, 6, 9, 8), (6, 1, 1, 5, 2), window([1, 2], [4, 0], [1, 1], [2, 3])),
        ((2, 70, 50, 53), (70, 1, 1, 3, 3), window([1, 1], [0, 1], [2, 1], [1, 1])),
        ((1, 6, 9, 8), (6, 1, 1, 3, 1), window([1, 1], [1, 0], [1, 0], [1, 1])),
        ((2, 6, 9, 8), (6, 2, 1, 3, 3), window([2, 2], [1, 1], [1, 1], [1, 1], "same_upper")),
        ((2, 6, 30, 31), (2, 5, 3, 3, 3), window([1, 1], [1, 1], [1, 1], [1, 1])),
        ((2, 6, 12, 11), (2, 5, 3, 3, 3), window([1, 1], [1, 1], [1, 1], [1, 1])),
        ((2, 6, 9), (2, 5, 3, 2), window([1], [1], [1], [2])),
        ((2, 6, 4, 5, 6), (2, 5, 3, 2, 2, 2), window([1, 2, 1], [1, 0, 0], [1, 0, 0], [1, 1, 1])),
    ],
    ids=str,
)
def test_group_convolution(
    data: tuple[int, ...], filters: tuple[int, ...], attributes: dict[str, object]
) -> None:
    close("GroupConvolution", 1, [numbers(*data), weights(*filters, outputs=2)], attributes)


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the blocks in which columns are built, the result is that of one block."""
    attributes = {"strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}
    cases = [
        [numbers(2, 6, 30, 31), numbers(4, 6, 3, 3)],
        [numbers(2, 6, 9, 8), numbers(4, 6, 3, 3)],
        [numbers(3, 2, 30, 8), numbers(4, 2, 1, 3)],
    ]
    whole = [ours("Convolution", 1, case, attributes)[0] for case in cases]
    for name, most in (
        ("_BLOCK_ELEMENTS", 700),
        ("_ROWS_ELEMENTS", 700),
        ("_STACK_ELEMENTS", 700),
        ("_MAX_GATHERED_ELEMENTS", 0),
    ):
        monkeypatch.setattr(dense, name, most)
    for case, expected in zip(cases, whole, strict=True):
        np.testing.assert_allclose(
            ours("Convolution", 1, case, attributes)[0], expected, rtol=1e-4, atol=1e-5
        )


def transposed(
    *values: list[int], auto_pad: str = "explicit", output_padding: list[int]
) -> dict[str, object]:
    strides, begin, end, dilations = values
    return {**window(strides, begin, end, dilations, auto_pad), "output_padding": output_padding}


@pytest.mark.parametrize(
    ("data", "filters", "attributes"),
    [
        (
            (2, 6, 9, 8),
            (6, 3, 3, 3),
            transposed([2, 2], [1, 1], [1, 0], [1, 2], output_padding=[0, 0]),
        ),
        (
            (2, 6, 9, 8),
            (6, 3, 3, 3),
            transposed(
                [2, 2], [1, 1], [1, 0], [1, 2], output_padding=[0, 0], auto_pad="same_upper"
            ),
        ),
        (
            (2, 6, 9, 8),
            (6, 3, 3, 3),
            transposed([2, 2], [1, 1], [1, 0], [1, 2], output_padding=[1, 0], auto_pad="valid"),
        ),
        ((2, 6, 9), (6, 3, 3), transposed([3], [1], [1], [1], output_padding=[2])),
        (
            (1, 2, 3, 4, 3),
            (2, 3, 2, 3, 2),
            transposed([2, 1, 2], [0, 1, 1], [1, 1, 0], [1, 1, 1], output_padding=[0, 0, 0]),
        ),
    ],
    ids=str,
)
def test_convolution_backprop_data(
    data: tuple[int, ...], filters: tuple[int, ...], attributes: dict[str, object]
) -> None:
    close("ConvolutionBackpropData", 1, [numbers(*data), numbers(*filters)], attributes)


@pytest.mark.parametrize(
    ("auto_pad", "begin", "length"),
    list(product(["explicit", "valid", "same_upper", "same_lower"], [0, 1], [9, 7, 6, 5, 4])),
)
def test_output_shape_given(auto_pad: str, begin: int, length: int) -> None:
    """Where ``output_shape`` is given, ``explicit`` keeps its padding and ``valid`` cuts nothing
    off the beginning.

    That is what the attribute's own description and OpenVINO say; the page's formula would spread
    the padding, and break the models of frontends that give both.
    """
    attributes = transposed([2], [begin], [0], [1], auto_pad=auto_pad, output_padding=[0])
    inputs = [
        np.arange(1, 4, dtype=np.float32).reshape(1, 1, 3),
        np.array([[[1, 10, 100]]], np.float32),
        np.array([length]),
    ]
    close("ConvolutionBackpropData", 1, inputs, attributes, constant=[2])


def test_group_convolution_backprop_data() -> None:
    inputs = [numbers(2, 6, 9, 8), numbers(2, 3, 4, 3, 2)]
    close(
        "GroupConvolutionBackpropData",
        1,
        inputs,
        transposed([2, 2], [1, 1], [1, 0], [1, 1], output_padding=[0, 0]),
    )


DEFORMED = [
    ([1, 1], [0, 0], [0, 0], [1, 1], 1, 1, False),
    ([2, 1], [1, 1], [1, 0], [1, 2], 1, 2, False),
    ([1, 1], [1, 1], [1, 1], [1, 1], 2, 4, True),
    ([1, 1], [1, 1], [1, 1], [1, 1], 4, 1, True),
]


@pytest.mark.parametrize(
    ("strides", "begin", "end", "dilations", "group", "deformable_group", "beyond"), DEFORMED
)
def test_deformable_convolution(
    strides: list[int],
    begin: list[int],
    end: list[int],
    dilations: list[int],
    group: int,
    deformable_group: int,
    beyond: bool,
) -> None:
    places = [
        (length + begin[i] + end[i] - (kernel - 1) * dilations[i] - 1) // strides[i] + 1
        for i, (length, kernel) in enumerate([(6, 3), (7, 2)])
    ]
    inputs = [
        numbers(2, 4, 6, 7),
        1.5 * numbers(2, deformable_group * 12, *places),
        numbers(8, 4 // group, 3, 2),
    ]
    mask = np.abs(numbers(2, deformable_group * 6, *places))
    attributes = {
        **window(strides, begin, end, dilations),
        "group": group,
        "deformable_group": deformable_group,
    }
    close("DeformableConvolution", 1, inputs, attributes)
    close("DeformableConvolution", 8, inputs, {**attributes, "bilinear_interpolation_pad": beyond})
    close(
        "DeformableConvolution",
        8,
        [*inputs, mask],
        {**attributes, "bilinear_interpolation_pad": beyond},
    )


def bits(values: np.ndarray) -> np.ndarray:
    result = np.zeros(values.shape, [("u1", np.uint8)])
    result["u1"] = values
    return result


@pytest.mark.parametrize(("pad_value", "padding"), [(0.0, -1), (1.0, 1)])
def test_binary_convolution(pad_value: float, padding: int) -> None:
    """OpenVINO executes it nowhere: it is the convolution of -1 and 1 in place of 0 and 1."""
    data, filters = RANDOM.integers(0, 2, (2, 3, 6, 5)), RANDOM.integers(0, 2, (4, 3, 3, 2))
    around = np.pad(2 * data - 1, ((0, 0), (0, 0), (1, 2), (0, 1)), constant_values=padding).astype(
        np.float32
    )
    plain = ours(
        "Convolution",
        1,
        [around, (2 * filters - 1).astype(np.float32)],
        {"strides": "2,1", "dilations": "1,2"},
    )[0]
    attributes = {
        "strides": "2,1",
        "dilations": "1,2",
        "pads_begin": "1,0",
        "pads_end": "2,1",
        "mode": "xnor-popcount",
        "pad_value": str(pad_value),
    }
    for dtype in (np.float32, np.float16, np.int32):
        result = ours("BinaryConvolution", 1, [data.astype(dtype), bits(filters)], attributes)[0]
        np.testing.assert_array_equal(result, plain.astype(dtype))
        assert result.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int32, np.int8, np.float64])
def test_types(dtype: type[np.generic]) -> None:
    data, filters = (numbers(1, 3, 8, 8) * 4).astype(dtype), (numbers(2, 3, 3, 3) * 4).astype(dtype)
    wide = ours("Convolution", 1, [data.astype(np.float64), filters.astype(np.float64)])[0]
    result = ours("Convolution", 1, [data, filters])[0]
    assert result.dtype == dtype
    if np.dtype(dtype).kind == "i":
        np.testing.assert_array_equal(result, wide.astype(np.int64).astype(dtype))
    else:
        np.testing.assert_allclose(result.astype(np.float64), wide, rtol=1e-2)


@pytest.mark.parametrize(
    ("data", "filters", "attributes", "message"),
    [
        ((1, 3, 8, 8), (2, 4, 3, 3), {}, "channels"),
        ((1, 3, 2, 2), (2, 3, 3, 3), {}, "does not fit"),
        ((1, 3, 8), (2, 3, 3, 3), {}, "do not fit"),
        ((1, 3, 8, 8), (2, 3, 3, 3), {"strides": "1,1,1"}, "strides has 3 values"),
        (
            (1, 3, 8, 8),
            (2, 3, 3, 3),
            {"pads_begin": "9999999999,9999999999"},
            "more than the limit",
        ),
    ],
)
def test_convolution_refuses(
    data: tuple[int, ...], filters: tuple[int, ...], attributes: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ours("Convolution", 1, [numbers(*data), numbers(*filters)], attributes)


def test_empty_batch() -> None:
    assert ours("Convolution", 1, [numbers(0, 3, 8, 8), numbers(2, 3, 3, 3)])[0].shape == (
        0,
        2,
        6,
        6,
    )
    assert ours("ConvolutionBackpropData", 1, [numbers(0, 3, 8, 8), numbers(3, 2, 3, 3)])[
        0
    ].shape == (0, 2, 10, 10)
