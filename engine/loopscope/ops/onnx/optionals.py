"""ONNX's optionals and Identity, whose values may be tensors, sequences or optionals."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopscope.ops.values import NO_VALUE


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
