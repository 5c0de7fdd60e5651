"""Image operations against OpenVINO, and worked examples."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.engine.ops.oracle import agree, openvinos, ours, references

RANDOM = np.random.default_rng(8)
IMAGE = RANDOM.normal(size=(1, 2, 5, 7)).astype(np.float32)
COORDINATES = (
    "half_pixel",
    "pytorch_half_pixel",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "align_corners",
)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple")
SIZES = ((10, 14), (3, 4), (8, 5), (1, 1), (5, 7))


def _resize(
    image: np.ndarray, sizes: tuple[int, ...], axes: tuple[int, ...], **attributes: object
) -> None:
    texts = {"shape_calculation_mode": "sizes", "pads_begin": [0], "pads_end": [0], **attributes}
    inputs = [image, np.array(sizes, np.int64), np.array(axes, np.int64)]
    agree("Interpolate", 11, inputs, texts, constant=(1, 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "coordinates", "sizes"),
    list(product(("linear", "linear_onnx", "cubic"), COORDINATES, SIZES)),
)
def test_interpolate_to_sizes(mode: str, coordinates: str, sizes: tuple[int, int]) -> None:
    _resize(IMAGE, sizes, (2, 3), mode=mode, coordinate_transformation_mode=coordinates)


@pytest.mark.parametrize(
    ("rounding", "coordinates", "sizes"), list(product(NEAREST, COORDINATES, SIZES[:3]))
)
def test_interpolate_nearest(rounding: str, coordinates: str, sizes: tuple[int, int]) -> None:
    _resize(
        IMAGE,
        sizes,
        (2, 3),
        mode="nearest",
        nearest_mode=rounding,
        coordinate_transformation_mode=coordinates,
    )


@pytest.mark.parametrize(
    ("mode", "sizes"), list(product(("bilinear_pillow", "bicubic_pillow"), SIZES))
)
def test_interpolate_as_pillow(mode: str, sizes: tuple[int, int]) -> None:
    _resize(IMAGE, sizes, (2, 3), mode=mode, cube_coeff=-0.5)


@pytest.mark.parametrize("sizes", SIZES)
def test_interpolate_antialiased(sizes: tuple[int, int]) -> None:
    """OpenVINO's CPU plugin ignores the attribute; its core does what the page says."""
    inputs: list[np.ndarray] = [IMAGE, np.array(sizes, np.int64), np.array([2, 3], np.int64)]
    texts: dict[str, object] = {
        "mode": "linear",
        "antialias": True,
        "shape_calculation_mode": "sizes",
        "pads_begin": [0],
        "pads_end": [0],
    }
    agree("Interpolate", 11, inputs, texts, constant=(1, 2), oracle=references)


@pytest.mark.parametrize("cube", [-0.5, -0.75, -1.0])
def test_interpolate_cubic_coefficient(cube: float) -> None:
    _resize(IMAGE, (9, 4), (2, 3), mode="cubic", cube_coeff=cube)


@pytest.mark.parametrize("mode", ["nearest", "linear", "linear_onnx", "cubic"])
def test_interpolate_pads_first(mode: str) -> None:
    _resize(IMAGE, (9, 4), (2, 3), mode=mode, pads_begin=[0, 0, 1, 2], pads_end=[0, 0, 0, 1])


@pytest.mark.parametrize(
    ("mode", "axes"),
    [("nearest", (1, 2)), ("linear", (2,)), ("cubic", (3, 1)), ("bilinear_pillow", (1, 2))],
)
def test_interpolate_other_axes(mode: str, axes: tuple[int, ...]) -> None:
    _resize(IMAGE, (6, 3)[: len(axes)], axes, mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear", "linear_onnx"])
def test_interpolate_five_dimensions(mode: str) -> None:
    volume = RANDOM.normal(size=(1, 2, 3, 4, 5)).astype(np.float32)
    _resize(volume, (5, 2, 7), (2, 3, 4), mode=mode)


@pytest.mark.parametrize("scales", [(2.0, 1.5), (0.6, 0.7), (1.0, 0.3), (0.2, 3.3)])
@pytest.mark.parametrize("mode", ["nearest", "linear", "linear_onnx", "cubic"])
def test_interpolate_by_scales(mode: str, scales: tuple[float, float]) -> None:
    inputs: list[np.ndarray] = [IMAGE, np.array(scales, np.float32), np.array([2, 3], np.int64)]
    texts = {"mode": mode, "shape_calculation_mode": "scales", "pads_begin": [0], "pads_end": [0]}
    agree("Interpolate", 11, inputs, texts, constant=(1, 2))


@pytest.mark.parametrize(
    "coordinates",
    ["half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners"],
)
@pytest.mark.parametrize("mode", ["nearest", "linear", "linear_onnx", "cubic"])
def test_interpolate_to_nothing(mode: str, coordinates: str) -> None:
    """A scale may leave nothing of an axis; OpenVINO ends its process over some of these."""
    inputs: list[np.ndarray] = [
        IMAGE[..., :1],
        np.array([0.8, 2.0], np.float32),
        np.array([3, 2], np.int64),
    ]
    texts = {
        "mode": mode,
        "shape_calculation_mode": "scales",
        "coordinate_transformation_mode": coordinates,
    }
    (resized,) = ours("Interpolate", 11, inputs, texts)
    assert resized.shape == (*IMAGE.shape[:2], 2 * IMAGE.shape[2], 0)


def test_interpolate_length_is_a_product_of_floats() -> None:
    """10 times the f32 nearest to 0.7 is 7 in f32, and a little less in f64."""
    inputs = [_whole_image(10), np.array([0.7, 0.9], np.float32), np.array([2, 3], np.int64)]
    agree(
        "Interpolate",
        11,
        inputs,
        {"mode": "nearest", "shape_calculation_mode": "scales", "pads_begin": [0], "pads_end": [0]},
        constant=(1, 2),
    )


def _whole_image(side: int) -> np.ndarray:
    return np.arange(side * side, dtype=np.float32).reshape(1, 1, side, side)


@pytest.mark.parametrize("shapes_by", ["sizes", "scales"])
def test_interpolate_4(shapes_by: str) -> None:
    inputs: list[np.ndarray] = [
        IMAGE,
        np.array([7, 9], np.int64),
        np.array([1.5, 0.5], np.float32),
        np.array([2, 3], np.int64),
    ]
    agree(
        "Interpolate",
        4,
        inputs,
        {"mode": "linear", "shape_calculation_mode": shapes_by, "pads_begin": [0], "pads_end": [0]},
        constant=(1, 2, 3),
    )


def test_interpolate_4_without_axes() -> None:
    inputs: list[np.ndarray] = [IMAGE, np.array([1, 2, 7, 9], np.int64), np.ones(4, np.float32)]
    agree(
        "Interpolate",
        4,
        inputs,
        {"mode": "nearest", "shape_calculation_mode": "sizes", "pads_begin": [0], "pads_end": [0]},
        constant=(1, 2),
    )


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_interpolate_1(mode: str, align: bool) -> None:
    texts = {
        "axes": [2, 3],
        "mode": mode,
        "align_corners": align,
        "pads_begin": [0],
        "pads_end": [0],
    }
    agree("Interpolate", 1, [IMAGE, np.array([8, 4], np.int64)], texts, constant=(1,))


@pytest.mark.parametrize("dtype", [np.float16, np.uint8, np.int8])
@pytest.mark.parametrize("mode", ["nearest", "linear_onnx", "bilinear_pillow"])
def test_interpolate_types(mode: str, dtype: type[np.generic]) -> None:
    image = RANDOM.integers(0, 100, (1, 1, 4, 4)).astype(dtype)
    inputs = [image, np.array([8, 2], np.int64), np.array([2, 3], np.int64)]
    texts = {"mode": mode, "shape_calculation_mode": "sizes", "pads_begin": [0], "pads_end": [0]}
    oracle = references if mode == "bilinear_pillow" else openvinos
    agree("Interpolate", 11, inputs, texts, constant=(1, 2), rtol=2e-3, oracle=oracle)


@pytest.mark.parametrize(
    ("image", "sizes", "problem"),
    [
        (IMAGE, [1], "1 sizes for 2 axes"),
        (IMAGE, [2**30, 2**30], "more than the limit"),
        (IMAGE, [-1, 2], "cannot be resized"),
        (np.zeros((1, 1, 0, 3), np.float32), [2, 2], "cannot be resized"),
    ],
)
def test_interpolate_refuses(image: np.ndarray, sizes: list[int], problem: str) -> None:
    inputs = [image, np.array(sizes, np.int64), np.array([2, 3])]
    with pytest.raises(ValueError, match=problem):
        ours("Interpolate", 11, inputs, {"mode": "nearest", "shape_calculation_mode": "sizes"})


def test_interpolate_refuses_fractions_as_sizes() -> None:
    with pytest.raises(ValueError, match="expected integers"):
        ours(
            "Interpolate",
            11,
            [IMAGE, np.ones(2, np.float32), np.array([2, 3])],
            {"mode": "nearest", "shape_calculation_mode": "sizes"},
        )


@pytest.mark.parametrize(
    ("scale", "problem"),
    [(0.0, "not a positive"), (np.inf, "not a positive"), (1e30, "more than the limit")],
)
def test_interpolate_refuses_scales(scale: float, problem: str) -> None:
    inputs: list[np.ndarray] = [IMAGE, np.array([scale, 1], np.float32), np.array([2, 3])]
    with pytest.raises(ValueError, match=problem):
        ours("Interpolate", 11, inputs, {"mode": "linear", "shape_calculation_mode": "scales"})


GRID = RANDOM.uniform(-1.6, 1.6, size=(1, 3, 4, 2)).astype(np.float32)


@pytest.mark.parametrize(
    ("mode", "padding", "align"),
    list(
        product(
            ("bilinear", "bicubic", "nearest"), ("zeros", "border", "reflection"), (True, False)
        )
    ),
)
def test_grid_sample(mode: str, padding: str, align: bool) -> None:
    agree(
        "GridSample",
        9,
        [IMAGE, GRID],
        {"mode": mode, "padding_mode": padding, "align_corners": align},
        atol=1e-5,
    )


def test_grid_sample_batches() -> None:
    image, grid = (
        RANDOM.normal(size=(3, 2, 4, 5)).astype(np.float32),
        RANDOM.uniform(-1, 1, (3, 2, 2, 2)).astype(np.float32),
    )
    agree(
        "GridSample",
        9,
        [image, grid],
        {"mode": "bilinear", "padding_mode": "zeros", "align_corners": False},
        atol=1e-5,
    )


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample_of_integers(mode: str) -> None:
    image = RANDOM.integers(0, 99, (1, 2, 5, 7)).astype(np.int32)
    agree(
        "GridSample",
        9,
        [image, GRID],
        {"mode": mode, "padding_mode": "border", "align_corners": False},
    )


def test_grid_sample_nowhere() -> None:
    (found,) = ours(
        "GridSample", 9, [IMAGE, np.full((1, 1, 2, 2), np.nan, np.float32)], {"mode": "nearest"}
    )
    assert found.tolist() == np.zeros((1, 2, 1, 2)).tolist()


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("colours", ["RGB", "BGR"])
@pytest.mark.parametrize("frame", ["NV12", "I420"])
def test_video_frames(frame: str, colours: str, dtype: type[np.generic]) -> None:
    plane = RANDOM.integers(0, 256, (2, 6, 4, 1)).astype(dtype)
    agree(f"{frame}to{colours}", 8, [plane], atol=1e-3)
    luma, chroma = (
        RANDOM.integers(0, 256, (2, 4, 4, 1)).astype(dtype),
        RANDOM.integers(0, 256, (2, 2, 2, 2)).astype(dtype),
    )
    planes = [luma, chroma] if frame == "NV12" else [luma, chroma[..., :1], chroma[..., 1:]]
    agree(f"{frame}to{colours}", 8, planes, atol=1e-3)


def test_grey_frames() -> None:
    """White, black and grey have no colour: U and V are 128."""
    image = np.array([255, 0, 128, 64], np.uint8).reshape(1, 2, 2, 1).repeat(3, 3)
    (plane,) = ours("RGBtoNV12", 17, [image])
    assert plane.reshape(3, 2).tolist() == [[235, 16], [126, 71], [128, 128]]
    luma, chroma = ours("BGRtoNV12", 17, [image], {"single_plane": "false"})
    assert (luma.shape, chroma.tolist()) == ((1, 2, 2, 1), [[[[128, 128]]]])


def test_red_is_not_blue() -> None:
    red = np.zeros((1, 2, 2, 3), np.float32)
    red[..., 0] = 255
    rgb, bgr = (
        ours("RGBtoNV12", 17, [red], {"single_plane": "false"}),
        ours("BGRtoNV12", 17, [red], {"single_plane": "false"}),
    )
    np.testing.assert_allclose(rgb[1].reshape(-1), [90.26, 239.945], rtol=1e-5)
    np.testing.assert_allclose(bgr[1].reshape(-1), [239.945, 109.895], rtol=1e-5)
    assert rgb[0][0, 0, 0, 0] == pytest.approx(0.257 * 255 + 16)


@pytest.mark.parametrize("shape", [(1, 4, 4, 1), (1, 6, 3, 1), (1, 6, 4, 2), (6, 4)])
def test_frames_of_odd_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected"):
        ours("NV12toRGB", 8, [np.zeros(shape, np.uint8)])
