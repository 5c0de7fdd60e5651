"""Bags, segments and sparse rows against OpenVINO and the examples of the spec."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.engine.ops.oracle import agree, ours

RANDOM = np.random.default_rng(5)
TABLE = RANDOM.normal(size=(5, 2, 3)).astype(np.float32)
WHOLE = (TABLE * 10).astype(np.int32)
WEIGHTS = RANDOM.normal(size=4).astype(np.float32)
SPEC = np.array([[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]], np.float32)


def i32(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


def one(value: float, dtype: type[np.generic] = np.int32) -> np.ndarray:
    return np.array(value, dtype)


PICKED = i32(0, 2, 3, 4)
PACKED = i32([0, 2], [1, 2], [3, 4])


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes", "constant"),
    [
        ("EmbeddingBagOffsetsSum", 3, [TABLE, PICKED, i32(0, 2, 2)], {}, ()),
        ("EmbeddingBagOffsetsSum", 3, [TABLE, PICKED, i32(0, 2, 2), one(0)], {}, ()),
        ("EmbeddingBagOffsetsSum", 3, [TABLE, PICKED, i32(0, 2, 2), one(-1), WEIGHTS], {}, ()),
        ("EmbeddingBagOffsetsSum", 3, [WHOLE, PICKED, i32(0, 0, 3)], {}, ()),
        ("EmbeddingBagOffsets", 15, [TABLE, PICKED, i32(0, 2, 2)], {"reduction": "mean"}, ()),
        (
            "EmbeddingBagOffsets",
            15,
            [TABLE, PICKED, i32(0, 2, 2), one(1)],
            {"reduction": "mean"},
            (),
        ),
        (
            "EmbeddingBagOffsets",
            15,
            [TABLE, PICKED, i32(0, 2, 2), one(1), WEIGHTS],
            {"reduction": "sum"},
            (),
        ),
        ("EmbeddingBagPackedSum", 3, [TABLE, PACKED], {}, ()),
        (
            "EmbeddingBagPackedSum",
            3,
            [TABLE, PACKED, RANDOM.normal(size=(3, 2)).astype(np.float32)],
            {},
            (),
        ),
        ("EmbeddingBagPacked", 15, [TABLE, PACKED], {"reduction": "sum"}, ()),
        ("EmbeddingBagPacked", 15, [TABLE, PACKED], {"reduction": "mean"}, ()),
        ("EmbeddingSegmentsSum", 3, [TABLE, PICKED, i32(0, 0, 2, 2), one(4)], {}, (3,)),
        (
            "EmbeddingSegmentsSum",
            3,
            [TABLE, PICKED, i32(0, 0, 2, 2), one(4), one(1), WEIGHTS],
            {},
            (3,),
        ),
        ("EmbeddingSegmentsSum", 3, [TABLE, PICKED, i32(0, 0, 2, 2), one(2)], {}, (3,)),
        *[
            (
                "SegmentMax",
                16,
                [data, i32(0, 0, 2, 2, 4), *count],
                {"fill_mode": fill},
                (1, 2)[: 1 + len(count)],
            )
            for data in (TABLE, WHOLE)
            for fill in ("zero", "lowest")
            for count in ([], [one(7)], [one(3)])
        ],
        (
            "SparseFillEmptyRows",
            16,
            [WEIGHTS, i32(5, 6), i32([0, 1], [0, 3], [2, 0], [3, 1]), one(9, np.float32)],
            {},
            (),
        ),
        (
            "SparseFillEmptyRows",
            16,
            [WEIGHTS, i32(5, 6), i32([3, 1], [0, 3], [0, 1], [2, 0]), one(9, np.float32)],
            {},
            (),
        ),
        (
            "SparseFillEmptyRows",
            16,
            [WEIGHTS[:2], i32(2, 3), i32([0, 0], [1, 2]), one(9, np.float32)],
            {},
            (),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_as_openvino(
    name: str,
    version: int,
    inputs: list[np.ndarray],
    attributes: dict[str, Any],
    constant: tuple[int, ...],
) -> None:
    agree(name, version, inputs, attributes, constant=constant)


HALVES = np.full(4, 0.5, np.float32)


@pytest.mark.parametrize(
    ("name", "version", "inputs", "expected"),
    [
        (
            "EmbeddingBagOffsets",
            15,
            [SPEC, PICKED, i32(0, 2, 2), one(0), HALVES],
            [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]],
        ),
        ("EmbeddingBagPacked", 15, [SPEC, PACKED], [[-2.1, -2.4], [-2.0, -2.2], [-0.2, 0.8]]),
        (
            "EmbeddingBagPacked",
            15,
            [SPEC, PACKED, HALVES[:1].repeat(6).reshape(3, 2)],
            [[-1.05, -1.2], [-1.0, -1.1], [-0.1, 0.4]],
        ),
        (
            "EmbeddingSegmentsSum",
            3,
            [SPEC, PICKED, i32(0, 0, 2, 2), one(3), one(0), HALVES],
            [[-1.05, -1.2], [-0.2, -0.6], [-0.1, 0.4]],
        ),
        ("EmbeddingBagOffsetsSum", 3, [SPEC, i32(), i32()], np.zeros((0, 2))),
        ("EmbeddingBagOffsetsSum", 3, [SPEC, i32(), i32(0, 0)], np.zeros((2, 2))),
    ],
)
def test_examples(name: str, version: int, inputs: list[np.ndarray], expected: Any) -> None:
    np.testing.assert_allclose(ours(name, version, inputs)[0], expected, atol=1e-6)


def test_empty_rows_get_the_default() -> None:
    strings = np.array(["a", "b", "c", "d"], object)
    indices, values, empty = ours(
        "SparseFillEmptyRows",
        16,
        [strings, i32(5, 6), i32([0, 1], [0, 3], [2, 0], [3, 1]), np.array("z", object)],
    )
    assert indices.tolist() == [[0, 1], [0, 3], [1, 0], [2, 0], [3, 1], [4, 0]]
    assert values.tolist() == ["a", "b", "z", "c", "d", "z"]
    assert empty.tolist() == [False, True, False, False, True]


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes", "message"),
    [
        ("EmbeddingBagOffsetsSum", 3, [TABLE, i32(9), i32(0)], {}, "index 9 is out of range"),
        (
            "EmbeddingBagOffsetsSum",
            3,
            [TABLE, PICKED, i32(3, 1)],
            {},
            "not ascending positions in 4 indices",
        ),
        (
            "EmbeddingBagOffsets",
            15,
            [TABLE, PICKED, i32(0), one(0), WEIGHTS],
            {"reduction": "mean"},
            "not supported with reduction 'mean'",
        ),
        (
            "EmbeddingSegmentsSum",
            3,
            [TABLE, PICKED, i32(0, 0, 2, 2), np.array(2**40)],
            {},
            "more than the limit",
        ),
        ("SegmentMax", 16, [TABLE, i32(0, 1, 0, 2, 2)], {"fill_mode": "zero"}, "not ascending"),
        (
            "SparseFillEmptyRows",
            16,
            [WEIGHTS[:1], i32(2, 2), i32([2, 0]), one(0, np.float32)],
            {},
            "outside a matrix of 2 rows",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals(
    name: str, version: int, inputs: list[np.ndarray], attributes: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ours(name, version, inputs, attributes)
