"""Values of every kind written to a file and read again are the same values; what a file may not
say is refused in a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.ir.element_type import ElementType
from loopscope.ops.stored import FORMS, packed, unpacked, write
from loopscope.ops.values import NO_VALUE

LACKED = ("int2", "float8_e4m3fnuz", "float8_e5m2fnuz")
DTYPES = (
    *(one.dtype for one in ElementType if one is not ElementType.STRING),
    *(np.dtype(getattr(ml_dtypes, name)) for name in LACKED),
)
TEXTS = st.text("ab\0ü\ud800\U0001f600\n'", max_size=4)
SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@st.composite
def tensors(draw: st.DrawFn) -> np.ndarray:
    """Any bits that a type can have: NaNs, infinities and the least and greatest among them."""
    dtype, shape = draw(st.sampled_from(DTYPES)), draw(SHAPES)
    count = int(np.prod(shape))
    if dtype.kind == "b" or dtype.names or dtype.name.removeprefix("u").startswith("int"):
        least, most = (
            (0, 1)
            if dtype.kind == "b" or dtype.names
            else (int(ml_dtypes.iinfo(dtype).min), int(ml_dtypes.iinfo(dtype).max))
        )
        numbers = draw(st.lists(st.integers(least, most), min_size=count, max_size=count))
        if dtype.names:
            raised: np.ndarray = np.array(numbers, np.uint8).view(dtype)
            return raised.reshape(shape)
        return (
            np.array(numbers, np.int64 if most < 2**63 else np.uint64).astype(dtype).reshape(shape)
        )
    data = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    if dtype.name == "float4_e2m1fn":
        data = bytes(byte & 15 for byte in data)
    return np.frombuffer(data, dtype).reshape(shape)


@st.composite
def texts(draw: st.DrawFn) -> np.ndarray:
    shape = draw(SHAPES)
    count = int(np.prod(shape))
    array = np.empty(count, dtype=object)
    array[:] = draw(st.lists(TEXTS, min_size=count, max_size=count))
    return array.reshape(shape)


KEYS = TEXTS | st.integers(-(2**63), 2**63 - 1)
VALUES = st.recursive(
    st.one_of(tensors(), texts(), st.just(NO_VALUE)),
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3).map(MappingProxyType)
    ),
    max_leaves=6,
)


def same(one: Any, other: Any) -> bool:
    """Of the same kind, type and shape, with the same elements in the same order; all NaNs are
    one.
    """
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, Mapping):
        return (
            isinstance(other, Mapping)
            and list(one) == list(other)
            and all(same(one[key], other[key]) for key in one)
        )
    if one is NO_VALUE or other is NO_VALUE:
        return one is other
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind == "O" or one.dtype.names:
        return bool(one.tolist() == other.tolist())
    return bool(np.all((one == other) | ((one != one) & (other != other))))


@settings(deadline=None)  # each case writes and reads a file
@given(
    st.dictionaries(
        st.sampled_from(["y", "y/0", "file", "a b", "ü", "\ud800", "nul\0", "y.npy", "0"]),
        VALUES,
        max_size=3,
    )
)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, values: Mapping[str, Any]
) -> None:
    file = tmp_path_factory.mktemp("stored") / "values.npz"
    write(file, packed(values))
    with np.load(file, allow_pickle=False) as stored:
        back = unpacked({name: stored[name] for name in stored.files})
    assert len(back) == len(values)
    found = {
        name.encode("utf-8", "backslashreplace").decode().replace("\0", "%00"): value
        for name, value in values.items()
    }
    assert back.keys() == found.keys()
    assert all(same(found[name], back[name]) for name in found)


PLAIN: Mapping[str, tuple[Any, str, dict[str, Any] | None]] = {
    "f32": (np.array([1, 2], np.float32), "float32", None),
    "texts": (np.array(["a", "b"], object), "<U1", None),
    "bf16": (np.array([1.5], ml_dtypes.bfloat16), "float32", {"array": "y", "type": "bf16"}),
    "int2": (np.array([-2, 1], ml_dtypes.int2), "int8", {"array": "y", "type": "int2"}),
    "fnuz": (
        np.array([0.5], ml_dtypes.float8_e4m3fnuz),
        "float32",
        {"array": "y", "type": "float8_e4m3fnuz"},
    ),
    "i4": (np.array([-8, 7], ml_dtypes.int4), "int8", {"array": "y", "type": "i4"}),
    "u3": (np.array([(5,)], [("u3", np.uint8)]), "uint8", {"array": "y", "type": "u3"}),
}


@pytest.mark.parametrize(("value", "dtype", "form"), PLAIN.values(), ids=PLAIN.keys())
def test_a_tensor_is_an_array_of_numpys_own_types_under_its_name(
    value: Any, dtype: str, form: dict[str, Any] | None
) -> None:
    entries = packed({"y": value})
    assert str(entries["y"].dtype) == dtype
    assert (json.loads(str(entries[FORMS]))["y"] if FORMS in entries else None) == form


def test_elements_of_a_sequence_have_entries_of_their_own() -> None:
    entries = packed(
        {
            "y": (np.array([1], np.float32), np.array([2], np.float32)),
            "y/0": np.array([3], np.float32),
        }
    )
    assert {name: entry.tolist() for name, entry in entries.items() if name != FORMS} == {
        "y/0": [3],
        "y/0'": [1],
        "y/1": [2],
    }


REFUSED: Mapping[str, Any] = {
    "no JSON": "{",
    "no object": [1],
    "no form": {"y": 3},
    "an entry that is not there": {"y": {"array": "z"}},
    "the description itself": {"y": {"array": FORMS}},
    "another type than the array's": {"y": {"array": "x", "type": "bf16"}},
    "no type": {"y": {"array": "x", "type": "pickle"}},
    "too few texts": {"y": {"texts": ["a"], "shape": [2**60]}},
    "a length below 0": {"y": {"texts": ["a"], "shape": [-1, -1]}},
    "no texts": {"y": {"texts": [1], "shape": [1]}},
    "a key that is none": {"y": {"map": [[[1], {"nothing": True}]]}},
}


@pytest.mark.parametrize("forms", REFUSED.values(), ids=REFUSED.keys())
def test_a_description_that_is_none_is_refused_in_a_sentence(forms: Any) -> None:
    text = forms if isinstance(forms, str) else json.dumps(forms)
    with pytest.raises(ValueError, match=r"its entry 'loopscope\.forms' "):
        unpacked({"x": np.zeros(2, np.int64), FORMS: np.array(text)})


@pytest.mark.slow
def test_texts_that_take_no_room_in_a_file_are_bounded() -> None:
    """A header of 128 bytes claims any number of them, and each becomes an object."""
    with pytest.raises(
        ValueError, match="an array of 2,147,483,648 texts: at most 4,194,304 are read"
    ):
        unpacked({"x": np.broadcast_to(np.array(""), 2**31)})


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("name", ["x", FORMS])
def test_texts_of_what_is_no_character_are_refused(name: str, order: str) -> None:
    """Python ends in a SystemError where it makes a text of them."""
    data = np.array(0x110000, f"{order}u4").tobytes()
    with pytest.raises(
        ValueError, match="texts with the character 1,114,112: the last one is 1,114,111"
    ):
        unpacked({name: np.frombuffer(data, f"{order}U1").reshape(())})


def test_a_description_of_any_depth_is_refused_too() -> None:
    deep = '{"sequence": [' * 100_000 + "]}" * 100_000
    for text in ('{"y": ' + deep + "}", '{"y": ' + '{"sequence": [' * 20 + "]}" * 20 + "}"):
        with pytest.raises(ValueError, match=r"its entry 'loopscope\.forms' "):
            unpacked({FORMS: np.array(text)})


def test_texts_that_numpy_would_waste_memory_on_are_in_the_description(tmp_path: Path) -> None:
    value = np.array(["x" * 1_000_000, *"abcdefghijklmnopqrstuvwxyz"], object)
    entries = packed({"y": value})
    assert list(entries) == [FORMS]
    assert unpacked(entries)["y"].tolist() == value.tolist()
