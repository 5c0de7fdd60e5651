"""Matrix products of quantized tensors in com.microsoft: exact sums, scaled afterwards.

MatMulBnb4 has weights of four bits, as bitsandbytes stores them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.casting import NF4_VALUES
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.kernel_arithmetic import computable
from loopscope.ops.kernel_checks import check_elements
from loopscope.ops.matrix import matmul
from loopscope.ops.microsoft.products import infer_fused_gemm, infer_fused_matmul
from loopscope.ops.microsoft.quantized import BYTES, SCALES, single_number
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.onnx.byte_products import ByteMatrix, Bytes, keeping, rows_less
from loopscope.ops.onnx.quantization import MadeReady, dynamic_bytes, matmul_integer, quanta


def matmul_integer_to_float(
    first: Array,
    second: Array,
    first_scale: Array,
    second_scale: Array,
    first_zero: Array | None = None,
    second_zero: Array | None = None,
    bias: Array | None = None,
    /,
    *,
    ready: MadeReady = ByteMatrix.of,
) -> Array:
    """Return the product of quantized matrices as floats, plus a bias for each column.

    ``[..., M, K] x [..., K, N] -> [..., M, N]``. The first matrix has one scale or one per row, the
    second one scale or one per column.
    """
    return _scaled_product(
        ready, rows_less(first, first_zero), first_scale, second, second_scale, second_zero, bias
    )


def dynamic_quantize_matmul(
    first: Array,
    second: Array,
    second_scale: Array,
    second_zero: Array | None = None,
    bias: Array | None = None,
    /,
    *,
    ready: MadeReady = ByteMatrix.of,
) -> Array:
    """Return the product of a float and a quantized matrix.

    The floats are quantized together to u8 between their minimum and maximum.
    """
    steps, scale = dynamic_bytes(first)
    return _scaled_product(ready, steps, scale, second, second_scale, second_zero, bias)


def _scaled_product(
    ready: MadeReady,
    first: Bytes,
    first_scale: Array,
    second: Array,
    second_scale: Array,
    second_zero: Array | None,
    bias: Array | None,
) -> Array:
    factors = computable(_scale_of_rows(first_scale, first.numbers)) * computable(
        _scale_of_columns(second_scale, second)
    )
    sums = np.asarray(
        np.multiply(
            ready(second, second_zero).sums(first), factors, dtype=np.float32, casting="unsafe"
        )
    )
    if bias is not None:
        if bias.ndim != 1 or bias.shape[0] != sums.shape[-1]:
            raise ValueError(f"the bias has shape {list(bias.shape)}, expected [{sums.shape[-1]}]")
        sums += computable(bias)
    return sums.astype(second_scale.dtype, copy=False)


def _scale_of_rows(scale: Array, matrix: Array) -> Array:
    if scale.size == 1:
        return scale.reshape(())
    if scale.ndim == 1 and matrix.ndim > 1 and scale.shape[0] == matrix.shape[-2]:
        return scale.reshape(-1, 1)
    if scale.ndim < 2:
        raise ValueError(
            f"there are {scale.size} scales for a matrix of shape {list(matrix.shape)}, "
            "expected one, or one for each row"
        )
    return scale


def _scale_of_columns(scale: Array, matrix: Array) -> Array:
    if scale.size == 1:
        return scale.reshape(())
    if scale.shape[-1] != matrix.shape[-1]:
        raise ValueError(
            f"there are {scale.size} scales for a matrix of shape {list(matrix.shape)}, "
            "expected one, or one for each column"
        )
    return scale


class QuantizedWeights:
    """Prepared quantized weights, which quantize rows of floats together and multiply them."""

    def __init__(self, weights: Array, scale: Array, zero: Array) -> None:
        self.shape, self.rows = weights.shape, weights.shape[0]
        self._matrix, self._scale = ByteMatrix.of(weights, zero), scale

    def times(self, rows: Array) -> Array:
        """Multiply ``[B, I] -> [B, O]``."""
        steps, scale = dynamic_bytes(rows)
        return np.asarray(
            np.multiply(
                self._matrix.sums(steps), scale * self._scale, dtype=np.float32, casting="unsafe"
            )
        )


def prepared_weights(weights: Array, scale: Array, zero: Array) -> list[QuantizedWeights]:
    """Return the prepared weights ``[I, O]`` of each direction."""
    if weights.ndim != 3:
        raise ValueError(f"the weights have shape {list(weights.shape)}, expected 3 lengths")
    of_columns, offsets = (parameter.reshape(len(weights), -1) for parameter in (scale, zero))
    return [
        QuantizedWeights(matrix, factor, offset)
        for matrix, factor, offset in zip(weights, of_columns, offsets, strict=True)
    ]


def q_gemm(
    first: Array,
    first_scale: Array,
    first_zero: Array,
    second: Array,
    second_scale: Array,
    second_zero: Array,
    third: Array | None = None,
    scale: Array | None = None,
    zero: Array | None = None,
    /,
    *,
    alpha: float,
    transA: int,
    transB: int,
) -> Array:
    """Return ``alpha`` times the sum of a product of two quantized matrices and a third matrix.

    The third matrix is i32 and is added to the integer sums, before they are scaled. The result is
    quantized, or f32 if the output has no scale or no zero point.
    """
    if first.ndim != 2 or second.ndim != 2:
        raise ValueError(
            f"the shapes are {list(first.shape)} and {list(second.shape)}, expected two matrices"
        )
    left, right = first.T if transA else first, second.T if transB else second
    sums = matmul_integer(left, right, single_number(first_zero, first), second_zero)
    if third is not None:
        sums = sums + _broadcast_to(third, sums)
    factors = (
        np.float32(alpha)
        * single_number(first_scale, first)
        * _scale_of_columns(second_scale, right)
    )
    if scale is None or zero is None:
        return sums.astype(np.float32) * factors
    return quanta(
        sums.astype(np.float32) * (factors / single_number(scale, first)),
        single_number(zero, first),
        zero.dtype,
    )


def _broadcast_to(third: Array, sums: Array) -> Array:
    if third.ndim > 2 or any(
        length not in (1, whole)
        for length, whole in zip(third.shape[::-1], sums.shape[::-1], strict=False)
    ):
        raise ValueError(
            f"the third matrix has shape {list(third.shape)}, "
            f"expected one that is broadcast to {list(sums.shape)}"
        )
    return third


def matmul_integer_16(first: Array, second: Array, /) -> Array:
    """Return the product of matrices of 16-bit integers in 32 bits, with wrap-around."""
    # f64 represents every sum of fewer than 2^22 such products exactly, and allows BLAS.
    return (
        matmul(
            first.astype(np.float64),
            second.astype(np.float64),
            transpose_a=False,
            transpose_b=False,
        )
        .astype(np.int64)
        .astype(np.int32)
    )


def infer_product(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the broadcast batches, rows of the first and columns of the second matrix.

    The type is that of the second scale.
    """
    (product,) = infer_fused_matmul(
        [Known(None, matrix.shape) for matrix in inputs[:2]], {"transA": 0, "transB": 0}
    )
    return (Known(inputs[2].element_type, product.shape),)


def infer_product_16(
    inputs: Sequence[Known], attributes: Mapping[str, Any], /
) -> tuple[Known, ...]:
    """Infer the shape of a matrix product, in i32."""
    (product,) = infer_fused_matmul(
        [Known(None, matrix.shape) for matrix in inputs[:2]], {"transA": 0, "transB": 0}
    )
    return (Known(ElementType.I32, product.shape),)


def infer_q_gemm(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer rows of the first and columns of the second matrix.

    The type is that of the output's zero point, f32 without a zero point, and unknown if the scale
    of the output is unknown or omitted.
    """
    (product,) = infer_fused_gemm(
        [Known(None, inputs[number].shape) for number in (0, 3)], attributes
    )
    if len(inputs) <= 8:
        return (Known(ElementType.F32, product.shape),)
    scale, zero_point = inputs[7], inputs[8]
    element_type = None if scale.element_type is None else zero_point.element_type
    return (Known(element_type, product.shape),)


_HALVES = frozenset({ElementType.F16, ElementType.F32})
OPERATIONS: tuple[Operation, ...] = (
    row(
        "MatMulIntegerToFloat",
        matmul_integer_to_float,
        infer=infer_product,
        by_constant=keeping(ByteMatrix, matmul_integer_to_float),
        inputs=(4, 7),
        types=(BYTES, BYTES, _HALVES, _HALVES, BYTES, BYTES, _HALVES),
    ),
    row(
        "DynamicQuantizeMatMul",
        dynamic_quantize_matmul,
        infer=infer_product,
        by_constant=keeping(ByteMatrix, dynamic_quantize_matmul),
        inputs=(3, 5),
        types=(SCALES, BYTES, SCALES, BYTES, SCALES),
    ),
    row(
        "QGemm",
        q_gemm,
        infer=infer_q_gemm,
        inputs=(6, 9),
        attributes=(
            Attribute("alpha", "float", 1.0),
            Attribute("transA", "int", 0),
            Attribute("transB", "int", 0),
        ),
        types=(
            BYTES,
            SCALES,
            BYTES,
            BYTES,
            SCALES,
            BYTES,
            frozenset({ElementType.I32}),
            SCALES,
            BYTES,
        ),
    ),
    row(
        "MatMulInteger16",
        matmul_integer_16,
        infer=infer_product_16,
        inputs=(2, 2),
        types=(frozenset({ElementType.I16}),),
    ),
)


_FP4 = (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
_CODES = (
    np.array([*_FP4, *(-number for number in _FP4)], np.float32),
    NF4_VALUES,
)
"""Numbers of the 16 codes of FP4 and NF4 (Dettmers et al., QLoRA, 2023, appendix E)."""


def mat_mul_bnb4(
    data: Array,
    packed: Array,
    largest: Array,
    /,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,
    transB: int,
    training_mode: int,
) -> Array:
    """Multiply by a matrix of codes times the largest magnitude of each block.

    ``[..., K], [(N K + 1) / 2] u8, [blocks] -> [..., N]``; without ``transB``, ``[..., N] -> [...,
    K]``. The first of two codes is in the upper half of a byte.
    """
    check_elements(K * N, "the weights")
    blocks = -(-K * N // block_size) if block_size > 0 else 0
    if packed.size != (K * N + 1) // 2 or largest.size != blocks or min(K, N) < 1:
        raise ValueError(
            f"{packed.size} bytes and {largest.size} magnitudes for a matrix of {N} x {K} in "
            f"blocks of {block_size}, expected {(K * N + 1) // 2} and {blocks}"
        )
    flat = packed.reshape(-1)
    codes = np.stack([flat >> 4, flat & 15], axis=-1).reshape(-1)[: K * N]
    scales = np.repeat(computable(largest.reshape(-1)), block_size)[: K * N]
    weights = (_CODES[quant_type][codes] * scales).reshape(N, K)
    if data.shape[-1:] != (K if transB else N,):
        raise ValueError(
            f"data of shape {list(data.shape)}, expected a last length of {K if transB else N}"
        )
    return (computable(data) @ (weights.T if transB else weights)).astype(data.dtype, copy=False)


def infer_bnb4(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the shape of the data with another last length."""
    shape = inputs[0].shape
    if not shape.dimensions:
        return (Known(inputs[0].element_type),)
    last = attributes["N"] if attributes["transB"] else attributes["K"]
    return (Known(inputs[0].element_type, PartialShape.of((*shape.dimensions[:-1], last))),)


BNB4: tuple[Operation, ...] = (
    row(
        "MatMulBnb4",
        mat_mul_bnb4,
        infer=infer_bnb4,
        inputs=(3, 3),
        attributes=(
            Attribute("K", "int"),
            Attribute("N", "int"),
            Attribute("block_size", "int"),
            Attribute("quant_type", "int", allowed=(0, 1)),
            Attribute("transB", "int", 1),
            Attribute("training_mode", "int", 0),
        ),
        types=(FLOATING, frozenset({ElementType.U8}), FLOATING),
    ),
)
