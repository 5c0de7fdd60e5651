"""ONNX-ML's LabelEncoder: keys to values, of strings and numbers in any pairing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loopscope.ops.declare import Array

Attributes = Mapping[str, Any]
_UNUSED = "_Unused"
_NAN = object()
"""Stands for NaN, which is a key like any other but does not equal itself."""


def label_encoder(data: Array, /, **attributes: Any) -> Array:
    """Every element to the value of the first key that equals it (NaN equals NaN), or to the
    default.
    """
    if "classes_strings" in attributes:
        return _first_version(data, attributes)
    keys, values = _written(attributes, "keys").tolist(), _written(attributes, "values")
    if len(keys) != len(values):
        raise ValueError(f"there are {len(keys)} keys and {len(values)} values, expected pairs")
    if any(isinstance(key, str) != (data.dtype == object) for key in keys):
        raise ValueError(
            f"the keys are {'numbers' if data.dtype == object else 'texts'}, and the data is of {data.dtype}"
        )
    return _looked_up(data, keys, values, _default(attributes, values.dtype))


def _looked_up(data: np.ndarray, keys: list[Any], values: np.ndarray, default: Any) -> np.ndarray:
    known = {_key(key): place for place, key in reversed(list(enumerate(keys)))}
    places = np.array(
        [known.get(_key(one), len(keys)) for one in data.reshape(-1).tolist()], np.int64
    )
    table = np.empty(len(keys) + 1, values.dtype)
    table[:-1], table[-1] = values, default
    return np.asarray(table[places]).reshape(data.shape)


def _key(one: Any) -> Any:
    return _NAN if one != one else one


def _written(attributes: Attributes, what: str) -> np.ndarray:
    """The keys or the values, by the attribute that holds them."""
    for name, kind in (("strings", object), ("int64s", np.int64), ("floats", np.float32)):
        if attributes.get(f"{what}_{name}"):
            return np.array(attributes[f"{what}_{name}"], kind)
    tensor = attributes.get(f"{what}_tensor")
    if tensor is None:
        raise ValueError(f"no attribute holds the {what}")
    made = np.ravel(tensor)
    return (
        np.array([one.decode() if isinstance(one, bytes) else one for one in made.tolist()], object)
        if made.dtype == object
        else made
    )


def _default(attributes: Attributes, dtype: np.dtype) -> Any:
    tensor = attributes.get("default_tensor")
    if tensor is not None:
        one = np.ravel(tensor)[0]
        return one.decode() if isinstance(one, bytes) else one
    if dtype.kind == "O":
        return attributes.get("default_string", _UNUSED)
    return (
        attributes.get("default_float", -0.0)
        if dtype.kind == "f"
        else attributes.get("default_int64", -1)
    )


def _first_version(data: np.ndarray, attributes: Attributes) -> np.ndarray:
    """Opset 1: texts to their places in a list, or places to texts."""
    texts = list(attributes["classes_strings"])
    if data.dtype == object:
        return _looked_up(data, texts, np.arange(len(texts)), attributes.get("default_int64", -1))
    return _looked_up(
        data,
        list(range(len(texts))),
        np.array(texts, object),
        attributes.get("default_string", _UNUSED),
    )
