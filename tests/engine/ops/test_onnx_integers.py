"""Products of 8-bit integers: exactly what the definition says in 64 bits, for all forms of zero
points, and what ONNX Runtime gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.errors import EngineError
from loopscope.ops.declare import Known
from loopscope.ops.kernel_checks import at_most
from loopscope.ops.onnx.byte_products import ByteMatrix, rows_less
from loopscope.ops.onnx_catalogue import ONNX
from tests.engine.ops.byte_limits import limits
from tests.engine.ops.test_onnx_own import Case, feeds, one_node, ran

_DICE = np.random.default_rng(13)


def drawn(kind: str, *shape: int) -> np.ndarray:
    """Integers of the whole range of which the runtime gives exact products."""
    return _DICE.integers(*limits(kind), shape, kind, endpoint=True)


def extreme(kind: str, *shape: int, greatest: bool = True) -> np.ndarray:
    return np.full(shape, np.iinfo(kind).max if greatest else np.iinfo(kind).min, kind)


def zero(kind: str, number: int, *shape: int) -> np.ndarray:
    return np.full(shape, number, kind)


def by_definition(
    rows: np.ndarray, columns: np.ndarray, rows_zero: Any, columns_zero: Any
) -> np.ndarray:
    """In 64 bits, cut to 32; zero points of rows as they broadcast."""
    left = rows.astype(np.int64) - (0 if rows_zero is None else rows_zero.astype(np.int64))
    right = columns.astype(np.int64) - (
        0 if columns_zero is None else columns_zero.astype(np.int64)
    )
    return (left @ right).astype(np.int32)


PRODUCTS: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]] = {
    "no zero points": (drawn("uint8", 5, 700), drawn("int8", 700, 9), None, None),
    "a number for each side": (
        drawn("uint8", 5, 700),
        drawn("uint8", 700, 9),
        zero("uint8", 3),
        zero("uint8", 250),
    ),
    "vectors of one number": (
        drawn("int8", 5, 70),
        drawn("int8", 70, 9),
        zero("int8", -128, 1),
        zero("int8", 127, 1),
    ),
    "for each row": (drawn("uint8", 5, 300), drawn("int8", 300, 9), drawn("uint8", 5, 1), None),
    "for each column": (drawn("uint8", 5, 300), drawn("int8", 300, 9), None, drawn("int8", 9)),
    "for each row and column": (
        drawn("uint8", 5, 300),
        drawn("int8", 300, 9),
        drawn("uint8", 5, 1),
        drawn("int8", 1, 9),
    ),
    "in batches": (
        drawn("uint8", 2, 3, 5, 40),
        drawn("uint8", 3, 40, 9),
        drawn("uint8", 2, 3, 5, 1),
        drawn("uint8", 3, 1, 9),
    ),
    "batches by one matrix": (
        drawn("int8", 2, 3, 5, 600),
        drawn("int8", 600, 9),
        zero("int8", 100),
        drawn("int8", 9),
    ),
    "a vector and a matrix": (drawn("uint8", 300), drawn("int8", 300, 9), zero("uint8", 7), None),
    "a matrix and a vector": (drawn("uint8", 4, 300), drawn("int8", 300), None, zero("int8", 7)),
    "two vectors": (drawn("uint8", 300), drawn("int8", 300), zero("uint8", 7), zero("int8", 7)),
    "the greatest sums that f32 holds, and one more": (
        extreme("uint8", 2, 259),
        extreme("uint8", 259, 3),
        None,
        None,
    ),
    "sums beyond f32": (
        extreme("uint8", 2, 5001),
        extreme("int8", 5001, 3, greatest=False),
        None,
        zero("int8", 127),
    ),
    "sums that wrap around": (extreme("uint8", 1, 40_001), extreme("uint8", 40_001, 2), None, None),
    "an odd sum behind a great one": (
        np.concatenate([extreme("uint8", 1, 4000), zero("uint8", 1, 1, 1)], 1),
        np.concatenate([extreme("int8", 4000, 1), zero("int8", 1, 1, 1)]),
        None,
        None,
    ),
    "more rows than BLAS multiplies without a copy": (
        drawn("uint8", 301, 300),
        drawn("int8", 300, 1500),
        zero("uint8", 7),
        drawn("int8", 1500),
    ),
    "few rows by many columns": (
        drawn("uint8", 9, 300),
        drawn("int8", 300, 1027),
        zero("uint8", 7),
        drawn("int8", 1027),
    ),
    "few rows by many columns, long sums": (
        extreme("uint8", 5, 1200),
        extreme("uint8", 1200, 1027),
        None,
        zero("uint8", 1),
    ),
    "few rows by columns that lie one behind the other": (
        drawn("uint8", 9, 300),
        drawn("int8", 1027, 300).T,
        None,
        None,
    ),
    "nothing to sum": (
        drawn("uint8", 2, 0),
        drawn("int8", 0, 3),
        zero("uint8", 7),
        drawn("int8", 3),
    ),
    "no rows": (drawn("uint8", 0, 4), drawn("int8", 4, 3), None, None),
    "no batches": (drawn("uint8", 0, 2, 4), drawn("int8", 4, 3), None, None),
}


@pytest.mark.parametrize("constant", [False, True], ids=["a value", "a constant"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_exact(name: str, constant: bool) -> None:
    rows, columns, rows_zero, columns_zero = PRODUCTS[name]
    operation = ONNX.find("MatMulInteger", "ai.onnx 10")
    assert operation is not None
    assert operation.kernel is not None
    kernel = operation.kernel
    if constant:
        assert operation.by_constant is not None
        kernel = operation.by_constant(Known.of(columns)) or kernel
        kernel(
            rows, columns, rows_zero, columns_zero
        )  # the second finds what the first has prepared
    found = kernel(rows, columns, rows_zero, columns_zero)
    expected = by_definition(rows, columns, rows_zero, columns_zero)
    assert (found.dtype, found.shape) == (np.int32, expected.shape)
    np.testing.assert_array_equal(found, expected)


@st.composite
def matrices(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Draw rows, columns and their zero points: of the types' whole range, or only of its ends."""
    dice = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, columns = (draw(st.sampled_from([0, 1, 2, 3, 15, 16, 17, 65])) for _ in range(2))
    columns = draw(st.sampled_from([columns, 63, 64, 129, 200]))
    terms = draw(st.sampled_from([0, 1, 255, 256, 257, 511, 1023, 1024, 1025, 2500]))
    batch = draw(st.sampled_from([(), (2,), (3, 2)]))

    def whole(kind: str, *shape: int) -> np.ndarray:
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        if draw(st.booleans()):
            return dice.integers(least, most, shape, kind, endpoint=True)
        ends = np.array([least, most], kind)
        return (
            ends[dice.integers(0, 2, shape)]
            if draw(st.booleans())
            else np.full(shape, draw(st.sampled_from(ends.tolist())), kind)
        )

    left, right = (draw(st.sampled_from(["int8", "uint8"])) for _ in range(2))
    inside = batch if draw(st.booleans()) else ()
    zeros = whole(left, *batch, count, 1) if draw(st.booleans()) else whole(left)
    others = whole(right, *inside, 1, columns) if draw(st.booleans()) else whole(right)
    return whole(left, *batch, count, terms), whole(right, *inside, terms, columns), zeros, others


@pytest.mark.chance
@given(matrices())
def test_drawn_products_are_exact(
    drawn_matrices: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """At the ends of the types' range, sums pass the greatest that f32 has, and zero points go
    against it.
    """
    rows, columns, rows_zero, columns_zero = drawn_matrices
    found = ByteMatrix.of(columns, columns_zero).sums(rows_less(rows, rows_zero))
    expected = by_definition(rows, columns, rows_zero, columns_zero)
    assert (found.dtype, found.shape) == (np.dtype(np.int32), expected.shape)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("channels", [1, 28, 29, 30, 200])
def test_convolutions_of_extreme_bytes_are_exact(kind: str, channels: int) -> None:
    """Sums of 9 terms for each channel: 255 * 255 * 9 * 28 is the last that f32 is sure to have."""
    data, filters = (
        extreme("uint8", 1, channels, 4, 3),
        extreme(kind, 2, channels, 3, 3, greatest=False),
    )
    filters[1, -1, 2, 2] += 1
    far = zero(kind, np.iinfo(kind).max)
    operation = ONNX.find("ConvInteger", "ai.onnx 10")
    assert operation is not None
    assert operation.kernel is not None
    found = operation.kernel(data, filters, zero("uint8", 0), far)
    differences = filters.astype(np.int64) - far
    expected = np.broadcast_to(
        (255 * differences).sum(axis=(1, 2, 3))[None, :, None, None], (1, 2, 2, 1)
    )
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)


def test_a_vector_of_zero_points_is_for_rows() -> None:
    rows, columns, zeros = drawn("uint8", 3, 3), drawn("int8", 3, 3), drawn("uint8", 3)
    (found,) = ran(("MatMulInteger", 10, [rows, columns, zeros], {}, 1))
    np.testing.assert_array_equal(found, by_definition(rows, columns, zeros[:, None], None))


def test_what_was_prepared_of_a_matrix_is_not_used_for_another() -> None:
    operation = ONNX.find("MatMulInteger", "ai.onnx 10")
    assert operation is not None
    assert operation.by_constant is not None
    one, other = drawn("int8", 6, 4), drawn("int8", 6, 4)
    rows = drawn("uint8", 2, 6)
    kernel = operation.by_constant(Known.of(one))
    assert kernel is not None
    for matrix, number in ((one, 3), (other, 3), (other, 5), (one, None)):
        zeros = None if number is None else zero("int8", number)
        np.testing.assert_array_equal(
            kernel(rows, matrix, None, zeros), by_definition(rows, matrix, None, zeros)
        )


def _scale(*values: float) -> np.ndarray:
    return np.array(values[0] if len(values) == 1 else values, np.float32)


_IMAGE = drawn("uint8", 2, 4, 9, 8)
_FILTERS = drawn("int8", 6, 4, 3, 3)
_WINDOW = {"pads": [1, 0, 2, 1], "strides": [2, 1]}
AGAINST_ONNX_RUNTIME: dict[str, Case] = {
    "a product": (
        "MatMulInteger",
        10,
        [drawn("uint8", 2, 5, 700), drawn("int8", 700, 9), zero("uint8", 9), zero("int8", 3)],
        {},
        1,
    ),
    "zero points of columns": (
        "MatMulInteger",
        10,
        [drawn("uint8", 5, 700), drawn("int8", 700, 9), zero("uint8", 9), drawn("int8", 9)],
        {},
        1,
    ),
    "a quantized product": (
        "QLinearMatMul",
        10,
        [
            drawn("uint8", 2, 5, 70),
            _scale(0.02),
            zero("uint8", 121),
            drawn("int8", 70, 9),
            _scale(0.03),
            zero("int8", 2),
            _scale(0.4),
            zero("uint8", 131),
        ],
        {},
        1,
    ),
    "a quantized product, a scale for each column": (
        "QLinearMatMul",
        21,
        [
            drawn("uint8", 5, 70),
            _scale(0.02),
            zero("uint8", 121),
            drawn("int8", 70, 3),
            _scale(0.03, 0.01, 0.2),
            np.array([0, 3, -5], np.int8),
            _scale(0.7),
            zero("uint8", 3),
        ],
        {},
        1,
    ),
    "ties": (
        "QLinearMatMul",
        10,
        [
            np.arange(32, dtype=np.uint8).reshape(32, 1),
            _scale(0.5),
            zero("uint8", 16),
            np.ones((1, 1), np.uint8),
            _scale(1),
            zero("uint8", 0),
            _scale(1),
            zero("uint8", 17),
        ],
        {},
        1,
    ),
    "a convolution": (
        "ConvInteger",
        10,
        [_IMAGE, drawn("uint8", 6, 4, 3, 3), zero("uint8", 200), zero("uint8", 9)],
        _WINDOW,
        1,
    ),
    "a quantized convolution": (
        "QLinearConv",
        10,
        [
            _IMAGE,
            _scale(0.02),
            zero("uint8", 3),
            _FILTERS,
            _scale(0.03),
            zero("int8", 0),
            _scale(0.2),
            zero("uint8", 77),
        ],
        _WINDOW,
        1,
    ),
    "a quantized convolution, a scale for each filter, a bias": (
        "QLinearConv",
        10,
        [
            _IMAGE,
            _scale(0.02),
            zero("uint8", 3),
            drawn("int8", 6, 2, 3, 3),
            _scale(0.03, 0.01, 0.02, 0.05, 0.04, 0.01),
            zero("int8", 0, 6),
            _scale(0.2),
            zero("uint8", 77),
            drawn("int16", 6).astype(np.int32),
        ],
        {"group": 2, "dilations": [2, 1], "pads": [1, 0, 2, 1]},
        1,
    ),
    "a quantized convolution of a line": (
        "QLinearConv",
        10,
        [
            drawn("int8", 1, 300, 9),
            _scale(0.02),
            zero("int8", -128),
            drawn("int8", 5, 300, 3),
            _scale(0.001),
            zero("int8", 0),
            _scale(0.9),
            zero("int8", -7),
        ],
        {},
        1,
    ),
}


@pytest.mark.parametrize("name", AGAINST_ONNX_RUNTIME)
def test_the_same_numbers_as_onnx_runtime(name: str) -> None:
    case = AGAINST_ONNX_RUNTIME[name]
    type, opset, inputs, attributes, outputs = case
    session = onnxruntime.InferenceSession(
        one_node(type, opset, inputs, attributes, outputs), providers=["CPUExecutionProvider"]
    )
    (expected,) = session.run(None, feeds(inputs))
    (found,) = ran(case)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("channels", [3, 700])
def test_convolutions_are_exact(kind: str, channels: int) -> None:
    """Also where f32 could not hold the sums: filters and data as far from their zero points as
    they can be.
    """
    data, filters = extreme("uint8", 1, channels, 4), extreme(kind, 2, channels, 2)
    data[0, 0, 0], filters[1, 1:] = 254, 3
    zeros = np.array([np.iinfo(kind).min, 5], kind)
    (found,) = ran(("ConvInteger", 10, [data, filters, zero("uint8", 0), zeros], {}, 1))
    centred = filters.astype(np.int64) - zeros.astype(np.int64).reshape(-1, 1, 1)
    windows = np.lib.stride_tricks.sliding_window_view(data.astype(np.int64), 2, axis=2)
    np.testing.assert_array_equal(found, np.einsum("ncpk,ock->nop", windows, centred))


REFUSED: dict[str, tuple[Case, str]] = {
    "inner lengths": (
        ("MatMulInteger", 10, [drawn("uint8", 2, 3), drawn("int8", 4, 2)], {}, 1),
        r"\[2, 3\] and \[4, 2\] have no matrix product",
    ),
    "zero points of rows": (
        (
            "MatMulInteger",
            10,
            [drawn("uint8", 2, 3), drawn("int8", 3, 2), drawn("uint8", 4)],
            {},
            1,
        ),
        r"zero points of shape \[4, 1\] do not fit data of shape \[2, 3\]",
    ),
    "a zero point of another type": (
        ("MatMulInteger", 10, [drawn("uint8", 2, 3), drawn("int8", 3, 2), drawn("int8")], {}, 1),
        "zero points of type i8 for elements of type u8",
    ),
    "zero points of filters": (
        (
            "ConvInteger",
            10,
            [_IMAGE, drawn("uint8", 6, 4, 3, 3), zero("uint8", 0), drawn("uint8", 5)],
            {},
            1,
        ),
        r"zero points of the filters have shape \[5\], expected one number or 6",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    case, message = REFUSED[name]
    with pytest.raises(EngineError, match=message):
        ran(case)


def test_a_product_beyond_the_limit_is_refused() -> None:
    operation = ONNX.find("MatMulInteger", "ai.onnx 10")
    assert operation is not None
    assert operation.kernel is not None
    with at_most(1000), pytest.raises(ValueError, match="the product would have 25000000 elements"):
        operation.kernel(drawn("uint8", 5000, 1), drawn("uint8", 1, 5000))
