"""Parsers for the attributes and short texts of an IR document. They raise ``ValueError``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from loopscope.errors import shorten
from loopscope.ir.element_type import ElementType
from loopscope.ir.model import BackEdge, Edge, InputMap, LayerId, OutputMap
from loopscope.ir.shape import DYNAMIC, PartialShape, static
from loopscope.ir.shape import UNKNOWN as UNKNOWN_DIMENSION

Attributes = Mapping[str, str]

_ELEMENT_TYPES = {element_type.value: element_type for element_type in ElementType}
_PRECISIONS = {
    **_ELEMENT_TYPES,
    "FP64": ElementType.F64,
    "FP32": ElementType.F32,
    "FP16": ElementType.F16,
    "BF16": ElementType.BF16,
    "BOOL": ElementType.BOOLEAN,
    "BIN": ElementType.U1,
    **{element_type.value.upper(): element_type for element_type in ElementType},
}
_OPEN_PRECISIONS = {"UNSPECIFIED", "undefined", "dynamic"}
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_DIMENSION = re.compile(r"\s*(-1|[0-9]{1,18})\s*")
_NAME_SEPARATOR = re.compile(r"(?<!\\),")


def required(attributes: Attributes, name: str, element: str) -> str:
    """Return the text of a required attribute."""
    text = attributes.get(name)
    if text is None:
        raise ValueError(f"<{element}> lacks the required attribute '{name}'")
    return text


def number(attributes: Attributes, name: str, element: str, default: int | None = None) -> int:
    """Return an integer of at most 19 digits; the attribute is required without a default."""
    text = attributes.get(name)
    if text is None and default is not None:
        return default
    text = required(attributes, name, element).strip()
    if not _NUMBER.fullmatch(text):
        raise ValueError(
            f"attribute '{name}' of <{element}> is {shorten(text, 40)!r}, expected a whole number"
        )
    return int(text)


def natural(attributes: Attributes, name: str, element: str) -> int:
    """Return a required non-negative integer, such as an id, offset or size."""
    # Fast path for plain digits, as in nearly every id.
    text = attributes.get(name)
    if text is not None and text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    value = number(attributes, name, element)
    if value < 0:
        raise ValueError(f"attribute '{name}' of <{element}> is {value}, expected 0 or more")
    return value


class Numbers(dict[str, int]):
    """Cache of natural numbers by their digits. ``KeyError`` for any other text."""

    def __missing__(self, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise KeyError(text)
        number = self[text] = int(text)
        return number


def precision(attributes: Attributes, tag: str) -> ElementType | None:
    """Return the element type of a port's ``precision``; None if the type is open.

    As in OpenVINO, a port of an ``<output>`` must have a valid one.

    >>> precision({"precision": "FP32"}, "output"), precision({}, "input")
    (<ElementType.F32: 'f32'>, None)
    >>> precision({"precision": "UNSPECIFIED"}, "output")
    """
    text = attributes.get("precision")
    element_type = None if text is None else _PRECISIONS.get(text)
    if (
        element_type is None
        and tag == "output"
        and required(attributes, "precision", "port") not in _OPEN_PRECISIONS
    ):
        raise ValueError(
            f"attribute 'precision' of <port> is {shorten(text or '', 40)!r},"
            " expected a type such as FP32, I64 or BOOL"
        )
    return element_type


def element_type(text: str | None) -> ElementType | None:
    """Return the type that ``element_type="f32"`` names; None if it is missing, dynamic or unknown.

    Upper and lower case are equal, as in OpenVINO.
    """
    return None if text is None else _ELEMENT_TYPES.get(text) or _ELEMENT_TYPES.get(text.lower())


def names(text: str) -> tuple[str, ...]:
    r"""Split tensor names at commas; a comma inside a name is written ``\,``.

    >>> names(r"a\,1,b\,c,d e")
    ('a,1', 'b,c', 'd e')
    """
    if "," not in text:
        return (text,) if text else ()
    return tuple(name.replace("\\,", ",") for name in _NAME_SEPARATOR.split(text) if name)


def port_shape(text: str) -> PartialShape:
    """Return the shape of a port's ``<dim>`` texts, each followed by a comma.

    A port without ``<dim>`` is a scalar or of unknown rank, which the file does not distinguish.

    >>> str(port_shape("2,-1,")), str(port_shape(""))
    ('[2,?]', '...')
    """
    texts = text.split(",")
    if len(texts) == 1:
        return DYNAMIC
    return PartialShape(
        tuple(
            UNKNOWN_DIMENSION if length < 0 else static(length)
            for length in map(_length, texts[:-1])
        )
    )


def _length(text: str) -> int:
    match = _DIMENSION.fullmatch(text)
    if match is None:
        raise ValueError(f"<dim> is {shorten(text.strip(), 40)!r}, expected a length or -1")
    return int(match[1])


def edge(attributes: Attributes) -> Edge:
    """Parse an ``<edge>`` of ``<edges>``."""
    return Edge(
        LayerId(natural(attributes, "from-layer", "edge")),
        natural(attributes, "from-port", "edge"),
        LayerId(natural(attributes, "to-layer", "edge")),
        natural(attributes, "to-port", "edge"),
    )


def back_edge(attributes: Attributes) -> BackEdge:
    """Parse an ``<edge>`` of ``<back_edges>``."""
    return BackEdge(
        LayerId(natural(attributes, "from-layer", "edge")),
        LayerId(natural(attributes, "to-layer", "edge")),
    )


def input_map(attributes: Attributes) -> InputMap:
    """Parse an ``<input>`` of a port map."""
    return InputMap(*_map_entry(attributes, "input"))


def output_map(attributes: Attributes) -> OutputMap:
    """Parse an ``<output>`` of a port map."""
    return OutputMap(*_map_entry(attributes, "output"))


def _map_entry(
    attributes: Attributes, element: str
) -> tuple[int, LayerId, int | None, int, int, int, int, str]:
    external = number(attributes, "external_port_id", element)
    if external < -1:
        raise ValueError(
            f"external_port_id of <{element}> is {external}, expected a port number, or -1 for none"
        )
    return (
        external,
        LayerId(natural(attributes, "internal_layer_id", element)),
        number(attributes, "axis", element) if "axis" in attributes else None,
        number(attributes, "start", element, 0),
        number(attributes, "end", element, -1),
        number(attributes, "stride", element, 1),
        number(attributes, "part_size", element, 1),
        attributes.get("purpose", ""),
    )
