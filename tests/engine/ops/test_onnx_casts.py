"""Casts between every two element types of ONNX, beside ONNX Runtime; where the two differ, what
the definition says.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import loopscope
from loopscope.errors import EngineError
from loopscope.ops.onnx.casts import converted

FLOATS = ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16"]
NARROW = ["FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"]
INTEGERS = ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"]
FEW_BITS = ["INT4", "UINT4", "INT2", "UINT2"]
OF_THE_RUNTIME = [*FLOATS, *NARROW, *INTEGERS, *FEW_BITS, "FLOAT8E8M0", "BOOL", "STRING"]
"""It has no FLOAT4E2M1."""
DTYPES = {
    name: helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name))
    for name in [*OF_THE_RUNTIME, "FLOAT4E2M1"]
}
REALS = [
    0,
    -0.0,
    0.25,
    0.5,
    0.75,
    1,
    1.4,
    1.5,
    1.6,
    2.5,
    2.6,
    3.5,
    4.5,
    6,
    7.4,
    7.6,
    15.4,
    100.7,
    120,
    -0.4,
    -0.5,
    -0.6,
    -1.5,
    -2.6,
    -8.4,
    -99,
]
BEYOND = [
    448,
    449,
    464,
    465,
    1000,
    -1000,
    57344,
    60000,
    65504,
    1e10,
    -1e10,
    3e38,
    1e-8,
    2.0**-127,
    2.0**-10,
    np.inf,
    -np.inf,
    np.nan,
]
WHOLE = [
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    100,
    127,
    128,
    200,
    255,
    300,
    32767,
    65535,
    2**24 + 1,
    2**31,
    2**53 + 1,
    2**63 - 1,
    -1,
    -2,
    -8,
    -9,
    -128,
    -200,
]


def values_of(name: str, target: str) -> np.ndarray:
    """What the first type holds and the definition says something of: a float beyond the range
    of an integer is undefined.
    """
    dtype = DTYPES[name]
    if name == "STRING":
        not_whole = (
            []
            if target in [*INTEGERS, *FEW_BITS, "BOOL"]
            else ["-3.5", "1e5", "NaN", "+INF", "-inf"]
        )
        return np.array(["1", "2", " 3", "100", "0", *not_whole], object)
    if name == "BOOL":
        return np.array([False, True])
    if name in INTEGERS:
        limits = np.iinfo(dtype)
        # An f8e8m0 is rounded up, and the runtime would round to an f32 before.
        return np.array(
            [
                one
                for one in WHOLE
                if limits.min <= one <= limits.max and (target != "FLOAT8E8M0" or one <= 65535)
            ],
            dtype,
        )
    if name in FEW_BITS:
        few = ml_dtypes.iinfo(dtype)
        return np.arange(int(few.min), int(few.max) + 1, dtype=np.int8).astype(dtype)
    with np.errstate(over="ignore", under="ignore"):
        made = np.array(REALS if target in INTEGERS + FEW_BITS else REALS + BEYOND).astype(dtype)
    wide = made.astype(np.float64)
    if target not in INTEGERS + FEW_BITS:
        return made[~(wide < 0)] if name == "FLOAT8E8M0" else made
    return made[
        (wide >= (0 if target.startswith("U") or name == "FLOAT8E8M0" else -np.inf)) & (wide <= 128)
    ]


def cast(data: np.ndarray, source: str, target: str, **attributes: Any) -> bytes:
    tensor = numpy_helper.from_array(data, "x")
    number = getattr(TensorProto, target)
    ends = [helper.make_tensor_value_info("y", number, [len(data)])]
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=number, **attributes)],
        "cast",
        [],
        ends,
        [tensor],
    )
    written: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13
    ).SerializeToString()
    return written


def by_the_runtime(document: bytes, target: str) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(document, options)
    dtype = DTYPES[target]
    if dtype.isbuiltin == 1:
        return np.asarray(session.run(None, {})[0])
    (made,) = session.run_with_ort_values(["y"], {})
    raw = np.frombuffer(ctypes.string_at(made.data_ptr(), made.tensor_size_in_bytes()), np.uint8)
    if target not in FEW_BITS:
        return raw.view(dtype)
    bits = 4 if target.endswith("4") else 2
    codes = (
        np.stack([raw >> shift & (2**bits - 1) for shift in range(0, 8, bits)], 1)
        .reshape(-1)[: made.shape()[0]]
        .astype(np.int8)
    )
    signed = codes if target.startswith("U") else (codes ^ 2 ** (bits - 1)) - 2 ** (bits - 1)
    return signed.astype(dtype)


def halves_away_from_zero(data: np.ndarray, made: np.ndarray) -> np.ndarray:
    """To 4 and 2 bits the definition rounds to the nearest, halves to even; the runtime rounds
    halves away from 0.
    """
    wide = data.astype(np.float64)
    return np.asarray(np.abs(wide) % 1 == 0.5)


def no_bool_of_minus_zero(data: np.ndarray, made: np.ndarray) -> np.ndarray:
    """The definition: "+/- 0.0 to False"; the runtime looks at the bits of an 8-bit float."""
    return np.asarray((data.astype(np.float32) == 0) & np.signbit(data.astype(np.float32)))


def no_bool_of_the_least(data: np.ndarray, made: np.ndarray) -> np.ndarray:
    """The definition: "all else to True"; the runtime takes the code 0, which is 2^-127, for 0."""
    return np.asarray(data.view(np.uint8) == 0)


def a_cast_that_stays(data: np.ndarray, made: np.ndarray) -> np.ndarray:
    """The definition's table saturates an infinity, whatever it comes from; the runtime copies
    where the type stays the same.
    """
    return np.asarray(np.isinf(data.astype(np.float32)))


def what_differs(source: str, target: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    if target in FEW_BITS and source in [*FLOATS, *NARROW, "FLOAT8E8M0"]:
        return halves_away_from_zero
    if target == "BOOL" and source == "FLOAT8E8M0":
        return no_bool_of_the_least
    if target == "BOOL" and source in ("FLOAT8E4M3FN", "FLOAT8E5M2"):
        return no_bool_of_minus_zero
    return a_cast_that_stays if source == target == "FLOAT8E5M2" else None


def alike(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    if mine.dtype == object:
        return np.asarray(mine == theirs)
    one, other = (
        side if side.dtype.kind in "iub" else side.astype(np.float64) for side in (mine, theirs)
    )
    return np.asarray((one == other) | ((one != one) & (other != other)))


@pytest.mark.parametrize("target", OF_THE_RUNTIME)
@pytest.mark.parametrize("source", OF_THE_RUNTIME)
def test_every_cast_is_the_runtimes_or_the_definitions(source: str, target: str) -> None:
    data = values_of(source, target)
    document = cast(data, source, target)
    (mine,) = loopscope.run(loopscope.read_model(document)).outputs
    theirs = by_the_runtime(document, target)
    assert mine.dtype == theirs.dtype == DTYPES[target]
    agreed, known = alike(mine, theirs), what_differs(source, target)
    differ = known(data, mine) if known else np.zeros(len(data), np.bool_)
    assert (agreed | differ).all(), (data[~agreed], mine[~agreed], theirs[~agreed])


@pytest.mark.parametrize("target", ["INT4", "UINT4", "INT2", "UINT2"])
def test_four_and_two_bits_are_rounded_halves_to_even_and_keep_their_low_bits(target: str) -> None:
    data = np.array([0.4, 0.5, 0.6, 1.5, 2.5, 2.6, -0.5, -1.5, -2.6, 3.5], np.float32)
    mine = converted(data, DTYPES[target]).astype(np.int64)
    bits, signed = int(target[-1]), target.startswith("I")
    expected = [0, 0, 1, 2, 2, 3, 0, -2, -3, 4]
    low = [
        one % 2**bits - (2**bits if signed and one % 2**bits >= 2 ** (bits - 1) else 0)
        for one in expected
    ]
    assert mine.tolist() == low


@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_powers_of_two_are_the_runtimes(saturate: int, mode: str) -> None:
    ends = 2.0**-127, 2.0**127
    data = np.array(
        [
            0,
            ends[0],
            ends[0] * 0.7,
            ends[0] * 1.2,
            ends[0] * 1.6,
            1,
            1.2,
            1.5,
            1.7,
            2.9,
            3,
            6,
            ends[1],
            ends[1] * 1.5,
            np.inf,
            np.nan,
            -1,
            -0.0,
        ],
        np.float32,
    )
    document = cast(data, "FLOAT", "FLOAT8E8M0", saturate=saturate, round_mode=mode)
    (mine,) = loopscope.run(loopscope.read_model(document)).outputs
    assert (
        mine.view(np.uint8).tolist()
        == by_the_runtime(document, "FLOAT8E8M0").view(np.uint8).tolist()
    )


WRITTEN = [
    (np.float32, [1, 2.6, -0.0, 1e-5, 123456789, np.nan, np.inf, -np.inf],
     ["1", "2.5999999", "-0", "9.9999997e-06", "1.2345679e+08", "NaN", "INF", "-INF"]),
    (np.float64, [2.6, 1 / 3, 1e21], ["2.6", "0.33333333", "1e+21"]),
    (np.int64, [2**63 - 1, -1], ["9223372036854775807", "-1"]),
    (np.bool_, [False, True], ["0", "1"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "numbers", "texts"), WRITTEN, ids=lambda one: getattr(one, "__name__", "")
)
def test_numbers_are_written_as_the_runtime_writes_them(
    dtype: type, numbers: list[float], texts: list[str]
) -> None:
    data: np.ndarray = np.array(numbers, dtype)
    source = next(name for name, known in DTYPES.items() if known == data.dtype)
    document = cast(data, source, "STRING")
    (mine,) = loopscope.run(loopscope.read_model(document)).outputs
    assert mine.tolist() == by_the_runtime(document, "STRING").tolist() == texts


READ = [
    ("-1", "UINT8", 255),
    ("300", "INT8", 44),
    ("9007199254740993", "INT64", 2**53 + 1),
    ("100.5", "INT32", 100),
    (" 7", "UINT64", 7),
]


@pytest.mark.parametrize(("text", "target", "number"), READ)
def test_a_text_of_an_integer_is_read_exactly_and_loses_its_higher_bits(
    text: str, target: str, number: int
) -> None:
    document = cast(np.array([text], object), "STRING", target)
    (mine,) = loopscope.run(loopscope.read_model(document)).outputs
    assert mine.tolist() == by_the_runtime(document, target).tolist() == [number]


@pytest.mark.parametrize("target", ["FLOAT", "INT64", "FLOAT8E5M2", "BOOL"])
@pytest.mark.parametrize("text", ["seven", "1_000", "", "1e", "9" * 5000])
def test_a_text_that_is_no_number_is_told(text: str, target: str) -> None:
    document = cast(np.array([text], object), "STRING", target)
    if text.startswith("9") and target != "INT64":
        assert loopscope.run(loopscope.read_model(document)).outputs[0] == DTYPES[target].type(
            57344 if target == "FLOAT8E5M2" else np.inf
        )
        return
    with pytest.raises(EngineError, match=r"is not an? (number|integer of 64 bits)"):
        loopscope.run(loopscope.read_model(document))


def test_a_cast_to_no_type_is_told() -> None:
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=99)],
        "cast",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    with pytest.raises(EngineError, match="to is 99, expected the number of an element type"):
        loopscope.run(
            loopscope.read_model(model.SerializeToString()), {"x": np.zeros(1, np.float32)}
        )
