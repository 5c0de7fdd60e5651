"""ONNX-ML's LabelEncoder: keys to values, strings and numbers in any combination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from loopscope.ops.declare import Array

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
