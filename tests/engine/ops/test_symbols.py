"""Expressions that stand for kernels in generated code give the kernels' very bits, on numpy scalars and on whole columns."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from engine.ops.catalogue import CATALOGUE
from engine.ops.declare import Operation, typed

ROWS = [(operation, text) for operation in CATALOGUE for text in (operation.symbol, operation.float_symbol) if text]
_SPECIAL = [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 1e38, 1, -1, 0.5, 2, 3]


def operands(operation: Operation, dtype: type) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    pairs = np.array([(one, other) for one in _SPECIAL for other in _SPECIAL])
    scattered = random.standard_normal((2000, 2)) * 10 ** random.uniform(-5, 5, (2000, 2))
    columns = np.concatenate([pairs, scattered]).T
    with np.errstate(all="ignore"):
        return [np.ascontiguousarray(column.astype(dtype)) for column in columns[: operation.inputs[0]]]


def bits(array: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(array), np.nan, array).view(f"u{array.itemsize}") if array.dtype.kind == "f" else array


@pytest.mark.parametrize(("operation", "text"), ROWS, ids=[f"{operation.title}: {text}" for operation, text in ROWS])
def test_symbol(operation: Operation, text: str) -> None:
    for node in ast.walk(ast.parse(text.format("x", "y"))):
        assert not isinstance(node, ast.Name) or node.id in ("x", "y", "np", "abs")
    dtypes = (np.bool_,) if operation.page.startswith("logical") else (np.float32, np.float64)
    code = compile(text.format("x", "y"), operation.name, "eval")
    for dtype in dtypes:
        given = operands(operation, dtype)

        def formula(*values: object) -> np.ndarray:
            return eval(code, {"np": np}, dict(zip("xy", values, strict=False)))

        with np.errstate(all="ignore"):
            expected = operation.kernel(*given, **typed(operation, {}))
            column = formula(*given)
            scalars = np.array([formula(*row) for row in zip(*given, strict=True)])
        assert expected.dtype == column.dtype == scalars.dtype
        np.testing.assert_array_equal(bits(column), bits(expected))
        np.testing.assert_array_equal(bits(scalars), bits(expected))
