"""Products with quantized matrices of the domain com.microsoft, and the LSTM made of them, as
ONNX Runtime computes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import loopscope
from loopscope.errors import EngineError
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Known
from loopscope.ops.microsoft.quantized_products import infer_q_gemm
from tests.engine.ops.microsoft_nodes import Case
from tests.engine.ops.quantized_nodes import Dice, number

_DICE = Dice(19)
PAIRS = ((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8))
SHAPES = (
    ((3, 5), (5, 4)),
    ((2, 3, 5), (5, 4)),
    ((2, 3, 5), (2, 5, 4)),
    ((5,), (5, 4)),
    ((3, 5), (5,)),
    ((2, 700), (700, 9)),
)


def _products(
    first: Any, second: Any, shapes: tuple[tuple[int, ...], tuple[int, ...]]
) -> dict[str, Case]:
    """Floats differ by the rounding of one product and one sum alone: the sums of quanta are
    exact.
    """
    data, matrix, floats = (
        _DICE.whole(first, *shapes[0]),
        _DICE.whole(second, *shapes[1]),
        _DICE.reals(*shapes[0]),
    )
    one, zero, zeros = [_DICE.scales(), _DICE.scales()], _DICE.whole(first), _DICE.whole(second)
    cases = {
        "plain": Case("MatMulIntegerToFloat", [data, matrix, *one]),
        "zero points": Case("MatMulIntegerToFloat", [data, matrix, *one, zero, zeros]),
        "dynamic": Case("DynamicQuantizeMatMul", [floats, matrix, one[1]]),
        "dynamic, zero point": Case("DynamicQuantizeMatMul", [floats, matrix, one[1], zeros]),
    }
    if len(shapes[1]) == 2:
        columns = shapes[1][1]
        each = [_DICE.scales(columns), _DICE.whole(second, columns), _DICE.reals(columns)]
        cases |= {
            "each": Case("MatMulIntegerToFloat", [data, matrix, one[0], each[0], zero, *each[1:]]),
            "each, bias alone": Case(
                "MatMulIntegerToFloat", [data, matrix, one[0], each[0], None, None, each[2]]
            ),
            "vectors of one": Case(
                "MatMulIntegerToFloat", [data, matrix, *(x.reshape(1) for x in (*one, zero, zeros))]
            ),
            "dynamic, each": Case("DynamicQuantizeMatMul", [floats, matrix, *each]),
            "dynamic, bias alone": Case(
                "DynamicQuantizeMatMul", [floats, matrix, each[0], None, each[2]]
            ),
        }
    if len(shapes[1]) == 3:
        each = [_DICE.scales(2, 1, 4), _DICE.whole(second, 2, 1, 4)]
        cases["each of each batch"] = Case(
            "MatMulIntegerToFloat", [data, matrix, one[0], each[0], zero, each[1]]
        )
    return {
        f"{np.dtype(first).name} by {np.dtype(second).name} of {shapes}, {name}": case
        for name, case in cases.items()
    }


def _gemms(first: Any, second: Any, turned: tuple[int, int], alpha: float) -> dict[str, Case]:
    attributes = {"transA": turned[0], "transB": turned[1], "alpha": alpha}
    left = [
        _DICE.whole(first, *((5, 3) if turned[0] else (3, 5))),
        _DICE.scales(),
        _DICE.whole(first),
    ]
    matrix, kind = (
        _DICE.whole(second, *((4, 5) if turned[1] else (5, 4))),
        [number(2), _DICE.whole(first)],
    )
    right, each = (
        [matrix, _DICE.scales(), _DICE.whole(second)],
        [matrix, _DICE.scales(4), _DICE.whole(second, 4)],
    )
    cases = {
        "quantized": Case("QGemm", [*left, *right, None, *kind], attributes),
        "each": Case("QGemm", [*left, *each, None, *kind], attributes),
        "floats": Case("QGemm", [*left, *each], attributes, f32_outputs=(0,)),
        **{
            f"with {list(shape)}": Case(
                "QGemm", [*left, *right, _DICE.sums(*shape), *kind], attributes
            )
            for shape in ((4,), (3, 4), (3, 1), ())
        },
        "floats with a row": Case(
            "QGemm", [*left, *each, _DICE.sums(4)], attributes, f32_outputs=(0,)
        ),
    }
    return {
        f"{np.dtype(first).name} by {np.dtype(second).name}, {attributes}, {name}": case
        for name, case in cases.items()
    }


CASES: dict[str, Case] = {
    **{
        name: case
        for pair in PAIRS
        for shapes in SHAPES
        for name, case in _products(pair[0], pair[1], shapes).items()
    },
    **{
        name: case
        for pair in PAIRS
        for turned in ((0, 0), (1, 0), (0, 1), (1, 1))
        for alpha in (1.0, 0.5)
        for name, case in _gemms(pair[0], pair[1], turned, alpha).items()
    },
    "in f16": Case(
        "MatMulIntegerToFloat",
        [
            _DICE.whole(np.uint8, 3, 4),
            _DICE.whole(np.int8, 4, 5),
            number(0.05, np.float16),
            number(0.03, np.float16),
        ],
        rtol=1e-3,  # one rounding to f16
    ),
    "16 bits": Case(
        "MatMulInteger16", [_DICE.whole(np.int16, 2, 3, 40), _DICE.whole(np.int16, 40, 5)]
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_products_as_the_runtime(case: Case) -> None:
    case.agree()


def lstm(dtype: Any, direction: str, each: bool, *, parts: str = "", **attributes: Any) -> Case:
    """``parts``: of bias, lengths, hidden, cell and peepholes those whose letter it has.

    States that are quantized differ by a whole quantum where the runtime's tanh differs in its last
    bit before they are rounded: a seed without that, so that the tolerance can be that of the
    floats.
    """
    dice = Dice(23)
    directions, steps, batch, width, size = 2 if direction == "bidirectional" else 1, 6, 3, 5, 4
    shape = (directions, 4 * size) if each else (directions,)
    zeros = np.zeros(shape, dtype) if each or dtype is np.int8 else dice.whole(dtype, *shape)
    optional = {
        "b": dice.reals(directions, 8 * size),
        "l": np.array([4, 6, 2], np.int32),
        "h": dice.reals(directions, batch, size),
        "c": dice.reals(directions, batch, size),
        "p": dice.reals(directions, 3 * size),
    }
    return Case(
        "DynamicQuantizeLSTM",
        [
            *(
                dice.reals(steps, batch, width),
                dice.whole(dtype, directions, width, 4 * size),
                dice.whole(dtype, directions, size, 4 * size),
            ),
            *(one if name in parts else None for name, one in optional.items()),
            *(
                dice.scales(*shape, most=0.012),
                zeros,
                dice.scales(*shape, most=0.012),
                np.zeros(shape, dtype),
            ),
        ],
        {"direction": direction, "hidden_size": size, **attributes},
        (True, True, True),
        constant=(1, 2, 8, 9, 10, 11),
    )


LSTMS = {
    **{
        f"{direction} of {np.dtype(dtype).name}{', each' * each}, {parts or 'nothing else'}": lstm(
            dtype, direction, each, parts=parts
        )
        for direction in ("forward", "reverse", "bidirectional")
        for dtype in (np.int8, np.uint8)
        for each in (False, True)
        for parts in ("", "b", "bl", "hc", "blhcp")
    },
    "clipped": lstm(np.int8, "forward", False, parts="b", clip=0.5),
    "one gate of two": lstm(np.int8, "forward", False, parts="bl", input_forget=1),
    "other functions": lstm(
        np.int8,
        "forward",
        False,
        activations=["HardSigmoid", "Relu", "Tanh"],
        activation_alpha=[0.3],
    ),
}


@pytest.mark.parametrize("case", LSTMS.values(), ids=LSTMS.keys())
def test_lstms_as_the_runtime(case: Case) -> None:
    case.agree()


def test_an_lstm_whose_weights_are_kept_gives_the_same_bits() -> None:
    case = lstm(np.int8, "bidirectional", True, parts="bl")
    session = loopscope.Session(loopscope.read_model(case.model))
    runs = [session.run(case.feeds).outputs for _ in range(3)]
    for later in runs[1:]:
        for again, first in zip(later, runs[0], strict=True):
            np.testing.assert_array_equal(again, first)
    other = {"x0": np.asarray(case.feeds["x0"]) * 3}
    for mine, fresh in zip(
        session.run({**case.feeds, **other}).outputs,
        loopscope.run(loopscope.read_model(case.model), {**case.feeds, **other}).outputs,
        strict=True,
    ):
        np.testing.assert_array_equal(mine, fresh)


ROWS, COLUMNS = _DICE.whole(np.uint8, 3, 5), _DICE.whole(np.int8, 5, 4)
ONE = _DICE.scales()
_LSTM = lstm(np.int8, "forward", False)
REFUSED = {
    "a state for another batch": (
        Case(
            "DynamicQuantizeLSTM",
            [*_LSTM.inputs[:5], _DICE.reals(2, 3, 4), *_LSTM.inputs[6:]],
            _LSTM.attributes,
            (True, True, True),
        ),
        r"an initial state has shape \[2, 3, 4\], expected \[1, 3, 4\]",
    ),
    "scales of another number of columns": (
        Case("MatMulIntegerToFloat", [ROWS, COLUMNS, ONE, _DICE.scales(3)]),
        "there are 3 scales",
    ),
    "scales of another number of rows": (
        Case("MatMulIntegerToFloat", [ROWS, COLUMNS, _DICE.scales(2), ONE]),
        "there are 2 scales",
    ),
    "a bias of another length": (
        Case("DynamicQuantizeMatMul", [_DICE.reals(3, 5), COLUMNS, ONE, None, _DICE.reals(3)]),
        r"the bias has shape \[3\], expected \[4\]",
    ),
    "no matrices": (
        Case("QGemm", [ROWS[0], ONE, number(0, np.uint8), COLUMNS, ONE, number(0, np.int8)]),
        "expected two matrices",
    ),
    "a third that does not fit": (
        Case(
            "QGemm",
            [ROWS, ONE, number(0, np.uint8), COLUMNS, ONE, number(0, np.int8), _DICE.sums(3)],
        ),
        r"the third matrix has shape \[3\]",
    ),
    "weights of another size": (
        Case(
            "DynamicQuantizeLSTM",
            [_LSTM.inputs[0], COLUMNS[None], *_LSTM.inputs[2:]],
            _LSTM.attributes,
            (True, True, True),
        ),
        r"expected \[1, 5, 16\] and \[1, 4, 16\]",
    ),
    "sequences too long": (
        Case(
            "DynamicQuantizeLSTM",
            [*_LSTM.inputs[:4], np.array([7, 1, 1], np.int32), *_LSTM.inputs[5:]],
            _LSTM.attributes,
            (True, True, True),
        ),
        "expected 3 numbers of 0 to 6",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_told(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=problem):
        case.here()


@pytest.mark.parametrize(
    ("scale", "zero", "expected"),
    [
        (None, None, ElementType.F32),
        (ElementType.F32, None, ElementType.F32),
        (ElementType.F32, ElementType.U8, ElementType.U8),
        (None, ElementType.U8, None),
    ],
)
def test_the_type_of_a_gemm(
    scale: ElementType | None, zero: ElementType | None, expected: ElementType | None
) -> None:
    matrix, single = PartialShape.of((3, 3)), PartialShape.of(())
    inputs = [
        Known(ElementType.U8, matrix),
        Known(ElementType.F32, single),
        Known(ElementType.U8, single),
    ] * 2
    optional = [Known(), Known(scale, single), Known(zero, single)]
    while optional and optional[-1].element_type is None:
        optional.pop()
    (product,) = infer_q_gemm([*inputs, *optional], {"transA": 0, "transB": 0})
    assert (product.element_type, product.shape) == (expected, matrix)
