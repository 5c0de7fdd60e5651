"""Operations on strings: the category string of OpenVINO, and those of ONNX.

OpenVINO stores text as one sequence of UTF-8 bytes with the begin and end of each string. The onnx
package strips accents and drops empty strings, which ONNX does not define.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from loopscope.errors import MOST_OF_A_SENTENCE, elided, shorten
from loopscope.ir.element_type import INDEX_TYPES, ElementType
from loopscope.ir.shape import PartialShape
from loopscope.ops.declare import Array, Known, Operation
from loopscope.ops.family import family
from loopscope.ops.kernel_checks import check_elements


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


def string_normalizer(
    texts: Array,
    /,
    *,
    case_change_action: str = "NONE",
    is_case_sensitive: int = 0,
    locale: str = "",
    stopwords: Sequence[str] = (),
) -> Array:
    """Return texts [C] or [1, C] without the stop words, in lower or upper case; one empty text if
    all are stop words.
    """
    if texts.ndim not in (1, 2) or (texts.ndim == 2 and len(texts) != 1):
        raise ValueError(f"the texts have shape {list(texts.shape)}, expected [C] or [1, C]")
    action = case_change_action or "NONE"
    if action not in _CASES:
        raise ValueError(
            f"case_change_action is {str(action)[:40]!r}, expected one of {', '.join(_CASES)}"
        )
    compared = _CASES["NONE" if is_case_sensitive else "LOWER"]
    stopped = {compared(word) for word in stopwords}
    remaining = [
        _CASES[action](text) for text in texts.reshape(-1).tolist() if compared(text) not in stopped
    ]
    result = np.array(remaining or [""], object)
    return result if texts.ndim == 1 else result[None]


def _change_case(change: Callable[[str], str]) -> Callable[[str], str]:
    """Return a function that changes the case of each letter, but not of a letter whose other case
    is two letters, as in ONNX Runtime.
    """
    return lambda text: "".join(
        other if len(other) == 1 else letter for letter in text for other in (change(letter),)
    )


_CASES: Mapping[str, Callable[[str], str]] = {
    "NONE": str,
    "LOWER": _change_case(str.lower),
    "UPPER": _change_case(str.upper),
}


def string_split(
    texts: Array, /, *, delimiter: str | None = None, maxsplit: int | None = None
) -> tuple[Array, Array]:
    """Return the pieces of each text along a new last axis, filled up with empty texts, and the
    number of pieces: 0 for an empty text.
    """
    delimiter, limit = delimiter or None, maxsplit
    pieces = [
        text.split(delimiter, -1 if limit is None else int(limit)) if text else []
        for text in map(str, texts.reshape(-1).tolist())
    ]
    if delimiter is None and limit is not None:
        # Blanks at the end are not part of the last piece.
        pieces = [[*parts[:-1], parts[-1].rstrip()] if parts else parts for parts in pieces]
    counts = [len(parts) for parts in pieces]
    longest = max(counts, default=0)
    check_elements(texts.size * longest, "the output of StringSplit")
    result = np.array(
        [[*parts, *[""] * (longest - len(parts))] for parts in pieces], object
    ).reshape(*texts.shape, longest)
    return result, np.array(counts, np.int64).reshape(texts.shape)


def regex_full_match(texts: np.ndarray, /, *, pattern: str | None = None) -> np.ndarray:
    """Return True for each text that matches the pattern as a whole, in RE2's syntax and in time
    linear in the text.
    """
    # Imported here because only this operation uses the package.
    import re2

    quiet = re2.Options()
    quiet.log_errors = False
    try:
        compiled = re2.compile(pattern or "", quiet)
    except re2.error as error:
        raise ValueError(
            f"the pattern {shorten(repr(pattern))} is not valid in RE2: {_error_text(error)}"
        ) from None
    matches = [compiled.fullmatch(str(text)) is not None for text in texts.reshape(-1).tolist()]
    return np.array(matches, np.bool_).reshape(texts.shape)


def _error_text(error: Exception) -> str:
    reason = error.args[0] if error.args else b""
    return elided(
        reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason),
        MOST_OF_A_SENTENCE,
    )
