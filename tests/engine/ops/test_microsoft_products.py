"""Products of the domain com.microsoft as ONNX Runtime computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import loopscope
from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case

_DICE = np.random.default_rng(13)


def reals(*shape: int) -> np.ndarray:
    return _DICE.normal(size=shape).astype(np.float32)


def product(*shapes: tuple[int, ...], type: str = "FusedMatMul", **attributes: Any) -> Case:
    return Case(type, [reals(*shape) for shape in shapes], attributes)


def gemm(activation: str, **attributes: Any) -> Case:
    return Case(
        "FusedGemm", [reals(3, 4), reals(4, 5), reals(5)], {"activation": activation, **attributes}
    )


def conv(activation: str, *numbers: float) -> Case:
    given: dict[str, Any] = {
        "activation": activation,
        **({"activation_params": list(numbers)} if numbers else {}),
    }
    return Case(
        "FusedConv",
        [reals(2, 4, 7, 6), reals(6, 2, 3, 2), reals(6)],
        {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 1], **given},
    )


A = {"activation_alpha": 0.3}
CASES = {
    "plain": product((2, 3, 4), (4, 5)),
    "scaled": product((2, 3, 4), (2, 4, 5), alpha=0.125),
    "first transposed": product((2, 4, 3), (2, 4, 5), transA=1),
    "both transposed": product((4, 3), (5, 4), transA=1, transB=1, alpha=-2.0),
    "batches broadcast": product((2, 1, 4, 3), (5, 4, 6), transA=1, alpha=0.5),
    "a vector": product((4,), (4, 5), transA=1),
    "two vectors": product((4,), (4,), transA=1, transB=1),
    "by a vector": product((2, 3, 4), (4,), transB=1),
    "rows before batches": product((3, 2, 4), (2, 4, 5), transBatchA=1),
    "rows before batches, transposed": product((3, 2, 4), (2, 3, 5), transBatchA=1, transA=1),
    "rows before two batches": product((3, 2, 7, 4), (2, 7, 4, 5), transBatchA=1, alpha=3.0),
    "second's rows before batches": product((2, 3, 4), (4, 2, 5), transBatchB=1),
    "second's rows before batches, transposed": product(
        (2, 3, 4), (5, 2, 4), transBatchB=1, transB=1
    ),
    "f64": Case(
        "FusedMatMul",
        [reals(3, 4).astype(np.float64), reals(4, 3).astype(np.float64)],
        {"alpha": 0.5},
        rtol=1e-13,
    ),
    "the old name": product((4, 3), (4, 5), type="TransposeMatMul", transA=1, alpha=0.5),
    "elu": gemm("Elu", **A),
    "hard sigmoid": gemm("HardSigmoid", **A, activation_beta=0.6),
    "leaky relu": gemm("LeakyRelu", **A),
    "parametric softplus": gemm("ParametricSoftplus", **A, activation_beta=0.6),
    "relu": gemm("Relu", transA=0),
    "scaled tanh": gemm("ScaledTanh", **A, activation_beta=0.6),
    "selu": gemm("Selu", **A, activation_gamma=0.6),
    "sigmoid": gemm("Sigmoid", alpha=0.5, beta=2.0),
    "softplus": gemm("Softplus"),
    "softsign": gemm("Softsign"),
    "tanh": gemm("Tanh"),
    "thresholded relu": gemm("ThresholdedRelu", **A),
    "relu without a third": Case(
        "FusedGemm", [reals(4, 3), reals(5, 4)], {"activation": "Relu", "transA": 1, "transB": 1}
    ),
    "convolution and relu": conv("Relu"),
    "convolution and tanh": conv("Tanh"),
    "convolution and relu, with numbers that nobody needs": conv("Relu", 1.0, 2.0),
    "convolution and sigmoid": conv("Sigmoid"),
    "convolution and leaky relu": conv("LeakyRelu", 0.2),
    "convolution and clip": conv("Clip", -0.5, 1.5),
    "convolution and hard sigmoid": conv("HardSigmoid", 0.2, 0.5),
    "convolution and hard swish": conv("HardSwish"),
    "convolution without activation": Case(
        "FusedConv", [reals(1, 2, 5), reals(3, 2, 2)], {"auto_pad": "SAME_UPPER"}
    ),
    "convolution and a sum": Case(
        "FusedConv",
        [reals(1, 2, 5), reals(3, 2, 2), reals(3), reals(1, 3, 4)],
        {"activation": "Relu"},
    ),
    "convolution and a sum, no bias": Case(
        "FusedConv", [reals(1, 2, 4, 4), reals(3, 2, 2, 2), None, reals(1, 3, 3, 3)]
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    case.agree()


@pytest.mark.parametrize(
    "case",
    [
        product((64, 96), (96, 200), alpha=0.5),
        product((8, 96), (200, 96), transB=1),
        product((3, 2, 96), (2, 96, 8), transBatchA=1),
    ],
)
def test_by_a_constant_matrix(case: Case) -> None:
    """The second matrix as an initializer, which is laid out once."""
    model = onnx.ModelProto.FromString(case.model)
    second = model.graph.input.pop(1)
    held = case.inputs[1]
    assert held is not None
    model.graph.initializer.append(numpy_helper.from_array(held, second.name))
    (made,) = loopscope.run(
        loopscope.read_model(model.SerializeToString()), {"x0": case.feeds["x0"]}
    ).outputs
    np.testing.assert_allclose(made, case.there()[0], rtol=2e-5, atol=2e-5)


def test_f16_is_rounded_once() -> None:
    small = [reals(3, 4).astype(np.float16), reals(4, 5).astype(np.float16)]
    (mine,) = Case("FusedGemm", small, {"activation": "Sigmoid"}).here()
    (wide,) = Case(
        "FusedGemm", [one.astype(np.float32) for one in small], {"activation": "Sigmoid"}
    ).there()
    assert mine.dtype == np.float16
    np.testing.assert_allclose(mine, wide, rtol=2e-3)


REFUSED = {
    "an unknown activation of Gemm": (
        gemm("Gelu"),
        "the activation is 'Gelu', expected one of Elu",
    ),
    "a number of Gemm's that is missing": (
        gemm("Selu", **A),
        "needs activation_alpha and activation_gamma",
    ),
    "an unknown activation of Conv": (
        conv("Elu", 1.0),
        "the activation is 'Elu', expected one of Clip",
    ),
    "a number of Conv's that is missing": (
        conv("Clip", 1.0),
        "the activation Clip needs 2 numbers",
    ),
    "a sum that does not fit": (
        Case("FusedConv", [reals(1, 2, 5), reals(3, 2, 2), None, reals(1, 3, 5)]),
        r"expected that of the convolution, \[1, 3, 4\]",
    ),
    "no batches": (product((3, 4), (4, 5), transBatchA=1), "does not have batches"),
    "lengths that do not fit": (
        product((3, 4), (4, 5), transA=1),
        "a matrix product over lengths 3 and 4",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_told(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=problem):
        case.here()
