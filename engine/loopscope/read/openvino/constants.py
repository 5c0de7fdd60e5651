"""The data of Const layers, found in the weights and checked against type and shape."""

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
    """Type and shape that many constants have."""

    element_type: ElementType
    shape: PartialShape
    lengths: tuple[int, ...]
    bytes: int
    """How many of the weights such a constant takes; strings take what they say."""


class ConstantReader:
    """Constants from their attributes; type and shape that many of them have are understood
    once.
    """

    def __init__(self, weights: WeightsFile) -> None:
        self._weights = weights
        self._kinds: dict[tuple[str | None, str | None], Kind] = {}

    def read(self, attributes: Attributes) -> tuple[Constant, Kind]:
        """The constant that the ``<data>`` of a Const describes; ``ValueError`` says what is wrong
        with it.

        A ``size`` larger than the tensor is accepted and the rest ignored, as OpenVINO does, as
        long as so much is there.
        """
        said = attributes.get("element_type"), attributes.get("shape")
        kind = self._kinds.get(said)
        if kind is None:
            kind = self._kinds[said] = _kind(attributes)
        offset, size = natural(attributes, "offset", "data"), natural(attributes, "size", "data")
        needed = size if kind.element_type is ElementType.STRING else kind.bytes
        if size < needed:
            raise ValueError(
                f"size is {size} bytes, but {math.prod(kind.lengths)} elements of {kind.element_type} take {needed}"
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
            f"element_type is {shorten(attributes['element_type'], 40)!r}, expected one such as 'f32', 'i64', 'boolean'"
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
            f"shape is {shorten(text, 60)!r}, larger than any array: at most {MOST_DIMENSIONS} dimensions and 2^58 elements"
        )
    return shape, lengths, math.prod(lengths)
