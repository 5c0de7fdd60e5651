"""Kinds of values in a run: sequences, maps, optionals, and tensors that hold NaNs or infinities.

Only ONNX models have values that are not tensors. Sequences are tuples, and an optional without a
value is ``NO_VALUE``. The onnx package has other forms of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NoReturn

import numpy as np

from loopscope.errors import NotKept


class _NoValue:
    """The empty optional; a singleton."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "optional without a value"

    def __bool__(self) -> bool:
        return False


NO_VALUE: Final = _NoValue()

WEIGHTS_NOT_KEPT = "depends on weights, and the run was saved without them"


class _NotKept:
    """Placeholder for a Const that a run was saved without; using it as a tensor raises
    ``NotKept``.
    """

    __slots__ = ()
    nbytes = 0
    """Memory size of the placeholder, for memory estimates."""

    def __repr__(self) -> str:
        return "not kept"

    def __getattr__(self, name: str) -> NoReturn:
        raise (
            NotKept(f"not kept: it {WEIGHTS_NOT_KEPT}")
            if not name.startswith("__")
            else AttributeError(name)
        )

    def __array__(self, *_: object, **__: object) -> NoReturn:
        raise NotKept(f"not kept: it {WEIGHTS_NOT_KEPT}")


NOT_KEPT: Final = _NotKept()


def as_array(value: Any) -> np.ndarray:
    """Return a tensor as an array, and a sequence as an array of texts that distinguish its
    elements.

    >>> as_array((np.zeros(2, np.float32),)).tolist()
    ['float32[2] 989042d6']
    """
    if is_tensor(value):
        return np.asarray(value)
    texts = (
        [_digest(element) for element in value] if isinstance(value, tuple) else [repr(value)[:120]]
    )
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def _digest(value: Any) -> str:
    array = as_array(value)
    data = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return (
        f"{array.dtype}[{','.join(map(str, array.shape))}] "
        f"{hashlib.blake2b(data, digest_size=4).hexdigest()}"
    )


def is_tensor(value: Any) -> bool:
    """Return True for a tensor; False for a sequence (a tuple), a map, an empty optional, or a
    value that was not saved.
    """
    return not isinstance(value, (tuple, Mapping, _NoValue, _NotKept))


def described(value: Any) -> str:
    """Return a short description of a value, for errors where an array was expected."""
    if value is None:
        return "nothing"
    if value is NO_VALUE:
        return "an optional without a value"
    if isinstance(value, (tuple, list)):
        return f"a sequence of {len(value):,}"
    if isinstance(value, np.ndarray):
        return "an array"
    return "a map" if isinstance(value, Mapping) else f"a Python {type(value).__name__}"


def shortest(array: np.ndarray) -> np.ndarray:
    """Return narrow floats as the f64 of the shortest text that their type reads back; other arrays
    unchanged.

    >>> shortest(np.array([0.1, 2.5], np.float32)).tolist()
    [0.1, 2.5]
    """
    # The kind "f" includes float8_e5m2, which is not built in.
    narrow = array.dtype.kind == "f" and array.dtype.isbuiltin == 1 and array.dtype.itemsize < 8
    return array.astype(str).astype(np.float64) if narrow else array


UnusualFloat = Literal["nan", "infinity"]
NOUNS: dict[UnusualFloat | None, str] = {
    "nan": "NaN",
    "infinity": "infinity",
    None: "NaN or infinity",
}


def rows_with(column: np.ndarray, kind: UnusualFloat | None) -> np.ndarray:
    """Return True for each entry along the first axis that contains an unusual float; None means
    both kinds.
    """
    if column.dtype.kind not in "fV" or column.dtype.names or not column.size:
        return np.zeros(len(column), np.bool_)
    numbers = column.astype(np.float32) if column.dtype.kind == "V" else column
    matches = (
        np.isnan(numbers)
        if kind == "nan"
        else np.isinf(numbers)
        if kind == "infinity"
        else ~np.isfinite(numbers)
    )
    return np.asarray(matches.any(axis=tuple(range(1, numbers.ndim))))


def holds_unusual(value: Any, kind: UnusualFloat | None) -> bool:
    """Return True if a value, or a tensor of a sequence, contains an unusual float; False for other
    than float tensors.
    """
    if isinstance(value, tuple):
        return any(holds_unusual(item, kind) for item in value)
    return is_tensor(value) and bool(rows_with(np.asarray(value).reshape(1, -1), kind)[0])


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
