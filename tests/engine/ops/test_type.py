"""Conversions between all pairs of element types, against OpenVINO's core and CPU."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino.utils.node_factory import NodeFactory

from loopscope.ir.element_type import FLOATS, INTEGERS, ElementType
from loopscope.ops.casting import NF4_VALUES
from tests.engine.ops.oracle import agree, openvinos, ours, references

TYPES = [element_type for element_type in ElementType if element_type is not ElementType.STRING]
UNCONVERTED = {ElementType.F8E8M0, ElementType.F4E2M1, ElementType.NF4}
"""Types that neither the core nor the CPU converts from everything, or to everything."""


def values(element_type: ElementType) -> np.ndarray:
    """Values that the type holds, its ends among them."""
    if element_type is ElementType.NF4:
        return np.arange(16, dtype=np.uint8).view(element_type.dtype)
    if element_type in FLOATS:
        least = 0.5 if element_type is ElementType.F8E8M0 else -3
        return np.linspace(least, 6, 19).astype(np.float32).astype(element_type.dtype)
    if element_type is ElementType.BOOLEAN:
        return np.array([True, False, True])
    signed, bits = element_type.is_signed, element_type.bits
    ends = [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1] if signed else [0, 2**bits - 1]
    whole = np.array([0, 1, *([-1] if signed else []), *ends], np.int64 if signed else np.uint64)
    codes = whole.astype(
        np.int8 if signed and bits < 8 else np.uint8 if bits < 8 else element_type.dtype
    )
    return (
        codes.view(element_type.dtype)
        if element_type.dtype.names
        else codes.astype(element_type.dtype)
    )


def plain(array: np.ndarray) -> np.ndarray:
    return (array[array.dtype.names[0]] if array.dtype.names else array).astype(np.float64)


def theirs(data: np.ndarray, target: ElementType) -> np.ndarray | None:
    """The core's result; the CPU's where the core converts nothing, or to bf16, which it cuts
    off; None when neither converts.
    """
    runtimes = (openvinos, references) if target is ElementType.BF16 else (references, openvinos)
    for runtime in runtimes:
        try:
            return runtime("Convert", 1, [data], {"destination_type": target.value})[0]
        except RuntimeError:
            continue
    return None


@pytest.mark.parametrize("source", TYPES, ids=str)
def test_every_pair_of_types(source: ElementType) -> None:
    """Every value that both types hold comes out as OpenVINO's, but for bf16: the core cuts off
    what the CPU and we round.
    """
    data = values(source)
    compared = 0
    for target in TYPES:
        got = ours("Convert", 1, [data], {"destination_type": target.value})[0]
        assert got.dtype == target.dtype
        assert got.shape == data.shape
        expected = theirs(data, target)
        if expected is None:
            assert source in UNCONVERTED or target in UNCONVERTED, (source, target)
            continue
        compared += 1
        if target is ElementType.F16 and source in INTEGERS:
            # From i32 the runtime stops at 65504, from i64 it goes to infinity; we do as IEEE 754.
            inside = np.abs(plain(data)) < 65505
            got, expected = got[inside], expected[inside]
        slack = 0.01 if target is ElementType.BF16 and source in UNCONVERTED else 0
        np.testing.assert_allclose(
            plain(got), plain(expected), rtol=slack, err_msg=f"{source} -> {target}"
        )
    assert compared >= (1 if source in UNCONVERTED else 15)


@pytest.mark.parametrize(
    "source", [np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__
)
@pytest.mark.parametrize("target", ["i8", "u8", "i16", "u16", "i4", "u4", "u2", "u1", "u3", "u6"])
def test_floats_are_cut_off_and_wrap(source: type[np.generic], target: str) -> None:
    data = np.array(
        [-200.5, -129, -3.7, -0.5, 0.5, 1.5, 2.5, 127.9, 128, 255, 256, 300, 1000], source
    )
    got = ours("Convert", 1, [data], {"destination_type": target})[0]
    np.testing.assert_array_equal(
        plain(got), plain(references("Convert", 1, [data], {"destination_type": target})[0])
    )


@pytest.mark.parametrize("target", ["f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "nf4"])
def test_small_floats_at_their_ends(target: str) -> None:
    """Beyond its range f8e4m3 has NaN, f8e5m2 infinity, f4e2m1 and nf4 their last value; f8e8m0
    has neither sign nor zero.
    """
    data = np.array(
        [0, -0.0, 0.4, 1.5, 2.5, 448, 460, 470, 6e4, 7e4, 1e19, np.inf, -np.inf, np.nan, -1, 1e-30],
        np.float32,
    )
    got, expected = (
        ours("Convert", 1, [data], {"destination_type": target})[0],
        theirs(data, ElementType(target)),
    )
    assert expected is not None
    np.testing.assert_array_equal(plain(got), plain(expected))


def test_examples_of_the_spec() -> None:
    def converted(data: np.ndarray, target: str) -> list[object]:
        return list(ours("Convert", 1, [data], {"destination_type": target})[0].tolist())

    assert converted(np.array([-1], np.int32), "u32") == [2**32 - 1]
    assert converted(np.array([3.141592], np.float32), "i32") == [3]
    assert converted(np.array([0.0, -0.0, 0.1, np.nan], np.float32), "boolean") == [
        False,
        False,
        True,
        True,
    ]
    assert (
        converted(np.arange(16, dtype=np.uint8).view(ElementType.NF4.dtype), "f32")
        == NF4_VALUES.tolist()
    )
    scalar = ours("Convert", 1, [np.float32(2.7)], {"destination_type": "u3"})[0]
    assert scalar.shape == ()
    assert scalar["u3"] == 2
    with pytest.raises(ValueError, match="text converts"):
        ours("Convert", 1, [np.array(["1"], object)], {"destination_type": "i32"})


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (2, 3)], ids=str)
@pytest.mark.parametrize(
    "target", [np.float16, np.int32, np.bool_, np.uint8], ids=lambda dtype: dtype.__name__
)
def test_convert_like(target: type, shape: tuple[int, ...]) -> None:
    agree(
        "ConvertLike", 1, [np.resize(np.array([1.5, 0, 3], np.float32), shape), np.zeros(2, target)]
    )


def test_large_integers_keep_their_digits() -> None:
    data = np.array([2**63 - 1, -(2**63)], np.int64)
    assert ours("Convert", 1, [data], {"destination_type": "u64"})[0].tolist() == [2**63 - 1, 2**63]
    assert ours("Convert", 1, [np.array([2**64 - 1], np.uint64)], {"destination_type": "i64"})[
        0
    ].tolist() == [-1]


UNSAFE, PYTORCH = (
    {"promote_unsafe": True},
    {"promote_unsafe": True, "pytorch_scalar_promotion": True},
)


@pytest.mark.parametrize(
    ("left", "right", "attributes", "expected"),
    [
        ("i8", "f32", {}, "f32"),
        ("i32", "u8", {}, "i32"),
        ("f16", "i64", UNSAFE, "f16"),
        ("f64", "u64", UNSAFE, "f64"),
        ("i8", "u8", UNSAFE, "i16"),
        ("f16", "bf16", UNSAFE, "f32"),
        ("f8e4m3", "f8e5m2", UNSAFE, "f16"),
        ("u64", "i8", UNSAFE, "f32"),
        ("u64", "i8", UNSAFE | {"u64_integer_promotion_target": "i64"}, "i64"),
        ("i16", "u32", UNSAFE, "i64"),
        ("boolean", "u8", {}, "u8"),
        ("S i64", "u8", PYTORCH, "u8"),
        ("S f16", "i8", PYTORCH, "f16"),
        ("S f32", "f16", PYTORCH, "f16"),
        ("S i64", "f16", PYTORCH, "f16"),
    ],
)
def test_promotion(left: str, right: str, attributes: dict[str, object], expected: str) -> None:
    """The notation of the spec's examples: S marks a scalar."""
    first, second = (
        tensor(name.removeprefix("S "), scalar=name.startswith("S ")) for name in (left, right)
    )
    texts = {key: str(value).lower() for key, value in attributes.items()}
    for pair in ([first, second], [second, first]):
        got = ours("ConvertPromoteTypes", 14, pair, texts, 2)
        assert [ElementType.of(one).value for one in got] == [expected, expected]
        assert promoted(pair, attributes) == expected


def tensor(name: str, *, scalar: bool = False) -> np.ndarray:
    return np.array(1 if scalar else [1, 0], np.uint8).astype(ElementType(name).dtype)


def promoted(pair: list[np.ndarray], attributes: dict[str, object]) -> str:
    """The type that OpenVINO infers; it replaces the operation by Converts and so computes
    nothing of its own.
    """
    parameters = [
        ov.opset16.parameter(list(one.shape), getattr(ov.Type, ElementType.of(one).value))
        for one in pair
    ]
    node = NodeFactory("opset14").create(
        "ConvertPromoteTypes", [one.output(0) for one in parameters], dict(attributes)
    )
    return str(node.output(0).get_element_type().get_type_name())


UNSAFE_PAIRS = [
    ("f16", "i64"),
    ("f64", "u64"),
    ("i8", "u8"),
    ("f16", "bf16"),
    ("f8e4m3", "f8e5m2"),
    ("u64", "i8"),
]


@pytest.mark.parametrize(("left", "right"), UNSAFE_PAIRS)
def test_unsafe_promotion_is_refused_unless_asked_for(left: str, right: str) -> None:
    with pytest.raises(ValueError, match="promote_unsafe is false"):
        ours("ConvertPromoteTypes", 14, [tensor(left), tensor(right)])
    with pytest.raises(RuntimeError):
        promoted([tensor(left), tensor(right)], {})
