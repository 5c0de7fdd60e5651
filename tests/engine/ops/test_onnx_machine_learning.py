"""Operations of ai.onnx.ml but trees: as ONNX Runtime has them, and by their definition where it
has them not.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import loopscope
from loopscope.ops.onnx.table import ML_DOMAIN as DOMAIN
from loopscope.ops.onnx.table import ROWS
from loopscope.ops.onnx_catalogue import ONNX
from tests.engine.ops.machine_learning_nodes import TRANSFORMS, model, ours, same, theirs

NUMBERS = np.array([[1, -2, 3], [0, 0, 0], [5, 1, 2], [-4, -4, -1], [0.25, 0.5, 0]], np.float32)
MISSING = np.where(NUMBERS == 1, np.nan, NUMBERS).astype(np.float32)
WORDS = np.array([["a", "zz"], ["bb", "a"], ["é", ""]], object)


def test_every_operation_of_the_domain_is_our_own() -> None:
    names = {
        schema.name
        for schema in onnx.defs.get_all_schemas_with_history()
        if schema.domain == DOMAIN
    }
    assert names == {row.name for row in ROWS[DOMAIN]}
    assert all(ONNX.find(name, f"{DOMAIN} 5") is not None for name in names)


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
def test_linear_classes(classes: int, dtype: str, transform: str) -> None:
    random = np.random.default_rng(classes)
    data = [random.integers(-3, 4, (20, 4)).astype(dtype)]
    weights, offsets = (
        random.normal(size=4 * classes).tolist(),
        random.normal(size=classes).tolist(),
    )
    labels = (
        {"classlabels_strings": ["cat", "dog", "eel"][:classes]}
        if classes == 3
        else {"classlabels_ints": [5, -9]}
    )
    attributes: dict[str, Any] = {
        "coefficients": weights,
        "intercepts": offsets,
        "post_transform": transform,
        **labels,
    }
    written = model("LinearClassifier", 1, data, 2, **attributes)
    same(ours(written, data), theirs(written, data), atol=1e-5)


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
def test_two_linear_classes_of_one_score(transform: str) -> None:
    data = [np.array([[-2], [-0.3], [0], [0.2], [0.7], [3]], np.float32)]
    attributes: dict[str, Any] = {
        "coefficients": [1.0],
        "intercepts": [0.0],
        "classlabels_strings": ["no", "yes"],
    }
    written = model("LinearClassifier", 1, data, 2, **attributes, post_transform=transform)
    same(ours(written, data), theirs(written, data))


def test_probit_of_one_score_is_written_for_both_classes() -> None:
    """ONNX Runtime writes it for every other number. The inverse of the normal distribution at
    0.2 and 0.8 is -0.8416 and 0.8416.
    """
    data = [np.array([[0.2], [0.8]], np.float32)]
    attributes: dict[str, Any] = {
        "coefficients": [1.0],
        "intercepts": [0.0],
        "classlabels_ints": [0, 1],
    }
    _, scores = ours(
        model("LinearClassifier", 1, data, 2, **attributes, post_transform="PROBIT"), data
    )
    np.testing.assert_allclose(scores, [[0.8416, -0.8416], [-0.8416, 0.8416]], atol=1e-3)


@pytest.mark.parametrize("label", [{}, {"classlabels_ints": [1]}])
def test_one_linear_score_without_two_labels(label: dict[str, Any]) -> None:
    data = [np.array([[-2], [0], [3]], np.float32)]
    labels, scores = ours(
        model("LinearClassifier", 1, data, 2, coefficients=[1.0], intercepts=[0.0], **label), data
    )
    assert labels.tolist() == [0, 0, 1]
    assert scores.tolist() == [[-2], [0], [3]]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("intercepts", [None, [0.125, 0.25]])
def test_linear_targets(transform: str, intercepts: list[float] | None) -> None:
    data = [np.array([[0.1, 0.2], [0.3, 0.4], [0.25, 0.5]], np.float32)]
    attributes: dict[str, Any] = {
        "coefficients": [1.0, 0.5, 0.25, 1.0],
        "intercepts": intercepts,
        "targets": 2,
    }
    written = model("LinearRegressor", 1, data, **attributes, post_transform=transform)
    same(ours(written, data), theirs(written, data), rtol=1e-3 if transform == "PROBIT" else 1e-5)


VECTORS: dict[str, Any] = {
    "support_vectors": [0.4, -0.1, 0.6, 0.1],
    "coefficients": [0.5, -0.3, 0.7, -0.2],
    "kernel_params": [0.3, 0.5, 3.0],
}


@pytest.mark.parametrize("transform", TRANSFORMS[:4])
@pytest.mark.parametrize("chances", [False, True])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize(
    "label", [{"classlabels_ints": [5, 9]}, {"classlabels_strings": ["n", "p"]}]
)
def test_two_classes_of_support_vectors(
    label: dict[str, Any], kernel: str, chances: bool, transform: str
) -> None:
    data = [np.array([[-2], [-0.3], [0], [0.2], [0.7], [3]], np.float32)]
    attributes = {
        **VECTORS,
        **label,
        "vectors_per_class": [2, 2],
        "rho": [-0.1],
        "kernel_type": kernel,
        "post_transform": transform,
    }
    if chances:
        attributes |= {"prob_a": [-1.5], "prob_b": [0.2]}
    written = model("SVMClassifier", 1, data, 2, **attributes)
    same(ours(written, data), theirs(written, data), rtol=1e-4, atol=1e-5)


def test_several_classes_of_support_vectors_without_probabilities() -> None:
    data = [np.random.default_rng(0).normal(size=(30, 1)).astype(np.float32)]
    attributes = {
        **VECTORS,
        "vectors_per_class": [1, 2, 1],
        "rho": [-0.1, 0.2, 0.3],
        "kernel_type": "RBF",
    }
    attributes |= {
        "coefficients": [0.5, -0.3, 0.7, -0.2, 0.1, 0.2, -0.4, 0.5],
        "classlabels_strings": ["a", "b", "c"],
    }
    written = model("SVMClassifier", 1, data, 2, **attributes)
    same(ours(written, data), theirs(written, data), rtol=1e-4)


def test_a_linear_classifier_written_as_support_vectors() -> None:
    """The label is that of the greatest score; of two, ONNX Runtime names the second as soon as
    either score is above 0.
    """
    data = [np.array([[-2], [0.7], [3]], np.float32)]
    attributes: dict[str, Any] = {
        "coefficients": [0.5, -0.3, 0.7],
        "rho": [-0.1],
        "classlabels_ints": [5, 7, 9],
        "kernel_params": [0.0] * 3,
    }
    written = model("SVMClassifier", 1, data, 2, **attributes)
    same(ours(written, data), theirs(written, data))
    attributes |= {"coefficients": [0.5, -0.3], "classlabels_ints": [5, 7]}
    labels, scores = ours(model("SVMClassifier", 1, data, 2, **attributes), data)
    assert labels.tolist() == np.array([5, 7])[scores.argmax(axis=1)].tolist() == [7, 5, 5]


@pytest.mark.parametrize("one_class", [0, 1])
@pytest.mark.parametrize("supports", [0, 4])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_regression_of_support_vectors(kernel: str, supports: int, one_class: int) -> None:
    data = [np.array([[-2], [-0.3], [0], [0.2], [0.7], [3]], np.float32)]
    attributes = {
        **VECTORS,
        "n_supports": supports,
        "rho": [-0.1],
        "kernel_type": kernel,
        "one_class": one_class,
    }
    if not supports:
        attributes |= {"coefficients": [0.5], "support_vectors": None}
    written = model("SVMRegressor", 1, data, **attributes)
    same(ours(written, data), theirs(written, data))


LABELLED: dict[str, tuple[list[Any], np.ndarray]] = {
    "strings": (["a", "bb"], WORDS),
    "int64s": ([3, 0], np.array([[3, 0, 9]])),
    "floats": ([float("nan"), 0.5], np.array([0.5, np.nan, 2], np.float32)),
}


@pytest.mark.parametrize("values", LABELLED)
@pytest.mark.parametrize("keys", LABELLED)
def test_labels_of_every_pair_of_types(keys: str, values: str) -> None:
    """Of opset 4: in opset 2 ONNX Runtime does not find NaN, though ONNX says that keys are
    compared bit by bit.
    """
    known, data = LABELLED[keys]
    attributes: dict[str, Any] = {f"keys_{keys}": known, f"values_{values}": LABELLED[values][0]}
    same(
        ours(model("LabelEncoder", 4, [data], **attributes), [data]),
        theirs(model("LabelEncoder", 4, [data], **attributes), [data]),
    )
    same(
        ours(model("LabelEncoder", 2, [data], **attributes), [data]),
        ours(model("LabelEncoder", 4, [data], **attributes), [data]),
    )


@pytest.mark.parametrize("default", [False, True])
@pytest.mark.parametrize("values", ["float64", "float32", "int64", "int32", "int16"])
@pytest.mark.parametrize("keys", ["float64", "float32", "int64", "int32", "int16"])
def test_labels_of_tensors(keys: str, values: str, default: bool) -> None:
    """ONNX Runtime has few of the pairs; the first of two equal keys counts."""
    attributes: dict[str, Any] = {
        "keys_tensor": numpy_helper.from_array(np.array([1, 2, 1], keys)),
        "values_tensor": numpy_helper.from_array(np.array([7, 8, 9], values)),
        "default_tensor": numpy_helper.from_array(np.array([42], values)) if default else None,
    }
    data = [np.array([[1], [2], [3]], keys)]
    (made,) = ours(model("LabelEncoder", 4, data, **attributes), data)
    assert made.dtype == values
    assert made.tolist() == [[7], [8], [42 if default else 0 if "float" in values else -1]]


def test_labels_of_texts_as_tensors() -> None:
    attributes: dict[str, Any] = {
        "keys_tensor": numpy_helper.from_array(np.array(["a", "é"], object)),
        "values_tensor": numpy_helper.from_array(np.array(["x", "ö"], object)),
    }
    written = model("LabelEncoder", 4, [WORDS], **attributes)
    same(ours(written, [WORDS]), theirs(written, [WORDS]))


NODES: dict[str, tuple[str, list[np.ndarray], dict[str, Any]]] = {
    "the first LabelEncoder, of texts": (
        "LabelEncoder",
        [WORDS],
        {"classes_strings": ["a", "bb"], "default_int64": 7},
    ),
    "the first LabelEncoder, of numbers": (
        "LabelEncoder",
        [np.array([[0, 1, 5, -1]])],
        {"classes_strings": ["a", "bb"]},
    ),
    "Binarizer": ("Binarizer", [NUMBERS], {"threshold": 1.0}),
    "OneHotEncoder of texts": ("OneHotEncoder", [WORDS], {"cats_strings": ["a", "é"]}),
    "OneHotEncoder of floats": (
        "OneHotEncoder",
        [np.array([[0.5, 1.7, -0.2]], np.float32)],
        {"cats_int64s": [0, 1]},
    ),
    "OneHotEncoder of three axes": (
        "OneHotEncoder",
        [NUMBERS[:, :, None]],
        {"cats_int64s": [0, 1, -4]},
    ),
    "OneHotEncoder of a vector": ("OneHotEncoder", [np.array([4, 0, 9])], {"cats_int64s": [0, 9]}),
    "OneHotEncoder of a category written twice": (
        "OneHotEncoder",
        [np.array([[-2, 0, 3, 9]])],
        {"cats_int64s": [-2, 0, 0, -2, 3]},
    ),
    "OneHotEncoder of a text written twice": (
        "OneHotEncoder",
        [WORDS],
        {"cats_strings": ["a", "é", "a"]},
    ),
    "Imputer of NaN": (
        "Imputer",
        [MISSING],
        {"imputed_value_floats": [7.0, 8, 9], "replaced_value_float": float("nan")},
    ),
    "Imputer of a number": (
        "Imputer",
        [NUMBERS],
        {"imputed_value_floats": [7.0], "replaced_value_float": -4.0},
    ),
    "Imputer of integers": (
        "Imputer",
        [NUMBERS.astype(np.int64)],
        {"imputed_value_int64s": [7, 8, 9], "replaced_value_int64": 0},
    ),
    "Imputer of a vector": (
        "Imputer",
        [MISSING[0]],
        {"imputed_value_floats": [7.0, 8, 9], "replaced_value_float": float("nan")},
    ),
    "ArrayFeatureExtractor of a vector": (
        "ArrayFeatureExtractor",
        [np.arange(4.0), np.array([1, 0, 1])],
        {},
    ),
    "ArrayFeatureExtractor of a row": (
        "ArrayFeatureExtractor",
        [NUMBERS[:1], np.array([[2, 1]])],
        {},
    ),
    "ArrayFeatureExtractor of three axes": (
        "ArrayFeatureExtractor",
        [np.arange(24).reshape(2, 3, 4), np.array([3, 0])],
        {},
    ),
    "ArrayFeatureExtractor of texts": ("ArrayFeatureExtractor", [WORDS, np.array([1])], {}),
}


@pytest.mark.parametrize(("type", "data", "attributes"), NODES.values(), ids=NODES.keys())
def test_as_onnx_runtime_has_them(
    type: str, data: list[np.ndarray], attributes: dict[str, Any]
) -> None:
    written = model(type, 1, data, **attributes)
    same(ours(written, data), theirs(written, data))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize(
    ("type", "attributes"),
    [
        *(("Normalizer", {"norm": norm}) for norm in ("MAX", "L1", "L2")),
        ("Scaler", {"scale": [0.5, 2, 1], "offset": [1.0, 2, 3]}),
        ("Scaler", {"scale": [0.5], "offset": [1.0]}),
        ("FeatureVectorizer", {"inputdimensions": [2, 3]}),
    ],
)
def test_made_of_any_number_is_f32(type: str, attributes: dict[str, Any], dtype: str) -> None:
    rows = NUMBERS if dtype.startswith("int") else np.where(NUMBERS == 5, np.nan, NUMBERS)
    data = [rows.astype(dtype)] * (2 if type == "FeatureVectorizer" else 1)
    written = model(type, 1, data, **attributes)
    same(ours(written, data), theirs(written, data))


def test_features_of_no_rows() -> None:
    """ONNX Runtime ends the process where there are several inputs."""
    data = [np.zeros((0, 3), np.float32), np.zeros((0, 2), np.float32)]
    (made,) = ours(model("FeatureVectorizer", 1, data, inputdimensions=[3, 2]), data)
    assert made.shape == (0, 5)


def test_features_are_filled_with_zeros() -> None:
    data = [NUMBERS[:2], np.array([8.0, 9])]
    (made,) = ours(model("FeatureVectorizer", 1, data, inputdimensions=[4, 2]), data)
    assert made.tolist() == [[1, -2, 3, 0, 8, 0], [0, 0, 0, 0, 9, 0]]


def test_a_place_below_0_counts_from_the_end() -> None:
    """skl2onnx's radius neighbours ask for -1; ONNX Runtime refuses it."""
    data = [NUMBERS[:2], np.array([-1, 0])]
    assert ours(model("ArrayFeatureExtractor", 1, data), data)[0].tolist() == [[3, 1], [0, 0]]


@pytest.mark.parametrize(
    ("entries", "vocabulary", "expected"),
    [
        (
            {"a": np.float32(1.5), "c": np.float32(2)},
            {"string_vocabulary": ("c", "b", "a")},
            [[2, 0, 1.5]],
        ),
        ({3: "x", 5: "y"}, {"int64_vocabulary": (5, 4)}, [["y", ""]]),
    ],
)
def test_a_map_as_a_row(
    entries: dict[Any, Any], vocabulary: dict[str, Any], expected: list[list[Any]]
) -> None:
    operation = ONNX.find("DictVectorizer", f"{DOMAIN} 1")
    assert operation is not None
    assert operation.kernel is not None
    assert operation.kernel(MappingProxyType(entries), **vocabulary)[0].tolist() == expected


REFUSED: dict[str, tuple[str, int, list[np.ndarray], dict[str, Any], str]] = {
    "too few coefficients": (
        "LinearRegressor",
        1,
        [NUMBERS],
        {"coefficients": [1.0]},
        "1 coefficients for 1 times 3 features",
    ),
    "too many labels": (
        "LinearClassifier",
        1,
        [NUMBERS],
        {"coefficients": [1.0] * 6, "intercepts": [0.0] * 2, "classlabels_ints": [1, 2, 3]},
        "3 labels for 2 scores",
    ),
    "rows of rows": (
        "LinearRegressor",
        1,
        [NUMBERS[None]],
        {"coefficients": [1.0]},
        "expected rows of features",
    ),
    "no value for what is missing": (
        "Imputer",
        1,
        [NUMBERS],
        {"imputed_value_int64s": [1]},
        "imputed_value_floats is empty",
    ),
    "values of other features": (
        "Imputer",
        1,
        [NUMBERS],
        {"imputed_value_floats": [1.0, 2.0]},
        "has 2 numbers, expected 1 or 3",
    ),
    "offsets of other features": (
        "Scaler",
        1,
        [NUMBERS],
        {"offset": [1.0, 2.0], "scale": [1.0]},
        "offset has 2 numbers, expected 1 or 3",
    ),
    "another norm": ("Normalizer", 1, [NUMBERS], {"norm": "L3"}, "norm is 'L3'"),
    "an unknown category": (
        "OneHotEncoder",
        1,
        [NUMBERS],
        {"cats_int64s": [0], "zeros": 0},
        "of no category",
    ),
    "no categories": ("OneHotEncoder", 1, [WORDS], {"cats_int64s": [0]}, "no categories for texts"),
    "a place that is not there": (
        "ArrayFeatureExtractor",
        1,
        [NUMBERS, np.array([3])],
        {},
        "from 3 to 3, expected -3 to below 3",
    ),
    "keys without values": (
        "LabelEncoder",
        2,
        [WORDS],
        {"keys_strings": ["a"], "values_int64s": [1, 2]},
        "1 keys and 2 values",
    ),
    "keys of another type": (
        "LabelEncoder",
        2,
        [WORDS],
        {"keys_int64s": [1], "values_int64s": [1]},
        "the keys are numbers",
    ),
    "rows of other lengths": (
        "FeatureVectorizer",
        1,
        [NUMBERS, NUMBERS[:2]],
        {"inputdimensions": [1, 1]},
        "have 5, 2 rows",
    ),
}


@pytest.mark.parametrize(
    ("type", "version", "data", "attributes", "message"), REFUSED.values(), ids=REFUSED.keys()
)
def test_what_is_refused_says_why(
    type: str, version: int, data: list[np.ndarray], attributes: dict[str, Any], message: str
) -> None:
    outputs = 2 if type == "LinearClassifier" else 1
    with pytest.raises(loopscope.RunStopped, match=message):
        ours(model(type, version, data, outputs, **attributes), data)
