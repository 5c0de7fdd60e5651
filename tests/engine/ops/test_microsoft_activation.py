"""Activations of the domain com.microsoft as ONNX Runtime computes them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from scipy import special

from loopscope.errors import EngineError
from tests.engine.ops.microsoft_nodes import Case

_DICE = np.random.default_rng(11)


def reals(*shape: int, scale: float = 2) -> np.ndarray:
    return (_DICE.normal(size=shape) * scale).astype(np.float32)


CUBE, BIAS = reals(2, 3, 8), reals(8)
FAR = np.array(
    [-np.inf, -100, -30, -9, -1e-20, -0.0, 0, 1e-20, 9, 30, 100, np.inf, np.nan], np.float32
)
CASES = {
    "gelu": Case("Gelu", [CUBE]),
    "gelu of a number": Case("Gelu", [np.array(-1.5, np.float32)]),
    "gelu of nothing": Case("Gelu", [reals(0, 3)]),
    "gelu far out": Case("Gelu", [FAR[1:-2]]),
    "gelu and a bias": Case("BiasGelu", [CUBE, BIAS]),
    "by tanh": Case("FastGelu", [CUBE]),
    "by tanh, with a bias": Case("FastGelu", [CUBE, BIAS]),
    "by tanh, far out": Case("FastGelu", [FAR[1:-2]]),
    "quick": Case("QuickGelu", [CUBE]),
    "quick, another slope": Case("QuickGelu", [CUBE], {"alpha": 0.75}),
    "quick, as swish": Case("QuickGelu", [CUBE], {"alpha": 1.0}),
    "quick, far out": Case("QuickGelu", [FAR[1:-2]], {"alpha": -1.0}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_as_the_runtime(case: Case) -> None:
    case.agree()


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, np.float64], ids=["f16", "bf16", "f64"]
)
@pytest.mark.parametrize("type", ["Gelu", "BiasGelu", "FastGelu", "QuickGelu"])
def test_in_types_that_the_cpu_of_the_runtime_leaves_out(
    type: str, dtype: type[np.generic]
) -> None:
    """As f32 has it, within one rounding of the type: half a unit in the last place, and what
    f32 itself is off.
    """
    data, bias = CUBE.astype(dtype), BIAS.astype(dtype)
    inputs = [data, bias] if type == "BiasGelu" else [data]
    (mine,) = Case(type, inputs).here()
    (wide,) = Case(type, [one.astype(np.float32) for one in inputs]).there()
    assert mine.dtype == dtype
    np.testing.assert_allclose(
        mine.astype(np.float64), wide, rtol=float(ml_dtypes.finfo(dtype).eps) / 2 + 2e-6, atol=1e-6
    )


def _softmax_of_bias(data: np.ndarray, bias: np.ndarray, axis: int, inner: int) -> np.ndarray:
    """By definition: ONNX Runtime's CPU has no kernel of it."""
    rows = data.reshape(int(np.prod(data.shape[:axis])), -1).astype(np.float64)
    added = bias.reshape(-1, rows.shape[1])
    every = len(rows) // len(added)
    softened: np.ndarray = special.softmax(
        rows + (added.repeat(every, 0) if inner else np.tile(added, (every, 1))), axis=1
    )
    return softened.reshape(data.shape)


SOFTMAX = reals(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("bias", "axis", "inner"),
    [
        (reals(2, 1, 1, 5), 3, 1),
        (reals(2, 1, 4, 5), 2, 1),
        (reals(3, 4, 5), 3, 0),
        (reals(4, 5), 3, 0),
        (reals(1, 1, 4, 5), 2, 0),
        (reals(2, 3, 4, 5), 3, 1),
    ],
)
def test_softmax_after_a_bias(bias: np.ndarray, axis: int, inner: int) -> None:
    (made,) = Case(
        "BiasSoftmax", [SOFTMAX, bias], {"axis": axis, "is_inner_broadcast": inner}
    ).here()
    np.testing.assert_allclose(made, _softmax_of_bias(SOFTMAX, bias, axis, inner), rtol=2e-6)


REFUSED = {
    "a bias of another length": (Case("BiasGelu", [CUBE, reals(7)]), r"the bias has shape \[7\]"),
    "a bias of two axes": (Case("FastGelu", [CUBE, reals(1, 8)]), r"the bias has shape \[1, 8\]"),
    "rows that do not divide": (
        Case("BiasSoftmax", [SOFTMAX, reals(5, 5)], {"axis": 3, "is_inner_broadcast": 1}),
        "expected rows of 5 numbers that divide 24 rows",
    ),
    "no broadcast said": (
        Case("BiasSoftmax", [SOFTMAX, reals(4, 5)]),
        "'is_inner_broadcast' .* is missing",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_told(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=problem):
        case.here()
