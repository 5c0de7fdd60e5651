"""ONNX-ML's operations that make features: scaling, imputing, encoding, joining."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array


def binarizer(data: Array, /, **attributes: Any) -> Array:
    return (data > attributes.get("threshold", 0.0)).astype(data.dtype)


def _broadcast_features(values: np.ndarray, data: np.ndarray, what: str) -> np.ndarray:
    """Return one value for all features, or one for each feature (axis 1; of a vector, its
    elements), in a form that broadcasts to the data.
    """
    features = data.shape[min(1, data.ndim - 1)] if data.ndim else 1
    if values.size not in (1, features):
        raise ValueError(
            f"{what} has {values.size} numbers, expected 1 or {features}: one for each feature"
        )
    if values.size == 1:
        return values.reshape(())
    return values.reshape((1, features) + (1,) * (data.ndim - 2)) if data.ndim > 1 else values


def scaler(data: Array, /, **attributes: Any) -> Array:
    offset, scale = (
        np.array(attributes.get(name) or (default,), np.float64)
        for name, default in (("offset", 0.0), ("scale", 1.0))
    )
    shifted = data.astype(np.float64) - _broadcast_features(offset, data, "offset")
    return (shifted * _broadcast_features(scale, data, "scale")).astype(np.float32)


def normalizer(data: Array, /, **attributes: Any) -> Array:
    """Return each row divided by its greatest element, the sum of its magnitudes or its length;
    unchanged if that is 0.
    """
    if data.ndim not in (1, 2):
        raise ValueError(f"the data has shape {list(data.shape)}, expected rows of features")
    rows = data.astype(np.float64)
    match attributes.get("norm") or "MAX":
        case "MAX":
            norm = np.fmax.reduce(rows, axis=-1, keepdims=True, initial=-np.inf)
        case "L1":
            norm = np.abs(rows).sum(axis=-1, keepdims=True)
        case "L2":
            norm = np.sqrt((rows * rows).sum(axis=-1, keepdims=True))
        case other:
            raise ValueError(f"norm is {str(other)[:40]!r}, expected MAX, L1 or L2")
    return (rows / np.where(norm == 0, 1, norm)).astype(np.float32)


def imputer(data: Array, /, **attributes: Any) -> Array:
    """Replace every element that equals the missing value (NaN equals NaN) by the value of its
    feature.
    """
    kinds = (
        ("imputed_value_floats", "replaced_value_float"),
        ("imputed_value_int64s", "replaced_value_int64"),
    )
    attribute, replaced = kinds[0 if data.dtype.kind == "f" else 1]
    values = np.array(
        attributes.get(attribute) or (), np.float64 if data.dtype.kind == "f" else np.int64
    )
    if not values.size:
        raise ValueError(
            f"{attribute} is empty, expected what takes the place of missing values of {data.dtype}"
        )
    missing = np.asarray(attributes.get(replaced, 0), data.dtype)
    is_missing = np.isnan(data) if data.dtype.kind == "f" and np.isnan(missing) else data == missing
    return np.where(is_missing, _broadcast_features(values, data, attribute), data).astype(
        data.dtype
    )


def one_hot_encoder(data: Array, /, **attributes: Any) -> Array:
    """Return a new last axis with a single 1 at the position of the category. Numbers are cut to
    integers; a value without a category gives zeros.

    Of equal categories the last counts, as in ONNX Runtime. skl2onnx writes some categories more
    than once, because it cuts those of floats.
    """
    categories = (
        attributes.get("cats_strings") if data.dtype == object else attributes.get("cats_int64s")
    ) or ()
    if not categories:
        raise ValueError(
            f"there are no categories for {'texts' if data.dtype == object else 'numbers'}"
        )
    check_elements(data.size * len(categories), "the output of OneHotEncoder")
    known = {category: place for place, category in enumerate(categories)}
    keys = np.trunc(data) if data.dtype.kind == "f" else data
    places = np.array([known.get(key, -1) for key in keys.reshape(-1).tolist()], np.int64).reshape(
        data.shape
    )
    if not attributes.get("zeros", 1) and (places < 0).any():
        raise ValueError("a value is of no category, and zeros is 0")
    return (places[..., None] == np.arange(len(categories))).astype(np.float32)


def feature_vectorizer(*tensors: Array, **attributes: Any) -> Array:
    """Return the features of all inputs side by side as f32. Those of each input are cut or filled
    with zeros to the number in inputdimensions.
    """
    arrays = [
        array.reshape(len(array), math.prod(array.shape[1:]))
        for array in map(np.atleast_1d, tensors)
    ]
    lengths = attributes.get("inputdimensions") or tuple(array.shape[1] for array in arrays)
    if len(lengths) != len(arrays) or min(lengths) < 0:
        raise ValueError(
            f"inputdimensions is {list(lengths)[:8]}, "
            f"expected a number for each of {len(arrays)} inputs"
        )
    if len({len(array) for array in arrays}) > 1:
        raise ValueError(
            f"the inputs have {', '.join(str(len(array)) for array in arrays)} rows, "
            "expected as many in each"
        )
    check_elements(len(arrays[0]) * sum(lengths), "the output of FeatureVectorizer")
    parts = [np.zeros((len(arrays[0]), length), np.float32) for length in lengths]
    for part, array in zip(parts, arrays, strict=True):
        part[:, : array.shape[1]] = array[:, : part.shape[1]]
    return np.concatenate(parts, axis=1)


def array_feature_extractor(data: Array, indices: Array, /, **attributes: Any) -> Array:
    """Return the elements at some positions of the last axis; those of a vector as one row.

    Negative positions count from the end. ONNX does not define them, but skl2onnx's radius
    neighbours use -1 and do not use the result.
    """
    places = indices.reshape(-1)
    if not data.ndim or not places.size:
        raise ValueError(
            f"data of shape {list(data.shape)} and {places.size} places, "
            "expected at least one of each"
        )
    if places.min() < -data.shape[-1] or places.max() >= data.shape[-1]:
        raise ValueError(
            f"the places lie from {places.min()} to {places.max()}, "
            f"expected {-data.shape[-1]} to below {data.shape[-1]}"
        )
    return (data[None] if data.ndim == 1 else data)[..., places]
