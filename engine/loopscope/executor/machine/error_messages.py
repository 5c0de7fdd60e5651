"""What Python, numpy and the onnx package say of inputs that do not fit, in the words of models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_SHAPE = re.compile(r"\((?:\d+(?:, ?\d+)*,?)?\)")
_FEWER = "an input has fewer dimensions than the operation takes"


def in_plain_words(message: str) -> str:
    """A sentence for each thing that they complain about; any other message as it is.

    >>> in_plain_words("operands could not be broadcast together with shapes (2,3) (4,) ")
    'shapes [2,3] and [4] cannot be broadcast together'
    """
    for pattern, told in _TOLD.items():
        found = re.search(pattern, message)
        if found:
            return told(found)
    return message


def _shapes(text: str) -> list[str]:
    return [f"[{shape[1:-1].replace(' ', '').rstrip(',')}]" for shape in _SHAPE.findall(text)]


def _broadcast(found: re.Match[str]) -> str:
    return f"shapes {' and '.join(_shapes(found[1]))} cannot be broadcast together"


def _part(found: re.Match[str]) -> str:
    part, place = _shapes(found[0])
    return f"what has shape {part} does not fit into shape {place}"


def _reshaped(found: re.Match[str]) -> str:
    plural = "" if found[1] == "1" else "s"
    return f"{found[1]} element{plural} cannot take the shape [{found[2].rstrip(',').replace('newaxis', '-1')}]"


def _unequal(found: re.Match[str]) -> str:
    axis, one, length, other, another = found.groups()
    return f"inputs {one} and {other} have lengths {length} and {another} along axis {axis}, expected equal ones"


def _product(found: re.Match[str]) -> str:
    return f"a matrix product over lengths {found[2]} and {found[1]}, expected equal ones"


def _as(sentence: str) -> Callable[[re.Match[str]], str]:
    """A sentence with groups of what was found, written as in ``re.sub``."""
    return lambda found: found.expand(sentence)


_TOLD: Mapping[str, Callable[[re.Match[str]], str]] = {
    r"operands could not be broadcast together with (?:remapped )?shapes (.*)": _broadcast,
    r"objects cannot be broadcast to a single shape(.*)": _broadcast,
    r"could not broadcast input array from shape \S.* into shape .*": _part,
    r"cannot reshape array of size (\d+) into shape \(([\w,-]*)\)": _reshaped,
    r"but along dimension (\d+), the array at index (\d+) has size (\d+) and the array at index (\d+) has size (\d+)": _unequal,
    r"mismatch in its core dimension \d+, .*\(size (\d+) is different from (\d+)\)": _product,
    r"axis (-?\d+) is out of bounds for array of dimension (\d+)": _as(
        r"axis \1 is out of range for rank \2"
    ),
    r"^index (-?\d+) is out of bounds for axis \d+ with size (\d+)": _as(
        r"index \1 is out of range for an axis of length \2"
    ),
    r"too many indices for array: array is (\d+)-dimensional, but (\d+) were indexed": _as(
        r"\2 indices for a tensor of rank \1"
    ),
    r"cannot select an axis to squeeze out which has size not equal to one": _as(
        "an axis that is to go has another length than 1"
    ),
    r"repeated axis|axes don't match array|duplicate value in 'axis'": _as(
        "the axes are not those of the input, each once"
    ),
    r"attempt to get arg(m..) of an empty sequence": _as(r"an axis without elements has no \1imum"),
    r"zero-size array to reduction operation (\w+) which has no identity": _as(
        r"no elements have no \1"
    ),
    r"NoneType": _as("an input is left out that the operation needs"),
    r"won't fit into a C|too large to convert|cannot fit 'int' into": _as(
        "a number is larger than the operation takes"
    ),
    r"truth value of an array|only (?:0-dimensional|length-1|integer scalar) arrays": _as(
        "an input has several elements, expected one"
    ),
    r"cannot convert float (infinity|NaN) to integer": _as(r"a number is \1, expected a whole one"),
    r"^(?:integer |float )?division by zero$|modulo by zero$": _as(
        "a number is 0 that the operation divides by"
    ),
    r"^Input type mismatch: (\w+) != (\w+)": _as(
        r"the element types are \1 and \2, expected one and the same"
    ),
    r"^'?(-?\d+|(?<=')\w+)'?$": _as(r"\1 is none of the values that the operation takes"),
    r"(?:tuple|list|assignment) index out of range|is not iterable|iteration over a 0-d|unsized object|too small depth": _as(
        _FEWER
    ),
}
