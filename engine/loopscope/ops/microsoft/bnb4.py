"""MatMulBnb4 of com.microsoft: a product with weights of four bits, as bitsandbytes stores them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.bounds import check_elements
from loopscope.ops.casting import NF4_VALUES
from loopscope.ops.declare import Array, Attribute, Known, Operation
from loopscope.ops.microsoft.row import FLOATING, row
from loopscope.ops.precision import computable

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


def infer_product(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    """Infer the shape of the data with another last length."""
    shape = inputs[0].shape
    if not shape.dimensions:
        return (Known(inputs[0].element_type),)
    last = attributes["N"] if attributes["transB"] else attributes["K"]
    return (Known(inputs[0].element_type, PartialShape.of((*shape.dimensions[:-1], last))),)


OPERATIONS: tuple[Operation, ...] = (
    row(
        "MatMulBnb4",
        mat_mul_bnb4,
        infer=infer_product,
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
