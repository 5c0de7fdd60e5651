"""Products whose matrix is a constant of the model: what is kept of it gives the same bits as
the matrix itself, in each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import loopscope
from loopscope.executor.plan.planner import plan_of
from loopscope.ops.declare import Known
from loopscope.ops.onnx.byte_products import ByteMatrix
from loopscope.ops.onnx_catalogue import ONNX
from tests.engine.ops.byte_limits import limits
from tests.engine.ops.microsoft_nodes import Case
from tests.engine.ops.quantized_nodes import Dice

_DICE = Dice(23)
SIZES = ((1, 5, 4), (3, 1537, 7), (2, 0, 3))
"""Rows, sums and columns; the second sums to three times 2^24 where all are extreme."""
_MATRIX = {"QLinearMatMul": 3, "MatMulIntegerToFloat": 1, "DynamicQuantizeMatMul": 1}


def _scale(number: float) -> np.ndarray:
    return np.array(number, np.float32)


def _quantized(data: np.ndarray, matrix: np.ndarray, zeros: np.ndarray, scale: float) -> Case:
    """The output's scale decides how much of it saturates."""
    middle = np.array(7, data.dtype)
    each = np.full(zeros.shape, 0.5, np.float32)
    inputs = [
        data,
        _scale(0.25),
        middle,
        matrix,
        each,
        zeros,
        _scale(scale),
        np.array(100, np.uint8),
    ]
    return Case("QLinearMatMul", inputs, domain="", constant=tuple(range(1, 8)))


def _cases() -> dict[str, Case]:
    cases = {}
    for rows, length, columns in SIZES:
        for kind in (np.uint8, np.int8):
            lowest = np.full((length, columns), limits(kind)[0], kind)
            highest = np.full((rows, length), 255, np.uint8)
            drawn = _DICE.whole(np.uint8, rows, length), _DICE.whole(kind, length, columns)
            for form, (data, matrix) in {"drawn": drawn, "extreme": (highest, lowest)}.items():
                name = f"{rows} x {length} x {columns} by {np.dtype(kind).name}, {form}"
                one, each = np.array(3, kind), _DICE.whole(kind, columns)
                cases[f"QLinearMatMul {name}"] = _quantized(data, matrix, one, 40.0)
                cases[f"QLinearMatMul {name}, saturated"] = _quantized(data, matrix, each, 0.01)
                inputs = [data, matrix, _scale(0.25), _scale(0.5), np.array(9, np.uint8), each]
                cases[f"MatMulIntegerToFloat {name}"] = Case(
                    "MatMulIntegerToFloat", inputs, constant=(1, 3, 5)
                )
                floats = data.astype(np.float32) - 99
                cases[f"DynamicQuantizeMatMul {name}"] = Case(
                    "DynamicQuantizeMatMul", [floats, matrix, _scale(0.5), each], constant=(1, 2, 3)
                )
    return cases


CASES = _cases()


@pytest.mark.parametrize("name", CASES)
def test_runs_with_a_constant_matrix_give_the_bits_of_runs_with_an_input(name: str) -> None:
    case = CASES[name]
    plan = plan_of(loopscope.read_model(case.model))
    (instruction,) = plan.main.instructions
    kept = ByteMatrix.most_bytes(_array(case.inputs, _MATRIX[case.type]).shape)
    assert getattr(instruction.call, "most_bytes", None) == kept
    session = loopscope.Session(loopscope.read_model(case.model))
    given = replace(case, constant=())
    (expected,) = given.here()
    for _ in range(3):
        (found,) = session.run(case.feeds).outputs
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", [name for name in CASES if " 0 x " not in name])
def test_onnx_runtime_agrees(name: str) -> None:
    CASES[name].agree()


@pytest.mark.parametrize("name", ["QLinearMatMul", "MatMulIntegerToFloat", "DynamicQuantizeMatMul"])
def test_what_is_kept_of_one_matrix_is_not_used_for_another(name: str) -> None:
    case = next(case for title, case in CASES.items() if title.startswith(f"{name} 1 x 5"))
    operation = ONNX.find(name, "ai.onnx 10" if name == "QLinearMatMul" else "com.microsoft 1")
    assert operation is not None
    assert operation.kernel is not None
    assert operation.by_constant is not None
    place = operation.kept_input
    assert place == _MATRIX[name]
    matrix = _array(case.inputs, place)
    kernel = operation.by_constant(Known.of(matrix))
    assert kernel is not None
    other = np.ascontiguousarray(matrix[::-1])
    for one in (matrix, other, matrix, matrix):
        arrays = [*case.inputs[:place], one, *case.inputs[place + 1 :]]
        np.testing.assert_array_equal(kernel(*arrays), operation.kernel(*arrays))


def _array(inputs: Sequence[np.ndarray | None], place: int) -> np.ndarray:
    found = inputs[place]
    assert found is not None
    return found
