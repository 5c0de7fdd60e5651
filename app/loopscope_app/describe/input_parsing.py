"""Parsing of user input: .npy and .npz files, typed numbers and shapes, typed places.

A place is any form of an address, also alone instead of an expression.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from loopscope.debug import names_in
from loopscope.errors import ExpressionError, InputError, listed, shorten
from loopscope.ir import ElementType, Model, Signature, addresses_ending, full_address
from loopscope.ops.stored import arrays_in, unpacked
from loopscope.read import open_archive
from loopscope_app.describe.signatures import signatures

MOST_BYTES = 1 << 30


def named(model: Model, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays of an .npz file by the names of ``signatures``.

    A key may be any name of an input, or one of its ``position_keys``.
    """
    by_key: dict[str, str] = {}
    for position, (key, signature) in enumerate(signatures(model).items()):
        for alias in (*position_keys(position), signature.name, *signature.names):
            by_key.setdefault(alias, key)
    by_key |= {key: key for key in signatures(model)}
    unknown = [key for key in arrays if key not in by_key]
    if unknown:
        expected = listed(list(signatures(model)))
        raise InputError(f"the file contains {listed(unknown)}: expected the inputs {expected}")
    return {by_key[key]: array for key, array in arrays.items()}


def position_keys(position: int) -> tuple[str, str, str]:
    """Return the keys of an .npz file that stand for an input by its position.

    numpy calls arrays that are saved without names ``arr_0``, ``arr_1``, ...
    """
    return f"i{position}", f"arr_{position}", str(position)


def read_arrays(name: str, data: bytes) -> dict[str, Any]:
    """Return the values of an uploaded .npz file, or of an .npy file under the empty name.

    Raise ``InputError`` if the file is not valid (``engine/loopscope/ops/stored.py``).
    """
    try:
        return unpacked(_entries(name, data))
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None


def _entries(name: str, data: bytes) -> dict[str, np.ndarray]:
    try:
        if data.startswith(b"PK"):
            with open_archive(io.BytesIO(data)):
                pass  # numpy would read an archive directory of any size
        stored = np.load(io.BytesIO(data), allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return {"": stored}
        with stored:
            if sum(entry.file_size for entry in stored.zip.infolist()) > MOST_BYTES:
                raise InputError(f"{name} unpacks to more than {MOST_BYTES >> 30} GB")
            return arrays_in(stored)
    except InputError:
        raise
    except Exception:  # numpy and zipfile raise many types of errors for a damaged file
        raise InputError(
            f"{name} is not a file of plain arrays: save it with numpy.save or numpy.savez"
        ) from None


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


def typed_place(model: Model, text: str) -> str:
    """Return the exact address that a text means, or the text itself if no node has such an end.

    Raise ``AddressError`` if several nodes have.
    """
    return full_address(model, text) if text.strip() else text


def step_or_address(text: str) -> int | str:
    """Return the step number that a text is, else the text, which is an address.

    >>> step_or_address("12"), step_or_address("main/loop[2]/body/Add")
    (12, 'main/loop[2]/body/Add')
    """
    return int(text) if text.isdecimal() and len(text) < 16 else text


def typed_expression(model: Model, text: str) -> str:
    """Return an expression in the expression language: a single address gets backticks.

    ``a/b`` remains a quotient if the model has nodes of both names.
    """
    text = text.strip()
    if "`" in text or not addresses_ending(model, text) or _names_exist(model, text):
        return text
    return f"`{text}`"


def _names_exist(model: Model, text: str) -> bool:
    try:
        return all(addresses_ending(model, name) for name in names_in(text))
    except ExpressionError:
        return False
