"""ONNX-ML operations over maps and categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ops.bounds import check_elements
from loopscope.ops.declare import Array


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
