"""Data of Const layers, located in the weights and checked against type and shape."""

from __future__ import annotations

import math
from dataclasses import dataclass

from loopscope.errors import shorten
from loopscope.ir.constant import Constant, packed_size
from loopscope.ir.element_type import ElementType
from loopscope.ir.shape import MOST_DIMENSIONS, PartialShape, is_of_an_array
from loopscope.read.openvino import fields
from loopscope.read.openvino.fields import Attributes, natural, required
from loopscope.read.weights import WeightsFile


@dataclass(frozen=True, slots=True)
class Kind:
    """Type and shape that several constants share."""

    element_type: ElementType
    shape: PartialShape
    lengths: tuple[int, ...]
    bytes: int
    """Size of a constant in the weights. Strings have the size that they declare."""


class ConstantReader:
    """Reader of constants. A type and shape that repeats is parsed once."""

    def __init__(self, weights: WeightsFile) -> None:
        self._weights = weights
        self._kinds: dict[tuple[str | None, str | None], Kind] = {}

    def read(self, attributes: Attributes) -> tuple[Constant, Kind]:
        """Return the constant that the ``<data>`` of a Const describes.

        ``ValueError`` if the attributes are invalid. A ``size`` larger than the tensor is accepted
        as in OpenVINO, if the weights contain the bytes; the extra bytes are ignored.
        """
        key = attributes.get("element_type"), attributes.get("shape")
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = _kind(attributes)
        offset, size = natural(attributes, "offset", "data"), natural(attributes, "size", "data")
        needed = size if kind.element_type is ElementType.STRING else kind.bytes
        if size < needed:
            raise ValueError(
                f"size is {size} bytes, but {math.prod(kind.lengths)} elements of"
                f" {kind.element_type} take {needed}"
            )
        return Constant(
            kind.element_type,
            kind.lengths,
            self._weights.take(offset, size)[:needed] if needed else b"",
        ), kind


def _kind(attributes: Attributes) -> Kind:
    element_type = fields.element_type(required(attributes, "element_type", "data"))
    if element_type is None:
        raise ValueError(
            f"element_type is {shorten(attributes['element_type'], 40)!r},"
            " expected one such as 'f32', 'i64', 'boolean'"
        )
    shape, lengths, elements = _static_shape(required(attributes, "shape", "data"))
    return Kind(element_type, shape, lengths, packed_size(element_type, elements))


def _static_shape(text: str) -> tuple[PartialShape, tuple[int, ...], int]:
    try:
        shape = PartialShape.parse(text)
        lengths = shape.lengths
    except ValueError:
        raise ValueError(
            f"shape is {shorten(text, 60)!r}, expected lengths such as '4, 3'"
        ) from None
    if not is_of_an_array(lengths):
        raise ValueError(
            f"shape is {shorten(text, 60)!r}, larger than any array:"
            f" at most {MOST_DIMENSIONS} dimensions and 2^58 elements"
        )
    return shape, lengths, math.prod(lengths)
