"""ONNX's optionals and Identity, whose values may be tensors, sequences or optionals."""

from __future__ import annotations

from typing import Any

import numpy as np

from loopscope.ops.values import NO_VALUE


def identity(value: Any, /) -> Any:
    """The very same value, a tensor, sequence or optional."""
    return value


def optional(value: Any = None, /, **types: object) -> Any:
    """An optional that holds the value, or nothing."""
    return NO_VALUE if value is None else value


def optional_has_element(value: Any = None, /) -> Any:
    """Whether there is a value."""
    return np.bool_(value is not None and value is not NO_VALUE)


def optional_get_element(value: Any = None, /) -> Any:
    """The value; ``ValueError`` when there is none."""
    if value is None or value is NO_VALUE:
        raise ValueError("the optional holds no value")
    return value
