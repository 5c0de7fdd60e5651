"""Weights quantized in blocks, of the domain com.microsoft, as ONNX Runtime computes with them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loopscope
from loopscope.errors import EngineError
from loopscope.ops.declare import Known
from loopscope.ops.onnx_catalogue import ONNX
from tests.engine.ops.microsoft_nodes import Case
from tests.engine.ops.quantized_nodes import Dice

_DICE = Dice(29)
N = 5


def product(
    bits: int,
    block_size: int,
    columns: int,
    *,
    floats: Any = np.float32,
    zeros: str = "",
    level: int = 0,
    **more: Any,
) -> Case:
    """``zeros``: none, packed or floats; ``more``: data, groups and bias."""
    blocks = -(-columns // block_size)
    packed = {
        "": None,
        "packed": _DICE.whole(np.uint8, N, -(-blocks * bits // 8)),
        "floats": _DICE.scales(N, blocks, most=8.0).astype(floats),
    }
    data = more.get("data", _DICE.reals(3, columns)).astype(floats)
    weights = [
        _DICE.whole(np.uint8, N, blocks, block_size * bits // 8),
        _DICE.scales(N, blocks).astype(floats),
        packed[zeros],
    ]
    attributes = {
        "K": columns,
        "N": N,
        "bits": bits,
        "block_size": block_size,
        "accuracy_level": level,
    }
    # Each product of f16 is rounded once here, and more often in ONNX Runtime's own arithmetic of
    # f16.
    rtol, atol = (2e-5, 2e-5) if floats is np.float32 else (4e-3, 2e-2)
    return Case(
        "MatMulNBits",
        [data, *weights, more.get("groups"), more.get("bias")],
        attributes,
        constant=more.get("constant", (1, 2, 3, 4, 5)),
        rtol=rtol,
        atol=atol,
    )


PRODUCTS = {
    **{
        f"{bits} bits, blocks of {block_size}, {columns} columns, {zeros or 'no'} zeros, {np.dtype(floats).name}": product(
            bits, block_size, columns, zeros=zeros, floats=floats
        )
        for bits in (2, 4, 8)
        for block_size in (16, 32, 128)
        for columns in (16, 70, 256)
        for zeros in ("", "packed", "floats")
        for floats in (np.float32, np.float16)
        if zeros != "floats" or (floats is np.float32 and bits < 8)
    },
    **{
        f"{bits} bits, a bias{', a batch' * batch}": product(
            bits, 32, 96, zeros="packed", bias=_DICE.reals(N), data=_DICE.reals(*[2] * batch, 3, 96)
        )
        for bits in (2, 4, 8)
        for batch in (False, True)
    },
    **{
        f"{bits} bits that are no constants": product(bits, 32, 96, zeros="packed", constant=())
        for bits in (4, 8)
    },
    "a vector": product(4, 16, 64, zeros="packed", data=_DICE.reals(64)),
    "groups": product(4, 32, 70, groups=(_DICE.whole(np.uint8, 96) % 3).astype(np.int32)),
    "computed in f32": product(4, 32, 96, zeros="packed", level=1),
}


@pytest.mark.parametrize("case", PRODUCTS.values(), ids=PRODUCTS.keys())
def test_products_as_the_runtime(case: Case) -> None:
    case.agree()


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_what_a_runtime_may_round_by_level_4(bits: int) -> None:
    """With accuracy level 4 ONNX Runtime rounds the data to i8, block by block: half a step of
    each, times the weights, is the most.
    """
    case = product(bits, 32, 96, level=4)
    (mine,), (theirs,) = case.here(), case.there()
    data, scales = np.asarray(case.inputs[0]), np.asarray(case.inputs[2])
    steps = np.abs(data.reshape(3, 3, 32)).max(2) / 127
    greatest = scales * (1 << (bits - 1))
    bound = np.einsum("mb,nb->mn", steps / 2, greatest) * 32
    assert (np.abs(mine - theirs) <= bound + 1e-4).all()


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16], ids=["f32", "bf16"])
def test_groups_in_order_are_blocks(dtype: Any) -> None:
    """ONNX Runtime has that for 4 bits without zero points alone: it leaves those out, and reads
    4 bits where there are 2 or 8.
    """
    for bits in (2, 4, 8):
        case = product(bits, 16, 64, floats=dtype, zeros="packed")
        in_order = Case(
            case.type,
            [*case.inputs[:4], np.arange(64, dtype=np.int32) // 16, None],
            case.attributes,
        )
        np.testing.assert_array_equal(in_order.here()[0], case.here()[0])


def rows(
    bits: int, block_size: int, indices: np.ndarray, *, zeros: bool, floats: Any = np.float32
) -> Case:
    blocks = -(-96 // block_size)
    parts = [
        _DICE.whole(np.uint8, 7, 96 * bits // 8),
        indices,
        _DICE.scales(7, blocks).astype(floats),
    ]
    offsets = [_DICE.whole(np.uint8, 7, -(-blocks * bits // 8))] if zeros else []
    return Case(
        "GatherBlockQuantized",
        [*parts, *offsets],
        {"bits": bits, "block_size": block_size, "quantize_axis": 1},
    )


GATHERED = {
    **{
        f"{bits} bits, blocks of {block_size}, {indices.tolist()}{', zeros' * zeros}": rows(
            bits, block_size, indices, zeros=zeros
        )
        for bits in (2, 4, 8)
        for block_size in (16, 64)
        for indices in (np.array([[0, 6, 3], [1, -1, -7]]), np.array(2), np.array([2], np.int32))
        for zeros in (False, True)
    },
    "an index outside gives zeros": rows(4, 32, np.array([7, -8, 1]), zeros=True),
    "no rows": rows(4, 32, np.zeros(0, np.int64), zeros=True),
    "f16": rows(4, 32, np.array([5, 1]), zeros=True, floats=np.float16),
    "of three axes": Case(
        "GatherBlockQuantized",
        [_DICE.whole(np.uint8, 3, 4, 16), np.array([2, 0]), _DICE.scales(3, 4, 2)],
        {"bits": 4, "block_size": 16, "quantize_axis": -1},
    ),
}


@pytest.mark.parametrize("case", GATHERED.values(), ids=GATHERED.keys())
def test_rows_as_the_runtime(case: Case) -> None:
    case.agree()


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4], ids=["i4", "u4"])
@pytest.mark.parametrize(
    ("gather_axis", "quantize_axis"), [(0, 1), (1, 1), (0, 0), (1, 0), (-1, 0)]
)
def test_rows_of_four_bit_integers(dtype: Any, gather_axis: int, quantize_axis: int) -> None:
    shape = tuple(2 if axis == quantize_axis else 32 for axis in range(2))
    data, scales = (
        (_DICE.whole(np.uint8, 32, 32) % 16 - 8 * (dtype is ml_dtypes.int4)).astype(np.int8),
        _DICE.scales(*shape),
    )
    zeros = (_DICE.whole(np.uint8, *shape) % 8).astype(np.int8)
    Case(
        "GatherBlockQuantized",
        [data.astype(dtype), np.array([[3, 31], [-1, 0]]), scales, zeros.astype(dtype)],
        {"block_size": 16, "gather_axis": gather_axis, "quantize_axis": quantize_axis},
        constant=(0, 2, 3),
    ).agree()


_GOOD = product(4, 16, 64)


def changed(number: int, value: Any = None, **attributes: Any) -> Case:
    inputs = [value if place == number else one for place, one in enumerate(_GOOD.inputs)]
    return Case("MatMulNBits", inputs, {**_GOOD.attributes, **attributes})


REFUSED = {
    "bits": (changed(9, bits=3), "bits is 3, expected one of 2, 4, 8"),
    "a block of no power": (changed(9, block_size=24), "block_size is 24"),
    "another layout": (changed(9, weight_prepacked=1), "weight_prepacked is 1"),
    "weights of another size": (
        changed(1, _DICE.whole(np.uint8, N, 3, 8)),
        r"shape \[5, 3, 8\], expected \[5, 4, 8\]",
    ),
    "scales of another size": (
        changed(2, _DICE.scales(N, 3)),
        r"shape \[5, 3\], expected \[5, 4\]",
    ),
    "zero points of another size": (
        changed(3, _DICE.whole(np.uint8, N, 3)),
        r"shape \[5, 3\], expected \[5, 2\]",
    ),
    "groups that are not there": (
        changed(4, np.full(64, 9, np.int32)),
        "expected 64 numbers from 0 to 3",
    ),
    "a bias of another length": (
        changed(5, _DICE.reals(3)),
        r"the bias has shape \[3\], expected \[5\]",
    ),
    "bytes along another axis": (
        Case(
            "GatherBlockQuantized",
            [_DICE.whole(np.uint8, 4, 16), np.array([0]), _DICE.scales(4, 2)],
            {"gather_axis": 1, "block_size": 16},
        ),
        "expected 0 and another for data of bytes",
    ),
}


@pytest.mark.parametrize(("case", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_told(case: Case, problem: str) -> None:
    with pytest.raises(EngineError, match=problem):
        case.here()


def test_weights_that_are_kept_give_the_same_bits_and_only_for_themselves() -> None:
    case = product(4, 32, 96, zeros="packed")
    session = loopscope.Session(loopscope.read_model(case.model))
    (first,), *later = (session.run(case.feeds).outputs for _ in range(3))
    for (again,) in later:
        np.testing.assert_array_equal(again, first)
    operation = ONNX.find("MatMulNBits", "com.microsoft 1")
    assert operation is not None
    assert operation.kernel is not None
    assert operation.by_constant is not None
    keywords = {"K": 96, "N": N, "bits": 4, "block_size": 32}
    data, packed, scales, zeros = (one for one in case.inputs[:4] if one is not None)
    kernel = operation.by_constant(Known.of(packed), **keywords)
    assert kernel is not None
    assert kernel.most_bytes == 4 * 96 * N
    same = [packed, scales, zeros]
    for given in (same, same, same, [packed, scales * 2, zeros], [~packed, scales, zeros], same):
        np.testing.assert_array_equal(
            kernel(data, *given), operation.kernel(data, *given, **keywords)
        )
