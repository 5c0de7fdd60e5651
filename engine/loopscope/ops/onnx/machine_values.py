"""What ONNX values are in the machine: tensors as everywhere, sequences as tuples, an optional
without a value as ``NO_VALUE``.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import numpy as np

from loopscope.ops.values import NO_VALUE


def taken(value: Any) -> Any:
    """A value of the machine as a reference kernel wants it: arrays, lists of arrays,
    dictionaries, None.
    """
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, tuple):
        return [taken(one) for one in value]
    if isinstance(value, MappingProxyType):
        return dict(value)
    return None if value is NO_VALUE else value


def given(value: Any) -> Any:
    """What a reference kernel gives as a value of the machine: immutable, numbers of rank 0 as
    numpy scalars.
    """
    if isinstance(value, np.ndarray):
        return _settled(value)
    if isinstance(value, (list, tuple)):
        return tuple(given(one) for one in value)
    if value is None:
        return NO_VALUE
    if isinstance(value, dict):
        return MappingProxyType(value)
    return _settled(np.asarray(value))


_TEXTS: Final = "US"


def _settled(array: np.ndarray) -> Any:
    if array.dtype.kind in _TEXTS:
        texts = np.empty(array.shape, dtype=object)
        texts.reshape(-1)[:] = [
            one.decode("utf-8", "replace") if isinstance(one, bytes) else one
            for one in array.reshape(-1).tolist()
        ]
        return texts
    if array.ndim == 0 and array.dtype != object and array.dtype.names is None:
        return array[()]
    return array
