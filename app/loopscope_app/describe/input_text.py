"""Numbers and shapes as a person types them."""

from __future__ import annotations

import numpy as np

from loopscope.errors import InputError, shorten
from loopscope.ir import ElementType, Signature


def parse_scalar(given: object, one: Signature) -> np.ndarray:
    """A number, truth value or text as the input's type takes it; ``InputError`` says what is
    wrong.
    """
    return parse_element(given, one.element_type or ElementType.F32, f"input '{one.name}'")


def parse_element(given: object, element_type: ElementType, name: str) -> np.ndarray:
    """The same for any place, by the name that the refusal gives it."""
    if element_type is ElementType.STRING:
        return np.array(str(given), dtype=object)
    try:
        if element_type is ElementType.BOOLEAN:
            return np.array(given in (True, 1, "true", "True", "1"))
        number = int(str(given)) if element_type.is_integer else float(str(given))
        if element_type.is_integer and not _fits(int(number), element_type):
            raise ValueError(given)
        if element_type.dtype.names:
            return np.array(number, np.uint8).view(element_type.dtype)
        with np.errstate(all="ignore"):
            made = np.array(number).astype(element_type.dtype)
        if element_type.is_float and _grew(str(given), made):
            raise ValueError(given)
        return made
    except ValueError:
        raise InputError(
            f"{shorten(repr(given), 40)} is not a value of type {element_type}, which {name} takes"
        ) from None


def _grew(text: str, made: np.ndarray) -> bool:
    """Whether a finite number became infinite: it is larger than the type can hold."""
    return bool(np.isinf(made.astype(np.float64))) and "inf" not in text.lower()


def _fits(number: int, element_type: ElementType) -> bool:
    signed = element_type.is_signed
    least, most = (
        (-(1 << element_type.bits - 1), 1 << element_type.bits - 1)
        if signed
        else (0, 1 << element_type.bits)
    )
    return least <= number < most


def parse_shape(text: str, one: Signature) -> tuple[int, ...]:
    """Lengths such as ``2, 5``; ``InputError`` when the input takes no such shape."""
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
    if not one.shape.contains(shape) or min(shape, default=0) < 0:
        raise InputError(f"input '{one.name}' takes shape {one.shape}, not {list(shape)}")
    return shape
