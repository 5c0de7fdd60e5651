"""Attributes as text: a law for every kind, through the text alone and through a file; what is
refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import loopscope
from loopscope import builder
from loopscope.ir.element_type import FLOATS, ElementType
from loopscope.ir.shape import DYNAMIC, Dimension, PartialShape
from loopscope.ops.attribute_text import ITEMS, AttributeKind, is_of, parse, written
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Attribute, Operation
from loopscope.ops.infer import same
from tests.draws import draws

XML_TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn")), max_size=12)
"""Text that XML can hold. A ``str`` is the text itself."""


@st.composite
def dimensions(draw: st.DrawFn) -> Dimension:
    least = draw(st.integers(0, 9))
    return Dimension(least, draw(st.one_of(st.none(), st.integers(least, least + 9))))


@st.composite
def tensors(draw: st.DrawFn) -> np.ndarray:
    element_type = draw(st.sampled_from(ElementType))
    shape = draw(arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
    count = int(np.prod(shape))
    if element_type is ElementType.STRING:
        return np.array(
            draw(st.lists(st.text(max_size=6), min_size=count, max_size=count)), object
        ).reshape(shape)
    if element_type.dtype.names:
        codes = draw(
            st.lists(st.integers(0, (1 << element_type.bits) - 1), min_size=count, max_size=count)
        )
        raised: np.ndarray = np.array(codes, np.uint8).view(element_type.dtype)
        return raised.reshape(shape)
    raw = np.frombuffer(draw(st.binary(min_size=count * 8, max_size=count * 8)), np.int64).reshape(
        shape
    )
    if element_type in FLOATS and element_type.bits >= 16:
        return np.frombuffer(raw.tobytes(), element_type.dtype)[:count].reshape(shape)
    with np.errstate(all="ignore"):
        return (
            raw.astype(element_type.dtype)
            if element_type is not ElementType.BOOLEAN
            else np.asarray(raw % 2 == 0)
        )


SHAPES = st.one_of(st.just(DYNAMIC), st.lists(dimensions(), max_size=4).map(PartialShape.of))
VALUES: dict[AttributeKind, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "str": XML_TEXT,
    "bytes": st.binary(max_size=20),
    "type": st.sampled_from(ElementType),
    "shape": SHAPES,
    "tensor": tensors(),
}
LISTS = {kind: st.lists(VALUES[item], max_size=4).map(tuple) for kind, item in ITEMS.items()}
LISTS["strs"] = st.lists(
    st.one_of(st.text(max_size=6), st.sampled_from(["", " a", "a,b", "[", '["x"]', "\x00"])),
    max_size=4,
).map(tuple)
"""Items of a list may be any text, also what XML cannot hold: JSON escapes it."""
EVERY = VALUES | LISTS
KINDS = list(EVERY)


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, np.ndarray):
        if not isinstance(other, np.ndarray) or (one.dtype, one.shape) != (
            other.dtype,
            other.shape,
        ):
            return False
        if one.dtype == object or one.dtype.names:
            return bool(one.tolist() == other.tolist())
        both_nan = (one != one) & (other != other)  # which NaN it is, no text says
        bits = [
            np.ascontiguousarray(array)
            .reshape(-1)
            .view(np.uint8)
            .reshape(array.size, array.itemsize)
            for array in (one, other)
        ]
        return bool(np.all(both_nan.reshape(-1) | (bits[0] == bits[1]).all(axis=1)))
    return type(one) is type(other) and one == other


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=draws(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_written_is_read_again(kind: AttributeKind, data: st.DataObject) -> None:
    value = data.draw(EVERY[kind])
    assert is_of(kind, value)
    assert alike(parse(kind, written(kind, value)), float(value) if kind == "float" else value)


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_through_building_writing_and_reading(kind: AttributeKind, tmp_path: Path) -> None:
    """Adding a new Op, "Attr types": string, int, float, bool, type, shape, tensor, and a list
    of each.
    """
    seen: list[Any] = []

    def look(x: np.ndarray, /, *, a: Any) -> np.ndarray:
        seen.append(a)
        return x

    operation = Operation(
        name="Look",
        version=1,
        opsets=(1, 1),
        opset="mine",
        page="",
        kernel=look,
        infer=same,
        attributes=(Attribute("a", kind),),
    )
    catalogue = CATALOGUE.with_operations([operation])

    @given(value=EVERY[kind])
    @settings(max_examples=12, deadline=None, database=None)
    def through_a_file(value: Any) -> None:
        graph = builder.Graph("all", catalogue=catalogue)
        x = graph.parameter("x", "f32", [1])
        model = graph.model(builder.Operations(catalogue).look(x, a=value))
        loopscope.write_model(model, tmp_path / "all.xml")
        again = loopscope.read_model(tmp_path / "all.xml")
        for one in (model, again):
            loopscope.run(one, [np.zeros(1, np.float32)], catalogue=catalogue)
            assert alike(seen[-1], float(value) if kind == "float" else value)

    through_a_file()


PLAIN: list[tuple[AttributeKind, Any, str]] = [
    ("bytes", b"caf\xc3\xa9 100%, \x00", "caf%C3%A9 100%25%2C %00"),
    ("strs", ("tanh", "sigmoid"), "tanh,sigmoid"),
    ("strs", ("a,b",), '["a,b"]'),
    ("strs", ("",), '[""]'),
    ("strs", (), ""),
    ("bytes_list", (b"a", b"\xff"), "a,%FF"),
    ("bytes_list", (b"",), '[""]'),
    ("shapes", (PartialShape.of(()),), "[]"),
    ("shapes", (PartialShape.of((2, None)), DYNAMIC), "[2,?];..."),
    ("tensor", np.array([[1, 2], [3, 4]], np.int32), "i32[2,2] [1, 2, 3, 4]"),
    ("tensor", np.float32(0.1), "f32[] [0.1]"),
    ("tensors", (np.int8(5), np.array(["x"], object)), '["i8[] [5]", "string[1] [\\"x\\"]"]'),
]


@pytest.mark.parametrize(("kind", "value", "text"), PLAIN)
def test_how_it_is_spelled(kind: AttributeKind, value: Any, text: str) -> None:
    assert written(kind, value) == text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("bytes", "100%"),
        ("bytes", "%zz"),
        ("bytes_list", "a,%"),
        ("tensor", "i8[1] [200]"),
        ("tensor", "i32[2] [1]"),
        ("tensor", "i32[1] [1.5]"),
        ("tensor", "i32[1] [true]"),
        ("tensor", "u3[1] [8]"),
        ("tensor", "string[1] [5]"),
        ("tensor", "i33[1] [5]"),
        ("tensor", "i32[9,9,9,999999999999999999] []"),
        ("tensor", "[" * 5000),
        ("tensor", "i32[1] " + "[" * 5000 + "]" * 5000),
        ("tensor", "[100000000000000000000]"),
        ("tensors", "i32[1] [1]"),
        ("types", "f32,,i8"),
        ("shapes", "[2,x]"),
        ("bools", "true,maybe"),
        ("ints", "1,2.5"),
    ],
)
def test_what_is_none_of_its_kind(kind: AttributeKind, text: str) -> None:
    with pytest.raises(ValueError):
        parse(kind, text)


def test_a_text_that_only_looks_like_json_is_split_at_commas() -> None:
    assert parse("strs", "[a, b]") == ("[a", "b]")
    assert parse("strs", "a, b") == ("a", "b")
