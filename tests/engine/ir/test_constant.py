"""Const data of every element type: what is encoded is decoded again, and what OpenVINO writes
is understood.
"""

from __future__ import annotations

import weakref
from contextlib import suppress
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openvino import opset13 as ops

from loopscope.ir import memory
from loopscope.ir.constant import Constant, decode, encode, packed_bytes, packed_size
from loopscope.ir.element_type import ElementType
from loopscope.read import read_model
from loopscope.read.weights import WeightsFile

PACKED = [element_type for element_type in ElementType if 0 < element_type.bits < 8]
WHOLE = [
    element_type
    for element_type in ElementType
    if element_type.bits >= 8 and element_type is not ElementType.BOOLEAN
]


@given(st.sampled_from(PACKED), st.lists(st.integers(0, 255), max_size=40))
def test_packed_elements_come_back(element_type: ElementType, numbers: list[int]) -> None:
    codes = np.array(numbers, np.uint8) % (1 << element_type.bits)
    raw = encode(_of_codes(codes, element_type))
    assert (
        len(raw)
        == packed_size(element_type, codes.size)
        == packed_bytes(element_type.bits, codes.size)
    )
    again = decode(raw, element_type, codes.size)
    assert again.dtype == element_type.dtype
    assert encode(again) == raw
    np.testing.assert_array_equal(_codes(again, element_type), codes)


@given(st.sampled_from(WHOLE), st.binary(max_size=64), st.integers(0, 3))
def test_whole_bytes_come_back_from_any_address(
    element_type: ElementType, raw: bytes, offset: int
) -> None:
    size = element_type.bits // 8
    raw = raw[: len(raw) // size * size]
    shifted = memoryview(bytes(offset) + raw)[offset:]
    array = Constant(element_type, (len(raw) // size,), shifted).array()
    assert array.dtype == element_type.dtype
    assert not array.flags.writeable
    assert encode(array) == raw


def test_a_large_array_is_shared_while_somebody_holds_it() -> None:
    """So that several runs hold the weights once; who lets go of it lets go of the memory."""
    constant = Constant.of(np.arange(10_000, dtype=np.float32))
    array = constant.array()
    assert constant.array() is array
    gone = weakref.ref(array)
    del array
    assert gone() is None
    np.testing.assert_array_equal(constant.array(), np.arange(10_000))


@given(st.lists(st.text(), max_size=8))
def test_strings_come_back(texts: list[str]) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    array = np.array([*texts, None], dtype=object)[:-1]
    assert Constant.of(array).array().tolist() == texts


@given(st.binary(max_size=60), st.integers(0, 2**40))
def test_no_bytes_are_too_strange_for_strings(raw: bytes, elements: int) -> None:
    with suppress(ValueError):
        assert len(decode(raw, ElementType.STRING, elements)) == elements


def test_booleans_are_what_is_not_zero() -> None:
    np.testing.assert_array_equal(
        decode(b"\x00\x01\x07", ElementType.BOOLEAN, 3), [False, True, True]
    )


def test_too_few_bytes_are_an_error_and_too_many_are_not() -> None:
    with pytest.raises(ValueError, match="2 elements of f32 take 8 bytes, got 7"):
        decode(bytes(7), ElementType.F32, 2)
    assert decode(bytes(9), ElementType.F32, 2).shape == (2,)


@pytest.mark.parametrize("name", ["u1", "u2", "u3", "u4", "i4", "u6"])
@pytest.mark.parametrize("count", [1, 5, 8, 9, 24])
def test_packed_integers_mean_what_openvino_computes_of_them(
    name: str, count: int, tmp_path: Path
) -> None:
    element_type = ElementType(name)
    model = _written(element_type, count, np.int32, tmp_path)
    expected = _evaluated(tmp_path / "m.xml", count, np.int32)
    np.testing.assert_array_equal(_as_numbers(model.array(), element_type), expected)


@pytest.mark.parametrize("name", ["f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0", "bf16", "f16", "f64"])
def test_floats_mean_what_openvino_computes_of_them(name: str, tmp_path: Path) -> None:
    model = _written(ElementType(name), 24, np.float32, tmp_path)
    expected = _evaluated(tmp_path / "m.xml", 24, np.float32)
    np.testing.assert_array_equal(model.array().astype(np.float32), expected)


def test_strings_that_openvino_wrote(tmp_path: Path) -> None:
    texts = ["ab", "", "üñ€ ,\n"]
    constant = ops.constant(ov.Tensor(np.array(texts)))
    ov.save_model(ov.Model([ops.result(constant)], [], "m"), tmp_path / "m.xml")
    (node,) = (
        node for node in read_model(tmp_path / "m.xml").graph.nodes if node.constant is not None
    )
    assert node.constant is not None
    assert node.constant.array().tolist() == texts
    assert encode(node.constant.array()) == bytes(node.constant.data)


def _written(element_type: ElementType, count: int, target: type, folder: Path) -> Constant:
    """The constant as our reader gives it, from a file that OpenVINO wrote; the model converts
    it to ``target``.
    """
    kind = getattr(ov.Type, element_type.value)
    raw: np.ndarray = np.frombuffer(
        np.random.default_rng(count).bytes(packed_size(element_type, count)), np.uint8
    )
    if element_type.is_float:
        raw = raw & 0x3B  # no NaN in any of the types
    constant = ops.constant(ov.Tensor(raw.copy(), ov.Shape([count]), kind))
    parameter = ops.parameter([count], target, name="x")
    converted = ops.convert(
        constant, np.dtype(target).name.replace("float", "f").replace("int", "i")
    )
    ov.save_model(
        ov.Model([ops.add(converted, parameter)], [parameter], "m"),
        folder / "m.xml",
        compress_to_fp16=False,
    )
    (node,) = (
        node for node in read_model(folder / "m.xml").graph.nodes if node.constant is not None
    )
    assert node.constant is not None
    assert node.constant.element_type is element_type
    assert bytes(node.constant.data) == raw.tobytes()
    return node.constant


def _evaluated(path: Path, count: int, target: type) -> np.ndarray:
    result = ov.Tensor(np.zeros(count, target))
    ov.Core().read_model(path).evaluate([result], [ov.Tensor(np.zeros(count, target))])
    return np.asarray(result.data)


def _of_codes(codes: np.ndarray, element_type: ElementType) -> np.ndarray:
    if element_type.dtype.names or element_type is ElementType.F4E2M1:
        return codes.view(element_type.dtype)
    if element_type is ElementType.I4:
        return (
            np.where(codes > 7, codes.astype(np.int8) - 16, codes.astype(np.int8))
            .astype(np.int8)
            .astype(element_type.dtype)
        )
    return codes.astype(element_type.dtype)


def _codes(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    if element_type.dtype.names or element_type is ElementType.F4E2M1:
        return array.view(np.uint8)
    return array.astype(np.int8).view(np.uint8) & ((1 << element_type.bits) - 1)


def _as_numbers(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    return (array[element_type.value] if element_type.dtype.names else array).astype(np.int32)


def test_pages_of_a_mapped_file_are_given_back_and_come_again(tmp_path: Path) -> None:
    """Constants behind an odd offset are copied, so the mapped bytes need not be held beside the
    copy.
    """
    values = np.random.default_rng(0).standard_normal(1 << 18).astype(np.float32)
    (tmp_path / "weights.bin").write_bytes(b"odd" + values.tobytes() + b"end")
    whole = WeightsFile(tmp_path / "weights.bin").take(0, 3 + values.nbytes + 3)
    constant = Constant(ElementType.F32, values.shape, whole[3 : 3 + values.nbytes])
    assert bytes(whole[-3:]) == b"end"
    for _ in range(2):
        np.testing.assert_array_equal(constant.array(), values)
        assert _resident(tmp_path / "weights.bin") < values.nbytes // 4
    memory.release_pages(b"bytes of our own")
    assert bytes(whole[:3]) == b"odd"


def _resident(file: Path) -> int:
    """Bytes of a file that this process holds."""
    maps = Path("/proc/self/smaps").read_text().split(str(file))[1]
    return 1024 * int(maps.split("Rss:")[1].split()[0])
