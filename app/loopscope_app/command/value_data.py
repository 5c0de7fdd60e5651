"""Values as strict JSON: whole if short, else a summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir import is_whole, type_name
from loopscope.ops import NO_VALUE, NOT_KEPT, shortest

SHORT = 64
"""Number of elements up to which a value is whole."""


def value_data(value: Any, limit: int = SHORT) -> dict[str, Any]:
    """Return a value as JSON: whole up to ``limit`` elements, else a summary.

    A tensor has ``type`` and ``shape``. Any other value of ONNX has a ``kind``: a sequence, a map,
    an empty optional, or a value that was not stored.
    """
    if value is None or value is NO_VALUE:
        return {"kind": "nothing"}
    if value is NOT_KEPT:
        return {"kind": "not kept"}
    if isinstance(value, tuple):
        return {
            "kind": "sequence",
            **_elements(value, limit, lambda element: value_data(element, limit)),
        }
    if isinstance(value, Mapping):
        pairs = [
            (getattr(key, "item", lambda key=key: key)(), element) for key, element in value.items()
        ]
        return {
            "kind": "map",
            **_elements(pairs, limit, lambda pair: [pair[0], value_data(pair[1], limit)]),
        }
    array = np.asarray(value)
    data: dict[str, Any] = {"type": type_name(array.dtype), "shape": list(array.shape)}
    if array.size <= limit and max(array.shape, default=0) <= limit:
        return {**data, "value": numbers(array)}
    flat = array.reshape(-1)
    return {
        **data,
        "summary": _summary(flat),
        "first": numbers(flat[:8]),
        "last": numbers(flat[-8:]),
    }


def _elements(elements: Sequence[Any], limit: int, to_data: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the elements of a sequence or a map: all up to ``limit``, else the first and the
    last.
    """
    if len(elements) <= limit:
        return {"length": len(elements), "value": [to_data(element) for element in elements]}
    return {
        "length": len(elements),
        "first": [to_data(element) for element in elements[:8]],
        "last": [to_data(element) for element in elements[-8:]],
    }


def numbers(array: np.ndarray) -> Any:
    """Return the elements as JSON; a float becomes the shortest number that its type reads as
    equal.
    """
    return strict(values(shortest(array)).tolist())


def _summary(flat: np.ndarray) -> dict[str, Any]:
    if flat.dtype.kind in "Oc":
        return {"elements": flat.size}
    floats = values(flat).astype(np.float64)
    finite = floats[np.isfinite(floats)]
    counts = {
        "elements": flat.size,
        "nan": int(np.isnan(floats).sum()),
        "infinite": int(np.isinf(floats).sum()),
    }
    if not finite.size:
        return counts
    return {
        **counts,
        "min": strict(float(finite.min())),
        "max": strict(float(finite.max())),
        "mean": strict(float(finite.mean())),
    }


def values(array: np.ndarray) -> np.ndarray:
    """Return an array whose ``tolist`` returns Python numbers or texts.

    Narrow types are widened, and packed types become their codes.
    """
    if array.dtype.names:
        return array[array.dtype.names[0]]
    if array.dtype.kind == "O" or array.dtype.isbuiltin:
        return array
    return array.astype(np.int64 if is_whole(array.dtype) else np.float64)


def strict(value: Any) -> Any:
    """Return a value with NaN and infinities as strings and complex numbers as pairs, as JSON
    requires.

    >>> strict([1.5, [float("nan"), float("-inf")], "x"])
    [1.5, ['NaN', '-Infinity'], 'x']
    """
    if isinstance(value, list):
        return [strict(item) for item in value]
    if isinstance(value, complex):
        return [strict(value.real), strict(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
