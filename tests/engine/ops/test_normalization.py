"""Category normalization against OpenVINO and the formulas of its pages."""

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
    name: str,
    version: int,
    inputs: Sequence[Value],
    attributes: Mapping[str, object],
    constant: tuple[int, ...] = (),
) -> None:
    agree(name, version, inputs, attributes, constant=constant, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 4, 5, 6), (2, 4), (2, 4, 3), (1, 4, 2, 3, 2)], ids=str)
def test_batch_norm_inference(shape: tuple[int, ...]) -> None:
    data, gamma, beta, mean, variance = (
        numbers(*shape),
        numbers(4),
        numbers(4),
        numbers(4),
        np.abs(numbers(4)),
    )
    close(
        "BatchNormInference",
        5,
        [data, gamma, beta, mean, variance],
        {"epsilon": 1e-3},
        (1, 2, 3, 4),
    )
    # Files of opset1 carry the data as third input, whatever the page says; both orders work.
    close(
        "BatchNormInference",
        1,
        [gamma, beta, data, mean, variance],
        {"epsilon": 1e-3},
        (0, 1, 3, 4),
    )
    by_file = ours(
        "BatchNormInference", 1, [gamma, beta, data, mean, variance], {"epsilon": "0.001"}
    )[0]
    by_page = ours(
        "BatchNormInference", 1, [data, gamma, beta, mean, variance], {"epsilon": "0.001"}
    )[0]
    np.testing.assert_array_equal(by_file, by_page)


@pytest.mark.parametrize("shape", [(2, 4, 5, 6), (2, 4), (2, 4, 3)], ids=str)
def test_grn(shape: tuple[int, ...]) -> None:
    close("GRN", 1, [numbers(*shape)], {"bias": 0.5})


@pytest.mark.parametrize(
    ("shape", "groups"),
    [((2, 6, 5, 4), 3), ((2, 6), 3), ((2, 6, 3), 6), ((2, 6, 2, 2, 3), 1)],
    ids=str,
)
def test_group_normalization(shape: tuple[int, ...], groups: int) -> None:
    close(
        "GroupNormalization",
        12,
        [numbers(*shape), numbers(6), numbers(6)],
        {"num_groups": groups, "epsilon": 1e-4},
    )


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("axes", [[1], [2, 3]])
def test_lrn(axes: list[int], size: int) -> None:
    """For an even size the page's example reaches over more elements than ``size``: with
    OpenVINO, we do not.
    """
    attributes: dict[str, object] = {"alpha": 0.3, "beta": 0.75, "bias": 1.0, "size": size}
    close("LRN", 1, [numbers(2, 7, 3, 4), np.array(axes)], attributes, (1,))


def test_lrn_along_any_axis() -> None:
    """One spatial axis, which OpenVINO's CPU refuses."""
    data = numbers(2, 3, 5, 4)
    squares = np.pad(data**2, ((0, 0), (0, 0), (1, 1), (0, 0)))
    total = squares[:, :, :-2] + squares[:, :, 1:-1] + squares[:, :, 2:]
    got = ours(
        "LRN", 1, [data, np.array([-2])], {"alpha": "0.3", "beta": "0.75", "bias": "1", "size": "3"}
    )[0]
    np.testing.assert_allclose(got, data / (1 + 0.1 * total) ** 0.75, rtol=1e-5)


AXES = [[1], [1, 2, 3], [2, 3], [0, 1, 2, 3], [-1], [0, 2]]


@pytest.mark.parametrize("mode", ["inside_sqrt", "outside_sqrt"])
@pytest.mark.parametrize("axes", AXES, ids=str)
def test_mvn_6(axes: list[int], mode: str) -> None:
    for variance in (True, False):
        attributes: dict[str, object] = {
            "eps": 0.1,
            "eps_mode": mode,
            "normalize_variance": variance,
        }
        close("MVN", 6, [numbers(2, 7, 3, 4), np.array(axes)], attributes, (1,))


@pytest.mark.parametrize(
    "attributes",
    [
        {"across_channels": True},
        {"across_channels": False},
        {"reduction_axes": [2, 3]},
        {"reduction_axes": [1, -1, 2]},
    ],
    ids=str,
)
def test_mvn_2(attributes: dict[str, object]) -> None:
    for variance in (True, False):
        close(
            "MVN",
            2,
            [numbers(2, 7, 3, 4)],
            {**attributes, "eps": 0.1, "normalize_variance": variance},
        )


@pytest.mark.parametrize("mode", ["add", "max"])
@pytest.mark.parametrize("axes", [[1], [1, 2, 3], [2, 3], [0, 1, 2, 3], [-1], []], ids=str)
def test_normalize_l2(axes: list[int], mode: str) -> None:
    close(
        "NormalizeL2",
        1,
        [numbers(2, 7, 3, 4), np.array(axes, np.int64)],
        {"eps": 0.1, "eps_mode": mode},
        (1,),
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize(
    ("name", "version", "others", "attributes"),
    [
        (
            "MVN",
            6,
            [np.array([1])],
            {"eps": "0.1", "eps_mode": "inside_sqrt", "normalize_variance": "true"},
        ),
        ("NormalizeL2", 1, [np.array([1])], {"eps": "0.1", "eps_mode": "add"}),
        ("GRN", 1, [], {"bias": "0.5"}),
        ("LRN", 1, [np.array([1])], {"alpha": "0.3", "beta": "0.75", "bias": "1", "size": "3"}),
    ],
)
def test_types(
    name: str,
    version: int,
    others: list[np.ndarray],
    attributes: dict[str, str],
    dtype: type[np.generic],
) -> None:
    data = numbers(3, 5, 4).astype(dtype)
    wide = ours(name, version, [data.astype(np.float32), *others], attributes)[0]
    got = ours(name, version, [data, *others], attributes)[0]
    assert got.dtype == dtype
    if dtype is np.float64:
        np.testing.assert_allclose(got, wide, rtol=1e-4)
    else:
        np.testing.assert_array_equal(got, wide.astype(dtype))


def test_nothing_stays_nothing() -> None:
    attributes = {"eps": "0.1", "eps_mode": "inside_sqrt", "normalize_variance": "true"}
    for shape in ((0, 3), (3, 0)):
        assert ours("MVN", 6, [numbers(*shape), np.array([1])], attributes)[0].shape == shape


def test_a_scalar_has_no_axes() -> None:
    attributes = {"eps": "0.1", "eps_mode": "inside_sqrt", "normalize_variance": "true"}
    np.testing.assert_array_equal(
        ours("MVN", 6, [np.float32(3), np.array([], np.int64)], attributes)[0], np.float32(0)
    )


@pytest.mark.parametrize(
    ("name", "version", "inputs", "attributes"),
    [
        (
            "MVN",
            6,
            [numbers(2, 3), np.array([2])],
            {"eps": "0.1", "eps_mode": "inside_sqrt", "normalize_variance": "true"},
        ),
        (
            "MVN",
            6,
            [numbers(2, 3), np.array([1])],
            {"eps": "0.1", "eps_mode": "beside", "normalize_variance": "true"},
        ),
        (
            "GroupNormalization",
            12,
            [numbers(2, 6, 3), numbers(6), numbers(6)],
            {"num_groups": "4", "epsilon": "0.1"},
        ),
        (
            "GroupNormalization",
            12,
            [numbers(2, 6, 3), numbers(5), numbers(6)],
            {"num_groups": "2", "epsilon": "0.1"},
        ),
        (
            "BatchNormInference",
            5,
            [numbers(2, 4), numbers(4), numbers(4), numbers(4), numbers(3)],
            {"epsilon": "0.1"},
        ),
        ("NormalizeL2", 1, [numbers(2, 3), np.array([1, -1])], {"eps": "0.1", "eps_mode": "add"}),
    ],
)
def test_refusals(
    name: str, version: int, inputs: list[np.ndarray], attributes: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"axis|eps_mode|channels|does not fit|axes"):
        ours(name, version, inputs, attributes)
