"""The best elements and surviving boxes against OpenVINO, and against plain formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.ir.element_type import ElementType
from loopscope.ops.sort.overlapping_boxes import rotated_overlap, rotated_quads
from tests.draws import draws
from tests.engine.ops.oracle import agree, ours

RANDOM = np.random.default_rng(13)
DATA = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
TIES = RANDOM.integers(0, 50, (3, 400))
CORNERS = RANDOM.uniform(0, 1, (2, 30, 4)).astype(np.float32)
CORNERS[..., 2:] = CORNERS[..., :2] + RANDOM.uniform(0.05, 0.6, (2, 30, 2))
CENTERS = np.concatenate([CORNERS[..., :2], CORNERS[..., 2:] - CORNERS[..., :2]], -1)
ROTATED = np.concatenate([CENTERS * 10, RANDOM.uniform(-3, 3, (2, 30, 1))], -1).astype(np.float32)
SCORES = RANDOM.uniform(0, 1, (2, 3, 30)).astype(np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def whole(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def real(value: float) -> np.ndarray:
    return np.array(value, np.float32)


@pytest.mark.parametrize("sort", ["value", "index"])
@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize(
    "data",
    [DATA, TIES.astype(np.float32), TIES.astype(np.int32), TIES.astype(np.int64)],
    ids=["few", "f32", "i32", "i64"],
)
def test_top_k(data: np.ndarray, mode: str, sort: str) -> None:
    attributes = {
        "axis": -1,
        "mode": mode,
        "sort": sort,
        "stable": True,
        "index_element_type": "i64",
    }
    agree("TopK", 11, [data, whole(3)], attributes, constant=(1,))


@pytest.mark.parametrize("sort", ["value", "index"])
@pytest.mark.parametrize("version", [1, 3, 11])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_top_k_axes(version: int, axis: int, sort: str) -> None:
    agree(
        "TopK",
        version,
        [DATA, whole(2)],
        {"axis": axis, "mode": "max", "sort": sort},
        constant=(1,),
    )


@settings(max_examples=draws(60), deadline=None)
@given(
    st.lists(st.integers(-4, 4), min_size=1, max_size=300),
    st.data(),
    st.sampled_from(["max", "min"]),
)
def test_top_k_is_a_stable_sort_cut_short(
    values: list[int], data: st.DataObject, mode: str
) -> None:
    count = data.draw(st.integers(0, len(values)))
    best, places = ours(
        "TopK",
        11,
        [np.array(values, np.int64), whole(count)],
        {"axis": "0", "mode": mode, "sort": "value"},
    )
    expected = sorted(
        range(len(values)),
        key=lambda place: (-values[place] if mode == "max" else values[place], place),
    )[:count]
    assert places.tolist() == expected
    assert best.tolist() == [values[place] for place in expected]


SPECIAL = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize(
    "special", [[], SPECIAL[1:], SPECIAL[:1]], ids=["finite", "infinite", "nan"]
)
@pytest.mark.parametrize("spread", [0.3, 1e6])
@pytest.mark.parametrize(
    ("shape", "axis", "count"),
    [
        ((7, 6000), 1, 20),
        ((7, 6000), 1, 1500),
        ((40, 900), 1, 1),
        ((3, 21, 50), 1, 1),
        ((3, 21, 50), 1, 4),
        ((2, 5, 9, 7), 1, 5),
        ((2, 5, 9, 7), 2, 3),
        ((3, 6, 400), 1, 3),
        ((20, 300), 0, 8),
        ((3, 300, 40), 1, 5),
        ((9, 250, 300), 1, 2),
        ((2, 9), 0, 2),
        ((500, 40), 1, 30),
        ((60, 70), 0, 6),
        ((50, 10), 1, 1),
        ((9, 8, 6), 2, 1),
        ((9, 300, 6), 1, 1),
        ((30, 100), 1, 2),
        ((1, 100), 1, 5),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8])
def test_top_k_of_much(
    dtype: type[np.generic],
    shape: tuple[int, ...],
    axis: int,
    count: int,
    spread: float,
    special: list[float],
    mode: str,
) -> None:
    """However the best are found, they are those of a stable sort: for many ties and few,
    infinities, NaN (greater than all).
    """
    random = np.random.default_rng(7)
    data = (
        random.normal(0, spread, shape)
        .round()
        .clip(0 if dtype is np.uint8 else -2e9, 255 if dtype is np.uint8 else 2e9)
        .astype(dtype)
    )
    if special and dtype is np.float32:
        data[random.random(shape) < 0.01] = special[0]
        data[random.random(shape) < 0.3] = special[-1]
    best, places = ours(
        "TopK",
        11,
        [data, whole(count)],
        {"axis": str(axis), "mode": mode, "sort": "value", "index_element_type": "i64"},
    )
    length = shape[axis]
    if mode == "max":
        expected = length - 1 - np.flip(np.flip(data, axis).argsort(axis, kind="stable"), axis)
    else:
        expected = data.argsort(axis, kind="stable")
    expected = expected.take(range(count), axis)
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(best, np.take_along_axis(data, expected, axis))


EXTREMES: dict[str, np.ndarray] = {
    "u32": np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], np.uint32),
    "i32": np.array([-(2**31), -(2**31) + 1, -1, 0, 2**31 - 1], np.int32),
    "i8": np.array([-128, -1, 0, 127], np.int8),
    "f32": np.array(
        [-np.inf, -3e38, -1e-45, -0.0, 0.0, 1e-45, 3e38, np.inf, np.nan, -np.nan], np.float32
    ),
    "f16": np.array([-np.inf, -65504, -6e-8, -0.0, 0.0, 6e-8, np.inf, np.nan, -np.nan], np.float16),
}


@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize("length", [20, 250])
@pytest.mark.parametrize("values", EXTREMES.values(), ids=EXTREMES.keys())
def test_top_k_of_extremes(values: np.ndarray, length: int, mode: str) -> None:
    """Defaults of both signs are equal, and so is every NaN, which is greater than all."""
    data = np.random.default_rng(3).choice(values, (300, length))
    attributes = {"axis": "1", "mode": mode, "sort": "value", "index_element_type": "i64"}
    best, places = ours("TopK", 11, [data, whole(length // 2)], attributes)
    ranks = np.searchsorted(
        np.unique(values + 0), data + 0
    )  # one number for each value, in its order
    order = (-ranks if mode == "max" else ranks).argsort(1, kind="stable")[:, : length // 2]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(best, np.take_along_axis(data, order, 1))


@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize(
    "values", [one[np.isfinite(one)] for one in EXTREMES.values()], ids=EXTREMES.keys()
)
def test_top_k_of_few_along_an_axis_that_is_not_the_last(values: np.ndarray, mode: str) -> None:
    """Bit for bit what is there: of zeros of both signs the first one."""
    data = np.random.default_rng(3).choice(values, (5, 20, 30))
    inner = {"axis": "1", "mode": mode, "sort": "value", "index_element_type": "i64"}
    best, places = ours("TopK", 11, [data, whole(3)], inner)
    moved, at = ours("TopK", 11, [np.moveaxis(data, 1, 2).copy(), whole(3)], inner | {"axis": "2"})
    np.testing.assert_array_equal(places, np.moveaxis(at, 2, 1))
    assert best.tobytes() == np.moveaxis(moved, 2, 1).tobytes()


@pytest.mark.parametrize(
    ("shape", "axis", "count"),
    [((2, 3, 0), 1, 2), ((0, 3, 2), 1, 1), ((0, 3, 2), 1, 0), ((3, 0), 0, 0), ((2, 0), 1, 0)],
)
def test_top_k_without_elements(shape: tuple[int, ...], axis: int, count: int) -> None:
    values, places = ours(
        "TopK",
        11,
        [np.ones(shape, np.float32), whole(count)],
        {"axis": str(axis), "mode": "max", "sort": "index"},
    )
    assert values.shape == places.shape == (*shape[:axis], count, *shape[axis + 1 :])


@pytest.mark.parametrize(
    "element_type",
    [t for t in ElementType if (t.is_float or t.is_integer) and not t.dtype.names],
    ids=str,
)
def test_top_k_of_every_number_type(element_type: ElementType) -> None:
    data = np.array([2, 1, 2, 1, 2], np.float32).astype(element_type.dtype)
    values, places = ours(
        "TopK", 11, [data, whole(4)], {"axis": "0", "mode": "max", "sort": "value"}
    )
    assert values.dtype == element_type.dtype
    assert places.tolist() == [0, 2, 4, 1]


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize(
    ("encoding", "boxes"),
    [("corner", CORNERS), ("center", CENTERS), ("corner", CORNERS[..., [2, 1, 0, 3]])],
)
@pytest.mark.parametrize("version", [1, 3, 4, 5, 9])
def test_suppression(version: int, encoding: str, boxes: np.ndarray, descending: bool) -> None:
    attributes = {"box_encoding": encoding, "sort_result_descending": descending}
    inputs = [boxes, SCORES, whole(8), real(0.3), real(0.1)]
    agree("NonMaxSuppression", version, inputs, attributes, constant=(2, 3, 4))


@pytest.mark.parametrize("sigma", [0.1, 0.5])
@pytest.mark.parametrize("version", [5, 9])
def test_soft_suppression(version: int, sigma: float) -> None:
    inputs = [CORNERS, SCORES, whole(8), real(0.3), real(0.1), real(sigma)]
    agree("NonMaxSuppression", version, inputs, {}, constant=(2, 3, 4, 5))


def test_equal_scores_keep_their_order() -> None:
    boxes = (
        np.tile(np.array([[[0, 0, 1, 1]]], np.float32), (1, 5, 1))
        + np.arange(5, dtype=np.float32).reshape(1, 5, 1) * 2
    )
    inputs = [boxes, np.full((1, 2, 5), 0.5, np.float32), whole(3), real(0.5), real(0.1)]
    agree("NonMaxSuppression", 9, inputs, {}, constant=(2, 3, 4))
    assert ours("NonMaxSuppression", 9, inputs)[0].tolist() == [
        [0, 0, 0],
        [0, 0, 1],
        [0, 0, 2],
        [0, 1, 0],
        [0, 1, 1],
        [0, 1, 2],
    ]


def test_nothing_is_selected_by_default() -> None:
    """max_output_boxes_per_class is 0 when it is not given (the CPU plugin cannot run this)."""
    indices, scores, count = ours("NonMaxSuppression", 9, [CORNERS, SCORES])
    assert (indices.shape, scores.shape, count.tolist()) == ((0, 3), (0, 3), [0])


def test_a_score_at_the_threshold_is_no_candidate() -> None:
    """The page says greater or equal; OpenVINO and ONNX Runtime say greater, and models rely on
    a threshold of 0 for that.
    """
    boxes = np.array([[[0, 0, 1, 1], [5, 5, 6, 6]]], np.float32)
    inputs = [boxes, np.array([[[0.5, 0.25]]], np.float32), whole(2), real(0.5), real(0.25)]
    assert ours("NonMaxSuppression", 9, inputs)[0].tolist() == [[0, 0, 0]]
    agree("NonMaxSuppression", 9, inputs, {}, constant=(2, 3, 4))


def plainly(boxes: np.ndarray, scores: np.ndarray, threshold: float) -> list[int]:
    """The algorithm of the spec, box by box."""
    kept: list[int] = []
    for place in np.argsort(-scores, kind="stable").tolist():
        y1, x1, y2, x2 = boxes[place].astype(float)
        if all(shared(boxes[other].astype(float), (y1, x1, y2, x2)) <= threshold for other in kept):
            kept.append(place)
    return kept


def shared(one: Any, other: Any) -> float:
    height = min(one[2], other[2]) - max(one[0], other[0])
    width = min(one[3], other[3]) - max(one[1], other[1])
    both = max(height, 0.0) * max(width, 0.0)
    return float(
        both
        / (
            (one[2] - one[0]) * (one[3] - one[1])
            + (other[2] - other[0]) * (other[3] - other[1])
            - both
        )
    )


@pytest.mark.parametrize("threshold", [0.1, 0.37, 0.73])
def test_hundreds_of_boxes(threshold: float) -> None:
    boxes = RANDOM.uniform(0, 1, (500, 4)).astype(np.float32)
    boxes[:, 2:] = boxes[:, :2] + RANDOM.uniform(0.02, 0.3, (500, 2))
    scores = RANDOM.uniform(0.1, 1, 500).astype(np.float32)
    indices = ours(
        "NonMaxSuppression",
        9,
        [boxes[None], scores[None, None], whole(500), real(threshold), real(0)],
    )[0]
    assert indices[:, 2].tolist() == plainly(boxes, scores, threshold)


@pytest.mark.parametrize("clockwise", [True, False])
@pytest.mark.parametrize("descending", [True, False])
def test_rotated_suppression(descending: bool, clockwise: bool) -> None:
    attributes = {"sort_result_descending": descending, "clockwise": clockwise}
    agree(
        "NMSRotated",
        13,
        [ROTATED, SCORES, whole(8), real(0.2), real(0.1)],
        attributes,
        constant=(2, 3, 4),
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((0, 0, 2, 2, 0), (0, 0, 2, 2, 0), 1.0),
        ((0, 0, 2, 2, 0), (1, 0, 2, 2, 0), 1 / 3),
        (
            (0, 0, 2, 2, 0),
            (0, 0, 2, 2, math.pi / 4),
            (8 * math.sqrt(2) - 8) / (8 - (8 * math.sqrt(2) - 8)),
        ),
        ((0, 0, 4, 2, math.pi / 2), (0, 0, 2, 4, 0), 1.0),
        ((0, 0, 2, 2, 0.3), (9, 9, 2, 2, 1.0), 0.0),
        ((0, 0, 0, 2, 0), (0, 0, 2, 2, 0), 0.0),
        ((0, 0, 4, 4, 0.7), (0, 0, 1, 1, 0.1), 1 / 16),
    ],
)
def test_rotated_overlaps(
    one: tuple[float, ...], other: tuple[float, ...], expected: float
) -> None:
    quads = rotated_quads(np.array([one, other]), clockwise=True)
    assert rotated_overlap(quads[:1], quads[1:])[0, 0] == pytest.approx(expected)


LIMITS = {"score_threshold": 0.2, "nms_top_k": 12, "keep_top_k": 9, "background_class": 1}


@pytest.mark.parametrize("decay", ["linear", "gaussian"])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize(
    ("sort", "across"),
    [("score", False), ("score", True), ("classid", True), ("none", False), ("none", True)],
)
def test_matrix_nms(sort: str, across: bool, normalized: bool, decay: str) -> None:
    attributes = {
        "sort_result_type": sort,
        "sort_result_across_batch": across,
        "normalized": normalized,
        "decay_function": decay,
    }
    boxes = CORNERS if normalized else CORNERS * 20
    agree("MatrixNms", 8, [boxes, SCORES], {**LIMITS, **attributes, "post_threshold": 0.1})


def test_matrix_nms_by_class_within_each_image() -> None:
    """The page sorts by class within each batch element; OpenVINO leaves those rows by score."""
    rows, _, counts = ours("MatrixNms", 8, [CORNERS, SCORES], {"sort_result_type": "classid"})
    for image in np.split(rows, np.cumsum(counts)[:-1]):
        assert image[:, 0].tolist() == sorted(image[:, 0].tolist())


@pytest.mark.parametrize("eta", [1.0, 0.8])
@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("across", [True, False])
@pytest.mark.parametrize("sort", ["score", "classid", "none"])
@pytest.mark.parametrize("version", [8, 9])
def test_multiclass_nms(
    version: int, sort: str, across: bool, normalized: bool, eta: float
) -> None:
    attributes = {
        "sort_result_type": sort,
        "sort_result_across_batch": across,
        "normalized": normalized,
        "nms_eta": eta,
    }
    boxes = CORNERS if normalized else CORNERS * 20
    agree("MulticlassNms", version, [boxes, SCORES], {**LIMITS, **attributes, "iou_threshold": 0.6})


@pytest.mark.parametrize("sort", ["score", "classid"])
def test_multiclass_nms_with_boxes_of_each_class(sort: str) -> None:
    boxes = np.concatenate([CORNERS, CORNERS[:1, ::-1]])
    agree(
        "MulticlassNms",
        9,
        [boxes, SCORES[0], i64(10, 0, 20)],
        {**LIMITS, "sort_result_type": sort, "iou_threshold": 0.3},
    )


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize(
    ("rows", "values"),
    [
        (
            np.sort(RANDOM.integers(0, 9, (2, 3, 7)), -1).astype(np.float32),
            RANDOM.integers(-1, 10, (2, 3, 5)).astype(np.float32),
        ),
        (np.sort(RANDOM.integers(0, 9, 7)), RANDOM.integers(-1, 10, (2, 3, 5))),
    ],
)
def test_search_sorted(rows: np.ndarray, values: np.ndarray, right: bool) -> None:
    agree("SearchSorted", 15, [rows, values], {"right_mode": right, "output_type": "i32"})


def test_search_in_empty_rows() -> None:
    assert ours("SearchSorted", 15, [np.zeros((2, 0)), np.zeros((2, 3))])[0].tolist() == [
        [0, 0, 0],
        [0, 0, 0],
    ]


def test_regions_with_the_greatest_probabilities() -> None:
    agree("ExperimentalDetectronTopKROIs", 6, [CORNERS[0], SCORES[0, 0]], {"max_rois": 7})
    found = ours(
        "ExperimentalDetectronTopKROIs",
        6,
        [CORNERS[0, :2], np.array([0.1, 0.2], np.float32)],
        {"max_rois": "3"},
    )[0]
    np.testing.assert_array_equal(found, [CORNERS[0, 1], CORNERS[0, 0], np.zeros(4)])


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes", "message"),
    [
        (
            "TopK",
            11,
            [DATA, whole(9)],
            {"axis": "1", "mode": "max", "sort": "value"},
            "k is 9, the axis has 3 elements",
        ),
        ("NonMaxSuppression", 9, [CORNERS, SCORES[:1]], {}, "boxes of shape"),
        (
            "MulticlassNms",
            9,
            [CORNERS[:3], SCORES[0, :2], i64(40)],
            {},
            "have 40 boxes together, there are 30",
        ),
        (
            "ExperimentalDetectronTopKROIs",
            6,
            [CORNERS[0], SCORES[0, 0]],
            {"max_rois": str(2**40)},
            "more than the limit",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals(
    name: str, version: int, inputs: list[np.ndarray], attributes: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ours(name, version, inputs, attributes)
