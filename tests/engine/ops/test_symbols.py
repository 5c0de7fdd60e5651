"""Expressions that stand for kernels in generated code give the kernels' very bits, on numpy
scalars and on whole columns.
"""

from __future__ import annotations

import ast
from itertools import product
from typing import Any

import numpy as np
import pytest

from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Operation, typed
from loopscope.ops.onnx.table import ROWS as ONNX_ROWS
from loopscope.ops.onnx_catalogue import ONNX

OF_ONNX = [
    operation
    for name in dict.fromkeys(row.name for row in ONNX_ROWS[""])
    if (operation := ONNX.find(name, "ai.onnx 18")) is not None
]
ROWS = [
    (operation, text)
    for operation in (*CATALOGUE, *OF_ONNX)
    for text in (operation.symbol, operation.float_symbol)
    if text
]
OF_INTEGERS = [operation for operation in (*CATALOGUE, *OF_ONNX) if operation.integer_symbol]
_LOGICAL = ("And", "Or", "Xor", "Not")
_SPECIAL = [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 1e38, 1, -1, 0.5, 2, 3]


def operands(count: int, dtype: type[np.generic]) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    combined = np.array(list(product(_SPECIAL, repeat=count)))
    scattered = random.standard_normal((2000, count)) * 10 ** random.uniform(-5, 5, (2000, count))
    columns = np.concatenate([combined, scattered]).T
    with np.errstate(all="ignore"):
        return [np.ascontiguousarray(column.astype(dtype)) for column in columns]


def bits(array: np.ndarray) -> np.ndarray:
    return (
        np.where(np.isnan(array), np.nan, array).view(f"u{array.itemsize}")
        if array.dtype.kind == "f"
        else array
    )


def look_at(text: str) -> None:
    """It names nothing but its operands, and what cannot do harm."""
    for node in ast.walk(ast.parse(text.format(*"xyz"))):
        assert not isinstance(node, ast.Name) or node.id in ("x", "y", "z", "np", "abs")


@pytest.mark.parametrize(
    ("operation", "text"), ROWS, ids=[f"{operation.page}: {text}" for operation, text in ROWS]
)
def test_symbol(operation: Operation, text: str) -> None:
    look_at(text)
    dtypes = (
        (np.bool_,)
        if operation.page.startswith("logical") or operation.name in _LOGICAL
        else (np.float32, np.float64)
    )
    code = compile(text.format(*"xyz"), operation.name, "eval")
    for dtype in dtypes:
        given = operands(sum(f"{{{number}}}" in text for number in range(3)), dtype)

        def formula(*values: object) -> Any:
            return eval(code, {"np": np}, dict(zip("xyz", values, strict=False)))

        with np.errstate(all="ignore"):
            assert operation.kernel is not None
            expected = operation.kernel(*given, **typed(operation, {}))
            column = formula(*given)
            scalars = np.array([formula(*row) for row in zip(*given, strict=True)])
        assert expected.dtype == column.dtype == scalars.dtype
        np.testing.assert_array_equal(bits(column), bits(expected))
        np.testing.assert_array_equal(bits(scalars), bits(expected))


@pytest.mark.parametrize(
    "operation",
    OF_INTEGERS,
    ids=[f"{operation.page}: {operation.integer_symbol}" for operation in OF_INTEGERS],
)
@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
)
def test_symbol_of_integers(operation: Operation, dtype: type[np.integer[Any]]) -> None:
    """Of all pairs of numbers at the edges, divisors of 0 apart: of rank 0, as generated code
    has them.
    """
    text = operation.integer_symbol
    look_at(text)
    edges = np.iinfo(dtype)
    numbers = sorted(
        {
            dtype(one)
            for one in (edges.min, edges.min + 1, 0, 1, 2, 3, 7, 8, 100, edges.max - 1, edges.max)
        }
    )
    if edges.min < 0:
        numbers += [dtype(one) for one in (-1, -2, -3, -7, -8, -100)]
    count = 2 if "{1}" in text else 1
    keywords = {**typed(operation, {}), **operation.symbol_when, **operation.integer_symbol_when}
    assert operation.kernel is not None
    code = compile(text.format(*"xyz"), operation.name, "eval")
    for given in product(numbers, repeat=count):
        if given[-1] == 0 and ("/" in text or "%" in text):
            continue
        with np.errstate(all="ignore"):
            expected = np.asarray(operation.kernel(*given, **keywords))
            made = eval(code, {}, dict(zip("xyz", given, strict=False)))
        assert (type(made), made.item()) == (dtype, expected.item()), given
        assert expected.dtype == dtype
