"""Ranges, identity matrices and random numbers against OpenVINO and the worked examples of the
spec.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from loopscope.ir.element_type import ElementType
from loopscope.ops.catalogue import CATALOGUE
from loopscope.ops.declare import AttributeProblem, Known, typed
from tests.engine.ops.oracle import Value, agree, openvinos, ours, references


def drawn(
    name: str,
    version: int,
    inputs: Sequence[Value],
    attributes: Mapping[str, object],
    state: Any = 0,
) -> tuple[np.ndarray, Any]:
    """One call of a stateful kernel, and the state after it."""
    operation = next(one for one in CATALOGUE.versions(name) if one.version == version)
    assert operation.kernel is not None
    assert operation.infer is not None
    keywords = typed(
        operation,
        {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in attributes.items()
        },
    )
    array, following = operation.kernel(*inputs, **keywords, state=state)
    (known,) = operation.infer([Known.of(one) for one in inputs], keywords)
    assert known.element_type is ElementType.of(array)
    assert known.shape.lengths == array.shape
    hash(following)
    return array, following


@pytest.mark.parametrize("output_type", ["i32", "i64", "f32", "f16", "u8"])
@pytest.mark.parametrize(
    ("start", "stop", "step"), [(2, 23, 3), (0, 0, 1), (5, 0, 1), (0, 7, 7), (0, 8, 7), (3, 4, 100)]
)
def test_range(start: int, stop: int, step: int, output_type: str) -> None:
    inputs = [np.array(number, np.int64) for number in (start, stop, step)]
    agree("Range", 4, inputs, {"output_type": output_type}, constant=[0, 1, 2])


@pytest.mark.parametrize(
    ("start", "stop", "step", "output_type"),
    [
        (0.5, 3.5, 1.2, "i32"),
        (-1.7, 2.5, 1, "i32"),
        (0, 2.5, 1, "i64"),
        (1, 2.5, 0.5, "f32"),
        (0, 1, 0.1, "f32"),
        (0, 1, 0.1, "f16"),
        (3, -1, -0.5, "f32"),
    ],
)
def test_range_of_floats(start: float, stop: float, step: float, output_type: str) -> None:
    inputs = [np.array(number, np.float32) for number in (start, stop, step)]
    agree("Range", 4, inputs, {"output_type": output_type}, constant=[0, 1, 2], rtol=1e-3)


def test_range_keeps_its_own_type_in_version_1() -> None:
    for dtype in (np.int32, np.int64, np.float32, np.uint8):
        agree("Range", 1, [np.array(number, dtype) for number in (1, 9, 3)], constant=[0, 1, 2])
    assert ours("Range", 1, [np.array([23]), np.array([2]), np.array([-3])])[0].tolist() == [
        23,
        20,
        17,
        14,
        11,
        8,
        5,
    ]


def test_range_beyond_floats() -> None:
    start = 2**62 + 1
    assert ours(
        "Range", 4, [np.int64(start), np.int64(start + 2), np.int64(1)], {"output_type": "i64"}
    )[0].tolist() == [start, start + 1]
    top = 2**64 - 2
    assert ours(
        "Range", 4, [np.uint64(top), np.uint64(top + 1), np.int64(1)], {"output_type": "u64"}
    )[0].tolist() == [top]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((0, 5, 0), "step is 0"),
        ((0, 2**40, 1), "1099511627776 elements, more than the limit"),
        ((0.0, np.inf, 1.0), "stop is inf"),
        ((np.nan, 1.0, 1.0), "start is nan"),
        ((0.0, 1e300, 1e-300), "more than the limit"),
    ],
)
def test_endless_ranges_are_refused_before_they_are_allocated(
    inputs: tuple[float, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ours(
            "Range",
            4,
            [np.array(one) for one in inputs],
            {"output_type": "i64" if isinstance(inputs[1], int) else "f64"},
        )


@pytest.mark.parametrize("output_type", ["f32", "i32", "i8", "i64", "u8"])
@pytest.mark.parametrize(
    ("rows", "columns", "diagonal"),
    [(3, 4, 2), (3, 4, -1), (2, 2, 5), (2, 2, -5), (0, 3, 0), (4, 4, 0)],
)
def test_eye(rows: int, columns: int, diagonal: int, output_type: str) -> None:
    inputs = [np.array(number, np.int32) for number in (rows, columns, diagonal)]
    agree("Eye", 9, inputs, {"output_type": output_type}, constant=[0, 1, 2])
    agree(
        "Eye",
        9,
        [*inputs, np.array([2, 1], np.int32)],
        {"output_type": output_type},
        constant=[0, 1, 2, 3],
    )


def test_eye_of_any_type_and_size() -> None:
    two, none = np.array([2]), np.array([0])
    assert (
        ours("Eye", 9, [two, two, none], {"output_type": "bf16"})[0].dtype == ElementType.BF16.dtype
    )
    assert ours("Eye", 9, [two, two, none], {"output_type": "u3"})[0]["u3"].tolist() == [
        [1, 0],
        [0, 1],
    ]
    assert ours("Eye", 9, [two, two, none, np.zeros(0, np.int64)], {"output_type": "f16"})[
        0
    ].shape == (2, 2)
    with pytest.raises(ValueError, match="more than the limit"):
        ours("Eye", 9, [np.array(2**20), np.array(2**20), none], {"output_type": "f32"})
    with pytest.raises(ValueError, match="negative length"):
        ours("Eye", 9, [two, np.array(-1), none], {"output_type": "f32"})
    with pytest.raises(AttributeProblem, match="'output_type'"):
        ours("Eye", 9, [two, two, none])


def uniform_inputs(
    shape: tuple[int, ...], least: float, most: float, output_type: str
) -> list[np.ndarray]:
    dtype = ElementType(output_type).dtype
    return [np.array(shape), np.array(least).astype(dtype), np.array(most).astype(dtype)]


@pytest.mark.parametrize("alignment", ["TENSORFLOW", "PYTORCH"])
@pytest.mark.parametrize("seeds", [(150, 10), (0, 7), (2**40 + 5, 2**33 + 1)], ids=str)
@pytest.mark.parametrize(
    ("output_type", "least", "most"),
    [
        ("f32", 0, 1),
        ("f32", -3, 5),
        ("f64", 2, 10),
        ("f16", -3, 5),
        ("bf16", -3, 5),
        ("i32", 50, 100),
        ("i32", -(2**31), 2**31 - 1),
        ("i64", 0, 2**40),
    ],
)
def test_random_uniform_equals_openvinos_core(
    output_type: str, least: float, most: float, seeds: tuple[int, int], alignment: str
) -> None:
    """The CPU plugin narrows f64, f16 and i64 before it draws; the core draws what the spec
    describes.
    """
    attributes = {
        "output_type": output_type,
        "global_seed": seeds[0],
        "op_seed": seeds[1],
        "alignment": alignment,
    }
    inputs = uniform_inputs((3, 7), least, most, output_type)
    got = drawn("RandomUniform", 8, inputs, attributes)[0]
    expected = references("RandomUniform", 8, inputs, attributes, constant=(0, 1, 2))[0]
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))
    if output_type == "f32":
        np.testing.assert_array_equal(
            got, openvinos("RandomUniform", 8, inputs, attributes, constant=(0, 1, 2))[0]
        )


def test_random_uniform_examples_of_the_spec() -> None:
    seeds = {"global_seed": 150, "op_seed": 10}
    got = drawn(
        "RandomUniform", 8, uniform_inputs((3, 3), 0, 1, "f32"), {"output_type": "f32", **seeds}
    )[0]
    expected = [
        [0.7011236, 0.30539632, 0.93931055],
        [0.9456035, 0.11694777, 0.50770056],
        [0.5197197, 0.22727466, 0.991374],
    ]
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    seeds = {"global_seed": 80, "op_seed": 100}
    got = drawn(
        "RandomUniform", 8, uniform_inputs((2, 2), 2, 10, "f64"), {"output_type": "f64", **seeds}
    )[0]
    np.testing.assert_allclose(got, [[5.65927959, 4.23122376], [2.67008206, 2.36423758]], rtol=1e-8)
    got = drawn(
        "RandomUniform", 8, uniform_inputs((2, 3), 50, 100, "i32"), {"output_type": "i32", **seeds}
    )[0]
    assert got.tolist() == [[65, 70, 56], [59, 82, 92]]


def test_random_uniform_goes_on_from_its_state_as_on_the_cpu() -> None:
    """Second and third inference of OpenVINO 2026.4's CPU with these seeds; the core reserves
    fewer positions and gives others.
    """
    attributes: dict[str, object] = {"output_type": "f32", "global_seed": 150, "op_seed": 10}
    inputs = uniform_inputs((6,), 0, 1, "f32")
    first, state = drawn("RandomUniform", 8, inputs, attributes)
    second, later = drawn("RandomUniform", 8, inputs, attributes, state)
    third, _ = drawn("RandomUniform", 8, inputs, attributes, later)
    np.testing.assert_allclose(
        second, [0.9234557, 0.3423096, 0.4452479, 0.47505164, 0.63271725, 0.13825607], rtol=1e-6
    )
    np.testing.assert_allclose(
        third, [0.86742663, 0.42875004, 0.4282595, 0.123265386, 0.16226208, 0.29824317], rtol=1e-6
    )
    np.testing.assert_array_equal(drawn("RandomUniform", 8, inputs, attributes)[0], first)
    np.testing.assert_array_equal(drawn("RandomUniform", 8, inputs, attributes, state)[0], second)
    aligned: dict[str, object] = {**attributes, "alignment": "PYTORCH"}
    first, state = drawn("RandomUniform", 8, inputs, aligned)
    np.testing.assert_array_equal(drawn("RandomUniform", 8, inputs, aligned, state)[0], first)


def test_random_uniform_without_seeds_depends_on_the_run() -> None:
    inputs, attributes = uniform_inputs((100,), 0, 1, "f32"), {"output_type": "f32"}
    one, other = (drawn("RandomUniform", 8, inputs, attributes, entropy)[0] for entropy in (1, 2))
    assert (one != other).any()
    np.testing.assert_array_equal(drawn("RandomUniform", 8, inputs, attributes, 1)[0], one)
    assert 0.35 < one.mean() < 0.65


@pytest.mark.parametrize(
    ("shape", "least", "most", "message"),
    [
        ((2,), 1, 1, "minimum below the maximum"),
        ((2**20, 2**20), 0, 1, "more than the limit"),
        ((-1,), 0, 1, "negative length"),
        ((2,), 0, np.inf, "maxval is inf"),
    ],
    ids=str,
)
def test_random_uniform_refuses(
    shape: tuple[int, ...], least: float, most: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        drawn("RandomUniform", 8, uniform_inputs(shape, least, most, "f32"), {"output_type": "f32"})


def test_random_uniform_of_empty_shapes() -> None:
    assert drawn("RandomUniform", 8, uniform_inputs((2, 0), 0, 1, "f32"), {"output_type": "f32"})[
        0
    ].shape == (2, 0)
    assert (
        drawn("RandomUniform", 8, uniform_inputs((), 0, 1, "f32"), {"output_type": "f32"})[0].shape
        == ()
    )


def multinomial(
    probabilities: object, samples: int, state: Any = 0, **attributes: object
) -> tuple[np.ndarray, Any]:
    given: dict[str, object] = {
        "convert_type": "i64",
        "with_replacement": True,
        "log_probs": False,
        "global_seed": 3,
        **attributes,
    }
    return drawn(
        "Multinomial", 13, [np.array(probabilities, np.float32), np.array(samples)], given, state
    )


def test_multinomial_has_the_right_distribution() -> None:
    """The spec names no generator; the CPU's is its own, so that only the distribution can be
    compared.
    """
    probabilities = np.array([[1, 5, 4], [2, 0, 2]])
    got = multinomial(probabilities, 20000)[0]
    shares = np.array([np.bincount(row, minlength=3) for row in got]) / 20000
    np.testing.assert_allclose(
        shares, probabilities / probabilities.sum(axis=1, keepdims=True), atol=0.02
    )
    logarithms = np.log(np.maximum(probabilities, 1e-30))
    np.testing.assert_array_equal(multinomial(logarithms, 20000, log_probs=True)[0], got)


def test_multinomial_repeats_for_its_seed_and_state() -> None:
    first, state = multinomial([[1, 1, 1, 1]], 30)
    np.testing.assert_array_equal(multinomial([[1, 1, 1, 1]], 30)[0], first)
    assert (multinomial([[1, 1, 1, 1]], 30, state)[0] != first).any()
    assert (multinomial([[1, 1, 1, 1]], 30, global_seed=4)[0] != first).any()
    assert multinomial([[1, 1]], 3, convert_type="i32")[0].dtype == np.int32


def test_multinomial_without_replacement_takes_each_class_once() -> None:
    got = multinomial(np.random.default_rng(0).random((50, 6)), 6, with_replacement=False)[0]
    assert (np.sort(got, axis=1) == np.arange(6)).all()
    first = multinomial([[1, 5, 4]] * 5000, 2, with_replacement=False)[0][:, 0]
    np.testing.assert_allclose(np.bincount(first) / 5000, [0.1, 0.5, 0.4], atol=0.03)


@pytest.mark.parametrize(
    ("probabilities", "samples", "attributes", "message"),
    [
        ([1, 2], 1, {}, "expected rank 2"),
        ([[1, 2]], 3, {"with_replacement": False}, "num_samples is 3 without replacement"),
        ([[0, 0]], 1, {}, "at least one of each row positive"),
        ([[-1, 2]], 1, {}, "not negative"),
        ([[np.nan, 2]], 1, {}, "finite"),
        ([[1, 2]], -1, {}, "one count"),
    ],
)
def test_multinomial_refuses(
    probabilities: object, samples: int, attributes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        multinomial(probabilities, samples, **attributes)
