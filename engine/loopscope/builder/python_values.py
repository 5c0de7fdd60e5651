"""Conversion of Python values: to typed arrays for Consts, and to text forms of attributes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.errors import BuildError, shorten
from loopscope.ir.element_type import ElementType
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


_NATURAL = {
    "b": ElementType.BOOLEAN,
    "i": ElementType.I64,
    "u": ElementType.I64,
    "f": ElementType.F32,
}
_PYTHON_TYPES = {
    float: ElementType.F32,
    int: ElementType.I64,
    bool: ElementType.BOOLEAN,
    str: ElementType.STRING,
}
_PREFERRED_TYPES = (
    *(
        ElementType.I64,
        ElementType.F32,
        ElementType.BOOLEAN,
        ElementType.I32,
        ElementType.F64,
        ElementType.F16,
        ElementType.BF16,
    ),
    *(
        ElementType.I16,
        ElementType.I8,
        ElementType.U64,
        ElementType.U32,
        ElementType.U16,
        ElementType.U8,
    ),
)
"""Types for Python numbers in order of preference, if an input supports them. For numpy arrays only
the first three are tried.
"""
_NAMES = tuple(element_type.value for element_type in ElementType)
ElementTypeLike = ElementType | str | np.dtype | type


def element_type_of(value: Any, what: str = "element_type") -> ElementType:
    """Return an element type from its IR name, its numpy dtype, or itself.

    ``BuildError`` for anything else.

    >>> element_type_of("f32"), element_type_of(np.int64), element_type_of(bool)
    (<ElementType.F32: 'f32'>, <ElementType.I64: 'i64'>, <ElementType.BOOLEAN: 'boolean'>)
    """
    if isinstance(value, ElementType):
        return value
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value]
    try:
        if not isinstance(value, str):
            # numpy refuses what is not a type.
            return ElementType.of_dtype(np.dtype(value))
        name = value.strip().lower()
        # `float` is a name for numpy's float64, and for nothing in an IR.
        by_numpy = name not in _NAMES and np.dtype(name).name == name
        return ElementType.of_dtype(np.dtype(name)) if by_numpy else ElementType(name)
    except (ValueError, KeyError, TypeError):
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}, expected one of {', '.join(_NAMES)}, or a "
            "numpy dtype"
        ) from None


def as_array(
    value: object, wanted: Sequence[ElementType], allowed: Collection[ElementType], what: str
) -> np.ndarray:
    """Return a value as an array, in the first type of ``wanted`` that can represent it, else in
    its natural type, which must be in ``allowed``.

    The natural type is i64 for a Python int, f32 for a float, and the dtype for an array. If it is
    not allowed, Python numbers get an allowed type. ``BuildError`` messages name ``what``.
    """
    array = _array(value, what)
    natural = _natural_type(value, array, what)
    for element_type in wanted:
        if element_type in allowed and _can_represent(element_type, array):
            return cast(array, element_type)
    if natural in allowed:
        return cast(array, natural)
    fallbacks = (
        _PREFERRED_TYPES
        if not isinstance(value, (np.ndarray, np.generic))
        else _PREFERRED_TYPES[:3]
    )
    for element_type in fallbacks:
        if element_type in allowed and _can_represent(element_type, array):
            return cast(array, element_type)
    names = ", ".join(sorted(str(element_type) for element_type in allowed))
    raise BuildError(f"{what} is {shorten(repr(value), 60)}, which is {natural}; expected {names}")


def constant_array(value: object, element_type: ElementType | None, what: str) -> np.ndarray:
    """Return a value as an array of the given type (None: the natural type).

    ``BuildError`` if the type cannot represent the value.
    """
    array = _array(value, what)
    if element_type is None:
        return cast(array, _natural_type(value, array, what))
    if not _can_represent(element_type, array):
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}, which {element_type} cannot represent"
        )
    return cast(array, element_type)


def cast(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Convert an array to another element type that can represent it."""
    if array.dtype == element_type.dtype:
        return array
    if element_type is ElementType.STRING:
        return array.astype(object)
    if element_type.dtype.names:
        return (
            np.ascontiguousarray(array.astype(np.uint8))
            .view(element_type.dtype)
            .reshape(array.shape)
        )
    widened = (
        array.astype(np.float32)
        if element_type.dtype.kind == "V" and array.dtype.kind == "f"
        else array
    )
    with np.errstate(all="ignore"):
        return widened.astype(element_type.dtype)


def _array(value: object, what: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}, which is not an array: {error}"
        ) from None
    except OverflowError:
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}, which does not fit into any element type"
        ) from None
    if array.size == 0 and not isinstance(value, (np.ndarray, np.generic)):
        return array.astype(np.int64)
    return array


def _natural_type(value: object, array: np.ndarray, what: str) -> ElementType:
    from_python = not isinstance(value, (np.ndarray, np.generic))
    if array.dtype.kind in "US" or (
        array.dtype == object and all(isinstance(item, str) for item in array.reshape(-1).tolist())
    ):
        return ElementType.STRING
    if from_python and array.dtype.kind in _NATURAL:
        return _NATURAL[array.dtype.kind]
    try:
        if array.dtype != object:
            return ElementType.of(array)
    except KeyError:
        pass
    if (
        array.dtype == object
        and array.size
        and all(type(item) is int for item in array.reshape(-1).tolist())
    ):
        raise BuildError(
            f"{what} is {shorten(repr(value), 60)}: an integer needs more than 64 bits"
        )
    raise BuildError(
        f"{what} is {shorten(repr(value), 60)} ({type(value).__name__}), expected a Tensor of "
        "this graph, a number, or a numpy array"
    )


def _can_represent(element_type: ElementType, array: np.ndarray) -> bool:
    """Return True if a type represents the same numbers: integers in range, floats only in floats,
    bool only in boolean.
    """
    kind = array.dtype.kind
    if array.dtype == element_type.dtype:
        return True
    if kind == "b" or element_type is ElementType.BOOLEAN:
        return kind == "b" and element_type is ElementType.BOOLEAN
    if kind in "US" or element_type is ElementType.STRING:
        return kind in "USO" and element_type is ElementType.STRING
    if kind in "iu":
        return element_type.is_float or _in_range(element_type, array)
    return kind == "f" and element_type.is_float


def _in_range(element_type: ElementType, array: np.ndarray) -> bool:
    if not array.size:
        return True
    bits = element_type.bits
    lower, upper = (
        (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if element_type.is_signed else (0, 2**bits - 1)
    )
    return lower <= int(array.min()) and int(array.max()) <= upper
