"""Conversion of Python attribute values to the text form of the IR."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from loopscope.builder.lift import constant_array, element_type_of
from loopscope.errors import BuildError, shorten
from loopscope.ir.shape import Dimension, PartialShape
from loopscope.ops.attribute_text import ITEMS, AttributeKind, written
from loopscope.ops.declare import REQUIRED, Attribute, AttributeProblem, Operation, typed


def attribute_texts(
    operation: Operation, values: Mapping[str, object], caller: str
) -> dict[str, str]:
    """Return every attribute as text by its IR name, including the defaults of the specification.

    ``values`` is by Python keyword. ``BuildError`` messages contain the attribute, the value found
    and the value expected.
    """
    known = {attribute.keyword: attribute for attribute in operation.attributes}
    for keyword in values:
        if keyword not in known:
            attributes_clause = (
                f"its attributes are {', '.join(known)}" if known else "it has no attributes"
            )
            raise BuildError(
                f"{caller}() does not have an attribute {keyword!r}; {attributes_clause}"
            )
    texts: dict[str, str] = {}
    for keyword, attribute in known.items():
        if keyword in values:
            texts[attribute.name] = _text(attribute, values[keyword], caller)
        elif attribute.default is REQUIRED:
            raise BuildError(f"{caller}() needs the attribute {keyword!r}: {expected(attribute)}")
        elif not _is_omitted(attribute.default):
            texts[attribute.name] = _text(attribute, attribute.default, caller)
        elif "kernel" in values and attribute.default == () and attribute.least is not None:
            # One for each axis of the window: OpenVINO's CPU does not survive an AvgPool-16 without
            # its dilations.
            axes = len(_text(known["kernel"], values["kernel"], caller).split(","))
            texts[attribute.name] = ",".join([str(int(attribute.least))] * axes)
    try:
        typed(operation, texts)
    except AttributeProblem as problem:
        raise BuildError(f"{caller}(): {problem}") from None
    return texts


def _is_omitted(default: object) -> bool:
    """Return True if a default is omitted from the IR, because its absence has the same meaning."""
    return (
        default is None
        or (isinstance(default, (tuple, str, bytes)) and not default)
        or (isinstance(default, float) and default == math.inf)
    )


def expected(attribute: Attribute) -> str:
    """Return a description of the values that an attribute may have.

    >>> expected(Attribute("mode", "str", allowed=("erf", "tanh")))
    "'erf' or 'tanh'"
    >>> expected(Attribute("axis", "int", least=0))
    'a whole number of at least 0'
    """
    few = f"at least {attribute.fewest} of: " if attribute.fewest else ""
    if attribute.allowed:
        values = [
            repr(value) if isinstance(value, str) else str(value) for value in attribute.allowed
        ]
        return few + " or ".join(
            [", ".join(values[:-1]), values[-1]] if len(values) > 1 else values
        )
    words = few + _WORDS[attribute.kind]
    return words if attribute.least is None else f"{words} of at least {attribute.least:g}"


_WORDS: Mapping[AttributeKind, str] = {
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "str": "text",
    "type": "an element type",
    "ints": "whole numbers",
    "floats": "numbers",
    "strs": "words",
    "bools": "True or False, several",
    "bytes": "bytes",
    "bytes_list": "strings of bytes",
    "shape": "a shape",
    "shapes": "shapes",
    "types": "element types",
    "tensor": "an array",
    "tensors": "arrays",
}


def _text(attribute: Attribute, value: object, caller: str) -> str:
    what = f"{caller}(): attribute {attribute.keyword!r}"
    typed_value = (
        _convert_list(attribute.kind, value, what)
        if attribute.kind in ITEMS
        else _convert_item(attribute.kind, value, what)
    )
    if typed_value is None:
        raise BuildError(f"{what} is {shorten(repr(value), 60)}, expected {expected(attribute)}")
    return written(attribute.kind, typed_value)


def _convert_list(kind: AttributeKind, value: object, what: str) -> tuple[object, ...] | None:
    """Return a tuple from an iterable or from a single item; an array is one tensor, and bytes are
    one byte string.
    """
    if isinstance(value, (str, bytes, bytearray, PartialShape)) or not isinstance(value, Iterable):
        value = (value,)
    elements = (value,) if kind == "tensors" and isinstance(value, np.ndarray) else value
    items = tuple(_convert_item(ITEMS[kind], item, what) for item in elements)
    return None if any(item is None for item in items) else items


def _convert_item(kind: AttributeKind, value: object, what: str) -> object | None:
    """Return a value in the form that kernels use, or None if it is not of this kind."""
    match kind:
        case "int":
            return (
                int(value)
                if isinstance(value, (int, np.integer)) and not isinstance(value, bool)
                else None
            )
        case "float":
            return (
                value
                if isinstance(value, (int, float, np.integer, np.floating))
                and not isinstance(value, bool)
                else None
            )
        case "bool":
            return bool(value) if isinstance(value, (bool, np.bool_)) else None
        case "type":
            return element_type_of(value, "an element type")
        case "shape":
            return shape_of(value)
        case "tensor":
            return constant_array(value, None, what)
        case "bytes":
            return (
                value.encode()
                if isinstance(value, str)
                else bytes(value)
                if isinstance(value, (bytes, bytearray))
                else None
            )
        case _:
            return value if isinstance(value, str) else None


def shape_of(value: object) -> PartialShape | None:
    """Return a shape from lengths (None or -1: unknown), text such as ``2,?,1..8``, or a shape;
    None for anything else.

    >>> str(shape_of([2, None])), str(shape_of("1..8,?")), shape_of(3.5)
    ('[2,?]', '[1..8,?]', None)
    """
    if isinstance(value, PartialShape):
        return value
    try:
        if isinstance(value, str):
            return PartialShape.parse(value)
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return PartialShape.of([_length(value)])
        if isinstance(value, Iterable):
            return PartialShape.of([_length(length) for length in value])
    except (TypeError, ValueError):
        return None
    return None


def _length(length: object) -> int | Dimension | None:
    if length is None or isinstance(length, Dimension):
        return length
    if isinstance(length, (int, np.integer)) and not isinstance(length, bool) and length >= -1:
        return int(length)
    raise TypeError(length)
