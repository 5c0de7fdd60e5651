"""ONNX values other than tensors: their form in the machine, and the operations on optionals.

Sequences are tuples, and an optional without a value is ``NO_VALUE``. Identity passes on any value.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import numpy as np

from loopscope.ops.values import NO_VALUE


def taken(value: Any) -> Any:
    """Convert a value of the machine to one that reference kernels take: arrays, lists of arrays,
    dictionaries, None.
    """
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, tuple):
        return [taken(item) for item in value]
    if isinstance(value, MappingProxyType):
        return dict(value)
    return None if value is NO_VALUE else value


def given(value: Any) -> Any:
    """Convert a result of a reference kernel to a value of the machine: immutable, numbers of rank
    0 as numpy scalars.
    """
    if isinstance(value, np.ndarray):
        return _settle(value)
    if isinstance(value, (list, tuple)):
        return tuple(given(item) for item in value)
    if value is None:
        return NO_VALUE
    if isinstance(value, dict):
        return MappingProxyType(value)
    return _settle(np.asarray(value))


_TEXTS: Final = "US"


def _settle(array: np.ndarray) -> Any:
    if array.dtype.kind in _TEXTS:
        texts = np.empty(array.shape, dtype=object)
        texts.reshape(-1)[:] = [
            text.decode("utf-8", "replace") if isinstance(text, bytes) else text
            for text in array.reshape(-1).tolist()
        ]
        return texts
    if array.ndim == 0 and array.dtype != object and array.dtype.names is None:
        return array[()]
    return array


def identity(value: Any, /) -> Any:
    """Return the same value: a tensor, a sequence or an optional."""
    return value


def optional(value: Any = None, /, **types: object) -> Any:
    """Return an optional with the value, or without a value."""
    return NO_VALUE if value is None else value


def optional_has_element(value: Any = None, /) -> Any:
    """Return True if there is a value."""
    return np.bool_(value is not None and value is not NO_VALUE)


def optional_get_element(value: Any = None, /) -> Any:
    """Return the value. Raise ``ValueError`` if there is none."""
    if value is None or value is NO_VALUE:
        raise ValueError("the optional holds no value")
    return value
