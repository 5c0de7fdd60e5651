"""ONNX values in the machine: sequences as tuples, an optional without a value as ``NO_VALUE``."""

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
