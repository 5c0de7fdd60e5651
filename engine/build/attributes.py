"""Attributes as Python gives them, as the text that the IR keeps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from engine.build.lift import element_type_of
from engine.errors import BuildError, shorten
from engine.ir.shape import Dimension, PartialShape
from engine.ops.declare import REQUIRED, Attribute, AttributeProblem, Operation, typed


def attribute_texts(operation: Operation, given: Mapping[str, object], called: str) -> dict[str, str]:
    """Every attribute as text by its name in the IR, the defaults of the spec written out.

    ``given`` is by Python keyword. ``BuildError`` names the attribute, what was found and what is expected.
    """
    known = {attribute.keyword: attribute for attribute in operation.attributes}
    for keyword in given:
        if keyword not in known:
            there = f"its attributes are {', '.join(known)}" if known else "it has no attributes"
            raise BuildError(f"{called}() has no attribute {keyword!r}; {there}")
    texts: dict[str, str] = {}
    for keyword, attribute in known.items():
        if keyword in given:
            texts[attribute.name] = _text(attribute, given[keyword], called)
        elif attribute.default is REQUIRED:
            raise BuildError(f"{called}() needs the attribute {keyword!r}: {expected(attribute)}")
        elif attribute.default not in ((), "", math.inf):  # what cannot be written means the same when it is absent
            texts[attribute.name] = _text(attribute, attribute.default, called)
    try:
        typed(operation, texts)
    except AttributeProblem as problem:
        raise BuildError(f"{called}(): {problem}") from None
    return texts


def expected(attribute: Attribute) -> str:
    """What values an attribute may have, in words.

    >>> expected(Attribute("mode", "str", allowed=("erf", "tanh"))), expected(Attribute("axis", "int", least=0))
    ("'erf' or 'tanh'", 'a whole number of at least 0')
    """
    if attribute.allowed:
        values = [repr(value) if isinstance(value, str) else str(value) for value in attribute.allowed]
        return " or ".join([", ".join(values[:-1]), values[-1]] if len(values) > 1 else values)
    words = _WORDS[attribute.kind]
    return words if attribute.least is None else f"{words} of at least {attribute.least:g}"


_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "str": "text",
    "type": "an element type",
    "ints": "whole numbers",
    "floats": "numbers",
    "strs": "words",
    "shape": "a shape",
}


def _text(attribute: Attribute, value: object, called: str) -> str:
    text = _of_list(attribute.kind, value) if attribute.kind in ("ints", "floats", "strs") else _of_one(attribute.kind, value)
    if text is None:
        raise BuildError(f"{called}(): attribute {attribute.keyword!r} is {shorten(repr(value), 60)}, expected {expected(attribute)}")
    return text


def _of_list(kind: str, value: object) -> str | None:
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = (value,)
    texts = [_of_one(kind.removesuffix("s"), one) for one in value]
    known = [text for text in texts if text is not None]
    return ",".join(known) if len(known) == len(texts) else None


def _of_one(kind: str, value: object) -> str | None:
    """The text of one value; None when it is not of the kind."""
    match kind:
        case "int":
            return str(int(value)) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None
        case "float":
            return _number(value) if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool) else None
        case "bool":
            return str(bool(value)).lower() if isinstance(value, (bool, np.bool_)) else None
        case "type":
            return str(element_type_of(value, "an element type"))
        case "shape":
            shape = shape_of(value)
            return None if shape is None else str(shape).removeprefix("[").removesuffix("]")
        case _:
            return value if isinstance(value, str) else None


def _number(value: Any) -> str:
    """As short as it can be read back; whole numbers without a point.

    >>> _number(0.1), _number(2.0), _number(np.float32(0.1))
    ('0.1', '2', '0.1')
    """
    text = str(value)
    return text.removesuffix(".0")


def shape_of(value: object) -> PartialShape | None:
    """A shape from lengths (None or -1: unknown), text such as ``2,?,1..8``, or itself; None when it is none.

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
            return PartialShape.of([_length(one) for one in value])
    except (TypeError, ValueError):
        return None
    return None


def _length(one: object) -> int | Dimension | None:
    if one is None or isinstance(one, Dimension):
        return one
    if isinstance(one, (int, np.integer)) and not isinstance(one, bool) and one >= -1:
        return int(one)
    raise TypeError(one)
