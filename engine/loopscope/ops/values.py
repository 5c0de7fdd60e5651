"""Values that are no tensors: what they are and how they are told apart; only ONNX models have
them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import numpy as np

from loopscope.errors import NotKept


class _NoValue:
    """The optional that holds nothing; there is one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "optional without a value"

    def __bool__(self) -> bool:
        return False


NO_VALUE: Final = _NoValue()

WEIGHTS_NOT_KEPT = "depends on weights, and the run was saved without them"


class _NotKept:
    """Stands for a Const that a run was saved without; whatever looks into it as if it were a
    tensor is told so.
    """

    __slots__ = ()
    nbytes = 0
    """What it takes, for who counts memory."""

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
    """A tensor as an array; of a sequence, for tables and comparisons, the texts that tell its
    elements apart.

    >>> as_array((np.zeros(2, np.float32),)).tolist()
    ['float32[2] 989042d6']
    """
    if is_tensor(value):
        return np.asarray(value)
    texts = [_told(one) for one in value] if isinstance(value, tuple) else [repr(value)[:120]]
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def _told(value: Any) -> str:
    array = as_array(value)
    data = repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
    return f"{array.dtype}[{','.join(map(str, array.shape))}] {hashlib.blake2b(data, digest_size=4).hexdigest()}"


def is_tensor(value: Any) -> bool:
    """Whether a value of the machine is a tensor: not a sequence (a tuple), a map, an optional
    without a value, or what was not kept.
    """
    return not isinstance(value, (tuple, Mapping, _NoValue, _NotKept))


def described(value: Any) -> str:
    """What a value is, in a few words, where an array was expected."""
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
    """Narrow floats as the f64 of the shortest text that their own type reads as the same value;
    anything else as it is.

    >>> shortest(np.array([0.1, 2.5], np.float32)).tolist()
    [0.1, 2.5]
    """
    narrow = (
        array.dtype.kind == "f" and array.dtype.isbuiltin == 1 and array.dtype.itemsize < 8
    )  # float8_e5m2 is of this kind too
    return array.astype(str).astype(np.float64) if narrow else array
