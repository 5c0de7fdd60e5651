"""Attribute declarations in TensorFlow's syntax: ``attribute("l: list(int) >= 2 = [2, 3, 5, 7]")``.

The syntax is that of TensorFlow's page on adding an op. A ``string`` is any bytes, a choice of
strings is text. Types are TensorFlow's names (``int32``, ``DT_INT32``) or the IR's (``i32``).
Quantized types are the integers that carry them. Defaults of shapes and tensors are in the text
format of protocol buffers.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from loopscope.ir.element_type import NUMERIC, REAL_FLOATS, ElementType
from loopscope.ir.shape import DYNAMIC, PartialShape, is_of_an_array
from loopscope.ops.attribute_text import ITEMS, ItemKind
from loopscope.ops.declare import REQUIRED, Attribute

NUMBER_TYPES = tuple(item for item in ElementType if item in NUMERIC)
"""``numbertype``: all numeric types. IRs do not have complex types, so ``realnumbertype`` is the
same.
"""
QUANTIZED_TYPES = (
    ElementType.I32,
    ElementType.I16,
    ElementType.I8,
    ElementType.U16,
    ElementType.U8,
)
"""``quantizedtype``: the integers that carry qint32, qint16, qint8, quint16 and quint8."""

_GROUPS = {
    "numbertype": NUMBER_TYPES,
    "realnumbertype": NUMBER_TYPES,
    "quantizedtype": QUANTIZED_TYPES,
}
_KINDS: dict[str, ItemKind] = {
    "string": "bytes",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
}
_TYPES = {
    "float": "f32",
    "double": "f64",
    "half": "f16",
    "bfloat16": "bf16",
    "bool": "boolean",
    "float8_e5m2": "f8e5m2",
    "float8_e4m3fn": "f8e4m3",
    **{
        f"{sign}int{bits}": f"{sign or 'i'}{bits}"
        for sign in ("", "u")
        for bits in (2, 4, 8, 16, 32, 64)
        if sign or bits > 2
    },
    **{
        f"q{sign}int{bits}": f"{sign or 'i'}{bits}"
        for sign in ("", "u")
        for bits in (8, 16, 32)
        if bits < 32 or not sign
    },
}
_TOKEN = re.compile(
    r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|>="""
    r"""|[-+]?[0-9.][\w.+-]*|-inf|[A-Za-z_]\w*|[{}\[\](),:=<>])"""
)
_LISTS = {item: kind for kind, item in ITEMS.items()}
_VALUES = (
    "float_val",
    "double_val",
    "int_val",
    "int64_val",
    "uint32_val",
    "uint64_val",
    "bool_val",
    "string_val",
)


def attribute(text: str, doc: str = "") -> Attribute:
    """Return an attribute from ``<name>: <type> [>= <n>] [= <default>]``; raise ``ValueError`` at
    the faulty token.

    >>> attribute("a: int >= 2").least, attribute("e: {'apple', 'orange'}").allowed
    (2, ('apple', 'orange'))
    >>> attribute("t: list({int32, float}) >= 3").fewest
    3
    """
    return _Expression(text).attribute(doc)


class _Expression:
    """A left-to-right parser of an expression, one token at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split(text))
        self._at = 0

    def _split(self, text: str) -> Iterator[str]:
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._wrong(
                    text[position:].strip()[:20], "a name, a number, a text in quotes or a bracket"
                )
            yield match[1]
            position = match.end()

    def _wrong(self, token: str, expected: str) -> ValueError:
        return ValueError(
            f"the attribute {self._text!r} has {token or 'nothing'!r}, expected {expected}"
        )

    @property
    def _next(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1] if self._at <= len(self._tokens) else ""

    def _expect(self, expected: str) -> None:
        token = self._take()
        if token != expected:
            raise self._wrong(token, repr(expected))

    def _skip(self, token: str) -> bool:
        if self._next != token:
            return False
        self._at += 1
        return True

    def attribute(self, doc: str) -> Attribute:
        name = self._take()
        self._expect(":")
        is_list = self._skip("list")
        if is_list:
            self._expect("(")
        kind, allowed = self._kind()
        if is_list:
            self._expect(")")
        bound = self._bound() if self._skip(">=") else None
        if bound is not None and not is_list and kind != "int":
            raise self._wrong(">=", "it after `int` or a list alone")
        default: object = REQUIRED
        if self._skip("="):
            default = (
                tuple(self._each("[", "]", lambda: self._value(kind)))
                if is_list
                else self._value(kind)
            )
        if self._next:
            raise self._wrong(self._next, "the end")
        smallest, fewest = (None, bound or 0) if is_list else (bound, 0)
        return Attribute(
            name, _LISTS[kind] if is_list else kind, default, allowed, smallest, fewest, doc
        )

    def _bound(self) -> int:
        token = self._take()
        if not re.fullmatch(r"-?\d{1,18}", token):
            raise self._wrong(token, "a whole number after `>=`")
        return int(token)

    def _kind(self) -> tuple[ItemKind, tuple[object, ...]]:
        if self._next == "{":
            choices = tuple(self._each("{", "}", self._choice))
            texts = [isinstance(choice, str) for choice in choices]
            if not choices or any(texts) != all(texts):
                raise self._wrong("{...}", "texts in quotes, or types")
            return ("str" if all(texts) else "type"), choices
        token = self._take()
        if token in _GROUPS:
            return "type", _GROUPS[token]
        if token not in _KINDS:
            raise self._wrong(
                token,
                f"one of {', '.join((*_KINDS, *_GROUPS))}, list(...) of one, or "
                f"{{...}}; a list of lists is none",
            )
        return _KINDS[token], ()

    def _each(self, begin: str, end: str, parse_item: Callable[[], Any]) -> Iterator[Any]:
        self._expect(begin)
        while not self._skip(end):
            yield parse_item()
            if self._next != end:
                self._expect(",")

    def _choice(self) -> object:
        return self._words() if self._next[:1] in ("'", '"') else self._type()

    def _quoted(self) -> bytes:
        token = self._take()
        if token[:1] not in ("'", '"'):
            raise self._wrong(token, "a text in quotes")
        try:
            # Escapes are those of C and of Python's bytes; letters outside ASCII are UTF-8.
            escaped = "".join(
                letter
                if letter.isascii()
                else "".join(f"\\x{byte:02x}" for byte in letter.encode())
                for letter in token
            )
            return bytes(ast.literal_eval(f"b{escaped}"))
        except (ValueError, SyntaxError):
            raise self._wrong(token, "a text with the escapes of C") from None

    def _words(self) -> str:
        content = self._quoted()
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise self._wrong(repr(content), "a text in UTF-8") from None

    def _type(self) -> ElementType:
        token = self._take()
        name = token.removeprefix("DT_").lower() if token.startswith("DT_") else token
        try:
            return ElementType(_TYPES.get(name, name))
        except ValueError:
            raise self._wrong(token, "an element type, such as int32 or DT_INT32") from None

    def _value(self, kind: str) -> Any:
        match kind:
            case "bytes":
                return self._quoted()
            case "str":
                return self._words()
            case "type":
                return self._type()
            case "shape":
                return self._shape(self._message())
            case "tensor":
                return self._tensor(self._message())
            case "bool":
                return self._number({"true": True, "false": False}.__getitem__, "true or false")
            case "int":
                return self._number(int, "a whole number")
            case _:
                return self._number(float, "a number")

    def _number(self, read: Callable[[str], Any], expected: str) -> Any:
        token = self._take()
        try:
            return read(token)
        except (ValueError, KeyError):
            raise self._wrong(token, expected) from None

    def _message(self) -> dict[str, list[Any]]:
        """Parse the fields of a protocol buffer in text format, each with all its values."""
        fields: dict[str, list[Any]] = {}
        self._expect("{")
        while not self._skip("}"):
            name = self._take()
            if not re.fullmatch(r"[a-z_]\w*", name):
                raise self._wrong(name, "a field and its value, or '}'")
            self._skip(":")
            values = (
                self._each("[", "]", self._scalar) if self._next == "[" else iter([self._scalar()])
            )
            fields.setdefault(name, []).extend(values)
            self._skip(",")
        return fields

    def _scalar(self) -> Any:
        if self._next == "{":
            return self._message()
        return self._quoted() if self._next[:1] in ("'", '"') else self._take()

    def _shape(self, fields: dict[str, list[Any]]) -> PartialShape:
        if fields.get("unknown_rank") == ["true"]:
            return DYNAMIC
        sizes = [
            dim.get("size", ["0"])[-1] if isinstance(dim, dict) else ""
            for dim in fields.get("dim", [])
        ]
        if not fields.keys() <= {"dim", "unknown_rank"} or not all(
            re.fullmatch(r"-1|\d{1,18}", str(size)) for size in sizes
        ):
            raise self._wrong("{...}", "a shape, such as { dim { size: 1 } dim { size: 2 } }")
        return PartialShape.of([int(size) for size in sizes])

    def _tensor(self, fields: dict[str, list[Any]]) -> np.ndarray:
        wrong = self._wrong(
            "{...}",
            "a tensor, such as { dtype: DT_INT32 int_val: 5 }, with as many values "
            "as it has elements at most",
        )
        named = str(fields.get("dtype", [""])[-1])
        element_type = ElementType.F32 if not named else _Expression(named)._type()
        shape = self._shape(fields.get("tensor_shape", [{}])[-1])
        if (
            not shape.is_static
            or not is_of_an_array(shape.lengths)
            or math.prod(shape.lengths) > 1 << 20
        ):
            raise wrong
        count = math.prod(shape.lengths)
        try:
            array = _tensor_elements(element_type, fields)
            if len(array) > max(count, 1):
                raise wrong
            # As in TensorFlow, the last value repeats for the elements without one.
            whole = np.concatenate([array, np.repeat(array[-1:], max(0, count - len(array)))])[
                :count
            ]
            return whole.astype(element_type.dtype).reshape(shape.lengths)
        except (ValueError, TypeError, KeyError, OverflowError):
            raise wrong from None


def _tensor_elements(element_type: ElementType, fields: dict[str, list[Any]]) -> np.ndarray:
    """Return the elements of a TensorProto in order; a zero if it lists none."""
    if "tensor_content" in fields:
        raw = np.frombuffer(fields["tensor_content"][-1], np.uint8)
        # Compared with 0, because a byte other than 0 and 1 must become an ordinary True.
        return (
            raw != 0
            if element_type is ElementType.BOOLEAN
            else raw.view(element_type.dtype.newbyteorder("<"))
        )
    if "half_val" in fields:
        # Each number is the 16 bits of an f16 or a bf16.
        if element_type not in (ElementType.F16, ElementType.BF16):
            raise ValueError("half_val holds f16 and bf16")
        return np.array([int(value) for value in fields["half_val"]], np.uint16).view(
            element_type.dtype
        )
    values = [value for name in _VALUES for value in fields.get(name, [])]
    elements = [_element(element_type, value) for value in values] or [_element(element_type, "0")]
    return np.array(elements, np.float64 if element_type in REAL_FLOATS else element_type.dtype)


def _element(element_type: ElementType, value: Any) -> object:
    if element_type is ElementType.STRING:
        return value.decode() if isinstance(value, bytes) else ""
    if element_type is ElementType.BOOLEAN:
        return {"true": True, "1": True, "false": False, "0": False}[value]
    return float(value) if element_type.is_float else int(value)
