"""Parsing of typed numbers and shapes."""

from __future__ import annotations

import numpy as np

from loopscope.errors import InputError, shorten
from loopscope.ir import ElementType, Signature


def parse_scalar(typed: object, signature: Signature) -> np.ndarray:
    """Parse a number, truth value or text as the input's type. Raise ``InputError`` for a bad
    text.
    """
    return parse_element(
        typed, signature.element_type or ElementType.F32, f"input '{signature.name}'"
    )


def parse_element(typed: object, element_type: ElementType, name: str) -> np.ndarray:
    """Parse a value of a type; ``name`` names its place in the error."""
    if element_type is ElementType.STRING:
        return np.array(str(typed), dtype=object)
    try:
        if element_type is ElementType.BOOLEAN:
            return np.array(typed in (True, 1, "true", "True", "1"))
        number = int(str(typed)) if element_type.is_integer else float(str(typed))
        if element_type.is_integer and not _fits(int(number), element_type):
            raise ValueError(typed)
        if element_type.dtype.names:
            return np.array(number, np.uint8).view(element_type.dtype)
        with np.errstate(all="ignore"):
            array = np.array(number).astype(element_type.dtype)
        if element_type.is_float and _overflows(str(typed), array):
            raise ValueError(typed)
        return array
    except ValueError:
        raise InputError(
            f"{shorten(repr(typed), 40)} is not a value of type {element_type}, which {name} takes"
        ) from None


def _overflows(text: str, array: np.ndarray) -> bool:
    """Return True if a finite number became infinite, because the type cannot represent it."""
    return bool(np.isinf(array.astype(np.float64))) and "inf" not in text.lower()


def _fits(number: int, element_type: ElementType) -> bool:
    signed = element_type.is_signed
    lower, upper = (
        (-(1 << element_type.bits - 1), 1 << element_type.bits - 1)
        if signed
        else (0, 1 << element_type.bits)
    )
    return lower <= number < upper


def parse_shape(text: str, signature: Signature) -> tuple[int, ...]:
    """Parse lengths such as ``2, 5``. Raise ``InputError`` if the input does not accept the
    shape.
    """
    try:
        shape = tuple(
            int(length)
            for length in text.replace("x", ",").strip("[]() ").split(",")
            if length.strip()
        )
    except ValueError:
        raise InputError(
            f"{shorten(repr(text), 40)} is not a shape: write lengths such as 2, 5"
        ) from None
    if not signature.shape.contains(shape) or min(shape, default=0) < 0:
        raise InputError(
            f"input '{signature.name}' takes shape {signature.shape}, not {list(shape)}"
        )
    return shape
