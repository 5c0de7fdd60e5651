"""Values as strict JSON: whole when they are short or asked for so, what is in them when they
are long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir import is_whole, type_name
from loopscope.ops import NO_VALUE, NOT_KEPT, shortest

SHORT = 64
"""Elements up to which a value is written out."""


def value_data(value: Any, most: int = SHORT) -> dict[str, Any]:
    """A value of at most so many elements whole; of one with more, what is in it.

    A tensor has ``type`` and ``shape``; what else ONNX has is a ``kind``: a sequence, a map, an
    optional that holds nothing, or what was not kept.
    """
    if value is None or value is NO_VALUE:
        return {"kind": "nothing"}
    if value is NOT_KEPT:
        return {"kind": "not kept"}
    if isinstance(value, tuple):
        return {"kind": "sequence", **_elements(value, most, lambda one: value_data(one, most))}
    if isinstance(value, Mapping):
        pairs = [(getattr(key, "item", lambda key=key: key)(), one) for key, one in value.items()]
        return {
            "kind": "map",
            **_elements(pairs, most, lambda pair: [pair[0], value_data(pair[1], most)]),
        }
    array = np.asarray(value)
    told: dict[str, Any] = {"type": type_name(array.dtype), "shape": list(array.shape)}
    if array.size <= most and max(array.shape, default=0) <= most:
        return {**told, "value": numbers(array)}
    flat = array.reshape(-1)
    return {
        **told,
        "summary": _summary(flat),
        "first": numbers(flat[:8]),
        "last": numbers(flat[-8:]),
    }


def _elements(elements: Sequence[Any], most: int, told: Callable[[Any], Any]) -> dict[str, Any]:
    """Those of a sequence or a map: all of them when they are few, the first and the last when
    they are many.
    """
    if len(elements) <= most:
        return {"length": len(elements), "value": [told(one) for one in elements]}
    return {
        "length": len(elements),
        "first": [told(one) for one in elements[:8]],
        "last": [told(one) for one in elements[-8:]],
    }


def numbers(array: np.ndarray) -> Any:
    """The elements as JSON has them, floats with the shortest texts that their type reads as the
    same values.
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
    """An array whose ``tolist`` gives Python numbers or texts: narrow types widened, codes of
    packed types as numbers.
    """
    if array.dtype.names:
        return array[array.dtype.names[0]]
    if array.dtype.kind == "O" or array.dtype.isbuiltin:
        return array
    return array.astype(np.int64 if is_whole(array.dtype) else np.float64)


def strict(value: Any) -> Any:
    """NaN and infinities as the strings that JSON needs, complex numbers as pairs, everything else
    as it is.

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
