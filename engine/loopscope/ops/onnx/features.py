"""ONNX-ML's operations on features, labels and maps.

Features are scaled, imputed, encoded and joined. LabelEncoder has keys and values that are strings
and numbers in any combination.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.declare import Array
from loopscope.ops.kernel_checks import check_elements


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


Attributes = Mapping[str, Any]
_UNUSED = "_Unused"
_NAN = object()
"""Key for NaN, which does not equal itself."""


def label_encoder(data: Array, /, **attributes: Any) -> Array:
    """Return for every element the value of the first key that equals it (NaN equals NaN), or the
    default.
    """
    if "classes_strings" in attributes:
        return _encode_first_version(data, attributes)
    keys = _attribute_values(attributes, "keys").tolist()
    values = _attribute_values(attributes, "values")
    if len(keys) != len(values):
        raise ValueError(f"there are {len(keys)} keys and {len(values)} values, expected pairs")
    if any(isinstance(key, str) != (data.dtype == object) for key in keys):
        raise ValueError(
            f"the keys are {'numbers' if data.dtype == object else 'texts'}, "
            f"and the data is of {data.dtype}"
        )
    return _look_up(data, keys, values, _default(attributes, values.dtype))


def _look_up(data: np.ndarray, keys: list[Any], values: np.ndarray, default: Any) -> np.ndarray:
    known = {_key(key): place for place, key in reversed(list(enumerate(keys)))}
    places = np.array(
        [known.get(_key(element), len(keys)) for element in data.reshape(-1).tolist()], np.int64
    )
    table = np.empty(len(keys) + 1, values.dtype)
    table[:-1], table[-1] = values, default
    return np.asarray(table[places]).reshape(data.shape)


def _key(value: Any) -> Any:
    return _NAN if value != value else value


def _attribute_values(attributes: Attributes, what: str) -> np.ndarray:
    """Return the keys or the values, from the attribute that has them."""
    for name, kind in (("strings", object), ("int64s", np.int64), ("floats", np.float32)):
        if attributes.get(f"{what}_{name}"):
            return np.array(attributes[f"{what}_{name}"], kind)
    tensor = attributes.get(f"{what}_tensor")
    if tensor is None:
        raise ValueError(f"no attribute holds the {what}")
    elements = np.ravel(tensor)
    return (
        np.array(
            [
                element.decode() if isinstance(element, bytes) else element
                for element in elements.tolist()
            ],
            object,
        )
        if elements.dtype == object
        else elements
    )


def _default(attributes: Attributes, dtype: np.dtype) -> Any:
    tensor = attributes.get("default_tensor")
    if tensor is not None:
        element = np.ravel(tensor)[0]
        return element.decode() if isinstance(element, bytes) else element
    if dtype.kind == "O":
        return attributes.get("default_string", _UNUSED)
    return (
        attributes.get("default_float", -0.0)
        if dtype.kind == "f"
        else attributes.get("default_int64", -1)
    )


def _encode_first_version(data: np.ndarray, attributes: Attributes) -> np.ndarray:
    """Return positions of texts in a list, or texts at positions, for opset 1."""
    texts = list(attributes["classes_strings"])
    if data.dtype == object:
        return _look_up(data, texts, np.arange(len(texts)), attributes.get("default_int64", -1))
    return _look_up(
        data,
        list(range(len(texts))),
        np.array(texts, object),
        attributes.get("default_string", _UNUSED),
    )


def zip_map(data: Array, /, **attributes: Any) -> Any:
    """Return a map from label to value for each row."""
    labels = attributes.get("classlabels_strings") or attributes.get("classlabels_int64s") or ()
    rows = data.reshape(-1, data.shape[-1]) if data.ndim else data.reshape(1, 1)
    if rows.shape[1] != len(labels):
        raise ValueError(
            f"there are {rows.shape[1]} columns and {len(labels)} labels, expected one for each"
        )
    return [dict(zip(labels, row, strict=True)) for row in rows]


def cast_map(entries: Any, /, **attributes: Any) -> Array:
    """Return the values of a map in the order of its keys; with SPARSE each at the position of its
    key.
    """
    if not isinstance(entries, Mapping) or not all(isinstance(key, int) for key in entries):
        raise ValueError("the input is not a map of integers")
    keys = sorted(entries)
    values: Sequence[Any] = [entries[key] for key in keys]
    target = attributes.get("cast_to", "TO_FLOAT")
    if target not in _CASTS:
        raise ValueError(f"cast_to is {target[:40]!r}, expected one of {', '.join(_CASTS)}")
    result = np.array([_CASTS[target][1](value) for value in values], _CASTS[target][0])
    if attributes.get("map_form", "DENSE") == "SPARSE":
        length = attributes.get("max_map", 1)
        check_elements(max(length, 0), "the output of CastMap")
        if keys and not 0 <= keys[0] <= keys[-1] < length:
            raise ValueError(
                f"the keys lie from {keys[0]} to {keys[-1]}, expected 0 to below max_map {length}"
            )
        sparse = np.full(length, "" if target == "TO_STRING" else 0, result.dtype)
        sparse[keys] = result
        result = sparse
    return result.reshape(1, -1)


_CASTS: Mapping[str, tuple[Any, Any]] = {
    "TO_FLOAT": (np.float32, float),
    "TO_INT64": (np.int64, int),
    "TO_STRING": (object, str),
}


def category_mapper(data: Array, /, **attributes: Any) -> Array:
    """Convert texts to numbers, or numbers to texts; an element in no pair becomes the default."""
    texts, numbers = attributes.get("cats_strings") or (), attributes.get("cats_int64s") or ()
    if len(texts) != len(numbers):
        raise ValueError(f"there are {len(texts)} texts and {len(numbers)} numbers, expected pairs")
    if data.dtype == object:
        to_number, otherwise = dict(zip(texts, numbers, strict=True)), attributes["default_int64"]
        numbers = [to_number.get(str(text), otherwise) for text in data.reshape(-1)]
        return np.array(numbers, np.int64).reshape(data.shape)
    to_text, other = dict(zip(numbers, texts, strict=True)), attributes["default_string"]
    result = np.empty(data.size, object)
    result[:] = [to_text.get(int(number), other) for number in data.reshape(-1)]
    return result.reshape(data.shape)


def dict_vectorizer(entries: Any, /, **attributes: Any) -> Array:
    """Return the values of a map in the order of a list of keys, as one row. A key that the map
    does not have gives 0 or an empty text.
    """
    vocabulary = attributes.get("string_vocabulary") or attributes.get("int64_vocabulary") or ()
    if not isinstance(entries, Mapping):
        raise ValueError("the input is not a map")
    first = next(iter(entries.values()), np.float32(0))
    dtype, absent = (
        (np.dtype(object), "") if isinstance(first, str) else (np.asarray(first).dtype, 0)
    )
    result = np.full((1, len(vocabulary)), absent, dtype)
    for place, key in enumerate(vocabulary):
        result[0, place] = entries.get(key, result[0, place])
    return result
