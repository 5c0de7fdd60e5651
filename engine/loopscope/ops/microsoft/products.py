"""Matrix products and convolutions of com.microsoft with fused operations.

These are transposition, scaling and activation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from loopscope.errors import shorten
from loopscope.ir.shape import DYNAMIC, UNKNOWN, PartialShape
from loopscope.ops.activation import hswish, relu, sigmoid, softplus, softsign
from loopscope.ops.declare import Array, Attribute, Kernel, Known, Operation
from loopscope.ops.infer import broadcast_shapes, common_type
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.matrix import matmul
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.onnx.along_axes import gemm
from loopscope.ops.onnx.windows import conv


def fused_matmul(
    first: Array,
    second: Array,
    /,
    *,
    alpha: float,
    transA: int,
    transB: int,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Array:
    """Return ``alpha`` times the product of the matrices in the last two axes.

    ``transA`` and ``transB`` transpose the operands first, but not vectors. With ``transBatch``,
    the rows of that operand are its first axis: ``[M, ..., K]`` is taken as ``[..., M, K]``.
    """
    return _scaled_product(
        partial(matmul, transpose_a=bool(transA), transpose_b=bool(transB)),
        alpha,
        transBatchA,
        transBatchB,
        first,
        second,
    )


def _scaled_product(
    multiply: Kernel, alpha: float, batch_a: int, batch_b: int, first: Array, second: Array, /
) -> Array:
    product = multiply(
        _rows_last(first) if batch_a else first, _rows_last(second) if batch_b else second
    )
    return product if alpha == 1 else product * product.dtype.type(alpha)


def _rows_last(array: Array) -> Array:
    if array.ndim < 3:
        raise ValueError(
            f"a matrix of shape {list(array.shape)} does not have batches, "
            "which transBatch requires"
        )
    return np.moveaxis(array, 0, -2)


def fused_gemm(
    first: Array,
    second: Array,
    third: Array | None = None,
    /,
    *,
    alpha: float,
    beta: float,
    transA: int,
    transB: int,
    activation: str | None,
    activation_alpha: float | None,
    activation_beta: float | None,
    activation_gamma: float | None,
) -> Array:
    """Apply an activation to the result of Gemm."""
    numbers = {"alpha": activation_alpha, "beta": activation_beta, "gamma": activation_gamma}
    name = activation or ""
    product = gemm(first, second, third, alpha=alpha, beta=beta, transA=transA, transB=transB)
    if name not in _GEMM_ACTIVATIONS:
        raise ValueError(
            f"the activation is {shorten(name, 40)!r}, "
            f"expected one of {', '.join(_GEMM_ACTIVATIONS)}"
        )
    values = [numbers[parameter] for parameter in _GEMM_ACTIVATIONS[name]]
    if None in values:
        needed = " and ".join(f"activation_{parameter}" for parameter in _GEMM_ACTIVATIONS[name])
        raise ValueError(f"the activation {name} needs {needed}")
    return _activate(product, name, [float(value) for value in values if value is not None])


def fused_conv(
    data: Array,
    filters: Array,
    bias: Array | None = None,
    added: Array | None = None,
    /,
    *,
    activation: str | None,
    activation_params: tuple[float, ...] | None,
    **window: Any,
) -> Array:
    """Apply an activation to the sum of a convolution, its bias and a tensor of the same shape."""
    name, numbers = activation or "", activation_params or ()
    if name not in _CONV_ACTIVATIONS:
        raise ValueError(
            f"the activation is {shorten(name, 40)!r}, "
            f"expected one of {', '.join(filter(None, _CONV_ACTIVATIONS))}"
        )
    if len(numbers) < _CONV_ACTIVATIONS[name]:
        raise ValueError(
            f"activation_params is {list(numbers)[:8]}, "
            f"and the activation {name} needs {_CONV_ACTIVATIONS[name]} numbers"
        )
    result = conv(
        data, filters, bias, **{key: value for key, value in window.items() if value is not None}
    )
    if added is not None:
        if added.shape != result.shape:
            raise ValueError(
                f"the tensor to add has shape {list(added.shape)}, "
                f"expected that of the convolution, {list(result.shape)}"
            )
        result = result + added
    return _activate(result, name, numbers[: _CONV_ACTIVATIONS[name]])


def _activate(data: Array, name: str, numbers: Sequence[float]) -> Array:
    """Apply an activation in f32 or wider, and round once."""
    values = computable(data)
    return np.asarray(
        _ACTIVATIONS[name](values, *(values.dtype.type(number) for number in numbers))
    ).astype(data.dtype, copy=False)


_ACTIVATIONS: Mapping[str, Callable[..., Any]] = {
    "": lambda data: data,
    "Clip": lambda data, lower, upper: np.clip(data, lower, upper),
    "Elu": lambda data, alpha: np.where(data >= 0, data, alpha * np.expm1(np.minimum(data, 0))),
    "HardSigmoid": lambda data, alpha, beta: np.clip(alpha * data + beta, 0, 1),
    "HardSwish": hswish,
    "LeakyRelu": lambda data, alpha: np.where(data >= 0, data, alpha * data),
    "ParametricSoftplus": lambda data, alpha, beta: alpha * softplus(beta * data),
    "Relu": relu,
    "ScaledTanh": lambda data, alpha, beta: alpha * np.tanh(beta * data),
    "Selu": lambda data, alpha, gamma: (
        gamma * np.where(data > 0, data, alpha * np.expm1(np.minimum(data, 0)))
    ),
    "Sigmoid": sigmoid,
    "Softplus": softplus,
    "Softsign": softsign,
    "Tanh": np.tanh,
    "ThresholdedRelu": lambda data, alpha: np.where(data > alpha, data, data.dtype.type(0)),
}
_GEMM_ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    # These are the attributes, after "activation_", from which ONNX Runtime takes the parameters.
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "ParametricSoftplus": ("alpha", "beta"),
    "Relu": (),
    "ScaledTanh": ("alpha", "beta"),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
_CONV_ACTIVATIONS: Mapping[str, int] = {
    "": 0,
    "Clip": 2,
    "HardSigmoid": 2,
    "HardSwish": 0,
    "LeakyRelu": 1,
    "Relu": 0,
    "Sigmoid": 0,
    "Tanh": 0,
}
"""Number of parameters of each activation."""


def infer_fused_matmul(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the broadcast batches, rows of the first and columns of the second matrix."""
    kind = common_type(inputs)
    first, second = (
        _transpose(matrix.shape, attributes[f"trans{side}"], attributes.get(f"transBatch{side}", 0))
        for matrix, side in zip(inputs[:2], "AB", strict=True)
    )
    if first.dimensions is None or second.dimensions is None:
        return (Known(kind),)
    if not first.rank or not second.rank:
        raise ValueError(f"shapes {first} and {second}: a scalar has no matrix product")
    inner = first.at(-1), second.at(-2 if second.rank > 1 else 0)
    if inner[0].intersect(inner[1]) is None:
        raise ValueError(
            f"shapes {first} and {second}: {inner[0]} columns and {inner[1]} rows do not fit"
        )
    batch = broadcast_shapes(
        PartialShape(first.dimensions[:-2]), PartialShape(second.dimensions[:-2])
    )
    rows, columns = first.dimensions[-2:-1], second.dimensions[-1:] if second.rank > 1 else ()
    return (Known(kind, PartialShape((*(batch.dimensions or ()), *rows, *columns))),)


def _transpose(shape: PartialShape, transposed: int, by_batch: int) -> PartialShape:
    lengths = list(shape.dimensions or ())
    if by_batch and len(lengths) > 2:
        lengths.insert(-1, lengths.pop(0))
    if transposed and len(lengths) > 1:
        lengths[-2:] = reversed(lengths[-2:])
    return shape if shape.dimensions is None else PartialShape(tuple(lengths))


def infer_fused_gemm(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer rows of the first and columns of the second matrix."""
    shapes = [
        _transpose(matrix.shape, attributes[name], 0)
        for matrix, name in zip(inputs[:2], ("transA", "transB"), strict=True)
    ]
    if any(shape.rank not in (None, 2) for shape in shapes):
        raise ValueError(f"shapes {inputs[0].shape} and {inputs[1].shape}, expected two matrices")
    return (Known(common_type(inputs), PartialShape((shapes[0].at(0), shapes[1].at(1)))),)


def infer_fused_conv(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer batch and filters; the lengths are known only from an added tensor."""
    data, filters = inputs[0].shape, inputs[1].shape
    if len(inputs) > 3 and inputs[3].shape.dimensions is not None:
        return (Known(common_type(inputs[:2]), inputs[3].shape),)
    if data.dimensions is None or len(data.dimensions) < 3:
        return (Known(common_type(inputs[:2]), DYNAMIC),)
    return (
        Known(
            common_type(inputs[:2]),
            PartialShape((data.at(0), filters.at(0), *[UNKNOWN] * (len(data.dimensions) - 2))),
        ),
    )


_TRANSPOSED = (
    Attribute("alpha", "float", 1.0),
    Attribute("transA", "int", 0),
    Attribute("transB", "int", 0),
)
CONV_WINDOW = (
    Attribute("auto_pad", "str", "NOTSET"),
    Attribute("group", "int", 1),
    *(Attribute(name, "ints", None) for name in ("dilations", "kernel_shape", "pads", "strides")),
)
"""Attributes of a convolution."""
OPERATIONS: tuple[Operation, ...] = (
    row(
        "FusedMatMul",
        fused_matmul,
        infer=infer_fused_matmul,
        inputs=(2, 2),
        attributes=(
            *_TRANSPOSED,
            Attribute("transBatchA", "int", 0),
            Attribute("transBatchB", "int", 0),
        ),
        types=(FLOATING,),
    ),
    row(
        "TransposeMatMul",
        fused_matmul,
        infer=infer_fused_matmul,
        inputs=(2, 2),
        attributes=_TRANSPOSED,
        types=(FLOATING,),
    ),
    row(
        "FusedGemm",
        fused_gemm,
        infer=infer_fused_gemm,
        inputs=(2, 3),
        attributes=(
            *_TRANSPOSED,
            Attribute("beta", "float", 1.0),
            Attribute("activation", "str", None),
            *(
                Attribute(f"activation_{name}", "float", None)
                for name in ("alpha", "beta", "gamma")
            ),
        ),
        types=(FLOATING,),
    ),
    row(
        "FusedConv",
        fused_conv,
        infer=infer_fused_conv,
        inputs=(2, 4),
        attributes=(
            Attribute("activation", "str", None),
            Attribute("activation_params", "floats", None),
            *CONV_WINDOW,
        ),
        types=(FLOATING,),
    ),
)
