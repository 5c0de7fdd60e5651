"""Category signals against OpenVINO, and against numpy where it computes nothing or nonsense."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ml_dtypes
import numpy as np
import pytest

from tests.engine.ops.oracle import Value, agree, ours

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


def close(
    name: str, version: int, inputs: Sequence[Value], attributes: Mapping[str, object] | None = None
) -> None:
    agree(
        name,
        version,
        inputs,
        attributes,
        constant=range(1 if "DFT" in name else 2, len(inputs)),
        rtol=1e-4,
        atol=3e-5,
    )


AXES = [[0], [1, 2], [-1], [2, 0], [0, 1, 2]]


@pytest.mark.parametrize("axes", AXES, ids=str)
def test_transforms(axes: list[int]) -> None:
    for name in ("DFT", "IDFT"):
        close(name, 7, [numbers(3, 4, 5, 2), np.array(axes)])
    close("RDFT", 9, [numbers(3, 4, 5), np.array(axes)])
    close("IRDFT", 9, [numbers(3, 4, 5, 2), np.array(axes)])


@pytest.mark.parametrize("size", [[6, -1], [2, 5], [7, 8], [3, 3]], ids=str)
def test_signal_sizes(size: list[int]) -> None:
    for name in ("DFT", "IDFT"):
        close(name, 7, [numbers(3, 4, 5, 2), np.array([1, 0]), np.array(size)])


@pytest.mark.parametrize("size", [(6, 3), (2, 5), (3, 3), (7, 8)], ids=str)
def test_real_signal_sizes(size: tuple[int, int]) -> None:
    """OpenVINO's CPU refuses greater sizes in RDFT, reads beyond its data in IRDFT, and fails on
    -1: numpy says what is right.
    """
    data, pairs, axes = numbers(3, 4, 5), numbers(3, 4, 5, 2), np.array([1, 0])
    expected = np.fft.rfftn(data, size, (1, 0))
    np.testing.assert_allclose(
        ours("RDFT", 9, [data, axes, np.array(size)])[0],
        np.stack([expected.real, expected.imag], -1),
        rtol=1e-4,
        atol=1e-5,
    )
    back = np.fft.irfftn(pairs[..., 0] + 1j * pairs[..., 1], size, (1, 0))
    np.testing.assert_allclose(
        ours("IRDFT", 9, [pairs, axes, np.array(size)])[0], back, rtol=1e-4, atol=1e-5
    )


def test_a_size_of_minus_one_is_the_whole_axis() -> None:
    data, axes = numbers(3, 4), np.array([0, 1])
    np.testing.assert_array_equal(
        ours("RDFT", 9, [data, axes, np.array([-1, -1])])[0], ours("RDFT", 9, [data, axes])[0]
    )
    pairs = numbers(3, 4, 2)
    np.testing.assert_array_equal(
        ours("IRDFT", 9, [pairs, axes, np.array([3, -1])])[0], ours("IRDFT", 9, [pairs, axes])[0]
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_types(dtype: type[np.generic]) -> None:
    data = numbers(4, 5, 2).astype(dtype)
    got = ours("DFT", 7, [data, np.array([0, 1])])[0]
    wide = ours("DFT", 7, [data.astype(np.float32), np.array([0, 1])])[0]
    assert got.dtype == dtype
    np.testing.assert_allclose(
        got.astype(np.float64), wide.astype(dtype).astype(np.float64), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("transpose", [True, False])
@pytest.mark.parametrize(
    ("shape", "window", "size", "step"),
    [((56,), 7, 11, 3), ((3, 56), 11, 11, 3), ((3, 56), 8, 8, 5), ((2, 16), 4, 16, 4)],
)
def test_stft(shape: tuple[int, ...], window: int, size: int, step: int, transpose: bool) -> None:
    close(
        "STFT",
        15,
        [numbers(*shape), numbers(window), np.array(size), np.array(step)],
        {"transpose_frames": transpose},
    )


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("length", [None, 30, 64, 45])
def test_istft(length: int | None, center: bool, normalized: bool) -> None:
    """For an odd frame and ``center`` the default length is the runtime's 46, which files carry,
    where the page says 45.
    """
    more = [] if length is None else [np.array(length)]
    for shape, window in (
        ((6, 16, 2), np.abs(numbers(7)) + 0.5),
        ((4, 6, 16, 2), np.abs(numbers(11)) + 0.2),
    ):
        attributes = {"center": center, "normalized": normalized}
        close("ISTFT", 16, [numbers(*shape), window, np.array(11), np.array(3), *more], attributes)


def test_istft_undoes_stft() -> None:
    signal, window = numbers(2, 64), np.hanning(16).astype(np.float32)
    frames = ours(
        "STFT", 15, [signal, window, np.array(16), np.array(4)], {"transpose_frames": "true"}
    )[0]
    back = ours(
        "ISTFT",
        16,
        [frames, window, np.array(16), np.array(4)],
        {"center": "false", "normalized": "false"},
    )[0]
    np.testing.assert_allclose(back[:, 1:-1], signal[:, 1:-1], atol=1e-4)


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes", "message"),
    [
        ("DFT", 7, [numbers(3, 3), np.array([0])], {}, "real and imaginary"),
        ("DFT", 7, [numbers(3, 2), np.array([1])], {}, "axis 1"),
        ("DFT", 7, [numbers(3, 4, 2), np.array([0, -2])], {}, "twice"),
        ("DFT", 7, [numbers(3, 4, 2), np.array([0]), np.array([2**40])], {}, "more than the limit"),
        ("RDFT", 9, [numbers(3, 4), np.array([0]), np.array([0])], {}, "at least 1"),
        (
            "STFT",
            15,
            [numbers(8), numbers(4), np.array(9), np.array(1)],
            {"transpose_frames": "true"},
            "no frame",
        ),
        (
            "STFT",
            15,
            [numbers(8), numbers(5), np.array(4), np.array(1)],
            {"transpose_frames": "true"},
            "does not fit",
        ),
        (
            "STFT",
            15,
            [numbers(8), numbers(4), np.array(4), np.array(0)],
            {"transpose_frames": "true"},
            "at least 1",
        ),
        (
            "ISTFT",
            16,
            [numbers(6, 4, 2), numbers(4), np.array(8), np.array(2)],
            {"center": "true", "normalized": "false"},
            "transforms",
        ),
    ],
)
def test_refusals(
    name: str, version: int, inputs: list[np.ndarray], attributes: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ours(name, version, inputs, attributes)
