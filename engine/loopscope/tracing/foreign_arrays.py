"""Conversion of the tensors of any framework to numpy arrays, without an import of a framework."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np

from loopscope.errors import InputError, shorten
from loopscope.tracing.trace_format import BY_NAME

_NARROW_FLOATS: dict[str, tuple[str, np.dtype]] = {
    "bfloat16": ("int16", np.dtype(ml_dtypes.bfloat16)),
    "float8_e4m3fn": ("uint8", np.dtype(ml_dtypes.float8_e4m3fn)),
    "float8_e5m2": ("uint8", np.dtype(ml_dtypes.float8_e5m2)),
    "float8_e8m0fnu": ("uint8", np.dtype(ml_dtypes.float8_e8m0fnu)),
}
"""Types that a framework cannot convert to numpy: the integers that have the same bits."""
_KNOWN_DTYPES = frozenset(element_type.dtype for element_type in BY_NAME.values())


def as_numpy(name: str, value: Any) -> np.ndarray:
    """Return a value as an array of one of the engine's element types, possibly without a copy.

    The array may also be complex. Arrays of numpy, torch, JAX, TensorFlow, MLX and CuPy are
    accepted, and everything else that numpy converts to numbers. Raise ``InputError`` for other
    values.
    """
    try:
        array = value if isinstance(value, np.ndarray) else _converted(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise InputError(
            f"the value of {name!r} is {_kind(value)}, which is not an array: {error}"
        ) from None
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype not in _KNOWN_DTYPES and array.dtype not in (np.complex64, np.complex128):
        raise InputError(
            f"the value of {name!r} is {_kind(value)} of {shorten(str(array.dtype), 40)}: expected "
            f"numbers or booleans of one of the types {', '.join(BY_NAME)}"
        )
    return array


def _kind(value: object) -> str:
    return shorten(f"{type(value).__module__}.{type(value).__name__}", 80)


def _converted(value: Any) -> np.ndarray:
    if isinstance(value, np.generic):
        return np.asarray(value)
    value = _on_host(value)
    if (narrow := _NARROW_FLOATS.get(_dtype_name(value))) and not hasattr(value, "__array_ufunc__"):
        integers, dtype = narrow
        viewed = _viewed(value, integers)
        if viewed is not None:
            return np.asarray(viewed).view(dtype)
    if hasattr(value, "__array__") or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    return np.from_dlpack(value)


def _on_host(value: Any) -> Any:
    """Return a tensor without gradient in the memory of the host, if the value has such methods."""
    for method in ("detach", "cpu", "resolve_conj", "resolve_neg"):  # torch
        if callable(getattr(value, method, None)) and hasattr(value, "requires_grad"):
            value = getattr(value, method)()
    if hasattr(value, "__cuda_array_interface__") and callable(getattr(value, "get", None)):
        return value.get()  # CuPy
    return value


def _dtype_name(value: Any) -> str:
    """Return the last part of the name of a dtype, such as ``bfloat16`` of ``torch.bfloat16``."""
    return str(getattr(value, "dtype", "")).rpartition(".")[2]


def _viewed(value: Any, integers: str) -> Any:
    """Return a tensor's bits as integers, in torch or MLX; None for other frameworks."""
    module = type(value).__module__
    library = sys.modules.get("mlx.core" if module.startswith("mlx") else module.partition(".")[0])
    dtype = getattr(library, integers, None)
    if hasattr(value, "requires_grad"):
        return value.contiguous().view(dtype)
    return value.view(dtype) if module.startswith("mlx") else None
