"""Text form of attribute values in an IR: parsing and writing each kind, such that parsing restores
the value.

- int, float: ``-3``, ``0.5``, ``inf``
- bool: ``true`` or ``false`` (``1`` and ``0`` are read too)
- str: the text itself
- bytes: printable ASCII unchanged, every other byte as ``%`` and two hexadecimal digits:
  ``caf%c3%a9``
- type: the IR's name: ``f32``
- shape: ``2,?,1..8``; empty for a scalar, ``...`` for any rank
- tensor: type, shape, and all elements in row-major order as JSON: ``i32[2,2] [1, 2, 3, 4]``.
  Without a type, nested brackets are read: whole numbers are i64, others f32
- lists: items with commas between; empty for an empty list
- strs: a JSON list, ``["a,b", ""]``, where an item contains a comma, is empty, or has blanks at an
  end
- bytes_list: as strs, each item as for bytes
- shapes: shapes in brackets with ``;`` between: ``[2,3];[]``
- tensors: a JSON list of the texts of its tensors
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote_from_bytes, unquote_to_bytes

import numpy as np

from loopscope.ir.element_type import FLOATS, ElementType
from loopscope.ir.shape import PartialShape, is_of_an_array

ItemKind = Literal["int", "float", "bool", "str", "bytes", "type", "shape", "tensor"]
ListKind = Literal["ints", "floats", "bools", "strs", "bytes_list", "types", "shapes", "tensors"]
AttributeKind = ItemKind | ListKind

ITEMS: Mapping[AttributeKind, ItemKind] = {
    "ints": "int",
    "floats": "float",
    "bools": "bool",
    "strs": "str",
    "bytes_list": "bytes",
    "types": "type",
    "shapes": "shape",
    "tensors": "tensor",
}
"""Kind of the items of each list kind."""

KIND_WORDS: Mapping[AttributeKind, str] = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "bytes": "bytes, with %XX for those that are not printable",
    "type": "an element type",
    "ints": "integers",
    "floats": "numbers",
    "strs": "words",
    "bytes_list": "strings of bytes",
    "shape": "a shape",
    "tensor": "numbers in brackets, such as [[1, 2], [3, 4]], or type, shape and elements, "
    "such as i32[2] [1, 2]",
    "bools": "true or false, several",
    "types": "element types",
    "shapes": "shapes, with ; between them",
    "tensors": "a JSON list of tensors",
}
_PLAIN = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in "%,")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_TENSOR = re.compile(r"([a-z][a-z0-9]*)\[([0-9, ]*)\]\s*(\[.*\])", re.DOTALL)


def parse(kind: AttributeKind, text: str) -> Any:
    """Return the typed value of a text; raise ``ValueError`` if the text is not of that kind."""
    match kind:
        case "int":
            return _int(text)
        case "float":
            return float(text)
        case "bool":
            return _bool(text)
        case "str":
            return text
        case "bytes":
            return _bytes(text)
        case "type":
            return ElementType(text.strip().lower())
        case "shape":
            return PartialShape.parse(text)
        case "tensor":
            return _tensor(text)
        case "shapes":
            return (
                tuple(PartialShape.parse(item) for item in text.split(";")) if text.strip() else ()
            )
        case "tensors":
            return tuple(_tensor(item) for item in _json_words(text)) if text.strip() else ()
        case "strs" | "bytes_list":
            return tuple(parse(ITEMS[kind], item) for item in _words(text))
        case _:
            return (
                tuple(parse(ITEMS[kind], item) for item in text.split(",")) if text.strip() else ()
            )


def written(kind: AttributeKind, value: Any) -> str:
    """Return the text of a typed value for which ``is_of`` is true; ``parse`` restores the
    value.
    """
    match kind:
        case "float":
            return _number(value)
        case "bool":
            return str(bool(value)).lower()
        case "bytes":
            return quote_from_bytes(bytes(value), _PLAIN)
        case "shape":
            return str(value).removeprefix("[").removesuffix("]")
        case "tensor":
            return _tensor_text(value)
        case "int" | "str" | "type":
            return str(value)
        case "shapes":
            return ";".join(str(item) for item in value)
        case "tensors":
            return json.dumps([_tensor_text(item) for item in value]) if value else ""
        case "strs" | "bytes_list":
            return _words_text([written(ITEMS[kind], item) for item in value])
        case _:
            return ",".join(written(ITEMS[kind], item) for item in value)


def is_of(kind: AttributeKind, value: object) -> bool:
    """Return True if a value has the type that kernels receive for that kind: an int, a tuple of
    ElementTypes, an array, ...
    """
    if kind in ITEMS:
        return isinstance(value, tuple) and all(is_of(ITEMS[kind], item) for item in value)
    match kind:
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "tensor":
            return isinstance(value, (np.ndarray, np.generic)) and _has_element_type(value)
        case "type":
            return isinstance(value, ElementType)
        case "shape":
            return isinstance(value, PartialShape)
        case "bytes":
            return isinstance(value, bytes)
        case "bool":
            return isinstance(value, bool)
        case _:
            return isinstance(value, str)


def _has_element_type(array: np.ndarray | np.generic) -> bool:
    try:
        element_type = ElementType.of(array)
    except KeyError:
        return False
    return element_type is not ElementType.STRING or all(
        isinstance(element, str) for element in np.asarray(array).reshape(-1).tolist()
    )


def _int(text: str) -> int:
    text = text.strip()
    if len(text) > 21:
        raise ValueError(text)
    return int(text)


def _bool(text: str) -> bool:
    match text.strip().lower():
        case "true" | "1":
            return True
        case "false" | "0":
            return False
        case _:
            raise ValueError(text)


def _number(value: Any) -> str:
    """Return the shortest text that is read back as the number; whole numbers without a point.

    >>> _number(0.1), _number(2.0), _number(np.float32(0.1))
    ('0.1', '2', '0.1')
    """
    return str(value).removesuffix(".0")


def _bytes(text: str) -> bytes:
    if _ESCAPE.search(text):
        raise ValueError(text)
    return unquote_to_bytes(text)


def _words(text: str) -> list[str]:
    """Return the items of a list of words: a JSON list of strings, or else the texts between
    commas.
    """
    try:
        return _json_words(text)
    except ValueError:
        return [item.strip() for item in text.split(",")] if text.strip() else []


def _json_words(text: str) -> list[str]:
    try:
        items = json.loads(text)
    except RecursionError:
        raise ValueError(text) from None
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise ValueError(text)
    return items


def _words_text(items: list[str]) -> str:
    plain = ",".join(items)
    return plain if _words(plain) == items and plain.isprintable() else json.dumps(items)


def _tensor(text: str) -> np.ndarray:
    typed = _TENSOR.fullmatch(text.strip())
    try:
        array = _parse_elements(typed) if typed else _parse_brackets(text)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise ValueError(text) from None
    array.flags.writeable = False
    return array


def _parse_brackets(text: str) -> np.ndarray:
    """Parse numbers in nested brackets, as in JSON; whole numbers become i64, others f32."""
    array = np.array(json.loads(text))
    if array.dtype.kind not in "biuf":
        raise ValueError(text)
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def _parse_elements(typed: re.Match[str]) -> np.ndarray:
    element_type = ElementType(typed[1])
    lengths = tuple(int(length) for length in typed[2].split(",")) if typed[2].strip() else ()
    elements = json.loads(typed[3])
    if (
        not is_of_an_array(lengths)
        or math.prod(lengths) != len(elements)
        or not all(_is_element(element_type, element) for element in elements)
    ):
        raise ValueError(typed[0])
    dtype = element_type.dtype
    if dtype.names:
        return np.array(elements, np.uint8).view(dtype).reshape(lengths)
    if element_type in FLOATS:
        with np.errstate(all="ignore"):
            return np.array(elements, np.float64).astype(dtype).reshape(lengths)
    # numpy cannot convert a list to an array of i4.
    through = np.dtype(np.int64) if 0 < element_type.bits < 8 else dtype
    return np.array(elements, through).astype(dtype).reshape(lengths)


def _is_element(element_type: ElementType, element: object) -> bool:
    if element_type is ElementType.STRING:
        return isinstance(element, str)
    if element_type is ElementType.BOOLEAN or isinstance(element, bool):
        return element_type is ElementType.BOOLEAN and isinstance(element, bool)
    if element_type in FLOATS and element_type is not ElementType.NF4:
        return isinstance(element, (int, float))
    half = 1 << (element_type.bits - 1)
    lower, upper = (-half, half - 1) if element_type.is_signed else (0, 2 * half - 1)
    return isinstance(element, int) and lower <= element <= upper


def _tensor_text(value: np.ndarray | np.generic) -> str:
    array = np.asarray(value)
    element_type = ElementType.of(array)
    flat = array.reshape(-1)
    if flat.dtype.names:
        elements = np.ascontiguousarray(flat).view(np.uint8).tolist()
    elif element_type in FLOATS:
        elements = [_shortest(number) for number in flat]
    else:
        elements = flat.astype(np.int64).tolist() if 0 < element_type.bits < 8 else flat.tolist()
    return f"{element_type}[{','.join(map(str, array.shape))}] {json.dumps(elements)}"


def _shortest(number: Any) -> float:
    """Return the decimal number with the fewest digits that the type reads as this number, or else
    its exact value.
    """
    if number.dtype.kind == "f" and np.isfinite(number):
        short = float(str(number))
        if number.dtype.type(short) == number:
            return short
    return float(number)
