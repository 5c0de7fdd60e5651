"""Messages of Python, numpy and the onnx package about unsuitable inputs, reworded for models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_SHAPE = re.compile(r"\((?:\d+(?:, ?\d+)*,?)?\)")
_TOO_FEW_DIMENSIONS = "an input has fewer dimensions than the operation requires"


def in_plain_words(message: str) -> str:
    """Return the message in the terms of models if its pattern is known, else the message
    unchanged.

    >>> in_plain_words("operands could not be broadcast together with shapes (2,3) (4,) ")
    'shapes [2,3] and [4] cannot be broadcast together'
    """
    for pattern, rewrite in _REWRITES.items():
        match = re.search(pattern, message)
        if match:
            return rewrite(match)
    return message


def _shapes(text: str) -> list[str]:
    return [f"[{shape[1:-1].replace(' ', '').rstrip(',')}]" for shape in _SHAPE.findall(text)]


def _broadcast(match: re.Match[str]) -> str:
    """Return the message with each shape once: numpy also lists that of an output in place."""
    return f"shapes {' and '.join(dict.fromkeys(_shapes(match[1])))} cannot be broadcast together"


def _part(match: re.Match[str]) -> str:
    source, target = _shapes(match[0])
    return f"a value of shape {source} does not fit into shape {target}"


def _reshaped(match: re.Match[str]) -> str:
    plural = "" if match[1] == "1" else "s"
    shape = match[2].rstrip(",").replace("newaxis", "-1")
    return f"{match[1]} element{plural} cannot take the shape [{shape}]"


def _unequal(match: re.Match[str]) -> str:
    axis, left, length, right, other_length = match.groups()
    return (
        f"inputs {left} and {right} have lengths {length} and {other_length} along axis {axis}, "
        "expected equal ones"
    )


def _product(match: re.Match[str]) -> str:
    return f"a matrix product over lengths {match[2]} and {match[1]}, expected equal ones"


def _template(sentence: str) -> Callable[[re.Match[str]], str]:
    """Return a function that expands the sentence with the groups of a match, like ``re.sub``."""
    return lambda match: match.expand(sentence)


_REWRITES: Mapping[str, Callable[[re.Match[str]], str]] = {
    r"operands could not be broadcast together with (?:remapped )?shapes (.*)": _broadcast,
    r"objects cannot be broadcast to a single shape(.*)": _broadcast,
    r"could not broadcast input array from shape \S.* into shape .*": _part,
    r"cannot reshape array of size (\d+) into shape \(([\w,-]*)\)": _reshaped,
    (
        r"but along dimension (\d+), the array at index (\d+) has size (\d+) "
        r"and the array at index (\d+) has size (\d+)"
    ): _unequal,
    r"mismatch in its core dimension \d+, .*\(size (\d+) is different from (\d+)\)": _product,
    r"axis (-?\d+) is out of bounds for array of dimension (\d+)": _template(
        r"axis \1 is out of range for rank \2"
    ),
    r"^index (-?\d+) is out of bounds for axis \d+ with size (\d+)": _template(
        r"index \1 is out of range for an axis of length \2"
    ),
    r"too many indices for array: array is (\d+)-dimensional, but (\d+) were indexed": _template(
        r"\2 indices for a tensor of rank \1"
    ),
    r"cannot select an axis to squeeze out which has size not equal to one": _template(
        "an axis to remove has a length other than 1"
    ),
    r"repeated axis|axes don't match array|duplicate value in 'axis'": _template(
        "the axes must be those of the input, each once"
    ),
    r"attempt to get arg(m..) of an empty sequence": _template(
        r"an axis without elements has no \1imum"
    ),
    r"zero-size array to reduction operation (\w+) which has no identity": _template(
        r"no elements have no \1"
    ),
    r"NoneType": _template("a required input is missing"),
    r"won't fit into a C|too large to convert|cannot fit 'int' into": _template(
        "a number is too large for the operation"
    ),
    r"truth value of an array|only (?:0-dimensional|length-1|integer scalar) arrays": _template(
        "an input has several elements, expected one"
    ),
    r"cannot convert float (infinity|NaN) to integer": _template(
        r"a number is \1, expected a whole one"
    ),
    r"^(?:integer |float )?division by zero$|modulo by zero$": _template("a divisor is 0"),
    r"^Input type mismatch: (\w+) != (\w+)": _template(
        r"the element types are \1 and \2, expected one and the same"
    ),
    r"^'?(-?\d+|(?<=')\w+)'?$": _template(r"\1 is not a value that the operation accepts"),
    (
        r"(?:tuple|list|assignment) index out of range|is not iterable|iteration over a 0-d"
        r"|unsized object|too small depth"
    ): _template(_TOO_FEW_DIMENSIONS),
}
