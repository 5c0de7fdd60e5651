"""What movement, shape, sparse and sort operations promise of their outputs before they are
computed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import Known, typed


def known(shape: str) -> Known:
    return Known(ElementType.F32, PartialShape.parse(shape))


def value(*numbers: int) -> Known:
    return Known.of(np.array(numbers, np.int64))


def scalar(number: int) -> Known:
    return Known.of(np.array(number, np.int64))


def unknown(shape: str) -> Known:
    """Integers of which only the shape is known."""
    return Known(ElementType.I64, PartialShape.parse(shape))


def promised(
    name: str, version: int, inputs: Sequence[Known], attributes: dict[str, str]
) -> list[str]:
    operation = next(one for one in CATALOGUE.versions(name) if one.version == version)
    assert operation.infer is not None
    return [str(one.shape) for one in operation.infer(inputs, typed(operation, attributes))]


BITS = {"begin_mask": "0,0", "end_mask": "0,1"}
TOP = {"axis": "1", "mode": "max", "sort": "value"}


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes", "expected"),
    [
        ("Reshape", 1, [known("2,3,?"), value(0, -1)], {"special_zero": "true"}, ["[2,?]"]),
        ("Reshape", 1, [known("2,3,1..4"), value(0, -1)], {"special_zero": "true"}, ["[2,3..12]"]),
        ("Reshape", 1, [known("2,3,4"), value(-1, 12)], {"special_zero": "false"}, ["[2,12]"]),
        ("Reshape", 1, [known("..."), value(0, -1, 5)], {"special_zero": "true"}, ["[?,?,5]"]),
        ("Reshape", 1, [known("2,3"), unknown("4")], {"special_zero": "true"}, ["[?,?,?,?]"]),
        ("Reshape", 1, [known("2,3"), unknown("?")], {"special_zero": "true"}, ["..."]),
        ("Squeeze", 1, [known("1,?,3"), value(0)], {}, ["[?,3]"]),
        ("Squeeze", 1, [known("1,?,3"), value(1)], {}, ["..."]),
        ("Squeeze", 1, [known("1,2..5,3")], {}, ["[2..5,3]"]),
        ("Unsqueeze", 1, [known("?,3"), value(0, -1)], {}, ["[1,?,3,1]"]),
        ("Unsqueeze", 1, [known("?,3"), unknown("2")], {}, ["[?,?,?,?]"]),
        ("ShapeOf", 3, [known("?,3")], {}, ["[2]"]),
        ("ShapeOf", 3, [known("...")], {}, ["[?]"]),
        ("Concat", 1, [known("?,3"), known("2,1..4")], {"axis": "-1"}, ["[2,4..7]"]),
        ("Concat", 1, [known("?,3"), known("...")], {"axis": "-1"}, ["..."]),
        ("Split", 1, [known("?,6"), scalar(1)], {"num_splits": "3"}, ["[?,2]"] * 3),
        ("Split", 1, [known("3..7,6"), scalar(0)], {"num_splits": "2"}, ["[2..3,6]"] * 2),
        ("Split", 1, [known("..."), scalar(0)], {"num_splits": "2"}, ["..."] * 2),
        ("VariadicSplit", 1, [known("?,6"), scalar(1), value(1, -1)], {}, ["[?,1]", "[?,5]"]),
        ("VariadicSplit", 1, [known("?,6"), scalar(0), value(1, -1)], {}, ["[1,6]", "[?,6]"]),
        ("VariadicSplit", 1, [known("?,6"), scalar(1), unknown("2")], {}, ["[?,?]", "[?,?]"]),
        ("Slice", 8, [known("?,6"), value(1), value(-1), value(2), value(1)], {}, ["[?,2]"]),
        ("Slice", 8, [known("?,6"), value(1), value(3), value(1), value(0)], {}, ["[..2,6]"]),
        ("Slice", 8, [known("..9,6"), unknown("1"), value(3), value(1), value(0)], {}, ["[..9,6]"]),
        ("Slice", 8, [known("4,6"), value(0), value(2), value(1), unknown("1")], {}, ["[..4,..6]"]),
        (
            "StridedSlice",
            1,
            [known("4,6,?"), value(0, 2), value(2, 0), value(1, 1)],
            BITS,
            ["[2,4,?]"],
        ),
        (
            "StridedSlice",
            1,
            [known("4,6,?"), value(0, 2), value(2, 0)],
            {**BITS, "shrink_axis_mask": "0,1"},
            ["[2,?]"],
        ),
        (
            "StridedSlice",
            1,
            [known("4,6,?"), unknown("2"), unknown("2")],
            {**BITS, "new_axis_mask": "1,0"},
            ["[1,..4,6,?]"],
        ),
        ("Broadcast", 3, [known("?,1"), value(2, 5, 4)], {}, ["[2,5,4]"]),
        ("Broadcast", 3, [known("3,1"), value(2, 1, 4)], {"mode": "bidirectional"}, ["[2,3,4]"]),
        ("Broadcast", 3, [known("3,1"), unknown("3")], {}, ["[?,?,?]"]),
        (
            "Broadcast",
            3,
            [known("3,4"), value(2, 3, 4, 5), value(1, 2)],
            {"mode": "explicit"},
            ["[2,3,4,5]"],
        ),
        ("Tile", 1, [known("?,3"), value(2, 1, 3)], {}, ["[2,?,9]"]),
        (
            "Pad",
            12,
            [known("?,3"), value(1, -1), value(2, 0)],
            {"pad_mode": "constant"},
            ["[3..,2]"],
        ),
        (
            "Pad",
            12,
            [known("..."), unknown("2"), unknown("2")],
            {"pad_mode": "constant"},
            ["[?,?]"],
        ),
        ("Gather", 8, [known("?,6,7"), unknown("?,2"), scalar(1)], {}, ["[?,?,2,7]"]),
        (
            "Gather",
            8,
            [known("4,6,7"), unknown("?,2"), scalar(1)],
            {"batch_dims": "1"},
            ["[4,2,7]"],
        ),
        ("Gather", 8, [known("4,6,7"), unknown(""), unknown("")], {}, ["[?,?]"]),
        ("GatherElements", 6, [known("4,6"), unknown("?,9")], {"axis": "1"}, ["[4,9]"]),
        ("GatherND", 8, [known("4,6,7"), unknown("4,5,1")], {"batch_dims": "1"}, ["[4,5,7]"]),
        ("GatherND", 5, [known("4,6,7"), unknown("4,6,1")], {"batch_dims": "2"}, ["[24]"]),
        ("ScatterNDUpdate", 4, [known("?,3"), unknown("5,1"), known("5,3")], {}, ["[?,3]"]),
        ("Transpose", 1, [known("?,3,4"), value(2, 0, 1)], {}, ["[4,?,3]"]),
        ("Transpose", 1, [known("..."), unknown("3")], {}, ["[?,?,?]"]),
        (
            "DepthToSpace",
            1,
            [known("?,8,3,?")],
            {"mode": "depth_first", "block_size": "2"},
            ["[?,2,6,?]"],
        ),
        (
            "SpaceToDepth",
            1,
            [known("?,2,6,?")],
            {"mode": "depth_first", "block_size": "2"},
            ["[?,8,3,?]"],
        ),
        ("BatchToSpace", 2, [known("?,3"), value(1, 2), value(0, 1), value(0, 0)], {}, ["[?,5]"]),
        ("SpaceToBatch", 2, [known("?,5"), value(1, 2), value(0, 1), value(0, 0)], {}, ["[?,3]"]),
        (
            "ExtractImagePatches",
            3,
            [known("?,3,10,?")],
            {"sizes": "3,3", "strides": "5,5", "rates": "1,1", "auto_pad": "valid"},
            ["[?,27,2,?]"],
        ),
        ("Col2Im", 15, [known("?,12,?"), value(16, 16), value(2, 2)], {}, ["[?,3,16,16]"]),
        ("Unique", 10, [known("3,4")], {}, ["[1..12]", "[1..12]", "[12]", "[1..12]"]),
        ("Unique", 10, [known("3,4"), scalar(1)], {}, ["[3,1..4]", "[1..4]", "[4]", "[1..4]"]),
        ("TopK", 11, [known("?,9"), scalar(3)], TOP, ["[?,3]", "[?,3]"]),
        ("TopK", 11, [known("?,9"), unknown("")], TOP, ["[?,..9]", "[?,..9]"]),
        (
            "NonMaxSuppression",
            9,
            [known("2,9,4"), known("2,5,9"), scalar(3)],
            {},
            ["[..30,3]", "[..30,3]", "[1]"],
        ),
        (
            "NonMaxSuppression",
            9,
            [known("?,9,4"), known("?,5,9"), unknown("")],
            {},
            ["[?,3]", "[?,3]", "[1]"],
        ),
        ("MatrixNms", 8, [known("2,9,4"), known("2,5,9")], {}, ["[..90,6]", "[..90,1]", "[2]"]),
        (
            "MulticlassNms",
            9,
            [known("5,9,4"), known("5,9"), unknown("2")],
            {},
            ["[..45,6]", "[..45,1]", "[2]"],
        ),
        ("SearchSorted", 15, [known("5,9"), known("5,?")], {}, ["[5,?]"]),
        ("EmbeddingBagOffsetsSum", 3, [known("9,4"), unknown("5"), unknown("2")], {}, ["[2,4]"]),
        ("EmbeddingBagPackedSum", 3, [known("9,4"), unknown("?,5")], {}, ["[?,4]"]),
        (
            "EmbeddingSegmentsSum",
            3,
            [known("9,4"), unknown("5"), unknown("5"), scalar(3)],
            {},
            ["[3,4]"],
        ),
        ("SegmentMax", 16, [known("5,4"), value(0, 0, 1, 1, 3)], {"fill_mode": "zero"}, ["[4,4]"]),
        (
            "SparseFillEmptyRows",
            16,
            [known("4"), value(5, 6), unknown("4,2"), known("")],
            {},
            ["[5..9,2]", "[5..9]", "[5]"],
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_shapes(
    name: str, version: int, inputs: list[Known], attributes: dict[str, str], expected: list[str]
) -> None:
    assert promised(name, version, inputs, attributes) == expected


def test_shape_of_a_fixed_shape_is_known() -> None:
    operation = next(one for one in CATALOGUE.versions("ShapeOf") if one.version == 3)
    assert operation.infer is not None
    (result,) = operation.infer([known("2,3")], {"output_type": ElementType.I32})
    assert result.value is not None
    assert result.value.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes", "message"),
    [
        (
            "Reshape",
            1,
            [known("2,3"), value(4, 2)],
            {"special_zero": "true"},
            r"6 elements of shape \[2,3\] do not fit into shape \[4, 2\]",
        ),
        ("Reshape", 1, [known("2,?"), value(-1, -1)], {"special_zero": "true"}, "is not a shape"),
        ("Concat", 1, [known("2,3"), known("3,3")], {"axis": "1"}, "differ along axis 0"),
        (
            "Concat",
            1,
            [known("2,3"), Known(ElementType.I32, PartialShape.of([2, 3]))],
            {"axis": "1"},
            "element types must be equal",
        ),
        (
            "Split",
            1,
            [known("2,5"), scalar(1)],
            {"num_splits": "2"},
            "cannot be split into 2 equal parts",
        ),
        (
            "VariadicSplit",
            1,
            [known("2,5"), scalar(1), value(2, 2)],
            {},
            "do not make up an axis of length 5",
        ),
        ("Broadcast", 3, [known("2,3"), value(4, 3)], {}, "cannot be broadcast to"),
        ("Transpose", 1, [known("2,3"), value(0)], {}, "not a permutation"),
        (
            "Gather",
            8,
            [known("2,3"), unknown("2"), scalar(2)],
            {},
            "axis 2 is out of range for rank 2",
        ),
        ("GatherElements", 6, [known("2,3"), unknown("3,3")], {"axis": "1"}, "differ in axis 0"),
        (
            "ScatterElementsUpdate",
            3,
            [known("2,3"), unknown("2,2"), known("2,3"), scalar(0)],
            {},
            "different shapes",
        ),
        ("TopK", 11, [known("2,3"), scalar(4)], TOP, "k is 4, the axis has 3 elements"),
        (
            "DepthToSpace",
            1,
            [known("1,6,2,2")],
            {"mode": "depth_first", "block_size": "2"},
            "depth 6 is not a multiple of 4",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_contradictions(
    name: str, version: int, inputs: list[Known], attributes: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        promised(name, version, inputs, attributes)
