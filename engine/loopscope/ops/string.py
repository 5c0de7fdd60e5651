"""Category string: text as one sequence of UTF-8 bytes with the begin and end of each string."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Array, Known, Operation
from loopscope.ops.family import family


def string_tensor_pack(begins: Array, ends: Array, symbols: Array, /) -> Array:
    """Decode the strings from ``begins`` to before ``ends`` (of equal shape) in UTF-8 bytes.

    Page type/string-tensor-pack-15.
    """
    if begins.shape != ends.shape:
        raise ValueError(
            f"begins has shape {begins.shape}, ends has shape {ends.shape}: expected the same"
        )
    text = symbols.tobytes()
    strings = np.empty(begins.size, dtype=object)
    for index, (begin, end) in enumerate(
        zip(begins.reshape(-1).tolist(), ends.reshape(-1).tolist(), strict=True)
    ):
        if not 0 <= begin <= end <= len(text):
            raise ValueError(
                f"string {index} lies from {begin} to {end} in {len(text)} bytes of text"
            )
        strings[index] = text[begin:end].decode("utf-8", errors="replace")
    return strings.reshape(begins.shape)


def string_tensor_unpack(data: Array, /) -> tuple[Array, Array, Array]:
    """Return the begin and end of each string, and all strings joined as UTF-8 bytes.

    Page type/string-tensor-unpack-15.
    """
    texts = [str(text).encode() for text in data.reshape(-1).tolist()]
    bounds = np.cumsum([0, *(len(text) for text in texts)])
    symbols = np.frombuffer(b"".join(texts), np.uint8)
    if symbols.size > np.iinfo(np.int32).max:
        raise ValueError(f"{symbols.size} bytes of text cannot be counted in i32")
    return (
        bounds[:-1].astype(np.int32).reshape(data.shape),
        bounds[1:].astype(np.int32).reshape(data.shape),
        symbols,
    )


def _pack_rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    shape = inputs[0].shape.intersect(inputs[1].shape)
    if shape is None:
        raise ValueError(
            f"begins has shape {inputs[0].shape}, ends has shape {inputs[1].shape}: "
            "expected the same"
        )
    return (Known(ElementType.STRING, shape),)


def _unpack_rule(inputs: Sequence[Known], attributes: Mapping[str, Any], /) -> tuple[Known, ...]:
    places = Known(ElementType.I32, inputs[0].shape)
    return (places, places, Known(ElementType.U8, PartialShape.unknown(1)))


row = family("type")

OPERATIONS: tuple[Operation, ...] = (
    row(
        "StringTensorPack",
        string_tensor_pack,
        version=15,
        infer=_pack_rule,
        inputs=(3, 3),
        types=(INDEX_TYPES, INDEX_TYPES, frozenset({ElementType.U8})),
    ),
    row(
        "StringTensorUnpack",
        string_tensor_unpack,
        version=15,
        infer=_unpack_rule,
        outputs=3,
        types=(frozenset({ElementType.STRING}),),
    ),
)
