"""Category pooling against OpenVINO, and the examples of its pages."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engine.ops.oracle import agree, ours, references

RANDOM = np.random.default_rng(0)
ROUNDINGS = ["floor", "ceil", "ceil_torch"]
AUTO_PADS = ["explicit", "valid", "same_upper", "same_lower"]


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def window(
    kernel: list[int], strides: list[int], begin: list[int], end: list[int], **more: object
) -> dict[str, object]:
    return {"kernel": kernel, "strides": strides, "pads_begin": begin, "pads_end": end, **more}


@pytest.mark.parametrize("auto_pad", AUTO_PADS)
@pytest.mark.parametrize(
    ("version", "rounding"),
    [(8, "floor"), (8, "ceil"), *((14, rounding) for rounding in ROUNDINGS)],
)
def test_max_pool_with_indices(version: int, rounding: str, auto_pad: str) -> None:
    common = {"rounding_type": rounding, "auto_pad": auto_pad}
    for shape, attributes in [
        (
            (2, 3, 9, 8),
            window(
                [3, 2], [2, 3], [1, 0], [1, 1], dilations=[1, 2], index_element_type="i64", axis=0
            ),
        ),
        (
            (2, 3, 9, 8),
            window(
                [3, 2], [2, 1], [1, 0], [1, 1], dilations=[1, 2], index_element_type="i32", axis=2
            ),
        ),
        ((2, 3, 9), window([3], [2], [1], [1], dilations=[1], index_element_type="i64", axis=-1)),
        (
            (2, 3, 9, 8, 5),
            window(
                [3, 2, 2],
                [2, 1, 1],
                [1, 0, 0],
                [1, 1, 0],
                dilations=[1, 1, 1],
                index_element_type="i64",
                axis=1,
            ),
        ),
    ]:
        agree("MaxPool", version, [numbers(*shape)], {**attributes, **common})


@pytest.mark.parametrize("auto_pad", AUTO_PADS)
@pytest.mark.parametrize("rounding", ["floor", "ceil"])
def test_max_pool(rounding: str, auto_pad: str) -> None:
    for shape, attributes in [
        ((2, 3, 9, 9), window([3, 2], [2, 2], [1, 0], [1, 1])),
        ((2, 3, 9), window([3], [2], [1], [1])),
        ((2, 3, 5, 6, 7), window([2, 3, 2], [1, 2, 2], [0, 1, 0], [1, 1, 0])),
        ((2, 3, 9, 7), window([1, 1], [2, 3], [0, 0], [0, 0])),
    ]:
        agree(
            "MaxPool",
            1,
            [numbers(*shape)],
            {**attributes, "rounding_type": rounding, "auto_pad": auto_pad},
        )


def test_of_equal_maxima_the_first_counts() -> None:
    data = RANDOM.integers(0, 3, (2, 3, 9, 8)).astype(np.float32)
    attributes = window(
        [3, 3], [1, 2], [1, 1], [1, 1], dilations=[1, 1], index_element_type="i64", axis=2
    )
    agree("MaxPool", 8, [data], {**attributes, "rounding_type": "floor", "auto_pad": "explicit"})


def test_a_window_of_padding_alone_has_the_least_number() -> None:
    """The page calls padding minus infinity; OpenVINO starts from the least finite number."""
    attributes = window([2], [3], [0], [1], rounding_type="ceil", auto_pad="explicit")
    agree("MaxPool", 1, [np.ones((1, 1, 5), np.float32)], attributes)
    agree("MaxPool", 1, [np.ones((1, 1, 5), np.float16)], attributes, oracle=references)
    places = {**attributes, "dilations": [1], "index_element_type": "i64", "axis": 0}
    agree("MaxPool", 8, [np.ones((1, 2, 5), np.float32)], places)
    agree("MaxPool", 8, [np.array([0, 1, 2, 0, 0], np.uint8).reshape(1, 1, 5)], places)


SPEC_SQUARE = np.array([[-1, 2, 3], [4, 5, -6], [-7, 8, 9]], np.float32).reshape(1, 1, 3, 3)
COUNTING = np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3)


@pytest.mark.parametrize(
    ("data", "attributes", "maxima", "indices"),
    [
        (
            SPEC_SQUARE,
            {"kernel": "2,2", "strides": "1,1", "pads_begin": "1,1", "pads_end": "1,1"},
            [
                [-1, 2, 3, 3],
                [4, 5, 5, 3],
                [4, 8, 9, 9],
                [-7, 8, 9, 9],
            ],  # the page: -6, which is less than 3
            [[0, 1, 2, 2], [3, 4, 4, 2], [3, 7, 8, 8], [6, 7, 8, 8]],
        ),
        (
            SPEC_SQUARE,
            {"kernel": "2,2", "strides": "1,1", "auto_pad": "same_lower"},
            [[-1, 2, 3], [4, 5, 5], [4, 8, 9]],
            [[0, 1, 2], [3, 4, 4], [3, 7, 8]],
        ),
        (
            COUNTING,
            {
                "kernel": "2,2",
                "strides": "2,2",
                "pads_begin": "1,1",
                "pads_end": "1,1",
                "rounding_type": "ceil_torch",
            },
            [[1, 3], [7, 9]],
            [[0, 2], [6, 8]],
        ),
        (
            SPEC_SQUARE,
            {"kernel": "2,2", "strides": "2,2", "auto_pad": "valid", "rounding_type": "ceil"},
            [[5, 3], [8, 9]],
            [[4, 2], [7, 8]],
        ),
        (
            COUNTING,
            {
                "kernel": "2,2",
                "strides": "1,1",
                "dilations": "2,2",
                "pads_begin": "1,1",
                "pads_end": "1,1",
            },
            [[5, 6, 5], [8, 9, 8], [5, 6, 5]],
            [[4, 5, 4], [7, 8, 7], [4, 5, 4]],
        ),
    ],
)
def test_examples_of_the_page(
    data: np.ndarray,
    attributes: dict[str, str],
    maxima: list[list[float]],
    indices: list[list[int]],
) -> None:
    results = ours("MaxPool", 14, [data], attributes)
    np.testing.assert_array_equal(results[0][0, 0], maxima)
    np.testing.assert_array_equal(results[1][0, 0], indices)


@pytest.mark.parametrize("exclude", [True, False])
@pytest.mark.parametrize("auto_pad", AUTO_PADS)
@pytest.mark.parametrize(
    ("version", "rounding"),
    [
        (1, "floor"),
        (1, "ceil"),
        *((version, rounding) for version in (14, 16) for rounding in ROUNDINGS),
    ],
)
def test_average_pool(version: int, rounding: str, auto_pad: str, exclude: bool) -> None:
    common = {"rounding_type": rounding, "auto_pad": auto_pad, "exclude-pad": exclude}
    cases = [
        ((2, 3, 9, 9), window([3, 2], [2, 2], [1, 0], [1, 1]), [1, 2]),
        ((2, 3, 8, 9), window([2, 3], [2, 2], [0, 0], [0, 0]), [1, 1]),
        ((2, 3, 8, 9, 7), window([3, 2, 2], [2, 2, 1], [0, 0, 0], [0, 0, 0]), [1, 2, 1]),
    ]
    for shape, attributes, dilations in cases:
        dilated = {"dilations": dilations} if version == 16 else {}
        agree("AvgPool", version, [numbers(*shape)], {**attributes, **dilated, **common})
    if version < 16:  # the runtime crashes on AvgPool-16 with one spatial axis
        agree("AvgPool", version, [numbers(2, 3, 9)], {**window([3], [2], [1], [1]), **common})


@pytest.mark.parametrize(("kernel", "stride"), [(1, 3), (2, 3), (1, 2)])
@pytest.mark.parametrize("auto_pad", ["same_upper", "same_lower"])
def test_ceil_may_add_a_window_beyond_automatic_padding(
    auto_pad: str, kernel: int, stride: int
) -> None:
    """The page names no number for ``same`` with ``ceil``; files carry the runtime's."""
    attributes = {
        "kernel": str(kernel),
        "strides": str(stride),
        "rounding_type": "ceil",
        "auto_pad": auto_pad,
    }
    length = {(1, 3): 4, (2, 3): 3, (1, 2): 5}[kernel, stride]
    assert ours("MaxPool", 1, [numbers(1, 1, 8)], attributes)[0].shape == (1, 1, length)


def test_a_mean_of_nothing_is_zero() -> None:
    """A window beyond all data: OpenVINO's reference says 0, its CPU sometimes NaN."""
    attributes = {
        "kernel": "2",
        "strides": "3",
        "pads_begin": "1",
        "pads_end": "0",
        "rounding_type": "ceil",
        "exclude-pad": "true",
    }
    np.testing.assert_array_equal(
        ours("AvgPool", 1, [np.full((1, 1, 5), 6, np.float32)], attributes)[0], [[[6, 6, 0]]]
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8, np.int64, np.float16])
def test_types(dtype: type[np.generic]) -> None:
    data = (numbers(2, 3, 9, 8) * 5 + 9).astype(dtype)
    attributes = window([3, 2], [2, 2], [1, 0], [1, 1], rounding_type="floor", auto_pad="explicit")
    agree("AvgPool", 1, [data], {**attributes, "exclude-pad": True}, rtol=1e-3, atol=1e-3)
    agree(
        "MaxPool",
        8,
        [data],
        {**attributes, "dilations": [1, 1], "index_element_type": "i64", "axis": 0},
    )


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    from loopscope.ops import pooling_windows

    data = numbers(3, 5, 9, 8)
    attributes = {"kernel": "3,2", "strides": "2,2", "pads_begin": "1,0", "pads_end": "1,1"}
    before = [
        *ours("MaxPool", 8, [data], attributes),
        *ours("AvgPool", 1, [data], {**attributes, "exclude-pad": "true"}),
    ]
    monkeypatch.setattr(pooling_windows, "_BLOCK_ELEMENTS", 200)
    after = [
        *ours("MaxPool", 8, [data], attributes),
        *ours("AvgPool", 1, [data], {**attributes, "exclude-pad": "true"}),
    ]
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((2, 3, 9, 8), [4, 3]),
        ((2, 3, 9), [12]),
        ((2, 3, 6, 5, 4), [3, 2, 4]),
        ((1, 2, 7, 7), [1, 1]),
    ],
)
def test_adaptive_pools(shape: tuple[int, ...], wanted: list[int]) -> None:
    agree("AdaptiveAvgPool", 8, [numbers(*shape), np.array(wanted)], constant=[1])
    data = RANDOM.integers(0, 4, shape).astype(np.float32)
    agree(
        "AdaptiveMaxPool",
        8,
        [data, np.array(wanted, np.int32)],
        {"index_element_type": "i32"},
        constant=[1],
    )


@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_adaptive_pools_of_integers(dtype: type[np.generic]) -> None:
    data = np.array([[[0, 1, 3, 3, 5]]], dtype)
    np.testing.assert_array_equal(ours("AdaptiveAvgPool", 8, [data, np.array([2])])[0], [[[1, 4]]])
    np.testing.assert_array_equal(ours("AdaptiveMaxPool", 8, [data, np.array([2])])[0], [[[3, 5]]])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"kernel": "4,4"}, "does not fit"),
        ({"kernel": "2"}, "does not fit"),
        ({"kernel": "2,2", "strides": "1"}, "strides"),
        ({"kernel": "2,2", "pads_end": "99999999,99999999"}, "more than the limit"),
        ({"kernel": "0,2"}, "at least 1"),
        ({}, "kernel"),
    ],
)
def test_pooling_refuses(attributes: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ours("MaxPool", 1, [numbers(1, 1, 3, 3)], attributes)


def test_adaptive_pools_to_far_more_places_than_elements() -> None:
    """As fast as they are written: a window for each place would take minutes."""
    data = numbers(1, 1, 3)
    (means,), (most, where) = (
        ours(
            f"Adaptive{kind}Pool",
            8,
            [data, np.array([2_000_000])],
            outputs=count,
            attributes=attributes,
        )
        for kind, count, attributes in (("Avg", 1, {}), ("Max", 2, {"index_element_type": "i64"}))
    )
    left, centre, right = data[0, 0]
    assert (
        means[0, 0, [0, 700_000, 1_000_000, -1]]
        == np.array([left, centre, centre, right], np.float32)
    ).all()
    assert means[0, 0, 666_666] == pytest.approx((left + centre) / 2)
    assert (most == data[0, 0][where]).all()
    assert most[0, 0, 666_666] == max(left, centre)


def test_adaptive_pooling_refuses() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        ours("AdaptiveAvgPool", 8, [numbers(1, 1, 3, 3), np.array([2])])
    with pytest.raises(ValueError, match="more than the limit"):
        ours("AdaptiveMaxPool", 8, [numbers(1, 1, 3, 3), np.array([2**20, 2**20])])


@pytest.mark.parametrize(
    ("shape", "kernel", "strides"),
    [((2, 3, 40, 300), [3, 3], [2, 2]), ((3, 5, 14, 16), [2, 2], [2, 2])],
)
def test_every_other_row_of_short_and_long_ones(
    shape: tuple[int, ...], kernel: list[int], strides: list[int]
) -> None:
    """Rows beside each other are joined at once where they are short: none takes anything from
    the plane after its own.
    """
    data = numbers(*shape)
    for begin, end in (([0, 0], [0, 0]), ([1, 1], [0, 1])):
        attributes = {
            **window(kernel, strides, begin, end),
            "rounding_type": "floor",
            "auto_pad": "explicit",
        }
        agree("MaxPool", 1, [data], attributes)
        agree("AvgPool", 1, [data], {**attributes, "exclude-pad": True})


def test_no_row_at_all() -> None:
    data = np.zeros((1, 2, 0, 4), np.float32)
    attributes = {
        "kernel": "2,2",
        "strides": "2,2",
        "pads_begin": "0,0",
        "pads_end": "2,0",
        "rounding_type": "ceil_torch",
        "auto_pad": "explicit",
    }
    assert ours("AvgPool", 14, [data], {**attributes, "exclude-pad": "false"})[0].shape == (
        1,
        2,
        0,
        2,
    )
