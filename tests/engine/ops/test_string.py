"""Packing and unpacking of text against OpenVINO and the worked examples of the spec."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.oracle import agree, ours

EXAMPLES = [
    ([0, 5], [5, 13], "IntelOpenVINO", ["Intel", "OpenVINO"]),
    ([0, 3, 3, 8, 9], [3, 3, 8, 9, 13], "OMZGenAI 2024", ["OMZ", "", "GenAI", " ", "2024"]),
    ([0, 8], [1, 9], "123456789", ["1", "9"]),
    (
        [[0, 5], [13, 16]],
        [[5, 13], [16, 21]],
        "IntelOpenVINOOMZGenAI",
        [["Intel", "OpenVINO"], ["OMZ", "GenAI"]],
    ),
    ([0, 2], [2, 6], "ü😀", ["ü", "😀"]),
    ([], [], "", []),
]


@pytest.mark.parametrize("dtype", [np.int32, np.int64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize(("begins", "ends", "text", "expected"), EXAMPLES)
def test_pack(
    begins: list[int], ends: list[int], text: str, expected: list[str], dtype: type[np.generic]
) -> None:
    inputs = [
        np.array(begins, dtype),
        np.array(ends, dtype),
        np.frombuffer(text.encode(), np.uint8),
    ]
    assert ours("StringTensorPack", 15, inputs)[0].tolist() == expected
    if text:
        agree("StringTensorPack", 15, inputs)


@pytest.mark.parametrize(
    ("begins", "ends", "text", "strings"), [EXAMPLES[0], EXAMPLES[1], *EXAMPLES[3:]]
)
def test_unpack(begins: list[int], ends: list[int], text: str, strings: list[str]) -> None:
    data = np.array(strings, object)
    got = ours("StringTensorUnpack", 15, [data], outputs=3)
    assert [one.dtype for one in got] == [np.int32, np.int32, np.uint8]
    assert got[0].tolist() == begins
    assert got[1].tolist() == ends
    assert got[2].tobytes().decode() == text
    if text:
        agree("StringTensorUnpack", 15, [data])


@pytest.mark.parametrize(("begin", "end"), [(-1, 2), (2, 1), (0, 6)])
def test_places_outside_of_the_text_are_refused(begin: int, end: int) -> None:
    with pytest.raises(ValueError, match="in 5 bytes of text"):
        ours(
            "StringTensorPack",
            15,
            [np.array([begin]), np.array([end]), np.frombuffer(b"Intel", np.uint8)],
        )
    with pytest.raises(ValueError, match="expected the same"):
        ours(
            "StringTensorPack",
            15,
            [np.array([0]), np.array([1, 2]), np.frombuffer(b"Intel", np.uint8)],
        )
